"""Params: shapes, batches, graphs and the flat vector."""

import pickle
from math import prod

import numpy as np
import pytest
import torch

from costate._native.layout import FIELDS
from costate.scene import Ball, Params, Revolute, Scene, Sphere


@pytest.fixture
def model():
    scene = Scene()
    scene.add_body("a", joint=Revolute(damping=0.1), shapes=Sphere(0.1))
    scene.add_body("b", parent="a", joint=Ball(damping=0.2), shapes=Sphere(0.2))
    scene.add_site("tip", body="b")
    return scene.build()  # no motors: gear is empty


def test_mapping(model):
    params = model.params()
    assert list(params) == [field.name for field in FIELDS] + ["site_pos", "site_quat"]
    assert len(params) == 44 and "mass" in params and params.get("nothing") is None
    assert params == params and params != model.params()
    assert repr(model.params(requires_grad="mass").expand(3)) == "Params(2 bodies, batch (3,), requires_grad (mass))"
    assert not hasattr(params, "mass")
    with pytest.raises(AttributeError):
        params.mass = 1  # type: ignore[attr-defined]


def test_missing_fields_are_copies_of_the_defaults(model):
    params = Params(model, {"mass": torch.ones(2)})
    params["com"].add_(1.0)
    assert params["mass"].tolist() == [1, 1] and not model.defaults["com"].any()


def test_replace(model):
    params = model.params(dtype=torch.float32)
    leaf = torch.full((5, 2), 2.0, requires_grad=True)
    other = params.replace(mass=leaf, damping=0.5, com=np.array([1, 2, 3]), gravity=(0, 0, -1))
    assert other["mass"] is leaf and other.batch_shape == (5,)
    assert other["damping"].tolist() == [0.5] * 4 and other["com"].tolist() == [[1, 2, 3]] * 2
    assert all(tensor.dtype == torch.float32 for tensor in other.values())
    assert params.batch_shape == () and not params.requires_grad and other.requires_grad
    assert other.leaves() == [leaf]


def test_one_number_keeps_its_graph(model):
    mass = torch.tensor(2.0, requires_grad=True)
    params = model.params().replace(mass=mass)
    params["mass"].sum().backward()
    assert mass.grad == 2.0


def test_leaves_are_listed_once(model):
    shared = torch.ones(4, requires_grad=True)
    assert len(model.params().replace(damping=shared, armature=shared, mass=shared[:2]).leaves()) == 1


def test_expand_and_detach(model):
    params = model.params(requires_grad="mass")
    many = params.expand((3, 4))
    assert many.batch_shape == (3, 4) and many["inertia"].shape == (3, 4, 2, 6)
    many["mass"].sum().backward()
    assert params["mass"].grad is not None and params["mass"].grad.tolist() == [12, 12]
    fresh = params.expand(3).detach(requires_grad=("mass",))
    assert [leaf.shape for leaf in fresh.leaves()] == [(3, 2)]
    with torch.no_grad():
        fresh["mass"][0] = 9.0  # rows have storage of their own
    assert 9.0 not in fresh["mass"][1:] and 9.0 not in params["mass"]
    assert not params.detach().requires_grad


def test_expand_again(model):
    params = model.params().replace(mass=torch.ones(4, 2))
    assert params.expand((3, 4))["mass"].shape == (3, 4, 2)
    with pytest.raises(ValueError, match=r"\(4,\) do not expand to worlds \(3,\)"):
        params.expand(3)


def test_batches_broadcast(model):
    params = model.params().replace(mass=torch.ones(3, 1, 2), gravity=torch.zeros(4, 3))
    assert params.batch_shape == (3, 4)
    assert params.flat().shape == (3, 4, model.params().flat().shape[-1])


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_flat_follows_the_layout(model, batch):
    params = model.params().expand(batch) if batch else model.params()
    params = params.replace(mass=torch.rand(*batch, 2, dtype=torch.float64))
    theta, start = params.flat(), 0
    for field in FIELDS:
        shape = model.field_shapes[field.name]
        stop = start + prod(shape)
        assert torch.equal(theta[..., start:stop].reshape(*batch, *shape), params[field.name])
        start = stop
    assert theta.shape == (*batch, start)
    assert params.flat(torch.float32).dtype == torch.float32


def test_flat_gradient(model):
    params = model.params(requires_grad=True)
    inputs = {field.name: params[field.name] for field in FIELDS if params[field.name].numel()}

    def flat(*values):
        given = dict(zip(inputs, values, strict=True))
        return params.replace(**{**given, "mass": given["mass"].expand(3, 2)}).flat()

    assert torch.autograd.gradcheck(flat, tuple(inputs.values()))


def test_flat_is_kept_until_somebody_writes(model):
    params = model.params()
    theta = params.flat()
    assert params.flat() is theta
    params["mass"][0] = 5.0
    assert params.flat() is not theta and params.flat()[3] == 5.0
    assert params.flat(torch.float32).dtype == torch.float32
    params.flat().zero_()  # not to be done, and not to be remembered
    assert params.flat()[3] == 5.0
    params["mass"].requires_grad_()
    assert params.flat().requires_grad
    with torch.inference_mode():
        assert params.flat().is_inference()
    assert not params.detach().flat().is_inference()


def test_to(model):
    params = model.params(requires_grad="mass")
    params.to(torch.float32)["mass"].sum().backward()
    assert params["mass"].grad is not None and params["mass"].grad.dtype == torch.float64


def test_pickle(model):
    params = model.params(requires_grad="mass").replace(gravity=torch.zeros(2, 3))
    again = pickle.loads(pickle.dumps(params))
    assert again.model == model and again.batch_shape == (2,)
    assert [name for name, tensor in again.items() if tensor.requires_grad] == ["mass"]
    assert all(torch.equal(again[name], tensor) for name, tensor in params.items())


def test_check_accepts_physical_params(model):
    thin = torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])  # a plate: on the bound of the triangle inequality
    for params in (model.params(), model.params(dtype=torch.float32).expand((2, 3)), model.params().replace(inertia=thin)):
        assert params.check() is None
