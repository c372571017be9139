"""Positions and orientations as users give them, in space or in the plane, as frames of the engine.

A planar scene is the engine's world in the plane z = 0: a point (x, y) is (x, y, 0), an angle (rad, from x to y) turns about z.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from costate.scene.checks import DIRECTION, Rule, checked
from costate.scene.values import Numbers, plain, read, stack

ORIGIN = (0.0, 0.0, 0.0)
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


class Frame(NamedTuple):
    """A frame as it was given; float64 with graph."""

    pos: Tensor  # [3] m
    quat: Tensor  # [4] wxyz, of any length but zero
    angle: Tensor | None = None  # [] rad, in a planar scene: what quat is made of

    @property
    def pose(self) -> Tensor:
        """As coordinates of a body that moves freely: [7] in space, (x, y, angle) in the plane."""
        return torch.cat((self.pos, self.quat) if self.angle is None else (self.pos[:2], self.angle.reshape(1)))


def read_frame(where: str, planar: bool, pos: Numbers | None, quat: Numbers | None, angle: Numbers | None) -> Frame:
    """The frame at `pos`, turned by `quat` or in the plane by `angle`; None is nothing; `where` starts error messages."""
    at = point(f"{where}pos", planar, pos)
    turn = orientation(where, planar, quat, angle)
    return Frame(at, turn, number(f"{where}angle", angle) if planar else None)


def point(subject: str, planar: bool, value: Numbers | None) -> Tensor:
    """A position [3] (m) from 3 numbers, in a planar scene from 2; None is the origin; errors start with `subject`."""
    if value is None:
        return stack(ORIGIN)
    return lift(two_numbers(subject, value)) if planar else checked(subject, value, (3,))


def orientation(where: str, planar: bool, quat: Numbers | None, angle: Numbers | None, *, side: str = "") -> Tensor:
    """A quaternion [4] from one, in a planar scene from an angle; `where` starts error messages, `side` ends their words."""
    if planar:
        if quat is not None:
            raise ValueError(f"{where}quat{side} has no place in a planar scene, give angle{side} (rad), got {plain(quat)}")
        return about_z(number(f"{where}angle{side}", angle))
    if angle is not None:
        raise ValueError(f"{where}angle{side} is for planar scenes, here give quat{side}, got angle{side} {plain(angle)}")
    return checked(f"{where}quat{side}", UPRIGHT if quat is None else quat, (4,), DIRECTION)


def number(subject: str, value: Numbers | None) -> Tensor:
    """One number [], None is zero; errors start with `subject`."""
    return checked(subject, 0.0 if value is None else value, ())


def two_numbers(subject: str, value: Numbers, *rules: Rule) -> Tensor:
    """A vector [2] of the plane that keeps `rules`; errors start with `subject`."""
    given = read(subject, value)
    if given.shape != (2,):
        raise ValueError(f"{subject} must be 2 numbers in a planar scene, got {plain(given)}")
    return checked(subject, given, (2,), *rules)


def lift(vector: Tensor) -> Tensor:
    """[..., 2] -> [..., 3], in the plane z = 0."""
    return pad(vector, (0, 1))


def about_z(angle: Tensor) -> Tensor:
    """The quaternion [4] that turns by `angle` [] (rad) about z."""
    zero = torch.zeros_like(angle)
    return torch.stack((torch.cos(angle / 2), zero, zero, torch.sin(angle / 2)))
