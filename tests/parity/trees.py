"""Random trees of bodies as plain data, and costate's model of them; peers.py builds the same trees in other engines.

Bodies come depth first, as both peers want them; so dofs are in the same order everywhere. Quaternions are wxyz.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import costate as cs
from costate._native.cpu import Engine

NQ = {"fixed": 0, "revolute": 1, "prismatic": 1, "ball": 4, "free": 7, "planar": 3}
NV = {"fixed": 0, "revolute": 1, "prismatic": 1, "ball": 3, "free": 6, "planar": 3}
KINDS = tuple(NQ)
QUAT_AT = {"ball": 0, "free": 3}  # where the quaternion starts in a joint's q
TINY = 1e-3  # what cancels to less than this carries the round-off of numbers around 1
TURNED = ("revolute", "ball", "planar")  # joints with an anchor


@dataclass(frozen=True)
class Body:
    """One body and its joint; units and frames as in `Scene.add_body`."""

    parent: int
    joint: str
    pos: np.ndarray
    quat: np.ndarray
    axis: np.ndarray
    anchor: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # xx, yy, zz, xy, xz, yz
    damping: np.ndarray  # [nv]
    armature: np.ndarray  # [nv]
    stiffness: float
    rest: np.ndarray  # [nq]


@dataclass(frozen=True)
class Tree:
    bodies: tuple[Body, ...]
    gravity: np.ndarray

    @cached_property
    def q_address(self) -> list[int]:
        return list(np.cumsum([0] + [NQ[b.joint] for b in self.bodies]))

    @cached_property
    def v_address(self) -> list[int]:
        return list(np.cumsum([0] + [NV[b.joint] for b in self.bodies]))

    @property
    def nv(self) -> int:
        return self.v_address[-1]

    def field(self, name: str) -> np.ndarray:
        """A per-dof or per-q field of all joints, end to end."""
        return np.concatenate([getattr(b, name) for b in self.bodies])


# ---- random numbers ------------------------------------------------------------------------------------------------
def unit_quat(rng: np.random.Generator) -> np.ndarray:
    u = rng.normal(size=4)
    return u / np.linalg.norm(u)


def rotation(quat: np.ndarray) -> np.ndarray:
    """The matrix of a quaternion wxyz of any length, by the textbook formula."""
    w, x, y, z = quat / np.linalg.norm(quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quat_mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w, u = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.concatenate([[w], u])


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Of a turned ellipsoid of points: positive definite, and the triangle inequality holds strictly."""
    s, R = mass * rng.uniform(0.01, 0.08, 3), rotation(unit_quat(rng))
    I = R @ np.diag(s.sum() - s) @ R.T
    return np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])


def random_q(rng: np.random.Generator, joint: str) -> np.ndarray:
    q = rng.uniform(-1, 1, NQ[joint])
    if joint in QUAT_AT:
        q[QUAT_AT[joint] :][:4] = unit_quat(rng)
    return q


def random_body(rng: np.random.Generator, parent: int, joint: str, *, passive: bool) -> Body:
    nv, mass = NV[joint], rng.uniform(0.5, 2.0)
    return Body(
        parent=parent,
        joint=joint,
        pos=rng.uniform(-0.4, 0.4, 3),
        quat=rng.normal(size=4),  # neither quaternion nor axis is normalised: every engine has to
        axis=rng.normal(size=3),
        anchor=rng.uniform(-0.2, 0.2, 3) if joint in TURNED else np.zeros(3),
        mass=mass,
        com=rng.uniform(-0.2, 0.2, 3),
        inertia=random_inertia(rng, mass),
        damping=rng.uniform(0.1, 1.0, nv) * passive,
        armature=rng.uniform(0.01, 0.1, nv),
        stiffness=rng.uniform(0.5, 5.0) * passive * (nv > 0),
        rest=random_q(rng, joint),
    )


def random_tree(seed: int, size: int, *, joints: tuple[str, ...] = KINDS, passive: bool = True) -> Tree:
    """`size` bodies: each hangs on the last one, on one of its ancestors, or starts a tree of its own."""
    rng = np.random.default_rng(seed)
    bodies: list[Body] = []
    for i in range(size):
        parent = i - 1
        while parent >= 0 and rng.random() < (0.1 if seed % 3 == 0 else 0.3):  # some bushy, some deep
            parent = bodies[parent].parent
        allowed = [k for k in joints if k != "free" or parent < 0]
        joint = allowed[seed % len(allowed)] if i == 0 else str(rng.choice(allowed))
        bodies.append(random_body(rng, parent, joint, passive=passive))
    if not any(NV[b.joint] for b in bodies):
        bodies[-1] = random_body(rng, bodies[-1].parent, joints[-1], passive=passive)
    return Tree(tuple(bodies), rng.normal(size=3) * 6)


def random_state(seed: int, tree: Tree, *, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """q [nq] with unit quaternions, v [nv]."""
    rng = np.random.default_rng(seed + 1000)
    q = np.concatenate([random_q(rng, b.joint) for b in tree.bodies])
    return q, rng.normal(size=tree.nv) * speed


# ---- costate -------------------------------------------------------------------------------------------------------
def costate_joint(b: Body) -> Any:
    common: dict[str, Any] = {"damping": b.damping, "armature": b.armature, "stiffness": b.stiffness, "rest": b.rest}
    if b.joint == "fixed":
        return cs.Fixed()
    if b.joint in ("revolute", "prismatic"):
        common["axis"] = b.axis
    if b.joint in TURNED:
        common["anchor"] = b.anchor
    return getattr(cs, b.joint.capitalize())(**common)


def costate_scene(tree: Tree) -> cs.Scene:
    scene = cs.Scene(gravity=tree.gravity)
    for i, b in enumerate(tree.bodies):
        numbers = {"mass": b.mass, "com": b.com, "inertia": b.inertia} if b.mass else {"massless": True}
        scene.add_body(f"b{i}", parent=b.parent, joint=costate_joint(b), pos=b.pos, quat=b.quat, **numbers)
    return scene


def costate_model(tree: Tree, *, form: int = -1) -> cs.Model:
    """The model; form 0 or 1 makes it use the sparse or the articulated factorisation, -1 lets it choose."""
    model = costate_scene(tree).build()
    model.__dict__["engine"] = Engine(model, form=form)
    return model


def assert_close(name: str, ours: Any, theirs: Any, tolerance: float) -> None:
    """Largest difference over largest number, NaN fails; differences of what is below TINY count against TINY."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape, f"{name}: shapes {ours.shape} and {theirs.shape}"
    error = np.abs(ours - theirs).max(initial=0.0) / max(np.abs(theirs).max(initial=0.0), TINY)
    assert error <= tolerance, f"{name}: {error:.2e} relative, over {tolerance:.0e}"
