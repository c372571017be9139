"""Sensors of what drives: forces of actuators, on joints, and of joint limits.

With gear g, coordinate x of the joint, length L = g (x + h v+) and rate g v+ at the end of the step, and the clipped control u:
    f = gain u + bias - kp L - kd g v+,     gain: 1 of motors, kp of position, kd of velocity, their own of general actuators
kept in its force limits. Servos, and all that drive a constraint, are rows of the engine, and f = impulse / h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.info import row_motors
from costate.scene.codes import GENERAL, MOTOR, POSITION, SERVO, VELOCITY
from costate.scene.joints import JOINTS
from costate.scene.names import suggest
from costate.sensors.guard import without_gradient
from costate.sensors.joints import find_driven, find_limits, numbered
from costate.sensors.sensor import Bound, Names, Sensor, as_names
from costate.sensors.tables import Table, indices

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_ROW = "{kind}: the engine gives no gradient of the forces of {what}. Give the sensor detach=True to go on without it"


class _Drives:
    """Which actuators are what; made once for a model."""

    def __init__(self, model: Model) -> None:
        numbers = {k: len(model.dry_dof) + i for i, k in enumerate(row_motors(model))}
        kinds = list(zip(model.actuator_type, model.motor_tie, strict=True))
        self.solved = [k for k, (code, tie) in enumerate(kinds) if code == SERVO or (tie >= 0 and code != MOTOR)]
        self.all_solved = len(self.solved) == len(kinds)
        coordinate, sprung = [], []
        for d, tie in zip(model.motor_dof, model.motor_tie, strict=True):
            body = model.dof_body[d] if tie < 0 else -1
            start = d - model.v_address[body] if tie < 0 else 0
            sprung.append(tie < 0 and JOINTS[model.joint_type[body]].has_coordinate(start))
            coordinate.append(model.q_address[body] + start if sprung[-1] else 0)
        general = [k for k, (code, _) in enumerate(kinds) if code == GENERAL]
        self.solved_at, self.rows = indices(self.solved), indices(numbers[k] for k in self.solved)
        self.dof = indices(max(d, 0) for d in model.motor_dof)  # 0 of those on constraints
        self.coordinate, self.sprung = indices(coordinate), Table(tuple(sprung), torch.bool)  # 0, False where there is none
        self.general = indices(general) if general else None
        self.springs, self.dampers = (
            Table(tuple(code == kind for code, _ in kinds), torch.bool) for kind in (POSITION, VELOCITY)
        )
        self.clip, self.bound = (_limits(index) for index in (model.clip, model.bound))


def _limits(index: Sequence[int]) -> tuple[Table, Table] | None:
    """Those actuators that have limits, and where these are."""
    limited = [k for k, i in enumerate(index) if i >= 0]
    return (indices(limited), indices(index[k] for k in limited)) if limited else None


def _drives(model: Model) -> _Drives:
    known = model.__dict__
    if "_drives" not in known:
        known["_drives"] = _Drives(model)
    return known["_drives"]


def actuator_forces(reading: Reading) -> Tensor:
    """Forces [*batch, nu] before the gear, N or N m. Those of rows come without gradient, see `_guarded`."""
    d = _drives(reading.model)
    if d.all_solved:
        return _solved(reading, d)
    u = _clamped(reading, reading.control, d.clip, "control")
    gear, kp, kd = (reading.param(name) for name in ("gear", "kp", "kd"))
    rate = gear * (reading.v + reading.h * reading.acceleration).index_select(-1, d.dof.like(u))
    length = (gear * reading.q.index_select(-1, d.coordinate.like(u)) + reading.h * rate) * d.sprung.like(u)
    gain = torch.where(d.springs.like(u), kp, torch.where(d.dampers.like(u), kd, torch.ones_like(kd)))
    f = gain * u - kp * length - kd * rate
    if d.general is not None:
        general = d.general.like(u)
        chosen = u.index_select(-1, general)
        own = reading.param("control_gain") * chosen + reading.param("control_bias")
        f = f.index_copy(-1, general, f.index_select(-1, general) - chosen + own)
    f = _clamped(reading, f, d.bound, "force")
    return f.index_copy(-1, d.solved_at.like(f), _solved(reading, d)) if d.solved else f


def _solved(reading: Reading, d: _Drives) -> Tensor:
    """Forces of those that are rows of the engine."""
    return reading.info.rows.impulse.index_select(-1, d.rows.like(reading.q)) / reading.h


def _clamped(reading: Reading, x: Tensor, limits: tuple[Table, Table] | None, field: str) -> Tensor:
    """x [*batch, nu] within the limits of those actuators that have some."""
    if limits is None:
        return x
    some, at = (table.like(x) for table in limits)
    low, high = (reading.param(f"{field}_{end}").index_select(-1, at) for end in ("lower", "upper"))
    return x.index_copy(-1, some, torch.clamp(x.index_select(-1, some), low, high))


def _guarded(reading: Reading, x: Tensor, kind: str, what: str) -> Tensor:
    """x, of which backward passes raise, since it was read from rows that have no gradient."""
    if not reading.acceleration.requires_grad or reading.info.rows.impulse.requires_grad:
        return x
    return without_gradient(x, reading.acceleration, _ROW.format(kind=kind, what=what))


class _Guard:
    """Numbers of a sensor, of which those that are `solved` have no gradient, and only those.

    detach : whether the sensor has none anyway.
    """

    def __init__(self, solved: Sequence[bool], kind: str, detach: bool) -> None:
        self._rows = [] if detach else [i for i, no_gradient in enumerate(solved) if no_gradient]
        self._all, self._at, self._kind = len(self._rows) == len(solved), indices(self._rows), kind

    def __call__(self, reading: Reading, x: Tensor) -> Tensor:
        what = "servos, and of actuators on constraints"
        if not self._rows or self._all:
            return _guarded(reading, x, self._kind, what) if self._all else x
        rows = self._at.like(x)
        return x.index_copy(-1, rows, _guarded(reading, x.index_select(-1, rows), self._kind, what))


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
        columns, solved = [model.motor(name) for name in names], _drives(model).solved
        guard = _Guard([k in solved for k in columns], self.kind, self.detach)
        chosen = None if columns == list(range(model.nu)) else indices(columns)

        def read(reading: Reading) -> Tensor:
            force = reading.once(actuator_forces)
            return guard(reading, force if chosen is None else force.index_select(-1, chosen.like(force)))

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
        solved = _drives(model).solved
        sums = Table(tuple(tuple(float(k in motors) for k in range(model.nu)) for motors in drives))
        guard = _Guard([any(k in solved for k in motors) for motors in drives], self.kind, self.detach)

        def read(reading: Reading) -> Tensor:
            force = reading.param("gear") * reading.once(actuator_forces)
            return guard(reading, (sums.like(force) @ force.unsqueeze(-1)).squeeze(-1))

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
        rows = indices(before + i for i in limits)

        def read(reading: Reading) -> Tensor:
            force = reading.info.rows.impulse.index_select(-1, rows.like(reading.q)) / reading.h
            return _guarded(reading, force, self.kind, "joint limits")

        return Bound(tuple(x.name for x in found), "N, N m", read, forces=True)
