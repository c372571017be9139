"""Joints of a URDF as MuJoCo takes them: types, axes, limits, mimics, and joints that float."""

from __future__ import annotations

import numpy as np

from costate.load.errors import LoadError
from costate.load.urdf_parts import HINGE_OR_SLIDE, JOINT_TYPES, Joint, Link, Origin, Robot
from costate.load.urdf_tree import WORLD

ALIASES = {"ball": "spherical", "free": "floating", "hinge": "continuous", "slide": "prismatic"}
SHORTEST_AXIS = 1e-9  # below it is no direction


def repair_joints(robot: Robot, notes: list[str], *, floating: bool) -> None:
    """Bring all joints into the form that MuJoCo takes; changes the robot."""
    for joint in robot.joints:
        _kind(joint, notes)
        _axis(joint, notes)
        _limits(joint, notes)
        _losses(joint, notes)
    _mimics(robot, notes)
    if floating:
        _float_from_world(robot, notes)
    _floating(robot, notes)


def _kind(joint: Joint, notes: list[str]) -> None:
    kind = joint.kind.strip().lower()
    kind = ALIASES.get(kind, kind)
    if kind not in JOINT_TYPES:
        raise LoadError(f"joint {joint.name!r}: type must be one of {', '.join(JOINT_TYPES)}, got {joint.kind[:40]!r}")
    if kind != joint.kind:
        notes.append(f"joint {joint.name!r}: type {joint.kind!r} is read as {kind!r}")
        joint.kind = kind


def _axis(joint: Joint, notes: list[str]) -> None:
    if joint.kind not in (*HINGE_OR_SLIDE, "planar"):
        joint.axis = None  # it has no meaning there, and may be anything
    elif joint.axis is not None and np.linalg.norm(joint.axis) < SHORTEST_AXIS:
        notes.append(f"joint {joint.name!r}: the axis is zero, x is taken (URDF's default)")
        joint.axis = None


def _limits(joint: Joint, notes: list[str]) -> None:
    """Revolute and prismatic joints should have limits. A missing end means 0; MuJoCo would drop a range without it."""
    lower, upper = joint.lower, joint.upper
    if joint.kind not in ("revolute", "prismatic"):
        joint.lower = joint.upper = None
        return
    if lower is None and upper is None:
        notes.append(f"joint {joint.name!r} is {joint.kind} but has no limits: it moves without limits")
        return
    lower, upper = lower or 0.0, upper or 0.0
    if joint.lower is None or joint.upper is None:
        end = "lower" if joint.lower is None else "upper"
        notes.append(f"joint {joint.name!r} has no {end} limit: 0 is taken (URDF's default)")
    if lower >= upper:
        relation = "above" if lower > upper else "equal to"
        notes.append(
            f"joint {joint.name!r}: the lower limit {lower:g} is {relation} the upper one {upper:g}: it moves without limits"
        )
        joint.lower = joint.upper = None
        return
    joint.lower, joint.upper = lower, upper


def _losses(joint: Joint, notes: list[str]) -> None:
    for name in ("damping", "friction"):
        value = getattr(joint, name)
        if value is not None and value < 0:
            notes.append(f"joint {joint.name!r}: {name} is {value:g}, 0 is taken")
            setattr(joint, name, 0.0)
    if joint.effort is not None and joint.effort < 0:
        notes.append(f"joint {joint.name!r}: the effort limit {joint.effort:g} is read as {-joint.effort:g}")
        joint.effort = -joint.effort


def _mimics(robot: Robot, notes: list[str]) -> None:
    """MuJoCo makes an equality constraint of a mimic between joints of one degree of freedom; other mimics go."""
    kinds = {joint.name: joint.kind for joint in robot.joints}
    for joint in robot.joints:
        if joint.mimic is None:
            continue
        leader = joint.mimic.joint
        if joint.kind in HINGE_OR_SLIDE and kinds.get(leader) in HINGE_OR_SLIDE and leader != joint.name:
            continue
        if joint.kind != "fixed":
            reason = f"which is {kinds[leader]}" if leader in kinds else "which is not there"
            reason = "itself" if leader == joint.name else reason
            notes.append(f"joint {joint.name!r} mimics {leader!r}, {reason}: the mimic is left out")
        joint.mimic = None


# ---- joints that float ---------------------------------------------------------------------------------------------
def _float_from_world(robot: Robot, notes: list[str]) -> None:
    """A root called 'world' is MuJoCo's world and cannot float; what is fixed to it can."""
    hanging = [joint for joint in robot.joints if joint.parent == WORLD]
    if any(joint.kind == "floating" for joint in hanging) or WORLD not in {link.name for link in robot.roots()}:
        return
    moving = [joint.name for joint in hanging if joint.kind != "fixed"]
    if moving or len(hanging) != 1:
        found = f"joint {moving[0]!r}" if moving else f"{len(hanging)} joints"
        raise LoadError(f"with floating=True the root link {WORLD!r} must have one joint, a fixed one, got {found}")
    hanging[0].kind = "floating"
    notes.append(f"joint {hanging[0].name!r} fixes link {hanging[0].child!r} to the world: with floating=True it floats")


def _floating(robot: Robot, notes: list[str]) -> None:
    """MuJoCo's free joints start at the world; a joint that floats leaves nothing of its parent but the first pose."""
    if all(joint.kind != "floating" or joint.parent == WORLD for joint in robot.joints):
        return
    poses: dict[str, Origin] = {}
    for link, joint in robot.downwards():
        poses[link.name] = poses[joint.parent].times(joint.origin) if joint is not None else Origin()
        if joint is None or joint.kind != "floating" or joint.parent == WORLD:
            continue
        notes.append(
            f"joint {joint.name!r} floats below link {joint.parent!r}: link {link.name!r} starts where it is "
            "with all coordinates 0, and its coordinates are those in the world"
        )
        joint.parent, joint.origin = WORLD, poses[link.name]
    if WORLD not in {link.name for link in robot.links}:
        robot.links.insert(0, Link(WORLD, 1))
