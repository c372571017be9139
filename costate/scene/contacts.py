"""Contacts: the shapes of a scene, and which pairs of them may touch.

Two shapes may touch if the group of one has a bit in common with the mask of the other, unless
- they sit on one body, or on two that no joint moves against each other (welded bodies count as one);
- one body is the other's parent; but a parent that stands still, like the world, is touched (both rules as in MuJoCo);
- a constraint with collide=False ties their bodies (welded ones again counting as one, but what stands still body by body);
- the pair is excluded by name, or self_collision=False and both belong to one tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.scene.body import Body
from costate.scene.checks import DIRECTION, FRACTION, NOT_NEGATIVE, checked
from costate.scene.codes import SUPPORTED
from costate.scene.shapes import Plane, Shape

STATIC = -1  # welded to the world
BITS = 32  # of groups and masks


@dataclass(frozen=True)
class PlacedShape:
    """A shape in plain floats on a body (-1 the world). `numbers` maps each field per shape to its row, with graph."""

    name: str
    body: int
    shape: Shape
    numbers: dict[str, Tensor]

    @property
    def code(self) -> int:
        """Its kind, -1 for those that have no contact yet."""
        return -1 if self.shape.code is None else self.shape.code


@dataclass(frozen=True)
class Candidates:
    """The shapes that may touch another, and the pairs (a, b), a < b, of their indices."""

    shapes: tuple[PlacedShape, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Side:
    """One side of an excluded pair: a body (-1 the world) or a shape."""

    body: int | None = None
    shape: int | None = None

    def among(self, bodies: np.ndarray) -> np.ndarray:
        """Which shapes, on `bodies`, are meant."""
        return bodies == self.body if self.shape is None else np.arange(len(bodies)) == self.shape


def place(where: str, name: str, body: int, shape: Shape) -> PlacedShape:
    """Check `shape` and read its numbers; `where` starts error messages."""
    subject = f"{where}{type(shape).__name__}"
    if not isinstance(shape.collide, bool):
        raise TypeError(f"{subject} collide must be True or False, got {shape.collide!r}")
    for word in ("group", "mask"):
        bits = getattr(shape, word)
        if not isinstance(bits, int) or isinstance(bits, bool) or not -(2 ** (BITS - 1)) <= bits < 2**BITS:
            raise TypeError(f"{subject} {word} must be an int of at most {BITS} bits, got {bits!r}")
    sizes = [size.reshape(-1) for size in shape.measure(where=subject)]
    unused = 3 - sum(map(len, sizes))
    rows = {
        "shape_pos": checked(f"{subject} pos", shape.pos, (3,)),
        "shape_quat": checked(f"{subject} quat", shape.quat, (4,), DIRECTION),
        "shape_size": torch.cat((*sizes, torch.zeros(unused, dtype=torch.float64))),
        "friction": checked(f"{subject} friction", shape.friction, (), NOT_NEGATIVE),
        "restitution": checked(f"{subject} restitution", shape.restitution, (), FRACTION),
        "softness": checked(f"{subject} softness", shape.softness, (), NOT_NEGATIVE),
    }
    return PlacedShape(name, body, shape.detach(), rows)


def check_plane(where: str, shape: Shape, body: str, fixed: bool) -> None:
    """A plane has no inertia and no bounds, so it cannot move."""
    if isinstance(shape, Plane) and not fixed:
        raise ValueError(f"{where}Plane must be on the world or on a body that is fixed to it, got body {body!r}, which moves")


def find_candidates(
    shapes: Sequence[PlacedShape], bodies: Sequence[Body], *, excluded: Iterable[tuple[Side, Side]],
    apart: Iterable[tuple[int, int]], self_collision: bool,
) -> Candidates:  # fmt: skip
    """All pairs that may touch; NotImplementedError where the engine has no contact for one.

    apart : pairs of bodies, tied together, that do not.
    """
    pairs = _pairs(shapes, bodies, excluded, apart, self_collision)
    for a, b in pairs:
        if tuple(sorted((shapes[a].code, shapes[b].code))) not in SUPPORTED:
            raise NotImplementedError(
                f"build: contact between {_describe(shapes[a])} and {_describe(shapes[b])} is not supported; exclude(...) the "
                "pair, set collide=False on one, or Scene(collisions=False)"
            )
    used = sorted({index for pair in pairs for index in pair})
    index = {old: new for new, old in enumerate(used)}
    return Candidates(tuple(shapes[i] for i in used), tuple((index[a], index[b]) for a, b in pairs))


def _pairs(
    shapes: Sequence[PlacedShape], bodies: Sequence[Body], excluded: Iterable[tuple[Side, Side]],
    apart: Iterable[tuple[int, int]], self_collision: bool,
) -> list[tuple[int, int]]:  # fmt: skip
    """Pairs of indices, the lower first, in ascending order."""
    if len(shapes) < 2:
        return []
    body = np.array([shape.body for shape in shapes])
    group, mask = (np.array([getattr(s.shape, word) for s in shapes], dtype=np.int64) for word in ("group", "mask"))
    collide = np.array([shape.shape.collide for shape in shapes])
    weld_of, above_of, tree_of = (np.array([*of_bodies, STATIC]) for of_bodies in _structure(bodies))
    weld, above, tree = weld_of[body], above_of[body], tree_of[body]

    keep = (group[:, None] & mask) != 0
    keep |= keep.T
    keep &= collide[:, None] & collide
    keep &= weld[:, None] != weld
    child = (above[:, None] == weld) & (weld != STATIC)
    keep &= ~(child | child.T)
    if not self_collision:
        keep &= (tree[:, None] != tree) | (tree == STATIC)
    for a, b in excluded:
        cross = a.among(body)[:, None] & b.among(body)
        keep &= ~(cross | cross.T)
    part = np.where(weld_of == STATIC, np.arange(len(weld_of)), weld_of)
    for a, b in apart:
        of_a, of_b = np.flatnonzero(part[body] == part[a]), np.flatnonzero(part[body] == part[b])
        keep[np.ix_(of_a, of_b)] = keep[np.ix_(of_b, of_a)] = False
    return [(a, b) for a, b in np.argwhere(np.triu(keep, 1)).tolist()]


def _structure(bodies: Sequence[Body]) -> tuple[list[int], list[int], list[int]]:
    """Of each body: the body it is welded to (STATIC: the world), the one which that hangs on, and the root of its tree."""
    weld: list[int] = []
    above: list[int] = []
    tree: list[int] = []
    for index, body in enumerate(bodies):
        parent_weld = weld[body.parent] if body.parent >= 0 else STATIC
        moves = body.joint.nv > 0
        weld.append(index if moves else parent_weld)
        above.append(parent_weld if moves else above[body.parent] if body.parent >= 0 else STATIC)
        tree.append(tree[body.parent] if body.parent >= 0 else index)
    return weld, above, tree


def _describe(shape: PlacedShape) -> str:
    return f"{type(shape.shape).__name__} {shape.name!r}"
