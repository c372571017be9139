"""What no choice of frame, order or step may change: momentum, energy, and the motion itself."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import costate as cs
from tests.parity.trees import NQ, NV, QUAT_AT, Tree, assert_close, costate_model, quat_mul, random_state, random_tree, rotation

RATE = 1e-12  # of a conserved quantity, from one evaluation of the acceleration: round-off
SAME = 1e-11  # the same motion in other coordinates or another order: 100 steps of round-off
HALVING = (1.9, 2.1)  # a drift of order dt halves with dt
ENERGY, MOMENTUM = 5e-3, 1e-3  # largest relative drift over 1 s at dt = 1 / 1000: the scheme is of order 1
BRANCHING = (4, 5, 7, 10, 14, 16, 19, 23)  # seeds of trees with branches to reorder
FREE = ("revolute", "prismatic", "ball", "planar", "fixed")


def floating_tree(seed: int, size: int, *, passive: bool = False) -> Tree:
    """One tree on a free root without gravity or armature; springs and dampers inside it, if passive, but none to the world."""
    tree = random_tree(seed, size, joints=FREE, passive=passive)
    bodies = [replace(b, armature=0 * b.armature, parent=max(b.parent, 0)) for b in tree.bodies]
    root = {"joint": "free", "parent": -1, "stiffness": 0.0, "anchor": np.zeros(3)}
    root |= {"damping": np.zeros(6), "armature": np.zeros(6), "rest": np.array([0, 0, 0, 1.0, 0, 0, 0])}
    return Tree((replace(bodies[0], **root), *bodies[1:]), np.zeros(3))


def roll(model: cs.Model, q: np.ndarray, v: np.ndarray, *, dt: float, steps: int, **options: object) -> cs.Trajectory:
    traj = cs.Simulator(model, dt=dt).rollout(cs.State(q, v), steps=steps, **options)
    assert not np.any(traj.diverged)
    return traj


def q_dot(tree: Tree, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rate of q in its own coordinates: q (0, omega) / 2 for quaternions."""
    out = []
    for i, b in enumerate(tree.bodies):
        a, d = tree.q_address[i], tree.v_address[i]
        n = QUAT_AT.get(b.joint, NQ[b.joint])
        out.append(v[d : d + n])
        if b.joint in QUAT_AT:
            out.append(quat_mul(q[a + n : a + n + 4], np.append(0.0, v[d + n : d + n + 3])) / 2)
    return np.concatenate(out)


def rates(tree: Tree, model: cs.Model, q: np.ndarray, v: np.ndarray, what: object) -> list[float]:
    """d/dt of each number of what(q, v) along the motion, by its gradient: exact, no difference quotient."""
    a = cs.forward_dynamics(model, q, v, np.zeros(tree.nv))
    Q, V = torch.tensor(q, requires_grad=True), torch.tensor(v, requires_grad=True)
    found = []
    for x in what(Q, V):
        q_bar, v_bar = torch.autograd.grad(x, (Q, V), retain_graph=True)
        found.append(float(q_bar.numpy() @ q_dot(tree, q, v) + v_bar.numpy() @ a))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_momentum_of_a_floating_tree_has_no_rate(seed):
    tree = floating_tree(seed, 3 + 2 * seed, passive=True)
    model, (q, v) = costate_model(tree), random_state(seed, tree)
    scale = np.abs(cs.momentum(model, q, v)).max()
    assert np.abs(rates(tree, model, q, v, lambda Q, V: cs.momentum(model, Q, V))).max() < RATE * scale


@pytest.mark.parametrize("seed", range(6))
def test_energy_of_an_undamped_tree_has_no_rate(seed):
    tree = random_tree(seed, 3 + 2 * seed)
    tree = replace(tree, bodies=tuple(replace(b, damping=0 * b.damping) for b in tree.bodies))
    model, (q, v) = costate_model(tree), random_state(seed, tree)
    rate = rates(tree, model, q, v, lambda Q, V: [sum(cs.energy(model, Q, V))])
    power = float(np.abs(v * cs.inverse_dynamics(model, q, v, 0 * v)).sum())  # what flows between the parts
    assert abs(rate[0]) < RATE * power


def drift(values: np.ndarray) -> float:
    """Largest distance from the start, relative."""
    return float(np.linalg.norm(values - values[0], axis=-1).max() / np.linalg.norm(values[0]))


@pytest.mark.parametrize("seed", range(3))
def test_momentum_drift_shrinks_with_dt(seed):
    """The scheme steps joint coordinates, so momentum drifts with O(dt); a body alone keeps its linear momentum exactly."""
    tree = floating_tree(seed, 4)
    model, (q, v) = costate_model(tree), random_state(seed, tree, speed=0.5)
    drifts = []
    for steps in (1000, 2000, 4000):
        traj = roll(model, q, v, dt=1 / steps, steps=steps)
        drifts.append(drift(cs.momentum(model, traj.q, traj.v)))
    assert drifts[0] < MOMENTUM
    assert all(HALVING[0] < a / b < HALVING[1] for a, b in pairwise(drifts)), drifts


def test_one_body_keeps_its_linear_momentum_to_round_off():
    tree = floating_tree(0, 1)
    tree = replace(tree, bodies=(replace(tree.bodies[0], com=np.zeros(3)),))
    model, (q, v) = costate_model(tree), random_state(0, tree)
    traj = roll(model, q, v, dt=0.01, steps=1000)
    assert drift(cs.momentum(model, traj.q, traj.v)[:, 3:]) < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_energy_drift_shrinks_with_dt(seed):
    tree = random_tree(seed, 5, joints=("revolute", "ball", "prismatic", "planar"))
    tree = replace(tree, bodies=tuple(replace(b, damping=0 * b.damping) for b in tree.bodies))
    model, (q, v) = costate_model(tree), random_state(seed, tree, speed=0.5)
    drifts = []
    for steps in (1000, 2000, 4000):
        traj = roll(model, q, v, dt=1 / steps, steps=steps)
        kinetic, potential = cs.energy(model, traj.q, traj.v)
        drifts.append(float(np.abs(kinetic + potential - kinetic[0] - potential[0]).max() / kinetic.max()))
    assert drifts[0] < ENERGY
    assert all(HALVING[0] < a / b < HALVING[1] for a, b in pairwise(drifts)), drifts


def moved(tree: Tree, q: np.ndarray, v: np.ndarray, turn: np.ndarray, shift: np.ndarray) -> tuple[Tree, np.ndarray, np.ndarray]:
    """The whole world turned by the quaternion and then shifted: roots, free bodies with their rests, gravity."""
    R, q, v, bodies = rotation(turn), q.copy(), v.copy(), []
    place = lambda pose: np.concatenate([R @ pose[:3] + shift, quat_mul(turn, pose[3:])])  # noqa: E731
    for i, b in enumerate(tree.bodies):
        if b.joint == "free":
            a, d = tree.q_address[i], tree.v_address[i]
            q[a : a + 7], v[d : d + 3] = place(q[a : a + 7]), R @ v[d : d + 3]
            b = replace(b, rest=place(b.rest))
        elif b.parent < 0:
            b = replace(b, pos=R @ b.pos + shift, quat=quat_mul(turn, b.quat))
        bodies.append(b)
    return Tree(tuple(bodies), R @ tree.gravity), q, v


@pytest.mark.parametrize("seed", range(8))
def test_turning_and_shifting_the_world_turns_and_shifts_the_motion(seed, rng):
    tree = random_tree(seed, 6)
    # damping of a free joint is per world axis, which is no invariant law unless the three numbers agree
    bodies = [replace(b, damping=np.full(NV[b.joint], 0.3)) for b in tree.bodies]
    tree = replace(tree, bodies=tuple(replace(b, armature=0 * b.armature) if b.joint == "free" else b for b in bodies))
    q, v = random_state(seed, tree, speed=0.5)
    turn, shift = np.array([0.5, -0.5, 0.7, 0.1]) / np.linalg.norm([0.5, -0.5, 0.7, 0.1]), np.array([3.0, -1.0, 2.0])
    other, q2, v2 = moved(tree, q, v, turn, shift)
    wrench, R = rng.normal(size=(6, 6)), rotation(turn)
    turned = np.concatenate([wrench[:, :3] @ R.T, wrench[:, 3:] @ R.T], -1)
    model, model2 = costate_model(tree), costate_model(other)
    a = roll(model, q, v, dt=0.005, steps=100, external=wrench)
    b = roll(model2, q2, v2, dt=0.005, steps=100, external=turned)
    k1, k2 = cs.kinematics(model, a.q, a.v), cs.kinematics(model2, b.q, b.v)
    assert_close("position", k2.position, k1.position @ R.T + shift, SAME)
    assert_close("spin", k2.velocity[..., :3], k1.velocity[..., :3] @ R.T, SAME)
    assert_close("velocity", k2.velocity[..., 3:], k1.velocity[..., 3:] @ R.T, SAME)
    assert np.abs(k1.position[-1] - k1.position[0]).max() > 0.01, "nothing moved"


def shuffled(tree: Tree, rng: np.random.Generator) -> tuple[Tree, list[int]]:
    """The same bodies in another order in which parents still come first; and which body is where."""
    order: list[int] = []
    while len(order) < len(tree.bodies):
        ready = [i for i, b in enumerate(tree.bodies) if i not in order and (b.parent < 0 or b.parent in order)]
        order.append(int(rng.choice(ready)))
    place = {-1: -1} | {old: new for new, old in enumerate(order)}
    return replace(tree, bodies=tuple(replace(tree.bodies[i], parent=place[tree.bodies[i].parent]) for i in order)), order


def reorder(tree: Tree, order: list[int], address: list[int], x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[..., address[i] : address[i + 1]] for i in order], -1)


@pytest.mark.parametrize("seed", BRANCHING)
def test_body_order_changes_nothing(seed, rng):
    tree = random_tree(seed, 10)
    other, order = shuffled(tree, rng)
    assert order != sorted(order)
    q, v = random_state(seed, tree, speed=0.5)
    a = roll(costate_model(tree), q, v, dt=0.005, steps=100)
    q2, v2 = reorder(tree, order, tree.q_address, q), reorder(tree, order, tree.v_address, v)
    b = roll(costate_model(other), q2, v2, dt=0.005, steps=100)
    assert_close("q", b.q, reorder(tree, order, tree.q_address, a.q), SAME)
    assert_close("v", b.v, reorder(tree, order, tree.v_address, a.v), SAME)


@pytest.mark.parametrize("seed", range(6))
def test_float32_is_as_good_ten_kilometres_away(seed):
    """Each tree lives in a frame centred on its root: where the root is changes not a bit of any joint's motion."""
    tree = random_tree(seed, 8, joints=("revolute", "ball", "prismatic", "planar", "free"))
    tree = replace(tree, bodies=tuple(replace(b, stiffness=0.0) if b.joint == "free" else b for b in tree.bodies))
    q, v = random_state(seed, tree, speed=0.5)
    far, q2, v2 = moved(tree, q, v, np.array([1.0, 0, 0, 0]), np.array([1e4, 0, 0]))
    single = [[torch.tensor(x, dtype=torch.float32) for x in pair] for pair in ((q, v), (q2, v2))]
    near, away = (
        cs.Simulator(costate_model(t), dt=0.005, dtype=torch.float32).rollout(cs.State(*s), steps=100)
        for t, s in zip((tree, far), single)
    )
    assert torch.equal(near.v, away.v)
    place = [a + i for a, b in zip(tree.q_address, tree.bodies) if b.joint == "free" for i in range(3)]
    joints = [i for i in range(near.q.shape[-1]) if i not in place]
    assert torch.equal(near.q[..., joints], away.q[..., joints])
    double = roll(costate_model(tree), q, v, dt=0.005, steps=100)
    assert_close("float32 motion", near.v.numpy(), double.v, 1e-3)  # 100 steps of 6e-8, condition numbers up to 1e3
