"""Shapes of planar scenes: plates that bodies touch each other with in the plane, and that give them inertia.

Area, centre and moment of inertia are computed in torch: gradients flow to sizes, corners, density, mass, position and angle.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.rotation import multiply, rotate
from costate.scene.codes import PLANE, POLYGON, RECTANGLE, SPHERE
from costate.scene.faces import FLAT, TOLERANCE
from costate.scene.frames import Frame, about_z, lift, number, two_numbers
from costate.scene.inertia import lamina
from costate.scene.shapes import Inertia, Shape, Sizes, Static, Surface
from costate.scene.values import Numbers, read

MAX_CORNERS = 32

# A plane of the engine is solid below z = 0: this turns z to y, y to x and x to z, without rounding
Z_TO_Y = (0.5, -0.5, -0.5, -0.5)


@dataclass(frozen=True, kw_only=True)
class PlanarShape(Shape):
    """A homogeneous plate in the plane.

    pos, angle : centre [2] (m) and orientation (rad); of a polygon those of the frame that its vertices are in.
    """

    pos: Numbers = (0.0, 0.0)
    angle: Numbers = 0.0

    def inertia(self, *, where: str = "") -> Inertia:
        """Mass (kg), centre of mass [3] (m) and inertia [6] (kg m^2) as the engine takes them; `where` starts error messages.

        Of the inertia only the third number counts, that about z through the centre of mass.
        """
        where = f"{where}{type(self).__name__}"
        area, centre, moment = self._plate(where)
        frame, mass = self.frame(where=where), self._mass(where, area)
        return mass, frame.pos + rotate(frame.quat, lift(centre)), lamina(mass * moment)

    def frame(self, *, where: str) -> Frame:
        """Where it is in its body; `where` starts error messages."""
        angle = number(f"{where} angle", self.angle)
        return Frame(lift(two_numbers(f"{where} pos", self.pos)), about_z(angle), angle)

    def _plate(self, where: str) -> tuple[Tensor, Tensor, Tensor]:
        """Area (m^2), centre of mass [2] (m) in the shape's frame, and moment about it per unit of mass (m^2)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Circle(PlanarShape):
    """Disc of `radius` (m)."""

    code: ClassVar[int | None] = SPHERE
    sizes: ClassVar[Sizes] = {"radius": ()}
    radius: Numbers

    def _plate(self, where: str) -> tuple[Tensor, Tensor, Tensor]:
        (r,) = self.measure(where=where)
        return pi * r**2, r.new_zeros(2), r**2 / 2


@dataclass(frozen=True)
class Rectangle(PlanarShape):
    """Rectangle with `half` extents [2] (m)."""

    code: ClassVar[int | None] = RECTANGLE
    sizes: ClassVar[Sizes] = {"half": (2,)}
    half: Numbers

    def _plate(self, where: str) -> tuple[Tensor, Tensor, Tensor]:
        (half,) = self.measure(where=where)
        return 4 * half.prod(), half.new_zeros(2), half.square().sum() / 3


@dataclass(frozen=True)
class Polygon(PlanarShape):
    """Convex polygon with corners `vertices` [n, 2] (m), 3 to 32 of them in any order, in the frame of `pos` and `angle`.

    The engine has them counterclockwise, the first one first. The frame's origin need not be the centre of mass. Parameters may
    move the corners, but should keep the polygon convex. For other polygons give a body several convex ones.
    """

    code: ClassVar[int | None] = POLYGON
    sizes: ClassVar[Sizes] = {}
    vertices: Numbers

    def surface(self, *, where: str) -> Surface:
        """The corners, and how many they are; `where` starts error messages."""
        corners = self.corners(where=where)
        return {"hull_vertex": lift(corners)}, {"hull_vertices": (len(corners),), "hull_faces": (0,)}

    def corners(self, *, where: str = "Polygon") -> Tensor:
        """The corners [n, 2] (m), counterclockwise, float64 with graph; `where` starts error messages."""
        points = read(f"{where} vertices", self.vertices)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"{where} vertices must be points [n, 2], got shape {tuple(points.shape)}")
        broken = ~points.detach().isfinite().all(1)
        if broken.any():
            i = int(broken.int().argmax())
            raise ValueError(f"{where} vertices must be finite, got {tuple(points[i].tolist())} as vertex {i}")
        try:
            order = counterclockwise(points.detach().numpy())
        except ValueError as error:
            raise ValueError(f"{where} vertices {error}") from None
        return points[torch.from_numpy(order)]

    def _plate(self, where: str) -> tuple[Tensor, Tensor, Tensor]:
        return polygon(self.corners(where=where))


@dataclass(frozen=True)
class HalfPlane(Static, PlanarShape):
    """All below the x axis of its own frame, a line through `pos` in the direction of `angle`; without mass, on what never moves.

    Its outward normal is y of that frame. As a plane of the engine its z axis is that normal, its y axis the line, its x axis z.
    """

    code: ClassVar[int | None] = PLANE
    sizes: ClassVar[Sizes] = {}

    def frame(self, *, where: str) -> Frame:
        """Where it is, z along the normal; `where` starts error messages."""
        frame = super().frame(where=where)
        return frame._replace(quat=multiply(frame.quat, frame.quat.new_tensor(Z_TO_Y)))


def counterclockwise(points: np.ndarray) -> np.ndarray:
    """Indices of the points [n, 2], all corners of a convex polygon, counterclockwise from the first; ValueError, "must ..."."""
    n = len(points)
    if not 3 <= n <= MAX_CORNERS:
        raise ValueError(f"must be 3 to {MAX_CORNERS} points, got {n}")
    size = np.ptp(points, axis=0).max()
    x = (points - points.mean(0)) / (size or 1.0)  # about a point inside
    thickness = np.ptp(x @ np.linalg.eigh(x.T @ x)[1], axis=0).min()
    if thickness < FLAT:
        raise ValueError(
            f"must span an area, got {n} points that lie on a line: they are {size:.3g} m long and {thickness * size:.3g} m thick"
        )
    order = np.argsort(np.arctan2(x[:, 1], x[:, 0]), kind="stable")
    order = np.roll(order, -int(order.argmin()))
    # how far each point stands out of the line from the one before to the one behind; only points that are no corners do not
    before, here, behind = x[np.roll(order, 1)], x[order], x[np.roll(order, -1)]
    (ax, ay), (bx, by) = (here - before).T, (behind - before).T
    out = (ax * by - ay * bx) / np.maximum(np.hypot(bx, by), TOLERANCE)
    if out.min() <= TOLERANCE:
        i = int(order[out <= TOLERANCE].min())
        raise ValueError(
            f"must be the corners of a convex polygon, got {tuple(points[i].tolist())} as vertex {i}, which is inside of it, on "
            "an edge, or given twice: leave it out, or give the body several convex polygons"
        )
    return order


def polygon(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Area (m^2), centre of mass [2] (m) and moment about it per unit of mass (m^2) of a polygon.

    x : its vertices [n, 2] (m), counterclockwise.
    The sum over triangles (o, a, b), (a, b) an edge, o any point, with signed d = a x b:
    A = d / 2,  A centre = d / 6 (a + b),  integral of y . y = d / 12 (a . a + a . b + b . b)
    """
    o = x.detach().mean(0)  # any point would do; a near one rounds least, and none has an influence
    a, b = x - o, x.roll(-1, 0) - o
    d = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    area = d.sum() / 2
    centre = (d[:, None] * (a + b)).sum(0) / (6 * area)
    second = (d * (a * a + a * b + b * b).sum(1)).sum() / (12 * area)
    return area, o + centre, second - centre.dot(centre)
