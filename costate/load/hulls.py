"""Convex hulls with few vertices."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

ENOUGH = 1e-5  # of the size; closer than this no vertex is worth it


def reduce(points: np.ndarray, most: int) -> tuple[np.ndarray, float]:
    """At most `most` of the points [n, 3] (m), whose hull is nearly that of all, and how far (m) points are outside of it.

    Grown from the inside: always the point that lies farthest outside of the hull so far is added. ValueError, "must ...", where
    the points span no volume.
    """
    kept, error = _reduced(np.ascontiguousarray(points, dtype=np.float64).tobytes(), most)
    return points[kept], error


@lru_cache(maxsize=64)
def _reduced(data: bytes, most: int) -> tuple[np.ndarray, float]:
    """Indices of the points that are kept; remembered, since a robot has the same mesh several times."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ModuleNotFoundError:
        raise ModuleNotFoundError("meshes need scipy for their hulls: pip install scipy, or costate[hull]") from None
    points = np.frombuffer(data).reshape(-1, 3)
    if len(points) < 4:
        raise ValueError(f"must be at least 4 points, got {len(points)}")
    try:
        corners = ConvexHull(points).vertices
        if len(corners) <= most:
            return np.sort(corners), 0.0
        x = points[corners]
        chosen = _first_four(x)
        while True:
            planes = np.unique(ConvexHull(x[chosen]).equations, axis=0)  # outward normals and offsets
            outside = (x @ planes[:, :3].T + planes[:, 3]).max(1)
            farthest = int(outside.argmax())
            if len(chosen) >= most or outside[farthest] <= ENOUGH * np.ptp(x, axis=0).max():
                return np.sort(corners[chosen]), float(max(outside[farthest], 0.0))
            chosen.append(farthest)
    except QhullError:
        raise ValueError(f"must span a volume, got {len(points)} points that lie in a plane or on a line") from None


def _first_four(x: np.ndarray) -> list[int]:
    """Four points that span a large volume."""
    a = int(np.linalg.norm(x - x.mean(0), axis=1).argmax())
    b = int(np.linalg.norm(x - x[a], axis=1).argmax())
    along = (x[b] - x[a]) / np.linalg.norm(x[b] - x[a])
    c = int(np.linalg.norm(np.cross(x - x[a], along), axis=1).argmax())
    d = int(np.abs((x - x[a]) @ np.cross(along, x[c] - x[a])).argmax())
    return [a, b, c, d]


def points_on_sphere(count: int) -> np.ndarray:
    """Points [count, 3] on the unit sphere, evenly spread, poles and the ends of all axes among them as far as count allows."""
    axes = np.concatenate((np.eye(3), -np.eye(3)))
    i = np.arange(count - len(axes)) + 0.5
    z, angle = 1 - 2 * i / len(i), np.pi * (1 + 5**0.5) * i
    r = np.sqrt(1 - z * z)
    return np.concatenate((axes, np.stack((r * np.cos(angle), r * np.sin(angle), z), 1)))
