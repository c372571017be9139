"""Many bodies in the plane: stacks and pyramids that stand, a row of dominoes that falls, heaps that come to rest."""

import math

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, look, run
from tests.physics.planar_scenes import HEXAGON, TILE, dominoes, pyramid, stack

H = 0.01
TEN_SECONDS = 1000
STANDS = 1e-6  # m, rad


def assert_stands(scene: cs.Scene, steps: int = TEN_SECONDS, **options) -> cs.Model:
    """Nothing moves; what is below carries what is above, in the end as at first."""
    model = scene.build()
    traj = run(model, steps, **options)
    assert np.abs(traj.q - traj.q[0]).max() < STANDS and np.abs(traj.v[-1]).max() < STANDS and traj.status.converged
    weight = float(model.defaults["mass"].sum()) * G * H
    for at in (0, -1):
        c = look(model, q=traj.q[at], v=traj.v[at], **options)[1].contacts
        np.testing.assert_allclose(c.impulse[c.shape_a == 0].sum(0), [0, weight, 0], atol=1e-6 * weight)
    return model


@pytest.mark.parametrize("half", [(0.1, 0.1), (0.2, 0.05), (0.05, 0.1)])
def test_a_stack_of_ten_stands(half):
    """10 s; contacts above number k carry 10 - k of them."""
    model = assert_stands(stack(10, half=half))
    c = look(model)[1].contacts
    assert c.active.sum() == 20
    load = [c.impulse[c.shape_b == k, 1].sum() for k in range(1, 11)]
    np.testing.assert_allclose(load, np.arange(10, 0, -1) * float(model.defaults["mass"][0]) * G * H, rtol=1e-6)


@pytest.mark.parametrize("friction", [0.1, 0.6])
@pytest.mark.parametrize("apart", [0.22, 0.3])
def test_a_pyramid_of_ten_stands(apart, friction):
    """4 + 3 + 2 + 1 for 10 s; the upper ones overlap those below by 9 cm, or by 5."""
    assert_stands(pyramid(4, apart=apart, friction=friction))


def test_a_stack_of_all_shapes_stands():
    """A circle in the hollow between two rectangles, polygons beside it, and a plank across these; 10 s."""
    scene, top = cs.Scene(planar=True), 0.4 + 0.12 * math.sqrt(3)
    scene.add_ground()
    scene.add_body(pos=(0, 0.1), shapes=cs.Rectangle((0.5, 0.1), density=100.0))
    for x in (-0.2, 0.2):
        scene.add_body(pos=(x, 0.3), shapes=cs.Rectangle((0.11, 0.1), density=100.0))
        scene.add_body(pos=(1.35 * x, (0.4 + top) / 2), shapes=cs.Polygon(HEXAGON, density=100.0))
    scene.add_body(pos=(0, 0.4 + math.sqrt(0.12**2 - 0.09**2)), shapes=cs.Circle(0.12, density=100.0))
    scene.add_body(pos=(0, top + 0.03), shapes=cs.Rectangle((0.4, 0.03), density=100.0))
    assert_stands(scene)


def test_a_stack_stands_in_single_precision():
    """1 s, to what float32 can tell: a few units in the last place of positions, 1e-7 each, and tolerances of 1e-5 m/s."""
    traj = run(stack(10), 100, dtype=torch.float32)
    assert np.abs(traj.q - traj.q[0]).max() < 1e-4


@pytest.mark.parametrize(("shift", "stands"), [(0.09, True), (0.11, False)])
def test_a_leaning_tower(shift, stands):
    """Three of a width of 0.2: the common centre of the upper two is `shift` beside the middle of the lowest."""
    scene = cs.Scene(planar=True)
    scene.add_ground()
    for k in range(3):
        scene.add_body(pos=(shift * k * 2 / 3, 0.05 + 0.1 * k), shapes=cs.Rectangle((0.1, 0.05), density=100.0))
    moved = np.abs(run(scene, 200).q - np.array(scene.build().q0)).max()
    assert moved < STANDS if stands else moved > 0.1


# ---- dominoes ------------------------------------------------------------------------------------------------------
TILES = 8


def falls(dt: float, *, spacing: float = 0.12, **options) -> tuple[np.ndarray, np.ndarray]:
    """When each tile passes 45 degrees, s, to a part of a step (all must), and the last state [tiles, 3]."""
    model = dominoes(TILES, spacing=spacing).build()
    v = np.zeros(model.nv)
    v[0], v[2] = 1.5 * TILE[1], -1.5
    q = run(model, round(2.0 / dt), dt=dt, v=v, **options).q.astype(float).reshape(-1, TILES, 3)
    angle = -q[..., 2].T
    assert (angle.max(1) > math.pi / 4).all()
    after = np.argmax(angle > math.pi / 4, axis=1)
    before, beyond = (angle[np.arange(TILES), after - k] for k in (1, 0))
    return dt * (after - 1 + (math.pi / 4 - before) / (beyond - before)), q[-1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["double", "single"])
def test_a_row_of_dominoes_falls_in_order(dtype):
    """One after the other and ever faster; in the end each leans on the next, and the last lies flat."""
    at, q = falls(0.005, dtype=dtype)
    assert (np.diff(at) > 0.02).all() and (np.diff(at, n=2) < 0).all()
    assert abs(q[-1, 2] + math.pi / 2) < 1e-4 and abs(q[-1, 1] - TILE[0]) < 1e-5
    assert (q[:-1, 2] < -1.1).all() and (q[:-1, 2] > -1.4).all() and (np.diff(q[:, 0]) > 0).all()


def test_the_times_of_dominoes_converge():
    """As the step is halved, first order: they come down within 3 % of each other."""
    a, b, c = (falls(dt)[0] for dt in (0.01, 0.005, 0.0025))
    assert np.abs(a - b).max() < 0.03 and np.abs(b - c).max() < 0.7 * np.abs(a - b).max()


def test_dominoes_too_far_apart_stay():
    model = dominoes(3, spacing=0.45).build()  # more than a tile's height, and how far it slides
    v = np.zeros(model.nv)
    v[0], v[2] = 1.5 * TILE[1], -1.5
    q = run(model, 200, v=v).q.reshape(-1, 3, 3)
    assert q[-1, 0, 2] < -1.5 and np.abs(q[:, 1:] - q[0, 1:]).max() < STANDS


# ---- heaps ---------------------------------------------------------------------------------------------------------
def test_a_heap_comes_to_rest(rng):
    """20 bodies of all shapes dropped into a box with walls: after 5 s nothing moves by more than 1 mm/s, none is outside."""
    scene = cs.Scene(planar=True)
    scene.add_ground()
    for side in (-1, 1):
        scene.add_shape(cs.HalfPlane(pos=(0.6 * side, 0), angle=side * math.pi / 2))
    shapes = (cs.Circle(0.07, density=100.0), cs.Rectangle((0.1, 0.05), density=100.0), cs.Polygon(HEXAGON, density=100.0))
    for k in range(20):
        at = (0.3 * (k % 4) - 0.45 + rng.uniform(-0.02, 0.02), 0.2 + 0.3 * (k // 4))
        scene.add_body(pos=at, angle=rng.uniform(-3, 3), shapes=shapes[k % 3])
    traj = run(scene, 500)
    q = traj.q[-1].reshape(-1, 3)
    assert np.abs(traj.v[-1]).max() < 1e-2 and q[:, 1].min() > 0.04 and np.abs(q[:, 0]).max() < 0.56
    assert traj.status.penetration < 0.01
