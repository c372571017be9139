# pyright: reportIncompatibleMethodOverride=false, reportAssignmentType=false, reportCallIssue=false, reportAttributeAccessIssue=false
# (torch's own types of Function know neither vmap rules nor setup_context with several arguments)
"""The native calls as torch autograd functions: thin wrappers, forward and adjoint next to each other.

Everything here works on flat tensors: [worlds, n], or [1, n] where all worlds share the numbers (theta, dt), and
[steps, worlds, n] for what changes with time.
The adjoints are functions of their own, so that torch.func.vmap, vjp and jacrev work on them; differentiating them once
more raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch._C._dynamo.eval_frame import set_eval_frame
from torch.autograd import Function

from costate._native.cpu import Engine, Op


def _array(x: Tensor | None) -> np.ndarray | None:
    """The tensor's memory as numpy, contiguous; no copy where it is contiguous already."""
    return None if x is None else x.detach().contiguous().numpy()


def transforming() -> bool:
    """Inside vmap, grad or another functional transform, where there may be no plain numbers to look at."""
    return torch._C._are_functorch_transforms_active()


_F = TypeVar("_F", bound=Callable[..., Any])


def outside_graphs(f: _F) -> _F:
    """torch.compile leaves f and all that it calls out of its graphs (a graph break); everything around it compiles."""

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        prior = set_eval_frame(None)
        try:
            return f(*args, **kwargs)
        finally:
            set_eval_frame(prior)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _arrays(tensors: Iterable[Tensor | None]) -> list[np.ndarray | None]:
    return [_array(x) for x in tensors]


class _Adjoint(Function):
    """What both adjoints share: they keep nothing, since nobody may differentiate them."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(
            "costate differentiates once: second derivatives (create_graph=True, or a gradient of a gradient) are not "
            "supported. For curvature use sim.linearize, or differences of gradients."
        )


def _apply(function: type[Function], *args: Any) -> Any:
    """function.apply(*args); outside functional transforms without torch's inspection of the signature, which is slow."""
    if transforming():
        return function.apply(*args)
    return super(Function, function).apply(*args)  # type: ignore[misc]


class _Instant(Function):
    """Any Op of one instant: inputs [worlds or 1, n] -> outputs [worlds, n]."""

    @staticmethod
    def forward(engine: Engine, op: Op, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        worlds, first = _worlds(inputs), _first(inputs)
        outputs = tuple(first.new_empty((worlds, n)) for n in engine.outputs[op])
        engine.tree.op(op, worlds, _arrays(inputs), _arrays(outputs))
        return outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.engine, ctx.op = inputs[0], inputs[1]
        ctx.save_for_backward(*inputs[2:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *output_bars: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[2:])
        if not any(wanted) or all(bar is None for bar in output_bars):
            return (None,) * (2 + len(wanted))
        bars = iter(_apply(_InstantAdj, ctx.engine, ctx.op, wanted, *ctx.saved_tensors, *output_bars))
        return (None, None, *(next(bars) if want else None for want in wanted))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], engine: Engine, op: Op, *inputs: Tensor | None) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, inputs, in_dims[2:])
        outputs = tuple(merge.split(y) for y in _apply(_Instant, engine, op, *merge.all(inputs)))
        return outputs, (0,) * len(outputs)


class _InstantAdj(_Adjoint):
    """The adjoint of an Op: bars of the wanted inputs."""

    @staticmethod
    def forward(engine: Engine, op: Op, wanted: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        inputs, output_bars = tensors[: len(wanted)], tensors[len(wanted) :]
        bars = _empty_bars(inputs, wanted)
        engine.tree.op_adj(op, _worlds(inputs), _arrays(inputs), _arrays(output_bars), _arrays(bars))
        return tuple(bar for bar in bars if bar is not None)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], engine: Engine, op: Op, wanted: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, tensors, in_dims[3:])
        return merge.split_bars(_apply(_InstantAdj, engine, op, wanted, *merge.all(tensors, wanted)), wanted)


# q, v, control and external have a row for every world; dt and theta may be shared
_PER_WORLD = (True, True, True, False, True, False)


class RolloutSpec(NamedTuple):
    """What a rollout is, besides its tensors."""

    worlds: int
    steps: int
    substeps: int = 1
    decay: float = 1.0
    truncate: int = 0
    start: bool = False  # whether the outputs begin with the state before the first step


class _Rollout(Function):
    """q, v, control, dt, external, theta -> q, v [start + steps, worlds, n], diverged_at [worlds, 1].

    The outputs are the checkpoints too: nothing else is kept for the adjoint.
    """

    @staticmethod
    def forward(engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        first, n = _first(inputs), spec.start + spec.steps
        q = first.new_empty((n, spec.worlds, engine.model.nq))
        v = first.new_empty((n, spec.worlds, engine.model.nv))
        at = torch.empty((spec.worlds, 1), dtype=torch.int32)
        arrays = tuple(_arrays(inputs))
        after = (x.numpy()[int(spec.start) :] for x in (q, v))
        bad = engine.tree.rollout(spec.worlds, spec.steps, spec.substeps, *arrays, *after, at.numpy())
        if bad >= 0:
            engine.raise_bad(bad, arrays)
        if spec.start:
            q.numpy()[0], v.numpy()[0] = arrays[0], arrays[1]
        return q, v, at

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.engine, ctx.spec = inputs[0], inputs[1]
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs[2:], *output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor | None, v_bar: Tensor | None, _: Any) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[2:])
        if not any(wanted) or (q_bar is None and v_bar is None):
            return (None,) * (2 + len(wanted))
        bars = iter(_apply(_RolloutAdj, ctx.engine, ctx.spec, wanted, *ctx.saved_tensors, q_bar, v_bar))
        return (None, None, *(next(bars) if want else None for want in wanted))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, inputs, in_dims[2:])
        many = spec._replace(worlds=info.batch_size * spec.worlds)
        return tuple(merge.split(y) for y in _apply(_Rollout, engine, many, *merge.all(inputs, _PER_WORLD))), (1, 1, 0)


class _RolloutAdj(_Adjoint):
    """The adjoint of a rollout, back from one kept state to the one before."""

    @staticmethod
    def forward(engine: Engine, spec: RolloutSpec, wanted: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        inputs, (q, v, at, q_bar, v_bar) = tensors[: len(wanted)], _arrays(tensors[len(wanted) :])
        bars = _empty_bars(inputs, wanted)
        after = [None if x is None else x[int(spec.start) :] for x in (q, v, q_bar, v_bar)]
        counts, states, how = (spec.worlds, spec.steps, spec.substeps), (*after[:2], at, *after[2:]), (spec.decay, spec.truncate)
        engine.tree.rollout_adj(*counts, _arrays(inputs), *states, _arrays(bars), *how)
        if spec.start and at is not None:
            for bar, state_bar in zip(bars[:2], (q_bar, v_bar), strict=True):
                if bar is not None and state_bar is not None:
                    bar.numpy()[...] += np.where(at >= spec.steps, state_bar[0], 0)  # a world that diverged gives no gradient
        return tuple(bar for bar in bars if bar is not None)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], engine: Engine, spec: RolloutSpec, wanted: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, tensors, in_dims[3:])
        many = spec._replace(worlds=info.batch_size * spec.worlds)
        # also the checkpoints and bars behind the six inputs have a row for every world
        repeat = (*(want or per_world for want, per_world in zip(wanted, _PER_WORLD, strict=True)), *(True,) * 5)
        return merge.split_bars(_apply(_RolloutAdj, engine, many, wanted, *merge.all(tensors, repeat)), wanted)


@outside_graphs
def instant(engine: Engine, op: Op, *inputs: Tensor | None) -> tuple[Tensor, ...]:
    """Run `op` on flat tensors, differentiably."""
    return _apply(_Instant, engine, op, *inputs)


@outside_graphs
def rollout(engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Run many steps on flat tensors, differentiably: states after each control step, and how many of them stayed finite."""
    return _apply(_Rollout, engine, spec, *inputs)


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


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """x itself, through which gradients pass multiplied by `factor`."""
    return _apply(_Scale, x, factor)


def _first(inputs: tuple[Tensor | None, ...]) -> Tensor:
    return next(x for x in inputs if x is not None)


def _worlds(inputs: tuple[Tensor | None, ...]) -> int:
    return max(x.shape[0] for x in inputs if x is not None)


def _empty_bars(inputs: tuple[Tensor | None, ...], wanted: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
    return tuple(x.new_empty(x.shape) if want and x is not None else None for x, want in zip(inputs, wanted, strict=True))


class _Merge:
    """vmap's samples as more worlds: n samples of [worlds, k] become [n * worlds, k], those of [steps, worlds, k] likewise.

    Rows that all worlds share, [1, k], stay shared, unless vmap varies them or their bar is wanted for each sample.
    """

    def __init__(self, n: int, tensors: tuple[Tensor | None, ...], dims: tuple[Any, ...]) -> None:
        self.n, self.dims = n, dims
        self.samples = [
            None if x is None else x if dim is None else x.movedim(dim, 0)[0] for x, dim in zip(tensors, dims, strict=True)
        ]
        self.worlds = max(x.shape[-2] for x in self.samples if x is not None)

    def all(self, tensors: tuple[Tensor | None, ...], wanted: tuple[bool, ...] = ()) -> list[Tensor | None]:
        repeat = (*wanted, *(False,) * (len(tensors) - len(wanted)))
        return [self._one(*args) for args in zip(tensors, self.dims, repeat, strict=True)]

    def split(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[:-2], self.n, self.worlds, y.shape[-1])

    def split_bars(self, bars: tuple[Tensor, ...], wanted: tuple[bool, ...]) -> tuple[Any, Any]:
        samples = [x for x, want in zip(self.samples, wanted, strict=False) if want and x is not None]
        split = [self.split(bar) for bar in bars]
        split = [bar.sum(-2, keepdim=True) if x.shape[-2] == 1 else bar for bar, x in zip(split, samples, strict=True)]
        return tuple(split), tuple(bar.ndim - 3 for bar in split)

    def _one(self, x: Tensor | None, dim: int | None, repeat: bool) -> Tensor | None:
        shared = x is not None and dim is None and x.ndim == 2 and x.shape[0] == 1 and not repeat
        if x is None or shared:
            return x
        moved = x.unsqueeze(-3).expand(*x.shape[:-2], self.n, *x.shape[-2:]) if dim is None else x.movedim(dim, -3)
        full = moved.expand(*moved.shape[:-2], self.worlds, moved.shape[-1])
        return full.reshape(*full.shape[:-3], self.n * self.worlds, full.shape[-1])
