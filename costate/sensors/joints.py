"""Sensors of joints: encoders, their rates, and how far a joint is from its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from costate.rotation import normalise
from costate.scene.codes import NO_AXIS
from costate.scene.joints import JOINTS, Ball, Free, Prismatic
from costate.scene.names import suggest
from costate.sensors.hinges import coordinates, rates
from costate.sensors.places import FramesOf, Places
from costate.sensors.sensor import Bound, Names, Part, Sensor, as_names
from costate.sensors.tables import indices

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


class Driven(NamedTuple):
    """What moves: a joint, or a hinge or slide constraint."""

    name: str
    joint: int  # -1: a constraint
    tie: int  # -1: a joint


def find_driven(model: Model, where: str, names: Names | None) -> list[Driven]:
    """Joints and hinge or slide constraints by name; None: all of them, but no free bodies. `where` starts error messages."""
    ties = {name: i for i, name in enumerate(model.tie_names) if model.tie_axis[i] != NO_AXIS}
    if names is None:
        moving = [i for i, code in enumerate(model.joint_type) if JOINTS[code].nv and JOINTS[code] is not Free]
        every = [Driven(model.joint_names[i], i, -1) for i in moving] + [Driven(name, -1, i) for name, i in ties.items()]
        if not every:
            raise ValueError(f"{where}: the model has no joint but free and fixed ones; name the joints to be read")
        return every
    found: list[Driven] = []
    for name in as_names(where, names):
        joints = model.joint_names if name in model.joint_names else model.body_names
        if name in joints and name not in ties:
            found.append(Driven(name, joints.index(name), -1))
        elif name in ties and name not in model.joint_names:
            found.append(Driven(name, -1, ties[name]))
        elif name in ties:
            raise ValueError(f"{where}: {name!r} is a joint and a constraint; give one of them another name")
        else:
            raise ValueError(f"{where}: no joint, hinge or slide named {name!r}; {suggest(name, (*model.joint_names, *ties))}")
        if found[-1].joint >= 0 and JOINTS[model.joint_type[found[-1].joint]].nv == 0:
            raise ValueError(f"{where}: {name!r} is a fixed joint, it has nothing to read")
    return found


def numbered(name: str, count: int) -> tuple[str, ...]:
    """The name, or with a number behind it where there are several."""
    return (name,) if count == 1 else tuple(f"{name} {i}" for i in range(count))


@dataclass(frozen=True)
class Encoder(Sensor):
    """Positions of joints, as in q: rad or m, quaternions of ball joints; angles of hinge and displacements of slide constraints.

    An angle of a hinge constraint is known between -pi and pi only.

    Parameters
    ----------
    joints : names of joints (or of their bodies) and of hinge and slide constraints; None: all but free joints.
    """

    joints: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        found = find_driven(model, self.kind, self.joints)
        whole = any(x.joint >= 0 and JOINTS[model.joint_type[x.joint]].quaternion is not None for x in found)
        source = unit_coordinates if whole else _q  # without quaternions among them q will do
        return _encoder(model, found, source, model.q_address, "nq", coordinates, _unit(model, found, ""))


@dataclass(frozen=True)
class EncoderRate(Sensor):
    """Velocities of joints, as in v (rad/s, m/s), and of hinge and slide constraints.

    Parameters
    ----------
    joints : as of `Encoder`.
    """

    joints: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        found = find_driven(model, self.kind, self.joints)
        return _encoder(model, found, _v, model.v_address, "nv", rates, _unit(model, found, "/s"))


def _encoder(
    model: Model, found: Sequence[Driven], source: Callable[[Reading], Tensor], address: Sequence[int], size: str,
    of_ties: Callable[[Model, Sequence[int], Sequence[int]], tuple[list[Part], list[Places]]], unit: str,
) -> Bound:  # fmt: skip
    """Numbers of joints, `size` of each from its `address` on in the source, and those of ties."""
    columns: list[int] = []
    here: list[int] = []  # which numbers of the sensor they are
    there: dict[int, int] = {}  # and those of ties
    words: list[str] = []
    for x in found:
        count = 1 if x.joint < 0 else getattr(JOINTS[model.joint_type[x.joint]], size)
        if x.joint < 0:
            there[x.tie] = len(words)
        else:
            columns += range(address[x.joint], address[x.joint] + count)
            here += range(len(words), len(words) + count)
        words += numbered(x.name, count)
    parts, places = of_ties(model, list(there), list(there.values()))
    if columns:
        chosen = indices(columns)
        read = Part(lambda reading: reading.once(source).index_select(-1, chosen.like(reading.q)), goes_to=tuple(here))
        parts = [read, *parts]
    return Bound(tuple(words), unit, tuple(parts), asks=tuple((FramesOf, x) for x in places))


@dataclass(frozen=True)
class LimitDistance(Sensor):
    """How far joints are from the nearer one of their limits (rad or m), negative beyond it. Kink: halfway between both.

    Parameters
    ----------
    joints : names of joints with limits; None: all that have some, but ball joints.
    """

    joints: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        found, rows = find_limits(model, self.kind, self.joints)
        columns, at = indices(model.q_address[x.joint] for x in found), indices(rows)

        def read(reading: Reading) -> Tensor:
            q, some = reading.q.index_select(-1, columns.like(reading.q)), at.like(reading.q)
            lower, upper = (reading.param(name).index_select(-1, some) for name in ("limit_lower", "limit_upper"))
            return torch.minimum(q - lower, upper - q)

        return Bound(tuple(x.name for x in found), _unit(model, found, ""), read)


def find_limits(model: Model, where: str, names: Names | None) -> tuple[list[Driven], list[int]]:
    """Joints of one dof that have limits, and their places among all limits."""
    balls = [i for i in model.limit_body if JOINTS[model.joint_type[i]] is Ball]
    limited = [i for i in model.limit_body if i not in balls]
    names = [model.joint_names[i] for i in limited] if names is None else names
    if not names:
        raise ValueError(f"{where}: the model has no revolute or prismatic joint with limits")
    found = find_driven(model, where, names)
    for x in found:
        if x.joint not in limited:
            raise ValueError(f"{where}: {x.name!r} must be a revolute or prismatic joint with limits")
    return found, [model.limit_body.index(x.joint) for x in found]


def _q(reading: Reading) -> Tensor:
    return reading.q


def _v(reading: Reading) -> Tensor:
    return reading.v


def unit_coordinates(reading: Reading) -> Tensor:
    """q with unit quaternions."""
    model, q = reading.model, reading.q
    starts = [
        at + kind.quaternion
        for kind, at in zip((JOINTS[code] for code in model.joint_type), model.q_address, strict=True)
        if kind.quaternion is not None
    ]
    if not starts:
        return q
    columns = reading.index(at + i for at in starts for i in range(4))
    unit = normalise(q[..., columns].unflatten(-1, (-1, 4))).flatten(-2)
    return q.index_copy(-1, columns, unit)


def _unit(model: Model, found: Sequence[Driven], per: str) -> str:
    slides = {x.joint >= 0 and JOINTS[model.joint_type[x.joint]] is Prismatic for x in found}
    if any(x.tie >= 0 or model.joint_type[x.joint] >= Free.code for x in found) or len(slides) > 1:
        return f"rad{per}, m{per}"
    return f"m{per}" if slides == {True} else f"rad{per}"
