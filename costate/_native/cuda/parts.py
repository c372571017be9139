"""Steps whose parts are kernels of their own (drivers/part_kernel.h): which models have them, and groups of worlds that run
beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

# Of each part: threads that share a world, those of a block at most, and blocks that a multiprocessor is to have room for, in
# float32 (measured on a humanoid, but for the last one); in float64, where numbers take twice the registers, half of them
_SHAPES = ((16, 128, 8), (16, 128, 3), (32, 128, 4), (32, 128, 3), (32, 128, 3), (32, 128, 2), (32, 128, 3))
_PASS, _POLISH, _SOLVE, _BACK = 3, 4, 5, 6  # kPartPass and so on
# Groups of worlds at most (measured), and worlds of a group at least
_GROUPS, _GROUP = 6, 512
_LISTS = 33  # kLists of drivers/part_kernel.h
# Method and RoundForm of core/data/options.h; kDenseRows, kFewChunks, kMostChunks of core/data/rows.h
_ROUNDS, _BY_MODEL, _ALTERNATE, _DENSE_ROWS = 0, -1, 2, 96
_HOLDS = {_PASS: 15, _POLISH: 15, _SOLVE: 21}


def of_step(options: dict[str, Any], tree: dict[str, int], dtype: torch.dtype, *, adjoint: bool) -> tuple[int, ...]:
    """Those that a step has: few rows have kernels of their own where registers hold matrices (`may_hold` of core/ops/held.h)."""
    few = dtype == torch.float32 and options["method"] == _ROUNDS and not tree["planar"] and not tree["turns"]
    return tuple(part for part in range(_BACK + adjoint) if few or part not in (_PASS, _POLISH))


def launches(steps: int, substeps: int, count: int, *, adjoint: bool) -> list[tuple[int, ...]]:
    """Which of a step's `count` kernels are started for every substep of a rollout (`visit` of drivers/rollout_kernel.h).

    Forward, the first one ends the substep before, and so comes once more. The adjoint goes through the substeps of a control
    step again, up to where the last one starts, and then back.
    """
    forward, back = tuple(range(count - adjoint)), tuple(range(count))
    if adjoint:
        return ([forward] * (substeps - 1) + [back] * substeps) * steps
    return [*[forward] * steps * substeps, (0,)]


def shape(part: int, dtype: torch.dtype) -> tuple[int, int, int]:
    """Threads of a world, those of a block, blocks."""
    team, threads, blocks = _SHAPES[part]
    return team, threads, blocks if dtype == torch.float32 else max(1, blocks // 2)


def definitions(part: int) -> list[str]:
    """-D of its kernel; see drivers/cuda.cu."""
    return [f"-DCS_PART={part}", *([f"-DCS_HOLDS={_HOLDS[part]}"] if part in _HOLDS else [])]


def better(options: dict[str, Any], tree: dict[str, int]) -> bool:
    """Whether they are: where rounds alternate (`alternates` in core/data/rows.h)."""
    by_model = options["form"] == _BY_MODEL and not tree["chained"] and tree["tree_rows"] > _DENSE_ROWS
    return not options["impacts"] and not tree["large"] and (options["form"] == _ALTERNATE or by_model)


def groups(first: int, end: int) -> list[tuple[int, int]]:
    """Worlds from `first` to before `end`: the first one of each group, and where it ends."""
    size = max(_GROUP, -(-(end - first) // _GROUPS))
    return [(low, min(low + size, end)) for low in range(first, end, size)]


def order_size(worlds: int) -> int:
    """Integers that a group needs to know in which order its worlds are solved (`Order` of drivers/part_kernel.h)."""
    return _LISTS * (2 + worlds)


class Streams:
    """Of groups of worlds: while the slowest worlds of one are solved, the others go on."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @cached_property
    def _own(self) -> list[torch.cuda.Stream]:
        return [torch.cuda.Stream(self._device) for _ in range(_GROUPS)]

    def fork(self, n: int) -> Sequence[torch.cuda.Stream | None]:
        """Streams that begin after what the current one has to do; None, if there is to be one: itself."""
        if n == 1:
            return (None,)
        here = torch.cuda.current_stream(self._device)
        for stream in self._own[:n]:
            stream.wait_stream(here)
        return self._own[:n]

    def join(self, streams: Sequence[torch.cuda.Stream | None]) -> None:
        """The current stream goes on after all of these."""
        here = torch.cuda.current_stream(self._device)
        for stream in streams:
            if stream is not None:
                here.wait_stream(stream)
