"""Numbers as a user writes them (floats, tuples, numpy, torch, mixed) as float64 tensors that keep their graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

Numbers: TypeAlias = float | Tensor | np.ndarray | Sequence["Numbers"]


def stack(value: Numbers) -> Tensor:
    """Copy `value` into one float64 tensor on the CPU; tensors, also inside tuples, keep their graph."""
    if isinstance(value, Tensor):
        return _real(value).clone()
    if _holds_tensor(value):
        return torch.stack(_level([stack(item) for item in value]))  # type: ignore[union-attr]
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" and array.size > 0:
        raise TypeError(f"must be numbers, got {value!r}")
    return torch.from_numpy(array.astype(np.float64))


def read(subject: str, value: Numbers) -> Tensor:
    """`stack`, with errors that start with `subject`."""
    try:
        return stack(value)
    except TypeError as error:
        raise TypeError(f"{subject} {error}") from None
    except (ValueError, RuntimeError):
        raise ValueError(f"{subject} must be numbers in rows of equal length, got {value!r}") from None


def numbers(subject: str, value: Numbers, shape: tuple[int, ...], *, fill: bool = False) -> Tensor:
    """`value` as a float64 tensor of `shape`; errors start with `subject`. `fill`: one number may stand for all."""
    tensor = read(subject, value)
    if tensor.shape == shape:
        return tensor
    if fill and tensor.numel() == 1:
        return tensor.reshape(()).expand(shape)
    if tensor.numel() == 1 and all(n == 1 for n in shape):
        return tensor.reshape(shape)
    raise ValueError(f"{subject} must be {_describe(shape)}, got {plain(tensor)}")


def plain(value: Any) -> Any:
    """`value` as a float or nested tuples of floats, without graph."""
    return _tuples(stack(value).tolist())


def _real(tensor: Tensor) -> Tensor:
    if tensor.device.type != "cpu":
        raise TypeError(f"must be on the cpu, got a tensor on {tensor.device}")
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"must be real numbers, got a tensor of {tensor.dtype}")
    return tensor.to(torch.float64)


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(isinstance(item, Tensor) or _holds_tensor(item) for item in value)


def _level(parts: list[Tensor]) -> list[Tensor]:
    # A parameter of shape [1] next to plain numbers counts as a number.
    if any(part.ndim == 0 for part in parts):
        return [part.reshape(()) if part.numel() == 1 else part for part in parts]
    return parts


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _describe(shape: tuple[int, ...]) -> str:
    if shape == ():
        return "one number"
    return f"{shape[0]} numbers" if len(shape) == 1 else " x ".join(map(str, shape)) + " numbers"
