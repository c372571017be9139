"""A planar scene moves like the same scene in space: x stays x, y becomes z, and plates become prisms along the third axis.

What touches in two points in the plane touches in four in space; what they do together is the same. Rows give way by 1e-9 of
their stiffness, each of its own, and a fall amplifies that: so the way is compared to 1e-6 m, over the steps that a scene names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import run, turn
from tests.physics.planar_scenes import HEXAGON, TRAPEZOID, turned

ALIKE = 1e-6  # m, rad
DEEP = 0.3  # m, of prisms: half their length along the third axis
EXACT = cs.PGS(iterations=200, polish=20)
SURFACE = {"friction": 0.4, "restitution": 0.3}


def spatial(x: Any) -> tuple[float, float, float]:
    return (float(x[0]), 0.0, float(x[1]))


def lean(angle: float) -> np.ndarray:
    """What turns from x to z by `angle`."""
    return turn((0, -1, 0), angle)


class Both:
    """One scene in the plane and one in space, built alike."""

    def __init__(self, **options: Any) -> None:
        self.flat, self.space = cs.Scene(planar=True, **options), cs.Scene(max_contacts=128, **options)

    def ground(self, angle: float = 0.0, pos: Any = (0, 0)) -> None:
        self.flat.add_shape(cs.HalfPlane(pos=pos, angle=angle, **SURFACE))
        self.space.add_shape(cs.Plane(pos=spatial(pos), quat=lean(angle), **SURFACE))

    def block(self, half: Any, pos: Any, angle: float = 0.0) -> None:
        """A rectangle of the world, as a box."""
        self.flat.add_shape(cs.Rectangle(half, pos=pos, angle=angle, **SURFACE))
        self.space.add_shape(cs.Box((half[0], 1.0, half[1]), pos=spatial(pos), quat=lean(angle), **SURFACE))

    def body(self, kind: str, size: Any, pos: Any, angle: float = 0.0, mass: float = 1.0) -> None:
        """A free body; its inertia across the plane counts for nothing."""
        options = {"mass": mass, **SURFACE}
        shapes = {
            "circle": lambda: (cs.Circle(size, **options), cs.Sphere(size, **options)),
            "rectangle": lambda: (cs.Rectangle(size, **options), cs.Box((size[0], DEEP, size[1]), **options)),
            "polygon": lambda: (
                cs.Polygon(size, **options),
                cs.Hull([(x, y, z) for x, z in size for y in (-DEEP, DEEP)], **options),
            ),
        }
        flat, solid = shapes[kind]()
        self.flat.add_body(pos=pos, angle=angle, shapes=flat)
        moment = float(self.flat.build().defaults["inertia"][-1, 2])
        numbers = {"mass": mass, "com": (0, 0, 0), "inertia": (moment, moment, moment)} if kind == "circle" else {}
        self.space.add_body(joint=cs.Free(), pos=spatial(pos), quat=lean(angle), shapes=solid, **numbers)


def sliding() -> tuple[Both, list[float], int]:
    """A block that slides down a slope and, on another one, comes to a stop and stays."""
    both = Both()
    both.ground(-0.3)
    for x in (-3.0, 3.0):
        both.body("rectangle", (0.2, 0.05), tuple(turned((x, 0.05), -0.3)), -0.3, mass=2.0)
    return both, [*turned((2.0, 0), -0.3), 0, *turned((-0.5, 0), -0.3), 0], 80


def tumbling() -> tuple[Both, list[float], int]:
    """A block thrown on its corner."""
    both = Both()
    both.ground()
    both.body("rectangle", (0.2, 0.1), (0, 0.35), 0.6, mass=2.0)
    return both, [1.0, -2.0, 3.0], 40


def rolling() -> tuple[Both, list[float], int]:
    """Circles that hit each other, a wall, and roll."""
    both = Both()
    both.ground()
    both.ground(np.pi / 2, (1.0, 0.0))
    both.body("circle", 0.1, (0, 0.1), mass=1.0)
    both.body("circle", 0.15, (0.4, 0.2), mass=3.0)
    return both, [3.0, 0, 0, 1.0, -0.5, 4.0], 100


def standing() -> tuple[Both, list[float], int]:
    """A stack of three whose lowest one is shoved, on a block that ends."""
    both = Both()
    both.block((0.4, 0.2), (0, -0.2))
    for k in range(3):
        both.body("rectangle", (0.1, 0.05), (0, 0.05 + 0.1 * k), mass=1.0 + k)
    return both, [4.0, 0, 0, *[0.0] * 6], 60


def polygons() -> tuple[Both, list[float], int]:
    """A hexagon and a trapezoid that land on a tilted block and on each other."""
    both = Both()
    both.block((2.0, 0.2), (0, -0.2), 0.1)
    both.body("polygon", HEXAGON, (0, 0.12), 0.1)
    both.body("polygon", TRAPEZOID, (0.05, 0.35), 0.15, mass=2.0)
    return both, [0.0] * 6, 40


def linked() -> tuple[Both, list[float], int]:
    """A double pendulum of joints that sweeps a block along the ground."""
    both = Both()
    both.ground(pos=(0, -0.62))
    both.body("rectangle", (0.1, 0.05), (0.25, -0.57), mass=0.5)
    for k in range(2):
        parent, at, first = (f"link{k - 1}" if k else None), (0, -0.3 if k else 0), -0.8 if k == 0 else 0.2
        numbers = {"parent": parent, "mass": 1.0}
        tip = {"mass": 0.0, **SURFACE, "collide": k == 1}
        flat, space = cs.Circle(0.05, pos=(0, -0.25), **tip), cs.Sphere(0.05, pos=(0, 0, -0.25), **tip)
        joint = {"initial": first, "damping": 0.05}
        both.flat.add_body(f"link{k}", pos=at, joint=cs.Revolute(**joint), shapes=flat, com=(0, -0.15), inertia=0.01, **numbers)
        both.space.add_body(
            f"link{k}", pos=spatial(at), joint=cs.Revolute((0, -1, 0), **joint), shapes=space, com=(0, 0, -0.15),
            inertia=(0.01, 0.01, 0.01), **numbers,
        )  # fmt: skip
    return both, [0.0] * 5, 80


SCENES: dict[str, Callable[[], tuple[Both, list[float], int]]] = {
    "sliding": sliding, "tumbling": tumbling, "rolling": rolling, "standing": standing, "polygons": polygons, "linked": linked,
}  # fmt: skip


def as_plane(model: cs.Model, q: np.ndarray) -> np.ndarray:
    """[T, nb, 3] x, z and the angle from x to z of all bodies in space."""
    kin = cs.kinematics(model, q)
    angle = np.unwrap(-2 * np.arctan2(kin.quaternion[..., 2], kin.quaternion[..., 0]), axis=0)
    return np.stack((kin.position[..., 0], kin.position[..., 2], angle), -1)


def in_plane(model: cs.Model, q: np.ndarray) -> np.ndarray:
    """The same of a planar model."""
    kin = cs.kinematics(model, q)
    angle = np.unwrap(2 * np.arctan2(kin.quaternion[..., 3], kin.quaternion[..., 0]), axis=0)
    return np.stack((kin.position[..., 0], kin.position[..., 1], angle), -1)


@pytest.mark.parametrize("cone", ["disc", "square"])
@pytest.mark.parametrize("name", SCENES)
def test_it_moves_like_the_same_scene_in_space(name, cone):
    """With the disc and with the square, which has the same friction along x."""
    both, v, steps = SCENES[name]()
    flat, space = both.flat.build(), both.space.build()
    free = (len(v) - 2 if name == "linked" else len(v)) // 3
    v_space = [x for k in range(free) for x in (v[3 * k], 0, v[3 * k + 1], 0, -v[3 * k + 2], 0)] + v[3 * free :]
    a = run(flat, steps, v=v, solver=EXACT)
    b = run(space, steps, v=v_space, solver=cs.PGS(iterations=200, polish=20, cone=cone))
    one, two = in_plane(flat, a.q), as_plane(space, b.q)
    assert a.status.converged and b.status.residual < 1e-8, "four corners in space are redundant, and take longer"
    np.testing.assert_allclose(one, two, atol=ALIKE)
    assert np.abs(one - one[0]).max() > 0.05 and a.status.contacts > 0, "something happens"


def test_a_wheel_is_a_cylinder():
    """Which rolls on planes exactly: here from a start with spin against its way, first slipping."""
    both = Both()
    both.ground(-0.2)
    at = tuple(turned((0, 0.15), -0.2))
    both.flat.add_body(pos=at, shapes=cs.Circle(0.15, mass=2.0, **SURFACE))
    tilt = turn((1, 0, 0), np.pi / 2)
    both.space.add_body(joint=cs.Free(), pos=spatial(at), quat=tilt, shapes=cs.Cylinder(0.15, 0.1, mass=2.0, **SURFACE))
    v = turned((1.0, 0.0), -0.2)
    a, b = run(both.flat, 100, v=[*v, 5.0]), run(both.space, 100, v=[*spatial(v), 0, 0, 5.0])
    np.testing.assert_allclose(a.q[:, :2], b.q[:, [0, 2]], atol=ALIKE)
    assert a.v[-1, 0] > 1.2 and a.v[-1, 2] < -8
