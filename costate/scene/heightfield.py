"""Heightfield: a terrain of heights over a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from costate.scene.codes import FIELD
from costate.scene.shapes import Sizes, SpatialShape, Static, Surface
from costate.scene.values import Numbers, read


@dataclass(frozen=True)
class Heightfield(Static, SpatialShape):
    """Terrain of `heights` [nx, ny] (m) over a rectangle of `half` lengths [2] (m), solid below; on what never moves.

    In the frame of the shape heights[i, j] is z at x = half[0] (2 i / (nx - 1) - 1), y = half[1] (2 j / (ny - 1) - 1). Each
    cell is two triangles, parted by the diagonal from (i, j) to (i + 1, j + 1). Beside the rectangle there is nothing.
    """

    code: ClassVar[int | None] = FIELD
    sizes: ClassVar[Sizes] = {"half": (2,)}
    heights: Numbers
    half: Numbers

    def surface(self, *, where: str) -> Surface:
        """The heights, row by row, and how many rows and columns they have; `where` starts error messages."""
        heights = read(f"{where} heights", self.heights)
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ValueError(f"{where} heights must be numbers [nx, ny], at least 2 x 2, got shape {tuple(heights.shape)}")
        broken = torch.nonzero(~heights.detach().isfinite())
        if len(broken):
            i, j = broken[0].tolist()
            raise ValueError(f"{where} heights must be finite, got {heights[i, j].item()} at ({i}, {j})")
        nx, ny = heights.shape
        return {"height": heights.reshape(-1)}, {"field_nx": (nx,), "field_ny": (ny,)}
