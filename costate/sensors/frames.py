"""Sensors of frames: poses, velocities and accelerations of sites and bodies, in the world or as another frame sees them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from costate.rotation import inverse, multiply, rotate
from costate.sensors.motion import accelerations, point_accelerations
from costate.sensors.places import Frames, Places, find_places, frames
from costate.sensors.sensor import WXYZ, XYZ, Bound, Names, Sensor, as_names, labels

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


@dataclass(frozen=True)
class FrameSensor(Sensor):
    """A sensor that reads some numbers of each of its frames.

    Parameters
    ----------
    at : names of sites and bodies; "site:name" and "body:name" where both have it, "com:name" for a body's centre of mass.
    """

    at: Names
    unit: ClassVar[str]
    parts: ClassVar[Sequence[str]] = XYZ
    forces: ClassVar[bool] = False

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        places = find_places(model, self.kind, as_names(self.kind, self.at))
        measure = self._measure

        def read(reading: Reading) -> Tensor:
            return measure(reading, places, frames(reading, places)).flatten(-2)

        return Bound(labels(places.names, self.parts), self.unit, read, self.forces)

    @abstractmethod
    def _measure(self, reading: Reading, places: Places, at: Frames) -> Tensor:
        """[*batch, places, parts]."""


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
        seen_from = None if self.relative_to is None else find_places(model, f"{self.kind}: relative_to", (self.relative_to,))

        def read(reading: Reading) -> Tensor:
            at = frames(reading, places)
            found = self._in_world(at) if seen_from is None else self._seen(at, frames(reading, seen_from))
            return found.flatten(-2)

        return Bound(labels(places.names, self.parts), self.unit, read)

    @abstractmethod
    def _in_world(self, at: Frames) -> Tensor:
        """[*batch, n, parts] in world axes."""

    @abstractmethod
    def _seen(self, at: Frames, by: Frames) -> Tensor:
        """[*batch, n, parts] as the one frame `by` sees it."""


class FramePosition(RelativeSensor):
    """Positions of frames, m."""

    unit = "m"

    def _in_world(self, at: Frames) -> Tensor:
        return at.position

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return rotate(inverse(by.quaternion), at.position - by.position)


class FrameQuaternion(RelativeSensor):
    """Orientations of frames, unit quaternions wxyz; a quaternion and its negative are the same orientation."""

    unit, parts = "-", WXYZ

    def _in_world(self, at: Frames) -> Tensor:
        return at.quaternion

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return multiply(inverse(by.quaternion), at.quaternion)


class FrameVelocity(RelativeSensor):
    """Velocities of the origins of frames, m/s."""

    unit = "m/s"

    def _in_world(self, at: Frames) -> Tensor:
        return at.velocity

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        carried = by.velocity + torch.linalg.cross(by.spin.expand_as(at.position), at.position - by.position)
        return rotate(inverse(by.quaternion), at.velocity - carried)


class FrameAngularVelocity(RelativeSensor):
    """Angular velocities of frames, rad/s."""

    unit = "rad/s"

    def _in_world(self, at: Frames) -> Tensor:
        return at.spin

    def _seen(self, at: Frames, by: Frames) -> Tensor:
        return rotate(inverse(by.quaternion), at.spin - by.spin)


class FrameAcceleration(FrameSensor):
    """Accelerations of the origins of frames, m/s^2, world axes, from (v+ - v) / dt of the step; gravity is not counted."""

    unit, forces = "m/s^2", True

    def _measure(self, reading: Reading, places: Places, at: Frames) -> Tensor:
        return point_accelerations(reading, reading.index(places.on), at)


class FrameAngularAcceleration(FrameSensor):
    """Angular accelerations of frames, rad/s^2, world axes, from (v+ - v) / dt of the step."""

    unit, forces = "rad/s^2", True

    def _measure(self, reading: Reading, places: Places, at: Frames) -> Tensor:
        return reading.once(accelerations).angular.index_select(-2, reading.index(places.on))
