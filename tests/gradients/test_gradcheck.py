"""torch's own check: whole Jacobians, undefined gradients, and the same answer twice. (Gradients under vmap: tests/api.)"""

import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, free_fields, generator, normal, random_q, random_state

# Central differences with h = 1e-6: round-off gives 1e-16 / 1e-6 of the outputs, which are of order 1 to 100.
OPTIONS = {"eps": 1e-6, "atol": 1e-7, "rtol": 1e-6}
MODEL = build("arm")
FIELDS = tuple(name for name in free_fields(MODEL) if not name.startswith("site"))
SIM = cs.Simulator(MODEL)


def leaves(*tensors):
    return tuple(x.detach().clone().requires_grad_() for x in tensors)


def with_params(fields, *tensors):
    """The tensors and the parameters' `fields`, all as leaves, and a function that makes Params of the latter."""
    params = MODEL.params()
    values = leaves(*tensors, *(params[name] for name in fields))
    return values, lambda found: params.replace(**dict(zip(fields, found)))


@pytest.mark.parametrize("worlds", [(), (2,)], ids=["one world", "two worlds"])
def test_step(worlds):
    gen = generator()
    dt = torch.tensor(0.02, dtype=torch.float64).expand(worlds)
    tensors = (*random_state(MODEL, gen, *worlds), normal(gen, *worlds, MODEL.nu), normal(gen, *worlds, MODEL.nb, 6), dt)
    values, make = with_params(FIELDS, *tensors)

    def step(q, v, control, external, dt, *fields):
        return tuple(SIM.step(cs.State(q, v), control, make(fields), external=external, dt=dt))

    assert torch.autograd.gradcheck(step, values, **OPTIONS)


@pytest.mark.parametrize("options", [{}, {"substeps": 3}], ids=str)
def test_rollout(options):
    gen = generator()
    tensors = (*random_state(MODEL, gen, 2), normal(gen, 4, 2, MODEL.nu), normal(gen, 4, 2, MODEL.nb, 6))
    values, make = with_params(("mass", "damping", "joint_pos", "joint_axis"), *tensors)

    def rollout(q, v, controls, external, *fields):
        return tuple(SIM.rollout(cs.State(q, v), controls, make(fields), external=external, **options).states)

    assert torch.autograd.gradcheck(rollout, values, **OPTIONS)


def test_forward_dynamics():
    gen = generator()
    values, make = with_params(FIELDS, *random_state(MODEL, gen, 2), normal(gen, 2, MODEL.nv), normal(gen, 2, MODEL.nb, 6))

    def acceleration(q, v, tau, external, *fields):
        return cs.forward_dynamics(MODEL, q, v, tau, make(fields), external=external)

    assert torch.autograd.gradcheck(acceleration, values, **OPTIONS)


def test_inverse_dynamics():
    gen = generator()
    values, make = with_params(FIELDS, *random_state(MODEL, gen, 2), normal(gen, 2, MODEL.nv), normal(gen, 2, MODEL.nb, 6))

    def forces(q, v, a, external, *fields):
        return cs.inverse_dynamics(MODEL, q, v, a, make(fields), external=external)

    assert torch.autograd.gradcheck(forces, values, **OPTIONS)


def test_mass_matrix():
    values, make = with_params(FIELDS, random_q(MODEL, generator(), 2))
    assert torch.autograd.gradcheck(lambda q, *fields: cs.mass_matrix(MODEL, q, make(fields)), values, **OPTIONS)


def test_kinematics():
    values, make = with_params(free_fields(MODEL), *random_state(MODEL, generator(), 2))
    assert torch.autograd.gradcheck(lambda q, v, *fields: tuple(cs.kinematics(MODEL, q, v, make(fields))), values, **OPTIONS)


def test_integrate():
    gen = generator()
    assert torch.autograd.gradcheck(MODEL.integrate, leaves(random_q(MODEL, gen, 2), normal(gen, 2, MODEL.nv)), **OPTIONS)


def test_difference():
    gen = generator()
    assert torch.autograd.gradcheck(MODEL.difference, leaves(random_q(MODEL, gen, 2), random_q(MODEL, gen, 2)), **OPTIONS)
