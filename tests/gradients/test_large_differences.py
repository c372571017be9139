"""Steps of a heap of 70 bodies, whose rows the engine sweeps without matrices: derivatives against central differences.

Such sweeps are always differentiated as they ran, in either mode. They end before they converge, and every contact may change its
state in any sweep, not just in the last: so kinks are nearer than in small scenes, and steps of differences smaller.
"""

from functools import cache

import pytest

import costate as cs
from tests.gradients.contact_differences import compare, summary
from tests.gradients.shape_scenes import heaps
from tests.gradients.test_contact_differences import KINKS, MEDIAN, WORST

INPUTS = ("q", "v", "control", "external", "dt", "mass", "friction", "shape_size")
FIRST = 2e-6  # the largest step, of each input's scale; with 1e-5 5% of the cases of some heaps had kinks within sweeps


@cache
def some_heaps(count, seed=1):
    return heaps(count, seed)


def check(count, seed, iterations, inputs=INPUTS):
    some = some_heaps(count, seed)
    assert some.model.engine.tree.large
    sims = {mode: cs.Simulator(some.model, solver=cs.PGS(iterations), gradient=mode) for mode in ("implicit", "exact")}
    found = summary(compare("heap", some, sims, only=inputs, first=FIRST, as_ran=True))
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found


def test_step():
    check(2, 1, 20)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 5))
def test_step_of_more_heaps(seed):
    check(6, seed, 50)
