"""Distance and overlap of two convex solids by trying everything, in numpy, over many worlds; shares nothing with the engine.

A solid is the hull of its corners, with a radius around it: spheres have one corner, capsules two.

  overlapping   s(n) = least of n . x over b - largest over a. Its maximum is at a face of the Minkowski difference: at a
                normal of a face of either, or across two edges. All of them are tried, both ways, each with all corners of both.
  apart         the closest points are two edges or corners (all pairs are tried, as segments), or a corner over a face. That
                face keeps the solids further apart than any other, so only the best face of either needs to be asked.
                Proof of each answer: the plane across the closest points separates the solids by their distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

SAME = 1e-9  # sine; directions of a solid closer than this are one
OTHER = 3e-7  # sine; an axis closer than this to the best one is no rival: nobody could tell them apart
INSIDE = 1e-11  # of the size of a pair: a foot this far outside of a face is on it, which costs its square
PROOF = 1e-9  # of the size of a pair: how well both bounds of a distance must agree; measured 1e-13
CHUNK = 4_000_000  # numbers per array
SIDES = 16  # of the prism that stands for a cylinder


class Solid(NamedTuple):
    """A shape as corners, and which of them make edges and faces. Scaling along its axes keeps these."""

    kind: str
    corners: np.ndarray  # [V, 3] of size 1
    edges: np.ndarray  # [E, 2]; a single corner is an edge from itself to itself
    directions: np.ndarray  # [D, 2] edges, one of each direction
    faces: np.ndarray  # [F, 3] corners counterclockwise from outside


class Bodies(NamedTuple):
    """A solid in many worlds."""

    solid: Solid
    x: np.ndarray  # [W, V, 3] corners, world
    r: np.ndarray  # [W] radius around them


class Answer(NamedTuple):
    gap: np.ndarray  # [W]
    normal: np.ndarray  # [W, 3] from a to b
    rival: np.ndarray  # [W] how much worse the best axis in another direction is; inf for solids that are apart


def solid(kind: str, points: np.ndarray | None = None) -> Solid:
    """sphere, capsule, box, cylinder (prism) of half sizes 1, or hull of points."""
    if kind in ("sphere", "capsule"):
        corners = np.array([[0, 0, 1.0], [0, 0, -1.0]]) if kind == "capsule" else np.zeros((1, 3))
        edges = np.array([[0, len(corners) - 1]])
        return Solid(kind, corners, edges, edges[: len(corners) - 1], np.empty((0, 3), int))
    if kind == "box":
        points = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)], dtype=float)
    if kind == "cylinder":
        angle = 2 * np.pi * np.arange(SIDES) / SIDES
        rim = np.stack((np.cos(angle), np.sin(angle)), 1)
        points = np.concatenate([np.column_stack((rim, np.full(SIDES, z))) for z in (1.0, -1.0)])
    assert points is not None
    hull = ConvexHull(points)
    faces = np.array([t if _outward(points, t) else t[::-1] for t in hull.simplices])
    normals = _unit(np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]]))
    owners: dict[tuple[int, int], list[int]] = {}
    for f, t in enumerate(faces.tolist()):
        for i in range(3):
            owners.setdefault((min(t[i], t[i - 1]), max(t[i], t[i - 1])), []).append(f)
    sharp = [e for e, (f, g) in owners.items() if np.linalg.norm(np.cross(normals[f], normals[g])) > SAME]  # others cut a face
    edges = np.array(sorted(sharp))
    along = _unit(points[edges[:, 1]] - points[edges[:, 0]])
    return Solid(kind, points, edges, edges[_distinct(along, signed=False)], faces[_distinct(normals, signed=True)])


def place(s: Solid, scale: np.ndarray, r: np.ndarray, pos: np.ndarray, quat: np.ndarray) -> Bodies:
    """scale [W, 3] of its corners, radius r [W], pos [W, 3], quat [W, 4] (unit, wxyz)."""
    return Bodies(s, np.einsum("wij,wvj->wvi", rotation(quat), scale[:, None] * s.corners) + pos[:, None], r)


def rotation(quat: np.ndarray) -> np.ndarray:
    """[W, 3, 3] of unit quaternions wxyz."""
    w, v = quat[:, 0, None, None], quat[:, 1:]
    K = np.zeros((len(quat), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    K -= K.transpose(0, 2, 1)
    return np.eye(3) + 2 * w * K + 2 * K @ K


def separation(a: Bodies, b: Bodies, n: np.ndarray) -> np.ndarray:
    """s(n) [W]: how far the plane across n [W, 3] keeps a and b apart, radii included."""
    return _dot(b.x, n[:, None]).min(1) - _dot(a.x, n[:, None]).max(1) - a.r - b.r


def outside(a: Bodies, x: np.ndarray) -> np.ndarray:
    """[W] how far points x [W, 3] are above the highest face of a, or beyond its radius; 0 or less on it and inside."""
    if len(a.solid.faces):
        n = _normals(a)
        return _dot(n, x[:, None] - a.x[:, a.solid.faces[:, 0]]).max(1)
    start, way = a.x[:, 0], a.x[:, -1] - a.x[:, 0]
    return np.linalg.norm(segments(start, way, x, np.zeros_like(x)), axis=1) - a.r


def distance(a: Bodies, b: Bodies) -> Answer:
    """Gap, normal, and how far the next best axis is."""
    # everything about the middle of a, so that numbers are as small as the pair
    middle = a.x.mean(1, keepdims=True)
    a, b = a._replace(x=a.x - middle), b._replace(x=b.x - middle)
    work = max(len(a.solid.edges) * len(b.solid.edges) * 3, _axis_count(a.solid, b.solid) * max(a.x.shape[1], b.x.shape[1]))
    step = max(1, CHUNK // work)
    parts = [_distance(_some(a, i, step), _some(b, i, step)) for i in range(0, len(a.x), step)]
    return Answer(*(np.concatenate(part) for part in zip(*parts)))


def _some(a: Bodies, start: int, count: int) -> Bodies:
    return Bodies(a.solid, a.x[start : start + count], a.r[start : start + count])


def _distance(a: Bodies, b: Bodies) -> Answer:
    gap, normal, rival = _least_overlap(a, b)
    apart = gap > 0
    if apart.any():
        a_, b_ = (Bodies(s.solid, s.x[apart], s.r[apart]) for s in (a, b))
        gap[apart], normal[apart] = _apart(a_, b_)
        rival[apart] = np.inf
    return Answer(gap - a.r - b.r, normal, rival)


# ---- overlapping ---------------------------------------------------------------------------------------------------
def _axis_count(a: Solid, b: Solid) -> int:
    return len(a.faces) + len(b.faces) + len(a.directions) * len(b.directions)


def _least_overlap(a: Bodies, b: Bodies) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest s(n) of the corners, n, and by how much it is larger than s of another direction. inf, if nothing has a face."""
    worlds = len(a.x)
    if not len(a.solid.faces) and not len(b.solid.faces):
        return np.full(worlds, np.inf), np.zeros((worlds, 3)), np.full(worlds, np.inf)
    e, f = (s.x[:, s.solid.directions[:, 1]] - s.x[:, s.solid.directions[:, 0]] for s in (a, b))
    e, f = _unit(e), _unit(f)
    across = np.cross(e[:, :, None], f[:, None]).reshape(worlds, -1, 3)
    length = np.linalg.norm(across, axis=-1)
    parallel = length < SAME
    across = across / np.where(parallel, 1, length)[..., None]
    n = np.concatenate((_normals(a), _normals(b), across), 1)  # faces of b look against n; both ways are tried
    unusable = np.concatenate((np.zeros((worlds, n.shape[1] - across.shape[1]), bool), parallel), 1)
    on_a, on_b = n @ a.x.transpose(0, 2, 1), n @ b.x.transpose(0, 2, 1)
    one_way, other_way = on_b.min(2) - on_a.max(2), on_a.min(2) - on_b.max(2)
    s = np.where(unusable, -np.inf, np.maximum(one_way, other_way))
    n = np.where((one_way >= other_way)[..., None], n, -n)
    best = s.argmax(1)
    rows = np.arange(worlds)
    normal = n[rows, best]
    other = np.linalg.norm(np.cross(n, normal[:, None]), axis=-1) > OTHER
    other |= _dot(n, normal[:, None]) < 0
    rival = s[rows, best] - np.where(other, s, -np.inf).max(1)
    opposite = np.minimum(one_way, other_way)[rows, best]  # the same axis the other way, of concentric solids
    return s[rows, best], normal, np.minimum(rival, s[rows, best] - opposite)


def _normals(a: Bodies) -> np.ndarray:
    """Outward normals of all faces [W, F, 3]."""
    f = a.solid.faces
    x = a.x[:, f]
    return _unit(np.cross(x[:, :, 1] - x[:, :, 0], x[:, :, 2] - x[:, :, 0]))


# ---- apart ---------------------------------------------------------------------------------------------------------
def _apart(a: Bodies, b: Bodies) -> tuple[np.ndarray, np.ndarray]:
    """Distance of the corners' hulls, and direction from a to b, with proof."""
    d, n = _edges(a, b)
    for f, g, sign in ((a, b, 1.0), (b, a, -1.0)):
        if not len(f.solid.faces):
            continue
        height, normal = _over_face(f, g)
        closer = height < d
        d, n = np.where(closer, height, d), np.where(closer[:, None], sign * normal, n)
    size = np.abs(a.x).max((1, 2)) + np.abs(b.x).max((1, 2))
    bound = _dot(b.x, n[:, None]).min(1) - _dot(a.x, n[:, None]).max(1)
    worst = (np.abs(bound - d) / size).max()
    assert worst < PROOF, f"the reference is wrong: bounds of a distance differ by {worst:.1e} of the size"
    return d, n


def _over_face(f: Bodies, g: Bodies) -> tuple[np.ndarray, np.ndarray]:
    """Height of the lowest corner of g above the best face of f, inf where its foot is not on that face; and the normal."""
    n = _normals(f)
    level = _dot(n, f.x[:, f.solid.faces[:, 0]])
    heights = n @ g.x.transpose(0, 2, 1) - level[..., None]  # [W, F, V]
    face = heights.min(2).argmax(1)
    rows = np.arange(len(face))
    height = heights[rows, face].min(1)
    foot = g.x[rows, heights[rows, face].argmin(1)] - height[:, None] * n[rows, face]
    size = np.abs(f.x - f.x.mean(1, keepdims=True)).max((1, 2))
    outside = (_dot(n, foot[:, None]) - level).max(1)  # a point of the plane is on the face if it is in the solid
    on_face = (outside < INSIDE * size) & (height > 0)  # below all faces, but apart: edges keep them so
    return np.where(on_face, height, np.inf), n[rows, face]


def _edges(a: Bodies, b: Bodies) -> tuple[np.ndarray, np.ndarray]:
    """Least distance of two edges, and the direction between them."""
    p, q = a.x[:, a.solid.edges[:, 0]][:, :, None], b.x[:, b.solid.edges[:, 0]][:, None]
    u, v = a.x[:, a.solid.edges[:, 1]][:, :, None] - p, b.x[:, b.solid.edges[:, 1]][:, None] - q
    d = segments(p, u, q, v)
    d = d.reshape(len(d), -1, 3)
    best = d[np.arange(len(d)), _dot(d, d).argmin(1)]
    length = np.linalg.norm(best, axis=1)
    return length, best / np.where(length > 0, length, 1)[:, None]


def segments(p: np.ndarray, u: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Shortest of all ways from segment p + s u to q + t v, s and t in [0, 1]: across both lines, or from one of four ends."""
    w = q - p
    uu, vv, uv, uw, vw = _dot(u, u), _dot(v, v), _dot(u, v), _dot(u, w), _dot(v, w)
    c = np.cross(u, v)  # not uu vv - uv^2, which is rounding where they are nearly parallel
    det = _dot(c, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = _dot(np.cross(w, v), c) / det, _dot(np.cross(w, u), c) / det
        inside = (s > 0) & (s < 1) & (t > 0) & (t < 1)  # false for nan
        ends = [(np.clip(np.nan_to_num((uw + k * uv) / uu), 0, 1), k) for k in (0.0, 1.0)]
        ends += [(k, np.clip(np.nan_to_num((k * uv - vw) / vv), 0, 1)) for k in (0.0, 1.0)]
    s, t = np.where(inside, s, 0.0), np.where(inside, t, 0.0)
    best = w + t[..., None] * v - s[..., None] * u
    least = _dot(best, best)
    for s, t in ends:
        d = w + (np.asarray(t)[..., None] * v - np.asarray(s)[..., None] * u)
        d2 = _dot(d, d)
        best, least = np.where((d2 < least)[..., None], d, best), np.minimum(d2, least)
    return best


# ---- vectors -------------------------------------------------------------------------------------------------------
def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", a, b)


def _unit(a: np.ndarray) -> np.ndarray:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def _outward(x: np.ndarray, t: np.ndarray) -> bool:
    return np.linalg.det(np.stack((x[t[1]] - x[t[0]], x[t[2]] - x[t[0]], x[t[0]] - x.mean(0)))) > 0


def _distinct(a: np.ndarray, *, signed: bool) -> list[int]:
    """Indices of unit vectors a [n, 3] that point differently from all before them."""
    kept: list[int] = []
    for i, d in enumerate(a):
        same = (np.linalg.norm(np.cross(a[kept], d), axis=1) < SAME) & ((a[kept] @ d > 0) if signed else True)
        if not same.any():
            kept.append(i)
    return kept
