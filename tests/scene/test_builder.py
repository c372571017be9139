"""Scene: what is given ends in the right rows of the right fields, and tensors keep their graph."""

import numpy as np
import pytest
import torch

from costate.scene import Ball, Box, Capsule, Fixed, Free, Planar, Prismatic, Revolute, Scene, Sphere

BALL = Sphere(0.1)


def one(**options):
    """Default fields of a scene of one body."""
    scene = Scene()
    scene.add_body("a", **options)
    return scene.build().defaults


def test_fields_of_every_joint_type():
    scene = Scene(gravity=(0.0, 1.0, 2.0))
    scene.add_body("base", joint=Free(damping=0.5), pos=(1, 2, 3), quat=(0, 2, 0, 0), shapes=BALL)
    scene.add_body("hip", parent="base", joint=Revolute((0, 1, 0), anchor=(0, 0, 0.1), damping=0.1, armature=0.2, rest=0.3),
                   pos=(0, 0, -1), quat=(1, 1, 0, 0), shapes=BALL)  # fmt: skip
    scene.add_body("slide", parent=1, joint=Prismatic((1, 0, 0), stiffness=7.0, initial=0.4), shapes=BALL)
    scene.add_body("wrist", parent="slide", joint=Ball(damping=(1, 2, 3), initial=(0, 0, 0, 2)), shapes=BALL)
    scene.add_body("cart", joint=Planar(armature=(1, 2, 3)), shapes=BALL)
    scene.add_body("tool", parent="wrist", joint=Fixed(), shapes=BALL)
    model = scene.build()
    d = model.defaults
    assert (model.nb, model.nq, model.nv) == (6, 16, 14)
    assert model.parent == (-1, 0, 1, 2, -1, 3)
    assert model.joint_type == (4, 1, 2, 3, 5, 0)
    assert model.q_address == (0, 7, 8, 9, 13, 16)
    assert model.v_address == (0, 6, 7, 8, 11, 14)
    np.testing.assert_array_equal(model.q0, [1, 2, 3, 0, 1, 0, 0, 0, 0.4, 0, 0, 0, 1, 0, 0, 0])
    assert d["gravity"].tolist() == [0, 1, 2]
    assert d["joint_pos"].tolist() == [[0, 0, 0], [0, 0, -1]] + [[0, 0, 0]] * 4
    assert d["joint_quat"][:2].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert d["joint_axis"][:3].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert d["joint_anchor"][1].tolist() == [0, 0, 0.1]
    assert d["rest"].tolist() == [1, 2, 3, 0, 1, 0, 0, 0.3, 0, 1, 0, 0, 0, 0, 0, 0]
    assert d["damping"].tolist() == [0.5] * 6 + [0.1, 0, 1, 2, 3, 0, 0, 0]
    assert d["armature"].tolist() == [0] * 6 + [0.2, 0, 0, 0, 0, 1, 2, 3]
    assert d["stiffness"].tolist() == [0, 0, 7, 0, 0, 0]


@pytest.mark.parametrize(
    "inertia",
    [(1, 2, 2.5), (1, 2, 2.5, 0, 0, 0), np.diag([1, 2, 2.5]), [[1, 0, 0], [0, 2, 0], [0, 0, torch.tensor(2.5)]]],
    ids=["diagonal", "six", "matrix", "mixed"],
)
def test_inertia_forms(inertia):
    assert one(mass=1, inertia=inertia)["inertia"].tolist() == [[1, 2, 2.5, 0, 0, 0]]


def test_inertia_matrix_order():
    matrix = torch.tensor([[3.0, 0.1, 0.2], [0.1, 4.0, 0.3], [0.2, 0.3, 5.0]], dtype=torch.float64)
    assert one(mass=1, inertia=matrix)["inertia"].tolist() == [[3, 4, 5, 0.1, 0.2, 0.3]]


def test_mass_beside_shapes_scales_inertia():
    plain = one(shapes=[Box((0.1, 0.2, 0.3), pos=(1, 0, 0)), BALL])
    scaled = one(shapes=[Box((0.1, 0.2, 0.3), pos=(1, 0, 0)), BALL], mass=2 * plain["mass"])
    torch.testing.assert_close(scaled["inertia"], 2 * plain["inertia"])
    torch.testing.assert_close(scaled["com"], plain["com"])


def test_given_inertia_leaves_shapes_for_drawing():
    scene = Scene()
    scene.add_body(shapes=BALL, mass=3, inertia=(1, 1, 1), com=(0, 0, 1))
    model = scene.build()
    assert model.defaults["mass"].tolist() == [3] and model.defaults["com"].tolist() == [[0, 0, 1]]
    assert model.shapes == ((BALL,),)


def test_massless_bodies_stack_joints():
    scene = Scene()
    scene.add_body("yaw", joint=Revolute((0, 0, 1)), massless=True)
    scene.add_body("pitch", parent="yaw", joint=Revolute((0, 1, 0)), massless=True)
    scene.add_body("head", parent="pitch", shapes=BALL)
    scene.add_body("marker", massless=True)  # fixed: needs no mass
    model = scene.build()
    assert model.massless == (True, True, False, True)
    assert model.defaults["mass"][:2].tolist() == [0, 0]


def test_names():
    scene = Scene()
    assert scene.add_body(shapes=BALL) == "body0"
    assert scene.add_body("body2", joint=Revolute(name="elbow"), shapes=BALL) == "body2"
    assert scene.add_body(shapes=BALL, joint=Ball()) == "body2_1"
    assert scene.add_site(body="body0") == "site0"
    assert scene.add_motor("elbow") == "elbow"
    assert scene.add_motor("body2") == "elbow_1"
    assert scene.add_motor("body2_1", dof=2, name="twist") == "twist"
    model = scene.build()
    assert model.joint_names == ("body0", "elbow", "body2_1")
    assert model.motor_dof == (0, 0, 3)


def test_add_motors_skips_free_and_fixed():
    scene = Scene()
    scene.add_body("base", joint=Free(), shapes=BALL)
    scene.add_body("leg", parent="base", joint=Revolute(), shapes=BALL)
    scene.add_body("foot", parent="leg", shapes=BALL)
    scene.add_body("arm", parent="base", joint=Ball(), shapes=BALL)
    assert scene.add_motors(gear=2.0) == ("leg", "arm_0", "arm_1", "arm_2")
    model = scene.build()
    assert model.motor_dof == (6, 7, 8, 9)
    assert model.defaults["gear"].tolist() == [2, 2, 2, 2]


def test_sites():
    scene = Scene()
    scene.add_body("a", shapes=BALL)
    scene.add_site("tip", body="a", pos=(0, 0, 1), quat=(0, 1, 0, 0))
    model = scene.build()
    assert model.site_body == (0,)
    assert model.defaults["site_pos"].tolist() == [[0, 0, 1]] and model.defaults["site_quat"].tolist() == [[0, 1, 0, 0]]


def test_free_initial_in_either_place():
    poses = []
    for options in ({"pos": (1, 2, 3), "joint": Free()}, {"joint": Free(initial=(1, 2, 3, 1, 0, 0, 0))}):
        scene = Scene()
        scene.add_body(shapes=BALL, **options)
        poses.append(scene.build().q0.tolist())
    assert poses[0] == poses[1] == [1, 2, 3, 1, 0, 0, 0]


def pendulum(length, density, damping, gear, gravity):
    """Two links whose length changes mass, inertia, frames and sites at once."""
    scene = Scene(gravity=(0, 0, -gravity))
    parent = None
    for i in range(2):
        rod = Capsule(0.05, length / 2, density=density, pos=(0, 0, -length / 2))
        joint = Revolute((0, 1, 0), damping=damping, stiffness=damping**2, armature=damping / 9, rest=(length,))
        parent = scene.add_body(f"link{i}", parent=parent, joint=joint, pos=(0, 0, -length * i), shapes=[rod, BALL])
    scene.add_site("tip", body=parent, pos=(0, length, -length))
    scene.add_motors(gear=gear)
    return scene


def test_params_keep_the_graph():
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.7, 900.0, 0.2, 3.0, 9.0)]

    def numbers(*values):
        params = pendulum(*values).params()
        return params.flat(), params["site_pos"]

    assert torch.autograd.gradcheck(numbers, inputs)


def test_build_is_detached_and_equal():
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.7, 900.0, 0.2, 3.0, 9.0)]
    scene = pendulum(*inputs)
    model = scene.build()
    assert not any(tensor.requires_grad for tensor in model.defaults.values())
    assert model == pendulum(*(x.detach() for x in inputs)).build() == pendulum(*(x.item() for x in inputs)).build()
    assert all(torch.equal(tensor.detach(), model.defaults[name]) for name, tensor in scene.params().items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_kind_of_number(dtype):
    length = torch.nn.Parameter(torch.tensor([0.5], dtype=dtype))  # [1], as people write parameters
    scene = Scene()
    scene.add_body(pos=(0, np.float32(1), length), mass=length, inertia=np.ones(3, dtype=np.int64), com=[0, length[0], 0])
    params = scene.params()
    assert params["joint_pos"].tolist() == [[0, 1, 0.5]]
    assert all(tensor.dtype == torch.float64 for tensor in params.values())
    (params["joint_pos"].sum() + params["mass"].sum() + params["com"].sum()).backward()
    assert length.grad is not None and length.grad.tolist() == [3.0]


def test_numbers_are_read_when_given():
    mass, gravity = torch.tensor(2.0), np.array([0.0, 0.0, -1.0])
    scene = Scene(gravity=gravity)
    scene.add_body(mass=mass, inertia=(1, 1, 1))
    mass += 5
    gravity += 5
    params = scene.params()
    params["gravity"].zero_()
    assert params["mass"].tolist() == [2] and scene.build().defaults["gravity"].tolist() == [0, 0, -1]


def test_failed_add_leaves_no_trace():
    scene = Scene()
    with pytest.raises(ValueError):
        scene.add_body("a", mass=-1, inertia=(1, 1, 1))
    with pytest.raises(ValueError):
        scene.add_body("a", joint=Revolute(damping=-1, name="j"), shapes=BALL)
    assert scene.add_body("a", joint=Revolute(name="j"), shapes=BALL) == "a"
    assert repr(scene) == "Scene(1 bodies, 0 sites, 0 motors)"
