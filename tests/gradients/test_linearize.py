"""linearize: A and B against differences in tangent coordinates, and against the step's own vector-Jacobian products."""

import numpy as np
import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, generator, normal, random_params, random_state

# Central differences with the best of the step sizes; relative to the largest entry. Measured at most 3e-9.
TOLERANCE = 1e-7
# Forward and reverse mode do the same sums in another order; measured at most 4e-15.
TOLERANCE_VJP = 1e-12
STEP_SIZES = (1e-4, 1e-5, 1e-6)
SCENES = ["every joint", "chain", "arm", "quadruped"]


def tangent_step(sim, state, control, params, dx, du, **options):
    """The step as a map between tangent spaces: x = (dq, dv) [..., 2nv] around the state -> around the next state."""
    nv = sim.model.nv
    next_state = sim.step(state, control, params, **options)
    moved = cs.State(sim.model.integrate(state.q, dx[..., :nv]), state.v + dx[..., nv:])
    after = sim.step(moved, control + du, params, **options)
    return torch.cat((sim.model.difference(next_state.q.detach(), after.q), after.v - next_state.v.detach()), -1)


def jacobians_by_differences(sim, state, control, params, h, **options):
    """A and B of one world, all columns at once: every column is a world."""
    n, nu = 2 * sim.model.nv, sim.model.nu
    d = h * torch.eye(n + nu, dtype=torch.float64)
    high, low = (tangent_step(sim, state, control, params, sign * d[:, :n], sign * d[:, n:], **options) for sign in (1, -1))
    columns = (high - low).T / (2 * h)
    return columns[:, :n], columns[:, n:]


@pytest.mark.parametrize("scene", SCENES)
def test_against_differences(scene):
    model, gen = build(scene), generator(1)
    sim, params = cs.Simulator(model), random_params(model, gen)
    state, control, external = random_state(model, gen), normal(gen, model.nu), normal(gen, model.nb, 6)
    found = sim.linearize(state, control, params, external=external, dt=0.02)
    tries = [jacobians_by_differences(sim, state, control, params, h, external=external, dt=0.02) for h in STEP_SIZES]
    for i in range(2):
        assert min((found[i] - wanted[i]).abs().max() for wanted in tries) < TOLERANCE * found[i].abs().max()


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("scene", SCENES)
def test_against_vector_jacobian_products(scene, batch):
    model, gen = build(scene), generator(2)
    sim, params, nv = cs.Simulator(model), random_params(model, gen, *batch), model.nv
    state, control = random_state(model, gen, *batch), normal(gen, *batch, model.nu)
    A, B = sim.linearize(state, control, params)
    assert A.shape == (*batch, 2 * nv, 2 * nv) and B.shape == (*batch, 2 * nv, model.nu)
    dx, du = torch.zeros(*batch, 2 * nv, dtype=torch.float64), torch.zeros_like(control)
    dx.requires_grad_(), du.requires_grad_()
    w = normal(gen, *batch, 2 * nv)
    wA, wB = torch.autograd.grad(tangent_step(sim, state, control, params, dx, du), (dx, du), w)
    for found, wanted in ((w.unsqueeze(-2) @ A, wA), (w.unsqueeze(-2) @ B, wB)):
        assert (found.squeeze(-2) - wanted).norm() < TOLERANCE_VJP * wanted.norm()


def test_every_world_of_a_batch_is_its_own():
    model, gen = build("every joint"), generator(3)
    sim, state, control = cs.Simulator(model), random_state(model, gen, 5), normal(gen, 5, model.nu)
    A, B = sim.linearize(state, control)
    for i in range(5):
        one = sim.linearize(cs.State(state.q[i], state.v[i]), control[i])
        assert torch.equal(A[i], one[0]) and torch.equal(B[i], one[1])


def test_no_control_is_zero_control():
    model, gen = build("arm"), generator(4)
    sim, state = cs.Simulator(model), random_state(model, gen, 3)
    for found, wanted in zip(sim.linearize(state), sim.linearize(state, torch.zeros(3, model.nu, dtype=torch.float64))):
        assert torch.equal(found, wanted)


def test_without_motors():
    scene = cs.Scene()
    scene.add_body(joint=cs.Ball(damping=0.1), mass=1.0, inertia=(0.1, 0.2, 0.15), com=(0, 0, -0.5))
    model = scene.build()
    sim = cs.Simulator(model)
    A, B = sim.linearize(random_state(model, generator(5), 4))
    assert A.shape == (4, 6, 6) and B.shape == (4, 6, 0) and torch.isfinite(A).all()


def test_numpy_and_float32():
    model, gen = build("every joint"), generator(6)
    state, control = random_state(model, gen, 3), normal(gen, 3, model.nu)
    A, B = cs.Simulator(model).linearize(state, control)
    A_np, B_np = cs.Simulator(model).linearize(state.numpy(), control.numpy())
    assert isinstance(A_np, np.ndarray) and np.array_equal(A_np, A) and np.array_equal(B_np, B)
    sim = cs.Simulator(model, dtype=torch.float32)
    single = sim.linearize(cs.State(state.q.float(), state.v.float()), control.float())
    for found, wanted in zip(single, (A, B)):
        assert found.dtype == torch.float32
        assert (found - wanted).norm() < 1e-5 * wanted.norm()  # 24 bits, less what the solve loses; measured 3e-6


def test_result_has_no_graph():
    model, gen = build("arm"), generator(7)
    state = cs.State(*(x.requires_grad_() for x in random_state(model, gen)))
    A, B = cs.Simulator(model).linearize(state, None, model.params(requires_grad=True))
    assert not A.requires_grad and not B.requires_grad


def test_a_double_integrator_by_hand():
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body(joint=cs.Prismatic((1, 0, 0)), mass=2.0, inertia=(1, 1, 1))
    scene.add_motor(0, gear=3.0)
    A, B = cs.Simulator(scene.build(), dt=0.1).linearize(cs.State(torch.zeros(1).double(), torch.zeros(1).double()))
    torch.testing.assert_close(A, torch.tensor([[1.0, 0.1], [0.0, 1.0]], dtype=torch.float64), rtol=0, atol=1e-15)
    torch.testing.assert_close(B, torch.tensor([[0.1 * 0.1 * 1.5], [0.1 * 1.5]], dtype=torch.float64), rtol=1e-14, atol=0)
