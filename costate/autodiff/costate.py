# pyright: reportIncompatibleMethodOverride=false
"""Identities that change only what comes back through them: the costate scaled, or clipped."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from costate.autodiff.torch import apply


class _Scale(Function):
    """The identity; its gradient is scaled."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, factor: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, bar: Tensor) -> tuple[Tensor, None]:
        return bar * ctx.factor, None


class _Clip(Function):
    """The identity of q and v; their gradients are scaled down together, world by world, to at most `limit`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, v: Tensor, quaternions: tuple[int, ...], limit: float) -> tuple[Tensor, Tensor]:
        return q.view_as(q), v.view_as(v)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.quaternions, ctx.limit = inputs[2:]
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor, v_bar: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (q,) = ctx.saved_tensors
        # q + dq of a quaternion is q * (1, w/2): of its bar the part along q is no turn, the rest counts |q| / 2
        parts, end = [v_bar], 0
        for start in ctx.quaternions:
            x, bar = q[..., start : start + 4], q_bar[..., start : start + 4]
            length = x.norm(dim=-1, keepdim=True)
            unit = x / length
            parts += [q_bar[..., end:start], 0.5 * length * (bar - (bar * unit).sum(-1, keepdim=True) * unit)]
            end = start + 4
        tangent = torch.cat((*parts, q_bar[..., end:]), -1)
        # in units of the largest, since the square of a large one may not be a number
        largest = tangent.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(q.dtype).tiny)
        norm = largest * (tangent / largest).norm(dim=-1, keepdim=True)
        scale = torch.where(norm > ctx.limit, ctx.limit / norm, torch.ones_like(norm))
        return q_bar * scale, v_bar * scale, None, None


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """x itself, through which gradients pass multiplied by `factor`."""
    return apply(_Scale, x, factor)


def clip_gradient(q: Tensor, v: Tensor, quaternions: tuple[int, ...], limit: float) -> tuple[Tensor, Tensor]:
    """q and v themselves, through which gradients pass with a joint norm per world of at most `limit`, in tangent coordinates.

    q [..., nq] and v [..., nv] have the same leading dimensions; `quaternions` says where in q they start, in order.
    """
    return apply(_Clip, q, v, quaternions, limit)
