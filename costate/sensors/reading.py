"""Reading: one call of sensors, with everything that they share computed once, when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from costate import batch as b
from costate import devices
from costate.dynamics import poses
from costate.inputs import check_state, step_size
from costate.state import State

if TYPE_CHECKING:
    from costate.info import Info
    from costate.scene import Model, Params
    from costate.sim import Simulator

_T = TypeVar("_T")


class Bodies(NamedTuple):
    """Poses and velocities of all bodies, and behind them of the world. World axes."""

    position: Tensor  # [*batch, nb + 1, 3]
    quaternion: Tensor  # [*batch, nb + 1, 4]
    spin: Tensor  # [*batch, nb + 1, 3]
    velocity: Tensor  # [*batch, nb + 1, 3] of the origin
    S: Tensor  # [*batch, nv, 6] of every dof, angular first, about its own body's origin


class Reading:
    """What is measured: a state, the step that starts there, and what sensors compute of both.

    Attributes
    ----------
    model : of the sensors. params : shared by all worlds or of each.
    batch : shape of all worlds. q, v : [*batch, nq] and [*batch, nv].
    control : [*batch, nu]; zeros where none was given. external : [*batch, nb, 6] or None.
    """

    def __init__(
        self, model: Model, sim: Simulator, state: State, control: Any, params: Params | None, external: Any, dt: Any,
        info: Info | None,
    ) -> None:  # fmt: skip
        check_state(state)
        self.model, self.sim, self.params = model, sim, b.check_params(model, params)
        kind, nu = (sim.dtype, sim.device), model.nu
        q, v = b.tensor("q", state.q, (model.nq,), *kind), b.tensor("v", state.v, (model.nv,), *kind)
        control = q.new_zeros(nu) if control is None else b.tensor("control", control, (nu,), *kind)
        h = devices.constant(sim.dt, q) if dt is None else step_size(dt, *kind)
        self.external = b.wrenches(model, external, *kind)
        shapes: dict[str, tuple[int, ...]] = {
            "q": q.shape[:-1], "v": v.shape[:-1], "control": control.shape[:-1], "params": self.params.batch_shape,
            "dt": h.shape, "external": () if self.external is None else self.external.shape[:-2],
        }  # fmt: skip
        self.batch = b.broadcast(shapes)
        self.q, self.v = q.expand(*self.batch, -1), v.expand(*self.batch, -1)
        self.control = control.expand(*self.batch, -1)
        self._given, self._external, self._dt, self._h = info, external, dt, h
        self._made: dict[tuple[Any, ...], Any] = {}

    def once(self, f: Callable[..., _T], *args: Any) -> _T:
        """f(self, *args), computed by whoever asks first."""
        key = (f, *args)
        if key not in self._made:
            self._made[key] = f(self, *args)
        return self._made[key]

    def param(self, name: str) -> Tensor:
        """A parameter field in the dtype and on the device of the state."""
        return devices.field(self.params, name, self.q)

    def constant(self, values: Any, dtype: torch.dtype | None = None) -> Tensor:
        """Numbers, in (nested) tuples, in the dtype and on the device of the state."""
        return devices.constant(values, self.q, dtype)

    def index(self, numbers: Iterable[int]) -> Tensor:
        """Numbers of entries, on the device of the state."""
        return devices.index(numbers, self.q)

    @cached_property
    def h(self) -> Tensor:
        """The step size, s: a scalar, or [*batch, 1] where worlds differ."""
        return self._h if self._h.ndim == 0 else self._h.expand(self.batch).unsqueeze(-1)

    @cached_property
    def bodies(self) -> Bodies:
        """All poses and velocities: one call of the engine."""
        position, quaternion, velocity, S = poses(self.model, self.q, self.v, self.params)
        still = position.new_zeros(*self.batch, 1, 3)
        upright = self.constant((1.0, 0.0, 0.0, 0.0)).expand(*self.batch, 1, 4)
        position, quaternion = torch.cat((position, still), -2), torch.cat((quaternion, upright), -2)
        spin, linear = (torch.cat((x, still), -2) for x in velocity.split(3, -1))
        return Bodies(position, quaternion, spin, linear, S)

    @cached_property
    def info(self) -> Info:
        """What the step from this state tells: the one that was given, or one made for all sensors."""
        if self._given is not None:
            found = tuple(self._given.acceleration.shape)
            if found != (*self.batch, self.model.nv):
                raise ValueError(f"info must be that of a step of worlds {self.batch}, got accelerations of shape {found}")
            return self._given
        state = State(self.q, self.v)
        return self.sim.step(state, self.control, self.params, external=self._external, dt=self._dt, info=True)[1]

    @cached_property
    def acceleration(self) -> Tensor:
        """(v+ - v) / dt [*batch, nv] of that step."""
        return self.info.acceleration
