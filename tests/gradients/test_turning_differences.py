"""Derivatives of steps with torsional and rolling friction against central differences: held, turning and sliding, both modes.

Worlds are drawn as in contact_scenes.py, each with its own parameters; the bodies also spin, slowly or fast, so that each of the
rows against turning is held in some worlds and turns in others. What a row of turning does is not shown by `Info`, so its kinks
have no names here; they count as differences that disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import costate as cs
from costate._native.cpu import Engine
from tests.gradients import contact_differences as differences
from tests.gradients.contact_scenes import SITUATIONS, STEP_SIZES, TILT, Worlds, chosen, free, pick, put, random_params, run_on
from tests.gradients.scenes import generator, normal

# Those of test_contact_differences.py, where their reasons are
MEDIAN, WORST, KINKS = 1e-7, 1e-4, 0.02
BOTH = ("implicit", "exact")
COUNT = 40
INPUTS = (
    "q", "v", "external", "dt", "gravity", "mass", "inertia", "com", "shape_size", "shape_pos", "friction", "torsion", "rolling",
    "softness",
)  # fmt: skip
SURFACE: dict[str, Any] = {"torsion": 0.02, "rolling": 0.01, "restitution": 0.5}


def on_plane(shape: cs.Shape, **options: Any) -> cs.Scene:
    """A body whose shape sits off its origin, and a tilted plane."""
    scene = cs.Scene(**options)
    plane = cs.Plane(pos=(0.1, -0.2, 0.05), quat=TILT, friction=0.7, torsion=0.03, rolling=0.005, restitution=0.6)
    scene.add_shape(plane)
    scene.add_body("body", **free(shape))
    return scene


def ball(condim: int) -> cs.Scene:
    return on_plane(cs.Sphere(0.1, pos=(0.02, 0.01, -0.03), condim=condim, **SURFACE))


def capsule(condim: int) -> cs.Scene:
    shape = cs.Capsule(0.06, 0.12, pos=(0.02, 0.01, -0.03), quat=(0.8, 0.3, 0.2, -0.1), condim=condim, **SURFACE)
    return on_plane(shape, friction_rule="product")


def two_balls(condim: int) -> cs.Scene:
    """No ground; of the two pairs of coefficients the larger, or the mean."""
    scene = cs.Scene(friction_rule="maximum" if condim == 4 else "arithmetic")
    scene.add_body("a", **free(cs.Sphere(0.1, pos=(0.01, 0.0, 0.02), condim=condim, **SURFACE)))
    scene.add_body("b", **free(cs.Sphere(0.07, pos=(0.0, 0.02, 0.0), torsion=0.01, rolling=0.02), pos=(0.1, 0.1, 0.1)))
    return scene


def heap() -> cs.Scene:
    """Bodies that lean on each other, with condim 1, 3, 4 and 6 in one model."""
    scene = cs.Scene(friction_rule="arithmetic")
    scene.add_shape(cs.Plane(quat=(1.0, -0.02, 0.04, 0.1), condim=1, **SURFACE))
    scene.add_body("ball", **free(cs.Sphere(0.08, condim=6, **SURFACE), pos=(0.13, 0.0, 0.079)))
    scene.add_body("rod", **free(cs.Capsule(0.05, 0.1, quat=(0.7, 0.7, 0.0, 0.0), condim=3, **SURFACE), pos=(0.0, 0.0, 0.049)))
    scene.add_body("stone", **free(cs.Sphere(0.07, condim=4, **SURFACE), pos=(0.07, 0.1, 0.069)))
    scene.add_body("pebble", **free(cs.Sphere(0.05, condim=1, **SURFACE), pos=(0.07, 0.01, 0.16)))
    return scene


def worlds(model: cs.Model, seed: int, count: int = COUNT) -> Worlds:
    """Random worlds of one pair of shapes, or of a heap; half of them spin fast, half slowly."""
    gen = generator(seed)
    if len(model.pairs) == 1:
        # what lies flat has contacts that nobody could tell apart
        some = [s for s in SITUATIONS.values() if not s.flat]
        situations = (some * (count // len(some) + 1))[:count]
        params = random_params(model, gen, count)
        params = params.replace(friction=params["friction"] * torch.tensor([[s.friction] for s in situations]))
        q, v = put(model, gen, params, situations)
    else:
        q, v, params = chosen(model, gen, count)
    spin = pick(gen, (0.003, 0.3, 4.0), count, 1) * normal(gen, count, model.nv)
    v = v + torch.where(torch.arange(model.nv) % 6 >= 3, spin, torch.zeros_like(spin))
    inputs = {
        "q": q, "v": v, "control": normal(gen, count, 0), "dt": pick(gen, STEP_SIZES, count),
        "external": normal(gen, count, model.nb, 6) * torch.tensor([0.1, 0.1, 0.1, 1.0, 1.0, 1.0]),
    }  # fmt: skip
    return run_on(Worlds(model, inputs, params), gen, 0.3)


def step(sim: cs.Simulator, x: dict[str, Tensor], params: cs.Params) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """As in contact_differences.py; impulses of several contacts are left out: they share loads with torques in many ways."""
    outputs, branches = differences.step(sim, x, params)
    if sim.model.engine.tree.max_contacts > 1:
        del outputs["impulse"]
    return outputs, branches


def check(some: Worlds, only: tuple[str, ...] = INPUTS, options: dict[str, Any] | None = None, **compared: Any) -> None:
    sims = {mode: cs.Simulator(some.model, gradient=mode, **(options or {})) for mode in BOTH}
    cases = differences.compare("turning", some, sims, function=step, only=only, **compared)
    found = differences.summary(cases)
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found
    unused = {"rolling"} if max(some.model.shape_condim) < 6 else set()
    assert {case.input for case in cases if case.exact != 0} >= set(only) - unused, found


SCENES: dict[str, Callable[[int], cs.Scene]] = {"ball": ball, "capsule": capsule, "two balls": two_balls}


@pytest.mark.parametrize("condim", [4, 6])
@pytest.mark.parametrize("scene", list(SCENES))
def test_step(scene, condim):
    check(worlds(SCENES[scene](condim).build(), seed=1))


def test_a_heap_of_mixed_pairs():
    check(worlds(heap().build(), seed=2))


def test_cut_short():
    """Sweeps as they ran, converged or not."""
    check(worlds(ball(6).build(), seed=3), options={"solver": cs.PGS(3, 0)})
    check(worlds(heap().build(), seed=3, count=20), options={"solver": cs.PGS(3, 0, form="half-solved")})


def test_without_matrices():
    """The form of large models, on a small one. Kinks are nearer there: see test_large_differences.py."""
    model = heap().build()
    model.__dict__["engine"] = Engine(model, large=1)
    assert model.engine.tree.large
    check(worlds(model, seed=4, count=20), first=2e-6, as_ran=True)


# ---- rollouts ------------------------------------------------------------------------------------------------------
FIELDS = ("torsion", "rolling", "friction", "mass", "shape_size", "restitution")
STEPS, ROLLOUT = (1e-5, 1e-6, 1e-7), 1e-6  # of differences, and how well the best of them agrees


def check_rollout(model: cs.Model, v: list[float], steps: int, dt: float, **options: Any) -> None:
    """Where everything is in the end, weighted, by the start and by parameters, along one direction of each."""
    for mode in BOTH:
        sim, gen = cs.Simulator(model, dt, gradient=mode, **options), generator(5)
        q0, v0 = sim.initial_state().q, torch.tensor(v, dtype=torch.float64)
        base = {"q": torch.zeros(model.nv, dtype=torch.float64), "v": v0, **{name: model.params()[name] for name in FIELDS}}
        along = {name: normal(gen, *x.shape) * (0.1 if name in ("q", "v") else 0.1 * x) for name, x in base.items()}
        weights = normal(gen, model.nq + model.nv)

        def loss(x: dict[str, Tensor]) -> Tensor:
            params = model.params().replace(**{name: x[name] for name in FIELDS})
            traj = sim.rollout(cs.State(model.integrate(q0, x["q"]), x["v"]), params=params, steps=steps)  # noqa: B023
            assert traj.status.converged
            return torch.cat((traj.q[-1], traj.v[-1])) @ weights  # noqa: B023

        leaves = {name: x.clone().requires_grad_() for name, x in base.items()}
        grads = dict(zip(leaves, torch.autograd.grad(loss(leaves), list(leaves.values())), strict=True))
        for name, d in along.items():
            exact = float((grads[name] * d).sum())
            with torch.no_grad():
                sides = [[float(loss({**base, name: base[name] + s * h * d})) for s in (1, -1)] for h in STEPS]
            found = [(up - down) / (2 * h) for h, (up, down) in zip(STEPS, sides)]
            error = min(abs(x - exact) for x in found)
            assert error < ROLLOUT * max(1.0, abs(exact)), (mode, name, exact, found)
            assert exact != 0, (mode, name)


@pytest.mark.parametrize("impacts", [None, "toi"])
def test_a_ball_that_bounces_slides_spins_and_rolls(impacts):
    """At coarse steps, hits in time or not; hits take spin too."""
    scene = cs.Scene(friction_rule="arithmetic", restitution_rule="product")
    scene.add_shape(cs.Plane(quat=(1.0, 0.01, -0.02, 0.1), friction=0.05, torsion=0.004, rolling=0.002, restitution=0.9))
    shape = cs.Sphere(0.1, mass=0.8, condim=6, friction=0.1, torsion=0.006, rolling=0.003, restitution=0.5)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.3), shapes=shape)
    check_rollout(scene.build(), [1.0, 0.4, -1.0, 0.5, -1.0, 8.0], 60, 1 / 60, impacts=impacts)


def test_held_on_a_slope():
    """It lies still, and what would move it a little changes nothing: no gradient by torsion or rolling, none by the speed."""
    scene = cs.Scene(friction_rule="maximum")
    scene.add_shape(cs.Plane(quat=(1.0, 0.02, -0.03, 0.0)))
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, condim=6, torsion=0.02, rolling=0.02))
    model = scene.build()
    for mode in BOTH:
        sim = cs.Simulator(model, 0.01, gradient=mode)
        start = sim.rollout(sim.initial_state(), steps=150)[-1]
        v = start.v.clone().requires_grad_()
        params = model.params(requires_grad=("torsion", "rolling", "friction"))
        end = sim.step(cs.State(start.q, v), params=params)
        grads = torch.autograd.grad(end.v.sum(), (v, params["torsion"], params["rolling"], params["friction"]))
        assert end.v.abs().max() < 1e-8
        for g in grads:
            assert g.abs().max() < 1e-6, (mode, grads)  # softness, 1e-9 of a row's own, over the lever arm
