"""Robots held together by constraints: paper B's quadruped against the same robot as a tree, and chains of free bodies."""

from __future__ import annotations

import torch

import costate as cs
from bench.tables import Table, times, us
from bench.timing import Work, interleaved
from examples import servo_robots as robots

WORLDS, STEPS, BURN_IN = 256, 40, 100
STEP_SIZES = (0.001, 0.01)
LENGTHS, CHAIN_WORLDS, LINK_STEPS = (5, 20, 80), 64, 400
FORWARD_TARGET, GROWTH_TARGET = 5.0, 1.5
NOTES = f"""Microseconds per world and step, float64, one core, {WORLDS} worlds; rollouts of {STEPS} steps after {BURN_IN} that
are not timed. Paper B's quadruped (17 bodies, 8 servos of 4 N m, four feet) walks open-loop, every world with its own pace, phase
and offsets of the targets: as a tree, and out of 17 free bodies held by 88 equality rows (`examples/servo_robots.py`), which
starts where the tree is. Ratios are to the tree. Backward is implicit, by the first state, the controls and all parameters.
Converged: steps below the solver's tolerance of 1e-10 m/s. Drift: largest error of a constraint at the start of a step."""
CHAIN_NOTES = f"""Microseconds per link, step and world, float64, {CHAIN_WORLDS} worlds, links times steps always {LINK_STEPS}:
chains of bars with revolute joints, and of free bars with hinge constraints. Constraints are eliminated along the chain, so
that the time per link should not grow."""


def run(*, quick: bool) -> list[Table]:
    """A table of the quadruped per step size, and one of chains."""
    return [*(_quadruped(dt, quick=quick) for dt in STEP_SIZES), _chains(quick=quick)]


def _targets(dt: float) -> torch.Tensor:
    """[BURN_IN + STEPS, WORLDS, 8]: everybody's own walk."""
    rng = torch.Generator().manual_seed(0)
    pace, phase = (torch.rand(WORLDS, generator=rng, dtype=torch.float64) for _ in range(2))
    time = dt * torch.arange(BURN_IN + STEPS, dtype=torch.float64)[:, None] * (0.7 + 0.6 * pace) + phase
    return robots.gait(time) + 0.03 * torch.randn(WORLDS, 8, generator=rng, dtype=torch.float64)


def _quadruped(dt: float, *, quick: bool) -> Table:
    columns = ("robot", "step", "ratio", "step and backward", "ratio", "converged", "drift, m or rad")
    table = Table(f"Paper B's quadruped, steps of {1000 * dt:g} ms", columns, notes=NOTES)
    tree, maximal = robots.quadruped(), robots.quadruped(maximal=True)
    targets = _targets(dt)
    start = cs.Simulator(tree, dt).rollout(cs.Simulator(tree, dt).initial_state(WORLDS), targets[:BURN_IN])[-1]
    sims = {"tree": cs.Simulator(tree, dt), **{f"maximal, project {n}": cs.Simulator(maximal, dt, project=n) for n in (0, 1, 2)}}
    works: dict[str, Work] = {}
    for name, sim in sims.items():
        state = start if sim.model is tree else robots.to_maximal(tree, maximal, start)
        works |= {f"step {name}": _forward(sim, state, targets[BURN_IN:]), f"both {name}": _both(sim, state, targets[BURN_IN:])}
        sims[name], status = sim, sim.rollout(state, targets[BURN_IN:]).status
        table.add(name, "", "", "", "", f"{1 - status.unconverged.double().mean() / STEPS:.2%}", f"{status.drift.max():.1e}")
    spent = {name: seconds / (WORLDS * STEPS) for name, seconds in interleaved(works, quick=quick).items()}
    for i, name in enumerate(sims):
        step, both = spent[f"step {name}"], spent[f"both {name}"]
        cells = (us(step), times(step / spent["step tree"]), us(both), times(both / spent["both tree"]))
        table.rows[i] = (name, *cells, *table.rows[i][5:])
    ratio = spent["step maximal, project 1"] / spent["step tree"]
    table.target(
        f"the maximal robot takes at most {FORWARD_TARGET:g} times the tree's time: {ratio:.1f}", ratio <= FORWARD_TARGET
    )
    return table


def _forward(sim: cs.Simulator, state: cs.State, controls: torch.Tensor | None, steps: int | None = None) -> Work:
    def work() -> None:
        with torch.no_grad():
            sim.rollout(state, controls, steps=steps)

    return work


def _both(sim: cs.Simulator, state: cs.State, controls: torch.Tensor | None, steps: int | None = None) -> Work:
    q, v = (x.clone().requires_grad_() for x in state)
    u = None if controls is None else controls.clone().requires_grad_()
    params = sim.model.params(requires_grad=True)
    wanted = [x for x in (q, v, u, *params.leaves()) if x is not None and x.numel()]

    def work() -> None:
        traj = sim.rollout(cs.State(q, v), u, params, steps=steps)
        torch.autograd.grad((traj.q, traj.v), wanted, (traj.q, traj.v), allow_unused=True)

    return work


def chain(n: int, *, maximal: bool) -> cs.Model:
    """Bars of 0.1 m and 0.1 kg, hanging in a row."""
    scene, half = cs.Scene(collisions=False), 0.05
    bar = {"mass": 0.1, "inertia": (8e-5, 8e-5, 1e-5)}
    for i in range(n):
        if maximal:
            scene.add_body(f"bar{i}", joint=cs.Free(), pos=(0, 0, -half * (2 * i + 1)), **bar)
            scene.add_hinge(f"bar{i - 1}" if i else "world", f"bar{i}", axis=(0, 1, 0), pos=(0, 0, -half if i else 0.0))
        else:
            at = (0, 0, -2 * half if i else 0.0)
            joint = cs.Revolute((0, 1, 0))
            scene.add_body(f"bar{i}", parent=f"bar{i - 1}" if i else None, joint=joint, pos=at, com=(0, 0, -half), **bar)
    return scene.build()


def _chains(*, quick: bool) -> Table:
    columns = ("links", "tree, step", "maximal, step", "ratio", "tree, step and backward", "maximal, step and backward", "ratio")
    table = Table(f"Chains in maximal coordinates, {CHAIN_WORLDS} worlds", columns, notes=CHAIN_NOTES)
    works: dict[str, Work] = {}
    for n in LENGTHS:
        for maximal in (False, True):
            sim = cs.Simulator(chain(n, maximal=maximal), 0.001)
            state = sim.initial_state(CHAIN_WORLDS)
            rng = torch.Generator().manual_seed(0)
            swing = 0.1 * torch.randn(CHAIN_WORLDS, 1, generator=rng, dtype=torch.float64)
            push = state.v.new_zeros(sim.model.nv).index_fill(0, torch.tensor(0), 1.0)
            state = cs.State(state.q, state.v + swing * push)  # the constraints make it a motion that they allow
            steps = LINK_STEPS // n
            works |= {
                f"step {n} {maximal}": _forward(sim, state, None, steps),
                f"both {n} {maximal}": _both(sim, state, None, steps),
            }
    spent = {name: seconds / (CHAIN_WORLDS * LINK_STEPS) for name, seconds in interleaved(works, quick=quick).items()}
    for n in LENGTHS:
        cells = []
        for what in ("step", "both"):
            tree, maximal = spent[f"{what} {n} False"], spent[f"{what} {n} True"]
            cells += [us(tree), us(maximal), times(maximal / tree)]
        table.add(n, *cells)
    for what, words in (("step", "step"), ("both", "step and backward")):
        growth = spent[f"{what} {LENGTHS[-1]} True"] / spent[f"{what} {LENGTHS[1]} True"]
        text = f"{words}: time per link of {LENGTHS[-1]} links under {GROWTH_TARGET} times that of {LENGTHS[1]}: {growth:.2f}"
        table.target(text, growth < GROWTH_TARGET)
    return table
