"""Sensors of an inertial measurement unit, on a site or body and in its axes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from costate.sensors.frames import FrameSensor
from costate.sensors.motion import PointAccelerations
from costate.sensors.places import frames

if TYPE_CHECKING:
    from costate.sensors.places import Places
    from costate.sensors.reading import Reading


class Gyro(FrameSensor):
    """Angular velocity in the sensor's own axes, rad/s."""

    unit, own_axes = "rad/s", True

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return frames(reading, places).spin


class Velocimeter(FrameSensor):
    """Velocity of the sensor in its own axes, m/s."""

    unit, own_axes = "m/s", True

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return frames(reading, places).velocity


class Accelerometer(FrameSensor):
    """Specific force in the sensor's own axes, m/s^2: acceleration minus gravity. At rest it reads g upwards, in free fall zero.

    The acceleration is that of the step, (v+ - v) / dt: an impact is spread over the step it happens in.
    """

    unit, own_axes, forces, reads = "m/s^2", True, True, (PointAccelerations,)

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return reading.shared(PointAccelerations, places) - reading.param("gravity").unsqueeze(-2)


@dataclass(frozen=True)
class Magnetometer(FrameSensor):
    """A field that is the same everywhere, in the sensor's own axes.

    Parameters
    ----------
    field : [3], world axes, in any unit. (0, 0, -1) makes it the direction of gravity, as the sensor sees it.
    """

    _: KW_ONLY
    field: tuple[float, float, float] = (0.0, -0.5, 0.0)

    unit, own_axes = "-", True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.field) != 3 or not any(self.field):
            raise ValueError(f"{self.kind}: field must be three numbers, not all of them zero, got {self.field!r}")

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return reading.constant(tuple(self.field)).expand(*reading.batch, len(places.row), 3)
