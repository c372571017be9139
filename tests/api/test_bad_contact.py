"""Contact, limits and actuators that are not physical are refused by what simulates them, with field, owner, world and value."""

from functools import cache
from math import pi

import pytest
import torch

import costate as cs

NAN, INF = float("nan"), float("inf")
WORLDS = 3


@cache
def model() -> cs.Model:
    """Every field that contact, limits and actuators have. Shapes: ground, nose (sphere), b/0 (capsule), c/0 (box)."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("a", joint=cs.Free(), pos=(0, 0, 1), shapes=cs.Sphere(0.1, name="nose", restitution=0.5))
    joint = cs.Revolute(limits=(-1, 1), friction=0.2, name="j")
    scene.add_body("b", parent="a", joint=joint, shapes=cs.Capsule(0.1, 0.2))
    scene.add_body("c", parent="b", joint=cs.Ball(limit=1.0), shapes=cs.Box((0.1, 0.2, 0.3)))
    scene.exclude("a", "c")
    scene.add_motor("b", control_limits=1, name="m")
    scene.add_position("b", kp=10, kd=1, force_limits=2, name="p")
    scene.add_velocity("b", kd=1, control_limits=(0, 1), force_limits=(-3, 4), name="s")
    return scene.build()


# field, index, value, words of the message
BAD = {
    "radius zero": ("shape_size", (1, 0), 0.0, "shape_size of shape 'nose' must be positive", "0.0"),
    "radius negative": ("shape_size", (1, 0), -0.5, "shape_size of shape 'nose' must be positive", "-0.5"),
    "half length zero": ("shape_size", (2, 1), 0.0, "shape_size of shape 'b/0' must be positive", "0.0"),
    "half extent zero": ("shape_size", (3, 2), 0.0, "shape_size of shape 'c/0' must be positive", "0.0"),
    "size nan": ("shape_size", (3, 0), NAN, "shape_size of shape 'c/0' must be finite", "nan"),
    "shape_pos infinite": ("shape_pos", (1, 2), INF, "shape_pos of shape 'nose' must be finite", "inf"),
    "shape_quat zero": ("shape_quat", 2, 0.0, "shape_quat of shape 'b/0' must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
    "friction negative": ("friction", 0, -0.25, "friction of shape 'ground' must not be negative", "-0.25"),
    "friction nan": ("friction", 3, NAN, "friction of shape 'c/0' must be finite", "nan"),
    "restitution above 1": ("restitution", 1, 1.5, "restitution of shape 'nose' must lie between 0 and 1", "1.5"),
    "restitution negative": ("restitution", 1, -0.5, "restitution of shape 'nose' must lie between 0 and 1", "-0.5"),
    "softness negative": ("softness", 2, -0.5, "softness of shape 'b/0' must not be negative", "-0.5"),
    "limits in the wrong order": (
        "limit_lower",
        0,
        1.5,
        "limit_lower and limit_upper of joint 'j' must be in order",
        "(1.5, 1.0)",
    ),
    "limits equal": ("limit_upper", 0, -1.0, "limit_lower and limit_upper of joint 'j' must be in order", "(-1.0, -1.0)"),
    "limit of a ball zero": ("limit_upper", 1, 0.0, "limit_upper of joint 'c' must be above 0 and at most pi", "0.0"),
    "limit of a ball above pi": ("limit_upper", 1, 3.25, "limit_upper of joint 'c' must be above 0 and at most pi", "3.25"),
    "limit nan": ("limit_lower", 0, NAN, "limit_lower of joint 'j' must be finite", "nan"),
    "dry friction negative": ("dry_friction", 0, -0.5, "dry_friction of joint 'j' must not be negative", "-0.5"),
    "control limits": ("control_lower", 1, 1.5, "control_lower and control_upper of motor 's' must be in order", "(1.5, 1.0)"),
    "force limits": ("force_upper", 0, -2.5, "force_lower and force_upper of motor 'p' must be in order", "(-2.0, -2.5)"),
    "kp zero": ("kp", 1, 0.0, "kp of motor 'p' must be positive", "0.0"),
    "kp of a motor": ("kp", 0, 1.0, "kp of motor 'm' must be zero for this type of actuator", "1.0"),
    "kd negative": ("kd", 1, -1.0, "kd of motor 'p' must not be negative", "-1.0"),
    "kd of a velocity servo zero": ("kd", 2, 0.0, "kd of motor 's' must be positive", "0.0"),
}


def start(dtype: torch.dtype, worlds: int | None) -> cs.State:
    return cs.Simulator(model(), dtype=dtype).initial_state(worlds)


CALLS = {
    "step": lambda sim, state, params: sim.step(state, params=params),
    "step with info": lambda sim, state, params: sim.step(state, params=params, info=True),
    "rollout": lambda sim, state, params: sim.rollout(state, params=params, steps=2),
    "policy": lambda sim, state, params: sim.rollout(state, lambda s, c, t: s.q[..., :3], params, steps=2),
    "linearize": lambda sim, state, params: sim.linearize(state, params=params),
    "numpy step": lambda sim, state, params: sim.step(cs.State(state.q.numpy(), state.v.numpy()), params=params),
}


def assert_refused(call: str, params: cs.Params, state: cs.State, *words: str) -> None:
    sim = cs.Simulator(model(), dtype=state.q.dtype)
    with pytest.raises(ValueError) as caught:
        CALLS[call](sim, state, params)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("what", list(BAD))
@pytest.mark.parametrize("call", list(CALLS))
def test_refused(call, what, dtype):
    """For all worlds at once, and in one world of several, by its number."""
    field, index, value, *words = BAD[what]
    good = model().params(dtype=dtype)
    bad = good[field].clone()
    bad[index] = value
    assert_refused(call, good.replace(**{field: bad}), start(dtype, None), *words)
    many = torch.stack([good[field], good[field], bad])
    assert_refused(call, good.replace(**{field: many}), start(dtype, WORLDS), *words, "in world 2")


@pytest.mark.parametrize("what", ["friction negative", "limits in the wrong order", "radius zero"])
def test_refused_also_with_gradients(what):
    field, index, value, *words = BAD[what]
    good = model().params()
    bad = good[field].clone()
    bad[index] = value
    assert_refused("rollout", good.replace(**{field: bad.requires_grad_()}), start(torch.float64, None), *words)


def test_refused_after_writing_to_params_in_use():
    params, sim = model().params(), cs.Simulator(model())
    state = sim.initial_state()
    sim.step(state, params=params)
    params["friction"][1] = -1.0
    with pytest.raises(ValueError, match=r"friction of shape 'nose' must not be negative, got -1\.0"):
        sim.step(state, params=params)


def test_wrong_shape_of_a_field():
    """One number too many, and a batch that does not fit the worlds."""
    params, sim = model().params(), cs.Simulator(model())
    with pytest.raises(ValueError, match="friction"):
        params.replace(friction=torch.ones(5, dtype=torch.float64))
    with pytest.raises(ValueError):
        sim.step(sim.initial_state(3), params=params.replace(friction=torch.ones(2, 4, dtype=torch.float64)))
    with pytest.raises((KeyError, ValueError), match="frictoin"):
        params.replace(frictoin=torch.ones(4, dtype=torch.float64))


EDGES = {
    "friction": 0.0, "softness": 0.0, "dry_friction": 0.0, "control_lower": 1.0, "control_upper": 1.0, "force_lower": 0.0,
    "force_upper": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_what_is_on_the_bound_is_simulated(dtype, restitution):
    """Zeros, equal limits of force and control, restitution 0 and 1, a ball's limit of pi: allowed, and finite."""
    params = model().params(dtype=dtype)
    upper = params["limit_upper"].clone()
    upper[1] = pi
    full = {name: torch.full_like(params[name], value) for name, value in EDGES.items()}
    params = params.replace(**full, restitution=torch.full_like(params["restitution"], restitution), limit_upper=upper)
    state = start(dtype, 2)
    q = state.q.clone()
    q[:, 2] = 0.05
    for call in CALLS.values():
        call(cs.Simulator(model(), dtype=dtype), cs.State(q, state.v), params)
    traj = cs.Simulator(model(), dtype=dtype).rollout(cs.State(q, state.v), params=params, steps=20)
    assert torch.isfinite(traj.q).all() and not traj.diverged.any()


def test_python_and_the_engine_agree_on_the_largest_angle():
    """What Params.check() lets pass is simulated: an angle of pi and the least bit more, as float32 has it."""
    params, sim = model().params(), cs.Simulator(model())
    for angle in (pi, float(torch.tensor(pi, dtype=torch.float32)), pi * (1 + 5e-7)):
        upper = params["limit_upper"].clone()
        upper[1] = angle
        fine = params.replace(limit_upper=upper)
        fine.check()
        assert torch.isfinite(sim.step(sim.initial_state(), params=fine).q).all()
