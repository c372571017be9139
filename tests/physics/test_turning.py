"""Torsional and rolling friction: closed forms of balls that spin, roll and hold on slopes, boxes that turn; against MuJoCo."""

import math
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, Slope, look, run

CLOSED = 1e-7  # relative: the scheme's own closed form, up to the softness of rows, 1e-9 of their own
STILL = 1e-8  # m/s, rad/s: softness lets a body sink by 2e-11 m, of which recovery / dt makes 2e-9 m/s
MASS, RADIUS, H = 1.5, 0.1, 0.005
INERTIA = 0.4 * MASS * RADIUS**2
ROLLS = INERTIA + MASS * RADIUS**2  # about the point of contact


def ball(condim: int = 6, *, ground: dict[str, Any] | None = None, rule: Any = "maximum", **surface: Any) -> cs.Scene:
    """A ball on a plane; the coefficients are the ball's own."""
    scene = cs.Scene(friction_rule=rule)
    scene.add_shape(cs.Plane(**(ground or {})), name="ground")
    shape = cs.Sphere(RADIUS, mass=MASS, condim=condim, **surface)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, RADIUS), shapes=shape)
    return scene


def slowed(start: float, rate: float, steps: int, dt: float = H) -> np.ndarray:
    """A speed that loses `rate` per second until nothing is left, after each step."""
    return np.maximum(start - rate * dt * np.arange(steps + 1), 0.0)


# ---- balls ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.002, 0.01])
@pytest.mark.parametrize("condim", [4, 6])
@pytest.mark.parametrize("spin", [6.0, -6.0])
def test_a_spinning_ball_stops_and_stays(condim, spin, dt):
    """torsion m g / I, whatever the step; then it is still, and the direction does not matter."""
    torsion, steps = 0.01, round(0.6 / dt)
    traj = run(ball(condim, torsion=torsion), steps, dt=dt, v=[0, 0, 0, 0, 0, spin])
    expected = slowed(6.0, torsion * MASS * G / INERTIA, steps, dt)
    assert expected[-1] == 0.0 < expected[steps // 3]
    np.testing.assert_allclose(traj.v[:, 5] * math.copysign(1, spin), expected, atol=CLOSED * 6.0)
    assert np.abs(np.delete(traj.v, 5, axis=1)).max() < STILL
    assert np.abs(traj.v[-1]).max() < STILL


@pytest.mark.parametrize("axis", [0, 1])
def test_a_rolling_ball_comes_to_rest(axis):
    """rolling m g / (I + m r^2) of its turning, and v = r w all the while."""
    rolling, w, steps = 0.002, 4.0, 600
    v = np.zeros(6)
    v[axis], v[4 - axis] = RADIUS * w, w if axis == 0 else -w
    traj = run(ball(rolling=rolling), steps, dt=H, v=v)
    expected = slowed(w, rolling * MASS * G / ROLLS, steps)
    assert expected[-1] == 0.0
    np.testing.assert_allclose(traj.v[:, axis], RADIUS * expected, atol=CLOSED * RADIUS * w)
    np.testing.assert_allclose(np.linalg.norm(traj.v[:, 3:5], axis=1), expected, atol=CLOSED * w)
    assert np.abs(traj.q[-1] - traj.q[-20]).max() < STILL


def test_rolling_is_resisted_about_each_tangent_by_itself():
    """A product of intervals: both parts of a slanting way lose the same, and the smaller ends first."""
    rolling, steps = 0.002, 300
    traj = run(ball(rolling=rolling), steps, dt=H, v=[0.4, 0.2, 0, -2.0, 4.0, 0])
    rate = RADIUS * rolling * MASS * G / ROLLS
    for k, start in enumerate((0.4, 0.2)):
        np.testing.assert_allclose(traj.v[:, k], slowed(start, rate, steps), atol=CLOSED)
    assert traj.v[-1, 0] > 0.01 > abs(traj.v[-1, 1])


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_ball_on_a_slope_holds_if_rolling_is_above_r_tan(share):
    """Held by rolling = r tan(angle); below that it rolls with what is left of its weight."""
    angle, steps = 0.1, 100
    rolling = share * RADIUS * math.tan(angle)
    slope = Slope(angle)
    scene = slope.scene(friction_rule="maximum")
    shape = cs.Sphere(RADIUS, mass=MASS, condim=6, rolling=rolling)
    scene.add_body("ball", joint=cs.Free(), pos=RADIUS * slope.normal, quat=slope.lean, shapes=shape)
    traj = run(scene, steps, dt=H)
    pull = max(MASS * G * (RADIUS * math.sin(angle) - rolling * math.cos(angle)), 0.0)
    assert (pull == 0) == (share > 1)
    expected = pull / ROLLS * RADIUS * H * np.arange(steps + 1)
    np.testing.assert_allclose(traj.v[:, :3] @ slope.downhill, expected, atol=CLOSED)
    assert np.abs(traj.v[:, :3] @ slope.across).max() < STILL


def test_a_ball_slides_turns_and_spins_at_once():
    """Friction, torsion and rolling have each their own bound: while it slides all three are at them."""
    mu, torsion, rolling = 0.3, 0.01, 0.002
    scene = ball(friction=mu, torsion=torsion, rolling=rolling, ground={"friction": 0.0})
    state, _ = look(scene, dt=H, v=[2.0, 0, 0, 0, 1.0, 5.0])
    normal = MASS * G * H
    expected = [2 - mu * G * H, 0, 0, 0, 1 + (mu * RADIUS - rolling) * normal / INERTIA, 5 - torsion * normal / INERTIA]
    np.testing.assert_allclose(state.v, expected, atol=CLOSED)


def test_without_friction_everything_goes_on():
    """condim 1 on both sides; friction, torsion and rolling of the shapes do not count."""
    steps = 400
    v = [1.0, 0.5, 0, 0.2, -0.3, 4.0]
    surface = {"friction": 0.9, "torsion": 0.1, "rolling": 0.1}
    traj = run(ball(1, ground={"condim": 1, **surface}, **surface), steps, dt=H, v=v)
    np.testing.assert_allclose(traj.v, np.tile(v, (steps + 1, 1)), atol=STILL)
    # one side that has friction is enough: a pair takes the larger condim
    held = run(ball(1, ground={"condim": 3, **surface}, **surface), steps, dt=H, v=v)
    assert abs(held.v[-1, 0]) < 0.9


RULES = {"maximum": 0.08, "minimum": 0.02, "arithmetic": 0.05, "product": 0.0016, "geometric": 0.04}


@pytest.mark.parametrize(("rule", "torsion"), list(RULES.items()))
@pytest.mark.parametrize("of", ["torsion", "rolling"])
def test_coefficients_are_combined_as_friction_is(rule, torsion, of):
    scene = ball(3, rule=rule, ground={"condim": 6, of: 0.08}, **{of: 0.02})
    spin = [0, 0, 0, 0, 0, 50.0] if of == "torsion" else [5.0, 0, 0, 0, 50.0, 0]
    state, _ = look(scene, dt=H, v=spin)
    lost = torsion * MASS * G * H / (INERTIA if of == "torsion" else ROLLS)
    assert state.v.max() == pytest.approx(50.0 - lost, rel=CLOSED)


def test_two_balls_share_their_spin():
    """Pressed together in weightlessness, one spins: torsion carries it over until both turn alike; momentum is kept."""
    scene, press, torsion, steps = cs.Scene(gravity=(0, 0, 0)), 5.0, 0.004, 200
    for k in (0, 1):
        shape = cs.Sphere(RADIUS, mass=MASS * (1 + k), condim=4, torsion=torsion)
        scene.add_body(f"ball{k}", joint=cs.Free(), pos=((2 * k - 1) * RADIUS, 0, 0), shapes=shape)
    external = np.zeros((2, 6))
    external[:, 3] = press, -press
    traj = run(scene, steps, dt=H, v=[0, 0, 0, 3.0, *[0] * 8], external=external)
    a, b = traj.v[:, 3], traj.v[:, 9]
    np.testing.assert_allclose(a + 2 * b, 3.0, atol=CLOSED)
    np.testing.assert_allclose(
        (a[10], b[10]), (3 - torsion * press * 10 * H / INERTIA, torsion * press * 5 * H / INERTIA), atol=CLOSED
    )
    np.testing.assert_allclose((a[-1], b[-1]), 1.0, atol=CLOSED)


@pytest.mark.parametrize("impacts", [None, "toi"])
def test_an_impact_takes_spin(impacts):
    """Its normal impulse, m v (1 + e), bounds the torque too: the spin loses torsion times that over I."""
    torsion, speed, e = 0.004, 1.0, 0.5
    scene = ball(4, torsion=torsion, restitution=e, ground={"restitution": e})
    q = [0, 0, RADIUS + 1e-3, 1, 0, 0, 0]
    traj = run(scene, 1 if impacts is None else 4, dt=1e-3, q=q, v=[0, 0, -speed, 0, 0, 5.0], impacts=impacts)
    hit = speed if impacts is None else math.sqrt(speed**2 + 2 * G * 1e-3)
    weight = 1e-3 * G if impacts is None else 0.0  # a step without impacts in time bears what the weight did in it
    lost = torsion * MASS * (hit * (1 + e) + weight) / INERTIA
    assert traj.v[-1, 5] == pytest.approx(5.0 - lost, rel=1e-6)


# ---- boxes ---------------------------------------------------------------------------------------------------------
HALF = (0.12, 0.09, 0.05)
# rad/s: with condim 6 four corners have 24 rows for 6 dofs, and 2% of a box's steps end a little above the tolerance of 1e-10
REDUNDANT = 1e-8


def box(condim: int, **surface: Any) -> cs.Scene:
    scene = cs.Scene(friction_rule="maximum")
    scene.add_ground(friction=0.0)
    shape = cs.Box(HALF, mass=MASS, condim=condim, **surface)
    scene.add_body("box", joint=cs.Free(), pos=(0, 0, HALF[2]), shapes=shape)
    return scene


@pytest.mark.parametrize(("condim", "friction"), [(4, 0.0), (4, 0.2), (6, 0.2)])
def test_a_box_that_turns_flat_on_the_ground(condim, friction):
    """Four corners, a quarter of the weight on each: friction at the corners' distance, torsion at every one of them."""
    torsion, w, steps = 0.01, 3.0, 100
    traj = run(box(condim, friction=friction, torsion=torsion, rolling=1e-3), steps, dt=H, v=[0, 0, 0, 0, 0, w])
    inertia = MASS * (HALF[0] ** 2 + HALF[1] ** 2) / 3
    rate = MASS * G * (friction * math.hypot(*HALF[:2]) + torsion) / inertia
    np.testing.assert_allclose(traj.v[:, 5], slowed(w, rate, steps), atol=1e-5 * w)
    assert traj.status.converged and np.abs(traj.v[-1]).max() < STILL


@pytest.mark.parametrize("condim", [4, 6])
def test_a_box_that_slides_and_turns_loses_energy_and_rests(condim):
    scene = box(condim, friction=0.3, torsion=0.02, rolling=2e-3)
    traj = run(scene, 150, dt=H, v=[1.0, 0.4, 0, 0, 0, 8.0])
    kinetic, potential = cs.energy(scene.build(), torch.tensor(traj.q), torch.tensor(traj.v))
    assert (kinetic + potential).diff().max() < 1e-8
    assert traj.status.residual < REDUNDANT and np.abs(traj.v[-1]).max() < STILL


def test_float32_follows():
    v = [0.4, 0, 0, 0, 4.0, 3.0]
    scene = ball(torsion=0.01, rolling=0.002)
    double, single = run(scene, 100, dt=H, v=v), run(scene, 100, dt=H, v=v, dtype=torch.float32)
    np.testing.assert_allclose(single.v, double.v, atol=2e-3)  # softness is 1e-5 there


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
# What it is compared with: elliptic cone, Newton, small steps, as in tests/parity/test_mujoco_contact.py. Its contact is convex
# and lifts off what slides or spins fast, the more the harder it is; so it has a time constant of 4 ms and an impedance of 0.99:
# its first blow and the creep of its friction at the end make up to 0.0034 of the speed it began with, measured.
PEER = 0.005
PEER_STEP = 0.0002


def peer(body: str, condim: int, friction: str) -> Any:
    text = f"""<mujoco><compiler boundmass="0" boundinertia="0"/>
        <option timestep="{PEER_STEP}" cone="elliptic" solver="Newton" tolerance="0" iterations="100" impratio="10"/>
        <default><geom condim="{condim}" friction="{friction}" solref="0.004 1" solimp="0.99 0.99 0.001 0.5 2"/></default>
        <worldbody><geom type="plane" size="0 0 1"/><body><freejoint/>{body}</body></worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def peer_run(model: Any, height: float, v: Any, seconds: float) -> np.ndarray:
    """Velocities every PEER_STEP, after it has come to rest on the ground."""
    data = mujoco.MjData(model)
    data.qpos[2] = height
    mujoco.mj_step(model, data, nstep=1000)
    data.qvel[:] = v
    found = [data.qvel.copy()]
    for _ in range(round(seconds / PEER_STEP)):
        mujoco.mj_step(model, data)
        found.append(data.qvel.copy())
    return np.array(found)


SPHERE = f'<geom type="sphere" size="{RADIUS}" mass="{MASS}"/>'
BOX = f'<geom type="box" size="{" ".join(map(str, HALF))}" mass="{MASS}"/>'
MOTIONS = {
    "a spinning ball": (SPHERE, 4, [0, 0, 0, 0, 0, 6.0], 5, 0.8),
    "a rolling ball": (SPHERE, 6, [0.2, 0, 0, 0, 2.0, 0], 0, 1.6),
    "a box that turns": (BOX, 4, [0, 0, 0, 0, 0, 3.0], 5, 0.4),
}


@pytest.mark.parametrize(("body", "condim", "v", "shown", "seconds"), list(MOTIONS.values()), ids=list(MOTIONS))
def test_as_in_mujoco(body, condim, v, shown, seconds):
    """One kind of turning at a time, where the joint cone and our product of intervals agree: the same way to rest."""
    mu, torsion, rolling = 0.8 if body is SPHERE else 1e-4, 0.01, 0.002  # corners of a box slide as it turns
    theirs = peer_run(peer(body, condim, f"{mu} {torsion} {rolling}"), RADIUS if body is SPHERE else HALF[2], v, seconds)
    surface = {"friction": mu, "torsion": torsion, "rolling": rolling}
    scene = ball(condim, ground=surface, **surface) if body is SPHERE else box(condim, **surface)
    ours = run(scene, round(seconds / 0.002), dt=0.002, v=v).v
    np.testing.assert_allclose(ours[:, shown], theirs[::10, shown], atol=PEER * abs(v[shown]))
    assert abs(ours[-1, shown]) < STILL


def test_where_mujoco_differs():
    """A ball that slides and spins. MuJoCo's cone is one for all, (f / mu)^2 + (torque / torsion)^2 <= n^2, and forces oppose
    what moves: torque / f = torsion^2 w / (mu^2 v); little is left for the spin. Ours are torsion n and mu n, each by itself."""
    mu, torsion, v, w, seconds = 0.3, 0.01, 2.0, 10.0, 0.02
    theirs = peer_run(peer(SPHERE, 4, f"{mu} {torsion} 0"), RADIUS, [v, 0, 0, 0, 0, w], seconds)
    ours, _ = look(ball(4, friction=mu, torsion=torsion, ground={"friction": 0.0}), dt=seconds, v=[v, 0, 0, 0, 0, w])

    def ratio(end: np.ndarray) -> float:
        return (w - end[5]) * INERTIA / ((v - end[0]) * MASS)

    assert ratio(ours.v) == pytest.approx(torsion / mu, rel=CLOSED)
    assert ratio(theirs[-1]) == pytest.approx(torsion**2 * w / (mu**2 * v), rel=0.5)  # its first blow lifts the ball off
    assert ratio(theirs[-1]) < 0.25 * ratio(ours.v)
