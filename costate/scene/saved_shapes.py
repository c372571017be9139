"""Shapes as JSON and back: {"type": "Box", "half": [...], ...}, with every number checked on the way in."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import Any

import numpy as np

from costate.scene.codes import CONDIMS
from costate.scene.contacts import BITS
from costate.scene.heightfield import Heightfield
from costate.scene.hull import Hull
from costate.scene.planar_shapes import Circle, HalfPlane, Polygon, Rectangle
from costate.scene.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Shape, Sphere

KINDS: tuple[type[Shape], ...] = (
    Box, Capsule, Circle, Cylinder, Ellipsoid, HalfPlane, Heightfield, Hull, Plane, Polygon, Rectangle, Sphere,
)  # fmt: skip
SHAPES = {kind.__name__: kind for kind in KINDS}
# fields that are points or a grid, any number of rows: how long these are; 0: all alike
TABLES = {("Hull", "vertices"): 3, ("Polygon", "vertices"): 2, ("Heightfield", "heights"): 0}
WHOLE = ("group", "mask")  # fields that are ints


def encode_shape(shape: Shape) -> dict[str, Any]:
    """What JSON takes; TypeError for a shape of a type that is not costate's."""
    kind = type(shape).__name__
    if SHAPES.get(kind) is not type(shape):
        raise TypeError(f"save: only shapes of costate can be saved, got a {kind}")
    return {"type": kind, **{field.name: getattr(shape, field.name) for field in fields(shape)}}


def decode_shape(value: Any) -> Shape:
    """The shape that `encode_shape` encoded; ValueError, "must ...", on anything else."""
    if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str) or kind not in SHAPES:
        raise ValueError("must be shapes with their type, got something else")
    given, names = {name: x for name, x in value.items() if name != "type"}, {field.name for field in fields(SHAPES[kind])}
    if given.keys() - names:
        raise ValueError(f"must be what a {kind} has, got {min(given.keys() - names)!r}")
    shape = _make(kind, {name: _value(kind, name, x) for name, x in given.items()})
    try:
        shape.measure(where=kind)
        shape.frame(where=kind)
    except (ValueError, TypeError) as error:
        raise ValueError(f"must be shapes, but {error}") from None
    return shape


def _make(kind: str, values: dict[str, Any]) -> Shape:
    try:
        return SHAPES[kind](**values)
    except TypeError:
        raise ValueError(f"must be a whole {kind}, got only {', '.join(values)}") from None


def _value(kind: str, name: str, value: Any) -> Any:
    """One field of a shape."""
    right = True
    if name == "name":
        right = value is None or isinstance(value, str)
    elif name == "collide":
        right = isinstance(value, bool)
    elif name == "condim":
        right = type(value) is int and value in CONDIMS
    elif name in WHOLE:
        right = type(value) is int and -(2 ** (BITS - 1)) <= value < 2**BITS
    elif name == "mass" and value is None:
        right = True
    elif (kind, name) in TABLES:
        return _table(kind, name, value, TABLES[kind, name])
    else:
        return _numbers(kind, name, value)
    if not right:
        raise ValueError(f"must have a {name} that fits a {kind}, got {value!r:.60}")
    return value


def _numbers(kind: str, name: str, value: Any) -> Any:
    """A finite number, or a tuple of them."""
    if type(value) is float and isfinite(value):
        return value
    if isinstance(value, list) and len(value) <= 4 and all(type(x) is float and isfinite(x) for x in value):
        return tuple(value)
    raise ValueError(f"must have numbers for {name} of a {kind}, got {value!r:.60}")


def _table(kind: str, name: str, value: Any, width: int) -> tuple[tuple[float, ...], ...]:
    """Rows of finite numbers, all of one length, as tuples."""
    rows = value if isinstance(value, list) and all(isinstance(row, list) for row in value) else []
    long = width or (len(rows[0]) if rows else 0)
    finite = all(len(row) == long and all(type(x) is float for x in row) for row in rows) and np.isfinite(np.array(rows)).all()
    if len(rows) < 2 or long < 2 or not finite:
        raise ValueError(f"must have rows of numbers for {name} of a {kind}, got {value!r:.60}")
    return tuple(map(tuple, rows))
