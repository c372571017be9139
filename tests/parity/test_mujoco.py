"""costate against MuJoCo on random trees: every joint type, branching, several roots, up to 40 bodies."""

from functools import cache

import numpy as np
import pytest
import torch

import costate as cs
from tests.parity.peers import mujoco_model
from tests.parity.trees import KINDS, QUAT_AT, Tree, assert_close, costate_model, random_state, random_tree

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra: dev)")

SIZES = (1, 2, 3, 5, 8, 12, 20, 40)
SEEDS = range(40)
FORMS = (0, 1)  # of the factorisation: sparse, articulated
EXACT = 1e-11  # 1e-9 is promised; the same formulas in double at condition numbers up to 1e4 leave 1e-13
TRAJECTORY = 1e-10  # 1e-8 is promised; 500 steps of the same scheme, damped, so that round-off does not grow
FLOAT32 = 1e-4  # round-off 6e-8 times the condition number of the mass matrix in part
DT, STEPS = 0.002, 500


@cache
def case(seed: int) -> tuple[Tree, cs.Model, object, np.ndarray, np.ndarray]:
    tree = random_tree(seed, SIZES[seed % len(SIZES)])
    return tree, costate_model(tree), mujoco_model(tree), *random_state(seed, tree)


def unnormalised(tree: Tree, q: np.ndarray) -> np.ndarray:
    """The same configuration with quaternions of other lengths and signs: costate must not care."""
    q = q.copy()
    for i, b in enumerate(tree.bodies):
        if b.joint in QUAT_AT:
            q[tree.q_address[i] + QUAT_AT[b.joint] :][:4] *= (-0.5, 1.5, 2.5)[i % 3]
    return q


def forward(m: object, q: np.ndarray, v: np.ndarray, tau: np.ndarray | None = None, wrench: np.ndarray | None = None) -> object:
    """MjData after mj_forward; wrench [nb, 6] is costate's: torque, force."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, v
    if tau is not None:
        d.qfrc_applied[:] = tau
    if wrench is not None:
        d.xfrc_applied[1:, :3], d.xfrc_applied[1:, 3:] = wrench[:, 3:], wrench[:, :3]
    mujoco.mj_forward(m, d)
    return d


def inverse(m: object, q: np.ndarray, v: np.ndarray, a: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """mj_inverse knows no applied wrenches, so their joint forces are taken off here, with Jacobians at the centres of mass."""
    d = forward(m, q, v)
    d.qacc[:] = a
    mujoco.mj_inverse(m, d)
    tau = d.qfrc_inverse.copy()
    for b in range(1, m.nbody):
        linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
        mujoco.mj_jacBodyCom(m, d, linear, angular, b)
        tau -= angular.T @ wrench[b - 1, :3] + linear.T @ wrench[b - 1, 3:]
    return tau


def test_the_trees_cover_every_joint_and_shape():
    trees = [case(seed)[0] for seed in SEEDS]
    assert {b.joint for t in trees for b in t.bodies} == set(KINDS)
    assert {t.bodies[0].joint for t in trees} == set(KINDS)
    assert max(len(t.bodies) for t in trees) == 40
    assert any(sum(b.parent < 0 for b in t.bodies) > 1 for t in trees), "no tree with several roots"
    assert {case(seed)[1].engine.tree.form for seed in SEEDS} == set(FORMS), "one form is never chosen"
    assert any(len({b.parent for b in t.bodies}) < len(t.bodies) - 3 for t in trees), "no tree branches"


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamics(seed):
    tree, model, m, q, v = case(seed)
    rng = np.random.default_rng(seed)
    tau, a, wrench = rng.normal(size=tree.nv), rng.normal(size=tree.nv), rng.normal(size=(model.nb, 6))
    odd = unnormalised(tree, q)
    d = forward(m, q, v, tau, wrench)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    assert_close("mass matrix", cs.mass_matrix(model, odd), M, EXACT)
    for form in FORMS:
        ours = cs.forward_dynamics(costate_model(tree, form=form), odd, v, tau, external=wrench)
        assert_close("forward dynamics", ours, d.qacc, EXACT)
    assert_close("inverse dynamics", cs.inverse_dynamics(model, odd, v, a, external=wrench), inverse(m, q, v, a, wrench), EXACT)
    calm = forward(m, q, v, tau)
    assert_close("without wrenches", cs.forward_dynamics(model, odd, v, tau), calm.qacc, EXACT)
    assert np.abs(calm.qacc - d.qacc).max() > 1e-3, "the wrenches do nothing, so nothing was compared"


@pytest.mark.parametrize("seed", SEEDS)
def test_kinematics(seed):
    tree, model, m, q, v = case(seed)
    d = forward(m, q, v)
    kin = cs.kinematics(model, unnormalised(tree, q), v)
    assert_close("position", kin.position, d.xpos[1:], EXACT)
    sign = np.sign((kin.quaternion * d.xquat[1:]).sum(-1, keepdims=True))
    assert_close("quaternion", kin.quaternion * sign, d.xquat[1:], EXACT)
    velocity, body = np.zeros((model.nb, 6)), mujoco.mjtObj.mjOBJ_XBODY  # XBODY: at the origin; BODY would be at the com
    for b in range(model.nb):
        mujoco.mj_objectVelocity(m, d, body, b + 1, velocity[b], 0)
    assert_close("velocity", kin.velocity, velocity, EXACT)


@pytest.mark.parametrize("seed", SEEDS)
def test_point_jacobian(seed):
    tree, model, m, q, v = case(seed)
    d = forward(m, q, v)
    rng = np.random.default_rng(seed)
    for b in {0, model.nb // 2, model.nb - 1}:
        point = rng.normal(size=3)
        linear, angular = np.zeros((3, m.nv)), np.zeros((3, m.nv))
        mujoco.mj_jac(m, d, linear, angular, d.xpos[b + 1] + d.xmat[b + 1].reshape(3, 3) @ point, b + 1)
        assert_close("jacobian", cs.point_jacobian(model, unnormalised(tree, q), b, point), np.vstack([angular, linear]), EXACT)


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_momentum_and_centre_of_mass(seed):
    tree, model, m, q, v = case(seed)
    d = forward(m, q, v)
    mujoco.mj_subtreeVel(m, d)
    mass = m.body_mass.sum()
    odd = unnormalised(tree, q)
    kinetic, potential = cs.energy(model, odd, v)
    assert_close("kinetic", np.asarray(kinetic), d.energy[1], EXACT)
    assert_close("potential", np.asarray(potential), d.energy[0], EXACT)
    assert_close("centre of mass", cs.centre_of_mass(model, odd), d.subtree_com[0], EXACT)
    momentum = np.concatenate([d.subtree_angmom[0], mass * d.subtree_linvel[0]])
    assert_close("momentum", cs.momentum(model, odd, v), momentum, EXACT)


@pytest.mark.parametrize("seed", range(16))
def test_one_second_of_motion(seed):
    """Euler with implicit damping is the same scheme in both, so whole trajectories agree, not only their limit."""
    tree = random_tree(seed, SIZES[seed % len(SIZES)])
    q, v = random_state(seed, tree, speed=0.5)
    model, m = costate_model(tree), mujoco_model(tree)
    m.opt.timestep = DT
    d = forward(m, q, v)
    qs, vs = [q], [v]
    for _ in range(STEPS):
        mujoco.mj_step(m, d)
        qs.append(d.qpos.copy())
        vs.append(d.qvel.copy())
    traj = cs.Simulator(model, dt=DT).rollout(cs.State(q, v), steps=STEPS)
    assert not np.any(np.asarray(traj.diverged))
    assert_close("q", np.asarray(traj.q), np.array(qs), TRAJECTORY)
    assert_close("v", np.asarray(traj.v), np.array(vs), TRAJECTORY)
    assert np.abs(qs[-1] - q).max() > 0.01, "nothing moved"


@pytest.mark.parametrize("seed", range(16))
def test_float32(seed):
    tree, model, m, q, v = case(seed)
    tau = np.random.default_rng(seed).normal(size=tree.nv)
    d = forward(m, q, v, tau)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    single = [torch.tensor(x, dtype=torch.float32) for x in (q, v, tau)]
    results = cs.mass_matrix(model, single[0]), cs.forward_dynamics(model, *single), cs.kinematics(model, *single[:2]).position
    assert all(x.dtype == torch.float32 for x in results)
    for name, x, y in zip(("mass matrix", "forward dynamics", "position"), results, (M, d.qacc, d.xpos[1:])):
        assert_close(name, x.numpy().astype(float), y, FLOAT32)
