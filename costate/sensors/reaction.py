"""Sensors of what goes through a joint: force and torque between a body and its parent, from the balance of all that hangs on it.

    f = sum m (a - g) - external - contacts           over the body and what hangs on it,
    n = sum (c - x) x m (a - g) + d/dt (I w) - external and contacts about x,        x the sensor
What acts between bodies of the sum cancels. Inertia of rotors (armature) has no place in space and is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from costate.autodiff.torch import transforming
from costate.batch import capturing
from costate.sensors.frames import FrameSensor
from costate.sensors.guard import without_gradient
from costate.sensors.motion import AngularAccelerations, PointAccelerations
from costate.sensors.places import FramesOf, Places, all_bodies, find_places, frames
from costate.sensors.sensor import Asks, Bound, as_names
from costate.sensors.sides import Sides, Signs, contact_forces, pushes
from costate.sensors.subtree import angular_momentum, masses, subtrees
from costate.sensors.tables import Table
from costate.sensors.turning import cross, turn, turn_back

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_POINT = (
    "{kind}: the engine gives no gradient of the points of contacts, so that this one would be incomplete while "
    "something touches. Give the sensor detach=True; ReactionForce has its full gradient"
)


class Needs(NamedTuple):
    """What every body needs to move as it does, without what pushes it from outside: [*batch, nb, 3], world axes."""

    force: Tensor  # N
    torque: Tensor  # N m, about its centre of mass
    com: Tensor  # m


def needs(reading: Reading) -> Needs:
    """m (a - g) and d/dt (I w) of every body, less the external forces."""
    m, bodies, model = reading.once(masses), reading.bodies, reading.model
    spin, quaternion = bodies.spin[..., :-1, :], bodies.quaternion[..., :-1, :]
    felt = reading.shared(PointAccelerations, all_bodies(model, "com")) - reading.param("gravity").unsqueeze(-2)
    turned = turn_back(quaternion, reading.shared(AngularAccelerations, all_bodies(model, "body")))
    torque = turn(quaternion, (m.inertia @ turned.unsqueeze(-1)).squeeze(-1)) + cross(spin, angular_momentum(reading, m))
    force = m.mass * felt
    if reading.external is not None:
        torque, force = torque - reading.external[..., :3], force - reading.external[..., 3:]
    return Needs(force, torque, m.com)


class _Hanging(NamedTuple):
    """What hangs on the bodies of places."""

    within: Table  # [n, nb] 1 where a body does
    touched: Sides  # their shapes, against all others


def _hanging(model: Model, places: Places) -> _Hanging:
    """Made once for a model and places."""
    known: dict[Places, _Hanging] = model.__dict__.setdefault("_hanging", {})
    if places not in known:
        within = subtrees(model, places.body)
        member = tuple(tuple(row[body] if body >= 0 else 0.0 for row in within) for body in (*model.shape_body, -1))
        known[places] = _Hanging(Table(within), Sides(member, None, flat=False))
    return known[places]


class ReactionSensor(FrameSensor):
    """A sensor of what goes through the joint of the body that carries it.

    A constraint that ties what hangs on the body to something else is refused: it cannot be told apart from the joint.
    """

    own_axes, forces = True, True

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        places = find_places(model, self.kind, as_names(self.kind, self.at))
        for name, row in zip(places.names, subtrees(model, places.body), strict=True):
            for tie, a, b in zip(model.tie_names, model.tie_a, model.tie_b, strict=True):
                if (a >= 0 and bool(row[a])) != (b >= 0 and bool(row[b])):
                    raise ValueError(f"{self.kind}: constraint {tie!r} ties {name!r}, or what hangs on it, to something else")
        return super().bind(model)

    def _asks(self, model: Model, places: Places) -> Asks:
        coms, bodies = (all_bodies(model, kind) for kind in ("com", "body"))
        every = ((FramesOf, coms), (PointAccelerations, coms), (AngularAccelerations, bodies))
        return (*super()._asks(model, places), *every, (Signs, _hanging(model, places).touched))


class ReactionForce(ReactionSensor):
    """The force through a joint, from the parent on the body that carries the sensor, in the sensor's axes, N."""

    unit = "N"

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        within, touched = _hanging(reading.model, places)
        force = within.like(reading.q) @ reading.once(needs).force
        return force - contact_forces(reading, touched) if len(reading.model.pairs) else force


class ReactionTorque(ReactionSensor):
    """The torque through a joint about the sensor, from the parent on the body that carries it, in the sensor's axes, N m.

    Has no gradient while anything touches what hangs on the body: a backward pass raises.
    """

    unit = "N m"

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        need, (within, touched), x = reading.once(needs), _hanging(reading.model, places), frames(reading, places).position
        arm = need.com.unsqueeze(-3) - x.unsqueeze(-2)  # [*batch, n, nb, 3]
        moment = need.torque.unsqueeze(-3) + cross(arm, need.force.unsqueeze(-3))
        torque = (within.like(x).unsqueeze(-1) * moment).sum(-2)
        c = reading.info.contacts
        if not c.active.shape[-1]:
            return torque
        sign = reading.shared(Signs, touched)
        arm = c.point.unsqueeze(-2) - x.unsqueeze(-3)  # [*batch, slots, n, 3]
        torque = torque - (sign.unsqueeze(-1) * cross(arm, reading.once(pushes).unsqueeze(-2))).sum(-3)
        unknown = torque.requires_grad and not c.point.requires_grad
        if unknown and (transforming() or capturing(sign) or bool((sign != 0).any())):
            return without_gradient(torque, reading.acceleration, _POINT.format(kind=self.kind))
        return torque
