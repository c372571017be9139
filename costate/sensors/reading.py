"""Reading: one call of sensors, with everything that they share computed once, when first asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from costate import batch as b
from costate import devices
from costate.dynamics import poses
from costate.inputs import check_state, step_size
from costate.sensors.tables import Table
from costate.state import State

if TYPE_CHECKING:
    from costate.info import Info
    from costate.scene import Model, Params
    from costate.sim import Simulator

_T = TypeVar("_T")
_Item = TypeVar("_Item")

_WORLD = Table(((0.0,) * 3 + (1.0,) + (0.0,) * 9,))
COLUMNS = (3, 4, 3, 3)  # of position, quaternion, spin, velocity


class Shared(ABC, Generic[_Item, _T]):
    """Something that is computed in one go for all sensors that ask for it; its tables are made with them.

    items : what is asked for, each hashable.
    """

    def __init__(self, model: Model, items: Sequence[_Item]) -> None:
        self.model, self.items = model, items

    @abstractmethod
    def compute(self, reading: Reading) -> Sequence[_T]:
        """One result per item."""


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
        info: Info | None, asked: Mapping[type[Shared[Any, Any]], Shared[Any, Any]],
    ) -> None:  # fmt: skip
        check_state(state)
        self.model, self.sim, self.params = model, sim, b.check_params(model, params)
        kind, nu = (sim.dtype, sim.device), model.nu
        q, v = b.tensor("q", state.q, (model.nq,), *kind), b.tensor("v", state.v, (model.nv,), *kind)
        control = q.new_zeros(nu) if control is None else b.tensor("control", control, (nu,), *kind)
        h = None if dt is None else step_size(dt, *kind)
        self.external = b.wrenches(model, external, *kind)
        shapes: dict[str, tuple[int, ...]] = {
            "q": q.shape[:-1], "v": v.shape[:-1], "control": control.shape[:-1], "params": self.params.batch_shape,
            "dt": () if h is None else h.shape, "external": () if self.external is None else self.external.shape[:-2],
        }  # fmt: skip
        self.batch = b.broadcast(shapes)
        self.q, self.v, self.control = (self.of_all(x) for x in (q, v, control))
        self._given, self._external, self._dt, self._h = info, external, dt, h
        self._asked, self._made = asked, {}

    def of_all(self, x: Tensor) -> Tensor:
        """x [..., n] of every world [*batch, n]."""
        return x if x.shape[:-1] == self.batch else x.expand(*self.batch, x.shape[-1])

    def once(self, f: Callable[..., _T], *args: Any) -> _T:
        """f(self, *args), computed by whoever asks first."""
        key = (f, *args)
        if key not in self._made:
            self._made[key] = f(self, *args)
        return self._made[key]

    def shared(self, kind: type[Shared[_Item, _T]], item: _Item) -> _T:
        """What `kind` computes of the item: whoever asks first, for all that any sensor said it would ask for."""
        if kind not in self._made:
            all_ = self._asked.get(kind)
            self._made[kind] = {} if all_ is None else dict(zip(all_.items, all_.compute(self), strict=True))
        made = self._made[kind]
        if item not in made:  # nobody said so
            (made[item],) = kind(self.model, (item,)).compute(self)
        return made[item]

    def param(self, name: str) -> Tensor:
        """A parameter field in the dtype and on the device of the state."""
        return devices.field(self.params, name, self.q)

    def constant(self, values: Any, dtype: torch.dtype | None = None) -> Tensor:
        """Numbers, in (nested) tuples, in the dtype and on the device of the state; a `Table` is made only once."""
        return devices.constant(values, self.q, dtype)

    def index(self, numbers: Iterable[int]) -> Tensor:
        """Numbers of entries, on the device of the state; a `Table` is made only once."""
        return devices.index(numbers, self.q)

    @cached_property
    def h(self) -> Tensor:
        """The step size, s: a scalar, or [*batch, 1] where worlds differ."""
        if self._h is None:
            return devices.constant(self.sim.dt, self.q)
        return self._h if self._h.ndim == 0 else self._h.expand(self.batch).unsqueeze(-1)

    @cached_property
    def motion(self) -> tuple[Tensor, Tensor]:
        """Position, quaternion, spin and velocity of all bodies and the world [*batch, nb + 1, 13]; S. One call of the engine."""
        position, quaternion, velocity, S = poses(self.model, self.q, self.v, self.params)
        world = _WORLD.like(self.q).expand(*self.batch, 1, 13)
        return torch.cat((torch.cat((position, quaternion, velocity), -1), world), -2), S

    @cached_property
    def bodies(self) -> Bodies:
        """The same by their names."""
        every, S = self.motion
        position, quaternion, spin, velocity = every.split_with_sizes(COLUMNS, -1)
        return Bodies(position, quaternion, spin, velocity, S)

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
