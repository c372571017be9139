"""The chain of examples/chain.py: gradients by its mass against central differences, and what it tells about fixed steps."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

PATH = Path(__file__).parents[2] / "examples/chain.py"
AGREE = 1e-6  # relative; found: 2e-8, which is the differences' own error
NUDGE = 1e-5  # kg, wide enough for that; at 1e-4 a tooth lies between
MASSES = (1.0, 3.0, 5.3, 6.9, 8.2)  # kg: before the jump at 3.97, where the ball begins to come back, and after it


@pytest.fixture(scope="module")
def chain():
    spec = importlib.util.spec_from_file_location("chain_example", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def task(chain):
    return chain.Task()


@pytest.mark.parametrize("impacts", [None, "toi"])
def test_slope_by_the_total_mass(chain, task, impacts):
    mine = task if impacts == "toi" else chain.Task(impacts=None)
    mass = torch.tensor(MASSES, dtype=torch.float64)
    _, slope = mine.slope(mass)
    with torch.no_grad():
        above, below = (mine.loss(mine.alike(mass + nudge)) for nudge in (NUDGE, -NUDGE))
    central = (above - below) / (2 * NUDGE)
    assert (slope / central - 1).abs().max() < AGREE, (slope, central)


def test_gradient_by_every_mass(chain):
    small = chain.Task(4)
    mass = torch.tensor([1.3, 2.2, 0.9, 1.8], dtype=torch.float64)
    gradient = chain.by_adjoint(small, mass)
    nudges = NUDGE * torch.eye(4, dtype=torch.float64)
    with torch.no_grad():
        central = (small.loss(mass + nudges) - small.loss(mass - nudges)) / (2 * NUDGE)
    assert (gradient - central).norm() < AGREE * central.norm(), (gradient, central)
    # the example's own differences, of first order
    for other in (chain.by_differences(small, mass), chain.one_by_one(small, mass)):
        assert (gradient - other).norm() < 1e-3 * central.norm(), (gradient, other)


def test_all_methods_take_batches_alike(chain):
    small = chain.Task(3)
    mass = torch.tensor([[0.5, 1.0, 2.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    for method in (chain.by_adjoint, chain.by_differences):
        alone = torch.stack([method(small, one) for one in mass])
        assert torch.allclose(method(small, mass), alone, rtol=1e-6)


def test_the_ball_hits_comes_back_and_keeps_the_chain_together(chain, task):
    with torch.no_grad():
        traj = task.roll(task.alike(torch.tensor([1.0, 7.0], dtype=torch.float64)))
    assert not traj.diverged.any() and not traj.status.unconverged.any()
    assert traj.status.drift.max() < 1e-3 and traj.status.penetration.max() < 1e-6  # m, of links of 6 m
    speed = traj.v[..., -3]
    assert (speed[100] == chain.SPEED).all(), "no weight, nothing in the way"
    assert speed[-1, 0] > 1.0 and speed[-1, 1] < -1.0, "a light chain lets it pass, a heavy one swings back and sends it home"


def test_times_of_impact_flatten_the_teeth(chain, task):
    """As the mass changes, the second hit moves from step to step. Then the loss jumps: fixed steps 0.9 px^2, split ones 0.14."""
    fixed, mass = chain.Task(impacts=None), torch.linspace(6.8, 7.2, 161, dtype=torch.float64)
    with torch.no_grad():
        split_jump, fixed_jump = (t.loss(t.alike(mass)).diff().diff().abs().max() for t in (task, fixed))
    assert fixed_jump > 0.5 and split_jump < fixed_jump / 3, (split_jump, fixed_jump)


def test_updates_counts_only_those_that_stay(chain):
    search = chain.Search()
    for masses in ([1.0, 1.0, 7.0], [7.0, 3.0, 7.0], [5.0, 7.0, 7.0], [7.0, 7.0, 6.0]):
        search.note(torch.tensor(masses), torch.zeros(3))
    assert search.updates(0.1) == [3, 2, None]
