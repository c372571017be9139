"""Functions of one instant: kinematics, mass matrix, inverse and forward dynamics, energy, momentum.

All take any leading batch dimensions, which broadcast against each other and against params.batch_shape; torch in, torch out,
differentiable in every argument and parameter; numpy in, numpy out. Units are SI and radians; spatial vectors are angular first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from costate import batch as b
from costate._native.cpu import Engine, Op
from costate.autodiff.torch import instant, transforming
from costate.devices import constant, field, index
from costate.rotation import inverse, multiply, normalise, rotate, symmetric
from costate.scene import Model, Params


class Arg(NamedTuple):
    """One argument of a function of an instant."""

    value: Any  # torch, numpy, or None where it is optional
    size: tuple[int, ...]  # its shape in one world


def call(
    model: Model, op: Op, args: dict[str, Arg], params: Params | None = None, engine: Engine | None = None
) -> tuple[tuple[int, ...], tuple[Tensor, ...]]:
    """Check, flatten, run: the batch shape and the outputs [worlds, n]. The first argument's dtype and device hold for all.

    engine : of the same structure as the model's own, in its place.
    """
    first = b.tensor(*next((name, arg.value, arg.size) for name, arg in args.items()), None)
    dtype, device = first.dtype, first.device
    given = {name: b.tensor(name, arg.value, arg.size, dtype, device) for name, arg in args.items() if arg.value is not None}
    b.check_values(model, **given)
    shapes: dict[str, tuple[int, ...]] = {name: x.shape[: x.ndim - len(args[name].size)] for name, x in given.items()}
    theta = () if params is None else (b.theta(model, params, dtype, device),)
    if theta:
        shapes["params"] = theta[0].shape[:-1]
    batch = b.broadcast(shapes)
    flat = [b.rows(given[name], batch, arg.size) if name in given else None for name, arg in args.items()]
    return batch, instant(engine or model.engine, op, *flat, *(b.theta_rows(x, batch) for x in theta))


def like(x: Any, result: Tensor) -> Any:
    """`result` as numpy where x is."""
    return b.to_numpy(result) if b.is_numpy(x) else result


def mass_matrix(model: Model, q: Any, params: Params | None = None) -> Any:
    """The mass matrix M(q) [..., nv, nv], armature included, of q [..., nq]."""
    batch, (M,) = call(model, Op.MASS_MATRIX, {"q": Arg(q, (model.nq,))}, b.check_params(model, params))
    return like(q, M.reshape(*batch, model.nv, model.nv))


def inverse_dynamics(model: Model, q: Any, v: Any, a: Any, params: Params | None = None, *, external: Any = None) -> Any:
    """Joint forces tau [..., nv] that give the accelerations a [..., nv]:  tau = M a + c + D v + K (q - rest) - J^T external.

    external : [..., nb, 6], torque (N m) and force (N) at each body's centre of mass, world axes; planar models [..., nb, 3],
        (fx, fy, torque).
    """
    named = {
        "q": Arg(q, (model.nq,)),
        "v": Arg(v, (model.nv,)),
        "a": Arg(a, (model.nv,)),
        "external": Arg(b.wrenches(model, external, None), (model.nb, 6)),
    }
    batch, (tau,) = call(model, Op.JOINT_FORCES, named, b.check_params(model, params))
    return like(q, tau.reshape(*batch, model.nv))


def forward_dynamics(model: Model, q: Any, v: Any, tau: Any, params: Params | None = None, *, external: Any = None) -> Any:
    """Accelerations a [..., nv] under the joint forces tau [..., nv]; the inverse of inverse_dynamics."""
    named = {
        "q": Arg(q, (model.nq,)),
        "v": Arg(v, (model.nv,)),
        "tau": Arg(tau, (model.nv,)),
        "external": Arg(b.wrenches(model, external, None), (model.nb, 6)),
    }
    batch, (a,) = call(model, Op.ACCELERATION, named, b.check_params(model, params))
    return like(q, a.reshape(*batch, model.nv))


def constraint_error(model: Model, q: Any, params: Params | None = None) -> Any:
    """Errors [..., ne] of all equality rows in q [..., nq], m or rad, zero where kept; model.equality_names names them."""
    batch, (phi,) = call(model, Op.ERRORS, {"q": Arg(q, (model.nq,))}, b.check_params(model, params))
    return like(q, phi.reshape(*batch, model.ne))


def project(model: Model, q: Any, params: Params | None = None, *, iterations: int = 10) -> Any:
    """q [..., nq] put on the model's constraints by Newton steps, each the smallest in the metric of the mass matrix.

    For putting together the initial state of a mechanism whose parts were given roughly. Constraints with softness count for
    nothing. Check `constraint_error` of the result: constraints that contradict each other cannot be kept.
    """
    if not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1:
        raise ValueError(f"iterations must be a positive int, got {iterations!r}")
    params, new = b.check_params(model, params), q
    for _ in range(iterations):
        batch, (new,) = call(model, Op.SETTLE, {"q": Arg(new, (model.nq,))}, params)
        new = new.reshape(*batch, model.nq)
    return like(q, new)


def integrate(model: Model, q: Any, dq: Any) -> Any:
    """q [..., nq] moved by the tangent vector dq [..., nv]; quaternions turn by a rotation vector in body axes."""
    batch, (out,) = call(model, Op.INTEGRATE, {"q": Arg(q, (model.nq,)), "dq": Arg(dq, (model.nv,))})
    return like(q, out.reshape(*batch, model.nq))


def difference(model: Model, q1: Any, q2: Any) -> Any:
    """The tangent vector [..., nv] with integrate(q1, difference(q1, q2)) = q2, the shorter way round."""
    batch, (out,) = call(model, Op.DIFFERENCE, {"q1": Arg(q1, (model.nq,)), "q2": Arg(q2, (model.nq,))})
    return like(q1, out.reshape(*batch, model.nv))


class Kinematics(NamedTuple):
    """Where bodies and sites are and how they move; world axes, m, rad/s, m/s.

    velocity is angular first, then linear, of the body's or site's own origin.
    """

    position: Any  # [..., nb, 3]
    quaternion: Any  # [..., nb, 4] wxyz
    velocity: Any  # [..., nb, 6]
    site_position: Any  # [..., ns, 3]
    site_quaternion: Any  # [..., ns, 4]
    site_velocity: Any  # [..., ns, 6]


def poses(model: Model, q: Any, v: Any, params: Params) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """position, quaternion, velocity of every body, and S [..., nv, 6] of every dof about its own body's origin."""
    if v is None:
        q = b.tensor("q", q, (model.nq,), None)
        v = q.new_zeros(model.nv)
    batch, (pose, velocity, S) = call(model, Op.POSES, {"q": Arg(q, (model.nq,)), "v": Arg(v, (model.nv,))}, params)
    pose = pose.reshape(*batch, model.nb, 7)
    return pose[..., :3], pose[..., 3:], velocity.reshape(*batch, model.nb, 6), S.reshape(*batch, model.nv, 6)


def kinematics(model: Model, q: Any, v: Any = None, params: Params | None = None) -> Kinematics:
    """Poses and velocities of all bodies and sites at q [..., nq], v [..., nv] (default: at rest)."""
    params = b.check_params(model, params)
    position, quaternion, velocity, _ = poses(model, q, v, params)
    on = index(model.site_body, position)
    if model.ns and not (transforming() or b.capturing(position)) and not _sites_ok(params):
        params.check()
    local, turn = field(params, "site_pos", position), normalise(field(params, "site_quat", position))
    arm = rotate(quaternion[..., on, :], local)
    spin = velocity[..., on, :3]
    linear = velocity[..., on, 3:] + torch.linalg.cross(spin, arm)
    site_position = position[..., on, :] + arm
    out = Kinematics(
        position, quaternion, velocity, site_position, multiply(quaternion[..., on, :], turn), torch.cat((spin, linear), -1)
    )
    return Kinematics(*map(b.to_numpy, out)) if b.is_numpy(q) else out


def _sites_ok(params: Params) -> bool:
    pos, quat = params["site_pos"].detach(), params["site_quat"].detach()
    return bool(pos.isfinite().all() & quat.isfinite().all() & (quat != 0).any(-1).all())


def point_jacobian(model: Model, q: Any, body: int | str, point: Any = (0.0, 0.0, 0.0), params: Params | None = None) -> Any:
    """J [..., 6, nv]: velocity (angular first, world axes) of the body-fixed `point` [..., 3] (body frame, m) per unit of v.

    In planar models the point may be 2 numbers.
    """
    on = model.body(body) if isinstance(body, str) else body
    if not 0 <= on < model.nb:
        raise ValueError(f"body must be a name or an index below {model.nb}, got {body!r}")
    position, quaternion, _, S = poses(model, q, None, b.check_params(model, params))
    local = torch.as_tensor(point, dtype=position.dtype, device=position.device)
    local = pad(local, (0, 1)) if model.planar and local.shape[-1:] == (2,) else local
    if local.shape[-1:] != (3,):
        raise ValueError(f"point must have shape [..., 3], got {tuple(local.shape)}")
    b.check_values(model, point=local)
    b.broadcast({"q": position.shape[:-2], "point": local.shape[:-1]})
    at = position[..., on, :] + rotate(quaternion[..., on, :], local)
    dof_body = model.dof_body
    arm = at.unsqueeze(-2) - position[..., index(dof_body, position), :]
    linear = S[..., 3:] + torch.linalg.cross(S[..., :3].expand(*arm.shape[:-1], 3), arm)
    moves = constant(tuple(d in model.ancestors[on] for d in dof_body), at, torch.bool).unsqueeze(-1)
    J = torch.where(moves, torch.cat((S[..., :3].expand_as(linear), linear), -1), at.new_zeros(()))
    return like(q, J.transpose(-1, -2))


class _Masses(NamedTuple):
    mass: Tensor  # [..., nb, 1]
    com: Tensor  # [..., nb, 3] world
    spin: Tensor  # [..., nb, 3]
    velocity: Tensor  # [..., nb, 3] of the centre of mass
    angular_momentum: Tensor  # [..., nb, 3] about the body's own centre of mass


def _masses(model: Model, q: Any, v: Any, params: Params) -> _Masses:
    """Centres of mass, their velocities and the bodies' own angular momenta."""
    position, quaternion, velocity, _ = poses(model, q, v, params)
    mass, com, inertia = (field(params, name, position) for name in ("mass", "com", "inertia"))
    arm = rotate(quaternion, com)
    spin = velocity[..., :3]
    linear = velocity[..., 3:] + torch.linalg.cross(spin, arm)
    inner = (symmetric(inertia) @ rotate(inverse(quaternion), spin).unsqueeze(-1)).squeeze(-1)
    return _Masses(mass.unsqueeze(-1), position + arm, spin, linear, rotate(quaternion, inner))


def energy(model: Model, q: Any, v: Any, params: Params | None = None) -> tuple[Any, Any]:
    """Kinetic (armature included) and potential (gravity and joint springs) energy [...], J."""
    params = b.check_params(model, params)
    m = _masses(model, q, v, params)
    rate = b.tensor("v", v, (model.nv,), m.com.dtype)
    kinetic = 0.5 * ((m.mass * m.velocity.square()).sum((-1, -2)) + (m.spin * m.angular_momentum).sum((-1, -2)))
    kinetic = kinetic + 0.5 * (field(params, "armature", rate) * rate.square()).sum(-1)
    gravity = -(m.mass * m.com * field(params, "gravity", rate).unsqueeze(-2)).sum((-1, -2))
    rest = field(params, "rest", rate)
    stretch = difference(model, rest, b.tensor("q", q, (model.nq,), rate.dtype))
    stiffness = field(params, "stiffness", rate)[..., index(model.dof_body, rate)]
    potential = gravity + 0.5 * (stiffness * stretch.square()).sum(-1)
    return like(q, kinetic), like(q, potential)


def centre_of_mass(model: Model, q: Any, params: Params | None = None) -> Any:
    """Centre of mass of all bodies [..., 3], m, world."""
    m = _masses(model, q, None, b.check_params(model, params))
    return like(q, (m.mass * m.com).sum(-2) / m.mass.sum(-2))


def momentum(model: Model, q: Any, v: Any, params: Params | None = None) -> Any:
    """Total momentum [..., 6]: angular about the common centre of mass (kg m^2/s), then linear (kg m/s); world axes.

    Armature has no place in space and is not counted.
    """
    m = _masses(model, q, v, b.check_params(model, params))
    centre = (m.mass * m.com).sum(-2, keepdim=True) / m.mass.sum(-2, keepdim=True)
    linear = m.mass * m.velocity
    arm, linear_b = torch.broadcast_tensors(m.com - centre, linear)
    angular = (m.angular_momentum + torch.linalg.cross(arm, linear_b)).sum(-2)
    return like(q, torch.cat((angular, linear.sum(-2).expand_as(angular)), -1))
