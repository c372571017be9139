"""Bodies and joints: the tree of a compiled model as bodies of a scene, in MuJoCo's order, so that q and v are laid out alike.

A body with several joints becomes a stack: bodies without mass, called "<body>:<joint>", each with one joint, and on them the
body itself with the last joint. MuJoCo moves a joint by q - ref, costate by q: the joint frame is moved by -ref instead.
"""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np

from costate.load.source import Source, unique
from costate.scene.builder import Scene
from costate.scene.joints import Ball, Fixed, Free, Joint, Prismatic, Revolute

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3  # mjtJoint
LEAST_MOMENT = 1e-15  # relative; a moment that is smaller counts as none
SLACK = 1e-9  # relative, of the triangle inequality


class Mass(NamedTuple):
    """Mass (kg), centre of mass [3] (m) in the body frame, inertia [3, 3] (kg m^2) about it in body axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


def add_bodies(source: Source, scene: Scene) -> None:
    """Add all bodies with their joints to the scene; fills `body_names` and `joint_names` of the source."""
    m = source.m
    names = unique([m.body(i).name for i in range(1, m.nbody)], [f"body{i}" for i in range(1, m.nbody)])
    source.body_names[:] = [None, *names]
    in_order = [names[b - 1] for b in m.jnt_bodyid]
    source.joint_names[:] = unique([m.joint(j).name for j in range(m.njnt)], in_order)
    source.taken.update(source.joint_names)
    stacked = set(names)
    masses = _masses(source)
    for body in range(1, m.nbody):
        joints = range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body])
        parent = source.body_names[m.body_parentid[body]]
        pos, quat = np.array(m.body_pos[body]), np.array(m.body_quat[body])
        for joint in joints[:-1]:
            (name,) = unique([f"{names[body - 1]}:{source.joint_names[joint]}"], ["joint"], stacked)
            stacked.add(name)
            pos, quat = _shifted(source, joint, pos, quat)
            scene.add_body(name, parent=parent, joint=_joint(source, joint), pos=pos, quat=quat, massless=True)
            parent, pos, quat = name, np.zeros(3), np.array((1.0, 0, 0, 0))
        if not len(joints):
            (fixed,) = unique([names[body - 1]], ["fixed"], source.taken)
            source.taken.add(fixed)
            moving = Fixed(name=fixed)
        else:
            pos, quat = _shifted(source, joints[-1], pos, quat)
            moving = _joint(source, joints[-1])
        where = {} if isinstance(moving, Free) else {"pos": pos, "quat": quat}
        scene.add_body(names[body - 1], parent=parent, joint=moving, **where, **_given(masses[body]))


def _joint(source: Source, joint: int) -> Joint:
    """One joint with its spring, damper, dry friction and limits."""
    m = source.m
    kind = int(m.jnt_type[joint])
    v = slice(m.jnt_dofadr[joint], m.jnt_dofadr[joint] + (6, 3, 1, 1)[kind])
    q = slice(m.jnt_qposadr[joint], m.jnt_qposadr[joint] + (7, 4, 1, 1)[kind])
    quiet = source.off("FRICTIONLOSS") or source.off("CONSTRAINT")
    numbers: dict[str, Any] = {
        "name": source.joint_names[joint],
        "damping": np.zeros(v.stop - v.start) if source.off("DAMPER") else np.array(m.dof_damping[v]),
        "armature": np.array(m.dof_armature[v]),
        "friction": np.zeros(v.stop - v.start) if quiet else np.array(m.dof_frictionloss[v]),
        "stiffness": 0.0 if source.off("SPRING") else float(m.jnt_stiffness[joint]),
        "rest": np.array(m.qpos_spring[q]),
        "initial": np.array(m.qpos0[q]),
    }
    if kind == FREE:
        return Free(**numbers)
    limited = bool(m.jnt_limited[joint]) and not source.off("LIMIT") and not source.off("CONSTRAINT")
    if kind == BALL:
        most = float(m.jnt_range[joint, 1])  # no rotation is larger than pi
        return Ball(np.array(m.jnt_pos[joint]), limit=most if limited and most < pi else None, **numbers)
    limits = np.array(m.jnt_range[joint]) if limited else None
    axis = np.array(m.jnt_axis[joint])
    if kind == SLIDE:
        return Prismatic(axis, limits=limits, **numbers)
    return Revolute(axis, np.array(m.jnt_pos[joint]), limits=limits, **numbers)


def _shifted(source: Source, joint: int, pos: np.ndarray, quat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The frame at pos, quat, moved by -ref of the joint, which q = ref undoes."""
    m = source.m
    kind, ref = int(m.jnt_type[joint]), float(m.qpos0[m.jnt_qposadr[joint]])
    if kind not in (SLIDE, HINGE) or ref == 0.0:
        return pos, quat
    axis, anchor, turn = m.jnt_axis[joint], np.array(m.jnt_pos[joint]), matrix(quat)
    if kind == SLIDE:
        return pos - turn @ (ref * axis), quat
    back = np.array((cos(ref / 2), *(-sin(ref / 2) * axis)))
    after = product(quat, back)
    return pos + turn @ anchor - matrix(after) @ anchor, after


def _masses(source: Source) -> list[Mass]:
    """Of each body. Where one of several bodies that are fixed to each other has a mass that is no body's (a point, or inertia
    alone), the first of them carries the mass of all: the same motion.
    """
    m = source.m
    masses: list[Mass] = []
    for body in range(m.nbody):
        turn = matrix(m.body_iquat[body])
        masses.append(Mass(float(m.body_mass[body]), np.array(m.body_ipos[body]), turn * m.body_inertia[body] @ turn.T))
    odd = {int(m.body_weldid[body]) for body in range(1, m.nbody) if not _proper(m.body_mass[body], m.body_inertia[body])}
    for body in range(m.nbody - 1, 0, -1):
        head, parent = int(m.body_weldid[body]), m.body_parentid[body]
        if head in odd and body != head:
            masses[parent] = _together(masses[parent], _moved(masses[body], m.body_pos[body], m.body_quat[body]))
            masses[body] = Mass(0.0, np.zeros(3), np.zeros((3, 3)))
    return masses


def _proper(mass: float, moments: np.ndarray) -> bool:
    """Whether there is nothing, or a mass with moments of inertia (kg m^2) that a body can have."""
    low, middle, high = np.sort(moments)
    return bool(mass == 0 == high or (mass > 0 and low > LEAST_MOMENT * high and low + middle >= high * (1 - SLACK)))


def _moved(mass: Mass, pos: np.ndarray, quat: np.ndarray) -> Mass:
    """Seen from a frame in which its own is at pos, quat."""
    turn = matrix(quat)
    return Mass(mass.mass, pos + turn @ mass.com, turn @ mass.inertia @ turn.T)


def _together(a: Mass, b: Mass) -> Mass:
    """Both as one body."""
    total = a.mass + b.mass
    if total == 0 or b.mass == 0:
        return Mass(a.mass, a.com, a.inertia + b.inertia)
    com = (a.mass * a.com + b.mass * b.com) / total
    inertia = a.inertia + b.inertia
    for part in (a, b):
        d = part.com - com
        inertia = inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Mass(total, com, inertia)


def _given(mass: Mass) -> dict[str, Any]:
    if mass.mass == 0:
        return {"massless": True}
    i = (mass.inertia + mass.inertia.T) / 2
    six = np.array((i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]))
    return {"mass": mass.mass, "com": mass.com, "inertia": six}


def matrix(quat: np.ndarray) -> np.ndarray:
    """The rotation matrix [3, 3] of a quaternion wxyz."""
    w, x, y, z = quat / np.linalg.norm(quat)
    return np.array((
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ))  # fmt: skip


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quaternion of turning by b, then by a."""
    w, u, s, v = a[0], a[1:], b[0], b[1:]
    return np.array((w * s - u @ v, *(w * v + s * u + np.cross(u, v))))
