"""Simulator: steps, rollouts and linearisations of a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from costate import batch as b
from costate import inputs as i
from costate._native.cpu import Op, Stepper
from costate.autodiff.torch import CONTACTS, STATUS, RolloutSpec, instant, rollout
from costate.info import Detail, Info, Status, contacts_of, row_names
from costate.policy import rollout_stepwise
from costate.report import GradientReport, gradient_report
from costate.scene import Model, Params
from costate.solver import PGS, Contact, Gradient, Impacts, InteriorPoint, Options, Solver, engine_options
from costate.state import State, Trajectory
from costate.warn import is_watched, warn_diverged, warn_status
from costate.watch import Watch, find_device

Policy = Callable[[State, Any, int], Any]
Forces = Callable[[State, Any], Any]
_PGS, _CONTACT, _PROJECT, _DT = PGS(), Contact(), 1, 0.01


class Advanced(NamedTuple):
    """What a control step gave: the new state, what it was made with, and what else was asked for, flat."""

    state: State
    at: Tensor  # [...] int: 1, or 0 where the world was held because it diverged
    inputs: tuple[Any, ...]  # the engine's six
    batch: tuple[int, ...]
    detail: tuple[Tensor, ...]  # of `Detail`: nothing, the status, or all


class Simulator:
    """Steps worlds of one model forward in time, differentiably. What it was made with stays as it is.

    Parameters
    ----------
    model : what `Scene.build()` or `load()` gave.
    dt : step size, s; None: `model.timestep`, which loaded models have, else 0.01. `step` and `rollout` take another one per
        call, also one per world and also differentiable.
    device : "cpu", or "cuda" ("cuda:1", ..) for an NVIDIA GPU: states, controls and results are torch tensors there, params may
        be on the CPU, too. Bad numbers and worlds that diverged are told at a later call, or by `synchronize`.
    dtype : torch.float64 or torch.float32, of states, controls and everything computed.
    solver : how contacts, friction and limits are solved: `PGS` or `InteriorPoint`.
    contact : how shapes and limits are kept apart.
    gradient : "implicit" differentiates the solution, and falls back to "exact" in worlds that did not converge; "exact"
        differentiates the solver's sweeps as they ran.
    project : Newton steps that put the end of every step back on its constraints, differentiably; 0 leaves their errors to
        `contact.recovery`. Constraints with softness are not projected; models without constraints pay nothing.
    impacts : None: an impact takes place at the start of the step that it falls into. "toi": the step is split at the time
        of impact, up to 32 times: elastic bounces keep their energy, fast bodies do not tunnel, and gradients know the time.
    """

    def __init__(
        self, model: Model, dt: float | None = None, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float64,
        solver: Solver = _PGS, contact: Contact = _CONTACT, gradient: Gradient = "implicit", project: int = _PROJECT,
        impacts: Impacts | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(model, Model):
            raise TypeError(f"model must be a costate.Model, got {type(model).__name__}")
        place = find_device(device)
        if dtype not in b.DTYPES:
            raise TypeError(f"dtype must be torch.float64 or torch.float32, got {dtype}")
        if dt is None:
            dt = _DT if model.timestep is None else model.timestep
        if not (isinstance(dt, (int, float)) and math.isfinite(dt) and dt > 0):
            raise ValueError(f"dt must be a positive finite number, got {dt!r}")
        if isinstance(solver, InteriorPoint):
            _check_turning(model)
        self._options = engine_options(solver, contact, gradient, dtype, project, impacts, float(dt))
        self._model, self._device, self._dtype = model, place, dtype
        self._dt, self._dt_tensor = float(dt), torch.tensor(float(dt), dtype=dtype, device=place)
        self._solver, self._contact = solver, contact
        self._gradient: Gradient = gradient
        self._project = project
        self._impacts: Impacts | None = impacts
        self._watch = Watch() if place.type == "cuda" else None

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

    @property
    def solver(self) -> Solver:
        """How contacts, friction and limits are solved."""
        return self._solver

    @property
    def contact(self) -> Contact:
        """How shapes and limits are kept apart."""
        return self._contact

    @property
    def gradient(self) -> Gradient:
        """How the solve is differentiated: "implicit" or "exact"."""
        return self._gradient

    @property
    def project(self) -> int:
        """Newton steps that put the end of every step back on its constraints."""
        return self._project

    @property
    def impacts(self) -> Impacts | None:
        """None, or "toi" where steps are split at times of impact."""
        return self._impacts

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Names of the joint rows, in the order of `Info.rows`."""
        return row_names(self.model)

    def __repr__(self) -> str:
        defaults = {"solver": _PGS, "contact": _CONTACT, "gradient": "implicit", "project": _PROJECT, "impacts": None}
        if self.device.type != "cpu":
            defaults = {"device": None, **defaults}
        options = ((name, getattr(self, name), default) for name, default in defaults.items())
        changed = "".join(f", {name}={value!r}" for name, value, default in options if value != default)
        return f"Simulator({self.model!r}, dt={self.dt}, dtype={self.dtype}{changed})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.solver, self.contact, self.gradient, self.project, self.impacts
        return _rebuild, (self.model, self.dt, str(self.device), self.dtype, *options)

    def initial_state(self, worlds: int | tuple[int, ...] | None = None) -> State:
        """The model's default configuration at rest: q [*worlds, nq], v [*worlds, nv]; without `worlds` one unbatched state."""
        batch = () if worlds is None else tuple(worlds) if isinstance(worlds, (tuple, list)) else (worlds,)
        if any(not isinstance(n, int) or n < 1 for n in batch):
            raise ValueError(f"worlds must be positive ints, got {worlds!r}")
        q = torch.tensor(self.model.q0, dtype=self.dtype, device=self.device).expand(*batch, -1).clone()
        return State(q, q.new_zeros(*batch, self.model.nv))

    def step(
        self, state: State, control: Any = None, params: Params | None = None, *, external: Any = None, dt: Any = None,
        info: bool = False,
    ) -> Any:  # fmt: skip
        """One step: State, or (State, Info) with info=True.

        control : [..., nu], default none. external : [..., nb, 6], torque (N m) and force (N) at the centres of mass, world axes;
            in planar models [..., nb, 3], (fx, fy, torque).
        dt : s, a number or tensor [...]. A world whose step is not finite is held where it was, with a warning.
        """
        i.check_state(state)
        as_numpy = type(state.q) is np.ndarray
        if as_numpy:
            # one world in numpy goes straight to the engine, since overhead counts; None: it needs a closer look
            plain = params is None and external is None and dt is None and not info and self._device.type == "cpu"
            if plain and not isinstance(self._solver, InteriorPoint):  # whose failures are told
                one = self._step_one(state, control)
                if one is not None:
                    return one
            kind = (self.dtype, self.device)
            state = State(b.tensor("q", state.q, (self.model.nq,), *kind), b.tensor("v", state.v, (self.model.nv,), *kind))
        detail = CONTACTS if info else STATUS if self._watched else 0
        done = self.advance(state, control, params, external=external, dt=dt, detail=detail)
        if not self.told_later(done.at, 1, done.detail, "step", done.inputs):
            warn_diverged(done.at, 1, "step")
            if self._watched:
                warn_status(self.model, self.solver, done.detail[0], "step")
        result = (done.state, self._info(state, done)) if info else done.state
        return pytree.tree_map(b.to_numpy, result) if as_numpy else result

    def rollout(
        self, state: State, controls: Tensor | Policy | None = None, params: Params | None = None, *, steps: int | None = None,
        substeps: int = 1, external: Tensor | np.ndarray | Forces | None = None, dt: Any = None, carry: Any = None,
        decay: float = 1.0, truncate: int | None = None, clip: float | None = None,
    ) -> Trajectory:  # fmt: skip
        """Many steps. Only the states are kept; the backward pass recomputes each step from the state before it.

        controls : [T, ..., nu], or a policy(state, carry, t) -> control or (control, carry), or None for no control.
        steps : T; needed without controls. substeps : steps of dt per control, the control held.
        external : [..., nb, 6] constant, or [T, ..., nb, 6]; with no more batch dimensions than the rest has; 3 in place of 6 in
            planar models, as in `step`. Or a function(state, t) -> [..., nb, 6] (or 3, or None) of the state at the start of each
            control step and the time t (s) from the start of the rollout to then: a float, a tensor where dt is one. The forces
            are held over the substeps; gradients flow through the function.
        decay : the costate is multiplied by it at every control step on its way back. truncate : it is cut every so many.
        clip : a world's costate, that of q (tangent) and v together, is scaled down to at most this norm after every control step
            on its way back. A policy's carry is not clipped.
        """
        i.check_counts(steps=steps, substeps=substeps, truncate=truncate)
        i.check_costate(decay, clip)
        i.check_state(state)
        if callable(controls) or callable(external):
            return rollout_stepwise(self, state, controls, params, steps, substeps, external, dt, carry, decay, truncate, clip)
        as_numpy, model = b.is_numpy(state.q), self.model
        count = i.count_steps(model, controls, steps)
        inputs, batch = self.gather(state, controls, params, external, dt, time=count)
        spec = RolloutSpec(
            b.worlds(batch), count, substeps, float(decay), truncate or 0, True, STATUS, clip or 0.0, self._options
        )
        q, v, at, status = rollout(model.engine, spec, *inputs)
        if not self.told_later(at, count, (status,), "rollout", inputs):
            warn_diverged(at, count, "rollout")
            if self._watched:
                warn_status(model, self.solver, status, "rollout")
        q, v = q.reshape(count + 1, *batch, model.nq), v.reshape(count + 1, *batch, model.nv)
        traj = Trajectory(q, v, at.reshape(batch), controls, status=Status(status.reshape(*batch, -1)))
        return _numpy_trajectory(traj) if as_numpy else traj

    def linearize(
        self, state: State, control: Any = None, params: Params | None = None, *, external: Any = None, dt: Any = None
    ) -> tuple[Any, Any]:
        """A [..., 2nv, 2nv] and B [..., 2nv, nu] of one step, exact, from (q, v) to (q+, v+) in tangent coordinates.

        Changes of q are tangent vectors, as model.integrate takes them and model.difference gives them. Not differentiable
        itself: the result has no graph.
        """
        i.check_state(state)
        with torch.no_grad():
            inputs, batch = self.gather(state, control, params, external, dt)
            b.check_values(self.model, q=inputs[0], v=inputs[1], control=inputs[2], external=inputs[4])
            n, nu = 2 * self.model.nv, self.model.nu
            if inputs[2] is None:
                inputs = (*inputs[:2], inputs[0].new_zeros(1, nu), *inputs[3:])
            A, B = instant(self.model.engine, Op.LINEARIZE, *inputs, options=self._options)
        A, B = A.reshape(*batch, n, n), B.reshape(*batch, n, nu)
        return (A.numpy(), B.numpy()) if b.is_numpy(state.q) else (A, B)

    def gradient_report(
        self, trajectory: Trajectory, params: Params | None = None, *, loss: Callable[[Trajectory], Tensor] | None = None,
        substeps: int = 1, external: Any = None, dt: Any = None,
    ) -> GradientReport:  # fmt: skip
        """Where along a trajectory gradients grow, and where contacts and limits switch or nearly do.

        trajectory : what `rollout` gave; params, substeps, external and dt must be those it was made with.
        loss : loss(trajectory) -> scalar, whose gradient is followed back. Default: a costate of norm 1 at the end, all entries
            (tangent) equal. A policy's own share is not followed: its controls are taken as they came out.
        """
        return gradient_report(self, trajectory, params, loss=loss, substeps=substeps, external=external, dt=dt)

    def advance(
        self, state: State, control: Any, params: Params | None, *, external: Any = None, dt: Any = None, substeps: int = 1,
        detail: int = 0, theta: Tensor | None = None,
    ) -> Advanced:  # fmt: skip
        """`substeps` steps with one control; without warnings. detail: 0, STATUS, or CONTACTS (of one substep).

        theta: what `batch.theta` made of the params, if it was asked before.
        """
        inputs, batch = self.gather(state, control, params, external, dt, theta=theta)
        if inputs[2] is not None:
            inputs = (*inputs[:2], inputs[2].unsqueeze(0), *inputs[3:])
        spec = RolloutSpec(b.worlds(batch), 1, substeps, detail=detail, options=self._options)
        q, v, at, *told = rollout(self.model.engine, spec, *inputs)
        new = State(q.reshape(*batch, self.model.nq), v.reshape(*batch, self.model.nv))
        return Advanced(new, at.reshape(batch), inputs, batch, tuple(told))

    def gather(
        self, state: State, control: Any, params: Params | None, external: Any, dt: Any, time: int = 0,
        theta: Tensor | None = None,
    ) -> tuple[tuple[Any, ...], tuple[int, ...]]:  # fmt: skip
        """Check and flatten: the engine's six inputs and the batch shape. time: steps of controls, or 0. theta: as `advance`."""
        i.check_state(state)
        h = self._dt_tensor if dt is None else i.step_size(dt, self.dtype, self.device)
        return i.gather(self.model, h, state, control, params, external, time, theta)

    @property
    def options(self) -> Options:
        """The solver's options as the engine takes them."""
        return self._options

    def compile(self, *, gradient: bool = True, substeps: int = 1, worlds: int | None = None) -> None:
        """On a GPU: compile what steps and rollouts need, as well as possible, and wait for it: half a minute to some minutes,
        once for each model. Else first calls run kernels that were compiled quickly, and are several times slower until better
        ones are ready. On the CPU: nothing.

        gradient : also what backward needs.
        worlds : for how many, since few of some models are stepped by other kernels than many; None for both.
        """
        if self.device.type == "cuda":
            self.model.engine.cuda(self.device).compile(substeps, self.options, self.dtype, gradient=gradient, worlds=worlds)

    def synchronize(self) -> None:
        """On a GPU: wait for all that was asked of it, and tell what is to be told of it. On the CPU: nothing."""
        if self._watch is not None:
            self._watch.finish()

    def told_later(self, at: Tensor, steps: int, detail: tuple[Tensor, ...], where: str, inputs: tuple[Any, ...]) -> bool:
        """On a GPU: warn of what went wrong once it is known, raise if the inputs were no numbers. On the CPU: False."""
        if self._watch is None:
            return False

        def tell(at: Tensor, status: Tensor | None) -> None:
            if not bool((at > 0).all()):
                b.check_values(self.model, q=inputs[0], v=inputs[1], control=inputs[2], dt=inputs[3], external=inputs[4])
            warn_diverged(at, steps, where)
            if status is not None:
                warn_status(self.model, self.solver, status, where)

        self._watch.later((at, detail[0] if detail and self._watched else None), tell)
        return True

    def _info(self, old: State, done: Advanced) -> Info:
        dt = done.inputs[3]
        h = dt.reshape(()) if dt.shape[0] == 1 else dt.reshape(*done.batch, 1)
        contacts, rows, constraints = contacts_of(self.model, Detail(*done.detail), done.batch)
        status = Status(done.detail[0].reshape(*done.batch, -1))
        return Info((done.state.v - old.v) / h, done.at < 1, contacts, rows, constraints, status)

    @cached_property
    def _watched(self) -> bool:
        return is_watched(self.model, self.solver)

    @cached_property
    def _step_one(self) -> Callable[[Any, Any], Any]:
        theta = b.theta(self.model, b.default_params(self.model), self.dtype).numpy()
        return Stepper(self.model.engine.tree, theta, np.array([self.dt], dtype=theta.dtype), State, self._options).step


def _rebuild(
    model: Model,
    dt: float,
    device: str,
    dtype: torch.dtype,
    solver: Solver,
    contact: Contact,
    gradient: Gradient,
    project: int,
    impacts: Impacts | None,
) -> Simulator:
    options: dict[str, Any] = {
        "solver": solver, "contact": contact, "gradient": gradient, "project": project, "impacts": impacts,
    }  # fmt: skip
    return Simulator(model, dt, device=device, dtype=dtype, **options)


def _check_turning(model: Model) -> None:
    """The interior point knows cones of friction, not torques."""
    dims = np.array(model.shape_condim, dtype=int)[model.pairs]
    if not model.planar and dims.size and dims.max() > 3:
        a, b = (model.shape_names[i] for i in model.pairs[np.argmax(dims.max(1))])
        raise NotImplementedError(
            f"InteriorPoint has no torsional or rolling friction, got condim {dims.max()} between {a!r} and {b!r}; use PGS"
        )


def _numpy_trajectory(traj: Trajectory) -> Trajectory:
    controls = traj.controls.detach().numpy() if isinstance(traj.controls, Tensor) else traj.controls
    status = Status(traj.status.numbers.numpy())
    return Trajectory(b.to_numpy(traj.q), b.to_numpy(traj.v), traj.diverged_at.numpy(), controls, status=status)
