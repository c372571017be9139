"""Contacts: the shapes of a scene, and which pairs of them may touch.

Two shapes may touch if the group of one has a bit in common with the mask of the other, unless
- they sit on one body, or on two that no joint moves against each other (welded bodies count as one);
- one body is the other's parent; but a parent that stands still, like the world, is touched (both rules as in MuJoCo);
- a constraint with collide=False ties their bodies (welded ones again counting as one, but what stands still body by body);
- the pair is excluded by name, or self_collision=False and both belong to one tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from costate.scene.body import Body
from costate.scene.checks import FRACTION, NOT_NEGATIVE, checked
from costate.scene.codes import CONDIMS, NO_CONTACT
from costate.scene.shapes import Shape, Static

STATIC = -1  # welded to the world
BITS = 32  # of groups and masks


@dataclass(frozen=True)
class PlacedShape:
    """A shape in plain floats on a body (-1 the world).

    numbers : each field per shape -> its row, with graph; of a hull or polygon also its vertices, of a heightfield its heights.
    structure : fields of `Model` -> this shape's part of them (see `Shape.surface`).
    """

    name: str
    body: int
    shape: Shape
    numbers: dict[str, Tensor]
    structure: dict[str, tuple[int, ...]]

    @property
    def code(self) -> int:
        """Its kind, NO_CONTACT for those that only give inertia."""
        return NO_CONTACT if self.shape.code is None else self.shape.code


def _no_pairs() -> np.ndarray:
    return np.empty((0, 2), np.int32)


@dataclass(frozen=True)
class Candidates:
    """The shapes that may touch another, and the pairs [n, 2], int32, of their indices, the lower first."""

    shapes: tuple[PlacedShape, ...] = ()
    pairs: np.ndarray = field(default_factory=_no_pairs)


@dataclass(frozen=True)
class Side:
    """One side of an excluded pair: a body (-1 the world) or a shape."""

    body: int | None = None
    shape: int | None = None

    def among(self, bodies: np.ndarray) -> np.ndarray:
        """Indices of the shapes, on `bodies`, that are meant."""
        return np.flatnonzero(bodies == self.body) if self.shape is None else np.array([self.shape])


def place(where: str, name: str, body: int, shape: Shape) -> PlacedShape:
    """Check `shape` and read its numbers; `where` starts error messages."""
    subject = f"{where}{type(shape).__name__}"
    if not isinstance(shape.collide, bool):
        raise TypeError(f"{subject} collide must be True or False, got {shape.collide!r}")
    for word in ("group", "mask"):
        bits = getattr(shape, word)
        if not isinstance(bits, int) or isinstance(bits, bool) or not -(2 ** (BITS - 1)) <= bits < 2**BITS:
            raise TypeError(f"{subject} {word} must be an int of at most {BITS} bits, got {bits!r}")
    if not isinstance(shape.condim, int) or isinstance(shape.condim, bool) or shape.condim not in CONDIMS:
        raise ValueError(f"{subject} condim must be 1, 3, 4 or 6, got {shape.condim!r}")
    sizes = [size.reshape(-1) for size in shape.measure(where=subject)]
    unused = 3 - sum(map(len, sizes))
    surface, structure = shape.surface(where=subject)
    frame = shape.frame(where=subject)
    rows = {
        "shape_pos": frame.pos,
        "shape_quat": frame.quat,
        "shape_size": torch.cat((*sizes, torch.zeros(unused, dtype=torch.float64))),
        "friction": checked(f"{subject} friction", shape.friction, (), NOT_NEGATIVE),
        "torsion": checked(f"{subject} torsion", shape.torsion, (), NOT_NEGATIVE),
        "rolling": checked(f"{subject} rolling", shape.rolling, (), NOT_NEGATIVE),
        "restitution": checked(f"{subject} restitution", shape.restitution, (), FRACTION),
        "softness": checked(f"{subject} softness", shape.softness, (), NOT_NEGATIVE),
        **surface,
    }
    return PlacedShape(name, body, shape.detach(), rows, structure)


def check_static(where: str, shape: Shape, body: str, fixed: bool) -> None:
    """Planes, half planes and heightfields have no inertia, so they cannot move."""
    if isinstance(shape, Static) and not fixed:
        kind = type(shape).__name__
        raise ValueError(f"{where}{kind} must be on the world or on a body that is fixed to it, got body {body!r}, which moves")


def find_candidates(
    shapes: Sequence[PlacedShape], bodies: Sequence[Body], *, excluded: Iterable[tuple[Side, Side]],
    apart: Iterable[tuple[int, int]], self_collision: bool,
) -> Candidates:  # fmt: skip
    """All pairs that may touch; NotImplementedError where the engine has no contact for one.

    apart : pairs of bodies, tied together, that do not.
    """
    pairs = _pairs(shapes, bodies, excluded, apart, self_collision)
    without = np.array([shape.code == NO_CONTACT for shape in shapes], dtype=bool)[pairs].any(1)
    if without.any():
        a, b = pairs[without.argmax()]
        raise NotImplementedError(
            f"build: contact between {_describe(shapes[a])} and {_describe(shapes[b])} is not supported; exclude(...) the "
            "pair, set collide=False on one, or Scene(collisions=False)"
        )
    used = np.zeros(len(shapes), dtype=bool)
    used[pairs] = True
    index = np.cumsum(used, dtype=np.int32) - 1
    return Candidates(tuple(shape for shape, kept in zip(shapes, used) if kept), index[pairs])


def _pairs(
    shapes: Sequence[PlacedShape], bodies: Sequence[Body], excluded: Iterable[tuple[Side, Side]],
    apart: Iterable[tuple[int, int]], self_collision: bool,
) -> np.ndarray:  # fmt: skip
    """Pairs [n, 2] of indices, the lower first, in ascending order."""
    if len(shapes) < 2:
        return _no_pairs()
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
    part_of = np.where(weld_of == STATIC, np.arange(len(weld_of)), weld_of)
    part = part_of[body]
    named = [(a.among(body), b.among(body)) for a, b in excluded]
    tied = [(np.flatnonzero(part == part_of[a]), np.flatnonzero(part == part_of[b])) for a, b in apart]
    for a, b in (*named, *tied):
        keep[np.ix_(a, b)] = keep[np.ix_(b, a)] = False
    return np.argwhere(np.triu(keep, 1))


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
