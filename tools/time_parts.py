"""On a machine with a GPU: how long every part of a lying humanoid's step takes alone, and all of them in groups of worlds.

    PYTHONPATH=. python tools/time_parts.py [--worlds N] [--margin M] [--groups N ...] [--shape PART=TEAM,THREADS,BLOCKS ...]

Shapes and groups are those of costate/_native/cuda/parts.py, where they are not given: so others can be tried before they are
written there.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from typing import Any

import torch

from bench import crowd as c
from bench.cuda import CASES, Plan
from costate._native.cuda import parts
from costate._native.cuda.engine import CudaEngine

STEPS, SECONDS = 50, 0.4


class Timed:
    """Kernels are timed while this is entered; in a single group, one after the other."""

    def __init__(self) -> None:
        self.events: dict[int, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = defaultdict(list)

    def __enter__(self) -> Timed:
        self._start, self._groups = CudaEngine._start, parts._GROUPS

        def start(engine: CudaEngine, kernel: Any, *how: Any, **on: Any) -> None:
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            self._start(engine, kernel, *how, **on)
            ended.record()
            self.events[id(kernel)].append((began, ended))

        self._set(start, 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._set(self._start, self._groups)

    @staticmethod
    def _set(start: Any, groups: int) -> None:
        setattr(CudaEngine, "_start", start)  # noqa: B010 (it is not the method's type)
        parts._GROUPS = groups

    def ms(self) -> list[float]:
        """Of all kernels, in the order in which they were first started."""
        torch.cuda.synchronize()
        return [sum(began.elapsed_time(ended) for began, ended in pairs) for pairs in self.events.values()]


def main() -> None:
    """Prints both."""
    parser = argparse.ArgumentParser(prog="tools/time_parts.py", description=__doc__)
    parser.add_argument("--worlds", type=int, default=8192)
    parser.add_argument("--margin", type=float, help="of contacts, m; not given: that of bench.cuda")
    parser.add_argument("--groups", type=int, nargs="+", default=[parts._GROUPS])
    parser.add_argument("--shape", action="append", default=[], metavar="PART=TEAM,THREADS,BLOCKS")
    asked = parser.parse_args()
    shapes = list(parts._SHAPES)
    for text in asked.shape:
        part, numbers = text.split("=")
        team, threads, blocks = map(int, numbers.split(","))
        shapes[int(part)] = team, threads, blocks
    parts._SHAPES = tuple(shapes)
    parts._GROUPS = max(asked.groups)  # so many streams there will be
    case = CASES["humanoid"] if asked.margin is None else replace(CASES["humanoid"], margin=asked.margin)
    crowd = case.crowd(Plan("cuda", steps=STEPS), asked.worlds)
    sim = crowd.simulator()
    sim.compile(gradient=False, worlds=asked.worlds)
    print(f"shapes {parts._SHAPES}; {c.look(sim, crowd)}")
    work = c.forward(sim, crowd)
    for groups in sorted(asked.groups, reverse=True):
        parts._GROUPS = groups
        spent = c.timed(work, "cuda", seconds=SECONDS)
        print(f"{groups} groups: {crowd.world_steps / spent / 1e6:.3g} M steps/s, {1e3 * spent / STEPS:.3f} ms a step")
    with Timed() as timed:
        work()
    print("alone, ms a step:", ", ".join(f"{x / STEPS:.3f}" for x in timed.ms()))


if __name__ == "__main__":
    main()
