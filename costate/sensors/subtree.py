"""Sensors of a body together with everything that hangs on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch
from torch import Tensor

from costate.rotation import inverse, rotate, symmetric
from costate.scene.names import suggest
from costate.sensors.sensor import XYZ, Bound, Names, Sensor, as_names, labels
from costate.sensors.tables import Table

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


class Masses(NamedTuple):
    """All bodies as masses; world axes."""

    mass: Tensor  # [..., nb, 1] kg
    com: Tensor  # [*batch, nb, 3] m
    velocity: Tensor  # [*batch, nb, 3] m/s, of the centre of mass
    inertia: Tensor  # [*batch, nb, 3, 3] kg m^2, about it, in body axes


def masses(reading: Reading) -> Masses:
    """Centres of mass and how they move."""
    position, quaternion, spin, velocity = (x[..., :-1, :] for x in reading.bodies[:4])
    arm = rotate(quaternion, reading.param("com"))
    linear = velocity + torch.linalg.cross(spin, arm)
    return Masses(reading.param("mass").unsqueeze(-1), position + arm, linear, symmetric(reading.param("inertia")))


def find_bodies(model: Model, where: str, names: Names) -> tuple[tuple[str, ...], list[int]]:
    """Bodies by name; `where` starts error messages."""
    chosen = as_names(where, names)
    for name in chosen:
        if name not in model.body_names:
            raise ValueError(f"{where}: no body named {name!r}; {suggest(name, model.body_names)}")
    return chosen, [model.body(name) for name in chosen]


def subtrees(model: Model, bodies: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """[n, nb] 1 where a body hangs on, or is, the one given."""
    return tuple(tuple(float(i in above) for above in model.ancestors) for i in bodies)


@dataclass(frozen=True)
class SubtreeSensor(Sensor):
    """A sensor of subtrees.

    Parameters
    ----------
    bodies : names of the bodies that everything counted hangs on.
    """

    bodies: Names
    unit: ClassVar[str]

    def bind(self, model: Model) -> Bound:
        """How it is read on this model."""
        names, bodies = find_bodies(model, self.kind, self.bodies)
        within = subtrees(model, bodies)
        table = Table(within)
        for name, row in zip(names, within, strict=True):
            if all(massless for massless, inside in zip(model.massless, row, strict=True) if inside):
                raise ValueError(f"{self.kind}: {name!r} and what hangs on it have no mass")

        def read(reading: Reading) -> Tensor:
            return self._measure(reading, reading.once(masses), table.like(reading.q)).flatten(-2)

        return Bound(labels(names, XYZ), self.unit, read)

    @abstractmethod
    def _measure(self, reading: Reading, m: Masses, within: Tensor) -> Tensor:
        """[*batch, n, 3]; within [n, nb]."""


def mean(m: Masses, x: Tensor, within: Tensor) -> Tensor:
    """x [*batch, nb, 3] averaged by mass, [*batch, n, 3]."""
    return within @ (m.mass * x) / (within @ m.mass)


class SubtreeCentre(SubtreeSensor):
    """Centre of mass, m, world."""

    unit = "m"

    def _measure(self, reading: Reading, m: Masses, within: Tensor) -> Tensor:
        return mean(m, m.com, within)


class SubtreeVelocity(SubtreeSensor):
    """Velocity of the centre of mass, m/s, world axes."""

    unit = "m/s"

    def _measure(self, reading: Reading, m: Masses, within: Tensor) -> Tensor:
        return mean(m, m.velocity, within)


class SubtreeAngularMomentum(SubtreeSensor):
    """Angular momentum about the centre of mass, kg m^2/s, world axes; armature has no place in space and is not counted."""

    unit = "kg m^2/s"

    def _measure(self, reading: Reading, m: Masses, within: Tensor) -> Tensor:
        own = angular_momentum(reading, m)
        centre, velocity = (mean(m, x, within).unsqueeze(-2) for x in (m.com, m.velocity))
        # [*batch, n, nb, 3]: every body about every centre
        arms, speeds = (x.unsqueeze(-3) - middle for x, middle in ((m.com, centre), (m.velocity, velocity)))
        orbital = m.mass.unsqueeze(-3) * torch.linalg.cross(arms, speeds)
        return (within.unsqueeze(-1) * (orbital + own.unsqueeze(-3))).sum(-2)


def angular_momentum(reading: Reading, m: Masses) -> Tensor:
    """Of every body about its own centre of mass [*batch, nb, 3], world axes."""
    quaternion, spin = (x[..., :-1, :] for x in reading.bodies[1:3])
    return rotate(quaternion, (m.inertia @ rotate(inverse(quaternion), spin).unsqueeze(-1)).squeeze(-1))
