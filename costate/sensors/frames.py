"""Sensors of frames: poses, velocities and accelerations of sites and bodies, in the world or as another frame sees them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from costate.sensors.motion import AngularAccelerations, PointAccelerations
from costate.sensors.places import Frames, FramesOf, Places, find_places, frames
from costate.sensors.sensor import WXYZ, XYZ, Asks, Bound, Names, Part, Sensor, as_names, labels
from costate.sensors.turning import cross, quotient

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading, Shared


@dataclass(frozen=True)
class FrameSensor(Sensor):
    """A sensor that reads a vector of each of its frames.

    Parameters
    ----------
    at : names of sites and bodies; "site:name" and "body:name" where both have it, "com:name" for a body's centre of mass.
    """

    at: Names
    unit: ClassVar[str]
    own_axes: ClassVar[bool] = False  # whether it is read in the axes of its frames
    forces: ClassVar[bool] = False
    reads: ClassVar[tuple[type[Shared[Places, Any]], ...]] = ()  # of its places, besides their frames

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        places = find_places(model, self.kind, as_names(self.kind, self.at))
        part = Part(lambda reading: self._measure(reading, places), places if self.own_axes else None)
        return Bound(labels(places.names, XYZ), self.unit, (part,), self.forces, self._asks(model, places))

    def _asks(self, model: Model, places: Places) -> Asks:
        return ((FramesOf, places), *((kind, places) for kind in self.reads))

    @abstractmethod
    def _measure(self, reading: Reading, places: Places) -> Tensor:
        """[*batch, places, 3] in world axes."""


@dataclass(frozen=True)
class RelativeSensor(Sensor):
    """A sensor of frames, in the world or as another frame sees them.

    Parameters
    ----------
    at : names of sites and bodies, as of every frame sensor.
    relative_to : a site or body, which may move: then in its axes, seen by somebody who moves and turns with it. None: the world.
    """

    at: Names
    relative_to: str | None = None
    unit: ClassVar[str]
    parts: ClassVar[Sequence[str]] = XYZ

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        places = find_places(model, self.kind, as_names(self.kind, self.at))
        words = labels(places.names, self.parts)
        if self.relative_to is None:
            part = Part(lambda reading: self._in_world(frames(reading, places)))
            return Bound(words, self.unit, (part,), asks=((FramesOf, places),))
        by = find_places(model, f"{self.kind}: relative_to", (self.relative_to,))
        # a quaternion has four numbers, and is no vector to be turned
        axes = by if len(self.parts) == 3 else None
        part = Part(lambda reading: self._seen(frames(reading, places), frames(reading, by)), axes)
        return Bound(words, self.unit, (part,), asks=((FramesOf, places), (FramesOf, by)))

    @abstractmethod
    def _in_world(self, at: Frames) -> Tensor:
        """[*batch, n, parts] in world axes."""

    @abstractmethod
    def _seen(self, at: Frames, by: Frames) -> Tensor:
        """[*batch, n, parts] as the one frame `by` sees it; vectors in world axes."""


class FramePosition(RelativeSensor):
    """Positions of frames, m."""

    unit = "m"

    def _in_world(self, at: Frames) -> Tensor:
        return at.position

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return at.position - by.position


class FrameQuaternion(RelativeSensor):
    """Orientations of frames, unit quaternions wxyz; a quaternion and its negative are the same orientation."""

    unit, parts = "-", WXYZ

    def _in_world(self, at: Frames) -> Tensor:
        return at.quaternion

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return quotient(by.quaternion, at.quaternion)


class FrameVelocity(RelativeSensor):
    """Velocities of the origins of frames, m/s."""

    unit = "m/s"

    def _in_world(self, at: Frames) -> Tensor:
        return at.velocity

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return at.velocity - by.velocity - cross(by.spin, at.position - by.position)


class FrameAngularVelocity(RelativeSensor):
    """Angular velocities of frames, rad/s."""

    unit = "rad/s"

    def _in_world(self, at: Frames) -> Tensor:
        return at.spin

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return at.spin - by.spin


class FrameAcceleration(FrameSensor):
    """Accelerations of the origins of frames, m/s^2, world axes, from (v+ - v) / dt of the step; gravity is not counted."""

    unit, forces, reads = "m/s^2", True, (PointAccelerations,)

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return reading.shared(PointAccelerations, places)


class FrameAngularAcceleration(FrameSensor):
    """Angular accelerations of frames, rad/s^2, world axes, from (v+ - v) / dt of the step."""

    unit, forces, reads = "rad/s^2", True, (AngularAccelerations,)

    def _measure(self, reading: Reading, places: Places) -> Tensor:
        return reading.shared(AngularAccelerations, places)
