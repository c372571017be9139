"""Assembly: the parts of all sensors read together, and their numbers put into the order in which they were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from costate.sensors.places import FramesOf, Places, frames, join
from costate.sensors.sensor import Bound, Part, Sensor
from costate.sensors.tables import indices
from costate.sensors.turning import turn_back

if TYPE_CHECKING:
    from costate.scene import Model
    from costate.sensors.reading import Reading, Shared


class _Piece(NamedTuple):
    """A part, and which numbers of the whole reading its own are, -1: none."""

    part: Part
    goes_to: tuple[int, ...]
    detach: bool

    def read(self, reading: Reading) -> Tensor:
        y = self.part.read(reading)
        return y.detach() if self.detach else y


class _Vectors(NamedTuple):
    """Pieces whose vectors are turned together, and the frame of each vector."""

    pieces: list[_Piece]
    axes: Places

    def read(self, reading: Reading) -> Tensor:
        """[*batch, 3 n]."""
        x = torch.cat([piece.read(reading) for piece in self.pieces], -2)
        q = frames(reading, self.axes).quaternion
        return turn_back(q.detach() if self.pieces[0].detach else q, x).flatten(-2)


class Assembly:
    """How all sensors are read. What has no gradient is turned apart from what has, since the axes have gradients, too."""

    def __init__(self, model: Model, sensors: Sequence[Sensor], bounds: Sequence[Bound]) -> None:
        pieces = _pieces(sensors, bounds)
        self._plain = [piece for piece in pieces if piece.part.axes is None]
        turned = ([x for x in pieces if x.part.axes is not None and x.detach == detach] for detach in (False, True))
        self._vectors = [_Vectors(group, join([_axes(x) for x in group])) for group in turned if group]
        asks = [ask for bound in bounds for ask in bound.asks] + [(FramesOf, group.axes) for group in self._vectors]
        items: dict[type[Shared[Any, Any]], dict[Any, None]] = {}
        for kind, item in asks:
            items.setdefault(kind, {})[item] = None
        self.asked = {kind: kind(model, tuple(of)) for kind, of in items.items()}
        found = [k for piece in (*self._plain, *(x for group in self._vectors for x in group.pieces)) for k in piece.goes_to]
        width = sum(len(bound.labels) for bound in bounds)
        where = {k: i for i, k in enumerate(found)}
        # without a table where they are in order already
        self._order = None if found == list(range(width)) else indices(where[k] for k in range(width))

    def read(self, reading: Reading) -> Tensor:
        """[*batch, n]."""
        numbers = [_flat(reading, piece.read(reading), len(piece.goes_to)) for piece in self._plain]
        numbers += [group.read(reading) for group in self._vectors]
        y = numbers[0] if len(numbers) == 1 else torch.cat(numbers, -1)
        return y if self._order is None else y.index_select(-1, self._order.like(y))


def _pieces(sensors: Sequence[Sensor], bounds: Sequence[Bound]) -> list[_Piece]:
    pieces, start = [], 0
    for sensor, bound in zip(sensors, bounds, strict=True):
        every = tuple(range(len(bound.labels)))
        for part in (Part(bound.read),) if callable(bound.read) else bound.read:
            goes_to = every if part.goes_to is None else part.goes_to
            pieces.append(_Piece(part, tuple(k if k < 0 else start + k for k in goes_to), sensor.detach))
        start += len(every)
    return pieces


def _axes(piece: _Piece) -> Places:
    """One frame for each vector of the piece."""
    axes, count = piece.part.axes, len(piece.goes_to) // 3
    assert axes is not None
    return axes if len(axes.row) == count else join([axes] * count)


def _flat(reading: Reading, y: Tensor, width: int) -> Tensor:
    """y [*batch, width]; vectors one after the other."""
    if y.ndim == len(reading.batch) + 2:
        y = y.flatten(-2)
    return y if y.shape == (*reading.batch, width) else y.expand(*reading.batch, width)
