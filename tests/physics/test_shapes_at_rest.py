"""Capsules, boxes, cylinders and hulls at rest on planes, boxes, other bodies and terrain: where they lie, what carries them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.shapes import Shape
from tests.physics.contact_scenes import UPRIGHT, G, quat_mul, rotate, run, turn

LIE = turn((0, 1, 0), math.pi / 2)  # puts the axis of a capsule or cylinder level, along x
DT = 0.01


@dataclass(frozen=True)
class Bounds:
    """What "at rest" means. Rows give way by a part of their own stiffness, 1e-9 in float64 and 1e-5 in float32, which under a
    block of 4 t is 5e-10 and 5e-7 m; in float32 coordinates of a metre have steps of 1e-7 m, which at 100 Hz are 1e-5 m/s."""

    height: float  # m
    turn: float  # rad, half of it in a quaternion
    speed: float  # m/s, rad/s
    force: float  # relative


BOUNDS = {torch.float64: Bounds(2e-9, 2e-9, 2e-8, 1e-8), torch.float32: Bounds(2e-6, 2e-6, 2e-5, 1e-3)}
DTYPES = list(BOUNDS)


# ---- what rests ----------------------------------------------------------------------------------------------------
def matrix(quat: Any) -> np.ndarray:
    return np.stack([rotate(np.array(quat) / np.linalg.norm(quat), axis) for axis in np.eye(3)], axis=1)


def down(direction: Any) -> np.ndarray:
    """A quaternion that turns a direction of the body straight down."""
    d = np.array(direction) / np.linalg.norm(direction)
    axis = np.cross(d, (0, 0, -1))
    sine = np.linalg.norm(axis)
    return turn(axis / sine, math.atan2(sine, -d[2])) if sine > 1e-12 else turn((1, 0, 0), 0.0 if d[2] < 0 else math.pi)


def on_face(vertices: np.ndarray) -> tuple[Shape, np.ndarray, float]:
    """A hull on the face that it stands on most firmly: the one that is nearest to its centre of mass."""
    hull = cs.Hull(vertices)
    com = hull.inertia()[1].numpy()
    faces = pytest.importorskip("scipy.spatial").ConvexHull(vertices).equations  # outward normal, -distance from the origin
    best = faces[np.argmax(faces[:, :3] @ com + faces[:, 3])]
    return hull, down(best[:3]), -best[3]


TETRAHEDRON = 0.1 * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
CUT_BOX = np.array(
    [(x, y, z) for x in (-0.2, 0.2) for y in (-0.15, 0.15) for z in (-0.1, 0.1) if (x, y, z) != (0.2, 0.15, 0.1)]
    + [(0.1, 0.15, 0.1), (0.2, 0.05, 0.1), (0.2, 0.15, 0.0)]
)


def pebble(seed: int) -> np.ndarray:
    """Fourteen points on an ellipsoid, off the origin of their frame."""
    x = np.random.default_rng(seed).normal(size=(14, 3))
    return x / np.linalg.norm(x, axis=1)[:, None] * (0.2, 0.15, 0.1) + (0.03, -0.02, 0.05)


# shape, orientation in which it rests, height of its frame over the surface. A cylinder is a prism of 16 sides, and lies on one
Rest = tuple[Shape, np.ndarray, float]
RESTS: dict[str, Rest] = {
    "capsule": (cs.Capsule(0.1, 0.3), LIE, 0.1),
    "box": (cs.Box((0.2, 0.15, 0.1)), turn((0, 0, 1), 0.4), 0.1),
    "box on its side": (cs.Box((0.2, 0.15, 0.1)), LIE, 0.2),
    "standing cylinder": (cs.Cylinder(0.15, 0.2), np.array(UPRIGHT), 0.2),
    "lying cylinder": (cs.Cylinder(0.15, 0.2), quat_mul(LIE, turn((0, 0, 1), math.pi / 16)), 0.15 * math.cos(math.pi / 16)),
    "tetrahedron": (*on_face(TETRAHEDRON)[:2], 0.1 / math.sqrt(3)),
    "cut box": (cs.Hull(CUT_BOX), np.array(UPRIGHT), 0.1),
    "pebble": on_face(pebble(3)),
}


# ---- what they rest on: its surface goes through the origin -----------------------------------------------------------
STEEP = 0.3  # rad; friction 1 holds up to 0.785


def grid(n: int = 9, half: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    axis = np.linspace(-half, half, n)
    return np.meshgrid(axis, axis, indexing="ij")


def ground_of(kind: str) -> tuple[cs.Scene, np.ndarray]:
    """The scene, and what turns the level onto the surface."""
    scene, lean = cs.Scene(), np.array(UPRIGHT)
    if kind.startswith("steep"):
        lean = turn((0, 1, 0), STEEP)
    below = -0.5 * rotate(lean, (0, 0, 1))
    x, _ = grid()
    if kind == "free box":
        scene.add_ground(-1.0)
        scene.add_body("base", joint=cs.Free(), pos=below, shapes=cs.Box((1, 1, 0.5)))
    elif kind == "free slab":
        scene.add_ground(-0.1)
        scene.add_body(
            "base", joint=cs.Free(), pos=(0, 0, -0.05), quat=turn((0, 0, 1), 0.3), shapes=cs.Hull(cuboid(0.6, 0.5, 0.05))
        )
    elif kind == "field":
        scene.add_shape(cs.Heightfield(0 * x, (1.0, 1.0)))
    elif kind == "turned field":  # the triangles' diagonals lie otherwise, the cells are oblong
        scene.add_shape(cs.Heightfield(np.full((14, 6), 0.7), (1.0, 1.3), pos=(0.1, -0.05, -0.7), quat=turn((0, 0, 1), 0.5)))
    elif kind == "steep field":  # level as a shape, steep by its heights
        scene.add_shape(cs.Heightfield(-math.tan(STEEP) * x, (1.0, 1.0)))
    elif kind.endswith("box"):
        scene.add_shape(cs.Box((1, 1, 0.5), pos=below, quat=lean))
    elif kind.endswith("plane"):
        scene.add_shape(cs.Plane(quat=lean))
    else:
        raise ValueError(kind)
    return scene, lean


def cuboid(*half: float) -> np.ndarray:
    return np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half


LEVEL = ["plane", "box", "free box", "free slab", "field", "turned field"]
GROUNDS = [*LEVEL, "steep plane", "steep box", "steep field"]


def last_look(model: cs.Model, traj: cs.Trajectory) -> Any:
    """What one more step tells, in the trajectory's own precision."""
    kind = torch.float32 if traj.q.dtype == np.float32 else torch.float64
    return cs.Simulator(model, dt=DT, dtype=kind).step(cs.State(traj.q[-1], traj.v[-1]), info=True)[1].contacts


def assert_carried(model: cs.Model, contacts: Any, bounds: Bounds) -> None:
    """What touches the last body pushes it up with its weight, from outside, and sinks in by no more than allowed."""
    body = len(model.shape_names) - 1
    sign = (contacts.shape_b == body) * 1.0 - (contacts.shape_a == body)
    weight = float(model.defaults["mass"][-1]) * G * DT
    np.testing.assert_allclose((sign[:, None] * contacts.impulse).sum(0), [0, 0, weight], atol=bounds.force * weight)
    assert ((contacts.impulse * contacts.normal).sum(-1) > -bounds.force * weight).all()
    assert contacts.gap[contacts.active].min() > -bounds.height


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("name", list(RESTS))
@pytest.mark.parametrize("ground", GROUNDS)
def test_dropped_flat_it_rests_where_it_must(ground, name, dtype):
    """From 3 cm, along the normal of the surface: at its height over it, turned as before, still, and carried."""
    scene, lean = ground_of(ground)
    shape, quat, height = RESTS[name]
    if name == "lying cylinder" and "plane" in ground:
        height = shape.radius  # on planes it is round
    normal, quat = rotate(lean, (0, 0, 1)), quat_mul(lean, quat)
    pos = rotate(lean, (0.013, -0.021, height + 0.03))
    scene.add_body("body", joint=cs.Free(), pos=pos, quat=quat, shapes=shape)
    model, bounds = scene.build(), BOUNDS[dtype]
    traj = run(model, 120, dtype=dtype)
    q, v = traj.q[-20:, -7:].astype(float), traj.v[-20:]
    np.testing.assert_allclose(q[:, :3] @ normal, height, atol=bounds.height)
    if ground in LEVEL:
        np.testing.assert_allclose(q[:, 3:], np.tile(quat, (20, 1)), atol=bounds.turn)
        assert np.abs(q[-1, :2] - traj.q[0, -7:-5]).max() < bounds.height
    else:  # it lands with some speed downhill, and may turn on its face while it slides
        tilt = np.linalg.norm(matrix(q[-1, 3:]) @ matrix(quat).T @ normal - normal)
        assert tilt < bounds.turn
    assert np.abs(v).max() < bounds.speed
    assert_carried(model, last_look(model, traj), bounds)


ROUND = {
    "capsule": ["plane", "box", "free box", "free slab", "field", "turned field"],
    "lying cylinder": ["plane"],
}  # it rolls there


@pytest.mark.parametrize("name", list(RESTS))
@pytest.mark.parametrize("ground", [g for g in GROUNDS if g != "turned field"])
def test_dropped_tilted_it_settles_on_the_same_face(ground, name):
    """By 0.1 rad, from 4 cm: a corner hits first, it rocks and comes to rest. What is round rolls a little, its axis level; on a
    slope it would roll away."""
    steep, rolls = ground.startswith("steep"), ground in ROUND.get(name, ())
    if steep and (name == "capsule" or (name == "lying cylinder" and "plane" in ground)):
        return
    shape, quat, height = RESTS[name]
    height = shape.radius if rolls else height
    for dtype, bounds in BOUNDS.items():
        scene, lean = ground_of(ground)
        start = quat_mul(quat_mul(turn((0.6, 0.8, 0), 0.1), lean), quat)
        scene.add_body("body", joint=cs.Free(), pos=rotate(lean, (0.013, -0.021, height + 0.04)), quat=start, shapes=shape)
        model = scene.build()
        traj, normal = run(model, 300, dtype=dtype), rotate(lean, (0, 0, 1))
        q = traj.q[-20:, -7:].astype(float)
        np.testing.assert_allclose(q[:, :3] @ normal, height, atol=bounds.height)
        turned = matrix(q[-1, 3:])
        if rolls:
            assert abs(turned[2, 2]) < bounds.turn and np.abs(traj.v[-20:, 2]).max() < bounds.speed
            continue
        up = matrix(quat).T[:, 2]  # the body's own upward axis
        assert np.linalg.norm(turned @ up - normal) < bounds.turn
        assert np.abs(traj.v[-20:]).max() < 5 * bounds.speed, "what slid down a slope still creeps in single precision"
        assert_carried(model, last_look(model, traj), bounds)


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("name", ["box", "standing cylinder", "cut box"])
@pytest.mark.parametrize("steep", [False, True], ids=["level", "steep"])
def test_rounding_does_not_take_contacts_away(steep, name, dtype):
    """Flat on a box with any yaw, off by the rounding of a step in single precision: always four points, and nothing moves by
    more than rounding over the step. With a single point it falls for a step."""
    scene, lean = ground_of("steep box" if steep else "box")
    shape, _, height = RESTS[name]
    scene.add_body("body", joint=cs.Free(), shapes=shape)
    model, rng = scene.build(), np.random.default_rng(0)
    worlds = 20000
    frame, yaw = matrix(lean), rng.uniform(-math.pi, math.pi, worlds)
    place = np.column_stack([rng.uniform(-0.3, 0.3, (worlds, 2)), np.full(worlds, height)])
    c, s = np.cos(yaw / 2), np.sin(yaw / 2)
    w, y = lean[0], lean[2]
    q = np.column_stack([place @ frame.T + 3e-8 * rng.normal(size=(worlds, 3)), w * c, y * s, y * c, w * s])
    q[:, 3:] += 1e-7 * rng.normal(size=(worlds, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    start = cs.State(torch.tensor(q, dtype=dtype), torch.zeros(worlds, 6, dtype=dtype))
    state, info = cs.Simulator(model, dt=DT, dtype=dtype).step(start, info=True)
    assert (info.contacts.active.sum(-1) == 4).all(), info.contacts.active.sum(-1).bincount()
    assert state.v.norm(dim=-1).max() < 3e-4


# ---- terrain that is not even --------------------------------------------------------------------------------------
SIDE = math.pi / 8  # rad: the corners of a cylinder's prism face such a slope squarely

# In a valley along x: height of the frame over its bottom line. Round shapes touch at r along both normals, the edges of a bottom
# face, half as wide as a, at a tan. With more friction than tan they would jam, without any a box slides to one side
VALLEY: dict[str, tuple[Shape, np.ndarray, float, float]] = {
    "ball": (cs.Sphere(0.1), np.array(UPRIGHT), 0.1 / math.cos(SIDE), 0.0),
    "capsule": (cs.Capsule(0.1, 0.3), LIE, 0.1 / math.cos(SIDE), 0.0),
    "cylinder": (cs.Cylinder(0.15, 0.2), LIE, 0.15 / math.cos(SIDE), 0.0),
    "box": (cs.Box((0.2, 0.15, 0.1)), np.array(UPRIGHT), 0.1 + 0.15 * math.tan(SIDE), 0.1),
    "cut box": (cs.Hull(CUT_BOX), np.array(UPRIGHT), 0.1 + 0.15 * math.tan(SIDE), 0.1),
}


# A prism balances there on corners, without friction: rounding grows a thousandfold in half a second, so only double stays
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in VALLEY for dtype in DTYPES if (name, dtype) != ("cylinder", torch.float32)]
)
def test_in_a_valley(name, dtype):
    """Heights |y| tan over an odd number of points, so that the bottom is a line of the grid. Without friction both sides push by
    half of the weight over the cosine."""
    shape, quat, height, friction = VALLEY[name]
    scene, (_, y) = cs.Scene(friction_rule="minimum"), grid(17)
    scene.add_shape(cs.Heightfield(math.tan(SIDE) * np.abs(y), (1.0, 1.0), friction=friction))
    scene.add_body("body", joint=cs.Free(), pos=(0.013, 0, height + 0.03), quat=quat, shapes=shape)
    model, bounds = scene.build(), BOUNDS[dtype]
    traj = run(model, 150, dtype=dtype)
    assert_carried(model, contacts := last_look(model, traj), bounds)
    assert np.abs(traj.v[-20:]).max() < bounds.speed
    if friction > 0.0:  # where exactly friction stops it at the impact is free: half a millimetre to one side
        assert np.abs(traj.q[-1, 1]) < 5e-4 and abs(traj.q[-1, 2] - height) < 2e-4
        return
    np.testing.assert_allclose(traj.q[-20:, 2], height, atol=bounds.height)
    np.testing.assert_allclose(traj.q[-20:, 3:], np.tile(quat, (20, 1)), atol=bounds.turn)
    assert np.abs(traj.q[-20:, 1]).max() < bounds.height
    push = contacts.impulse[contacts.active]
    np.testing.assert_allclose(np.abs(push[:, 1]).sum(), math.tan(SIDE) * push[:, 2].sum(), rtol=bounds.force)


def hills(seed: int, n: int = 9) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 0.12, (n, n))


def surface(heights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Height of the terrain [-1, 1]^2 at points, by its triangles: cells are split from (i, j) to (i + 1, j + 1)."""
    n = len(heights) - 1
    u, v = (x + 1) / 2 * n, (y + 1) / 2 * n
    i, j = np.floor(u).astype(int), np.floor(v).astype(int)
    u, v = u - i, v - j
    a, b, c, d = heights[i, j], heights[i + 1, j], heights[i + 1, j + 1], heights[i, j + 1]
    return np.where(u > v, a + u * (b - a) + v * (c - b), a + v * (d - a) + u * (c - d))


CORNERS = {
    "box": cuboid(0.2, 0.15, 0.1),
    "cut box": CUT_BOX,
    "tetrahedron": TETRAHEDRON,
    "pebble": pebble(3),
    "standing cylinder": np.array(
        [(0.15 * math.cos(k * math.pi / 8), 0.15 * math.sin(k * math.pi / 8), z) for z in (-0.2, 0.2) for k in range(16)]
    ),
}


@pytest.mark.parametrize("name", list(CORNERS))
def test_on_hills(name):
    """Bumps of up to 12 cm every 25 cm: it comes to rest on three corners or more, none of them below the surface, and the ground
    carries it. The surface is computed anew here."""
    shape, quat, height = RESTS[name]
    for seed in range(3):
        heights, scene = hills(seed), cs.Scene()
        scene.add_shape(cs.Heightfield(heights, (1.0, 1.0)))
        scene.add_body("body", joint=cs.Free(), pos=(0.05, -0.07, height + 0.2), quat=quat, shapes=shape)
        model = scene.build()
        traj = run(model, 800)  # a prism rocks from corner to corner for a while
        x = traj.q[-1, :3] + CORNERS[name] @ matrix(traj.q[-1, 3:]).T
        gap = np.sort(x[:, 2] - surface(heights, x[:, 0], x[:, 1]))
        assert np.abs(gap[:3]).max() < 1e-8, "three corners touch"
        assert np.abs(traj.v[-1]).max() < 1e-7
        contacts = last_look(model, traj)
        assert_carried(model, contacts, BOUNDS[torch.float64])
        at = contacts.point[contacts.active]
        np.testing.assert_allclose(at[:, 2], surface(heights, at[:, 0], at[:, 1]), atol=1e-7)
