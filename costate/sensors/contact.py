"""Sensors of contact: touch, and the force that others exert on shapes and bodies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from costate.autodiff.torch import transforming
from costate.batch import capturing
from costate.devices import constant
from costate.rotation import inverse, multiply, normalise, rotate
from costate.scene.codes import PLANE
from costate.scene.names import WORLD, suggest
from costate.sensors.guard import without_gradient
from costate.sensors.places import find_places, frames
from costate.sensors.sensor import XYZ, Bound, Names, Sensor, as_names, labels

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading

_NORMAL = (
    "{kind}: the engine gives no gradient of the normals of contacts between other shapes than planes, so that this one would be "
    "incomplete. Give the sensor detach=True, or read ContactForce in world axes, which has its full gradient"
)


class Sides(NamedTuple):
    """Groups of shapes, and what may touch them."""

    member: tuple[tuple[float, ...], ...]  # [shapes + 1, n] 1 where a shape is of a group; the last row is for empty slots
    other: tuple[float, ...]  # [shapes + 1] 1 where a shape counts as what touches
    flat: bool  # whether all that can touch are planes


def find_sides(model: Model, where: str, names: tuple[str, ...], against: Names | None) -> Sides:
    """The shapes of bodies and shapes by name; `where` starts error messages."""
    groups = [_shapes(model, where, name) for name in names]
    count = len(model.shape_names)
    others = range(count) if against is None else {i for name in as_names(where, against) for i in _shapes(model, where, name)}
    rows = range(count + 1)
    member = tuple(tuple(float(i in group) for group in groups) for i in rows)
    planes, members = {i for i, code in enumerate(model.shape_type) if code == PLANE}, set().union(*groups)
    flat = all(planes & {a, b} for a, b in model.pairs.tolist() if members & {a, b})
    return Sides(member, tuple(float(i in others) for i in rows), flat)


def _shapes(model: Model, where: str, name: str) -> list[int]:
    """The shapes of a body, of the world, or the one of this name."""
    bodies = (*model.body_names, WORLD)
    kind, colon, rest = name.partition(":")
    if name in bodies and name in model.shape_names:
        raise ValueError(f"{where}: {name!r} is a body and a shape; write 'body:{name}' or 'shape:{name}'")
    if name not in bodies and name not in model.shape_names and colon and kind in ("body", "shape"):
        name = rest
    else:
        kind = "body" if name in bodies else "shape"
    if name not in (bodies if kind == "body" else model.shape_names):
        raise ValueError(
            f"{where}: no body, and no shape that may touch another, is named {name!r}; "
            f"{suggest(name, (*bodies, *model.shape_names))}"
        )
    if kind == "shape":
        return [model.shape(name)]
    index = -1 if name == WORLD else model.body(name)
    found = [i for i, body in enumerate(model.shape_body) if body == index]
    if not found:
        raise ValueError(f"{where}: body {name!r} has no shape that may touch another")
    return found


def signs(reading: Reading, sides: Sides) -> Tensor:
    """[*batch, slots, n]: 1 where a group is shape b of a contact, -1 where it is shape a; 0 where it is neither or both."""
    c, member, other = reading.info.contacts, reading.constant(sides.member), reading.constant(sides.other)
    return member[c.shape_b] * other[c.shape_a].unsqueeze(-1) - member[c.shape_a] * other[c.shape_b].unsqueeze(-1)


def contact_forces(reading: Reading, sides: Sides) -> Tensor:
    """[*batch, n, 3] N on every group, world axes."""
    force = signs(reading, sides).mT @ reading.info.contacts.impulse
    return force / reading.h.unsqueeze(-1) if reading.h.ndim else force / reading.h


def plane_normals(reading: Reading) -> tuple[Tensor, Tensor]:
    """Normals of contacts, from a to b [*batch, slots, 3], and whether each is that of a plane, which carries gradients."""
    model, c = reading.model, reading.info.contacts
    planes = [i for i, code in enumerate(model.shape_type) if code == PLANE]
    if not planes or c.normal.requires_grad:
        return c.normal, torch.full_like(c.active, c.normal.requires_grad)
    on, some = reading.index(model.shape_body[i] for i in planes), reading.index(planes)
    turn = multiply(reading.bodies.quaternion[..., on, :], normalise(reading.param("shape_quat")[..., some, :]))
    up = rotate(turn, reading.constant((0.0, 0.0, 1.0)))  # [*batch, planes, 3]
    which = reading.index(planes.index(i) if i in planes else -1 for i in range(len(model.shape_names) + 1))
    index = which[c.shape_a].unsqueeze(-1)  # a plane is always shape a
    on_plane = index[..., 0] >= 0
    of_plane = up.gather(-2, index.clamp(min=0).expand(*c.shape_a.shape, 3))
    return torch.where(on_plane.unsqueeze(-1), of_plane, c.normal), on_plane


def guarded(reading: Reading, x: Tensor, sides: Sides, unknown: Tensor, kind: str) -> Tensor:
    """x [*batch, n], whose gradient is not known where any contact of `unknown` [*batch, slots] plays a part."""
    if sides.flat or not x.requires_grad or not (transforming() or capturing(x) or bool(unknown.any())):
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
            normal, known = reading.once(plane_normals)
            pressure = (reading.info.contacts.impulse * normal).sum(-1)
            part = signs(reading, sides).abs()
            force = (part.mT @ pressure.unsqueeze(-1)).squeeze(-1) / reading.h
            return guarded(reading, force, sides, (part != 0).any(-1) & ~known, self.kind)

        return Bound(names, "N", read, forces=True)


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
        if self.axes == "contact":
            parts = ("normal", "tangent", "tangent 2")
            return Bound(labels(names, parts), "N", lambda reading: self._in_contact(reading, sides), forces=True)
        seen_from = None if self.axes == WORLD else find_places(model, f"{self.kind}: axes", (self.axes,))

        def read(reading: Reading) -> Tensor:
            force = contact_forces(reading, sides)
            if seen_from is not None:
                force = rotate(inverse(frames(reading, seen_from).quaternion), force)
            return force.flatten(-2)

        return Bound(labels(names, XYZ), "N", read, forces=True)

    def _in_contact(self, reading: Reading, sides: Sides) -> Tensor:
        (normal, known), sign = reading.once(plane_normals), signs(reading, sides)
        impulse = reading.info.contacts.impulse
        # the normal that points at the group; where two groups touch each other each has its own
        n = sign.unsqueeze(-1) * normal.unsqueeze(-2)  # [*batch, slots, n, 3]
        force = sign.unsqueeze(-1) * impulse.unsqueeze(-2)
        along = _tangent(n)
        parts = torch.stack([(force * axis).sum(-1) for axis in (n, along, torch.linalg.cross(n, along))], -1).sum(-3)
        h = reading.h.unsqueeze(-1) if reading.h.ndim else reading.h
        return guarded(reading, (parts / h).flatten(-2), sides, (sign != 0).any(-1) & ~known, self.kind)


def _tangent(n: Tensor) -> Tensor:
    """Unit vectors across n [..., 3]: x made perpendicular, or y where n is nearer to x than to both others; 0 where n is."""
    across = n[..., :1].abs() > n[..., 1:].abs().amax(-1, keepdim=True)
    axis = torch.where(across, constant((0.0, 1.0, 0.0), n), constant((1.0, 0.0, 0.0), n))
    t = axis - (axis * n).sum(-1, keepdim=True) * n
    none = ~n.bool().any(-1, keepdim=True)
    return torch.where(none, torch.zeros_like(t), normalise(torch.where(none, torch.ones_like(t), t)))
