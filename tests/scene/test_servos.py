"""Servos, and actuators of all types on hinge and slide constraints: types, rows of the fields, graph."""

import math

import pytest
import torch

from costate.scene import Ball, Free, Planar, Prismatic, Revolute, Scene, Sphere

BALL = Sphere(0.1, collide=False)
SERVO = {"gain": 30.0, "max_force": 4.0, "max_speed": 0.5}


def robot() -> Scene:
    """Two free bodies with a hinge, a slide and a point between them; a cart with an elbow, a hand and a wrist."""
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", joint=Free(), pos=(0, 0, 1), shapes=BALL)
    scene.add_body("cart", joint=Planar(), shapes=BALL)
    scene.add_body("arm", parent="cart", joint=Revolute(name="elbow"), shapes=BALL)
    scene.add_body("hand", parent="arm", joint=Prismatic(), shapes=BALL)
    scene.add_body("tip", parent="hand", joint=Ball(name="wrist"), shapes=BALL)
    scene.add_point("a", "b")
    scene.add_hinge("a", "b")
    scene.add_slide("a", "b")
    return scene


def test_numbers_of_servos():
    scene = robot()
    assert scene.add_servo("elbow", **SERVO) == "elbow"
    assert scene.add_motor("elbow", force_limits=(-1, 2)) == "elbow_1"
    assert scene.add_servo("hand", gain=2, max_force=0, max_speed=math.pi, gear=-3, control_limits=(-1, 4), name="grip") == "grip"
    model = scene.build()
    d = model.defaults
    assert model.actuator_type == (3, 0, 3) and model.motor_dof == (15, 15, 16) and model.motor_tie == (-1, -1, -1)
    assert model.clip == (-1, -1, 0) and model.bound == (0, 1, 2)
    assert model.field_shapes["gain"] == model.field_shapes["max_speed"] == (2,)
    assert d["gain"].tolist() == [30, 2] and d["max_speed"].tolist() == [0.5, math.pi]
    assert d["force_lower"].tolist() == [-4, -1, 0] and d["force_upper"].tolist() == [4, 2, 0]
    assert d["gear"].tolist() == [1, 1, -3] and not d["kp"].any() and not d["kd"].any()
    assert d["control_lower"].tolist() == [-1] and d["control_upper"].tolist() == [4]
    model.params().check()
    model.params(dtype=torch.float32).expand((2, 3)).check()


@pytest.mark.parametrize(("joint", "dof"), [("a", 0), ("b", 2), ("cart", 1), ("cart", 2), ("arm", 0), (4, 0)])
def test_servos_on_every_dof_with_a_coordinate(joint, dof):
    scene = robot()
    scene.add_servo(joint, dof=dof, **SERVO)
    model = scene.build()
    body = joint if isinstance(joint, int) else model.body(joint)
    assert model.motor_dof == (model.v_address[body] + dof,)


ADD = {
    "motor": (0, lambda s, joint, **o: s.add_motor(joint, **o)),
    "position": (1, lambda s, joint, **o: s.add_position(joint, kp=1, **o)),
    "velocity": (2, lambda s, joint, **o: s.add_velocity(joint, kd=1, **o)),
    "servo": (3, lambda s, joint, **o: s.add_servo(joint, **SERVO, **o)),
}


@pytest.mark.parametrize(("code", "add"), ADD.values(), ids=list(ADD))
@pytest.mark.parametrize(("joint", "tie"), [("hinge0", 1), ("slide0", 2)])
def test_every_type_drives_hinges_and_slides(code, add, joint, tie):
    scene = robot()
    assert add(scene, "elbow") == "elbow"
    assert add(scene, joint) == joint
    assert add(scene, joint, gear=2, control_limits=1, name="drive") == "drive"
    model = scene.build()
    assert model.motor_dof == (15, -1, -1) and model.motor_tie == (-1, tie, tie)
    assert model.actuator_type == (code,) * 3 and model.clip == (-1, -1, 0)
    assert model.defaults["gear"].tolist() == [1, 1, 2]
    model.params().check()


def test_a_constraint_comes_before_a_body_of_its_name():
    scene = robot()
    scene.add_body("slide0", joint=Revolute(name="swing"), shapes=BALL)
    scene.add_motor("slide0")
    scene.add_motor("swing")
    model = scene.build()
    assert model.motor_tie == (2, -1) and model.motor_dof == (-1, model.nv - 1)


def test_ties_added_later_do_not_move_actuators():
    scene = robot()
    scene.add_motor("slide0")
    scene.add_hinge("b", "hand", name="late")
    scene.add_motor("late")
    model = scene.build()
    assert [model.tie_names[tie] for tie in model.motor_tie] == ["slide0", "late"]


def test_add_motors_leaves_constraints_alone():
    scene = robot()
    names = ("cart_0", "cart_1", "cart_2", "elbow", "hand", "wrist_0", "wrist_1", "wrist_2")
    assert scene.add_motors() == names
    assert set(scene.build().motor_tie) == {-1}


def test_params_keep_the_graph():
    def numbers(gain, force, speed, gear, limit):
        scene = robot()
        scene.add_servo("elbow", gain=gain, max_force=force, max_speed=speed, gear=gear, control_limits=limit)
        scene.add_servo("hinge0", gain=gain**2, max_force=2 * force, max_speed=speed**3)
        return scene.params().flat()

    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (30.0, 4.0, 0.8, 1.5, 2.0)]
    assert torch.autograd.gradcheck(numbers, inputs)
    rows = torch.autograd.functional.jacobian(numbers, tuple(inputs))
    assert all(column.any() for column in rows)
    assert sorted(rows[1][rows[1] != 0].tolist()) == [-2, -1, 1, 2]  # the force goes to both limits of both servos


def test_unconstrained():
    scene = robot()
    scene.add_servo("elbow", **SERVO)
    scene.add_position("elbow", kp=1)
    scene.add_servo("hinge0", **SERVO)
    params = scene.build().params()
    free = params.unconstrained(("gain", "max_speed"))
    assert {name: tuple(t.shape) for name, t in free.tensors.items()} == {"log_gain": (2,), "log_max_speed": (2,)}
    for name in ("gain", "max_speed"):
        torch.testing.assert_close(free.params()[name].detach(), params[name], rtol=1e-14, atol=0)
    with torch.no_grad():
        for leaf in free.leaves():
            leaf.copy_(torch.tensor([-8.0, 8.0]))
    free.params().check()
    assert free.params()["gain"][0].item() == pytest.approx(math.exp(-8))


def test_topology_tells_structures_apart():
    adds = [
        lambda s: s.add_servo("elbow", **SERVO),
        lambda s: s.add_position("elbow", kp=1, force_limits=1),
        lambda s: s.add_servo("hinge0", **SERVO),
        lambda s: s.add_servo("slide0", **SERVO),
        lambda s: s.add_servo("slide0", **SERVO, control_limits=1),
        lambda s: s.add_motor("slide0"),
    ]
    topologies = set()
    for add in adds:
        scene = robot()
        add(scene)
        topologies.add(scene.build().topology)
    assert len(topologies) == len(adds)
