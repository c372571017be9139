# pyright: reportIncompatibleMethodOverride=false
# (torch's own types of Function do not know setup_context with several arguments)
"""What the engine gives no gradient of must not seem to have one, of zero: a backward pass through it raises."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


class NoGradientError(RuntimeError):
    """A gradient was asked for that the engine does not have."""


class _NoGradient(Function):
    """x unchanged; `depends` is what it would have a gradient by."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, depends: Tensor, why: str) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.why = inputs[2]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, y_bar: Tensor | None) -> tuple[None, None, None]:
        if y_bar is not None:
            raise NoGradientError(ctx.why)
        return None, None, None


def without_gradient(x: Tensor, depends: Tensor, why: str) -> Tensor:
    """x, through which no gradient can go to `depends`: the backward pass raises NoGradientError(why)."""
    return _NoGradient.apply(x.detach(), depends, why)  # type: ignore[return-value]
