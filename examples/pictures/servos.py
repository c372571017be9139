"""The pictures of examples/servo_robots.py: what the arm's servos do, and the walk of both quadrupeds."""

from __future__ import annotations

from math import degrees
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from servo_robots import Comparison, Motion

INK, GREY, BLUE, ORANGE = "#22313f", "#b8c0c8", "#1b6ca8", "#e07a3f"
COLOURS = ("#1b6ca8", "#e07a3f", "#3a9d6e", "#a4508b")
STYLE = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK, "text.color": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlelocation": "left",
}  # fmt: skip
LIMITS = 45.0, 30.0  # degrees/s and N m, of the arm's servos
FRAMES = 5  # of the walk


def draw_arm(model: cs.Model, motion: Motion, folder: Path) -> Path:
    """Write servo_arm.png into `folder` and return its path."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10.5, 6.6), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
        _reach(left.add_subplot(projection="3d"), model, motion)
        axes = right.subplots(3, 1, sharex=True)
        curves = (motion.angle.rad2deg(), motion.speed.rad2deg(), motion.torque)
        titles = (
            "Angle, degrees",
            "Speed, degrees/s: the programmed one until shortly before the goal",
            "Torque, N m: never above 30",
        )
        for ax, curve, title, limit in zip(axes, curves, titles, (None, *LIMITS), strict=True):
            for i, name in enumerate(model.motor_names):
                ax.plot(motion.time, curve[:, i], color=COLOURS[i], lw=1.6, label=name)
            for bound in () if limit is None else (-limit, limit):
                ax.axhline(bound, color=GREY, ls="--", lw=1.0, zorder=0)
            ax.set_title(title)
        axes[0].legend(frameon=False, ncols=2, loc="center right", fontsize=8)
        axes[-1].set(xlabel="time, s", xlim=(0, float(motion.time[-1])))
        return _save(figure, folder / "servo_arm.png")


def draw_quadruped(maximal: cs.Model, far: Comparison, short: Comparison, folder: Path) -> Path:
    """Write servo_quadruped.png into `folder` and return its path; `short` was made in steps of 1 ms."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10.5, 5.6), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=(1, 1.9))
        dt = 0.01
        _walk(above.subplots(), maximal, far.maximal, dt)
        axes = below.subplots(1, 3)
        time = dt * np.arange(len(far.tree.q))
        for traj, name, colour, dashes in ((far.tree, "tree", BLUE, "-"), (far.maximal, "maximal", ORANGE, "--")):
            axes[0].plot(time, traj.q[:, 0], color=colour, ls=dashes, lw=1.6, label=name)
            axes[1].plot(time, 1000 * traj.q[:, 2], color=colour, ls=dashes, lw=1.2)
        axes[0].set(title="The spine's way, m", xlabel="time, s; steps of 10 ms")
        axes[0].legend(frameon=False)
        axes[1].set(title="Its height, mm (first 2 s)", xlabel="time, s", xlim=(0, 2))
        time = 1e-3 * np.arange(len(short.distance))
        for apart, name, colour in ((short.distance, "m", BLUE), (short.angle, "rad", ORANGE)):
            axes[2].semilogy(time[1:], apart[1:].clamp(min=1e-12), color=colour, lw=1.4, label=name)
        axes[2].set(title="Farthest body: tree against maximal", xlabel="time, s; steps of 1 ms")
        axes[2].legend(frameon=False, loc="lower right")
        return _save(figure, folder / "servo_quadruped.png")


def _reach(ax: Any, model: cs.Model, motion: Motion) -> None:
    """A time-lapse of the arm, light to dark, and the way of its tip."""
    q = torch.cat((torch.zeros(1, 4, dtype=torch.float64), motion.angle))
    k = cs.kinematics(model, q)
    at = [model.body("base"), model.body("elbow")]
    points = torch.cat((k.position[:, at], k.site_position), 1).numpy()
    frames = range(0, len(points), 15)
    for t, shade in zip(frames, plt.get_cmap("Blues")(np.linspace(0.2, 0.95, len(frames)))):
        ax.plot(*points[t].T, "-o", color=shade, lw=1.6, ms=3)
    ax.plot(*points[:, -1].T, color=ORANGE, lw=1.8)
    ax.plot(*points[-1, -1:].T, "*", color=ORANGE, ms=12)
    turned = [round(degrees(x)) for x in motion.angle[-1].tolist()]
    ax.set_title(f"The arm every 0.15 s, until its joints\nhave turned by {', '.join(map(str, turned))} degrees")
    ax.set(xlabel="x, m", ylabel="y, m", xlim=(-0.2, 0.8), ylim=(-0.2, 0.8), zlim=(0, 1))
    ax.set_box_aspect((1, 1, 1))
    ax.view_init(elev=18, azim=-55)


def _walk(ax: Any, model: cs.Model, traj: cs.Trajectory, dt: float) -> None:
    """The robot from the side at a few instants, light to dark; legs of the far side are thin."""
    k = cs.kinematics(model, traj.q)
    frames = np.linspace(0, len(traj.q) - 1, FRAMES).round().astype(int)
    for t, shade in zip(frames, plt.get_cmap("Blues")(np.linspace(0.35, 0.95, FRAMES))):
        spine = model.body("spine")
        half = torch.tensor([[x * 0.25, 0.0, z * 0.06] for x, z in ((1, 1), (-1, 1), (-1, -1), (1, -1), (1, 1))]).double()
        box = k.position[t, spine] + _rotate(k.quaternion[t, spine], half)
        ax.plot(box[:, 0], box[:, 2], color=shade, lw=1.4)
        for side, width in (("right", 0.9), ("left", 2.2)):
            for end in ("front", "hind"):
                at = [model.body(f"{end} {side} {part}") for part in ("upper", "lower", "foot")]
                x, z = k.position[t, at, 0], k.position[t, at, 2]
                ax.plot(x, z, color=shade, lw=width, solid_capstyle="round")
                ax.add_patch(plt.Circle((float(x[-1]), float(z[-1])), 0.02, color=shade, lw=0))
    ax.axhline(0, color=INK, lw=1.2)
    seconds = dt * (len(traj.q) - 1) / (FRAMES - 1)
    ax.set_title(f"The maximal robot every {seconds:g} s; it walks to the right")
    ax.set(aspect="equal", ylim=(-0.01, 0.26), xlabel="x, m", ylabel="z, m")


def _rotate(quat: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    w, u = quat[0], quat[1:].expand_as(x)
    t = 2 * torch.linalg.cross(u, x)
    return x + w * t + torch.linalg.cross(u, t)


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
