"""Crowds: many worlds of a robot on any device, in torch alone, what is done with them, and a look at what happens in them.

States and controls are drawn as in gait.py, on the device: a robot with servos trots in place, one with motors thrashes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import tau
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import costate as cs
from bench.gait import HOLD, NOISE, POWER
from bench.robots import Robot
from bench.timing import Work

UNSOLVED = 1e-4  # m/s, natural residual of a step that counts as not solved
LEAST, MOST = 3, 200  # how often something is timed


class Dice:
    """Random numbers [*shape] in float64 on a device, from one seed."""

    def __init__(self, device: str, seed: int) -> None:
        self._options: dict[str, Any] = {"device": device, "dtype": torch.float64}
        self._options["generator"] = torch.Generator(device=device).manual_seed(seed)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Between low and high."""
        return low + (high - low) * torch.rand(*shape, **self._options)

    def normal(self, *shape: int) -> Tensor:
        """Of mean 0 and deviation 1."""
        return torch.randn(*shape, **self._options)


@dataclass(frozen=True)
class Crowd:
    """States q [worlds, nq], v [worlds, nv] in the middle of something, and controls [steps, worlds, nu] that go on with it."""

    robot: Robot
    model: cs.Model
    dt: float  # s
    start: cs.State
    controls: Tensor
    margin: float | None = None  # m, of contacts; None: as it is by default

    @property
    def world_steps(self) -> int:
        """Steps of all worlds together."""
        return self.controls.shape[0] * self.controls.shape[1]

    def simulator(self, **options: Any) -> cs.Simulator:
        """On the device and in the precision of the states."""
        q = self.start.q
        options = {"contact": cs.Contact(margin=self.margin), **options}
        return cs.Simulator(self.model, self.dt, device=str(q.device), dtype=q.dtype, **options)


def gather(
    robot: Robot, model: cs.Model, worlds: int, steps: int, *, dt: float, burn_in: int, device: str, dtype: torch.dtype,
    margin: float | None = None, seed: int = 0,
) -> Crowd:  # fmt: skip
    """Random states around the stance, random controls, and `burn_in` steps of them behind us."""
    dice = Dice(device, seed)
    draw = _trot if robot.kp else _thrash
    start, controls = _start(robot, worlds, dice), draw(robot, worlds, burn_in + steps, dt, dice).to(dtype)
    crowd = Crowd(robot, model, dt, cs.State(*(x.to(dtype) for x in start)), controls[burn_in:], margin)
    sim = crowd.simulator()
    sim.compile(gradient=False, worlds=worlds)
    with torch.no_grad():
        traj = sim.rollout(crowd.start, controls[:burn_in])
    return replace(crowd, start=cs.State(*(x.clone() for x in traj[-1])), controls=controls[burn_in:].clone())


def _start(robot: Robot, worlds: int, dice: Dice) -> cs.State:
    """The base within 1 cm and a few degrees of upright, at 0.1 m/s and rad/s; hinges 0.1 rad from the stance, at 0.3 rad/s."""
    nu = robot.nu
    pos, stance = dice.uniform(-0.01, 0.01, worlds, 3), dice.uniform(-0.1, 0.1, worlds, nu)
    quat = nn.functional.pad(0.015 * dice.normal(worlds, 3), (1, 0), value=1.0)
    q = (pos + pos.new_tensor(robot.links[0].pos), quat / quat.norm(dim=-1, keepdim=True), stance + pos.new_tensor(robot.stance))
    return cs.State(torch.cat(q, -1), dice.normal(worlds, 6 + nu) * pos.new_tensor([0.1] * 6 + [0.3] * nu))


def _trot(robot: Robot, worlds: int, steps: int, dt: float, dice: Dice) -> Tensor:
    """Servo targets [steps, worlds, 12] of a trot in place, each world with its own height (from 0: standing), pace and phase."""
    height, pace, phase = (dice.uniform(*span, worlds, 1) for span in ((0.0, 0.15), (1.5, 2.5), (0.0, 1.0)))
    out = NOISE * dice.normal(steps, worlds, robot.nu) + height.new_tensor(robot.stance)
    # legs 0 and 3 stand crosswise, and so do 1 and 2
    clock = phase + height.new_tensor((0.0, 0.5, 0.5, 0.0)) + pace * dt * torch.arange(steps, device=out.device)[:, None, None]
    lift, legs = height * (tau * clock).sin().clamp(min=0), out.unflatten(-1, (4, 3))
    legs[..., 1] += lift
    legs[..., 2] -= 2 * lift
    return out


def _thrash(robot: Robot, worlds: int, steps: int, dt: float, dice: Dice) -> Tensor:
    """Motors [steps, worlds, nu] anywhere up to POWER backwards or forwards, a new choice every HOLD steps."""
    return dice.uniform(-POWER, POWER, -(-steps // HOLD), worlds, robot.nu).repeat_interleave(HOLD, 0)[:steps]


class Policy(nn.Module):
    """A network 64-64 that reads q and v and adds to the controls of a crowd, between two steps."""

    def __init__(self, crowd: Crowd, *, seed: int = 0) -> None:
        super().__init__()
        self.controls, model = crowd.controls, crowd.model
        torch.manual_seed(seed)
        sizes = (model.nq + model.nv, 64, 64, model.nu)
        layers = [layer for n, m in pairwise(sizes) for layer in (nn.Linear(n, m), nn.Tanh())]
        self.layers = nn.Sequential(*layers).to(crowd.controls)

    def forward(self, state: cs.State, carry: None, t: int) -> Tensor:
        return self.controls[t] + 0.05 * self.layers(torch.cat(state, -1))


# ---- what is timed ------------------------------------------------------------------------------------------------------
def forward(sim: cs.Simulator, crowd: Crowd, policy: Policy | None = None) -> Work:
    """A rollout without gradient, of all controls in one call or step by step with a policy."""
    inputs, steps = policy or crowd.controls, len(crowd.controls)

    def work() -> cs.Trajectory:
        with torch.no_grad():
            return sim.rollout(crowd.start, inputs, steps=steps)

    return work


def both(sim: cs.Simulator, crowd: Crowd, policy: Policy | None = None) -> Callable[[], tuple[Any, ...]]:
    """A rollout and the gradient of all its states by the first one, all parameters, and the controls or the policy's weights."""
    q, v, u = (x.clone().requires_grad_() for x in (*crowd.start, crowd.controls))
    params = sim.model.params(dtype=sim.dtype, requires_grad=True)
    inputs, by = (u, [u]) if policy is None else (policy, list(policy.parameters()))
    wanted = [q, v, *by, *(x for x in params.leaves() if x.numel())]
    bars = [x.new_ones(len(u) + 1, *x.shape) for x in (q, v)]

    def work() -> tuple[Any, ...]:
        traj = sim.rollout(cs.State(q, v), inputs, params, steps=len(u))
        return torch.autograd.grad((traj.q, traj.v), wanted, bars, allow_unused=True)

    return work


def largest(gradients: tuple[Any, ...]) -> float:
    """The largest entry of several tensors, wherever they are; not finite if any is not."""
    return float(torch.stack([g.abs().max().double().cpu() for g in gradients if g is not None]).max())


def timed(work: Work, device: str, *, seconds: float) -> float:
    """Seconds of a call, the median of several that take `seconds` together; the first, which may compile, is not among them."""
    wait: Work = torch.cuda.synchronize if device.startswith("cuda") else (lambda: None)
    work()
    spent: list[float] = []
    while len(spent) < LEAST or (sum(spent) < seconds and len(spent) < MOST):
        wait()
        began = perf_counter()
        work()
        wait()
        spent.append(perf_counter() - began)
    return median(spent)


class Look(NamedTuple):
    """What happens in a crowd."""

    contacts: float  # contacts with rows, mean over all steps of all worlds
    unsolved: float  # share of steps with a natural residual above UNSOLVED
    worst: float  # m/s, the largest residual
    deepest: float  # m, the deepest penetration
    lost: int  # worlds that diverged, and steps that had more contacts than there was room for


def look(sim: cs.Simulator, crowd: Crowd, policy: Policy | None = None) -> Look:
    """Step by step, each step with a status of its own."""
    state, contacts, residuals, depths, lost = crowd.start, [], [], [], 0
    with torch.no_grad():
        for t, given in enumerate(crowd.controls):
            control = given if policy is None else policy(state, None, t)
            traj = sim.rollout(state, control.unsqueeze(0))
            state = traj[-1]
            contacts.append(traj.status.contacts.double().mean())
            residuals.append(traj.status.residual)
            depths.append(traj.status.penetration.max())
            lost += int(traj.diverged.sum() + traj.status.overflow.sum())
    residual = torch.stack(residuals)
    unsolved = float((residual > UNSOLVED).double().mean())
    return Look(float(torch.stack(contacts).mean()), unsolved, float(residual.max()), float(max(depths)), lost)
