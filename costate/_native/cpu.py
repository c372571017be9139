"""Engine: one model's compiled tree on the CPU, and the codes of the calls it takes."""

from __future__ import annotations

from enum import IntEnum
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from costate._native import _core

if TYPE_CHECKING:
    import torch

    from costate._native.cuda.engine import CudaEngine
    from costate.scene.model import Model

instruction_set = _core.instruction_set
Stepper = _core.Stepper
get_num_threads = _core.num_threads


def set_num_threads(n: int) -> None:
    """Split batches over `n` threads (default: all cores, or COSTATE_NUM_THREADS). Results do not depend on it."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"set_num_threads: n must be a positive int, got {n!r}")
    _core.set_num_threads(n)


class Op(IntEnum):
    """Functions of one instant, as numbered in drivers/kernels.h."""

    JOINT_FORCES = 0
    ACCELERATION = 1
    MASS_MATRIX = 2
    POSES = 3
    INTEGRATE = 4
    DIFFERENCE = 5
    PREPARE = 6
    ERRORS = 7
    SETTLE = 8
    DISTANCE = 9
    LINEARIZE = 10


# names of a rollout's inputs, as numbered in drivers/kernels.h
ROLLOUT_INPUTS = ("q", "v", "control", "dt", "external", "params")


class Engine:
    """The compiled structure of one model, and the sizes of what goes in and out of each call."""

    def __init__(
        self, model: Model, *, form: int = -1, large: int = -1, one_group: int = -1, pairs: np.ndarray | None = None
    ) -> None:
        self.model = model
        self._on: dict[Any, CudaEngine] = {}
        pairs = model.pairs if pairs is None else pairs
        self.tree = _core.Tree(
            list(model.parent), list(model.joint_type), list(model.motor_dof), [int(m) for m in model.massless], form,
            actuator_type=list(model.actuator_type), clip=list(model.clip), bound=list(model.bound),
            limit_body=list(model.limit_body), limit_dof=list(model.limit_dof), dry_dof=list(model.dry_dof),
            shape_body=list(model.shape_body), shape_type=list(model.shape_type),
            pair_a=pairs[:, 0].tolist(), pair_b=pairs[:, 1].tolist(),
            hull_vertices=list(model.hull_vertices), hull_faces=list(model.hull_faces),
            hull_loop_size=list(model.hull_loop_size), hull_loop=list(model.hull_loop), hull_plane=list(model.hull_plane),
            field_nx=list(model.field_nx), field_ny=list(model.field_ny), large=large,
            friction_rule=model.friction_rule, restitution_rule=model.restitution_rule, max_contacts=model.max_contacts,
            tie_a=list(model.tie_a), tie_b=list(model.tie_b), tie_axis=list(model.tie_axis),
            tie_first=list(accumulate(map(len, model.tie_locks), initial=0)), lock=list(chain(*model.tie_locks)),
            coupling_dof1=list(model.coupling_dof1), coupling_dof2=list(model.coupling_dof2), motor_tie=list(model.motor_tie),
            planar=model.planar, shape_condim=list(model.shape_condim), one_group=one_group,
        )  # fmt: skip
        nb, nq, nv, nu, size = model.nb, model.nq, model.nv, model.nu, self.tree.params_size
        self.outputs: dict[Op, tuple[int, ...]] = {
            Op.JOINT_FORCES: (nv,),
            Op.ACCELERATION: (nv,),
            Op.MASS_MATRIX: (nv * nv,),
            Op.POSES: (7 * nb, 6 * nb, 6 * nv),
            Op.INTEGRATE: (nq,),
            Op.DIFFERENCE: (nv,),
            Op.PREPARE: (size,),
            Op.ERRORS: (self.tree.equality_rows,),
            Op.SETTLE: (nq,),
            Op.DISTANCE: (10,),
            Op.LINEARIZE: (4 * nv * nv, 2 * nv * nu),
        }

    def cuda(self, device: torch.device) -> CudaEngine:
        """The same model on a GPU."""
        found = self._on.get(device)
        if found is None:
            from costate._native.cuda.engine import CudaEngine

            found = self._on[device] = CudaEngine(self, device)
        return found

    def check_finite(self, name: str, x: np.ndarray) -> None:
        """Raise ValueError with the place and the value of the first number in x [worlds, n] that is not finite."""
        i = _core.first_not_finite(x)
        if i >= 0:
            raise ValueError(_not_finite(name, x, i))

    def check_configuration(self, name: str, q: np.ndarray) -> None:
        """As check_finite, and every quaternion in q [worlds, nq] must be long enough to be normalised."""
        self.check_finite(name, q)
        i = self.tree.first_zero_quaternion(q)
        if i >= 0:
            raise ValueError(_zero_quaternion(name, q, self.model.nq, i))

    def raise_bad(self, code: int, inputs: tuple[Any, ...]) -> None:
        """Turn the code that the tree's rollout returned for a refused input into a ValueError."""
        field, i = code >> 48, code & ((1 << 48) - 1)
        if field >= 8:
            raise ValueError(_zero_quaternion("q", inputs[0], self.model.nq, i))
        raise ValueError(_not_finite(ROLLOUT_INPUTS[field], inputs[field], i))


def _place(x: np.ndarray, i: int) -> str:
    shape = x.shape[1:] if x.ndim == 3 and x.shape[0] == 1 else x.shape  # the time axis of a single step says nothing
    index = np.unravel_index(i, shape) if shape else ()
    return f"[{', '.join(str(int(k)) for k in index)}]"


def _not_finite(name: str, x: np.ndarray, i: int) -> str:
    return f"{name} must be finite: {name}{_place(x, i)} is {x.reshape(-1)[i]}"


def _zero_quaternion(name: str, q: np.ndarray, nq: int, i: int) -> str:
    return (
        f"{name} has a quaternion of length zero: {name}{_place(q, i)} and the next three are {q.reshape(-1)[i : i + 4].tolist()}"
    )
