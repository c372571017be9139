"""The structs that kernels are called with, as numpy sees them: RolloutCall and OpCall of drivers/kernels.h.

A kernel refuses to compile where the sizes differ.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_POINTER, _LONG, _SIDES = np.uint64, np.int64, 32
ARRAY = np.dtype([("data", _POINTER), ("stride", _LONG), ("time", _LONG), ("partial", _POINTER)], align=True)
_NUMBERS = (
    "tolerance", "margin", "recovery", "push_speed", "bounce_speed", "relative_softness", "absolute_softness", "apothem",
    "half_edge",
)  # fmt: skip
# what is constant in a kernel is no member there
OPTIONS = np.dtype(
    [
        ("iterations", np.int32),
        ("polish", np.int32),
        *((name, np.float64) for name in _NUMBERS),
        ("normal_x", np.float64, (_SIDES,)),
        ("normal_y", np.float64, (_SIDES,)),
    ],
    align=True,
)
OP = np.dtype(
    [
        ("tree", _POINTER),
        ("worlds", _LONG),
        ("options", OPTIONS),
        ("in", ARRAY, (6,)),
        ("out", ARRAY, (3,)),
        ("in_bar", ARRAY, (6,)),
        ("out_bar", ARRAY, (3,)),
    ],
    align=True,
)


@cache
def rollout(scalar: type[np.floating[Any]]) -> np.dtype[Any]:
    """RolloutCall of this element type."""
    return np.dtype(
        [
            ("tree", _POINTER),
            ("worlds", _LONG),
            ("steps", _LONG),
            ("substeps", _LONG),
            ("options", OPTIONS),
            ("in", ARRAY, (6,)),
            ("in_bar", ARRAY, (6,)),
            *((name, ARRAY) for name in ("q", "v", "q_bar", "v_bar")),
            ("diverged_at", _POINTER),
            ("decay", scalar),
            ("truncate", _LONG),
            ("clip", scalar),
            *((name, ARRAY) for name in ("costate", "status", "contacts", "rows")),
            ("contact_ids", _POINTER),
        ],
        align=True,
    )


def options(named: dict[str, Any]) -> np.ndarray:
    """Options, from what the tree says about them."""
    x = np.zeros((), OPTIONS)
    for name in OPTIONS.names or ():
        x[name] = named[name]
    return x
