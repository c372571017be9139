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

Options = tuple[float, ...]  # of the solver, see costate/solver.py


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


def apply(function: type[Function], *args: Any) -> Any:
    """function.apply(*args); outside functional transforms without torch's inspection of the signature, which is slow."""
    if transforming():
        return function.apply(*args)
    return super(Function, function).apply(*args)  # type: ignore[misc]


class _Instant(Function):
    """Any Op of one instant: inputs [worlds or 1, n] -> outputs [worlds, n]. Only linearisations take the solver's options."""

    @staticmethod
    def forward(engine: Engine, op: Op, options: Options | None, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        worlds, first = _worlds(inputs), _first(inputs)
        outputs = tuple(first.new_empty((worlds, n)) for n in engine.outputs[op])
        if first.is_cuda:
            engine.cuda(first.device).op(op, worlds, inputs, outputs, options)
        else:
            engine.tree.op(op, worlds, _arrays(inputs), _arrays(outputs), options)
        return outputs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.engine, ctx.op = inputs[0], inputs[1]
        ctx.save_for_backward(*inputs[3:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *output_bars: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[3:])
        if not any(wanted) or all(bar is None for bar in output_bars):
            return (None,) * (3 + len(wanted))
        bars = iter(apply(_InstantAdj, ctx.engine, ctx.op, wanted, *ctx.saved_tensors, *output_bars))
        return (None, None, None, *(next(bars) if want else None for want in wanted))

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], engine: Engine, op: Op, options: Options | None, *inputs: Tensor | None
    ) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, inputs, in_dims[3:])
        outputs = tuple(merge.split(y) for y in apply(_Instant, engine, op, options, *merge.all(inputs)))
        return outputs, (0,) * len(outputs)


class _InstantAdj(_Adjoint):
    """The adjoint of an Op: bars of the wanted inputs."""

    @staticmethod
    def forward(engine: Engine, op: Op, wanted: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        inputs, output_bars = tensors[: len(wanted)], tensors[len(wanted) :]
        bars, first = _empty_bars(inputs, wanted), _first(inputs)
        if first.is_cuda:
            engine.cuda(first.device).op_adj(op, _worlds(inputs), inputs, output_bars, bars)
        else:
            engine.tree.op_adj(op, _worlds(inputs), _arrays(inputs), _arrays(output_bars), _arrays(bars))
        return tuple(bar for bar in bars if bar is not None)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], engine: Engine, op: Op, wanted: tuple[bool, ...], *tensors: Tensor | None
    ) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, tensors, in_dims[3:])
        return merge.split_bars(apply(_InstantAdj, engine, op, wanted, *merge.all(tensors, wanted)), wanted)


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
    detail: int = 0  # what else is told: nothing, STATUS of the solves, or CONTACTS too (of a single step)
    clip: float = 0.0  # largest norm of the costate after each control step on its way back; 0: any
    options: Options = ()


STATUS, CONTACTS = 1, 2
STATUS_WIDTH, SLOT_WIDTH, ROW_WIDTH = 11, 12, 3  # numbers per world, per slot of a contact, per joint or equality row
_CONTACTS = 4  # place among the outputs q, v, at, status, contacts, ids, rows
_NOTHING = (None,) * 4  # in place of the last four


class _Rollout(Function):
    """q, v, control, dt, external, theta -> q, v [start + steps, worlds, n], diverged_at [worlds, 1], and as `detail` says

    status [worlds, 11], contacts [worlds, slots * 12], their candidates [worlds, slots], joint and equality rows [worlds, n * 3].
    Of a contact only its impulse is differentiated. The states are the checkpoints too: nothing else is kept for the adjoint.
    """

    @staticmethod
    def forward(engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        first, worlds, tree, n = _first(inputs), spec.worlds, engine.tree, spec.start + spec.steps
        q = first.new_empty((n, worlds, engine.model.nq))
        v = first.new_empty((n, worlds, engine.model.nv))
        at = first.new_empty((worlds, 1), dtype=torch.int32)
        told: tuple[Tensor, ...] = ()
        if spec.detail >= STATUS:
            told = (first.new_empty((worlds, STATUS_WIDTH)),)
        if spec.detail == CONTACTS:
            slots, ids = first.new_empty((worlds, SLOT_WIDTH * tree.max_contacts)), at.new_empty((worlds, tree.max_contacts))
            told = (*told, slots, ids, first.new_empty((worlds, ROW_WIDTH * (tree.rows + tree.equality_rows))))
        if first.is_cuda:
            _rollout_cuda(engine, spec, inputs, q, v, at, told)
            return q, v, at, *told
        arrays = tuple(_arrays(inputs))
        after = (x.numpy()[int(spec.start) :] for x in (q, v))
        more = (*_arrays(told), *_NOTHING[len(told) :])
        bad = tree.rollout(worlds, spec.steps, spec.substeps, *arrays, *after, at.numpy(), spec.options, *more)
        if bad >= 0:
            engine.raise_bad(bad, arrays)
        if spec.start:
            q.numpy()[0], v.numpy()[0] = arrays[0], arrays[1]
        return q, v, at, *told

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.engine, ctx.spec = inputs[0], inputs[1]
        ctx.mark_non_differentiable(*output[2:_CONTACTS], *output[_CONTACTS + 1 :])
        ctx.save_for_backward(*inputs[2:], *output[:3])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *output_bars: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[2:])
        state_bars = (*output_bars[:2], output_bars[_CONTACTS] if ctx.spec.detail == CONTACTS else None)
        if not any(wanted) or all(bar is None for bar in state_bars):
            return (None,) * (2 + len(wanted))
        bars = iter(apply(_RolloutAdj, ctx.engine, ctx.spec, wanted, *ctx.saved_tensors, *state_bars))
        return (None, None, *(next(bars) if want else None for want in wanted))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Any, Any]:
        merge = _Merge(info.batch_size, inputs, in_dims[2:])
        many = spec._replace(worlds=info.batch_size * spec.worlds)
        outputs = tuple(merge.split(y) for y in apply(_Rollout, engine, many, *merge.all(inputs, _PER_WORLD)))
        return outputs, (1, 1, *(0,) * (len(outputs) - 2))


class _RolloutAdj(_Adjoint):
    """The adjoint of a rollout, back from one kept state to the one before."""

    @staticmethod
    def forward(engine: Engine, spec: RolloutSpec, wanted: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Tensor, ...]:
        inputs = tensors[: len(wanted)]
        bars, first = _empty_bars(inputs, wanted), _first(inputs)
        if first.is_cuda:
            _rollout_adj_cuda(engine, spec, inputs, tensors[len(wanted) :], bars)
            return tuple(bar for bar in bars if bar is not None)
        q, v, at, q_bar, v_bar, contacts_bar = _arrays(tensors[len(wanted) :])
        after = [None if x is None else x[int(spec.start) :] for x in (q, v, q_bar, v_bar)]
        counts, states = (spec.worlds, spec.steps, spec.substeps), (*after[:2], at, *after[2:])
        how = (spec.decay, spec.truncate, spec.options, spec.clip)
        engine.tree.rollout_adj(*counts, _arrays(inputs), *states, _arrays(bars), *how, contacts_bar, None)
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
        repeat = (*(want or per_world for want, per_world in zip(wanted, _PER_WORLD, strict=True)), *(True,) * 6)
        return merge.split_bars(apply(_RolloutAdj, engine, many, wanted, *merge.all(tensors, repeat)), wanted)


def _rollout_cuda(
    engine: Engine, spec: RolloutSpec, inputs: tuple[Tensor | None, ...], q: Tensor, v: Tensor, at: Tensor,
    told: tuple[Tensor, ...],
) -> None:  # fmt: skip
    """_Rollout on a GPU: fills q, v, at and what is told."""
    start, counts = int(spec.start), (spec.worlds, spec.steps, spec.substeps)
    engine.cuda(q.device).rollout(*counts, inputs, q[start:], v[start:], at, spec.options, told)
    first, speed = inputs[0], inputs[1]
    if spec.start and first is not None and speed is not None:
        q[0], v[0] = first, speed


def _rollout_adj_cuda(
    engine: Engine, spec: RolloutSpec, inputs: tuple[Tensor | None, ...], kept: tuple[Tensor | None, ...],
    bars: tuple[Tensor | None, ...],
) -> None:  # fmt: skip
    """_RolloutAdj on a GPU: fills the bars."""
    *states, contacts_bar = (None if x is None else x.detach().contiguous() for x in kept)
    q, v, at, q_bar, v_bar = states
    assert q is not None and at is not None
    after = [None if x is None else x[int(spec.start) :] for x in (q, v, q_bar, v_bar)]
    counts, how = (spec.worlds, spec.steps, spec.substeps), (spec.decay, spec.truncate, spec.options, spec.clip)
    engine.cuda(q.device).rollout_adj(*counts, inputs, after, at, bars, *how, contacts_bar, None)
    if spec.start:
        for bar, state_bar in zip(bars[:2], (q_bar, v_bar), strict=True):
            if bar is not None and state_bar is not None:
                bar += torch.where(at >= spec.steps, state_bar[0], 0)  # a world that diverged gives no gradient


@outside_graphs
def instant(engine: Engine, op: Op, *inputs: Tensor | None, options: Options | None = None) -> tuple[Tensor, ...]:
    """Run `op` on flat tensors, differentiably; `options` of the solver for linearisations."""
    return apply(_Instant, engine, op, options, *inputs)


@outside_graphs
def rollout(engine: Engine, spec: RolloutSpec, *inputs: Tensor | None) -> tuple[Tensor, ...]:
    """Run many steps on flat tensors, differentiably: states after each control step, how many of them stayed finite, detail."""
    first = _first(inputs)
    if first.is_cuda and torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        engine.cuda(first.device).prepare_adjoint(spec.worlds, spec.substeps, spec.options, first.dtype)
    return apply(_Rollout, engine, spec, *inputs)


def costate_norms(engine: Engine, spec: RolloutSpec, inputs: Iterable[Tensor | None], *states: Tensor) -> Tensor:
    """[steps, worlds]: norm, in tangent coordinates, of the costate that arrives before each step.

    states : q, v [steps, worlds, n] after each step, diverged_at [worlds, 1], and the bars of that q and v.
    """
    norms = states[0].new_zeros((spec.steps, spec.worlds))
    counts, how = (spec.worlds, spec.steps, spec.substeps), (spec.decay, spec.truncate, spec.options, spec.clip)
    inputs = tuple(inputs)
    none = [None] * len(inputs)
    if norms.is_cuda:
        q, v, at, q_bar, v_bar = states
        engine.cuda(norms.device).rollout_adj(*counts, inputs, (q, v, q_bar, v_bar), at, none, *how, None, norms)
    else:
        engine.tree.rollout_adj(*counts, _arrays(inputs), *_arrays(states), none, *how, None, norms.numpy())
    return norms


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
