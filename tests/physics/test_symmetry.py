"""What must not matter: the order in which bodies and shapes are created, where in the world, which way round; and float32."""

import math

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.shapes import Shape
from tests.physics.contact_scenes import UPRIGHT, G, look, on_ground, quat_mul, rotate, run, turn

SAME = 1e-8  # m or m/s: half a second of contact, each step solved to 1e-10 m/s, and hits that spread what differs
STEPS = 50
# Two points of one rigid body that stick press against each other until one slips: sweeps take long to find out which.
FIRM = cs.PGS(iterations=20000, polish=20)

# name: shapes, position, orientation, velocity (linear in world axes, angular in body axes)
Thing = tuple[list[Shape], np.ndarray, np.ndarray, np.ndarray]
SURFACE = {"friction": 0.6, "restitution": 0.3}


def things() -> dict[str, Thing]:
    """Balls and rods that fall onto and against each other, and a crate beside them."""
    rng = np.random.default_rng(5)
    club = [cs.Capsule(0.05, 0.2, **SURFACE), cs.Sphere(0.1, pos=(0, 0, 0.25), **SURFACE)]
    kinds: dict[str, list[Shape]] = {
        "ball": [cs.Sphere(0.1, **SURFACE)],
        "big ball": [cs.Sphere(0.2, density=300.0, **SURFACE)],
        "rod": [cs.Capsule(0.08, 0.25, **SURFACE)],
        "club": list(club),
    }
    places = {"ball": (0, 0, 0.12), "big ball": (0.25, 0.05, 0.25), "rod": (0.1, 0.1, 0.55), "club": (-0.25, 0.05, 0.3)}
    found = {}
    for name, shapes in kinds.items():
        v = np.concatenate([rng.normal(size=3) * 0.5 + [0, 0, -1], rng.normal(size=3) * 2])
        found[name] = (shapes, np.array(places[name]), rng.normal(size=4), v)
    found["crate"] = ([cs.Box((0.2, 0.15, 0.1), **SURFACE)], np.array([2.0, 0, 0.3]), rng.normal(size=4), np.ones(6))
    return found


def world(
    order: list[str], *, ground_first: bool = True, shapes_reversed: bool = False, things: dict[str, Thing]
) -> tuple[cs.Model, np.ndarray]:
    """The model with bodies in this order, and its velocities."""
    scene = cs.Scene()
    if ground_first:
        scene.add_ground(**SURFACE)
    for name in order:
        shapes, pos, quat, _ = things[name]
        scene.add_body(name, joint=cs.Free(), pos=pos, quat=quat, shapes=shapes[::-1] if shapes_reversed else shapes)
    for other in order:
        if other != "crate":
            scene.exclude("crate", other)  # boxes have no contact with round shapes
    if not ground_first:
        scene.add_ground(**SURFACE)
    return scene.build(), np.concatenate([things[name][3] for name in order])


def roll(order: list[str], **options) -> dict[str, np.ndarray]:
    """Of each thing: its q and v over time, [time, 13]; the quaternion's first number is not negative."""
    steps, dtype = options.pop("steps", STEPS), options.pop("dtype", torch.float64)
    model, v = world(order, **options)
    traj = run(model, steps, v=v, solver=FIRM, dtype=dtype)
    if dtype == torch.float64:
        assert traj.status.converged
    assert traj.status.contacts >= 5
    q, v = traj.q.reshape(steps + 1, -1, 7), traj.v.reshape(steps + 1, -1, 6)
    q = np.concatenate([q[..., :3], q[..., 3:] * np.sign(q[..., 3:4])], axis=-1)
    return {name: np.concatenate([q[:, i], v[:, i]], axis=1) for i, name in enumerate(order)}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], atol: float = SAME) -> None:
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, atol=atol, err_msg=name)


NAMES = ["ball", "big ball", "rod", "club", "crate"]


@pytest.mark.parametrize(
    "options",
    [{"ground_first": False}, {"shapes_reversed": True}, {"order": NAMES[::-1]}, {"order": [NAMES[i] for i in (2, 0, 4, 3, 1)]}],
    ids=["ground last", "shapes reversed", "bodies reversed", "bodies shuffled"],
)
def test_the_order_of_creation(options):
    expected = roll(NAMES, things=things())
    assert_same(roll(**{"order": NAMES, "things": things(), **options}), expected)


def turned(things: dict[str, Thing], angle: float) -> dict[str, Thing]:
    """All of it turned about the vertical."""
    quat = turn((0, 0, 1), angle)
    both = lambda v: np.concatenate([rotate(quat, v[:3]), v[3:]])  # noqa: E731
    return {n: (s, rotate(quat, p), quat_mul(quat, r / np.linalg.norm(r)), both(v)) for n, (s, p, r, v) in things.items()}


def test_turning_the_world():
    """Nothing knows where the axes of friction point."""
    expected = roll(NAMES, things=things())
    found = roll(NAMES, things=turned(things(), 0.7))
    back = turn((0, 0, 1), -0.7)
    for name, x in expected.items():
        for t in range(0, STEPS + 1, 10):
            y = found[name][t]
            quat = quat_mul(back, y[3:7])
            np.testing.assert_allclose(rotate(back, y[:3]), x[t, :3], atol=SAME)
            np.testing.assert_allclose(quat * np.sign(quat[0]), x[t, 3:7], atol=SAME)
            np.testing.assert_allclose(np.concatenate([rotate(back, y[7:10]), y[10:]]), x[t, 7:], atol=10 * SAME)


def test_a_mirrored_world():
    """Left and right exchanged: positions and velocities by y, turns by x and z. The shapes are their own mirror images."""
    flip = np.array([1, -1, 1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1], dtype=float)
    scene = {n: (s, p * flip[:3], r * flip[3:7], v * flip[7:]) for n, (s, p, r, v) in things().items()}
    expected = roll(NAMES, things=things())
    assert_same({name: x * flip for name, x in roll(NAMES, things=scene).items()}, expected)


def shifted(things: dict[str, Thing], by: tuple[float, float, float]) -> dict[str, Thing]:
    return {n: (s, p + np.array(by), r, v) for n, (s, p, r, v) in things.items()}


def test_far_from_the_origin():
    """Ten kilometres off: what is left is the resolution of the coordinates there, 2e-12 m, which contact turns into velocity."""
    by = (1e4, -1e4, 0.0)
    found = {name: x - np.pad(by, (0, 10)) for name, x in roll(NAMES, things=shifted(things(), by)).items()}
    assert_same(found, roll(NAMES, things=things()), atol=1e-6)


# ---- parallel capsules ---------------------------------------------------------------------------------------------
def log_pile(shift: float, *, top_first: bool) -> np.ndarray:
    """A log on two others, along them, `shift` off their middle: how far it moves in two seconds."""
    scene, lie = cs.Scene(), turn((1, 0, 0), math.pi / 2)
    scene.add_ground()
    places = {"left": (-0.15, 0, 0.1), "right": (0.15, 0, 0.1), "top": (0, shift, 0.1 + math.sqrt(0.2**2 - 0.15**2))}
    for name in sorted(places, reverse=top_first):
        scene.add_body(name, joint=cs.Free(), pos=places[name], quat=lie, shapes=cs.Capsule(0.1, 0.4))
    model = scene.build()
    top = model.body_names.index("top")
    q = run(model, 200).q[:, 7 * top : 7 * top + 7]
    return np.abs(q - q[0]).max()


def test_a_pile_of_logs_stays():
    assert log_pile(0.0, top_first=False) < SAME and log_pile(0.0, top_first=True) < SAME
    assert log_pile(0.1, top_first=False) < SAME


def test_a_pile_of_logs_stays_in_any_order():
    assert log_pile(0.1, top_first=True) < SAME


# ---- float32 -------------------------------------------------------------------------------------------------------
def test_float32_follows_float64():
    """The same tumble to 1e-3 m and 1e-2 m/s, while it does not diverge by itself."""
    double = roll(NAMES, things=things(), steps=30)
    single = roll(NAMES, things=things(), steps=30, dtype=torch.float32)
    for name, x in double.items():
        error = np.abs(single[name] - x)
        assert error[:, :7].max() < 1e-3 and error[:, 7:].max() < 1e-2 * max(1.0, np.abs(x[:, 7:]).max()), name


REST32 = {
    "sphere": (cs.Sphere(0.2), UPRIGHT, 0.2),
    "capsule": (cs.Capsule(0.1, 0.3), turn((0, 1, 0), math.pi / 2), 0.1),
    "box": (cs.Box((0.2, 0.15, 0.1)), UPRIGHT, 0.1),
}


@pytest.mark.parametrize(("shape", "quat", "height"), list(REST32.values()), ids=list(REST32))
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_float32_rests_also_far_away(shape, quat, height, far):
    """At the right height to 1e-5 m, also where the horizontal coordinates have steps of a millimetre: heights have their own."""
    scene = on_ground(shape, height=height + 0.02, quat=quat)
    q = [far, -far, height + 0.02, *quat]
    traj = run(scene, 200, q=q, dtype=torch.float32)
    assert traj.q.dtype == np.float32
    assert np.abs(traj.q[-50:, 2] - height).max() < 1e-5
    assert np.abs(traj.v[-50:]).max() < 1e-4
    assert np.abs(traj.q[-1, :2] - traj.q[0, :2]).max() < 2e-3


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_float32_slides_also_far_away(far):
    """Forces do not know where they are: mu g to 1e-4."""
    mu = 0.5
    scene = on_ground(cs.Box((0.2, 0.15, 0.05), friction=mu), height=0.05, ground={"friction": mu})
    traj = run(scene, 20, q=[far, far, 0.05, 1, 0, 0, 0], v=[2.4, 1.8, 0, 0, 0, 0], dtype=torch.float32)
    slowed = (traj.v[0, :2] - traj.v[-1, :2]) / 0.2
    np.testing.assert_allclose(slowed, mu * G * np.array([0.8, 0.6]), rtol=1e-3)


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_float32_hits_also_far_away(far):
    """Two balls meet at ten kilometres: momentum is kept to single precision, and the normal is right to the millimetre of
    their coordinates."""
    scene = cs.Scene(gravity=(0, 0, 0))
    for _ in range(2):
        scene.add_body(joint=cs.Free(), shapes=cs.Sphere(0.5, restitution=1.0, friction=0.0))
    q = [far, far, 0, 1, 0, 0, 0, far + 1.5, far, 0, 1, 0, 0, 0]
    v = np.zeros(12)
    v[0], v[6] = 3.0, -1.0
    traj = run(scene, 50, q=q, v=v, dtype=torch.float32)
    np.testing.assert_allclose(traj.v[-1, [0, 6]], [-1, 3], atol=1e-3)
    assert np.abs(traj.v[-1, [1, 2, 7, 8]]).max() < 1e-2


def test_a_tilted_ground_far_from_its_origin():
    """In float64 a slope holds its height to 1e-8 m a kilometre down; the shape's own pose says where it is."""
    quat = turn((0, 1, 0), 0.3)
    normal, down = rotate(quat, (0, 0, 1)), rotate(quat, (1, 0, 0))
    scene = cs.Scene()
    scene.add_shape(cs.Plane(quat=quat))
    scene.add_body("ball", joint=cs.Free(), pos=1000 * down + 0.1 * normal, shapes=cs.Sphere(0.1))
    state, info = look(scene)
    assert abs(info.contacts.gap[0]) < 1e-12
    np.testing.assert_allclose(state.v[:3], 5 / 7 * G * math.sin(0.3) * 0.01 * down, atol=1e-8)
