"""Where a ray hits a shape, and which piece of its surface: chosen without derivative, for costate/ray.py, which has it.

Every function takes rays in the frames of n shapes of one kind and gives Hits [worlds, n, rays]. Rays are six such arrays: the
three coordinates of the origin o, and those of the direction d, of unit length. Sizes are [worlds or 1, n, 1].
Solids are convex: a ray is inside between t_in and t_out. It hits at t_in, or at t_out where it starts inside:
    hit:  t_in <= t_out, t_out >= 0;    t = t_in if t_in >= 0 else t_out
Pieces: sphere 0; capsule 0 the tube, 1 and 2 the upper and lower ball; cylinder 0 the side, 1 and 2 the upper and lower end;
box 2 axis + (0: +, 1: -); hull its face; field 2 (cell of the grid) + (0: below the diagonal, 1: above it).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

Vector: TypeAlias = tuple[Tensor, ...]  # its coordinates

INF = float("inf")


class Hits(NamedTuple):
    """Of each ray and shape the distance (inf: none), the piece of the surface, and whether the ray starts inside."""

    t: Tensor
    piece: Tensor  # int64
    inside: Tensor  # bool


class Span(NamedTuple):
    """Where a ray is inside of something, and which pieces it comes in and goes out by; lower above upper: nowhere."""

    lower: Tensor
    upper: Tensor
    piece_in: Tensor
    piece_out: Tensor


def _both(a: Span, b: Span) -> Span:
    """Inside of a and b."""
    late, soon = b.lower > a.lower, b.upper < a.upper
    return Span(
        torch.where(late, b.lower, a.lower), torch.where(soon, b.upper, a.upper),
        torch.where(late, b.piece_in, a.piece_in), torch.where(soon, b.piece_out, a.piece_out),
    )  # fmt: skip


def _either(a: Span, b: Span) -> Span:
    """Inside of a or b, whose union is convex."""
    a_none, b_none = a.lower > a.upper, b.lower > b.upper
    soon, late = (b.lower < a.lower) & ~b_none | a_none, (b.upper > a.upper) & ~b_none | a_none
    return Span(
        torch.where(soon, b.lower, a.lower), torch.where(late, b.upper, a.upper),
        torch.where(soon, b.piece_in, a.piece_in), torch.where(late, b.piece_out, a.piece_out),
    )  # fmt: skip


def _hits(s: Span) -> Hits:
    inside = s.lower < 0
    hit = (s.lower <= s.upper) & (s.upper >= 0)
    t = torch.where(hit, torch.where(inside, s.upper, s.lower), INF)
    return Hits(t, torch.where(inside, s.piece_out, s.piece_in), inside)


def _slab(o: Tensor, d: Tensor, half: Tensor, piece: int) -> Span:
    """|o + t d| <= half in one coordinate; `piece` where it is half, piece + 1 where it is -half."""
    along = d == 0
    rate = d.masked_fill(along, 1.0)
    first, second = (-half - o) / rate, (half - o) / rate
    within = torch.where(o.abs() <= half, -INF, INF)
    lower = torch.where(along, within, torch.minimum(first, second))
    upper = torch.maximum(first, second).masked_fill(along, INF)
    down = (d < 0).long()
    return Span(lower, upper, piece + 1 - down, piece + down)


def _round(o: Vector, d: Vector, r: Tensor, piece: int) -> Span:
    """|o + t d| <= r in two or three coordinates: a = |d|^2, h the vector to the line, t = -o.d/a -+ sqrt((r^2 - h.h)/a)."""
    a = _dot(d, d)
    along = a == 0  # of two coordinates both may stand still
    a = a.masked_fill(along, 1.0)
    b = _dot(o, d) / a
    h = tuple(x - b * u for x, u in zip(o, d, strict=True))
    room = r * r - _dot(h, h)
    root = torch.sqrt(room.clamp(min=0) / a)
    none = room <= 0  # a line that only touches passes
    lower = (-b - root).masked_fill(along, -INF).masked_fill(none, INF)
    upper = (root - b).masked_fill(along, INF).masked_fill(none, -INF)
    piece_there = lower.new_full((), piece, dtype=torch.int64).expand(lower.shape)
    return Span(lower, upper, piece_there, piece_there)


def _dot(a: Vector, b: Vector) -> Tensor:
    first, *others = (x * y for x, y in zip(a, b, strict=True))
    for product in others:
        first = first + product
    return first


def hit_plane(o: Vector, d: Vector) -> Hits:
    """From above only."""
    z, rate = o[2], d[2]
    hit = (z >= 0) & (rate < 0)
    t = torch.where(hit, -z / torch.where(hit, rate, 1.0), INF)
    return Hits(t, torch.zeros_like(t, dtype=torch.int64), torch.zeros_like(hit))


def hit_sphere(o: Vector, d: Vector, r: Tensor) -> Hits:
    """A ball alone."""
    return _hits(_round(o, d, r, 0))


def hit_capsule(o: Vector, d: Vector, r: Tensor, half: Tensor) -> Hits:
    """The tube where it is between the balls' centres, or one of the two balls."""
    tube = _both(_slab(o[2], d[2], half, 1), _round(o[:2], d[:2], r, 0))
    upper, lower = (_round((*o[:2], o[2] + shift), d, r, piece) for piece, shift in ((1, -half), (2, half)))
    return _hits(_either(_either(tube, upper), lower))


def hit_cylinder(o: Vector, d: Vector, r: Tensor, half: Tensor) -> Hits:
    """Between the ends, and inside of the round side."""
    return _hits(_both(_slab(o[2], d[2], half, 1), _round(o[:2], d[:2], r, 0)))


def hit_box(o: Vector, d: Vector, *half: Tensor) -> Hits:
    """Between its faces along all three axes."""
    x, y, z = (_slab(o[k], d[k], half[k], 2 * k) for k in range(3))
    return _hits(_both(_both(x, y), z))


def hit_hull(o: Vector, d: Vector, normal: Tensor, offset: Tensor) -> Hits:
    """Inside of all faces' planes, normal . x <= offset: normal [worlds or 1, n, faces, 3], offset [worlds or 1, n, faces]."""
    height = normal @ torch.stack(o, -2) - offset.unsqueeze(-1)  # [worlds, n, faces, rays]
    rate = normal @ torch.stack(d, -2)
    along = rate == 0
    t = -height / rate.masked_fill(along, 1.0)
    entry = torch.where(along & (height > 0), INF, t.masked_fill(rate >= 0, -INF))  # along a face, and beyond it
    (lower, piece_in), (upper, piece_out) = entry.max(-2), t.masked_fill(rate <= 0, INF).min(-2)
    return _hits(Span(lower, upper, piece_in, piece_out))


def hit_field(o: Vector, d: Vector, size: tuple[Tensor, Tensor], height: Tensor) -> Hits:
    """From above only. Rays [worlds, rays], size x, y [worlds or 1, 1] and height [worlds or 1, nx, ny] of one field.

    Between two crossings of lines of the grid (or of diagonals) a ray is above a single triangle, and its height g above it
    is linear: it hits in the first of these pieces where g falls from above to below.
    """
    nx, ny = height.shape[1:]
    t_in, t_out = _bounds(o, d, size, height)
    # in units of cells: lines at integers of u and v, diagonals at integers of u - v
    (u, du), (v, dv) = (
        (o[k] * ((n - 1) / (2 * size[k])) + (n - 1) / 2, d[k] * ((n - 1) / (2 * size[k]))) for k, n in ((0, nx), (1, ny))
    )

    def crossings(place: Tensor, rate: Tensor, lines: range) -> Tensor:
        """Times; where there is none, any time does."""
        still = rate == 0
        at = torch.arange(lines.start, lines.stop, device=place.device)
        t = (at - place.unsqueeze(-1)) / rate.masked_fill(still, 1.0).unsqueeze(-1)
        return torch.where(still.unsqueeze(-1), t_in.unsqueeze(-1), t)

    lines = (
        crossings(u, du, range(1, nx - 1)),
        crossings(v, dv, range(1, ny - 1)),
        crossings(u - v, du - dv, range(2 - ny, nx - 1)),
    )
    inner = torch.cat(lines, -1).clamp(t_in.unsqueeze(-1), t_out.unsqueeze(-1))
    t = torch.cat((t_in.unsqueeze(-1), inner.sort(-1)[0], t_out.unsqueeze(-1)), -1)  # [worlds, rays, pieces + 1]

    # the triangle under the middle of each piece, and g there
    half, middle = (t[..., 1:] - t[..., :-1]) / 2, (t[..., 1:] + t[..., :-1]) / 2
    at_u, at_v = (x.unsqueeze(-1) + middle * rate.unsqueeze(-1) for x, rate in ((u, du), (v, dv)))
    i, j = at_u.floor().clamp(0, nx - 2), at_v.floor().clamp(0, ny - 2)
    at_u, at_v = at_u - i, at_v - j
    upper = at_v > at_u
    cell = (i * ny + j).long()
    h00, h10, h01, h11 = (_heights(height, cell + step) for step in (0, ny, 1, ny + 1))
    along_u, along_v = torch.where(upper, h11 - h01, h10 - h00), torch.where(upper, h01 - h00, h11 - h10)
    g = o[2].unsqueeze(-1) + middle * d[2].unsqueeze(-1) - (h00 + along_u * at_u + along_v * at_v)
    rate = d[2].unsqueeze(-1) - (along_u * du.unsqueeze(-1) + along_v * dv.unsqueeze(-1))

    # one g for each crossing, that at the end of the piece before it: so no ray slips between two triangles by rounding
    start, end = g[..., :1] - rate[..., :1] * half[..., :1], g + rate * half
    falls = (torch.cat((start, end[..., :-1]), -1) >= 0) & (end < 0)
    first = falls.to(torch.uint8).argmax(-1, keepdim=True)
    # at a vertex rounding may name a piece in which g rises; the ray came down in an earlier one
    last = torch.where(rate < 0, torch.arange(rate.shape[-1], device=rate.device), -1).cummax(-1)[0].gather(-1, first)
    hit = (falls.gather(-1, first) & (last >= 0)).squeeze(-1)

    def pick(x: Tensor) -> Tensor:
        return x.gather(-1, last.clamp(min=0)).squeeze(-1)

    time = torch.where(hit, (pick(middle) - pick(g) / torch.where(hit, pick(rate), 1.0)).clamp(min=0), INF)
    piece = 2 * (pick(i) * (ny - 1) + pick(j)).long() + pick(upper)
    return Hits(time, piece, torch.zeros_like(hit))


def _bounds(o: Vector, d: Vector, size: tuple[Tensor, Tensor], height: Tensor) -> tuple[Tensor, Tensor]:
    """When a ray enters and leaves a box around the field; both 0 where it never does."""
    low, high = height.amin((1, 2)).unsqueeze(-1), height.amax((1, 2)).unsqueeze(-1)
    # thick enough for the surface to be inside, not on it
    half = (high - low) / 2 + 0.01 * (size[0] + size[1])
    x, y = (_slab(o[k], d[k], size[k], 0) for k in (0, 1))
    inside = _both(_both(x, y), _slab(o[2] - (low + high) / 2, d[2], half, 0))
    t_in = inside.lower.clamp(min=0)
    hit = inside.upper > t_in
    return torch.where(hit, t_in, 0.0), torch.where(hit, inside.upper, 0.0)


def _heights(height: Tensor, index: Tensor) -> Tensor:
    """Heights [worlds, rays, pieces] by their numbers within the field."""
    if height.shape[0] == 1:
        return height.flatten().index_select(0, index.flatten()).reshape(index.shape)
    return height.flatten(1).gather(1, index.flatten(1)).reshape(index.shape)
