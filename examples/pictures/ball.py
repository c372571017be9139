"""The picture of examples/throw_ball.py: throws that descent tried, both searches, and the teeth of the loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from throw_ball import Search, Task

INK, GREY, BLUE, ORANGE = "#22313f", "#b8c0c8", "#1b6ca8", "#e07a3f"
RADIUS, MARK = 0.5, 10.0  # m
HALFWAY = 3.0  # loss of the third throw that is shown
EVERY = 0.5  # s between two balls of a time-lapse


def draw(task: Task, results: dict[str, list[Search]], folder: Path) -> Path:
    """Write throw_ball.png into `folder` and return its path."""
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "text.color": INK}
    found = min(results["descent"], key=lambda s: (not s.done, len(s.loss)))
    last = len(found.throws) - 1
    halfway = next((i for i, loss in enumerate(found.loss) if loss < HALFWAY), last)
    shown = (0, halfway // 3, halfway, last)
    with plt.rc_context({**style, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left"}):
        figure = plt.figure(figsize=(10.5, 9.2), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(1.78, 1))
        strips = above.subplots(len(shown), 1, sharex=True)
        for ax, i in zip(strips, shown, strict=True):
            _time_lapse(ax, task, found.throws[i], i)
        above.suptitle(
            f"The quickest of {len(results['descent'])} descents: the ball every {EVERY} s, and in orange after 5 s", fontsize=11
        )
        axes = below.subplots(1, 3)
        _progress(axes[0], results, clock=False)
        _progress(axes[1], results, clock=True)
        _teeth(axes[2], task)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "throw_ball.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
    return path


def _time_lapse(ax: Any, task: Task, x: torch.Tensor, iteration: int) -> None:
    """A throw from the side, light to dark, with a spoke that shows the turn."""
    with torch.no_grad():
        traj = task.throw(x)
    k = cs.kinematics(task.sim.model, traj.q)
    centre, rim = (p[:, 0, [0, 2]].numpy() for p in (k.position, k.site_position))
    at = list(range(0, len(centre), round(EVERY / task.sim.dt)))
    colours = [*plt.get_cmap("Blues")(np.linspace(0.25, 0.9, len(at) - 1)), ORANGE]
    ax.plot(*centre.T, color=GREY, lw=1.0, zorder=0)
    for t, colour in zip(at, colours, strict=True):
        ax.add_patch(plt.Circle(centre[t], RADIUS, fill=False, color=colour, lw=1.5))
        ax.plot(*zip(centre[t], rim[t], strict=True), color=colour, lw=1.5)
    v = x * task.unit
    thrown = f"{v[0]:.1f} m/s forwards, {v[2]:.1f} m/s up, {abs(v[4]):.0f} rad/s {'back' if v[4] < 0 else 'top'}spin"
    ends = f"ends at {centre[-1, 0]:.2f} m with {traj.v[-1, :3].norm():.2f} m/s"
    ax.set_title(f"iteration {iteration}: {thrown}; {ends}", fontsize=9, pad=3)
    ax.axhline(0, color=INK, lw=1.2)
    ax.plot([MARK], [0], marker=(3, 0, 0), color=INK, ms=8, clip_on=False, zorder=5)
    ax.set(xlim=(-1, MARK + 1.5), ylim=(0, 1.45), aspect="equal", yticks=(0, 1), ylabel="z, m")
    ax.tick_params(axis="x", length=0)
    ax.spines["bottom"].set_visible(False)
    if ax.get_subplotspec().is_last_row():
        ax.set_xlabel("x, m")


def _progress(ax: Any, results: dict[str, list[Search]], *, clock: bool) -> None:
    """The lowest loss so far, of every search."""
    colours = {"descent": BLUE, "CMA-ES": ORANGE}
    for name, colour in colours.items():
        for k, search in enumerate(results[name]):
            lowest = np.minimum.accumulate(search.loss)
            at = search.clock if clock else search.per_iteration * np.arange(1, len(lowest) + 1)
            ax.plot(at, lowest, color=colour, lw=0.9, alpha=0.55, label=None if k else name)
            if search.done:
                ax.plot(at[-1], lowest[-1], "o", color=colour, ms=3, mew=0)
    ax.set(xscale="log", yscale="log", ylim=(1e-5, 1e3))
    if clock:
        ax.set(title="... and by time, one core", xlabel="s; a generation of CMA-ES is one rollout", xlim=(1e-3, None))
        return
    ax.set(title="Lowest loss by throws simulated", xlabel="throws simulated", ylabel="squared error, SI units")
    for count, colour in ((88, BLUE), (2422, ORANGE)):
        ax.axvline(count, color=colour, ls=":", lw=1.2)
    ax.text(88, 1.2e-5, "paper ", color=BLUE, ha="right", fontsize=8)
    ax.text(2422, 1.2e-5, "paper ", color=ORANGE, ha="right", fontsize=8)
    legend = ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0.1))
    for line in legend.get_lines():
        line.set(alpha=1, linewidth=2)


def _teeth(ax: Any, task: Task) -> None:
    """The loss along the vertical speed, and three of its gradients."""
    x = torch.tensor((3.0, 0.0, 3.0, 0.0, 0.0, 0.0), dtype=torch.float64).repeat(801, 1)
    x[:, 2] = torch.linspace(2.6, 3.4, len(x))
    x.requires_grad_()
    loss = task.errors(x).square().sum((-1, -2))
    (slope,) = torch.autograd.grad(loss.sum(), x)
    up, loss, slope = x[:, 2].detach().numpy(), loss.detach().numpy(), slope[:, 2].numpy()
    ax.plot(up, loss, color=GREY, lw=1.0)
    trend = np.polynomial.Polynomial.fit(up, loss, 1)
    ax.plot(up, trend(up), color=INK, lw=1.2, ls="--", label="trend")
    for k in (140, 400, 660):
        reach = np.array([-0.06, 0.06])
        label = None if k != 400 else "gradient of the step"
        ax.plot(up[k] + reach, loss[k] + slope[k] * reach, color=BLUE, lw=1.6, label=label)
        ax.plot(up[k], loss[k], "o", color=BLUE, ms=4)
    ax.set(title="The loss has teeth", xlabel="first speed upwards, m/s", ylabel="squared error, SI units")
    ax.margins(y=0.15)
    ax.legend(frameon=False, loc="upper left", fontsize=8)
