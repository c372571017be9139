"""Memory of a long rollout with its gradient: the growth of the process above its inputs and outputs.

Measured in a fresh process, because a process never shrinks: the kernel's high-water mark is reset just before.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.tables import Table

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 5000
TARGET = 5.0  # MB
NOTES = """Inputs: state, controls, parameters and the gradients that arrive. Outputs: the trajectory and the gradients by all
inputs. Peak resident memory of the process (VmHWM on Linux), after a run of 10 steps: the
engine's fixed scratch memory is not in it."""


def run(*, quick: bool) -> list[Table]:
    """One world and many, each in a process of its own. Always the full length: it takes a second."""
    table = Table(
        f"Memory of a {STEPS:,}-step rollout with backward, quadruped, float64",
        ("worlds", "inputs and outputs, MB", "peak growth above them, MB"),
        notes=NOTES,
    )
    if not Path("/proc/self/clear_refs").exists():
        table.notes += " Not available on this system."
        return [table]
    for worlds in (1,) if quick else (1, 16):
        command = [sys.executable, "-m", "bench.memory", str(worlds)]
        size, growth = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:])
        shown = f"{growth:.2f}" if growth >= 0.01 else "< 0.01"
        table.add(worlds, f"{size:.2f}", shown)
        if worlds == 1:
            table.summary.append((f"memory of {STEPS:,} steps with backward, above inputs and outputs", f"{shown} MB", "", ""))
            table.target(f"one world: under {TARGET:g} MB: {shown} MB", growth < TARGET)
    return [table]


def measure(worlds: int) -> tuple[float, float]:
    """Size of inputs and outputs, and peak growth above them, MB."""
    import torch

    import costate as cs
    from bench import models as m
    from bench.robots import quadruped
    from bench.timing import one_core

    one_core()
    robot = quadruped()
    model, start = m.costate_model(robot), m.random_worlds(robot, worlds)
    sim, params = cs.Simulator(model, dt=0.001), model.params(requires_grad=True)

    def work(controls: torch.Tensor, q_bar: torch.Tensor, v_bar: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = cs.State(torch.tensor(start.q, requires_grad=True), torch.tensor(start.v, requires_grad=True))
        traj = sim.rollout(state, controls, params)
        wanted = [*state, controls, *(t for t in params.leaves() if t.numel())]
        grads = torch.autograd.grad((traj.q, traj.v), wanted, (q_bar, v_bar), allow_unused=True)
        return (traj.q, traj.v, *(g for g in grads if g is not None))

    def inputs(steps: int) -> tuple[torch.Tensor, ...]:
        sizes = ((steps, model.nu), (steps + 1, model.nq), (steps + 1, model.nv))
        u, q_bar, v_bar = (0.01 * torch.randn(t, worlds, n, dtype=torch.float64) for t, n in sizes)
        return u.requires_grad_(), q_bar, v_bar

    return growth(work, inputs(10), inputs(STEPS))


def growth(work: Callable[..., tuple[Tensor, ...]], short: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> tuple[float, float]:
    """Of work(*given), which gives its outputs: size of inputs and outputs, and peak growth above them, MB."""
    work(*short)  # loads code, makes scratch memory and threads
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # else what was freed before would hide what is used now
    Path("/proc/self/clear_refs").write_text("5")
    before = status_mb("VmRSS")
    out = work(*given)
    peak = status_mb("VmHWM")
    made = sum(t.numel() * t.element_size() for t in out) / 1e6
    return made + sum(t.numel() * t.element_size() for t in given) / 1e6, peak - before - made


def status_mb(name: str) -> float:
    """A line of /proc/self/status, in MB of a million bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
