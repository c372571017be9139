"""Every derivative of planar steps against central differences: all pairs of shapes, stacks, chains, ties, trees; both modes.

The comparison, its kinks and its bounds are those of test_contact_differences.py and, for ties and servos, of
test_constraint_differences.py. Features that change within a difference's steps show as differences that disagree, and count as
kinks too.
"""

from functools import cache

import pytest
import torch

import costate as cs
from costate.solver import _PRECISION
from tests.gradients.contact_differences import compare, summary
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.planar_scenes import PAIRS, SCENES, flat, worlds
from tests.gradients.scenes import generator, normal
from tests.gradients.test_constraint_differences import DOUBT
from tests.gradients.test_constraint_differences import rollout as any_rollout
from tests.gradients.test_constraint_differences import step as any_step
from tests.gradients.test_contact_differences import BOTH, KINKS, MEDIAN, SOFTER, WORST

COUNT = 20  # worlds of a scene
FULL = cs.Contact(margin=0.002, recovery=1.0, push_speed=5.0, bounce_speed=0.0)
SOME = ("q", "v", "control", "external", "dt", "gravity", "mass", "shape_size", "hull_vertex", "friction", "tie_pos")


def step(sim, x, params):
    """One step; of the parameters only what lies in the plane."""
    return any_step(sim, x, flat(params))


def rollout(sim, x, params):
    return any_rollout(sim, x, flat(params), steps=8)


@cache
def some_worlds(scene, count=COUNT, seed=1):
    return worlds(scene, count, seed)


def cases(scenes, seed=1, function=step, modes=BOTH, count=COUNT, options=None, **compared):
    for scene in scenes:
        some = some_worlds(scene, count, seed)
        sims = {mode: cs.Simulator(some.model, gradient=mode, **(options or {})) for mode in modes}
        yield from compare(scene, some, sims, function=function, **compared)


def check(found):
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found


@pytest.mark.parametrize("part", [0, 1])
def test_step(part):
    """Both parts have pairs and several bodies: of these a share stands on edges whose two points hold more than needed."""
    check(summary(cases(SCENES[part::2], most_doubt=DOUBT)))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 6))
def test_step_in_more_worlds(seed):
    check(summary(cases(SCENES, seed, count=8 * COUNT, most_doubt=DOUBT)))


@pytest.mark.parametrize(("iterations", "polish"), [(1, 0), (3, 0), (4, 1)])
def test_solves_that_are_cut_short(monkeypatch, iterations, polish):
    """The exact mode differentiates what ran, converged or not; so does the implicit one, where it falls back."""
    scenes, solver, unsolved = ("rectangle on rectangle", "stack", "pile"), cs.PGS(iterations, polish), 0
    found = [some_worlds(scene, seed=3) for scene in scenes]  # which have run with rows as stiff as ever
    if polish:
        monkeypatch.setitem(_PRECISION, torch.float64, SOFTER)
    for some in found:
        _, info = step_with_info(cs.Simulator(some.model, solver=solver), some.inputs, some.params)
        unsolved += (~info.status.converged).sum().item()
    assert unsolved > COUNT // 2
    check(summary(cases(scenes, 3, only=SOME, options={"solver": solver}, as_ran=True)))


OPTIONS = {"half-solved": {"solver": cs.PGS(form="half-solved")}, "contact": {"contact": FULL, "project": 2}}


@pytest.mark.parametrize("name", OPTIONS)
def test_other_options(name):
    scenes = ("polygon on polygon", "circle on line", "pile", "ties")
    check(summary(cases(scenes, 4, count=10, only=SOME, options=OPTIONS[name], most_doubt=DOUBT)))


def test_rollouts():
    """As in test_contact_differences.py: smaller steps, since kinks add up, and so does the noise of redundant rows."""
    scenes = ("rectangle on line", "polygon on rectangle", "stack", "chain", "walker")
    check(summary(cases(scenes, 5, rollout, count=8, only=SOME, first=2e-5, most_doubt=1e-3)))


def test_all_states_occur():
    """The worlds above are not all alike: every state of contacts and rows is there, edges on edges and single corners."""
    contacts, rows, points = (torch.zeros(4, dtype=torch.long) for _ in range(3))
    for scene in SCENES:
        some = some_worlds(scene)
        _, info = step_with_info(cs.Simulator(some.model), some.inputs, some.params)
        contacts += torch.bincount(info.contacts.state.flatten(), minlength=4)
        rows += torch.bincount(info.rows.state.flatten(), minlength=4)
        if scene in PAIRS:
            points += torch.bincount(info.contacts.active.sum(-1), minlength=4)[:4]
    assert contacts[1:].min() > 100, contacts
    assert rows.min() > 30, rows
    assert points[1:3].min() > 30 and points[3] == 0, points


@pytest.mark.parametrize("scene", ["polygon on line", "ties", "walker"])
@pytest.mark.parametrize("gradient", BOTH)
def test_nothing_leaves_the_plane(scene, gradient):
    """Gradients by numbers that would leave it are zero, up to roundings of normals that stiff rows enlarge; so are impulses."""
    some = some_worlds(scene)
    params = some.params.detach(requires_grad=True)
    state, info = step_with_info(cs.Simulator(some.model, gradient=gradient), some.inputs, params)
    y = sum((normal(generator(3), *t.shape) * t).sum() for t in (state.q, state.v, info.contacts.impulse[..., :2]))
    kept = 0
    for name, x in params.items():
        if not x.numel():
            continue
        (grad,) = torch.autograd.grad(y, x, retain_graph=True)
        inside, least = flat(params.replace(**{name: grad}))[name], 1e-9
        if name == "inertia":  # all three decide how much redundant rows give way, which is 1e-9 and less
            inside, least = grad * torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), 1e-6
        assert (grad - inside).abs().amax() <= least * max(1.0, grad.abs().amax().item()), name
        kept += bool(inside.abs().amax() > 0)
    assert kept > 10 and info.contacts.impulse[..., 2].abs().max() < 1e-12


FIELDS = {
    "hull_vertex": "polygon on polygon",
    "shape_size": "rectangle on rectangle",
    "friction": "circle on line",
    "tie_pos": "chain",
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_derivative_is_found(field):
    """The comparison itself: a derivative that is off by 1% is an error of many worlds."""
    some = some_worlds(FIELDS[field])

    def wrong(sim, x, params):
        value = params[field]
        return step(sim, x, params.replace(**{field: value + 0.01 * (value - value.detach())}))

    found = compare(field, some, {"implicit": cs.Simulator(some.model)}, function=wrong, only=(field,))
    errors = [case.error for case in found if case.output == "v" and not case.kink]
    assert sum(error > 10 * WORST for error in errors) > 2, errors
