"""A pile of spheres, boxes, capsules, cylinders and hulls on hills; how must a stone be thrown to come to rest on a mark?

All bodies begin in the air, turned at random, and fall for 1.5 s onto a heightfield. One of them, a flat stone (a hull of 12
corners), begins beside the others. Sought is its first velocity, three numbers, such that in the end it lies on the mark, behind
the pile seen from where it starts. The gradient of the distance comes back through everything that happened: flight, hits on
other bodies and on the hills, sliding, tumbling.

Adam takes the gradient, clipped, with steps that become smaller. A throw that just misses another body and one that just hits it
end far apart, and no derivative knows of the other: a search that does not arrive begins again with another first throw.

    python examples/pile.py [--quick] [--out outputs]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import pi
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from torch import Tensor

import costate as cs

DT, SECONDS = 0.01, 1.5
FRICTION, DENSITY = 0.7, 800.0
SIZE, POINTS = 1.5, 31  # m, half the terrain's width; heights along each side
START, MARK = (-0.75, 0.0, 0.4), (0.55, 0.25)  # m: the stone's, and where it shall lie
APART = 0.55  # m, from one heap to the next
GUESS, SCATTER = (3.0, 0.5, 1.0), 0.3  # m/s: the first throws
CLOSE = 0.02  # m and m/s
RATE, CLIP, SMALLER = 0.15, 1.0, 0.95  # of Adam, m/s; of the gradient's length; of the rate, per iteration
ITERATIONS = 40  # of one search
# Contacts that are as good as this do here, and cost half of what the default does
SOLVER = cs.PGS(tolerance=1e-6)  # m/s


def hills() -> Tensor:
    """Heights [POINTS, POINTS] in m: a bowl with bumps."""
    x = torch.linspace(-SIZE, SIZE, POINTS, dtype=torch.float64)
    x, y = torch.meshgrid(x, x, indexing="ij")
    return 0.08 * (x**2 + y**2) + 0.05 * torch.sin(2 * pi * x / 1.1) * torch.cos(2 * pi * y / 1.3)


def solid(kind: int, rng: torch.Generator) -> cs.Shape:
    """One of five kinds, 10 to 20 cm long."""
    a, b, c = (0.05 + 0.03 * torch.rand(3, generator=rng, dtype=torch.float64)).tolist()
    surface = {"density": DENSITY, "friction": FRICTION}
    if kind == 4:
        return cs.Hull(stone_corners(rng, 0.06 + c / 4), **surface)
    makes = (lambda: cs.Box((a, b, c), **surface), lambda: cs.Cylinder(a, b, **surface))
    makes += (lambda: cs.Capsule(0.8 * a, b, **surface), lambda: cs.Sphere(a, **surface))
    return makes[kind]()


def stone_corners(rng: torch.Generator, radius: float) -> Tensor:
    """12 points [12, 3] on a sphere."""
    x = torch.randn(12, 3, generator=rng, dtype=torch.float64)
    return radius * x / x.norm(dim=-1, keepdim=True)


def pile(heaps: int, seed: int = 0) -> cs.Model:
    """Heaps of five bodies, one of each kind, side by side above the hills, and the stone, the last body, beside them."""
    rng = torch.Generator().manual_seed(seed)
    scene, stone = cs.Scene(), None
    scene.add_shape(cs.Heightfield(hills(), (SIZE, SIZE), friction=FRICTION), name="hills")
    for heap in range(heaps):
        for kind in range(5):
            layer, place = divmod(kind, 4)
            shift = 0.04 * torch.rand(2, generator=rng, dtype=torch.float64)
            x, y = (0.22 * (torch.tensor([place // 2 - 0.5, place % 2 - 0.5]) + 0.3 * (layer % 2)) + shift).tolist()
            quat = torch.randn(4, generator=rng, dtype=torch.float64)
            turn, pos = tuple((quat / quat.norm()).tolist()), (x, y - APART * heap, 0.25 + 0.24 * layer)
            scene.add_body(f"heap{heap} {kind}", joint=cs.Free(), pos=pos, quat=turn, shapes=solid(kind, rng))
        if stone is None:
            flat = torch.tensor([1.0, 1.0, 0.35], dtype=torch.float64)
            stone = cs.Hull(flat * stone_corners(rng, 0.1), density=DENSITY, friction=FRICTION)
    scene.add_body("stone", joint=cs.Free(), pos=START, shapes=stone)
    return scene.build()


class Task:
    """Throws of the stone, [3] m/s, and how they end."""

    def __init__(self, model: cs.Model) -> None:
        self.sim = cs.Simulator(model, dt=DT, solver=SOLVER)
        self.steps = round(SECONDS / DT)
        self.mark = torch.tensor(MARK, dtype=torch.float64)

    def throw(self, velocity: Tensor) -> cs.Trajectory:
        """All bodies fall, the stone with this first velocity."""
        start = self.sim.initial_state()
        v = torch.cat((start.v[:-6], velocity, start.v[-3:]))
        return self.sim.rollout(cs.State(start.q, v), steps=self.steps)

    def errors(self, traj: cs.Trajectory) -> Tensor:
        """[2]: how far from the mark the stone is in the end (m), and how fast (m/s)."""
        return torch.stack(((traj.q[-1, -7:-5] - self.mark).norm(), traj.v[-1, -6:-3].norm()))


@dataclass
class Search:
    """Throws [3] and errors [2] of all iterations, one after the other; `starts`: where searches began."""

    throws: list[Tensor] = field(default_factory=list)
    errors: list[Tensor] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def best(self) -> int:
        """The iteration that ends nearest to the mark, lying still."""
        return int(loss_of(torch.stack(self.errors)).argmin())


def loss_of(errors: Tensor) -> Tensor:
    """[...]: distance squared, and a little of the speed squared."""
    return errors[..., 0].square() + 0.1 * errors[..., 1].square()


def descend(task: Task, first: Tensor, search: Search, progress: Progress, bar: TaskID) -> bool:
    """Adam from one throw; whether it arrived."""
    x = first.clone().requires_grad_()
    adam = torch.optim.Adam([x], lr=RATE, betas=(0.7, 0.95))
    rate = torch.optim.lr_scheduler.ExponentialLR(adam, SMALLER)
    search.starts.append(len(search.throws))
    for _ in range(ITERATIONS):
        errors = task.errors(task.throw(x))
        (gradient,) = torch.autograd.grad(loss_of(errors), x)
        search.throws.append(x.detach().clone())
        search.errors.append(errors.detach())
        progress.update(bar, advance=1, nearest=1000 * float(search.errors[search.best()][0]))
        if (errors < CLOSE).all():
            return True
        x.grad = gradient * (CLIP / gradient.norm().clamp(min=CLIP))
        adam.step()
        rate.step()
    return False


def search_throw(task: Task, starts: int, console: Console, seed: int = 0) -> Search:
    """Descents from throws around GUESS, until one arrives; with a progress bar."""
    search, rng = Search(), torch.Generator().manual_seed(seed)
    text = TextColumn("nearest {task.fields[nearest]:6.1f} mm")
    with Progress(text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task("", total=starts * ITERATIONS, nearest=float("inf"))
        for _ in range(starts):
            scatter = SCATTER * torch.randn(3, generator=rng, dtype=torch.float64)
            if descend(task, torch.tensor(GUESS, dtype=torch.float64) + scatter, search, progress, bar):
                break
    return search


def main(argv: Sequence[str] | None = None) -> tuple[Task, Search]:
    """Let it fall, search, draw."""
    parser = argparse.ArgumentParser(description="a pile on hills, and a stone that must come to rest on a mark")
    parser.add_argument("--quick", action="store_true", help="one heap of five bodies instead of two")
    parser.add_argument("--starts", type=int, default=6, help="most searches")
    parser.add_argument("--seed", type=int, default=0, help="of the first throws")
    parser.add_argument("--out", type=Path, default=Path("outputs"), help="folder of the picture; '-' draws none")
    args = parser.parse_args(argv)
    console, task = Console(), Task(pile(1 if args.quick else 2))
    search = search_throw(task, args.starts, console, args.seed)
    best = search.best()
    v, (away, speed) = [round(x, 3) for x in search.throws[best].tolist()], search.errors[best].tolist()
    console.print(
        f"{len(search.throws)} throws from {len(search.starts)} starts: with {v} m/s the stone ends {1000 * away:.1f} mm "
        f"from the mark, at {1000 * speed:.1f} mm/s"
    )
    status = task.throw(search.throws[best]).status
    console.print(
        f"up to {status.contacts.item()} contacts at a time; they overlap by {1000 * status.penetration.item():.1f} mm at most, "
        f"speeds are solved to {status.residual.item():.0e} m/s"
    )
    if str(args.out) != "-":
        from pictures.heap import draw

        console.print(f"picture: {draw(task, search, args.out)}")
    return task, search


def check() -> None:
    """The stone arrives; everything lies on the hills, not in them; the gradient is that of the throw."""
    task, search = main(["--quick", "--out", "-"])
    best = search.best()
    assert (search.errors[best] < CLOSE).all(), search.errors[best]
    traj = task.throw(search.throws[best])
    model, q = task.sim.model, traj.q[-1]
    for name in model.shape_names:
        assert name == "hills" or cs.distance(model, q, "hills", name).gap > -2e-3, name
    # central differences over a few steps, before anything decides between two ways to go on
    x = torch.tensor(GUESS, dtype=torch.float64, requires_grad=True)
    task.steps = 30
    (gradient,) = torch.autograd.grad(loss_of(task.errors(task.throw(x))), x)
    for i, e in enumerate(1e-6 * torch.eye(3, dtype=torch.float64)):
        above, below = (loss_of(task.errors(task.throw(x.detach() + side * e))) for side in (1, -1))
        assert abs((above - below) / 2e-6 - gradient[i]) < 1e-4 * gradient.norm(), (i, gradient)


if __name__ == "__main__":
    torch.set_num_threads(1)
    cs.set_num_threads(1)
    main()
