"""Every constraint kind: what is free and what is locked, the impulses, softness, and couplings."""

import itertools
import math

import numpy as np
import pytest

import costate as cs
from tests.physics.contact_scenes import G, look, rotate, run, turn

H = 0.01
LOCKED = 1e-9  # m/s, rad/s per step at speeds around 1: a row gives way by 1e-9 of its stiffness
FORCE = 1e-7  # relative
FRAME = turn((0.48, -0.6, 0.64), 0.9)  # of the constraint, in the bodies
AXES = "x", "y", "z", "rx", "ry", "rz"
BOTH = {"a": (2.0, 0.3), "b": (1.2, 0.5)}  # kg, kg m^2

KINDS = {  # kind: (which axes of the frame it locks, how it is added)
    "point": ("x y z", lambda s, a, b, **o: s.add_point(a, b, **{k: v for k, v in o.items() if "quat" not in k})),
    "weld": ("x y z rx ry rz", lambda s, a, b, **o: s.add_weld(a, b, **o)),
    "hinge": ("x y z rx ry", lambda s, a, b, **o: s.add_hinge(a, b, **o)),
    "slide": ("x y rx ry rz", lambda s, a, b, **o: s.add_slide(a, b, **o)),
    "distance": ("", lambda s, a, b, **_: s.add_distance(a, b, pos=(0.3, 0.1, 0), pos_b=(-0.2, 0.1, 0.4))),
    "lock": ("x rz", lambda s, a, b, **o: s.add_lock(a, b, x=True, rz=True, **o)),
}  # fmt: skip


def pair(*, gravity=(0, 0, 0), offset: bool = False) -> cs.Scene:
    """Two free bodies around one point, round ones (or with centres of mass of their own)."""
    scene = cs.Scene(gravity=gravity)
    for i, (name, (mass, I)) in enumerate(BOTH.items()):
        inertia, com = ((0.2, 0.3, 0.25), (0.1 - 0.3 * i, 0.2, -0.1)) if offset else ((I, I, I), (0, 0, 0))
        scene.add_body(name, joint=cs.Free(), pos=(0.3, -0.2, 0.5), mass=mass, com=com, inertia=inertia)
    return scene


def along(axis: int, frame=FRAME) -> np.ndarray:
    """A unit velocity [6], linear first, along or about an axis of the frame, of an upright free body."""
    return np.concatenate([rotate(frame, np.eye(3)[axis % 3]) * (axis // 3 == k) for k in range(2)])


def one_step(scene: cs.Scene, v, **options) -> np.ndarray:
    return look(scene, dt=H, v=v, **options)[0].v


# ---- free and locked -----------------------------------------------------------------------------------------------
def assert_locks(add, locked: set[int], frame=FRAME, project: int = 1) -> None:
    """b is given a unit velocity against a along each axis in turn: it keeps it, or both end with their common velocity."""
    scene = pair()
    add(scene)
    model = scene.build()
    for axis in range(6):
        m = [n[axis // 3] for n in BOTH.values()]
        b = along(axis, frame)
        a, common = -0.4 * b, (m[1] - 0.4 * m[0]) / sum(m) * b
        v = one_step(model, np.concatenate([a, b]), project=project)
        expected = np.concatenate([common, common]) if axis in locked else np.concatenate([a, b])
        np.testing.assert_allclose(v, expected, atol=LOCKED, err_msg=f"axis {AXES[axis]}")


@pytest.mark.parametrize("project", [0, 1])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "distance"])
def test_locked_directions_are_locked_and_free_ones_free(kind, project):
    words, add = KINDS[kind]
    if kind == "point":  # alike in all frames
        return assert_locks(lambda s: s.add_point("a", "b"), {0, 1, 2}, project=project)
    return assert_locks(lambda s: add(s, "a", "b", quat=FRAME), {AXES.index(w) for w in words.split()}, project=project)


def test_every_choice_of_locks():
    """All 63: each locks what was chosen and nothing else."""
    for chosen in itertools.product((False, True), repeat=6):
        if any(chosen):
            picked = dict(zip(AXES, chosen))
            assert_locks(lambda s, picked=picked: s.add_lock("a", "b", quat=FRAME, **picked), {i for i in range(6) if chosen[i]})


@pytest.mark.parametrize("axis", [(1, 0, 0), (0.48, -0.6, 0.64)])
def test_axis_of_hinge_and_slide(axis):
    """The free direction is the axis, in the frame's coordinates: all across it is locked."""
    z = np.array(axis)
    x = np.cross(z, (0, 0, 1))
    x = x / np.linalg.norm(x)
    for add, turns in ((cs.Scene.add_hinge, True), (cs.Scene.add_slide, False)):
        scene = pair()
        add(scene, "a", "b", axis=axis, quat=FRAME)
        model = scene.build()
        for u, free in ((z, True), (x, False), (np.cross(z, x), False)):
            b = np.concatenate([rotate(FRAME, u) * (turns == k) for k in range(2)])
            v = one_step(model, np.concatenate([0 * b, b]))
            assert np.abs(v[6:] - v[:6] - b * free).max() < LOCKED


def test_a_distance_locks_the_line_between_its_points():
    """Closing speed and only that; the points' velocities across the line stay."""
    scene = pair()
    KINDS["distance"][1](scene, "a", "b")
    n = np.array([-0.5, 0.0, 0.4]) / math.hypot(0.5, 0.4)
    v = one_step(scene, np.concatenate([np.zeros(6), n, np.zeros(3)]), project=0)
    speed = [v[6 * i :][:3] + np.cross(v[6 * i + 3 :][:3], p) for i, p in enumerate(((0.3, 0.1, 0), (-0.2, 0.1, 0.4)))]
    assert abs((speed[1] - speed[0]) @ n) < LOCKED
    spin = np.cross(n, (0, 1, 0))  # of both together about y: the line turns with them
    both = np.concatenate([np.zeros(3), (0, 1, 0), np.zeros(3), (0, 1, 0)])
    np.testing.assert_allclose(one_step(scene, both, project=0), both, atol=LOCKED)
    slide = np.concatenate([np.zeros(6), spin, np.zeros(3)])
    np.testing.assert_allclose(one_step(scene, slide, project=0), slide, atol=LOCKED)


@pytest.mark.parametrize("project", [0, 2])
@pytest.mark.parametrize("offset", [0.0, 1e-3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_step_obeys_its_equations(kind, offset, project, rng):
    """M (v+ - v*) = J^T impulse, with J by differences of constraint_error: any frames, any q near the constraint, both bodies
    moving. And J v+ = -recovery error / h; with the projection the error after the step is zero instead."""
    scene = pair(gravity=(0, 0, -G), offset=True)
    KINDS[kind][1](scene, "a", "b", pos=(0.2, -0.1, 0.3), quat=FRAME)
    model = scene.build()
    q = np.array(model.q0, dtype=float)
    q = model.integrate(q, np.tile(0.3 * rng.normal(size=6), 2))  # both together
    q = cs.project(model, model.integrate(q, 0.1 * rng.normal(size=12)), iterations=20)
    q = model.integrate(q, offset * rng.normal(size=12))
    v, eps = rng.normal(size=12), 1e-6
    steps = np.concatenate([eps * np.eye(12), -eps * np.eye(12)])
    plus, minus = np.split(cs.constraint_error(model, model.integrate(q, steps)), 2)
    J = ((plus - minus) / (2 * eps)).T
    state, info = look(model, dt=H, q=q, v=v, project=project)
    free = v + H * cs.forward_dynamics(model, q, v, np.zeros(12))
    error, impulse = info.constraints.error, info.constraints.impulse
    np.testing.assert_allclose(error, cs.constraint_error(model, q), atol=1e-14)
    if project:
        assert np.abs(cs.constraint_error(model, state.q)).max() < 1e-6
    else:
        np.testing.assert_allclose(J @ state.v, -cs.Contact().recovery * error / H, atol=1e-8)
    np.testing.assert_allclose(cs.mass_matrix(model, q) @ (state.v - free), J.T @ impulse, atol=1e-8)
    assert np.abs(impulse).max() > 0.05 and (np.abs(error).max() > offset / 10 or not offset)


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_action_and_reaction(kind, project, rng):
    """Both momenta of two round bodies that whirl around each other for 1 s, to round-off: also the projection pushes on both."""
    scene = pair()
    KINDS[kind][1](scene, "a", "b", pos=(0.2, -0.1, 0.3), quat=FRAME)
    model = scene.build()
    traj = run(model, 100, dt=H, v=rng.normal(size=12), project=project)
    momentum = cs.momentum(model, traj.q, traj.v)
    np.testing.assert_allclose(momentum, momentum[:1].repeat(101, 0), atol=1e-13)
    assert np.abs(traj.v[1] - traj.v[0]).max() > 0.05 and np.abs(momentum[0]).min() > 0.05


# ---- impulses ------------------------------------------------------------------------------------------------------
def impulses(model: cs.Model, info) -> dict[str, float]:
    """N or N m of every equality row."""
    return dict(zip(model.equality_names, info.constraints.impulse / H))


def test_a_hanging_weight():
    """m g up, on b; the other rows hold nothing. Counted on b, whichever of the two is the weight."""
    at = (0.1, 0.2, 0.3)
    for a, b, sign in ((None, "b", 1.0), ("b", None, -1.0)):
        scene = cs.Scene()
        scene.add_body("b", joint=cs.Free(), pos=at, mass=2.0, inertia=(0.1, 0.1, 0.1))
        scene.add_point(a, b, pos=at if a is None else (0, 0, 0))
        found = impulses(scene.build(), look(scene, dt=H)[1])
        assert found == pytest.approx({"point0 x": 0, "point0 y": 0, "point0 z": sign * 2.0 * G}, abs=1e-7)


@pytest.mark.parametrize("kind", ["weld", "hinge", "slide"])
def test_a_bracket_carries_weight_and_torque(kind):
    """A body of 2 kg with its middle 0.3 m along x, held at its end: force m g along z, torque -m g d about y (it would tip
    downwards, which is + about y). The hinge's free axis is x, the slide's free axis y."""
    scene = cs.Scene()
    scene.add_body("b", joint=cs.Free(), mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    if kind == "weld":
        scene.add_weld(None, "b", name="c")
    elif kind == "hinge":
        scene.add_hinge(None, "b", axis=(1, 0, 0), name="c")
    else:
        scene.add_slide(None, "b", axis=(0, 1, 0), name="c")
    model = scene.build()
    state, info = look(model, dt=H)
    assert np.abs(state.v).max() < 1e-9, "it stays"
    quat = model.defaults["tie_quat"][0].numpy()
    total = np.zeros(6)
    for name, f in impulses(model, info).items():
        word = name.split()[1]
        total[AXES.index(word)] += f
    force, torque = rotate(quat, total[:3]), rotate(quat, total[3:])
    np.testing.assert_allclose(force, [0, 0, 2.0 * G], atol=1e-7 * 2 * G)
    np.testing.assert_allclose(torque, [0, -2.0 * G * 0.3, 0], atol=1e-7 * 2 * G)


@pytest.mark.parametrize("project", [0, 1, 2])
def test_tension_of_a_conical_pendulum(project):
    """m g / cos(angle), centripetal force included, to first order in h; pulling: along the line from a to b it is negative."""
    off, angle, length, mass = [], 0.6, 1.0, 2.0
    tension = mass * G / math.cos(angle)
    speed = math.sqrt(G * length * math.sin(angle) * math.tan(angle))
    for dt in (0.004, 0.002):
        scene = cs.Scene()
        at = (length * math.sin(angle), 0, -length * math.cos(angle))
        scene.add_body("b", joint=cs.Free(), pos=at, mass=mass, inertia=(0.1, 0.1, 0.1))
        scene.add_distance(None, "b")
        traj = run(scene, round(1 / dt), dt=dt, v=[0, speed, 0, 0, 0, 0], project=project)
        _, info = look(scene, dt=dt, q=traj.q[-1], v=traj.v[-1], project=project)
        off.append(info.constraints.impulse[0] / dt + tension)
    assert np.abs(off).max() < 0.01 * tension and abs(off[1]) < 0.6 * abs(off[0])


# ---- softness ------------------------------------------------------------------------------------------------------
BRACKETS = {  # how a weight hangs on the world by each kind
    "point": lambda s, soft: s.add_point(None, "b", softness=soft),
    "weld": lambda s, soft: s.add_weld(None, "b", pos=(0.4, 0, 0), softness=soft),  # 0.4 m beside it: with a torque
    "hinge": lambda s, soft: s.add_hinge(None, "b", axis=(0, 1, 0), softness=soft),
    "slide": lambda s, soft: s.add_slide(None, "b", axis=(1, 0, 0), softness=soft),
    "distance": lambda s, soft: s.add_distance(None, "b", pos=(0, 0, 0.5), softness=soft),
    "lock": lambda s, soft: s.add_lock(None, "b", z=True, rx=True, quat=turn((1, 0, 0), 0.4), softness=soft),
}


@pytest.mark.parametrize("recovery", [0.2, 1.0])
@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("kind", BRACKETS)
def test_softness_is_the_static_error_per_force(kind, dt, recovery):
    """A weight comes to rest where error = -softness force in every row, whatever the step and the recovery; together the rows
    carry it: it sank by softness m g, and by softness m g d^2 more where it hangs on an arm."""
    scene, soft, weight = cs.Scene(), 2e-4, 2.0 * G
    joint = cs.Free() if kind != "lock" else cs.Prismatic((0, 0, 1))
    scene.add_body("b", joint=joint, mass=2.0, com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    BRACKETS[kind](scene, soft)
    model, contact = scene.build(), cs.Contact(recovery=recovery)
    traj = run(model, round(8 / dt), dt=dt, contact=contact)
    _, info = look(model, dt=dt, q=traj.q[-1], v=traj.v[-1], contact=contact)
    np.testing.assert_allclose(info.constraints.error, -soft * info.constraints.impulse / dt, atol=1e-6 * soft * weight)
    sag = {"weld": soft * weight * (1 + 0.4**2), "lock": soft * weight / math.cos(0.4) ** 2}.get(kind, soft * weight)
    z = cs.kinematics(model, traj.q[-1]).position[0, 2]
    assert -z == pytest.approx(sag, rel=1e-5 if kind != "weld" else 1e-2), "a tilted arm is a little longer"


def test_a_soft_constraint_gives_way_without_ringing():
    scene = cs.Scene()
    scene.add_body("b", joint=cs.Free(), mass=2.0, inertia=(0.1, 0.1, 0.1))
    scene.add_point(None, "b", softness=1e-4)
    z = run(scene, 200, dt=H).q[:, 2]
    assert (np.diff(z) < 1e-12).all() and z[-1] == pytest.approx(-1e-4 * 2 * G, rel=1e-6)


# ---- couplings -----------------------------------------------------------------------------------------------------
I1, I2 = 0.3, 0.05


def gears(**coupling) -> cs.Model:
    """Two wheels; the second has a motor and drives the first."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("first", joint=cs.Revolute((0, 0, 1)), mass=1.0, inertia=(I1,) * 3)
    scene.add_body("second", joint=cs.Revolute((0, 1, 0)), pos=(1, 0, 0), mass=1.0, inertia=(I2,) * 3)
    scene.add_coupling("first", "second", **coupling)
    scene.add_motor("second")
    return scene.build()


@pytest.mark.parametrize("ratio", [-0.25, 1.0, 3.0])
def test_gears(ratio):
    """Speeds in the ratio, torques in its inverse: a2 = tau / (I2 + ratio^2 I1), the first wheel gets I1 ratio a2."""
    model = gears(ratio=ratio)
    traj, a2, n = run(model, 100, dt=H, control=[0.7]), 0.7 / (I2 + ratio**2 * I1), np.arange(101)
    np.testing.assert_allclose(traj.v[:, 1], a2 * H * n, rtol=FORCE)
    np.testing.assert_allclose(traj.v[:, 0], ratio * a2 * H * n, rtol=FORCE)
    info = look(model, dt=H, q=traj.q[-1], v=traj.v[-1], control=[0.7])[1]
    np.testing.assert_allclose(info.constraints.impulse[0] / H, I1 * ratio * a2, rtol=FORCE)
    assert traj.status.drift < 1e-9


@pytest.mark.filterwarnings("ignore:.*off by more than")
def test_a_coupling_to_nothing_holds_a_joint():
    """q = offset: it goes there and stays, against the motor."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("wheel", joint=cs.Revolute((0, 0, 1)), mass=1.0, inertia=(I1,) * 3)
    scene.add_coupling("wheel", offset=0.2)
    scene.add_motor("wheel")
    traj = run(scene, 20, dt=H, control=[3.0])
    assert abs(traj.q[-1, 0] - 0.2) < 1e-9
    assert look(scene, dt=H, q=[0.2], control=[3.0])[1].constraints.impulse[0] / H == pytest.approx(-3.0, rel=1e-6)


def test_rack_and_pinion():
    """The rack's weight on the pinion's radius is what the pinion has to hold, and what it turns with when it does not."""
    radius, mass = 0.08, 1.5
    scene = cs.Scene()
    scene.add_body("rack", joint=cs.Prismatic((0, 0, 1)), mass=mass, inertia=(0.1, 0.1, 0.1))
    scene.add_body("pinion", joint=cs.Revolute((0, 1, 0)), mass=1.0, inertia=(I2,) * 3)
    scene.add_coupling("rack", "pinion", ratio=radius)
    scene.add_motor("pinion")
    model = scene.build()
    held = run(model, 100, dt=H, control=[mass * G * radius])
    assert np.abs(held.q).max() < 1e-7
    free, n = run(model, 100, dt=H, control=[0.0]), np.arange(101)
    a = -mass * G * radius / (I2 + mass * radius**2)
    np.testing.assert_allclose(free.v[:, 1], a * H * n, rtol=FORCE)
    np.testing.assert_allclose(free.q[:, 0], radius * free.q[:, 1], atol=1e-9)


@pytest.mark.parametrize("project", [0, 1])
def test_a_cam(project):
    """A polynomial of all five coefficients: the follower stays on it, and the velocity on its slope."""
    c = [0.05, 0.2, -0.3, 0.1, 0.02]
    model = gears(coefficients=c)
    q2 = 0.1
    traj = run(model, 500, dt=0.002, q=[np.polyval(c[::-1], q2), q2], control=[0.3], project=project)
    off = traj.q[:, 0] - np.polyval(c[::-1], traj.q[:, 1])
    assert traj.q[-1, 1] > 1.0 and np.abs(off).max() < (1e-6 if project else 3e-4)
    np.testing.assert_allclose(off, cs.constraint_error(model, traj.q)[:, 0], atol=1e-14)


def test_a_soft_coupling():
    """Twist between the gears: softness times torque; the first wheel is held."""
    model_soft, scene = 1e-3, cs.Scene(gravity=(0, 0, 0))
    for name in ("first", "second"):
        scene.add_body(name, joint=cs.Revolute((0, 0, 1), damping=2.0 * (name == "second")), mass=1.0, inertia=(I1,) * 3)
    scene.add_coupling("first")
    scene.add_coupling("second", "first", ratio=2.0, softness=model_soft)
    scene.add_motor("second")
    traj = run(scene, 500, dt=H, control=[5.0])
    assert traj.q[-1, 1] == pytest.approx(5.0 * model_soft, rel=1e-6) and abs(traj.q[-1, 0]) < 1e-8
