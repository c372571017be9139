"""Angles of hinge and displacements of slide constraints, and their rates: encoders of robots in maximal coordinates.

With frames a and b, and z the axis of a:
    hinge   x = 2 atan2(u_z, w),  (w, u) = conj(quat_a) quat_b, w >= 0      dx/dt = z . (spin_b - spin_a)
    slide   x = z . d,  d = p_b - p_a                                      dx/dt = z . (v_b - v_a - spin_a x d)
The rates are those along the axis that is held; they are exact derivatives where the constraint is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.rotation import inverse, multiply, rotate
from costate.scene.codes import SLIDE_AXIS
from costate.sensors.places import Frames, frames, tie_places

if TYPE_CHECKING:
    from costate.sensors.reading import Reading


def _sides(reading: Reading, ties: list[int]) -> tuple[Frames, Frames, Tensor, Tensor]:
    """Frames a and b, their axes z, and which of them are slides."""
    a, b = (frames(reading, tie_places(reading.model, ties, side)) for side in (0, 1))
    slide = reading.constant(tuple(reading.model.tie_axis[i] == SLIDE_AXIS for i in ties), torch.bool)
    return a, b, rotate(a.quaternion, reading.constant((0.0, 0.0, 1.0))), slide


def tie_coordinates(reading: Reading, ties: list[int]) -> Tensor:
    """[*batch, n] rad (between -pi and pi) or m."""
    a, b, z, slide = _sides(reading, ties)
    turn = multiply(inverse(a.quaternion), b.quaternion)
    sign = torch.where(turn[..., 0] < 0, -1.0, 1.0).to(turn.dtype)
    angle = 2 * torch.atan2(sign * turn[..., 3], sign * turn[..., 0])
    return torch.where(slide, (z * (b.position - a.position)).sum(-1), angle)


def tie_rates(reading: Reading, ties: list[int]) -> Tensor:
    """[*batch, n] rad/s or m/s."""
    a, b, z, slide = _sides(reading, ties)
    linear = b.velocity - a.velocity - torch.linalg.cross(a.spin, b.position - a.position)
    return torch.where(slide, (z * linear).sum(-1), (z * (b.spin - a.spin)).sum(-1))
