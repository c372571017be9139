"""From points to the corners and faces of their convex hull.

qhull finds triangles. Those that lie in one plane become one polygon here: a solid that stands on a face of two triangles
would feel their common edge. Corners that the polygons no longer need are dropped, and the rest is done once more, until all
are needed. Everything is decided in coordinates where the longest side of the bounding box is 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

Loop: TypeAlias = tuple[int, ...]

MAX_VERTICES = 64  # kMaxVertices in core/data/model.h

# Points closer than this are one, polygons flat within it: well above the rounding of meshes in float32 (6e-8), and too small
# to be seen in a motion. Relative to the longest side of the bounding box
TOLERANCE = 1e-6
FLAT = 10 * TOLERANCE  # thinner than this there is no telling which side a face is on
TIE = 1e-9  # relative; triangles of equal area but for rounding: the first is taken, on every machine


@dataclass(frozen=True)
class Faces:
    """Of each face: the corners around it, counterclockwise from outside, and three of them that span its plane best."""

    loops: tuple[Loop, ...]
    planes: tuple[Loop, ...]


def find_faces(points: np.ndarray) -> tuple[np.ndarray, Faces]:
    """Indices, ascending, of the points [n, 3] that are corners of their hull, and its faces.

    Faces count corners, not points: corner i is point kept[i]. ValueError, "must ...", if the points have no hull.
    """
    x = _scaled(points)
    kept = np.sort(np.unique(x, axis=0, return_index=True)[1])  # of equal points the first
    kept = kept[np.unique(_triangles(x[kept]))]
    kept = kept[_distinct(x[kept])]
    while True:
        loops = _merge(x[kept], _triangles(x[kept]))
        spare = _spare(len(kept), loops)
        if spare:
            kept = np.delete(kept, spare)
            continue
        if len(kept) > MAX_VERTICES:
            raise ValueError(f"must have at most {MAX_VERTICES} corners, got {len(kept)}; give fewer points, or several hulls")
        planes = tuple(_best_triangle(x[kept], loop) for loop in loops)
        narrow = _narrow(x[kept], planes)
        if not narrow:
            return kept, Faces(loops, planes)
        kept = np.delete(kept, narrow)


def _scaled(points: np.ndarray) -> np.ndarray:
    """The points about their middle, the longest side of their bounding box 1; refuses those that span no volume."""
    if len(points) < 4:
        raise ValueError(f"must be at least 4 points, got {len(points)}")
    low, high = points.min(0), points.max(0)
    size = (high - low).max()
    x = (points - (low + high) / 2) / (size or 1.0)
    _, axes = np.linalg.eigh(np.cov(x.T))
    thickness = np.ptp(x @ axes, axis=0).min()
    if thickness < FLAT:
        raise ValueError(
            f"must span a volume, got {len(points)} points that lie in a plane or on a line: they are {size:.3g} m "
            f"long and {thickness * size:.3g} m thick"
        )
    return x


def _triangles(x: np.ndarray) -> np.ndarray:
    """Triangles [m, 3] of the hull of x [n, 3], counterclockwise from outside; points inside are in none."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Hull needs scipy to find the faces: pip install scipy, or costate[hull]") from None
    # Where triangles of one plane overlap (qhull warns of it) a hull of points that were moved by rounding errors has none
    for options in ("Qt", "QJ"):
        try:
            found = ConvexHull(x, qhull_options=options).simplices
        except QhullError as error:
            raise ValueError(f"must span a volume, but qhull says: {str(error).splitlines()[0]}") from None
        oriented = _orient(x, found)
        if oriented is not None:
            return oriented
    raise ValueError(f"must have a hull that is closed, got {len(x)} points")


def _orient(x: np.ndarray, found: np.ndarray) -> np.ndarray | None:
    """Triangles in the order of the largest, which is seen from the middle; None unless all edges are in two triangles."""
    sides = np.stack((found, np.roll(found, -1, 1)), -1)  # [m, 3, 2] from corner to corner
    around: dict[tuple[int, int], list[int]] = {}
    for t, triangle in enumerate(np.sort(sides, -1).tolist()):
        for a, b in triangle:
            around.setdefault((a, b), []).append(t)
    if any(len(sharing) != 2 for sharing in around.values()):
        return None
    triangles = found.tolist()
    normal = _normals(x, found)
    start = int(np.linalg.norm(normal, axis=1).argmax())
    if normal[start] @ (x[found[start, 0]] - x[np.unique(found)].mean(0)) < 0:
        triangles[start].reverse()
    front, done = [start], {start}
    while front:
        t = front.pop()
        a, b, c = triangles[t]
        for p, q in ((a, b), (b, c), (c, a)):
            for other in around[min(p, q), max(p, q)]:
                if other not in done:
                    i = triangles[other].index(p)
                    if triangles[other][(i + 1) % 3] == q:  # the same way: one of the two is seen from behind
                        triangles[other].reverse()
                    done.add(other)
                    front.append(other)
    return np.array(triangles)


def _distinct(x: np.ndarray) -> np.ndarray:
    """Indices of x [n, 3] without those too close to an earlier one."""
    from scipy.spatial import KDTree

    dropped: set[int] = set()
    for first, second in sorted(KDTree(x).query_pairs(TOLERANCE)):
        if first not in dropped:
            dropped.add(second)
    return np.array([i for i in range(len(x)) if i not in dropped])


def _merge(x: np.ndarray, triangles: np.ndarray) -> tuple[Loop, ...]:
    """The loops of the polygons that triangles [m, 3] in one plane make, in ascending order."""
    normal = _normals(x, triangles)
    area = np.linalg.norm(normal, axis=1)
    longest = np.linalg.norm(x[triangles] - x[np.roll(triangles, -1, 1)], axis=-1).max(1)
    owner = {(a, b): t for t, (i, j, k) in enumerate(triangles.tolist()) for a, b in ((i, j), (j, k), (k, i))}
    neighbours = [[owner[b, a] for a, b in ((i, j), (j, k), (k, i))] for i, j, k in triangles.tolist()]
    free = np.ones(len(triangles), dtype=bool)

    def grow(seed: int, n: np.ndarray, at: np.ndarray) -> list[int]:
        """Free triangles around `seed` in the plane through `at` that look the same way, if they are wide enough to look."""
        flat = (np.abs((x - at) @ n) <= TOLERANCE)[triangles].all(1) & (normal @ n > -TOLERANCE * longest) & free
        region, seen = [seed], {seed}
        for t in region:
            new = [u for u in neighbours[t] if flat[u] and u not in seen]
            region.extend(new)
            seen.update(new)
        return region

    loops: list[Loop] = []
    for seed in np.argsort(-area, kind="stable").tolist():  # the largest first: their planes are known best
        if not free[seed]:
            continue
        region, wider = [], [seed]
        while len(wider) > len(region):  # a larger polygon knows its plane better
            region = wider
            n, at = normal[region].sum(0), x[np.unique(triangles[region])].mean(0)
            wider = grow(seed, n / max(np.linalg.norm(n), np.finfo(float).tiny), at)
        free[region] = False
        loop = _boundary(triangles[region])
        loops.extend([loop] if loop else [_turned(t) for t in triangles[region].tolist()])
    return tuple(sorted(loops))


def _boundary(triangles: np.ndarray) -> Loop | None:
    """The loop around triangles that hang together; None if there are several or it meets itself."""
    sides = {(a, b) for i, j, k in triangles.tolist() for a, b in ((i, j), (j, k), (k, i))}
    after = {a: b for a, b in sides if (b, a) not in sides}
    if not after or len(after) != sum((b, a) not in sides for a, b in sides):
        return None
    loop = [min(after)]
    while (following := after[loop[-1]]) != loop[0]:
        loop.append(following)
    return tuple(loop) if len(loop) == len(after) else None


def _turned(loop: list[int]) -> Loop:
    """The loop from its lowest corner on."""
    start = loop.index(min(loop))
    return (*loop[start:], *loop[:start])


def _best_triangle(x: np.ndarray, loop: Loop) -> Loop:
    """Three corners of a loop with the largest area between them, in its order."""
    if len(loop) == 3:
        return loop
    triples = np.array(list(combinations(loop, 3)))
    area = np.linalg.norm(_normals(x, triples), axis=1)
    return tuple(triples[(area >= (1 - TIE) * area.max()).argmax()].tolist())


def _spare(count: int, loops: tuple[Loop, ...]) -> list[int]:
    """Those of `count` corners that no three faces share: they are inside a face, or on an edge."""
    faces = Counter(corner for loop in loops for corner in loop)
    return [corner for corner in range(count) if faces[corner] < 3]


def _narrow(x: np.ndarray, planes: tuple[Loop, ...]) -> list[int]:
    """The middle corner of the first face without width, if there is one."""
    triples = np.array(planes)
    a, b, c = (x[triples[:, k]] for k in range(3))
    sides = np.linalg.norm((c - b, a - c, b - a), axis=-1)  # [3, faces] each opposite of its corner
    narrow = np.linalg.norm(_normals(x, triples), axis=1) < TOLERANCE * sides.max(0)
    return [planes[face][int(sides[:, face].argmax())] for face in np.flatnonzero(narrow)[:1]]


def _normals(x: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(b - a) x (c - a) [m, 3] of triangles (a, b, c): twice their area long."""
    a, b, c = (x[triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a)
