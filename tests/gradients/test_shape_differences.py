"""Every derivative of steps whose shapes touch with faces, edges, rims and corners against central differences, in both modes.

The comparison, its kinks and its bounds are those of test_contact_differences.py. Features that change within a difference's
steps show as differences that disagree, and count as kinks too.
"""

from functools import cache

import pytest
import torch

import costate as cs
from tests.gradients.contact_differences import compare, rollout, summary
from tests.gradients.contact_differences import step as one_step
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.shape_scenes import SCENES, worlds
from tests.gradients.test_contact_differences import BOTH, KINKS, MEDIAN, WORST

COUNT = 30  # worlds of a scene
STEPS = 8  # of a rollout
# points of a face contact, where not 4
MOST = {"capsule on box": 2, "box on field": 2, "cylinder on plane": 2, "sphere on field": 2, "hull on hull": 2}
SHAPES = ("q", "v", "mass", "shape_pos", "shape_quat", "shape_size", "hull_vertex", "height", "friction")


@cache
def some_worlds(scene, count=COUNT, seed=1):
    return worlds(scene, count, seed)


def cases(scenes, seed=1, function=one_step, modes=BOTH, count=COUNT, **compared):
    for scene in scenes:
        some = some_worlds(scene, count, seed)
        sims = {mode: cs.Simulator(some.model, gradient=mode) for mode in modes}
        yield from compare(scene, some, sims, function=function, **compared)


def check(found):
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found


def test_step():
    check(summary(cases(SCENES)))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 5))
def test_step_in_more_worlds(seed):
    check(summary(cases(SCENES, seed, count=8 * COUNT)))


def short_rollout(sim, x, params):
    return rollout(sim, x, params, STEPS)


def test_rollouts():
    """As in test_contact_differences.py: smaller steps, since kinks add up, and so does the noise of redundant rows."""
    scenes = ("box on box", "edge on edge", "cylinder on box", "hull on hull", "prism on box", "box on field", "mixed pile")
    check(summary(cases(scenes, 3, short_rollout, count=10, only=SHAPES, first=2e-5, most_doubt=1e-3)))


def test_all_contacts_occur():
    """The worlds above are what their names say: faces with several points, edges with one, all states, all pairs of the pile."""
    states = torch.zeros(4, dtype=torch.long)
    for scene in SCENES:
        some = some_worlds(scene)
        _, info = step_with_info(cs.Simulator(some.model), some.inputs, some.params)
        found = info.contacts
        points, states = found.active.sum(-1), states + torch.bincount(found.state.flatten(), minlength=4)
        many = (
            points == {"capsule on box": 2, "cylinder on plane": 2, "sphere on field": 2, "hull on hull": 2}.get(scene, 4)
        ).sum()
        if scene == "edge on edge":
            assert (points == 1).sum() > COUNT // 2, points
        elif scene == "mixed pile":
            pairs = torch.stack((found.shape_a, found.shape_b), -1)[found.active].unique(dim=0)
            assert len(pairs) >= 4, pairs
        else:
            assert many > 0, (scene, points)
    assert states[1:].min() > 20, states
