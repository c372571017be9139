"""Servos (paper B): programmed speed, exponential approach, never more than their force; on joints and on constraints."""

import math

import numpy as np
import pytest

import costate as cs
from examples.servo_robots import arm
from tests.physics.constraint_scenes import AXIS, BODY, DRIVES, drive
from tests.physics.contact_scenes import G, look, rotate, run, turn

ROW = 1e-7  # relative: a servo's row gives way by 1e-7 of what is light about its body, a constraint beside it by 1e-9
LOWER, FREE, UPPER = 1, 2, 3
H, GAIN, SPEED = 0.01, 20.0, 0.5
TIES = tuple(kind for kind in DRIVES if kind not in ("revolute", "prismatic"))


def walk(target: float, speed: float, steps: int, *, gain: float = GAIN, inertia: float = 1.0, force: float = math.inf):
    """x and v of the scheme: v+ = clip(gain (u - x), +-max_speed), as far as the force can change v within a step."""
    x = v = 0.0
    found = [(x, v)]
    for _ in range(steps):
        wish = min(max(gain * (target - x), -speed), speed)
        most = H * force / inertia
        v += min(max(wish - v, -most), most)
        x += H * v
        found.append((x, v))
    return np.array(found).T


@pytest.mark.parametrize("kind", DRIVES)
def test_programmed_speed_then_exponential_approach(kind):
    """While gain (u - x) is above max_speed: exactly that speed, x = n h max_speed. From then on the error shrinks by
    1 - gain h in every step, which is exp(-gain t) as h goes to zero."""
    d = drive(kind)
    model = d.with_servo(gain=GAIN, max_force=1e4, max_speed=SPEED)
    target, steps = 0.3, 150
    x = d.x(model, run(model, steps, dt=H, control=[target]).q)
    far = math.ceil((target - SPEED / GAIN) / (H * SPEED))  # steps at full speed
    n = np.arange(steps + 1)
    np.testing.assert_allclose(x[: far + 1], n[: far + 1] * H * SPEED, atol=ROW * target)
    error = (target - far * H * SPEED) * (1 - GAIN * H) ** (n[far:] - far)
    np.testing.assert_allclose(target - x[far:], error, atol=ROW * target)
    assert target - x[-1] < 1e-7 and x.max() < target * (1 + ROW), "reached, never overshot"


@pytest.mark.parametrize("kind", DRIVES)
def test_the_approach_is_exponential(kind):
    """Against exp(-gain t) itself: first order in h, the error of an h is gain^2 h t / 2 exp(-gain t), at most gain h / e."""
    off = []
    for dt in (0.004, 0.002):
        d = drive(kind)
        model = d.with_servo(gain=GAIN, max_force=1e6, max_speed=100.0)
        steps = round(0.2 / dt)
        x = d.x(model, run(model, steps, dt=dt, control=[0.3]).q)
        off.append(np.abs(x - 0.3 * (1 - np.exp(-GAIN * dt * np.arange(steps + 1)))).max())
        assert off[-1] < 0.3 * GAIN * dt / math.e
    assert 1.8 < off[0] / off[1] < 2.2


@pytest.mark.parametrize("kind", DRIVES)
@pytest.mark.parametrize("target", [0.4, -0.4])
def test_a_weak_servo_accelerates_with_all_its_force(kind, target):
    """max_force / inertia up to max_speed, then no force, then it brakes; the row says which bound it is at."""
    d, force = drive(kind), 2.0
    model = d.with_servo(gain=1.5, max_force=force, max_speed=SPEED)
    traj = run(model, 200, dt=H, control=[target])
    x, v = walk(target, SPEED, 200, gain=1.5, inertia=d.inertia, force=force)
    np.testing.assert_allclose(d.x(model, traj.q), x, atol=10 * ROW)
    sim = cs.Simulator(model, dt=H)
    _, info = sim.step(cs.State(traj.q[:-1], traj.v[:-1]), np.full((200, 1), target), info=True)
    found = info.rows.impulse[:, 0] / H
    np.testing.assert_allclose(found, d.inertia * np.diff(v) / H, atol=1e-6)
    assert np.abs(found).max() <= force * (1 + 1e-12), "never more"
    side = UPPER if target > 0 else LOWER
    assert info.rows.state[0, 0] == side and (info.rows.state[-1, 0] == FREE) and np.abs(found[0]) == pytest.approx(force)


@pytest.mark.parametrize("kind", ["revolute", "hinge"])
@pytest.mark.parametrize("gear", [2.0, -0.5])
def test_gear(kind, gear):
    """Control, gain, speed and force are on the motor's side: gear x follows u, gear v is at most max_speed, torque gear f."""
    d = drive(kind)
    model = d.with_servo(gain=GAIN, max_force=0.5, max_speed=SPEED, gear=gear)
    traj = run(model, 300, dt=H, control=[0.3])
    x, _ = walk(0.3, SPEED, 300, inertia=d.inertia / gear**2, force=0.5)
    np.testing.assert_allclose(gear * d.x(model, traj.q), x, atol=10 * ROW)


@pytest.mark.parametrize("kind", DRIVES)
def test_control_limits(kind):
    d = drive(kind)
    model = d.with_servo(gain=GAIN, max_force=1e4, max_speed=SPEED, control_limits=(-0.1, 0.2))
    for u, end in ((5.0, 0.2), (-5.0, -0.1)):
        assert d.x(model, run(model, 200, dt=H, control=[u]).q)[-1] == pytest.approx(end, abs=1e-7)


# ---- against gravity -----------------------------------------------------------------------------------------------
ARM = 0.4  # m, from the axis to the centre of mass


def lever(kind: str, **servo) -> cs.Model:
    """A body of 2 kg whose centre of mass is 0.4 m beside a horizontal axis, held by a servo."""
    scene = cs.Scene()
    body = {"mass": BODY[0], "com": (ARM, 0, 0), "inertia": (BODY[1],) * 3}
    if kind == "revolute":
        scene.add_body("b", joint=cs.Revolute((0, -1, 0)), **body)
    else:
        scene.add_body("b", joint=cs.Free(), **body)
        scene.add_hinge(None, "b", axis=(0, -1, 0), name="held")
    scene.add_servo("b" if kind == "revolute" else "held", gain=GAIN, max_speed=SPEED, **servo)
    return scene.build()


def lift(kind: str, **servo) -> cs.Model:
    """A body of 2 kg on a vertical slide."""
    scene = cs.Scene()
    body = {"mass": BODY[0], "inertia": (BODY[1],) * 3}
    scene.add_body("b", joint=cs.Prismatic((0, 0, 1)) if kind == "prismatic" else cs.Free(), **body)
    joint = "b" if kind == "prismatic" else scene.add_slide(None, "b", name="held")
    scene.add_servo(joint, gain=GAIN, max_speed=SPEED, **servo)
    return scene.build()


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "hinge", "slide"])
def test_a_strong_servo_holds_against_gravity(kind):
    """For 5 s not a hair away, with the torque m g d or the force m g, though a spring with that gain would sag."""
    make = lever if kind in ("revolute", "hinge") else lift
    load = BODY[0] * G * (ARM if make is lever else 1.0)
    model = make(kind, max_force=1.01 * load)
    traj = run(model, 500, dt=H, control=[0.0])
    assert np.abs(traj.q - traj.q[0]).max() < ROW and np.abs(traj.v).max() < ROW
    info = look(model, dt=H, q=traj.q[-1], v=traj.v[-1], control=[0.0])[1]
    assert info.rows.impulse[0] / H == pytest.approx(load, rel=1e-7) and info.rows.state[0] == FREE


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "hinge", "slide"])
def test_a_weak_servo_slips(kind):
    """Falls with (max_force - load) / inertia; the load of the lift stays the same, so its whole way is known."""
    make = lever if kind in ("revolute", "hinge") else lift
    load, inertia = (BODY[0] * G * ARM, BODY[1] + BODY[0] * ARM**2) if make is lever else (BODY[0] * G, BODY[0])
    force = 0.6 * load
    model, fall = make(kind, max_force=force), (force - load) / inertia
    _, info = look(model, dt=H, control=[0.0])
    a = info.acceleration
    found = {"revolute": a[0], "prismatic": a[0], "hinge": -a[-2], "slide": a[2]}[kind] if a.size > 1 else a[0]
    assert found == pytest.approx(fall, rel=1e-7 if make is lift else 1e-4), "a projection changes v+ by (h v)^2"
    assert info.rows.impulse[0] / H == pytest.approx(force, rel=1e-12) and info.rows.state[0] == UPPER
    if make is lift:
        traj, n = run(model, 50, dt=H, control=[0.0]), np.arange(51)
        z = cs.kinematics(model, traj.q).position[:, 0, 2]
        np.testing.assert_allclose(z, fall * H**2 * n * (n + 1) / 2, atol=1e-8)


@pytest.mark.parametrize("kind", ["revolute", "hinge"])
def test_a_servo_lifts_a_lever_with_its_speed(kind):
    """Over 1 rad at max_speed with the torque m g d cos(x), for it does not accelerate; then it stays."""
    model = lever(kind, max_force=10.0 * BODY[0] * G * ARM)
    traj = run(model, 400, dt=H, control=[1.0])
    angle = traj.q[:, 0] if kind == "revolute" else -2 * np.arctan2(traj.q[:, 5], traj.q[:, 3])
    x, _ = walk(1.0, SPEED, 400)
    np.testing.assert_allclose(angle, x, atol=ROW if kind == "revolute" else 1e-4)
    sim = cs.Simulator(model, dt=H)
    info = sim.step(cs.State(traj.q[10:150], traj.v[10:150]), np.ones((140, 1)), info=True)[1]
    np.testing.assert_allclose(info.rows.impulse[:, 0] / H, BODY[0] * G * ARM * np.cos(angle[10:150]), rtol=5e-3)


# ---- full turns ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["revolute", "hinge", "hinge pair"])
@pytest.mark.parametrize("direction", [1, -1])
def test_several_full_turns_with_a_ramp(kind, direction):
    """u = w t through six turns: x follows, behind by w / gain. The angle of a constraint is only known up to full turns."""
    d, steps, rate = drive(kind), 1000, direction * 1.2 * math.pi
    model = d.with_servo(gain=GAIN, max_force=1e3, max_speed=10.0)
    u = rate * H * np.arange(steps)
    sim = cs.Simulator(model, dt=H)
    start = sim.initial_state()
    traj = sim.rollout(cs.State(start.q.numpy(), start.v.numpy()), u[:, None])
    x = d.x(model, traj.q)
    lag = u - x[:-1]
    np.testing.assert_allclose(lag, rate / GAIN * (1 - (1 - GAIN * H) ** np.arange(steps)), atol=1e-6)
    assert abs(x[-1]) > 5.9 * 2 * math.pi


def test_a_far_target_on_a_hinge_constraint_is_nearest_by_full_turns():
    """Told 2 pi + 0.3 it goes to 0.3: the same place, and all it can know. A joint would go round."""
    for kind, end in (("hinge", 0.3), ("revolute", 2 * math.pi + 0.3)):
        d = drive(kind)
        model = d.with_servo(gain=GAIN, max_force=1e3, max_speed=10.0)
        assert d.x(model, run(model, 200, dt=H, control=[2 * math.pi + 0.3]).q)[-1] == pytest.approx(end, abs=1e-6)


# ---- never more than its force -------------------------------------------------------------------------------------
@pytest.mark.parametrize("maximal", [False, True])
def test_no_servo_ever_exceeds_its_force(maximal, rng):
    """An arm that is thrown about: jumping targets, a payload, and the ground in the way."""
    scene, force = cs.Scene(), (25.0, 12.0, 3.0)
    scene.add_ground()
    body, parent, at = {"mass": 1.0, "com": (0.2, 0, 0), "inertia": (0.01, 0.02, 0.02)}, None, np.array((0, 0, 0.5))
    for i, f in enumerate(force):
        name, axis = f"link{i}", (0, -1, 0) if i else (0, 0.6, 0.8)
        if maximal:
            scene.add_body(name, joint=cs.Free(), pos=at, **body)
            scene.add_hinge(parent, name, axis=axis, pos=(0.4, 0, 0) if i else at, name=f"hinge{i}")
        else:
            scene.add_body(name, parent=parent, joint=cs.Revolute(axis, name=f"hinge{i}"), pos=(0.4, 0, 0) if i else at, **body)
        scene.add_shape(cs.Sphere(0.05, pos=(0.4, 0, 0), group=2, mask=1), body=name)
        scene.add_servo(f"hinge{i}", gain=30.0, max_force=f, max_speed=3.0)
        parent, at = name, at + np.array((0.4, 0, 0))
    model = scene.build()
    sim = cs.Simulator(model, dt=H)
    u = np.repeat(rng.uniform(-2, 2, (20, 3)), 15, axis=0)
    start = sim.initial_state()
    traj = sim.rollout(cs.State(start.q.numpy(), start.v.numpy()), u)
    info = sim.step(cs.State(traj.q[:-1], traj.v[:-1]), u, info=True)[1]
    found = np.abs(info.rows.impulse) / H / np.array(force)
    assert found.max() <= 1 + 1e-12 and traj.status.contacts > 0
    assert (found == 1).any(0).all() and (found < 0.9).any(0).all(), "each was at its limit, and below"


def test_a_servo_without_force_does_nothing():
    traj = run(lift("slide", max_force=0.0), 20, dt=H, control=[1.0])
    n = np.arange(21)
    np.testing.assert_allclose(traj.q[:, 2], -G * H**2 * n * (n + 1) / 2, atol=1e-9)


@pytest.mark.parametrize("kind", TIES)
def test_a_servo_on_a_constraint_pushes_both_bodies(kind):
    """Action and reaction: between two bodies momentum stays zero; against the world it does not."""
    d = drive(kind)
    model = d.with_servo(gain=GAIN, max_force=5.0, max_speed=SPEED)
    state, _ = look(model, dt=H, control=[1.0])
    momentum = cs.momentum(model, state.q, state.v)
    axis = rotate(turn((0.6, 0.0, 0.8), 0.7), AXIS)
    impulse = np.concatenate([axis, 0 * axis]) * 5.0 * H if d.turns else np.concatenate([0 * axis, axis]) * 5.0 * H
    np.testing.assert_allclose(momentum, impulse * (not kind.endswith("pair")), atol=1e-9)
    assert np.abs(state.v).max() > 0.01


# ---- paper B's arm -------------------------------------------------------------------------------------------------
REACH = np.array([-0.9, 0.7, -0.8, 1.1])  # rad


def test_paper_bs_arm_moves_as_its_servos_are_programmed():
    """45 degrees/s in every joint once it is up to speed, then the approach with gain 30: every angle as if it were alone."""
    model, h, speed = arm(), 0.01, math.radians(45)
    traj = run(model, 300, dt=h, control=REACH)
    info = cs.Simulator(model, dt=h).step(cs.State(traj.q[:-1], traj.v[:-1]), np.tile(REACH, (300, 1)), info=True)[1]
    torque = info.rows.impulse / h
    assert np.abs(torque).max() <= 30.0 * (1 + 1e-12)
    assert np.abs(torque[0]).max() == pytest.approx(30.0), "it starts with all it has"
    strong = info.rows.state == FREE
    # what a servo's row gives way by: 1e-7 of the lightness 3 / tr I of its body, times the impulse
    light = 3 / model.defaults["inertia"].numpy()[list(model.dof_body), :3].sum(-1)
    given = (1e-7 * light + 1e-10) * torque * h
    wish = np.clip(30.0 * (REACH - traj.q[:-1]), -speed, speed)
    assert np.abs(traj.v[1:] + given - wish)[strong].max() < 1e-9
    assert strong[10:80].all() and strong[100:].all(), "all of its torque only to start, and to brake"
    np.testing.assert_allclose(np.abs(traj.v[20:60] + given[19:59]), speed, rtol=1e-6)
    np.testing.assert_allclose(traj.q[-1], REACH - given[-1] / 30.0, atol=1e-6)
    load = cs.inverse_dynamics(model, traj.q[-1], np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(torque[-1], load, atol=1e-4)


def test_paper_bs_arm_in_maximal_coordinates():
    """The same way of its tip, to 1e-3 m over 3 s at dt 1e-3, within the same torque."""
    tips = []
    for maximal in (False, True):
        model = arm(maximal=maximal)
        traj = run(model, 3000, dt=1e-3, control=REACH)
        tips.append(cs.kinematics(model, traj.q).site_position[:, 0])
    assert np.abs(tips[1] - tips[0]).max() < 1e-3 and np.abs(tips[1][-1] - tips[0][-1]).max() < 1e-6
    assert np.abs(tips[0][-1] - tips[0][0]).max() > 0.5 and traj.status.drift < 1e-8
