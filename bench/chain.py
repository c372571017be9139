"""Chains of 10, 100 and 1,000 links: does the time per link stay the same?"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import torch

import costate as cs
from bench import models as m
from bench.robots import chain
from bench.tables import Table, times, us
from bench.timing import interleaved

WORLDS = 64
STEPS = 10  # per call, so that the price of a call is not taken for that of a short chain
DT = 0.001
LENGTHS = (10, 100, 1000)
TARGET = 1.5


def run(*, quick: bool) -> list[Table]:
    """One row per length."""
    table = Table(
        f"Chains, {WORLDS} worlds, float64",
        ("links", "costate step, us per link and world", "step and backward, us per link and world", "MuJoCo mj_step, us per link", "mj_step / costate step"),
        notes=f"Rollouts of {STEPS} steps, divided by steps, worlds and links; backward is by the first state, the controls and all "
        "parameters. MuJoCo runs one world, inside one call.",
    )  # fmt: skip
    per_link: dict[int, tuple[float, float]] = {}
    for n in LENGTHS:
        m.check_agreement(chain(n), 1)
        forward, both, theirs = _times(n, quick=quick)
        per_link[n] = forward, both
        table.add(f"{n:,}", us(forward), us(both), us(theirs), times(theirs / forward))
    for k, what in enumerate(("step", "step and backward")):
        growth = per_link[LENGTHS[-1]][k] / per_link[LENGTHS[0]][k]
        table.target(f"{what}: time per link of 1,000 links under {TARGET} times that of 10 links: {growth:.2f}", growth < TARGET)
    return [table]


def _times(n: int, *, quick: bool) -> tuple[float, ...]:
    """Seconds per link: step, step and backward (per world), and mj_step."""
    robot, steps = chain(n), STEPS
    model = m.costate_model(robot)
    sim = cs.Simulator(model, dt=DT)
    worlds = m.random_worlds(robot, WORLDS)
    q, v = torch.tensor(0.1 * worlds.q), torch.tensor(0.1 * worlds.v)
    controls = torch.tensor(0.01 * np.random.default_rng(2).normal(size=(STEPS, WORLDS, model.nu)))

    def forward() -> None:
        with torch.no_grad():
            sim.rollout(cs.State(q, v), controls)

    leaves = [x.clone().requires_grad_() for x in (q, v, controls)]
    params = model.params(requires_grad=True)
    wanted = [*leaves, *(t for t in params.leaves() if t.numel())]

    def both() -> None:
        end = sim.rollout(cs.State(*leaves[:2]), leaves[2], params)[-1]
        torch.autograd.grad((end.q, end.v), wanted, (q, v), allow_unused=True)

    works = {"forward": forward, "both": both, "mujoco": _mujoco(n, worlds, steps)}
    spent = interleaved(works, quick=quick)
    share = steps * n
    return spent["forward"] / (share * WORLDS), spent["both"] / (share * WORLDS), spent["mujoco"] / share


def _mujoco(n: int, worlds: m.Worlds, steps: int) -> Callable[[], None]:
    """From the same state every time: a thousand links driven at random would not stay finite for ever."""
    mj = m.mujoco_model(chain(n), dt=DT)
    data = mujoco.MjData(mj)

    def work() -> None:
        data.qpos[:], data.qvel[:] = 0.1 * worlds.q[0], 0.1 * worlds.v[0]
        mujoco.mj_step(mj, data, steps)

    return work
