"""Places: frames on bodies by name, and how they move. A name is that of a site or a body.

Where a site and a body share a name, "site:name" and "body:name" tell them apart; "com:name" is the centre of mass of a body,
with the body's axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from costate.rotation import normalise
from costate.scene.names import suggest
from costate.sensors.reading import COLUMNS, Shared
from costate.sensors.tables import Table, indices
from costate.sensors.turning import cross, product, turn

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading


@dataclass(frozen=True, eq=False)
class Places:
    """Frames fixed in bodies; the same object wherever the same names are looked up."""

    names: tuple[str, ...]
    body: tuple[int, ...]  # -1 the world
    kind: tuple[str, ...]  # which parameters say where in the body: "body" (its own frame), "site", "com" or "tie"
    row: tuple[int, ...]  # in the fields of its kind


def join(parts: Sequence[Places]) -> Places:
    """Several places in a row."""
    fields = zip(*((x.names, x.body, x.kind, x.row) for x in parts), strict=True)
    return Places(*(tuple(chain.from_iterable(field)) for field in fields))


class Frames(NamedTuple):
    """Where places are and how they move; world axes."""

    position: Tensor  # [*batch, n, 3] m
    quaternion: Tensor  # [*batch, n, 4] wxyz
    spin: Tensor  # [*batch, n, 3] rad/s
    velocity: Tensor  # [*batch, n, 3] m/s


# which parameters say where it is in its body
_FIELDS: dict[str, tuple[str | None, str | None]] = {
    "site": ("site_pos", "site_quat"),
    "com": ("com", None),
    "tie": ("tie_pos", "tie_quat"),
    "body": (None, None),
}


def find_places(model: Model, where: str, names: Sequence[str]) -> Places:
    """The places of these names; `where` starts error messages."""
    known: dict[Any, Places] = model.__dict__.setdefault("_places", {})
    if (key := tuple(names)) not in known:
        kind, row = zip(*(_find(model, where, name) for name in names))
        body = tuple(model.site_body[i] if what == "site" else i for what, i in zip(kind, row, strict=True))
        known[key] = Places(key, body, kind, row)
    return known[key]


def tie_places(model: Model, ties: Sequence[int], side: int) -> Places:
    """Frames a (side 0) or b (side 1) of constraints."""
    known: dict[Any, Places] = model.__dict__.setdefault("_places", {})
    if (key := (side, *ties)) not in known:
        body = tuple((model.tie_b if side else model.tie_a)[i] for i in ties)
        names, row = tuple(model.tie_names[i] for i in ties), tuple(2 * i + side for i in ties)
        known[key] = Places(names, body, ("tie",) * len(row), row)
    return known[key]


def all_bodies(model: Model, kind: Literal["body", "com"]) -> Places:
    """The frames of all bodies, or those at their centres of mass."""
    known: dict[Any, Places] = model.__dict__.setdefault("_places", {})
    if kind not in known:
        rows = tuple(range(model.nb))
        known[kind] = Places(model.body_names, rows, (kind,) * model.nb, rows)
    return known[kind]


def body_index(model: Model, bodies: Sequence[int]) -> tuple[int, ...]:
    """Bodies, -1 the world, as indices of what a reading has of all of them."""
    return tuple(model.nb if i < 0 else i for i in bodies)


def _find(model: Model, where: str, name: str) -> tuple[str, int]:
    known = {"site": model.site_names, "body": model.body_names}
    found = [kind for kind, names in known.items() if name in names]
    if len(found) > 1:
        raise ValueError(f"{where}: {name!r} is a site and a body; write 'site:{name}' or 'body:{name}'")
    kind, rest = (found[0], name) if found else _split(name)
    of = known["site" if kind == "site" else "body"]
    if rest not in of:
        every = (*model.site_names, *model.body_names)
        raise ValueError(f"{where}: no site or body named {name!r}; {suggest(rest, every)}")
    return kind, of.index(rest)


def _split(name: str) -> tuple[str, str]:
    kind, colon, rest = name.partition(":")
    return (kind, rest) if colon and kind in ("site", "body", "com") else ("body", name)


class FramesOf(Shared[Places, Frames]):
    """Frames of all places that are asked for.

    With pose (p, q) and velocity (w, v) of a body, and (pos, quat) of the place in it:
        p + R(q) pos,    q quat,    w,    v + w x R(q) pos
    """

    def __init__(self, model: Model, items: Sequence[Places]) -> None:
        super().__init__(model, items)
        every = join(items)
        asked = list(zip(every.body, every.kind, every.row, strict=True))
        self._again = None
        if any(_FIELDS[kind][0] for kind in every.kind):  # what has to be computed is computed once
            numbers = {place: i for i, place in enumerate(dict.fromkeys(asked))}
            self._again = indices(numbers[place] for place in asked)
            asked = list(numbers)
        self._on = indices(body_index(model, [body for body, _, _ in asked]))
        self._counts = [len(x.row) for x in items]
        self._pos, self._quat = (_Local(model, [place[1:] for place in asked], which) for which in (0, 1))

    def compute(self, reading: Reading) -> Sequence[Frames]:
        """Moved from the bodies to the places, and handed out."""
        like = reading.q
        every = reading.motion[0].index_select(-2, self._on.like(like))
        if self._pos.fields:
            p, q, w, v = every.split_with_sizes(COLUMNS, -1)
            arm = turn(q, self._pos.read(reading))
            q = product(q, normalise(self._quat.read(reading))) if self._quat.fields else q
            every = torch.cat((p + arm, q, w, v + cross(w, arm)), -1)
        if self._again is not None:
            every = every.index_select(-2, self._again.like(like))
        parts = every.split_with_sizes(self._counts, -2)
        return [Frames(*x.split_with_sizes(COLUMNS, -1)) for x in parts]


class _Local:
    """Positions or quaternions of places in their bodies, gathered of the fields that have them.

    places : kind and row of each. which : 0 positions, 1 quaternions.
    """

    def __init__(self, model: Model, places: Sequence[tuple[str, int]], which: int) -> None:
        found = {kind: field for kind in sorted({kind for kind, _ in places}) if (field := _FIELDS[kind][which])}
        self.fields = list(found.values())
        # row 0 is for those that have no such field
        first = dict(zip(found, accumulate((len(model.defaults[field]) for field in self.fields), initial=1)))
        self._rows = indices(first[kind] + i if kind in first else 0 for kind, i in places)
        self._none = Table((((1.0,) if which else ()) + (0.0,) * 3,))

    def read(self, reading: Reading) -> Tensor:
        """[..., n, 3 or 4]."""
        rows = [self._none.like(reading.q), *(reading.param(field) for field in self.fields)]
        if batch := reading.params.batch_shape:
            rows = [x.expand(*batch, -1, -1) for x in rows]
        return torch.cat(rows, -2).index_select(-2, self._rows.like(reading.q))


def frames(reading: Reading, places: Places) -> Frames:
    """Poses and velocities of places."""
    return reading.shared(FramesOf, places)
