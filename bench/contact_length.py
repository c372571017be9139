"""Rollouts of 50 to 5,000 steps of one quadruped on the ground: memory and time per step, beside those of paper C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.tables import Table, us

DT = 0.005
LENGTHS = (50, 100, 500, 1000, 5000)
MEMORY_TARGET = 5.0  # MB
CONSTANT = 1.2  # time per step of the longest over that of the shortest
# Qiao et al. 2021, tables 1 to 3, Laikago on its own desktop machine: MB; ms per step
PAPER_MEMORY = {
    "Ceres": (100.0, 200.0, 1100.0, 2700.0, 23600.0),
    "CppAD": (16.0, 26.0, 160.0, 320.0, 3100.0),
    "JAX": (200.0, 200.0, 400.0, 700.0, 3000.0),
    "PyTorch": (1200.0, 2400.0, 11700.0, 12400.0, None),
    "paper C": (0.3, 0.3, 0.7, 1.2, 5.0),
}
PAPER_STEP = {
    "ADF": (25.7, 25.5, 25.1, 32.1, 58.4),
    "Ceres": (27.2, 27.5, 27.2, 34.0, 58.2),
    "CppAD": (2.4, 2.4, 2.3, 2.3, 4.5),
    "JAX": (53.3, 46.1, 43.1, 42.7, 42.3),
    "PyTorch": (195.6, 192.2, 199.2, 192.8, None),
    "paper C": (0.3, 0.3, 0.2, 0.2, 0.2),
}
PAPER_BACKWARD = {
    "Ceres": (29.5, 29.6, 29.5, 37.6, 62.8),
    "CppAD": (2.4, 2.3, 2.3, 2.4, 4.8),
    "JAX": (148.1, 125.7, 127.6, 129.6, 126.6),
    "PyTorch": (275.7, 273.3, 280.8, 272.1, None),
    "paper C": (1.2, 1.1, 1.2, 1.1, 1.2),
}
OWN_CODE = {"a step": 80e-6, "backward": 440e-6}  # s, paper C's code built and run by us on a machine like this one
NOTES = """One quadruped on the ground, one world, float64, through torch; the other rows as printed in the paper, for a
Laikago standing on the ground, on the authors' machine. {what}"""
MEMORY_NOTES = """Peak growth of the process above inputs and outputs (the trajectory and the gradients, second row), each
length in a fresh process. The paper's numbers are peaks with the trajectory in them."""
TIME_NOTES = "Paper C's own code, built and run on a machine like this one, took {own:.0f} us."


def run(*, quick: bool) -> list[Table]:
    """Memory, a step, backward: one column per length."""
    columns = ("steps", *(f"{n:,}" for n in LENGTHS))
    memory = Table("Memory of rollouts with backward, MB", columns, notes=NOTES.format(what=MEMORY_NOTES))
    if Path("/proc/self/clear_refs").exists():
        pairs = [_measured(n) for n in LENGTHS]
        memory.add("costate, above inputs and outputs", *(f"{grown:.2f}" if grown >= 0.01 else "< 0.01" for _, grown in pairs))
        memory.add("costate, inputs and outputs", *(f"{size:.2f}" for size, _ in pairs))
        most = max(grown for _, grown in pairs)
        memory.target(f"growth under {MEMORY_TARGET:g} MB at all lengths: {most:.2f} MB", most < MEMORY_TARGET)
    _paper(memory, PAPER_MEMORY)
    return [memory, *_times(columns, quick=quick)]


def _paper(table: Table, rows: dict[str, tuple[float | None, ...]]) -> None:
    for name, numbers in rows.items():
        table.add(name, *("-" if x is None else f"{x:,g}" for x in numbers))


def _times(columns: tuple[str, ...], *, quick: bool) -> list[Table]:
    """All lengths take turns."""
    import costate as cs
    from bench import gait as g
    from bench.timing import Work, interleaved
    from bench.walkers import standing_quadruped

    works: dict[str, Work] = {}
    for n in LENGTHS:
        walk = g.walk(standing_quadruped(), 1, n, dt=DT)
        sim = cs.Simulator(walk.model, DT)
        works |= {f"a step {n}": g.forward(sim, walk), f"backward {n}": g.backward(sim, walk)}
    spent = interleaved(works, quick=quick)
    tables = []
    for what, paper in (("a step", PAPER_STEP), ("backward", PAPER_BACKWARD)):
        per_step = [spent[f"{what} {n}"] / n for n in LENGTHS]
        note = TIME_NOTES.format(own=1e6 * OWN_CODE[what])
        table = Table(f"Time of {what} in rollouts, ms per step", columns, notes=NOTES.format(what=note))
        table.add("costate", *(f"{1e3 * seconds:.4f}" for seconds in per_step))
        _paper(table, paper)
        growth, best = per_step[-1] / per_step[0], OWN_CODE[what] / per_step[-1]
        table.target(
            f"{what}: of {LENGTHS[-1]:,} steps at most {CONSTANT} times that of {LENGTHS[0]}: {growth:.2f}", growth <= CONSTANT
        )
        ours, theirs = f"{us(per_step[-1])} us", f"paper C's code: {us(OWN_CODE[what])} us (another day)"
        table.summary.append((f"{what}, {LENGTHS[-1]:,} steps of one world on the ground", ours, theirs, f"{best:.0f}x"))
        tables.append(table)
    return tables


def _measured(steps: int) -> tuple[float, float]:
    """Size of inputs and outputs, and growth above them, MB, in a process of its own."""
    command = [sys.executable, "-m", "bench.contact_length", str(steps)]
    size, grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:]
    return float(size), float(grown)


def measure(steps: int) -> tuple[float, float]:
    """The same in this process."""
    import torch

    import costate as cs
    from bench import gait as g
    from bench.memory import growth
    from bench.timing import one_core
    from bench.walkers import standing_quadruped

    one_core()
    walk = g.walk(standing_quadruped(), 1, steps, dt=DT)
    sim, params = cs.Simulator(walk.model, DT), walk.model.params(requires_grad=True)
    state, controls = walk.torch()

    def work(
        q: torch.Tensor, v: torch.Tensor, u: torch.Tensor, q_bar: torch.Tensor, v_bar: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        traj = sim.rollout(cs.State(q, v), u, params)
        wanted = [q, v, u, *(t for t in params.leaves() if t.numel())]
        grads = torch.autograd.grad((traj.q, traj.v), wanted, (q_bar, v_bar), allow_unused=True)
        return (traj.q, traj.v, *(x for x in grads if x is not None))

    def inputs(n: int) -> tuple[torch.Tensor, ...]:
        given = (state.q.clone(), state.v.clone(), controls[:n].clone())
        bars = (torch.ones(n + 1, 1, size, dtype=torch.float64) for size in (sim.model.nq, sim.model.nv))
        return (*(x.requires_grad_() for x in given), *bars)

    return growth(work, inputs(10), inputs(steps))


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
