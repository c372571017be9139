"""Table 1 of paper B (Degrave et al., 2019): its quadruped for 10 s, with a network that reads 81 sensors, and the gradient.

    python -m bench.paper_b [--quick] [--device cpu|cuda] [--seconds 10]

Needs nothing but costate and torch: the paper's numbers are quoted.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter

import torch
from torch import Tensor, nn

import costate as cs
from bench.tables import Table, times
from examples import sensors as senses
from examples import servo_robots as robots

DT, SECONDS, QUICK_SECONDS = 0.01, 10.0, 0.5  # s: the paper's step, and how long it is simulated
LAYERS = {1296: (81, 16), 1_147_904: (81, 1024, 1024, 16)}  # without biases: these are the paper's numbers of parameters
ROBOTS = (1, 128)
REACH = 0.02  # rad, by which a pair of outputs moves a target per unit of their difference
DEVICES = {"cpu": "CPU (i7 5930K)", "cuda": "GPU (GTX 1080)"}  # and the paper's own
# seconds for 10 s, as printed: (robots, parameters) -> device -> with gradient, without
PAPER = {
    (1, 1296): {"cpu": (8.17, 1.06), "cuda": (69.6, 9.69)},
    (1, 1_147_904): {"cpu": (13.2, 2.04), "cuda": (75.0, 9.69)},
    (128, 1296): {"cpu": (263.0, 47.7), "cuda": (128.0, 17.8)},
    (128, 1_147_904): {"cpu": (311.0, 50.4), "cuda": (129.0, 18.3)},
}
COLUMNS = (
    "robots", "parameters", "gradient", "coordinates", "s for 10 s", "ms per robot-step", "paper, s", "paper, ms", "ratio",
    "converged", "largest residual, m/s", "travelled, m", "norm of the gradient",
)  # fmt: skip
NOTES = """Seconds to simulate 10 s in steps of 10 ms{scaled}, {dtype}, once, after two steps that are not timed; the paper's
numbers are those of its Table 1, {theirs}. A ratio above 1: costate is faster. The quadruped of `examples/servo_robots.py`, with
17 bodies, 8 servos and four feet: in maximal coordinates, as in the paper (102 speeds held by 88 rows, and 3 more for each foot
on the ground), and as a tree. Before every step a network in torch reads the 81 sensors of `examples/sensors.py`, with what the
control before would do. Its 16 outputs are 8 pairs, one for each servo: their difference, times {reach} rad, is added to the
target of a trot, which every robot does at its own pace and phase. The gradient is that of the mean distance travelled by all
weights, through all steps; the forces of servos, 8 of the sensors, are read without gradient. Converged: share of steps below
the solver's tolerance."""


@dataclass(frozen=True)
class Plan:
    """Where, how many steps, which batches, and in which precision."""

    device: str = "cpu"
    steps: int = round(SECONDS / DT)
    robots: tuple[int, ...] = ROBOTS
    dtype: torch.dtype = torch.float64


class Controller(nn.Module):
    """The trot, and what a network adds to it; its carry is the control before.

    targets : [steps, robots, 8], rad. sizes : of the network's layers, which have no biases.
    """

    def __init__(self, sim: cs.Simulator, sensors: cs.Sensors, targets: Tensor, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sim, self.sensors, self.targets = sim, sensors, targets
        torch.manual_seed(0)
        layers = [layer for n, m in pairwise(sizes) for layer in (nn.Linear(n, m, bias=False), nn.ReLU())]
        self.layers = nn.Sequential(*layers[:-1]).to(targets)

    def forward(self, state: cs.State, before: Tensor, t: int) -> tuple[Tensor, Tensor]:
        out = self.layers(self.sensors(self.sim, state, before)).unflatten(-1, (-1, 2))
        control = self.targets[t] + REACH * (out[..., 0] - out[..., 1])
        return control, control


def sensors_of(model: cs.Model) -> cs.Sensors:
    """The 81 of the example, on this robot: its inertial unit sits in the spine, and servos give no gradient of their forces."""
    found = senses.senses(senses.quadruped()).sensors
    found = [replace(x, at="spine") if getattr(x, "at", None) == "imu" else x for x in found]
    return cs.Sensors(model, [replace(x, detach=True) if isinstance(x, cs.ActuatorForce) else x for x in found])


def targets(steps: int, count: int) -> Tensor:
    """Targets [steps, robots, 8] of a trot, rad: every robot has its own pace and phase."""
    random = torch.Generator().manual_seed(0)
    pace, phase = (torch.rand(count, generator=random, dtype=torch.float64) for _ in range(2))
    return robots.gait(DT * torch.arange(steps, dtype=torch.float64)[:, None] * (0.7 + 0.6 * pace) + phase)


class Job:
    """One cell of the table, in maximal coordinates or as a tree."""

    def __init__(self, plan: Plan, count: int, parameters: int, *, maximal: bool) -> None:
        model = robots.quadruped(maximal=maximal)
        self.sim = cs.Simulator(model, DT, device=plan.device, dtype=plan.dtype)
        chosen = targets(plan.steps, count).to(plan.device, plan.dtype)
        self.controller = Controller(self.sim, sensors_of(model), chosen, LAYERS[parameters])
        assert sum(x.numel() for x in self.controller.parameters()) == parameters
        self.start, self.cuda = self.sim.initial_state(count), plan.device == "cuda"

    def travel(self, steps: int, *, gradient: bool) -> tuple[cs.Trajectory, float]:
        """The trajectory, and the norm of the gradient of the mean distance along x by all weights."""
        before = torch.zeros_like(self.controller.targets[0])
        with torch.set_grad_enabled(gradient):
            traj = self.sim.rollout(self.start, self.controller, steps=steps, carry=before)
            distance = (traj.q[-1, :, 0] - traj.q[0, :, 0]).mean()
        if not gradient:
            return traj, 0.0
        found = torch.autograd.grad(distance, list(self.controller.parameters()))
        return traj.detach(), float(torch.stack([g.norm() for g in found]).norm())

    def seconds(self, steps: int, *, gradient: bool) -> tuple[float, cs.Trajectory, float]:
        """What `travel` takes, and what it gives."""
        self.sim.compile(gradient=gradient, worlds=self.start.q.shape[0])
        self.travel(2, gradient=gradient)
        self._wait()
        began = perf_counter()
        traj, norm = self.travel(steps, gradient=gradient)
        self._wait()
        return perf_counter() - began, traj, norm

    def _wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()


def run(*, quick: bool) -> Iterator[Table]:
    """A table per device; none of a GPU where there is no GPU."""
    for device in DEVICES:
        if device == "cpu" or torch.cuda.is_available():
            yield table_of(Plan(device, round((QUICK_SECONDS if quick else SECONDS) / DT)))


def table_of(plan: Plan) -> Table:
    """All cells of the paper's table on one device, each in maximal coordinates and as a tree."""
    full = round(SECONDS / DT)
    scaled = "" if plan.steps == full else f" (scaled: {plan.steps * DT:g} s were simulated)"
    words = {"scaled": scaled, "dtype": str(plan.dtype).removeprefix("torch."), "theirs": DEVICES[plan.device], "reach": REACH}
    table = Table(f"Paper B's Table 1, {plan.device}", COLUMNS, notes=NOTES.format(**words))
    cells = [(n, size, gradient) for n, size in PAPER if n in plan.robots for gradient in (True, False)]
    for count, parameters, gradient in cells:
        paper = PAPER[count, parameters][plan.device][0 if gradient else 1]
        cell = f"{count:,}", f"{parameters:,}", "with" if gradient else "without"
        for maximal in (True, False):
            spent, traj, norm = Job(plan, count, parameters, maximal=maximal).seconds(plan.steps, gradient=gradient)
            spent *= full / plan.steps
            converged, travelled = 1 - traj.status.unconverged.double().mean() / plan.steps, traj.q[-1, :, 0] - traj.q[0, :, 0]
            table.add(
                *cell, "maximal" if maximal else "tree", f"{spent:.3g}", f"{_ms(spent, count):.3g}", f"{paper:g}",
                f"{_ms(paper, count):.3g}", times(paper / spent), f"{converged:.2%}", f"{traj.status.residual.max():.1e}",
                f"{travelled.mean():.2f}", f"{norm:.1e}" if gradient else "",
            )  # fmt: skip
            if maximal:
                what = "{} robots, {} parameters, {} gradient".format(*cell)
                table.target(f"{what}: no slower than the paper: {times(paper / spent)}", spent <= paper)
            print(" | ".join(table.rows[-1]), file=sys.stderr, flush=True)  # all of them take minutes
            del traj
            gc.collect()
    return table


def _ms(seconds: float, count: int) -> float:
    """Of one step of one robot, where 10 s of all of them take `seconds`."""
    return 1e3 * seconds / (SECONDS / DT * count)


def main(argv: Sequence[str] | None = None) -> int:
    """Print tables as Markdown."""
    parser = argparse.ArgumentParser(prog="bench.paper_b", description="paper B's Table 1")
    parser.add_argument("--quick", action="store_true", help=f"simulate {QUICK_SECONDS:g} s in place of {SECONDS:g}, and scale")
    parser.add_argument("--device", choices=tuple(DEVICES), default="cpu")
    parser.add_argument("--seconds", type=float, help=f"how long to simulate (default {SECONDS:g}); times are scaled to 10 s")
    parser.add_argument("--robots", type=int, nargs="+", choices=ROBOTS, default=ROBOTS, help="which batches")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device here")
    seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    plan = Plan(args.device, max(1, round(seconds / DT)), tuple(args.robots), getattr(torch, args.dtype))
    print(table_of(plan).markdown(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
