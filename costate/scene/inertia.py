"""Rotational inertia: six numbers (xx, yy, zz, xy, xz, yz) and 3x3 matrices, for numpy and torch alike."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Array = TypeVar("Array", np.ndarray, Tensor)


def to_matrix(six: Array) -> Array:
    """[..., 6] -> symmetric [..., 3, 3]."""
    return six[..., [0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(*six.shape[:-1], 3, 3)


def to_six(matrix: Array) -> Array:
    """Symmetric [..., 3, 3] -> [..., 6]."""
    return matrix.reshape(*matrix.shape[:-2], 9)[..., [0, 4, 8, 1, 2, 5]]


def lamina(moment: Tensor) -> Tensor:
    """[...] -> [..., 6]: the inertia (kg m^2) of a body in the plane, of which only that about z (`moment`) counts.

    About x and y it is half of it, as of a round plate.
    """
    half, zero = moment / 2, torch.zeros_like(moment)
    return torch.stack((half, half, moment, zero, zero, zero), -1)


def rotation(quat: Tensor) -> Tensor:
    """Rotation matrix [3, 3] of a quaternion wxyz [4] of any length but zero."""
    w, x, y, z = quat / quat.norm()
    rows = (
        torch.stack((1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y))),
        torch.stack((2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x))),
        torch.stack((2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y))),
    )
    return torch.stack(rows)


def point_inertia(mass: Tensor, arm: Tensor) -> Tensor:
    """Inertia [3, 3] (kg m^2) of a point of `mass` (kg) at `arm` [3] (m): the parallel axis term."""
    return mass * (arm.dot(arm) * torch.eye(3, dtype=arm.dtype) - torch.outer(arm, arm))
