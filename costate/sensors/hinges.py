"""Angles of hinge and displacements of slide constraints, and their rates: encoders of robots in maximal coordinates.

With frames a and b, and z the axis of a:
    hinge   x = 2 atan2(u_z, w),  (w, u) = conj(quat_a) quat_b, w >= 0      dx/dt = z . (spin_b - spin_a)
    slide   x = z . d,  d = p_b - p_a                                      dx/dt = z . (v_b - v_a - spin_a x d)
The rates are those along the axis that is held; they are exact derivatives where the constraint is kept.
What is along z is given as a vector, of which the z in the axes of a is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.scene.codes import SLIDE_AXIS
from costate.sensors.places import Frames, Places, frames, tie_places
from costate.sensors.sensor import Part
from costate.sensors.turning import cross, quotient

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


def coordinates(model: Model, ties: Sequence[int], goes_to: Sequence[int]) -> tuple[list[Part], list[Places]]:
    """rad (between -pi and pi) or m of each tie, as that number of a sensor; and the places that are read for it."""
    return _parts(model, ties, goes_to, hinge=None, slide=lambda a, b: b.position - a.position)


def rates(model: Model, ties: Sequence[int], goes_to: Sequence[int]) -> tuple[list[Part], list[Places]]:
    """rad/s or m/s, likewise."""
    return _parts(
        model, ties, goes_to, hinge=lambda a, b: b.spin - a.spin,
        slide=lambda a, b: b.velocity - a.velocity - cross(a.spin, b.position - a.position),
    )  # fmt: skip


_Vector = Callable[[Frames, Frames], Tensor]


def _parts(
    model: Model, ties: Sequence[int], goes_to: Sequence[int], hinge: _Vector | None, slide: _Vector
) -> tuple[list[Part], list[Places]]:
    """Hinges and slides apart; without a vector a hinge reads its angle."""
    parts, asked = [], []
    for sliding, vector in ((False, hinge), (True, slide)):
        chosen = [(i, k) for i, k in zip(ties, goes_to, strict=True) if (model.tie_axis[i] == SLIDE_AXIS) == sliding]
        if chosen:
            a, b = (tie_places(model, [i for i, _ in chosen], side) for side in (0, 1))
            asked += [a, b]
            parts.append(_part(a, b, vector, [k for _, k in chosen]))
    return parts, asked


def _part(a: Places, b: Places, vector: _Vector | None, goes_to: Sequence[int]) -> Part:
    if vector is None:
        return Part(lambda reading: _angles(reading, a, b), goes_to=tuple(goes_to))
    along_z = tuple(x for k in goes_to for x in (-1, -1, k))
    return Part(lambda reading: vector(frames(reading, a), frames(reading, b)), a, along_z)


def _angles(reading: Reading, a: Places, b: Places) -> Tensor:
    """[*batch, n] rad."""
    between = quotient(frames(reading, a).quaternion, frames(reading, b).quaternion)
    w, _, _, z = torch.where(between[..., :1] < 0, -between, between).unbind(-1)
    return 2 * torch.atan2(z, w)
