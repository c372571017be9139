"""Planar scenes of paper A: a chain with a ball, a stack, circles in a box; one world and many, beside paper A's own code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import costate as cs
from bench.tables import Table, times, us
from bench.timing import Work, interleaved

DT, STEPS, MANY, MANY_STEPS = 0.01, 200, 256, 50
MEMORY_STEPS = (50, 250)
TARGET = 100.0  # times faster than paper A's code, one world
SOLVERS: dict[str, cs.PGS | cs.InteriorPoint] = {"PGS": cs.PGS(), "InteriorPoint": cs.InteriorPoint()}
NOTES = """Microseconds per step (and world) of rollouts of {steps} steps of {h:g} ms through torch; backward is the gradient of
all states by the first one and all parameters, without the rollout. Solvers have their defaults. Solved: steps whose residual is
below 1e-10 m/s. {more}"""
PAPER_NOTES = """Paper A: its own code (Python, one world), built and run on a machine like this one on another day; its scenes
have as many bodies, joints and contacts, in pixels; it solves contacts by an interior point with 10 iterations."""
MANY_NOTES = """Every world has its own first state. Worlds of many lone bodies, like those of the stack, run one by one, the
others in lanes."""
MEMORY_NOTES = f"""Peak resident memory of the process (VmHWM on Linux) above inputs and outputs, of {MEMORY_STEPS[1]} steps
with backward less that of {MEMORY_STEPS[0]}, per step: what is kept of a step besides its state; PGS. Paper A: its own code, as
above."""


def chain() -> cs.Scene:
    """Ten links on hinges hang from the world, and a ball flies into them; all but neighbours touch each other."""
    scene, before = cs.Scene(planar=True), None
    link = cs.Rectangle((0.02, 0.06), density=50.0, friction=0.5)
    for k in range(10):
        name = scene.add_body(pos=(0, -0.1 * (k + 0.5)), shapes=link)
        scene.add_hinge(before, name, pos=(0, -0.05 if before else 0))
        before = name
    scene.add_body("ball", pos=(-0.3, -0.6), shapes=cs.Circle(0.08, density=50.0, friction=0.5))
    return scene


def stack() -> cs.Scene:
    """Ten rectangles on the ground: 20 contacts."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.5)
    for k in range(10):
        scene.add_body(pos=(0, 0.05 + 0.1 * k), shapes=cs.Rectangle((0.1, 0.05), density=100.0, friction=0.5))
    return scene


def box() -> cs.Scene:
    """Three circles that fly between four walls."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for at, half in (((1, 0), (0.1, 1.1)), ((-1, 0), (0.1, 1.1)), ((0, 1), (0.9, 0.1)), ((0, -1), (0.9, 0.1))):
        scene.add_shape(cs.Rectangle(half, pos=at, restitution=1.0))
    for k in range(3):
        scene.add_body(pos=(0.5 * (k - 1), 0.1 * k), shapes=cs.Circle(0.15, density=50.0, restitution=1.0))
    return scene


@dataclass(frozen=True)
class Case:
    """A scene, what its worlds move with at first, and paper A's code: s per step forward and backward, MiB per step."""

    scene: Callable[[], cs.Scene]
    fast: tuple[int, ...]  # dofs
    speed: tuple[float, ...]
    shaken: float  # m, rad and their rates: what worlds differ by
    paper: tuple[float, float]
    memory: float | None = None


CASES = {
    "chain of 10 links and a ball": Case(chain, (30,), (3.0,), 1e-3, (3.5e-3, 6e-3), 0.96),
    "stack of 10 rectangles": Case(stack, (), (), 1e-4, (31e-3, 20e-3), 2.2),
    "3 circles in a box": Case(box, (0, 1, 3, 4, 6, 7), (2.0, 1.5, -1.0, 2.0, 1.0, -2.5), 0.03, (2.5e-3, 0.35e-3)),
}


def start(case: Case, sim: cs.Simulator, worlds: int) -> cs.State:
    """Their first states; the first world is not shaken."""
    state, gen = sim.initial_state(worlds), torch.Generator().manual_seed(0)
    shaken = case.shaken * torch.randn(2, *state.q.shape, generator=gen, dtype=torch.float64)
    shaken[:, 0] = 0
    v = torch.zeros_like(state.v).index_add_(1, torch.tensor(case.fast, dtype=torch.long), _rows(case.speed, worlds))
    q = state.q + shaken[0]
    return cs.State(cs.project(sim.model, q) if sim.model.ne else q, v + shaken[1])


def _rows(numbers: tuple[float, ...], worlds: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64).expand(worlds, -1)


def run(*, quick: bool) -> list[Table]:
    """A table of one world, one of many, one of memory."""
    alone, status = _spent(1, STEPS, quick=quick)
    return [_one(alone, status), _many(alone, quick=quick), _memory()]


def _forward(sim: cs.Simulator, state: cs.State, steps: int) -> Work:
    def work() -> None:
        with torch.no_grad():
            sim.rollout(state, steps=steps)

    return work


def _backward(sim: cs.Simulator, state: cs.State, steps: int) -> Work:
    """The gradient alone, of a rollout that was made before."""
    q, v = (x.clone().requires_grad_() for x in state)
    params = sim.model.params(requires_grad=True)
    wanted = [x for x in (q, v, *params.leaves()) if x.numel()]
    traj = sim.rollout(cs.State(q, v), params=params, steps=steps)
    bars = [torch.ones_like(x) for x in (traj.q, traj.v)]

    def work() -> tuple[Any, ...]:
        return torch.autograd.grad((traj.q, traj.v), wanted, bars, allow_unused=True, retain_graph=True)

    assert all(g is None or torch.isfinite(g).all() for g in work()), "a gradient of a planar scene is not finite"
    return work


def _spent(worlds: int, steps: int, *, quick: bool) -> tuple[dict[str, float], dict[str, cs.Status]]:
    """Seconds per step and world of "<scene>, <solver>, <step or backward>", and the status of each rollout."""
    works: dict[str, Work] = {}
    status: dict[str, cs.Status] = {}
    for name, case in CASES.items():
        model = case.scene().build()
        for solver, options in SOLVERS.items():
            sim = cs.Simulator(model, DT, solver=options)
            state, key = start(case, sim, worlds), f"{name}, {solver}"
            works |= {f"{key}, step": _forward(sim, state, steps), f"{key}, backward": _backward(sim, state, steps)}
            status[key] = sim.rollout(state, steps=steps).status
    return {key: seconds / (worlds * steps) for key, seconds in interleaved(works, quick=quick).items()}, status


def _solved(status: cs.Status, steps: int) -> str:
    return f"{1 - float(status.unconverged.double().mean()) / steps:.1%}"


def _one(spent: dict[str, float], status: dict[str, cs.Status]) -> Table:
    columns = (
        "scene", "solver", "contacts", "solved", "step", "steps per second", "paper A", "ratio", "backward", "paper A", "ratio",
    )  # fmt: skip
    table = Table("Planar scenes, one world, float64", columns, notes=NOTES.format(steps=STEPS, h=1000 * DT, more=PAPER_NOTES))
    for name, case in CASES.items():
        for solver in SOLVERS:
            key = f"{name}, {solver}"
            step, back = (spent[f"{key}, {what}"] for what in ("step", "backward"))
            ratios = [theirs / ours for theirs, ours in zip(case.paper, (step, back), strict=True)]
            forward = (us(step), f"{1 / step:,.0f}", us(case.paper[0]), times(ratios[0]))
            cells = (*forward, us(back), us(case.paper[1]), times(ratios[1]))
            table.add(name, solver, int(status[key].contacts.max()), _solved(status[key], STEPS), *cells)
            for what, ratio in zip(("step", "backward"), ratios, strict=True):
                table.target(f"{key}: {what} {TARGET:g} times as fast as paper A's code: {times(ratio)}", ratio >= TARGET)
            if solver == "PGS" and case.memory:
                for what, ours, theirs, ratio in zip(("a step", "backward"), (step, back), case.paper, ratios, strict=True):
                    peer = f"paper A's code: {us(theirs)} us (another day)"
                    table.summary.append((f"{what}, planar {name}, one world", f"{us(ours)} us", peer, times(ratio)))
    return table


def _many(alone: dict[str, float], *, quick: bool) -> Table:
    columns = ("scene", "solver", "solved", "step", "steps per second", "one world / this", "backward", "one world / this")
    table = Table(
        f"Planar scenes, {MANY} worlds, float64", columns, notes=NOTES.format(steps=MANY_STEPS, h=1000 * DT, more=MANY_NOTES)
    )
    spent, status = _spent(MANY, MANY_STEPS, quick=quick)
    for name in CASES:
        for solver in SOLVERS:
            key = f"{name}, {solver}"
            step, back = (spent[f"{key}, {what}"] for what in ("step", "backward"))
            gains = [times(alone[f"{key}, {what}"] / x) for what, x in (("step", step), ("backward", back))]
            table.add(name, solver, _solved(status[key], MANY_STEPS), us(step), f"{1 / step:,.0f}", gains[0], us(back), gains[1])
    return table


# ---- memory --------------------------------------------------------------------------------------------------------
def _memory() -> Table:
    columns = ("scene", "a state, kB", "inputs and outputs per step, kB", "above them per step, kB", "paper A per step, kB")
    table = Table("Memory of planar scenes with backward", columns, notes=MEMORY_NOTES)
    if not Path("/proc/self/clear_refs").exists():
        table.notes += " Not available on this system."
        return table
    for index, (name, case) in enumerate(CASES.items()):
        command = [sys.executable, "-m", "bench.planar", str(index)]
        state, size, above = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-3:])
        theirs = f"{case.memory * 1048.576:,.0f}" if case.memory else ""
        table.add(name, f"{state:.2f}", f"{size:.2f}", f"{above:.2f}" if above >= 0.01 else "< 0.01", theirs)
        table.target(f"{name}: nothing but the state is kept of a step: {max(above, 0.0):.2f} kB above it", above < state)
    return table


def measure(index: int) -> tuple[float, float, float]:
    """kB: a state; inputs and outputs per step; peak growth above them per step."""
    from bench.memory import growth
    from bench.timing import one_core

    one_core()
    case = list(CASES.values())[index]
    sim = cs.Simulator(case.scene().build(), DT)
    state, params = start(case, sim, 1), sim.model.params(requires_grad=True)

    def work(q_bar: torch.Tensor, v_bar: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, v = (x.clone().requires_grad_() for x in state)
        traj = sim.rollout(cs.State(q, v), params=params, steps=len(q_bar) - 1)
        wanted = [x for x in (q, v, *params.leaves()) if x.numel()]
        grads = torch.autograd.grad((traj.q, traj.v), wanted, (q_bar, v_bar), allow_unused=True)
        return (traj.q, traj.v, *(g for g in grads if g is not None))

    def inputs(steps: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.ones(steps + 1, 1, size, dtype=torch.float64) for size in (sim.model.nq, sim.model.nv))

    short, long = MEMORY_STEPS
    (size_short, above_short), (size, above) = (growth(work, inputs(1), inputs(steps)) for steps in (short, long))
    per_step = (long - short) / 1000  # MB to kB
    return 8e-3 * (sim.model.nq + sim.model.nv), (size - size_short) / per_step, (above - above_short) / per_step


if __name__ == "__main__":
    print(*measure(int(sys.argv[1])))
