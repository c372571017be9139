"""Quaternions (wxyz) in torch, for what is computed outside the engine: sites, energy, momentum."""

from __future__ import annotations

import torch
from torch import Tensor


def rotate(q: Tensor, x: Tensor) -> Tensor:
    """R(q) x for unit q [..., 4] and x [..., 3]: x + 2 w (u x x) + 2 u x (u x x)."""
    w, u = q[..., :1], q[..., 1:]
    u, x = torch.broadcast_tensors(u, x)
    t = 2 * torch.linalg.cross(u, x)
    return x + w * t + torch.linalg.cross(u, t)


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The quaternion product a b, [..., 4]."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    av, bv = torch.broadcast_tensors(av, bv)
    return torch.cat((aw * bw - (av * bv).sum(-1, keepdim=True), aw * bv + bw * av + torch.linalg.cross(av, bv)), -1)


def inverse(q: Tensor) -> Tensor:
    """The inverse of a unit quaternion."""
    return torch.cat((q[..., :1], -q[..., 1:]), -1)


def normalise(q: Tensor) -> Tensor:
    """q / |q|."""
    return q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)


def symmetric(six: Tensor) -> Tensor:
    """The matrix [..., 3, 3] of xx, yy, zz, xy, xz, yz [..., 6]."""
    xx, yy, zz, xy, xz, yz = six.unbind(-1)
    return torch.stack((xx, xy, xz, xy, yy, yz, xz, yz, zz), -1).unflatten(-1, (3, 3))
