"""What a picture of a planar model consists of: points that are fixed in bodies, and where these bodies are. No matplotlib here.

A part is drawn through its points, each in the frame of one body (or the world):
    circle      centre, and the point of the rim where its angle is zero
    polygon     corners, counterclockwise; also rectangles
    half plane  a point of the line, and one a metre away along the outward normal
    mass        the centre of mass of a body without shapes
    link        from where such a body hangs to its mass, or to where another body hangs on it
    hinge, weld, slide      two points that a joint or a constraint holds together
    rod, spring             two points with a distance that is kept, rigidly or softly
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import torch
from torch import Tensor

from costate import batch as b
from costate.dynamics import kinematics
from costate.rotation import normalise, rotate
from costate.scene import Model, Params
from costate.scene.codes import DISTANCE, PLANE, POLYGON, RECTANGLE, SPHERE, TURN
from costate.scene.contacts import place
from costate.scene.joints import JOINTS, Prismatic, Revolute
from costate.scene.names import WORLD
from costate.scene.shapes import Shape

GROUND = -1  # stands for the world among bodies


class Part(NamedTuple):
    """One thing to draw."""

    kind: str
    body: int  # whose colour it has, GROUND for none
    owners: tuple[int, ...]  # the body in whose frame each point is
    points: np.ndarray  # [n, 2] m


class World(NamedTuple):
    """One world at T instants."""

    q: Tensor  # [T, nq]
    params: Params  # without batch dimensions
    turn: np.ndarray  # [T, nb + 1, 2, 2] axes of every body; the last is the world, so that index GROUND finds it
    origin: np.ndarray  # [T, nb + 1, 2] m
    sites: np.ndarray  # [T, ns, 2] m

    def locate(self, part: Part, t: int | slice = slice(None)) -> np.ndarray:
        """Where the points of a part are: [n, 2] at instant t, or [T, n, 2]."""
        owners = list(part.owners)
        turn, origin = self.turn[t][..., owners, :, :], self.origin[t][..., owners, :]
        return (turn @ part.points[..., None])[..., 0] + origin


# ---- one world of many -----------------------------------------------------------------------------------------------------
def configurations(where: str, states: Any) -> Tensor:
    """q of a State or a Trajectory, or an array that is q itself; float64, without graph; `where` starts the error message."""
    q = getattr(states, "q", states)
    if isinstance(q, np.ndarray):
        q = torch.from_numpy(q.copy())
    if not isinstance(q, Tensor):
        raise TypeError(f"{where}: a State, a Trajectory or an array of configurations q is needed, got {type(states).__name__}")
    return q.detach().cpu().double()


def check_planar(where: str, model: Model) -> None:
    """Refuse what cannot be drawn; `where` starts the message."""
    if not model.planar:
        raise NotImplementedError(f"{where}: only planar scenes, Scene(planar=True), can be drawn so far; this model is in space")


def world_of(where: str, model: Model, q: Tensor, params: Params | None, world: Any, *, timed: bool) -> tuple[Tensor, Params]:
    """One world's q [T, nq] of [T, ..., nq] (timed) or [..., nq], and its params; `where` starts error messages.

    world : a number that counts the worlds of all batch dimensions, the last one fastest, or an index per dimension.
    """
    front = 1 if timed else 0
    if q.ndim < 1 + front or q.shape[-1] != model.nq:
        raise ValueError(f"{where}: q must have shape [{'T, ' * timed}..., {model.nq}], got {tuple(q.shape)}")
    params = b.check_params(model, params).to(torch.float64, "cpu").detach()
    lead = tuple(q.shape[front:-1])
    batch = b.broadcast({"the state": lead, "params": params.batch_shape})
    index = _world_index(where, world, batch)
    missing = (1,) * (len(batch) - len(lead))
    whole = q.reshape(*q.shape[:front], *missing, *lead, model.nq).expand(*q.shape[:front], *batch, model.nq)
    chosen = whole[(*(slice(None),) * front, *index)].reshape(-1, model.nq)
    one = {name: tensor[index] for name, tensor in params.expand(batch).items()} if batch else dict(params)
    return chosen, Params(model, one)


def _world_index(where: str, world: Any, batch: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a world in the batch dimensions."""
    count = b.worlds(batch)
    if isinstance(world, SupportsIndex) and not isinstance(world, bool) and -count <= operator.index(world) < count:
        return tuple(map(int, np.unravel_index(operator.index(world) % count, batch))) if batch else ()
    if isinstance(world, tuple) and len(world) == len(batch) and all(-n <= i < n for i, n in zip(world, batch)):
        return world
    raise ValueError(f"{where}: world must be below {count}, or an index into batch dimensions {batch}, got {world!r}")


def flat_index(where: str, world: Any, batch: tuple[int, ...]) -> int:
    """The number of a world among all of its batch; 0 where there are no batch dimensions."""
    return int(np.ravel_multi_index(_world_index(where, world, batch), batch, mode="wrap")) if batch else 0


def locate_bodies(model: Model, q: Tensor, params: Params) -> World:
    """Where all bodies are in q [T, nq]."""
    k = kinematics(model, q, None, params)
    half = torch.atan2(k.quaternion[..., 3], k.quaternion[..., 0])
    cos, sin = np.cos(2 * half.numpy()), np.sin(2 * half.numpy())
    turn = np.stack((np.stack((cos, -sin), -1), np.stack((sin, cos), -1)), -2)
    still = np.broadcast_to(np.eye(2), (len(q), 1, 2, 2))
    origin = np.concatenate((k.position[..., :2].numpy(), np.zeros((len(q), 1, 2))), 1)
    return World(q, params, np.concatenate((turn, still), 1), origin, k.site_position[..., :2].numpy())


# ---- parts -----------------------------------------------------------------------------------------------------------------
def parts_of(model: Model, params: Params, *, joints: bool = True) -> list[Part]:
    """Everything there is to draw; with `joints`, also joints and constraints."""
    parts = [*_shapes(model, params), *_skeletons(model, params)]
    return [*parts, *_joints(model, params), *_ties(model, params)] if joints else parts


def moves(model: Model, body: int) -> bool:
    """Whether any joint moves a body against the world."""
    return body != GROUND and any(JOINTS[model.joint_type[i]].nv for i in model.ancestors[body])


def centres(model: Model, params: Params, bodies: list[int]) -> Part:
    """The centres of mass of some bodies, as one part."""
    return Part("mass", GROUND, tuple(bodies), params["com"][bodies, :2].numpy())


def _shapes(model: Model, params: Params) -> Iterator[Part]:
    """Those of the world, then those of the bodies, also shapes that touch nothing."""
    for body, shapes in ((GROUND, model.world_shapes), *enumerate(model.shapes)):
        home = WORLD if body == GROUND else model.body_names[body]
        for i, shape in enumerate(shapes):
            part = _shape(shape, body, _rows(model, params, shape, shape.name or f"{home}/{i}"))
            if part is not None:
                yield part


def _rows(model: Model, params: Params, shape: Shape, name: str) -> dict[str, Tensor]:
    """Position, quaternion, size and corners of a shape: from params, or, of one that may not touch another, its own."""
    if name not in model.shape_names:
        return place("", name, GROUND, shape).numbers
    index = model.shape(name)
    rows = {field: params[field][index] for field in ("shape_pos", "shape_quat", "shape_size")}
    return {**rows, "hull_vertex": params["hull_vertex"][model.vertices(name)]} if shape.code == POLYGON else rows


def _shape(shape: Shape, body: int, rows: dict[str, Tensor]) -> Part | None:
    """A shape by its points in the frame of its body."""
    quat, size = normalise(rows["shape_quat"]), rows["shape_size"]
    if shape.code == SPHERE:
        kind, local = "circle", torch.stack((torch.zeros_like(size), size * size.new_tensor((1, 0, 0))))
    elif shape.code == RECTANGLE:
        kind, local = "polygon", size * size.new_tensor(((-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)))
    elif shape.code == POLYGON:
        kind, local = "polygon", rows["hull_vertex"]
    elif shape.code == PLANE:
        kind, local = "half plane", size.new_tensor(((0, 0, 0), (0, 0, 1)))
    else:
        return None
    points = rows["shape_pos"] + rotate(quat, local)
    return Part(kind, body, (body,) * len(points), points[:, :2].numpy())


def _skeletons(model: Model, params: Params) -> Iterator[Part]:
    """Bodies without shapes: their mass as a dot, with lines to the joints that it hangs on and that hang on it."""
    for body in (i for i, shapes in enumerate(model.shapes) if not shapes):
        hangs, com = params["joint_anchor"][body, :2].numpy(), params["com"][body, :2].numpy()
        if not model.massless[body]:
            yield Part("mass", body, (body,), com[None])
        ends = [(body, com)] if not model.massless[body] else []
        ends += [(child, params["joint_anchor"][child, :2].numpy()) for child, up in enumerate(model.parent) if up == body]
        for owner, point in ends:
            yield Part("link", body, (body, owner), np.stack((hangs, point)))


def _joints(model: Model, params: Params) -> Iterator[Part]:
    """Joints of the trees that turn, and springs of those that slide."""
    for body, code in enumerate(model.joint_type):
        anchor, frame = params["joint_anchor"][body, :2].numpy(), params["joint_pos"][body, :2].numpy()
        parent = model.parent[body]
        if JOINTS[code] is Revolute:
            yield Part("hinge", body, (body, body), np.stack((anchor, anchor)))
        elif JOINTS[code] is Prismatic and params["stiffness"][body] > 0:
            yield Part("spring", body, (parent, body), np.stack((frame, anchor)))


def _ties(model: Model, params: Params) -> Iterator[Part]:
    """Constraints between two frames."""
    for i, (a, other) in enumerate(zip(model.tie_a, model.tie_b, strict=True)):
        points, locks = params["tie_pos"][2 * i : 2 * i + 2, :2].numpy(), model.tie_locks[i]
        axes = rotate(normalise(params["tie_quat"][2 * i]), torch.eye(3, dtype=torch.float64))
        flat = {k for k in range(3) if abs(float(axes[k, 2])) < 0.5}  # axes of frame a that lie in the plane
        held = flat.intersection(locks)
        if DISTANCE in locks:
            kind = "spring" if params["tie_softness"][i] > 0 else "rod"
        elif held == flat:
            kind = "weld" if any(lock >= TURN for lock in locks) else "hinge"
        elif held:
            kind = "slide"
        else:
            continue
        yield Part(kind, a if other == GROUND else other, (a, other), points)
