"""Forward dynamics of 1,024 worlds against pinocchio.aba, called once per world from Python."""

from __future__ import annotations

import pinocchio as pin
import torch

import costate as cs
from bench import models as m
from bench.robots import Robot, three
from bench.tables import Table, times, us
from bench.timing import interleaved

WORLDS = 1024
TARGET = 5.0
NOTES = """Microseconds per world. `cs.forward_dynamics` on a batch, everything included, against a Python loop over
`pinocchio.aba`. What the loop costs on a model with one dof is taken as the price of calling, and subtracted before
the ratio is taken."""


def one_dof() -> pin.Model:
    """The smallest model there is: what a call on it costs is the cost of calling."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), "slide")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    return model


def run(*, quick: bool) -> list[Table]:
    """One row per robot."""
    table = Table(
        f"Forward dynamics, {WORLDS:,} worlds",
        (
            "robot",
            "dof",
            "costate float64",
            "costate float32",
            "Pinocchio ABA",
            "of it calling",
            "float64 ratio",
            "float32 ratio",
        ),
        notes=NOTES,
    )
    for robot in three():
        m.check_agreement(robot)
        ours, ours32, theirs, call = _times(robot, quick=quick)
        net = theirs - call
        table.add(robot.name, robot.nv, us(ours), us(ours32), us(theirs), us(call), times(net / ours), times(net / ours32))
        if robot.name == "quadruped":
            what = f"forward dynamics of {WORLDS:,} worlds"
            table.summary.append((what, f"{us(ours)} us", f"Pinocchio ABA: {us(net)} us", times(net / ours)))
        what = f"{robot.name}: at least {TARGET:g} times Pinocchio's throughput in float64: {times(net / ours)}"
        table.target(what, net / ours >= TARGET)
    return [table]


def _times(robot: Robot, *, quick: bool) -> tuple[float, float, float, float]:
    """Seconds per world: costate in float64 and float32, the loop over pinocchio.aba, and the loop's own cost."""
    worlds, model = m.random_worlds(robot, WORLDS), m.costate_model(robot)
    doubles, floats = worlds.torch(torch.float64), worlds.torch(torch.float32)
    theirs, small = m.pinocchio_model(robot), one_dof()
    data, small_data = theirs.createData(), small.createData()
    states = list(zip(*m.to_pinocchio(robot, worlds), strict=True))
    ones = [tuple(x[:1].copy() for x in state) for state in states]
    aba = pin.aba

    def peer() -> None:
        for q, v, tau in states:
            aba(theirs, data, q, v, tau)

    def empty() -> None:
        for q, v, tau in ones:
            aba(small, small_data, q, v, tau)

    works = {
        "float64": lambda: cs.forward_dynamics(model, *doubles),
        "float32": lambda: cs.forward_dynamics(model, *floats),
        "pinocchio": peer,
        "call": empty,
    }
    spent = interleaved(works, quick=quick)
    return tuple(spent[name] / WORLDS for name in works)  # type: ignore[return-value]
