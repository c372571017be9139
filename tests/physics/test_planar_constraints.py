"""Joints and constraints in the plane against closed forms: chains, doubled constraints, every lock, motors, limits, springs."""

import itertools
import math

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, look, run
from tests.physics.planar_scenes import chain, turned

H = 0.01
LOCKED = 1e-9  # m/s, rad/s per step at speeds around 1: a row gives way by 1e-9 of its stiffness
ROW = 1e-7  # relative, of actuators: their rows give way by 1e-7
DRIFT = 1e-6  # m in 10 s at dt 0.01; what is asked for
BODY = {"mass": 2.0, "inertia": 0.3}
OTHER = {"mass": 1.2, "inertia": 0.5}


# ---- chains --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("start", [0.3, 0.6])
def test_a_chain_does_not_drift(start, ball):
    """Ten links let go `start` (rad) off, 10 s at dt 0.01, three projections: every hinge is closed to 1e-6 m all the time,
    though links whip round at up to 17 rad/s."""
    model = chain(10, start, ball=ball).build()
    traj = run(model, 1000, project=3)
    assert np.abs(cs.constraint_error(model, traj.q)).max() < DRIFT and traj.status.drift < DRIFT
    assert np.ptp(traj.q[:, -3]) > 0.6 and np.ptp(traj.q[-100:, -3]) > 0.1, "it swings to the end"


def test_a_chain_that_is_hit_by_a_ball_does_not_drift():
    """As in paper A: it hangs, and a ball is thrown against its links."""
    scene = chain(10, 0.0, collide=True)
    scene.add_body("ball", pos=(-0.5, -0.7), shapes=cs.Circle(0.1, mass=0.2, restitution=0.5))
    model = scene.build()
    traj = run(model, 1000, v=[*[0.0] * 30, 2.0, 2.0, 0.0], project=5)
    assert np.abs(cs.constraint_error(model, traj.q)).max() < DRIFT
    assert traj.status.contacts > 0 and np.ptp(traj.q[:, 27]) > 0.1 and traj.v[100, 30] < -0.1, "it was hit"


def test_without_projection_a_chain_drifts_as_its_step_squared():
    drift = [run(chain(10, 0.6).build(), round(1 / dt), dt=dt, project=0).status.drift for dt in (0.004, 0.002)]
    assert 3 < drift[0] / drift[1] < 5 and drift[1] > 1e-6


def test_a_chain_in_maximal_coordinates_swings_like_its_tree():
    """Over 1 s; both schemes are of first order: in the limit of small steps they agree, at 1 ms to 2 mm."""
    ways = []
    for maximal in (True, False):
        model = chain(10, 0.4, maximal=maximal).build()
        found = []
        for dt in (1e-3, 5e-4):
            q = run(model, round(0.5 / dt), dt=dt).q[:: round(1e-3 / dt)]
            kin = cs.kinematics(model, q)
            angle = 2 * np.arctan2(kin.quaternion[..., 3], kin.quaternion[..., 0])
            up = np.stack((-np.sin(angle), np.cos(angle)), -1)
            found.append(kin.position[..., :2] + (0 if maximal else -0.05) * up)  # middles of links
        ways.append((found[0], 2 * found[1] - found[0]))
    assert np.abs(ways[0][0] - ways[1][0]).max() < 2e-3
    assert np.abs(ways[0][1] - ways[1][1]).max() < 2e-5
    assert np.ptp(ways[0][1], axis=0).max() > 0.3


def test_a_floating_chain_keeps_its_momentum(rng):
    """In the plane and without gravity: linear and angular, whatever its links do."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for i in range(6):
        scene.add_body(f"link{i}", pos=(0.1 * i, 0), shapes=cs.Rectangle((0.05, 0.01), mass=0.5, collide=False))
        if i:
            scene.add_hinge(f"link{i - 1}", f"link{i}", pos=(0.05, 0))
    model = scene.build()
    traj = run(model, 500, dt=2e-3, v=rng.normal(size=model.nv))
    momentum = cs.momentum(model, traj.q, traj.v)
    np.testing.assert_allclose(momentum, momentum[:1].repeat(501, 0), atol=1e-10)
    assert np.ptp(traj.q, axis=0).max() > 0.3


# ---- constraints that say the same twice ---------------------------------------------------------------------------
def double(*extra: str) -> cs.Model:
    """Three links on hinges; `extra`: what else holds at every hinge."""
    scene, parent = cs.Scene(planar=True), None
    for i in range(3):
        name = scene.add_body(pos=(0.3 * i, 0), mass=1.0, com=(0.15, 0), inertia=0.01)
        for kind in ("hinge", *extra):
            if kind == "lock":
                scene.add_lock(parent, name, x=True, pos=(0.3 if i else 0, 0))
            else:
                getattr(scene, f"add_{kind}")(parent, name, pos=(0.3 if i else 0, 0))
        parent = name
    return scene.build()


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("extra", [("hinge",), ("point",), ("lock",), ("hinge", "point", "hinge")])
def test_doubled_constraints_are_harmless(extra, project):
    one, two = (run(m, 500, dt=0.002, project=project) for m in (double(), double(*extra)))
    assert np.abs(one.q - one.q[0]).max() > 0.5
    assert np.abs(two.q - one.q).max() < 1e-6 and two.status.contradiction < 1e-5


def test_two_welds_between_the_same_bodies():
    """They hold what one holds, and share the load."""
    found = []
    for count in (1, 2, 3):
        scene = cs.Scene(planar=True)
        scene.add_body("a", joint=cs.Revolute(), pos=(0, 1), mass=1.0, com=(0.2, 0), inertia=0.05)
        scene.add_body("b", pos=(0.5, 1), angle=0.3, mass=2.0, inertia=0.1)
        for _ in range(count):
            scene.add_weld("a", "b", pos=(0.2, 0))
        traj = run(scene, 200, dt=0.005)
        assert traj.status.drift < 1e-5 and traj.status.contradiction < 1e-5
        impulse = look(scene, dt=0.005)[1].constraints.impulse.reshape(count, 3)
        found.append((traj.q, impulse * count))
    for q, impulse in found[1:]:
        np.testing.assert_allclose(q, found[0][0], atol=1e-6)
        np.testing.assert_allclose(impulse, found[0][1].repeat(len(impulse), 0), rtol=1e-5, atol=1e-9)


# ---- every kind ----------------------------------------------------------------------------------------------------
def pair(**options) -> cs.Scene:
    """Two free bodies around one point, turned against each other."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", pos=(0.3, -0.2), angle=0.4, **BODY)
    scene.add_body("b", pos=(0.3, -0.2), angle=-0.7, **OTHER, **options)
    return scene


AXIS = 0.9  # rad, of frame a against the world: its own angle of 0.5 on a body turned by 0.4
DIRECTIONS = {"x": [*turned((1, 0), AXIS), 0.0], "y": [*turned((0, 1), AXIS), 0.0], "rotation": [0.0, 0.0, 1.0]}
CHOICES = [c for c in itertools.product((False, True), repeat=3) if any(c)]
KINDS = {
    **{f"lock {c}": (c, lambda s, c=c: s.add_lock("a", "b", angle=0.5, **dict(zip(DIRECTIONS, c)))) for c in CHOICES},
    "hinge": ((True, True, False), lambda s: s.add_hinge("a", "b")),
    "weld": ((True, True, True), lambda s: s.add_weld("a", "b")),
    "slide": ((False, True, True), lambda s: s.add_slide("a", "b", axis=turned((1, 0), 0.5))),
}


@pytest.mark.parametrize("project", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_locked_directions_are_locked_and_free_ones_free(kind, project):
    """b is given a unit velocity against a along each axis in turn: it keeps it, or both end with their common velocity."""
    locked, add = KINDS[kind]
    scene = pair()
    add(scene)
    for direction, is_locked in zip(DIRECTIONS.values(), locked):
        b, m = np.array(direction), np.array([(x["inertia"] if direction[2] else x["mass"]) for x in (BODY, OTHER)])
        state, _ = look(scene, v=[*(-0.4 * b), *b], project=project)
        common = (m[1] - 0.4 * m[0]) / m.sum()
        expected = [*(common * b), *(common * b)] if is_locked else [*(-0.4 * b), *b]
        np.testing.assert_allclose(state.v, expected, atol=LOCKED)


def test_a_body_on_a_slide_falls_along_it():
    """With g sin, and is held across with g cos; a total lock holds all."""
    angle, steps = 0.6, 50
    for total in (False, True):
        scene = cs.Scene(planar=True)
        scene.add_body("b", pos=(1, 2), angle=0.3, **BODY)
        if total:
            scene.add_lock(None, "b", x=True, y=True, rotation=True, pos=(1, 2))
        else:
            scene.add_slide(None, "b", axis=turned((1, 0), -angle), pos=(1, 2))
        traj = run(scene, steps)
        a = 0.0 if total else G * math.sin(angle)
        expected = np.outer(a * H**2 * np.arange(steps + 1) * np.arange(1, steps + 2) / 2, [*turned((1, 0), -angle), 0])
        np.testing.assert_allclose(traj.q - traj.q[0], expected, atol=1e-8)
        held = look(scene)[1].constraints.impulse / H
        np.testing.assert_allclose(np.abs(held), [0, 2 * G, 0] if total else [2 * G * math.cos(angle), 0], atol=1e-6)


def test_a_weight_on_a_rod_is_a_pendulum():
    """add_distance: its period is 2 pi sqrt(l / g) (1 + a^2 / 16) for a swing of a = 0.2 rad."""
    l, a, dt = 0.8, 0.2, 1e-3
    scene = cs.Scene(planar=True)
    scene.add_body("bob", pos=(l * math.sin(a), -l * math.cos(a)), **BODY)
    scene.add_distance(None, "bob")
    traj = run(scene, 4000, dt=dt)
    np.testing.assert_allclose(np.hypot(traj.q[:, 0], traj.q[:, 1]), l, atol=1e-6)
    x = traj.q[:, 0]
    zero = np.nonzero((x[:-1] > 0) & (x[1:] <= 0))[0]
    times = dt * (zero + x[zero] / (x[zero] - x[zero + 1]))
    np.testing.assert_allclose(np.diff(times), 2 * math.pi * math.sqrt(l / G) * (1 + a**2 / 16), rtol=1e-3)
    assert np.abs(traj.v[:, 2]).max() < LOCKED, "the rod does not turn it"


def test_a_softness_gives_way_by_itself():
    """Static error = softness times force."""
    scene = cs.Scene(planar=True)
    scene.add_body("b", **BODY)
    scene.add_weld(None, "b", softness=1e-3)
    np.testing.assert_allclose(run(scene, 500).q[-1], [0, -1e-3 * 2 * G, 0], atol=1e-8)


# ---- actuators on constraints --------------------------------------------------------------------------------------
def driven(kind: str, between: bool) -> tuple[cs.Scene, str, float]:
    """A hinge or a slide along (3, 4) / 5, to the world or between two bodies; its name, and the inertia along it."""
    scene, turns = pair(), kind == "hinge"
    I, other = (x["inertia" if turns else "mass"] for x in (OTHER, BODY))
    inertia = I * other / (I + other) if between else I
    a = "a" if between else None
    at = (0, 0) if between else (0.3, -0.2)
    axis = turned((0.6, 0.8), -0.4 if between else 0.0)
    name = scene.add_hinge(a, "b", pos=at) if turns else scene.add_slide(a, "b", pos=at, axis=axis)
    return scene, name, inertia


def along(kind: str, between: bool, q: np.ndarray) -> np.ndarray:
    """How far b moved against a, or the world."""
    moved = q - q[0]
    moved = moved[..., 3:] - moved[..., :3] if between else moved[..., 3:]
    return moved[..., 2] if kind == "hinge" else moved[..., :2] @ (0.6, 0.8)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_a_motor_on_a_constraint(kind, between):
    """gear u / inertia, in every step."""
    scene, name, inertia = driven(kind, between)
    scene.add_motor(name, gear=1.5)
    n = np.arange(51)
    x = along(kind, between, run(scene, 50, control=[0.2]).q)
    np.testing.assert_allclose(x, 0.3 / inertia * H**2 * n * (n + 1) / 2, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("kind", ["hinge", "slide"])
@pytest.mark.parametrize("target", [0.3, -0.3])
def test_a_servo_on_a_constraint(kind, between, target):
    """Full speed, then an error that shrinks by 1 - gain h in every step; the force is no more than it has."""
    gain, speed = 20.0, 0.5
    scene, name, _ = driven(kind, between)
    scene.add_servo(name, gain=gain, max_force=1e4, max_speed=speed)
    x = along(kind, between, run(scene, 150, control=[target]).q) * np.sign(target)
    far, n = math.ceil((0.3 - speed / gain) / (H * speed)), np.arange(151)
    np.testing.assert_allclose(x[: far + 1], n[: far + 1] * H * speed, atol=ROW)
    np.testing.assert_allclose(0.3 - x[far:], (0.3 - far * H * speed) * (1 - gain * H) ** (n[far:] - far), atol=ROW)


@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_a_weak_servo_accelerates_with_all_its_force(kind):
    scene, name, inertia = driven(kind, True)
    scene.add_servo(name, gain=20.0, max_force=0.5, max_speed=10.0)
    n = np.arange(21)
    x = along(kind, True, run(scene, 20, control=[2.5]).q)  # less than half a turn: a hinge takes the shorter way
    np.testing.assert_allclose(x, 0.5 / inertia * H**2 * n * (n + 1) / 2, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_a_position_actuator_on_a_constraint(kind):
    """A spring and damper towards its control: it settles there."""
    scene, name, inertia = driven(kind, True)
    scene.add_position(name, kp=100.0 * inertia, kd=20.0 * inertia)  # critically damped, 10 rad/s
    x = along(kind, True, run(scene, 300, control=[0.2]).q)
    assert abs(x[-1] - 0.2) < 1e-6 and x.max() < 0.2 + 1e-9


# ---- joints of trees -----------------------------------------------------------------------------------------------
def rod(**joint) -> cs.Scene:
    """A rod of 1 m and 2 kg on a revolute joint, hanging."""
    scene = cs.Scene(planar=True)
    scene.add_body("rod", joint=cs.Revolute(**joint), shapes=cs.Rectangle((0.01, 0.5), mass=2.0, pos=(0, -0.5), collide=False))
    return scene


def test_a_pendulum_rests_on_its_limit():
    """Torque m g d sin against the limit; never beyond it."""
    traj = run(rod(limits=(0.5, 2.5)), 300, q=[1.5])
    assert abs(traj.q[-1, 0] - 0.5) < 1e-8 and traj.q.min() > 0.5 - 1e-8
    _, info = look(rod(limits=(0.5, 2.5)), q=traj.q[-1], v=traj.v[-1])
    np.testing.assert_allclose(info.rows.impulse[0] / H, 2.0 * G * 0.5 * math.sin(0.5), rtol=ROW)


@pytest.mark.parametrize("target", [3.0, -3.0])
def test_a_prismatic_joint_stops_at_its_limit(target):
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("cart", joint=cs.Prismatic((3, 4), limits=(-0.2, 0.4)), **BODY)
    traj = run(scene, 100, v=[target])
    assert abs(traj.q[-1, 0] - (0.4 if target > 0 else -0.2)) < 1e-8 and abs(traj.v[-1, 0]) < 1e-8


def test_a_spring_swings_and_a_damper_slows():
    """A cart on a spring: period 2 pi sqrt(m / k), energy of semi-implicit Euler kept; with a damper v shrinks by 1 + h d / m."""
    k, m = 80.0, 2.0
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("cart", joint=cs.Prismatic((1, 0), stiffness=k), **BODY)
    x = run(scene, 4000, dt=1e-3, q=[0.1]).q[:, 0]
    zero = np.nonzero((x[:-1] > 0) & (x[1:] <= 0))[0]
    times = 1e-3 * (zero + x[zero] / (x[zero] - x[zero + 1]))
    np.testing.assert_allclose(np.diff(times), 2 * math.pi * math.sqrt(m / k), rtol=1e-5)
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("cart", joint=cs.Prismatic((1, 0), damping=3.0), **BODY)
    np.testing.assert_allclose(run(scene, 100, v=[2.0]).v[:, 0], 2 * (1 + H * 3 / m) ** -np.arange(101.0), rtol=1e-12)


def test_a_spring_holds_a_rod():
    """At rest where stiffness (rest - q) = m g d sin q."""
    q = run(rod(stiffness=20.0, damping=5.0, rest=1.0), 3000).q[-1, 0]
    assert abs(20.0 * (1.0 - q) - 2.0 * G * 0.5 * math.sin(q)) < 1e-8


def test_a_coupling_of_two_wheels():
    """A gear of -2: torque on one turns both, inertia I1 + 4 I2."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for name, (x, inertia) in {"one": (0, 0.3), "two": (1, 0.1)}.items():
        scene.add_body(name, joint=cs.Revolute(), pos=(x, 0), mass=1.0, inertia=inertia)
    scene.add_coupling("two", "one", ratio=-2.0)
    scene.add_motor("one")
    v = run(scene, 50, control=[0.7]).v[-1]
    np.testing.assert_allclose(v, 50 * H * 0.7 / 0.7 * np.array([1, -2]), rtol=1e-6)


def test_welded_bodies_are_one_body():
    """Two circles welded to a dumbbell roll and bounce as one body that has both shapes; to first order in the step."""

    def end(welded: bool, dt: float) -> np.ndarray:
        scene = cs.Scene(planar=True)
        scene.add_ground(friction=0.5)
        left, right = (cs.Circle(0.1, mass=1.0, friction=0.5, pos=(x if not welded else 0, 0)) for x in (-0.15, 0.15))
        if welded:
            for name, x, shape in (("a", -0.15, left), ("b", 0.15, right)):
                at = turned((x, 0), 0.4)
                scene.add_body(name, pos=(at[0], 0.5 + at[1]), angle=0.4, shapes=shape)
            scene.add_weld("a", "b")
        else:
            scene.add_body("a", pos=(0, 0.5), angle=0.4, shapes=[left, right])
        traj = run(scene, round(0.6 / dt), dt=dt, project=2)
        return cs.centre_of_mass(scene.build(), traj.q)[:: round(2e-3 / dt)]

    coarse, fine = (np.abs(end(True, dt) - end(False, dt)).max() for dt in (2e-3, 1e-3))
    assert coarse < 5e-3 and fine < 0.7 * coarse
