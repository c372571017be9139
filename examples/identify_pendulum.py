"""Find the masses and joint dampers of a swinging pendulum of four links from a recording of its motion.

The recording is made by the simulator itself with numbers that the search does not see, and noise is added to it. Gradients
flow from the misfit through every step of the rollout back to the unknown numbers.

What can be found at all? Left alone, a pendulum tells nothing about its scale: with all masses and dampers doubled it swings
exactly the same, since both sides of  M(q) a + c(q, v) + D v = 0  double. So the first joint is driven by a known torque,
which does not double: that fixes the scale, and every mass and every damper can be told.

Long rollouts of such a pendulum are a bad thing to fit: it is chaotic, and the misfit has many false minima. So the recording is
cut into short windows, each of them a world of its own, all simulated side by side (multiple shooting). The windows start from
what the sensors said there; then they grow.

    python examples/identify_pendulum.py [--quick] [--seed 0] [--noise 1.0] [--out outputs]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

import costate as cs

LENGTH, RADIUS = 0.35, 0.02  # m, of a link
MASS = (1.2, 0.7, 0.9, 0.4)  # kg, what the search should find
DAMPING = (0.20, 0.08, 0.12, 0.05)  # N m s/rad, what it should find
GUESS_MASS, GUESS_DAMPING = 0.6, 0.03  # where it starts, for every link
TORQUE = 3.0  # N m, amplitude of the known torque on the first joint
NOISE_Q, NOISE_V = 0.002, 0.02  # rad and rad/s, standard deviation of the sensors
DT = 0.005  # s
SECONDS = 8.0  # length of the recording
# steps per window, iterations, learning rate
FULL = ((20, 200, 0.05), (60, 200, 0.02), (160, 200, 0.01))
QUICK = ((20, 150, 0.05), (80, 150, 0.03))
BOUND = 0.01  # relative error that check() allows; the noise alone costs about 0.002


def pendulum(mass: tuple[float, ...], damping: tuple[float, ...]) -> cs.Model:
    """Uniform rods that hang in a row and swing in the x-z plane, with a motor on the first joint."""
    scene, parent = cs.Scene(collisions=False), None
    for i, (m, d) in enumerate(zip(mass, damping, strict=True)):
        rod = cs.Cylinder(RADIUS, LENGTH / 2, mass=m, pos=(0.0, 0.0, -LENGTH / 2))
        place = (0.0, 0.0, 0.0 if parent is None else -LENGTH)
        hinge = cs.Revolute(axis=(0.0, -1.0, 0.0), damping=d)
        parent = scene.add_body(f"link{i + 1}", parent=parent, joint=hinge, pos=place, shapes=rod)
    scene.add_motor("link1")
    scene.add_site("tip", body="link4", pos=(0.0, 0.0, -LENGTH))
    return scene.build()


@dataclass(frozen=True)
class Recording:
    """Angles q [T+1, 4] and rates v [T+1, 4] as the sensors saw them, and the torque [T, 1] that was applied."""

    q: Tensor
    v: Tensor
    torque: Tensor


def record(seconds: float, *, noise: float, seed: int) -> Recording:
    """Swing the true pendulum from a bent start and note what the sensors say."""
    random = torch.Generator().manual_seed(seed)
    sim = cs.Simulator(pendulum(MASS, DAMPING), dt=DT)
    time = torch.arange(round(seconds / DT), dtype=torch.float64) * DT
    torque = TORQUE * (torch.sin(5.0 * time) + 0.5 * torch.sin(11.0 * time + 1.0)).unsqueeze(-1)
    start = cs.State(torch.tensor([1.1, 0.5, -0.4, 0.6], dtype=torch.float64), torch.zeros(4, dtype=torch.float64))
    traj = sim.rollout(start, torque)
    blur = [noise * torch.randn(traj.q.shape, dtype=torch.float64, generator=random) for _ in range(2)]
    return Recording(traj.q + NOISE_Q * blur[0], traj.v + NOISE_V * blur[1], torque)


class Fit:
    """The unknowns and the misfit. Masses and dampers are searched as logarithms, so that they stay positive."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.model = pendulum((GUESS_MASS,) * 4, (GUESS_DAMPING,) * 4)
        self.sim = cs.Simulator(self.model, dt=DT)
        self.unknown = self.model.params().unconstrained(("mass", "damping"))
        # a uniform rod's inertia goes with its mass
        self.inertia_per_mass = self.model.defaults["inertia"] / self.model.defaults["mass"].unsqueeze(-1)

    def params(self) -> cs.Params:
        """The parameters as they stand, with the graph back to the unknowns."""
        params = self.unknown.params()
        return params.replace(inertia=self.inertia_per_mass * params["mass"].unsqueeze(-1))

    def windows(self, steps: int) -> Recording:
        """The recording in pieces of `steps` steps: q and v [steps+1, pieces, 4], torque [steps, pieces, 1]."""
        r = self.recording
        starts = torch.arange(0, len(r.torque) - steps + 1, steps)
        at = starts + torch.arange(steps + 1).unsqueeze(-1)
        return Recording(r.q[at], r.v[at], r.torque[at[:-1]])

    def misfit(self, piece: Recording, start: cs.State) -> Tensor:
        """Mean squared distance between simulation and recording, in standard deviations of the sensors."""
        traj = self.sim.rollout(start, piece.torque, self.params())
        return 0.5 * (((traj.q - piece.q) / NOISE_Q).square().mean() + ((traj.v - piece.v) / NOISE_V).square().mean())

    def search(self, steps: int, iterations: int, rate: float, each: Callable[[float], None]) -> None:
        """Adam on the unknowns, and on the state in which each window starts: the sensors know that only roughly."""
        piece = self.windows(steps)
        q_shift, v_shift = (torch.zeros_like(x[0]).requires_grad_() for x in (piece.q, piece.v))
        groups = ({"params": self.unknown.leaves(), "lr": rate}, {"params": [q_shift, v_shift], "lr": 0.1})
        optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
        for _ in range(iterations):
            optimiser.zero_grad()
            start = cs.State(piece.q[0] + NOISE_Q * q_shift, piece.v[0] + NOISE_V * v_shift)
            loss = self.misfit(piece, start)
            loss.backward()
            optimiser.step()
            slower.step()
            each(loss.item())


@dataclass
class Result:
    """What a search found, and how it got there: one entry per iteration."""

    mass: list[list[float]] = field(default_factory=list)
    damping: list[list[float]] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    stages: list[int] = field(default_factory=list)  # where each stage begins

    def over_true(self) -> Tensor:
        """[iterations, 8]: masses, then dampers, each divided by its true value."""
        return torch.cat((torch.tensor(self.mass) / torch.tensor(MASS), torch.tensor(self.damping) / torch.tensor(DAMPING)), -1)


def identify(fit: Fit, plan: Sequence[tuple[int, int, float]], console: Console) -> Result:
    """All stages of the plan, with a progress bar."""
    result = Result()
    text = TextColumn("windows of {task.fields[seconds]:.2f} s   misfit {task.fields[loss]:10.3f}")
    with Progress(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:
        for steps, iterations, rate in plan:
            task = progress.add_task("", total=iterations, seconds=steps * DT, loss=float("nan"))
            result.stages.append(len(result.loss))

            def each(loss: float, task=task) -> None:
                now = fit.params()
                result.mass.append(now["mass"].tolist())
                result.damping.append(now["damping"].tolist())
                result.loss.append(loss)
                progress.update(task, advance=1, loss=loss)

            fit.search(steps, iterations, rate, each)
    return result


def report(result: Result) -> Table:
    """True, first and found values side by side."""
    table = Table("number", "true", "start", "found", "error", title="What the motion told")
    rows = [(f"mass of link {i + 1}, kg", MASS[i], GUESS_MASS, result.mass[-1][i]) for i in range(4)]
    rows += [(f"damping of joint {i + 1}, N m s/rad", DAMPING[i], GUESS_DAMPING, result.damping[-1][i]) for i in range(4)]
    for name, true, start, found in rows:
        table.add_row(name, f"{true:.3f}", f"{start:.3f}", f"{found:.4f}", f"{found / true - 1:+.2%}")
    return table


def main(argv: Sequence[str] | None = None) -> Result:
    """Record, identify, report, draw."""
    parser = argparse.ArgumentParser(description="identify a pendulum's masses and dampers from its motion")
    parser.add_argument("--quick", action="store_true", help="fewer iterations")
    parser.add_argument("--seed", type=int, default=0, help="of the sensors' noise")
    parser.add_argument("--noise", type=float, default=1.0, help="how much of it")
    parser.add_argument("--out", type=Path, default=Path("outputs"), help="folder of the picture; '-' draws none")
    args = parser.parse_args(argv)
    console = Console()
    recording = record(SECONDS, noise=args.noise, seed=args.seed)
    fit = Fit(recording)
    console.print(f"{len(recording.torque)} steps recorded; every window of it is a world ({cs.instruction_set()})")
    result = identify(fit, QUICK if args.quick else FULL, console)
    console.print(report(result))
    console.print(f"misfit {result.loss[-1]:.2f}; 1 means that only the sensors' noise is left")
    if str(args.out) != "-":
        from pictures.pendulum import draw

        console.print(f"picture: {draw(fit, result, args.out)}")
    return result


def check() -> None:
    """The quick form finds every number to BOUND."""
    errors = main(["--quick", "--out", "-"]).over_true()[-1] - 1
    assert errors.abs().max() < BOUND, errors


if __name__ == "__main__":
    main()
