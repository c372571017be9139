"""Sensors of contact: touch, and the force that others exert on shapes and bodies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from costate.autodiff.torch import transforming
from costate.batch import capturing
from costate.devices import constant
from costate.rotation import normalise
from costate.scene.names import WORLD
from costate.sensors.guard import without_gradient
from costate.sensors.places import find_places
from costate.sensors.sensor import XYZ, Bound, Names, Part, Sensor, as_names, labels
from costate.sensors.sides import Sides, Signs, contact_forces, contact_normals, find_sides, pushes, unknown_normals

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_NORMAL = (
    "{kind}: the engine gives no gradient of the normals of contacts between other shapes than planes, so that this one would be "
    "incomplete. Give the sensor detach=True, or read ContactForce in world axes, which has its full gradient"
)


def guarded(reading: Reading, x: Tensor, sides: Sides, kind: str) -> Tensor:
    """x [*batch, n], whose gradient is not known where a contact whose normal has none plays a part."""
    if sides.flat or not x.requires_grad:
        return x
    if not (transforming() or capturing(x)):
        touching = (reading.shared(Signs, sides) != 0).any(-1)
        if not bool((touching & reading.once(unknown_normals)).any()):
            return x
    return without_gradient(x, reading.acceleration, _NORMAL.format(kind=kind))


@dataclass(frozen=True)
class Touch(Sensor):
    """Sum of the normal forces of all contacts of a shape or body, N, 0 or more; the mean over the step.

    Its gradient is exact for contacts with planes; the normals of others have none, and a backward pass raises.

    Parameters
    ----------
    of : names of bodies or shapes; "body:name" and "shape:name" where both have it.
    against : names of what must touch; None: anything.
    """

    of: Names
    _: KW_ONLY
    against: Names | None = None

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        names = as_names(self.kind, self.of)
        sides = find_sides(model, self.kind, names, self.against)

        def read(reading: Reading) -> Tensor:
            pressure = (reading.once(pushes) * reading.once(contact_normals)).sum(-1, keepdim=True)
            force = (reading.shared(Signs, sides).abs() * pressure).sum(-2)
            return guarded(reading, force, sides, self.kind)

        return Bound(names, "N", read, forces=True, asks=((Signs, sides),))


@dataclass(frozen=True)
class ContactForce(Sensor):
    """The force of all contacts on a shape or body, N; the mean over the step.

    Parameters
    ----------
    of, against : as of `Touch`. With one body each it is the force of that pair.
    axes : "world"; or the name of a site or body, in its axes; or "contact": first the normal force (0 or more), then the force
        along the world's x, made tangential to the contact (along y where the normal is nearer to x than to y and z), and along
        normal x tangent. On level ground that is z, x, y. The gradients of "contact" are those of `Touch`.
    """

    of: Names
    _: KW_ONLY
    against: Names | None = None
    axes: str | Literal["world", "contact"] = WORLD

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        names = as_names(self.kind, self.of)
        sides = find_sides(model, self.kind, names, self.against)
        ask = (Signs, sides)
        if self.axes == "contact":
            parts = ("normal", "tangent", "tangent 2")
            return Bound(labels(names, parts), "N", lambda reading: self._in_contact(reading, sides), forces=True, asks=(ask,))
        axes = None if self.axes == WORLD else find_places(model, f"{self.kind}: axes", (self.axes,))
        part = Part(lambda reading: contact_forces(reading, sides), axes)
        return Bound(labels(names, XYZ), "N", (part,), forces=True, asks=(ask,))

    def _in_contact(self, reading: Reading, sides: Sides) -> Tensor:
        # the normal that points at the group; where two groups touch each other each has its own
        sign = reading.shared(Signs, sides).unsqueeze(-1)
        n, force = (sign * reading.once(f).unsqueeze(-2) for f in (contact_normals, pushes))  # [*batch, slots, n, 3]
        along = _tangent(n)
        parts = torch.stack([(force * axis).sum(-1) for axis in (n, along, torch.linalg.cross(n, along))], -1).sum(-3)
        return guarded(reading, parts.flatten(-2), sides, self.kind)


def _tangent(n: Tensor) -> Tensor:
    """Unit vectors across n [..., 3]: x made perpendicular, or y where n is nearer to x than to both others; 0 where n is."""
    across = n[..., :1].abs() > n[..., 1:].abs().amax(-1, keepdim=True)
    axis = torch.where(across, constant((0.0, 1.0, 0.0), n), constant((1.0, 0.0, 0.0), n))
    t = axis - (axis * n).sum(-1, keepdim=True) * n
    none = ~n.bool().any(-1, keepdim=True)
    return torch.where(none, torch.zeros_like(t), normalise(torch.where(none, torch.ones_like(t), t)))
