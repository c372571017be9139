"""Range finders: how far it is to what a ray hits first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from costate.ray import ray_cast
from costate.rotation import rotate
from costate.sensors.places import FramesOf, find_places, frames
from costate.sensors.sensor import Bound, Names, Sensor, as_names
from costate.sensors.tables import Table, indices

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


@dataclass(frozen=True)
class RangeFinder(Sensor):
    """Distances along rays from a site or body, m, at most `max_distance`; that is what it reads where nothing is hit.

    Gradients are those of `costate.ray_cast`: exact while a ray hits the same piece of a surface, zero at max_distance.

    Parameters
    ----------
    at : names of sites or bodies.
    directions : rays in the sensor's axes, of any length but zero; default: one along its z.
    max_distance : m.
    shapes : names of the shapes that can be hit; None: all but those of the sensor's own body.
    """

    at: Names
    _: KW_ONLY
    directions: Sequence[tuple[float, float, float]] = ((0.0, 0.0, 1.0),)
    max_distance: float = 10.0
    shapes: Names | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.max_distance, (int, float)) and math.isfinite(self.max_distance) and self.max_distance > 0):
            raise ValueError(f"{self.kind}: max_distance must be a positive finite number, got {self.max_distance!r}")
        if not self.directions or any(len(d) != 3 or not any(d) for d in self.directions):
            raise ValueError(f"{self.kind}: directions must be triples of numbers, not all of them zero, got {self.directions!r}")

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        names, rays = as_names(self.kind, self.at), len(self.directions)
        places = find_places(model, self.kind, names)
        if model.planar:
            raise ValueError(f"{self.kind}: works on models in space, got a planar one: its shapes have no extent along z")
        if self.shapes is None:
            seen = [[i for i, on in enumerate(model.shape_body) if on != body] for body in places.body]
        else:
            seen = [[model.shape(name) for name in as_names(f"{self.kind}: shapes", self.shapes)]] * len(names)
        for name, shapes in zip(names, seen, strict=True):
            if not shapes:
                raise ValueError(f"{self.kind}: {name!r} can hit nothing: no other body has a shape that may touch another")
        # places that see the same shapes share a call
        groups = {tuple(shapes): indices(k for k, other in enumerate(seen) if other == shapes) for shapes in seen}
        fan = Table(tuple(map(tuple, self.directions)))

        def read(reading: Reading) -> Tensor:
            at = frames(reading, places)
            local = fan.like(reading.q)
            y = at.position.new_empty(*reading.batch, len(names), rays)
            for shapes, group in groups.items():
                members = group.like(reading.q)
                origin = at.position[..., members, None, :].expand(*reading.batch, -1, rays, -1).flatten(-3, -2)
                direction = rotate(at.quaternion[..., members, None, :], local).flatten(-3, -2)
                found = ray_cast(
                    reading.model, reading.q, origin, direction, reading.params, shapes=shapes, max_distance=self.max_distance
                )  # fmt: skip
                part = found.distance.clamp(max=self.max_distance).unflatten(-1, (-1, rays))
                y = part if len(groups) == 1 else y.index_copy(-2, members, part)
            return y.flatten(-2)

        words = names if rays == 1 else tuple(f"{name} {k}" for name in names for k in range(rays))
        return Bound(words, "m", read, asks=((FramesOf, places),))
