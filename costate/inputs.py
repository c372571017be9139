"""What the calls of a Simulator take: checked, broadcast against each other, flattened to the engine's six inputs."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from costate import batch as b
from costate.autodiff.torch import transforming
from costate.scene import Model, Params
from costate.state import State


def gather(
    model: Model,
    dt: Tensor,
    state: State,
    control: Any,
    params: Params | None,
    external: Any,
    time: int = 0,
    theta: Tensor | None = None,
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """q, v, control, dt, external, theta as the engine takes them, and the worlds' batch shape.

    dt says the dtype and device of all; params may be elsewhere. time: steps of controls, or 0. theta: what `b.theta` made of
    the params, if it was asked before.
    """
    dtype, device = dt.dtype, dt.device
    q = b.tensor("q", state.q, (model.nq,), dtype, device)
    v = b.tensor("v", state.v, (model.nv,), dtype, device)
    theta = b.theta(model, b.check_params(model, params), dtype, device) if theta is None else theta
    shapes: dict[str, tuple[int, ...]] = {"q": q.shape[:-1], "v": v.shape[:-1], "params": theta.shape[:-1], "dt": dt.shape}
    lead = (time,) if time else ()
    if control is not None:
        control = b.tensor("control", control, (model.nu,), dtype, device)
        shapes["control"] = control.shape[len(lead) : -1]
    steps: tuple[int, ...] = ()
    external = b.wrenches(model, external, dtype, device)
    if external is not None:
        steps = lead if time and b.varies(model, external, time, b.broadcast(shapes)) else ()
        shapes["external"] = external.shape[len(steps) : -2]
    batch = b.broadcast(shapes)
    if control is not None:
        control = b.timed(control, lead, batch, (model.nu,))
    if external is not None:
        external = b.timed(external, steps, batch, (model.nb, 6))
    h = dt.reshape(1, 1) if dt.ndim == 0 else b.rows(dt, batch, ()).reshape(-1, 1)
    flat = (b.rows(q, batch, (model.nq,)), b.rows(v, batch, (model.nv,)), control, h, external, b.theta_rows(theta, batch))
    return flat, batch


def step_size(dt: Any, dtype: torch.dtype, device: torch.device = b.CPU) -> Tensor:
    """dt of one call as a tensor [...] on `device`, positive and finite; a single number may come from the cpu."""
    if isinstance(dt, (int, float)) and not isinstance(dt, bool):
        dt = torch.tensor(dt, dtype=dtype)
    single = isinstance(dt, Tensor) and dt.ndim == 0
    h = b.tensor("dt", dt, (), dtype, None if single else device)
    h = h.to(device) if single else h
    if not (transforming() or b.capturing(h)) and not bool(((h > 0) & h.isfinite()).all()):
        raise ValueError(f"dt must be positive and finite, got {h.detach().tolist()}")
    return h


def count_steps(model: Model, controls: Any, steps: int | None) -> int:
    """T of a rollout, from controls [T, ..., nu] or `steps`."""
    if controls is None:
        if steps is None:
            raise ValueError("steps must be given where there are no controls")
        return steps
    shape = getattr(controls, "shape", ())
    if len(shape) < 2:
        raise ValueError(f"controls must have shape [T, ..., {model.nu}], got {tuple(shape)}")
    if steps is not None and steps != shape[0]:
        raise ValueError(f"steps is {steps}, but controls has {shape[0]} steps")
    if shape[0] < 1:
        raise ValueError("controls must have at least one step")
    return shape[0]


def check_state(state: Any) -> None:
    """TypeError unless it is a State."""
    if not isinstance(state, State):
        raise TypeError(f"state must be a costate.State, got {type(state).__name__}")


def check_counts(**counts: int | None) -> None:
    """ValueError unless all are positive ints, or None."""
    for name, n in counts.items():
        if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
            raise ValueError(f"{name} must be a positive int, got {n!r}")


def check_costate(decay: float, clip: float | None) -> None:
    """ValueError unless the costate can be treated so on its way back."""
    if not (isinstance(decay, (int, float)) and 0 <= decay <= 1):
        raise ValueError(f"decay must be between 0 and 1, got {decay!r}")
    if clip is not None:
        number = isinstance(clip, (int, float)) and not isinstance(clip, bool)
        if not (number and math.isfinite(clip) and clip > 0):
            raise ValueError(f"clip must be a positive finite number or None, got {clip!r}")
