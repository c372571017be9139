"""Places: frames on bodies by name, and how they move. A name is that of a site or a body.

Where a site and a body share a name, "site:name" and "body:name" tell them apart; "com:name" is the centre of mass of a body,
with the body's axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from costate.rotation import multiply, normalise, rotate
from costate.scene.names import suggest

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
    on: tuple[int, ...]  # the bodies as a reading counts them, the world last


class Frames(NamedTuple):
    """Where places are and how they move; world axes."""

    position: Tensor  # [*batch, n, 3] m
    quaternion: Tensor  # [*batch, n, 4] wxyz
    spin: Tensor  # [*batch, n, 3] rad/s
    velocity: Tensor  # [*batch, n, 3] m/s


_FIELDS = {"site": ("site_pos", "site_quat"), "com": ("com", None), "tie": ("tie_pos", "tie_quat"), "body": (None, None)}


def find_places(model: Model, where: str, names: Sequence[str]) -> Places:
    """The places of these names; `where` starts error messages."""
    known: dict[Any, Places] = model.__dict__.setdefault("_places", {})
    if (key := tuple(names)) not in known:
        kind, row = zip(*(_find(model, where, name) for name in names))
        body = tuple(model.site_body[i] if what == "site" else i for what, i in zip(kind, row, strict=True))
        known[key] = Places(key, body, kind, row, body_index(model, body))
    return known[key]


def tie_places(model: Model, ties: Sequence[int], side: int) -> Places:
    """Frames a (side 0) or b (side 1) of constraints."""
    known: dict[Any, Places] = model.__dict__.setdefault("_places", {})
    if (key := (side, *ties)) not in known:
        body = tuple((model.tie_b if side else model.tie_a)[i] for i in ties)
        names, row = tuple(model.tie_names[i] for i in ties), tuple(2 * i + side for i in ties)
        known[key] = Places(names, body, ("tie",) * len(row), row, body_index(model, body))
    return known[key]


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


def frames(reading: Reading, places: Places) -> Frames:
    """Poses and velocities of places, computed by whoever asks first."""
    return reading.once(_frames, places)


def _frames(reading: Reading, places: Places) -> Frames:
    on = reading.index(places.on)
    position, quaternion, spin, velocity = (x.index_select(-2, on) for x in reading.bodies[:4])
    if set(places.kind) == {"body"}:
        return Frames(position, quaternion, spin, velocity)
    pos, quat = _local(reading, places)
    arm = rotate(quaternion, pos)
    quaternion = quaternion if quat is None else multiply(quaternion, quat)
    return Frames(position + arm, quaternion, spin, velocity + torch.linalg.cross(spin, arm))


def _local(reading: Reading, places: Places) -> tuple[Tensor, Tensor | None]:
    """Positions [..., n, 3] and unit quaternions [..., n, 4] of places in their bodies; None where all are the bodies' own."""
    if len(kinds := set(places.kind)) == 1:
        pos, quat = _FIELDS[kinds.pop()]
        assert pos is not None
        index = reading.index(places.row)
        turn = None if quat is None else normalise(reading.param(quat)[..., index, :])
        return reading.param(pos)[..., index, :], turn
    one = reading.constant((1.0, 0.0, 0.0, 0.0))
    rows: tuple[list[Tensor], list[Tensor]] = ([], [])
    for kind, i in zip(places.kind, places.row, strict=True):
        for row, field, none in zip(rows, _FIELDS[kind], (one[1:], one), strict=True):
            row.append(none if field is None else reading.param(field)[..., i, :])
    pos, quat = (torch.stack(torch.broadcast_tensors(*row), -2) for row in rows)
    return pos, normalise(quat)
