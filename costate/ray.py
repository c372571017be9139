"""Ray casts: what a ray hits first, where and how far away; differentiable by poses, rays and shapes.

Two halves, as in the engine. The first chooses the shape and the piece of its surface (costate/ray_choice.py), in blocks of
rays times shapes that bound the memory, without graph. The second is a closed form of that piece alone, in the shape's frame:
    flat pieces, through x0 with unit normal n:  t = n.(x0 - o) / n.d
    balls, and tubes by their x and y alone:     t = -o.d/a -+ sqrt((r^2 - h.h)/a),  a = d.d,  h = o - (o.d/a) d;  n = (o + t d)/r
with - where the ray comes in and + where it starts inside. A derivative is that of the chosen piece: exact wherever the piece
does not change, so not across edges and silhouettes; near a silhouette it grows like 1/sqrt(r^2 - h.h), and a line that only
touches passes. All is computed in float64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import torch
from torch import Tensor

from costate import batch as b
from costate import ray_choice as choice
from costate.autodiff.torch import transforming
from costate.devices import constant, field, index
from costate.dynamics import kinematics
from costate.ray_choice import INF, Hits
from costate.rotation import inverse, multiply, normalise, rotate
from costate.scene import Model, Params
from costate.scene.codes import BOX, CAPSULE, CYLINDER, FIELD, HULL, PLANE, SPHERE

Selection: TypeAlias = "str | int | Iterable[str | SupportsIndex] | None"

# Numbers in the largest array of a block. A few dozen such arrays are alive at a time: 50 MB. Measured with 4096 rays, larger
# blocks are no faster, those of a sixteenth take two to eight times as long.
BLOCK = 1 << 18


class Rays(NamedTuple):
    """What rays hit first; world axes, m. Of a ray that hits nothing: inf, zeros, zeros, -1, without gradient."""

    distance: Any  # [..., R] along the ray
    point: Any  # [..., R, 3] where
    normal: Any  # [..., R, 3] unit, out of the shape that is hit
    shape: Any  # [..., R] int64, index in model.shape_names


class _Shapes(NamedTuple):
    """The chosen shapes in the world: float64, [worlds, n, ...], or [1, n, ...] where all worlds share them."""

    ids: list[int]  # indices in the model
    kind: list[int]
    position: Tensor
    quaternion: Tensor
    size: Tensor
    vertex: Tensor  # [worlds or 1, all vertices of all hulls, 3]
    height: Tensor  # [worlds or 1, all heights of all fields, 1]


def ray_cast(
    model: Model, q: Any, origin: Any, direction: Any, params: Params | None = None, *, shapes: Selection = None,
    max_distance: float = INF,
) -> Rays:  # fmt: skip
    """What rays hit first at q [..., nq], and how far away; differentiable by q, origin, direction and every parameter.

    A ray that starts inside a solid hits where it leaves it. Planes and heightfields are hit from above only.

    Parameters
    ----------
    origin, direction : [..., R, 3], world, m; a direction has any length but zero. Batch dimensions broadcast, and one origin
        or direction serves all R rays.
    shapes : names or indices of the shapes that can be hit; default: all in model.shape_names, those that may touch another.
    max_distance : m; beyond it nothing is hit.
    """
    if model.planar:
        raise ValueError("ray_cast works on models in space, got a planar one: its shapes have no extent along z")
    params = b.check_params(model, params)
    chosen, reach = _select(model, shapes), _check_reach(max_distance)
    q_rows = b.tensor("q", q, (model.nq,), None)
    o, d = (_check_rays(name, x, q_rows) for name, x in (("origin", origin), ("direction", direction)))
    b.check_values(model, origin=o, direction=d)
    if not (transforming() or b.capturing(d)) and not bool((d != 0).any(-1).all()):
        where = (d == 0).all(-1).nonzero()[0].tolist()
        raise ValueError(f"direction must not be zero, got {d[tuple(where)].tolist()} at ray {tuple(where)}")
    if o.shape[-2] != d.shape[-2] and 1 not in (o.shape[-2], d.shape[-2]):
        raise ValueError(f"origin and direction must have as many rays, got {o.shape[-2]} and {d.shape[-2]}")

    leading = {"q": q_rows.shape[:-1], "origin": o.shape[:-2], "direction": d.shape[:-2], "params": params.batch_shape}
    batch = b.broadcast(leading)
    place = _place(model, q_rows, params, chosen, batch)
    rays = d.shape[-2] if o.shape[-2] == 1 else o.shape[-2]
    shared = all(x.shape[0] == 1 for x in place[2:])
    rows = (1, b.worlds(batch) * rays, 3) if shared else (b.worlds(batch), rays, 3)
    o, d = (x.double().expand(*batch, rays, 3).reshape(rows) for x in (o, d))
    d = d / d.detach().abs().amax(-1, keepdim=True)  # so that squares neither overflow nor vanish
    d = d / torch.linalg.vector_norm(d, dim=-1, keepdim=True)

    with torch.no_grad():
        which, hits = _choose(model, _detached(place), o.detach(), d.detach(), reach)
    distance, point, normal = _evaluate(model, place, o, d, which, hits)
    shape = torch.where(which >= 0, index(place.ids, which)[which], -1).reshape(*batch, rays)
    point, normal = (x.reshape(*batch, rays, 3).to(q_rows.dtype) for x in (point, normal))
    result = Rays(distance.reshape(*batch, rays).to(q_rows.dtype), point, normal, shape)
    return Rays(*map(b.to_numpy, result)) if b.is_numpy(q) else result


# ---- what is given -------------------------------------------------------------------------------------------------
def _select(model: Model, shapes: Selection) -> list[int]:
    """Indices of the shapes that can be hit."""
    count = len(model.shape_names)
    if shapes is None:
        if count == 0:
            raise ValueError("model has no shapes that may touch another, so a ray hits nothing: a shape must collide to be seen")
        return list(range(count))
    chosen: list[int] = []
    for shape in [shapes] if isinstance(shapes, (str, int)) else shapes:
        index = model.shape(shape) if isinstance(shape, str) else shape
        if isinstance(index, bool) or not isinstance(index, SupportsIndex) or not 0 <= operator.index(index) < count:
            raise ValueError(f"shapes must be names or indices below {count}, got {shape!r}")
        chosen.append(operator.index(index))
    if not chosen:
        raise ValueError("shapes must name at least one shape, got none")
    return sorted(set(chosen))


def _check_reach(max_distance: float) -> float:
    if not isinstance(max_distance, (int, float)) or isinstance(max_distance, bool) or not max_distance > 0:
        raise ValueError(f"max_distance must be a positive number, got {max_distance!r}")
    return float(max_distance)


def _check_rays(name: str, x: Any, q: Tensor) -> Tensor:
    x = b.tensor(name, x, (3,), q.dtype, q.device)
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape [..., R, 3], got {tuple(x.shape)}")
    return x


def _place(model: Model, q: Tensor, params: Params, chosen: list[int], batch: tuple[int, ...]) -> _Shapes:
    """Poses and sizes of the chosen shapes, differentiable."""
    world = kinematics(model, q, None, params)
    on = index((model.shape_body[i] for i in chosen), q)  # -1 the world, which stands behind the bodies
    lead = world.position.shape[:-2]
    origin = world.position.new_zeros(3).expand(*lead, 1, 3)
    upright = constant((1.0, 0.0, 0.0, 0.0), world.position).expand(*lead, 1, 4)
    position = torch.cat((world.position, origin), -2)[..., on, :].double()
    quaternion = torch.cat((world.quaternion, upright), -2)[..., on, :].double()
    names, some = ("shape_pos", "shape_quat", "shape_size"), index(chosen, q)
    local, turn, size = (field(params, name, position)[..., some, :] for name in names)
    tensors = (
        position + rotate(quaternion, local), multiply(quaternion, normalise(turn)), size,
        field(params, "hull_vertex", position), field(params, "height", position).unsqueeze(-1),
    )  # fmt: skip
    return _Shapes(chosen, [model.shape_type[i] for i in chosen], *(_rows(x, batch) for x in tensors))


def _rows(x: Tensor, batch: tuple[int, ...]) -> Tensor:
    """x [..., n, k] as [worlds, n, k], or [1, n, k] where all worlds share it."""
    n = x.shape[-2:]
    return x.reshape(1, *n) if math.prod(x.shape[:-2]) == 1 else x.expand(*batch, *n).reshape(-1, *n)


def _detached(s: _Shapes) -> _Shapes:
    return _Shapes(s.ids, s.kind, *(x.detach() for x in s[2:]))


# ---- first half: which shape, and which piece of it ----------------------------------------------------------------
def _choose(model: Model, s: _Shapes, o: Tensor, d: Tensor, reach: float) -> tuple[Tensor, Hits]:
    """Of each ray [worlds, rays] the place in s of the shape that it hits, -1 none, and how."""
    kinds = {kind: [k for k, of in enumerate(s.kind) if of == kind] for kind in sorted(set(s.kind))}
    order = index((k for members in kinds.values() for k in members), o).argsort()
    planes = _hull_planes(model, s, kinds[HULL]) if HULL in kinds else None
    width = 3 * len(s.kind) + (planes[0][0].numel() if planes else 0)
    width += sum(4 * sum(_grid(model, s.ids[k])) for k in kinds.get(FIELD, ()))

    def choose(w: slice, r: slice) -> tuple[Tensor, ...]:
        part = s._replace(**{name: _of(getattr(s, name), w) for name in s._fields[2:]})
        some = planes and tuple(_of(x, w) for x in planes)
        found = [_hit(model, part, kind, members, o[w, r], d[w, r], some) for kind, members in kinds.items()]
        t, piece, inside = (torch.cat(x, 1)[:, order] for x in zip(*found))
        nearest = t.argmin(1, keepdim=True)
        t, piece, inside = (x.gather(1, nearest).squeeze(1) for x in (t, piece, inside))
        return torch.where((t <= reach) & (t < INF), nearest.squeeze(1), -1), t, piece, inside

    worlds, rays = o.shape[:2]
    many = max(1, BLOCK // width)
    some = max(1, many // max(rays, 1))
    chosen = [_joined((choose(w, r) for r in _slices(rays, many)), 1) for w in _slices(worlds, some)]
    which, *hits = _joined(chosen, 0)
    return which, Hits(*hits)


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(i, i + size) for i in range(0, max(n, 1), size))


def _joined(parts: Iterable[tuple[Tensor, ...]], dim: int) -> tuple[Tensor, ...]:
    return tuple(torch.cat(x, dim) for x in zip(*parts))


def _of(x: Tensor, w: slice) -> Tensor:
    return x if x.shape[0] == 1 else x[w]


def _hit(model: Model, s: _Shapes, kind: int, members: list[int], o: Tensor, d: Tensor, planes: Any) -> Hits:
    """Hits [worlds, n, rays] of the members of s, all of one kind; o, d [worlds, rays, 3]."""
    # the axes of the shapes as rows, all x axes first: one product gives all rays in all frames
    some = index(members, o)
    axes = rotate(s.quaternion[:, None, some], torch.eye(3, dtype=o.dtype, device=o.device).unsqueeze(-2))
    start = (axes * s.position[:, None, some]).sum(-1, keepdim=True)  # axes: [worlds or 1, 3, n, 3]
    x, u = ((axes.flatten(1, 2) @ v.mT).unflatten(1, axes.shape[1:3]) for v in (o, d))
    x, u = (x - start).unbind(1), u.unbind(1)
    size = s.size[:, some].unsqueeze(-1).unbind(-2)
    if kind == FIELD:
        found = (_hit_field(model, s, k, [v[:, n] for v in x], [v[:, n] for v in u]) for n, k in enumerate(members))
        return Hits(*(torch.stack(part, 1) for part in zip(*found)))
    if kind == HULL:
        return choice.hit_hull(x, u, *planes)
    if kind == PLANE:
        return choice.hit_plane(x, u)
    solid, sizes = _SOLIDS[kind]
    return solid(x, u, *size[:sizes])


_SOLIDS = {
    SPHERE: (choice.hit_sphere, 1),
    CAPSULE: (choice.hit_capsule, 2),
    CYLINDER: (choice.hit_cylinder, 2),
    BOX: (choice.hit_box, 3),
}


def _hit_field(model: Model, s: _Shapes, k: int, o: list[Tensor], d: list[Tensor]) -> Hits:
    heights = s.height[:, model.heights(model.shape_names[s.ids[k]]), 0].unflatten(1, _grid(model, s.ids[k]))
    return choice.hit_field(tuple(o), tuple(d), (s.size[:, k, :1], s.size[:, k, 1:2]), heights)


def _hull_planes(model: Model, s: _Shapes, members: list[int]) -> tuple[Tensor, Tensor]:
    """Outward unit normals [worlds or 1, n, faces, 3] of hulls and their offsets; those with fewer faces repeat one."""
    corners = s.vertex[:, _triples(model, s)[index(members, s.vertex)]]  # [worlds or 1, n, faces, 3 vertices, 3]
    x0, x1, x2 = corners.unbind(-2)
    normal = torch.linalg.cross(x1 - x0, x2 - x0)
    normal = normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)
    return normal, (normal * x0).sum(-1)


# ---- hulls and fields among the model's parameters -----------------------------------------------------------------
def _grid(model: Model, shape: int) -> tuple[int, int]:
    """Heights of a field along x and y."""
    n = model.shape_type[:shape].count(FIELD)
    return model.field_nx[n], model.field_ny[n]


def _triples(model: Model, s: _Shapes) -> Tensor:
    """[n, faces, 3]: rows of hull_vertex that span each face of each hull in s; zeros for what is no hull. Made once."""
    known, key = model.__dict__.setdefault("_hull_triples", {}), (tuple(s.ids), s.vertex.device)
    if key not in known:
        with torch.inference_mode(False):  # whoever comes first must not decide for others
            known[key] = _make_triples(model, s).to(s.vertex.device)
    return known[key]


def _make_triples(model: Model, s: _Shapes) -> Tensor:
    tables: list[Tensor] = []
    for shape, kind in zip(s.ids, s.kind, strict=True):
        if kind != HULL:
            tables.append(torch.zeros((1, 3), dtype=torch.int64))
            continue
        n = model.shape_type[:shape].count(HULL)
        first, faces = sum(model.hull_faces[:n]), model.hull_faces[n]
        local = torch.tensor(model.hull_plane[3 * first : 3 * (first + faces)]).reshape(faces, 3)
        tables.append(local + model.vertices(model.shape_names[shape]).start)
    most = max(map(len, tables))
    return torch.stack([torch.cat((x, x[:1].expand(most - len(x), 3))) for x in tables])


# ---- second half: distance, point and normal as functions of the piece's numbers -----------------------------------
def _evaluate(model: Model, s: _Shapes, o: Tensor, d: Tensor, which: Tensor, hits: Hits) -> tuple[Tensor, Tensor, Tensor]:
    """distance [worlds, rays], point and normal [worlds, rays, 3] in the world; the choice is held fixed."""
    hit, piece = which >= 0, hits.piece
    at = which.clamp(min=0)
    kind = torch.where(hit, index(s.kind, at)[at], PLANE)
    turn, size = _take(s.quaternion, at), _take(s.size, at)
    x, u = rotate(inverse(turn), o - _take(s.position, at)), rotate(inverse(turn), d)
    ball = (kind == SPHERE) | (kind == CAPSULE) & (piece > 0)
    tube = ((kind == CAPSULE) | (kind == CYLINDER)) & (piece == 0)
    curved = ball | tube

    x0, normal = _flat_piece(model, s, at, kind, piece, size)
    normal = normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)
    rate = (normal * u).sum(-1)
    crosses = rate != 0  # or else it lies in the face, up to rounding
    t_flat = (normal * (x0 - x)).sum(-1) / _where(hit & ~curved & crosses, rate, 1.0)
    t_flat = torch.where(hit & ~crosses, hits.t, t_flat)
    t_curved, n_curved = _curved_piece(x, u, size, kind, piece, curved, tube, hits.inside)
    local = torch.where(hit.unsqueeze(-1), torch.where(curved.unsqueeze(-1), n_curved, normal), 0.0)
    t = torch.where(curved, t_curved, t_flat)
    point = torch.where(hit.unsqueeze(-1), o + t.unsqueeze(-1) * d, 0.0)
    return torch.where(hit, t, INF), point, rotate(turn, local)


def _where(mask: Tensor, x: Tensor, other: float) -> Tensor:
    """x where it is used, and elsewhere a constant that nothing goes wrong with: 0 times inf survives a where on the way back."""
    return torch.where(mask.unsqueeze(-1) if x.ndim > mask.ndim else mask, x, other)


def _curved_piece(
    x: Tensor, u: Tensor, size: Tensor, kind: Tensor, piece: Tensor, curved: Tensor, tube: Tensor, inside: Tensor
) -> tuple[Tensor, Tensor]:
    """t and normal of balls and tubes in the shape's frame; anything finite for other pieces."""
    r = _where(curved, size[..., 0], 1.0)
    sign = torch.where(kind == CAPSULE, (piece == 1).double() - (piece == 2).double(), 0.0)
    up = constant((0.0, 0.0, 1.0), x)
    axes = 1 - tube.double().unsqueeze(-1) * up
    x = _where(curved, (x - (sign * size[..., 1]).unsqueeze(-1) * up) * axes, 0.0)
    u = torch.where(curved.unsqueeze(-1), u * axes, up)
    a = (u * u).sum(-1)
    a = _where(a > 0, a, 1.0)  # along a tube, up to rounding
    b = (x * u).sum(-1) / a
    h = x - b.unsqueeze(-1) * u
    room = (r * r - (h * h).sum(-1)) / a
    root = torch.sqrt(_where(room > 0, room, 1.0)) * (room > 0)
    t = torch.where(inside, root, -root) - b
    return t, (x + t.unsqueeze(-1) * u) / r.unsqueeze(-1)


def _flat_piece(model: Model, s: _Shapes, at: Tensor, kind: Tensor, piece: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """A point of a flat piece and a vector along its normal in the shape's frame; the plane z = 0 for other pieces."""
    # ends of cylinders are pieces 4 and 5 of the box around them
    face = torch.where(kind == BOX, piece, torch.where(kind == CYLINDER, piece + 3, 4))
    normal = torch.nn.functional.one_hot(face // 2, 3).to(size.dtype) * (1 - 2 * (face % 2)).unsqueeze(-1)
    extent = torch.where((kind == BOX).unsqueeze(-1), size, size[..., 1:2])
    x0 = _where((kind == BOX) | (kind == CYLINDER), normal * extent, 0.0)
    if HULL in s.kind:
        ids = _triples(model, s)[at, _only(kind == HULL, piece)]
        x0, normal = _triangle([_take(s.vertex, ids[..., k]) for k in range(3)], kind == HULL, x0, normal)
    if FIELD in s.kind:
        corners = _field_corners(model, s, at, _only(kind == FIELD, piece), size)
        x0, normal = _triangle(corners, kind == FIELD, x0, normal)
    return x0, normal


def _triangle(corners: list[Tensor], mask: Tensor, x0: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
    """x0 and normal, replaced by those of a triangle where `mask`."""
    a, b, c = corners
    m = mask.unsqueeze(-1)
    return torch.where(m, a, x0), torch.where(m, torch.linalg.cross(b - a, c - a), normal)


def _field_corners(model: Model, s: _Shapes, at: Tensor, piece: Tensor, size: Tensor) -> list[Tensor]:
    """The three corners of a triangle of a field, counterclockwise seen from above; of the first for what is no field."""
    fields = [k for k, kind in enumerate(s.kind) if kind == FIELD]
    grids = [
        (*_grid(model, i), model.heights(model.shape_names[i]).start) if kind == FIELD else None
        for i, kind in zip(s.ids, s.kind, strict=True)
    ]
    nx, ny, start = constant(tuple(grid or grids[fields[0]] for grid in grids), at)[at].unbind(-1)
    cell, above = piece // 2, piece % 2
    i, j = cell // (ny - 1), cell % (ny - 1)
    corners = []
    for di, dj in ((0, 0), (1, above), (1 - above, 1)):
        x = size[..., 0] * ((2 * (i + di)).double() / (nx - 1) - 1)
        y = size[..., 1] * ((2 * (j + dj)).double() / (ny - 1) - 1)
        corners.append(torch.stack((x, y, _take(s.height, start + (i + di) * ny + j + dj).squeeze(-1)), -1))
    return corners


def _only(mask: Tensor, piece: Tensor) -> Tensor:
    return torch.where(mask, piece, 0)


def _take(x: Tensor, index: Tensor) -> Tensor:
    """x [worlds or 1, n, k], index [worlds, rays] -> [worlds, rays, k]."""
    if x.shape[0] == 1:
        return x[0].index_select(0, index.flatten()).reshape(*index.shape, x.shape[-1])
    return torch.take_along_dim(x, index.unsqueeze(-1), 1)
