"""Boxes and others on top of each other: towers, pyramids, bridges; ten seconds at the default solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, run, turn

DT = 0.01
HALF = (0.2, 0.2, 0.1)
# Rows give way by 1e-9 of their own stiffness in float64, 1e-5 in float32: under n boxes by n times as much, summed over a
# stack of ten some 3e-10 m and 2e-6 m. That is the first step; afterwards nothing may move. The issue asks for 1 mm in 10 s.
SINKS = {torch.float64: 1e-9, torch.float32: 1e-5}
CREEPS = {torch.float64: 1e-10, torch.float32: 2e-6}  # m in the second half of the time
DTYPES = list(SINKS)


def tower(
    boxes: int = 10, *, off: float = 0.0, yaw: float = 0.0, gap: float = 0.0, mu: float = 1.0, half: Any = HALF
) -> cs.Scene:
    """Equal boxes; each misplaced by up to `off` and turned by up to `yaw`, `gap` (m) between them."""
    scene, rng = cs.Scene(), np.random.default_rng(1)
    scene.add_ground(friction=mu)
    for k in range(boxes):
        pos = (*off * rng.uniform(-1, 1, 2), (2 * k + 1) * half[2] + (k + 1) * gap)
        quat = turn((0, 0, 1), yaw * rng.uniform(-1, 1))
        scene.add_body(joint=cs.Free(), pos=pos, quat=quat, shapes=cs.Box(half, friction=mu))
    return scene


def poses(traj: cs.Trajectory) -> np.ndarray:
    """[time, body, 7]"""
    return traj.q.astype(float).reshape(len(traj.q), -1, 7)


def assert_stands(
    scene: cs.Scene, steps: int = 1000, dtype: torch.dtype = torch.float64, *, settle: int = 0, scale: float = 1.0
) -> cs.Trajectory:
    """It sinks once, by rounding, and does not creep; every step is solved. settle: steps after which it must stand;
    scale: of the loads, against ten boxes."""
    traj = run(scene, steps, dtype=dtype)
    q = poses(traj)
    assert np.abs(q - q[settle])[settle:].max() < scale * SINKS[dtype]
    assert np.abs(q - q[steps // 2])[steps // 2 :].max() < scale * CREEPS[dtype]
    assert traj.status.converged and traj.status.penetration < scale * SINKS[dtype]
    return traj


TOWERS = {
    "in line": {},
    "rough": {"mu": 0.4},
    "cubes": {"half": (0.1, 0.1, 0.1)},
    "misplaced": {"off": 0.02},
    "turned": {"off": 0.02, "yaw": 0.5},
}


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("name", list(TOWERS))
def test_ten_boxes_stand_for_ten_seconds(name, dtype):
    assert_stands(tower(**TOWERS[name]), dtype=dtype)


@pytest.mark.parametrize("gap", [0.001, 0.01])
def test_ten_boxes_put_down_one_after_the_other(gap):
    """All fall at once, and come to rest at (2 k + 1) half; not one is pushed aside."""
    scene = tower(off=0.02, yaw=0.1, gap=gap)
    traj = assert_stands(scene, settle=300)
    q = poses(traj)
    np.testing.assert_allclose(q[-1, :, 2], HALF[2] * (2 * np.arange(10) + 1), atol=1e-9)
    assert np.abs(q[-1, :, :2] - q[0, :, :2]).max() < 1e-6


def test_each_contact_carries_what_is_above_it():
    """The four points of a joint together, straight up."""
    model = tower().build()
    _, info = cs.Simulator(model, dt=DT).step(cs.State(model.q0, np.zeros(model.nv)), info=True)
    c, weight = info.contacts, float(model.defaults["mass"][0]) * G * DT
    assert c.active.sum() == 40
    for k in range(10):  # shape 0 is the ground
        below, above = (c.shape_a == k) & (c.shape_b == k + 1), (c.shape_a == k + 1) & (c.shape_b == k)
        push = c.impulse[below].sum(0) - c.impulse[above].sum(0)
        np.testing.assert_allclose(push, [0, 0, (10 - k) * weight], atol=1e-8 * weight)
        assert (below | above).sum() == 4


def test_the_time_step_does_not_matter():
    for dt in (0.02, 0.002):
        q = poses(run(tower(off=0.02), 200, dt=dt))
        assert np.abs(q - q[0]).max() < SINKS[torch.float64] * (dt / DT) ** 2 + 1e-11


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
def test_a_pyramid(dtype):
    """Five boxes wide, each row half a box further: every box stands on two."""
    scene = cs.Scene(max_contacts=128)
    scene.add_ground()
    for k in range(5):
        for i in range(5 - k):
            scene.add_body(joint=cs.Free(), pos=(0.42 * (i + k / 2), 0, 0.1 + 0.2 * k), shapes=cs.Box((0.2, 0.15, 0.1)))
    assert assert_stands(scene, 300, dtype).status.contacts == 100


@pytest.mark.parametrize("up", [True, False], ids=["largest below", "smallest below"])
def test_boxes_of_different_sizes(up):
    """From 60 to 10 cm, turned against each other: octagons touch, of which four points are kept. Loads are up to 30 times those
    of the other towers."""
    scene, z = cs.Scene(), 0.0
    scene.add_ground()
    sizes = [0.3, 0.25, 0.2, 0.15, 0.1, 0.05]
    for k, half in enumerate(sizes if up else sizes[::-1]):
        scene.add_body(joint=cs.Free(), pos=(0, 0, z + half), quat=turn((0, 0, 1), 0.3 * k), shapes=cs.Box((half,) * 3))
        z += 2 * half
    assert_stands(scene, 500, scale=1.0 if up else 30.0)


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("order", ["heavy on light", "light on heavy"])
def test_masses_of_ratio_100(order, dtype):
    scene = cs.Scene()
    scene.add_ground()
    for k, density in enumerate((100.0, 1e4) if order == "heavy on light" else (1e4, 100.0)):
        scene.add_body(joint=cs.Free(), pos=(0, 0, 0.1 + 0.2 * k), shapes=cs.Box(HALF, density=density))
    assert_stands(scene, dtype=dtype)


def test_a_heavy_box_on_a_tower_of_light_ones():
    """A tonne on five boxes of 3 kg."""
    scene = tower(5)
    scene.add_body(joint=cs.Free(), pos=(0.01, 0.02, 1.1), shapes=cs.Box(HALF, mass=1000.0))
    assert_stands(scene, scale=6.0)


@pytest.mark.parametrize("load", [0.0, 0.4])
def test_a_bridge(load):
    """A plank on two blocks, a crate of the same weight on it, `load` off its middle: the blocks carry by the lever."""
    scene = cs.Scene()
    scene.add_ground()
    for x in (-0.5, 0.5):
        scene.add_body(joint=cs.Free(), pos=(x, 0, 0.2), shapes=cs.Box((0.1, 0.1, 0.2)))
    scene.add_body("plank", joint=cs.Free(), pos=(0, 0, 0.43), shapes=cs.Box((0.7, 0.15, 0.03), mass=10.0))
    scene.add_body("crate", joint=cs.Free(), pos=(load, 0, 0.56), shapes=cs.Box((0.1, 0.1, 0.1), mass=10.0))
    traj = assert_stands(scene, 500)
    model = scene.build()
    _, info = cs.Simulator(model, dt=DT).step(cs.State(traj.q[-1], traj.v[-1]), info=True)
    c = info.contacts
    on_plank = c.impulse * ((c.shape_b == 3) * 1.0 - (c.shape_a == 3))[:, None]
    blocks = np.isin(c.shape_a, (1, 2)) | np.isin(c.shape_b, (1, 2))
    np.testing.assert_allclose(on_plank[blocks].sum(0), [0, 0, 20 * G * DT], atol=1e-8)
    # moments about the middle: what the blocks give at their contact points balances the crate
    np.testing.assert_allclose((c.point[:, 0] * on_plank[:, 2])[blocks].sum(), 10 * G * DT * load, atol=1e-8)


def test_a_leaning_tower_falls_when_its_weight_is_beyond_the_edge():
    """Each box 7 cm further than the one below it: those above the first have their centre of mass n 3.5 cm beyond its own, which
    its half length of 20 cm carries for n = 5 but not for 6."""
    for boxes, stands in ((5, True), (6, False)):
        scene = cs.Scene()
        scene.add_ground()
        for k in range(boxes):
            scene.add_body(joint=cs.Free(), pos=(0.07 * k, 0, 0.1 + 0.2 * k), shapes=cs.Box(HALF))
        q = poses(run(scene, 200))
        assert (np.abs(q - q[0]).max() < 1e-8) == stands


def test_a_tower_of_all_shapes():
    """Box, cylinder, hull, a plank across, a lying capsule between blocks, a ball in the hollow of four cubes."""
    scene = cs.Scene(max_contacts=64)
    scene.add_ground()
    scene.add_body(joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Box((0.3, 0.3, 0.1)))
    scene.add_body(joint=cs.Free(), pos=(0.02, 0.01, 0.3), shapes=cs.Cylinder(0.2, 0.1))
    frustum = [(s * x, s * y, z) for s, z in ((0.2, 0.0), (0.15, 0.2)) for x in (-1, 1) for y in (-1, 1)]
    scene.add_body(joint=cs.Free(), pos=(0, 0, 0.4), quat=turn((0, 0, 1), 0.4), shapes=cs.Hull(frustum))
    scene.add_body(joint=cs.Free(), pos=(0, 0.02, 0.65), shapes=cs.Cylinder(0.12, 0.05))
    for x in (-0.035, 0.035):
        for y in (-0.035, 0.035):
            scene.add_body(joint=cs.Free(), pos=(x, y + 0.02, 0.73), shapes=cs.Box((0.03, 0.03, 0.03)))
    assert_stands(scene, 500)
