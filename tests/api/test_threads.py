"""The thread pool: the same numbers with any number of threads, calls from several Python threads, and the GIL released."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, generator, normal, random_state

MODEL = build("every joint")


@pytest.fixture(autouse=True)
def restore():
    before = cs.get_num_threads()
    yield
    cs.set_num_threads(before)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True])
def test_bad_number_of_threads(n):
    with pytest.raises(ValueError, match=r"set_num_threads: n must be a positive int, got"):
        cs.set_num_threads(n)


def everything(sim, state, controls):
    """A rollout of a batch and its gradient in states, controls and shared parameters."""
    q, u = state.q.clone().requires_grad_(), controls.clone().requires_grad_()
    params = MODEL.params(requires_grad=("mass", "gravity"))
    traj = sim.rollout(cs.State(q, state.v), u, params)
    grads = torch.autograd.grad(traj.v.square().sum() + cs.energy(MODEL, q, state.v, params)[1].sum(), (q, u, *params.leaves()))
    return traj.q.detach(), *grads


@pytest.mark.parametrize("worlds", [1, 5, 131])
def test_results_do_not_depend_on_threads(worlds):
    sim, state, controls = (
        cs.Simulator(MODEL),
        random_state(MODEL, generator(1), worlds),
        normal(generator(2), 5, worlds, MODEL.nu),
    )
    results = []
    for n in (1, 2, 3, 7):
        cs.set_num_threads(n)
        assert cs.get_num_threads() == n
        results.append(everything(sim, state, controls))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(other, results[0]))


def test_calls_from_several_python_threads():
    cs.set_num_threads(3)
    sims = [cs.Simulator(MODEL), cs.Simulator(build("arm"))]
    work = []
    for i in range(24):
        sim = sims[i % 2]
        worlds = (1, 7, 64)[i % 3]
        work.append((sim, random_state(sim.model, generator(i), worlds), normal(generator(100 + i), 6, worlds, sim.model.nu)))

    def one(job):
        sim, state, controls = job
        q = state.q.clone().requires_grad_()
        traj = sim.rollout(cs.State(q, state.v), controls)
        traj.v.square().sum().backward()
        return traj.v.detach(), q.grad

    expected = [one(job) for job in work]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for found, wanted in zip(pool.map(one, work), expected):
                assert torch.equal(found[0], wanted[0]) and torch.equal(found[1], wanted[1])


def test_changing_the_number_of_threads_while_others_work():
    sim, state = cs.Simulator(MODEL), random_state(MODEL, generator(3), 64)
    expected = sim.step(state).q

    def work(_):
        return all(torch.equal(sim.step(state).q, expected) for _ in range(30))

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(work, i) for i in range(3)]
        for n in (1, 2, 4, 2, 3, 1, 5) * 5:
            cs.set_num_threads(n)
        assert all(job.result() for job in jobs)


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_the_gil_is_released(backward):
    """While one long native call runs, another Python thread gets on; held, it would not make a single round."""
    cs.set_num_threads(1)
    sim, state = cs.Simulator(MODEL), random_state(MODEL, generator(4), 64)
    state.q.requires_grad_(backward)
    damped = MODEL.params().replace(damping=5.0)
    inside, done, rounds = threading.Event(), threading.Event(), [0]

    def count():
        while not done.is_set():
            rounds[0] += inside.is_set()
            done.wait(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        loss = sim.rollout(state, None, damped, steps=1500).v[-1].sum() if backward else None
        rounds[0] = 0
        inside.set()
        if backward:
            loss.backward()
        else:
            sim.rollout(state, None, damped, steps=3000)
        inside.clear()
        found = rounds[0]
    finally:
        done.set()
        counter.join()
    assert found > 5
