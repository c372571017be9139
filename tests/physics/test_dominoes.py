"""Boxes, cylinders and balls that tip, fall, slide and roll, on planes, boxes and terrain: against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import UPRIGHT, G, look, quat_mul, rotate, run, turn

GROUNDS = ["plane", "box", "field"]
EXACT = 1e-8  # relative: rows give way by 1e-9 of their stiffness
LIE = turn((1, 0, 0), math.pi / 2)  # puts the axis of a cylinder along y, across a slope that falls along x


def ground(kind: str, *, friction: float = 1.0, angle: float = 0.0, **options) -> cs.Scene:
    """A surface through the origin that falls along x by `angle`; a box is 6 m long, 2 m wide."""
    scene, lean = cs.Scene(**options), turn((0, 1, 0), angle)
    if kind == "plane":
        scene.add_shape(cs.Plane(quat=lean, friction=friction))
    elif kind == "box":
        scene.add_shape(cs.Box((3, 1, 0.5), pos=rotate(lean, (0, 0, -0.5)), quat=lean, friction=friction))
    else:
        x = np.linspace(-3, 3, 25)
        scene.add_shape(cs.Heightfield(np.tile(-x * math.tan(angle), (9, 1)).T, (3.0, 1.0), friction=friction))
    return scene


def pitch(q: np.ndarray) -> np.ndarray:
    """Angle about y of what turned about y alone."""
    return 2 * np.arctan2(q[..., 5], q[..., 3])


# ---- dominoes ------------------------------------------------------------------------------------------------------
TILE = (0.02, 0.08, 0.15)
TILES = 8


def domino_row(kind: str, spacing: float = 0.12) -> tuple[cs.Model, np.ndarray]:
    """Tiles along x; the first is pushed over its lower edge."""
    scene = ground(kind, friction=0.5, max_contacts=128)
    for k in range(TILES):
        scene.add_body(joint=cs.Free(), pos=(spacing * k, 0, TILE[2]), shapes=cs.Box(TILE, friction=0.5))
    model = scene.build()
    v = np.zeros(model.nv)
    v[0], v[4] = 1.5 * TILE[2], 1.5
    return model, v


def falls(kind: str, dt: float, seconds: float = 2.0, **options) -> tuple[np.ndarray, cs.Trajectory]:
    """When each tile passes 45 degrees, s, to a part of a step; all must."""
    model, v = domino_row(kind)
    traj = run(model, round(seconds / dt), dt=dt, v=v, **options)
    angle = pitch(traj.q.astype(float).reshape(len(traj.q), TILES, 7)).T
    assert (angle.max(1) > math.pi / 4).all()
    after = np.argmax(angle > math.pi / 4, axis=1)
    before, beyond = (angle[np.arange(TILES), after - k] for k in (1, 0))
    return dt * (after - 1 + (math.pi / 4 - before) / (beyond - before)), traj


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("kind", GROUNDS)
def test_a_row_of_dominoes_falls_in_order(kind, dtype):
    """One after the other and ever faster; in the end each leans on the next, at the angle where its upper edge touches that
    one's side, and the last lies flat."""
    at, traj = falls(kind, 0.01, dtype=dtype)
    assert (np.diff(at) > 0.02).all() and (np.diff(at, n=2) < 0).all()
    q = traj.q[-1].astype(float).reshape(TILES, 7)
    assert abs(pitch(q)[-1] - math.pi / 2) < 1e-4 and abs(q[-1, 2] - TILE[0]) < 1e-5
    assert (pitch(q)[:-1] > 1.15).all() and (pitch(q)[:-1] < 1.35).all()
    assert (np.diff(q[:, 0]) > 0).all()
    # they stay in line: nothing pushes them sideways but the sweeps of unsolved steps
    assert np.abs(q[:, 1]).max() < 5e-3 and np.abs(traj.v[-1]).max() < 0.05


def test_the_times_of_dominoes_converge():
    """As the step is halved, first order: they come down within 3 % of each other."""
    a, b, c = (falls("plane", dt, 1.25)[0] for dt in (0.01, 0.005, 0.0025))
    assert np.abs(a - b).max() < 0.03 and np.abs(b - c).max() < 0.7 * np.abs(a - b).max()


def test_dominoes_too_far_apart_stay():
    model, v = domino_row("plane", spacing=0.45)  # more than a tile's height, and how far it slides
    q = run(model, 200, v=v).q.reshape(-1, TILES, 7)
    assert pitch(q)[-1, 0] > 1.5 and np.abs(q[:, 1:] - q[0, 1:]).max() < 1e-8


# ---- tipping over an edge ------------------------------------------------------------------------------------------
HALF = (0.1, 0.15, 0.2)
BALANCE = math.atan2(HALF[0], HALF[2])  # tilt at which the centre of mass is above the edge


def tipped(kind: str, angle: float) -> cs.Model:
    """A box on its lower edge, which is at the origin, tilted by `angle`."""
    scene, quat = ground(kind), turn((0, 1, 0), angle)
    scene.add_body(joint=cs.Free(), pos=-rotate(quat, (HALF[0], 0, -HALF[2])), quat=quat, shapes=cs.Box(HALF))
    return scene.build()


@pytest.mark.parametrize("off", [-0.02, -1e-3, -1e-5, 1e-5, 1e-3, 0.02])
@pytest.mark.parametrize("kind", GROUNDS)
def test_a_box_tips_over_its_edge(kind, off):
    """Released `off` (rad) the balance it turns with m g d sin(off) / I about its edge, and ends on the side it falls to."""
    model = tipped(kind, BALANCE + off)
    d2 = HALF[0] ** 2 + HALF[2] ** 2
    expected = G * math.sqrt(d2) * math.sin(off) / (d2 / 3 + d2)
    _, info = look(model, dt=1e-3)
    np.testing.assert_allclose(info.acceleration[3:], [0, expected, 0], rtol=EXACT, atol=1e-9)
    # the centre of mass moves about the edge: sideways with the height, as it is above it
    np.testing.assert_allclose(info.acceleration[0], expected * math.sqrt(d2) * math.cos(off), rtol=EXACT, atol=1e-9)
    traj = run(model, 400)
    end, height = (0.0, HALF[2]) if off < 0 else (math.pi / 2, HALF[0])
    assert abs(pitch(traj.q[-1]) - end) < 1e-9 and abs(traj.q[-1, 2] - height) < 1e-9
    assert np.abs(traj.v[-1]).max() < 1e-9


def test_a_tipping_box_follows_its_pendulum():
    """About its edge, which sticks: an inverted pendulum, integrated here; first order in the step."""
    d = math.hypot(HALF[0], HALF[2])
    rate = G * d / (4 / 3 * d * d)
    errors = []
    for dt in (2e-3, 1e-3):
        steps = round(0.5 / dt)
        found = pitch(run(tipped("box", BALANCE + 0.1), steps, dt=dt).q) - BALANCE
        x, v, h = 0.1, 0.0, dt / 20
        for _ in range(20 * steps):  # leapfrog, second order, at a twentieth of the step
            v += h / 2 * rate * math.sin(x)
            x += h * v
            v += h / 2 * rate * math.sin(x)
        errors.append(abs(found[-1] - x))
    # exact motion is 0.1 cosh(sqrt(rate) t), so errors grow by e^2.9
    assert errors[0] < 5e-3 and 1.8 < errors[0] / errors[1] < 2.2


# ---- sliding and rolling -------------------------------------------------------------------------------------------
BLOCKS = {
    "box": (cs.Box((0.2, 0.15, 0.05), friction=0.5), np.array(UPRIGHT), 0.05),
    "turned box": (cs.Box((0.2, 0.15, 0.05), friction=0.5), turn((0, 0, 1), 0.4), 0.05),
    "cylinder": (cs.Cylinder(0.15, 0.05, friction=0.5), np.array(UPRIGHT), 0.05),
    "hull": (
        cs.Hull([(x, y, z) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (0, 0.1)], friction=0.5),
        np.array(UPRIGHT),
        0.0,
    ),
}


@pytest.mark.parametrize("name", list(BLOCKS))
@pytest.mark.parametrize("kind", GROUNDS)
def test_a_block_slides_or_sticks_by_the_friction_angle(kind, name):
    """1 % below it stays where it is, 1 % above it slides with g (sin - mu cos)."""
    shape, quat, height = BLOCKS[name]
    for part in (0.99, 1.01):
        angle = math.atan(part * 0.5)
        lean = turn((0, 1, 0), angle)
        scene = ground(kind, friction=0.5, angle=angle)
        scene.add_body(joint=cs.Free(), pos=rotate(lean, (-0.5, 0.02, height)), quat=quat_mul(lean, quat), shapes=shape)
        traj = run(scene, 100)
        if part < 1:
            assert np.abs(traj.v).max() < 1e-8
            continue
        a = G * (math.sin(angle) - 0.5 * math.cos(angle))
        expected = np.outer(np.arange(101) * 0.01 * a, rotate(lean, (1, 0, 0)))
        np.testing.assert_allclose(traj.v[:, :3], expected, atol=1e-7)
        assert np.abs(traj.v[:, 3:]).max() < 1e-6


ROUND = {  # shape; its moment of inertia over m r^2
    "cylinder": (cs.Cylinder(0.1, 0.2), 1 / 2),
    "ball": (cs.Sphere(0.1), 2 / 5),
    "capsule": (cs.Capsule(0.1, 0.2), None),
}


@pytest.mark.parametrize(("name", "kind"), [("cylinder", "plane"), *((n, k) for n in ("ball", "capsule") for k in GROUNDS)])
def test_it_rolls_down_a_slope(name, kind):
    """With g sin / (1 + I / m r^2), 2/3 g sin for the cylinder, from rest and in every step; it does not leave its line."""
    angle, r, (shape, part) = 0.3, 0.1, ROUND[name]
    lean = turn((0, 1, 0), angle)
    scene = ground(kind, angle=angle)
    scene.add_body(joint=cs.Free(), pos=rotate(lean, (-1.5, 0.02, r)), quat=LIE, shapes=shape)
    model = scene.build()
    if part is None:
        part = float(model.defaults["inertia"][-1, 2] / model.defaults["mass"][-1]) / r**2
    traj = run(model, 100)
    t, a = np.arange(101) * 0.01, G * math.sin(angle) / (1 + part)
    np.testing.assert_allclose(traj.v[:, :3], np.outer(a * t, rotate(lean, (1, 0, 0))), atol=1e-7)
    spin = np.array([rotate(q[3:], v[3:]) for q, v in zip(traj.q, traj.v)])
    np.testing.assert_allclose(spin, np.outer(a / r * t, (0, 1, 0)), atol=1e-6)
    np.testing.assert_allclose(traj.q[:, :3] @ rotate(lean, (0, 0, 1)), r, atol=1e-8)


@pytest.mark.parametrize("kind", ["box", "field"])
def test_a_prism_rolls_down_a_slope(kind):
    """Against all but planes a cylinder is a prism of 16 sides: it rolls from edge to edge. While it turns by phi about one, the
    energy of w^2 (1 + c) r / 2 g grows by cos(s - p) - cos(s - p + phi), with I = c m r^2, the slope s, and p = pi / 16. When the
    next one comes down the impact is inelastic and keeps (c + cos 2 p) / (c + 1) of w, 95 %: that is the price of 16 sides."""
    angle, r, p, dt = 0.3, 0.1, math.pi / 16, 2e-4
    lean = turn((0, 1, 0), angle)
    scene = ground(kind, angle=angle)
    quat = quat_mul(lean, quat_mul(LIE, turn((0, 0, 1), p)))
    scene.add_body(joint=cs.Free(), pos=rotate(lean, (-2.5, 0, r * math.cos(p))), quat=quat, shapes=cs.Cylinder(r, 0.2))
    traj = run(scene, 3000, dt=dt)
    w = np.array([rotate(q[3:], v[3:]) for q, v in zip(traj.q, traj.v)])[:, 1]
    turned, c = np.cumsum(w) * dt, 1 / 2
    gain = lambda phi: 2 * G / (r * (1 + c)) * (math.cos(angle - p) - math.cos(angle - p + phi))  # noqa: E731
    square = 0.0  # w^2 after the last impact
    for k in range(4):
        at = np.argmax(turned > 2 * p * k + 0.3)
        expected = math.sqrt(square + gain(turned[at] - 2 * p * k))
        np.testing.assert_allclose(w[at], expected, rtol=0.02)
        square = ((c + math.cos(2 * p)) / (c + 1)) ** 2 * (square + gain(2 * p))
    assert np.abs(traj.v[:, 1]).max() < 1e-6


# ---- edges and hollows ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape", [cs.Sphere(0.1), cs.Capsule(0.1, 0.2), cs.Cylinder(0.1, 0.2)], ids=["ball", "capsule", "cylinder"]
)
def test_it_rolls_off_the_edge_of_a_box(shape):
    """What comes slowly turns about the edge as long as the edge must push, and then flies: from rest until cos = 2 / (3 + c)
    with I = c m r^2, which is 10/17 for a ball. The prism of a cylinder does not touch with its round side, but does not go
    through the box either. All of them end on the ground."""
    r, v0 = 0.1, 0.05
    scene = cs.Scene()
    scene.add_ground(-1.0)
    scene.add_shape(cs.Box((1, 1, 0.5), pos=(-1, 0, -0.5)))
    scene.add_body(joint=cs.Free(), pos=(-0.02, 0, r), quat=LIE, shapes=shape)
    model = scene.build()
    c = float(model.defaults["inertia"][-1, 2] / model.defaults["mass"][-1]) / r**2
    v = [v0, 0, 0, *rotate(LIE * (1, -1, -1, -1), (0, v0 / r, 0))]  # turning in its own axes
    traj = run(model, 7500, dt=2e-4, v=v)
    x, z = traj.q[:, 0], traj.q[:, 2]
    # cos of the angle about the edge when it leaves it: g cos = w^2 r, w^2 r (1 + c) = 2 g (1 - cos) + v0^2 (1 + c) / r
    leaves = (2 + v0**2 * (1 + c) / (G * r)) / (3 + c)
    apart = np.hypot(x, z)
    turning = (x > 0) & (z > 0)
    cosine = z[turning] / apart[turning]
    on_edge = (
        apart[turning] < r + 1e-6
    )  # steps along the tangent leave the circle by 1e-7 m; in free flight it takes 4 ms, or 0.02 rad
    if not isinstance(shape, cs.Cylinder):
        assert abs(cosine[on_edge].min() - leaves) < 0.02
    assert apart[x > 0].min() > r * (math.cos(math.pi / 16) - 1e-3)
    assert abs(z[-1] - r + 1) < 1e-6 and abs(traj.v[-1, 2]) < 1e-6 and np.abs(traj.q[:, 1]).max() < 1e-6


def test_a_ball_between_two_boxes():
    """It sinks into the gap until it touches both upper edges, and presses them apart; the ground holds them, or not."""
    r, half_gap, mass = 0.2, 0.12, 1.0
    rest = math.sqrt(r**2 - half_gap**2)
    push = half_gap / rest / 2  # sideways, of the ball's weight, on each of them
    for mu, holds in ((0.5, True), (0.02, False)):
        scene = cs.Scene(friction_rule="minimum")
        scene.add_ground(friction=mu)
        for side in (-1, 1):
            scene.add_body(joint=cs.Free(), pos=(side * (half_gap + 0.2), 0, 0.2), shapes=cs.Box((0.2, 0.2, 0.2), mass=2 * mass))
        scene.add_body(joint=cs.Free(), pos=(0, 0, 0.4 + rest), shapes=cs.Sphere(r, mass=mass, friction=0.0))
        model = scene.build()
        _, info = look(model)
        # half of the ball is above each above each: it slides if the push is more than mu of the load
        assert (push < mu * 2.5) == holds
        traj = run(model, 100)
        if holds:
            assert np.abs(traj.q - traj.q[0]).max() < 1e-9
            c = info.contacts
            on_ball = c.impulse * ((c.shape_b == 3) * 1.0 - (c.shape_a == 3))[:, None]
            np.testing.assert_allclose(on_ball.sum(0), [0, 0, mass * G * 0.01], atol=1e-10)
            np.testing.assert_allclose(np.abs(on_ball[:, 0]).sum(), 2 * push * mass * G * 0.01, rtol=1e-7)
        else:
            x = traj.q[:, [0, 7]]
            assert (np.diff(x[:, 1]) > -1e-9).all() and x[-1, 1] - x[0, 1] > 0.05
            np.testing.assert_allclose(x[:, 0], -x[:, 1], atol=1e-6)
