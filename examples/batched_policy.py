"""Train a small network to swing up and hold a pendulum, by backpropagation through the simulator.

The policy sits inside the rollout: state -> network -> torque -> step, 96 worlds side by side. The gradient of what the motion
costs arrives at the network's weights through every step; no value function, no sampling of actions.

    python examples/batched_policy.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import costate as cs

WORLDS = 96
STEPS, SUBSTEPS, DT = 60, 4, 0.0125  # three seconds, a new torque every 0.05 s
LIMIT = 6.0  # N m; holding the rod level takes 4.9


def pendulum() -> cs.Model:
    """A rod of 1 m and 1 kg with a motor in its hinge; q = 0 hangs down."""
    scene = cs.Scene()
    rod = cs.Capsule(0.02, 0.5, mass=1.0, pos=(0.0, 0.0, -0.5))
    scene.add_body("rod", joint=cs.Revolute(axis=(0.0, 1.0, 0.0), damping=0.05), shapes=rod)
    scene.add_motor("rod", gear=LIMIT)
    return scene.build()


class Policy(nn.Module):
    """(cos q, sin q, v) -> torque between -1 and 1."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1), nn.Tanh()
        ).double()

    def forward(self, state: cs.State, carry: None, t: int) -> Tensor:
        return self.layers(torch.cat((state.q.cos(), state.q.sin(), 0.2 * state.v), -1))


def random_state(count: int, random: torch.Generator) -> cs.State:
    """Anywhere on the circle, at most 2 rad/s."""
    q, v = (torch.rand(count, 1, dtype=torch.float64, generator=random) * 2 - 1 for _ in range(2))
    return cs.State(torch.pi * q, 2 * v)


def cost(traj: cs.Trajectory) -> Tensor:
    """Distance from upright, most of all in the second half, and a little for speed and torque."""
    height = 1 + traj.q.cos()  # 0 when upright
    half = len(traj) // 2
    return height.mean() + 2 * height[half:].mean() + 0.02 * traj.v[half:].square().mean() + 0.01 * traj.controls.square().mean()


def train(*, iterations: int = 60, seed: int = 0) -> tuple[Policy, list[float]]:
    """The trained policy, and the cost at every iteration."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    sim, policy, costs = cs.Simulator(pendulum(), dt=DT), Policy(), []
    optimiser = torch.optim.Adam(policy.parameters(), lr=1e-2)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    for _ in range(iterations):
        optimiser.zero_grad()
        loss = cost(sim.rollout(random_state(WORLDS, random), policy, steps=STEPS, substeps=SUBSTEPS))
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        slower.step()
        costs.append(loss.item())
    return policy, costs


def success(policy: Policy) -> float:
    """The share of fresh worlds that stand upright (within 0.2 rad) after three seconds."""
    sim = cs.Simulator(pendulum(), dt=DT)
    with torch.no_grad():
        end = sim.rollout(random_state(512, torch.Generator().manual_seed(1)), policy, steps=STEPS, substeps=SUBSTEPS)[-1]
    return (end.q.cos() < -torch.tensor(0.2).cos()).double().mean().item()


def check() -> None:
    """More than nine of ten worlds are upright."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a network this small only waits for other threads, for long on a busy machine
    try:
        policy, costs = train()
    finally:
        torch.set_num_threads(threads)
    share = success(policy)
    assert share > 0.9, (share, costs[-1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    policy, costs = train()
    print("cost:", " ".join(f"{c:.2f}" for c in costs[::10]), f"{costs[-1]:.2f}")
    print(f"{success(policy):.0%} of 512 fresh worlds are upright after {STEPS * SUBSTEPS * DT:g} s")
