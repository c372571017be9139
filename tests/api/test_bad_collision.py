"""Shapes, sizes and arguments of distances that make no sense are refused, with field, shape, world and value.

What `Scene` refuses is in tests/scene/test_bad_contacts.py and test_hulls.py; here is what calls of the engine refuse.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import costate as cs

NAN, INF = float("nan"), float("inf")
WORLDS = 3
CORNERS = [(0.0, 0, 0), (1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)]


@cache
def model() -> cs.Model:
    """Shapes: ground, hills, can/0 (cylinder), gem/0 (hull), rod/0 (capsule); "ghost" has a shape that touches nothing."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_shape(cs.Heightfield(np.zeros((3, 4)), (2, 3), name="hills"))
    scene.add_body("can", joint=cs.Free(), pos=(0, 0, 1), shapes=cs.Cylinder(0.1, 0.2))
    scene.add_body("gem", joint=cs.Free(), pos=(1, 0, 1), shapes=cs.Hull(CORNERS))
    scene.add_body("rod", joint=cs.Free(), pos=(2, 0, 1), shapes=cs.Capsule(0.1, 0.2))
    scene.add_body("ghost", joint=cs.Free(), pos=(3, 0, 1), shapes=cs.Sphere(0.1, collide=False, name="mist"))
    return scene.build()


def state() -> cs.State:
    return cs.Simulator(model()).initial_state(WORLDS)


def check_refused(call, error, *words):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message


# ---- arguments of distance -----------------------------------------------------------------------------------------
def distance(a, b, **options):
    return cs.distance(model(), state().q, a, b, **options)


ARGUMENTS = {
    "unknown name": (lambda: distance("cane/0", "gem/0"), KeyError, "'cane/0'", "can/0"),
    "name of a body": (lambda: distance("can/0", "gem"), KeyError, "'gem'", "gem/0"),
    "a shape that touches nothing": (lambda: distance("mist", "gem/0"), KeyError, "shape that may touch another", "'mist'"),
    "empty name": (lambda: distance("", "gem/0"), KeyError, "''"),
    "index too large": (lambda: distance(5, 0), ValueError, "distance: a must be an index below 5", "5"),
    "index negative": (lambda: distance(2, -1), ValueError, "distance: b must be an index below 5", "-1"),
    "a bool": (lambda: distance(True, 2), TypeError, "distance: a must be the name or the index of a shape", "True"),
    "a number": (lambda: distance(2, 3.0), TypeError, "distance: b must be the name or the index of a shape", "3.0"),
    "none": (lambda: distance("can/0", None), TypeError, "distance: b must be the name or the index of a shape", "None"),
    "a shape itself": (lambda: distance(cs.Sphere(1), 2), TypeError, "distance: a must be the name or the index of a shape"),
    "the same shape": (lambda: distance("can/0", "can/0"), ValueError, "a and b are the same shape 'can/0'"),
    "the same by index": (lambda: distance("can/0", 2), ValueError, "a and b are the same shape 'can/0'"),
    "plane and field": (lambda: distance("ground", "hills"), ValueError, "'ground' and 'hills' both have no end"),
    "field and plane": (lambda: distance(1, 0), ValueError, "'hills' and 'ground' both have no end"),
    "length of q": (lambda: cs.distance(model(), state().q[:, 1:], 2, 3), ValueError, "q must have shape", "27"),
    "q nan": (lambda: cs.distance(model(), torch.full((28,), NAN).double(), 2, 3), ValueError, "q", "nan"),
    "params dict": (lambda: distance(2, 3, params={"mass": 1}), TypeError, "params must be costate.Params", "dict"),
    "params worlds": (lambda: distance(2, 3, params=model().params().expand(2)), ValueError, "do not broadcast", "(2,)"),
    "not a model": (lambda: cs.distance(state(), state().q, 2, 3), (TypeError, AttributeError)),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [(c, e, w) for c, e, *w in ARGUMENTS.values()], ids=list(ARGUMENTS))
def test_arguments_of_distance(call, error, words):
    check_refused(call, error, *words)


def test_two_planes():
    scene = cs.Scene()
    scene.add_shape(cs.Plane(name="floor"))
    scene.add_shape(cs.Plane(name="wall", quat=(0.5, 0.5, 0.5, 0.5)))
    scene.add_body("ball", joint=cs.Free(), pos=(1, 1, 1), shapes=cs.Sphere(0.1))
    built = scene.build()
    check_refused(lambda: cs.distance(built, built.q0, "floor", "wall"), ValueError, "'floor' and 'wall' both have no end")


# ---- sizes, corners and heights in params --------------------------------------------------------------------------
# field, index, value, words
FIELDS = {
    "radius of a cylinder zero": ("shape_size", (2, 0), 0.0, "shape_size of shape 'can/0' must be positive", "0.0"),
    "half length negative": ("shape_size", (2, 1), -0.5, "shape_size of shape 'can/0' must be positive", "-0.5"),
    "cylinder nan": ("shape_size", (2, 0), NAN, "shape_size of shape 'can/0' must be finite", "nan"),
    "capsule infinite": ("shape_size", (4, 1), INF, "shape_size of shape 'rod/0' must be finite", "inf"),
    "field without length": ("shape_size", (1, 0), 0.0, "shape_size of shape 'hills' must be positive", "0.0"),
    "corner nan": ("hull_vertex", (1, 2), NAN, "hull_vertex of shape 'gem/0' must be finite", "nan"),
    "corner infinite": ("hull_vertex", (3, 0), -INF, "hull_vertex of shape 'gem/0' must be finite", "-inf"),
    "height nan": ("height", (5,), NAN, "height of shape 'hills' must be finite", "nan"),
    "height infinite": ("height", (0,), INF, "height of shape 'hills' must be finite", "inf"),
}
CALLS = {
    "distance": lambda s, p: cs.distance(model(), s.q, "can/0", "gem/0", p),
    "step": lambda s, p: cs.Simulator(model()).step(s, params=p),
    "rollout": lambda s, p: cs.Simulator(model()).rollout(s, steps=2, params=p),
}


@pytest.mark.parametrize("call", list(CALLS))
@pytest.mark.parametrize("what", list(FIELDS))
def test_params(call, what):
    """For all worlds, then for one of them, which is named."""
    field, index, value, *words = FIELDS[what]
    shared = model().params()[field].clone()
    shared[index] = value
    check_refused(lambda: CALLS[call](state(), model().params().replace(**{field: shared})), ValueError, *words)
    own = model().params().expand(WORLDS)[field].clone()
    own[(1, *index)] = value
    check_refused(lambda: CALLS[call](state(), model().params().replace(**{field: own})), ValueError, *words, "in world 1")


@pytest.mark.parametrize("field", ["hull_vertex", "height"])
def test_shapes_of_fields(field):
    short = model().params()[field][1:]
    words = f"replace: {field} must have shape", str(tuple(short.shape))
    check_refused(lambda: model().params().replace(**{field: short}), ValueError, *words)


# ---- hulls and terrains --------------------------------------------------------------------------------------------
CUBE = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
SHAPES = {
    "flat but for rounding": (lambda: cs.Hull([(x, y, 1e-17 * z) for x, y, z in CUBE]), "Hull vertices must span a volume"),
    "four on a plane": (lambda: cs.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "Hull vertices must span a volume"),
    "three different points": (lambda: cs.Hull([*CORNERS[:3]] * 2), "Hull vertices must span a volume"),
    "too many corners": (lambda: cs.Hull(ball(65)), "Hull vertices must have at most 64 corners, got 65"),
    "no corner": (lambda: cs.Hull([]), "Hull vertices must be"),
    "no heights": (lambda: cs.Heightfield(np.zeros((0, 3)), (1, 1)), "heights must be numbers [nx, ny], at least 2 x 2"),
    "one column": (lambda: cs.Heightfield(np.zeros((3, 1)), (1, 1)), "heights must be numbers [nx, ny], at least 2 x 2"),
    "a height infinite": (lambda: cs.Heightfield([[0, INF], [0, 0]], (1, 1)), "Heightfield heights must be finite"),
    "half length nan": (lambda: cs.Heightfield(np.zeros((2, 2)), (1, NAN)), "Heightfield half must be finite"),
    "half length negative": (lambda: cs.Heightfield(np.zeros((2, 2)), (-1, 1)), "Heightfield half must be positive"),
    "cylinder zero": (lambda: cs.Cylinder(0, 1), "Cylinder radius must be positive"),
    "cylinder flat": (lambda: cs.Cylinder(1, 0), "Cylinder half_length must be positive"),
    "box flat": (lambda: cs.Box((1, 0, 1)), "Box half"),
}  # fmt: skip


def ball(n: int) -> np.ndarray:
    """n points that are all corners."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("what", list(SHAPES))
def test_shapes(what):
    shape, words = SHAPES[what]
    check_refused(lambda: cs.Scene().add_shape(shape(), name="it"), ValueError, "add_shape('it'): ", words)


def test_hulls_with_64_corners_are_fine():
    scene = cs.Scene()
    for name in "ab":
        scene.add_body(name, joint=cs.Free(), pos=(3.0 * (name == "b"), 0, 0), shapes=cs.Hull(ball(64)))
    built = scene.build()
    gap = cs.distance(built, built.q0, "a/0", "b/0").gap
    assert 1.0 < gap < 1.3
