"""Kernels as PTX, run by a processor: an engine of a pretended GPU, whose results can be compared and instructions counted.

python -m tests.cuda.on_ptx counts those of a lying humanoid's step and of its gradient, and says which functions have them.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import costate as cs
from bench import crowd
from bench.cuda import CASES, Plan
from costate._native.cuda import build, parts, structs
from costate._native.cuda import engine as gpu
from tests.cuda import nvrtc, ptx

HERE = Path(__file__).parent
COMPILE = (
    "g++",
    "-std=c++17",
    "-O1",
    "-w",
    "-mfma",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-shared",
    "-fPIC",
    f"-I{HERE}",
)
# instructions that machine code has no need of: copies between registers, a sign that the next one takes along
FREE = ("mov", "neg", "cvta")


class OnPtx(gpu.CudaEngine):
    """Kernels are made by NVRTC as PTX and translated in `folder`. outside : by teams, whose scratch is outside of threads;
    quick : as for first use."""

    def __init__(self, model: cs.Model, folder: Path, *, outside: bool, quick: bool = False) -> None:
        self._engine, self._tree, self._folder, self.device = model.engine, model.engine.tree, folder, torch.device("cpu")
        self._kernels, self._building, self._processors, self._arch = {}, {}, 0, "compute_90"
        self._most_local, self._most_scratch = 0 if outside else 1 << 62, 1 << 62
        self._streams = SimpleNamespace(fork=lambda n: [None] * n, join=lambda streams: None)
        self._quick = quick
        self.kernels: dict[gpu.Key, tuple[ctypes.CDLL, ptx.Translated]] = {}

    def _all(self, keys: Sequence[gpu.Key]) -> list[gpu.Kernel]:
        return [self._found(key) for key in keys]

    def _cubin(self, key: gpu.Key) -> tuple[bytes, None]:
        build.require_cupy = lambda: SimpleNamespace(cuda=SimpleNamespace(nvrtc=nvrtc))
        job = build.job(*self._source(key, quick=self._quick), self._arch, quick=self._quick)
        job = job._replace(options=[*job.options, "-lineinfo"])
        translated = ptx.translate(nvrtc.compiled_ptx(job))
        name = self._folder / f"kernel{len(self.kernels)}"
        name.with_suffix(".cc").write_text(translated.text)
        command = [*COMPILE, f"-DCS_TEAM={key.shape[0]}", str(name.with_suffix(".cc")), "-o", str(name.with_suffix(".so"))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        library = ctypes.CDLL(str(name.with_suffix(".so")))
        library.run_block.restype, library.runs.restype = ctypes.c_bool, ctypes.POINTER(ctypes.c_uint64)
        self.kernels[key] = library, translated
        return b"", None

    def _load(self, key: gpu.Key, code: bytes, better: Any = None) -> gpu.Kernel:
        options = structs.options(self._named(key))
        return gpu.Kernel(self.kernels[key][0], options, self._scratch(key) if key.outside else 0)

    def _shape(self, worlds: int, kernel: gpu.Kernel) -> tuple[int, int]:
        return 1, 1

    def _start(self, kernel: gpu.Kernel, shape: Any, call: Any, memory: Tensor | None, *numbers: int, stream: Any = None) -> None:
        longs = [ctypes.c_long(x) for x in (memory.data_ptr() if memory is not None else 0, *numbers)]
        arguments = (ctypes.c_void_p * (1 + len(longs)))(call.ctypes.data, *(ctypes.addressof(x) for x in longs))
        for block in range(shape[0]):
            met = kernel.function.run_block(ctypes.c_long(block), ctypes.c_long(shape[0]), arguments)
            assert met, "threads wait in different places"

    def count(self) -> dict[gpu.Key, Counter[tuple[str, ptx.Chain]]]:
        """Of every kernel how often its instructions were run, by what they are and the functions that they are in."""
        found = {}
        for key, (library, translated) in self.kernels.items():
            runs, count = library.runs(), Counter[tuple[str, ptx.Chain]]()
            for k, block in enumerate(translated.blocks):
                for operation, chain in block:
                    count[operation, chain] += runs[k]
            found[key] = count
        return found


def lying(worlds: int, steps: int) -> crowd.Crowd:
    """Those of bench.cuda, on the CPU."""
    return CASES["humanoid"].crowd(Plan("cpu", steps=steps), worlds)


def show(count: Counter[tuple[str, ptx.Chain]], steps: int, depth: int, least: float) -> None:
    """A tree of the functions that have at least this percentage of the instructions."""
    of: Counter[ptx.Chain] = Counter()
    for (_, chain), n in count.items():
        for k in range(1, min(depth, len(chain)) + 1):
            of[chain[:k]] += n
    for chain, n in sorted(of.items(), key=lambda x: [(-of[x[0][: k + 1]], x[0][k]) for k in range(len(x[0]))]):
        if n >= least / 100 * count.total():
            print(f"{'  ' * len(chain)}{n / steps:9,.0f} {chain[-1]}")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the counts; 1 if a number differs from the CPU's."""
    parser = argparse.ArgumentParser(prog="tests.cuda.on_ptx", description=__doc__)
    for name, usual in (("worlds", 32), ("steps", 3), ("depth", 6), ("least", 2)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args(argv)
    worlds = lying(asked.worlds, asked.steps)
    parts.better = lambda *_: True
    with tempfile.TemporaryDirectory() as folder:
        engine = OnPtx(worlds.model, Path(folder), outside=True)
        sim, run = worlds.simulator(), (worlds.start, worlds.controls)
        same = same_bits(engine, sim, *run) and same_gradients(engine, sim, *run)
        each = asked.worlds * asked.steps
        print("the CPU's bits" if same else "NOT the CPU's bits")
        for adjoint in (False, True):
            total = 0.0
            for key, count in engine.count().items():
                if key.adjoint != adjoint:
                    continue
                team, plain = key.shape[0], sum(n for (operation, _), n in count.items() if operation.split(".")[0] not in FREE)
                total += count.total() / each * team / 32
                print(
                    f"{'gradient, ' * adjoint}part {key.part}: {count.total() / each:,.0f} instructions of {team} threads per ",
                    end="",
                )
                print(f"world and step, {plain / each:,.0f} without copies between registers")
                show(count, each, asked.depth, asked.least)
            print(f"{'gradient ' * adjoint}together {total:,.0f} of a warp per world and step")
    return int(not same)


def same_bits(engine: OnPtx, sim: cs.Simulator, start: cs.State, u: Tensor) -> bool:
    """Whether a rollout has those of the CPU, states and status."""
    model, (steps, worlds, _) = sim.model, u.shape
    inputs, _ = sim.gather(start, u if model.nu else None, None, None, None, time=steps)
    found = [torch.empty(steps, worlds, n, dtype=start.q.dtype) for n in (model.nq, model.nv)]
    at, told = torch.empty(worlds, 1, dtype=torch.int32), torch.empty(worlds, 11, dtype=start.q.dtype)
    engine.rollout(worlds, steps, 1, inputs, *found, at, sim.options, (told,))
    traj = sim.rollout(start, u if model.nu else None, steps=steps)
    theirs = (traj.q[1:], traj.v[1:], traj.status.numbers)
    return all(torch.equal(x, y) for x, y in zip((*found, told), theirs, strict=True))


def same_gradients(engine: OnPtx, sim: cs.Simulator, start: cs.State, u: Tensor) -> bool:
    """Whether an adjoint has those of the CPU, of random bars of all states; every world has parameters of its own."""
    steps, worlds, _ = u.shape
    inputs, _ = sim.gather(start, u if sim.model.nu else None, None, None, None, time=steps)
    inputs = [None if x is None else x.expand(*x.shape[:-2], worlds, -1).contiguous() for x in inputs]
    traj, at = sim.rollout(start, u if sim.model.nu else None, steps=steps), torch.full((worlds, 1), steps, dtype=torch.int32)
    states = [x[1:].contiguous() for x in (traj.q, traj.v)]
    bars, how = [torch.randn_like(x) for x in states], (1.0, 0, sim.options, 0.0, None, None)
    ours, theirs = ([None if x is None else torch.empty_like(x) for x in inputs] for _ in range(2))
    engine.rollout_adj(worlds, steps, 1, inputs, (*states, *bars), at, ours, *how)
    arrays, (q, v, *out), to = ([None if x is None else x.numpy() for x in of] for of in (inputs, (*states, at, *bars), theirs))
    sim.model.engine.tree.rollout_adj(worlds, steps, 1, arrays, q, v, *out, to, *how)
    return all(x is None or torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    sys.exit(main())
