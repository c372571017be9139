"""What must not matter to boxes, cylinders, hulls and terrain: where in the world, which way round, in which order created."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.shapes import Shape
from tests.physics.contact_scenes import quat_mul, rotate, run, turn

STEPS = 40
# Each step is solved to 1e-10 m/s; where a corner hits, what differs spreads by some orders of magnitude in 0.4 s
SAME = 1e-7
FIRM = cs.PGS(iterations=20000, polish=20)
SURFACE = {"friction": 0.3}

# name: shapes, position, orientation, velocity (linear in world axes, angular in body axes)
Thing = tuple[list[Shape], np.ndarray, np.ndarray, np.ndarray]
PYRAMID = [(-0.1, -0.1, -0.05), (0.1, -0.1, -0.05), (0.1, 0.1, -0.05), (-0.1, 0.1, -0.05), (0.02, 0.01, 0.12)]


def things() -> dict[str, Thing]:
    """A block on the ground, and what falls onto and beside it, each in an orientation of its own."""
    rng = np.random.default_rng(11)
    kinds: dict[str, tuple[list[Shape], tuple[float, float, float]]] = {
        "block": ([cs.Box((0.25, 0.2, 0.1), **SURFACE)], (0, 0, 0.1)),
        "brick": ([cs.Box((0.1, 0.06, 0.05), **SURFACE)], (0.15, 0.05, 0.3)),
        "can": ([cs.Cylinder(0.06, 0.08, **SURFACE)], (-0.12, 0.05, 0.32)),
        "tent": ([cs.Hull(PYRAMID, **SURFACE)], (0.55, 0.1, 0.2)),
        "rod": ([cs.Capsule(0.04, 0.12, **SURFACE)], (0.02, -0.1, 0.28)),
        "hammer": (
            [cs.Box((0.02, 0.02, 0.15), **SURFACE), cs.Box((0.08, 0.03, 0.03), pos=(0, 0, 0.15), **SURFACE)],
            (-0.45, 0, 0.3),
        ),
    }
    found = {}
    for name, (shapes, pos) in kinds.items():
        still = name == "block"
        quat = np.array([1.0, 0, 0, 0]) if still else rng.normal(size=4)
        v = np.zeros(6) if still else np.concatenate([0.3 * rng.normal(size=3) + (0, 0, -0.5), rng.normal(size=3)])
        found[name] = (shapes, np.array(pos), quat / np.linalg.norm(quat), v)
    return found


NAMES = list(things())


def terrain(by: np.ndarray, quat: np.ndarray, kind: str) -> Shape:
    if kind == "plane":
        return cs.Plane(pos=by, quat=quat, **SURFACE)
    if kind == "box":
        return cs.Box((2, 2, 0.5), pos=by + rotate(quat, (0, 0, -0.5)), quat=quat, **SURFACE)
    return cs.Heightfield(np.zeros((21, 21)), (2.0, 2.0), pos=by, quat=quat, **SURFACE)


def roll(
    things: dict[str, Thing], *, order: list[str] = NAMES, kind: str = "box", by: np.ndarray | None = None,
    quat: np.ndarray | None = None, gravity: np.ndarray | None = None, ground_first: bool = True,
    dtype: torch.dtype = torch.float64,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Of each thing: its q and v over time, [time, 13]; the quaternion's first number is not negative."""
    scene = cs.Scene(max_contacts=128, gravity=(0, 0, -9.81) if gravity is None else gravity)
    ground = terrain(np.zeros(3) if by is None else by, turn((0, 0, 1), 0.0) if quat is None else quat, kind)
    if ground_first:
        scene.add_shape(ground)
    for name in order:
        shapes, pos, orientation, _ = things[name]
        scene.add_body(name, joint=cs.Free(), pos=pos, quat=orientation, shapes=shapes)
    if not ground_first:
        scene.add_shape(ground)
    traj = run(scene, STEPS, v=np.concatenate([things[n][3] for n in order]), solver=FIRM, dtype=dtype)
    assert traj.status.contacts >= 8 and (dtype == torch.float32 or traj.status.converged)
    q, v = traj.q.astype(float).reshape(STEPS + 1, -1, 7), traj.v.astype(float).reshape(STEPS + 1, -1, 6)
    q = np.concatenate([q[..., :3], q[..., 3:] * np.sign(q[..., 3:4])], axis=-1)
    return {name: np.concatenate([q[:, i], v[:, i]], axis=1) for i, name in enumerate(order)}


def moved(things: dict[str, Thing], by: np.ndarray, quat: np.ndarray) -> dict[str, Thing]:
    """All of it turned about the origin, then shifted."""
    turned = lambda v: np.concatenate([rotate(quat, v[:3]), v[3:]])  # noqa: E731
    return {n: (s, rotate(quat, p) + by, quat_mul(quat, r), turned(v)) for n, (s, p, r, v) in things.items()}


def back(found: dict[str, np.ndarray], by: np.ndarray, quat: np.ndarray) -> dict[str, np.ndarray]:
    """And the other way round."""
    undo = quat * (1, -1, -1, -1)

    def one(y: np.ndarray) -> np.ndarray:
        r = quat_mul(undo, y[3:7])
        return np.concatenate([rotate(undo, y[:3] - by), r * np.sign(r[0]), rotate(undo, y[7:10]), y[10:]])

    return {name: np.array([one(y) for y in x]) for name, x in found.items()}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], atol: float, rate: float | None = None) -> None:
    """Positions and turns to atol, velocities to rate (default: as well)."""
    for name, x in expected.items():
        np.testing.assert_allclose(found[name][:, :7], x[:, :7], atol=atol, err_msg=name)
        np.testing.assert_allclose(found[name][:, 7:], x[:, 7:], atol=rate or atol, err_msg=name)


GROUNDS = ["plane", "box", "field"]
ORDERS = {"reversed": NAMES[::-1], "shuffled": [NAMES[i] for i in (3, 0, 5, 2, 4, 1)]}


@pytest.mark.parametrize("kind", GROUNDS)
@pytest.mark.parametrize("order", list(ORDERS))
def test_the_order_of_creation(order, kind):
    """Of two faces that lie on each other the first shape's is the reference: heights of the other points are then measured along
    another normal, which in the step where they come to lie is seen in velocities of 1e-4 rad/s."""
    assert_same(roll(things(), order=ORDERS[order], kind=kind, ground_first=False), roll(things(), kind=kind), SAME, 1e-5)


NOT = turn((0, 0, 1), 0.0)
MOVES = {
    "a kilometre off": ((1000.0, -1000.0, 0.0), NOT),
    "a kilometre up": ((0.0, 0.0, 1000.0), NOT),
    "turned about the vertical": ((0.0, 0.0, 0.0), turn((0, 0, 1), 0.7)),
    "turned over": ((0.3, -0.2, 0.1), turn((0.6, 0.8, 0), 2.0)),
}


@pytest.mark.parametrize("kind", GROUNDS)
@pytest.mark.parametrize("move", list(MOVES))
def test_the_world_is_moved(move, kind):
    """With its ground and its gravity. A kilometre away coordinates have steps of 1e-13 m, which contact divides by the step, and
    which hits spread."""
    by, quat = np.array(MOVES[move][0]), MOVES[move][1]
    found = roll(moved(things(), by, quat), kind=kind, by=by, quat=quat, gravity=rotate(quat, (0, 0, -9.81)))
    assert_same(back(found, by, quat), roll(things(), kind=kind), SAME if move.startswith("turned") else 100 * SAME)


def test_single_precision_follows_double():
    """While the two do not grow apart by themselves: 15 steps."""
    double, single = (roll(things(), dtype=dtype) for dtype in (torch.float64, torch.float32))
    for name, x in double.items():
        error = np.abs(single[name] - x)[:15]
        assert error[:, :7].max() < 1e-4 and error[:, 7:].max() < 1e-3 * max(1.0, np.abs(x[:, 7:]).max()), name


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale(scale):
    """Lengths by s, times by sqrt(s): the same motion under the same gravity. Masses are kept: rows are soft by an absolute 1e-10
    per kg, in which 1e10 kg would sink."""

    def brick(s: float) -> np.ndarray:
        scene, box = cs.Scene(), cs.Box((0.2 * s, 0.15 * s, 0.1 * s), mass=24.0)
        scene.add_shape(cs.Box((s, s, 0.5 * s), pos=(0, 0, -0.5 * s)))
        scene.add_body(joint=cs.Free(), pos=(0, 0, 0.3 * s), quat=turn((0.6, 0.8, 0), 0.5), shapes=box)
        small = cs.Contact(margin=0.01 * s, push_speed=0.5 * math.sqrt(s), bounce_speed=0.1 * math.sqrt(s))
        q = run(scene, 60, dt=0.01 * math.sqrt(s), contact=small).q
        return np.concatenate([q[:, :3] / s, q[:, 3:]], axis=1)

    np.testing.assert_allclose(brick(scale), brick(1.0), atol=1e-6)
