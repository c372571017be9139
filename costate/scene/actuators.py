"""Actuators: what drives one dof of a joint, or a hinge or slide constraint, as rows of the parameter fields.

With gear g, length L = g q (q the joint's coordinate, or the constraint's angle or displacement) and its rate, control u:
the joint force is tau = g f, where
motor      f = u
position   f = kp (u - L) - kd dL/dt
velocity   f = kd (u - dL/dt)
general    f = gain u + bias - kp L - kd dL/dt
servo      f, at most max_force, is what makes dL/dt at the end of the step gain (u - L), that at most max_speed
u is first clipped to the control limits, and f kept within the force limits. Gains are integrated implicitly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from costate.scene.checks import NONZERO, NOT_NEGATIVE, ORDERED, POSITIVE, checked, require
from costate.scene.codes import GENERAL, POSITION, SERVO, VELOCITY
from costate.scene.joints import Joint
from costate.scene.values import Numbers, read


@dataclass(frozen=True)
class Actuator:
    """An actuator on `dof` of a joint (-1: on a tie). `numbers` maps each field it has to its value, float64 with graph."""

    joint: int
    dof: int
    tie: int  # -1: on a joint
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
    kp: Numbers = 0.0,
    kd: Numbers = 0.0,
    gain: Numbers = 0.0,
    max_force: Numbers = 0.0,
    max_speed: Numbers = 0.0,
    bias: Numbers = 0.0,
    control_limits: Numbers | None = None,
    force_limits: Numbers | None = None,
) -> dict[str, Tensor]:
    """The fields of an actuator from what was given; `where` starts error messages.

    gain, max_force, max_speed : of a servo. gain, bias : of a general actuator.
    """
    numbers = {
        "gear": checked(f"{where}gear", gear, ()),
        "kp": checked(f"{where}kp", kp, (), POSITIVE if code == POSITION else NOT_NEGATIVE),
        "kd": checked(f"{where}kd", kd, (), POSITIVE if code == VELOCITY else NOT_NEGATIVE),
    }
    if code == SERVO:
        require(f"{where}gear", numbers["gear"], NONZERO)
        numbers["gain"] = checked(f"{where}gain", gain, (), POSITIVE)
        numbers["max_speed"] = checked(f"{where}max_speed", max_speed, (), POSITIVE)
        numbers["force_upper"] = checked(f"{where}max_force", max_force, (), NOT_NEGATIVE)
        numbers["force_lower"] = -numbers["force_upper"]
    if code == GENERAL:
        numbers["control_gain"] = checked(f"{where}gain", gain, ())
        numbers["control_bias"] = checked(f"{where}bias", bias, ())
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
    """A position needs a coordinate to hold."""
    if not joint.has_coordinate(dof):
        kind = type(joint).__name__
        raise ValueError(
            f"{where}dof {dof} of a {kind} joint turns in space and has no coordinate to hold; drive it with add_motor or "
            f"add_velocity, or stack revolute joints, got dof {dof}"
        )


def check_general(where: str, numbers: dict[str, Tensor], joint: Joint | None, dof: int) -> None:
    """What a general actuator's spring and damper need. joint : None on a constraint."""
    kp, kd = float(numbers["kp"]), float(numbers["kd"])
    if joint is not None and kp > 0:
        check_position(where, joint, dof)
    if kp + kd <= 0 and (joint is None or "force_lower" in numbers):
        subject = "on a constraint" if joint is None else "with force_limits"
        raise ValueError(f"{where}{subject} kp or kd must be positive, got kp {kp} and kd {kd}; add_motor needs neither")
