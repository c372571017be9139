"""Find the length of a clock's pendulum by its gradient: numbers given to a Scene may be torch tensors.

A length is not a parameter of the engine. It changes the rod's mass, its centre of mass, its inertia and where the bob hangs, all
at once. `scene.params()` keeps the graph of the numbers the scene was built from, so the gradient of a rollout arrives at the
length itself.

    python examples/link_length.py
"""

from __future__ import annotations

import torch
from torch import Tensor

import costate as cs

AMPLITUDE = 0.05  # rad
SECOND = 1.0  # s, one swing from side to side
STEPS = 1000


def clock(length: Tensor | float) -> cs.Scene:
    """A wooden rod of `length` (m) that hangs from a hinge, with a brass bob at its end."""
    scene = cs.Scene()
    rod = cs.Cylinder(0.006, length / 2, density=700.0, pos=(0.0, 0.0, -length / 2))
    scene.add_body("rod", joint=cs.Revolute(axis=(0.0, 1.0, 0.0)), shapes=rod)
    scene.add_body("bob", parent="rod", pos=(0.0, 0.0, -length), shapes=cs.Cylinder(0.05, 0.01, density=8500.0))
    return scene


def late(length: Tensor) -> Tensor:
    """The rate (rad/s) after one second, let go at one side: zero if that is just where it turns round."""
    scene = clock(length)
    model = scene.build()
    sim = cs.Simulator(model, dt=SECOND / STEPS)
    start = cs.State(torch.full((1,), AMPLITUDE, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    return sim.rollout(start, params=scene.params(), steps=STEPS)[-1].v[0]


def find(length: float = 0.8, *, iterations: int = 8) -> float:
    """Newton's method: the gradient of one number by one number."""
    x = torch.tensor(length, dtype=torch.float64, requires_grad=True)
    for _ in range(iterations):
        rate = late(x)
        (slope,) = torch.autograd.grad(rate, x)
        with torch.no_grad():
            x -= rate / slope
    return x.item()


def swing(length: float) -> float:
    """One swing by the textbook: pi sqrt(I / (m g d)), and the first correction for the amplitude."""
    model = clock(length).build()
    zero = torch.zeros(1, dtype=torch.float64)
    inertia = cs.mass_matrix(model, zero).item()
    slope = cs.inverse_dynamics(model, zero + 1e-6, zero, zero).item() / 1e-6  # m g d
    return torch.pi * (inertia / slope) ** 0.5 * (1 + AMPLITUDE**2 / 16)


def check() -> None:
    """The gradient equals central differences of rebuilt clocks, and the found clock ticks seconds."""
    x, eps = torch.tensor(0.8, dtype=torch.float64, requires_grad=True), 1e-6
    (slope,) = torch.autograd.grad(late(x), x)
    with torch.no_grad():
        difference = (late(x + eps) - late(x - eps)) / (2 * eps)
    assert abs(slope / difference - 1) < 1e-6, (slope, difference)
    assert abs(swing(find()) - SECOND) < 1e-3  # the integrator is of first order in the step


if __name__ == "__main__":
    found = find()
    print(f"a pendulum of {1000 * found:.2f} mm swings in {SECOND} s; by the textbook in {swing(found):.6f} s")
