"""Every derivative of steps with contacts and rows against central differences: all pairs, all rows, all states, both modes.

Kinks are named and counted (contact_differences.branches); they may be at most 2% of the cases.
"""

from functools import cache

import pytest
import torch

import costate as cs
from costate.solver import _PRECISION
from tests.gradients.contact_differences import RATIO, compare, extrapolate, rollout, step, summary
from tests.gradients.contact_scenes import PAIRS, SCENES, step_with_info, worlds
from tests.gradients.scenes import ARTICULATED, SPARSE

# Promised; measured 1e-9 and 2e-5 at most. The worst are differences of solves that stop at their tolerance.
MEDIAN, WORST, KINKS = 1e-7, 1e-4, 0.02
COUNT = 40  # worlds of a scene
BOTH = ("implicit", "exact")
SOME = ("q", "v", "control", "external", "dt", "mass", "joint_pos", "kp", "limit_upper", "shape_size", "friction", "restitution")


def check(scenes, seed, function=step, modes=BOTH, count=COUNT, form=-1, options=None, **compared):
    """Compare worlds of all `scenes` and keep what was promised, kinks counted together."""
    cases = []
    for scene in scenes:
        some = some_worlds(scene, seed, form, count)
        sims = {mode: cs.Simulator(some.model, gradient=mode, **(options or {})) for mode in modes}
        cases += compare(scene, some, sims, function=function, **compared)
    found = summary(cases)
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found


drawn = cache(worlds)


def some_worlds(scene, seed=1, form=-1, count=COUNT):
    return drawn(scene, count, seed, form=form)


def test_step():
    check(SCENES, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 6))
def test_step_in_more_worlds(seed):
    check(SCENES, seed, count=8 * COUNT)


@pytest.mark.parametrize("cone", ["square", 5, 3])
def test_cones(cone):
    scenes = ("sphere on plane", "box on plane", "capsule on capsule", "walker")
    check(scenes, seed=2, options={"solver": cs.PGS(cone=cone)})


# Relative softness of rows for solves that end with one or two Newton steps, tolerance and absolute softness as ever. With 1e-9
# such a step multiplies rounding by 1e9: where the sole's corners stick, velocities had a noise of 1e-7 m/s, which differences
# do not survive. Contacts' own softness does not reach friction. As many worlds remain unsolved.
SOFTER = (1e-10, 1e-6, 1e-10)
SHORT = [(1, 0, "disc"), (3, 0, "disc"), (4, 1, "disc"), (2, 2, "disc"), (3, 1, 5)]


@pytest.mark.parametrize(("iterations", "polish", "cone"), SHORT)
def test_solves_that_are_cut_short(monkeypatch, iterations, polish, cone):
    """The exact mode differentiates what ran, converged or not; so does the implicit one, where it falls back."""
    scenes, unsolved, solver = ("box on plane", "pile", "walker"), 0, cs.PGS(iterations, polish, cone=cone)
    found = [some_worlds(scene, seed=8) for scene in scenes]  # which have run with rows as stiff as ever
    if polish:
        monkeypatch.setitem(_PRECISION, torch.float64, SOFTER)
    for some in found:
        _, info = step_with_info(cs.Simulator(some.model, solver=solver), some.inputs, some.params)
        unsolved += (~info.status.converged).sum().item()
    assert unsolved > COUNT // 4
    check(scenes, seed=8, options={"solver": solver})


@pytest.mark.parametrize("sweeps", ["dense", "half-solved", "alternating"])
@pytest.mark.parametrize("form", [SPARSE, ARTICULATED], ids=["sparse", "articulated"])
def test_forms(form, sweeps):
    check(("pile", "walker"), seed=4, form=form, options={"solver": cs.PGS(form=sweeps)})


def test_options_of_contact():
    contact = cs.Contact(margin=0.002, recovery=1.0, push_speed=5.0, bounce_speed=0.0)
    check(("capsule on plane", "sphere on sphere", "arm"), seed=5, options={"contact": contact})


def test_rollouts_of_20_steps():
    """Smaller steps, since kinks add up; and so does the noise of redundant rows, which raises the doubt but not the errors."""
    check(("capsule on plane", "walker", "arm"), 6, rollout, count=12, only=SOME, first=2e-5, most_doubt=1e-3)


def test_all_states_occur():
    """The worlds above are not all alike: every state of contacts and rows is there, with the branches of the targets."""
    contacts, rows = torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long)
    impacts = closed = pushed = several = 0
    for scene in SCENES:
        some = some_worlds(scene)
        x = some.inputs
        state, info = step_with_info(cs.Simulator(some.model), x, some.params)
        found, gap = info.contacts, torch.where(info.contacts.active, info.contacts.gap, 1.0)
        contacts += torch.bincount(found.state.flatten(), minlength=4)
        rows += torch.bincount(info.rows.state.flatten(), minlength=4)
        several += (found.active.sum(-1) > 1).sum().item()
        closed += ((gap < 0) & (gap > -1e-3)).sum().item()
        pushed += (0.2 * gap / x["dt"].unsqueeze(-1) < -0.5).sum().item()
        if scene in PAIRS:  # a body that comes in fast and leaves faster than anything but restitution makes it
            impacts += ((found.impulse.norm(dim=-1) > 0).any(-1) & ((state.v - x["v"]).norm(dim=-1) > 0.8)).sum().item()
    assert contacts[1:].min() > 80, contacts
    assert rows.min() > 40, rows
    assert min(impacts, closed, pushed, several) > 30, (impacts, closed, pushed, several)


def test_extrapolation():
    """exp'(0) = 1 from step sizes that are far too large; and a limit that the smallest step contradicts is in doubt."""
    sizes = 0.5 / RATIO ** torch.arange(6, dtype=torch.float64).unsqueeze(-1)
    slopes, rounding = sizes.sinh() / sizes, 1e-16 / sizes
    limit, doubt = extrapolate(slopes, torch.ones_like(slopes, dtype=torch.bool), rounding)
    assert abs(limit - 1) < 1e-12
    assert doubt < 1e-5
    slopes[-1] += 1e-3
    assert extrapolate(slopes, torch.ones_like(slopes, dtype=torch.bool), rounding)[1] > 1e-4


def test_a_wrong_derivative_is_found():
    """The comparison itself: a gradient without a value is an error of all worlds."""
    some = some_worlds("sphere on plane")

    def wrong(sim, x, params):
        outputs, branches = step(sim, x, params)
        v = outputs["v"]
        return {**outputs, "v": v + 0.01 * (params["friction"] - params["friction"].detach()).sum(-1, keepdim=True)}, branches

    cases = compare("sphere on plane", some, {"implicit": cs.Simulator(some.model)}, function=wrong, only=("friction",))
    errors = [case.error for case in cases if case.output == "v" and not case.kink]
    assert sum(error > 1e-3 for error in errors) > len(errors) // 2
