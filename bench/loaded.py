"""Robots of public files on the ground: steps, and steps with their gradient, against MuJoCo on the same (repaired) file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import mujoco
import numpy as np
import torch

import costate as cs
from bench import gait as g
from bench.found import ANT, HUMANOID, LAIKAGO, PANDA, Found
from bench.tables import Table, times, us
from bench.timing import Work, interleaved

WORLDS, STEPS = 1024, 50
ALONE = 4  # worlds that are stepped one after the other from Python
LIFT, PACE = (0.0, 0.15), (1.5, 2.5)  # rad and 1/s: a quadruped trots in place (or only stands), an arm swings
NOISE = 0.03  # rad, of a target, new in every step
NEAR = 0.001  # m, a margin of contacts that is enough for robots that stand; the default is 0.01
REACH = 0.8  # rad, by which the arm's shoulder bends, so that its hand lies on the ground
NOTES = f"""Microseconds per world and step, on one core, float64. Models as `costate.load` gives them, with the file's timestep.
{WORLDS:,} worlds: rollouts of {STEPS} steps after a second that is not timed. One world: `sim.step` of numpy arrays and
`mj_step`, called once per step with a new control. Every world has its own random state and controls. Backward is by the first
state, the controls and all parameters. With a margin of 1 mm fewer contacts that do not push have rows.
MuJoCo: the same file (URDFs as they are repaired; laikago_toes and panda with a ground, position actuators and no contact within
the robot), states and controls; `mujoco.rollout` on the calling thread, no gradient, the file's contacts and solver. It steps by
implicitfast; ant and humanoid say RK4, which computes forces four times a step."""
LOOK_NOTES = """Means over all steps of all worlds, float64. A contact has rows here once it is within the timestep
times 1 m/s, at most 1 cm; in MuJoCo where shapes overlap (ant, humanoid: within their margins). Accurate: the natural residual is
under 1e-6 m/s."""


@dataclass(frozen=True)
class Loaded:
    """A robot and what its worlds do: trot or swing around the stance, or thrash with up to `power`."""

    found: Found
    who: str
    power: float = 0.0


ROBOTS = (
    Loaded(LAIKAGO, "18 dof, trots in place; feet are spheres, legs hulls of 64 vertices, 1 cm above the ground"),
    Loaded(ANT, "14 dof, thrashes; capsules", power=0.2),
    Loaded(HUMANOID, "23 dof, lies and thrashes; capsules that touch each other, too", power=0.4),
    Loaded(PANDA, "9 dof, lies with its hand on the ground and swings; hulls of 64 vertices"),
)


def run(*, quick: bool) -> list[Table]:
    """A table of times, one of what happens in the worlds."""
    table = Table("Robots of public files", ("robot", "what", "costate", "MuJoCo", "ratio"), notes=NOTES)
    columns = (
        "robot",
        "",
        "contacts",
        "of them pushing",
        "MuJoCo's contacts",
        "height, m",
        "MuJoCo's",
        "accurate",
        "largest residual, m/s",
    )
    seen = Table("What happens in the worlds of these robots", columns, notes=LOOK_NOTES)
    for robot in ROBOTS:
        walk, mj = worlds(robot), peer(robot.found)
        _look(seen, robot, walk, mj)
        _times(table, robot, walk, mj, quick=quick)
    return [table, seen]


def peer(found: Found) -> mujoco.MjModel:
    """MuJoCo's model."""
    mj = found.mujoco()
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    return mj


def worlds(robot: Loaded, *, seed: int = 0) -> g.Walk:
    """Random states around the stance, random controls, and a second of them behind us."""
    rng, found = np.random.default_rng(seed), robot.found
    model = found.load()
    dt = cast(float, model.timestep)
    before = round(1 / dt)
    stance = torch.tensor(found.stance())
    q = cs.project(model, model.integrate(stance.expand(WORLDS, -1), torch.tensor(0.03 * rng.normal(size=(WORLDS, model.nv)))))
    v = 0.3 * rng.normal(size=(WORLDS, model.nv))
    controls = _controls(robot, model, stance.numpy(), before + STEPS, dt, rng)
    traj = cs.Simulator(model, dt).rollout(cs.State(q.numpy(), v), torch.tensor(controls[:before]))
    assert not traj.diverged.any(), f"{found.name}: a world diverged"
    return g.Walk(cast(Any, found), model, dt, np.asarray(traj.q[-1]), np.asarray(traj.v[-1]), controls[before:])


def _controls(robot: Loaded, model: cs.Model, stance: np.ndarray, steps: int, dt: float, rng: np.random.Generator) -> np.ndarray:
    """[steps, worlds, nu]: motors anywhere up to `power`, a new choice every few steps; or targets around the stance."""
    if robot.found.kp is None:
        choices = rng.uniform(-robot.power, robot.power, (-(-steps // g.HOLD), WORLDS, model.nu))
        return np.repeat(choices, g.HOLD, axis=0)[:steps]
    out = stance[-model.nu :] + NOISE * rng.normal(size=(steps, WORLDS, model.nu))
    height, pace, phase = (rng.uniform(*span, (WORLDS, 1)) for span in (LIFT, PACE, (0.0, 1.0)))
    clock = phase + pace * dt * np.arange(steps)[:, None, None]
    if robot.found is PANDA:
        out[..., 1] += REACH
        out[..., :7] += height * np.sin(2 * np.pi * (clock + rng.uniform(0, 1, (WORLDS, 7))))
        out[..., 7:] = stance[7:]
        return out
    # legs 0 and 3 of a quadruped stand crosswise, and so do 1 and 2
    lift = height * np.maximum(0.0, np.sin(2 * np.pi * (clock + np.array((0.0, 0.5, 0.5, 0.0)))))
    legs = out.reshape(steps, WORLDS, 4, 3)
    legs[..., 1] += lift
    legs[..., 2] -= 2 * lift
    return out


def _look(seen: Table, robot: Loaded, walk: g.Walk, mj: mujoco.MjModel) -> None:
    """One row; the arm's height means nothing, since q has none."""
    look, heights = g.look(cs.Simulator(walk.model, walk.dt), walk), g.mujoco_heights(walk, mj)
    free = mj.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    spans = (
        f"{low:.2f} to {high:.2f}" if free else "-" for low, high in ((look.lowest, look.highest), (heights.min(), heights.max()))
    )
    seen.add(
        robot.found.name,
        robot.who,
        f"{look.contacts:.2f}",
        f"{look.pushing:.2f}",
        f"{g.mujoco_contacts(walk, mj):.2f}",
        *spans,
        f"{look.accurate:.2%}",
        f"{look.worst:.1e}",
    )


def _times(table: Table, robot: Loaded, walk: g.Walk, mj: mujoco.MjModel, *, quick: bool) -> None:
    """A row for each way to step."""
    sim, name = cs.Simulator(walk.model, walk.dt), robot.found.name
    works = {"ours": _ours(walk, sim), "theirs": _theirs(walk, mj)}
    alone = {key: seconds / (ALONE * STEPS) for key, seconds in interleaved(works, quick=quick).items()}
    near = cs.Simulator(walk.model, walk.dt, contact=cs.Contact(margin=NEAR))
    works = {"theirs": g.mujoco_rollout(walk, mj)}
    for words, some in (("", sim), (", margin of 1 mm", near)):
        works |= {f"step{words}": g.forward(some, walk), f"step and backward{words}": g.both(some, walk)}
    spent = {key: seconds / walk.world_steps for key, seconds in interleaved(works, quick=quick).items()}
    table.add(
        name, "one world, from Python: step", us(alone["ours"]), us(alone["theirs"]), times(alone["theirs"] / alone["ours"])
    )
    for what in [key for key in spent if key != "theirs"]:
        ratio = times(spent["theirs"] / spent[what])
        table.add(name, f"{WORLDS:,} worlds: {what}", us(spent[what]), us(spent["theirs"]), ratio)
        if robot.found is LAIKAGO:
            peer_time = f"MuJoCo step: {us(spent['theirs'])} us"
            table.summary.append((f"{what} of laikago_toes.urdf, {WORLDS:,} worlds", f"{us(spent[what])} us", peer_time, ratio))


def _ours(walk: g.Walk, sim: cs.Simulator) -> Work:
    starts = [cs.State(q, v) for q, v in zip(walk.q[:ALONE], walk.v)]
    controls = [list(walk.controls[:, w]) for w in range(ALONE)]

    def work() -> None:
        for state, inputs in zip(starts, controls):
            for control in inputs:
                state = sim.step(state, control)

    return work


def _theirs(walk: g.Walk, mj: mujoco.MjModel) -> Work:
    data, step = mujoco.MjData(mj), mujoco.mj_step
    ctrl, controls = data.ctrl, [list(walk.controls[:, w]) for w in range(ALONE)]

    def work() -> None:
        for w in range(ALONE):
            data.qpos[:], data.qvel[:] = walk.q[w], walk.v[w]
            for control in controls[w]:
                ctrl[:] = control
                step(mj, data)

    return work
