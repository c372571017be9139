"""Tables: numbers that sensors need beside a state, such as indices, made once and not with every reading."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from costate.autodiff.torch import transforming
from costate.devices import constant


class Table:
    """Numbers as a tensor, made once for every device and dtype.

    Parameters
    ----------
    values : a number, or (nested) tuples of numbers.
    dtype : None: that of the tensor it is put beside.
    """

    def __init__(self, values: Any, dtype: torch.dtype | None = None) -> None:
        self._values, self._dtype = values, dtype
        self._made: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def like(self, x: Tensor) -> Tensor:
        """On the device of x; in its dtype, if no other was given."""
        key = x.device, x.dtype if self._dtype is None else self._dtype
        found = self._made.get(key)
        if found is None:
            with torch.inference_mode(False):  # whoever comes first must not decide for others
                found = constant(self._values, x, key[1])
            if not transforming():
                self._made[key] = found
        return found


def indices(numbers: Any) -> Table:
    """Numbers that choose entries of a tensor, int64 [n]."""
    return Table(tuple(numbers), torch.int64)
