"""What a step tells besides the new state: contacts, joint rows, and how well they were solved; and warnings about it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from costate.autodiff.torch import ROW_WIDTH, SLOT_WIDTH, STATUS_WIDTH, outside_graphs, transforming
from costate.scene.codes import MOTOR

if TYPE_CHECKING:
    from costate.scene import Model

PLANE = 0  # model.shape_type of a plane
EMPTY, SEPARATED, STICKING, SLIDING = range(4)  # states of a contact
NO_ROW, LOWER, FREE, UPPER = range(4)  # states of a joint row

_SUMMED = [1, 5, 6]  # numbers of the status that count steps; the others are the largest of all steps


class Status(NamedTuple):
    """How well the solves of a call went, per world: the worst or the sum over its steps and substeps."""

    numbers: Any  # [..., 8], in the order of the properties below

    def __repr__(self) -> str:
        if transforming():
            return f"Status({self.numbers!r})"
        x = np.asarray(self.numbers).reshape(-1, STATUS_WIDTH)
        most, solved = x.max(0, initial=0.0), int((x[:, 1] == 0).sum())
        return (
            f"Status(converged in {solved} of {len(x)} worlds, residual <= {most[0]:.3g}, sweeps <= {most[2]:.0f}, contacts <= "
            f"{most[3]:.0f}, penetration <= {most[4]:.3g}, overflow in {int((x[:, 5] > 0).sum())} worlds)"
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
        """[...] int, most sweeps of a step."""
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
    def converged(self) -> Any:
        """[...] bool: the residual of every step was below the tolerance."""
        return self.unconverged == 0


def join_status(status: list[Tensor]) -> Tensor:
    """The status [worlds, 8] of several calls as that of one."""
    if len(status) == 1:
        return status[0]
    all_ = torch.stack(status)
    worst = all_.amax(0)
    worst[..., _SUMMED] = all_[..., _SUMMED].sum(0)
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
    """Joint rows of one step: dry friction, then force limits of actuators, then joint limits; sim.row_names names them."""

    impulse: Any  # [..., n] N s or N m s
    state: Any  # [..., n] int: 0 no row (a limit that is far away), 1 at its lower bound, 2 between them, 3 at its upper bound
    distance: Any  # [..., n] m/s or rad/s, how far from changing its state


class Info(NamedTuple):
    """What step(..., info=True) tells besides the new state."""

    acceleration: Any  # [..., nv], (v+ - v) / dt, differentiable
    diverged: Any  # [...] bool: the step was not finite, the world was held where it was
    contacts: Contacts
    rows: Rows
    status: Status


class Detail(NamedTuple):
    """What the engine writes about a step, flat: [worlds, n]."""

    status: Tensor
    contacts: Tensor
    ids: Tensor
    rows: Tensor


def candidate_shapes(model: Model) -> Tensor:
    """[candidates + 1, 2] int: the two shapes of every point that may touch; the last entry, index -1, is (-1, -1).

    Where a plane is one of them it comes first, as in the engine. Made once for a model.
    """
    cached = model.__dict__.get("_candidate_shapes")
    if cached is None:
        shapes = []
        for pair in model.engine.tree.candidate_pair:
            a, b = model.pairs[pair]
            shapes.append((b, a) if model.shape_type[b] == PLANE else (a, b))
        with torch.inference_mode(False):  # whoever comes first must not decide for others
            cached = model.__dict__["_candidate_shapes"] = torch.tensor([*shapes, (-1, -1)], dtype=torch.int64)
    return cached


def contact_names(model: Model) -> list[str]:
    """Of every point that may touch: its shapes, and a number where the two have several."""
    names = [f"{model.shape_names[a]} on {model.shape_names[b]}" for b, a in candidate_shapes(model)[:-1].tolist()]
    numbered, seen = [], dict.fromkeys(names, 0)
    for name in names:
        numbered.append(f"{name} [{seen[name]}]" if names.count(name) > 1 else name)
        seen[name] += 1
    return numbered


def row_names(model: Model) -> tuple[str, ...]:
    """Of every joint row, in the order of Rows."""
    dry = (f"dry friction of {_dof_name(model, dof)}" for dof in model.dry_dof)
    # a plain motor's force is clipped, only springs and dampers become rows
    kinds = zip(model.motor_names, model.bound, model.actuator_type, strict=True)
    bound = (f"force limit of {name}" for name, k, kind in kinds if k >= 0 and kind != MOTOR)
    limit = (f"limit of {model.joint_names[body]}" for body in model.limit_body)
    return (*dry, *bound, *limit)


def _dof_name(model: Model, dof: int) -> str:
    body = model.dof_body[dof]
    alone = model.dof_body.count(body) == 1
    return model.joint_names[body] if alone else f"{model.joint_names[body]}[{dof - model.v_address[body]}]"


def contacts_of(model: Model, detail: Detail, batch: tuple[int, ...]) -> tuple[Contacts, Rows]:
    """The flat numbers of a step by their names, in the batch's shape."""
    slots = detail.contacts.reshape(*batch, -1, SLOT_WIDTH)
    # only the impulse has a gradient: what else is written beside it must not seem to have one, of zero
    plain = slots.detach()
    ids = detail.ids.reshape(*batch, -1).long()
    shapes = candidate_shapes(model)[ids]
    contacts = Contacts(
        plain[..., 0], plain[..., 1:4], plain[..., 4:7], slots[..., 7:10], shapes[..., 0], shapes[..., 1], ids, ids >= 0,
        plain[..., 10].long(), plain[..., 11],
    )  # fmt: skip
    rows = detail.rows.reshape(*batch, -1, ROW_WIDTH)
    return contacts, Rows(rows[..., 0], rows[..., 1].long(), rows[..., 2])


def warn_diverged(at: Tensor, steps: int, where: str, stacklevel: int = 3) -> None:
    """Say which worlds stopped being finite; they are held and give no gradient."""
    if transforming() or at.numpy().min() >= steps:
        return
    flat = at.numpy().reshape(-1)
    first, count = int(flat.argmin()), int((flat < steps).sum())
    warnings.warn(
        f"{where}: {count} of {flat.size} worlds diverged (first world {first}, after {int(flat[first])} finite steps); "
        "they are held where they last were finite and give no gradient",
        RuntimeWarning, stacklevel=stacklevel,
    )  # fmt: skip


def may_overflow(model: Model) -> bool:
    """Whether a world can have more contacts than slots."""
    tree = model.engine.tree
    return tree.max_contacts < len(tree.candidate_pair)


@outside_graphs
def warn_overflow(model: Model, status: Tensor, where: str, stacklevel: int = 4) -> None:
    """Say which worlds had more contacts than slots; the contacts that found none were dropped."""
    if transforming() or not may_overflow(model):
        return
    numbers = status.detach().numpy().reshape(-1, STATUS_WIDTH)
    full = numbers[:, 5] > 0
    if not full.any():
        return
    count, first, wanted, most = int(full.sum()), int(full.argmax()), int(numbers[:, 7].max()), model.engine.tree.max_contacts
    warnings.warn(
        f"{where}: {count} of {len(full)} worlds had more contacts than max_contacts = {most} (first world {first}): contacts "
        f"were dropped, bodies may sink in. {wanted} were needed: Scene(max_contacts={wanted}) keeps them all",
        RuntimeWarning, stacklevel=stacklevel,
    )  # fmt: skip
