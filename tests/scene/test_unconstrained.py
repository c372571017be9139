"""Unconstrained: there and back, physical for every value, gradients."""

import pickle

import pytest
import torch

from costate.scene import Box, Capsule, Free, Plane, Revolute, Scene, Sphere

TOL = 1e-12  # one Cholesky factorisation in double


@pytest.fixture
def model():
    scene = Scene(collisions=False)
    scene.add_body("a", joint=Revolute(damping=0.1, stiffness=2.0), shapes=Box((0.1, 0.2, 0.4), pos=(0.1, 0, 0)))
    scene.add_body("b", parent="a", joint=Revolute(), massless=True)
    scene.add_body("c", parent="b", joint=Revolute(damping=0.3), shapes=[Capsule(0.1, 0.3, quat=(1, 2, 3, 4)), Sphere(0.2)])
    return scene.build()


FIELDS = ("mass", "inertia", "damping", "stiffness", "com")


CONTACT = ("friction", "restitution", "softness", "shape_size", "shape_pos", "dry_friction", "kp", "kd", "limit_upper")


@pytest.fixture
def touching():
    """Zeros and positive numbers in every field of CONTACT; restitution 0, 0.25, 1 and 0.5."""
    scene = Scene()
    scene.add_shape(Plane(friction=0.0))
    scene.add_body("a", joint=Free(), shapes=Box((0.1, 0.2, 0.3), restitution=0.25, group=2, mask=4))
    scene.add_body("b", joint=Free(), shapes=Sphere(0.2, restitution=1, softness=1e-3, friction=0.7))
    scene.add_body("c", parent="b", joint=Revolute(friction=0.3, limits=(-1, 1)), shapes=Capsule(0.1, 0.4, restitution=0.5))
    scene.exclude("a", "b")
    scene.exclude("a", "c")
    scene.add_motor("c")
    scene.add_position("c", kp=20.0, kd=0.5)
    scene.add_velocity("c", kd=3.0)
    return scene.build()


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, TOL), (torch.float32, 1e-5)])
def test_there_and_back(model, batch, dtype, tol):
    params = model.params(dtype=dtype)
    params = params.expand(batch) if batch else params
    free = params.unconstrained(FIELDS)
    assert {name: tuple(t.shape) for name, t in free.tensors.items()} == {
        "log_mass": (*batch, 2),
        "log_cholesky": (*batch, 2, 6),
        "log_damping": (*batch, 2),
        "log_stiffness": (*batch, 1),
        "com": (*batch, 3, 3),
    }
    assert all(leaf.is_leaf and leaf.requires_grad and leaf.dtype == dtype for leaf in free.leaves())
    again = free.params()
    for name, tensor in params.items():
        torch.testing.assert_close(again[name].detach(), tensor, rtol=tol, atol=tol)
        assert again[name].requires_grad == (name in FIELDS)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, TOL), (torch.float32, 1e-6)])
def test_contact_there_and_back(touching, batch, dtype, tol):
    params = touching.params(dtype=dtype)
    params = params.expand(batch) if batch else params
    free = params.unconstrained(CONTACT)
    assert {name: tuple(t.shape) for name, t in free.tensors.items()} == {
        "log_friction": (*batch, 3),
        "logit_restitution": (*batch, 2),
        "log_softness": (*batch, 1),
        "log_shape_size": (*batch, 6),
        "shape_pos": (*batch, 4, 3),
        "log_dry_friction": (*batch, 1),
        "log_kp": (*batch, 1),
        "log_kd": (*batch, 2),
        "limit_upper": (*batch, 1),
    }
    again = free.params()
    again.check()
    for name, tensor in params.items():
        torch.testing.assert_close(again[name].detach(), tensor, rtol=tol, atol=tol)
        assert again[name].requires_grad == (name in CONTACT)


def test_every_contact_value_is_physical(touching):
    fields = tuple(name for name in CONTACT if name not in ("shape_pos", "limit_upper"))
    free = touching.params().expand(200).unconstrained(fields)
    with torch.no_grad():
        for leaf in free.leaves():
            leaf.copy_(3 * torch.randn_like(leaf))
    params = free.params()
    params.check()
    assert not params["friction"][:, 0].any() and not params["shape_size"][:, 0].any()
    assert not params["restitution"][:, 0].any() and (params["restitution"][:, 2] == 1).all()


def test_contact_gradients(touching):
    free = touching.params().unconstrained(CONTACT)
    names = list(free.tensors)

    def physical(*values):
        free.tensors = dict(zip(names, values, strict=True))
        params = free.params()
        return tuple(params[field] for field in CONTACT)

    assert torch.autograd.gradcheck(physical, tuple(free.leaves()))


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("restitution", 0.0, r"no entry of restitution lies between 0 and 1.*got \[0.0, 0.0, 0.0, 0.0\]"),
        ("restitution", [[0.0] * 4, [0.5] * 4], "entries of restitution are 0 or 1 in some worlds only"),
        ("friction", 0.0, "no entry of friction is positive"),
        ("friction", [0.1, -0.1, 0.1, 0.1], "friction of shape 'a/0' must not be negative, got -0.1"),
    ],
)
def test_contact_without_coordinates_raises(touching, field, change, message):
    with pytest.raises(ValueError, match=message):
        touching.params().replace(**{field: change}).unconstrained(field)


def test_every_value_is_physical(model):
    free = model.params().expand(200).unconstrained()
    with torch.no_grad():
        for leaf in free.leaves():
            leaf.copy_(torch.randn_like(leaf))
    free.params().check()
    assert free.params()["mass"][:, [0, 2]].min() > 0 and not free.params()["mass"][:, 1].any()


def test_gradients(model):
    free = model.params().unconstrained(FIELDS)
    names = list(free.tensors)

    def physical(*values):
        free.tensors = dict(zip(names, values, strict=True))
        params = free.params()
        return tuple(params[field] for field in FIELDS)

    assert torch.autograd.gradcheck(physical, tuple(free.leaves()))


def test_optimiser_finds_the_inertia(model):
    target = model.params()["inertia"] * 1.5
    free = model.params().unconstrained("inertia")
    optimiser = torch.optim.LBFGS(free.leaves(), max_iter=100, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def loss():
        optimiser.zero_grad()
        value = (free.params()["inertia"] - target).square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    torch.testing.assert_close(free.params()["inertia"].detach(), target, rtol=1e-4, atol=1e-4)


def test_source_is_untouched(model):
    params = model.params(requires_grad=("mass", "com"))
    free = params.unconstrained(("mass",))
    free.params()["mass"].sum().backward()
    assert params["mass"].grad is None
    assert free.params()["com"] is params["com"]


def test_pickle_and_repr(model):
    free = pickle.loads(pickle.dumps(model.params().unconstrained()))
    assert repr(free) == "Unconstrained(log_mass (2,), log_cholesky (2, 6))"
    torch.testing.assert_close(free.params()["inertia"].detach(), model.defaults["inertia"], rtol=TOL, atol=TOL)


@pytest.mark.parametrize(
    ("fields", "change", "message"),
    [
        ("armature", {}, r"no entry of armature is positive.*got \[0.0, 0.0, 0.0\]"),
        ("damping", {"damping": [[0.1, 0.0, 0.1], [0.1, 0.1, 0.1]]}, "entries of damping are zero in some worlds only"),
        ("inertia", {"inertia": [[1, 2, 3, 0, 0, 0], [0] * 6, [1, 1, 1, 0, 0, 0]]}, r"inertia of body 'a'.*\(1.0, 2.0, 3.0"),
        ("mass", {"mass": [1.0, 0.0, -1.0]}, "mass of body 'c' must be positive, got -1.0"),
        ("masses", {}, "unknown field 'masses'; the fields are gravity, mass"),
    ],
)
def test_what_has_no_coordinates_raises(model, fields, change, message):
    with pytest.raises(ValueError, match=message):
        model.params().replace(**change).unconstrained(fields)
