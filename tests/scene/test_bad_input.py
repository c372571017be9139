"""Every kind of bad input raises the right exception, with a message that names the field and the value."""

import numpy as np
import pytest
import torch

from costate.scene import Ball, Box, Capsule, Free, Params, Planar, Prismatic, Revolute, Scene, Sphere, combine

NAN, INF = float("nan"), float("inf")
BALL = Sphere(0.1)
GRAD = torch.tensor([0.5], requires_grad=True)


def scene() -> Scene:
    """Bodies "a" (free, hanging in the world) and "b" (revolute, on a), a site and a motor."""
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", parent="a", joint=Revolute((0, 1, 0), name="j"), shapes=BALL)
    scene.add_body("c", parent="b", joint=Ball(), shapes=BALL)
    scene.add_site("tip", body="b")
    scene.add_motor("b")
    return scene


def given(**options):
    return options


def raises(call, error, *words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


# options of add_body("x", ...), exception, words of the message
BODY = {
    "mass negative": (given(mass=-1.0, inertia=(1, 1, 1)), ValueError, "mass must be positive", "-1.0"),
    "mass zero": (given(mass=0, inertia=(1, 1, 1)), ValueError, "mass must be positive", "0.0"),
    "mass nan": (given(mass=NAN, inertia=(1, 1, 1)), ValueError, "mass must be finite", "nan"),
    "mass of shapes zero": (given(shapes=Sphere(1, density=0)), ValueError, "mass of all shapes must be positive", "0.0"),
    "mass missing": (given(inertia=(1, 1, 1)), ValueError, "mass is missing", "(1, 1, 1)"),
    "mass alone": (given(mass=2.5), ValueError, "inertia is missing", "2.5"),
    "nothing given": (given(), ValueError, "give shapes, or mass and inertia, or massless=True"),
    "massless with mass": (given(massless=True, mass=1), ValueError, "massless=True goes without mass"),
    "com beside shapes": (given(shapes=BALL, com=(0, 0, 7)), ValueError, "com comes from the shapes", "(0, 0, 7)"),
    "com infinite": (given(mass=1, inertia=(1, 1, 1), com=(0, 0, INF)), ValueError, "com must be finite", "inf"),
    "inertia negative": (given(mass=1, inertia=(1, 1, -1)), ValueError, "inertia must be positive definite", "-1.0"),
    "inertia indefinite": (given(mass=1, inertia=(1, 1, 1, 2, 0, 0)), ValueError, "inertia must be positive definite", "2.0"),
    "inertia of a line": (given(mass=1, inertia=(1, 1, 0)), ValueError, "inertia must be positive definite", "0.0"),
    "inertia triangle": (given(mass=1, inertia=(1, 1, 3)), ValueError, "inertia must keep the triangle inequality", "3.0"),
    "inertia nan": (given(mass=1, inertia=(1, NAN, 1)), ValueError, "inertia must be finite", "nan"),
    "inertia length": (given(mass=1, inertia=(1, 2, 3, 4)), ValueError, "inertia must be 6 numbers", "(1.0, 2.0, 3.0, 4.0)"),
    "inertia not symmetric": (given(mass=1, inertia=np.tri(3)), ValueError, "inertia must be symmetric", "(1.0, 1.0, 0.0)"),
    "inertia ragged": (given(mass=1, inertia=[[1, 0], [1]]), ValueError, "inertia must be numbers in rows", "[[1, 0], [1]]"),
    "axis zero": (given(joint=Revolute((0, 0, 0)), shapes=BALL), ValueError, "axis must not be zero", "(0.0, 0.0, 0.0)"),
    "axis zero prismatic": (given(joint=Prismatic((0, 0, 0)), shapes=BALL), ValueError, "axis must not be zero", "(0.0, "),
    "axis length": (given(joint=Revolute((0, 1)), shapes=BALL), ValueError, "axis must be 3 numbers", "(0.0, 1.0)"),
    "anchor nan": (given(joint=Ball((0, NAN, 0)), shapes=BALL), ValueError, "anchor must be finite", "nan"),
    "quat zero": (given(quat=(0, 0, 0, 0), shapes=BALL), ValueError, "quat must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
    "pos nan": (given(pos=(0, NAN, 0), shapes=BALL), ValueError, "pos must be finite", "nan"),
    "pos length": (given(pos=(0, 1), shapes=BALL), ValueError, "pos must be 3 numbers", "(0.0, 1.0)"),
    "pos batched": (given(pos=torch.zeros(2, 3), shapes=BALL), ValueError, "pos must be 3 numbers", "(0.0, 0.0, 0.0)"),
    "pos text": (given(pos="up", shapes=BALL), TypeError, "pos must be numbers", "'up'"),
    "pos complex": (given(pos=torch.zeros(3, dtype=torch.complex64), shapes=BALL), TypeError, "pos must be real", "complex64"),
    "pos device": (given(pos=torch.zeros(3, device="meta"), shapes=BALL), TypeError, "pos must be on the cpu", "meta"),
    "pos None inside": (given(pos=(0, None, 1), shapes=BALL), TypeError, "pos must be numbers", "None"),
    "damping negative": (given(joint=Revolute(damping=-0.1), shapes=BALL), ValueError, "damping must not be negative", "-0.1"),
    "damping length": (given(joint=Ball(damping=(1, 2)), shapes=BALL), ValueError, "damping must be 3 numbers", "(1.0, 2.0)"),
    "damping infinite": (given(joint=Revolute(damping=INF), shapes=BALL), ValueError, "damping must be finite", "inf"),
    "armature negative": (given(joint=Planar(armature=(1, -2, 1)), shapes=BALL), ValueError, "armature must not be neg", "-2.0"),
    "stiffness negative": (given(joint=Revolute(stiffness=-3), shapes=BALL), ValueError, "stiffness must not be neg", "-3.0"),
    "rest length": (given(joint=Revolute(rest=(1, 2)), shapes=BALL), ValueError, "rest must be 1 numbers", "(1.0, 2.0)"),
    "rest nan": (given(joint=Revolute(rest=NAN), shapes=BALL), ValueError, "rest must be finite", "nan"),
    "rest quaternion": (given(joint=Ball(rest=(0, 0, 0, 0)), shapes=BALL), ValueError, "rest quaternion must not be zero", "0.0"),
    "initial length": (given(joint=Free(initial=(1, 2)), shapes=BALL), ValueError, "initial must be 7 numbers", "(1.0, 2.0)"),
    "initial quaternion": (given(joint=Ball(initial=(0, 0, 0, 0)), shapes=BALL), ValueError, "initial quaternion must", "0.0"),
    "initial with grad": (given(joint=Revolute(initial=GRAD), shapes=BALL), TypeError, "initial sets the initial state", "0.5"),
    "free pos with grad": (given(joint=Free(), pos=(0, 0, GRAD), shapes=BALL), TypeError, "pos sets the initial state", "0.5"),
    "free pose twice": (given(joint=Free(initial=(1, 0, 0, 1, 0, 0, 0)), pos=(2, 0, 0), shapes=BALL), ValueError,
                        "pos and quat disagree with initial", "(1.0, 0.0"),
    "free with parent": (given(joint=Free(), parent="b", shapes=BALL), ValueError, "a free joint needs the world", "'b'"),
    "joint type": (given(joint="hinge", shapes=BALL), TypeError, "joint must be a joint", "'hinge'"),
    "joint name": (given(joint=Revolute(name="j"), shapes=BALL), ValueError, "joint named 'j' already"),
    "parent unknown": (given(parent="bb", shapes=BALL), ValueError, "unknown parent 'bb'; did you mean 'b'?"),
    "parent later": (given(parent=3, shapes=BALL), ValueError, "unknown parent 3; there are: a, b, c"),
    "shapes type": (given(shapes=["ball"]), TypeError, "shapes must be shapes", "'ball'"),
    "radius negative": (given(shapes=Sphere(-0.1)), ValueError, "Sphere radius must be positive", "-0.1"),
    "half negative": (given(shapes=Box((1, -2, 3))), ValueError, "Box half must be positive", "-2.0"),
    "half_length zero": (given(shapes=Capsule(0.1, 0)), ValueError, "Capsule half_length must be positive", "0.0"),
    "density negative": (given(shapes=Sphere(0.1, density=-5)), ValueError, "Sphere density must not be negative", "-5.0"),
    "shape quat zero": (given(shapes=Sphere(0.1, quat=(0, 0, 0, 0))), ValueError, "Sphere quat must not be zero", "0.0"),
    "shape pos nan": (given(shapes=Sphere(0.1, pos=(0, 0, NAN))), ValueError, "Sphere pos must be finite", "nan"),
    "drawn shape": (given(shapes=Sphere(-0.1), mass=1, inertia=(1, 1, 1)), ValueError, "Sphere radius must be positive", "-0.1"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "error", "words"), [(o, e, w) for o, e, *w in BODY.values()], ids=list(BODY))
def test_add_body(options, error, words):
    raises(lambda: scene().add_body("x", **options), error, "add_body('x'): ", *words)


CALLS = {
    "gravity nan": (lambda: Scene(gravity=(0, 0, NAN)), ValueError, "gravity must be finite", "nan"),
    "gravity length": (lambda: Scene(gravity=-9.81), ValueError, "gravity must be 3 numbers", "-9.81"),
    "body twice": (lambda: scene().add_body("a", shapes=BALL), ValueError, "add_body('a')", "body named 'a' already"),
    "body called world": (lambda: scene().add_body("world", shapes=BALL), ValueError, "body name 'world' is reserved"),
    "name type": (lambda: scene().add_body(3, shapes=BALL), TypeError, "name of a body must be a str", "3"),
    "site twice": (lambda: scene().add_site("tip", body="a"), ValueError, "site named 'tip' already"),
    "site body": (lambda: scene().add_site("x", body="q"), ValueError, "add_site('x')", "unknown body 'q'; there are: a, b, c"),
    "site quat": (lambda: scene().add_site("x", body="a", quat=(0, 0, 0, 0)), ValueError, "add_site('x'): quat must", "0.0"),
    "site on the world": (lambda: scene().add_site("x", body="world"), ValueError, "unknown body 'world'"),
    "motor twice": (lambda: scene().add_motor("c", name="j"), ValueError, "motor named 'j' already"),
    "motor joint": (lambda: scene().add_motor("q"), ValueError, "add_motor('q')", "unknown joint 'q'; there are: a, b, c, j"),
    "motor dof": (lambda: scene().add_motor("b", dof=1), ValueError, "add_motor('b'): dof must be below 1", "got 1"),
    "gear nan": (lambda: scene().add_motor("b", gear=NAN), ValueError, "add_motor('b'): gear must be finite", "nan"),
    "no bodies": (lambda: Scene().build(), ValueError, "at least one body"),
    "no shapes": (lambda: combine([]), ValueError, "at least one shape"),
    "requires_grad": (lambda: scene().build().params(requires_grad="masss"), ValueError, "'masss'", "gravity, mass, com"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [(c, e, w) for c, e, *w in CALLS.values()], ids=list(CALLS))
def test_calls(call, error, words):
    raises(call, error, *words)


def test_massless_must_carry_mass():
    bad = Scene()
    bad.add_body("rail", joint=Prismatic(), massless=True)
    bad.add_body("hook", parent="rail", massless=True)
    raises(bad.build, ValueError, "'rail'", "carries no body with mass")


# field, tensor, exception, words: refused when Params are made
FORM = {
    "name": ("weight", torch.ones(3), ValueError, "unknown field 'weight'; the fields are gravity, mass"),
    "shape": ("mass", torch.ones(4), ValueError, "mass must have shape (3,)", "(4,)"),
    "rank": ("inertia", torch.ones(6), ValueError, "inertia must have shape (3, 6)", "(6,)"),
    "batch": ("mass", torch.ones(5, 3), ValueError, "batch shapes do not broadcast", "mass (5,)", "com (2,)"),
    "dtype": ("mass", torch.ones(3, dtype=torch.int64), TypeError, "mass must be float64 or float32", "int64"),
    "half": ("mass", torch.ones(3, dtype=torch.float16), TypeError, "mass must be float64 or float32", "float16"),
    "device": ("mass", torch.ones(3, device="meta"), TypeError, "mass must be on the cpu", "meta"),
    "type": ("mass", np.ones(3), TypeError, "mass must be a torch tensor", "ndarray"),
}


@pytest.mark.parametrize(("field", "value", "error", "words"), [(f, v, e, w) for f, v, e, *w in FORM.values()], ids=list(FORM))
def test_form_of_params(field, value, error, words):
    raises(lambda: Params(scene().build(), {"com": torch.zeros(2, 3, 3), field: value}), error, *words)


REPLACE = {
    "name": ({"weight": 1.0}, ValueError, "unknown field 'weight'"),
    "shape": ({"mass": [1.0, 2.0]}, ValueError, "replace: mass must have shape (3,)", "(2,)"),
    "text": ({"mass": "heavy"}, TypeError, "replace: mass must be numbers", "'heavy'"),
    "dtype": ({"mass": torch.ones(3, dtype=torch.int32)}, TypeError, "mass must be float64 or float32", "int32"),
}


@pytest.mark.parametrize(("fields", "error", "words"), [(f, e, w) for f, e, *w in REPLACE.values()], ids=list(REPLACE))
def test_replace(fields, error, words):
    raises(lambda: scene().build().params().replace(**fields), error, *words)


def at(index, value):
    """A change of one entry of a field."""

    def change(tensor):
        tensor = tensor.clone()
        tensor[index] = torch.as_tensor(value, dtype=tensor.dtype)
        return tensor

    return change


# field, change, words: refused by Params.check()
VALUES = {
    "gravity nan": ("gravity", at(1, NAN), "gravity must be finite", "nan"),
    "mass nan": ("mass", at(1, NAN), "mass of body 'b' must be finite", "nan"),
    "mass negative": ("mass", at(1, -2.0), "mass of body 'b' must be positive", "-2.0"),
    "com infinite": ("com", at((2, 1), INF), "com of body 'c' must be finite", "(0.0, inf, 0.0)"),
    "inertia indefinite": ("inertia", at((0, 0), -1.0), "inertia of body 'a' must be positive definite", "(-1.0, "),
    "inertia triangle": ("inertia", at(1, [1, 1, 3, 0, 0, 0]), "inertia of body 'b' must keep the triangle", "(1.0, 1.0, 3.0"),
    "joint_axis zero": ("joint_axis", at(1, 0.0), "joint_axis of body 'b' must not be zero", "(0.0, 0.0, 0.0)"),
    "joint_quat zero": ("joint_quat", at(2, 0.0), "joint_quat of body 'c' must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
    "joint_pos nan": ("joint_pos", at((1, 0), NAN), "joint_pos of body 'b' must be finite", "(nan, 0.0, 0.0)"),
    "joint_anchor nan": ("joint_anchor", at((1, 0), NAN), "joint_anchor of body 'b' must be finite", "nan"),
    "stiffness negative": ("stiffness", at(1, -3.0), "stiffness of body 'b' must not be negative", "-3.0"),
    "damping negative": ("damping", at(6, -3.0), "damping of joint 'j' must not be negative", "-3.0"),
    "armature negative": ("armature", at(0, -3.0), "armature of joint 'a' must not be negative", "-3.0"),
    "rest nan": ("rest", at(7, NAN), "rest of joint 'j' must be finite", "nan"),
    "rest quaternion": ("rest", at(slice(8, 12), 0.0), "rest quaternion of joint 'c' must not be zero", "0.0"),
    "gear nan": ("gear", at(0, NAN), "gear of motor 'j' must be finite", "nan"),
    "site_pos nan": ("site_pos", at((0, 2), NAN), "site_pos of site 'tip' must be finite", "nan"),
    "site_quat zero": ("site_quat", at(0, 0.0), "site_quat of site 'tip' must not be zero", "0.0"),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("field", "change", "words"), [(f, c, w) for f, c, *w in VALUES.values()], ids=list(VALUES))
def test_check(field, change, words, dtype):
    params = scene().build().params(dtype=dtype)
    raises(params.replace(**{field: change(params[field])}).check, ValueError, *words)
    rows = torch.stack((params[field], params[field], change(params[field])))
    raises(params.replace(**{field: rows}).check, ValueError, *words, "in world 2")


def test_check_names_the_world_of_a_grid():
    mass = torch.ones(4, 5, 3)
    mass[2, 3, 1] = -1.0
    raises(scene().build().params().replace(mass=mass).check, ValueError, "body 'b'", "-1.0", "in world (2, 3)")


def test_check_keeps_massless_bodies_massless():
    other = scene()
    other.add_body("frame", parent="c", massless=True)
    params = other.build().params()
    params.check()
    raises(params.replace(mass=1.0).check, ValueError, "mass of body 'frame' must be zero", "1.0")


def test_unusual_axis_of_other_joints_is_ignored():
    params = scene().build().params()
    assert params.replace(joint_axis=at(0, 0.0)(params["joint_axis"])).check() is None
