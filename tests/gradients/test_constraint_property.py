"""Whatever the constraints, also violated or contradicting ones: a finite step has finite gradients, and the status tells."""

import warnings
from random import Random
from typing import NamedTuple

import pytest
import torch

import costate as cs
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.random_scenes import random_constraints, random_inputs
from tests.gradients.test_contact_property import BEYOND, STEPS, WORLDS, options

TOLD = 1e-3  # m/s or rad/s by which constraints must be missed for a warning
NUDGE = 1e-5  # m or rad, of a difference that gives speeds of rows


LOST = 1e9  # m/s: constraints that nothing can keep flung a world away, and rounding has taken what it had in common with them
JUMP = 1e-2  # rad: an error that changes by this between two nearby states is that of a weld half a turn off, which flips


class Outcome(NamedTuple):
    """Of one random scene in WORLDS random states."""

    dtype: torch.dtype
    bad: list[str]  # gradients that are not finite
    largest: float  # of those that are
    rows: int  # equality rows
    contradictions: int  # worlds that miss their constraints
    diverged: int
    lost: int


def missed(sim, x, params, after):
    """[WORLDS] largest speed by which rigid rows are missed, found by moving the worlds along v+; and where that says nothing."""
    model, q, v = sim.model, x["q"].detach(), after.v.detach()
    time = NUDGE / v.abs().amax(-1, keepdim=True).clamp(min=1.0)
    ahead, behind = (cs.constraint_error(model, model.integrate(q, s * time * v), params) for s in (1, -1))
    wish = sim.contact.recovery * cs.constraint_error(model, q, params) / x["dt"].detach().unsqueeze(-1)
    ties = torch.repeat_interleave(params["tie_softness"], torch.tensor([len(locks) for locks in model.tie_locks]).long(), -1)
    rigid = torch.cat((ties, params["coupling_softness"]), -1) == 0
    flipped = ((ahead - behind).abs() > JUMP).any(-1)
    return (((ahead - behind) / (2 * time) + wish) * rigid).detach().abs().amax(-1), flipped


def check_status(seed, sim, x, params, after, info):
    """The status tells of a contradiction exactly where there is one: only without `project` v+ is that of the rows."""
    if sim.project or sim.dtype != torch.float64 or not sim.model.ne:
        return
    (found, flipped), told = missed(sim, x, params, after), info.status.contradiction
    scale = TOLD + 1e-3 * found + 1e-6 * after.v.detach().abs().amax(-1)  # of a difference
    wrong = ((found - told).abs() > scale) & ~info.diverged & ~flipped
    assert not wrong.any(), f"scene {seed}: misses {found.tolist()}, tells {told.tolist()}"


def gradients(seed, dtype=None):
    """All gradients of a step, a short rollout and a projection of random scene `seed`, in its own precision or in `dtype`."""
    rng = Random(seed)
    torch.manual_seed(seed)
    model, given = random_constraints(rng), {**options(rng), "project": rng.choice((0, 0, 1, 1, 1, 2))}
    own = rng.choice((torch.float64, torch.float64, torch.float32))
    dtype = own if dtype is None else dtype
    sim = cs.Simulator(model, dtype=dtype, **given)
    x = {name: t.to(dtype).requires_grad_() for name, t in random_inputs(model, rng, WORLDS).items()}
    params = model.params(dtype=dtype).expand(WORLDS).detach(requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of worlds that diverge, contradictions, contacts that were dropped
        after, info = step_with_info(sim, x, params)
        controls = x["control"].expand(STEPS, -1, -1)
        traj = sim.rollout(cs.State(x["q"], x["v"]), controls, params, external=x["external"], dt=x["dt"])
    check_status(seed, sim, x, params, after, info)
    kept = (after.v.norm(dim=-1) < LOST) & (traj.v.norm(dim=-1).amax(0) < LOST)
    outputs = {"q": after.q, "v": after.v, "acceleration": info.acceleration, "impulse": info.contacts.impulse}
    outputs = {**{name: y[kept & ~info.diverged] for name, y in outputs.items()}, "rollout": traj.q[:, kept]}
    outputs["error"] = cs.constraint_error(model, x["q"], params)
    if dtype == torch.float64:  # test_redundant_ties_of_a_small_body
        outputs["projection"] = cs.project(model, x["q"], params, iterations=2)
    leaves, bad, largest = {**x, **params}, [], 0.0
    for name, y in outputs.items():
        assert torch.isfinite(y).all(), f"scene {seed}: {name}"
        if not y.requires_grad:
            continue
        for leaf, grad in zip(leaves, torch.autograd.grad(y.sum(), list(leaves.values()), retain_graph=True, allow_unused=True)):
            if grad is not None and (grad := grad[kept]).numel():
                if not torch.isfinite(grad).all():
                    bad.append(f"d {name} / d {leaf}")
                largest = max(largest, grad.nan_to_num(0, 0, 0).abs().max().item())
    assert torch.isfinite(info.status.numbers).all(), f"scene {seed}: status"
    contradictions, diverged = (info.status.contradiction > TOLD).sum().item(), info.diverged.sum().item()
    return Outcome(dtype, bad, largest, model.ne, contradictions, diverged, (~kept).sum().item())


def check(seeds):
    outcomes = []
    overflows = 0
    for seed in seeds:
        found = gradients(seed)
        if found.bad and found.dtype == torch.float32:
            # constraints that contradict each other have gradients beyond all bounds, and the range of float32 ends at 3e38
            found = gradients(seed, torch.float64)
            overflows += 1
            assert found.largest > BEYOND, f"scene {seed} in float32: {found.bad}"
        assert not found.bad, f"scene {seed}: {found.bad}"
        outcomes.append(found)
    worlds = WORLDS * len(seeds)
    # what is tested must not be empty
    assert sum(o.rows > 0 for o in outcomes) > 0.8 * len(seeds)
    assert 0.1 * worlds < sum(o.contradictions for o in outcomes) < 0.8 * worlds
    assert sum(o.diverged for o in outcomes) < 0.05 * worlds
    assert sum(o.lost for o in outcomes) < 0.05 * worlds
    assert overflows < 0.02 * len(seeds)


def test_finite_gradients_in_300_scenes():
    check(range(300))


@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_finite_gradients_in_10000_scenes(part):
    count = 10_000 // 20
    check(range(1000 + part * count, 1000 + (part + 1) * count))


def pulled(apart, dtype):
    """A body held at two points of the world, which are further apart than its own by `apart`; and its state after a step."""
    scene = cs.Scene()
    scene.add_body("body", joint=cs.Free(), shapes=cs.Sphere(0.1))
    for x in (0.1, -0.1):
        scene.add_point(None, "body", pos=(x * (1 + apart / 0.2), 0, 0), pos_b=(x, 0, 0))
    model = scene.build()
    sim, params = cs.Simulator(model, dtype=dtype), model.params(requires_grad=True, dtype=dtype)
    return params, lambda: sim.step(sim.initial_state(), params=params, info=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_contradictions_are_told(dtype):
    """What cannot be kept is missed in equal parts, with a warning; redundant points that fit are kept without one."""
    params, step = pulled(0.04, dtype)
    with pytest.warns(RuntimeWarning, match="contradict"):
        after, info = step()
    assert info.status.contradiction.item() == pytest.approx(0.2 * 0.02 / 0.01, rel=1e-3)
    assert torch.isfinite(after.q).all() and after.v.abs().max() < 10
    (grad,) = torch.autograd.grad(after.q[0], params["tie_pos"])
    assert torch.isfinite(grad).all()
    params, step = pulled(0.0, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after, info = step()
    assert info.status.contradiction < 1e-4
    (grad,) = torch.autograd.grad(after.q[2], params["gravity"])
    assert grad.abs().max() < 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_redundant_ties_of_a_small_body(dtype):
    """A small body far from its ties turns much more easily than it slides; rows that repeat others must still cost nothing."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("base", joint=cs.Planar(), shapes=cs.Sphere(0.1, mass=10.0, collide=False))
    small = cs.Sphere(0.02, pos=(0.1, 0.05, -0.03), collide=False)
    scene.add_body("small", parent="base", joint=cs.Ball(), pos=(0.1, 0.2, 0.3), shapes=small)
    for _ in range(3):
        scene.add_weld("base", "small", pos=(0.2, -0.1, 0.15))
    model = scene.build()
    off = torch.tensor([0, 0, 0, 0.01, -0.01, 0.005], dtype=torch.float64)
    q = model.integrate(torch.tensor(model.q0), off).to(dtype)
    after, info = cs.Simulator(model, dtype=dtype).step(cs.State(q, q.new_zeros(6)), info=True)
    assert not info.diverged
    assert after.v.abs().max() < 10
    assert cs.constraint_error(model, cs.project(model, q)).abs().max() < 1e-5
