"""The picture of examples/identify_pendulum.py: the motion, the search, and what the found pendulum predicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

if TYPE_CHECKING:
    from identify_pendulum import Fit, Result

INK, GREY = "#22313f", "#b8c0c8"
COLOURS = ("#1b6ca8", "#e07a3f", "#3a9d6e", "#a4508b")
SHOWN = 2.5  # s of the motion in the first panel


def draw(fit: Fit, result: Result, folder: Path) -> Path:
    """Write identify_pendulum.png into `folder` and return its path."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "text.color": INK}
    with plt.rc_context({**style, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left"}):
        figure, axes = plt.subplots(2, 2, figsize=(10.5, 7.2), width_ratios=(1, 1.35), layout="constrained")
        _motion(axes[0, 0], fit)
        _prediction(axes[0, 1], fit)
        _loss(axes[1, 0], result)
        _convergence(axes[1, 1], result)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "identify_pendulum.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def _joints(fit: Fit, q: torch.Tensor) -> np.ndarray:
    """x and z of all joints and the tip, [T, 5, 2]."""
    k = cs.kinematics(fit.model, q)
    return torch.cat((k.position, k.site_position), -2)[..., [0, 2]].numpy()


def _motion(ax: Any, fit: Fit) -> None:
    """A time-lapse of the recording, light to dark."""
    points = _joints(fit, fit.recording.q[: round(SHOWN / fit.sim.dt)])
    frames = points[::8]
    shade = plt.get_cmap("Blues")(np.linspace(0.15, 0.95, len(frames)))
    ax.add_collection(LineCollection(list(frames), colors=shade, linewidths=1.1, alpha=0.75, capstyle="round"))
    tip = points[:, -1]
    segments = np.stack((tip[:-1], tip[1:]), 1)
    ax.add_collection(LineCollection(list(segments), array=np.arange(len(segments)), cmap="Oranges", linewidths=1.8))
    ax.plot(*points[-1].T, "-o", color=INK, lw=2.4, ms=4, mfc="white")
    ax.plot(0, 0, "s", color=INK, ms=7)
    ax.set(title=f"The recorded motion, first {SHOWN} s", xlabel="x, m", ylabel="z, m")
    ax.set_aspect("equal", adjustable="datalim")
    ax.autoscale_view()
    ax.margins(0.05)


def _prediction(ax: Any, fit: Fit) -> None:
    """The last joint's angle over the whole recording, predicted from its first state alone."""
    recording = fit.recording
    time = torch.arange(len(recording.q)) * fit.sim.dt
    start = cs.State(recording.q[0], recording.v[0])
    with torch.no_grad():
        before, after = (fit.sim.rollout(start, recording.torque, params) for params in (None, fit.params()))
    ax.plot(time, before.q.sum(-1), color=GREY, lw=1.6, label="before")
    ax.plot(time, after.q.sum(-1), color=COLOURS[1], lw=2.2, label="after")
    ax.plot(time[::12], recording.q.sum(-1)[::12], "o", color=INK, ms=2.4, mew=0, label="recorded")
    ax.set(
        title="Predicted from the first state alone",
        xlabel="time, s",
        ylabel="tilt of the last link, rad",
        xlim=(0, float(time[-1])),
    )
    ax.legend(frameon=False, ncols=3, loc="upper left")


def _loss(ax: Any, result: Result) -> None:
    ax.semilogy(result.loss, color=COLOURS[0], lw=1.5)
    ax.axhline(1.0, color=GREY, ls="--", lw=1, zorder=0)
    ax.text(len(result.loss), 0.93, "noise of the sensors", color="#7d8790", va="top", ha="right", fontsize=8)
    for at in result.stages[1:]:
        ax.axvline(at, color=GREY, lw=0.8, zorder=0)
    ax.set(
        title="Misfit; longer windows at each grey line",
        xlabel="iteration",
        ylabel="mean square, noise = 1",
        xlim=(0, len(result.loss)),
    )


def _convergence(ax: Any, result: Result) -> None:
    """Every unknown relative to its true value."""
    for i, curve in enumerate(result.over_true().T):
        name, dashes = (f"mass {i + 1}", "-") if i < 4 else (f"damping {i - 3}", (0, (3, 1.5)))
        ax.plot(curve, color=COLOURS[i % 4], lw=1.6, ls=dashes, label=name)
    ax.axhline(1.0, color=INK, lw=0.8, zorder=0)
    for at in result.stages[1:]:
        ax.axvline(at, color=GREY, lw=0.8, zorder=0)
    ax.set(title="Found over true", xlabel="iteration", yscale="log", xlim=(0, len(result.loss)))
    ticks = (0.25, 0.5, 1, 2, 4)
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.legend(frameon=False, ncols=2, fontsize=8)
