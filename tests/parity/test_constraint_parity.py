"""Constraints against Pinocchio's constrained dynamics on random trees with loops, and against MuJoCo's equalities made stiff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import costate as cs
from tests.parity.peers import pinocchio_model, pinocchio_q
from tests.parity.trees import KINDS, Tree, assert_close, costate_scene, random_state, random_tree, rotation, unit_quat
from tests.physics.constraint_scenes import four_bar, plane_angles
from tests.physics.contact_scenes import quat_mul, rotate, run

pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed (extra: dev)")
mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra: dev)")

EXACT = 5e-6  # measured 2e-6: rows give way by 1e-9 of their stiffness, times condition numbers up to 1e3
LIMIT = 5e-6  # measured 6e-7: extrapolated to h = 0 from 1e-4 and 5e-5
LOCKS = {"point": (0, 1, 2), "weld": (0, 1, 2, 3, 4, 5), "hinge": (0, 1, 2, 3, 4), "slide": (0, 1, 3, 4, 5), "lock": (1, 2, 5)}
INVERSE = np.array([1, -1, -1, -1])


# ---- loops in random trees -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Loop:
    """A closure between bodies a and b (-1: the world) whose frames coincide at the case's q."""

    kind: str
    a: int
    b: int
    pos: np.ndarray
    quat: np.ndarray
    pos_b: np.ndarray
    quat_b: np.ndarray

    def add(self, scene: cs.Scene) -> None:
        options: dict[str, Any] = {"pos": self.pos, "pos_b": self.pos_b}
        if self.kind != "point":
            options |= {"quat": self.quat, "quat_b": self.quat_b}
        if self.kind == "lock":
            options |= {"y": True, "z": True, "rz": True}
        names = [None if body < 0 else f"b{body}" for body in (self.a, self.b)]
        getattr(scene, f"add_{self.kind}")(*names, **options)


def closed(rng: np.random.Generator, kind: str, a: int, b: int, position: np.ndarray, quaternion: np.ndarray) -> Loop:
    """Frames somewhere near body a, which coincide."""
    pose = [(np.zeros(3), np.array((1.0, 0, 0, 0))) if i < 0 else (position[i], quaternion[i]) for i in (a, b)]
    pos, quat = rng.uniform(-0.4, 0.4, 3), unit_quat(rng) if kind != "point" else np.array((1.0, 0, 0, 0))
    at, turned = pose[0][0] + rotate(pose[0][1], pos), quat_mul(pose[0][1], quat)
    back = pose[1][1] * INVERSE
    return Loop(kind, a, b, pos, quat, rotate(back, at - pose[1][0]), quat_mul(back, turned))


def placed(pm: Any, body: int, pos: np.ndarray, quat: np.ndarray) -> tuple[int, Any]:
    """Joint and placement of a frame on a body, as Pinocchio has it."""
    X = pin.SE3(rotation(quat), pos)
    if body < 0:
        return 0, X
    frame = pm.frames[pm.getFrameId(f"b{body}")]
    return frame.parentJoint, frame.placement * X


def rigid(pm: Any, loop: Loop) -> Any:
    """The loop as Pinocchio's constraint between two frames: of points, or of whole frames."""
    (joint_a, X_a), (joint_b, X_b) = placed(pm, loop.a, loop.pos, loop.quat), placed(pm, loop.b, loop.pos_b, loop.quat_b)
    kind = pin.ContactType.CONTACT_3D if loop.kind == "point" else pin.ContactType.CONTACT_6D
    return pin.RigidConstraintModel(kind, pm, joint_a, X_a, joint_b, X_b, pin.ReferenceFrame.LOCAL)


def jacobian(pm: Any, pq: np.ndarray, loops: list[Loop]) -> np.ndarray:
    """Velocities of b against a in frame a, linear first, of which each loop locks some; from Pinocchio's frame Jacobians."""
    data, rows = pm.createData(), []
    pin.computeJointJacobians(pm, data, pq)
    for loop in loops:
        sides = []
        for body, pos, quat in ((loop.a, loop.pos, loop.quat), (loop.b, loop.pos_b, loop.quat_b)):
            joint, X = placed(pm, body, pos, quat)
            world = data.oMi[joint] * X
            J = (
                pin.getFrameJacobian(pm, data, joint, X, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
                if joint
                else np.zeros((6, pm.nv))
            )
            sides.append((J, world.rotation if joint else X.rotation))
        turned = np.kron(np.eye(2), sides[0][1].T)
        rows.append((turned @ (sides[1][0] - sides[0][0]))[list(LOCKS[loop.kind])])
    return np.vstack(rows)


def case(seed: int, kinds: tuple[str, ...]) -> tuple[Tree, Any, list[Loop], np.ndarray, np.ndarray, np.ndarray]:
    """A tree, its peer, loops of these kinds that are far from redundant, q, v (on the constraints), and their Jacobian."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, (6, 9, 14, 25)[seed % 4], joints=tuple(k for k in KINDS if k != "fixed"), passive=False)
    pm, (q, v) = pinocchio_model(tree), random_state(seed, tree)
    kin, pq = cs.kinematics(costate_scene(tree).build(), q), pinocchio_q(tree, q)
    M = pin.crba(pm, pm.createData(), pq)
    M_inverse = np.linalg.inv(np.triu(M) + np.triu(M, 1).T)
    for _ in range(1000):
        loops = []
        for kind in kinds:
            a, b = rng.choice(np.arange(-1, len(tree.bodies)), 2, replace=False)
            loops.append(closed(rng, kind, int(a), int(b), kin.position, kin.quaternion))
        J = jacobian(pm, pq, loops)
        A = J @ M_inverse @ J.T
        if np.linalg.cond(A) < 1e3:
            return tree, pm, loops, q, v - M_inverse @ J.T @ np.linalg.solve(A, J @ v), J
    raise AssertionError("no loops found")


def model_of(tree: Tree, loops: list[Loop]) -> cs.Model:
    scene = costate_scene(tree)
    for loop in loops:
        loop.add(scene)
    for body, b in enumerate(tree.bodies):
        for dof in range({"ball": 3, "free": 6, "planar": 3}.get(b.joint, 1)):
            scene.add_motor(body, dof=dof)
    return scene.build()


SETS = [("point",), ("weld",), ("hinge",), ("slide",), ("lock",), ("point", "point"), ("hinge", "point"), ("slide", "lock")]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kinds", SETS, ids=" ".join)
def test_acceleration_at_rest(kinds, seed):
    """There a step of any size is the constrained forward dynamics itself: M a = tau - c + J^T f, J a = 0."""
    tree, pm, loops, q, _, J = case(seed, kinds)
    model, h = model_of(tree, loops), 0.01
    assert np.abs(cs.constraint_error(model, q)).max() < 1e-12, "closed"
    tau, zero, pq = np.random.default_rng(seed).normal(size=tree.nv), np.zeros(tree.nv), pinocchio_q(tree, q)
    M = pin.crba(pm, pm.createData(), pq)
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.rnea(pm, pm.createData(), pq, zero, zero)
    K = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    a, f = np.split(np.linalg.solve(K, np.concatenate([tau - bias, np.zeros(len(J))])), [tree.nv])
    sim = cs.Simulator(model, dt=h, project=0)
    state, info = sim.step(cs.State(q, zero), tau, info=True)
    assert_close("acceleration", state.v / h, a, EXACT)
    assert_close("impulse", info.constraints.impulse / h, f, EXACT)
    assert np.abs(a - cs.forward_dynamics(model, q, zero, tau)).max() > 0.1, "the loops do nothing"


def accelerate(model: cs.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: float, project: int) -> np.ndarray:
    """(v2 - v1) / h over the second of two steps, the first of which starts one step before q. The first step alone would miss
    what turns J, for it does not know where the motion came from. recovery 0 up to round-off: it is no part of the dynamics."""
    sim = cs.Simulator(model, dt=h, project=project, contact=cs.Contact(recovery=1e-12))
    first = sim.step(cs.State(q, v), tau)
    second = sim.step(first, tau)
    return (second.v - first.v) / h


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kinds", [("point",), ("weld",), ("point", "point"), ("weld", "point")], ids=" ".join)
def test_acceleration_of_moving_loops(kinds, seed, project):
    """Against Pinocchio's constraintDynamics, as the limit of small steps."""
    tree, pm, loops, q, v, _ = case(seed, kinds)
    tau, pq = np.random.default_rng(seed).normal(size=tree.nv), pinocchio_q(tree, q)
    constraints, numbers, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData(), pm.createData()
    for loop in loops:
        constraints.append(rigid(pm, loop))
        numbers.append(constraints[-1].createData())
    pin.initConstraintDynamics(pm, data, constraints, numbers)
    settings = pin.ProximalSettings(1e-14, 1e-12, 50)
    theirs = pin.constraintDynamics(pm, data, pq, v, tau, constraints, numbers, settings)
    coarse, fine = (accelerate(model_of(tree, loops), q, v, tau, h, project) for h in (1e-4, 5e-5))
    assert_close("acceleration", 2 * fine - coarse, theirs, LIMIT)


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
STEP = 1e-4
TRAJECTORY = 5e-6  # m, rad over 1 s; measured 7e-7
STIFF = 'solref="0.0002 1" solimp="0.9999 0.9999 0.001 0.5 2"'  # as hard as it gets: two steps, impedance just below 1
HEAD = f'<option timestep="{STEP}" integrator="Euler" iterations="100" tolerance="1e-14"><flag contact="disable"/></option>'


def peer(bodies: str, equality: str) -> tuple[Any, Any]:
    compiler = '<compiler angle="radian" boundmass="0" boundinertia="0" balanceinertia="false"/>'
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco>{compiler}{HEAD}<worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"
    )
    return model, mujoco.MjData(model)


def their_way(m: Any, d: Any, steps: int, every: int = 10) -> np.ndarray:
    """Positions of all bodies, every 10 steps."""
    found = []
    for i in range(steps + 1):
        if i % every == 0:
            mujoco.mj_kinematics(m, d)
            found.append(d.xpos[1:].copy())
        mujoco.mj_step(m, d)
    return np.array(found)


def our_way(model: cs.Model, steps: int, every: int = 10, **options: Any) -> np.ndarray:
    return cs.kinematics(model, run(model, steps, dt=STEP, **options).q[::every]).position


def link(name: str, pos: str, length: float, inside: str = "") -> str:
    inertial = (
        f'<inertial pos="{length / 2} 0 0" mass="{length}" diaginertia="{1e-3 * length} {length**3 / 12} {length**3 / 12}"/>'
    )
    return f'<body name="{name}" pos="{pos}"><joint name="{name}" axis="0 -1 0"/>{inertial}{inside}</body>'


def test_a_four_bar_swings_like_mujocos():
    """Closed by `connect`; the linkage falls from 0.5 rad for 1 s."""
    model = four_bar("point", max_force=0.0)
    m, d = peer(
        link("crank", "0 0 0", 0.3, link("coupler", "0.3 0 0", 0.9)) + link("rocker", "1 0 0", 0.8),
        f'<connect body1="coupler" body2="rocker" anchor="0.9 0 0" {STIFF}/>',
    )
    # the anchor on the second body is taken where bodies are at zero; it belongs to the end of the rocker
    m.eq_data[0, :6] = 0.9, 0, 0, 0.8, 0, 0
    d.qpos[:] = model.q0
    ours, theirs = our_way(model, 10_000, control=[0.0]), their_way(m, d, 10_000)
    assert np.abs(ours - theirs).max() < TRAJECTORY
    assert np.ptp(ours, axis=0).max() > 0.3 and plane_angles(model, np.array(model.q0))[0] == pytest.approx(0.5)


def test_welded_bodies_tumble_like_mujocos():
    """Two free bodies, one off the other's middle and turned, held by `weld`, thrown with a spin for 0.5 s."""
    scene, quat = cs.Scene(), np.array((0.8, 0.0, 0.6, 0.0))
    scene.add_body("a", joint=cs.Free(), mass=1.0, inertia=(0.02, 0.03, 0.04))
    scene.add_body("b", joint=cs.Free(), pos=(0.3, 0.1, 0.2), quat=quat, mass=0.6, inertia=(0.01, 0.02, 0.025))
    scene.add_weld("a", "b")
    free = '<body name="{}" pos="{}" quat="{}"><freejoint/><inertial pos="0 0 0" mass="{}" diaginertia="{}"/></body>'
    m, d = peer(
        free.format("a", "0 0 0", "1 0 0 0", 1.0, "0.02 0.03 0.04")
        + free.format("b", "0.3 0.1 0.2", "0.8 0 0.6 0", 0.6, "0.01 0.02 0.025"),
        f'<weld body1="a" body2="b" {STIFF}/>',
    )
    spin = np.array((1.0, 2.0, -1.5))
    arm = np.array((0.3, 0.1, 0.2))
    v = np.concatenate([(0, 0, 3.0), spin, np.array((0, 0, 3.0)) + np.cross(spin, arm), rotate(quat * INVERSE, spin)])
    d.qvel[:] = v
    ours, theirs = our_way(scene.build(), 5_000, v=v), their_way(m, d, 5_000)
    assert np.abs(ours - theirs).max() < TRAJECTORY
    assert np.abs(ours[-1, 1] - ours[-1, 0] - arm).max() > 0.2, "it turned"


def test_coupled_joints_move_like_mujocos():
    """A pendulum whose joint follows another's by a polynomial, `joint` equality with polycoef."""
    scene = cs.Scene()
    scene.add_body("a", joint=cs.Revolute((0, -1, 0), initial=0.0), mass=0.5, com=(0.25, 0, 0), inertia=(5e-4, 0.01, 0.01))
    scene.add_body("b", pos=(1, 0, 0), joint=cs.Revolute((0, -1, 0), initial=0.1), mass=0.8, com=(0.4, 0, 0),
                   inertia=(8e-4, 0.04, 0.04))  # fmt: skip
    scene.add_coupling("b", "a", coefficients=(0.1, -0.7, 0.2, 0.05, -0.03))
    body = '<body pos="{} 0 0"><joint name="{}" axis="0 -1 0"/><inertial pos="{} 0 0" mass="{}" diaginertia="{}"/></body>'
    m, d = peer(
        body.format(0, "a", 0.25, 0.5, "5e-4 0.01 0.01") + body.format(1, "b", 0.4, 0.8, "8e-4 0.04 0.04"),
        f'<joint joint1="b" joint2="a" polycoef="0.1 -0.7 0.2 0.05 -0.03" {STIFF}/>',
    )
    model = scene.build()
    d.qpos[:] = model.q0
    found = []
    for i in range(10_001):
        if i % 10 == 0:
            found.append(d.qpos.copy())
        mujoco.mj_step(m, d)
    ours = run(model, 10_000, dt=STEP).q[::10]
    assert np.abs(ours - np.array(found)).max() < TRAJECTORY and np.ptp(ours, axis=0).min() > 0.3
