"""Complementarity problems for tests: blocks on a floor in the plane, and random problems with one solution."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

GRAVITY, STEP = 9.81, 0.01  # m/s^2, s


class Block(NamedTuple):
    """A block on a floor, y up; numbers may be tensors with grad. Points [c, 2] are its feet, seen from the centre of mass."""

    mass: Tensor  # kg
    inertia: Tensor  # kg m^2
    velocity: Tensor  # [3] x, y, angle; m/s, rad/s
    mu: Tensor
    force: Tensor  # [3] N, N, N m, besides gravity
    points: Tensor  # [c, 2] m
    target: Tensor  # [c] m/s, speed at which the feet may approach the floor; negative: must leave


def tensor(*numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def number(x: float) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


def block(
    velocity: tuple[float, ...] = (0, 0, 0),
    mu: float = 0.5,
    mass: float = 2.0,
    force: tuple[float, ...] = (0, 0, 0),
    feet: int = 1,
) -> Block:
    """With one foot below the centre, or with two beside it."""
    points = [[0.0, 0.0]] if feet == 1 else [[-0.2, -0.1], [0.3, -0.1]]
    target = torch.zeros(feet, dtype=torch.float64)
    return Block(number(mass), number(0.05), tensor(*velocity), number(mu), tensor(*force), tensor(*points), target)


def problem(block: Block) -> dict[str, Tensor]:
    """M, q, G, m and F of one step: x is the velocity after it, z = (normal impulses, friction along +x and -x, gamma).

    Equation 1 of de Avila Belbute-Peres et al. 2018 with x = v, G = -J, and F with the sign that equation 2 needs.
    """
    c = len(block.points)
    rx, ry = block.points.unbind(-1)
    one, none = torch.ones_like(rx), torch.zeros_like(rx)
    normal, tangent = torch.stack((none, one, rx), -1), torch.stack((one, none, -ry), -1)
    M = torch.diag(torch.stack((block.mass, block.mass, block.inertia)))
    weight = torch.stack((none[0], -block.mass * GRAVITY, none[0]))
    eye, zero = torch.eye(c, dtype=torch.float64), torch.zeros(c, c, dtype=torch.float64)
    F = -torch.cat((
        torch.cat((zero, zero, zero, zero), -1),
        torch.cat((zero, zero, zero, eye), -1),
        torch.cat((zero, zero, zero, eye), -1),
        torch.cat((block.mu * eye, -eye, -eye, zero), -1),
    ))  # fmt: skip
    return {
        "M": M,
        "q": -M @ block.velocity - STEP * (weight + block.force),
        "G": -torch.cat((normal, tangent, -tangent, torch.zeros_like(normal))),
        "m": torch.cat((block.target, torch.zeros(3 * c, dtype=torch.float64))),
        "F": F,
    }


def impulses(z: Tensor) -> Tensor:
    """Normal impulses and total friction along x [..., c + 1] of a block: how feet that stick share friction is not defined."""
    normal, right, left, _ = z.chunk(4, -1)
    return torch.cat((normal, (right - left).sum(-1, keepdim=True)), -1)


# Name -> a block and its state; margins are far from kinks
BLOCKS = {
    "at rest": block(),
    "sticking, pushed": block(force=(5, 0, 0)),
    "sticking, stops": block((0.03, 0, 0)),
    "sliding": block((1, 0, 0)),
    "sliding back, pulled": block((-1, 0, 0), force=(2, 5, 0)),
    "frictionless": block((1, -2, 0), mu=0.0),
    "falls and slides": block((3, -1, 0), mu=0.2),
    "falls and sticks": block((0.1, -1, 0), mu=0.9),
    "lifts": block((1, 0.5, 0)),
    "two feet, sticking": block((0.01, -0.1, 0), feet=2),
    "two feet, sliding": block((1, 0, 0), mu=0.3, feet=2),
    "two feet, one lands": block((1, 0, -4), mu=0.3, feet=2),
}


def random_problem(seed: int, *worlds: int, n: int = 4, p: int = 3, e: int = 1) -> dict[str, Tensor]:
    """Neither M nor F is symmetric; G N G^T - F has a positive definite symmetric part, so there is one solution."""
    gen = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*worlds, *size, generator=gen, dtype=torch.float64)

    def monotone(k: int) -> Tensor:
        root, turn = normal(k, k), normal(k, k)
        return root @ root.mT / k + 0.3 * torch.eye(k, dtype=torch.float64) + 0.5 * (turn - turn.mT)

    return {
        "M": monotone(n), "q": normal(n), "G": normal(p, n), "m": normal(p), "A": normal(e, n), "F": -monotone(p), "b": normal(e)
    }  # fmt: skip
