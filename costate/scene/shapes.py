"""Shapes: what bodies touch each other with, and solids that give them inertia.

Inertia is computed in torch: gradients flow to sizes, density, mass, position and orientation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import pi
from typing import ClassVar, TypeAlias, TypeVar

import torch
from torch import Tensor

from costate.scene.checks import DIRECTION, NOT_NEGATIVE, POSITIVE, checked, require
from costate.scene.codes import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from costate.scene.frames import Frame
from costate.scene.inertia import point_inertia, rotation, to_matrix, to_six
from costate.scene.values import Numbers, plain

Inertia: TypeAlias = tuple[Tensor, Tensor, Tensor]
Sizes: TypeAlias = dict[str, tuple[int, ...]]
Surface: TypeAlias = tuple[dict[str, Tensor], dict[str, tuple[int, ...]]]
S = TypeVar("S", bound="Shape")

NOT_NUMBERS = ("collide", "group", "mask", "name", "condim")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A homogeneous body in the frame of the one it belongs to (or the world), and the surface that touches other shapes.

    Parameters
    ----------
    density, mass : kg/m^3, in a plane kg/m^2; or kg where `mass` is given.
    friction : Coulomb's coefficient, 0 or more; the scene's `friction_rule` makes one of the two that touch.
    condim : 1 touches without friction, 3 with it, 4 also resists turning about the normal (`torsion`), 6 also rolling
        (`rolling`); two shapes that touch take the larger. As in MuJoCo.
    torsion, rolling : torques over the normal force up to which they resist, m; combined by `friction_rule`. Only in space.
    restitution : rebound speed over impact speed, 0 to 1; combined by `restitution_rule`.
    softness : how far a resting contact sinks in per normal force, m/N; those of the two that touch add up. 0 is rigid.
    collide : whether it touches anything at all.
    group, mask : bits; two shapes touch if the group of one has a bit in common with the mask of the other.
    name : for `exclude` and `Model.shape`; defaults to "<body>/0", "<body>/1", ...
    """

    code: ClassVar[int | None] = None  # of the engine; None: no contact
    sizes: ClassVar[Sizes]  # size fields and their shapes

    density: Numbers = 1000.0
    mass: Numbers | None = None
    friction: Numbers = 1.0
    torsion: Numbers = 0.0
    rolling: Numbers = 0.0
    restitution: Numbers = 0.0
    softness: Numbers = 0.0
    condim: int = 3
    collide: bool = True
    group: int = 1
    mask: int = -1
    name: str | None = None

    def inertia(self, *, where: str = "") -> Inertia:
        """Mass (kg), centre of mass [3] (m), inertia [6] (kg m^2) about it in body axes; `where` starts error messages."""
        raise NotImplementedError

    def frame(self, *, where: str) -> Frame:
        """Where it is in its body; `where` starts error messages."""
        raise NotImplementedError

    def measure(self, *, where: str) -> list[Tensor]:
        """The sizes (m) as float64 tensors with graph, in the order of `sizes`; `where` starts error messages."""
        return [checked(f"{where} {name}", getattr(self, name), shape, POSITIVE) for name, shape in self.sizes.items()]

    def surface(self, *, where: str) -> Surface:
        """What the engine must know besides the sizes; `where` starts error messages.

        Parameter fields -> rows, float64 with graph; and fields of `Model` -> integers. Only hulls, polygons and heightfields
        have any.
        """
        return {}, {}

    def detach(self: S) -> S:
        """The same shape in plain floats, without graph."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in NOT_NUMBERS}
        return replace(self, **{name: plain(value) for name, value in values.items() if value is not None})

    def _mass(self, where: str, size: Tensor) -> Tensor:
        """From the volume (m^3), in a plane the area (m^2), where the mass was not given."""
        if self.mass is None:
            return checked(f"{where} density", self.density, (), NOT_NEGATIVE) * size
        return checked(f"{where} mass", self.mass, (), NOT_NEGATIVE)


@dataclass(frozen=True, kw_only=True)
class SpatialShape(Shape):
    """A shape in space; those of planar scenes are in planar_shapes.py.

    pos, quat : centre (m) and orientation (wxyz); of a hull those of the frame that its vertices are in.
    """

    pos: Numbers = (0.0, 0.0, 0.0)
    quat: Numbers = (1.0, 0.0, 0.0, 0.0)

    def inertia(self, *, where: str = "") -> Inertia:
        """Mass (kg), centre of mass [3] (m), inertia [6] (kg m^2) about it in body axes; `where` starts error messages."""
        where = f"{where}{type(self).__name__}"
        volume, moments = self._unit(*self.measure(where=where))
        frame = self.frame(where=where)
        turn, mass = rotation(frame.quat), self._mass(where, volume)
        return mass, frame.pos, to_six(mass * (turn * moments) @ turn.T)

    def frame(self, *, where: str) -> Frame:
        """Where it is in its body; `where` starts error messages."""
        return Frame(checked(f"{where} pos", self.pos, (3,)), checked(f"{where} quat", self.quat, (4,), DIRECTION))

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        """Volume (m^3) and principal moments [3] per unit of mass (m^2)."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Static(Shape):
    """A shape without mass, on the world or on a body that is fixed to it."""

    def inertia(self, *, where: str = "") -> Inertia:
        """No mass, and no inertia; `where` starts error messages."""
        where = f"{where}{type(self).__name__}"
        if self.mass is not None:
            raise ValueError(f"{where} has no mass, got mass {plain(self.mass)}")
        self.measure(where=where)
        pos = self.frame(where=where).pos
        return pos.new_zeros(()), pos, pos.new_zeros(6)


@dataclass(frozen=True)
class Plane(Static, SpatialShape):
    """Infinite plane through `pos` with z of its frame as normal, solid below, without mass; on what never moves."""

    code: ClassVar[int | None] = PLANE
    sizes: ClassVar[Sizes] = {}


@dataclass(frozen=True)
class Sphere(SpatialShape):
    """Ball of `radius` (m)."""

    code: ClassVar[int | None] = SPHERE
    sizes: ClassVar[Sizes] = {"radius": ()}
    radius: Numbers

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        (r,) = sizes
        return 4 / 3 * pi * r**3, (2 / 5 * r**2).expand(3)


@dataclass(frozen=True)
class Box(SpatialShape):
    """Cuboid with `half` extents [3] (m)."""

    code: ClassVar[int | None] = BOX
    sizes: ClassVar[Sizes] = {"half": (3,)}
    half: Numbers

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        (half,) = sizes
        return 8 * half.prod(), _others(half**2) / 3


@dataclass(frozen=True)
class Ellipsoid(SpatialShape):
    """Ellipsoid with semi-axes `half` [3] (m)."""

    sizes: ClassVar[Sizes] = {"half": (3,)}
    half: Numbers

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        (half,) = sizes
        return 4 / 3 * pi * half.prod(), _others(half**2) / 5


@dataclass(frozen=True)
class Cylinder(SpatialShape):
    """Cylinder of `radius` (m) along z, from -`half_length` to `half_length` (m).

    It rolls on planes exactly; against other shapes it touches as a prism of 16 sides.
    """

    code: ClassVar[int | None] = CYLINDER
    sizes: ClassVar[Sizes] = {"radius": (), "half_length": ()}
    radius: Numbers
    half_length: Numbers

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        r, h = sizes
        across = r**2 / 4 + h**2 / 3
        return 2 * pi * r**2 * h, torch.stack((across, across, r**2 / 2))


@dataclass(frozen=True)
class Capsule(SpatialShape):
    """Cylinder as above with half a sphere of `radius` (m) on each end."""

    code: ClassVar[int | None] = CAPSULE
    sizes: ClassVar[Sizes] = {"radius": (), "half_length": ()}
    radius: Numbers
    half_length: Numbers

    def _unit(self, *sizes: Tensor) -> tuple[Tensor, Tensor]:
        r, h = sizes
        volume = 2 * pi * r**2 * h + 4 / 3 * pi * r**3
        tube = 2 * pi * r**2 * h / volume  # share of the mass
        caps = 1 - tube
        # a cap's centre of mass lies h + 3/8 r from the middle
        across = tube * (r**2 / 4 + h**2 / 3) + caps * (2 / 5 * r**2 + h**2 + 3 / 4 * r * h)
        return volume, torch.stack((across, across, tube * r**2 / 2 + caps * 2 / 5 * r**2))


def combine(shapes: Sequence[Shape], *, where: str = "") -> Inertia:
    """Mass, centre of mass and inertia about it, as in `Shape.inertia`, of several shapes that make one rigid body."""
    if not shapes:
        raise ValueError(f"{where}combine needs at least one shape, got none")
    parts = [shape.inertia(where=where) for shape in shapes]
    mass = torch.stack([m for m, _, _ in parts]).sum()
    require(f"{where}mass of all shapes", mass, POSITIVE)
    if len(parts) == 1:
        return parts[0]
    com = torch.stack([m * c for m, c, _ in parts]).sum(0) / mass
    about = [to_matrix(six) + point_inertia(m, c - com) for m, c, six in parts]
    return mass, com, to_six(torch.stack(about).sum(0))


def _others(squares: Tensor) -> Tensor:
    """(b + c, c + a, a + b) of (a, b, c)."""
    return squares.sum() - squares
