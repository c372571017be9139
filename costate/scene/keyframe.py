"""Keyframes: named states of a model, such as the stance in which a robot starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A state of a model and the controls that go with it; float64, read-only.

    q : configuration [nq]. v : velocity [nv]. control : [nu].
    """

    q: np.ndarray
    v: np.ndarray
    control: np.ndarray

    def __post_init__(self) -> None:
        for name in ("q", "v", "control"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Keyframe):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("q", "v", "control"))

    def __hash__(self) -> int:
        return hash((self.q.tobytes(), self.v.tobytes(), self.control.tobytes()))
