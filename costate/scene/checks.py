"""What values are physical: one set of rules for the numbers given to `Scene` and for whole `Params`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from torch import Tensor

from costate.scene.codes import DISTANCE, FIELD, GENERAL, MOTOR, POSITION, SERVO, SIZE_COUNTS, VELOCITY, WITH_VERTICES
from costate.scene.fields import PARAM_FIELDS
from costate.scene.inertia import to_matrix
from costate.scene.joints import JOINTS, Ball, Prismatic, Revolute
from costate.scene.values import Numbers, numbers, plain

if TYPE_CHECKING:
    from costate.scene.model import Model
    from costate.scene.params import Params

Values: TypeAlias = dict[str, np.ndarray]  # parameter field -> [*batch, *shape]
Owners: TypeAlias = dict[str, list[str]]  # kind of field -> what each of its rows belongs to, in words

TINY = 1e-6  # axes and quaternions shorter than this have no direction
ANGLE_SLACK = 1e-6  # relative; pi in float32 lies above pi
TRIANGLE_SLACK = 1e-9  # relative; a thin plate lies exactly on the bound, and rounding must not refuse it


@dataclass(frozen=True)
class Rule:
    """A condition, and the mask of the entries (or rows of the last axis) that break it."""

    text: str
    broken: Callable[[np.ndarray], np.ndarray]


def _moments(six: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(to_matrix(six).astype(np.float64))


def _indefinite(six: np.ndarray) -> np.ndarray:
    moments = _moments(six)
    return moments[..., 0] <= 4 * np.finfo(six.dtype).eps * np.abs(moments[..., 2])


def _not_triangle(six: np.ndarray) -> np.ndarray:
    moments = _moments(six)
    slack = max(TRIANGLE_SLACK, 10 * np.finfo(six.dtype).eps)
    return moments[..., 0] + moments[..., 1] < moments[..., 2] * (1 - slack)


FINITE = Rule("must be finite", lambda x: ~np.isfinite(x))
POSITIVE = Rule("must be positive", lambda x: ~(x > 0))
NOT_NEGATIVE = Rule("must not be negative", lambda x: x < 0)
NONZERO = Rule("must not be zero", lambda x: x == 0)
ZERO = Rule("must be zero, the body was declared massless", lambda x: x != 0)
NO_GAIN = Rule("must be zero for this type of actuator", lambda x: x != 0)
NO_COORDINATE = Rule("must be zero where a dof turns in space and has no coordinate to hold", lambda x: x != 0)
FRACTION = Rule("must lie between 0 and 1", lambda x: (x < 0) | (x > 1))
ANGLE = Rule("must be above 0 and at most pi", lambda x: ~(x > 0) | (x > pi * (1 + ANGLE_SLACK)))
ORDERED = Rule("must be in order, the lower not above the upper", lambda x: x[..., 0] > x[..., 1])
INCREASING = Rule("must be in order, the lower below the upper", lambda x: ~(x[..., 0] < x[..., 1]))
DIRECTION = Rule("must not be zero", lambda x: np.linalg.norm(x, axis=-1) < TINY)
DEFINITE = Rule("must be positive definite", _indefinite)
TRIANGLE = Rule("must keep the triangle inequality (no principal moment above the sum of the others)", _not_triangle)


def checked(subject: str, value: Numbers, shape: tuple[int, ...], *rules: Rule, fill: bool = False) -> Tensor:
    """`value` as a finite float64 tensor of `shape` that keeps `rules`; errors start with `subject`."""
    tensor = numbers(subject, value, shape, fill=fill)
    require(subject, tensor, FINITE, *rules)
    return tensor


def require(subject: str, tensor: Tensor, *rules: Rule) -> None:
    """Raise ValueError, naming `subject` and the value, where `tensor` breaks a rule."""
    values = tensor.detach().numpy()
    for rule in rules:
        if rule.broken(values).any():
            raise ValueError(f"{subject} {rule.text}, got {plain(tensor)}")


def check_params(params: Params) -> None:
    """Raise ValueError, naming field, owner, world and value, where `params` are not finite and physical."""
    model = params.model
    values = {name: tensor.detach().cpu().numpy() for name, tensor in params.items()}
    owners = _owners(params)
    massless = np.array(model.massless, dtype=bool)
    turning = [code in (Revolute.code, Prismatic.code) for code in model.joint_type]

    for field in PARAM_FIELDS:
        rows = values[field.name][..., None, :] if field.per == "world" else values[field.name]
        _judge(field.name, rows, owners[field.per], field.width, FINITE)
    _judge("mass", values["mass"], owners["body"], 1, POSITIVE, keep=~massless)
    if model.planar:
        _judge("inertia about z", values["inertia"][..., 2], owners["body"], 1, POSITIVE, keep=~massless)
    else:
        _judge("inertia", values["inertia"], owners["body"], 6, DEFINITE, TRIANGLE, keep=~massless)
    for name, width in (("mass", 1), ("inertia", 6)):
        _judge(name, values[name], owners["body"], width, ZERO, keep=massless)
    _judge("joint_axis", values["joint_axis"], owners["body"], 3, DIRECTION, keep=np.array(turning, dtype=bool))
    _judge("joint_quat", values["joint_quat"], owners["body"], 4, DIRECTION)
    _judge("site_quat", values["site_quat"], owners["site"], 4, DIRECTION)
    _judge("stiffness", values["stiffness"], owners["body"], 1, NOT_NEGATIVE)
    for name in ("damping", "armature"):
        _judge(name, values[name], owners["dof"], 1, NOT_NEGATIVE)
    for name, code, start in zip(model.joint_names, model.joint_type, model.q_address, strict=True):
        offset = JOINTS[code].quaternion
        if offset is not None:
            quat = values["rest"][..., None, start + offset : start + offset + 4]
            _judge("rest quaternion", quat, [f" of joint {name!r}"], 4, DIRECTION)
    _check_actuators(params, values, owners)
    _check_contacts(params, values, owners)
    _check_constraints(params, values, owners)


def _check_actuators(params: Params, values: Values, owners: Owners) -> None:
    """Gains and limits of actuators, limits and dry friction of joints."""
    model = params.model
    kind = np.array(model.actuator_type, dtype=int)
    for name, driving in (("kp", kind == POSITION), ("kd", kind == VELOCITY)):
        _judge(name, values[name], owners["motor"], 1, POSITIVE, keep=driving)
    _judge("kp", values["kp"], owners["motor"], 1, NOT_NEGATIVE, keep=kind == GENERAL)
    _judge("kd", values["kd"], owners["motor"], 1, NOT_NEGATIVE, keep=(kind == POSITION) | (kind == GENERAL))
    held = (np.array(model.motor_tie, dtype=int) >= 0) | (np.array(model.bound, dtype=int) >= 0)
    _judge("kp + kd", values["kp"] + values["kd"], owners["motor"], 1, POSITIVE, keep=held & (kind == GENERAL))
    turns = np.array([_turns(model, dof) for dof in model.motor_dof], dtype=bool)
    _judge("kp", values["kp"], owners["motor"], 1, NO_COORDINATE, keep=turns & (kind == GENERAL))
    for name, without in (("kp", (kind != POSITION) & (kind != GENERAL)), ("kd", (kind == MOTOR) | (kind == SERVO))):
        _judge(name, values[name], owners["motor"], 1, NO_GAIN, keep=without)
    for name in ("gain", "max_speed"):
        _judge(name, values[name], owners["servo"], 1, POSITIVE)
    rows = (kind == SERVO) | (np.array(model.motor_tie, dtype=int) >= 0)
    _judge("gear", values["gear"], owners["motor"], 1, NONZERO, keep=rows)
    for word, per in (("control", "clip"), ("force", "bound")):
        _judge(f"{word}_lower and {word}_upper", _paired(values, word), owners[per], 2, ORDERED)
    turning = np.array([model.joint_type[body] == Ball.code for body in model.limit_body], dtype=bool)
    _judge("limit_lower and limit_upper", _paired(values, "limit"), owners["limit"], 2, INCREASING, keep=~turning)
    _judge("limit_upper", values["limit_upper"], owners["limit"], 1, ANGLE, keep=turning)
    _judge("dry_friction", values["dry_friction"], owners["dry"], 1, NOT_NEGATIVE)


def _check_contacts(params: Params, values: Values, owners: Owners) -> None:
    """Frames, sizes and surfaces of the shapes that can touch."""
    _judge("shape_quat", values["shape_quat"], owners["shape"], 4, DIRECTION)
    used = np.arange(3) < np.array([SIZE_COUNTS[code] for code in params.model.shape_type], dtype=int)[:, None]
    size = np.where(used, values["shape_size"], 1.0)
    _judge("shape_size", size, owners["shape"], 3, POSITIVE, shown=values["shape_size"])
    for name in ("friction", "torsion", "rolling", "softness"):
        _judge(name, values[name], owners["shape"], 1, NOT_NEGATIVE)
    _judge("restitution", values["restitution"], owners["shape"], 1, FRACTION)


def _check_constraints(params: Params, values: Values, owners: Owners) -> None:
    """Frames, lengths and softness of ties and couplings."""
    _judge("tie_quat", values["tie_quat"], owners["frame"], 4, DIRECTION)
    kept = np.array([DISTANCE in locks for locks in params.model.tie_locks], dtype=bool)
    _judge("tie_length", values["tie_length"], owners["tie"], 1, POSITIVE, keep=kept)
    for per in ("tie", "coupling"):
        _judge(f"{per}_softness", values[f"{per}_softness"], owners[per], 1, NOT_NEGATIVE)


def _turns(model: Model, dof: int) -> bool:
    """Whether a dof (-1: none) has no coordinate of its own."""
    if dof < 0:
        return False
    body = model.dof_body[dof]
    return not JOINTS[model.joint_type[body]].has_coordinate(dof - model.v_address[body])


def _paired(values: Values, word: str) -> np.ndarray:
    """Lower and upper limits side by side [*batch, count, 2]."""
    return np.stack(np.broadcast_arrays(values[f"{word}_lower"], values[f"{word}_upper"]), -1)


def _owners(params: Params) -> Owners:
    """Who owns each row of each kind of field."""
    model = params.model
    joints = [(f" of joint {name!r}", JOINTS[code]) for name, code in zip(model.joint_names, model.joint_type, strict=True)]
    dofs = [owner for owner, joint in joints for _ in range(joint.nv)]
    shapes = [f" of shape {name!r}" for name in model.shape_names]
    motors = [f" of motor {name!r}" for name in model.motor_names]
    ties = [f" of constraint {name!r}" for name in model.tie_names]
    return {
        "world": [""],
        "body": [f" of body {name!r}" for name in model.body_names],
        "q": [owner for owner, joint in joints for _ in range(joint.nq)],
        "dof": dofs,
        "motor": motors,
        "servo": [motor for motor, kind in zip(motors, model.actuator_type, strict=True) if kind == SERVO],
        "general": [motor for motor, kind in zip(motors, model.actuator_type, strict=True) if kind == GENERAL],
        "clip": [motor for motor, index in zip(motors, model.clip, strict=True) if index >= 0],
        "bound": [motor for motor, index in zip(motors, model.bound, strict=True) if index >= 0],
        "limit": [joints[body][0] for body in model.limit_body],
        "dry": [dofs[dof] for dof in model.dry_dof],
        "shape": shapes,
        "vertex": _repeated(shapes, model, WITH_VERTICES, model.hull_vertices),
        "height": _repeated(shapes, model, (FIELD,), model.field_heights),
        "frame": [f" of frame {side}{tie}" for tie in ties for side in "ab"],
        "tie": ties,
        "coupling": [f" of constraint {name!r}" for name in model.coupling_names],
        "site": [f" of site {name!r}" for name in model.site_names],
    }


def _repeated(shapes: Sequence[str], model: Model, codes: Sequence[int], counts: Sequence[int]) -> list[str]:
    """The names of the shapes of some kinds, each as often as `counts` says."""
    chosen = [name for name, kind in zip(shapes, model.shape_type, strict=True) if kind in codes]
    return [name for name, count in zip(chosen, counts, strict=True) for _ in range(count)]


def _judge(
    name: str, values: np.ndarray, owners: Sequence[str], width: int, *rules: Rule, keep: np.ndarray | None = None,
    shown: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Hold values [*batch, count] (or [*batch, count, width]), owned by `owners`, to `rules` where `keep`.

    `shown` : what error messages show instead of the values.
    """
    if values.size == 0:
        return
    rows = values[..., None] if width == 1 else values
    for rule in rules:
        mask = rule.broken(values)
        mask = mask.reshape(*rows.shape[:-1], -1).any(-1)
        if keep is not None:
            mask = mask & keep
        if mask.any():
            *world, item = np.argwhere(mask)[0].tolist()
            value = plain((values if shown is None else shown)[(*world, item)])
            where = f" in world {world[0] if len(world) == 1 else tuple(world)}" if world else ""
            raise ValueError(f"params: {name}{owners[item]} {rule.text}, got {value}{where}")
