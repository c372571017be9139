"""Friction: blocks on slopes in any direction, by the disc and by polygons; balls that roll, slide, and begin to roll."""

import math
from dataclasses import replace

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, Slope, look, on_ground, rotate, run

# Rows give way by 1e-9 of their own stiffness, so a force is met to about 1e-9 of itself; a second adds up 100 steps of it.
FORCE = 1e-7
STILL = 1e-6  # m or m/s after two seconds of standing
MU = 0.5
# Four corners share a load in many ways; close to slipping this takes more Newton steps than the default to solve to round-off.
FIRM = cs.PGS(iterations=100, polish=20)
NEAR = 0.01  # m/s after a second: what the default leaves undone there; ten times less elsewhere
HEADINGS = (0.0, 0.3, math.pi / 4, 1.2, 2.5)  # of the friction axes against the fall of the slope


def slide(slope: Slope, *, steps: int = 100, v: np.ndarray | None = None, **options) -> np.ndarray:
    """Mean acceleration of a block on the slope, from rest or from velocity v: downhill, across, away from the slope."""
    start = None if v is None else np.append(v, np.zeros(3))
    traj = run(slope.with_block(), steps, v=start, **{"solver": FIRM, **options})
    assert traj.status.converged and np.abs(traj.v[:, 3:]).max() < STILL, "it does not turn"
    change = (traj.v[-1] - traj.v[0])[:3] / (0.01 * steps)
    return np.array([change @ slope.downhill, change @ slope.across, change @ slope.normal])


# ---- the disc ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("heading", HEADINGS)
def test_a_block_sticks_below_the_friction_angle(heading):
    slope = Slope(math.atan(0.99 * MU), heading, MU)
    traj = run(slope.with_block(), 200)
    assert np.abs(traj.v).max() < STILL and np.abs(traj.q - traj.q[0]).max() < STILL


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_block_slides_above_the_friction_angle(heading):
    """With g (sin - mu cos), straight down the slope whatever the friction's own axes."""
    slope = Slope(math.atan(1.01 * MU), heading, MU)
    expected = G * (math.sin(slope.angle) - MU * math.cos(slope.angle))
    np.testing.assert_allclose(slide(slope), [expected, 0, 0], atol=FORCE * G)


@pytest.mark.parametrize("part", [0.9, 0.99, 1.001, 1.01, 1.05, 2.0])
@pytest.mark.parametrize("yaw", [0.0, 0.4])
def test_the_default_solver_near_the_friction_angle(part, yaw):
    """It sticks and slides as it should, to a stated bound."""
    slope = Slope(math.atan(part * MU), 0.3, MU)
    traj = run(slope.with_block(yaw=yaw), 100)
    expected = max(G * (math.sin(slope.angle) - MU * math.cos(slope.angle)), 0.0)
    np.testing.assert_allclose(traj.v[-1, :3], expected * slope.downhill, atol=NEAR)
    assert traj.status.residual < NEAR / 10


@pytest.mark.parametrize("heading", HEADINGS)
def test_friction_points_against_the_motion(heading):
    """A block shoved across a slope: the first step's friction is mu n against the velocity it ends with; pressed by g cos."""
    slope, h = Slope(0.3, heading, MU), 0.01
    v = 2.0 * slope.across
    state, info = look(slope.with_block(), v=[*v, 0, 0, 0])
    mass = float(slope.with_block().params()["mass"][0])
    impulse = info.contacts.impulse.sum(0)
    along = state.v[:3] / np.linalg.norm(state.v[:3])
    normal = impulse @ slope.normal
    np.testing.assert_allclose(normal, mass * G * math.cos(slope.angle) * h, rtol=FORCE)
    np.testing.assert_allclose(impulse - normal * slope.normal, -MU * normal * along, atol=FORCE * normal)
    assert (info.contacts.state[info.contacts.active] == 3).all(), "sliding"


def test_a_shoved_block_comes_to_rest():
    """On the level after v^2 / (2 mu g), to the first order in the step; then it stays where it is."""
    v0, h = 2.0, 0.002
    traj = run(on_ground(cs.Box((0.2, 0.15, 0.02), friction=MU), height=0.02, ground={"friction": MU}), 600, dt=h,
               v=[v0 * math.cos(0.7), v0 * math.sin(0.7), 0, 0, 0, 0])  # fmt: skip
    way = np.linalg.norm(traj.q[-1, :2])
    assert abs(way - v0**2 / (2 * MU * G)) < v0 * h
    np.testing.assert_allclose(traj.q[-1, :2] / way, [math.cos(0.7), math.sin(0.7)], atol=1e-9)
    assert np.abs(traj.v[300:]).max() < STILL


def test_no_friction_is_none():
    slope = Slope(0.4, 0.3, 0.0)
    np.testing.assert_allclose(slide(slope), [G * math.sin(0.4), 0, 0], atol=FORCE * G)


@pytest.mark.parametrize(
    ("rule", "expected"), [("geometric", 0.4), ("maximum", 0.8), ("minimum", 0.2), ("arithmetic", 0.5), ("product", 0.16)]
)
def test_friction_of_two_shapes_by_rule(rule, expected):
    scene = on_ground(cs.Sphere(0.1, friction=0.8), height=0.1, ground={"friction": 0.2}, friction_rule=rule)
    state, _ = look(scene, v=[1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(state.v[0], 1 - expected * G * 0.01, rtol=FORCE)


# ---- polygons ------------------------------------------------------------------------------------------------------
def test_a_square_is_the_disc_along_its_axes():
    slope = Slope(math.atan(1.05 * MU), 0.0, MU)
    expected = G * (math.sin(slope.angle) - MU * math.cos(slope.angle))
    np.testing.assert_allclose(slide(slope, solver=replace(FIRM, cone="square")), [expected, 0, 0], atol=FORCE * G)


def test_a_square_holds_more_along_its_diagonal():
    """Both axes hold mu n, together sqrt(2) mu n."""
    hold = math.sqrt(2) * MU
    square = replace(FIRM, cone="square")
    below, above = (Slope(math.atan(part * hold), math.pi / 4, MU) for part in (0.99, 1.01))
    assert np.abs(run(below.with_block(), 100, solver=square).v).max() < STILL
    expected = G * (math.sin(above.angle) - hold * math.cos(above.angle))
    np.testing.assert_allclose(slide(above, solver=square), [expected, 0, 0], atol=FORCE * G)


def test_a_square_may_hold_one_axis_and_slide_along_the_other():
    """At 30 degrees off its axis one component of gravity is below mu n and the other above: the block leaves the fall line."""
    slope = Slope(math.atan(1.4 * MU), math.pi / 6, MU)
    x, y = slope.axes
    pull, hold = G * math.sin(slope.angle), MU * G * math.cos(slope.angle)
    assert abs(pull * slope.downhill @ y) < hold < pull * slope.downhill @ x
    a = (pull * slope.downhill @ x - hold) * x
    expected = [a @ slope.downhill, a @ slope.across, 0]
    np.testing.assert_allclose(slide(slope, solver=replace(FIRM, cone="square")), expected, atol=FORCE * G)


@pytest.mark.parametrize("corners", [3, 4, 6, 8, 16])
def test_a_pyramid_holds_mu_n_at_a_corner_and_less_between(corners):
    """Gravity pulls down the slope, friction up: towards a corner (on the first axis) it holds mu n, towards the middle of an
    edge the apothem's share."""
    solver, apothem = replace(FIRM, cone=corners), math.cos(math.pi / corners)
    for heading, share in ((math.pi, 1.0), (math.pi + math.pi / corners, apothem)):
        hold = share * MU
        below, above = (Slope(math.atan(part * hold), heading, MU) for part in (0.99, 1.01))
        assert np.abs(run(below.with_block(), 100, solver=solver).v).max() < STILL
        expected = G * (math.sin(above.angle) - hold * math.cos(above.angle))
        np.testing.assert_allclose(slide(above, solver=solver), [expected, 0, 0], atol=FORCE * G)


@pytest.mark.parametrize("cone", [8, 32])
def test_a_pyramid_lies_within_the_disc_and_nears_it(cone):
    """In any direction it slides at least as fast as by the disc, and by at most the missing apothem faster."""
    for heading in HEADINGS:
        slope = Slope(math.atan(1.5 * MU), heading, MU)
        disc, found = slide(slope), slide(slope, solver=replace(FIRM, cone=cone))
        slack = MU * G * (1 - math.cos(math.pi / cone))
        assert disc[0] - FORCE * G <= found[0] <= disc[0] + slack + FORCE * G
        assert abs(found[1]) <= MU * G * math.sin(math.pi / cone) + FORCE * G


# ---- rolling -------------------------------------------------------------------------------------------------------
def ball_on(slope: Slope, radius: float = 0.1) -> cs.Scene:
    scene = slope.scene()
    ball = cs.Sphere(radius, friction=slope.friction)
    scene.add_body("ball", joint=cs.Free(), pos=radius * slope.normal, shapes=ball)
    return scene


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_ball_rolls_down_a_slope_without_slipping(heading):
    """With 5/7 g sin, from rest and every step; its lowest point does not move."""
    slope, r = Slope(0.4, heading, 0.5), 0.1
    traj = run(ball_on(slope, r), 100)
    n = np.arange(101)[:, None]
    np.testing.assert_allclose(traj.v[:, :3], n * 0.01 * 5 / 7 * G * math.sin(0.4) * slope.downhill, atol=FORCE * G)
    spin = [_world(q, v) for q, v in zip(traj.q, traj.v)]
    contact = traj.v[:, :3] + np.cross(spin, -r * slope.normal)
    assert np.abs(contact).max() < FORCE * G
    assert abs(traj.q[-1, :3] @ slope.normal - r) < STILL


def test_a_ball_slips_down_a_steep_slope():
    """Friction below 2/7 tan cannot turn it fast enough: g (sin - mu cos), and it turns with 5/2 mu g cos / r."""
    angle, r, mu = 0.9, 0.1, 0.2
    assert mu < 2 / 7 * math.tan(angle)
    slope = Slope(angle, 0.3, mu)
    traj = run(ball_on(slope, r), 100)
    t = np.arange(101)[:, None] * 0.01
    np.testing.assert_allclose(traj.v[:, :3], t * G * (math.sin(angle) - mu * math.cos(angle)) * slope.downhill, atol=FORCE * G)
    spin = np.array([_world(q, v) for q, v in zip(traj.q, traj.v)])
    np.testing.assert_allclose(spin, t * 2.5 * mu * G * math.cos(angle) / r * slope.across, atol=100 * FORCE * G)


@pytest.mark.parametrize("direction", [0.0, 0.7])
def test_a_sliding_ball_begins_to_roll(direction):
    """At 5/7 of its speed, after 2 v0 / (7 mu g); until then it slows by mu g."""
    r, mu, v0, h = 0.1, 0.3, 3.0, 0.005
    d = np.array([math.cos(direction), math.sin(direction), 0])
    scene = on_ground(cs.Sphere(r, friction=mu), height=r, ground={"friction": mu})
    traj = run(scene, 200, dt=h, v=[*v0 * d, 0, 0, 0])
    t = np.arange(201) * h
    begins = 2 * v0 / (7 * mu * G)
    expected = np.where(t < begins, v0 - mu * G * t, 5 / 7 * v0)
    speed = traj.v[:, :3] @ d
    apart = np.abs(t - begins) > h  # the step in which it changes over is in between
    np.testing.assert_allclose(speed[apart], expected[apart], rtol=FORCE)
    np.testing.assert_allclose(traj.v[-1, :3], 5 / 7 * v0 * d, atol=FORCE * v0)


def test_a_backspinning_ball_returns():
    """Angular momentum about the contact is kept: v = (5 v0 - 2 r w) / 7."""
    r, v0, w = 0.1, 1.0, 60.0
    scene = on_ground(cs.Sphere(r, friction=0.4), height=r, ground={"friction": 0.4})
    traj = run(scene, 300, dt=0.005, v=[v0, 0, 0, 0, -w, 0])
    np.testing.assert_allclose(traj.v[-1, 0], (5 * v0 - 2 * r * w) / 7, rtol=FORCE)
    assert traj.v[-1, 0] < 0


def _world(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Angular velocity of a free body in world axes."""
    return rotate(q[3:7], v[3:6])
