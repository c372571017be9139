"""Every derivative of steps that an interior point solved against central differences, in the plane and in space.

The comparison, its kinks and its bounds are those of test_contact_differences.py. Its gradient is that of the conditions it
solves, whichever way it came.
"""

import pytest
import torch

import costate as cs
from tests.gradients import test_planar_differences as planar
from tests.gradients.contact_differences import compare, summary
from tests.gradients.contact_differences import step as space_step
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.contact_scenes import worlds as space_worlds
from tests.gradients.planar_scenes import SCENES
from tests.gradients.scenes import generator, normal
from tests.gradients.test_constraint_differences import DOUBT
from tests.gradients.test_contact_known_cases import CLOSED, G, gradients, start
from tests.gradients.test_planar_differences import check

COUNT = 12
SOLVER = cs.InteriorPoint()
SPACE = ("sphere on plane", "capsule on plane", "box on plane", "sphere on sphere", "walker")


def cases(scenes, seed, function=planar.step, count=COUNT, **compared):
    for scene in scenes:
        some = planar.some_worlds(scene, count, seed)
        sims = {"interior": cs.Simulator(some.model, solver=SOLVER)}
        yield from compare(scene, some, sims, function=function, **compared)


@pytest.mark.parametrize("part", [0, 1])
def test_step(part):
    """All inputs and parameters, all planar scenes: stick, slide, stacks, chains with contact, corners of polygons."""
    check(summary(cases(SCENES[part::2], 6, most_doubt=DOUBT)))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(7, 10))
def test_step_in_more_worlds(seed):
    check(summary(cases(SCENES, seed, count=10 * COUNT, most_doubt=DOUBT)))


def test_rollouts():
    scenes = ("rectangle on line", "polygon on rectangle", "pile", "chain")
    check(summary(cases(scenes, 5, planar.rollout, count=8, only=planar.SOME, first=2e-5, most_doubt=1e-3)))


@pytest.mark.parametrize("cone", [4, 5])
def test_step_in_space(cone):
    """With a pyramid of friction."""
    found = []
    for scene in SPACE:
        some = space_worlds(scene, 16, seed=9)
        sims = {"interior": cs.Simulator(some.model, solver=cs.InteriorPoint(cone=cone))}
        found += compare(scene, some, sims, function=space_step, only=(*planar.SOME, "shape_pos", "joint_pos", "restitution"))
    check(summary(found))


def test_the_gradient_is_that_of_sweeps():
    """Where both are solved: of weighted velocities by everything, in most worlds to 1e-6; what redundant rows decide among
    themselves is another matter."""
    for scene in ("circle on line", "rectangle on rectangle", "stack", "ties", "walker"):
        some = planar.some_worlds(scene, COUNT, 8)
        found, solved = [], []
        for solver in (cs.PGS(iterations=2000), SOLVER):
            x = {name: t.clone().requires_grad_() for name, t in some.inputs.items()}
            params = some.params.detach(requires_grad=True)
            state, info = step_with_info(cs.Simulator(some.model, solver=solver), x, params)
            leaves = {name: t for name, t in (*x.items(), *params.items()) if t.numel()}
            found.append(gradients((normal(generator(4), *state.v.shape) * state.v).sum(), leaves))
            solved.append(info.status.converged)
        good = solved[0] & solved[1]
        assert good.double().mean() > 0.8
        for name in found[0]:
            a, b = (grads[name][good].reshape(int(good.sum()), -1) for grads in found)
            off = (a - b).norm(dim=-1) / a.norm(dim=-1).clamp(min=1e-3)
            assert off.median() < 1e-6 and off.quantile(0.9) < 1e-3, (scene, name, off)


# ---- closed forms ---------------------------------------------------------------------------------------------------
def test_a_sliding_block():
    """dx/dmu = -g T^2 / 2, dx/dm = 0: what paper A's own code gets wrong."""
    h, n, mu = 0.005, 60, 0.3
    scene = cs.Scene(planar=True, friction_rule="product")
    scene.add_ground(friction=1.0)
    scene.add_body("block", pos=(0, 0.05), shapes=cs.Rectangle((0.1, 0.05), density=100.0, friction=mu))
    model = scene.build()
    sim, params = cs.Simulator(model, h, solver=SOLVER), model.params(requires_grad=True)
    state = start(sim, block=(3.0, 0))
    x = sim.rollout(state, params=params, steps=n).q[-1, 0]
    assert x.item() == pytest.approx(3.0 * n * h - mu * G * h * h * n * (n + 1) / 2, rel=CLOSED)
    grads, true = gradients(x, {**params, "v": state.v}), -G * (n * h) ** 2 / 2
    assert grads["friction"][model.shape("block/0")].item() == pytest.approx(true * (1 + 1 / n), rel=CLOSED)
    assert grads["mass"].abs().max() < CLOSED and grads["inertia"].abs().max() < CLOSED
    assert grads["v"][0].item() == pytest.approx(n * h, rel=CLOSED)


def test_restitution():
    """v+ = -e v, then a flight: dy/de = -v T."""
    scene = cs.Scene(planar=True, restitution_rule="product")
    scene.add_ground(restitution=1.0)
    scene.add_body("ball", pos=(0, 0.1), shapes=cs.Circle(0.1, density=100.0, restitution=0.6))
    model, h, n, v = scene.build(), 0.002, 50, -2.0
    sim, params = cs.Simulator(model, h, solver=SOLVER), model.params(requires_grad=True)
    state = start(sim, ball=(0, v))
    y = sim.rollout(state, params=params, steps=n).q[-1, 1]
    grads = gradients(y, {**params, "v": state.v})
    assert grads["restitution"][model.shape("ball/0")].item() == pytest.approx(-v * n * h, rel=CLOSED)
    assert grads["v"][1].item() == pytest.approx(-0.6 * n * h, rel=CLOSED)


def test_a_solve_that_failed_has_a_finite_gradient():
    """One step is not enough; the status says so, and nothing becomes NaN."""
    some = planar.some_worlds("stack", COUNT, 8)
    x = {name: t.clone().requires_grad_() for name, t in some.inputs.items()}
    params = some.params.detach(requires_grad=True)
    sim = cs.Simulator(some.model, solver=cs.InteriorPoint(iterations=1))
    with pytest.warns(RuntimeWarning, match="InteriorPoint"):
        state, info = step_with_info(sim, x, params)
    assert not info.status.converged.all()
    grads = gradients(state.v.sum() + state.q.sum(), {**x, **{name: p for name, p in params.items() if p.numel()}})
    for name, grad in grads.items():
        assert torch.isfinite(grad).all(), name
