"""External forces that are functions of state and time: closed forms, the clock, what they go together with, gradients."""

import math
import warnings

import numpy as np
import pytest
import torch

import costate as cs

F64 = torch.float64
MASS, STIFFNESS, DT = 2.0, 50.0, 0.01


def slider(**joint) -> cs.Model:
    """A mass on rails along x, in the plane."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("cart", joint=cs.Prismatic((1, 0), **joint), mass=MASS, inertia=1.0)
    scene.add_motor("cart")
    return scene.build()


def along_x(force: torch.Tensor) -> torch.Tensor:
    """Forces [...] on one body along x, as [..., 1, 3]."""
    zero = torch.zeros_like(force)
    return torch.stack((force, zero, zero), -1).unsqueeze(-2)


def at(q: float, v: float) -> cs.State:
    return cs.State(torch.tensor([q], dtype=F64), torch.tensor([v], dtype=F64))


# ---- closed forms --------------------------------------------------------------------------------------------------
def driven(t: float, omega: float, force: float) -> float:
    """x(t) of MASS x'' + STIFFNESS x = force cos(omega t), from rest."""
    own = math.sqrt(STIFFNESS / MASS)
    return force / MASS / (own**2 - omega**2) * (math.cos(omega * t) - math.cos(own * t))


def test_a_driven_oscillator():
    sim, omega, force, end = cs.Simulator(slider(stiffness=STIFFNESS)), 3.0, 4.0, 2.0
    errors = []
    for dt in (2e-3, 1e-3):
        steps = round(end / dt)
        drive = lambda state, t: along_x(torch.tensor(force * math.cos(omega * t), dtype=F64))  # noqa: E731
        x = sim.rollout(at(0, 0), steps=steps, external=drive, dt=dt).q[-1].item()
        errors.append(abs(x - driven(end, omega, force)))
    assert errors[1] < 2e-3 * abs(driven(end, omega, force)), errors
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)  # of first order


def test_drag():
    """A force -c v, which a step takes at its start:  v_n = v_0 (1 - c h / m)^n, x_n the sum of h v_k."""
    c = torch.tensor(3.0, dtype=F64, requires_grad=True)
    steps, v0 = 100, 1.5
    traj = cs.Simulator(slider(), dt=DT).rollout(at(0, v0), steps=steps, external=lambda state, t: along_x(-c * state.v[..., 0]))
    keeps = 1 - 3.0 * DT / MASS
    np.testing.assert_allclose(traj.v[:, 0].detach(), v0 * keeps ** np.arange(steps + 1), rtol=1e-12)
    (grad,) = torch.autograd.grad(traj.v[-1, 0], c)
    assert grad.item() == pytest.approx(-v0 * steps * keeps ** (steps - 1) * DT / MASS, rel=1e-11)
    # and not far from v_0 exp(-c t / m)
    assert traj.v[-1].item() == pytest.approx(v0 * math.exp(-3.0 * steps * DT / MASS), rel=0.02)


def test_quadratic_drag_and_its_gradient():
    """m v' = -k v |v|:  v = v0 / (1 + k v0 t / m),  dv/dv0 = 1 / (1 + k v0 t / m)^2"""
    k, v0, end = 0.8, 2.0, 1.0
    start = cs.State(torch.zeros(1, dtype=F64), torch.tensor([v0], dtype=F64, requires_grad=True))
    drag = lambda state, t: along_x(-k * state.v[..., 0] * state.v[..., 0].abs())  # noqa: E731
    v = cs.Simulator(slider(), dt=1e-3).rollout(start, steps=round(end / 1e-3), external=drag).v[-1, 0]
    (grad,) = torch.autograd.grad(v, start.v)
    slowed = 1 + k * v0 * end / MASS
    assert v.item() == pytest.approx(v0 / slowed, rel=1e-3) and grad.item() == pytest.approx(slowed**-2, rel=1e-3)


def test_in_space_torques_come_first():
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("top", joint=cs.Free(), mass=MASS, inertia=(1.0, 2.0, 0.5 + 2.0))
    sim = cs.Simulator(scene.build(), dt=DT)
    spin = lambda state, t: torch.tensor([[0.0, 3.0, 0.0, 4.0 * t, 0.0, 0.0]], dtype=F64)  # noqa: E731
    end = sim.rollout(sim.initial_state(), steps=10, external=spin)[-1]
    np.testing.assert_allclose(end.v, (4.0 * DT * 45 * DT / MASS, 0, 0, 0, 3.0 / 2.0 * 10 * DT, 0), atol=1e-14)


# ---- the clock -----------------------------------------------------------------------------------------------------
def test_time_counts_control_steps():
    sim, told = cs.Simulator(slider(), dt=DT), []

    def forces(state, t):
        told.append(t)

    sim.rollout(at(0, 0), steps=3, external=forces)
    sim.rollout(at(0, 0), steps=3, substeps=4, external=forces)
    sim.rollout(at(0, 0), steps=3, substeps=4, external=forces, dt=0.5)
    sim.rollout(at(0, 0), steps=3, external=forces, dt=1)
    assert all(type(t) is float for t in told)
    assert told == [k * span for span in (DT, 4 * DT, 2.0, 1.0) for k in range(3)]


def test_time_follows_a_step_size_per_world():
    sim = cs.Simulator(slider())
    dt = torch.tensor([0.01, 0.02], dtype=F64, requires_grad=True)
    told = []

    def forces(state, t):
        told.append(t)
        return along_x(t)  # grows with time

    start = cs.State(torch.zeros(2, 1, dtype=F64), torch.zeros(2, 1, dtype=F64))
    v = sim.rollout(start, steps=5, substeps=2, external=forces, dt=dt).v[-1, :, 0]
    np.testing.assert_allclose(torch.stack(told).detach(), 2 * np.arange(5)[:, None] * [0.01, 0.02], rtol=1e-15)
    # two substeps of dt with the force 2 k dt:  v = sum of 2 dt 2 k dt / m
    np.testing.assert_allclose(v.detach(), 40 * dt.detach() ** 2 / MASS, rtol=1e-12)
    (grad,) = torch.autograd.grad(v.sum(), dt)
    np.testing.assert_allclose(grad, 80 * dt.detach() / MASS, rtol=1e-12)


def test_forces_are_held_over_substeps():
    """One control step of n substeps: v_n = v_0 - n c h v_0 / m."""
    drag = lambda state, t: along_x(-3.0 * state.v[..., 0])  # noqa: E731
    traj = cs.Simulator(slider(), dt=DT).rollout(at(0, 1), steps=2, substeps=4, external=drag)
    keeps = 1 - 4 * 3.0 * DT / MASS
    np.testing.assert_allclose(traj.v[:, 0], [1, keeps, keeps**2], rtol=1e-13)


# ---- what they go together with ------------------------------------------------------------------------------------
@pytest.fixture
def sim() -> cs.Simulator:
    return cs.Simulator(slider(stiffness=STIFFNESS, damping=0.5), dt=DT)


STEPS = 20


def waves(worlds: tuple[int, ...] = ()) -> torch.Tensor:
    return along_x(torch.randn(STEPS, *worlds, generator=torch.Generator().manual_seed(0), dtype=F64))


@pytest.mark.parametrize("worlds", [(), (3,), (2, 3)])
def test_as_forces_given_at_once(sim, worlds):
    given = waves(worlds)
    controls = torch.randn(STEPS, *worlds, 1, dtype=F64, requires_grad=True)
    start = sim.initial_state(worlds) if worlds else sim.initial_state()
    for with_controls in (False, True):
        options = {"controls": controls} if with_controls else {"steps": STEPS}
        known = sim.rollout(start, external=given, substeps=2, **options)
        traj = sim.rollout(start, external=lambda state, t: given[round(t / (2 * DT))], substeps=2, **options)
        torch.testing.assert_close(traj.q, known.q, rtol=0, atol=0)
        torch.testing.assert_close(traj.v, known.v, rtol=0, atol=0)
        assert traj.controls is known.controls and torch.equal(traj.diverged_at, known.diverged_at) and len(traj) == STEPS
    grads = [torch.autograd.grad(t.q[-1].sum(), controls, retain_graph=True)[0] for t in (traj, known)]
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-15)


def test_one_force_for_all_worlds_and_worlds_from_controls(sim):
    given = waves()
    traj = sim.rollout(sim.initial_state(3), steps=STEPS, external=lambda state, t: given[round(t / DT)])
    assert traj.q.shape == (STEPS + 1, 3, 1) and torch.equal(traj.q[:, 0], traj.q[:, 2])
    controls = torch.randn(STEPS, 4, 1, dtype=F64, requires_grad=True)
    known = sim.rollout(sim.initial_state(), controls, external=given.unsqueeze(1), clip=0.1)
    traj = sim.rollout(sim.initial_state(), controls, external=lambda state, t: given[round(t / DT)], clip=0.1)
    torch.testing.assert_close(traj.q, known.q, rtol=0, atol=0)
    grads = [torch.autograd.grad(t.q[-1].sum(), controls)[0] for t in (traj, known)]
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-15)


def test_with_a_policy(sim):
    def policy(state, carry, t):
        return 0.5 - state.q, carry + 1

    def forces(state, t):
        return along_x(-2.0 * state.v[..., 0])

    start, state = at(0.3, -0.2), at(0.3, -0.2)
    traj = sim.rollout(start, policy, steps=STEPS, external=forces, carry=0)
    for k in range(STEPS):
        state = sim.step(state, 0.5 - state.q, external=forces(state, k * DT))
    torch.testing.assert_close(traj[-1].q, state.q, rtol=0, atol=0)
    assert traj.carry == STEPS and torch.equal(traj.controls, 0.5 - traj.q[:-1])


def test_no_force_at_all(sim):
    start = at(0.3, -0.2)
    traj = sim.rollout(start, steps=STEPS, external=lambda state, t: None)
    torch.testing.assert_close(traj.q, sim.rollout(start, steps=STEPS).q, rtol=0, atol=0)
    assert traj.controls is None and traj.carry is None


def test_worlds_that_diverge_are_held():
    sim = cs.Simulator(slider(), dt=DT)
    push = torch.tensor([1.0, 1e308], dtype=F64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traj = sim.rollout(sim.initial_state(2), steps=100, external=lambda state, t: along_x(push), dt=1e3)
    assert traj.diverged.tolist() == [False, True] and traj.q.isfinite().all()
    assert any("1 of 2 worlds diverged in step" in str(w.message) for w in caught)


# ---- gradients -----------------------------------------------------------------------------------------------------
def test_gradcheck(sim):
    def loss(q, v, controls, gain, omega, mass):
        def forces(state, t):
            return along_x(gain * torch.sin(omega * t) - gain * state.v[..., 0] ** 3 - state.q[..., 0] ** 2)

        params = sim.model.params().replace(mass=mass)
        traj = sim.rollout(cs.State(q, v), controls, params, external=forces, substeps=2)
        return traj.q[-1], traj.v[-1]

    gen = torch.Generator().manual_seed(3)
    given = [torch.randn(*shape, generator=gen, dtype=F64) for shape in ((2, 1), (2, 1), (8, 2, 1))]
    given += [torch.tensor(0.7, dtype=F64), torch.tensor(9.0, dtype=F64), torch.tensor([1.5], dtype=F64)]
    assert torch.autograd.gradcheck(loss, [x.requires_grad_() for x in given])


def test_gradients_through_contact():
    """A ball that rolls against the wind, whose strength depends on its own speed: central differences."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.9)
    scene.add_body("ball", pos=(0, 0.1), shapes=cs.Circle(0.1, mass=0.5))
    sim = cs.Simulator(scene.build(), dt=DT)

    def reach(wind: torch.Tensor) -> torch.Tensor:
        def forces(state, t):
            off = wind - state.v[..., 0]
            return along_x(0.4 * off * off.abs())

        return sim.rollout(sim.initial_state(), steps=50, external=forces).q[-1, 0]

    wind = torch.tensor(3.0, dtype=F64, requires_grad=True)
    (grad,) = torch.autograd.grad(reach(wind), wind)
    with torch.no_grad():
        known = (reach(wind + 1e-5) - reach(wind - 1e-5)) / 2e-5
    assert grad.item() == pytest.approx(known.item(), rel=1e-7) and grad > 0.05


def test_truncation_and_decay_cut_the_state_behind_the_force():
    c = 3.0
    drag = lambda state, t: along_x(-c * state.v[..., 0])  # noqa: E731
    keeps = 1 - c * DT / MASS
    for options, wanted in (({}, keeps**4), ({"decay": 0.5}, (0.5 * keeps) ** 4), ({"truncate": 2}, 0.0)):
        v = torch.tensor([1.0], dtype=F64, requires_grad=True)
        traj = cs.Simulator(slider(), dt=DT).rollout(cs.State(v * 0, v), steps=4, external=drag, **options)
        (grad,) = torch.autograd.grad(traj.v[-1].sum(), v, allow_unused=True)
        assert (0.0 if grad is None else grad.item()) == pytest.approx(wanted, rel=1e-12)


# ---- mistakes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "forces, error, words",
    [
        (lambda state, t: torch.zeros(1, 6, dtype=F64), ValueError, "external must have shape [..., 1, 3], got (1, 6)"),
        (lambda state, t: torch.zeros(1, 3), TypeError, "external must be float64, got float32"),
        (lambda state, t: 1.0, TypeError, "external must be a torch tensor or numpy array, got float"),
        (lambda state, t: torch.full((1, 3), torch.nan, dtype=F64), ValueError, "external must be finite"),
    ],
)
def test_bad_forces(sim, forces, error, words):
    with pytest.raises(error) as caught:
        sim.rollout(sim.initial_state(), steps=2, external=forces)
    assert words in str(caught.value)


def test_bad_calls(sim):
    def forces(state, t):
        return None

    with pytest.raises(ValueError, match="steps must be given where there are no controls"):
        sim.rollout(sim.initial_state(), external=forces)
    with pytest.raises(ValueError, match="steps is 3, but controls has 2 steps"):
        sim.rollout(sim.initial_state(), torch.zeros(2, 1, dtype=F64), steps=3, external=forces)
    with pytest.raises(TypeError, match="a rollout with external as a function takes torch tensors"):
        sim.rollout(sim.initial_state().numpy(), steps=3, external=forces)
    with pytest.raises(ValueError, match="dt must be positive"):
        sim.rollout(sim.initial_state(), steps=3, external=forces, dt=-1.0)
