"""The part of Scene that adds equality constraints."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

import torch

from costate.scene.checks import NOT_NEGATIVE, POSITIVE, checked
from costate.scene.codes import NO_AXIS, PLANAR_TIES, TIES
from costate.scene.constraints import Coupling, Tie, TieFrames, choose_locks, coupling_numbers, held_by, initial_distance
from costate.scene.forward import Pose, initial_pose
from costate.scene.joints import check_dof
from costate.scene.names import body_or_world, find, new_name
from costate.scene.values import Numbers, plain, stack

if TYPE_CHECKING:
    from costate.scene.assemble import Parts

BodyKey = str | int | None


class AddConstraints:
    """Equality constraints of a scene: ties between a frame on body a and one on body b, and couplings of joint coordinates.

    Bodies go by name or index, None or "world" is the world. Names default to "point0", "weld0", ..., and are unique among
    constraints and joints. In planar scenes positions are 2 numbers, and orientations angles.
    """

    _parts: Parts

    def add_point(
        self, a: BodyKey, b: BodyKey, *, pos: Numbers | None = None, pos_b: Numbers | None = None, softness: Numbers = 0.0,
        collide: bool = False, name: str | None = None,
    ) -> str:  # fmt: skip
        """Hold a point of `a` and one of `b` together (a ball joint) and return the name of the constraint.

        a, b : name or index of a body, None or "world" for the world.
        pos, pos_b : m [3], in the frames of a and b; pos defaults to the origin, pos_b to where the point of a is initially.
        softness : static error per force, m/N; 0 is rigid.
        collide : whether bodies a and b may touch each other. The world's own shapes are touched in any case.
        """
        return self._add_tie("point", a, b, TieFrames(pos=pos, pos_b=pos_b), softness, collide, name)

    def add_weld(
        self, a: BodyKey, b: BodyKey, *, pos: Numbers | None = None, quat: Numbers | None = None, angle: Numbers | None = None,
        pos_b: Numbers | None = None, quat_b: Numbers | None = None, angle_b: Numbers | None = None, softness: Numbers = 0.0,
        collide: bool = False, name: str | None = None,
    ) -> str:  # fmt: skip
        """Hold a frame of `a` and one of `b` together and return the name of the constraint.

        pos, quat : frame a in the frame of a (m, wxyz), by default that itself. pos_b, quat_b : frame b in the frame of b; each
            defaults to where frame a is initially.
        angle, angle_b : in place of quat and quat_b in a planar scene, rad.
        softness : static error per force, m/N and rad/(N m); 0 is rigid. collide : as in `add_point`.
        """
        frames = TieFrames(pos=pos, quat=quat, angle=angle, pos_b=pos_b, quat_b=quat_b, angle_b=angle_b)
        return self._add_tie("weld", a, b, frames, softness, collide, name)

    def add_hinge(
        self, a: BodyKey, b: BodyKey, *, axis: Numbers | None = None, pos: Numbers | None = None, quat: Numbers | None = None,
        angle: Numbers | None = None, pos_b: Numbers | None = None, quat_b: Numbers | None = None, angle_b: Numbers | None = None,
        limits: Numbers | None = None, softness: Numbers = 0.0, collide: bool = False, name: str | None = None,
    ) -> str:  # fmt: skip
        """Let `b` only turn against `a`, about an axis, and return the name of the constraint; actuators can drive it.

        axis : [3] (default z), in the coordinates of frame a and of frame b; both frames are turned so that it becomes their z.
            In a planar scene it is always z.
        pos, quat, angle, pos_b, quat_b, angle_b, softness, collide : as in `add_weld`. The angle (rad) is zero where both frames
            coincide.
        limits : only joints have them, so this raises.
        """
        _refuse_limits("add_hinge", "Revolute", limits)
        frames = TieFrames(pos=pos, quat=quat, angle=angle, pos_b=pos_b, quat_b=quat_b, angle_b=angle_b, axis=axis)
        return self._add_tie("hinge", a, b, frames, softness, collide, name)

    def add_slide(
        self, a: BodyKey, b: BodyKey, *, axis: Numbers | None = None, pos: Numbers | None = None, quat: Numbers | None = None,
        angle: Numbers | None = None, pos_b: Numbers | None = None, quat_b: Numbers | None = None, angle_b: Numbers | None = None,
        limits: Numbers | None = None, softness: Numbers = 0.0, collide: bool = False, name: str | None = None,
    ) -> str:  # fmt: skip
        """Let `b` only slide against `a`, along an axis, and return the name of the constraint; actuators can drive it.

        axis : [3] (default z), in the coordinates of frame a and of frame b; both frames are turned so that it becomes their z.
            In a planar scene [2] (default x).
        pos, quat, angle, pos_b, quat_b, angle_b, softness, collide : as in `add_weld`. The displacement (m) is zero where both
            frames coincide.
        limits : only joints have them, so this raises.
        """
        _refuse_limits("add_slide", "Prismatic", limits)
        frames = TieFrames(pos=pos, quat=quat, angle=angle, pos_b=pos_b, quat_b=quat_b, angle_b=angle_b, axis=axis)
        return self._add_tie("slide", a, b, frames, softness, collide, name)

    def add_distance(
        self, a: BodyKey, b: BodyKey, *, pos: Numbers | None = None, pos_b: Numbers | None = None, length: Numbers | None = None,
        softness: Numbers = 0.0, collide: bool = True, name: str | None = None,
    ) -> str:  # fmt: skip
        """Keep the distance between a point of `a` and one of `b` (a rod without mass); return the name of the constraint.

        pos, pos_b : m [3], in the frames of a and b, by default their origins. length : m, defaults to the initial distance.
        softness, collide : as in `add_point`.
        """
        return self._add_tie("distance", a, b, TieFrames(pos=pos, pos_b=pos_b), softness, collide, name, length=length)

    def add_lock(
        self, a: BodyKey, b: BodyKey, *, x: bool = False, y: bool = False, z: bool = False, rx: bool = False, ry: bool = False,
        rz: bool = False, rotation: bool = False, pos: Numbers | None = None, quat: Numbers | None = None,
        angle: Numbers | None = None, pos_b: Numbers | None = None, quat_b: Numbers | None = None, angle_b: Numbers | None = None,
        softness: Numbers = 0.0, collide: bool = False, name: str | None = None,
    ) -> str:  # fmt: skip
        """Hold `b` against `a` in chosen directions only and return the name of the constraint.

        x, y, z : translations along the axes of frame a. rx, ry, rz : rotations about them. At least one. In a planar scene there
            are x, y and rotation.
        pos, quat, angle, pos_b, quat_b, angle_b, softness, collide : as in `add_weld`.
        """
        frames = TieFrames(pos=pos, quat=quat, angle=angle, pos_b=pos_b, quat_b=quat_b, angle_b=angle_b)
        chosen = {"x": x, "y": y, "z": z, "rx": rx, "ry": ry, "rz": rz, "rotation": rotation}
        return self._add_tie("lock", a, b, frames, softness, collide, name, chosen=chosen)

    def add_coupling(
        self, joint: str | int, other: str | int | None = None, *, dof: int = 0, other_dof: int = 0,
        ratio: Numbers | None = None, offset: Numbers | None = None, coefficients: Numbers | None = None,
        softness: Numbers = 0.0, name: str | None = None,
    ) -> str:  # fmt: skip
        """Let one coordinate of a joint follow one of another (a gear) and return the name: q_joint = offset + ratio * q_other.

        joint, other : named by joint or body; without `other` the coordinate is held: q_joint = offset.
        dof, other_dof : which coordinate of each; neither of a ball joint nor a rotation of a free one.
        ratio : default 1, rad or m per rad or m. offset : default 0, rad or m.
        coefficients : instead of both: up to 5 numbers c0, c1, ... of q_joint = c0 + c1 q_other + c2 q_other^2 + ...
        softness : static error per force, rad/(N m) or m/N; 0 is rigid.
        """
        name = self._joint_name(f"add_coupling({name!r}): ", name, f"coupling{len(self._parts.couplings)}")
        where = f"add_coupling({name!r}): "
        first = self._coordinate(where, "", joint, dof)
        second = (-1, -1) if other is None else self._coordinate(where, "other_", other, other_dof)
        if first == second:
            raise ValueError(f"{where}joint and other must not be the same coordinate, got dof {dof} of {joint!r} twice")
        numbers = {
            "coupling": coupling_numbers(where, other is None, ratio, offset, coefficients),
            "coupling_softness": checked(f"{where}softness", softness, (), NOT_NEGATIVE),
        }
        self._parts.couplings[name] = Coupling(*first, *second, numbers)
        return name

    def _add_tie(
        self, kind: str, a: BodyKey, b: BodyKey, given: TieFrames, softness: Numbers, collide: bool, name: str | None, *,
        length: Numbers | None = None, chosen: dict[str, bool] | None = None,
    ) -> str:  # fmt: skip
        count = sum(tie.kind == kind for tie in self._parts.ties.values())
        name = self._joint_name(f"add_{kind}({name!r}): ", name, f"{kind}{count}")
        where = f"add_{kind}({name!r}): "
        planar = self._parts.planar
        if chosen is None:
            locks, drives = (PLANAR_TIES if planar else TIES)[kind]
        else:
            locks, drives = choose_locks(where, planar, chosen), NO_AXIS
        if not isinstance(collide, bool):
            raise TypeError(f"{where}collide must be True or False, got {collide!r}")
        body_a, body_b = self._two_bodies(where, a, b)
        X_wa, X_wb = self._initial_pose(body_a), self._initial_pose(body_b)
        frames = given.read(where, kind, planar, X_wa, X_wb)
        if length is not None:
            kept = checked(f"{where}length", length, (), POSITIVE)
        else:
            kept = initial_distance(where, X_wa, X_wb, *frames) if kind == "distance" else stack(1.0)
        numbers = {
            "tie_pos": torch.stack([frame.pos for frame in frames]),
            "tie_quat": torch.stack([frame.quat for frame in frames]),
            "tie_length": kept,
            "tie_softness": checked(f"{where}softness", softness, (), NOT_NEGATIVE),
        }
        self._parts.ties[name] = Tie(kind, body_a, body_b, drives, locks, collide, numbers)
        return name

    def _joint_name(self, where: str, name: str | None, default: str) -> str:
        """Joints and constraints share their names, since actuators find both."""
        taken = ChainMap[str, Any](self._parts.joints, self._parts.ties, self._parts.couplings)
        return new_name(where, "constraint or joint", name, default, taken)

    def _two_bodies(self, where: str, a: BodyKey, b: BodyKey) -> tuple[int, int]:
        """The indices of a and b, which some joint must move against each other."""
        body_a = body_or_world(f"{where}a: unknown body", a, self._parts.index)
        body_b = body_or_world(f"{where}b: unknown body", b, self._parts.index)
        if body_a == body_b:
            raise ValueError(f"{where}a and b must be two bodies, or one and the world, got {a!r} and {b!r}")
        if held_by(self._parts.bodies, body_a) == held_by(self._parts.bodies, body_b):
            raise ValueError(f"{where}no joint moves a and b against each other, so nothing is to be held, got {a!r} and {b!r}")
        return body_a, body_b

    def _initial_pose(self, body: int) -> Pose:
        return initial_pose(self._parts.bodies, self._parts.poses, body)

    def _coordinate(self, where: str, prefix: str, joint: str | int, dof: int) -> tuple[int, int]:
        """A joint and its dof, which must have a coordinate; `prefix` : of the argument's name."""
        word = prefix.rstrip("_") or "joint"
        index = find(f"{where}{word}: unknown joint", joint, {**self._parts.index, **self._parts.joints})
        moving = self._parts.bodies[index].joint
        check_dof(f"{where}{prefix}dof", moving, dof)
        if not moving.has_coordinate(dof):
            kind = type(moving).__name__
            raise ValueError(
                f"{where}{prefix}dof must have a coordinate, a {kind} joint turns in space, got dof {dof} of {joint!r}"
            )
        return index, dof


def _refuse_limits(call: str, joint: str, limits: Numbers | None) -> None:
    """Joints have limits, constraints have none."""
    if limits is not None:
        raise NotImplementedError(
            f"{call}: constraints have no limits: hang one body on the other by its joint, "
            f"add_body(..., parent=..., joint={joint}(limits=...)), got limits {plain(limits)}"
        )
