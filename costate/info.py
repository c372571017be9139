"""What a step tells besides the new state: contacts, joint rows, constraints, and how well they were solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from costate.autodiff.torch import ROW_WIDTH, SLOT_WIDTH, STATUS_WIDTH, transforming
from costate.devices import index
from costate.scene.codes import FIELD, GENERAL, MOTOR, PLANE, POSITION, SERVO, VELOCITY

if TYPE_CHECKING:
    from costate.scene import Model

EMPTY, SEPARATED, STICKING, SLIDING = range(4)  # states of a contact
NO_ROW, LOWER, FREE, UPPER = range(4)  # states of a joint row

_KINDS = {MOTOR: "motor", POSITION: "position", VELOCITY: "velocity", SERVO: "servo", GENERAL: "general"}
_SUMMED = (1, 5, 6, 10)  # numbers of the status that count steps or impacts; the others are the largest of all steps


class Status(NamedTuple):
    """How well the solves of a call went, per world: the worst or the sum over its steps and substeps."""

    numbers: Any  # [..., 11], in the order of the properties below

    def __repr__(self) -> str:
        if transforming():
            return f"Status({self.numbers!r})"
        x = np.asarray(self.numbers.cpu() if isinstance(self.numbers, Tensor) else self.numbers).reshape(-1, STATUS_WIDTH)
        most, solved = x.max(0, initial=0.0), int((x[:, 1] == 0).sum())
        tied = f", drift <= {most[8]:.3g}, contradiction <= {most[9]:.3g}" if most[8:10].any() else ""
        return (
            f"Status(converged in {solved} of {len(x)} worlds, residual <= {most[0]:.3g}, sweeps <= {most[2]:.0f}, contacts <= "
            f"{most[3]:.0f}, penetration <= {most[4]:.3g}, overflow in {int((x[:, 5] > 0).sum())} worlds{tied})"
        )

    @property
    def residual(self) -> Any:
        """[...] largest natural residual, m/s: how far the speeds of the rows are from those that were asked for."""
        return self.numbers[..., 0]

    @property
    def unconverged(self) -> Any:
        """[...] int, how many steps had a residual above the tolerance."""
        return _int(self.numbers[..., 1])

    @property
    def sweeps(self) -> Any:
        """[...] int, most sweeps of a step; or passes, where rounds alternate."""
        return _int(self.numbers[..., 2])

    @property
    def contacts(self) -> Any:
        """[...] int, most contacts of a step."""
        return _int(self.numbers[..., 3])

    @property
    def penetration(self) -> Any:
        """[...] deepest penetration, m, 0 or more."""
        return self.numbers[..., 4]

    @property
    def overflow(self) -> Any:
        """[...] int, how many steps had more contacts than max_contacts; those behind were dropped."""
        return _int(self.numbers[..., 5])

    @property
    def exact_fallback(self) -> Any:
        """[...] int, how many steps did not converge and have the "exact" gradient, though "implicit" was asked for."""
        return _int(self.numbers[..., 6])

    @property
    def wanted(self) -> Any:
        """[...] int, most contacts that a step would have had without max_contacts."""
        return _int(self.numbers[..., 7])

    @property
    def drift(self) -> Any:
        """[...] largest error of a constraint without softness at the start of a step, m or rad."""
        return self.numbers[..., 8]

    @property
    def contradiction(self) -> Any:
        """[...] largest speed, m/s or rad/s, by which constraints without softness are missed: they contradict each other."""
        return self.numbers[..., 9]

    @property
    def converged(self) -> Any:
        """[...] bool: the residual of every step was below the tolerance."""
        return self.unconverged == 0

    @property
    def impacts(self) -> Any:
        """[...] int, how many impacts split a step (impacts="toi")."""
        return _int(self.numbers[..., 10])


def join_status(status: list[Tensor]) -> Tensor:
    """The status [worlds, 11] of several calls as that of one."""
    if len(status) == 1:
        return status[0]
    all_ = torch.stack(status)
    worst = all_.amax(0)
    summed = index(_SUMMED, all_)
    worst[..., summed] = all_[..., summed].sum(0)
    return worst


def _int(x: Any) -> Any:
    return x.long() if isinstance(x, Tensor) else x.astype(np.int64)


class Contacts(NamedTuple):
    """The contacts of one step, in K = max_contacts slots; slots that hold none are empty. World axes, at the start of the step.

    Only the impulse carries gradients. For a differentiable gap or point use the state itself.
    """

    gap: Any  # [..., K] m, negative: penetration
    point: Any  # [..., K, 3] m
    normal: Any  # [..., K, 3] unit, from shape a to shape b
    impulse: Any  # [..., K, 3] on shape b, N s; on shape a its negative; differentiable
    shape_a: Any  # [..., K] int, index in model.shape_names, -1: empty
    shape_b: Any  # [..., K]
    candidate: Any  # [..., K] int, which of the points that may touch, -1: empty
    active: Any  # [..., K] bool: the slot holds a contact
    state: Any  # [..., K] int: 0 empty, 1 separated (no impulse), 2 sticking, 3 sliding
    distance: Any  # [..., K] m/s, how far from changing its state


class Rows(NamedTuple):
    """Joint rows of one step: dry friction, then actuators, then joint limits; sim.row_names names them.

    Actuators that are rows: servos, springs and dampers with force limits, and all on a constraint. Of these a motor without
    gains has nothing to give way: both of its bounds are its force.
    """

    impulse: Any  # [..., n] N s or N m s
    state: Any  # [..., n] int: 0 no row (a limit that is far away), 1 at its lower bound, 2 between them, 3 at its upper bound
    distance: Any  # [..., n] m/s or rad/s, how far from changing its state


class Constraints(NamedTuple):
    """The rows of all constraints of one step, in the order of model.equality_names; without gradient."""

    impulse: Any  # [..., ne] on body b, or the first coordinate of a coupling, along or about the row's axis; N s or N m s
    error: Any  # [..., ne] at the start of the step, m or rad


class Info(NamedTuple):
    """What step(..., info=True) tells besides the new state."""

    acceleration: Any  # [..., nv], (v+ - v) / dt, differentiable
    diverged: Any  # [...] bool: the step was not finite, the world was held where it was
    contacts: Contacts
    rows: Rows
    constraints: Constraints
    status: Status


class Detail(NamedTuple):
    """What the engine writes about a step, flat: [worlds, n]."""

    status: Tensor
    contacts: Tensor
    ids: Tensor
    rows: Tensor


def candidate_shapes(model: Model, device: torch.device | None = None) -> Tensor:
    """[candidates + 1, 2] int: the two shapes of every point that may touch; the last entry, index -1, is (-1, -1).

    Where a plane or a heightfield is one of them it comes first, as in the engine. Made once for a model and device (None: cpu).
    """
    kept = model.__dict__.setdefault("_candidate_shapes", {})
    cached = kept.get(device)
    if cached is None:
        shapes = np.full((len(pair := _candidate_pairs(model)) + 1, 2), -1, np.int64)
        shapes[:-1] = model.pairs[pair]
        static = np.isin(model.shape_type, (PLANE, FIELD))
        behind = np.append(static[shapes[:-1, 1]], False)  # the static one is the second: they change places
        shapes[behind] = shapes[behind, ::-1]
        with torch.inference_mode(False):  # whoever comes first must not decide for others
            cached = kept[device] = torch.from_numpy(shapes).to(device or "cpu")
    return cached


def contact_names(model: Model, candidates: np.ndarray) -> list[str]:
    """Of these points that may touch: their shapes, and a number where the two may touch in several."""
    pair = _candidate_pairs(model)
    # a point's number is its rank among the points of its pair
    order = np.argsort(pair, kind="stable")
    count = np.bincount(pair, minlength=len(model.pairs))
    rank = np.empty_like(pair)
    rank[order] = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    shapes, names = candidate_shapes(model)[:-1].numpy()[candidates], model.shape_names
    several = count[pair[candidates]] > 1
    return [
        f"{names[b]} on {names[a]} [{number}]" if numbered else f"{names[b]} on {names[a]}"
        for (a, b), number, numbered in zip(shapes.tolist(), rank[candidates].tolist(), several.tolist(), strict=True)
    ]


def _candidate_pairs(model: Model) -> np.ndarray:
    """[candidates] which entry of model.pairs each point that may touch belongs to."""
    return np.array(model.engine.tree.candidate_pair, dtype=np.int64)


def row_names(model: Model) -> tuple[str, ...]:
    """Of every joint row, in the order of Rows."""
    dry = (f"dry friction of {_dof_name(model, dof)}" for dof in model.dry_dof)
    driven = (_motor_name(model, k) for k in row_motors(model))
    limit = (f"limit of {model.joint_names[body]}" for body in model.limit_body)
    return (*dry, *driven, *limit)


def row_motors(model: Model) -> list[int]:
    """The actuators that are rows: a plain motor's force on a joint is clipped, springs without limits are part of H."""
    motors = zip(model.motor_tie, model.bound, model.actuator_type, strict=True)
    return [k for k, (tie, bound, kind) in enumerate(motors) if tie >= 0 or (bound >= 0 and kind != MOTOR)]


def _motor_name(model: Model, k: int) -> str:
    kind, name = model.actuator_type[k], model.motor_names[k]
    limited = model.bound[k] >= 0 and kind in (POSITION, VELOCITY, GENERAL)
    return f"force limit of {name}" if limited else f"{_KINDS[kind]} {name}"


def _dof_name(model: Model, dof: int) -> str:
    body = model.dof_body[dof]
    alone = model.dof_body.count(body) == 1
    return model.joint_names[body] if alone else f"{model.joint_names[body]}[{dof - model.v_address[body]}]"


def contacts_of(model: Model, detail: Detail, batch: tuple[int, ...]) -> tuple[Contacts, Rows, Constraints]:
    """The flat numbers of a step by their names, in the batch's shape."""
    slots = detail.contacts.reshape(*batch, -1, SLOT_WIDTH)
    # only the impulse has a gradient: what else is written beside it must not seem to have one, of zero
    plain = slots.detach()
    ids = detail.ids.reshape(*batch, -1).long()
    shapes = candidate_shapes(model, ids.device)[ids]
    contacts = Contacts(
        plain[..., 0], plain[..., 1:4], plain[..., 4:7], slots[..., 7:10], shapes[..., 0], shapes[..., 1], ids, ids >= 0,
        plain[..., 10].long(), plain[..., 11],
    )  # fmt: skip
    rows = detail.rows.reshape(*batch, -1, ROW_WIDTH)
    joints, ties = rows[..., : (n := model.engine.tree.rows), :], rows[..., n:, :]
    return contacts, Rows(joints[..., 0], joints[..., 1].long(), joints[..., 2]), Constraints(ties[..., 0], ties[..., 2])
