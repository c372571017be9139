"""Hull: the convex hull of given points, and the inertia of a polyhedron."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from costate.scene.codes import HULL
from costate.scene.faces import Faces, find_faces
from costate.scene.inertia import rotation, to_six
from costate.scene.shapes import Inertia, Sizes, SpatialShape, Surface
from costate.scene.values import Numbers, read


@dataclass(frozen=True)
class Hull(SpatialShape):
    """Convex hull of points `vertices` [n, 3] (m), in the frame that `pos` and `quat` place in the body.

    Points that are no corners are dropped; 64 corners at most may be left, in their order. The frame's origin need not be the
    centre of mass. Which points are corners, and which of them make a face, is decided once, here: parameters may move the
    corners, but should keep the shape convex and its faces flat. Needs scipy.
    """

    code: ClassVar[int | None] = HULL
    sizes: ClassVar[Sizes] = {}
    vertices: Numbers

    def inertia(self, *, where: str = "") -> Inertia:
        """Mass (kg), centre of mass [3] (m), inertia [6] (kg m^2) about it in body axes; `where` starts error messages."""
        where = f"{where}{type(self).__name__}"
        corners, faces = self.corners(where=where)
        volume, centre, moments = polyhedron(corners, faces.loops)
        frame = self.frame(where=where)
        turn, mass = rotation(frame.quat), self._mass(where, volume)
        return mass, frame.pos + turn @ centre, to_six(mass * turn @ moments @ turn.T)

    def surface(self, *, where: str) -> Surface:
        """The corners, and which of them make the faces; `where` starts error messages."""
        corners, faces = self.corners(where=where)
        structure = {
            "hull_vertices": (len(corners),),
            "hull_faces": (len(faces.loops),),
            "hull_loop_size": tuple(map(len, faces.loops)),
            "hull_loop": tuple(corner for loop in faces.loops for corner in loop),
            "hull_plane": tuple(corner for plane in faces.planes for corner in plane),
        }
        return {"hull_vertex": corners}, structure

    def corners(self, *, where: str = "Hull") -> tuple[Tensor, Faces]:
        """The points that are corners [n, 3] (m), float64 with graph, and the faces; `where` starts error messages."""
        points = read(f"{where} vertices", self.vertices)
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"{where} vertices must be points [n, 3], got shape {tuple(points.shape)}")
        broken = ~points.detach().isfinite().all(1)
        if broken.any():
            i = int(broken.int().argmax())
            raise ValueError(f"{where} vertices must be finite, got {tuple(points[i].tolist())} as vertex {i}")
        try:
            kept, faces = _known_faces(points.detach().numpy().tobytes())
        except ValueError as error:
            raise ValueError(f"{where} vertices {error}") from None
        return points[torch.from_numpy(kept)], faces


@lru_cache(maxsize=256)
def _known_faces(points: bytes) -> tuple[np.ndarray, Faces]:
    """`find_faces` of float64 points. Kept, because a pile has the same hull many times, and each is asked for twice."""
    return find_faces(np.frombuffer(points).reshape(-1, 3))


def polyhedron(x: Tensor, loops: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Volume (m^3), centre of mass [3] (m) and moments [3, 3] per unit of mass (m^2) about it, of a polyhedron.

    x : its vertices [n, 3] (m); loops : of each face its vertices, counterclockwise from outside.
    The sum over tetrahedra (o, a, b, c), (a, b, c) a triangle of the surface, o any point, with signed d = a . (b x c):
    V = d / 6,  V centre = d / 24 (a + b + c),  integral of y y^T = d / 120 (a a^T + b b^T + c c^T + s s^T),  s = a + b + c
    """
    fans = [(loop[0], second, third) for loop in loops for second, third in pairwise(loop[1:])]
    o = x.detach().mean(0)  # any point would do; a near one rounds least, and none has an influence
    a, b, c = (x - o)[torch.tensor(fans)].unbind(1)
    d, s = (a * torch.linalg.cross(b, c)).sum(1)[:, None], a + b + c
    volume = d.sum() / 6
    centre = (d * s).sum(0) / (24 * volume)
    y = torch.stack((a, b, c, s), 1)
    products = (d[..., None, None] * y[..., None] * y[..., None, :]).sum((0, 1))
    second_moments = products / (120 * volume) - torch.outer(centre, centre)
    moments = second_moments.trace() * torch.eye(3, dtype=x.dtype) - second_moments
    return volume, o + centre, moments
