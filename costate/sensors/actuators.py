"""Sensors of what drives: forces of actuators, on joints, and of joint limits.

With gear g, coordinate x of the joint, length L = g (x + h v+) and rate g v+ at the end of the step, and the clipped control u:
    f = gain u + bias - kp L - kd g v+,     gain: 1 of motors, kp of position, kd of velocity, their own of general actuators
kept in its force limits. Servos, and all that drive a constraint, are rows of the engine, and f = impulse / h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from costate.info import row_motors
from costate.scene.codes import GENERAL, MOTOR, POSITION, SERVO, VELOCITY
from costate.scene.joints import JOINTS
from costate.scene.names import suggest
from costate.sensors.guard import without_gradient
from costate.sensors.joints import find_driven, find_limits, numbered
from costate.sensors.sensor import Bound, Names, Sensor, as_names

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_ROW = "{kind}: the engine gives no gradient of the forces of {what}. Give the sensor detach=True to go on without it"


class _Tables(NamedTuple):
    """Which actuators are what."""

    solved: list[int]  # those that are read from rows of the engine
    rows: list[int]  # these rows
    dof: list[int]  # index in v, 0 of those on constraints
    coordinate: list[int]  # index in q, 0 where there is none
    sprung: list[bool]  # whether there is one
    general: list[int]  # the general ones


def _tables(model: Model) -> _Tables:
    numbers = {k: len(model.dry_dof) + i for i, k in enumerate(row_motors(model))}
    kinds = list(zip(model.actuator_type, model.motor_tie, strict=True))
    solved = [k for k, (code, tie) in enumerate(kinds) if code == SERVO or (tie >= 0 and code != MOTOR)]
    dof, coordinate, sprung = [max(d, 0) for d in model.motor_dof], [], []
    for d, tie in zip(dof, model.motor_tie, strict=True):
        body = model.dof_body[d] if tie < 0 else -1
        start = d - model.v_address[body] if tie < 0 else 0
        sprung.append(tie < 0 and JOINTS[model.joint_type[body]].has_coordinate(start))
        coordinate.append(model.q_address[body] + start if sprung[-1] else 0)
    general = [k for k, (code, _) in enumerate(kinds) if code == GENERAL]
    return _Tables(solved, [numbers[k] for k in solved], dof, coordinate, sprung, general)


def actuator_forces(reading: Reading) -> Tensor:
    """Forces [*batch, nu] before the gear, N or N m. Those of rows come without gradient, see `_guarded`."""
    model, t, kinds = reading.model, _tables(reading.model), reading.index(reading.model.actuator_type)
    u = _clamped(reading, reading.control, model.clip, "control")
    gear, kp, kd = (reading.param(name) for name in ("gear", "kp", "kd"))
    rate = gear * (reading.v + reading.h * reading.acceleration)[..., reading.index(t.dof)]
    sprung = reading.constant(tuple(t.sprung), torch.bool)
    length = (gear * reading.q[..., reading.index(t.coordinate)] + reading.h * rate) * sprung
    gain = torch.where(kinds == POSITION, kp, torch.where(kinds == VELOCITY, kd, torch.ones_like(kd)))
    f = gain * u - kp * length - kd * rate
    if t.general:
        general = reading.index(t.general)
        own = reading.param("control_gain") * u[..., general] + reading.param("control_bias")
        f = f.index_copy(-1, general, f[..., general] - u[..., general] + own)
    f = _clamped(reading, f, model.bound, "force")
    if not t.solved:
        return f
    solved = reading.info.rows.impulse[..., reading.index(t.rows)] / reading.h
    return f.index_copy(-1, reading.index(t.solved), solved)


def _clamped(reading: Reading, x: Tensor, index: tuple[int, ...], field: str) -> Tensor:
    """x [*batch, nu] within the limits of those actuators that have some."""
    limited = [k for k, i in enumerate(index) if i >= 0]
    if not limited:
        return x
    some, at = reading.index(limited), reading.index(index[k] for k in limited)
    low, high = (reading.param(f"{field}_{end}")[..., at] for end in ("lower", "upper"))
    inside = torch.clamp(x[..., some], low, high)
    return x.index_copy(-1, some, inside)


def _guarded(reading: Reading, x: Tensor, rows: bool, kind: str, what: str) -> Tensor:
    """x, of which backward passes raise where it was read from rows that have no gradient."""
    if not rows or not reading.acceleration.requires_grad or reading.info.rows.impulse.requires_grad:
        return x
    return without_gradient(x, reading.acceleration, _ROW.format(kind=kind, what=what))


def _split(reading: Reading, x: Tensor, columns: list[int], solved: list[int], kind: str) -> Tensor:
    """The columns of x, those that are `solved` guarded, and only those."""
    chosen = x[..., reading.index(columns)]
    guarded = [i for i, k in enumerate(columns) if k in solved]
    if not guarded:
        return chosen
    rows, what = reading.index(guarded), "servos, and of actuators on constraints"
    return chosen.index_copy(-1, rows, _guarded(reading, chosen[..., rows], True, kind, what))


@dataclass(frozen=True)
class ActuatorForce(Sensor):
    """Forces of actuators before their gear, N or N m, over the step; with `control`.

    Those of servos, and of springs and dampers on constraints, have no gradient: a backward pass through them raises.

    Parameters
    ----------
    motors : names of actuators; None: all.
    """

    motors: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        names = model.motor_names if self.motors is None else as_names(self.kind, self.motors)
        if not names:
            raise ValueError(f"{self.kind}: the model has no actuators")
        for name in names:
            if name not in model.motor_names:
                raise ValueError(f"{self.kind}: no motor named {name!r}; {suggest(name, model.motor_names)}")
        columns, solved = [model.motor(name) for name in names], _tables(model).solved

        def read(reading: Reading) -> Tensor:
            return _split(reading, reading.once(actuator_forces), columns, solved, self.kind)

        return Bound(tuple(names), "N, N m", read, forces=True)


@dataclass(frozen=True)
class JointTorque(Sensor):
    """Forces or torques that actuators exert on joints, N or N m: gear times force, all actuators of a dof together.

    Parameters
    ----------
    joints : as of `Encoder`. One number per dof; zero where nothing drives it. Gradients as of `ActuatorForce`.
    """

    joints: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        words: list[str] = []
        drives: list[list[int]] = []  # the motors of each number
        for x in find_driven(model, self.kind, self.joints):
            if x.joint < 0:
                drives.append([k for k, tie in enumerate(model.motor_tie) if tie == x.tie])
                words.append(x.name)
                continue
            count, start = JOINTS[model.joint_type[x.joint]].nv, model.v_address[x.joint]
            drives += [[k for k, d in enumerate(model.motor_dof) if d == start + i] for i in range(count)]
            words += numbered(x.name, count)
        solved = _tables(model).solved
        sums = tuple(tuple(float(k in motors) for k in range(model.nu)) for motors in drives)
        rows = [i for i, motors in enumerate(drives) if any(k in solved for k in motors)]

        def read(reading: Reading) -> Tensor:
            force = reading.param("gear") * reading.once(actuator_forces)
            joint = (reading.constant(sums) @ force.unsqueeze(-1)).squeeze(-1)
            return _split(reading, joint, list(range(len(words))), rows, self.kind)

        return Bound(tuple(words), "N, N m", read, forces=True)


@dataclass(frozen=True)
class LimitForce(Sensor):
    """Forces with which limits push joints back, N or N m, 0 or more; without gradient: a backward pass raises.

    Parameters
    ----------
    joints : names of joints with limits; None: all that have some, but ball joints.
    """

    joints: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        found, limits = find_limits(model, self.kind, self.joints)
        before = len(model.dry_dof) + len(row_motors(model))
        rows = [before + i for i in limits]

        def read(reading: Reading) -> Tensor:
            force = reading.info.rows.impulse[..., reading.index(rows)] / reading.h
            return _guarded(reading, force, True, self.kind, "joint limits")

        return Bound(tuple(x.name for x in found), "N, N m", read, forces=True)
