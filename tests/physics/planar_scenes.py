"""Scenes in the plane for the tests: surfaces to rest and slide on, stacks, pyramids, dominoes, chains; random ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import costate as cs

HEXAGON = tuple((0.12 * math.cos(k * math.pi / 3), 0.12 * math.sin(k * math.pi / 3)) for k in range(6))
TRAPEZOID = ((-0.15, -0.05), (0.15, -0.05), (0.08, 0.07), (-0.08, 0.07))


def turned(point: Any, angle: float) -> np.ndarray:
    """`point` (x, y) turned about the origin from x towards y."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array((c * point[0] - s * point[1], s * point[0] + c * point[1]))


@dataclass(frozen=True)
class Surface:
    """A straight surface through the origin that falls along x by `angle`; kind: half plane, rectangle or polygon."""

    angle: float = 0.0
    friction: float = 1.0
    restitution: float = 0.0
    kind: str = "half plane"

    @property
    def normal(self) -> np.ndarray:
        return turned((0, 1), -self.angle)

    @property
    def downhill(self) -> np.ndarray:
        return turned((1, 0), -self.angle)

    def scene(self, **options: Any) -> cs.Scene:
        """With the surface alone; those that end are 8 m long."""
        scene = cs.Scene(planar=True, **options)
        touch = {"friction": self.friction, "restitution": self.restitution, "angle": -self.angle, "name": "surface"}
        if self.kind == "half plane":
            scene.add_shape(cs.HalfPlane(**touch))
        elif self.kind == "rectangle":
            scene.add_shape(cs.Rectangle((4.0, 0.5), pos=tuple(-0.5 * self.normal), **touch))
        else:
            scene.add_shape(cs.Polygon([(-4, 0), (4, 0), (3, -1), (0, -2), (-3, -1)], **touch))
        return scene

    def with_body(self, shape: cs.Shape, above: float, *, x: float = 0.0, turn: float = 0.0, **options: Any) -> cs.Scene:
        """And a body that lies along it (turned by `turn`), its origin `above` (m) the surface, `x` (m) down the slope."""
        scene = self.scene(**options)
        scene.add_body("body", pos=tuple(above * self.normal + x * self.downhill), angle=turn - self.angle, shapes=shape)
        return scene


SURFACES = ("half plane", "rectangle", "polygon")


def stack(count: int, *, half: tuple[float, float] = (0.1, 0.1), friction: float = 0.6) -> cs.Scene:
    """Rectangles one above the other on the ground."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=friction)
    for k in range(count):
        scene.add_body(pos=(0, half[1] * (2 * k + 1)), shapes=cs.Rectangle(half, density=100.0, friction=friction))
    return scene


def pyramid(rows: int, *, half: tuple[float, float] = (0.1, 0.05), apart: float = 0.22, friction: float = 0.6) -> cs.Scene:
    """Rows of rectangles on the ground, each with one less than the one below and half a place further."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=friction)
    for row in range(rows):
        for k in range(rows - row):
            at = (apart * (k + row / 2), half[1] * (2 * row + 1))
            scene.add_body(pos=at, shapes=cs.Rectangle(half, density=100.0, friction=friction))
    return scene


TILE = (0.02, 0.15)  # m, half sizes of a domino


def dominoes(count: int, *, spacing: float = 0.12) -> cs.Scene:
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.5)
    for k in range(count):
        scene.add_body(pos=(spacing * k, TILE[1]), shapes=cs.Rectangle(TILE, density=100.0, friction=0.5))
    return scene


LINK = 0.1  # m


def chain(links: int, start: float, *, maximal: bool = True, ball: bool = False, collide: bool = False) -> cs.Scene:
    """Links of 0.1 m that hang straight from the origin, turned by `start`; `ball`: one at its end.

    maximal: free bodies and hinges, origins in the middles; else a tree, origins at the upper ends. collide: other things touch
    the links.
    """
    scene = cs.Scene(planar=True)
    middle = (0, 0 if maximal else -LINK / 2)
    shapes = [cs.Rectangle((0.01, LINK / 2), mass=0.5, pos=middle, group=2, mask=1, collide=collide)]
    parent: str | None = None
    for i in range(links):
        name, last = f"link{i}", i == links - 1
        end = [cs.Circle(0.05, mass=0.3, pos=(0, middle[1] - LINK / 2))] if ball and last else []
        if maximal:
            scene.add_body(name, pos=tuple(turned((0, -LINK * (i + 0.5)), start)), angle=start, shapes=shapes + end)
            scene.add_hinge(parent, name, pos=(0, -LINK / 2 if i else 0))
        else:
            joint = cs.Revolute(initial=0.0 if i else start)
            scene.add_body(name, parent=parent, joint=joint, pos=(0, -LINK if i else 0), shapes=shapes + end)
        parent = name
    return scene


# ---- random scenes -------------------------------------------------------------------------------------------------
def random_shape(rng: np.random.Generator, **surface: Any) -> cs.Shape:
    """A circle, a rectangle or a polygon between 0.1 and 0.5 m wide."""
    kind = rng.integers(3)
    if kind == 0:
        return cs.Circle(rng.uniform(0.05, 0.25), **surface)
    if kind == 1:
        return cs.Rectangle(tuple(rng.uniform(0.05, 0.25, 2)), **surface)
    corners, turn = int(rng.integers(3, 8)), rng.uniform(0, 2 * math.pi)
    angle = turn + 2 * math.pi / corners * (np.arange(corners) + rng.uniform(-0.2, 0.2, corners))
    return cs.Polygon(rng.uniform(0.1, 0.25) * np.stack((np.cos(angle), np.sin(angle)), -1), **surface)


def random_scene(rng: np.random.Generator) -> cs.Scene:
    """Up to seven bodies on a grid in a bowl of three half planes, some of them in pairs on a hinge, a rod or a weld."""
    scene = cs.Scene(planar=True, gravity=(2 * rng.normal(), 2 * rng.normal() - 9.81))
    surface = lambda: {"friction": rng.uniform(0, 1), "restitution": rng.uniform(0, 0.8)}  # noqa: E731
    scene.add_ground(0.0, angle=rng.uniform(-0.2, 0.2), **surface())
    for side in (-1, 1):
        scene.add_shape(cs.HalfPlane(pos=(1.4 * side, 0), angle=side * rng.uniform(1.0, math.pi / 2), **surface()))
    names = []
    for place in rng.permutation(9)[: rng.integers(2, 8)]:
        shapes = [random_shape(rng, density=rng.uniform(10, 100), **surface())]
        if rng.random() < 0.2:
            shapes.append(cs.Circle(0.1, density=50.0, pos=tuple(rng.uniform(-0.1, 0.1, 2)), **surface()))
        at = (0.65 * (place % 3 - 1), 0.75 + 0.65 * (place // 3))
        names.append(scene.add_body(pos=at, angle=rng.uniform(-3, 3), shapes=shapes))
    for a, b in zip(names[::2], names[1::2]):
        add = rng.choice(["hinge", "distance", "weld", "none", "none", "exclude"])
        if add == "exclude":
            scene.exclude(a, b)
        elif add != "none":
            getattr(scene, f"add_{add}")(a, b, pos=tuple(rng.uniform(-0.1, 0.1, 2)))
    return scene
