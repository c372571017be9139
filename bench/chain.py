"""Chains of 10, 100 and 1,000 links: does the time per link stay the same?"""

from __future__ import annotations

import mujoco
import numpy as np
import torch

import costate as cs
from bench import models as m
from bench.robots import chain
from bench.tables import Table, times, us
from bench.timing import Work, interleaved

WORLDS = 64
LINK_STEPS = 10_000  # links times steps of one call, the same for all lengths: then all carry the same share of a call's price
DT = 0.001
LENGTHS = (10, 100, 1000)
TARGET = 1.5
NOTES = f"""Microseconds per link, step and world. One call is a rollout of {LINK_STEPS // LENGTHS[0]:,} steps of 10 links, or of
{LINK_STEPS // LENGTHS[-1]} steps of 1,000: equally many link-steps, so that the price of calling weighs the same, and all
lengths take turns. Backward is by the first state, the controls and all parameters. MuJoCo steps one world, inside one call."""


def run(*, quick: bool) -> list[Table]:
    """One row per length."""
    table = Table(
        f"Chains, {WORLDS} worlds, float64",
        ("links", "costate step", "costate step and backward", "MuJoCo mj_step", "mj_step / costate step"),
        notes=NOTES,
    )
    works: dict[str, Work] = {}
    for n in LENGTHS:
        # The mass matrix of 1,000 links has a condition number of 1e10, and Pinocchio's Data grows with the cube of n.
        m.check_agreement(chain(n), 1, agree=m.AGREE if n <= 100 else 1e-6, pinocchio=n <= 100)
        works |= _works(n)
    spent = interleaved(works, quick=quick)
    per_link = {name: seconds / LINK_STEPS / (1 if "mujoco" in name else WORLDS) for name, seconds in spent.items()}
    for n in LENGTHS:
        forward, both, theirs = (per_link[f"{what} {n}"] for what in ("forward", "both", "mujoco"))
        table.add(f"{n:,}", us(forward), us(both), us(theirs), times(theirs / forward))
    peer = f"MuJoCo mj_step: {us(theirs * n)} us"
    table.summary.append(
        (f"a step of a chain of {n:,} links, {WORLDS} worlds", f"{us(forward * n)} us", peer, times(theirs / forward))
    )
    for key, what in (("forward", "step"), ("both", "step and backward")):
        growth = per_link[f"{key} {LENGTHS[-1]}"] / per_link[f"{key} {LENGTHS[0]}"]
        table.target(f"{what}: time per link of 1,000 links under {TARGET} times that of 10 links: {growth:.2f}", growth < TARGET)
    return [table]


def _works(n: int) -> dict[str, Work]:
    """What is timed of a chain of n links."""
    robot, steps = chain(n), LINK_STEPS // n
    model, worlds = m.costate_model(robot), m.random_worlds(robot, WORLDS)
    sim = cs.Simulator(model, dt=DT)
    q, v = torch.tensor(0.1 * worlds.q), torch.tensor(0.1 * worlds.v)
    controls = torch.tensor(0.01 * np.random.default_rng(2).normal(size=(steps, WORLDS, model.nu)))
    # a world that diverged is held, and would be cheap
    assert not sim.rollout(cs.State(q, v), controls).diverged.any(), f"a chain of {n} links diverged"

    def forward() -> None:
        with torch.no_grad():
            sim.rollout(cs.State(q, v), controls)

    leaves = [x.clone().requires_grad_() for x in (q, v, controls)]
    params = model.params(requires_grad=True)
    wanted = [*leaves, *(t for t in params.leaves() if t.numel())]

    def both() -> None:
        end = sim.rollout(cs.State(*leaves[:2]), leaves[2], params)[-1]
        torch.autograd.grad((end.q, end.v), wanted, (q, v), allow_unused=True)

    return {f"forward {n}": forward, f"both {n}": both, f"mujoco {n}": _mujoco(n, worlds, steps)}


def _mujoco(n: int, worlds: m.Worlds, steps: int) -> Work:
    """From the same state every time, as costate."""
    mj = m.mujoco_model(chain(n), dt=DT)
    data = mujoco.MjData(mj)

    def work() -> None:
        data.qpos[:], data.qvel[:] = 0.1 * worlds.q[0], 0.1 * worlds.v[0]
        mujoco.mj_step(mj, data, steps)

    return work
