"""From what a user passes (torch or numpy, any leading dimensions) to the flat tensors the engine takes, with clear errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from costate._native.cpu import Op
from costate.autodiff.torch import instant, outside_graphs, transforming
from costate.devices import index
from costate.scene import Model, Params

DTYPES = (torch.float64, torch.float32)
DEVICES = ("cpu", "cuda")
CPU = torch.device("cpu")


def is_numpy(x: Any) -> bool:
    """Whether results go back as numpy arrays: the first argument decides."""
    return isinstance(x, np.ndarray)


def to_numpy(x: Tensor) -> np.ndarray:
    """A result for somebody who passed numpy arrays; refuses to drop a gradient that was asked for."""
    if x.requires_grad:
        raise TypeError(
            "the state is in numpy arrays, but something else requires grad: a gradient would be lost. "
            "Pass torch tensors (state.torch()), or detach what requires grad."
        )
    return x.numpy()


def tensor(name: str, x: Any, size: tuple[int, ...], dtype: torch.dtype | None, device: torch.device | None = None) -> Tensor:
    """x [..., *size] as a tensor of `dtype` (None: float64 or float32) on `device` (None: cpu or cuda).

    TypeError and ValueError name the field.
    """
    if isinstance(x, np.ndarray):
        if x.dtype not in (np.float64, np.float32):
            raise TypeError(f"{name} must be float64 or float32, got {x.dtype}")
        # torch cannot share memory that is read-only (model.q0) or runs backwards
        x = torch.from_numpy(x if x.flags.writeable and min(x.strides, default=0) >= 0 else x.copy())
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch tensor or numpy array, got {type(x).__name__} {x!r}")
    if x.device != device and (device is not None or x.device.type not in DEVICES):
        wanted = "the cpu or cuda" if device is None else "the cpu" if device.type == "cpu" else str(device)
        raise TypeError(f"{name} must be on {wanted}, got {x.device}")
    if x.dtype not in DTYPES or (dtype is not None and x.dtype != dtype):
        wanted = "float64 or float32" if dtype is None else str(dtype).removeprefix("torch.")
        raise TypeError(f"{name} must be {wanted}, got {str(x.dtype).removeprefix('torch.')}")
    if x.shape[x.ndim - len(size) :] != size or x.ndim < len(size):
        raise ValueError(f"{name} must have shape [..., {', '.join(map(str, size))}], got {tuple(x.shape)}")
    return x


def broadcast(named: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The common leading shape; ValueError says who does not fit."""
    # torch.broadcast_shapes takes as long as a step of a hundred worlds
    batch = [1] * max(map(len, named.values()))
    for shape in named.values():
        for i in range(-len(shape), 0):
            if shape[i] != batch[i] and shape[i] != 1:
                if batch[i] != 1:
                    raise ValueError(f"batch shapes do not broadcast: {_list(named)}")
                batch[i] = shape[i]
    if 0 in batch:
        raise ValueError(f"no worlds: a batch dimension is 0 in {_list(named)}")
    return tuple(batch)


def _list(named: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {tuple(shape)}" for name, shape in named.items())


def timed(x: Tensor, steps: tuple[int, ...], batch: tuple[int, ...], size: tuple[int, ...]) -> Tensor:
    """x [*steps, ..., *size] as [*steps, worlds, n]: batch dimensions that are missing come behind the time axis."""
    missing = len(steps) + len(batch) + len(size) - x.ndim
    whole = x.reshape(*steps, *(1,) * missing, *x.shape[len(steps) :])
    return rows(whole, steps + batch, size).reshape(*steps, worlds(batch), math.prod(size))


def wrenches(model: Model, external: Any, dtype: torch.dtype | None, device: torch.device | None = None) -> Tensor | None:
    """Forces on all bodies as the engine takes them, [..., nb, 6]; in a plane from (fx, fy, torque) [..., nb, 3]."""
    if external is None:
        return None
    x = tensor("external", external, (model.nb, _wrench(model)), dtype, device)
    return pad(x[..., index((2, 0, 1), x)], (2, 1)) if model.planar else x


def _wrench(model: Model) -> int:
    return 3 if model.planar else 6


def varies(model: Model, external: Any, steps: int, batch: tuple[int, ...]) -> bool:
    """Whether wrenches [..., nb, 6] have a time axis in front: exactly if they have more dimensions than the worlds.

    Then it must have an entry per step. Wrenches alone do not make worlds: a length that happens to equal the number of
    steps would decide what they mean.
    """
    if external is None or external.ndim <= 2 + len(batch):
        return False
    if external.ndim > 3 + len(batch) or external.shape[0] != steps:
        n = _wrench(model)
        raise ValueError(
            f"external must have shape [..., nb, {n}] with the state's batch shape {tuple(batch)}, or [T, ..., nb, {n}] with "
            f"T = {steps} steps in front, got {(*external.shape[:-1], n)}"
        )
    return True


def rows(x: Tensor, batch: tuple[int, ...], size: tuple[int, ...]) -> Tensor:
    """x [..., *size] as [worlds, n], n numbers for each world."""
    if len(batch) == len(size) == 1 and x.shape == (*batch, *size):
        return x
    return x.expand(*batch, *size).reshape(worlds(batch), math.prod(size))


def default_params(model: Model) -> Params:
    """The model's own parameters, made once."""
    cached = model.__dict__.get("_default_params")
    if cached is None:
        with torch.inference_mode(False):  # whoever comes first must not decide whether others may differentiate
            cached = model.__dict__["_default_params"] = Params(model, {})
    return cached


def check_params(model: Model, params: Params | None) -> Params:
    """params, or the model's own; refuses those of another model."""
    if params is None:
        return default_params(model)
    if not isinstance(params, Params):
        raise TypeError(f"params must be costate.Params, got {type(params).__name__}")
    if params.model is not model and params.model.topology != model.topology:
        raise ValueError(f"params belong to another model: {params.model!r}, here {model!r}")
    return params


@outside_graphs
def theta(model: Model, params: Params, dtype: torch.dtype, device: torch.device = CPU) -> Tensor:
    """The engine's parameters [*batch, P] in `dtype` on `device`: checked, with unit axes and quaternions; differentiable.

    Kept with the params as long as nobody writes to them and nothing requires grad. Params on a GPU are checked on the CPU, for
    which the GPU is waited for; not while a CUDA graph is captured.
    """
    flat, key = params.flat(dtype), (dtype, device)
    cache = model.__dict__.setdefault("_theta", {})
    if not flat.requires_grad and cache.get(key, (None,))[0] is flat:
        return _held(model, cache[key][1])
    raw = flat.reshape(-1, flat.shape[-1])
    if not (transforming() or capturing(raw)) and not model.engine.tree.params_ok(array(raw), raw.shape[0]):
        params.check()
        raise ValueError("params are not physical")
    prepared = instant(model.engine, Op.PREPARE, raw)[0].reshape(flat.shape).to(device)
    if not flat.requires_grad and not transforming():
        cache[key] = (flat, prepared)
    return _held(model, prepared)


def _held(model: Model, x: Tensor) -> Tensor:
    """x, which is kept for good if a CUDA graph is being captured: it will read it again and again."""
    if capturing(x):
        model.__dict__.setdefault("_captured", []).append(x)
    return x


def array(x: Tensor) -> np.ndarray:
    """The numbers of x as numpy, contiguous; of a GPU's tensor a copy."""
    return x.detach().cpu().contiguous().numpy()


def capturing(x: Tensor) -> bool:
    """Whether a CUDA graph is being captured, in which nothing may be looked at."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def theta_rows(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """theta as the engine takes it: [1, P] where shared, else [worlds, P]."""
    return x.unsqueeze(0) if x.ndim == 1 else rows(x, batch, x.shape[-1:])


@outside_graphs
def check_values(model: Model, **arrays: Tensor | None) -> None:
    """Refuse numbers that are not finite, and quaternions of length zero in the entries named q."""
    for name, x in arrays.items():
        if x is None or transforming() or capturing(x):
            continue
        position = name in ("q", "q1", "q2")
        if x.is_cuda and not position and bool(x.isfinite().all()):
            continue
        if position:
            model.engine.check_configuration(name, array(x))
        else:
            model.engine.check_finite(name, array(x))


def worlds(batch: tuple[int, ...]) -> int:
    """How many worlds a batch shape holds."""
    return math.prod(batch)
