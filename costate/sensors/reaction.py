"""Sensors of what goes through a joint: force and torque between a body and its parent, from the balance of all that hangs on it.

    f = sum m (a - g) - external - contacts           over the body and what hangs on it,
    n = sum (c - x) x m (a - g) + d/dt (I w) - external and contacts about x,        x the sensor
What acts between bodies of the sum cancels. Inertia of rotors (armature) has no place in space and is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from costate.autodiff.torch import transforming
from costate.batch import capturing
from costate.rotation import inverse, rotate
from costate.sensors.contact import Sides, contact_forces, signs
from costate.sensors.frames import FrameSensor
from costate.sensors.guard import without_gradient
from costate.sensors.motion import accelerations, point_accelerations
from costate.sensors.places import Frames, Places, find_places
from costate.sensors.sensor import Bound, as_names
from costate.sensors.subtree import angular_momentum, masses, subtrees

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_POINT = (
    "{kind}: the engine gives no gradient of the points of contacts, so that this one would be incomplete while "
    "something touches. Give the sensor detach=True; ReactionForce has its full gradient"
)
cross = torch.linalg.cross


class Needs(NamedTuple):
    """What every body needs to move as it does, without what pushes it from outside: [*batch, nb, 3], world axes."""

    force: Tensor  # N
    torque: Tensor  # N m, about its centre of mass
    com: Tensor  # m


def needs(reading: Reading) -> Needs:
    """m (a - g) and d/dt (I w) of every body, less the external forces."""
    m, bodies = reading.once(masses), reading.bodies
    spin = bodies.spin[..., :-1, :]
    at = Frames(m.com, bodies.quaternion[..., :-1, :], spin, m.velocity)
    every = torch.arange(reading.model.nb, device=spin.device)
    felt = point_accelerations(reading, every, at) - reading.param("gravity").unsqueeze(-2)
    turned = rotate(inverse(at.quaternion), reading.once(accelerations).angular[..., :-1, :])
    torque = rotate(at.quaternion, (m.inertia @ turned.unsqueeze(-1)).squeeze(-1)) + cross(spin, angular_momentum(reading, m))
    force = m.mass * felt
    if reading.external is not None:
        torque, force = torque - reading.external[..., :3], force - reading.external[..., 3:]
    return Needs(force, torque, m.com)


class ReactionSensor(FrameSensor):
    """A sensor of what goes through the joint of the body that carries it.

    A constraint that ties what hangs on the body to something else is refused: it cannot be told apart from the joint.
    """

    forces = True

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        places = find_places(model, self.kind, as_names(self.kind, self.at))
        for name, row in zip(places.names, subtrees(model, places.body), strict=True):
            for tie, a, b in zip(model.tie_names, model.tie_a, model.tie_b, strict=True):
                if (a >= 0 and bool(row[a])) != (b >= 0 and bool(row[b])):
                    raise ValueError(f"{self.kind}: constraint {tie!r} ties {name!r}, or what hangs on it, to something else")
        return super().bind(model)


class ReactionForce(ReactionSensor):
    """The force through a joint, from the parent on the body that carries the sensor, in the sensor's axes, N."""

    unit = "N"

    def _measure(self, reading: Reading, places: Places, at: Frames) -> Tensor:
        return rotate(inverse(at.quaternion), _forces(reading, places))


class ReactionTorque(ReactionSensor):
    """The torque through a joint about the sensor, from the parent on the body that carries it, in the sensor's axes, N m.

    Has no gradient while anything touches what hangs on the body: a backward pass raises.
    """

    unit = "N m"

    def _measure(self, reading: Reading, places: Places, at: Frames) -> Tensor:
        need, within = reading.once(needs), reading.constant(subtrees(reading.model, places.body))
        arm = need.com.unsqueeze(-3) - at.position.unsqueeze(-2)  # [*batch, n, nb, 3]
        moment = need.torque.unsqueeze(-3) + cross(arm, need.force.unsqueeze(-3).expand_as(arm))
        torque = (within.unsqueeze(-1) * moment).sum(-2)
        c, sign = reading.info.contacts, signs(reading, _touched(reading.model, places))
        if c.active.shape[-1]:
            h = reading.h.unsqueeze(-1) if reading.h.ndim else reading.h
            arm = c.point.unsqueeze(-2) - at.position.unsqueeze(-3)  # [*batch, slots, n, 3]
            pushed = sign.unsqueeze(-1) * cross(arm, c.impulse.unsqueeze(-2).expand_as(arm))
            torque = torque - pushed.sum(-3) / h
            unknown = torque.requires_grad and not c.point.requires_grad
            if unknown and (transforming() or capturing(sign) or bool((sign != 0).any())):
                torque = without_gradient(torque, reading.acceleration, _POINT.format(kind=self.kind))
        return rotate(inverse(at.quaternion), torque)


def _forces(reading: Reading, places: Places) -> Tensor:
    """[*batch, n, 3] through the joints, world axes."""
    need, within = reading.once(needs), reading.constant(subtrees(reading.model, places.body))
    force = within @ need.force
    if not len(reading.model.pairs):
        return force
    return force - contact_forces(reading, _touched(reading.model, places))


def _touched(model: Model, places: Places) -> Sides:
    """The shapes of everything that hangs on the bodies of places, against all others."""
    within = subtrees(model, places.body)
    member = tuple(tuple(row[body] if body >= 0 else 0.0 for row in within) for body in (*model.shape_body, -1))
    return Sides(member, (1.0,) * len(member), flat=False)
