"""Parameters that are not physical are refused where they are used, by every function, with field, owner, world and value."""

import pytest
import torch

import costate as cs
from tests.gradients.differences import CALLS, random_inputs
from tests.gradients.scenes import build, generator

NAN, INF = float("nan"), float("inf")
WORLDS = 3
MODEL = build("every joint")
SITES = ("site_pos", "site_quat")
HIP, YAW = MODEL.body("hip"), MODEL.body("yaw")  # a revolute joint; a massless body


def use(call, params):
    inputs = random_inputs(MODEL, generator(), CALLS[call].inputs, WORLDS)
    CALLS[call].run(cs.Simulator(MODEL), inputs, params)


def put(x, index, value):
    x = x.clone()
    x[index] = torch.as_tensor(value, dtype=x.dtype)
    return x


# only kinematics looks at sites
USES = [
    (call, field)
    for call in CALLS
    for field, value in MODEL.defaults.items()
    if CALLS[call].params and value.numel() and (field not in SITES or call == "kinematics")
]


@pytest.mark.parametrize("value", [NAN, -INF], ids=str)
@pytest.mark.parametrize(("call", "field"), USES)
def test_not_finite(call, field, value):
    params = MODEL.params()
    with pytest.raises(ValueError, match=rf"{field}.* must be finite, got .*{value}"):
        use(call, params.replace(**{field: put(params[field], (0,) * params[field].ndim, value)}))
    many = params.expand(WORLDS)
    with pytest.raises(ValueError, match=rf"{field}.* must be finite, got .*{value}.* in world 2"):
        use(call, many.replace(**{field: put(many[field], (2, *(0,) * params[field].ndim), value)}))


# field, index, value, words of the message
NOT_PHYSICAL = {
    "mass zero": ("mass", HIP, 0.0, "mass of body 'hip' must be positive", "0.0"),
    "mass negative": ("mass", HIP, -1.5, "mass of body 'hip' must be positive", "-1.5"),
    "mass of massless": ("mass", YAW, 1.0, "mass of body 'yaw' must be zero", "1.0"),
    "inertia of massless": ("inertia", YAW, (1, 1, 1, 0, 0, 0), "inertia of body 'yaw' must be zero", "1.0"),
    "inertia negative": ("inertia", HIP, (1, 1, -1, 0, 0, 0), "inertia of body 'hip' must be positive definite", "-1.0"),
    "inertia indefinite": ("inertia", HIP, (1, 1, 1, 2, 0, 0), "inertia of body 'hip' must be positive definite", "2.0"),
    "inertia of a line": ("inertia", HIP, (1, 1, 0, 0, 0, 0), "inertia of body 'hip' must be positive definite", "0.0"),
    "inertia triangle": ("inertia", HIP, (1, 1, 3, 0, 0, 0), "inertia of body 'hip' must keep the triangle inequality", "3.0"),
    "axis zero": ("joint_axis", HIP, (0, 0, 0), "joint_axis of body 'hip' must not be zero", "(0.0, 0.0, 0.0)"),
    "axis tiny": ("joint_axis", HIP, (1e-9, 0, 0), "joint_axis of body 'hip'", "1e-09"),
    "quat zero": ("joint_quat", HIP, (0, 0, 0, 0), "joint_quat of body 'hip' must not be zero", "(0.0, "),
    "quat tiny": ("joint_quat", HIP, (0, 1e-9, 0, 0), "joint_quat of body 'hip'", "1e-09"),
    "rest quaternion": ("rest", slice(3, 7), (0, 0, 0, 0), "rest quaternion of joint 'base' must not be zero", "(0.0, "),
    "stiffness": ("stiffness", HIP, -2.0, "stiffness of body 'hip' must not be negative", "-2.0"),
    "damping": ("damping", 6, -2.0, "damping of joint 'hip' must not be negative", "-2.0"),
    "armature": ("armature", 6, -2.0, "armature of joint 'hip' must not be negative", "-2.0"),
}
CASES = [(what, call) for what in NOT_PHYSICAL for call in ("step", "mass_matrix", "energy")]


@pytest.mark.parametrize(("what", "call"), CASES, ids=[f"{call}: {what}" for what, call in CASES])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_not_physical(what, call, dtype):
    field, index, value, *words = NOT_PHYSICAL[what]
    params = MODEL.params(dtype=dtype)
    with pytest.raises(ValueError) as caught:
        use(call, params.replace(**{field: put(params[field], index, value)}))
    if dtype == torch.float64:
        for word in words:
            assert word in str(caught.value)
    assert field in str(caught.value)


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "requires grad"])
def test_a_world_of_many(grad):
    params = MODEL.params().expand((2, 3))
    params = params.replace(mass=put(params["mass"], (1, 2, HIP), -1.0).requires_grad_(grad))
    with pytest.raises(ValueError, match=r"mass of body 'hip' must be positive, got -1.0 in world \(1, 2\)"):
        cs.mass_matrix(MODEL, torch.tensor(MODEL.q0), params)


def test_writing_to_params_after_use_is_noticed():
    params, sim = MODEL.params(), cs.Simulator(MODEL)
    state = sim.initial_state()
    before = sim.step(state, params=params).v
    params["gravity"][2] = 0.0
    assert not torch.equal(sim.step(state, params=params).v, before)
    params["mass"][HIP] = NAN
    with pytest.raises(ValueError, match="mass of body 'hip' must be finite, got nan"):
        sim.step(state, params=params)


def test_site_quaternion_zero():
    params = MODEL.params()
    with pytest.raises(ValueError, match="site_quat of site 'grip' must not be zero"):
        use("kinematics", params.replace(site_quat=put(params["site_quat"], 0, (0, 0, 0, 0))))
