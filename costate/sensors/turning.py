"""Quaternions (wxyz) in few operations: on a small batch their number is what a reading costs.

R(q) x = x + 2 (u x t + w t),    R(q)^T x = x + 2 (u x t - w t),    t = u x x,    q = (w, u)
a b = M(a) b with the 4 x 4 matrix M of the entries of a and their signs
"""

from __future__ import annotations

import torch
from torch import Tensor

from costate.sensors.tables import Table, indices

_ENTRIES = indices((0, 1, 2, 3, 1, 0, 3, 2, 2, 3, 0, 1, 3, 2, 1, 0))
_PRODUCT = Table((1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, -1, 1, 1))
_QUOTIENT = Table((1, 1, 1, 1, -1, 1, 1, -1, -1, -1, 1, 1, -1, 1, -1, 1))
cross = torch.linalg.cross


def turn(q: Tensor, x: Tensor) -> Tensor:
    """R(q) x of unit q [..., n, 4] and x [..., n, 3]: vectors of frames in world axes."""
    return _turn(q, x, 1.0)


def turn_back(q: Tensor, x: Tensor) -> Tensor:
    """R(q)^T x: vectors in world axes as frames see them."""
    return _turn(q, x, -1.0)


def _turn(q: Tensor, x: Tensor, sign: float) -> Tensor:
    w, u = q.split_with_sizes((1, 3), -1)
    if u.ndim != x.ndim:  # cross broadcasts tensors of as many dimensions only
        u, x = torch.broadcast_tensors(u, x)
    t = cross(u, x)
    return x.add(torch.addcmul(cross(u, t), w, t, value=sign), alpha=2)


def product(a: Tensor, b: Tensor) -> Tensor:
    """The quaternion product a b, [..., 4]."""
    return _multiply(a, b, _PRODUCT)


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """b as the frame a sees it: conj(a) b, [..., 4]."""
    return _multiply(a, b, _QUOTIENT)


def _multiply(a: Tensor, b: Tensor, signs: Table) -> Tensor:
    M = (a.index_select(-1, _ENTRIES.like(a)) * signs.like(a)).unflatten(-1, (4, 4))
    return (M * b.unsqueeze(-2)).sum(-1)  # no matmul: a GPU may do that with fewer digits (TF32)
