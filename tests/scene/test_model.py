"""Model: sizes, names, immutability, equality, pickling."""

import copy
import pickle
import sys
import types

import numpy as np
import pytest
import torch

from costate.scene import Ball, Box, Free, Model, Revolute, Scene, Sphere


def scene(mass=1.0) -> Scene:
    scene = Scene(collisions=False)
    scene.add_body("base", joint=Free(), pos=(0, 0, 1), shapes=Box((0.1, 0.2, 0.3)))
    scene.add_body("link1", parent="base", joint=Revolute((0, 1, 0), name="knee"), mass=mass, inertia=(1, 1, 1))
    scene.add_body("frame", parent="link1", joint=Ball(), massless=True)
    scene.add_body("tip", parent="frame", shapes=Sphere(0.1))
    scene.add_site("end", body="tip")
    scene.add_motors()
    return scene


@pytest.fixture
def model() -> Model:
    return scene().build()


@pytest.fixture
def engine(monkeypatch):
    """A stand-in for the native engine."""
    module = types.ModuleType("costate._native.cpu")
    module.Engine = type("Engine", (), {"__init__": lambda self, model: setattr(self, "nb", model.nb)})
    monkeypatch.setitem(sys.modules, "costate._native.cpu", module)
    return module.Engine


def test_counts_and_names(model):
    assert (model.nb, model.nq, model.nv, model.nu, model.ns) == (4, 12, 10, 4, 1)
    assert repr(model) == "Model(nb=4, nq=12, nv=10, nu=4, ns=1)"
    assert model.body("tip") == 3 and model.joint("knee") == 1 and model.site("end") == 0 and model.motor("knee") == 0
    assert model.field_shapes["inertia"] == (4, 6) and model.field_shapes["gravity"] == (3,)
    assert all(model.defaults[name].shape == shape for name, shape in model.field_shapes.items())


def test_unknown_name_gets_a_hint(model):
    with pytest.raises(KeyError, match="no body named 'link'; did you mean 'link1'"):
        model.body("link")
    with pytest.raises(KeyError, match="no site named 'camera'; there are: end"):
        model.site("camera")


def test_summary(model):
    lines = model.summary().splitlines()
    assert lines[0] == repr(model) and lines[2] == ""
    assert lines[4].split() == ["0", "base", "world", "base", "free", "-", "-", "0:7", "0:6", "48"]
    assert lines[5].split() == ["1", "link1", "base", "knee", "revolute", "0", "1", "0", "-", "7", "6", "1"]
    assert lines[6].split()[-1] == "massless"
    assert lines[7].split()[-3:] == ["-", "-", f"{model.defaults['mass'][3].item():.6g}"]


def test_immutable(model):
    with pytest.raises(AttributeError):
        model.parent = ()
    with pytest.raises(ValueError):
        model.q0[0] = 1.0
    with pytest.raises(TypeError):
        model.defaults["mass"] = torch.ones(4)


def test_equality_by_value(model):
    same, other = scene().build(), scene(mass=2.0).build()
    assert model == same and hash(model) == hash(same)
    assert model != other and model.topology == other.topology
    assert model != "model"


@pytest.mark.parametrize("remake", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy])
def test_pickle_and_copy(model, engine, remake):
    assert isinstance(model.engine, engine)
    again = remake(model)
    assert again == model and again is not model
    assert "engine" not in vars(again)
    with pytest.raises(TypeError):
        again.defaults["mass"] = torch.ones(4)
    with pytest.raises(ValueError):
        again.q0[0] = 1.0


def test_engine_is_made_once_and_not_compared(model, engine):
    assert model.engine is model.engine
    assert model.engine.nb == 4
    assert model == scene().build()


def test_integrate_and_difference_forward_to_dynamics(model, monkeypatch):
    module = types.ModuleType("costate.dynamics")
    module.integrate = lambda *arguments: ("integrate", *arguments)
    module.difference = lambda *arguments: ("difference", *arguments)
    monkeypatch.setitem(sys.modules, "costate.dynamics", module)
    assert model.integrate(1, 2) == ("integrate", model, 1, 2)
    assert model.difference(1, 2) == ("difference", model, 1, 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_params_are_fresh_leaves(model, dtype):
    params = model.params(requires_grad=("mass", "damping"), dtype=dtype)
    assert {name for name, tensor in params.items() if tensor.requires_grad} == {"mass", "damping"}
    assert all(tensor.is_leaf and tensor.dtype == dtype for tensor in params.values())
    with torch.no_grad():
        for tensor in params.values():
            tensor += 1.0
    assert model == scene().build()
    assert len(model.params(requires_grad=True).leaves()) == len(params)


def test_q0_is_the_scenes(model):
    np.testing.assert_array_equal(model.q0, [0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0])
