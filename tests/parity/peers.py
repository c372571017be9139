"""The trees of trees.py in MuJoCo and Pinocchio. Neither is imported before it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.parity.trees import QUAT_AT, Body, Tree, rotation


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def mjcf(tree: Tree) -> str:
    """The tree as MJCF; damping, armature and springs are per dof and come later (see `mujoco_model`)."""
    children: dict[int, list[int]] = {}
    for i, b in enumerate(tree.bodies):
        children.setdefault(b.parent, []).append(i)

    def joints(b: Body) -> str:
        axes = {"revolute": [("hinge", b.axis)], "prismatic": [("slide", b.axis)], "ball": [("ball", (0, 0, 1))]}
        axes["planar"] = [("slide", (1, 0, 0)), ("slide", (0, 1, 0)), ("hinge", (0, 0, 1))]
        if b.joint == "free":
            return '<joint type="free"/>'
        return "".join(f'<joint type="{t}" axis="{_text(a)}" pos="{_text(b.anchor)}"/>' for t, a in axes.get(b.joint, ()))

    def body(i: int) -> str:
        b = tree.bodies[i]
        inertial = f'<inertial pos="{_text(b.com)}" mass="{b.mass!r}" fullinertia="{_text(b.inertia)}"/>'
        inside = inertial + joints(b) + "".join(body(c) for c in children.get(i, ()))
        return f'<body name="b{i}" pos="{_text(b.pos)}" quat="{_text(b.quat)}">{inside}</body>'

    option = f'<option gravity="{_text(tree.gravity)}" integrator="Euler"><flag energy="enable" contact="disable"/></option>'
    compiler = '<compiler boundmass="0" boundinertia="0" balanceinertia="false" fusestatic="false"/>'
    world = "".join(body(i) for i in children[-1])
    return f"<mujoco>{compiler}{option}<worldbody>{world}</worldbody></mujoco>"


def mujoco_model(tree: Tree) -> Any:
    """MjModel. MJCF has no rest orientation of a ball and one damping per joint, so these arrays are set afterwards."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(mjcf(tree))
    m.qpos_spring[:], m.dof_damping[:], m.dof_armature[:] = tree.field("rest"), tree.field("damping"), tree.field("armature")
    m.jnt_stiffness[:] = [tree.bodies[b - 1].stiffness for b in m.jnt_bodyid]
    mujoco.mj_setConst(m, mujoco.MjData(m))
    return m


def pinocchio_model(tree: Tree) -> Any:
    """Pinocchio model with one frame per body, named like it. Free and planar joints are stacks of simpler ones, so that v
    means the same. A joint's frame there is the body's, moved to the anchor. Springs and dampers are left out."""
    import pinocchio as pin

    model, at = pin.Model(), [(0, pin.SE3.Identity())]  # of each body: joint id, body's pose in the joint's frame
    for i, b in enumerate(tree.bodies):
        axis = b.axis / np.linalg.norm(b.axis)
        kinds = {
            "fixed": [],
            "revolute": [pin.JointModelRevoluteUnaligned(axis)],
            "prismatic": [pin.JointModelPrismaticUnaligned(axis)],
            "ball": [pin.JointModelSpherical()],
            "free": [pin.JointModelTranslation(), pin.JointModelSpherical()],
            "planar": [pin.JointModelPX(), pin.JointModelPY(), pin.JointModelRZ()],
        }
        joint, place = at[b.parent + 1]
        shift = pin.SE3(np.eye(3), b.anchor)
        place = place * (pin.SE3.Identity() if b.joint == "free" else pin.SE3(rotation(b.quat), b.pos)) * shift
        for k, kind in enumerate(kinds[b.joint]):
            joint = model.addJoint(joint, kind, place, f"b{i}_{k}")
            place = pin.SE3.Identity()
        place = place * shift.inverse()
        xx, yy, zz, xy, xz, yz = b.inertia
        I = pin.Inertia(b.mass, b.com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        model.appendBodyToJoint(joint, I, place)
        model.addFrame(pin.Frame(f"b{i}", joint, place, pin.FrameType.OP_FRAME))
        at.append((joint, place))
    model.armature = tree.field("armature")
    model.gravity.linear = tree.gravity
    return model


def pinocchio_q(tree: Tree, q: np.ndarray) -> np.ndarray:
    """q with every quaternion from wxyz to xyzw."""
    out = q.copy()
    for b, a in zip(tree.bodies, tree.q_address):
        if b.joint in QUAT_AT:
            a += QUAT_AT[b.joint]
            out[a : a + 4] = np.roll(q[a : a + 4], -1)
    return out
