"""Frames of ties: where they are by default, what the axis does to them, and how they follow the numbers of the scene."""

import numpy as np
import pytest
import torch

import costate as cs
from costate.rotation import multiply, normalise, rotate
from costate.scene import Ball, Fixed, Free, Planar, Prismatic, Revolute, Scene, Sphere

BALL = Sphere(0.1)
TOL = 1e-12  # a chain of up to 12 poses in double
COUNT = 12


def tree(seed: int) -> Scene:
    """A random tree of all joint types with random frames, anchors, axes and initial configurations."""
    rng = np.random.default_rng(seed)
    scene = Scene(collisions=False)
    kinds = rng.permutation([Free, Fixed, Revolute, Prismatic, Ball, Planar] * 2)
    for i, kind in enumerate(kinds):
        parent = None if kind is Free or i == 0 else int(rng.integers(-1, i))
        options = {"initial": rng.normal(size=kind.nq)} if kind.nq else {}
        if kind in (Revolute, Prismatic):
            options["axis"] = rng.normal(size=3)
        if kind in (Revolute, Ball, Planar):
            options["anchor"] = rng.normal(size=3)
        place = {} if kind is Free else {"pos": rng.normal(size=3), "quat": rng.normal(size=4)}
        scene.add_body(f"b{i}", parent=parent, joint=kind(**options), shapes=BALL, **place)
    return scene


def pairs(scene: Scene, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Two bodies each (-1 the world) that some joint moves against each other."""
    found = []
    while len(found) < 10:
        a, b = rng.integers(-1, COUNT, size=2).tolist()
        try:
            scene.add_point(a, b)
        except ValueError:
            continue
        found.append((a, b))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_frames_coincide_in_the_initial_configuration(seed):
    rng = np.random.default_rng(100 + seed)
    scene, plain = tree(seed), tree(seed).build()
    tied = pairs(tree(seed), rng)
    for a, b in tied:
        scene.add_weld(a, b, pos=rng.normal(size=3), quat=rng.normal(size=4))
    params = scene.params()
    at = cs.kinematics(plain, torch.tensor(plain.q0))
    zero, unit = torch.zeros(1, 3, dtype=torch.float64), torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64)
    position, quaternion = torch.cat((at.position, zero)), torch.cat((at.quaternion, unit))  # the last is the world
    on = list(sum(tied, ()))
    p = position[on] + rotate(quaternion[on], params["tie_pos"])
    q = multiply(quaternion[on], params["tie_quat"])
    torch.testing.assert_close(p[0::2], p[1::2], rtol=TOL, atol=TOL)
    torch.testing.assert_close((q[0::2] * q[1::2]).sum(-1).abs(), torch.ones(len(tied), dtype=torch.float64), rtol=TOL, atol=TOL)


def frames(scene: Scene) -> tuple[list, list]:
    d = scene.build().defaults
    return d["tie_pos"].tolist(), d["tie_quat"].tolist()


def two(**options) -> Scene:
    """a in the origin; b at (1, 0, 0), turned by 90 degrees about z."""
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", joint=Free(), pos=(1, 0, 0), quat=(1, 0, 0, 1), shapes=BALL)
    return scene


HALF = 0.5**0.5


def test_defaults_by_hand():
    scene = two()
    scene.add_weld("a", "b", pos=(0, 2, 0), quat=(0, 3, 0, 0))
    pos, quat = frames(scene)
    np.testing.assert_allclose(pos, [[0, 2, 0], [2, 1, 0]], atol=TOL)
    np.testing.assert_allclose(quat, [[0, 1, 0, 0], [0, HALF, -HALF, 0]], atol=TOL)


def test_each_part_of_frame_b_has_its_own_default():
    scene = two()
    scene.add_weld("a", "b", pos_b=(7, 8, 9))
    scene.add_weld("a", "b", quat_b=(0, 0, 2, 0))
    pos, quat = frames(scene)
    np.testing.assert_allclose(pos, [[0, 0, 0], [7, 8, 9], [0, 0, 0], [0, 1, 0]], atol=TOL)
    np.testing.assert_allclose(quat, [[1, 0, 0, 0], [HALF, 0, 0, -HALF], [1, 0, 0, 0], [0, 0, 1, 0]], atol=TOL)


def test_points_have_no_orientation():
    scene = two()
    scene.add_point("a", "b", pos=(0, 0, 1))
    scene.add_distance("a", "b", pos=(0, 0, 1))
    pos, quat = frames(scene)
    np.testing.assert_allclose(pos, [[0, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]], atol=TOL)
    assert quat == [[1, 0, 0, 0]] * 4


AXES = [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -2, 0), (0.3, -0.4, 0.5), (0.3, -0.4, -5), (1e-9, 0, -1), (1e-9, 0, 1), (3, 1, 0)]


@pytest.mark.parametrize("add", ["add_hinge", "add_slide"])
@pytest.mark.parametrize("axis", AXES)
def test_axis_becomes_z_of_both_frames(add, axis):
    scene, quat, quat_b = two(), (1, 2, 3, 4), (4, -3, 2, 1)
    getattr(scene, add)("a", "b", axis=axis, quat=quat)
    getattr(scene, add)("a", "b", axis=axis, quat=quat, quat_b=quat_b)
    found = scene.build().defaults["tie_quat"]
    unit = normalise(torch.tensor(axis, dtype=torch.float64))
    z = rotate(found, torch.tensor([0.0, 0, 1], dtype=torch.float64))
    for i, given in ((0, quat), (2, quat), (3, quat_b)):
        wanted = rotate(normalise(torch.tensor(given, dtype=torch.float64)), unit)
        torch.testing.assert_close(z[i], wanted, rtol=TOL, atol=TOL)
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(4, dtype=torch.float64), rtol=TOL, atol=TOL)
    # the frames that coincide still do after the turn: b sees a's turned back by 90 degrees
    back = torch.tensor([HALF, 0, 0, -HALF], dtype=torch.float64)
    torch.testing.assert_close(found[1], multiply(back, found[0]), rtol=TOL, atol=TOL)


def test_default_axis_leaves_the_frames():
    scene = two()
    scene.add_weld("a", "b", quat=(1, 2, 3, 4))
    scene.add_hinge("a", "b", quat=(1, 2, 3, 4))
    quat = scene.build().defaults["tie_quat"]
    torch.testing.assert_close(quat[2:], quat[:2], rtol=TOL, atol=TOL)


@pytest.mark.parametrize("axis", [(0.3, -0.4, 0.5), (0.3, -0.4, -0.5), (0, 0, -1), (0, 0, 1), (1e-3, 1e-3, -1)])
def test_axis_keeps_its_graph(axis):
    def quats(axis):
        scene = two()
        scene.add_hinge("a", "b", axis=axis, quat=(1, 2, 3, 4))
        return scene.params()["tie_quat"]

    x = torch.tensor(axis, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(quats, x)
    assert torch.autograd.functional.jacobian(quats, x).abs().sum() > 0.1


def test_default_frames_keep_the_graph_of_the_scene():
    def numbers(pos, quat, axis, slide, anchor, turning):
        scene = Scene()
        scene.add_body("a", joint=Revolute(axis, anchor=anchor, initial=0.7), pos=pos, quat=quat, shapes=BALL)
        scene.add_body("b", parent="a", joint=Prismatic(slide, initial=0.4), pos=(0, pos[0], 1), shapes=BALL)
        scene.add_body("c", parent="b", joint=Ball(anchor, initial=(1, 2, 3, 4)), quat=turning, shapes=BALL)
        scene.add_body("d", joint=Planar(anchor, initial=(1, 2, 3)), pos=pos, quat=turning, shapes=BALL)
        scene.add_body("e", parent="d", joint=Fixed(), pos=(pos[1], 0, 0), shapes=BALL)
        scene.add_body("f", joint=Free(), pos=(1, 1, 1), shapes=BALL)
        scene.add_weld("c", "e", pos=(1, 0, 0))
        scene.add_hinge(None, "c", axis=axis)
        scene.add_distance("f", "c")
        params = scene.params()
        return params["tie_pos"], params["tie_quat"], params["tie_length"]

    generator = torch.Generator().manual_seed(2)
    inputs = [torch.randn(n, generator=generator, dtype=torch.float64, requires_grad=True) for n in (3, 4, 3, 3, 3, 4)]
    assert torch.autograd.gradcheck(numbers, inputs)
    rows = torch.autograd.functional.jacobian(lambda *x: torch.cat([t.flatten() for t in numbers(*x)]), tuple(inputs))
    assert all(part.any() for part in rows)


def test_bodies_added_later_have_poses_too():
    scene = two()
    scene.add_weld("a", "b")
    scene.add_body("c", parent="b", joint=Revolute(), pos=(3, 0, 0), shapes=BALL)
    scene.add_weld(None, "c")
    np.testing.assert_allclose(frames(scene)[0][3], [-3, 1, 0], atol=TOL)


def test_initial_distance():
    scene = two()
    scene.add_distance("a", "b")
    scene.add_distance("a", "b", pos=(0, 0, 2), pos_b=(0, 0, 5))
    scene.add_distance("a", None, pos=(3, 4, 0))
    scene.add_distance("a", "b", length=0.25)
    np.testing.assert_allclose(scene.build().defaults["tie_length"], [1, 10**0.5, 5, 0.25], rtol=TOL)
