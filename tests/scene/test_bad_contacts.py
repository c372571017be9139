"""Bad shapes, limits and actuators raise the right exception, with a message that names the field and the value."""

import pytest
import torch

from costate.scene import Ball, Box, Capsule, Cylinder, Free, Heightfield, Hull, Plane, Prismatic, Revolute, Scene, Sphere

NAN, INF, PI = float("nan"), float("inf"), 3.14159265
BALL = Sphere(0.1)
CORNERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]


def scene() -> Scene:
    """Every kind of field that contact, limits and actuators add."""
    scene = Scene()
    scene.add_ground()
    scene.add_body("a", joint=Free(), shapes=Sphere(0.1, name="nose", restitution=0.5))
    scene.add_body("b", parent="a", joint=Revolute(limits=(-1, 1), friction=0.2, name="j"), shapes=Capsule(0.1, 0.2))
    scene.add_body("c", parent="b", joint=Ball(limit=1.0), shapes=Box((0.1, 0.2, 0.3)))
    scene.exclude("a", "c")
    scene.add_motor("b", control_limits=1, force_limits=2, name="m")
    scene.add_position("b", kp=10, kd=1, name="p")
    scene.add_velocity("b", kd=1, control_limits=(0, 1), force_limits=(-3, 4), name="s")
    return scene


def raises(call, error, *words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


# shape or joint of add_body("x", ...), exception, words of the message
PARTS = {
    "radius zero": (Sphere(0), ValueError, "Sphere radius must be positive", "0.0"),
    "half zero": (Box((1, 0, 1)), ValueError, "Box half must be positive", "0.0"),
    "half_length zero": (Capsule(0.1, 0), ValueError, "Capsule half_length must be positive", "0.0"),
    "cylinder radius": (Cylinder(0, 1), ValueError, "Cylinder radius must be positive", "0.0"),
    "cylinder half_length": (Cylinder(1, -1), ValueError, "Cylinder half_length must be positive", "-1.0"),
    "hull shape": (Hull([1, 2, 3]), ValueError, "Hull vertices must be points [n, 3]", "(3,)"),
    "hull columns": (Hull([[1, 2]] * 5), ValueError, "Hull vertices must be points [n, 3]", "(5, 2)"),
    "hull rows": (Hull([[1, 2, 3], [1, 2]]), ValueError, "Hull vertices must be numbers in rows of equal length"),
    "hull type": (Hull("cube"), TypeError, "Hull vertices must be numbers", "'cube'"),
    "hull three": (Hull(CORNERS[:3]), ValueError, "Hull vertices must be at least 4 points", "3"),
    "hull empty": (Hull(torch.zeros(0, 3)), ValueError, "Hull vertices must be at least 4 points", "0"),
    "hull nan": (Hull([*CORNERS, (0, NAN, 0)]), ValueError, "Hull vertices must be finite", "(0.0, nan, 0.0) as vertex 4"),
    "hull infinite": (Hull([(INF, 0, 0), *CORNERS]), ValueError, "Hull vertices must be finite", "as vertex 0"),
    "hull flat": (Hull([(x, y, 1) for x in range(3) for y in range(3)]), ValueError, "Hull vertices must span a volume", "2 m"),
    "hull line": (Hull([(x, x, x) for x in range(5)]), ValueError, "Hull vertices must span a volume", "4 m long"),
    "hull point": (Hull([(1, 2, 3)] * 5), ValueError, "Hull vertices must span a volume", "0 m long"),
    "hull thin": (Hull([(x, y, 1e-6 * x * y) for x in (0, 1) for y in (0, 1)]), ValueError, "must span a volume", "1 m long"),
    "hull mass": (Hull(CORNERS, mass=-1), ValueError, "Hull mass must not be negative", "-1.0"),
    "hull density": (Hull(CORNERS, density=NAN), ValueError, "Hull density must be finite", "nan"),
    "hull quat": (Hull(CORNERS, quat=(0, 0, 0, 0)), ValueError, "Hull quat must not be zero", "0.0"),
    "heights shape": (Heightfield([1, 2, 3], (1, 1)), ValueError, "heights must be numbers [nx, ny], at least 2 x 2", "(3,)"),
    "heights one row": (Heightfield([[1, 2, 3]], (1, 1)), ValueError, "heights must be numbers [nx, ny], at least", "(1, 3)"),
    "heights ragged": (Heightfield([[1, 2], [3]], (1, 1)), ValueError, "Heightfield heights must be numbers in rows of equal"),
    "heights nan": (Heightfield([[1, 2], [3, NAN]], (1, 1)), ValueError, "heights must be finite", "nan at (1, 1)"),
    "heights half": (Heightfield([[1, 2], [3, 4]], (1, 0)), ValueError, "Heightfield half must be positive", "(1.0, 0.0)"),
    "heights half length": (Heightfield([[1, 2], [3, 4]], 1), ValueError, "Heightfield half must be 2 numbers", "1.0"),
    "heights alone": (Heightfield([[1, 2], [3, 4]], (1, 1)), ValueError, "mass of all shapes must be positive", "0.0"),
    "heights mass": (Heightfield([[1, 2], [3, 4]], (1, 1), mass=2), ValueError, "Heightfield has no mass", "2.0"),
    "radius nan": (Sphere(NAN), ValueError, "Sphere radius must be finite", "nan"),
    "friction negative": (Sphere(1, friction=-0.1), ValueError, "Sphere friction must not be negative", "-0.1"),
    "friction nan": (Sphere(1, friction=NAN), ValueError, "Sphere friction must be finite", "nan"),
    "friction length": (Sphere(1, friction=(1, 2)), ValueError, "Sphere friction must be one number", "(1.0, 2.0)"),
    "restitution above 1": (Sphere(1, restitution=1.1), ValueError, "Sphere restitution must lie between 0 and 1", "1.1"),
    "restitution negative": (Sphere(1, restitution=-0.1), ValueError, "Sphere restitution must lie between 0 and 1", "-0.1"),
    "softness negative": (Sphere(1, softness=-1), ValueError, "Sphere softness must not be negative", "-1.0"),
    "softness infinite": (Sphere(1, softness=INF), ValueError, "Sphere softness must be finite", "inf"),
    "collide type": (Sphere(1, collide=1), TypeError, "Sphere collide must be True or False", "1"),
    "group type": (Sphere(1, group="legs"), TypeError, "Sphere group must be an int", "'legs'"),
    "group too large": (Sphere(1, group=1 << 32), TypeError, "Sphere group must be an int of at most 32 bits", "4294967296"),
    "mask type": (Sphere(1, mask=True), TypeError, "Sphere mask must be an int", "True"),
    "name taken": (Sphere(1, name="nose"), ValueError, "there is a shape named 'nose' already"),
    "name reserved": (Sphere(1, name="world"), ValueError, "shape name 'world' is reserved"),
    "name type": (Sphere(1, name=7), TypeError, "name of a shape must be a str", "7"),
    "plane alone": (Plane(), ValueError, "mass of all shapes must be positive", "0.0"),
    "plane with mass": (Plane(mass=2), ValueError, "Plane has no mass", "2.0"),
    "plane quat": (Plane(quat=(0, 0, 0, 0)), ValueError, "Plane quat must not be zero", "0.0"),
    "limits order": (Revolute(limits=(1, -1)), ValueError, "limits must be in order, the lower below the upper", "(1.0, -1.0)"),
    "limits equal": (Prismatic(limits=(1, 1)), ValueError, "limits must be in order, the lower below", "(1.0, 1.0)"),
    "limits length": (Revolute(limits=1), ValueError, "limits must be 2 numbers", "1.0"),
    "limits nan": (Revolute(limits=(NAN, 1)), ValueError, "limits must be finite", "nan"),
    "limits infinite": (Revolute(limits=(0, INF)), ValueError, "limits must be finite", "inf"),
    "limits half": (Revolute(limits=(None, 1)), TypeError, "limits must be numbers", "None"),
    "limit zero": (Ball(limit=0), ValueError, "limit must be above 0 and at most pi", "0.0"),
    "limit above pi": (Ball(limit=3.15), ValueError, "limit must be above 0 and at most pi", "3.15"),
    "limit length": (Ball(limit=(0, 1)), ValueError, "limit must be one number", "(0.0, 1.0)"),
    "dry friction negative": (Revolute(friction=-1), ValueError, "friction must not be negative", "-1.0"),
    "dry friction length": (Ball(friction=(1, 2)), ValueError, "friction must be 3 numbers", "(1.0, 2.0)"),
    "dry friction nan": (Revolute(friction=NAN), ValueError, "friction must be finite", "nan"),
}


@pytest.mark.parametrize(("part", "error", "words"), [(p, e, w) for p, e, *w in PARTS.values()], ids=list(PARTS))
def test_add_body(part, error, words):
    options = {"joint": part, "shapes": BALL} if isinstance(part, (Revolute, Prismatic, Ball)) else {"shapes": part}
    raises(lambda: scene().add_body("x", **options), error, "add_body('x'): ", *words)


CALLS = {
    "plane on a moving body": (lambda s: s.add_shape(Plane(name="p"), body="b"), ValueError,
                               "add_shape('p'): Plane must be on the world or on a body that is fixed to it", "'b'"),
    "plane of a moving body": (lambda s: s.add_body("x", joint=Free(), shapes=[Plane(), BALL]), ValueError,
                               "add_body('x'): Plane must be on the world", "'x', which moves"),
    "plane on a moving parent": (lambda s: s.add_body("x", parent="b", shapes=[Plane(), BALL]), ValueError, "'x', which moves"),
    "shape type": (lambda s: s.add_shape("ball"), TypeError, "add_shape(None): shapes must be shapes", "'ball'"),
    "shape body": (lambda s: s.add_shape(BALL, body="q"), ValueError, "add_shape(None): unknown body 'q'; there are: a, b, c"),
    "shape name taken": (lambda s: s.add_shape(BALL, name="nose"), ValueError, "add_shape('nose')", "shape named 'nose' already"),
    "shape friction": (lambda s: s.add_shape(Sphere(1, friction=-2), name="x"), ValueError, "add_shape('x'): Sphere fr", "-2.0"),
    "ground height": (lambda s: s.add_ground(NAN), ValueError, "add_ground: height must be finite", "nan"),
    "ground friction": (lambda s: s.add_ground(friction=-1), ValueError, "add_ground: Plane friction must not be neg", "-1.0"),
    "ground restitution": (lambda s: s.add_ground(restitution=2), ValueError, "add_ground: Plane restitution must lie", "2.0"),
    "ground name": (lambda s: s.add_ground(name="ground"), ValueError, "add_ground: there is a shape named 'ground' already"),
    "exclude unknown": (lambda s: s.exclude("a", "noses"), ValueError, "unknown body or shape 'noses'; did you mean 'nose'?"),
    "exclude twice the same": (lambda s: s.exclude("a", "a"), ValueError, "needs two bodies or two shapes, got 'a' twice"),
    "exclude index": (lambda s: s.exclude(0, 1), TypeError, "bodies and shapes go by name, got 0 and 1"),
    "exclude both": (lambda s: s.exclude(s.add_shape(BALL, name="b"), "a"), ValueError, "'b' is a body and a shape"),
    "collisions": (lambda s: Scene(collisions=None), TypeError, "collisions must be True or False", "None"),
    "self_collision": (lambda s: Scene(self_collision="no"), TypeError, "self_collision must be True or False", "'no'"),
    "friction_rule": (lambda s: Scene(friction_rule="mean"), ValueError, "friction_rule must be one of geometric, m", "'mean'"),
    "restitution_rule": (lambda s: Scene(restitution_rule=0), ValueError, "restitution_rule must be one of geometric", "0"),
    "max_contacts": (lambda s: Scene(max_contacts=0), ValueError, "max_contacts must be a positive int or None", "0"),
    "motor control_limits": (lambda s: s.add_motor("b", control_limits=(2, 1)), ValueError,
                             "add_motor('b'): control_limits must be in order, the lower not above the upper", "(2.0, 1.0)"),
    "motor force_limits": (lambda s: s.add_motor("b", force_limits=(2, 1)), ValueError, "force_limits must be in", "(2.0, 1.0)"),
    "limits zero": (lambda s: s.add_motor("b", force_limits=0), ValueError, "force_limits must be positive", "0.0"),
    "limits negative": (lambda s: s.add_motor("b", control_limits=-1), ValueError, "control_limits must be positive", "-1.0"),
    "limits length": (lambda s: s.add_motor("b", control_limits=(1, 2, 3)), ValueError, "control_limits must be 2", "3.0"),
    "limits nan": (lambda s: s.add_motor("b", force_limits=(NAN, 1)), ValueError, "force_limits must be finite", "nan"),
    "kp zero": (lambda s: s.add_position("b", kp=0), ValueError, "add_position('b'): kp must be positive", "0.0"),
    "kp negative": (lambda s: s.add_position("b", kp=-5), ValueError, "add_position('b'): kp must be positive", "-5.0"),
    "kd negative": (lambda s: s.add_position("b", kp=1, kd=-5), ValueError, "add_position('b'): kd must not be negative", "-5.0"),
    "kd zero": (lambda s: s.add_velocity("b", kd=0), ValueError, "add_velocity('b'): kd must be positive", "0.0"),
    "kd nan": (lambda s: s.add_velocity("b", kd=NAN), ValueError, "add_velocity('b'): kd must be finite", "nan"),
    "position of a ball": (lambda s: s.add_position("c", kp=1), ValueError, "add_position('c'): dof 0 of a Ball joint turns"),
    "position of a free": (lambda s: s.add_position("a", kp=1, dof=3), ValueError, "dof 3 of a Free joint turns in space"),
    "position dof": (lambda s: s.add_position("b", kp=1, dof=1), ValueError, "add_position('b'): dof must be below 1", "got 1"),
    "position joint": (lambda s: s.add_position("q", kp=1), ValueError, "add_position('q'): unknown joint 'q'"),
    "position name": (lambda s: s.add_position("b", kp=1, name="m"), ValueError, "there is a motor named 'm' already"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [(c, e, w) for c, e, *w in CALLS.values()], ids=list(CALLS))
def test_calls(call, error, words):
    raises(lambda: call(scene()), error, *words)


# field, index, value, words: refused by Params.check(); shapes are ground, nose, b/0 (capsule), c/0 (box)
VALUES = {
    "kp zero": ("kp", 1, 0.0, "kp of motor 'p' must be positive", "0.0"),
    "kp negative": ("kp", 1, -1.0, "kp of motor 'p' must be positive", "-1.0"),
    "kd negative": ("kd", 1, -1.0, "kd of motor 'p' must not be negative", "-1.0"),
    "kd zero": ("kd", 2, 0.0, "kd of motor 's' must be positive", "0.0"),
    "kp of a motor": ("kp", 0, 1.0, "kp of motor 'm' must be zero for this type of actuator", "1.0"),
    "kd of a motor": ("kd", 0, 1.0, "kd of motor 'm' must be zero for this type of actuator", "1.0"),
    "kp of a velocity": ("kp", 2, 1.0, "kp of motor 's' must be zero for this type of actuator", "1.0"),
    "control order": ("control_lower", 1, 1.5, "control_lower and control_upper of motor 's' must be in order", "(1.5, 1.0)"),
    "control nan": ("control_upper", 0, NAN, "control_upper of motor 'm' must be finite", "nan"),
    "force order": ("force_upper", 0, -2.5, "force_lower and force_upper of motor 'm' must be in order", "(-2.0, -2.5)"),
    "limit order": ("limit_lower", 0, 1.0, "limit_lower and limit_upper of joint 'j' must be in order", "(1.0, 1.0)"),
    "limit of a ball zero": ("limit_upper", 1, 0.0, "limit_upper of joint 'c' must be above 0 and at most pi", "0.0"),
    "limit of a ball": ("limit_upper", 1, 3.25, "limit_upper of joint 'c' must be above 0 and at most pi", "3.25"),
    "dry friction": ("dry_friction", 0, -0.5, "dry_friction of joint 'j' must not be negative", "-0.5"),
    "friction": ("friction", 0, -0.5, "friction of shape 'ground' must not be negative", "-0.5"),
    "friction nan": ("friction", 1, NAN, "friction of shape 'nose' must be finite", "nan"),
    "restitution above 1": ("restitution", 1, 1.5, "restitution of shape 'nose' must lie between 0 and 1", "1.5"),
    "restitution negative": ("restitution", 1, -0.5, "restitution of shape 'nose' must lie between 0 and 1", "-0.5"),
    "softness": ("softness", 2, -0.5, "softness of shape 'b/0' must not be negative", "-0.5"),
    "radius zero": ("shape_size", (1, 0), 0.0, "shape_size of shape 'nose' must be positive", "(0.0, 0.0, 0.0)"),
    "half length": ("shape_size", (2, 1), -0.5, "shape_size of shape 'b/0' must be positive", "-0.5, 0.0)"),
    "half extent": ("shape_size", (3, 2), 0.0, "shape_size of shape 'c/0' must be positive", ", 0.0)"),
    "size nan": ("shape_size", (3, 2), NAN, "shape_size of shape 'c/0' must be finite", ", nan)"),
    "shape_pos": ("shape_pos", (1, 0), INF, "shape_pos of shape 'nose' must be finite", "(inf, 0.0, 0.0)"),
    "shape_quat": ("shape_quat", 1, 0.0, "shape_quat of shape 'nose' must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("field", "index", "value", "words"), [(f, i, v, w) for f, i, v, *w in VALUES.values()], ids=list(VALUES)
)
def test_check(field, index, value, words, dtype):
    params = scene().build().params(dtype=dtype)
    params.check()
    bad = params[field].clone()
    bad[index] = value
    raises(params.replace(**{field: bad}).check, ValueError, "params: ", *words)
    raises(params.replace(**{field: torch.stack((params[field], bad))}).check, ValueError, *words, "in world 1")


def test_what_is_on_the_bound_is_accepted():
    params = scene().build().params().expand(2)
    edges = {"friction": 0.0, "softness": 0.0, "dry_friction": 0.0, "force_lower": 0.0, "force_upper": 0.0}
    for restitution in (0.0, 1.0):
        assert params.replace(**edges, restitution=restitution).check() is None
