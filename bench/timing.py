"""Timing on a noisy machine: everybody takes turns within one run, and medians are compared."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch

import costate as cs

Work = Callable[[], object]


def one_core() -> None:
    """Everything on one thread; the environment variables are set in bench/__init__.py."""
    cs.set_num_threads(1)
    torch.set_num_threads(1)


def _loops(work: Work, seconds: float) -> int:
    """How often to call `work` so that one measurement takes about `seconds`; warms up on the way."""
    count = 1
    while True:
        start = perf_counter()
        for _ in range(count):
            work()
        spent = perf_counter() - start
        if spent > seconds / 4 or count >= 1 << 20:
            return max(1, round(count * seconds / max(spent, 1e-9)))
        count *= 4


def _once(work: Work, count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        work()
    return (perf_counter() - start) / count


def interleaved(works: dict[str, Work], *, quick: bool) -> dict[str, float]:
    """Seconds per call of each, the median over rounds in which all take their turn."""
    rounds, seconds = (5, 0.02) if quick else (15, 0.1)
    counts = {name: _loops(work, seconds) for name, work in works.items()}
    spent: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in works.items():
                spent[name].append(_once(work, counts[name]))
    finally:
        gc.enable()
    return {name: median(times) for name, times in spent.items()}
