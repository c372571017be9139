"""Bad constraints and servos raise the right exception, with a message that names the call, the argument and the value."""

import pytest
import torch

from costate.scene import Ball, Fixed, Free, Planar, Revolute, Scene, Sphere

NAN, INF = float("nan"), float("inf")
BALL = Sphere(0.1)


def scene() -> Scene:
    """Free bodies a and b, with c fixed to a; an arm in the world with a ball joint; one constraint of each kind."""
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", joint=Free(), pos=(0, 0, 1), shapes=BALL)
    scene.add_body("c", parent="a", joint=Fixed(), shapes=BALL)
    scene.add_body("arm", joint=Revolute(name="elbow"), shapes=BALL)
    scene.add_body("hand", parent="arm", joint=Ball(), shapes=BALL)
    scene.add_body("rock", shapes=BALL)
    scene.add_body("cart", joint=Planar(), shapes=BALL)
    scene.add_point("a", "b", name="pin")
    scene.add_hinge("a", "b", name="door")
    scene.add_slide("b", "hand", name="rail")
    scene.add_distance("a", "b", name="rod")
    scene.add_coupling("elbow", "cart", name="gears")
    scene.add_servo("elbow", gain=1, max_force=2, max_speed=3, control_limits=1, name="s")
    scene.add_motor("door", name="m")
    return scene


def raises(call, error, *words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


def call(method, *arguments, **options):
    """method(*arguments, **options) of a scene that is yet to be given."""
    return lambda scene: getattr(scene, method)(*arguments, **options)


TIES = ("point", "weld", "hinge", "slide", "distance", "lock")

# of every kind of tie: a, b, options, exception, words
PAIRS = {
    "same body": ("a", 0, {}, ValueError, "a and b must be two bodies, or one and the world", "'a' and 0"),
    "world twice": (None, "world", {}, ValueError, "a and b must be two bodies, or one and the world", "None and 'world'"),
    "fixed": ("a", "c", {}, ValueError, "no joint moves a and b against each other", "'a' and 'c'"),
    "fixed to the world": ("rock", None, {}, ValueError, "no joint moves a and b against each other", "'rock' and None"),
    "unknown a": ("handle", "b", {}, ValueError, "a: unknown body 'handle'; did you mean 'hand'?"),
    "unknown b": ("a", 9, {}, ValueError, "b: unknown body 9; there are: a, b, c, arm"),
    "a of another type": (1.5, "b", {}, ValueError, "a: unknown body 1.5"),
    "name of a constraint": ("a", "b", {"name": "gears"}, ValueError, "there is a constraint or joint named 'gears' already"),
    "name of a joint": ("a", "b", {"name": "elbow"}, ValueError, "there is a constraint or joint named 'elbow' already"),
    "name type": ("a", "b", {"name": 3}, TypeError, "name of a constraint or joint must be a str", "3"),
    "name reserved": ("a", "b", {"name": "world"}, ValueError, "name 'world' is reserved"),
    "softness negative": ("a", "b", {"softness": -1}, ValueError, "softness must not be negative", "-1.0"),
    "softness nan": ("a", "b", {"softness": NAN}, ValueError, "softness must be finite", "nan"),
    "softness length": ("a", "b", {"softness": (1, 2)}, ValueError, "softness must be one number", "(1.0, 2.0)"),
    "collide": ("a", "b", {"collide": 0}, TypeError, "collide must be True or False", "0"),
    "pos nan": ("a", "b", {"pos": (0, NAN, 0)}, ValueError, "pos must be finite", "nan"),
    "pos length": ("a", "b", {"pos": (0, 1)}, ValueError, "pos must be 3 numbers", "(0.0, 1.0)"),
    "pos text": ("a", "b", {"pos": "up"}, TypeError, "pos must be numbers", "'up'"),
    "pos_b infinite": ("a", "b", {"pos_b": (0, INF, 0)}, ValueError, "pos_b must be finite", "inf"),
    "pos_b length": ("a", "b", {"pos_b": torch.zeros(2, 3)}, ValueError, "pos_b must be 3 numbers", "0.0"),
}


@pytest.mark.parametrize("kind", TIES)
@pytest.mark.parametrize(
    ("a", "b", "options", "error", "words"), [(a, b, o, e, w) for a, b, o, e, *w in PAIRS.values()], ids=list(PAIRS)
)
def test_ties(kind, a, b, options, error, words):
    chosen = {"x": True} if kind == "lock" else {}
    raises(lambda: getattr(scene(), f"add_{kind}")(a, b, **options, **chosen), error, f"add_{kind}(", *words)


FRAMES = {
    "quat zero": ({"quat": (0, 0, 0, 0)}, ValueError, "quat must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
    "quat length": ({"quat": (1, 0, 0)}, ValueError, "quat must be 4 numbers", "(1.0, 0.0, 0.0)"),
    "quat_b zero": ({"quat_b": (0, 0, 0, 0)}, ValueError, "quat_b must not be zero", "0.0"),
    "quat_b nan": ({"quat_b": (NAN, 0, 0, 0)}, ValueError, "quat_b must be finite", "nan"),
}


@pytest.mark.parametrize("kind", ["weld", "hinge", "slide", "lock"])
@pytest.mark.parametrize(("options", "error", "words"), [(o, e, w) for o, e, *w in FRAMES.values()], ids=list(FRAMES))
def test_frames(kind, options, error, words):
    chosen = {"rz": True} if kind == "lock" else {}
    raises(lambda: getattr(scene(), f"add_{kind}")("a", "b", **options, **chosen), error, f"add_{kind}('{kind}", *words)


def couple(*arguments, **options):
    return call("add_coupling", *arguments, **options)


CALLS = {
    "axis zero": (call("add_hinge", "a", "b", axis=(0, 0, 0)), ValueError, "add_hinge('hinge1'): axis must not be zero"),
    "axis nan": (call("add_slide", "a", "b", axis=(0, 0, NAN)), ValueError, "add_slide('slide1'): axis must be finite", "nan"),
    "axis length": (call("add_slide", "a", "b", axis=(1, 0)), ValueError, "axis must be 3 numbers", "(1.0, 0.0)"),
    "length zero": (call("add_distance", "a", "b", length=0), ValueError, "add_distance('distance1'): length must be pos", "0.0"),
    "length negative": (call("add_distance", "a", "b", length=-2), ValueError, "length must be positive", "-2.0"),
    "length nan": (call("add_distance", "a", "b", length=NAN), ValueError, "length must be finite", "nan"),
    "distance zero": (call("add_distance", "a", "b", pos_b=(0, 0, -1)), ValueError,
                      "add_distance('distance1'): length is missing: the points are initially at the same place"),
    "no lock": (call("add_lock", "a", "b"), ValueError, "add_lock('lock0'): choose at least one of x, y, z, rx, ry, rz"),
    "lock type": (call("add_lock", "a", "b", x=True, ry=1), TypeError, "add_lock('lock0'): ry must be True or False", "got 1"),
    "joint unknown": (couple("elbows"), ValueError, "joint: unknown joint 'elbows'; did you mean 'elbow'?"),
    "joint a constraint": (couple("door"), ValueError, "add_coupling('coupling1'): joint: unknown joint 'door'"),
    "other unknown": (couple("elbow", 17), ValueError, "other: unknown joint 17"),
    "dof": (couple("elbow", "cart", dof=1), ValueError, "): dof must be below 1", "got 1"),
    "dof type": (couple("elbow", dof=0.5), TypeError, "): dof must be an int", "0.5"),
    "dof bool": (couple("elbow", dof=False), TypeError, "): dof must be an int", "False"),
    "dof of a fixed": (couple("rock"), ValueError, "): dof must be below 0", "got 0"),
    "other_dof": (couple("elbow", "cart", other_dof=3), ValueError, "): other_dof must be below 3", "got 3"),
    "other_dof negative": (couple("elbow", "cart", other_dof=-1), ValueError, "): other_dof must be below 3"),
    "ball": (couple("hand", "cart"), ValueError, "): dof must have a coordinate, a Ball joint", "dof 0 of 'hand'"),
    "free": (couple("elbow", "a", other_dof=3), ValueError, "other_dof must have a coordinate, a Free joint turns"),
    "itself": (couple("arm", "elbow"), ValueError, "joint and other must not be the same", "dof 0 of 'arm'"),
    "ratio alone": (couple("elbow", ratio=2), ValueError, "ratio needs another joint", "2.0"),
    "ratio nan": (couple("elbow", "cart", ratio=NAN), ValueError, "ratio must be finite", "nan"),
    "offset infinite": (couple("elbow", "cart", offset=INF), ValueError, "offset must be finite", "inf"),
    "offset length": (couple("elbow", offset=(1, 2)), ValueError, "offset must be one number", "(1.0, 2.0)"),
    "both forms": (couple("elbow", "cart", ratio=1.0, coefficients=(1, 2)), ValueError,
                   "coefficients stand in place of ratio and offset", "(1, 2)"),
    "offset too": (couple("elbow", "cart", offset=0, coefficients=(1, 2)), ValueError, "coefficients stand in"),
    "six": (couple("elbow", "cart", coefficients=range(6)), ValueError, "coefficients must be 1 to 5", "5.0"),
    "none": (couple("elbow", "cart", coefficients=()), ValueError, "coefficients must be 1 to 5", "()"),
    "no row": (couple("elbow", "cart", coefficients=1.5), ValueError, "coefficients must be 1 to 5", "1.5"),
    "coefficients nan": (couple("elbow", "cart", coefficients=(0, NAN)), ValueError, "coefficients must be finite"),
    "coefficients text": (couple("elbow", "cart", coefficients="x"), TypeError, "coefficients must be numbers"),
    "coefficients alone": (couple("elbow", coefficients=(0, 1)), ValueError, "beyond the first need another joint"),
    "softness": (couple("elbow", softness=-1), ValueError, "add_coupling('coupling1'): softness must not", "-1.0"),
    "coupling name": (couple("elbow", name="pin"), ValueError, "constraint or joint named 'pin' already"),
    "joint name": (call("add_body", "x", joint=Revolute(name="pin"), shapes=BALL), ValueError,
                   "add_body('x'): there is a constraint or joint named 'pin' already"),
}  # fmt: skip


@pytest.mark.parametrize(("add", "error", "words"), [(c, e, w) for c, e, *w in CALLS.values()], ids=list(CALLS))
def test_calls(add, error, words):
    raises(lambda: add(scene()), error, *words)


def servo(joint="elbow", **options):
    return call("add_servo", joint, **{"gain": 1, "max_force": 1, "max_speed": 1, **options})


SERVOS = {
    "gain zero": (servo(gain=0), ValueError, "add_servo('elbow'): gain must be positive", "0.0"),
    "gain nan": (servo(gain=NAN), ValueError, "gain must be finite", "nan"),
    "gain length": (servo(gain=(1, 2)), ValueError, "gain must be one number", "(1.0, 2.0)"),
    "max_force negative": (servo(max_force=-1), ValueError, "add_servo('elbow'): max_force must not be negative", "-1.0"),
    "max_force infinite": (servo(max_force=INF), ValueError, "max_force must be finite", "inf"),
    "max_speed zero": (servo(max_speed=0), ValueError, "add_servo('elbow'): max_speed must be positive", "0.0"),
    "max_speed negative": (servo(max_speed=-1), ValueError, "max_speed must be positive", "-1.0"),
    "max_speed None": (servo(max_speed=None), TypeError, "max_speed must be numbers", "None"),
    "gear zero": (servo(gear=0), ValueError, "add_servo('elbow'): gear must not be zero", "0.0"),
    "control_limits": (servo(control_limits=(2, 1)), ValueError, "control_limits must be in order", "(2.0, 1.0)"),
    "ball": (servo("hand"), ValueError, "add_servo('hand'): dof 0 of a Ball joint turns in space"),
    "free": (servo("a", dof=4), ValueError, "add_servo('a'): dof 4 of a Free joint turns in space"),
    "dof": (servo(dof=1), ValueError, "add_servo('elbow'): dof must be below 1", "got 1"),
    "dof type": (servo(dof="0"), TypeError, "add_servo('elbow'): dof must be an int", "'0'"),
    "name": (servo(name="m"), ValueError, "there is a motor named 'm' already"),
    "joint": (servo("doors"), ValueError, "add_servo('doors'): unknown joint 'doors'; did you mean 'door'?"),
    "point": (servo("pin"), ValueError, "add_servo('pin'): joint must be a joint, a hinge or a slide", "a point constraint"),
    "coupling": (servo("gears"), ValueError, "add_servo('gears'): joint must be a joint", "a coupling constraint"),
    "dof of a hinge": (servo("door", dof=1), ValueError, "add_servo('door'): dof must be 0 for a constraint, got 1"),
    "motor on a rod": (call("add_motor", "rod"), ValueError, "add_motor('rod'): joint must be", "'rod', which is a distance"),
    "motor gear": (call("add_motor", "door", gear=0), ValueError, "add_motor('door'): gear must not be zero", "0.0"),
    "position dof": (call("add_position", "rail", kp=1, dof=2), ValueError, "add_position('rail'): dof must be 0", "got 2"),
    "velocity kd": (call("add_velocity", "rail", kd=0), ValueError, "add_velocity('rail'): kd must be positive", "0.0"),
}


@pytest.mark.parametrize(("add", "error", "words"), [(c, e, w) for c, e, *w in SERVOS.values()], ids=list(SERVOS))
def test_servos(add, error, words):
    raises(lambda: add(scene()), error, *words)


def test_failed_adds_leave_no_trace():
    tested, before = scene(), scene().build()
    for add, error, *_ in (*CALLS.values(), *SERVOS.values()):
        with pytest.raises(error):
            add(tested)
    assert tested.build() == before


# field, index, value, words: refused by Params.check(); ties are pin, door, rail, rod
VALUES = {
    "tie_pos": ("tie_pos", (3, 1), NAN, "tie_pos of frame b of constraint 'door' must be finite", "nan"),
    "tie_quat nan": ("tie_quat", (4, 0), INF, "tie_quat of frame a of constraint 'rail' must be finite", "inf"),
    "tie_quat zero": ("tie_quat", 2, 0.0, "tie_quat of frame a of constraint 'door' must not be zero", "(0.0, 0.0, 0.0, 0.0)"),
    "tie_length zero": ("tie_length", 3, 0.0, "tie_length of constraint 'rod' must be positive", "0.0"),
    "tie_length nan": ("tie_length", 0, NAN, "tie_length of constraint 'pin' must be finite", "nan"),
    "tie_softness": ("tie_softness", 1, -1.0, "tie_softness of constraint 'door' must not be negative", "-1.0"),
    "coupling": ("coupling", (0, 4), NAN, "coupling of constraint 'gears' must be finite", "nan"),
    "coupling_softness": ("coupling_softness", 0, -1.0, "coupling_softness of constraint 'gears' must not be neg", "-1.0"),
    "gain zero": ("gain", 0, 0.0, "gain of motor 's' must be positive", "0.0"),
    "gain nan": ("gain", 0, NAN, "gain of motor 's' must be finite", "nan"),
    "max_speed": ("max_speed", 0, -1.0, "max_speed of motor 's' must be positive", "-1.0"),
    "kp of a servo": ("kp", 0, 1.0, "kp of motor 's' must be zero for this type of actuator", "1.0"),
    "kd of a servo": ("kd", 0, 1.0, "kd of motor 's' must be zero for this type of actuator", "1.0"),
    "force of a servo": ("force_lower", 0, 3.0, "force_lower and force_upper of motor 's' must be in order", "(3.0, 2.0)"),
    "gear of a servo": ("gear", 0, 0.0, "gear of motor 's' must not be zero", "0.0"),
    "gear on a constraint": ("gear", 1, 0.0, "gear of motor 'm' must not be zero", "0.0"),
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


def test_length_counts_only_where_there_is_one():
    params = scene().build().params()
    assert params.replace(tie_length=[-1.0, 0.0, -1.0, 1.0]).check() is None
