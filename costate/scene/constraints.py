"""Equality constraints: ties between two frames, and couplings of two joint coordinates, as rows of the parameter fields.

A tie holds frame a, on body a, and frame b, on body b, together in some directions, its locks; the world counts as a body.
A coupling holds q1 = c0 + c1 q2 + c2 q2^2 + c3 q2^3 + c4 q2^4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.rotation import multiply, normalise
from costate.scene.body import Body
from costate.scene.checks import DIRECTION, TINY, checked
from costate.scene.codes import ALIGN, TURN
from costate.scene.forward import Pose, compose, relative
from costate.scene.frames import about_z, orientation, point, two_numbers
from costate.scene.values import Numbers, plain, read, stack

COEFFICIENTS = 5  # of a coupling


@dataclass(frozen=True)
class Tie:
    """A tie between frames on bodies a and b (-1 the world). `numbers` : rows of its fields with graph, frames [2, ...]."""

    kind: str
    a: int
    b: int
    axis: int
    locks: tuple[int, ...]
    collide: bool
    numbers: dict[str, Tensor]


@dataclass(frozen=True)
class Coupling:
    """One dof of a joint that follows one of another (-1: none). `numbers` : rows of its fields with graph."""

    joint: int
    dof: int
    other: int
    other_dof: int
    numbers: dict[str, Tensor]


def held_by(bodies: Sequence[Body], body: int) -> int:
    """The body that moves when `body` does: itself, or the one it is fixed to; -1 if none does."""
    while body >= 0 and bodies[body].joint.nv == 0:
        body = bodies[body].parent
    return body


def choose_locks(where: str, planar: bool, chosen: Mapping[str, bool]) -> tuple[int, ...]:
    """The locks of the chosen ones of x, y, z, rx, ry, rz, or x, y, rotation; `where` starts error messages."""
    words = ("x", "y", "rotation") if planar else ("x", "y", "z", "rx", "ry", "rz")
    for word, choice in chosen.items():
        if not isinstance(choice, bool):
            raise TypeError(f"{where}{word} must be True or False, got {choice!r}")
        if choice and word not in words:
            scene = "a planar scene" if planar else "a scene in space"
            raise ValueError(f"{where}{word} has no place in {scene}, choose from {', '.join(words)}, got {word}=True")
    if not any(chosen.values()):
        raise ValueError(f"{where}choose at least one of {', '.join(words)}, got none")
    if planar:
        return tuple(lock for lock, word in ((0, "x"), (1, "y"), (TURN + 2, "rotation")) if chosen[word])
    slides = [i for i, word in enumerate(("x", "y", "z")) if chosen[word]]
    turns = [r for r, word in enumerate(("rx", "ry", "rz")) if chosen[word]]
    if len(turns) == 3:
        turns = [TURN + r for r in turns]
    elif len(turns) == 2:
        free = 3 - sum(turns)  # both look at the free axis of b, which turning about it leaves alone
        turns = [ALIGN + 2 * r + (free - r - 1) % 3 for r in turns]
    else:
        turns = [ALIGN + 2 * r for r in turns]
    return (*slides, *turns)


@dataclass(frozen=True, kw_only=True)
class TieFrames:
    """What a user says about the frames of a tie: quat, quat_b and axis [3] in space; angle, angle_b and axis [2] in a plane."""

    pos: Numbers | None = None
    quat: Numbers | None = None
    angle: Numbers | None = None
    pos_b: Numbers | None = None
    quat_b: Numbers | None = None
    angle_b: Numbers | None = None
    axis: Numbers | None = None

    def read(self, where: str, kind: str, planar: bool, X_wa: Pose, X_wb: Pose) -> tuple[Pose, Pose]:
        """Frame a seen from body a, and frame b from body b, which are at X_wa and X_wb; `where` starts error messages.

        What is not given of frame b is where frame a is; but the points of a distance are apart, and points are not turned.
        """
        frame_a = Pose(point(f"{where}pos", planar, self.pos), normalise(orientation(where, planar, self.quat, self.angle)))
        frame_b = relative(X_wb, compose(X_wa, frame_a))
        if self.pos_b is not None or kind == "distance":
            frame_b = frame_b._replace(pos=point(f"{where}pos_b", planar, self.pos_b))
        if kind in ("point", "distance") or self.quat_b is not None or self.angle_b is not None:
            quat_b = normalise(orientation(where, planar, self.quat_b, self.angle_b, side="_b"))
            frame_b = frame_b._replace(quat=quat_b)
        turn = _tie_turn(where, kind, planar, self.axis)
        if turn is None:
            return frame_a, frame_b
        return frame_a._replace(quat=multiply(frame_a.quat, turn)), frame_b._replace(quat=multiply(frame_b.quat, turn))


def _tie_turn(where: str, kind: str, planar: bool, axis: Numbers | None) -> Tensor | None:
    """How both frames are turned, so that their z is the axis of a hinge or slide; `where` starts error messages.

    In a plane z of a distance lies in it, too: the direction in which it pushes where it has become zero.
    """
    if kind == "distance" and planar:
        return _z_along(stack((1.0, 0.0)))
    if kind not in ("hinge", "slide"):
        return None
    if not planar:
        return _z_to(checked(f"{where}axis", (0.0, 0.0, 1.0) if axis is None else axis, (3,), DIRECTION))
    if kind == "slide":
        return _z_along(two_numbers(f"{where}axis", (1.0, 0.0) if axis is None else axis, DIRECTION))
    if axis is not None:
        raise ValueError(f"{where}axis of a hinge is z in a planar scene: leave it out, got {plain(axis)}")
    return None


def initial_distance(where: str, X_wa: Pose, X_wb: Pose, frame_a: Pose, frame_b: Pose) -> Tensor:
    """Between the origins of both frames (m); `where` starts error messages."""
    between = compose(X_wb, frame_b).pos - compose(X_wa, frame_a).pos
    if between.detach().norm() < TINY:
        raise ValueError(f"{where}length is missing: the points are initially at the same place, got distance 0.0")
    return between.norm()


def coupling_numbers(
    where: str, alone: bool, ratio: Numbers | None, offset: Numbers | None, coefficients: Numbers | None
) -> Tensor:
    """The five coefficients of a coupling; `alone`: there is no second joint; `where` starts error messages."""
    if coefficients is None:
        if alone and ratio is not None:
            raise ValueError(f"{where}ratio needs another joint, got {plain(ratio)}")
        c1 = checked(f"{where}ratio", 1.0 if ratio is None else ratio, ())
        given = torch.stack((checked(f"{where}offset", 0.0 if offset is None else offset, ()), c1))[: 1 if alone else 2]
    else:
        if ratio is not None or offset is not None:
            raise ValueError(f"{where}coefficients stand in place of ratio and offset, give one or the other, got {coefficients}")
        given = read(f"{where}coefficients", coefficients)
        if given.ndim != 1 or not 1 <= len(given) <= COEFFICIENTS:
            raise ValueError(f"{where}coefficients must be 1 to {COEFFICIENTS} numbers, got {plain(given)}")
        if alone and len(given) > 1:
            raise ValueError(f"{where}coefficients beyond the first need another joint, got {plain(given)}")
        given = checked(f"{where}coefficients", given, tuple(given.shape))
    return torch.cat((given, given.new_zeros(COEFFICIENTS - len(given))))


def _z_to(axis: Tensor) -> Tensor:
    """The quaternion that turns z to `axis` the short way, or x half round and then -z to `axis` if that is shorter."""
    x, y, z = normalise(axis).unbind()
    if z.detach() >= 0:
        return normalise(torch.stack((1 + z, -y, x, torch.zeros_like(z))))
    half_round = axis.new_tensor((0.0, 1.0, 0.0, 0.0))
    return multiply(normalise(torch.stack((1 - z, y, -x, torch.zeros_like(z)))), half_round)


def _z_along(axis: Tensor) -> Tensor:
    """The quaternion that turns z to `axis` [2] of the plane, x to z, and so y to the right of the axis."""
    half_round = axis.new_tensor((0.0, 0.5**0.5, 0.0, 0.5**0.5))  # about the middle of x and z
    return multiply(about_z(torch.atan2(axis[1], axis[0])), half_round)
