"""Joint limits hold, dry friction holds and gives way, in closed form and as step(info=True) reports it."""

import math

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, look, quat_mul, rotate, run, turn

STILL = 1e-8  # a row gives way by 1e-9 of its stiffness
FORCE = 1e-8  # relative
LOWER, FREE, UPPER = 1, 2, 3  # states of a row


def slider(mass: float = 2.0, *, axis=(1, 0, 0), gravity=(0, 0, 0), **joint) -> cs.Scene:
    scene = cs.Scene(gravity=gravity)
    scene.add_body("slider", joint=cs.Prismatic(axis, **joint), mass=mass, inertia=(1, 1, 1))
    scene.add_motor("slider")
    return scene


def wheel(inertia: float = 0.3, **joint) -> cs.Scene:
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", joint=cs.Revolute((0, 1, 0), **joint), mass=1.0, inertia=(inertia,) * 3)
    scene.add_motor("wheel")
    return scene


# ---- limits --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [slider, wheel])
@pytest.mark.parametrize(("force", "end"), [(50.0, 0.4), (-50.0, -0.2)])
def test_a_limit_stops_and_holds(make, force, end):
    """Never beyond it, then at rest on it; it bears what drives against it."""
    scene = make(limits=(-0.2, 0.4))
    traj = run(scene, 100, control=[force])
    assert np.abs(traj.q[-50:, 0] - end).max() < STILL and np.abs(traj.v[-50:]).max() < STILL
    assert traj.q.min() > -0.2 - STILL and traj.q.max() < 0.4 + STILL
    _, info = look(scene, q=traj.q[-1], v=traj.v[-1], control=[force])
    np.testing.assert_allclose(info.rows.impulse[0], abs(force) * 0.01, rtol=FORCE)
    assert info.rows.state[0] == FREE


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_a_fast_joint_stops_at_its_limit(dt):
    """Without a bounce, whatever its speed: the step ends on the limit."""
    traj = run(wheel(limits=(-1.0, 1.0)), round(0.2 / dt), dt=dt, v=[30.0])
    assert abs(traj.q.max() - 1.0) < STILL and abs(traj.v[-1, 0]) < STILL


def test_a_limit_only_pushes():
    """A joint that leaves its limit is not held back."""
    traj = run(slider(limits=(0.0, 1.0)), 20, control=[4.0])
    n = np.arange(21)
    np.testing.assert_allclose(traj.v[:, 0], n * 0.01 * 2.0, atol=STILL)
    state, info = look(slider(limits=(0.0, 1.0)), control=[4.0])
    assert info.rows.impulse[0] == 0 and info.rows.state[0] == LOWER and state.v[0] > 0
    assert look(slider(limits=(0.0, 1.0)), q=[0.5], control=[4.0])[1].rows.state[0] == 0, "far away: no row"


@pytest.mark.parametrize("gravity", [0.0, -G])
def test_beyond_a_limit_a_joint_returns_quietly(gravity):
    """At push_speed at most, and to the limit itself."""
    contact = cs.Contact()
    scene = slider(limits=(-0.5, 0.5), axis=(0, 0, 1), gravity=(0, 0, gravity))
    traj = run(scene, 300, q=[-1.0])
    assert traj.v[:, 0].max() < contact.push_speed + STILL and traj.q.max() < 0.5 + STILL
    if gravity:
        assert abs(traj.q[-1, 0] + 0.5) < STILL


def test_a_pendulum_rests_on_its_limit():
    """Torque m g d sin against the limit."""
    scene = cs.Scene()
    scene.add_body("rod", joint=cs.Revolute((0, 1, 0), limits=(0.5, 2.5)), mass=2.0, com=(0, 0, -0.4), inertia=(0.05, 0.05, 0.01))
    traj = run(scene, 300, q=[1.5])
    assert abs(traj.q[-1, 0] - 0.5) < STILL
    _, info = look(scene, q=traj.q[-1], v=traj.v[-1])
    np.testing.assert_allclose(info.rows.impulse[0] / 0.01, 2.0 * G * 0.4 * math.sin(0.5), rtol=1e-7)


def ball_joint(limit: float) -> cs.Scene:
    """A rod on a ball joint, upright over it."""
    scene = cs.Scene()
    scene.add_body("rod", joint=cs.Ball(limit=limit), mass=2.0, com=(0, 0, 0.4), inertia=(0.05, 0.05, 0.01))
    return scene


def angle(q: np.ndarray) -> np.ndarray:
    return 2 * np.arccos(np.clip(np.abs(q[..., 0]), 0, 1))


@pytest.mark.parametrize("direction", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("limit", [0.3, 1.0, 2.0])
def test_a_ball_joint_leans_on_its_cone(direction, limit):
    """It falls to the limit and stays there; its torque is m g d sin about the horizontal axis."""
    scene = ball_joint(limit)
    axis = np.array([math.cos(direction), math.sin(direction), 0])
    traj = run(scene, 300, q=turn(axis, 0.1))
    found = angle(traj.q)
    assert found.max() < limit + 1e-6 and abs(found[-1] - limit) < 1e-6
    assert np.abs(traj.v[-1]).max() < 1e-6
    _, info = look(scene, q=traj.q[-1], v=traj.v[-1])
    np.testing.assert_allclose(info.rows.impulse[0] / 0.01, 2.0 * G * 0.4 * math.sin(limit), rtol=1e-5)


def test_a_ball_joint_slides_along_its_cone():
    """Hit sideways on the limit it moves around. A step along the tangent leaves the curve by (h w)^2 / 2, and recovery takes
    back a fifth of what is left; so that much over recovery at most."""
    scene = ball_joint(1.0)
    start = turn((1, 0, 0), 1.0)
    spin = rotate(start * [1, -1, -1, -1], (0, 0, 3.0))  # about the vertical, in body axes
    traj = run(scene, 200, q=start, v=spin)
    found = angle(traj.q)
    speed = np.linalg.norm(traj.v, axis=1).max()
    assert found.max() < 1.0 + (0.01 * speed) ** 2 / 2 / cs.Contact().recovery
    tip = np.array([rotate(q, (0, 0, 1)) for q in traj.q])
    assert (np.abs(tip[-1] - tip[0]) > 0.1).any(), "it went on"


def test_a_ball_joint_counts_twist_too():
    """The limit is on the whole rotation: a twist about the rod's own axis also ends there."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("rod", joint=cs.Ball(limit=0.8), mass=2.0, com=(0, 0, 0.4), inertia=(0.05, 0.05, 0.01))
    traj = run(scene, 100, v=[0, 0, 5.0])
    assert abs(angle(traj.q[-1]) - 0.8) < STILL and np.abs(traj.v[-1]).max() < STILL


def test_a_narrow_range_is_not_crossed_within_a_step():
    """Closer to the lower limit, but the step ends beyond the upper one: range 8 mm, step 50 mm."""
    traj = run(slider(limits=(-0.004, 0.004)), 10, q=[-0.002], v=[5.0])
    assert traj.q.max() < 0.004 + STILL


def test_limits_of_several_joints_in_a_chain():
    """Three links fall over, each to its own stop."""
    scene, parent = cs.Scene(), None
    for i in range(3):
        joint = cs.Revolute((0, 1, 0), limits=(-0.3 - 0.1 * i, 0.2 + 0.1 * i), damping=0.5)
        parent = scene.add_body(f"b{i}", parent=parent, joint=joint, pos=(0, 0, 0.3 if i else 0), mass=1.0, com=(0, 0, 0.15),
                                inertia=(0.01, 0.01, 0.001))  # fmt: skip
    traj = run(scene, 500, q=[0.01, 0.01, 0.01])
    np.testing.assert_allclose(traj.q[-1], [0.2, 0.3, 0.4], atol=1e-6)


# ---- dry friction --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [slider, wheel])
@pytest.mark.parametrize("force", [4.9, -4.9])
def test_dry_friction_holds_below(make, force):
    traj = run(make(friction=5.0), 100, control=[force])
    assert np.abs(traj.v).max() < STILL
    _, info = look(make(friction=5.0), control=[force])
    np.testing.assert_allclose(info.rows.impulse[0], -force * 0.01, rtol=FORCE)
    assert info.rows.state[0] == FREE


@pytest.mark.parametrize(("make", "inertia"), [(slider, 2.0), (wheel, 0.3)])
@pytest.mark.parametrize("force", [6.0, -6.0])
def test_dry_friction_gives_way_above(make, inertia, force):
    """Acceleration (force - friction) / inertia; the row is at its bound, exactly."""
    traj = run(make(friction=5.0), 100, control=[force])
    expected = math.copysign(1.0, force) / inertia * 0.01 * np.arange(101)
    np.testing.assert_allclose(traj.v[:, 0], expected, atol=FORCE * 10)
    _, info = look(make(friction=5.0), control=[force])
    assert info.rows.impulse[0] == -math.copysign(5.0 * 0.01, force)
    assert info.rows.state[0] == (LOWER if force > 0 else UPPER)


def test_dry_friction_stops_a_moving_joint():
    """v0^2 m / (2 f) on, to the first order in the step, and then it stays."""
    v0, h = 1.5, 0.002
    traj = run(slider(friction=5.0), 500, dt=h, v=[v0])
    assert abs(traj.q[-1, 0] - 2.0 * v0**2 / (2 * 5.0)) < v0 * h
    assert np.abs(traj.v[-100:]).max() < STILL


def test_dry_friction_of_a_pendulum_holds_it_off_the_vertical():
    scene = cs.Scene()
    joint = cs.Revolute((0, 1, 0), friction=2.0)
    scene.add_body("rod", joint=joint, mass=2.0, com=(0, 0, -0.4), inertia=(0.05, 0.05, 0.01))
    hold = math.asin(2.0 / (2.0 * G * 0.4))
    below, above = (run(scene, 300, q=[part * hold]) for part in (0.98, 1.02))
    assert np.abs(below.q - 0.98 * hold).max() < 1e-7
    assert above.q[-1, 0] < 1.019 * hold


def test_dry_friction_of_each_dof_of_a_ball_and_a_free_joint():
    """One bound for each dof, those without have no row."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("ball", joint=cs.Ball(friction=(1.0, 0.0, 2.0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.add_body("free", joint=cs.Free(friction=(0, 0, 3.0, 0, 0, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = scene.build()
    v = [5.0, 5.0, -5.0, 1.0, 1.0, 1.0, 0, 0, 0]
    state, info = look(model, v=v)
    np.testing.assert_allclose(info.rows.impulse, [-0.01, 0.02, -0.03], rtol=1e-12)
    slowed = np.array(v) - state.v
    np.testing.assert_allclose(slowed[3:], [0, 0, 0.03, 0, 0, 0], atol=STILL)
    np.testing.assert_allclose(slowed[:3], [0.1, 0, -0.2], atol=0.02)  # and what it turns meanwhile


def test_dry_friction_with_a_limit_and_a_load():
    """On the limit, with dry friction: the limit bears what friction does not; pulled off, friction holds up to its bound."""
    scene = slider(limits=(-0.1, 0.1), friction=5.0)
    traj = run(scene, 100, control=[20.0])
    assert abs(traj.q[-1, 0] - 0.1) < STILL
    _, info = look(scene, q=[0.1], control=[20.0])
    assert abs(info.rows.impulse[0] - info.rows.impulse[1] + 0.2) < 1e-8 and info.rows.impulse[1] >= 0.15 - 1e-8
    assert np.abs(run(scene, 50, q=[0.1], control=[-4.0]).v).max() < STILL


def test_turns_of_a_body_on_a_limited_ball_joint_do_not_matter():
    """The same fall about other axes: the joint's frame turned about the vertical."""
    found = []
    for yaw in (0.0, 1.1):
        scene = ball_joint(0.7)
        quat = quat_mul(turn((0, 0, 1), yaw), turn((1, 0, 0), 0.1))
        found.append(angle(run(scene, 100, q=quat_mul(quat, turn((0, 0, 1), -yaw))).q))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
