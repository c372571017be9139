"""Worlds with different contacts in one batch: the same bits as alone, whatever runs beside them; status and overflow."""

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import costate as cs
from tests.physics.contact_scenes import on_ground

pytestmark = pytest.mark.usefixtures("restored")

DTYPES = (torch.float64, torch.float32)
WORLDS, STEPS = 37, 6  # more than two packs of every width, the last one not full
SURFACE = {"friction": 0.6, "restitution": 0.3}


@cache
def model() -> cs.Model:
    """Two balls, a rod and a crate on the ground, and a limited arm with dry friction and a servo that touches them."""
    scene = cs.Scene()
    scene.add_ground(**SURFACE)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, **SURFACE))
    scene.add_body("other", joint=cs.Free(), pos=(0.19, 0, 0.1), shapes=cs.Sphere(0.1, **SURFACE))
    scene.add_body("rod", joint=cs.Free(), pos=(0, 0.2, 0.08), quat=(1, 0, 1, 0), shapes=cs.Capsule(0.08, 0.2, **SURFACE))
    scene.add_body("crate", joint=cs.Free(), pos=(2, 0, 0.1), shapes=cs.Box((0.2, 0.15, 0.1), **SURFACE))
    joint = cs.Revolute((0, 1, 0), limits=(-0.4, 0.5), friction=0.1)
    scene.add_body("arm", joint=joint, pos=(-0.3, 0, 0.6), shapes=cs.Capsule(0.05, 0.25, pos=(0, 0, -0.25), density=300.0))
    for name in ("ball", "other", "rod", "arm"):
        scene.exclude("crate", name)
    scene.add_position("arm", kp=200.0, kd=2.0, force_limits=3.0)
    return scene.build()


Inputs = dict[str, Tensor]


def inputs(dtype: torch.dtype) -> Inputs:
    """Worlds resting, flying high, hitting and overlapping, at their limits and not; with their own friction and step."""
    m, g = model(), torch.Generator().manual_seed(7)
    rand = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    q = m.integrate(torch.tensor(m.q0).expand(WORLDS, -1).contiguous(), 0.03 * rand(WORLDS, m.nv))
    high = torch.tensor([0.0, 0.05, 1.0]).double()[torch.arange(WORLDS) % 3]
    q[:, 2], q[:, 9], q[:, 16] = q[:, 2] + high, q[:, 9] + high.roll(1), q[:, 16] + high.roll(2)
    q[:, -1] = 0.5 * rand(WORLDS)
    x = {
        "q": q,
        "v": 0.7 * rand(WORLDS, m.nv),
        "control": rand(STEPS, WORLDS, m.nu),
        "dt": 0.005 + 0.002 * rand(WORLDS).abs(),
        "friction": 0.3 * rand(WORLDS, len(m.shape_names)).abs(),
        "restitution": 0.5 * torch.sigmoid(rand(WORLDS, len(m.shape_names))),
        "weight_q": rand(STEPS + 1, WORLDS, m.nq),
        "weight_v": rand(STEPS + 1, WORLDS, m.nv),
    }
    return {name: t.to(dtype) for name, t in x.items()}


TIMED = ("control", "weight_q", "weight_v")


def pick(x: Inputs, worlds: list[int]) -> Inputs:
    return {name: t[:, worlds] if name in TIMED else t[worlds] for name, t in x.items()}


def roll(x: Inputs, *, gradient: str = "implicit", **solver) -> dict[str, Tensor]:
    """Trajectory, status, and gradients of a weighted sum of the trajectory, world by world."""
    dtype = x["q"].dtype
    leaves = {name: t.clone().requires_grad_() for name, t in x.items() if not name.startswith("weight")}
    params = model().params(dtype=dtype).replace(friction=leaves["friction"], restitution=leaves["restitution"])
    sim = cs.Simulator(model(), dtype=dtype, gradient=gradient, solver=cs.PGS(**solver))
    traj = sim.rollout(cs.State(leaves["q"], leaves["v"]), leaves["control"], params, dt=leaves["dt"])
    loss = (x["weight_q"] * traj.q).sum() + (x["weight_v"] * traj.v).sum()
    bars = torch.autograd.grad(loss, list(leaves.values()))
    found = {"traj.q": traj.q.detach(), "traj.v": traj.v.detach(), "status": traj.status.numbers}
    return found | {f"bar of {name}": g for name, g in zip(leaves, bars)}


def worlds_of(results: dict[str, Tensor], worlds: list[int]) -> dict[str, Tensor]:
    timed = ("traj.q", "traj.v", "bar of control")
    return {name: t[:, worlds] if name in timed else t[worlds] for name, t in results.items()}


def assert_same_bits(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    for name, x in a.items():
        assert torch.equal(x, b[name]), f"{name}: differs by {(x - b[name]).abs().max():.1e}"


def test_the_worlds_have_different_contacts():
    found = roll(inputs(torch.float64))
    contacts = found["status"][:, 3].long()
    assert len(contacts.unique()) >= 5 and contacts.min() <= 3 and contacts.max() >= 7
    for name, x in found.items():
        assert torch.isfinite(x).all() and x.abs().max() > 0, f"{name}: nothing to compare"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("worlds", [1, 5, 16])
def test_batch_size(instructions, worlds, dtype):
    x = inputs(dtype)
    everything = roll(x)
    for first in (0, 11, WORLDS - worlds):
        some = list(range(first, first + worlds))
        assert_same_bits(roll(pick(x, some)), worlds_of(everything, some))


@pytest.mark.parametrize("gradient", ["implicit", "exact"])
@pytest.mark.parametrize("form", ["dense", "half-solved", "alternating"])
def test_lane_position(instructions, gradient, form):
    x = inputs(torch.float64)
    order = torch.randperm(WORLDS, generator=torch.Generator().manual_seed(2)).tolist()
    options = {"gradient": gradient, "form": form}
    assert_same_bits(roll(pick(x, order), **options), worlds_of(roll(x, **options), order))


@pytest.mark.parametrize("dtype", DTYPES)
def test_thread_count(dtype):
    found = []
    for threads in (1, 2, 3):
        cs.set_num_threads(threads)
        found.append(roll(inputs(dtype)))
    assert_same_bits(found[1], found[0])
    assert_same_bits(found[2], found[0])


def test_one_world_in_numpy_is_the_same_world():
    """The path of one world without torch, against the batch."""
    x = inputs(torch.float64)
    sim = cs.Simulator(model(), dt=0.005)
    state = cs.State(x["q"], x["v"])
    batch = sim.step(state, x["control"][0])
    for w in range(0, WORLDS, 5):
        one = sim.step(cs.State(x["q"][w].numpy(), x["v"][w].numpy()), x["control"][0, w].numpy())
        assert np.array_equal(one.q, batch.q[w].numpy()) and np.array_equal(one.v, batch.v[w].numpy())


def test_a_rollout_is_its_steps():
    """Bit for bit, contacts and all; the status of a rollout is the worst of its steps."""
    x = inputs(torch.float64)
    sim = cs.Simulator(model(), dt=0.005)
    state = cs.State(x["q"], x["v"])
    traj = sim.rollout(state, x["control"])
    seen = []
    for t in range(STEPS):
        state, info = sim.step(state, x["control"][t], info=True)
        assert torch.equal(state.q, traj.q[t + 1]) and torch.equal(state.v, traj.v[t + 1])
        seen.append(info.status.numbers)
    seen = torch.stack(seen)
    assert torch.equal(seen[..., 0].amax(0), traj.status.residual)
    assert torch.equal(seen[..., 3].amax(0).long(), traj.status.contacts)
    assert torch.equal(seen[..., 4].amax(0), traj.status.penetration)
    assert torch.equal(seen[..., 1].sum(0).long(), traj.status.unconverged)


def test_forms_of_the_sweep_agree():
    """With and without the matrix of all rows, and in turns: the same solution where it converged."""
    x = inputs(torch.float64)
    dense, *others = (roll(x, form=form, iterations=20000, polish=20) for form in ("dense", "half-solved", "alternating"))
    for other in others:
        good = (dense["status"][:, 1] == 0) & (other["status"][:, 1] == 0)
        assert good.sum() >= WORLDS - 2
        np.testing.assert_allclose(dense["traj.v"][:, good], other["traj.v"][:, good], atol=1e-7)


# ---- status --------------------------------------------------------------------------------------------------------
def test_an_unconverged_solve_says_so():
    """One sweep and no polish cannot solve four corners; what the residual says is what further sweeps change."""
    scene = on_ground(cs.Box((0.2, 0.15, 0.1), friction=0.5), height=0.1, ground={"friction": 0.5})
    m = scene.build()
    state = cs.State(torch.tensor(m.q0), torch.tensor([1.0, 0.5, -0.3, 0.2, 0.1, 1.0], dtype=torch.float64))
    rough = cs.Simulator(m, solver=cs.PGS(iterations=1, polish=0)).step(state, info=True)
    fine = cs.Simulator(m, solver=cs.PGS(iterations=1000, polish=20)).step(state, info=True)
    assert not rough[1].status.converged and rough[1].status.residual > 1e-3 and rough[1].status.sweeps == 1
    assert rough[1].status.unconverged == rough[1].status.exact_fallback == 1
    assert fine[1].status.converged and fine[1].status.residual < 1e-10 and fine[1].status.exact_fallback == 0
    assert (rough[0].v - fine[0].v).abs().max() > 1e-4
    tolerant = cs.Simulator(m, solver=cs.PGS(iterations=1, polish=0, tolerance=10.0)).step(state, info=True)
    assert tolerant[1].status.converged


def test_status_is_quiet_without_contacts():
    m = on_ground(cs.Sphere(0.1), height=5.0).build()
    traj = cs.Simulator(m).rollout(cs.Simulator(m).initial_state(3), steps=10)
    assert torch.equal(traj.status.numbers, torch.zeros(3, 11, dtype=torch.float64))


def test_the_default_solves_most_worlds():
    """At the default options the residual is below 1e-6 m/s in most steps of random worlds. Some of the rest is jammed: a ball
    between the ground and an arm at its limit cannot be pushed out of both."""
    x = inputs(torch.float64)
    sim = cs.Simulator(model(), dt=0.005)
    state, residuals = cs.State(x["q"], x["v"]), []
    for t in range(STEPS):
        state, info = sim.step(state, x["control"][t], info=True)
        residuals.append(info.status.residual)
    residuals = torch.stack(residuals)
    assert (residuals < 1e-6).double().mean() > 0.9


def test_penetration_is_the_deepest():
    m = on_ground(cs.Sphere(0.1, name="ball"), height=0.07).build()
    _, info = cs.Simulator(m).step(cs.Simulator(m).initial_state(), info=True)
    assert info.status.penetration == pytest.approx(0.03) and info.status.contacts == 1


# ---- overflow ------------------------------------------------------------------------------------------------------
def crates(max_contacts: int | None) -> cs.Model:
    scene = cs.Scene(max_contacts=max_contacts)
    scene.add_ground()
    for i in range(2):
        scene.add_body(joint=cs.Free(), pos=(i, 0, 0.1), shapes=cs.Box((0.2, 0.15, 0.1)))
    scene.exclude("body0", "body1")
    return scene.build()


def test_overflow_is_flagged():
    m = crates(6)
    sim = cs.Simulator(m)
    assert m.engine.tree.max_contacts == 6
    rest, air = torch.tensor(m.q0), torch.tensor(m.q0)
    air = air.clone()
    air[9] += 1.0  # the second crate is up
    state = cs.State(torch.stack([rest, air]), torch.zeros(2, 12, dtype=torch.float64))
    with pytest.warns(RuntimeWarning, match=r"1 of 2 worlds had more contacts than max_contacts = 6.*8 were needed"):
        traj = sim.rollout(state, steps=5)
    assert traj.status.overflow.tolist() == [5, 0] and traj.status.wanted.tolist() == [8, 4]
    assert traj.status.contacts.tolist() == [6, 4]
    with pytest.warns(RuntimeWarning, match="8 were needed"):
        _, info = sim.step(state, info=True)
    assert info.contacts.active.sum(-1).tolist() == [6, 4] and info.status.overflow.tolist() == [1, 0]


def test_enough_slots_do_not_warn_and_give_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [cs.Simulator(crates(n)).rollout(cs.Simulator(crates(n)).initial_state(2), steps=10) for n in (None, 8, 16)]
    assert all(torch.equal(traj.q, found[0].q) for traj in found)
    assert all((traj.status.overflow == 0).all() for traj in found)


def test_a_world_does_not_overflow_because_of_its_neighbours():
    """Slots are per world: eight contacts in two worlds, four each in different places, need four slots."""
    m = crates(4)
    q = torch.tensor(m.q0).expand(2, -1).clone()
    q[0, 2] += 1.0
    q[1, 9] += 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traj = cs.Simulator(m).rollout(cs.State(q, torch.zeros(2, 12, dtype=torch.float64)), steps=5)
    assert traj.status.contacts.tolist() == [4, 4] and (traj.status.overflow == 0).all()
