"""Pairs of shapes in many worlds, each with its own sizes and poses; for costate as q and params, for the reference corners."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import torch

import costate as cs
from tests.parity.convex_reference import Bodies, Solid, place, solid

KINDS = ("sphere", "capsule", "box", "cylinder", "hull")
PAIRS = list(combinations_with_replacement(KINDS, 2))
ROUND = ("sphere", "capsule")
CORNERS = 14


class Side(NamedTuple):
    """One shape of a pair in W worlds."""

    kind: str
    size: np.ndarray  # [W, 3] as params have it; of a hull the scale of its corners
    pos: np.ndarray  # [W, 3]
    quat: np.ndarray  # [W, 4]


@cache
def hull_points() -> np.ndarray:
    """Corners on a ball, all of them on the hull, and so spread that the origin is inside."""
    rng = np.random.default_rng(5)
    half = rng.normal(size=(CORNERS // 2, 3))
    x = np.concatenate((half, 0.2 * rng.normal(size=half.shape) - half))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@cache
def solid_of(kind: str) -> Solid:
    return solid(kind, hull_points() if kind == "hull" else None)


def shape(kind: str, name: str, size: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> cs.scene.shapes.Shape:
    x, y, _ = size
    if kind == "hull":
        return cs.Hull(np.array(size) * hull_points(), name=name)
    if kind == "box":
        return cs.Box(size, name=name)
    return {"sphere": lambda: cs.Sphere(x, name=name), "capsule": lambda: cs.Capsule(x, y, name=name),
            "cylinder": lambda: cs.Cylinder(x, y, name=name)}[kind]()  # fmt: skip


@cache
def pair_model(a: str, b: str) -> cs.Model:
    """Shapes "a" and "b" on free bodies; plane and field: kinds that stand still."""
    scene = cs.Scene()
    for name, kind in (("a", a), ("b", b)):
        if kind == "plane":
            scene.add_shape(cs.Plane(name=name))
        elif kind == "field":
            scene.add_shape(cs.Heightfield(np.zeros((5, 6)), (1, 1), name=name))
        else:
            scene.add_body(f"body {name}", joint=cs.Free(), shapes=shape(kind, name))
    return scene.build()


def configuration(*sides: Side) -> torch.Tensor:
    """q [W, nq] of those that move."""
    moving = [np.concatenate((s.pos, s.quat), 1) for s in sides if s.kind not in ("plane", "field")]
    return torch.from_numpy(np.concatenate(moving, 1))


def sizes(model: cs.Model, *sides: Side) -> cs.Params:
    """Params with the sizes and hulls of all worlds, and the poses of those that stand still."""
    fields = {}
    default = model.params()
    size = torch.stack([torch.from_numpy(s.size) for s in sides], 1)
    unused = torch.tensor([[s.kind in ("hull", "plane") for s in sides]])
    fields["shape_size"] = torch.where(unused[..., None], default["shape_size"], size)
    for at, s in enumerate(sides):
        if s.kind in ("plane", "field"):
            for name, value in (("shape_pos", s.pos), ("shape_quat", s.quat)):
                whole = default[name].expand(len(value), *default[name].shape).clone()
                whole[:, at] = torch.from_numpy(value)
                fields[name] = whole
    hulls = [torch.from_numpy(s.size[:, None] * hull_points()) for s in sides if s.kind == "hull"]
    if hulls:
        fields["hull_vertex"] = torch.cat(hulls, 1)
    return default.replace(**fields)


def bodies(s: Side) -> Bodies:
    """The same for the reference."""
    x, y, _ = s.size.T
    none = np.zeros_like(x)
    scale = {"sphere": np.stack((none, none, none), 1), "capsule": np.stack((none, none, y), 1),
             "cylinder": np.stack((x, x, y), 1)}.get(s.kind, s.size)  # fmt: skip
    return place(solid_of(s.kind), scale, x if s.kind in ROUND else none, s.pos, s.quat)


def largest(s: Side) -> np.ndarray:
    """Radius [W] of a ball around the shape's origin that holds it."""
    x, y, _ = s.size.T
    if s.kind == "sphere":
        return x
    if s.kind == "capsule":
        return x + y
    if s.kind == "cylinder":
        return np.hypot(x, y)
    return np.linalg.norm(s.size, axis=1) if s.kind == "box" else np.linalg.norm(s.size[:, None] * hull_points(), axis=2).max(1)


def unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def quaternions(rng: np.random.Generator, n: int) -> np.ndarray:
    return unit(rng.normal(size=(n, 4)))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternions a b [W, 4]."""
    w = a[:, 0] * b[:, 0] - (a[:, 1:] * b[:, 1:]).sum(1)
    return np.column_stack((w, a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])))


def quarter_turns(rng: np.random.Generator, n: int) -> np.ndarray:
    """Turns that take the axes onto each other, exactly."""
    about, count = rng.integers(0, 3, (2, n)), rng.integers(0, 4, (2, n))
    table = np.array([[1, 0], [np.sqrt(0.5), np.sqrt(0.5)], [0, 1], [-np.sqrt(0.5), np.sqrt(0.5)]])
    first, second = (np.zeros((n, 4)) for _ in range(2))
    for k, q in enumerate((first, second)):
        q[:, 0] = table[count[k], 0]
        q[np.arange(n), 1 + about[k]] = table[count[k], 1]
    return product(first, second)


def small_turns(rng: np.random.Generator, n: int, least: float, most: float) -> np.ndarray:
    """Turns about any axis by angles whose logarithm is even."""
    angle = 10 ** rng.uniform(np.log10(least), np.log10(most), (n, 1))
    return unit(np.concatenate((np.ones((n, 1)), 0.5 * angle * unit(rng.normal(size=(n, 3)))), 1))
