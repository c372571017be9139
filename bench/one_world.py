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


def run(*, quick: bool) -> list[Table]:
    """One row per robot."""
    table = Table(
        "One world, one step at a time, float64",
        ("robot", "dof", "costate `sim.step`, us", "its native call, us", "numpy path adds, us", "MuJoCo `mj_step`, us", "in one call, us per step", "mj_step / costate"),
        notes=f"Loops of {STEPS} steps from one random state, numpy arrays, no contact, no damping, Euler. `mj_step` is called once per "
        f"step as `sim.step` is; \"in one call\" is mj_step with nstep={STEPS}, without the price of calling, and the ratio is that one's.",
    )  # fmt: skip
    for robot in three():
        m.check_agreement(robot)
        ours, native, theirs, inside = _times(robot, quick=quick)
        table.add(robot.name, robot.nv, us(ours), us(native), us(ours - native), us(theirs), us(inside), times(inside / ours))
        table.target(f"{robot.name}: sim.step no slower than mj_step: {us(ours)} us against {us(inside)} us", ours <= inside)
        table.target(f"{robot.name}: the numpy path adds under {us(OVERHEAD_TARGET)} us: {us(ours - native)} us", ours - native < OVERHEAD_TARGET)
    return [table]


def _times(robot: Robot, *, quick: bool) -> tuple[float, ...]:
    """Seconds per step: sim.step, the native call below it, mj_step from Python, mj_step for many steps."""
    worlds, model = m.random_worlds(robot, 1), m.costate_model(robot)
    sim, start = cs.Simulator(model, dt=DT), cs.State(worlds.q[0], worlds.v[0])
    control = np.zeros(model.nu)
    mj = m.mujoco_model(robot, dt=DT)
    data, step = mujoco.MjData(mj), mujoco.mj_step

    def ours() -> None:
        state = start
        for _ in range(STEPS):
            state = sim.step(state, control)

    # what sim.step calls in the end, with everything prepared
    tree, theta = model.engine.tree, model.params().flat().numpy()
    q, v, at, h = start.q.copy(), start.v.copy(), np.empty(1, np.int32), np.array([DT])
    native_step = tree.rollout

    def native() -> None:
        q[:], v[:] = start
        for _ in range(STEPS):
            native_step(1, 1, 1, q, v, control, h, None, theta, q, v, at)

    def reset() -> None:
        data.qpos[:], data.qvel[:] = start

    def theirs() -> None:
        reset()
        for _ in range(STEPS):
            step(mj, data)

    def inside() -> None:
        reset()
        step(mj, data, STEPS)

    spent = interleaved({"ours": ours, "native": native, "theirs": theirs, "inside": inside}, quick=quick)
    return tuple(seconds / STEPS for seconds in spent.values())
