"""Standing still: at the right height, with the right forces, soft or rigid, in stacks; and coming out of overlaps quietly."""

import math

import numpy as np
import pytest

import costate as cs
from costate.scene.shapes import Shape
from tests.physics.contact_scenes import UPRIGHT, G, look, on_ground, run, turn

STILL = 1e-8  # m or m/s: a rigid row gives way by 1e-9 of its stiffness, some 1e-11 m per step
FORCE = 1e-8  # relative
FLAT = turn((0, 1, 0), math.pi / 2)  # puts a capsule on its side
HALF = (0.2, 0.15, 0.1)
FIRM = cs.PGS(iterations=100, polish=20)

# shape, orientation, height at which it rests
REST = {
    "sphere": (cs.Sphere(0.2), UPRIGHT, 0.2),
    "capsule on its side": (cs.Capsule(0.1, 0.3), FLAT, 0.1),
    "capsule on end": (cs.Capsule(0.1, 0.3), UPRIGHT, 0.4),
    "box": (cs.Box((0.2, 0.15, 0.1)), UPRIGHT, 0.1),
    "box on its side": (cs.Box((0.2, 0.15, 0.1)), FLAT, 0.2),
    "sphere off centre": (cs.Sphere(0.2, pos=(0, 0, 0.3)), turn((1, 0, 0), math.pi), 0.5),
    "box in a box's frame": (cs.Box((0.2, 0.15, 0.1), pos=(0, 0, -0.3), quat=FLAT), UPRIGHT, 0.5),
}


@pytest.mark.parametrize(("shape", "quat", "height"), list(REST.values()), ids=list(REST))
@pytest.mark.parametrize("ground", [0.0, -3.0, 40.0])
def test_it_lands_and_rests_at_the_right_height(shape, quat, height, ground):
    """Dropped flat from 5 cm; then nothing moves."""
    traj = run(on_ground(shape, height=ground + height + 0.05, quat=quat, ground={"height": ground}), 100)
    np.testing.assert_allclose(traj.q[-20:, 2], ground + height, atol=STILL)
    assert np.abs(traj.v[-20:]).max() < STILL


def tumble(seed: int, solver: cs.PGS) -> cs.Trajectory:
    """A box dropped in some orientation, until long after it came down."""
    quat = np.random.default_rng(seed).normal(size=4)
    return run(on_ground(cs.Box(HALF, friction=0.5), height=0.5, quat=quat, ground={"friction": 0.5}), 400, solver=solver)


@pytest.mark.parametrize("seed", range(6))
def test_a_tumbling_box_ends_on_a_face(seed):
    traj = tumble(seed, FIRM)
    assert np.abs(np.array(HALF) - traj.q[-1, 2]).min() < STILL and np.abs(traj.v[-1]).max() < STILL
    traj = tumble(seed, cs.PGS())
    assert np.abs(np.array(HALF) - traj.q[-1, 2]).min() < 1e-6 and np.abs(traj.v[-1]).max() < 1e-6


@pytest.mark.parametrize("shape", [cs.Sphere(0.2), cs.Capsule(0.1, 0.3, quat=FLAT), cs.Box((0.2, 0.15, 0.1))], ids=repr)
def test_contact_forces_carry_the_weight(shape):
    """Together m g, straight up, each from the ground to the body; symmetric contacts share alike."""
    scene = on_ground(shape, height=0.2 if isinstance(shape, cs.Sphere) else 0.1)
    _, info = look(scene)
    weight, c = float(scene.params()["mass"][0]) * G * 0.01, info.contacts
    np.testing.assert_allclose(c.impulse.sum(0), [0, 0, weight], atol=FORCE * weight)
    np.testing.assert_allclose(c.normal[c.active], [[0, 0, 1]] * c.active.sum())
    np.testing.assert_allclose(c.impulse[c.active][:, 2], weight / c.active.sum(), rtol=1e-6)
    assert (c.state[c.active] == 2).all() and np.abs(c.gap[c.active]).max() < 1e-12


@pytest.mark.parametrize("mu", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("yaw", [0.0, 0.5, 2.0])
def test_a_resting_box_does_not_press_against_itself(mu, yaw):
    """Friction of four corners can hold any inner tension; at rest there is no reason for one, and the corners share alike."""
    scene = on_ground(cs.Box(HALF, friction=mu), height=0.1, quat=turn((0, 0, 1), yaw), ground={"friction": mu})
    force = look(scene, dt=0.005)[1].contacts.impulse[:4]
    np.testing.assert_allclose(force[:, 2], force[:, 2].mean(), rtol=1e-4)
    assert np.abs(force[:, :2]).max() < 0.01 * force[:, 2].mean()


def test_centre_of_pressure():
    """A box whose weight is off its middle: the corners' forces have their centre below it."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("box", joint=cs.Free(), pos=(0, 0, 0.1), mass=2.0, com=(0.08, -0.05, 0.02), inertia=(0.02, 0.03, 0.03))
    scene.add_shape(cs.Box((0.2, 0.15, 0.1)), body="box")
    _, info = look(scene)
    f, x = info.contacts.impulse[:, 2], info.contacts.point
    np.testing.assert_allclose(f.sum(), 2.0 * G * 0.01, rtol=FORCE)
    np.testing.assert_allclose((f[:, None] * x).sum(0) / f.sum(), [0.08, -0.05, 0], atol=1e-7)


# ---- softness ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize("recovery", [0.2, 1.0])
def test_a_soft_contact_sinks_by_softness_times_force(dt, recovery):
    """Whatever the step and the recovery; softness of both sides adds up, and four corners share the force."""
    soft, contact = (3e-7, 2e-7), cs.Contact(recovery=recovery)
    for shape, height, points in ((cs.Sphere(0.2, softness=soft[0]), 0.2, 1), (cs.Box(HALF, softness=soft[0]), 0.1, 4)):
        scene = on_ground(shape, height=height, ground={"softness": soft[1]})
        weight = float(scene.params()["mass"][0]) * G
        traj = run(scene, round(1 / dt), dt=dt, contact=contact)
        np.testing.assert_allclose(height - traj.q[-1, 2], sum(soft) * weight / points, rtol=1e-6)
        assert np.abs(traj.v[-1]).max() < 1e-7


@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_a_very_soft_contact_holds_too(dt):
    """Also where it sinks by centimetres, and faster than bounce_speed on the way."""
    scene = on_ground(cs.Sphere(0.2, softness=5e-5), height=0.2)
    depth = 5e-5 * float(scene.params()["mass"][0]) * G
    traj = run(scene, round(6 / dt), dt=dt)
    np.testing.assert_allclose(0.2 - traj.q[-1, 2], depth, rtol=1e-4)


def test_a_soft_contact_settles_without_ringing():
    """It gives way like a damped spring: monotonically, from touching to its depth."""
    scene = on_ground(cs.Sphere(0.2, softness=5e-6), height=0.2)
    traj = run(scene, 200)
    assert (np.diff(traj.q[:, 2]) < 1e-12).all() and traj.q[-1, 2] < 0.199


# ---- overlaps ------------------------------------------------------------------------------------------------------
PUSH = cs.Contact().push_speed

OVERLAPS = {
    "sphere": (cs.Sphere(0.2), UPRIGHT, 0.05),
    "sphere below the ground": (cs.Sphere(0.2), UPRIGHT, -0.4),
    "capsule": (cs.Capsule(0.1, 0.3), turn((0, 1, 0), 1.2), 0.0),
    "box": (cs.Box((0.2, 0.15, 0.1)), turn((0.6, 0.8, 0), 0.3), 0.0),
    "box below the ground": (cs.Box((0.2, 0.15, 0.1)), turn((0.6, 0.8, 0), 0.3), -0.5),
}


@pytest.mark.parametrize(("shape", "quat", "height"), list(OVERLAPS.values()), ids=list(OVERLAPS))
@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_an_overlap_with_the_ground_is_undone_quietly(shape, quat, height, dt):
    """No point of it rises faster than push_speed; it does not jump higher than that speed carries it, and ends at rest."""
    traj = run(on_ground(shape, height=height, quat=quat), round(3 / dt), dt=dt)
    assert np.abs(traj.v[:, 2]).max() < 1.01 * PUSH
    size = 0.36  # m, from the middle to the farthest corner
    rest = shape.half[2] if isinstance(shape, cs.Box) else shape.radius
    turning = np.linalg.norm(traj.v[:, 3:], axis=1)
    assert (turning < 2 * PUSH / 0.1 + 4).all() and turning.max() * size < 2.0, "as a body that falls over"
    assert traj.q[:, 2].max() < max(rest + PUSH**2 / (2 * G), traj.q[0, 2]) + 1e-3
    assert abs(traj.q[-1, 2] - rest) < 1e-5 and np.abs(traj.v[-1]).max() < 1e-5


def pair(a: Shape, b: Shape, pos: tuple[float, float, float], quat=UPRIGHT, *, swap: bool = False) -> cs.Scene:
    """Two bodies in space, the first upright at the origin; swap: the second is created first."""
    scene = cs.Scene(gravity=(0, 0, 0))
    both = [("a", a, (0, 0, 0), UPRIGHT), ("b", b, pos, quat)]
    for name, shape, place, turned in reversed(both) if swap else both:
        scene.add_body(name, joint=cs.Free(), pos=place, quat=turned, shapes=shape)
    return scene


BALL, ROD = cs.Sphere(0.1), cs.Capsule(0.1, 0.3)
PAIRS = {
    "spheres": (BALL, BALL, (0.05, 0.02, 0.03)),
    "spheres at one place": (BALL, BALL, (0, 0, 0)),
    "sphere in a capsule's side": (ROD, BALL, (0.03, 0.02, 0.1)),
    "sphere on a capsule's axis": (ROD, BALL, (0, 0, 0.1)),
    "sphere in a capsule's end": (ROD, BALL, (0.02, 0, 0.35)),
    "crossed capsules": (ROD, ROD, (0.05, 0, 0.1), turn((1, 0, 0), 1.2)),
    "capsules through each other": (ROD, ROD, (0, 0, 0), turn((1, 0, 0), math.pi / 2)),
    "capsules at one place": (ROD, ROD, (0, 0, 0)),
    "parallel capsules": (ROD, ROD, (0.1, 0.05, 0.2)),
    "nearly parallel capsules": (ROD, ROD, (0.05, 0, 0.1), turn((0, 1, 0), 0.01)),
}


@pytest.mark.parametrize("args", list(PAIRS.values()), ids=list(PAIRS))
def test_overlapping_shapes_part_quietly(args):
    """At most at push_speed where they touch, so no faster along any direction than twice that for a body that is hit off its
    middle; after a second they are apart, and momentum is still zero."""
    scene = pair(*args)
    model = scene.build()
    traj = run(model, 200)
    a, b = traj.v[:, :6], traj.v[:, 6:]
    mass, inertia = model.defaults["mass"].numpy(), model.defaults["inertia"].numpy()
    assert np.abs(mass[0] * a[:, :3] + mass[1] * b[:, :3]).max() < 1e-9
    energy = 0.5 * sum(m * (v[:, :3] ** 2).sum(1) + (I[:3] * v[:, 3:] ** 2).sum(1) for m, I, v in zip(mass, inertia, (a, b)))
    # all of it moving with push_speed is more than any contact can give
    assert energy.max() < 0.5 * mass.sum() * PUSH**2
    assert np.linalg.norm(a[:, :3] - b[:, :3], axis=1).max() < 1.01 * PUSH
    assert look(model, q=traj.q[-1], v=traj.v[-1])[1].contacts.gap.min() > -1e-9


def test_faster_recovery_and_push():
    """recovery 1 undoes a shallow overlap in one step, push_speed limits a deep one."""
    scene = on_ground(cs.Sphere(0.2), height=0.199, gravity=(0, 0, 0))
    state, _ = look(scene, contact=cs.Contact(recovery=1.0))
    assert abs(state.q[2] - 0.2) < STILL
    state, _ = look(on_ground(cs.Sphere(0.2), gravity=(0, 0, 0)), contact=cs.Contact(push_speed=0.05))
    assert abs(state.v[2] - 0.05) < STILL
    state, _ = look(on_ground(cs.Sphere(0.2), gravity=(0, 0, 0)), contact=cs.Contact(push_speed=0.0))
    assert abs(state.v[2]) < STILL


# ---- stacks --------------------------------------------------------------------------------------------------------
def pyramid(layers: int, mu: float, r: float = 0.1) -> cs.Scene:
    """Balls that touch, in a tetrahedron."""
    scene, d = cs.Scene(max_contacts=48), 2 * r
    scene.add_ground(friction=mu)
    for k in range(layers):
        for i in range(layers - k):
            for j in range(layers - k - i):
                pos = (d * (i + (j + k) / 2), d * (j + k / 3) * math.sqrt(3) / 2, r + k * d * math.sqrt(2 / 3))
                scene.add_body(joint=cs.Free(), pos=pos, shapes=cs.Sphere(r, friction=mu))
    return scene


@pytest.mark.parametrize(("layers", "mu"), [(2, 0.33), (2, 1.0), (3, 0.5), (3, 1.0)])
@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_a_pyramid_of_balls_stays(layers, mu, dt):
    traj = run(pyramid(layers, mu), round(2 / dt), dt=dt)
    assert np.abs(traj.q - traj.q[0]).max() < STILL and traj.status.converged


def test_a_pyramid_falls_apart_with_too_little_friction():
    """A lower ball rolls out unless the line between its two contacts lies within both friction cones: mu >= tan of half the
    angle between the contacts' normals, 0.3178."""
    hold = math.tan(math.asin(1 / math.sqrt(3)) / 2)
    for mu, stays in ((1.02 * hold, True), (0.98 * hold, False)):
        traj = run(pyramid(2, mu), 300)
        assert (np.abs(traj.q - traj.q[0]).max() < STILL) == stays


def test_a_column_of_balls_and_a_crib_of_capsules_stay():
    scene = cs.Scene()
    scene.add_ground()
    for k in range(5):
        scene.add_body(joint=cs.Free(), pos=(0, 0, 0.1 + 0.2 * k), shapes=cs.Sphere(0.1))
    lie = turn((1, 0, 0), math.pi / 2)
    for x in (1.0, 1.6):
        scene.add_body(joint=cs.Free(), pos=(x, 0, 0.1), quat=lie, shapes=cs.Capsule(0.1, 0.4))
    scene.add_body(joint=cs.Free(), pos=(1.3, 0, 0.3), quat=FLAT, shapes=cs.Capsule(0.1, 0.5))
    traj = run(scene, 200)
    assert np.abs(traj.q - traj.q[0]).max() < STILL


# ---- bodies of several shapes, and which touch ---------------------------------------------------------------------
def test_a_table_stands_on_four_legs():
    """Capsule legs on a box: shapes with poses of their own; only the legs touch, and share the weight."""
    legs = [cs.Capsule(0.03, 0.2, pos=(x, y, -0.27), name=f"leg{x}{y}") for x in (-0.4, 0.4) for y in (-0.3, 0.3)]
    scene = on_ground(cs.Box((0.5, 0.4, 0.04), name="top"), *legs, height=0.5)
    state, info = look(scene)
    model = scene.build()
    c = info.contacts
    touching = {model.shape_names[b] for b in c.shape_b[c.active]}
    assert touching == {leg.name for leg in legs}
    np.testing.assert_allclose(c.impulse[c.active][:, 2], float(model.defaults["mass"][0]) * G * 0.01 / 4, rtol=1e-6)
    traj = run(model, 200)
    assert np.abs(traj.q - traj.q[0]).max() < 1e-7
    assert state.v[2] == pytest.approx(0, abs=1e-8)


def test_a_dumbbell_is_its_two_spheres():
    """On a slope of its own making: one sphere larger; it rests where both touch."""
    r1, r2, d = 0.2, 0.1, 0.5
    scene = on_ground(cs.Sphere(r1, pos=(-d / 2, 0, 0)), cs.Sphere(r2, pos=(d / 2, 0, 0)), height=0.25)
    traj = run(scene, 500)
    w, _, y, _ = traj.q[-1, 3:]
    tilt = 2 * math.atan2(y, w)
    assert abs(math.sin(tilt) - (r1 - r2) / d) < 1e-6 and np.abs(traj.v[-1]).max() < 1e-6


def test_groups_and_exclusions_are_in_effect():
    """Of four balls over the ground one is excluded from it, one does not collide, one is in a group the ground does not mask."""
    scene = cs.Scene()
    scene.add_shape(cs.Plane(group=1, mask=1), name="ground")
    for i, (name, options) in enumerate(
        {"stays": {}, "excluded": {}, "ghost": {"collide": False}, "other group": {"group": 2, "mask": 2}}.items()
    ):
        scene.add_body(name, joint=cs.Free(), pos=(0.15 * i, 0, 0.1), shapes=cs.Sphere(0.1, **options))
    scene.exclude("excluded", "ground")
    for a, b in (("stays", "excluded"), ("stays", "ghost")):
        scene.exclude(a, b)
    model = scene.build()
    z = run(model, 50).q[-1, 2::7]
    fallen = 0.1 - G * 0.01**2 * 50 * 51 / 2
    np.testing.assert_allclose(z, [0.1, fallen, fallen, fallen], atol=STILL)


def chain(**options) -> cs.Model:
    """Three links in a row, with balls that overlap their neighbours; folded back, the last meets the first."""
    scene = cs.Scene(gravity=(0, 0, 0), **options)
    ball = cs.Sphere(0.1, pos=(0.1, 0, 0))
    scene.add_body("a", joint=cs.Free(), shapes=ball)
    scene.add_body("b", parent="a", joint=cs.Revolute((0, 1, 0)), pos=(0.15, 0, 0), shapes=ball)
    scene.add_body("c", parent="b", joint=cs.Revolute((0, 1, 0)), pos=(0.15, 0, 0), shapes=ball)
    return scene.build()


def test_neighbours_of_a_chain_do_not_touch_but_others_do():
    straight, folded = [0, 0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0.4, 2.9]
    model = chain()
    assert [tuple(model.shape_names[i] for i in p) for p in model.pairs] == [("a/0", "c/0")]
    state, info = look(model, q=straight)
    assert not info.contacts.active.any() and not state.v.any()
    state, info = look(model, q=folded)
    assert info.contacts.active.sum() == 1 and info.contacts.gap[0] < 0 and np.abs(state.v).max() > 0.1
    momentum = cs.momentum(model, np.array(folded, dtype=float), state.v)
    assert np.abs(momentum).max() < 1e-10, "pushed apart by each other alone"
    alone = chain(self_collision=False)
    assert len(alone.pairs) == 0 and not look(alone, q=folded)[0].v.any()
