"""Warnings about what a step or rollout did: worlds that diverged, contacts without a slot, constraints that contradict."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.autodiff.torch import STATUS_WIDTH, outside_graphs, transforming
from costate.solver import InteriorPoint, Solver

if TYPE_CHECKING:
    from costate.scene import Model

# Speed, m/s or rad/s, by which constraints may be missed without a word; drivers/stepper.cc knows it too. The softness that
# every row has gives way under load: in float32 by a few mm/s where a heavy robot lands on small feet.
CONTRADICTION = {torch.float64: 1e-3, torch.float32: 5e-2}
FAR_OFF = 0.1  # m or rad, error of a constraint that is not projected any more: kFarOff of core/ops/project.h


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
    return tree.max_contacts < tree.candidates


def is_watched(model: Model, solver: Solver) -> bool:
    """Whether the status of a step can hold something to warn about."""
    return model.ne > 0 or may_overflow(model) or isinstance(solver, InteriorPoint)


@outside_graphs
def warn_status(model: Model, solver: Solver, status: Tensor, where: str, stacklevel: int = 4) -> None:
    """Say what went wrong in the solves, once for all worlds and steps of a call."""
    if transforming() or not is_watched(model, solver):
        return
    numbers = status.detach().numpy().reshape(-1, STATUS_WIDTH)
    messages = (
        _overflow(model, numbers), _contradiction(numbers, CONTRADICTION[status.dtype]), _far_off(numbers),
        _unsolved(numbers) if isinstance(solver, InteriorPoint) else None,
    )  # fmt: skip
    for message in filter(None, messages):
        warnings.warn(f"{where}: {message}", RuntimeWarning, stacklevel=stacklevel)


def _overflow(model: Model, numbers: np.ndarray) -> str | None:
    """Which worlds had more contacts than slots; the contacts that found none were dropped."""
    full = numbers[:, 5] > 0
    if not full.any():
        return None
    count, first, wanted, most = int(full.sum()), int(full.argmax()), int(numbers[:, 7].max()), model.engine.tree.max_contacts
    return (
        f"{count} of {len(full)} worlds had more contacts than max_contacts = {most} (first world {first}): contacts "
        f"were dropped, bodies may sink in. {wanted} were needed: Scene(max_contacts={wanted}) keeps them all"
    )


def _contradiction(numbers: np.ndarray, allowed: float) -> str | None:
    """Which worlds have constraints that cannot all be kept."""
    missed = numbers[:, 9]
    count, worst = int((missed > allowed).sum()), int(missed.argmax()) if len(missed) else 0
    if not count:
        return None
    return (
        f"{count} of {len(missed)} worlds have constraints that contradict each other (world {worst} misses them by "
        f"{missed[worst]:.3g} m/s or rad/s). step(..., info=True) tells in info.constraints.impulse which ones pull against each "
        "other: give one of them softness or take it away; if they only fit together elsewhere, start at cs.project(model, q)"
    )


def _far_off(numbers: np.ndarray) -> str | None:
    """Which worlds have constraints that are far from being kept."""
    drift = numbers[:, 8]
    count, worst = int((drift > FAR_OFF).sum()), int(drift.argmax()) if len(drift) else 0
    if not count:
        return None
    return (
        f"{count} of {len(drift)} worlds have constraints that are off by more than {FAR_OFF} m or rad (world {worst} by "
        f"{drift[worst]:.3g}). If they are only not put together yet, start at cs.project(model, q); if they are out of reach, "
        "they pull in vain: info.constraints.error tells which"
    )


def _unsolved(numbers: np.ndarray) -> str | None:
    """Which worlds an interior point did not solve; sweeps come closer with every one, it may be anywhere."""
    open_ = numbers[:, 1] > 0
    if not open_.any():
        return None
    count, worst = int(open_.sum()), int(numbers[:, 0].argmax())
    return (
        f"InteriorPoint did not solve the contacts of {count} of {len(open_)} worlds (world {worst} worst, residual "
        f"{numbers[worst, 0]:.3g} m/s): more iterations may, or costate.PGS(cone=...)"
    )
