"""Accelerations of points and bodies, from those of the joints.

Dof j, with axis (s, l) about the origin p_j of its own body, moves a point x of what hangs on it by L_j = l + s x (x - p_j).
It is fixed in a body f: its own; the parent for the slides of a planar joint; the world for the linear velocity of a free body.
Seen from f the point moves by u = dx/dt - (v_f + w_f x (x - p_f)), so that
    dx/dt = sum of L_j v_j,        d2x/dt2 = sum of L_j a_j + (w_f x L_j + s x u) v_j,
    spin  = sum of s v_j,          d spin/dt = sum of s a_j + (w_f x s) v_j        over the dofs between the body and the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.scene.joints import JOINTS, Free, Planar
from costate.sensors.places import Places, body_index, frames, join
from costate.sensors.reading import COLUMNS, Shared
from costate.sensors.tables import indices
from costate.sensors.turning import cross

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


def _fixed_in(model: Model) -> list[int]:
    """The body that the axis of each dof is fixed in, -1 the world."""
    bodies: list[int] = []
    for i, code in enumerate(model.joint_type):
        joint = JOINTS[code]
        slides = {Free: (-1,) * 3, Planar: (model.parent[i],) * 2}.get(joint, ())
        bodies += [*slides, *(i,) * (joint.nv - len(slides))]
    return bodies


class _Accelerations(Shared[Places, Tensor]):
    """Sums over all pairs of a place and a dof that moves it."""

    def __init__(self, model: Model, items: Sequence[Places]) -> None:
        super().__init__(model, items)
        self._counts, bodies = [len(x.row) for x in items], join(items).body
        on, held = model.dof_body, _fixed_in(model)
        pairs = [(i, j) for i, body in enumerate(bodies) if body >= 0 for j, b in enumerate(on) if b in model.ancestors[body]]
        self._place, self._dof = indices(i for i, _ in pairs), indices(j for _, j in pairs)
        self._on, self._held = (indices(body_index(model, [of[j] for _, j in pairs])) for of in (on, held))

    def _sums(self, reading: Reading, L: Tensor, L_dot: Tensor) -> Sequence[Tensor]:
        """L_j a_j + dL_j/dt v_j over the dofs of every place, per item."""
        dof = self._dof.like(reading.q)
        a, v = (x.index_select(-1, dof).unsqueeze(-1) for x in (reading.acceleration, reading.v))
        parts = torch.addcmul(L * a, L_dot, v)
        zero = parts.new_zeros(*reading.batch, sum(self._counts), 3)
        sums = zero.index_add(-2, self._place.like(reading.q), parts)
        return sums.split_with_sizes(self._counts, -2)


class PointAccelerations(_Accelerations):
    """Of the origins of places [*batch, n, 3], m/s^2, world axes, gravity not counted."""

    def compute(self, reading: Reading) -> Sequence[Tensor]:
        """The sums of d2x/dt2."""
        bodies, S = reading.motion
        dof, on, held, place = (x.like(reading.q) for x in (self._dof, self._on, self._held, self._place))
        at = [frames(reading, x) for x in self.items]
        x, x_dot = (_joined(of).index_select(-2, place) for of in ([y.position for y in at], [y.velocity for y in at]))
        s, l = S.index_select(-2, dof).split_with_sizes((3, 3), -1)
        p_f, _, w_f, v_f = bodies.index_select(-2, held).split_with_sizes(COLUMNS, -1)
        L = l + cross(s, x - bodies[..., :3].index_select(-2, on))
        u = x_dot - v_f - cross(w_f, x - p_f)
        return self._sums(reading, L, cross(w_f, L) + cross(s, u))


class AngularAccelerations(_Accelerations):
    """Of places [*batch, n, 3], rad/s^2, world axes."""

    def compute(self, reading: Reading) -> Sequence[Tensor]:
        """The sums of d spin/dt."""
        s = reading.bodies.S[..., :3].index_select(-2, self._dof.like(reading.q))
        w_f = reading.bodies.spin.index_select(-2, self._held.like(reading.q))
        return self._sums(reading, s, cross(w_f, s))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), -2)
