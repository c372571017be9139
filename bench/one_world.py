"""One world alone, as in a control loop: numpy in, numpy out, against mj_step."""

from __future__ import annotations

import mujoco
import numpy as np

import costate as cs
from bench import models as m
from bench.robots import Robot, three
from bench.tables import Table, times, us
from bench.timing import interleaved

DT = 0.001
STEPS = 100
OVERHEAD_TARGET = 5e-6
NOTES = f"""Microseconds per step. Loops of {STEPS} steps from a random state, numpy arrays, no contact, no damping, Euler. The
native step is one of {STEPS} inside one call of the engine. `mj_step` is called once per step as `sim.step` is; without the
price of calling it is timed as one call with nstep={STEPS}, and the ratio is taken with that."""


def run(*, quick: bool) -> list[Table]:
    """One row per robot."""
    table = Table(
        "One world, one step at a time, float64",
        (
            "robot",
            "dof",
            "sim.step",
            "sim.step, torch",
            "native step",
            "numpy path adds",
            "mj_step",
            "mj_step, calling subtracted",
            "mj_step / sim.step",
        ),
        notes=NOTES,
    )
    for robot in three():
        m.check_agreement(robot)
        ours, tensors, native, theirs, inside = _times(robot, quick=quick)
        table.add(
            robot.name,
            robot.nv,
            us(ours),
            us(tensors),
            us(native),
            us(ours - native),
            us(theirs),
            us(inside),
            times(inside / ours),
        )
        if robot.name == "quadruped":
            table.summary.append(
                ("one step of one world, from Python", f"{us(ours)} us", f"MuJoCo mj_step: {us(inside)} us", times(inside / ours))
            )
        table.target(f"{robot.name}: sim.step no slower than mj_step: {us(ours)} us against {us(inside)} us", ours <= inside)
        what = f"{robot.name}: the numpy path adds under {us(OVERHEAD_TARGET)} us: {us(ours - native)} us"
        table.target(what, ours - native < OVERHEAD_TARGET)
    return [table]


def _times(robot: Robot, *, quick: bool) -> tuple[float, ...]:
    """Seconds per step: sim.step in numpy and in torch, inside one native call, mj_step from Python, and for many steps."""
    worlds, model = m.random_worlds(robot, 1), m.costate_model(robot)
    sim, start = cs.Simulator(model, dt=DT), cs.State(worlds.q[0], worlds.v[0])
    mj = m.mujoco_model(robot, dt=DT)
    data, step = mujoco.MjData(mj), mujoco.mj_step

    def ours() -> None:
        state = start
        for _ in range(STEPS):
            state = sim.step(state)

    torch_start = start.torch()

    def tensors() -> None:
        state = torch_start
        for _ in range(STEPS):
            state = sim.step(state)

    # the same steps inside one native call, with everything prepared
    theta, h = sim.model.params().flat().numpy(), np.array([DT])
    q, v, finite = np.empty((STEPS, model.nq)), np.empty((STEPS, model.nv)), np.empty(1, np.int32)
    rollout = model.engine.tree.rollout

    def native() -> None:
        rollout(1, STEPS, 1, start.q, start.v, None, h, None, theta, q, v, finite, sim.options)

    def reset() -> None:
        data.qpos[:], data.qvel[:] = start

    def theirs() -> None:
        reset()
        for _ in range(STEPS):
            step(mj, data)

    def inside() -> None:
        reset()
        step(mj, data, STEPS)

    spent = interleaved({"ours": ours, "tensors": tensors, "native": native, "theirs": theirs, "inside": inside}, quick=quick)
    return tuple(seconds / STEPS for seconds in spent.values())
