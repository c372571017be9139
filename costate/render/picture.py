"""Picture: the matplotlib artists of a planar scene. They are made once and then moved from instant to instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import AxLine
from matplotlib.patches import Circle, Polygon

from costate.render import parts as p
from costate.render.artists import EDGE, INK, HalfPlane, shade, zigzag
from costate.render.view import GREY, Limits, Look, Scenery, Touch, impulse_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PUSH = "#d1232a"  # contact points and impulses
# What lies on what. Edges of half planes come first: what is solid then covers the lower half of each, and all that is inside
EDGES, HALF_PLANES, STILL, TRAILS, BEHIND, BODIES, RODS, JOINTS, CONTACTS, NAMES = (1.0 + 0.1 * np.arange(10)).tolist()


class Stroke(NamedTuple):
    """How a line between two points, or a marker at one, is drawn; widths and sizes in points."""

    order: float
    width: float
    marker: str
    size: float


STROKES = {
    "hinge": Stroke(JOINTS, 1.0, "o", 5.0),
    "weld": Stroke(JOINTS, 1.0, "s", 4.0),
    "slide": Stroke(RODS, 1.2, "s", 5.0),
    "rod": Stroke(RODS, 1.8, "o", 3.0),
    "link": Stroke(BEHIND, 2.6, "", 0.0),
    "mass": Stroke(RODS, 0.0, "o", 11.0),
}


class Picture:
    """The artists of a scene on axes. `show(t)` moves them to one of its instants."""

    def __init__(self, ax: Axes, scene: Scenery, limits: Limits, look: Look, *, axis: bool) -> None:
        self.ax, self.scene, self.look, self.limits = ax, scene, look, limits
        self._passing: list[Any] = []  # artists of one instant: trails, contacts
        _set_up(ax, limits, axis)
        self._movers = [self._make(part) for part in scene.parts]
        self._names = [self._name(i) for i in range(scene.model.nb)] if look.get("labels", False) else []

    def show(self, t: int, *, touch: Touch | None = None, path: np.ndarray | None = None, scale: float | None = None) -> None:
        """Instant t, with the contacts of a step and a path [T, n, 2] that ends now. scale : of impulses, m per N s."""
        world = self.scene.world
        for part, move in zip(self.scene.parts, self._movers, strict=True):
            move(world.locate(part, t))
        for i, name in enumerate(self._names):
            name.set_position(world.locate(p.centres(self.scene.model, world.params, [i]), t)[0])
        while self._passing:
            self._passing.pop().remove()
        if path is not None and len(path) > 1:
            self._trail(path)
        if touch is not None and len(touch.point):
            self._touch(touch, scale)

    def _make(self, part: p.Part) -> Callable[[np.ndarray], None]:
        """The artists of a part; what moves them to its points [n, 2] is returned."""
        moves = p.moves(self.scene.model, part.body)
        color = GREY if part.body == p.GROUND else self.scene.colors[part.body]
        rim, order = shade(color, 0.6), BODIES if moves else STILL
        if part.kind == "circle":
            return self._circle(part, color, rim, order)
        if part.kind == "polygon":
            polygon = Polygon(part.points, facecolor=color, edgecolor=rim, linewidth=1.2, joinstyle="round", zorder=order)
            self.ax.add_artist(polygon)
            return polygon.set_xy
        if part.kind == "half plane":
            return self._half_plane()
        if part.kind == "spring":
            spring, amplitude = self._line(rim, BEHIND, linewidth=1.3), self._coil(part)
            return lambda points: spring.set_data(*zigzag(points[0], points[1], amplitude).T)
        stroke = STROKES[part.kind]
        line = self._line(
            rim, stroke.order, linewidth=stroke.width, marker=stroke.marker, markersize=stroke.size, markeredgecolor=rim,
            markeredgewidth=1.2, markerfacecolor=color if part.kind == "mass" else "white",
        )  # fmt: skip
        if part.kind == "slide":
            line.set_markevery([1])  # what slides; the other end is where it would be at zero
        return lambda points: line.set_data(*points.T)

    def _circle(self, part: p.Part, color: Any, rim: Any, order: float) -> Callable[[np.ndarray], None]:
        """A disc, and a radius that turns with it."""
        radius = float(np.linalg.norm(part.points[1] - part.points[0]))
        disc = Circle((0.0, 0.0), radius, facecolor=color, edgecolor=rim, linewidth=1.2, zorder=order)
        self.ax.add_artist(disc)
        spoke = self._line(rim, order, linewidth=1.2)

        def move(points: np.ndarray) -> None:
            disc.set_center((float(points[0, 0]), float(points[0, 1])))
            spoke.set_data(*points.T)

        return move

    def _half_plane(self) -> Callable[[np.ndarray], None]:
        half, edge = HalfPlane(zorder=HALF_PLANES), AxLine((0, 0), (1, 0), None, color=EDGE, linewidth=2.4, zorder=EDGES)
        self.ax.add_artist(half)
        self.ax.add_artist(edge)

        def move(points: np.ndarray) -> None:
            half.place(points)
            (x, y), (dx, dy) = points[0].tolist(), (points[1] - points[0]).tolist()
            edge.set_xy1((x, y))
            edge.set_xy2((x + dy, y - dx))

        return move

    def _line(self, color: Any, order: float, **style: Any) -> Any:
        (line,) = self.ax.plot([], [], color=color, zorder=order, solid_capstyle="round", scalex=False, scaley=False, **style)
        return line

    def _coil(self, part: p.Part) -> float:
        """How far a spring swings to the sides: a share of its length at first, or of the view where it has none."""
        a, c = self.scene.world.locate(part, 0)
        view = min(high - low for low, high in self.limits)
        return float(min(max(0.06 * np.linalg.norm(c - a), 0.012 * view), 0.04 * view))

    def _name(self, body: int) -> Any:
        style = {"ha": "center", "va": "center", "fontsize": 8, "color": INK, "zorder": NAMES, "clip_on": True}
        label = self.ax.text(0, 0, self.scene.model.body_names[body], **style)
        label.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "boxstyle": "round,pad=0.15"})
        return label

    def _trail(self, path: np.ndarray) -> None:
        """From faint to strong; of a body in its colour."""
        for (kind, index), way in zip(self.scene.tracked, np.moveaxis(path, 1, 0), strict=True):
            color = self.scene.colors[index] if kind == "body" else PUSH
            pieces = np.stack((way[:-1], way[1:]), 1)
            tints = np.tile(to_rgba(color), (len(pieces), 1))
            tints[:, 3] = np.linspace(0.05, 0.8, len(pieces))
            lines = LineCollection(list(pieces), colors=tints, linewidths=1.6, capstyle="butt", zorder=TRAILS)
            self._passing.append(self.ax.add_artist(lines))

    def _touch(self, touch: Touch, scale: float | None) -> None:
        """Dots, hollow where nothing pushes, and arrows."""
        scale = impulse_scale(self.look, [touch], self.limits) if scale is None else scale
        face = np.where(touch.pushes, PUSH, "white")
        dots = self.ax.scatter(*touch.point.T, s=16, c=face, edgecolors=PUSH, linewidths=1.0, zorder=CONTACTS)
        at, arrows = touch.point[touch.pushes], scale * touch.impulse[touch.pushes]
        self._passing.append(dots)
        if len(at):
            style = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "units": "inches", "width": 0.022, "zorder": CONTACTS}
            self._passing.append(self.ax.quiver(*at.T, *arrows.T, color=PUSH, **style))


def _set_up(ax: Axes, limits: Limits, axis: bool) -> None:
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlim(*limits[0])
    ax.set_ylim(*limits[1])
    if not axis:
        ax.set_axis_off()
        return
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK, labelsize=8)
    ax.set_xlabel("x [m]", color=INK)
    ax.set_ylabel("y [m]", color=INK)
