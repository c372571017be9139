"""Every pair of shapes that can touch is found, among thousands too, and the points where they touch have names."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from costate.info import candidate_shapes, contact_names
from costate.scene import Box, Capsule, Cylinder, Ellipsoid, Free, Heightfield, Hull, Plane, Scene, Sphere

BALL, BOX, EGG = Sphere(0.1), Box((0.1, 0.2, 0.3)), Ellipsoid((1, 1, 1))
SOLIDS = [BALL, Capsule(0.05, 0.2), BOX, Cylinder(0.1, 0.2), Hull(0.1 * np.vstack((np.eye(3), -np.ones(3))))]
GROUNDS = [Plane(), Heightfield(np.zeros((2, 3)), (1, 1))]


def kind(shape) -> str:
    return type(shape).__name__


def touching(scene: Scene) -> list[tuple[str, ...]]:
    """The candidate pairs, by name."""
    model = scene.build()
    return [tuple(model.shape_names[i] for i in pair) for pair in model.pairs.tolist()]


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations_with_replacement(SOLIDS, 2)), ids=kind)
def test_all_solids_touch(a, b):
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=b)
    scene.add_body("b", joint=Free(), shapes=a)
    assert touching(scene) == [("a/0", "b/0")]


@pytest.mark.parametrize(("ground", "solid"), list(itertools.product(GROUNDS, SOLIDS)), ids=kind)
def test_all_solids_touch_all_grounds(ground, solid):
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=solid)
    scene.add_shape(ground, name="ground")
    scene.add_shape(Plane())
    scene.add_shape(Heightfield(np.zeros((2, 2)), (1, 1)))
    assert touching(scene) == [
        ("a/0", "ground"),
        ("a/0", "world/1"),
        ("a/0", "world/2"),
    ]  # and what stands still does not touch itself


@pytest.mark.parametrize("other", [EGG, *SOLIDS, *GROUNDS], ids=kind)
def test_ellipsoids_have_no_contact(other):
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=EGG)
    if kind(other) in ("Plane", "Heightfield"):
        scene.add_shape(other, name="b/0")
    else:
        scene.add_body("b", joint=Free(), shapes=other)
    wanted = (
        f"build: contact between Ellipsoid 'a/0' and {kind(other)} 'b/0' is not supported; exclude(...) the pair, "
        "set collide=False on one, or Scene(collisions=False)"
    )
    for call in (scene.build, scene.params):
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert str(caught.value) == wanted
    scene.exclude("a", "b/0")
    assert touching(scene) == []


def test_grounds_stand_still():
    for ground in GROUNDS:
        scene = Scene()
        scene.add_body("a", joint=Free(), shapes=BALL)
        wanted = f"{kind(ground)} must be on the world or on a body that is fixed to it, got body 'a', which moves"
        with pytest.raises(ValueError, match=wanted):
            scene.add_shape(ground, body="a")


def test_many_shapes():
    scene, n = Scene(), 1000
    for _ in range(n):
        scene.add_body(joint=Free(), shapes=BOX)
    for i in range(10):
        scene.exclude(f"body{i}", f"body{i + 1}/0")
    model = scene.build()
    assert model.pairs.shape == (n * (n - 1) // 2 - 10, 2) and model.pairs.dtype == np.int32
    assert not model.pairs.flags.writeable and (model.pairs[:, 0] < model.pairs[:, 1]).all()
    assert model.pairs[:2].tolist() == [[0, 2], [0, 3]]


def test_names_of_candidates():
    """Points of one pair need not be neighbours; what stands still comes first, as in the engine."""
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=BOX)
    scene.add_body("b", joint=Free(), shapes=BALL)
    scene.add_ground()
    scene.add_shape(Heightfield(np.zeros((2, 2)), (1, 1)), name="hills")
    model = scene.build()
    assert model.pairs.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3]]
    model.__dict__["engine"] = SimpleNamespace(tree=SimpleNamespace(candidate_pair=[1, 1, 0, 3, 1, 2, 0]))
    shapes = [[2, 0], [2, 0], [0, 1], [2, 1], [2, 0], [3, 0], [0, 1], [-1, -1]]
    assert candidate_shapes(model).tolist() == shapes
    names = [
        "a/0 on ground [0]", "a/0 on ground [1]", "b/0 on a/0 [0]", "b/0 on ground", "a/0 on ground [2]", "a/0 on hills",
        "b/0 on a/0 [1]",
    ]  # fmt: skip
    assert contact_names(model, np.arange(7)) == names
    assert contact_names(model, np.array([6, 3])) == [names[6], names[3]] and contact_names(model, np.arange(0)) == []


def test_no_candidates_have_no_names():
    scene = Scene(collisions=False)
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_ground()
    model = scene.build()
    model.__dict__["engine"] = SimpleNamespace(tree=SimpleNamespace(candidate_pair=[]))
    assert candidate_shapes(model).tolist() == [[-1, -1]] and contact_names(model, np.arange(0)) == []
