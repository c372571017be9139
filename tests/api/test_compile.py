"""torch.compile around the simulator: costate's calls stay outside the graphs, results and gradients are the same."""

import warnings

import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, generator, normal, random_state

MODEL = build("arm")
SIM = cs.Simulator(MODEL)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dynamo tells of every graph break
        yield
    torch._dynamo.reset()


def one_step(q, v, u):
    new = SIM.step(cs.State(2.0 * q, v), u.sin())
    return new.q.square().sum() + new.v.cos().sum()


def many_steps(q, v, u):
    traj = SIM.rollout(cs.State(2.0 * q, v), u.sin().expand(5, *u.shape))
    return traj.q.square().sum() + traj.v.cos().sum()


def instant(q, v, u):
    return cs.energy(MODEL, q, v)[0].sum() + cs.mass_matrix(MODEL, 2 * q).sin().sum() + u.sum()


@pytest.mark.parametrize("f", [one_step, many_steps, instant])
def test_same_result_and_gradient(f):
    gen = generator()
    inputs = [x.requires_grad_() for x in (*random_state(MODEL, gen, 3), normal(gen, 3, MODEL.nu))]
    expected = f(*inputs)
    expected_gradients = torch.autograd.grad(expected, inputs)
    compiled = torch.compile(f, backend="eager")
    for _ in range(2):  # the second call runs what the first compiled
        found = compiled(*inputs)
        assert torch.equal(found, expected)
        for a, b in zip(torch.autograd.grad(found, inputs), expected_gradients):
            assert torch.equal(a, b)


def test_whole_graph_is_refused_by_torch():
    """No graph can hold the engine's calls: torch says so, instead of computing something else."""
    s = random_state(MODEL, generator(), 3)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(one_step, backend="eager", fullgraph=True)(*s, torch.zeros(3, MODEL.nu, dtype=torch.float64))
