"""Robots on the ground in 1,024 worlds: steps, and steps with their gradient, against mujoco.rollout."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

import costate as cs
from bench import gait as g
from bench import models as m
from bench.tables import Table, times, us
from bench.timing import Work, interleaved
from bench.walkers import ant, standing_quadruped

WORLDS = 1024
STEPS = 50
DT = {"standing quadruped": 0.005, "ant": 0.01}  # s
FORWARD_TARGET, BOTH_TARGET, ACCURATE_TARGET, THREADS_TARGET = 8.0, 2.0, 0.99, 1.8
STANDS = 0.02  # m, by how much heights of standing quadrupeds may differ from the stance's
AGREE = 5e-4  # m, heights of a quadruped at rest in both engines, with MuJoCo's hard contacts
PEER = "MuJoCo, pyramids"
NOTES = f"""Microseconds per world and step, on one core; rollouts of {STEPS} steps of {{dt:g}} ms, after {g.BURN_IN} that are not
timed. {{who}}
Backward is by the first state, the controls and all parameters, from gradients that arrive at every state.
MuJoCo: `mujoco.rollout` on the calling thread, no gradient; the same robot, states and controls, implicitfast, Newton, its
default accuracy and stiffness (solref 0.02, solimp 0.9 0.95), friction in pyramids (its default) or elliptic cones; hard:
solref of two steps, solimp 0.99, impratio 10. The ratio is to the first MuJoCo row."""
WHO = {
    "standing quadruped": """A quadruped of 25 kg and 18 dof on four spherical feet, with servos (300 N m/rad, 9 N m s/rad). Every
world trots in place with its own height (some only stand), pace and phase, and noise on every target.""",
    "ant": f"""MuJoCo's ant of 14 dof: 25 points that may touch the ground, 8 limits, armature and damping 1, motors anywhere
between -30 and 30 N m, a new choice every {g.HOLD} steps. MuJoCo has contacts from 1 cm on, as in the original; they are
springs, on which its ants hop: it has fewer at a time.""",
}
LOOK_NOTES = f"""Means over all steps of all worlds. A contact has rows once it is within the step size
times 1 m/s (at most 1 cm), or will be within the step; MuJoCo has one only where shapes overlap. Accurate: the natural residual
is under {g.ACCURATE:g} m/s; converged: under the solver's own tolerance (1e-10 m/s in float64, 1e-5 in float32)."""


def run(*, quick: bool) -> list[Table]:
    """A table of times per robot, one of what happens in their worlds, one of threads."""
    check_agreement()
    seen = Table(
        "What happens in these worlds",
        (
            "robot",
            "precision",
            "contacts",
            "of them pushing",
            "sliding",
            "MuJoCo's contacts",
            "height of the base, m",
            "MuJoCo's",
            "accurate",
            "converged",
            "largest residual, m/s",
        ),
        notes=LOOK_NOTES,
    )
    tables = []
    for robot in (standing_quadruped(), ant()):
        walk = g.walk(robot, WORLDS, STEPS, dt=DT[robot.name])
        accurate = _look(seen, walk)
        tables.append(_throughput(walk, quick=quick))
        if robot.name == "standing quadruped":
            what = (
                f"{robot.name}: at least {ACCURATE_TARGET:.0%} of steps with a residual under {g.ACCURATE:g} m/s: {accurate:.2%}"
            )
            tables[-1].target(what, accurate >= ACCURATE_TARGET)
    return [*tables, seen, _threads(quick=quick)]


def check_agreement() -> None:
    """A quadruped that stands still must do so at the same height in both engines."""
    robot, dt = standing_quadruped(), DT["standing quadruped"]
    mj = m.mujoco_model(robot, dt=dt, hard=True, elliptic=True)
    data, sim = mujoco.MjData(mj), cs.Simulator(m.costate_model(robot), dt)
    stance = np.array(robot.stance)
    q = np.concatenate((robot.links[0].pos, (1.0, 0.0, 0.0, 0.0), stance))
    data.qpos[:], data.ctrl[:] = q, stance
    mujoco.mj_step(mj, data, 600)
    ours = sim.rollout(cs.State(q, np.zeros(robot.nv)), torch.tensor(np.tile(stance, (600, 1)))).q[-1, 2]
    difference = abs(float(ours) - data.qpos[2])
    assert difference < AGREE, f"costate and MuJoCo stand at heights that differ by {difference:.1e} m"


def _look(seen: Table, walk: g.Walk) -> float:
    """Two rows; gives the share of accurate steps in float64."""
    robot, mj = walk.robot, m.mujoco_model(walk.robot, dt=walk.dt)
    heights, touching = g.mujoco_heights(walk, mj), g.mujoco_contacts(walk, mj)
    shares = []
    for dtype in (torch.float64, torch.float32):
        look = g.look(cs.Simulator(walk.model, walk.dt, dtype=dtype), walk)
        if robot.kp:
            spread = (look.lowest, look.highest, heights.min(), heights.max())
            assert max(abs(z - robot.links[0].pos[2]) for z in spread) < 2 * STANDS, f"{robot.name}: not standing any more"
        seen.add(
            robot.name,
            str(dtype).removeprefix("torch."),
            f"{look.contacts:.2f}",
            f"{look.pushing:.2f}",
            f"{look.sliding:.2f}",
            f"{touching:.2f}",
            f"{look.lowest:.2f} to {look.highest:.2f}",
            f"{heights.min():.2f} to {heights.max():.2f}",
            f"{look.accurate:.2%}",
            f"{look.converged:.2%}",
            f"{look.worst:.1e}",
        )
        shares.append(look.accurate)
    return shares[0]


def _throughput(walk: g.Walk, *, quick: bool) -> Table:
    """One row per way to run the walk."""
    robot, dt = walk.robot, walk.dt
    table = Table(
        f"The {robot.name}, {WORLDS:,} worlds",
        ("what", "us per world and step", "steps per second", "ratio"),
        notes=NOTES.format(dt=1e3 * dt, who=WHO[robot.name]),
    )
    implicit, exact = cs.Simulator(walk.model, dt), cs.Simulator(walk.model, dt, gradient="exact")
    floats = cs.Simulator(walk.model, dt, dtype=torch.float32)
    works: dict[str, Work] = {
        "step": g.forward(implicit, walk),
        "step and backward": g.both(implicit, walk),
        "step and backward, own parameters in every world": g.both(implicit, walk, own=True),
        'step and backward, gradient="exact"': g.both(exact, walk),
        "step, float32": g.forward(floats, walk),
        "step and backward, float32": g.both(floats, walk),
        PEER: _peer(walk),
        "MuJoCo, elliptic cones": _peer(walk, elliptic=True),
    }
    if not quick:
        works["MuJoCo, pyramids, hard"] = _peer(walk, hard=True)
        works["MuJoCo, elliptic cones, hard"] = _peer(walk, hard=True, elliptic=True)
    spent = {name: seconds / walk.world_steps for name, seconds in interleaved(works, quick=quick).items()}
    theirs = spent[PEER]
    for name, seconds in spent.items():
        table.add(name, us(seconds), f"{1 / seconds:,.0f}", times(theirs / seconds))
    if robot.kp:
        for name, aim in (("step", FORWARD_TARGET), ("step and backward", BOTH_TARGET)):
            ratio = theirs / spent[name]
            what = f"{name}: at least {aim:g} times the throughput of MuJoCo's step: {times(ratio)}"
            table.target(what, ratio >= aim)
            table.summary.append(
                (
                    f"{name} on the ground, {WORLDS:,} worlds",
                    f"{us(spent[name])} us",
                    f"MuJoCo step: {us(theirs)} us",
                    times(ratio),
                )
            )
    return table


def _peer(walk: g.Walk, *, hard: bool = False, elliptic: bool = False) -> Work:
    return g.mujoco_rollout(walk, m.mujoco_model(walk.robot, dt=walk.dt, hard=hard, elliptic=elliptic))


def _threads(*, quick: bool) -> Table:
    """One row forward, one with backward."""
    table = Table(
        f"Two threads, the standing quadruped, {WORLDS:,} worlds, float64",
        ("what", "one thread", "two threads", "ratio"),
        notes="Microseconds per world and step, as above. Needs two cores that nobody else uses.",
    )
    walk = g.walk(standing_quadruped(), WORLDS, STEPS, dt=DT["standing quadruped"])
    sim = cs.Simulator(walk.model, walk.dt)

    def on(threads: int, work: Work) -> Work:
        def threaded() -> None:
            cs.set_num_threads(threads)
            work()
            cs.set_num_threads(1)

        return threaded

    kinds = {"step": g.forward(sim, walk), "step and backward": g.both(sim, walk)}
    works = {f"{name} {n}": on(n, work) for name, work in kinds.items() for n in (1, 2)}
    spent = interleaved(works, quick=quick)
    for name in kinds:
        one, two = (spent[f"{name} {n}"] for n in (1, 2))
        table.add(name, us(one / walk.world_steps), us(two / walk.world_steps), times(one / two))
        table.target(f"{name}: at least {THREADS_TARGET} times one thread: {one / two:.2f}", one / two >= THREADS_TARGET)
    return table
