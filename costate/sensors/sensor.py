"""Sensor: what all sensors share, and what one becomes when it is put on a model."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from torch import Tensor

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.places import Places
    from costate.sensors.reading import Reading, Shared

Names: TypeAlias = "str | Sequence[str]"
Asks: TypeAlias = "tuple[tuple[type[Shared[Any, Any]], Any], ...]"  # kinds and their items
XYZ, WXYZ = ("x", "y", "z"), ("w", "x", "y", "z")


class Part(NamedTuple):
    """Some numbers of a sensor.

    Vectors are given in world axes, and turned into those of `axes` together with the vectors of all other sensors.
    """

    read: Callable[[Reading], Tensor]  # [*batch, n]; vectors [*batch, n, 3] where there are axes
    axes: Places | None = None  # of every vector, or one frame for all of them
    goes_to: tuple[int, ...] | None = None  # which number of the sensor each one is, -1: none. None: all in order


class Bound(NamedTuple):
    """A sensor on a model."""

    labels: tuple[str, ...]  # one per number
    unit: str
    read: Callable[[Reading], Tensor] | tuple[Part, ...]  # [*batch, len(labels)], or its parts
    forces: bool = False  # whether it reads what a step does: accelerations, contacts, torques
    asks: Asks = ()  # what it reads by reading.shared


@dataclass(frozen=True, kw_only=True)
class Sensor(ABC):
    """What all sensors share.

    To write one of your own, make a subclass, a frozen dataclass, with a `bind(model)` that returns a `Bound`.

    Parameters
    ----------
    name : defaults to the kind and what it is on, such as "gyro imu".
    scale : what its readings are divided by, to bring them to the order of one for a network.
    noise : standard deviation, in the sensor's own unit, of what is added where noise is asked for.
    detach : whether its readings carry no gradient. Needed to differentiate beside a quantity of which the engine has none.
    """

    name: str | None = None
    scale: float = 1.0
    noise: float = 0.0
    detach: bool = False

    def __post_init__(self) -> None:
        for field, least in (("scale", False), ("noise", True)):
            value = getattr(self, field)
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not number or value < 0 or (value == 0 and not least):
                word = "a number of 0 or more" if least else "a positive number"
                raise ValueError(f"{self.kind}: {field} must be {word}, got {value!r}")

    @property
    def kind(self) -> str:
        """The name of its class in small letters: "frame position"."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()

    @abstractmethod
    def bind(self, model: Model) -> Bound:
        """How it is read on this model; names are looked up here."""


def as_names(where: str, names: Names) -> tuple[str, ...]:
    """One name or several as a tuple; `where` starts error messages."""
    chosen = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Sequence) else ()
    if not chosen or not all(isinstance(name, str) for name in chosen):
        raise TypeError(f"{where}: must be a name or several names, got {names!r}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"{where}: names must be given once, got {list(chosen)}")
    return chosen


def labels(names: Sequence[str], parts: Sequence[str]) -> tuple[str, ...]:
    """Every name with every part: "foot x", "foot y", ..."""
    return tuple(f"{name} {part}" for name in names for part in parts)
