"""impacts="toi" as users meet it: values, status and info, numpy, float32, policies, substeps, linearize, gradients by dt."""

import copy
import pickle

import numpy as np
import pytest
import torch

import costate as cs

DT = 1 / 30
SPACES = pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])


def scene(planar: bool) -> cs.Scene:
    """Two balls that bounce beside each other, and an arm with a motor that one of them falls on."""
    made = cs.Scene(planar=planar)
    made.add_ground(restitution=0.9)
    for i in range(2):
        x, y = 0.15 * i, 0.5 + 0.3 * i
        if planar:
            made.add_body(f"b{i}", pos=(x, y), shapes=cs.Circle(0.1, mass=1.0, restitution=0.8))
        else:
            made.add_body(f"b{i}", joint=cs.Free(), pos=(x, 0, y), shapes=cs.Sphere(0.1, mass=1.0, restitution=0.8))
    if planar:
        arm = cs.Rectangle((0.3, 0.02), pos=(-0.3, 0), mass=0.5)
        made.add_body("arm", joint=cs.Revolute(damping=0.1), pos=(-0.3, 1.0), shapes=arm)
    else:
        arm = cs.Capsule(0.02, 0.3, pos=(-0.3, 0, 0), quat=(1, 0, 1, 0), mass=0.5)
        made.add_body("arm", joint=cs.Revolute((0, -1, 0), damping=0.1), pos=(-0.3, 0, 1.0), shapes=arm)
    made.add_motor("arm", gear=5.0)
    return made


def simulator(planar: bool, **options) -> cs.Simulator:
    return cs.Simulator(scene(planar).build(), DT, **{"impacts": "toi", **options})


def worlds(sim: cs.Simulator, n: int | None = None) -> cs.State:
    """Falling, sideways and turning."""
    state = sim.initial_state(n)
    v = 0.5 * torch.randn(state.v.shape, dtype=torch.float64).to(sim.dtype)
    return cs.State(state.q, v)


def controls(sim: cs.Simulator, steps: int, *batch: int) -> torch.Tensor:
    return torch.randn(steps, *batch, sim.model.nu, dtype=torch.float64).to(sim.dtype)


# ---- values --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["TOI", "never", "", True, 0, 8, ["toi"], b"toi"], ids=repr)
def test_bad_values(value):
    with pytest.raises(ValueError, match="impacts must be None or 'toi', got "):
        simulator(True, impacts=value)


def test_what_a_simulator_tells_of_it():
    sim = simulator(True)
    assert sim.impacts == "toi"
    assert repr(sim).endswith(", impacts='toi')")
    plain = cs.Simulator(sim.model)
    assert plain.impacts is None
    assert "impacts" not in repr(plain)
    state = worlds(sim, 3)
    for made in (pickle.loads(pickle.dumps(sim)), copy.copy(sim), copy.deepcopy(sim)):
        assert made.impacts == "toi"
        assert torch.equal(made.rollout(state, steps=12).q, sim.rollout(state, steps=12).q)


def test_models_without_contact_do_not_care():
    made = cs.Scene(planar=True)
    made.add_body("a", joint=cs.Revolute(initial=1.0), shapes=cs.Rectangle((0.05, 0.5), pos=(0, -0.5)))
    model = made.build()
    runs = [cs.Simulator(model, impacts=impacts) for impacts in (None, "toi")]
    assert torch.equal(*(sim.rollout(sim.initial_state(), steps=50).q for sim in runs))


# ---- status and info -----------------------------------------------------------------------------------------------
@SPACES
def test_status_counts_impacts(planar):
    """Of a rollout all together, of a step its own; also in batches, substeps and chains of calls."""
    sim, steps = simulator(planar), 30
    state = worlds(sim, 5)
    traj = sim.rollout(state, steps=steps)
    assert traj.status.impacts.dtype == torch.int64
    assert traj.status.impacts.shape == (5,)
    assert (traj.status.impacts > 2).all()
    total = torch.zeros(5, dtype=torch.int64)
    for k in range(steps):
        state, info = sim.step(state, info=True)
        total += info.status.impacts
        assert torch.equal(state.q, traj.q[k + 1])
    assert torch.equal(total, traj.status.impacts)
    whole = sim.rollout(cs.State(traj.q[0], traj.v[0]), steps=steps // 3, substeps=3)
    assert torch.equal(whole.status.impacts, traj.status.impacts)
    assert torch.equal(whole.q, traj.q[::3])
    plain = cs.Simulator(sim.model, DT).rollout(cs.State(traj.q[0], traj.v[0]), steps=steps)
    assert (plain.status.impacts == 0).all()


def test_info_of_a_step_with_an_impact():
    """Contacts are those of the part that ends the step; the acceleration is that of the whole."""
    made = cs.Scene(planar=True, gravity=(0, 0))
    made.add_ground(restitution=1.0)
    made.add_body("ball", pos=(0, 0.15), shapes=cs.Circle(0.1, mass=2.0, restitution=1.0))
    sim = cs.Simulator(made.build(), 0.05, impacts="toi")
    v = torch.tensor([0, -2.0, 0], dtype=torch.float64, requires_grad=True)
    _, info = sim.step(cs.State(sim.initial_state().q, v), info=True)
    assert info.status.impacts == 1
    assert info.acceleration[1].item() == pytest.approx(4 / 0.05, rel=1e-6)
    assert info.contacts.active.sum() == 1
    assert info.contacts.impulse[0, 1].item() == pytest.approx(8.0, rel=1e-6)
    assert abs(info.contacts.gap[0].item()) < 1e-9
    (by,) = torch.autograd.grad(info.contacts.impulse[0, 1], v, retain_graph=True)
    assert by[1].item() == pytest.approx(-4.0, rel=1e-6)
    (by,) = torch.autograd.grad(info.acceleration[1], v)
    assert by[1].item() == pytest.approx(-2 / 0.05, rel=1e-6)


# ---- other ways to call it -----------------------------------------------------------------------------------------
@SPACES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_numpy_is_torch(planar, dtype):
    sim, steps = simulator(planar, dtype=dtype), 20
    state, u = worlds(sim), controls(sim, 20)
    traj = sim.rollout(state, u)
    arrays = sim.rollout(state.numpy(), u.numpy())
    np.testing.assert_array_equal(arrays.q, traj.q)
    np.testing.assert_array_equal(arrays.status.impacts, traj.status.impacts)
    one = state.numpy()
    for k in range(steps):
        one = sim.step(one, u[k].numpy())
        np.testing.assert_array_equal(one.q, traj.q[k + 1])


@SPACES
def test_float32_follows_float64(planar):
    """For as long as chaos lets it: three bounces."""
    double, single = simulator(planar), simulator(planar, dtype=torch.float32)
    state = worlds(double)
    q, v = (x.clone().requires_grad_() for x in state)
    a = double.rollout(cs.State(q, v), steps=20)
    q32, v32 = (x.float().requires_grad_() for x in state)
    b = single.rollout(cs.State(q32, v32), steps=20)
    assert a.status.impacts == b.status.impacts > 0
    torch.testing.assert_close(a.q.float(), b.q, rtol=0, atol=2e-4)
    w = torch.randn(double.model.nq, dtype=torch.float64)
    for x, y in zip(torch.autograd.grad(a.q[-1] @ w, (q, v)), torch.autograd.grad(b.q[-1] @ w.float(), (q32, v32))):
        assert (x.float() - y).norm() < 0.02 * x.norm()


@SPACES
def test_a_policy_and_forces_are_rollouts_too(planar):
    """With a policy, or forces that depend on time, step by step: the same states and the same gradients."""
    sim, steps = simulator(planar), 15
    u = controls(sim, steps, 3).requires_grad_()
    state = worlds(sim, 3)
    width = 3 if planar else 6
    push = torch.full((sim.model.nb, width), 0.1, dtype=torch.float64, requires_grad=True)
    ways = [
        sim.rollout(state, u, external=push),
        sim.rollout(state, lambda state, carry, t: u[t], steps=steps, external=push),
        sim.rollout(state, u, external=lambda state, t: push),
    ]
    assert (ways[0].status.impacts > 0).all()
    w = torch.randn(sim.model.nq, dtype=torch.float64)
    first = torch.autograd.grad((ways[0].q[-1] @ w).sum(), (u, push))
    for other in ways[1:]:
        assert torch.equal(other.q, ways[0].q)
        assert torch.equal(other.status.impacts, ways[0].status.impacts)
        for a, b in zip(first, torch.autograd.grad((other.q[-1] @ w).sum(), (u, push))):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9 * a.abs().max().item())


def tangent_slopes(sim: cs.Simulator, now: cs.State, control: torch.Tensor, h: float = 1e-6) -> torch.Tensor:
    """A and B side by side, by differences in tangent coordinates."""
    model, nv = sim.model, sim.model.nv
    end = sim.step(now, control).q

    def moved(dx):
        q = model.integrate(now.q, dx[..., :nv])
        new = sim.step(cs.State(q, now.v + dx[..., nv : 2 * nv]), control + dx[..., 2 * nv :])
        return torch.cat((model.difference(end.expand_as(new.q), new.q), new.v), -1)

    d = h * torch.eye(2 * nv + model.nu, dtype=torch.float64)
    return ((moved(d) - moved(-d)) / (2 * h)).T


@SPACES
def test_linearize_through_an_impact(planar):
    """A and B against differences, of steps that one or more impacts split."""
    sim = simulator(planar)
    state, u = worlds(sim), controls(sim, 20)
    traj = sim.rollout(state, u)
    single = [int(sim.step(traj[k], u[k], info=True)[1].status.impacts) for k in range(20)]
    for k in {single.index(1), int(np.argmax(single))}:
        A, B = sim.linearize(traj[k], u[k])
        slopes = tangent_slopes(sim, traj[k], u[k])
        torch.testing.assert_close(torch.cat((A, B), -1), slopes, rtol=0, atol=1e-5 * slopes.abs().max().item())


@SPACES
@pytest.mark.parametrize("gradient", ["implicit", "exact"])
def test_gradient_by_the_step_size(planar, gradient):
    """One per world, over substeps with impacts, against differences."""
    sim = simulator(planar, gradient=gradient)
    state, steps = worlds(sim, 4), 6
    w = torch.randn(sim.model.nq, dtype=torch.float64)
    dt = torch.tensor([0.03, 0.033, 0.036, 0.04], dtype=torch.float64)

    def loss(dt):
        traj = sim.rollout(state, steps=steps, substeps=2, dt=dt)
        assert (traj.status.impacts > 0).all()
        return traj.q[-1] @ w

    grown = dt.clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(grown).sum(), grown)
    slopes = (loss(dt + 1e-7) - loss(dt - 1e-7)) / 2e-7
    torch.testing.assert_close(found, slopes, rtol=1e-5, atol=1e-5)


@SPACES
def test_a_report_follows_impacts(planar):
    sim = simulator(planar)
    q, v = (x.requires_grad_() for x in worlds(sim))
    traj = sim.rollout(cs.State(q, v), steps=20)
    report = sim.gradient_report(traj)
    (found,) = torch.autograd.grad(traj.q[-1].sum(), v, retain_graph=True)
    assert np.isfinite(np.asarray(report.costate_norm)).all()
    assert np.asarray(report.costate_norm)[0] > 0
    assert torch.isfinite(found).all()


def test_terrain_and_an_interior_point():
    """Other shapes and the other solver: a ball on a bumpy field keeps what energy its bounces leave."""
    made = cs.Scene()
    heights = 0.05 * torch.randn(9, 9, dtype=torch.float64)
    made.add_shape(cs.Heightfield(heights, (2.0, 2.0), restitution=0.8))
    made.add_body("ball", joint=cs.Free(), pos=(0.1, 0.05, 1.0), shapes=cs.Sphere(0.1, mass=1.0, restitution=0.8))
    model = made.build()
    for solver in (cs.PGS(), cs.InteriorPoint()):
        sim = cs.Simulator(model, DT, impacts="toi", solver=solver)
        traj = sim.rollout(sim.initial_state(), steps=60)
        assert traj.status.impacts > 1
        E = sum(cs.energy(model, traj.q, traj.v))
        assert (E[1:] < E[:-1] + 1e-6).all()
        assert traj.status.penetration < 1e-3
