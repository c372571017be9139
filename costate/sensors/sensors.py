"""Sensors: several sensors on one model, read together as one vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costate import batch as b
from costate.scene import Model
from costate.scene.names import new_name
from costate.sensors.assembly import Assembly
from costate.sensors.reading import Reading
from costate.sensors.sensor import Bound, Sensor
from costate.sensors.tables import Table

if TYPE_CHECKING:
    from costate.info import Info
    from costate.scene import Params
    from costate.sim import Simulator
    from costate.state import State

_SHARED = {field.name for field in fields(Sensor)}


class Sensors:
    """Sensors on a model, read together: differentiable functions of a state, a control and parameters.

    All are measured at the state. Those of forces (accelerometers, contacts, torques) measure the step that starts there, made
    once for all of them; without such sensors there is none.

    Parameters
    ----------
    model : what they are on.
    sensors : in the order of their readings.
    """

    def __init__(self, model: Model, sensors: Iterable[Sensor]) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"model must be a costate.Model, got {type(model).__name__}")
        self._model, self._sensors = model, tuple(sensors)
        for sensor in self._sensors:
            if not isinstance(sensor, Sensor):
                raise TypeError(f"sensors must be sensors such as Gyro('imu'), got {sensor!r}")
        if not self._sensors:
            raise ValueError("sensors must be at least one sensor, got none")
        names: dict[str, Bound] = {}
        for sensor in self._sensors:
            bound = sensor.bind(model)
            names[new_name(f"{sensor.kind}: ", "sensor", sensor.name, _default_name(sensor), names)] = bound
        self._bound: Mapping[str, Bound] = MappingProxyType(names)
        ends = accumulate((len(bound.labels) for bound in names.values()), initial=0)
        self._slices = MappingProxyType(dict(zip(names, (slice(*ends) for ends in pairwise(ends)), strict=True)))
        widths = [len(bound.labels) for bound in names.values()]
        per_number = [s for s, width in zip(self._sensors, widths, strict=True) for _ in range(width)]
        scale, noise = (tuple(getattr(s, field) for s in per_number) for field in ("scale", "noise"))
        self._scale, self._noise = None if all(x == 1.0 for x in scale) else Table(scale), Table(noise)
        self._assembly = Assembly(model, self._sensors, list(names.values()))

    @property
    def model(self) -> Model:
        """What they are on."""
        return self._model

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """As given."""
        return self._sensors

    @property
    def names(self) -> tuple[str, ...]:
        """One per sensor."""
        return tuple(self._bound)

    @property
    def labels(self) -> tuple[str, ...]:
        """One per number: the sensor's name and which of its numbers."""
        return tuple(f"{name}: {label}" for name, bound in self._bound.items() for label in bound.labels)

    @property
    def slices(self) -> Mapping[str, slice]:
        """Name of a sensor -> where its numbers are in a reading."""
        return self._slices

    @property
    def width(self) -> int:
        """n, how many numbers a reading has."""
        return sum(len(bound.labels) for bound in self._bound.values())

    @property
    def forces(self) -> bool:
        """Whether a reading takes a step, since a sensor of forces is among them."""
        return any(bound.forces for bound in self._bound.values())

    def __call__(
        self, sim: Simulator, state: State, control: Any = None, params: Params | None = None, *, external: Any = None,
        dt: Any = None, info: Info | None = None, noise: bool | torch.Generator = False,
    ) -> Any:  # fmt: skip
        """A reading [..., n] of a state; batch dimensions of all arguments broadcast, as in `Simulator.step`.

        control, params, external, dt : of the step that sensors of forces measure, as `Simulator.step` takes them.
        info : what `sim.step(state, control, params, ..., info=True)` told of that very step, where it was made already.
        noise : True, or a generator of the state's device: to every number normal noise of its sensor's standard deviation is
            added.
        """
        if sim.model is not self._model and sim.model.topology != self._model.topology:
            raise ValueError(f"sensors belong to another model: {self._model!r}, the simulator has {sim.model!r}")
        as_numpy = b.is_numpy(getattr(state, "q", None))
        if as_numpy and info is not None:
            raise TypeError("info goes with torch tensors; leave it out, or pass state.torch() and the info of its step")
        reading = Reading(self._model, sim, state, control, params, external, dt, info, self._assembly.asked)
        y = self._finish(self._assembly.read(reading), noise)
        return b.to_numpy(y) if as_numpy else y

    def named(self, reading: Any) -> dict[str, Any]:
        """A reading [..., n] by the names of the sensors, each [..., its width]."""
        if reading.shape[-1:] != (self.width,):
            raise ValueError(f"reading must have shape [..., {self.width}], got {tuple(reading.shape)}")
        return {name: reading[..., where] for name, where in self._slices.items()}

    def summary(self) -> str:
        """A table of the sensors, one line each."""
        rows = [("numbers", "name", "kind", "unit", "measures", "reads")]
        for (name, where), sensor, bound in zip(self._slices.items(), self._sensors, self._bound.values(), strict=True):
            span = str(where.start) if where.stop == where.start + 1 else f"{where.start}:{where.stop}"
            shown = ", ".join(bound.labels[:3]) + (", ..." if len(bound.labels) > 3 else "")
            rows.append((span, name, sensor.kind, bound.unit, "step" if bound.forces else "state", shown))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "\n".join((repr(self), *lines))

    def __len__(self) -> int:
        """How many sensors there are."""
        return len(self._sensors)

    def __repr__(self) -> str:
        return f"Sensors({len(self)} sensors, {self.width} numbers, on {self._model!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Sensors, (self._model, self._sensors)

    def _finish(self, y: Tensor, noise: bool | torch.Generator) -> Tensor:
        """With noise where it is asked for, and scaled."""
        if noise is not False:
            generator = noise if isinstance(noise, torch.Generator) else None
            noisy = torch.randn(y.shape, dtype=y.dtype, device=y.device, generator=generator)
            y = y + noisy * self._noise.like(y)
        return y if self._scale is None else y / self._scale.like(y)


def _default_name(sensor: Sensor) -> str:
    """The kind, and what it is on if that is one thing."""
    on = next((getattr(sensor, field.name) for field in fields(sensor) if field.name not in _SHARED), None)
    on = on[0] if isinstance(on, (list, tuple)) and len(on) == 1 else on
    return f"{sensor.kind} {on}" if isinstance(on, str) else sensor.kind
