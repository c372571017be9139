"""Whatever the scene: a finite step has finite gradients."""

import warnings
from random import Random
from typing import NamedTuple

import pytest
import torch

import costate as cs
from tests.gradients.contact_scenes import step_with_info, worlds
from tests.gradients.random_scenes import random_inputs, random_scene

WORLDS = 4  # of one scene, each with a state of its own
STEPS = 3
BEYOND = 1e12  # a gradient in float64 that float32 may lose


def options(rng):
    """Solvers that converge and solvers that do not."""
    solver = cs.PGS(
        iterations=rng.choice((1, 4, 15, 15)), polish=rng.choice((0, 2, 2)), cone=rng.choice(("disc", "disc", "square", 3, 8)),
        form=rng.choice((None, "dense", "half-solved", "alternating")),
    )  # fmt: skip
    contact = rng.choice((cs.Contact(), cs.Contact(), cs.Contact(margin=0.0, recovery=1.0, push_speed=100.0, bounce_speed=0.0)))
    return {"solver": solver, "contact": contact, "gradient": rng.choice(("implicit", "exact"))}


class Outcome(NamedTuple):
    """Of one random scene in WORLDS random states."""

    dtype: torch.dtype
    bad: list[str]  # gradients that are not finite
    largest: float  # of those that are
    active: int  # worlds with contacts or rows
    diverged: int


def gradients(seed, dtype=None):
    """All gradients of a step and of a short rollout of random scene `seed`, in its own precision or in `dtype`."""
    rng = Random(seed)
    torch.manual_seed(seed)
    model, given = random_scene(rng), options(rng)
    own = rng.choice((torch.float64, torch.float64, torch.float32))
    dtype = own if dtype is None else dtype
    sim = cs.Simulator(model, dtype=dtype, **given)
    x = {name: t.to(dtype).requires_grad_() for name, t in random_inputs(model, rng, WORLDS).items()}
    params = model.params(dtype=dtype).expand(WORLDS).detach(requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of worlds that diverge, and of contacts that were dropped
        after, info = step_with_info(sim, x, params)
        controls = x["control"].expand(STEPS, -1, -1)
        traj = sim.rollout(cs.State(x["q"], x["v"]), controls, params, external=x["external"], dt=x["dt"])
    outputs = {"q": after.q, "v": after.v, "acceleration": info.acceleration, "impulse": info.contacts.impulse}
    outputs = {**{name: y[~info.diverged] for name, y in outputs.items()}, "rollout": traj.q}
    leaves, bad, largest = {**x, **params}, [], 0.0
    for name, y in outputs.items():
        assert torch.isfinite(y).all(), f"scene {seed}: {name}"
        if not y.requires_grad:
            continue
        for leaf, grad in zip(leaves, torch.autograd.grad(y.sum(), list(leaves.values()), retain_graph=True, allow_unused=True)):
            if grad is not None and grad.numel():
                if not torch.isfinite(grad).all():
                    bad.append(f"d {name} / d {leaf}")
                largest = max(largest, grad.nan_to_num(0, 0, 0).abs().max().item())
    active = info.contacts.active.any(-1) | (info.rows.state > 0).any(-1)
    return Outcome(dtype, bad, largest, active.sum().item(), info.diverged.sum().item())


def check(seeds):
    active = diverged = overflows = 0
    for seed in seeds:
        found = gradients(seed)
        if found.bad and found.dtype == torch.float32:
            # shapes that are forced into each other have gradients beyond all bounds, and the range of float32 ends at 3e38
            found = gradients(seed, torch.float64)
            overflows += 1
            assert found.largest > BEYOND, f"scene {seed} in float32: {found.bad}"
        assert not found.bad, f"scene {seed}: {found.bad}"
        active, diverged = active + found.active, diverged + found.diverged
    # what is tested must not be empty
    assert active > 0.5 * WORLDS * len(seeds)
    assert diverged < 0.05 * WORLDS * len(seeds)
    assert overflows < 0.01 * len(seeds)


def test_finite_gradients_in_200_scenes():
    check(range(200))


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_finite_gradients_in_10000_scenes(part):
    count = 10_000 // 20
    check(range(1000 + part * count, 1000 + (part + 1) * count))


@pytest.mark.parametrize("gradient", ["implicit", "exact"])
def test_steps_that_wander_have_finite_gradients(gradient):
    """Many unsolved steps in float32: the derivative of what the solver tried on its way must not overflow."""
    some = worlds("walker", 64, seed=11)
    sim = cs.Simulator(some.model, 0.01, dtype=torch.float32, solver=cs.PGS(20, 12, tolerance=1e-7), gradient=gradient)
    q, v = (some.inputs[name].float().requires_grad_() for name in "qv")
    traj = sim.rollout(cs.State(q, v), steps=40)
    assert traj.status.unconverged.sum() > 100
    bars = torch.autograd.grad(traj.q.sum() + traj.v.sum(), (q, v))
    assert all(bar.isfinite().all() for bar in bars)
