"""Forward dynamics and its vector-Jacobian product against the derivatives that Pinocchio and MuJoCo offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import torch

import costate as cs
from bench import models as m
from bench.dynamics import one_dof
from bench.robots import Robot, three
from bench.tables import Table, times, us
from bench.timing import interleaved

WORLDS = 1024
TARGET = 3.0
FD_EPS = 1e-6
DT = 0.002  # s, of the step whose Jacobian is taken
NOTES = """Microseconds per world. costate: forward dynamics and one vector-Jacobian product with respect to q, v, tau and *all*
parameters, through torch; parameters shared by all worlds, or each world its own. Pinocchio: `computeABADerivatives`, the
Jacobians by q, v and tau, no parameters; its price of calling, measured on a model with one dof, is subtracted before the
ratio is taken."""
JACOBIAN_NOTES = f"""Microseconds per world for A, the Jacobian of one step by q and v in tangent coordinates. costate:
`sim.linearize` on a batch of {WORLDS:,}, exact. MuJoCo: `mjd_transitionFD` with eps {FD_EPS:g}, finite differences, called once
per world."""


def run(*, quick: bool) -> list[Table]:
    """One row per robot."""
    table = Table(
        f"Forward dynamics with its gradient, {WORLDS:,} worlds, float64",
        ("robot", "dof", "costate", "costate, own parameters", "Pinocchio", "of it calling", "Pinocchio / costate"),
        notes=NOTES,
    )
    jacobian = Table(
        "The Jacobian of a step, float64",
        ("robot", "dof", "costate linearize", "MuJoCo mjd_transitionFD", "MuJoCo / costate"),
        notes=JACOBIAN_NOTES,
    )
    for robot in three():
        m.check_agreement(robot)
        shared, each, theirs, call, ours, fd = _times(robot, quick=quick)
        jacobian.add(robot.name, robot.nv, us(ours), us(fd), times(fd / ours))
        ratio = (theirs - call) / shared
        table.add(robot.name, robot.nv, us(shared), us(each), us(theirs), us(call), times(ratio))
        if robot.name == "quadruped":
            what, net = "the same with its gradient by q, v, tau and all parameters", f"{us(theirs - call)} us"
            table.summary.append((what, f"{us(shared)} us", f"Pinocchio, derivatives by q, v, tau: {net}", times(ratio)))
        table.target(f"{robot.name}: at least {TARGET:g} times Pinocchio's throughput: {times(ratio)}", ratio >= TARGET)
    return [table, jacobian]


def _vjp(model: cs.Model, worlds: m.Worlds, *, per_world: bool) -> Callable[[], Any]:
    """Forward, then the gradient by everything; leaves are made once, as in a training loop."""
    q, v, tau = (x.requires_grad_() for x in worlds.torch(torch.float64))
    params = model.params().expand(len(worlds.q)).detach(requires_grad=True) if per_world else model.params(requires_grad=True)
    a_bar = torch.randn(len(worlds.q), model.nv, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaves = [q, v, tau, *(t for t in params.leaves() if t.numel())]

    def work() -> Any:
        return torch.autograd.grad(cs.forward_dynamics(model, q, v, tau, params), leaves, a_bar, allow_unused=True)

    return work


def _times(robot: Robot, *, quick: bool) -> tuple[float, ...]:
    """Seconds per world: costate with shared and with own parameters, Pinocchio, its calls; both Jacobians of a step."""
    worlds, model = m.random_worlds(robot, WORLDS), m.costate_model(robot)
    theirs, small, states = m.pinocchio_model(robot), one_dof(), list(zip(*m.to_pinocchio(robot, worlds), strict=True))
    data, small_data, derivatives = theirs.createData(), small.createData(), pin.computeABADerivatives
    ones = [tuple(x[:1].copy() for x in state) for state in states]

    def peer() -> None:
        for q, v, tau in states:
            derivatives(theirs, data, q, v, tau)

    def empty() -> None:
        for q, v, tau in ones:
            derivatives(small, small_data, q, v, tau)

    some = 16  # mjd_transitionFD is slow: a few of the worlds tell enough
    works = {
        "shared": _vjp(model, worlds, per_world=False),
        "each": _vjp(model, worlds, per_world=True),
        "pinocchio": peer,
        "call": empty,
        "linearize": _linearize(model, worlds),
        "mujoco": _transition_fd(robot, worlds, some),
    }
    spent = interleaved(works, quick=quick)
    return tuple(spent[name] / (some if name == "mujoco" else WORLDS) for name in works)


def _linearize(model: cs.Model, worlds: m.Worlds) -> Callable[[], Any]:
    q, v, _ = worlds.torch(torch.float64)
    sim = cs.Simulator(model, dt=DT)
    return lambda: sim.linearize(cs.State(q, v))


def _transition_fd(robot: Robot, worlds: m.Worlds, some: int) -> Callable[[], None]:
    mj = m.mujoco_model(robot, dt=DT)
    data = mujoco.MjData(mj)
    A = np.zeros((2 * mj.nv, 2 * mj.nv))

    def work() -> None:
        for i in range(some):
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = worlds.q[i], worlds.v[i], worlds.tau[i]
            mujoco.mjd_transitionFD(mj, data, FD_EPS, False, A, None, None, None)

    return work
