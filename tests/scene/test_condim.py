"""condim, torsion and rolling of shapes: what a scene takes and refuses, what a model says, files, pickles, solvers, planes."""

import pickle
from typing import Any

import pytest
import torch

import costate as cs
from tests.scene.saved import through_file


def scene(*, planar: bool = False, **surface: Any) -> cs.Scene:
    """A plane with condim 1 and a ball with this surface, which touch; and a ball that gives inertia only."""
    scene = cs.Scene(planar=planar, friction_rule="maximum")
    if planar:
        scene.add_shape(cs.HalfPlane(condim=1), name="ground")
        scene.add_body("ball", pos=(0, 0.1), shapes=cs.Circle(0.1, **surface))
    else:
        scene.add_shape(cs.Plane(condim=1), name="ground")
        shapes = (cs.Sphere(0.1, name="skin", **surface), cs.Sphere(0.05, condim=6, collide=False))
        scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=shapes)
    return scene


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_a_model_says_what_its_shapes_have(condim):
    model = scene(condim=condim, torsion=0.02, rolling=0.01).build()
    assert model.shape_condim == (1, condim)  # those that may touch
    assert model.params()["torsion"].tolist() == [0.0, 0.02] and model.params()["rolling"].tolist() == [0.0, 0.01]
    assert (model == scene(condim=condim, torsion=0.02, rolling=0.01).build()) and model != scene(condim=condim).build()
    assert model.shapes[0][0].condim == condim
    assert f" {condim} " in model.summary()


def test_by_default_there_is_friction_and_nothing_against_turning():
    model = scene().build()
    assert model.shape_condim == (1, 3)
    assert not model.params()["torsion"].any() and not model.params()["rolling"].any()


@pytest.mark.parametrize("condim", [0, 2, 5, 7, -1, 3.0, True, "3", None])
@pytest.mark.parametrize("planar", [False, True])
def test_other_numbers_are_refused(condim, planar):
    with pytest.raises(ValueError, match=rf"condim must be 1, 3, 4 or 6, got {condim!r}"):
        scene(condim=condim, planar=planar).build()


@pytest.mark.parametrize("name", ["torsion", "rolling"])
@pytest.mark.parametrize(
    ("value", "error", "words"),
    [(-0.1, ValueError, "must not be negative, got -0.1"), (float("nan"), ValueError, "must be finite, got nan"),
     ((0.1, 0.2), ValueError, "must "), ("much", TypeError, "must ")],
)  # fmt: skip
def test_bad_coefficients(name, value, error, words):
    with pytest.raises(error, match=f"Sphere {name} {words}"):
        scene(condim=6, **{name: value}).build()


@pytest.mark.parametrize("name", ["torsion", "rolling"])
def test_bad_parameters(name):
    """Params.check names the shape and the world, and a step does not take them."""
    model = scene(condim=6).build()
    bad = model.params().expand(3).replace(**{name: torch.tensor([[0, 0.1], [0, 0.1], [0, -0.2]], dtype=torch.float64)})
    for call in (bad.check, lambda: cs.Simulator(model).step(cs.Simulator(model).initial_state(3), params=bad)):
        with pytest.raises(ValueError, match=rf"params: {name} of shape 'skin' must not be negative, got -0.2 in world 2"):
            call()


def test_coefficients_keep_their_graph():
    value = torch.tensor(0.02, dtype=torch.float64, requires_grad=True)
    built = scene(condim=6, torsion=value, rolling=2 * value)
    sim = cs.Simulator(built.build())
    start = sim.initial_state()
    start.v[5] = 5.0
    sim.step(start, params=built.params()).v[5].backward()
    inertia = built.build().params()["inertia"][0, 2].item()
    mass = built.build().params()["mass"][0].item()
    assert value.grad is not None and value.grad.item() == pytest.approx(-mass * 9.81 * 0.01 / inertia, rel=1e-6)


def test_unconstrained_coordinates():
    """An optimiser cannot make them negative."""
    free = scene(condim=6, torsion=0.02, rolling=0.01).build().params().unconstrained(("torsion", "rolling"))
    for step in (0.0, -100.0, 100.0):
        with torch.no_grad():
            params = free.params()
            for leaf in free.leaves():
                leaf += step
        params = free.params()
        params.check()
        assert (params["torsion"] >= 0).all() and (params["rolling"] >= 0).all()


@pytest.mark.parametrize("condim", [1, 4, 6])
@pytest.mark.parametrize("planar", [False, True])
def test_files_and_pickles(condim, planar, tmp_path):
    model = scene(condim=condim, planar=planar, torsion=0.02, rolling=0.01).build()
    for again in (through_file(model, tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again == model and again.shape_condim == model.shape_condim == (1, condim)
        assert torch.equal(again.params()["torsion"], model.params()["torsion"])
        sims = [cs.Simulator(m) for m in (model, again)]
        ends = [sim.rollout(sim.initial_state(), steps=5).v for sim in sims]
        assert torch.equal(*ends)
    shape = pickle.loads(pickle.dumps(cs.Sphere(0.1, condim=condim, torsion=0.2)))
    assert shape == cs.Sphere(0.1, condim=condim, torsion=0.2)


@pytest.mark.parametrize("condim", [4, 6])
def test_the_interior_point_has_none(condim):
    model = scene(condim=condim).build()
    with pytest.raises(
        NotImplementedError, match=rf"InteriorPoint has no torsional .* condim {condim} between 'ground' and 'skin'; use PGS"
    ):
        cs.Simulator(model, solver=cs.InteriorPoint())


@pytest.mark.parametrize("condim", [1, 3])
def test_the_interior_point_has_the_others(condim):
    """What slides without friction or with it; what may not touch anything does not count."""
    sim = cs.Simulator(scene(condim=condim).build(), solver=cs.InteriorPoint())
    start = sim.initial_state()
    start.v[0] = 1.0
    assert (sim.step(start).v[0].item() == pytest.approx(1.0, abs=1e-9)) == (condim == 1)


def test_in_a_plane_nothing_turns_about_a_normal():
    """condim 4 and 6 are 3 there, to the last bit, and 1 has no friction."""
    ends = {}
    for condim in (1, 3, 4, 6):
        sim = cs.Simulator(scene(planar=True, condim=condim, torsion=0.1, rolling=0.1).build())
        start = sim.initial_state()
        start.v[:] = torch.tensor([1.0, 0.0, 2.0])
        ends[condim] = sim.rollout(start, steps=20).v
    assert torch.equal(ends[4], ends[3]) and torch.equal(ends[6], ends[3])
    assert ends[1][-1].tolist() == pytest.approx([1.0, 0.0, 2.0], abs=1e-9)
    assert ends[3][-1, 0] < 0.9


def test_the_larger_of_two_counts():
    """Both ways round; a pair without either keeps its friction only."""
    ends = {}
    for ground, ball in ((6, 1), (1, 6), (4, 3), (3, 3)):
        made = cs.Scene(friction_rule="maximum")
        made.add_shape(cs.Plane(condim=ground, torsion=0.05), name="ground")
        made.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, condim=ball))
        sim = cs.Simulator(made.build())
        start = sim.initial_state()
        start.v[5] = 5.0
        ends[ground, ball] = sim.step(start).v[5].item()
    assert ends[3, 3] == 5.0 and ends[6, 1] == ends[1, 6] == pytest.approx(ends[4, 3]) and ends[4, 3] < 4.0
