"""Hits: dropped balls, two spheres that meet, and what must stay: momentum, angular momentum, energy.

A hit reverses the speed that the step began with, e times. With e = 1 that keeps semi-implicit Euler's own energy,
v^2/2 + g z - h g v/2, to round-off: the bounce lifts by h v, which is what the shadow term turns over.
"""

import math

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, look, on_ground, rotate, run, turn

ROUND_OFF = 1e-11  # some hundred steps of double precision
SOLVED = 1e-8  # rows give way by 1e-9 of their stiffness
RADIUS = 0.1


def dropped(e: float, height: float = 1.0, **ground) -> cs.Scene:
    """A ball whose lowest point is `height` above the ground."""
    ball = cs.Sphere(RADIUS, restitution=e)
    return on_ground(ball, height=RADIUS + height, ground={"restitution": e, **ground})


def hits(v: np.ndarray) -> np.ndarray:
    """Steps in which a falling ball stops or rises again, by its vertical velocity."""
    return np.nonzero((v[:-1] < -0.1) & (v[1:] > -SOLVED))[0]


# ---- a ball on the ground ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_dropped_ball_rebounds_with_e_times_its_speed(e):
    traj = run(dropped(e), 300, dt=0.005)
    v = traj.v[:, 2]
    steps = hits(v)
    assert len(steps) >= (1 if e == 0 else 2)
    np.testing.assert_allclose(v[steps + 1], -e * v[steps], atol=SOLVED)
    fall = math.sqrt(2 * G * 1.0)
    assert abs(-v[steps[0]] - fall) < 2 * G * 0.005, "it fell from 1 m"
    assert traj.q[:, 2].min() > RADIUS - 1e-9, "never in the ground"


@pytest.mark.parametrize("e", [0.5, 1.0])
@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_it_rises_to_e_squared_of_its_height(e, dt):
    """To the first order: it hits up to h v early, and is up to h g too slow."""
    traj = run(dropped(e), int(1.2 / dt), dt=dt)
    z, first = traj.q[:, 2] - RADIUS, hits(traj.v[:, 2])[0]
    second = hits(traj.v[first + 2 :, 2])
    apex = z[first + 1 : first + 2 + second[0] if len(second) else None].max()
    assert abs(apex - e**2) < 2 * math.sqrt(2 * G) * dt


def test_an_elastic_ball_keeps_the_energy_of_the_scheme():
    h = 0.01
    traj = run(dropped(1.0), 2000, dt=h)
    z, v = traj.q[:, 2], traj.v[:, 2]
    assert len(hits(v)) > 10
    energy = v**2 / 2 + G * z - h * G * v / 2
    np.testing.assert_allclose(energy, energy[0], rtol=100 * SOLVED)
    assert z.max() <= z[0] + SOLVED, "never higher than it started"


def test_without_restitution_it_lands_and_stays():
    """It stops where the step of the hit began, at most h v above the ground, and sinks the rest of the way without a bounce."""
    h = 0.01
    traj = run(dropped(0.0, 0.3), 200, dt=h)
    z, v, first = traj.q[:, 2] - RADIUS, traj.v[:, 2], hits(traj.v[:, 2])[0]
    assert 0 <= z[first + 1] <= h * -v[first]
    assert v.max() < SOLVED and (np.diff(z) < SOLVED).all()
    assert np.abs(v[-100:]).max() < SOLVED and np.abs(z[-100:]).max() < SOLVED


def test_a_bouncing_ball_comes_to_rest():
    """Hits slower than bounce_speed do not bounce, so there is no endless row of ever smaller ones."""
    traj = run(dropped(0.5, 0.5), 300)
    assert np.abs(traj.v[-50:]).max() < SOLVED and abs(traj.q[-1, 2] - RADIUS) < SOLVED


def test_the_bounce_speed_is_a_gate():
    for speed, rebound in ((0.3, 0.3), (0.09, 0.0)):
        scene = on_ground(
            cs.Sphere(RADIUS, restitution=1.0), height=RADIUS + 1e-4, ground={"restitution": 1.0}, gravity=(0, 0, 0)
        )
        state, _ = look(scene, v=[0, 0, -speed, 0, 0, 0])
        assert abs(state.v[2] - (rebound or -1e-4 / 0.01)) < SOLVED  # a slow one only stops at the ground


@pytest.mark.parametrize(
    ("rule", "expected"), [("geometric", 0.4), ("maximum", 0.8), ("minimum", 0.2), ("arithmetic", 0.5), ("product", 0.16)]
)
def test_restitution_of_two_shapes_by_rule(rule, expected):
    scene = on_ground(cs.Sphere(RADIUS, restitution=0.8), height=RADIUS, ground={"restitution": 0.2}, restitution_rule=rule)
    state, _ = look(scene, v=[0, 0, -2, 0, 0, 0])
    assert abs(state.v[2] - 2 * expected) < SOLVED


def test_an_oblique_bounce_with_and_without_grip():
    """Tangential impulse mu (1 + e) m v_n while it slips; else the contact point stops: 5/7 of the tangential speed."""
    vn, vt, e = 3.0, 2.0, 0.5
    for mu in (0.1, 1.0):
        ball = cs.Sphere(RADIUS, restitution=e, friction=mu)
        scene = on_ground(ball, height=RADIUS, ground={"restitution": e, "friction": mu}, gravity=(0, 0, 0))
        state, info = look(scene, v=[vt * 0.6, vt * 0.8, -vn, 0, 0, 0])
        slips = mu * (1 + e) * vn < 2 / 7 * vt
        after = vt - mu * (1 + e) * vn if slips else 5 / 7 * vt
        np.testing.assert_allclose(state.v[:3], [after * 0.6, after * 0.8, e * vn], atol=SOLVED)
        assert info.contacts.state[0] == (3 if slips else 2)


# ---- two spheres ---------------------------------------------------------------------------------------------------
def two_spheres(*, e: float, mu: float, swap: bool = False) -> cs.Scene:
    """A heavy ball at the origin, and a light one above and beside it, in space; swap: the light one comes first."""
    scene = cs.Scene(gravity=(0, 0, 0))
    balls = [("heavy", cs.Sphere(0.2, mass=3.0), (0, 0, 0)), ("light", cs.Sphere(0.1, mass=1.0), (0.6, 0.12, 0.15))]
    for name, ball, pos in reversed(balls) if swap else balls:
        shape = cs.Sphere(ball.radius, mass=ball.mass, restitution=e, friction=mu)
        scene.add_body(name, joint=cs.Free(), pos=pos, shapes=shape)
    return scene


START = {"heavy": [0.5, 0.2, -0.1, 3.0, -2.0, 5.0], "light": [-3.0, -0.2, 0.3, -7.0, 11.0, 2.0]}


def hit(dt: float = 0.005, *, swap: bool = False, **surface) -> tuple[cs.Model, cs.Trajectory]:
    """Model, and a rollout through the hit."""
    model = two_spheres(swap=swap, **surface).build()
    v = np.concatenate([START[name] for name in model.body_names])
    return model, run(model, round(0.4 / dt), dt=dt, v=v)


def bodies(model: cs.Model, traj: cs.Trajectory) -> dict[str, tuple[np.ndarray, ...]]:
    """Of each body: mass, moment, and over time position, velocity, spin in world axes."""
    found = {}
    for b, name in enumerate(model.body_names):
        mass, inertia = float(model.defaults["mass"][b]), float(model.defaults["inertia"][b, 0])
        q, v = traj.q[:, 7 * b : 7 * b + 7], traj.v[:, 6 * b : 6 * b + 6]
        spin = np.array([rotate(quat, w) for quat, w in zip(q[:, 3:], v[:, 3:])])
        found[name] = (mass, inertia, q[:, :3], v[:, :3], spin)
    return found


def totals(model: cs.Model, traj: cs.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Momentum, angular momentum about the origin, kinetic energy, over time."""
    P, L, E = np.zeros((len(traj.q), 3)), np.zeros((len(traj.q), 3)), np.zeros(len(traj.q))
    for m, I, x, v, w in bodies(model, traj).values():
        P += m * v
        L += m * np.cross(x, v) + I * w
        E += m * (v * v).sum(1) / 2 + I * (w * w).sum(1) / 2
    return P, L, E


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.5, 5.0])
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_an_oblique_hit_conserves_momentum_and_angular_momentum(e, mu):
    model, traj = hit(e=e, mu=mu)
    P, L, E = totals(model, traj)
    np.testing.assert_allclose(P, np.tile(P[0], (len(P), 1)), atol=ROUND_OFF)
    np.testing.assert_allclose(L, np.tile(L[0], (len(L), 1)), atol=ROUND_OFF)
    assert (np.diff(E) < ROUND_OFF).all(), "no energy from nowhere"
    assert np.abs(traj.v[-1] - traj.v[0]).max() > 0.1, "they met"
    if mu == 0 and e == 1:
        np.testing.assert_allclose(E, E[0], rtol=SOLVED)
    elif mu > 0:
        assert E[-1] < E[0] - 1e-3


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_smooth_hit_has_a_closed_form(e):
    """Along the line of centres -(1 + e) m1 m2 / (m1 + m2) times the closing speed; nothing across it, and no spin changes."""
    model, traj = hit(e=e, mu=0.0)
    step = int(np.nonzero(np.abs(np.diff(traj.v, axis=0)).max(1) > 0.1)[0][0])
    two = bodies(model, traj)
    m1, _, x1, v1, _ = two["heavy"]
    m2, _, x2, v2, _ = two["light"]
    n = (x2[step] - x1[step]) / np.linalg.norm(x2[step] - x1[step])
    closing = (v2[0] - v1[0]) @ n
    p = -(1 + e) * m1 * m2 / (m1 + m2) * closing
    if e == 0:
        step += 1  # the first step may close the gap that is left
    np.testing.assert_allclose(v1[step + 1], v1[0] - p / m1 * n, atol=SOLVED)
    np.testing.assert_allclose(v2[step + 1], v2[0] + p / m2 * n, atol=SOLVED)
    np.testing.assert_allclose(two["light"][4], np.tile(two["light"][4][0], (len(traj.q), 1)), atol=ROUND_OFF)


def test_the_geometry_of_a_hit_is_that_of_continuous_time_to_first_order():
    """Velocities after an elastic hit against those with the line of centres at the true moment."""
    errors = []
    for dt in (1e-3, 1e-4):
        model, traj = hit(dt, e=1.0, mu=0.0)
        (m1, _, x1, v1, _), (m2, _, x2, v2, _) = (bodies(model, traj)[name] for name in ("heavy", "light"))
        d, w = x2[0] - x1[0], v2[0] - v1[0]
        a, b, c = w @ w, d @ w, d @ d - 0.3**2
        t = (-b - math.sqrt(b * b - a * c)) / a
        n = (d + t * w) / 0.3
        p = -2 * m1 * m2 / (m1 + m2) * (w @ n)
        errors.append(np.abs(v2[-1] - (v2[0] + p / m2 * n)).max())
    assert errors[0] < 50 * 1e-3 and errors[1] < 50 * 1e-4


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("e", [0.0, 0.7])
def test_the_order_of_creation_does_not_matter(e, mu):
    one, two = (hit(e=e, mu=mu, swap=swap)[1] for swap in (False, True))
    q, v = (np.concatenate([x[:, n:], x[:, :n]], 1) for x, n in ((two.q, 7), (two.v, 6)))
    np.testing.assert_allclose(one.q, q, atol=ROUND_OFF)
    np.testing.assert_allclose(one.v, v, atol=100 * ROUND_OFF)


def test_a_row_of_balls_passes_the_hit_on():
    """Equal elastic balls: the first stops, the last leaves with its speed, since each gap is closed by a hit of its own."""
    scene = cs.Scene(gravity=(0, 0, 0))
    for i in range(4):
        ball = cs.Sphere(RADIUS, restitution=1.0, friction=0.0)
        scene.add_body(joint=cs.Free(), pos=(i * 0.25, 0, 0), shapes=ball)
    v = np.zeros(24)
    v[0] = 2.0
    traj = run(scene, 200, dt=0.005, v=v)
    np.testing.assert_allclose(traj.v[-1, ::6], [0, 0, 0, 2], atol=10 * SOLVED)


# ---- many ----------------------------------------------------------------------------------------------------------
def pile_energy(e: float, mu: float, h: float) -> np.ndarray:
    """Three layers of four balls fall on each other in a narrow pit: the scheme's energy over time, J."""
    scene, rng, n = cs.Scene(max_contacts=48), np.random.default_rng(1), 12
    scene.add_ground(restitution=e, friction=mu)
    for axis, angle, side in (((0, 1, 0), 1, -1), ((0, 1, 0), -1, 1), ((1, 0, 0), -1, -1), ((1, 0, 0), 1, 1)):
        pos = np.array([axis[1], axis[0], 0.0]) * (0.14 + 0.24 * side)
        scene.add_shape(cs.Plane(pos=pos, quat=turn(axis, angle * math.pi / 2), restitution=e, friction=mu))
    for i in range(n):
        x, y = 0.18 * np.array([i % 2, i // 2 % 2]) + 0.008 * rng.uniform(-1, 1, 2) + 0.05 * (i // 4)
        ball = cs.Sphere(0.08, restitution=e, friction=mu)
        scene.add_body(joint=cs.Free(), pos=(x, y, 0.15 + 0.2 * (i // 4)), shapes=ball)
    model = scene.build()
    traj = run(model, round(1.5 / h), dt=h, contact=cs.Contact(margin=0.01))
    assert traj.status.contacts > 15, "a pile, not single balls"
    assert traj.status.residual < 0.1, "up to 45 contacts are not always solved, but never far off"
    momentum = traj.v[:, 2::6] @ model.defaults["mass"].numpy()
    return np.sum(cs.energy(model, traj.q, traj.v), axis=0) - h * G / 2 * momentum


@pytest.mark.parametrize("e", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_bouncing_pile_never_gains_energy(e, mu):
    """Never more than at the start, and no rise above what was lost by more than 1e-4 of it: what curved ways within a step are
    worth. Only elastic hits with friction, several in one step, add more: normal speeds are reversed one by one, and friction
    turns one into another."""
    energy = pile_energy(e, mu, 0.005)
    most = 0.03 if e == 1 and mu > 0 else 1e-4
    assert energy.max() <= energy[0] + ROUND_OFF
    assert (energy[1:] - np.minimum.accumulate(energy)[:-1]).max() < most * energy[0]
    assert energy[-1] < (0.5 if e < 1 else 0.8) * energy[0], "hits and gaps that close without a bounce take energy"
