"""One body of a scene: what the user gave, checked, as the rows it adds to the parameter fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from costate.scene.checks import ANGLE, DEFINITE, DIRECTION, INCREASING, NOT_NEGATIVE, POSITIVE, TRIANGLE, checked, require
from costate.scene.frames import ORIGIN, UPRIGHT, Frame, point
from costate.scene.inertia import lamina, to_six
from costate.scene.joints import Ball, Joint, Prismatic, Revolute
from costate.scene.shapes import Shape, combine
from costate.scene.values import Numbers, plain, read, stack

SYMMETRY_SLACK = 1e-9  # relative, for an inertia given as a matrix


@dataclass(frozen=True)
class Body:
    """A body and its joint. `numbers` maps each field per body, q or dof to this body's part of it, float64 with graph;
    the fields of limits and dry friction only if it has them. `dry` : its dofs with dry friction. `free` : it moves freely in the
    world, and its pose is its q.
    """

    name: str
    joint_name: str
    parent: int
    joint: Joint
    free: bool
    massless: bool
    q0: np.ndarray
    dry: tuple[int, ...]
    numbers: dict[str, Tensor]

    @property
    def limited(self) -> bool:
        """Whether its joint has limits."""
        return "limit_lower" in self.numbers


def inertia_numbers(
    where: str, planar: bool, *, mass: Numbers | None, com: Numbers | None, inertia: Numbers | None, shapes: tuple[Shape, ...],
    massless: bool,
) -> dict[str, Tensor]:  # fmt: skip
    """Mass, centre of mass and inertia from what was given of them; `where` starts error messages."""
    if massless:
        if shapes or mass is not None or com is not None or inertia is not None:
            raise ValueError(f"{where}massless=True goes without mass, com, inertia and shapes")
        return {"mass": torch.zeros((), dtype=torch.float64), "com": stack(ORIGIN), "inertia": stack((0.0,) * 6)}
    if inertia is not None:
        if mass is None:
            raise ValueError(f"{where}mass is missing, inertia alone is not enough, got inertia {inertia}")
        m = checked(f"{where}mass", mass, (), POSITIVE)
        c = point(f"{where}com", planar, com)
        i = lamina(checked(f"{where}inertia", inertia, (), POSITIVE)) if planar else six_numbers(f"{where}inertia", inertia)
        for shape in shapes:
            shape.inertia(where=where)  # not used, but its numbers are checked
    elif shapes:
        if com is not None:
            raise ValueError(f"{where}com comes from the shapes unless inertia is given too, got com {com}")
        m, c, i = combine(shapes, where=where)
        i = lamina(i[2]) if planar else i
        if mass is not None:
            given = checked(f"{where}mass", mass, (), POSITIVE)
            m, i = given, i * (given / m)
    elif mass is not None:
        raise ValueError(f"{where}inertia is missing: give inertia or shapes with mass {mass}")
    else:
        raise ValueError(f"{where}give shapes, or mass and inertia, or massless=True")
    require(f"{where}inertia", i, DEFINITE, TRIANGLE)
    return {"mass": m, "com": c, "inertia": i}


def six_numbers(subject: str, value: Numbers) -> Tensor:
    """Inertia given as 6 numbers (xx, yy, zz, xy, xz, yz), a diagonal of 3 or a symmetric 3x3 matrix, as 6 numbers."""
    tensor = read(subject, value)
    if tensor.shape == (3,):
        return torch.cat((checked(subject, tensor, (3,)), torch.zeros(3, dtype=torch.float64)))
    if tensor.shape != (3, 3):
        return checked(subject, tensor, (6,))
    matrix = checked(subject, tensor, (3, 3))
    skew = (matrix - matrix.T).detach().abs().max()
    if skew > SYMMETRY_SLACK * matrix.detach().abs().max():
        raise ValueError(f"{subject} must be symmetric, got {plain(matrix)}")
    return to_six((matrix + matrix.T) / 2)


def joint_numbers(where: str, joint: Joint, frame: Frame, *, free: bool) -> tuple[dict[str, Tensor], np.ndarray]:
    """The joint's rows of the parameter fields, and its default configuration [nq]; `where` starts error messages.

    frame : of the joint, in the parent. free : its body moves freely, and the frame is the initial pose.
    """
    if free:
        q0 = _free_initial(where, joint, frame)
        frame = Frame(stack(ORIGIN), stack(UPRIGHT))
    else:
        q0 = _initial(where, joint, joint.zero())
    rest = (q0 if free else joint.zero()) if joint.rest is None else joint.rest
    axis_rules = (DIRECTION,) if isinstance(joint, (Revolute, Prismatic)) else ()
    numbers = {
        "joint_pos": frame.pos,
        "joint_quat": frame.quat,
        "joint_anchor": checked(f"{where}anchor", getattr(joint, "anchor", ORIGIN), (3,)),
        "joint_axis": checked(f"{where}axis", getattr(joint, "axis", (0.0, 0.0, 1.0)), (3,), *axis_rules),
        "stiffness": checked(f"{where}stiffness", joint.stiffness, (), NOT_NEGATIVE),
        "rest": checked(f"{where}rest", rest, (joint.nq,)),
        "damping": checked(f"{where}damping", joint.damping, (joint.nv,), NOT_NEGATIVE, fill=True),
        "armature": checked(f"{where}armature", joint.armature, (joint.nv,), NOT_NEGATIVE, fill=True),
    }
    if joint.quaternion is not None:
        require(f"{where}rest quaternion", numbers["rest"][joint.quaternion : joint.quaternion + 4], DIRECTION)
    return {**numbers, **_limits(where, joint)}, q0


def dry_friction(where: str, joint: Joint) -> tuple[tuple[int, ...], dict[str, Tensor]]:
    """The dofs of a joint that have dry friction, and its rows of that field; `where` starts error messages."""
    friction = checked(f"{where}friction", joint.friction, (joint.nv,), NOT_NEGATIVE, fill=True)
    dofs = torch.nonzero(friction.detach()).flatten()
    return tuple(dofs.tolist()), {"dry_friction": friction[dofs]} if len(dofs) else {}


def _limits(where: str, joint: Joint) -> dict[str, Tensor]:
    """The rows of a joint's limits, none where it has none."""
    if isinstance(joint, Ball) and joint.limit is not None:
        return {"limit_lower": stack(0.0), "limit_upper": checked(f"{where}limit", joint.limit, (), ANGLE)}
    if isinstance(joint, (Revolute, Prismatic)) and joint.limits is not None:
        lower, upper = checked(f"{where}limits", joint.limits, (2,), INCREASING).unbind()
        return {"limit_lower": lower, "limit_upper": upper}
    return {}


def _initial(where: str, joint: Joint, default: Numbers) -> np.ndarray:
    """Default configuration [nq] with its quaternion normalised."""
    q0 = checked(f"{where}initial", default if joint.initial is None else joint.initial, (joint.nq,))
    _refuse_grad(f"{where}initial", q0)
    if joint.quaternion is not None:
        quat = q0[joint.quaternion : joint.quaternion + 4]
        require(f"{where}initial quaternion", quat, DIRECTION)
        quat /= quat.norm()
    return q0.numpy()


def _free_initial(where: str, joint: Joint, frame: Frame) -> np.ndarray:
    """A free body's default configuration: its pose in the scene, or `initial`, not two different ones."""
    turn = "quat" if frame.angle is None else "angle"
    _refuse_grad(f"{where}pos", frame.pos)
    _refuse_grad(f"{where}{turn}", frame.quat)
    q0 = _initial(where, joint, frame.pose)
    moved = plain(frame.pose) != joint.zero()
    if moved and not np.allclose(q0, _initial(where, replace(joint, initial=None), frame.pose)):
        kind = type(joint).__name__.lower()
        raise ValueError(f"{where}pos and {turn} disagree with initial of the {kind} joint; give one of them, got {plain(q0)}")
    return q0


def _refuse_grad(subject: str, tensor: Tensor) -> None:
    if tensor.requires_grad:
        raise TypeError(
            f"{subject} sets the initial state, which is part of no gradient, got a tensor that requires grad: "
            f"{plain(tensor)}; detach it, and differentiate through the state"
        )
