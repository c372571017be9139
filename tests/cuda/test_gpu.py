"""On a GPU: what the CPU computes, to the last digits; without waiting, in graphs, the same bits every time."""

from __future__ import annotations

import pytest
import torch

import costate as cs
from costate._native.cuda import engine as gpu
from tests.cuda.scenes import WORLDS, in_parts

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
STEPS, COUNT = 100, 24
SAME = 1e-10  # relative, in float64
SINGLE = 1e-6  # in float32, over 20 steps; the first GPU that was asked gave the CPU's bits


def run(name, device, dtype=torch.float64, steps=STEPS, *, well=False):
    """States, and gradients of a sum of them with random weights: by the first state, the controls and all parameters.

    well : on a GPU with the better kernels, in place of those that may be there at first.
    """
    world = WORLDS[name]
    model = world.build()
    sim = world.simulator(model, device, dtype)
    if well:
        sim.compile(worlds=COUNT)
    q, v, u = (x.to(device).requires_grad_() for x in world.inputs(model, COUNT, steps, dtype))
    params = model.params(requires_grad=True)
    traj = sim.rollout(cs.State(q, v), u if model.nu else None, params, steps=steps)
    numbers = torch.Generator().manual_seed(1)
    weigh = lambda x: (x * torch.randn(x.shape, generator=numbers, dtype=dtype).to(device)).sum()  # noqa: E731
    (weigh(traj.q) + weigh(traj.v)).backward()
    sim.synchronize()
    found = {"q": traj.q, "v": traj.v, "by q": q.grad, "by v": v.grad}
    if model.nu:
        found["by u"] = u.grad
    found |= {f"by {field}": params[field].grad for field in params if params[field].grad is not None}
    return {key: x.detach().cpu() for key, x in found.items()}


def off(x, y):
    return float((x - y).abs().max() / y.abs().max().clamp_min(1e-300)) if y.numel() else 0.0


@pytest.mark.parametrize("few", [1, 0], ids=["kernels of few worlds", "of many"])
@pytest.mark.parametrize("well", [False, True], ids=["as it comes", "well compiled"])
@pytest.mark.parametrize("name", WORLDS)
def test_as_on_the_cpu(name, well, few, monkeypatch):
    monkeypatch.setattr(gpu, "_FEW", few)
    ours, theirs = run(name, "cuda", well=well), run(name, "cpu")
    assert {key: d for key in theirs if not (d := off(ours[key], theirs[key])) < SAME} == {}


@pytest.mark.parametrize("name", ["ant", "humanoid", "shapes", "turning", "loop", "chain", "planar", "interior"])
def test_as_on_the_cpu_in_parts(name, monkeypatch):
    in_parts(monkeypatch)
    ours, theirs = run(name, "cuda"), run(name, "cpu")
    assert {key: d for key in theirs if not (d := off(ours[key], theirs[key])) < SAME} == {}


@pytest.mark.parametrize("name", ["quadruped", "ant", "arm", "loop", "planar"])
def test_single_precision(name):
    ours, theirs = run(name, "cuda", torch.float32, 20), run(name, "cpu", torch.float32, 20)
    assert max(off(ours[key], theirs[key]) for key in ("q", "v", "by q", "by v")) < SINGLE


def test_single_precision_in_parts(monkeypatch):
    """Few rows have kernels of their own, and the solver's matrices are in registers."""
    in_parts(monkeypatch)
    ours, theirs = run("humanoid", "cuda", torch.float32, 20), run("humanoid", "cpu", torch.float32, 20)
    assert max(off(ours[key], theirs[key]) for key in ("q", "v", "by q", "by v")) < SINGLE


def test_the_same_bits_every_time():
    first, again = run("quadruped", "cuda"), run("quadruped", "cuda")
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_parameters_may_be_on_either_side():
    model = WORLDS["quadruped"].build()
    sim = WORLDS["quadruped"].simulator(model, "cuda")
    state = sim.initial_state(8)
    grads = []
    for params in (model.params(requires_grad=("mass",)), model.params().to(device="cuda").detach(requires_grad=("mass",))):
        sim.step(state, params=params).v.square().sum().backward()
        grads.append(params["mass"].grad.cpu())
    torch.testing.assert_close(*grads)


def test_a_policy_in_between():
    world = WORLDS["quadruped"]
    model = world.build()
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        policy = torch.nn.Linear(model.nq + model.nv, model.nu, dtype=torch.float64)
        policy = policy.to(device)
        q, v, _ = (x.to(device) for x in world.inputs(model, COUNT, 1))
        act = lambda state, carry, t, policy=policy: 0.1 * policy(torch.cat(state, -1))  # noqa: E731
        traj = world.simulator(model, device).rollout(cs.State(q, v), act, steps=10)
        traj.q[-1, :, 0].sum().backward()
        results.append((traj.q.detach().cpu(), policy.weight.grad.cpu()))
    for x, y in zip(*results, strict=True):
        assert off(y, x) < 1e-8


def test_functions_of_an_instant():
    world = WORLDS["ant"]
    model = world.build()
    q, v, _ = world.inputs(model, COUNT, 1)
    for f in (lambda q, v: cs.mass_matrix(model, q), lambda q, v: cs.kinematics(model, q, v).velocity,
              lambda q, v: cs.forward_dynamics(model, q, v, torch.ones_like(v)),
              lambda q, v: sum(cs.energy(model, q, v))):  # fmt: skip
        here, there = (x.to("cuda").requires_grad_() for x in (q, v)), (x.clone().requires_grad_() for x in (q, v))
        (q1, v1), (q2, v2) = here, there
        ours, theirs = f(q1, v1), f(q2, v2)
        ours.square().sum().backward()
        theirs.square().sum().backward()
        assert off(ours.cpu(), theirs) < SAME and off(q1.grad.cpu(), q2.grad) < SAME


def test_linearisation_and_contacts():
    world = WORLDS["quadruped"]
    model = world.build()
    results = []
    for device in ("cpu", "cuda"):
        sim = world.simulator(model, device)
        q, v, u = (x.to(device) for x in world.inputs(model, COUNT, 1))
        A, B = sim.linearize(cs.State(q, v), u[0])
        _, info = sim.step(cs.State(q, v), u[0], info=True)
        results.append([x.cpu() for x in (A, B, info.contacts.impulse, info.contacts.gap, info.contacts.state)])
    assert all(off(y.double(), x.double()) < SAME for x, y in zip(*results, strict=True))


def test_a_graph_is_captured_and_replayed():
    world = WORLDS["quadruped"]
    model = world.build()
    sim = world.simulator(model, "cuda")
    q, v, u = (x.to("cuda") for x in world.inputs(model, COUNT, 1))
    control = u[0].clone()
    with torch.no_grad():
        sim.step(cs.State(q, v), control)  # compiles
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            after = sim.step(cs.State(q, v), control)
        q.add_(0.01)
        graph.replay()
        torch.cuda.synchronize()
        eager = sim.step(cs.State(q, v), control)
    assert torch.equal(after.q, eager.q) and torch.equal(after.v, eager.v)


def test_bad_numbers_are_told_by_name():
    model = WORLDS["arm"].build()
    sim = WORLDS["arm"].simulator(model, "cuda")
    state = sim.initial_state(4)
    state.v[2, 1] = float("nan")
    with pytest.raises(ValueError, match="v must be finite"):  # by the step itself, if the GPU is fast enough
        sim.step(state)
        sim.synchronize()


def test_tensors_elsewhere_are_refused():
    model = WORLDS["arm"].build()
    sim = WORLDS["arm"].simulator(model, "cuda")
    with pytest.raises(TypeError, match="q must be on cuda:0"):
        sim.step(cs.Simulator(model).initial_state(2))
