"""Infer the mass of a chain from how it moves when a ball hits it: experiment 4.1 of paper A, with its recipe and a better one.

The task is that of de Avila Belbute-Peres et al., End-to-End Differentiable Physics for Learning and Control, section 4.1 and
figure 1: a ball of known mass hits a hanging chain, the positions of all bodies are recorded for 10 s, and the mass of the chain
is inferred, from a first guess of 1 (true: 7), by gradient descent on the mean squared error (MSE): learning rate 0.01, gradients
clipped to 100. Then the run time of 30 updates with one mass per link, by the adjoint and by finite differences.

The scene is that of the paper's own code, whose unit is the pixel: 10 px are 1 m here. Links of 20 x 60 px hang 50 px apart on
hinges (maximal coordinates: free bodies, held together by `add_hinge`). Their weight, 100 px/s^2 times their mass, is a force on
the chain alone: the ball flies straight. It has 1 kg, a radius of 20 px and 150 px/s, towards the lowest link; restitution 0.75,
friction 0.9. A position is (x, y, angle) in px and rad, as there. The unknown is the total mass; all links have the same.
Not as there: all links have a mass and weight (there the first one has its own); steps of 1/100 s, not 1/30; and the simulator.

What came out, and the picture shows:
  - The recipe works, but the printed numbers hide how well. Nearly all gradients are clipped, so the guess marches by 0.01 x 100
    = 1 kg per update, with fixed steps from 1 to exactly 7 in six, whatever the gradients are. So other starts are tried as well.
  - With fixed steps none of those arrives. The ball hits the chain twice, and a fixed step does not know when within it the
    second hit falls: over the mass the loss has teeth, bent too strongly for the rate, and descent hops about, 0.1 kg off. With
    impacts="toi", steps that are split at the times of impact, the teeth are far smaller, and every start arrives.
  - What is left is physics. Below 3.97 kg the ball hits once and flies off, above it the chain swings back and hits it again: the
    loss jumps there. Between 10 and 12 kg it has false minima, where most descents from above end.
  - The recording has no noise, so the least loss is known: 0. Where L ~ (x - x*)^2, the step -2 L / L' leads to x* at once, and
    no rate is needed. With x = log(mass), which keeps masses positive, and steps of at most a factor of 2.5, five updates do it.

    python examples/chain.py [--quick] [--out outputs]      # minutes, nearly all of them for the run times
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from time import process_time
from typing import TypeAlias

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

import costate as cs

PIXEL = 0.1  # m
TRUE, GUESS = 7.0, 1.0  # kg, of the whole chain
RATE, CLIP, UPDATES = 0.01, 100.0, 30  # as printed
LINKS, SECONDS, DT = 10, 10.0, 0.01  # s
LINK, APART, BALL, AWAY = (1.0, 3.0), 5.0, 2.0, 25.0  # m: half of a link's extents, link to link, radius, where the ball starts
WEIGHT, SPEED, BALL_MASS = 10.0, 15.0, 1.0  # m/s^2, m/s, kg
SURFACE = {"restitution": 0.75, "friction": 0.9}
SCATTERED = (0.45, 0.1)  # kg, other first guesses: the least, and how far they are apart; none is whole steps of 1 from the truth
LEAST = 0.02  # kg per link, below which no update goes
FACTOR, LEAPS = 2.5, 10  # most change of the mass in one step of `leap`, and steps
CLOSE = 1e-6  # kg
NEAR = (6.7, 7.3)  # kg, where the picture looks closely
NUDGE = 1e-6  # kg, of finite differences
FULL = {"starts": 16, "masses": 541, "sizes": (2, 5, 10, 15, 20), "updates": UPDATES, "runs": 5}
QUICK = {"starts": 3, "masses": 28, "sizes": (2, 5), "updates": 2, "runs": 1}
Done: TypeAlias = Callable[[], None]


def chain(links: int) -> cs.Model:
    """Links that hang below the origin, of 1 kg each, and a ball to their left."""
    scene = cs.Scene(planar=True, gravity=(0.0, 0.0))  # the links' weight is an external force
    for i in range(links):
        here, above = f"link{i + 1}", f"link{i}" if i else None
        scene.add_body(here, pos=(0.0, -2.0 - APART * i), shapes=cs.Rectangle(LINK, mass=1.0, **SURFACE))
        scene.add_hinge(above, here, pos=(0.0, -APART / 2) if above else (0.0, 0.0))
        if above:
            scene.exclude(above, here)  # they overlap at the hinge
    place = (-AWAY, -2.0 - APART * (links - 1))
    scene.add_body("ball", pos=place, shapes=cs.Circle(BALL, mass=BALL_MASS, **SURFACE))
    return scene.build()


class Task:
    """The chain, what was recorded of it, and the loss. Masses are those of the links, [..., links] in kg."""

    def __init__(self, links: int = LINKS, *, impacts: cs.sim.Impacts | None = "toi") -> None:
        self.links, self.steps = links, round(SECONDS / DT)
        self.sim = cs.Simulator(chain(links), dt=DT, impacts=impacts)
        self.start = self.sim.initial_state()
        self.start.v[-3] = SPEED
        self.recording = self.positions(self.alike(torch.tensor(TRUE, dtype=torch.float64)))

    def alike(self, total: Tensor) -> Tensor:
        """[..., links]: the total mass [...] in equal parts."""
        return (total / self.links).unsqueeze(-1).expand(*total.shape, self.links)

    def roll(self, mass: Tensor) -> cs.Trajectory:
        """The rollout; gradients flow by masses, moments of inertia (as those of 1 kg, times the mass) and weights."""
        base, batch = self.sim.model.params(), mass.shape[:-1]
        ball = mass.new_full((*batch, 1), BALL_MASS)
        masses = torch.cat((mass, ball), -1)
        params = base.replace(mass=masses, inertia=masses.unsqueeze(-1) * base["inertia"])
        weight = torch.cat((-WEIGHT * mass, 0 * ball), -1)
        forces = torch.stack((0 * weight, weight, 0 * weight), -1)
        start = cs.State(*(x.expand(*batch, -1) for x in self.start))
        return self.sim.rollout(start, params=params, steps=self.steps, external=forces)

    def positions(self, mass: Tensor) -> Tensor:
        """[T+1, ..., bodies, 3]: x and y in px, angles in rad."""
        unit = mass.new_tensor([1 / PIXEL, 1 / PIXEL, 1.0])
        return self.roll(mass).q.unflatten(-1, (-1, 3)) * unit

    def loss(self, mass: Tensor) -> Tensor:
        """[...]: the MSE over all instants, bodies and coordinates."""
        steps, bodies, _ = self.recording.shape
        recorded = self.recording.reshape(steps, *(1,) * (mass.dim() - 1), bodies, 3)
        return (self.positions(mass) - recorded).square().mean((0, -2, -1))

    def slope(self, total: Tensor) -> tuple[Tensor, Tensor]:
        """The loss and its derivative by the total mass [...]; every entry is a world of its own."""
        total = total.detach().requires_grad_()
        loss = self.loss(self.alike(total))
        (slope,) = torch.autograd.grad(loss.sum(), total)
        return loss.detach(), slope


# ---- one mass --------------------------------------------------------------------------------------------------------------
@dataclass
class Search:
    """Masses (kg) and losses (px^2) after 0, 1, 2, ... updates, one column per start."""

    mass: list[list[float]] = field(default_factory=list)
    loss: list[list[float]] = field(default_factory=list)

    def note(self, mass: Tensor, loss: Tensor) -> None:
        self.mass.append(mass.tolist())
        self.loss.append(loss.tolist())

    def errors(self) -> Tensor:
        """[updates + 1, starts] kg."""
        return (torch.tensor(self.mass, dtype=torch.float64) - TRUE).abs()

    def updates(self, close: float) -> list[int | None]:
        """Updates until each start was close, and stayed so to the end; None: it did not."""
        off = (self.errors() > close).long()
        last = (off * torch.arange(1, len(off) + 1).unsqueeze(-1)).amax(0).tolist()
        return [n if n < len(off) else None for n in last]


def descend(task: Task, starts: Sequence[float], each: Done) -> Search:
    """Gradient descent as printed, from all starts at once."""
    search, mass = Search(), torch.tensor(starts, dtype=torch.float64)
    for _ in range(UPDATES + 1):
        loss, slope = task.slope(mass)
        search.note(mass, loss)
        mass = (mass - RATE * slope.clamp(-CLIP, CLIP)).clamp(min=LEAST * task.links)
        each()
    return search


def leap(task: Task, starts: Sequence[float], updates: int, each: Done) -> Search:
    """Steps of -2 L / L' in log(mass): Newton's on the root of L, for a least loss that is known to be 0."""
    search, mass, most = Search(), torch.tensor(starts, dtype=torch.float64), math.log(FACTOR)
    for _ in range(updates + 1):
        loss, slope = task.slope(mass)
        search.note(mass, loss)
        step = torch.where(loss > 0, -2 * loss / (slope * mass), 0.0)
        mass = mass * step.clamp(-most, most).exp()
        each()
    return search


# ---- one mass per link -----------------------------------------------------------------------------------------------------
def by_adjoint(task: Task, mass: Tensor) -> Tensor:
    """The gradient of the loss by every link's mass [..., links]: one rollout and its way back, for each chain."""
    mass = mass.detach().requires_grad_()
    return torch.autograd.grad(task.loss(mass).sum(), mass)[0]


@torch.no_grad()
def by_differences(task: Task, mass: Tensor) -> Tensor:
    """The same by forward differences: links + 1 rollouts for each chain, all of them worlds of one batch."""
    loss = task.loss(_nudged(mass))
    return (loss[..., 1:] - loss[..., :1]) / NUDGE


@torch.no_grad()
def one_by_one(task: Task, mass: Tensor) -> Tensor:
    """The same for one chain, mass [links], one rollout after the other."""
    loss = torch.stack([task.loss(world) for world in _nudged(mass)])
    return (loss[1:] - loss[0]) / NUDGE


def _nudged(mass: Tensor) -> Tensor:
    """[..., links + 1, links]: the masses, and the same with each of them a little larger."""
    nudge = NUDGE * torch.eye(mass.shape[-1], dtype=mass.dtype)
    return mass.unsqueeze(-2) + torch.cat((torch.zeros_like(nudge[:1]), nudge))


# descents that run side by side, as worlds of one batch, and how they get their gradients
METHODS = {
    "adjoint": (1, by_adjoint),
    "differences, one by one": (1, one_by_one),
    "differences, one batch": (1, by_differences),
    "8 at once: adjoint": (8, by_adjoint),
    "8 at once: differences": (8, by_differences),
}


@dataclass
class Times:
    """Processor seconds that a chain's updates take."""

    links: int
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in METHODS})  # of one descent, per run
    apart: float = 0.0  # relative, largest distance of a method's gradient from the adjoint's


def time_methods(links: int, updates: int, runs: int, each: Done) -> Times:
    """Descents on all masses of a chain with each method. The rate is divided by the links, so that the total moves as before."""
    task, times = Task(links), Times(links)
    starts = task.alike(torch.linspace(GUESS, 1.5 * GUESS, 8, dtype=torch.float64))
    exact, *others = (gradient(task, starts[0]) for gradient in (by_adjoint, by_differences, one_by_one))  # also warms up
    times.apart = max(((other - exact).norm() / exact.norm()).item() for other in others)
    for name, (count, gradient) in METHODS.items():
        for _ in range(runs if count == 1 else 1):  # many are a mean already
            mass, began = starts[0] if count == 1 else starts[:count], process_time()
            for _ in range(updates):
                mass = (mass - RATE / links * gradient(task, mass).clamp(-CLIP, CLIP)).clamp(min=LEAST)
            times.seconds[name].append((process_time() - began) / count)
            each()
    return times


def time_step(task: Task, repeats: int = 5) -> tuple[float, float]:
    """Processor seconds per step of one world, forwards and back: the least of some repeats."""
    forward, back = [], []
    for _ in range(repeats):
        mass = task.alike(torch.tensor(TRUE, dtype=torch.float64)).clone().requires_grad_()
        began = process_time()
        q = task.roll(mass).q
        middle = process_time()
        q.sum().backward()
        forward.append(middle - began)
        back.append(process_time() - middle)
    return min(forward) / task.steps, min(back) / task.steps


# ---- all together ----------------------------------------------------------------------------------------------------------
@dataclass
class Result:
    """What the run found; written to chain_mass.json."""

    searches: dict[str, Search]
    landscape: dict[str, list[float]]  # masses (kg), and the loss (px^2) there with both kinds of steps; the same near the truth
    times: list[Times]
    step: tuple[float, float]  # s, forwards and back


@torch.no_grad()
def landscape(tasks: dict[str, Task], count: int, each: Done) -> dict[str, list[float]]:
    """The loss over the mass, one world per mass."""
    far, near = torch.linspace(0.5, 14.0, count, dtype=torch.float64), torch.linspace(*NEAR, count // 2, dtype=torch.float64)
    result = {"mass": far.tolist(), "near": near.tolist()}
    for name, task in tasks.items():
        for mass, words in ((far, name), (near, f"{name} near")):
            result[words] = task.loss(task.alike(mass)).tolist()
            each()
    return result


@contextmanager
def one_thread() -> Iterator[None]:
    """Processor times are to be compared: neither simulator nor torch may count what their threads wait for."""
    before = cs.get_num_threads(), torch.get_num_threads()
    cs.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        cs.set_num_threads(before[0])
        torch.set_num_threads(before[1])


@one_thread()
def run(plan: dict, console: Console) -> Result:
    """Everything, with progress bars."""
    tasks = {"toi": Task(), "fixed": Task(impacts=None)}
    text = TextColumn("{task.description:32s}")
    with Progress(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:

        def bar(words: str, total: int) -> Done:
            task = progress.add_task(words, total=total)
            return lambda: progress.advance(task)

        starts = [GUESS, *(SCATTERED[0] + SCATTERED[1] * i for i in range(plan["starts"]))]
        each = bar(f"descent as printed, {len(starts)} starts", 2 * (UPDATES + 1))
        searches = {name: descend(task, starts, each) for name, task in tasks.items()}
        searches["leap"] = leap(tasks["toi"], starts, LEAPS, bar(f"leaps, {len(starts)} starts", LEAPS + 1))
        shape = landscape(tasks, plan["masses"], bar(f"loss at {plan['masses']} masses", 4))
        step = time_step(tasks["toi"])
        rounds = sum(plan["runs"] if count == 1 else 1 for count, _ in METHODS.values())
        each = bar(f"run times, {plan['updates']} updates each", rounds * len(plan["sizes"]))
        times = [time_methods(links, plan["updates"], plan["runs"], each) for links in plan["sizes"]]
    return Result(searches, shape, times, step)


def report(result: Result, updates: int) -> list[Table]:
    """How the searches went, and the run times."""
    names = {"fixed": "as printed, fixed steps", "toi": 'as printed, impacts="toi"', "leap": "-2 L / L' in log(mass), the same"}
    table = Table("", "from 1: found, kg", "updates to 0.01 kg", "others: arrived", "largest error, kg")
    table.title = f"Mass of the chain (true: {TRUE:g} kg), MSE over {SECONDS:g} s in steps of {DT:g} s"
    for name, words in names.items():
        search = result.searches[name]
        arrived = [n for n in search.updates(CLOSE)[1:] if n is not None]
        first, worst = search.updates(0.01)[0], search.errors()[-1, 1:].max().item()
        count = f"{len(arrived)} of {len(search.mass[0]) - 1}"
        table.add_row(words, f"{search.mass[-1][0]:.9g}", str(first), count, f"{worst:.1e}")
    runs = Table("links = masses", *(str(times.links) for times in result.times))
    runs.title = f"Processor seconds of {updates} updates"
    for name in METHODS:
        runs.add_row(name, *(f"{mean(times.seconds[name]):.2f}" for times in result.times))
    return [table, runs]


def main(argv: Sequence[str] | None = None) -> Result:
    """Infer, time, report, draw."""
    parser = argparse.ArgumentParser(description="infer the mass of a chain that a ball hits")
    parser.add_argument("--quick", action="store_true", help="run times of two short chains only, and a coarse landscape")
    parser.add_argument("--out", type=Path, default=Path("outputs"), help="folder of picture and numbers; '-' writes none")
    args = parser.parse_args(argv)
    console, plan = Console(), QUICK if args.quick else FULL
    result = run(plan, console)
    console.print(*report(result, plan["updates"]), sep="\n")
    console.print(f"one step of {LINKS} links: {result.step[0] * 1e6:.1f} us, back {result.step[1] * 1e6:.1f} us")
    if str(args.out) != "-":
        from pictures.chain import draw

        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "chain_mass.json").write_text(json.dumps(asdict(result), indent=1) + "\n")
        console.print(f"picture: {draw(Task(), result, args.out)}; numbers: {args.out / 'chain_mass.json'}")
    return result


def check() -> None:
    """Both searches find the mass from all starts, and all gradients agree."""
    result = main(["--quick", "--out", "-"])
    assert result.searches["toi"].errors()[-1].max() < CLOSE, result.searches["toi"].mass[-1]
    assert result.searches["leap"].errors()[-1].max() < CLOSE, result.searches["leap"].mass[-1]
    assert all(times.apart < 1e-4 for times in result.times), [times.apart for times in result.times]


if __name__ == "__main__":
    main()
