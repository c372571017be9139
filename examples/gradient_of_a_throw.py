"""Throw a stick so that it arrives upright at a target: gradients by an initial velocity.

The stick is a free body with air drag. Its position and its turn after one second depend on the six numbers of the velocity
it leaves the hand with; the derivative of that map comes from one backward pass through the rollout.

    python examples/gradient_of_a_throw.py
"""

from __future__ import annotations

import torch

import costate as cs

TARGET = (4.0, 1.0, 1.5)  # m
STEPS, DT = 200, 0.005


def stick() -> cs.Model:
    """A rod of 0.6 m and half a kilogram in the air, held level and pointing forwards."""
    scene = cs.Scene()
    drag = (0.05, 0.05, 0.05, 0.002, 0.002, 0.002)  # N s/m and N m s/rad
    level = (0.5**0.5, 0.0, 0.5**0.5, 0.0)  # a quarter turn about y: the rod's axis z points along x
    rod = cs.Capsule(0.015, 0.3, mass=0.5)
    scene.add_body("stick", joint=cs.Free(damping=drag), pos=(0.0, 0.0, 1.2), quat=level, shapes=rod)
    return scene.build()


def throw(*, iterations: int = 200) -> tuple[torch.Tensor, float, float]:
    """The velocity to throw with; how far from the target it arrives, m; and how far from upright, rad."""
    model = stick()
    sim = cs.Simulator(model, dt=DT)
    goal = torch.tensor([*TARGET, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64)  # upright: the identity
    velocity = torch.tensor([3.0, 0.0, 3.0, 0.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([velocity], lr=0.2)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    for _ in range(iterations):
        optimiser.zero_grad()
        end = sim.rollout(cs.State(sim.initial_state().q, velocity), steps=STEPS)[-1]
        # difference() measures turns on the manifold: three numbers, not four
        miss = model.difference(end.q, goal)
        miss.square().sum().backward()
        optimiser.step()
        slower.step()
    distance, tilt = miss[:3].norm().item(), miss[3:].norm().item()
    return velocity.detach(), distance, tilt


def check() -> None:
    """Arrives within a millimetre and a thousandth of a radian."""
    _, distance, tilt = throw()
    assert distance < 1e-3 and tilt < 1e-3, (distance, tilt)


if __name__ == "__main__":
    velocity, distance, tilt = throw()
    linear, spin = ([round(x, 3) for x in part.tolist()] for part in (velocity[:3], velocity[3:]))
    print(f"throw with {linear} m/s, spinning {spin} rad/s")
    print(f"arrives {1000 * distance:.3f} mm from the target, {1000 * tilt:.3f} mrad from upright")
