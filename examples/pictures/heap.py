"""The picture of examples/pile.py: bodies of all kinds on hills, throws of the stone, and how far from the mark they ended."""

from __future__ import annotations

from itertools import pairwise
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LightSource
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

if TYPE_CHECKING:
    from pile import Search, Task

INK, GREY, ORANGE = "#22313f", "#b8c0c8", "#e07a3f"
COLOURS = {"Box": "#1b6ca8", "Cylinder": "#3a9d6e", "Capsule": "#a4508b", "Sphere": "#d4b13f", "Hull": "#7a8794"}
STYLE = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "text.color": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left",
}  # fmt: skip
LIGHT, SIDES = LightSource(azdeg=200, altdeg=50), 16
SHOWN = 1.05  # m of the hills to every side


def draw(task: Task, search: Search, folder: Path) -> Path:
    """Write pile.png into `folder` and return its path."""
    best = search.best()
    traj = task.throw(search.throws[best])
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10.5, 6.4), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1.7, 1))
        _scene(left.add_subplot(projection="3d", computed_zorder=False), task, traj)
        left.suptitle(f"After {task.steps * task.sim.dt:g} s; the stone and its way are orange, the mark is a cross", fontsize=10)
        above, below = right.subplots(2, 1, height_ratios=(1.5, 1))
        _throws(above, task, search, best)
        _progress(below, search)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "pile.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


# ---- solids as polygons, in their own frames ------------------------------------------------------------------------------
def polygons(model: cs.Model, index: int) -> list[np.ndarray]:
    """Faces [corners, 3] of shape `index` of model.shape_names, in the shape's frame; round ones as nets."""
    shape = _shape(model, index)
    if isinstance(shape, cs.Hull):
        corners, faces = shape.corners()
        return [corners.detach().numpy()[list(loop)] for loop in faces.loops]
    if isinstance(shape, cs.Box):
        half = np.array([float(x) for x in shape.half])
        corners = half * np.array([[1 - 2 * (i & 1), 1 - (i & 2), 1 - (i >> 1 & 2)] for i in range(8)])
        faces = ((1, 3, 2, 0), (6, 7, 5, 4), (4, 5, 1, 0), (3, 7, 6, 2), (2, 6, 4, 0), (5, 7, 3, 1))
        return [corners[list(face)] for face in faces]
    angle, radius = np.linspace(0, 2 * pi, SIDES + 1), float(shape.radius)
    if isinstance(shape, cs.Cylinder):
        half = float(shape.half_length)
        rings = [(0.0, half), (radius, half), (radius, -half), (0.0, -half)]
    else:
        half = float(shape.half_length) if isinstance(shape, cs.Capsule) else 0.0
        rise = np.linspace(pi / 2, 0, 5)
        top = [(radius * np.cos(a), half + radius * np.sin(a)) for a in rise]
        rings = top + [(r, -z) for r, z in reversed(top)]
    circle = np.stack((np.cos(angle), np.sin(angle)), -1)
    nets = [np.concatenate((r * circle, np.full((SIDES + 1, 1), z)), 1) for r, z in rings]
    return [np.stack((a[i], b[i], b[i + 1], a[i + 1])) for a, b in pairwise(nets) for i in range(SIDES)]


def _shape(model: cs.Model, index: int) -> Any:
    """The shape of the scene that has this index; every body here has one."""
    return model.shapes[model.shape_body[index]][0]


def _rotate(quat: np.ndarray, x: np.ndarray) -> np.ndarray:
    t = 2 * np.cross(quat[1:], x)
    return x + quat[0] * t + np.cross(quat[1:], t)


# ---- panels -----------------------------------------------------------------------------------------------------------------
def _scene(ax: Any, task: Task, traj: cs.Trajectory) -> None:
    """Hills, bodies, the stone's way; bodies are drawn from the back to the front, after the ground."""
    from pile import SIZE, hills

    model, height = task.sim.model, hills().numpy()
    side = np.linspace(-SIZE, SIZE, len(height))
    part = np.abs(side) < SHOWN
    side, height = side[part], height[part][:, part]
    x, y = np.meshgrid(side, side, indexing="ij")
    shade = LIGHT.shade(height, plt.get_cmap("gist_earth"), vmin=-0.5, vmax=0.45, vert_exag=4, blend_mode="soft")
    ax.plot_surface(x, y, height, facecolors=0.55 + 0.45 * shade, rstride=1, cstride=1, lw=0.2, edgecolor="#ffffff60", zorder=0)
    k = cs.kinematics(model, traj.q[-1])
    ax.view_init(elev=38, azim=-62)
    towards = np.array([np.cos(np.radians(-62)), np.sin(np.radians(-62)), 0.6])
    found = []
    for i in range(len(model.shape_names)):
        if model.shape_body[i] < 0:
            continue
        body = model.shape_body[i]
        place, quat = k.position[body].numpy(), k.quaternion[body].numpy()
        colour = ORANGE if model.body_names[body] == "stone" else COLOURS[type(_shape(model, i)).__name__]
        found.append((float(place @ towards), [place + _rotate(quat, p) for p in polygons(model, i)], colour))
    for order, (_, faces, colour) in enumerate(sorted(found, key=lambda one: one[0])):
        ax.add_collection3d(
            Poly3DCollection(faces, facecolors=colour, edgecolors=INK, lw=0.25, shade=True, lightsource=LIGHT, zorder=2 + order)
        )
    way = traj.q[:, -7:-4].numpy()
    ax.plot(*way.T, color=ORANGE, lw=1.6, zorder=50)
    mark = task.mark.numpy()
    at = np.abs(side[:, None] - mark).argmin(0)
    ax.plot(*mark[:, None], [height[at[0], at[1]] + 0.05], "x", color=INK, ms=8, mew=2, zorder=60)
    ax.set(xlim=(-SHOWN, SHOWN), ylim=(-SHOWN, SHOWN), zlim=(-0.2, 0.7))
    ax.set_box_aspect((2 * SHOWN, 2 * SHOWN, 0.9), zoom=1.35)
    ax.set_axis_off()


def _throws(ax: Any, task: Task, search: Search, best: int) -> None:
    """The stone's ways from above in the search that arrived, light to dark."""
    from pile import SIZE, hills

    side = np.linspace(-SIZE, SIZE, len(hills()))
    ax.contour(side, side, hills().numpy().T, levels=12, colors=GREY, linewidths=0.6)
    first = max(i for i in search.starts if i <= best)
    shown = sorted({int(i) for i in np.linspace(first, best, 6).round()})
    for i, colour in zip(shown, [*plt.get_cmap("Blues")(np.linspace(0.3, 0.95, max(len(shown) - 1, 0))), ORANGE], strict=True):
        with torch.no_grad():
            way = task.throw(search.throws[i]).q[:, -7:-5].numpy()
        ax.plot(*way.T, color=colour, lw=1.4)
        ax.plot(*way[-1], "o", color=colour, ms=4)
        ax.annotate(str(i - first), way[-1], textcoords="offset points", xytext=(4, 4), fontsize=8, color=colour)
    ax.plot(*task.mark[:, None], "x", color=INK, ms=8, mew=2)
    ax.set(aspect="equal", xlim=(-1.0, 1.2), ylim=(-0.9, 0.9), xlabel="x, m", ylabel="y, m")
    ax.set_title("Its ways from above, by iteration")


def _progress(ax: Any, search: Search) -> None:
    """Distance from the mark in the end, of all iterations of all searches."""
    ends = [*search.starts[1:], len(search.errors)]
    for begin, end in zip(search.starts, ends, strict=True):
        away = [float(e[0]) for e in search.errors[begin:end]]
        last = end == len(search.errors)
        ax.semilogy(away, color=ORANGE if last else GREY, lw=1.6 if last else 1.0, zorder=2 if last else 1)
    ax.set(title="Distance from the mark in the end, m", xlabel="iteration of each search", ylim=(None, 2.0))
    ax.grid(alpha=0.25)
