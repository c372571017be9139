"""How a motion depends on the numbers a scene was built from: gradients through Scene against building it anew."""

import pytest
import torch

import costate as cs
from tests.gradients.scenes import generator, normal

# Central differences of a rollout of 40 steps, best of the step sizes below; measured at most 1e-9.
TOLERANCE = 1e-7
STEP_SIZES = (1e-3, 1e-4, 1e-5, 1e-6)
STEPS, WORLDS = 40, 2

START = {
    "length": 0.4,
    "radius": 0.03,
    "density": 900.0,
    "offset": 0.1,
    "stiffness": 1.5,
    "damping": 0.1,
    "twist": 0.3,
    "gear": 1.2,
}


def scene(length, radius, density, offset, stiffness, damping, twist, gear) -> cs.Scene:
    """A swinging arm. `length` sets mass, inertia and centre of mass of every link, and where the next joint is."""
    scene = cs.Scene(collisions=False)
    scene.add_body("base", joint=cs.Free(), pos=(0, 0, 1), shapes=cs.Box((length / 2, 0.1, radius), density=density))
    for i in range(3):
        rod = cs.Capsule(radius, length / 2, density=density, pos=(offset, 0, -length / 2))
        tip = cs.Sphere(2 * radius, density=density, pos=(0, offset, -length))
        options = {"damping": damping, "armature": 0.01 * gear, "stiffness": stiffness}
        joint = cs.Ball(anchor=(0, 0, offset), **options) if i == 1 else cs.Revolute((twist, 1.0, 0.0), rest=(twist,), **options)
        scene.add_body(parent=i, joint=joint, pos=(0.0, offset, -length), quat=(1.0, twist, 0.0, 0.1), shapes=(rod, tip))
    scene.add_motors(gear=gear)
    scene.add_site("tip", body=3, pos=(0, 0, -length))
    return scene


def motion(numbers, w):
    """A number made of the whole trajectory of states and of the tip's path, from a scene built of `numbers`."""
    built = scene(**numbers)
    model, gen = built.build(), generator(1)
    params = built.params()
    sim = cs.Simulator(model)
    state = cs.State(torch.tensor(model.q0) + 0.2 * normal(gen, WORLDS, model.nq), normal(gen, WORLDS, model.nv))
    traj = sim.rollout(state, normal(gen, STEPS, WORLDS, model.nu), params)
    tip = cs.kinematics(model, traj.q, traj.v, params).site_position
    return w @ torch.cat([x.reshape(-1) for x in (traj.q, traj.v, tip)])


def weights():
    model = scene(**START).build()
    return normal(generator(2), (STEPS + 1) * WORLDS * (model.nq + model.nv + 3))


@pytest.mark.parametrize("name", START)
def test_gradient_is_that_of_a_rebuilt_scene(name):
    w = weights()
    x = torch.tensor(START[name], dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(motion({**START, name: x}, w), x)
    scale = START[name]
    errors = []
    for h in STEP_SIZES:
        high, low = (motion({**START, name: scale * (1 + sign * h)}, w) for sign in (1, -1))
        errors.append(abs(exact - (high - low) / (2 * h * scale)).item())
    assert exact.abs() > 1e-3, "a motion that does not depend on the number proves nothing"
    assert min(errors) < TOLERANCE * exact.abs()


def test_all_at_once():
    """One backward pass gives the same numbers as one for each."""
    w = weights()
    leaves = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in START.items()}
    together = torch.autograd.grad(motion(leaves, w), list(leaves.values()))
    for name, found in zip(START, together):
        x = torch.tensor(START[name], dtype=torch.float64, requires_grad=True)
        (alone,) = torch.autograd.grad(motion({**START, name: x}, w), x)
        torch.testing.assert_close(found, alone, rtol=1e-12, atol=0)  # the same sums in another order
