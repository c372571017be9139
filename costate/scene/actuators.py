"""Actuators: what drives one dof of a joint, as rows of the parameter fields.

With gear g, length L = g q and its rate, control u: the joint force is tau = g f, where
motor      f = u
position   f = kp (u - L) - kd dL/dt
velocity   f = kd (u - dL/dt)
u is first clipped to the control limits, and f kept within the force limits. Gains are integrated implicitly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from costate.scene.checks import NOT_NEGATIVE, ORDERED, POSITIVE, checked
from costate.scene.codes import POSITION, VELOCITY
from costate.scene.joints import Ball, Free, Joint
from costate.scene.values import Numbers, read


@dataclass(frozen=True)
class Actuator:
    """An actuator on `dof` of a joint. `numbers` maps each field it has to its value, float64 with graph."""

    joint: int
    dof: int
    code: int
    numbers: dict[str, Tensor]

    @property
    def clipped(self) -> bool:
        """Whether it has control limits."""
        return "control_lower" in self.numbers

    @property
    def bounded(self) -> bool:
        """Whether it has force limits."""
        return "force_lower" in self.numbers


def actuator_numbers(
    where: str,
    code: int,
    *,
    gear: Numbers,
    kp: Numbers,
    kd: Numbers,
    control_limits: Numbers | None,
    force_limits: Numbers | None,
) -> dict[str, Tensor]:
    """The fields of an actuator from what was given; `where` starts error messages."""
    numbers = {
        "gear": checked(f"{where}gear", gear, ()),
        "kp": checked(f"{where}kp", kp, (), POSITIVE if code == POSITION else NOT_NEGATIVE),
        "kd": checked(f"{where}kd", kd, (), POSITIVE if code == VELOCITY else NOT_NEGATIVE),
    }
    for word, limits in (("control", control_limits), ("force", force_limits)):
        if limits is not None:
            numbers[f"{word}_lower"], numbers[f"{word}_upper"] = both_limits(f"{where}{word}_limits", limits)
    return numbers


def both_limits(subject: str, value: Numbers) -> tuple[Tensor, Tensor]:
    """Lower and upper limit from both, or from one positive number that stands for plus and minus."""
    tensor = read(subject, value)
    if tensor.numel() == 1:
        size = checked(subject, tensor, (), POSITIVE)
        return -size, size
    lower, upper = torch.unbind(checked(subject, tensor, (2,), ORDERED))
    return lower, upper


def check_position(where: str, joint: Joint, dof: int) -> None:
    """A position needs a coordinate to hold: a rotation in space has three rates, but no three coordinates."""
    if isinstance(joint, Ball) or (isinstance(joint, Free) and dof >= 3):
        kind = type(joint).__name__
        raise ValueError(
            f"{where}dof {dof} of a {kind} joint turns in space and has no coordinate to hold; drive it with add_motor or "
            f"add_velocity, or stack revolute joints, got dof {dof}"
        )
