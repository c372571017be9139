"""Artists that matplotlib does not have: a half plane that fills the view, the line of a spring, and shades of a colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon

INK, HATCH, EDGE, EARTH = "#22313f", "#b9c1c9", "#66727e", "#eff1f3"
COILS = 7


def shade(color: Any, light: float) -> tuple[float, float, float]:
    """A colour with less light; 1 leaves it as it is, 0 is black."""
    red, green, blue = to_rgb(color)
    return red * light, green * light, blue * light


def clip(corners: np.ndarray, point: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """What is left of a convex polygon [n, 2] on the side of a line through `point` that `normal` points away from."""
    height, kept = (corners - point) @ normal, []
    for i in range(len(corners)):
        here, there = height[i - 1], height[i]
        if (here > 0) != (there > 0):
            kept.append(corners[i - 1] + here / (here - there) * (corners[i] - corners[i - 1]))
        if there <= 0:
            kept.append(corners[i])
    return np.array(kept).reshape(-1, 2)


class HalfPlane(Polygon):
    """All that lies below a line, hatched, as far as it can be seen: cut anew whenever it is drawn, so that views may move."""

    def __init__(self, **style: Any) -> None:
        super().__init__(np.zeros((1, 2)), closed=True, facecolor=EARTH, edgecolor=HATCH, hatch="////", linewidth=0.0, **style)
        self._point, self._normal = np.zeros(2), np.array((0.0, 1.0))
        self.set_in_layout(False)

    def place(self, points: np.ndarray) -> None:
        """points [2, 2] : one of the line, and one a metre out of the solid."""
        self._point, self._normal = points[0], points[1] - points[0]
        self.stale = True

    def draw(self, renderer: Any) -> None:
        """Cut out of the view, then drawn."""
        if self.axes is None or not self.get_visible():
            return
        (x0, x1), (y0, y1) = self.axes.get_xlim(), self.axes.get_ylim()
        view = np.array(((x0, y0), (x1, y0), (x1, y1), (x0, y1)))
        seen = clip(view, self._point, self._normal)
        if len(seen) < 3:
            return
        self.set_xy(seen)
        super().draw(renderer)


def zigzag(a: np.ndarray, b: np.ndarray, amplitude: float) -> np.ndarray:
    """The line [n, 2] of a spring from a to b, with straight ends."""
    along = b - a
    length = float(np.linalg.norm(along))
    side = amplitude / length * np.array((-along[1], along[0])) if length > 0 else np.array((0.0, amplitude))
    share = np.concatenate(((0.0,), np.linspace(0.15, 0.85, 2 * COILS + 1), (1.0,)))
    swing = np.zeros(len(share))
    swing[2:-2] = np.resize((1.0, -1.0), len(share) - 4)
    return a + share[:, None] * along + swing[:, None] * side
