"""State (q, v) of one or many worlds, and the Trajectory a rollout gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from costate.info import Status


class State(NamedTuple):
    """Positions and velocities, laid out as MuJoCo's qpos and qvel: q [..., nq], v [..., nv]. Torch tensors or numpy arrays."""

    q: Any
    v: Any

    def detach(self) -> State:
        """The same numbers without the graph behind them."""
        return State(self.q.detach(), self.v.detach()) if isinstance(self.q, Tensor) else self

    def where(self, mask: Any, other: State) -> State:
        """`other` where mask [...] is true, and this state elsewhere: the way to reset worlds. No gradient crosses a reset.

        A reset world starts from `other` as it is now: its graph is cut, so that the new episode does not lead back to the old.
        """
        if isinstance(self.q, Tensor):
            mask = torch.as_tensor(mask, dtype=torch.bool, device=self.q.device).unsqueeze(-1)
            return State(torch.where(mask, other.q.detach(), self.q), torch.where(mask, other.v.detach(), self.v))
        mask = np.asarray(mask, dtype=bool)[..., None]
        return State(np.where(mask, other.q, self.q), np.where(mask, other.v, self.v))

    def numpy(self) -> State:
        """As numpy arrays, without graph; from a GPU copies."""
        return State(self.q.detach().cpu().numpy(), self.v.detach().cpu().numpy()) if isinstance(self.q, Tensor) else self

    def torch(self) -> State:
        """As torch tensors that share memory with the numpy arrays."""
        return self if isinstance(self.q, Tensor) else State(torch.from_numpy(self.q), torch.from_numpy(self.v))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states of a rollout of T control steps; entry 0 is where it started.

    Attributes
    ----------
    q, v : [T+1, ..., nq] and [T+1, ..., nv].
    diverged_at : [...] int, how many control steps stayed finite; T where all did.
    controls : [T, ..., nu], or None where there were none.
    carry : what the policy carried out of the last step.
    status : `Status` [...] of the solves, over all steps.
    """

    q: Any
    v: Any
    diverged_at: Any
    controls: Any = None
    carry: Any = None
    status: Any = None

    @property
    def diverged(self) -> Any:
        """[...] bool: worlds that stopped being finite. They are held where they last were, and give no gradient."""
        return self.diverged_at < len(self)

    @property
    def states(self) -> State:
        """All states at once, [T+1, ...]."""
        return State(self.q, self.v)

    def __len__(self) -> int:
        """T, the number of control steps."""
        return self.q.shape[0] - 1

    def __getitem__(self, t: int) -> State:
        """The state after t control steps; negative t counts from the end."""
        return State(self.q[t], self.v[t])

    def detach(self) -> Trajectory:
        """The same numbers without the graph behind them."""
        fields = {name: x.detach() for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, **fields)

    def save(self, path: str | PathLike[str]) -> None:
        """Write q, v, diverged_at, controls and status to a numpy .npz file; the carry is not written."""
        given = {**vars(self), "status": None if self.status is None else self.status.numbers}
        arrays = {
            name: np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x)
            for name, x in given.items()
            if x is not None and name != "carry"
        }
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Trajectory:
        """Read what `save` wrote, as torch tensors."""
        with np.load(path, allow_pickle=False) as file:
            missing = {"q", "v", "diverged_at"} - set(file.files)
            if missing:
                raise ValueError(f"{path}: not a trajectory, {', '.join(sorted(missing))} missing")
            names = ("q", "v", "diverged_at", "controls", "status")
            fields: dict[str, Any] = {name: torch.from_numpy(file[name]) for name in names if name in file.files}
        if "status" in fields:
            fields["status"] = Status(fields["status"])
        return cls(**fields)
