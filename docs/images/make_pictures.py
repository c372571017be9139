"""Draw the pictures of the documentation:  python docs/images/make_pictures.py

worlds.png: a double pendulum let go from every pair of angles on a grid. Each pixel is a world. The left map shows where the
lower link points in the end; the right map how much that depends on the start: every world's gradient, from one backward pass.
chain_mass.png, identify_pendulum.png, throw_ball.png, servo_arm.png, servo_quadruped.png, pile.png: what examples draw.
hits.png: five balls in a row that hit each other, and the costate of the last one's place on its way back (guide/contact.md).
chain.png: a ball that flies against a chain (guide/drawing.md).
linkage.png: a four-bar, the curve of a point of its coupler, and how far its loop is open (guide/constraints.md).
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib
import numpy as np
import torch

import costate as cs
import costate.render

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

HERE = Path(__file__).parent
GRID, STEPS, DT = 180, 400, 0.005
INK = "#22313f"
CHAIN_TIMES = (0.0, 0.3, 0.45, 0.6, 0.9)  # s


def double_pendulum() -> cs.Model:
    """Two rods of half a metre, one below the other."""
    scene, parent = cs.Scene(), None
    for name in ("upper", "lower"):
        rod = cs.Capsule(0.02, 0.25, mass=1.0, pos=(0.0, 0.0, -0.25))
        place = (0.0, 0.0, 0.0 if parent is None else -0.5)
        hinge = cs.Revolute(axis=(0.0, -1.0, 0.0), damping=0.01)
        parent = scene.add_body(name, parent=parent, joint=hinge, pos=place, shapes=rod)
    scene.add_site("tip", body="lower", pos=(0.0, 0.0, -0.5))
    return scene.build()


def all_worlds(sim: cs.Simulator) -> tuple[np.ndarray, np.ndarray]:
    """[GRID, GRID]: the lower link's tilt in the end, and the length of its gradient by the two first angles."""
    angles = torch.linspace(-torch.pi, torch.pi, GRID, dtype=torch.float64)
    first, second = torch.meshgrid(angles, angles, indexing="ij")
    q = torch.stack((first, second - first), -1).requires_grad_()
    began = perf_counter()
    end = sim.rollout(cs.State(q, torch.zeros_like(q)), steps=STEPS)[-1]
    tilt = end.q.sum(-1)
    (gradient,) = torch.autograd.grad(tilt.sum(), q)
    print(f"{GRID**2:,} worlds, {STEPS} steps, with gradient: {perf_counter() - began:.2f} s")
    return tilt.detach().numpy(), gradient.norm(dim=-1).numpy()


def time_lapse(ax: plt.Axes, sim: cs.Simulator) -> None:
    """One of the worlds, light to dark."""
    start = cs.State(torch.tensor([1.9, 0.7], dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    k = cs.kinematics(sim.model, sim.rollout(start, steps=300).q)
    points = torch.cat((k.position, k.site_position), -2)[..., [0, 2]].numpy()
    frames, tip = points[::5], points[:, -1]
    shade = plt.get_cmap("Blues")(np.linspace(0.12, 0.9, len(frames)))
    ax.add_collection(LineCollection(list(frames), colors=shade, linewidths=1.3, capstyle="round"))
    trail = np.stack((tip[:-1], tip[1:]), 1)
    ax.add_collection(LineCollection(list(trail), array=np.arange(len(trail)), cmap="Oranges", linewidths=2.2, capstyle="round"))
    ax.plot(*points[-1].T, "-o", color=INK, lw=3, ms=5, mfc="white", mew=1.6)
    ax.plot(0, 0, "s", color=INK, ms=8)
    ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal", xticks=(), yticks=())
    ax.set_title("one world")
    ax.spines[:].set_visible(False)


def worlds_picture() -> None:
    """The three panels."""
    sim = cs.Simulator(double_pendulum(), dt=DT)
    tilt, slope = all_worlds(sim)
    with plt.rc_context({"font.size": 10, "text.color": INK, "axes.edgecolor": INK, "axes.titlesize": 11}):
        figure, axes = plt.subplots(1, 3, figsize=(10.8, 3.9), layout="constrained")
        time_lapse(axes[0], sim)
        turn = np.angle(np.exp(1j * tilt))
        maps = (
            (turn, "twilight_shifted", f"{GRID**2:,} worlds: where they end"),
            (np.log10(slope), "inferno", "and the gradient of each"),
        )
        for ax, (values, colours, title) in zip(axes[1:], maps, strict=True):
            low, high = np.percentile(values, (0.5, 99.5))
            ax.imshow(values.T, origin="lower", cmap=colours, vmin=low, vmax=high, interpolation="bilinear")
            ax.set(xticks=(), yticks=(), title=title)
            ax.set_xlabel("first angle of the upper link")
        axes[1].set_ylabel("first angle of the lower link")
        figure.savefig(HERE / "worlds.png", dpi=110, pil_kwargs={"optimize": True})
        plt.close(figure)
    shrink(HERE / "worlds.png")


def shrink(path: Path) -> None:
    """Fewer colours make a much smaller file."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(colors=256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


def example_picture(name: str, *pictures: str) -> None:
    """An example's own pictures; one is called like the example."""
    example = HERE.parents[1] / f"examples/{name}.py"
    with tempfile.TemporaryDirectory() as folder:  # some write numbers too
        subprocess.run([sys.executable, example, "--out", folder], check=True, stdout=subprocess.DEVNULL)
        for picture in pictures or (name,):
            shutil.copy(Path(folder) / f"{picture}.png", HERE)
            shrink(HERE / f"{picture}.png")


def row_of_balls() -> tuple[cs.Simulator, cs.Trajectory]:
    """The first of five balls hits the second a tenth of a millimetre off its middle, that one the third, ..."""
    scene = cs.Scene()
    scene.add_ground(friction=0.2)
    for i in range(5):
        ball = cs.Sphere(0.03, mass=0.17, friction=0.2, restitution=0.9)
        scene.add_body(f"ball{i}", joint=cs.Free(), pos=(0.2 * i, 1e-4 if i == 0 else 0.0, 0.03), shapes=ball)
    sim = cs.Simulator(scene.build(), dt=0.002)
    start = sim.initial_state()
    start.v[0] = 3.0
    return sim, sim.rollout(start, steps=200)


def hits_picture() -> None:
    """Where the balls are over time, and below it how large the gradient is that has come back so far."""
    sim, traj = row_of_balls()
    report = sim.gradient_report(traj, loss=lambda traj: traj.q[-1, -6])
    time = np.arange(len(traj) + 1) * sim.dt
    place = traj.q.reshape(len(time), -1, 7)[..., 0].numpy()
    norm = np.concatenate((report.costate_norm.numpy(), report.end_norm.numpy()[None]))
    hits = time[np.diff(place, axis=1).argmin(0)]  # when neighbours are closest
    with plt.rc_context({"font.size": 10, "text.color": INK, "axes.edgecolor": INK, "axes.titlesize": 11}):
        figure, (top, low) = plt.subplots(2, 1, figsize=(8.4, 5.0), layout="constrained", sharex=True)
        for ball, shade in zip(place.T, plt.get_cmap("viridis")(np.linspace(0.05, 0.85, place.shape[1])), strict=True):
            top.plot(time, ball, color=shade, lw=2.2)
        low.semilogy(time, norm, color="#c0392b", lw=2.0)
        top.set(ylabel="x of the balls [m]", title="a ball hits the next: every hit multiplies the gradient")
        low.set(ylabel="norm of the costate", xlabel="time [s]; the gradient comes from the right")
        for ax in (top, low):
            ax.vlines(hits, 0, 1, color=INK, lw=0.8, ls=":", transform=ax.get_xaxis_transform())
            ax.grid(alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(HERE / "hits.png", dpi=110, pil_kwargs={"optimize": True})
        plt.close(figure)
    shrink(HERE / "hits.png")


def four_bar() -> cs.Model:
    """That of the guide: a crank of 0.3 m, a coupler of 0.9 m and a rocker of 0.6 m, 1 m apart."""

    def link(length: float) -> cs.Capsule:
        return cs.Capsule(0.02, length / 2, mass=length, pos=(length / 2, 0, 0), quat=(1, 0, 1, 0))

    scene, axis = cs.Scene(collisions=False), (0, -1, 0)
    scene.add_body("crank", joint=cs.Revolute(axis, initial=1.0), shapes=link(0.3))
    scene.add_body("coupler", parent="crank", pos=(0.3, 0, 0), joint=cs.Revolute(axis, initial=-0.6), shapes=link(0.9))
    scene.add_body("rocker", pos=(1, 0, 0), joint=cs.Revolute(axis, initial=1.6), shapes=link(0.6))
    scene.add_lock("coupler", "rocker", x=True, z=True, pos=(0.9, 0, 0), pos_b=(0.6, 0, 0))
    scene.add_servo("crank", gain=20.0, max_force=10.0, max_speed=2 * math.pi)
    scene.add_site("pen", body="coupler", pos=(0.45, 0, 0.3))
    return scene.build()


def turn_crank(model: cs.Model, project: int, seconds: float = 10.0) -> cs.Trajectory:
    """One turn per second."""
    sim = cs.Simulator(model, dt=0.01, project=project)
    turning = 1 + 2 * math.pi * sim.dt * torch.arange(1, round(seconds / sim.dt) + 1, dtype=torch.float64)
    start = cs.State(cs.project(model, sim.initial_state().q), torch.zeros(3, dtype=torch.float64))
    return sim.rollout(start, turning.unsqueeze(-1))


def draw_linkage(ax: plt.Axes, model: cs.Model) -> None:
    """One turn, light to dark, and the pen's curve."""
    k = cs.kinematics(model, turn_crank(model, 3, 1.1).q)
    place, pen = k.position[..., [0, 2]].numpy(), k.site_position[:, 0, [0, 2]].numpy()
    angle = turn_crank(model, 3, 1.1).q[:, 2].numpy()
    end = np.stack((1 + 0.6 * np.cos(angle), 0.6 * np.sin(angle)), -1)
    bars = np.stack((place[:, 0], place[:, 1], end, place[:, 2]), 1)
    frames = bars[::4]
    shade = plt.get_cmap("Blues")(np.linspace(0.12, 0.7, len(frames)))
    ax.add_collection(LineCollection(list(frames), colors=shade, linewidths=1.3, capstyle="round"))
    ax.plot(*pen.T, color="#e67e22", lw=2.4)
    ax.fill(*np.stack((place[0, 1], pen[0], end[0])).T, color=INK, alpha=0.15, lw=0)
    ax.plot(*bars[0].T, "-o", color=INK, lw=3, ms=6, mfc="white", mew=1.6)
    ax.plot(*pen[0], "o", color="#e67e22", ms=7)
    ax.set(xlim=(-0.42, 1.5), ylim=(-0.42, 0.95), aspect="equal", xticks=(), yticks=(), title="a servo turns the crank")
    ax.spines[:].set_visible(False)


def linkage_picture() -> None:
    """The four-bar, and how far its loop is open with different numbers of projections."""
    model = four_bar()
    with plt.rc_context({"font.size": 10, "text.color": INK, "axes.edgecolor": INK, "axes.titlesize": 11}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.9), layout="constrained")
        draw_linkage(left, model)
        for project, shade in zip(range(4), plt.get_cmap("viridis")(np.linspace(0.05, 0.85, 4)), strict=True):
            traj = turn_crank(model, project)
            error = cs.constraint_error(model, traj.q).norm(dim=-1).numpy()
            most = error[1:].reshape(-1, 10).max(1)  # per tenth of a second
            right.semilogy(0.1 * np.arange(1, len(most) + 1), most, color=shade, lw=2.0, label=f"project={project}")
        right.set(xlabel="time [s]", ylabel="distance of the two ends [m]", title="how far the loop is open, dt = 0.01 s")
        right.grid(alpha=0.25)
        right.legend(loc="lower right", frameon=False, ncols=2)
        right.set_ylim(3e-11, 3e-2)
        right.spines[["top", "right"]].set_visible(False)
        figure.savefig(HERE / "linkage.png", dpi=110, pil_kwargs={"optimize": True})
        plt.close(figure)
    shrink(HERE / "linkage.png")


def chain() -> cs.Model:
    """That of the guide: five plates that hang on a beam, and a ball."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.6)
    scene.add_shape(cs.Rectangle((0.3, 0.05), pos=(0.0, 2.05)), name="beam")
    parent, place = None, (0.0, 2.0)
    for i in range(5):
        plate = cs.Rectangle((0.04, 0.16), mass=0.3, pos=(0.0, -0.15), restitution=0.3)
        parent = scene.add_body(f"plate{i}", parent=parent, joint=cs.Revolute(damping=0.01), pos=place, shapes=plate)
        place = (0.0, -0.3)
    scene.add_body("ball", pos=(-1.6, 1.0), shapes=cs.Circle(0.15, mass=1.0, friction=0.4, restitution=0.3))
    scene.exclude("plate0", "world")
    return scene.build()


def chain_picture() -> None:
    """A few instants side by side."""
    sim = cs.Simulator(chain(), dt=0.01)
    start = sim.initial_state()
    start.v[-3:] = torch.tensor([4.0, 2.0, -3.0])
    traj = sim.rollout(start, steps=150)
    figure = cs.render.strip(sim.model, traj, CHAIN_TIMES, dt=sim.dt, trail=0.3, trail_of=["ball"], width=10.8)
    figure.savefig(HERE / "chain.png", dpi=110, pil_kwargs={"optimize": True})
    plt.close(figure)
    shrink(HERE / "chain.png")


if __name__ == "__main__":
    worlds_picture()
    hits_picture()
    linkage_picture()
    chain_picture()
    example_picture("chain", "chain_mass")
    example_picture("identify_pendulum")
    example_picture("throw_ball")
    example_picture("servo_robots", "servo_arm", "servo_quadruped")
    example_picture("pile")
