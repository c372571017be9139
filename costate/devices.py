"""What is put beside tensors of any device: constants, and fields of parameters.

On a GPU each of them is a copy that the CPU waits for, and that cannot be made while a CUDA graph is captured: so it is made once
and kept. Constants are kept for good, since a graph may read them. On the CPU they are made whenever they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costate.autodiff.torch import transforming

if TYPE_CHECKING:
    from costate.scene import Params


def constant(values: Any, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A number, or (nested) tuples of numbers, on the device of `like`, in its dtype or the one that is given."""
    kind = like.dtype if dtype is None else dtype
    if like.is_cuda and not transforming():
        return _kept(values, kind, like.device)
    return torch.tensor(values, dtype=kind, device=like.device)


def index(numbers: Iterable[int], like: Tensor) -> Tensor:
    """Numbers that choose entries of a tensor on the device of `like`, int64 [n]."""
    return constant(tuple(numbers), like, torch.int64)


@cache
def _kept(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # whoever comes first must not decide for others
        return torch.tensor(values, dtype=dtype, device=device)


def field(params: Params, name: str, like: Tensor) -> Tensor:
    """A field of params in the dtype and on the device of `like`, differentiably; a copy is kept until somebody writes to it."""
    value = params[name]
    if value.device == like.device or value.requires_grad or value.is_inference() or transforming():
        return value.to(like)
    kept, key = params.model.__dict__.setdefault("_fields", {}), (name, like.dtype, like.device)
    source, version, copy = kept.get(key, (None, 0, None))
    if source is not value or version != value._version:
        with torch.inference_mode(False):
            copy = value.to(like)
        kept[key] = (value, value._version, copy)
    return copy
