"""At exact rest, where the first sweeps leave nothing to do, both gradients are those of the solution."""

import pytest
import torch

import costate as cs


def lying_ball():
    scene = cs.Scene(friction_rule="maximum")
    scene.add_ground()
    ball = cs.Sphere(0.1, mass=1.0, condim=6, torsion=0.01, rolling=0.01)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=ball)
    return scene.build()


def hinges_with_dry_friction():
    scene, rod = cs.Scene(gravity=(0, 0, 0)), cs.Capsule(0.02, 0.2, mass=1.0, pos=(0, 0, -0.2))
    scene.add_body("a", joint=cs.Revolute(axis=(0, 1, 0), friction=1.0), shapes=rod)
    scene.add_body("b", parent="a", pos=(0, 0, -0.4), joint=cs.Revolute(axis=(0, 1, 0), friction=1.0), shapes=rod)
    return scene.build()


@pytest.mark.parametrize("build", [lying_ball, hinges_with_dry_friction])
def test_what_rests_stays_at_rest_in_both_modes(build):
    """Also where the first sweeps leave nothing to do the gradient is that of the solution: a push is taken up."""
    found = {}
    for mode in ("implicit", "exact"):
        sim = cs.Simulator(build(), 0.01, gradient=mode)
        q, v = sim.initial_state()
        found[mode] = torch.autograd.functional.jacobian(lambda v, sim=sim, q=q: sim.step(cs.State(q, v)).v, v)
    torch.testing.assert_close(found["exact"], found["implicit"], rtol=0, atol=1e-6)
    assert found["exact"].abs().max() < 1e-6
