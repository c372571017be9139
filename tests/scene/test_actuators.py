"""Actuators, joint limits and dry friction: types, rows of the fields, graph."""

import math

import pytest
import torch

from costate.scene import Ball, Fixed, Free, Planar, Prismatic, Revolute, Scene, Sphere

BALL = Sphere(0.1, collide=False)


def arm() -> Scene:
    """free base, planar cart, ball shoulder, revolute elbow, prismatic hand."""
    scene = Scene()
    scene.add_body("base", joint=Free(), shapes=BALL)
    scene.add_body("cart", joint=Planar(), shapes=BALL)
    scene.add_body("shoulder", parent="base", joint=Ball(), shapes=BALL)
    scene.add_body("elbow", parent="shoulder", joint=Revolute(), shapes=BALL)
    scene.add_body("hand", parent="elbow", joint=Prismatic(), shapes=BALL)
    return scene


def test_types_and_gains():
    scene = arm()
    assert scene.add_motor("elbow") == "elbow"
    assert scene.add_position("elbow", kp=100, kd=2, gear=3) == "elbow_1"
    assert scene.add_velocity("hand", kd=5) == "hand"
    assert scene.add_position("hand", kp=7, name="grip") == "grip"
    model = scene.build()
    assert model.motor_names == ("elbow", "elbow_1", "hand", "grip") and model.nu == 4
    assert model.actuator_type == (0, 1, 2, 1) and model.motor_dof == (12, 12, 13, 13)
    assert model.clip == model.bound == (-1, -1, -1, -1)
    assert model.defaults["gear"].tolist() == [1, 3, 1, 1]
    assert model.defaults["kp"].tolist() == [0, 100, 0, 7]
    assert model.defaults["kd"].tolist() == [0, 2, 5, 0]
    assert model.motor("grip") == 3


def test_limits_of_actuators():
    scene = arm()
    scene.add_motor("elbow", control_limits=2.0)
    scene.add_motor("elbow", force_limits=(-1, 3))
    scene.add_motor("elbow")
    scene.add_position("hand", kp=1, control_limits=(-0.1, 0.4), force_limits=5)
    scene.add_velocity("hand", kd=1, force_limits=(0, 0))
    model = scene.build()
    d = model.defaults
    assert model.clip == (0, -1, -1, 1, -1) and model.bound == (-1, 0, -1, 1, 2)
    assert d["control_lower"].tolist() == [-2, -0.1] and d["control_upper"].tolist() == [2, 0.4]
    assert d["force_lower"].tolist() == [-1, -5, 0] and d["force_upper"].tolist() == [3, 5, 0]


@pytest.mark.parametrize(("joint", "dof"), [("base", 2), ("cart", 0), ("cart", 2), ("elbow", 0), ("hand", 0)])
def test_position_needs_a_coordinate_and_finds_it(joint, dof):
    scene = arm()
    scene.add_position(joint, dof=dof, kp=1)
    model = scene.build()
    assert model.motor_dof == (model.v_address[model.joint(joint)] + dof,)


@pytest.mark.parametrize("joint", ["base", "shoulder"])
def test_motor_and_velocity_drive_rotations_too(joint):
    scene = arm()
    last = 5 if joint == "base" else 2
    scene.add_motor(joint, dof=last)
    scene.add_velocity(joint, dof=last, kd=1)
    assert scene.build().actuator_type == (0, 2)


def test_joint_limits():
    scene = Scene()
    scene.add_body("free", joint=Free(), shapes=BALL)
    scene.add_body("a", parent="free", joint=Revolute(limits=(-1, 2)), shapes=BALL)
    scene.add_body("b", parent="a", joint=Revolute(), shapes=BALL)
    scene.add_body("c", parent="b", joint=Ball(limit=math.pi), shapes=BALL)
    scene.add_body("d", parent="c", joint=Prismatic(limits=(0.1, 0.2)), shapes=BALL)
    model = scene.build()
    assert model.limit_body == (1, 3, 4) and model.limit_dof == (6, 8, 11)
    assert model.defaults["limit_lower"].tolist() == [-1, 0, 0.1]
    assert model.defaults["limit_upper"].tolist() == [2, math.pi, 0.2]
    model.params().check()
    model.params(dtype=torch.float32).check()  # where pi lies above pi


def test_dry_friction_is_per_dof_and_only_where_it_is_positive():
    scene = Scene()
    scene.add_body("a", joint=Free(friction=0), shapes=BALL)
    scene.add_body("b", parent="a", joint=Ball(friction=0.3), shapes=BALL)
    scene.add_body("c", parent="b", joint=Fixed(friction=0.3), shapes=BALL)
    scene.add_body("d", joint=Planar(friction=(0.1, 0, 0.2)), shapes=BALL)
    scene.add_body("e", parent="d", joint=Revolute(friction=0.5), shapes=BALL)
    model = scene.build()
    assert model.dry_dof == (6, 7, 8, 9, 11, 12)
    assert model.defaults["dry_friction"].tolist() == [0.3, 0.3, 0.3, 0.1, 0.2, 0.5]


def test_scenes_without_any_have_empty_fields():
    model = arm().build()
    names = ("kp", "kd", "control_lower", "force_upper", "limit_lower", "dry_friction", "shape_pos", "friction")
    assert all(model.field_shapes[name][0] == 0 and model.defaults[name].shape == model.field_shapes[name] for name in names)
    assert model.actuator_type == model.clip == model.bound == model.limit_body == model.limit_dof == model.dry_dof == ()
    model.params().check()


def test_params_keep_the_graph():
    def theta(kp, kd, gear, control, force, lower, upper, angle, dry):
        scene = Scene()
        scene.add_body("a", joint=Revolute(limits=(lower, upper), friction=dry), shapes=BALL)
        scene.add_body("b", parent="a", joint=Ball(limit=angle, friction=(dry, 0, dry**2)), shapes=BALL)
        scene.add_position("a", kp=kp, kd=kd, gear=gear, control_limits=control, force_limits=(-force, 2 * force))
        scene.add_velocity("a", kd=kd**2, control_limits=(-1, control), force_limits=force)
        return scene.params().flat()

    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (50, 2, 3, 1.5, 7, -0.3, 0.8, 2.1, 0.4)]
    assert torch.autograd.gradcheck(theta, inputs)
    assert all(column.any() for column in torch.autograd.functional.jacobian(theta, tuple(inputs)))


def test_topology_tells_structures_apart():
    def model(add):
        scene = arm()
        add(scene)
        return scene.build()

    models = [
        model(lambda s: s.add_motor("elbow")),
        model(lambda s: s.add_position("elbow", kp=1)),
        model(lambda s: s.add_velocity("elbow", kd=1)),
        model(lambda s: s.add_motor("elbow", control_limits=1)),
        model(lambda s: s.add_motor("elbow", force_limits=1)),
        model(lambda s: s.add_body("x", joint=Revolute(), shapes=BALL)),
        model(lambda s: s.add_body("x", joint=Revolute(limits=(0, 1)), shapes=BALL)),
        model(lambda s: s.add_body("x", joint=Revolute(friction=1), shapes=BALL)),
    ]
    assert len({m.topology for m in models}) == len(models)
    assert models[1].topology == model(lambda s: s.add_position("elbow", kp=9)).topology
