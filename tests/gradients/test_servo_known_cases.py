"""Servos against closed forms, in every regime and wherever they can sit: gradients of force limits, speeds, gains and gears."""

import math

import pytest
import torch

import costate as cs
from tests.gradients.test_constraint_known_cases import MODES, G, close, tensor
from tests.gradients.test_contact_known_cases import gradients

# A servo's row gives way by 1e-7 of what is light about its body.
CLOSED = 1e-6

PLACE = 0.3  # rad or m, where the dof is
MOUNTS = ("revolute", "prismatic", "planar x", "planar turn", "hinge", "slide", "hinge between two")


def mount(kind, **servo):
    """A body that one dof moves, at PLACE, and a servo on it: model, q, the dof in v, whether it turns."""
    scene, body = cs.Scene(gravity=(0, 0, 0)), {"mass": 1.7, "inertia": (0.2, 0.3, 0.4)}
    turns = kind in ("revolute", "planar turn", "hinge", "hinge between two")
    at, turn = (
        ((0, 0, 0) if turns else (0, 0, PLACE)),
        ((math.cos(PLACE / 2), 0, 0, math.sin(PLACE / 2)) if turns else (1, 0, 0, 0)),
    )
    if kind in ("revolute", "prismatic"):
        joint = (cs.Revolute if turns else cs.Prismatic)((0, 0, 1), initial=PLACE)
        on, dof, v = scene.add_body("body", joint=joint, **body), 0, 0
    elif kind.startswith("planar"):
        dof = v = 2 if turns else 0
        on = scene.add_body("body", joint=cs.Planar(initial=[PLACE * (i == dof) for i in range(3)]), **body)
    else:
        dof, v, other = 0, 5 if turns else 2, None
        if kind == "hinge between two":
            other, v = scene.add_body("other", joint=cs.Free(), **body), 11
        scene.add_body("body", joint=cs.Free(initial=(*at, *turn)), **body)
        on = (scene.add_hinge if turns else scene.add_slide)(other, "body", pos_b=(0, 0, 0), quat_b=(1, 0, 0, 0))
    scene.add_servo(on, dof=dof, **servo)
    return scene.build(), v, turns


REGIMES = {
    "free": {"gain": 20.0, "max_force": 1e4, "max_speed": 30.0},
    "as fast as it may": {"gain": 20.0, "max_force": 1e4, "max_speed": 0.4},
    "as strong as it can": {"gain": 20.0, "max_force": 2.0, "max_speed": 30.0},
}


@pytest.mark.parametrize("u", [1.1, -0.5], ids=["forwards", "backwards"])
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("kind", MOUNTS)
@MODES
def test_servo(gradient, kind, regime, u):
    """gear v+ is gain (u - gear x), or at most max_speed, or what h max_force makes of v; with the gradients of exactly that."""
    model, at, turns = mount(kind, gear=1.5, **REGIMES[regime])
    sim, params = cs.Simulator(model, gradient=gradient), model.params(requires_grad=True)
    state, h, control = sim.initial_state(), tensor(0.01), tensor([u])
    v = state.v.clone()
    v[at] = 0.2
    v.requires_grad_()
    relative = (lambda x: x[11] - x[5]) if kind == "hinge between two" else (lambda x: x[at])
    y = relative(sim.step(cs.State(state.q, v), control, params, dt=h).v)

    size = params["inertia"][..., 2] if turns else params["mass"]
    lightness = (1 / size).sum()
    gear, off = params["gear"][0], control[0] - params["gear"][0] * PLACE
    force = params["force_upper" if off > 0 else "force_lower"][0]
    wanted = {
        "free": params["gain"][0] * off / gear,
        "as fast as it may": params["max_speed"][0] * off.sign() / gear,
        "as strong as it can": relative(v) + h * gear * force * lightness,
    }[regime]
    assert y.item() == pytest.approx(wanted.item(), rel=CLOSED)
    names = ("gain", "max_speed", "force_lower", "force_upper", "gear", "mass", "inertia")
    leaves = {"v": v, "control": control, "dt": h, **{name: params[name] for name in names}}
    found, wanted = gradients(y, leaves), gradients(wanted, leaves)
    for name, grad in wanted.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-5, atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")
    some = {"free": "gain", "as fast as it may": "max_speed", "as strong as it can": "force_upper" if u > 0 else "force_lower"}
    assert found[some[regime]].abs().max() > 1e-3


@pytest.mark.parametrize("u", [3.4, -3.0, 9.5, -20.0, 100.0])
def test_a_hinge_turns_on_beyond_half_a_turn(u):
    """Of all angles that the hinge may have the one nearest to the target counts."""
    model, at, _ = mount("hinge", gain=5.0, max_force=1e3, max_speed=30.0, gear=0.8)
    q = model.integrate(torch.tensor(model.q0), torch.tensor([0, 0, 0, 0, 0, 3.0 - PLACE], dtype=torch.float64))
    control, params = tensor([u]), model.params(requires_grad=("gear", "gain"))
    y = cs.Simulator(model).step(cs.State(q, torch.zeros(6, dtype=torch.float64)), control, params).v[at]
    x = 3.0 + 2 * math.pi * round((u / 0.8 - 3.0) / (2 * math.pi))
    assert abs(u / 0.8 - x) <= math.pi
    wanted = params["gain"][0] * (control[0] - params["gear"][0] * x) / params["gear"][0]
    assert y.item() == pytest.approx(wanted.item(), rel=CLOSED)
    leaves = {"control": control, "gear": params["gear"], "gain": params["gain"]}
    found, wanted = gradients(y, leaves), gradients(wanted, leaves)
    for name, grad in wanted.items():
        assert close(found[name], grad, CLOSED), name


@MODES
def test_a_servo_that_presses_on_the_ground(gradient):
    """It cannot get on: the ground bears  h (m g + max_force), and nothing depends on its gain, speed or target."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("foot", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, mass=2.0))
    scene.add_slide(None, "foot", name="press")
    scene.add_servo("press", gain=30.0, max_force=7.0, max_speed=1.0)
    model, h = scene.build(), 0.01
    sim, params, control = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True), tensor([-0.5])
    after, info = sim.step(sim.initial_state(), control, params, info=True)
    impulse = info.contacts.impulse[0, 2]
    assert impulse.item() == pytest.approx(h * (2.0 * G + 7.0), rel=CLOSED)
    assert after.v.abs().max() < 1e-6
    found = gradients(impulse, {**params, "control": control})
    assert found["force_lower"].item() == pytest.approx(-h, rel=CLOSED)
    assert found["mass"].item() == pytest.approx(h * G, rel=CLOSED)
    for name in ("gain", "max_speed", "force_upper", "control", "tie_pos"):
        assert found[name].abs().max() < 1e-6, name
