"""Heightfields: the grid, what reaches the model and its parameters, and that they stand still."""

import pickle

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene import Free, Heightfield, Plane, Revolute, Scene, Sphere

HILLS = np.arange(12.0).reshape(3, 4) / 10


def landscape(hills=HILLS, half=(2.0, 3.0)) -> Scene:
    scene = Scene()
    scene.add_shape(Heightfield([[0, 1], [2, 3]], (1, 1), name="tilted", quat=(1, 0, 0, 1)))
    scene.add_body("ball", joint=Free(), pos=(0, 0, 5), shapes=Sphere(0.1))
    scene.add_body("island", shapes=[Heightfield(hills, half, pos=(0, 0, -1), friction=0.5, name="hills"), Sphere(0.1)])
    return scene


def test_structure():
    model = landscape().build()
    assert model.shape_names == ("tilted", "ball/0", "hills", "island/1") and model.shape_type == (6, 1, 6, 1)
    assert model.field_nx == (2, 3) and model.field_ny == (2, 4) and model.field_heights == (4, 12)
    assert model.pairs.tolist() == [[0, 1], [1, 2], [1, 3]]
    d = model.defaults
    assert d["shape_size"].tolist() == [[1, 1, 0], [0.1, 0, 0], [2, 3, 0], [0.1, 0, 0]]
    assert d["height"][model.heights("tilted")].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(d["height"][model.heights("hills")].reshape(3, 4), HILLS)
    assert d["hull_vertex"].shape == (0, 3) and d["friction"][2] == 0.5
    assert d["mass"][1] == Sphere(0.1).inertia()[0]
    with pytest.raises(KeyError, match="shape 'ball/0' is no heightfield"):
        model.heights("ball/0")
    assert isinstance(model.shapes[1][0].heights, tuple) and model.world_shapes[0].half == (1.0, 1.0)


def test_it_has_no_mass_and_stands_still():
    mass, com, inertia = Heightfield(HILLS, (1, 2), pos=(1, 2, 3)).inertia()
    assert mass == 0 and com.tolist() == [1, 2, 3] and not inertia.any()
    scene = Scene()
    with pytest.raises(ValueError, match=r"add_body\('a'\): Heightfield must be on the world .* got body 'a', which moves"):
        scene.add_body("a", joint=Revolute(), shapes=[Sphere(1), Heightfield(HILLS, (1, 1))])
    with pytest.raises(ValueError, match=r"add_shape\('b'\): Heightfield heights must be numbers \[nx, ny\]"):
        scene.add_shape(Heightfield(HILLS[0], (1, 1)), name="b")


def test_what_stands_still_does_not_touch():
    scene = Scene()
    scene.add_body("a", shapes=Sphere(0.1))
    scene.add_shape(Heightfield(HILLS, (1, 1)))
    scene.add_shape(Heightfield(HILLS, (1, 1)))
    scene.add_shape(Plane())
    assert len(scene.build().pairs) == 0


def test_equality_and_topology():
    model = landscape().build()
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model == landscape().build() and hash(copy) == hash(model)
    higher, turned = landscape(HILLS + 1).build(), landscape(HILLS.T).build()
    assert higher != model and higher.topology == model.topology
    assert turned != model and turned.topology != model.topology


def test_params_keep_the_graph():
    heights = torch.from_numpy(HILLS).clone().requires_grad_()
    half = torch.tensor((2.0, 3.0), requires_grad=True)
    params = landscape(heights, half).params()
    weight = torch.rand(16, dtype=torch.float64)
    (params["height"] * weight).sum().backward()
    assert torch.equal(heights.grad, weight[4:].reshape(3, 4))
    params["shape_size"][2].sum().backward()
    assert half.grad.tolist() == [1, 1]
    bump = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    landscape([[0.0, bump], [bump**2, 0.0]]).params()["height"].sum().backward()
    assert bump.grad == 2.0


def test_check_of_params():
    params = landscape().build().params()
    params.check()
    params.replace(height=-params["height"]).check()
    bad = params["height"].clone()
    bad[5] = float("inf")
    with pytest.raises(ValueError, match="params: height of shape 'hills' must be finite, got inf"):
        params.replace(height=bad).check()
    size = params["shape_size"].clone()
    size[2, 1] = 0.0
    with pytest.raises(ValueError, match="params: shape_size of shape 'hills' must be positive"):
        params.replace(shape_size=size).check()


def test_large_ones():
    """A million heights: nothing may walk over them one by one more often than to make them plain."""
    x = torch.linspace(-1, 1, 1000, dtype=torch.float64)
    model = landscape(torch.sin(x[:, None]) * torch.cos(x)).build()
    assert model.field_heights == (4, 1_000_000) and model.defaults["height"].shape == (1_000_004,)


def test_the_engine_takes_heightfields():
    model = landscape().build()
    sim = cs.Simulator(model, dt=0.001)
    params = model.params(requires_grad=("height",))
    assert params.flat().shape == (model.engine.tree.params_size,)
    traj = sim.rollout(sim.initial_state(), params=params, steps=10)
    assert traj.q.isfinite().all() and not traj.status.contacts.any()


def test_a_ball_rests_on_level_ground():
    scene = Scene()
    scene.add_shape(Heightfield(np.full((3, 4), 0.25), (1, 1)))
    scene.add_body("ball", joint=Free(), pos=(0.1, 0.2, 0.35), shapes=Sphere(0.1, mass=1.0))
    sim = cs.Simulator(scene.build(), dt=0.005)
    _, info = sim.step(sim.initial_state(), info=True)
    assert (info.contacts.impulse[info.contacts.active].sum(0) / sim.dt)[2].item() == pytest.approx(9.81, abs=1e-6)
