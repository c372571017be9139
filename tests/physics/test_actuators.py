"""Servos: the closed form of their implicit step, stiff gains, steady states, and limits of force and control."""

import math

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, look, run, turn

SCHEME = 1e-9  # relative; servos without force limits have no row: the scheme's own closed form to round-off
ROW = 1e-7  # with force limits they are rows, which give way by 1e-9 of their stiffness
MASS, H = 2.0, 0.005
LOWER, FREE, UPPER = 1, 2, 3


def slider(*, gravity: float = 0.0, mass: float = MASS, **joint) -> cs.Scene:
    scene = cs.Scene(gravity=(0, 0, -gravity))
    scene.add_body("slider", joint=cs.Prismatic((0, 0, 1), **joint), mass=mass, inertia=(1, 1, 1))
    return scene


def servo(kind: str, *, gravity: float = 0.0, **options) -> cs.Scene:
    scene = slider(gravity=gravity)
    {"motor": scene.add_motor, "position": scene.add_position, "velocity": scene.add_velocity}[kind]("slider", **options)
    return scene


def implicit(kp: float, kd: float, u: float, gear: float, steps: int, load: float, *, velocity: bool = False) -> np.ndarray:
    """q and v over time by the scheme: (m + h g^2 (kd + h kp)) v+ = m v + h g f0 + h load."""
    q = v = 0.0
    found = [(q, v)]
    for _ in range(steps):
        f = kd * u if velocity else kp * (u - gear * q)
        v = (MASS * v + H * (gear * f + load)) / (MASS + H * gear**2 * (kd + H * kp))
        q += H * v
        found.append((q, v))
    return np.array(found)


@pytest.mark.parametrize("gear", [1.0, -2.5])
@pytest.mark.parametrize(("kp", "kd"), [(50.0, 3.0), (1e5, 0.0), (1e5, 100.0), (1e8, 0.0)])
@pytest.mark.parametrize("limits", [None, 1e12])
def test_a_position_servo_follows_its_scheme(kp, kd, gear, limits):
    """The same with force limits that are never reached, though it is another row then."""
    options = {} if limits is None else {"force_limits": limits}
    traj = run(servo("position", kp=kp, kd=kd, gear=gear, gravity=G, **options), 100, dt=H, control=[0.3])
    expected = implicit(kp, kd, 0.3, gear, 100, -MASS * G)
    scale = np.abs(expected).max(0)
    found = np.stack([traj.q[:, 0], traj.v[:, 0]], 1)
    np.testing.assert_allclose(found / scale, expected / scale, atol=SCHEME if limits is None else ROW)


@pytest.mark.parametrize("gear", [1.0, -2.5])
@pytest.mark.parametrize("kd", [3.0, 1e5])
@pytest.mark.parametrize("limits", [None, 1e12])
def test_a_velocity_servo_follows_its_scheme(kd, gear, limits):
    options = {} if limits is None else {"force_limits": limits}
    traj = run(servo("velocity", kd=kd, gear=gear, gravity=G, **options), 100, dt=H, control=[0.3])
    expected = implicit(0.0, kd, 0.3, gear, 100, -MASS * G, velocity=True)
    np.testing.assert_allclose(traj.v[:, 0], expected[:, 1], atol=ROW)


@pytest.mark.parametrize(("kp", "kd"), [(100.0, 30.0), (1e5, 0.0), (1e5, 1e3)])
@pytest.mark.parametrize("limits", [None, 1e4])
def test_a_position_servo_settles_where_its_force_carries_the_load(kp, kd, limits):
    """kp (u - g q) g = m g; with the smallest damping the implicit step itself damps."""
    gear, u = 1.5, 0.2
    traj = run(servo("position", kp=kp, kd=kd, gear=gear, gravity=G, force_limits=limits), 3000, dt=H, control=[u])
    np.testing.assert_allclose(traj.q[-1, 0], (u - MASS * G / (gear * kp)) / gear, atol=1e-7)
    assert abs(traj.v[-1, 0]) < 1e-6


def test_a_velocity_servo_settles_at_its_speed_less_what_the_load_takes():
    traj = run(servo("velocity", kd=200.0, gravity=G), 1000, dt=H, control=[0.5])
    np.testing.assert_allclose(traj.v[-1, 0], 0.5 - MASS * G / 200.0, rtol=1e-9)


@pytest.mark.parametrize("force_limits", [None, 60.0])
def test_stiff_servos_on_a_chain_are_stable_at_5_ms(force_limits):
    """Six links of 0.1 kg on servos of 1e5 N m/rad: explicit ones would explode at 5 ms. They reach their targets and stay."""
    scene, parent, n = cs.Scene(), None, 6
    for i in range(n):
        joint = cs.Revolute(((1, 0, 0), (0, 1, 0))[i % 2])
        parent = scene.add_body(f"b{i}", parent=parent, joint=joint, pos=(0, 0, 0.1 if i else 0), mass=0.1, com=(0, 0, 0.05),
                                inertia=(1e-4, 1e-4, 1e-5))  # fmt: skip
        scene.add_position(parent, kp=1e5, kd=10.0, force_limits=force_limits)
    u = 0.3 * np.sin(np.arange(n))
    traj = run(scene, 400, dt=H, control=u, solver=cs.PGS(iterations=100, polish=20))
    assert np.abs(traj.q[-1] - u).max() < 1e-4 and np.abs(traj.v[-1]).max() < 1e-6
    energy = np.sum(cs.energy(scene.build(), traj.q, traj.v), axis=0)
    assert np.isfinite(energy).all() and energy.max() < 1e4


def test_servos_of_a_free_and_a_planar_joint():
    """Position servos act on their linear dofs and the planar angle, velocity servos on turns in space too."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("free", joint=cs.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.add_body("planar", joint=cs.Planar(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    for dof in range(3):
        scene.add_position("free", dof=dof, kp=100.0, kd=20.0)
        scene.add_position("planar", dof=dof, kp=100.0, kd=20.0)
    scene.add_velocity("free", dof=5, kd=10.0)
    u = [0.1, 0.4, 0.2, 0.5, 0.3, 0.6, 2.0]
    traj = run(scene, 2000, dt=H, control=u)
    np.testing.assert_allclose(traj.q[-1, [0, 1, 2, 7, 8, 9]], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], atol=1e-6)
    np.testing.assert_allclose(traj.v[-1, 5], 2.0, rtol=1e-6)


# ---- limits of force -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "gains"), [("position", {"kp": 1e5, "kd": 10.0}), ("velocity", {"kd": 1e5})])
@pytest.mark.parametrize(("u", "at"), [(1.0, 30.0), (-1.0, -20.0)])
def test_force_limits_are_met_exactly(kind, gains, u, at):
    """Far from its target a servo pushes with its limit, no more and no less, times the gear."""
    gear = 1.5
    scene = servo(kind, gear=gear, force_limits=(-20.0, 30.0), **gains)
    state, info = look(scene, dt=H, control=[u])
    assert info.rows.impulse[0] == at * H and info.rows.state[0] == (UPPER if u > 0 else LOWER)
    np.testing.assert_allclose(state.v[0], gear * at * H / MASS, rtol=1e-9)
    v = run(scene, 5, dt=H, control=[u]).v[:, 0]
    np.testing.assert_allclose(v, gear * at * H / MASS * np.arange(6), rtol=1e-9)


def test_force_limits_let_it_sag_and_slip():
    """A load above the limit accelerates down with the rest; one below is held."""
    weight = MASS * G
    traj = run(servo("position", kp=1e5, kd=100.0, gravity=G, force_limits=0.5 * weight), 50, dt=H, control=[0.0])
    np.testing.assert_allclose(traj.v[-1, 0], -0.5 * G * 50 * H, rtol=1e-6)
    traj = run(servo("position", kp=1e5, kd=100.0, gravity=G, force_limits=1.5 * weight), 400, dt=H, control=[0.0])
    np.testing.assert_allclose(traj.q[-1, 0], -weight / 1e5, atol=1e-9)


def test_the_force_of_a_servo_within_its_limits_is_reported():
    """info's impulse is h f, at the end of the step: f = kp (u - q+) - kd v+."""
    scene = servo("position", kp=300.0, kd=20.0, force_limits=1000.0, gravity=G)
    state, info = look(scene, dt=H, q=[0.1], v=[0.7], control=[0.5])
    np.testing.assert_allclose(info.rows.impulse[0], H * (300.0 * (0.5 - state.q[0]) - 20.0 * state.v[0]), rtol=1e-6)
    assert info.rows.state[0] == FREE


# A motor's force is its control, kept within both limits.
@pytest.mark.parametrize("u", [-5.0, -0.5, 0.5, 5.0])
def test_force_limits_of_a_motor(u):
    traj = run(servo("motor", gear=2.0, force_limits=(-1.0, 3.0)), 10, dt=H, control=[u])
    np.testing.assert_allclose(traj.v[-1, 0], 2.0 * min(max(u, -1.0), 3.0) * 10 * H / MASS, rtol=1e-9)


# ---- limits of control ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "gains"), [("motor", {}), ("position", {"kp": 50.0}), ("velocity", {"kd": 5.0})])
@pytest.mark.parametrize("u", [-5.0, -0.5, 0.5, 5.0])
def test_control_limits_clip_the_control(kind, gains, u):
    """Bit for bit the motion of the clipped control."""
    limited, plain = servo(kind, control_limits=(-1.0, 3.0), gear=1.5, **gains), servo(kind, gear=1.5, **gains)
    found, expected = run(limited, 20, dt=H, control=[u]), run(plain, 20, dt=H, control=[min(max(u, -1.0), 3.0)])
    assert np.array_equal(found.q, expected.q) and np.array_equal(found.v, expected.v)
    assert np.abs(found.v).max() > 0


def test_without_a_control_a_servo_aims_at_zero():
    traj = run(servo("position", kp=100.0, kd=30.0, control_limits=1.0), 1000, dt=H, q=[0.4])
    assert abs(traj.q[-1, 0]) < 1e-6
    traj = run(servo("position", kp=100.0, kd=30.0, control_limits=(0.1, 1.0)), 1000, dt=H, q=[0.4])
    assert abs(traj.q[-1, 0] - 0.1) < 1e-6, "or what its limits allow"


# ---- together ------------------------------------------------------------------------------------------------------
def test_two_servos_on_one_joint_add_up():
    scene = slider()
    scene.add_position("slider", kp=100.0, kd=20.0, name="a")
    scene.add_position("slider", kp=300.0, kd=20.0, force_limits=1e3, name="b")
    traj = run(scene, 2000, dt=H, control=[1.0, 2.0])
    np.testing.assert_allclose(traj.q[-1, 0], (100.0 * 1 + 300.0 * 2) / 400.0, atol=1e-7)


def test_a_servo_drives_a_joint_into_its_limit():
    """The limit holds; the servo pushes with what its gain makes of the rest, or with its own limit."""
    for force_limits, force in ((None, 1e5 * 0.5), (40.0, 40.0)):
        scene = slider(limits=(-0.5, 0.5))
        scene.add_position("slider", kp=1e5, kd=10.0, force_limits=force_limits)
        traj = run(scene, 300, dt=H, control=[1.0])
        assert abs(traj.q[-1, 0] - 0.5) < 1e-6
        _, info = look(scene, dt=H, q=traj.q[-1], v=traj.v[-1], control=[1.0])
        np.testing.assert_allclose(info.rows.impulse[-1], force * H, rtol=1e-6)


def test_a_servo_presses_a_foot_on_the_ground():
    """A ball on a vertical slider, pushed down: the ground bears weight and servo, the push is bounded by the force limit."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("foot", joint=cs.Prismatic((0, 0, 1)), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, mass=MASS))
    scene.add_position("foot", kp=1e4, kd=50.0, force_limits=25.0)
    _, info = look(scene, dt=H, control=[-1.0])
    np.testing.assert_allclose(info.contacts.impulse[0, 2], (MASS * G + 25.0) * H, rtol=1e-7)


def test_servos_hold_an_arm_in_float32():
    """Gains of 1e5 at 5 ms in single precision, too."""
    scene, parent = cs.Scene(), None
    for i in range(3):
        parent = scene.add_body(f"b{i}", parent=parent, joint=cs.Revolute((0, 1, 0)), pos=(0, 0, 0.3 if i else 0), mass=1.0,
                                com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.001))  # fmt: skip
        scene.add_position(parent, kp=1e5, kd=50.0)
    traj = run(scene, 400, dt=H, control=[0.5, -0.2, 0.9], dtype=torch.float32)
    assert np.abs(traj.q[-1] - [0.5, -0.2, 0.9]).max() < 1e-3 and np.abs(traj.v[-1]).max() < 1e-3


def test_a_gear_acts_both_ways():
    """Twice the gear halves the angle at the same control, and quadruples the stiffness felt at the joint."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", joint=cs.Revolute((0, 1, 0)), quat=turn((1, 0, 0), 0.2), mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.add_position("wheel", kp=40.0, kd=4.0, gear=2.0)
    scene.add_motor("wheel", name="load")
    traj = run(scene, 2000, dt=H, control=[1.0, 8.0])
    np.testing.assert_allclose(traj.q[-1, 0], 1.0 / 2.0 + 8.0 / (40.0 * 4), atol=1e-8)
    assert math.isclose(traj.v[-1, 0], 0.0, abs_tol=1e-8)
