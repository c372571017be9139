"""Accelerations of bodies and points, from those of the joints.

Spatial vectors (angular, linear) about the origin of the tree's root body, held still in space at this instant:
    V_b = sum of S_j v_j,    A_b = sum of S_j a_j + (V_f x S_j) v_j     over the dofs j between b and the world,
where f is what S_j is fixed in: the dof's own body; the parent for the slides of a planar joint; the world for the linear
velocity of a free body. A point x of b accelerates by  A_lin + A_ang x (x - origin) + spin x velocity of the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from costate.scene.joints import JOINTS, Free, Planar
from costate.sensors.places import body_index

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.places import Frames
    from costate.sensors.reading import Reading

cross = torch.linalg.cross


class Accelerations(NamedTuple):
    """Spatial accelerations of all bodies and behind them of the world; `origin`: the points they are about."""

    angular: Tensor  # [*batch, nb + 1, 3] rad/s^2
    linear: Tensor  # [*batch, nb + 1, 3] m/s^2
    origin: Tensor  # [*batch, nb + 1, 3] m


class _Tables(NamedTuple):
    root: Tensor  # [nb + 1] root of each body's tree, the world's is the world
    on: Tensor  # [nv] body of each dof
    fixed_in: Tensor  # [nv] body that each S is fixed in, or the world
    moves: Tensor  # [nb, nv] 1 where a dof moves a body


def _tables(model: Model, device: torch.device) -> _Tables:
    """Made once for a model and a device."""
    known: dict[torch.device, _Tables] = model.__dict__.setdefault("_motion_tables", {})
    if device not in known:
        with torch.inference_mode(False):  # whoever comes first must not decide for others
            known[device] = _Tables(*(x.to(device) for x in _make_tables(model)))
    return known[device]


def _make_tables(model: Model) -> _Tables:
    root: list[int] = []
    for i, parent in enumerate(model.parent):
        root.append(i if parent < 0 else root[parent])
    fixed_in: list[int] = []
    for i, code in enumerate(model.joint_type):
        joint = JOINTS[code]
        slides = {Free: (-1,) * 3, Planar: (model.parent[i],) * 2}.get(joint, ())
        fixed_in += [*slides, *(i,) * (joint.nv - len(slides))]
    dof_body = model.dof_body
    moves = torch.tensor([[d in above for d in dof_body] for above in model.ancestors], dtype=torch.float64)
    lists = ([*root, -1], dof_body, fixed_in)
    above, on, held = (torch.tensor(body_index(model, bodies), dtype=torch.long) for bodies in lists)
    return _Tables(above, on, held, moves.reshape(model.nb, model.nv))


def accelerations(reading: Reading) -> Accelerations:
    """Of all bodies."""
    bodies, t, a = reading.bodies, _tables(reading.model, reading.q.device), reading.acceleration.unsqueeze(-1)
    origin = bodies.position.detach().index_select(-2, t.root)  # nothing depends on which point was chosen
    from_body = origin - bodies.position
    S_ang, S_lin = bodies.S.expand(*reading.batch, -1, -1).split(3, -1)
    S_lin = S_lin + cross(S_ang, from_body.index_select(-2, t.on))
    # what carries a dof is of the dof's own tree, or stands still: the same origin serves both
    spin = bodies.spin.index_select(-2, t.fixed_in)
    velocity = (bodies.velocity + cross(bodies.spin, from_body)).index_select(-2, t.fixed_in)
    v = reading.v.unsqueeze(-1)
    angular = S_ang * a + cross(spin, S_ang) * v
    linear = S_lin * a + (cross(spin, S_lin) + cross(velocity, S_ang)) * v
    sums = t.moves.to(v.dtype) @ torch.cat((angular, linear), -1)
    sums = torch.cat((sums, sums.new_zeros(*reading.batch, 1, 6)), -2)
    angular, linear = sums.split(3, -1)
    return Accelerations(angular, linear, origin)


def point_accelerations(reading: Reading, on: Tensor, at: Frames) -> Tensor:
    """Accelerations [*batch, n, 3] (m/s^2, world axes) of points on bodies, gravity not counted."""
    angular, linear, origin = (x.index_select(-2, on) for x in reading.once(accelerations))
    return linear + cross(angular, at.position - origin) + cross(at.spin, at.velocity)
