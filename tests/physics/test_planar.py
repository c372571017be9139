"""Contact in the plane against closed forms: resting, sliding, rolling, tipping, hits, overlaps, and pairs that do not touch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, look, run
from tests.physics.planar_scenes import HEXAGON, SURFACES, TRAPEZOID, Surface, turned

H = 0.01
# Rows give way by 1e-9 of their own stiffness, so a force is met to about 1e-9 of itself; a second adds up 100 steps of it.
FORCE = 1e-7
STILL = 1e-8  # m, m/s of what stands
MU = 0.5
EXACT = cs.PGS(iterations=100, polish=20)
SEPARATED, STICKING, SLIDING = 1, 2, 3

# shape; how far its origin is above a surface that it lies on
SHAPES = {
    "circle": (cs.Circle(0.1, friction=MU), 0.1),
    "rectangle": (cs.Rectangle((0.2, 0.05), friction=MU), 0.05),
    "polygon": (cs.Polygon(TRAPEZOID, friction=MU), 0.05),
    "hexagon": (cs.Polygon(HEXAGON, friction=MU), 0.12 * math.sqrt(3) / 2),
    "shifted": (cs.Rectangle((0.2, 0.05), friction=MU, pos=(0.03, 0.02)), 0.03),
}
FLAT = [name for name in SHAPES if name != "circle"]


# ---- at rest -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("name", SHAPES)
def test_it_rests_at_its_height(name, kind):
    """Dropped from 2 mm: it lands, at the height of its lowest points, and stays; the surface carries its weight."""
    shape, above = SHAPES[name]
    model = Surface(kind=kind).with_body(shape, above + 0.002, x=0.3).build()
    traj = run(model, 200)
    np.testing.assert_allclose(traj.q[-1], [0.3, above, 0], atol=STILL)
    assert np.abs(traj.v[-1]).max() < STILL
    _, info = look(model, q=traj.q[-1], v=traj.v[-1])
    weight = float(model.defaults["mass"].sum()) * G * H
    c = info.contacts
    np.testing.assert_allclose(c.impulse.sum(0), [0, weight, 0], atol=FORCE * weight)
    assert (c.state[c.active & (c.impulse[:, 1] > 0)] == STICKING).all() and c.active.sum() == (1 if name == "circle" else 2)


@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("name", FLAT)
def test_it_rests_on_a_slope(name, kind):
    """0.3 rad, less than friction holds: where it lands it stays, at its height."""
    shape, above = SHAPES[name]
    surface = Surface(0.3, MU, kind=kind)
    traj = run(surface.with_body(shape, above + 1e-4), 200, solver=EXACT)
    start, end = traj.q[50], traj.q[-1]
    assert np.abs(end - start).max() < STILL and abs(end[:2] @ surface.normal - above) < STILL and abs(end[2] + 0.3) < STILL


@pytest.mark.parametrize("softness", [0.0, 1e-8])
def test_a_rectangle_shares_its_load_between_its_corners(softness):
    """With the centre of mass `c` off its middle: (1 +- c / half) / 2 of the weight each, and each sinks by softness times it."""
    c, half = 0.05, 0.2
    scene = Surface().scene()
    box = cs.Rectangle((half, 0.05), softness=softness)
    scene.add_body("body", pos=(0, 0.05), shapes=box, mass=2.0, inertia=0.1, com=(c, 0.0))
    traj = run(scene, 400)
    _, info = look(scene, q=traj.q[-1], v=traj.v[-1])
    order = np.argsort(info.contacts.point[:2, 0])
    expected = 2.0 * G * H * np.array([1 - c / half, 1 + c / half]) / 2
    np.testing.assert_allclose(info.contacts.impulse[:2, 1][order], expected, rtol=1e-6)
    sunk = -info.contacts.gap[:2][order]
    np.testing.assert_allclose(sunk, softness * expected / H, atol=1e-10, rtol=1e-3)


def test_a_ball_in_a_groove():
    """Two half planes at 45 degrees: each pushes with m g / sqrt(2)."""
    scene = cs.Scene(planar=True)
    for side in (-1, 1):
        scene.add_shape(cs.HalfPlane(angle=side * math.pi / 4, friction=0.0))
    scene.add_body("ball", pos=(0, 0.1 * math.sqrt(2)), shapes=cs.Circle(0.1, mass=2.0))
    traj = run(scene, 100)
    assert np.abs(traj.q - traj.q[0]).max() < STILL
    _, info = look(scene)
    push = np.linalg.norm(info.contacts.impulse, axis=-1) / H
    np.testing.assert_allclose(push, [2.0 * G / math.sqrt(2)] * 2, rtol=FORCE)


# ---- sliding -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("part", [0.9, 0.999, 1.001, 1.1, 2.0])
def test_a_block_sticks_or_slides_by_the_friction_angle(part, name, kind):
    """tan(angle) = mu decides; above it slides with g (sin - mu cos), every step."""
    surface = Surface(math.atan(part * MU), MU, kind=kind)
    shape, above = SHAPES[name]
    traj = run(surface.with_body(shape, above, x=-2.0), 100, solver=EXACT)
    a = max(G * (math.sin(surface.angle) - MU * math.cos(surface.angle)), 0.0)
    expected = np.outer(a * H * np.arange(101), surface.downhill)
    np.testing.assert_allclose(traj.v[:, :2], expected, atol=FORCE * G)
    assert np.abs(traj.v[:, 2]).max() < 1e-6 and traj.status.converged
    # what sticks may have one corner at its limit, as long as the other holds
    _, info = look(surface.with_body(shape, above, x=-2.0), solver=EXACT)
    pressed = info.contacts.state[info.contacts.active & (np.linalg.norm(info.contacts.impulse, axis=-1) > 0)]
    assert STICKING in pressed if part < 1 else (pressed == SLIDING).all()


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_a_shoved_block_comes_to_rest(direction):
    """After v^2 / (2 mu g) to the first order in the step; then it stays where it is."""
    v0, h = 2.0, 0.002
    shape, above = SHAPES["rectangle"]
    traj = run(Surface(friction=MU).with_body(shape, above), 400, dt=h, v=[direction * v0, 0, 0])
    assert abs(direction * traj.q[-1, 0] - v0**2 / (2 * MU * G)) < v0 * h
    assert np.abs(traj.v[300:]).max() < STILL and np.abs(traj.q[:, 2]).max() < 1e-7


def test_no_friction_is_none():
    surface = Surface(0.4, 0.0)
    traj = run(surface.with_body(*SHAPES["rectangle"]), 50)
    np.testing.assert_allclose(traj.v[-1, :2], 50 * H * G * math.sin(0.4) * surface.downhill, rtol=FORCE)


@pytest.mark.parametrize(
    ("rule", "expected"), [("geometric", 0.4), ("maximum", 0.8), ("minimum", 0.2), ("arithmetic", 0.5), ("product", 0.16)]
)
def test_friction_of_two_shapes_by_rule(rule, expected):
    scene = Surface(friction=0.2).with_body(cs.Circle(0.1, friction=0.8), 0.1, friction_rule=rule)
    np.testing.assert_allclose(look(scene, v=[1, 0, 0])[0].v[0], 1 - expected * G * H, rtol=FORCE)


# ---- rolling -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", SURFACES)
def test_a_circle_rolls_down_a_slope(kind):
    """With 2/3 g sin, from rest and in every step, and never slips; it stays on its surface."""
    surface, r = Surface(0.4, 0.5, kind=kind), 0.1
    traj = run(surface.with_body(cs.Circle(r, friction=0.5), r, x=-2.0), 100)
    speed = 2 / 3 * G * math.sin(0.4) * H * np.arange(101)
    np.testing.assert_allclose(traj.v[:, :2], np.outer(speed, surface.downhill), atol=FORCE * G)
    np.testing.assert_allclose(traj.v[:, 2], -speed / r, atol=FORCE * G / r)
    np.testing.assert_allclose(traj.q[:, :2] @ surface.normal, r, atol=STILL)


def test_a_circle_slips_down_a_steep_slope():
    """Friction below tan / 3 cannot turn it fast enough: g (sin - mu cos), and it turns with 2 mu g cos / r."""
    angle, r, mu = 0.9, 0.1, 0.2
    assert mu < math.tan(angle) / 3
    surface = Surface(angle, mu)
    traj = run(surface.with_body(cs.Circle(r, friction=mu), r), 100)
    t = H * np.arange(101)
    a = G * (math.sin(angle) - mu * math.cos(angle))
    np.testing.assert_allclose(traj.v[:, :2], np.outer(a * t, surface.downhill), atol=FORCE * G)
    np.testing.assert_allclose(traj.v[:, 2], -2 * mu * G * math.cos(angle) / r * t, atol=FORCE * G / r)


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_a_sliding_circle_begins_to_roll(direction):
    """At 2/3 of its speed, after v0 / (3 mu g); until then it slows by mu g."""
    r, mu, v0, h = 0.1, 0.3, 3.0, 0.005
    traj = run(Surface(friction=mu).with_body(cs.Circle(r, friction=mu), r), 200, dt=h, v=[direction * v0, 0, 0])
    t, begins = h * np.arange(201), v0 / (3 * mu * G)
    expected = np.where(t < begins, v0 - mu * G * t, 2 / 3 * v0)
    apart = np.abs(t - begins) > h  # the step in which it changes over is in between
    np.testing.assert_allclose(direction * traj.v[apart, 0], expected[apart], rtol=FORCE)
    np.testing.assert_allclose(traj.v[-1, 2], -direction * 2 / 3 * v0 / r, rtol=FORCE)


@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("off", [-0.02, -1e-4, 1e-4, 0.02])
def test_a_rectangle_tips_over_its_corner(kind, off):
    """Released `off` (rad) the balance it turns with m g d sin(off) / I about its corner, and ends on the side it falls to."""
    half = (0.1, 0.2)
    tilt, d = math.atan2(*half) + off, math.hypot(*half)
    scene = Surface(kind=kind).scene()
    at = -turned((half[0], -half[1]), -tilt)
    scene.add_body("block", pos=tuple(at), angle=-tilt, shapes=cs.Rectangle(half))
    _, info = look(scene, dt=1e-3)
    a = G * d * math.sin(off) / (d * d / 3 + d * d)
    np.testing.assert_allclose(info.acceleration, [a * d * math.cos(off), -a * d * math.sin(off), -a], atol=1e-6)
    traj = run(scene, 400)
    end, height = (0.0, half[1]) if off < 0 else (-math.pi / 2, half[0])
    assert abs(traj.q[-1, 2] - end) < STILL and abs(traj.q[-1, 1] - height) < STILL and np.abs(traj.v[-1]).max() < STILL


# ---- hits ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", ["circle", "rectangle", "hexagon"])
def test_a_dropped_body_rebounds_with_e_times_its_speed(name, e):
    """Flat or round, the whole of it; from there on semi-implicit Euler keeps v^2/2 + g y - h g v/2, with e = 1 for ever."""
    shape, above = SHAPES[name]
    traj = run(Surface(restitution=e).with_body(replace(shape, restitution=e), above + 0.5), 300, dt=0.005)
    v = traj.v[:, 1]
    hits = np.nonzero((v[:-1] < -0.2) & (v[1:] > -1e-7))[0]
    assert len(hits) >= (1 if e == 0 else 2)
    np.testing.assert_allclose(v[hits + 1], -e * v[hits], atol=1e-7)
    assert abs(v[hits[0]] + math.sqrt(G)) < 2 * G * 0.005 and traj.q[:, 1].min() > above - STILL
    if e == 1:
        energy = v**2 / 2 + G * traj.q[:, 1] - 0.005 * G * v / 2
        np.testing.assert_allclose(energy, energy[0], rtol=1e-6)


@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_an_oblique_bounce_with_and_without_grip(mu):
    """Tangential impulse mu (1 + e) m v_n while it slips; else the lowest point stops: 2/3 of the tangential speed."""
    vn, vt, e = 3.0, 2.0, 0.5
    ball = cs.Circle(0.1, restitution=e, friction=mu)
    scene = Surface(friction=mu, restitution=e).with_body(ball, 0.1, gravity=(0, 0))
    state, info = look(scene, v=[vt, -vn, 0])
    slips = mu * (1 + e) * vn < vt / 3
    after = vt - mu * (1 + e) * vn if slips else 2 / 3 * vt
    np.testing.assert_allclose(state.v, [after, e * vn, -2 * (vt - after) / 0.1], atol=FORCE)
    assert info.contacts.state[0] == (SLIDING if slips else STICKING)


@pytest.mark.parametrize("e", [0.0, 0.7])
def test_two_circles_hit_each_other(e):
    """Head on: v_b - v_a = e times the closing speed, momentum as before."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for name, x, mass in (("a", 0.0, 1.0), ("b", 0.25, 3.0)):
        scene.add_body(name, pos=(x, 0), shapes=cs.Circle(0.1, mass=mass, restitution=e))
    v = run(scene, 20, v=[2.0, 0, 0, 0, 0, 0]).v[-1]
    np.testing.assert_allclose(v[[0, 3]], [2.0 * (1 - 3 * e) / 4, 2.0 * (1 + e) / 4], atol=FORCE)


def test_a_corner_hits_the_ground():
    """A rectangle at 30 degrees, no friction: impulse (1 + e) v / (1/m + x^2/I) at the lever x of its corner."""
    e, half, angle, m = 0.6, (0.2, 0.1), math.pi / 6, 2.0
    box = cs.Rectangle(half, mass=m, restitution=e, friction=0.0)
    corner = turned((-half[0], -half[1]), angle)
    scene = Surface(friction=0.0, restitution=e).with_body(box, -corner[1], turn=angle, gravity=(0, 0))
    inertia = m * (half[0] ** 2 + half[1] ** 2) / 3
    p = (1 + e) * 2.0 / (1 / m + corner[0] ** 2 / inertia)
    state, _ = look(scene, v=[0.5, -2.0, 0])
    np.testing.assert_allclose(state.v, [0.5, -2.0 + p / m, p * corner[0] / inertia], atol=FORCE)


def test_a_fast_circle_does_not_pass_a_thin_wall():
    """5 mm thick, 0.5 m per step: what would hit within a step stops before it."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_shape(cs.Rectangle((0.0025, 1.0), pos=(1.0, 0.0)))
    scene.add_body("ball", pos=(0.3, 0), shapes=cs.Circle(0.05))
    traj = run(scene, 50, v=[50.0, 0, 0])
    assert 0.3 < traj.q[-1, 0] < 1 - 0.0025 - 0.05 and np.abs(traj.v[-1]).max() < 1e-6


# ---- two points ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("offset", [0.0, 0.05, -0.09, 0.11])
@pytest.mark.parametrize("upper", ["rectangle", "polygon"])
def test_two_points_where_one_lies_on_the_other(upper, offset):
    """A plate 0.2 m wide on a post of the same width: they touch where both are, and it stands if its middle is above."""
    scene = cs.Scene(planar=True)
    scene.add_shape(cs.Rectangle((0.1, 0.5), pos=(0, -0.5)))
    flat = ((-0.1, -0.05), (0.1, -0.05), (0.1, 0.05), (-0.1, 0.05))
    plate = cs.Rectangle((0.1, 0.05), mass=1.0) if upper == "rectangle" else cs.Polygon(flat, mass=1.0)
    scene.add_body("plate", pos=(offset, 0.05), shapes=plate)
    _, info = look(scene)
    c = info.contacts
    assert c.active.sum() == 2
    ends = sorted((max(-0.1, offset - 0.1), min(0.1, offset + 0.1)))
    np.testing.assert_allclose(sorted(c.point[:2, 0]), ends, atol=1e-12)
    traj = run(scene, 200)
    if abs(offset) < 0.1:
        assert np.abs(traj.q - traj.q[0]).max() < STILL
        # the nearer end bears more: moments about the middle of the plate vanish
        np.testing.assert_allclose((c.point[:2, 0] - offset) @ c.impulse[:2, 1], 0, atol=1e-8)
    else:
        assert traj.q[-1, 2] < -0.3 and traj.q[-1, 1] < 0


def test_a_corner_on_an_edge_is_one_point():
    scene = Surface(kind="rectangle").with_body(cs.Rectangle((0.1, 0.1)), 0.1 * math.sqrt(2), turn=math.pi / 4)
    _, info = look(scene)
    np.testing.assert_allclose(info.contacts.point[info.contacts.active], [[0, 0, 0]], atol=1e-12)


# ---- overlaps ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("name", SHAPES)
def test_a_deep_overlap_recovers(name, kind, dtype):
    """Sunk by more than its height: it comes out with at most push_speed, and rests on the surface."""
    shape, above = SHAPES[name]
    traj = run(Surface(kind=kind).with_body(shape, above - 0.15), 300, dtype=dtype)
    assert traj.v[:, 1].max() < cs.Contact().push_speed * (1 + 1e-5) and np.abs(traj.v[-1]).max() < 1e-4
    assert abs(traj.q[-1, 1] - above) < 1e-4


@pytest.mark.parametrize("b", ["circle", "rectangle", "hexagon"])
@pytest.mark.parametrize("a", ["circle", "rectangle", "hexagon"])
def test_bodies_in_the_same_place_part(a, b):
    """Without gravity: pushed apart, their common centre of mass stays."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", shapes=replace(SHAPES[a][0], mass=1.0))
    scene.add_body("b", pos=(0.01, 0.02), angle=0.3, shapes=replace(SHAPES[b][0], mass=2.0))
    model = scene.build()
    traj = run(model, 300)
    _, info = look(model, q=traj.q[-1], v=traj.v[-1])
    assert not info.contacts.active.any() or info.contacts.gap[info.contacts.active].min() > -1e-6
    com = cs.centre_of_mass(model, traj.q)
    np.testing.assert_allclose(com, com[:1].repeat(301, 0), atol=1e-9)


# ---- pairs that do not touch ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["exclude", "mask", "collide", "lock"])
def test_excluded_pairs_pass_through_each_other(how):
    """And only they: what lies behind is hit, if anything may be."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    options = {"mask": {"mask": 0, "group": 2}, "collide": {"collide": False}}.get(how, {})
    scene.add_body("a", shapes=cs.Circle(0.1, mass=1.0, **options))
    scene.add_body("b", pos=(0.5, 0), shapes=cs.Rectangle((0.1, 0.1), mass=1.0, mask=1))
    scene.add_body("c", pos=(1.0, 0), angle=0.2, shapes=cs.Polygon(HEXAGON, mass=1.0, mask=1))
    if how == "exclude":
        scene.exclude("a", "b")
    elif how == "lock":  # tied bodies do not touch each other
        scene.add_lock("a", "b", y=True)
    traj = run(scene, 120, v=[1.0, *[0.0] * 8])
    behind = traj.q[:, 0] < 0.75
    np.testing.assert_allclose(traj.v[behind, 0], 1.0, rtol=FORCE)
    assert np.abs(traj.v[behind, 3]).max() < FORCE and behind.sum() > 70, "b was not hit"
    assert (traj.v[-1, 0] < 0.9) == (how in ("exclude", "lock")), "c was"
