"""costate against Pinocchio on random trees: the recursive algorithms, and their analytic derivatives."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

import costate as cs
from tests.parity.peers import pinocchio_model, pinocchio_q
from tests.parity.trees import QUAT_AT, Tree, assert_close, costate_model, quat_mul, random_state, random_tree

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (extra: dev)")

SIZES = (1, 2, 3, 5, 8, 12, 20, 40)
SEEDS = range(40)
FORMS = (0, 1)  # of the factorisation: sparse, articulated
EXACT = 1e-11  # 1e-9 is promised; the same formulas in double at condition numbers up to 1e4 leave 1e-13
DERIVATIVES = (
    1e-10  # Pinocchio's own da/dq is off by 1e-11 on the worst tree: there its RNEA derivatives agree with costate to 3e-13
)


@cache
def case(seed: int) -> tuple[Tree, cs.Model, object, np.ndarray, np.ndarray]:
    tree = random_tree(seed + 100, SIZES[seed % len(SIZES)], passive=False)
    return tree, costate_model(tree), pinocchio_model(tree), *random_state(seed, tree)


def massless(tree: Tree) -> Tree:
    """Every moving body that carries another one loses its mass: what one does to stack joints."""
    carriers = {b.parent for b in tree.bodies}
    bare = {"mass": 0.0, "com": np.zeros(3), "inertia": np.zeros(6)}
    keep = [b.joint == "fixed" or i not in carriers for i, b in enumerate(tree.bodies)]
    return replace(tree, bodies=tuple(b if k else replace(b, **bare) for b, k in zip(tree.bodies, keep)))


def crba(pm: object, q: np.ndarray) -> np.ndarray:
    M = pin.crba(pm, pm.createData(), q)  # fills the upper triangle
    return np.triu(M) + np.triu(M, 1).T


def assert_same_dynamics(tree: Tree, pm: object, q: np.ndarray, v: np.ndarray, seed: int) -> None:
    model, rng = costate_model(tree), np.random.default_rng(seed)
    tau, a, pq = rng.normal(size=tree.nv), rng.normal(size=tree.nv), pinocchio_q(tree, q)
    assert_close("mass matrix", cs.mass_matrix(model, q), crba(pm, pq), EXACT)
    assert_close("inverse dynamics", cs.inverse_dynamics(model, q, v, a), pin.rnea(pm, pm.createData(), pq, v, a), EXACT)
    for form in FORMS:
        ours = cs.forward_dynamics(costate_model(tree, form=form), q, v, tau)
        assert_close("forward dynamics", ours, pin.aba(pm, pm.createData(), pq, v, tau), EXACT)


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamics(seed):
    tree, _, pm, q, v = case(seed)
    assert_same_dynamics(tree, pm, q, v, seed)


@pytest.mark.parametrize("seed", range(12))
def test_massless_bodies(seed):
    tree = massless(random_tree(seed, 8, joints=("revolute", "prismatic", "fixed"), passive=False))
    assert any(b.mass == 0 for b in tree.bodies)
    assert_same_dynamics(tree, pinocchio_model(tree), *random_state(seed, tree), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_kinematics(seed):
    tree, model, pm, q, v = case(seed)
    data, pq = pm.createData(), pinocchio_q(tree, q)
    pin.forwardKinematics(pm, data, pq, v)
    pin.updateFramePlacements(pm, data)
    pin.computeJointJacobians(pm, data, pq)
    kin = cs.kinematics(model, q, v)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for b in range(model.nb):
        frame = pm.getFrameId(f"b{b}")
        motion, X = pin.getFrameVelocity(pm, data, frame, aligned), data.oMf[frame]
        w, u = kin.quaternion[b, 0], kin.quaternion[b, 1:]
        theirs = pin.Quaternion(X.rotation).coeffs()
        sign = np.sign(theirs @ np.append(u, w))
        assert_close("position", kin.position[b], X.translation, EXACT)
        assert_close("quaternion", sign * np.append(u, w), theirs, EXACT)
        assert_close("velocity", kin.velocity[b], np.concatenate([motion.angular, motion.linear]), EXACT)
        J = pin.getFrameJacobian(pm, data, frame, aligned)
        assert_close("jacobian", cs.point_jacobian(model, q, b), np.vstack(np.split(J.reshape(6, tree.nv), 2)[::-1]), EXACT)


def tangent(tree: Tree, q: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """An ambient gradient by q as one number per dof: along q (0, e/2) for quaternions."""
    out = []
    for i, b in enumerate(tree.bodies):
        a, n = tree.q_address[i], tree.q_address[i + 1]
        at = a + QUAT_AT.get(b.joint, n - a)
        out.append(q_bar[a:at])
        if b.joint in QUAT_AT:
            turns = [quat_mul(q[at:n], np.append(0.0, e) / 2) for e in np.eye(3)]
            out.append(np.array([q_bar[at:n] @ turn for turn in turns]))
    return np.concatenate(out)


def assert_same_derivatives(tree: Tree, seed: int) -> None:
    """w . a for a random w, by q, v and tau, against Pinocchio's Jacobians."""
    rng = np.random.default_rng(seed)
    q, v = random_state(seed, tree)
    tau, w = rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    pm = pinocchio_model(tree)
    data = pm.createData()
    pin.computeABADerivatives(pm, data, pinocchio_q(tree, q), v, tau)
    M_inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    for form in FORMS:
        leaves = [torch.tensor(x, requires_grad=True) for x in (q, v, tau)]
        a = cs.forward_dynamics(costate_model(tree, form=form), *leaves)
        q_bar, v_bar, tau_bar = (g.numpy() for g in torch.autograd.grad(a @ torch.tensor(w), leaves))
        assert_close("da/dq", tangent(tree, q, q_bar), w @ data.ddq_dq, DERIVATIVES)
        assert_close("da/dv", v_bar, w @ data.ddq_dv, DERIVATIVES)
        assert_close("da/dtau", tau_bar, w @ M_inverse, DERIVATIVES)


@pytest.mark.parametrize("seed", range(24))
def test_derivatives_of_simple_joints(seed):
    assert_same_derivatives(random_tree(seed, SIZES[seed % len(SIZES)], joints=("revolute", "prismatic"), passive=False), seed)


@pytest.mark.parametrize("seed", range(24))
def test_derivatives_with_every_joint(seed):
    """Both engines take derivatives by a turn in the body's own axes, so the tangents agree too."""
    assert_same_derivatives(case(seed)[0], seed)
