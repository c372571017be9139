"""Simulator: steps, rollouts and linearisations of a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from costate import batch as b
from costate._native.cpu import Op, Stepper
from costate.autodiff.torch import RolloutSpec, instant, rollout, transforming
from costate.policy import rollout_policy
from costate.scene import Model, Params
from costate.state import State, Trajectory

Policy = Callable[[State, Any, int], Any]


class Info(NamedTuple):
    """What step(..., info=True) tells besides the new state."""

    acceleration: Any  # [..., nv], (v+ - v) / dt, differentiable
    diverged: Any  # [...] bool: the step was not finite, the world was held where it was


class Simulator:
    """Steps worlds of one model forward in time, differentiably. What it was made with stays as it is.

    Parameters
    ----------
    model : what `Scene.build()` gave.
    dt : step size, s. `step` and `rollout` take another one per call, also one per world and also differentiable.
    device : "cpu".
    dtype : torch.float64 or torch.float32, of states, controls and everything computed.
    """

    def __init__(self, model: Model, dt: float = 0.01, *, device: str = "cpu", dtype: torch.dtype = torch.float64) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"model must be a costate.Model, got {type(model).__name__}")
        if str(device) not in ("cpu", "cpu:0"):
            raise ValueError(f"device must be 'cpu', got {device!r}: other devices are not supported yet")
        if dtype not in b.DTYPES:
            raise TypeError(f"dtype must be torch.float64 or torch.float32, got {dtype}")
        if not (isinstance(dt, (int, float)) and math.isfinite(dt) and dt > 0):
            raise ValueError(f"dt must be a positive finite number, got {dt!r}")
        self._model, self._device, self._dtype = model, torch.device(device), dtype
        self._dt, self._dt_tensor = float(dt), torch.tensor(float(dt), dtype=dtype)

    @property
    def model(self) -> Model:
        """What is simulated."""
        return self._model

    @property
    def dt(self) -> float:
        """The default step size, s."""
        return self._dt

    @property
    def device(self) -> torch.device:
        """Where it is simulated."""
        return self._device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of states and results."""
        return self._dtype

    def __repr__(self) -> str:
        return f"Simulator({self.model!r}, dt={self.dt}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.model, self.dt, str(self.device), self.dtype)

    def initial_state(self, worlds: int | tuple[int, ...] | None = None) -> State:
        """The model's default configuration at rest: q [*worlds, nq], v [*worlds, nv]; without `worlds` one unbatched state."""
        batch = () if worlds is None else tuple(worlds) if isinstance(worlds, (tuple, list)) else (worlds,)
        if any(not isinstance(n, int) or n < 1 for n in batch):
            raise ValueError(f"worlds must be positive ints, got {worlds!r}")
        q = torch.tensor(self.model.q0, dtype=self.dtype).expand(*batch, -1).clone()
        return State(q, q.new_zeros(*batch, self.model.nv))

    def step(
        self,
        state: State,
        control: Any = None,
        params: Params | None = None,
        *,
        external: Any = None,
        dt: Any = None,
        info: bool = False,
    ) -> Any:
        """One step: State, or (State, Info) with info=True.

        control : [..., nu], default none. external : [..., nb, 6], torque (N m) and force (N) at the centres of mass, world axes.
        dt : s, a number or tensor [...]. A world whose step is not finite is held where it was, with a warning.
        """
        _check_state(state)
        if type(state.q) is np.ndarray:
            # one world in numpy goes straight to the engine, since overhead counts; None: it needs a closer look
            if params is None and external is None and dt is None and not info:
                one = self._step_one(state, control)
                if one is not None:
                    return one
            new, at = self._step_numpy(state, control, params, external, dt)
        else:
            new, at = self.advance(state, control, params, external=external, dt=dt)
            _warn_diverged(at, 1, "step")
        if not info:
            return new
        h = self.dt if dt is None else dt
        h = h[..., None] if isinstance(h, (Tensor, np.ndarray)) and h.ndim else h
        return new, Info((new.v - state.v) / h, at < 1)

    def rollout(
        self, state: State, controls: Tensor | Policy | None = None, params: Params | None = None, *, steps: int | None = None,
        substeps: int = 1, external: Any = None, dt: Any = None, carry: Any = None, decay: float = 1.0,
        truncate: int | None = None,
    ) -> Trajectory:  # fmt: skip
        """Many steps. Only the states are kept; the backward pass recomputes each step from the state before it.

        controls : [T, ..., nu], or a policy(state, carry, t) -> control or (control, carry), or None for no control.
        steps : T; needed without controls. substeps : steps of dt per control, the control held.
        external : [..., nb, 6] constant, or [T, ..., nb, 6]; with no more batch dimensions than the rest has.
        decay : the costate is multiplied by it at every control step on its way back. truncate : it is cut every so many.
        """
        _check_counts(steps, substeps, decay, truncate)
        _check_state(state)
        if callable(controls) and not isinstance(controls, Tensor):
            return rollout_policy(self, state, controls, params, steps, substeps, external, dt, carry, decay, truncate)
        as_numpy = b.is_numpy(state.q)
        count = self._count(controls, steps)
        inputs, batch = self._gather(state, controls, params, external, dt, time=count)
        spec = RolloutSpec(b.worlds(batch), count, substeps, float(decay), truncate or 0, start=True)
        q, v, at = rollout(self.model.engine, spec, *inputs)
        _warn_diverged(at, count, "rollout")
        shape = (count + 1, *batch)
        traj = Trajectory(q.reshape(*shape, self.model.nq), v.reshape(*shape, self.model.nv), at.reshape(batch), controls)
        return _numpy_trajectory(traj) if as_numpy else traj

    def linearize(
        self, state: State, control: Any = None, params: Params | None = None, *, external: Any = None, dt: Any = None
    ) -> tuple[Any, Any]:
        """A [..., 2nv, 2nv] and B [..., 2nv, nu] of one step, exact, from (q, v) to (q+, v+) in tangent coordinates.

        Changes of q are tangent vectors, as model.integrate takes them and model.difference gives them. Not differentiable
        itself: the result has no graph.
        """
        _check_state(state)
        with torch.no_grad():
            inputs, batch = self._gather(state, control, params, external, dt)
            b.check_values(self.model, q=inputs[0], v=inputs[1], control=inputs[2], external=inputs[4])
            n, nu = 2 * self.model.nv, self.model.nu
            if inputs[2] is None:
                inputs = (*inputs[:2], inputs[0].new_zeros(1, nu), *inputs[3:])
            A, B = instant(self.model.engine, Op.LINEARIZE, *inputs)
        A, B = A.reshape(*batch, n, n), B.reshape(*batch, n, nu)
        return (A.numpy(), B.numpy()) if b.is_numpy(state.q) else (A, B)

    def advance(
        self, state: State, control: Any, params: Params | None, *, external: Any = None, dt: Any = None, substeps: int = 1
    ) -> tuple[State, Tensor]:
        """`substeps` steps with one control: the new state, and [...] int: 1, or 0 where a world was held because it diverged."""
        inputs, batch = self._gather(state, control, params, external, dt)
        if inputs[2] is not None:
            inputs = (*inputs[:2], inputs[2].unsqueeze(0), *inputs[3:])
        q, v, at = rollout(self.model.engine, RolloutSpec(b.worlds(batch), 1, substeps), *inputs)
        return State(q.reshape(*batch, self.model.nq), v.reshape(*batch, self.model.nv)), at.reshape(batch)

    def _step_numpy(self, state: State, control: Any, params: Params | None, external: Any, dt: Any) -> tuple[State, np.ndarray]:
        """A step of numpy arrays: through torch, with its broadcasting and its errors."""
        model = self.model
        torch_state = State(b.tensor("q", state.q, (model.nq,), self.dtype), b.tensor("v", state.v, (model.nv,), self.dtype))
        new, at = self.advance(torch_state, control, params, external=external, dt=dt)
        _warn_diverged(at, 1, "step")
        return State(b.to_numpy(new.q), b.to_numpy(new.v)), at.numpy()

    @cached_property
    def _step_one(self) -> Callable[[Any, Any], Any]:
        theta = b.theta(self.model, b.default_params(self.model), self.dtype).numpy()
        return Stepper(self.model.engine.tree, theta, np.array([self.dt], dtype=theta.dtype), State).step

    def _count(self, controls: Any, steps: int | None) -> int:
        if controls is None:
            if steps is None:
                raise ValueError("steps must be given where there are no controls")
            return steps
        shape = getattr(controls, "shape", ())
        if len(shape) < 2:
            raise ValueError(f"controls must have shape [T, ..., {self.model.nu}], got {tuple(shape)}")
        if steps is not None and steps != shape[0]:
            raise ValueError(f"steps is {steps}, but controls has {shape[0]} steps")
        if shape[0] < 1:
            raise ValueError("controls must have at least one step")
        return shape[0]

    def _gather(
        self, state: State, control: Any, params: Params | None, external: Any, dt: Any, time: int = 0
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """Check and flatten: the engine's six inputs and the batch shape. time: steps of controls, or 0."""
        model, params = self.model, b.check_params(self.model, params)
        _check_state(state)
        q = b.tensor("q", state.q, (model.nq,), self.dtype)
        v = b.tensor("v", state.v, (model.nv,), self.dtype)
        theta = b.theta(model, params, self.dtype)
        h = self._dt_tensor if dt is None else _step_size(dt, self.dtype)
        shapes: dict[str, tuple[int, ...]] = {"q": q.shape[:-1], "v": v.shape[:-1], "params": theta.shape[:-1], "dt": h.shape}
        lead = (time,) if time else ()
        if control is not None:
            control = b.tensor("control", control, (model.nu,), self.dtype)
            shapes["control"] = control.shape[len(lead) : -1]
        steps: tuple[int, ...] = ()
        if external is not None:
            external = b.tensor("external", external, (model.nb, 6), self.dtype)
            steps = lead if time and b.varies(external, time, b.broadcast(shapes)) else ()
            shapes["external"] = external.shape[len(steps) : -2]
        batch = b.broadcast(shapes)
        if control is not None:
            control = b.timed(control, lead, batch, (model.nu,))
        if external is not None:
            external = b.timed(external, steps, batch, (model.nb, 6))
        h = h.reshape(1, 1) if h.ndim == 0 else b.rows(h, batch, ()).reshape(-1, 1)
        inputs = (b.rows(q, batch, (model.nq,)), b.rows(v, batch, (model.nv,)), control, h, external, b.theta_rows(theta, batch))
        return inputs, batch


def _rebuild(model: Model, dt: float, device: str, dtype: torch.dtype) -> Simulator:
    return Simulator(model, dt, device=device, dtype=dtype)


def _step_size(dt: Any, dtype: torch.dtype) -> Tensor:
    if isinstance(dt, (int, float)) and not isinstance(dt, bool):
        dt = torch.tensor(dt, dtype=dtype)
    h = b.tensor("dt", dt, (), dtype)
    if not transforming() and not bool(((h > 0) & h.isfinite()).all()):
        raise ValueError(f"dt must be positive and finite, got {h.detach().tolist()}")
    return h


def _check_state(state: Any) -> None:
    if not isinstance(state, State):
        raise TypeError(f"state must be a costate.State, got {type(state).__name__}")


def _check_counts(steps: int | None, substeps: int, decay: float, truncate: int | None) -> None:
    for name, n in (("steps", steps), ("substeps", substeps), ("truncate", truncate)):
        if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
            raise ValueError(f"{name} must be a positive int, got {n!r}")
    if not (isinstance(decay, (int, float)) and 0 <= decay <= 1):
        raise ValueError(f"decay must be between 0 and 1, got {decay!r}")


def _warn_diverged(at: Tensor, steps: int, where: str) -> None:
    """Say which worlds stopped being finite; they are held and give no gradient."""
    if transforming() or at.numpy().min() >= steps:
        return
    flat = at.numpy().reshape(-1)
    first, count = int(flat.argmin()), int((flat < steps).sum())
    warnings.warn(
        f"{where}: {count} of {flat.size} worlds diverged (first world {first}, after {int(flat[first])} finite steps); "
        "they are held where they last were finite and give no gradient",
        RuntimeWarning, stacklevel=3,
    )  # fmt: skip


def _numpy_trajectory(traj: Trajectory) -> Trajectory:
    controls = traj.controls.detach().numpy() if isinstance(traj.controls, Tensor) else traj.controls
    return Trajectory(b.to_numpy(traj.q), b.to_numpy(traj.v), traj.diverged_at.numpy(), controls)
