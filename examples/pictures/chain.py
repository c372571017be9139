"""The picture of examples/chain.py: what happens, how the mass and the error go, the loss over the mass, and run times."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch

from costate import render

matplotlib.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from chain import Result, Search, Task

INK, GREY, BLUE, ORANGE, GREEN = "#22313f", "#a9b3bc", "#1b6ca8", "#e07a3f", "#3a9d6e"
INSTANTS = (0.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)  # s
VIEW = ((-28.0, 28.0), (-76.0, 2.0))  # m
TRUE = 7.0  # kg
FLOOR = 1e-22  # px^2: rounding; less is drawn there
PALE, DIM = "#dfe4e8", "#7d8790"
ZOOM = (6.7, 7.3)  # kg


def draw(task: Task, result: Result, folder: Path) -> Path:
    """Write chain_mass.png into `folder` and return its path."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "text.color": INK}
    with plt.rc_context({**style, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left"}):
        figure = plt.figure(figsize=(10.5, 9.8), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(1, 2.6))
        _strip(above, task)
        axes = below.subplots(2, 2)
        _masses(axes[0, 0], result)
        _losses(axes[0, 1], result)
        _landscape(axes[1, 0], result)
        _times(axes[1, 1], result)
        path = folder / "chain_mass.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def _strip(figure: Any, task: Task) -> None:
    """The recorded motion, and behind it that of the first guess."""
    with torch.no_grad():
        true, guess = (task.roll(task.alike(torch.tensor(m, dtype=torch.float64))) for m in (TRUE, 1.0))
    model = task.sim.model
    colours, pale = dict.fromkeys(model.body_names, BLUE) | {"ball": ORANGE}, dict.fromkeys(model.body_names, PALE)
    for ax, time in zip(figure.subplots(1, len(INSTANTS)), INSTANTS, strict=True):
        at = round(time / task.sim.dt)
        render.draw(model, guess[at], ax=ax, limits=VIEW, colors=pale, joints=False, axis=False)
        way = {"trail": true.q[: at + 1], "trail_of": ["ball"]}
        render.draw(model, true[at], ax=ax, limits=VIEW, colors=colours, joints=False, axis=False, **way)
        ax.set_title(f"{time:g} s", loc="center", fontsize=9)
    words = "A ball hits a chain of 7 kg, and the chain hits it again; grey: the same with the first guess, 1 kg"
    figure.suptitle(words, x=0.01, ha="left", fontsize=10)


def _curves(ax: Any, result: Result, values: str) -> None:
    """Mass or loss of all searches: the start of 1 kg strong, all others thin."""
    looks = {
        "fixed": (GREY, "as printed, fixed steps"),
        "toi": (BLUE, "as printed, split at impacts"),
        "leap": (ORANGE, "-2 L / L' in log mass"),
    }
    for name, (colour, words) in looks.items():
        search: Search = result.searches[name]
        curves = np.maximum(np.array(getattr(search, values)), FLOOR)
        ax.plot(curves[:, 1:], color=colour, lw=0.6, alpha=0.55, zorder=2)
        ax.plot(curves[:, 0], "-o", color=colour, lw=2.0, ms=3, label=words, zorder=3)
    ax.set(xlabel="updates", xlim=(0, len(result.searches["toi"].mass) - 1))


def _masses(ax: Any, result: Result) -> None:
    _curves(ax, result, "mass")
    ax.axhline(TRUE, color=INK, lw=0.9, ls="--", zorder=1)
    others = len(result.searches["toi"].mass[0]) - 1
    ax.set(title=f"Mass from a guess of 1 kg; thin: from {others} others", ylabel="mass of the chain, kg", ylim=(0, 11))
    ax.legend(frameon=False, loc="lower right")


def _losses(ax: Any, result: Result) -> None:
    _curves(ax, result, "loss")
    ax.set(title="Mean squared error of positions", ylabel="px$^2$", yscale="log", ylim=(FLOOR / 5, 1e5))
    ax.set_yticks([10.0**k for k in range(-20, 5, 4)])
    ax.minorticks_off()
    words = "The thick grey one ends on 7\nexactly, by chance: six steps\nof 1 kg, the clipped gradient's."
    ax.text(18.5, 2e-12, words, color=DIM, fontsize=8)


def _landscape(ax: Any, result: Result) -> None:
    """The loss over the mass, and the teeth of fixed steps near its end."""
    shape = {name: np.array(x) for name, x in result.landscape.items()}
    for name, colour in (("fixed", GREY), ("toi", BLUE)):
        ax.plot(shape["mass"], shape[name], color=colour, lw=1.6)
    ax.axvline(TRUE, color=INK, lw=0.9, ls="--", zorder=1)
    ax.set(title="The error over the mass", xlabel="mass of the chain, kg", ylabel="px$^2$", yscale="log", ylim=(1e-2, 3e4))
    ax.text(2.2, 900, "one hit", color=DIM, fontsize=8, ha="center")
    ax.text(5.1, 2500, "two hits", color=DIM, fontsize=8, ha="center")
    inset = ax.inset_axes((0.61, 0.09, 0.38, 0.44))
    for name, colour in (("fixed", GREY), ("toi", BLUE)):
        inset.plot(shape["near"], shape[f"{name} near"], color=colour, lw=1.2)
    inset.set(xlim=ZOOM, ylim=(0, 8), yticks=(), xticks=ZOOM)
    inset.set_title("teeth of fixed steps", fontsize=8, loc="center")
    inset.spines[:].set_visible(True)


def _times(ax: Any, result: Result) -> None:
    looks = {"adjoint": (BLUE, "-o"), "differences, one by one": (ORANGE, "-o"), "differences, one batch": (GREEN, "-o")}
    looks |= {"8 at once: adjoint": (BLUE, "--s"), "8 at once: differences": (GREEN, "--s")}
    for name, (colour, line) in looks.items():
        links, seconds = zip(*((times.links, mean(times.seconds[name])) for times in result.times), strict=True)
        ax.plot(links, seconds, line, color=colour, lw=1.8, ms=4, label=name, mfc="white" if "s" in line else colour)
    ax.set(title="30 updates, a mass per link", xlabel="links", ylabel="processor time of one descent, s", ylim=(0, None))
    ax.set_xticks([times.links for times in result.times])
    ax.legend(frameon=False)
