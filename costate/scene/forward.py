"""Forward kinematics of a scene in its initial configuration, with the graph of the scene's numbers.

X_pb = T(joint_pos) R(joint_quat) T(anchor) X_joint(q0) T(-anchor)         as core/ops/kinematics.h; q0 is a constant
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from costate.rotation import inverse, multiply, normalise, rotate
from costate.scene.body import Body
from costate.scene.frames import ORIGIN, UPRIGHT
from costate.scene.joints import Ball, Fixed, Free, Prismatic, Revolute
from costate.scene.values import stack


class Pose(NamedTuple):
    """A frame seen from another one: its origin [3] (m) and orientation [4] (unit, wxyz), float64 with graph."""

    pos: Tensor
    quat: Tensor


def world() -> Pose:
    """The world's own frame."""
    return Pose(stack(ORIGIN), stack(UPRIGHT))


def compose(X_ab: Pose, X_bc: Pose) -> Pose:
    """X_ac: the frame c that b sees at X_bc, seen from a."""
    return Pose(X_ab.pos + rotate(X_ab.quat, X_bc.pos), multiply(X_ab.quat, X_bc.quat))


def relative(X_ab: Pose, X_ac: Pose) -> Pose:
    """X_bc: the frame c seen from b."""
    back = inverse(X_ab.quat)
    return Pose(rotate(back, X_ac.pos - X_ab.pos), multiply(back, X_ac.quat))


def initial_pose(bodies: Sequence[Body], known: list[Pose], index: int) -> Pose:
    """Where body `index` (-1: the world) is initially; `known` holds the poses of the first bodies and is extended."""
    if index < 0:
        return world()
    for body in bodies[len(known) : index + 1]:
        known.append(_place(body, known[body.parent] if body.parent >= 0 else world()))
    return known[index]


def _place(body: Body, X_wp: Pose) -> Pose:
    """The pose of a body in the world, from that of its parent."""
    joint, q, numbers = body.joint, torch.from_numpy(body.q0), body.numbers
    if isinstance(joint, Free):
        return Pose(q[:3], q[3:])
    pre = compose(X_wp, Pose(numbers["joint_pos"], normalise(numbers["joint_quat"])))
    if isinstance(joint, Fixed):
        return pre
    zero, anchor = torch.zeros(1, dtype=torch.float64), numbers["joint_anchor"]
    slide, turn = stack(ORIGIN), stack(UPRIGHT)
    if isinstance(joint, Prismatic):
        slide = q * normalise(numbers["joint_axis"])
    elif isinstance(joint, Revolute):
        turn = torch.cat((torch.cos(q / 2), torch.sin(q / 2) * normalise(numbers["joint_axis"])))
    elif isinstance(joint, Ball):
        turn = q
    else:  # planar
        half = q[2:] / 2
        slide, turn = torch.cat((q[:2], zero)), torch.cat((torch.cos(half), zero, zero, torch.sin(half)))
    quat = multiply(pre.quat, turn)
    return Pose(pre.pos + rotate(pre.quat, anchor + slide) - rotate(quat, anchor), quat)
