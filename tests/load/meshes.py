"""Small meshes as the bytes of STL files."""

from __future__ import annotations

import struct

import numpy as np
from scipy.spatial import ConvexHull


def stl(points: np.ndarray) -> bytes:
    """The convex hull of points [n, 3] as a binary STL file."""
    hull = ConvexHull(points)
    middle = points.mean(0)
    parts = [b"\0" * 80, struct.pack("<I", len(hull.simplices))]
    for corners in points[hull.simplices]:
        a, b, c = corners
        outward = np.cross(b - a, c - a) @ (a - middle) > 0
        parts.append(struct.pack("<12fH", 0, 0, 0, *np.ravel((a, b, c) if outward else (a, c, b)), 0))
    return b"".join(parts)


def ball(count: int, radius: float = 1.0) -> np.ndarray:
    """Points [count, 3] on a sphere."""
    i = np.arange(count) + 0.5
    z, angle = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    r = np.sqrt(1 - z * z)
    return radius * np.stack((r * np.cos(angle), r * np.sin(angle), z), 1)


BLOCK = stl(np.array([[x, y, z] for x in (0, 0.4) for y in (0, 0.2) for z in (0, 0.6)], dtype=float))
