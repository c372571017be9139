"""Balance a cart-pole by LQR: exact A and B of a step from `sim.linearize`, no finite differences.

Linearised about the upright pole the step is  x+ = A x + B u,  x = (difference(q*, q), v). The Riccati recursion turns A, B and
the price of errors and of control into a feedback u = -K x, which is then tried on many worlds at once, each pushed differently.

    python examples/ilqr_like_linearize.py
"""

from __future__ import annotations

import torch
from torch import Tensor

import costate as cs

DT = 0.02
WORLDS = 512
STEPS = 400


def cart_pole() -> cs.Model:
    """A cart of 1 kg on a rail along x, with a pole of 0.8 m that stands on it for q = 0."""
    scene = cs.Scene()
    scene.add_body("cart", joint=cs.Prismatic(axis=(1.0, 0.0, 0.0), damping=0.1), shapes=cs.Box((0.15, 0.1, 0.05), mass=1.0))
    pole = cs.Capsule(0.02, 0.4, mass=0.3, pos=(0.0, 0.0, 0.4))
    scene.add_body("pole", parent="cart", joint=cs.Revolute(axis=(0.0, 1.0, 0.0), damping=0.002), shapes=pole)
    scene.add_motor("cart")
    return scene.build()


def riccati(A: Tensor, B: Tensor, Q: Tensor, R: Tensor, *, iterations: int = 500) -> Tensor:
    """The feedback K of the infinite horizon: the recursion, run until it stands."""
    P = Q
    for _ in range(iterations):
        K = torch.linalg.solve(R + B.mT @ P @ B, B.mT @ P @ A)
        P = Q + A.mT @ P @ (A - B @ K)
    return K


def balance() -> tuple[Tensor, cs.Trajectory]:
    """K [1, 4], and the motion of worlds that start tilted by up to 0.3 rad."""
    model = cart_pole()
    sim = cs.Simulator(model, dt=DT)
    upright = sim.initial_state()
    A, B = sim.linearize(upright, torch.zeros(model.nu, dtype=torch.float64))
    price = torch.diag(torch.tensor([1.0, 10.0, 0.1, 0.1], dtype=torch.float64))
    K = riccati(A, B, price, 0.01 * torch.eye(model.nu, dtype=torch.float64))

    def policy(state: cs.State, carry: None, t: int) -> Tensor:
        x = torch.cat((model.difference(upright.q, state.q), state.v), -1)
        return -x @ K.mT

    random = torch.Generator().manual_seed(0)
    start = sim.initial_state(WORLDS)
    push = torch.rand(WORLDS, 2, dtype=torch.float64, generator=random) * 2 - 1
    start = cs.State(start.q + push * torch.tensor([0.5, 0.3], dtype=torch.float64), start.v)
    with torch.no_grad():
        return K, sim.rollout(start, policy, steps=STEPS)


def check() -> None:
    """Every world stands upright in the middle after eight seconds."""
    _, traj = balance()
    assert not traj.diverged.any()
    assert traj.q[-1].abs().max() < 1e-2 and traj.v[-1].abs().max() < 1e-2


if __name__ == "__main__":
    K, traj = balance()
    print(f"K = {[round(x, 3) for x in K[0].tolist()]}")
    for t in range(0, STEPS + 1, 50):
        cart, pole = traj.q[t].abs().amax(0).tolist()
        print(f"t = {t * DT:4.1f} s   largest tilt {pole:.5f} rad   farthest cart {cart:.5f} m")
