"""CudaEngine: the calls of a model's tree on torch tensors of one GPU, on torch's current stream."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from costate._native.cuda import build, parts, source, structs

if TYPE_CHECKING:
    from costate._native.cpu import Engine

ROLLOUT = -1  # in place of an Op
# Bytes of its own that a thread may have (the hardware: 512 KiB), and the part of what torch may use that these may take for all
# threads that could run at once, which the driver sets aside; beyond, scratch is in torch's memory, at most so much of it
_MOST_LOCAL, _LOCAL_PART, _SCRATCH_PART = 400_000, 1 / 3, 1 / 8
_SCALAR = {torch.float32: "float", torch.float64: "double"}
_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
_THREADS = 128  # of a block at most; more would share more code, and wait longer for each other (measured)
_WARP = 32  # threads that run together
_UNIT = 256  # bytes: scratch that kernels hand on begins at multiples of it
# Of kernels with scratch outside: threads that step a world together (core/base/team.h), and those of a block at most (measured)
_TEAM, _TEAM_THREADS = 32, {torch.float32: 1024, torch.float64: 256}
# Worlds per multiprocessor up to which such a team is faster, where rows have no places of their own (measured). More of them may
# have a kernel for each part of a step
_FEW = 16


class Key(NamedTuple):
    """What tells kernels from each other."""

    op: int
    adjoint: bool
    room: int  # substeps that scratch is for
    numbers: tuple[float, ...] | None  # options
    dtype: torch.dtype
    outside: bool = False  # whether scratch is outside the memory of threads
    apart: bool = False  # whether every part of a step is a kernel of its own
    part: int | None = None  # of a step, None: the whole call

    @property
    def shape(self) -> tuple[int, int, int]:
        """Threads that share a world, those of a block at most, and blocks that a multiprocessor is to have room for."""
        if self.part is not None:
            return parts.shape(self.part, self.dtype)
        return (_TEAM, _TEAM_THREADS[self.dtype], 1) if self.outside else (1, _THREADS, 1)


class Kernel(NamedTuple):
    """One compiled call: its function, the options to call it with, bytes that a world needs outside the memory of its thread,
    threads of a block at most, those that share a world, and where it was compiled quickly, the one that is to take its place."""

    function: Any
    options: np.ndarray
    scratch: int
    threads: int = _THREADS
    team: int = 1
    better: build.Beside | None = None


class CudaEngine:
    """What `tree` computes on the CPU, for tensors on `device`. Nothing here waits for the GPU."""

    _most_local = _MOST_LOCAL

    def __init__(self, engine: Engine, device: torch.device) -> None:
        self._engine, self._tree, self.device = engine, engine.tree, device
        self._kernels: dict[Key, Kernel] = {}
        self._wrapped: dict[int, Any] = {}
        self._streams = parts.Streams(device)
        self._building: dict[Key, Future[tuple[bytes, build.Beside | None]]] = {}
        self._workers = ThreadPoolExecutor(2, "costate compiles")
        self._cupy = build.require_cupy()
        properties = torch.cuda.get_device_properties(device)
        self._arch = f"sm_{properties.major}{properties.minor}"
        self._processors = properties.multi_processor_count
        threads = self._processors * properties.max_threads_per_multi_processor
        memory = _allowed(device) * properties.total_memory
        self._most_local, self._most_scratch = min(_MOST_LOCAL, int(_LOCAL_PART * memory / threads)), int(_SCRATCH_PART * memory)

    def op(self, op: int, worlds: int, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], options: Any) -> None:
        """As Tree.op, on tensors."""
        self._op(op, False, worlds, inputs, outputs, None, options)

    def op_adj(
        self, op: int, worlds: int, inputs: Sequence[Tensor | None], output_bars: Sequence[Tensor | None],
        input_bars: Sequence[Tensor | None],
    ) -> None:  # fmt: skip
        """As Tree.op_adj, on tensors."""
        self._op(op, True, worlds, inputs, output_bars, input_bars, None)

    def _op(
        self, op: int, adjoint: bool, worlds: int, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None],
        bars: Sequence[Tensor | None] | None, options: Any,
    ) -> None:  # fmt: skip
        first = next(x for x in inputs if x is not None)
        kernel = self._kernel(op, adjoint, 1, options, first.dtype, worlds)
        call = np.zeros((), structs.OP)
        call["worlds"], call["options"] = worlds, kernel.options
        keep = _fill(call["in"], inputs, worlds)
        keep += _fill(call["out_bar" if adjoint else "out"], outputs, worlds)
        shared = _fill_bars(call["in_bar"], bars, inputs, worlds) if bars is not None else []
        self._launch(kernel, call, worlds)
        _sum(shared)
        del keep

    def rollout(
        self, worlds: int, steps: int, substeps: int, inputs: Sequence[Tensor | None], q: Tensor, v: Tensor, at: Tensor,
        options: Any, told: Sequence[Tensor],
    ) -> None:  # fmt: skip
        """As Tree.rollout, on tensors; what is not finite is not looked for."""
        key = self._key(ROLLOUT, False, substeps, options, q.dtype, worlds)
        counts = worlds, steps, substeps
        call, keep = self._rollout_call(key, counts, inputs, (q, v, None, None), at)
        for name, x in zip(("status", "contacts", "contact_ids", "rows"), told, strict=False):
            self._set(call, name, x)
        self._run(key, call, counts)
        del keep

    def rollout_adj(
        self, worlds: int, steps: int, substeps: int, inputs: Sequence[Tensor | None], states: Sequence[Tensor | None],
        at: Tensor, bars: Sequence[Tensor | None], decay: float, truncate: int, options: Any, clip: float,
        contacts_bar: Tensor | None, norms: Tensor | None,
    ) -> None:  # fmt: skip
        """As Tree.rollout_adj, on tensors. states: q, v, q_bar, v_bar after each control step."""
        dtype = next(x.dtype for x in states if x is not None)
        key, counts = self._key(ROLLOUT, True, substeps, options, dtype, worlds), (worlds, steps, substeps)
        call, keep = self._rollout_call(key, counts, inputs, states, at)
        shared = _fill_bars(call["in_bar"], bars, inputs, worlds)
        call["decay"], call["truncate"], call["clip"] = decay, truncate, clip
        self._set(call, "contacts", contacts_bar)
        self._set(call, "costate", norms)
        self._run(key, call, counts)
        _sum(shared)
        del keep

    def prepare_adjoint(self, worlds: int, substeps: int, options: Any, dtype: torch.dtype) -> None:
        """Begin to compile the adjoint of a rollout, beside whatever follows: it takes longer than the forward."""
        self._begin(self._parts(self._key(ROLLOUT, True, substeps, options, dtype, worlds)))

    def compile(self, substeps: int, options: Any, dtype: torch.dtype, *, gradient: bool, worlds: int | None) -> None:
        """Rollouts and, if asked for, their adjoint, as well as possible; waits for it. worlds: how many, None for any number."""
        numbers = (1, _FEW * self._processors + 1) if worlds is None else (worlds,)
        ways = (False, True)[: 1 + gradient]
        keys = {self._key(ROLLOUT, adjoint, substeps, options, dtype, n) for adjoint in ways for n in numbers}
        begun = {part: self._begun(part) for key in keys for part in self._parts(key)}  # beside each other
        with build.told(f"compiling steps of {self._engine.model!r}"):
            self._kernels |= {key: self._load(key, process.code()) for key, process in begun.items() if process is not None}

    def _begun(self, key: Key) -> build.Beside | None:
        """The process that compiles a kernel well; None if that has been done."""
        if key in self._building:
            self._kernels[key] = self._load(key, *self._building.pop(key).result())
        if key in self._kernels:
            return self._kernels[key].better
        job = build.job(*self._source(key), self._arch)
        if not Path(job.path).is_file():
            return build.Beside(job)
        self._kernels[key] = self._load(key, Path(job.path).read_bytes())
        return None

    def _rollout_call(
        self, key: Key, counts: tuple[int, int, int], inputs: Sequence[Tensor | None], states: Sequence[Tensor | None], at: Tensor
    ) -> tuple[np.ndarray, list[Tensor]]:
        call = np.zeros((), structs.rollout(_NUMPY[key.dtype]))
        call["worlds"], call["steps"], call["substeps"] = counts
        call["options"] = structs.options(self._named(key))
        keep = _fill(call["in"], inputs, counts[0])
        for name, x in zip(("q", "v", "q_bar", "v_bar"), states, strict=True):
            if x is not None:
                x = x.contiguous()
                call[name] = (x.data_ptr(), x.shape[-1], x.shape[-1] * counts[0], 0)
                keep.append(x)
        call["diverged_at"] = at.data_ptr()
        return call, [*keep, at]

    @staticmethod
    def _set(call: np.ndarray, name: str, x: Tensor | None) -> None:
        if x is None or x.numel() == 0:
            return
        if name == "contact_ids":
            call[name] = x.data_ptr()
        else:
            call[name]["data"] = x.data_ptr()

    def _key(self, op: int, adjoint: bool, substeps: int, options: Any, dtype: torch.dtype, worlds: int) -> Key:
        """Of a whole call."""
        # scratch of an adjoint grows with the substeps: a power of two, so that few kernels serve all
        room = 1 << (substeps - 1).bit_length() if adjoint else 1
        key = Key(op, adjoint, room, tuple(options) if options else None, dtype)
        few = op == ROLLOUT and worlds <= _FEW * self._processors
        outside = (few and not self._fixed) or self._scratch(key) > self._most_local
        apart = op == ROLLOUT and outside and not few and parts.better(self._named(key), self._tree.counts())
        return key._replace(outside=outside, apart=apart)

    def _parts(self, key: Key) -> list[Key]:
        """The kernels of a call: itself, or those of all parts of a step."""
        found = parts.of_step(self._named(key), self._tree.counts(), key.dtype, adjoint=key.adjoint) if key.apart else [None]
        return [key._replace(part=part) for part in found]

    def _kernel(self, op: int, adjoint: bool, substeps: int, options: Any, dtype: torch.dtype, worlds: int) -> Kernel:
        return self._found(self._key(op, adjoint, substeps, options, dtype, worlds))

    def _all(self, keys: Sequence[Key]) -> list[Kernel]:
        """Several that belong together: those that are new are compiled beside each other."""
        if len(keys) > 1:
            self._begin(keys)
        return [self._found(key) for key in keys]

    def _begin(self, keys: Sequence[Key]) -> None:
        """To compile those that are new, beside whatever follows."""
        new = [key for key in keys if key not in self._kernels and key not in self._building]
        self._building |= {key: self._workers.submit(self._cubin, key) for key in new}

    def _found(self, key: Key) -> Kernel:
        found = self._kernels.get(key)
        if found is None:
            waiting = self._building.pop(key, None)
            found = self._kernels[key] = self._load(key, *(self._cubin(key) if waiting is None else waiting.result()))
        elif found.better is not None and found.better.done() and not torch.cuda.is_current_stream_capturing():
            found = self._kernels[key] = self._replaced(key, found)
        return found

    def _load(self, key: Key, code: bytes, better: build.Beside | None = None) -> Kernel:
        with torch.cuda.device(self.device):
            module = self._cupy.cuda.function.Module()
            module.load(code)
            scratch, (team, threads, _) = self._scratch(key) if key.outside else 0, key.shape
            return Kernel(module.get_function("call"), structs.options(self._named(key)), scratch, threads, team, better)

    def _replaced(self, key: Key, quick: Kernel) -> Kernel:
        """A better kernel in the place of one that was compiled quickly; the quick one where that failed."""
        assert quick.better is not None
        try:
            return self._load(key, quick.better.code())
        except RuntimeError as error:
            warnings.warn(f"kernels stay as slow as they were compiled at first: {error}", RuntimeWarning, stacklevel=2)
            return quick._replace(better=None)

    def _named(self, key: Key) -> dict[str, Any]:
        return self._tree.options(list(key.numbers or _DEFAULTS))

    def _scratch(self, key: Key) -> int:
        """Bytes that a world needs on the way."""
        numbers, double = list(key.numbers or _DEFAULTS), key.dtype == torch.float64
        needed = max(1, self._tree.scratch(key.op, key.adjoint, key.room, numbers, double))
        unit = 16 if key.part is None else _UNIT
        return -(-needed // unit) * unit

    def _source(self, key: Key, *, quick: bool = False) -> tuple[str, list[str]]:
        """The model's header, and definitions. quick : for a kernel that is to be compiled quickly."""
        op, adjoint, outside = key.op, key.adjoint, key.outside
        named, scratch = self._named(key), self._scratch(key)
        size = (structs.rollout(_NUMPY[key.dtype]) if op == ROLLOUT else structs.OP).itemsize
        # registers and memory that rows with fixed places take are the thread's own, too; and unrolled adjoints compile slowly
        fixed = op == ROLLOUT and not named["impacts"] and not outside and self._fixed and not (quick and adjoint)
        defined = source.definitions(named, op, adjoint, _SCALAR[key.dtype], scratch, not outside, size, fixed)
        header = source.model_header(self._tree, fixed=fixed)
        team, threads, blocks = key.shape
        part = [] if key.part is None else parts.definitions(key.part)
        return header, [*defined, f"-DCS_TEAM={team}", f"-DCS_THREADS={threads}", f"-DCS_BLOCKS={blocks}", *part]

    def _cubin(self, key: Key) -> tuple[bytes, build.Beside | None]:
        """Machine code. Of rollouts that are new it is compiled quickly, while another process does it well."""
        op = key.op
        what = f"{'the gradient of ' * key.adjoint}{'steps' if op == ROLLOUT else 'a function'} of {self._engine.model!r}"
        job = build.job(*self._source(key), self._arch)
        if op != ROLLOUT or Path(job.path).is_file() or not build.may_be_quick():
            return build.cubin(job, what), None
        return build.cubin(build.job(*self._source(key, quick=True), self._arch, quick=True), what), build.Beside(job)

    @cached_property
    def _fixed(self) -> bool:
        return source.fixed_rows(self._tree.counts(), self._tree.tables()) is not None

    def _run(self, key: Key, call: np.ndarray, counts: tuple[int, int, int]) -> None:
        """A rollout or its adjoint. counts: worlds, steps, substeps."""
        kernels, (worlds, steps, substeps) = self._all(self._parts(key)), counts
        if key.apart:
            self._launch_parts(kernels, call, worlds, parts.launches(steps, substeps, len(kernels), adjoint=key.adjoint))
        else:
            self._launch(kernels[0], call, worlds)

    def _launch(self, kernel: Kernel, call: np.ndarray, worlds: int) -> None:
        team, held = self._shape(worlds, kernel)
        blocks = -(-worlds // held)
        memory = None
        if kernel.scratch:
            blocks = max(1, min(blocks, self._most_scratch // (kernel.scratch * held)))
            memory = torch.empty(blocks * held * kernel.scratch, dtype=torch.uint8, device=self.device)
        self._start(kernel, (blocks, team, held), call, memory)

    def _launch_parts(self, kernels: Sequence[Kernel], call: np.ndarray, worlds: int, launches: Sequence[Sequence[int]]) -> None:
        """Every substep by those kernels in turn that `launches` names.

        As many worlds at a time as there may be memory for, in groups on streams of their own.
        """
        scratch = kernels[0].scratch
        room = max(1, min(worlds, self._most_scratch // scratch))
        memory = torch.empty(room * scratch, dtype=torch.uint8, device=self.device)
        for first in range(0, worlds, room):
            groups = parts.groups(first, min(first + room, worlds))
            shapes = [[self._shape(end - begin, kernel) for kernel in kernels] for begin, end in groups]
            orders = [torch.zeros(parts.order_size(end - begin), dtype=torch.int32, device=self.device) for begin, end in groups]
            streams = self._streams.fork(len(groups))
            for at, chosen in enumerate(launches):
                for (begin, end), stream, own, order in zip(groups, streams, shapes, orders, strict=True):
                    part = memory[(begin - first) * scratch :]
                    for k in chosen:
                        team, held = own[k]
                        shape, numbers = (-(-(end - begin) // held), team, held), (begin, end, at, order.data_ptr())
                        self._start(kernels[k], shape, call, part, *numbers, stream=stream)
            self._streams.join(streams)

    def _start(
        self, kernel: Kernel, shape: tuple[int, int, int], call: np.ndarray, memory: Tensor | None, *numbers: int,
        stream: torch.cuda.Stream | None = None,
    ) -> None:  # fmt: skip
        """shape : blocks, threads of a world, worlds of a block."""
        pointer = np.uint64(0 if memory is None else memory.data_ptr())
        # as bytes: CuPy describes the numbers of a struct one by one, in every launch
        struct = self._cupy.cuda.function.CNumpyArray(call.reshape(1).view(np.uint8))
        on = self._as_cupy((stream or torch.cuda.current_stream(self.device)).cuda_stream)
        with torch.cuda.device(self.device):
            kernel.function(shape[:1], shape[1:], (struct, pointer, *map(np.int64, numbers)), stream=on)

    def _as_cupy(self, stream: int) -> Any:
        """A stream of torch, by its handle; they are few, and to wrap one takes longer than to launch a kernel."""
        found = self._wrapped.get(stream)
        if found is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # what is to be used in its place is new
                found = self._wrapped[stream] = self._cupy.cuda.ExternalStream(stream)
        return found

    def _shape(self, worlds: int, kernel: Kernel) -> tuple[int, int]:
        """Threads of a world, and worlds of a block. Few worlds: small blocks, so that every multiprocessor has some."""
        team, threads = kernel.team, kernel.threads
        while threads > _WARP and worlds * team < threads * self._processors:
            threads //= 2
        return team, threads // team


def _allowed(device: torch.device) -> float:
    """The part of a GPU's memory that torch was told to keep to."""
    told = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # newer than the oldest torch that we run with
    return 1.0 if told is None else told(device)


# of ops that solve nothing
_DEFAULTS = (20.0, 12.0, 1e-10, 0.01, 0.2, 0.5, 0.1, 0.0, 0.0, 1e-9, 1e-10, -1.0, 1.0, 0.0, 0.0)


def _describe(x: Tensor, worlds: int) -> tuple[int, int, int, int]:
    """Array of [worlds or 1, n] or [steps, worlds, n]: pointer, numbers to the next world, to the next step, no partial sums."""
    n = x.shape[-1]
    stride = 0 if x.shape[-2] == 1 and worlds > 1 else n
    return x.data_ptr(), stride, n * x.shape[-2] if x.ndim == 3 else 0, 0


def _fill(to: np.ndarray, tensors: Iterable[Tensor | None], worlds: int) -> list[Tensor]:
    """Describe tensors to a kernel; returns them, contiguous, to be kept until it is launched."""
    keep = []
    for k, x in enumerate(tensors):
        if x is not None and x.numel():
            x = x.detach().contiguous()
            to[k] = _describe(x, worlds)
            keep.append(x)
    return keep


def _fill_bars(
    to: np.ndarray, bars: Iterable[Tensor | None], inputs: Sequence[Tensor | None], worlds: int
) -> list[tuple[Tensor, Tensor]]:
    """The same of bars; of inputs that all worlds share with room for each world's part: bar and parts."""
    shared = []
    for k, (bar, x) in enumerate(zip(bars, inputs, strict=True)):
        if bar is None or x is None or not bar.numel():
            continue
        to[k] = _describe(bar, worlds)
        if x.shape[-2] == 1 and worlds > 1:
            parts = bar.new_empty((worlds, x.shape[-1]))
            to[k]["partial"] = parts.data_ptr()
            shared.append((bar, parts))
    return shared


def _sum(shared: list[tuple[Tensor, Tensor]]) -> None:
    """Add up the worlds' parts, in an order that depends on nothing but their number."""
    for bar, of_worlds in shared:
        torch.sum(of_worlds, 0, keepdim=True, out=bar)
