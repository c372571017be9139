"""Everything a user may send to another process survives the way, and works there as here."""

import copy
import multiprocessing
import pickle

import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, generator, normal, random_params, random_state

MODEL = build("every joint")
STATE = random_state(MODEL, generator(1), 3)
REMAKE = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}
remake = pytest.mark.parametrize("remake", REMAKE.values(), ids=REMAKE)


@remake
def test_simulator(remake):
    sim = cs.Simulator(MODEL, dt=0.003, dtype=torch.float32)
    single = cs.State(*(x.float() for x in STATE))
    unused, expected = remake(sim), sim.step(single)
    one = cs.State(single.q[0].numpy(), single.v[0].numpy())
    sim.step(one)  # fills what the simulator keeps for numpy
    for made in (unused, remake(sim)):
        assert (made.dt, made.dtype, made.device, made.model) == (sim.dt, sim.dtype, sim.device, sim.model)
        assert torch.equal(made.step(single).q, expected.q) and (made.step(one).q == expected.q[0].numpy()).all()


@remake
def test_model_and_params(remake):
    params = random_params(MODEL, generator(2)).detach(requires_grad=("mass", "rest"))
    model, made = remake(MODEL), remake(params)
    assert model == MODEL and made.model == MODEL
    assert [name for name in made if made[name].requires_grad] == ["mass", "rest"]
    assert all(torch.equal(made[name], params[name]) for name in params)
    expected = cs.Simulator(MODEL).step(STATE, params=params)
    for here, with_params in ((model, params), (MODEL, made), (model, made)):
        found = cs.Simulator(here).step(STATE, params=with_params)
        assert torch.equal(found.q, expected.q) and found.q.requires_grad


@remake
@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_state_and_trajectory(remake, kind):
    sim = cs.Simulator(MODEL)
    state = STATE if kind == "torch" else STATE.numpy()
    traj = sim.rollout(state, normal(generator(3), 4, 3, MODEL.nu) if kind == "torch" else None, steps=4)
    for thing in (state, traj):
        made = remake(thing)
        assert type(made) is type(thing) and type(made.q) is type(thing.q)
        assert (made.q == thing.q).all() and (made.v == thing.v).all()
    assert (remake(traj).diverged_at == 4).all()


def worker(sim, state, params, pipe):
    """In a child process: a batch large enough for the thread pool, and a gradient."""
    q = state.q.clone().requires_grad_()
    new = sim.step(cs.State(q, state.v), params=params)
    new.v.square().sum().backward()
    pipe.send((new.q.detach().numpy(), q.grad.numpy()))
    pipe.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
def test_other_processes(method):
    """The parent has used its threads before; a forked child must start its own."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    before, torch_before = cs.get_num_threads(), torch.get_num_threads()
    cs.set_num_threads(4)
    torch.set_num_threads(1)  # torch's own threads do not survive a fork
    try:
        sim, state, params = cs.Simulator(MODEL), random_state(MODEL, generator(4), 200), MODEL.params()
        q = state.q.clone().requires_grad_()
        new = sim.step(cs.State(q, state.v), params=params)
        new.v.square().sum().backward()
        context = multiprocessing.get_context(method)
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=worker, args=(sim, state.numpy().torch(), params, there))
        child.start()
        there.close()
        assert here.poll(60), "the child does not answer"
        q_child, grad_child = here.recv()
        child.join(60)
        assert child.exitcode == 0
        assert (torch.from_numpy(q_child) == new.q).all() and (torch.from_numpy(grad_child) == q.grad).all()
        assert torch.equal(sim.step(state).q, new.q)  # the parent's pool still works
    finally:
        cs.set_num_threads(before)
        torch.set_num_threads(torch_before)
