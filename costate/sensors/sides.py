"""Contacts of groups of shapes: which of them push which group, which way, and how hard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costate.autodiff.torch import transforming
from costate.rotation import normalise
from costate.scene.codes import PLANE
from costate.scene.names import WORLD, suggest
from costate.sensors.reading import Shared
from costate.sensors.sensor import Names, as_names
from costate.sensors.tables import Table
from costate.sensors.turning import product, turn

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


@dataclass(frozen=True, eq=False)
class Sides:
    """Groups of shapes, and what may touch them; the same object wherever the same names are looked up."""

    member: tuple[tuple[float, ...], ...]  # [shapes + 1, n] 1 where a shape is of a group; the last row is for empty slots
    other: tuple[float, ...] | None  # [shapes + 1] 1 where a shape counts as what touches; None: all of them
    flat: bool  # whether all that can touch are planes


def find_sides(model: Model, where: str, names: tuple[str, ...], against: Names | None) -> Sides:
    """The shapes of bodies and shapes by name; `where` starts error messages."""
    chosen = None if against is None else as_names(where, against)
    known: dict[Any, Sides] = model.__dict__.setdefault("_sides", {})
    if (key := (names, chosen)) not in known:
        groups, rows = [_shapes(model, where, name) for name in names], range(len(model.shape_names) + 1)
        others = None if chosen is None else {i for name in chosen for i in _shapes(model, where, name)}
        member = tuple(tuple(float(i in group) for group in groups) for i in rows)
        planes, members = set(_planes(model)), set().union(*groups)
        flat = all(planes & {a, b} for a, b in model.pairs.tolist() if members & {a, b})
        known[key] = Sides(member, None if others is None else tuple(float(i in others) for i in rows), flat)
    return known[key]


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


def _planes(model: Model) -> list[int]:
    return [i for i, code in enumerate(model.shape_type) if code == PLANE]


class Signs(Shared[Sides, Tensor]):
    """[*batch, slots, n]: 1 where a group is shape b of a contact, -1 where it is shape a; 0 where it is neither or both."""

    def __init__(self, model: Model, items: Sequence[Sides]) -> None:
        super().__init__(model, items)
        self._counts = [len(x.member[0]) for x in items]
        rows = zip(*(x.member for x in items), strict=True)
        self._member = Table(tuple(tuple(chain.from_iterable(row)) for row in rows))
        every = (1.0,) * len(items[0].member)
        others = (x.other or every for x, count in zip(items, self._counts, strict=True) for _ in range(count))
        self._other = Table(tuple(zip(*others, strict=True))) if any(x.other for x in items) else None

    def compute(self, reading: Reading) -> Sequence[Tensor]:
        """Two gathers for all groups."""
        c, member = reading.info.contacts, self._member.like(reading.q)
        a, b = member[c.shape_a], member[c.shape_b]
        if self._other is not None:
            other = self._other.like(reading.q)
            a, b = a * other[c.shape_b], b * other[c.shape_a]
        return (b - a).split_with_sizes(self._counts, -1)


def pushes(reading: Reading) -> Tensor:
    """The mean force of every contact over the step [*batch, slots, 3], N, on its shape b, world axes."""
    return reading.info.contacts.impulse / (reading.h.unsqueeze(-1) if reading.h.ndim else reading.h)


def contact_forces(reading: Reading, sides: Sides) -> Tensor:
    """[*batch, n, 3] N on every group, world axes."""
    return reading.shared(Signs, sides).mT @ reading.once(pushes)


def contact_normals(reading: Reading) -> Tensor:
    """[*batch, slots, 3] unit, world axes, from a to b; those of planes carry gradients."""
    model, c = reading.model, reading.info.contacts
    planes, quat = _planes(model), reading.param("shape_quat")
    moved = any(model.shape_body[i] >= 0 for i in planes)
    if not planes or c.normal.requires_grad or not (moved or quat.requires_grad or transforming()):
        return c.normal
    on, some = reading.index(model.shape_body[i] for i in planes), reading.index(planes)
    body = reading.bodies.quaternion[..., on, :]
    q = product(body, normalise(quat[..., some, :]))
    up = turn(q, reading.constant(((0.0, 0.0, 1.0),)))  # [*batch, planes, 3]
    which = reading.index(planes.index(i) if i in planes else -1 for i in range(len(model.shape_names) + 1))
    index = which[c.shape_a].unsqueeze(-1)  # a plane is always shape a
    of_plane = up.gather(-2, index.clamp(min=0).expand(*c.shape_a.shape, 3))
    return torch.where(index >= 0, of_plane, c.normal)


def unknown_normals(reading: Reading) -> Tensor:
    """[*batch, slots] whether the gradient of a contact's normal is not known: all but those of planes."""
    c, planes = reading.info.contacts, set(_planes(reading.model))
    if c.normal.requires_grad:
        return torch.zeros_like(c.active)
    return ~reading.constant(tuple(i in planes for i in range(len(reading.model.shape_names) + 1)), torch.bool)[c.shape_a]
