"""Piles of mixed shapes in one batch: every world has the same bits as alone, whatever runs beside it, on any threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import costate as cs

pytestmark = pytest.mark.usefixtures("restored")

DTYPES = (torch.float64, torch.float32)
BODIES, WORLDS, STEPS = 12, 11, 30
SURFACE = {"friction": 0.6, "restitution": 0.2}


@cache
def model(kind: str) -> cs.Model:
    """Twelve trees, of which the last has two bodies, over a plane, a box or hills; more trees than lanes, more than eight."""
    scene, rng = cs.Scene(max_contacts=160), np.random.default_rng(4)
    if kind == "plane":
        scene.add_ground(**SURFACE)
    elif kind == "box":
        scene.add_shape(cs.Box((2, 2, 0.5), pos=(0, 0, -0.5), **SURFACE))
    else:
        scene.add_shape(cs.Heightfield(rng.uniform(-0.1, 0.0, (17, 17)), (2.0, 2.0), **SURFACE))
    pebble = 0.12 * rng.normal(size=(12, 3)) / 2
    shapes = [
        cs.Box((0.12, 0.1, 0.06), **SURFACE), cs.Cylinder(0.08, 0.1, **SURFACE), cs.Hull(pebble, **SURFACE),
        cs.Capsule(0.05, 0.1, **SURFACE), cs.Sphere(0.08, **SURFACE), cs.Box((0.08, 0.08, 0.08), **SURFACE),
    ]  # fmt: skip
    for k in range(BODIES):
        pos = (0.22 * (k % 2), 0.22 * (k // 2 % 2), 0.12 + 0.22 * (k // 4))
        scene.add_body(f"thing{k}", joint=cs.Free(), pos=pos, shapes=shapes[k % len(shapes)])
    arm = cs.Box((0.03, 0.03, 0.1), pos=(0, 0, 0.1))
    scene.add_body("flail", parent="thing11", joint=cs.Revolute((0, 1, 0)), pos=(0, 0, 0.15), shapes=arm)
    return scene.build()


def start(kind: str, dtype: torch.dtype) -> cs.State:
    """Every world: another pile of the same things, moving, turned as chance has it; some overlap, some are far apart. The last
    one, with the flail on it, stays on top and upright: a flail that begins inside of others is jammed."""
    m, rng = model(kind), np.random.default_rng(9)
    q, v = np.tile(m.q0, (WORLDS, 1)), 0.5 * rng.normal(size=(WORLDS, m.nv))
    for w in range(WORLDS):
        places, spread = rng.permutation(BODIES - 1), (0.9, 1.2, 3.0)[w % 3]
        for k in range(BODIES - 1):
            at = 7 * k
            q[w, at : at + 3] = m.q0[7 * places[k] : 7 * places[k] + 3] * (spread, spread, 1) + 0.03 * rng.normal(size=3)
            quat = rng.normal(size=4)
            q[w, at + 3 : at + 7] = quat / np.linalg.norm(quat)
        q[w, 7 * BODIES - 7 : 7 * BODIES - 5] *= spread
    return cs.State(torch.tensor(q, dtype=dtype), torch.tensor(v, dtype=dtype))


def roll(kind: str, worlds: list[int] | None = None, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Trajectory and status; worlds None: all. One world goes in without a batch axis."""
    s = start(kind, dtype)
    if worlds is not None:
        pick = worlds[0] if len(worlds) == 1 else worlds
        s = cs.State(s.q[pick], s.v[pick])
    traj = cs.Simulator(model(kind), dt=0.01, dtype=dtype).rollout(s, steps=STEPS)
    found = {"q": traj.q, "v": traj.v, "status": traj.status.numbers[None]}
    return found if traj.q.ndim == 3 else {"q": traj.q[:, None], "v": traj.v[:, None], "status": traj.status.numbers[None, None]}


def assert_same_bits(some: dict[str, Tensor], everything: dict[str, Tensor], worlds: list[int]) -> None:
    for name, x in some.items():
        y = everything[name][:, worlds]
        assert torch.equal(x, y), f"{name}: differs by {(x - y).abs().max():.1e}"


KINDS = ["plane", "box", "hills"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_piles_differ(kind):
    """What is compared is worth it: worlds with few and with many contacts, boxes on hulls on cylinders; none sinks or bursts."""
    found = roll(kind)
    contacts = found["status"][0, :, 3]
    assert len(contacts.unique()) >= 4 and contacts.max() >= 30 and (found["status"][0, :, 5] == 0).all()
    assert torch.isfinite(found["q"]).all() and found["v"].abs().max() < 100
    assert found["q"][-1].reshape(WORLDS, -1)[:, 2 : 7 * BODIES : 7].min() > -0.1


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("kind", KINDS)
def test_worlds_alone(kind, dtype):
    """One by one, and in parts of a batch."""
    everything = roll(kind, dtype=dtype)
    for worlds in (*([w] for w in range(WORLDS)), [7, 2, 9], list(range(WORLDS))[::-1]):
        assert_same_bits(roll(kind, worlds, dtype), everything, worlds)


def test_instruction_sets(instructions):
    everything = roll("box")
    for worlds in ([0], [4], [10], [3, 1]):
        assert_same_bits(roll("box", worlds), everything, worlds)


@pytest.mark.parametrize("dtype", DTYPES, ids=["double", "single"])
@pytest.mark.parametrize("kind", KINDS)
def test_threads(kind, dtype):
    """Also of one world alone, where threads have only its pairs to share."""
    cs.set_num_threads(1)
    everything, alone = roll(kind, dtype=dtype), roll(kind, [5], dtype)
    for threads in (2, 3, 8):
        cs.set_num_threads(threads)
        assert_same_bits(roll(kind, dtype=dtype), everything, list(range(WORLDS)))
        assert_same_bits(roll(kind, [5], dtype), alone, [0])


def test_a_rollout_is_its_steps():
    s, sim = start("hills", torch.float64), cs.Simulator(model("hills"), dt=0.01)
    traj = sim.rollout(s, steps=10)
    for t in range(10):
        s = sim.step(s)
        assert torch.equal(s.q, traj.q[t + 1]) and torch.equal(s.v, traj.v[t + 1])
