"""Motions with a known answer. Where the scheme itself has a closed form it is met to round-off; else the continuous one
is met with the error its order allows, at a step size small enough to tell the two apart from a mistake."""

import math

import numpy as np
import pytest

import costate as cs

ROUND_OFF = 1e-11  # a few hundred steps of double precision, against the scheme's own closed form
EXACT = 1e-12  # one evaluation
PERIOD = 1e-6  # semi-implicit Euler from rest meets a period to O(dt^2): (w dt)^2 / 24 = 4e-7 at dt = 1e-3
G = 9.81


def roll(
    scene: cs.Scene, q: list[float], v: list[float], *, dt: float, steps: int, control: list[float] | None = None
) -> cs.Trajectory:
    controls = None if control is None else np.tile(np.array(control), (steps, 1))
    state = cs.State(np.array(q, dtype=float), np.array(v, dtype=float))
    traj = cs.Simulator(scene.build(), dt=dt).rollout(state, controls, steps=steps if controls is None else None)
    assert not np.any(traj.diverged)
    return traj


def agm(a: float, b: float) -> float:
    """Arithmetic-geometric mean: the complete elliptic integral is pi / (2 agm(1, cos(amplitude / 2)))."""
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


def period(q: np.ndarray, dt: float) -> float:
    """Between the first and the last downward zero crossing, by linear interpolation."""
    i = np.nonzero((q[:-1] > 0) & (q[1:] <= 0))[0]
    t = i + q[i] / (q[i] - q[i + 1])
    return float(t[-1] - t[0]) / (len(i) - 1) * dt


def test_ballistic_flight_and_spin_follow_the_scheme():
    """v_n = v_0 + n h g, x_n = x_0 + n h v_0 + h^2 g n (n + 1) / 2; a ball spins at a constant rate."""
    scene = cs.Scene(gravity=(0, 0, -G))
    scene.add_body(joint=cs.Free(), shapes=cs.Sphere(0.1))
    h, n, v0, spin = 0.01, np.arange(201)[:, None], np.array([1.0, 2.0, 3.0]), np.array([0.3, -2.0, 0.7])
    traj = roll(scene, [0, 0, 1, 1, 0, 0, 0], [*v0, *spin], dt=h, steps=200)
    g = np.array([0, 0, -G])
    half = n * h * np.linalg.norm(spin) / 2
    quat = np.hstack([np.cos(half), np.sin(half) * spin / np.linalg.norm(spin)])
    np.testing.assert_allclose(traj.v, np.hstack([v0 + n * h * g, np.tile(spin, (201, 1))]), atol=ROUND_OFF)
    np.testing.assert_allclose(traj.q[:, :3], [0, 0, 1] + n * h * v0 + h**2 * g * n * (n + 1) / 2, atol=ROUND_OFF)
    np.testing.assert_allclose(traj.q[:, 3:], quat, atol=ROUND_OFF)


@pytest.mark.parametrize("amplitude", [0.01, 1.0, 2.5, 3.0])
@pytest.mark.parametrize("physical", [False, True])
def test_pendulum_period(amplitude, physical):
    """T = 4 sqrt(I / m g d) K(sin(amplitude / 2)); a rod on its end has I = m L^2 / 3, a bob far away I = m d^2."""
    scene, m, d, dt = cs.Scene(gravity=(0, 0, -G)), 0.7, 0.9, 1e-3
    pivot = m * d**2 + (m * (2 * d) ** 2 / 12 if physical else 1e-9)
    thin = 1e-9
    inertia = (pivot - m * d**2, pivot - m * d**2, thin)
    scene.add_body(joint=cs.Revolute(axis=(0, 1, 0), initial=[amplitude]), mass=m, com=(0, 0, -d), inertia=inertia)
    expected = 2 * math.pi * math.sqrt(pivot / (m * G * d)) / agm(1.0, math.cos(amplitude / 2))
    traj = roll(scene, [amplitude], [0.0], dt=dt, steps=int(3.5 * expected / dt))
    assert abs(period(traj.q[:, 0], dt) / expected - 1) < PERIOD
    assert traj.q[:, 0].min() < -0.99 * amplitude, "it swings through"


def test_symmetric_top_precesses():
    """Torque-free: omega turns about the axis at rate (I3 - I1) / I1 omega3, by the scheme as (1 + i h rate)^n; the axis itself
    circles the angular momentum at |L| / I1."""
    I1, I3, h, steps = 0.03, 0.05, 1e-4, 4000
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body(joint=cs.Free(), mass=1.0, inertia=(I1, I1, I3))
    w0 = np.array([0.4, 0.2, 3.0])
    traj = roll(scene, [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, *w0], dt=h, steps=steps)
    rate = (I3 - I1) / I1 * w0[2]
    turned = (w0[0] + 1j * w0[1]) * (1 + 1j * h * rate) ** np.arange(steps + 1)
    np.testing.assert_allclose(traj.v[:, 3] + 1j * traj.v[:, 4], turned, atol=ROUND_OFF)
    np.testing.assert_allclose(traj.v[:, 5], w0[2], rtol=ROUND_OFF)
    L = np.array([I1, I1, I3]) * w0
    turn = h * steps * np.linalg.norm(L) / I1  # of the axis about L
    n, e = L / np.linalg.norm(L), np.array([0.0, 0.0, 1.0])
    expected = e * math.cos(turn) + np.cross(n, e) * math.sin(turn) + n * (n @ e) * (1 - math.cos(turn))
    w, x, y, z = traj.q[-1, 3:]
    axis = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    np.testing.assert_allclose(axis, expected, atol=5 * h)  # order 1, error constant about 1 over this time
    assert np.linalg.norm(expected - e) > 0.1, "the axis moves"


def test_damped_spring():
    """Implicit damping: (m + h d)(v+ - v) = -h (k (x - rest) + d v), x+ = x + h v+; and the continuous decay to O(dt)."""
    m, k, d, rest, h, steps = 0.8, 20.0, 0.5, 0.3, 1e-3, 2000
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body(joint=cs.Prismatic(axis=(1, 0, 0), damping=d, stiffness=k, rest=[rest]), mass=m, inertia=(0.1, 0.1, 0.1))
    traj = roll(scene, [1.0], [0.0], dt=h, steps=steps)
    row_v = np.array([-h * k / (m + h * d), 1 - h * d / (m + h * d)])
    A = np.array([[1, 0] + h * row_v, row_v])
    states = [np.linalg.matrix_power(A, n) @ [1 - rest, 0.0] for n in (1, 10, 500, steps)]
    ours = [np.array([traj.q[n, 0] - rest, traj.v[n, 0]]) for n in (1, 10, 500, steps)]
    np.testing.assert_allclose(ours, states, atol=ROUND_OFF)
    t, decay = h * steps, d / (2 * m)
    w = math.sqrt(k / m - decay**2)
    expected = rest + (1 - rest) * math.exp(-decay * t) * (math.cos(w * t) + decay / w * math.sin(w * t))
    assert abs(traj.q[-1, 0] - expected) < 5 * h


def test_double_pendulum_acceleration():
    """The textbook formula for two bobs on massless rods, in absolute angles; costate's second angle is relative."""
    m1, m2, l1, l2 = 1.3, 0.8, 0.7, 0.5
    scene = cs.Scene(gravity=(0, 0, -G))
    tiny = (1e-13,) * 3
    scene.add_body("a", joint=cs.Revolute(axis=(0, -1, 0)), mass=m1, com=(0, 0, -l1), inertia=tiny)
    scene.add_body("b", parent="a", joint=cs.Revolute(axis=(0, -1, 0)), pos=(0, 0, -l1), mass=m2, com=(0, 0, -l2), inertia=tiny)
    t1, t2, w1, w2 = 0.9, -0.4, 1.1, -2.3
    D = t1 - t2
    common = 2 * m1 + m2 - m2 * math.cos(2 * D)
    a1 = -G * (2 * m1 + m2) * math.sin(t1) - m2 * G * math.sin(t1 - 2 * t2)
    a1 = (a1 - 2 * math.sin(D) * m2 * (w2**2 * l2 + w1**2 * l1 * math.cos(D))) / (l1 * common)
    a2 = w1**2 * l1 * (m1 + m2) + G * (m1 + m2) * math.cos(t1) + w2**2 * l2 * m2 * math.cos(D)
    a2 = 2 * math.sin(D) * a2 / (l2 * common)
    q, v = np.array([t1, t2 - t1]), np.array([w1, w2 - w1])
    a = cs.forward_dynamics(scene.build(), q, v, np.zeros(2))
    np.testing.assert_allclose(a, [a1, a2 - a1], rtol=EXACT)


def test_planar_body_slides_on_a_tilted_plane():
    """Only gravity's share in the plane counts; the spin stays. Angle 0.3 about y turns the plane's x towards -z."""
    angle, h, steps = 0.3, 0.01, 100
    scene = cs.Scene(gravity=(0, 0, -G))
    tilt = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
    scene.add_body(joint=cs.Planar(), quat=tilt, mass=2.0, inertia=(0.1, 0.2, 0.3))
    traj = roll(scene, [0.0, 0.0, 0.2], [0.5, -1.0, 4.0], dt=h, steps=steps)
    n, a = np.arange(steps + 1), G * math.sin(angle)
    np.testing.assert_allclose(traj.q[:, 0], n * h * 0.5 + a * h**2 * n * (n + 1) / 2, atol=ROUND_OFF)
    np.testing.assert_allclose(traj.q[:, 1], -1.0 * n * h, atol=ROUND_OFF)
    np.testing.assert_allclose(traj.q[:, 2], 0.2 + 4.0 * n * h, atol=ROUND_OFF)


def test_motor_with_gear_and_armature():
    """v_n = n h gear u / (I + armature), I about the axis through the anchor."""
    I, arm, gear, u, h, steps, m, arm_length = 0.05, 0.02, 3.0, 0.4, 0.01, 50, 1.5, 0.2
    scene = cs.Scene(gravity=(0, 0, 0))
    joint = cs.Revolute(axis=(0, 0, 2.0), anchor=(arm_length, 0, 0), armature=arm)
    scene.add_body("wheel", joint=joint, mass=m, inertia=(0.04, 0.03, I))
    scene.add_motor("wheel", gear=gear)
    traj = roll(scene, [0.0], [0.0], dt=h, steps=steps, control=[u])
    n, a = np.arange(steps + 1), gear * u / (I + m * arm_length**2 + arm)
    np.testing.assert_allclose(traj.v[:, 0], n * h * a, rtol=ROUND_OFF)
    np.testing.assert_allclose(traj.q[:, 0], a * h**2 * n * (n + 1) / 2, rtol=ROUND_OFF)


def test_ball_pendulum_keeps_its_plane_and_swings_like_a_hinge():
    """No Foucault turn: the world does not rotate. A ball joint moving about one axis is a revolute joint, step by step."""
    common = {"mass": 0.7, "com": (0, 0, -0.8), "inertia": (0.05, 0.05, 0.02)}
    ball, hinge = cs.Scene(gravity=(0, 0, -G)), cs.Scene(gravity=(0, 0, -G))
    ball.add_body(joint=cs.Ball(anchor=(0, 0, 0.1)), **common)
    hinge.add_body(joint=cs.Revolute(axis=(0, 1, 0), anchor=(0, 0, 0.1)), **common)
    a, b = (roll(s, q, v, dt=0.01, steps=500) for s, q, v in ((ball, [1, 0, 0, 0], [0, 3, 0]), (hinge, [0], [3])))
    angle = b.q[:, 0] / 2
    quat = np.stack([np.cos(angle), 0 * angle, np.sin(angle), 0 * angle], -1)
    np.testing.assert_allclose(a.q * np.sign((a.q * quat).sum(-1, keepdims=True)), quat, atol=ROUND_OFF)
    np.testing.assert_allclose(a.v, np.stack([0 * angle, b.v[:, 0], 0 * angle], -1), atol=ROUND_OFF)


def test_conical_pendulum():
    """A bob circling at constant height: omega^2 = g / (l cos theta). At that speed the acceleration is omega x v exactly."""
    l, theta = 0.9, 0.6
    w = math.sqrt(G / (l * math.cos(theta)))
    scene = cs.Scene(gravity=(0, 0, -G))
    scene.add_body(joint=cs.Ball(), mass=1.0, com=(0, 0, -l), inertia=(1e-12, 1e-12, 1e-12))
    q = np.array([math.cos(theta / 2), 0, math.sin(theta / 2), 0])
    omega = w * np.array([-math.sin(theta), 0, math.cos(theta)])  # the vertical, in body axes; it stays there
    np.testing.assert_allclose(cs.forward_dynamics(scene.build(), q, omega, np.zeros(3)), 0, atol=1e-9)


@pytest.mark.parametrize(("dtype", "turns", "accuracy"), [(np.float64, 1e6, 1e-15), (np.float32, 1e4, 3e-7)])
def test_a_wheel_may_turn_many_times(dtype, turns, accuracy):
    """Angles are not wrapped: sine and cosine stay accurate, to a few ulp of 1, for this many radians."""
    scene = cs.Scene()
    scene.add_body(joint=cs.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=(1, 1, 1))
    q = np.linspace(-turns, turns, 2001).astype(dtype)[:, None]
    half = q[:, 0].astype(np.float64) / 2
    quat = cs.kinematics(scene.build(), q).quaternion[:, 0]
    np.testing.assert_allclose(quat[:, [0, 3]], np.stack([np.cos(half), np.sin(half)], -1), atol=accuracy)
