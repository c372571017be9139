"""Joints declare sizes and codes; shapes give the inertia that MuJoCo computes, and gradients through it."""

import itertools

import mujoco
import numpy as np
import pytest
import torch

from costate.scene import (
    Ball,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    Heightfield,
    Hull,
    Planar,
    Plane,
    Prismatic,
    Revolute,
    Sphere,
    combine,
)
from costate.scene.inertia import to_matrix, to_six
from costate.scene.joints import JOINTS

TOL = 1e-10  # two closed forms in double
POSE = {"pos": (0.1, -0.2, 0.3), "quat": (0.9, 0.2, -0.3, 0.4)}

# shape, its type and size in MJCF
SHAPES = [
    (Sphere(0.2, **POSE), "sphere", "0.2"),
    (Box((0.1, 0.2, 0.35), **POSE), "box", "0.1 0.2 0.35"),
    (Capsule(0.07, 0.25, **POSE), "capsule", "0.07 0.25"),
    (Cylinder(0.11, 0.3, **POSE), "cylinder", "0.11 0.3"),
    (Ellipsoid((0.1, 0.2, 0.35), **POSE), "ellipsoid", "0.1 0.2 0.35"),
]


def mujoco_inertia(*geoms: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia [3, 3] about it in body axes, as MuJoCo compiles them."""
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{''.join(geoms)}</body></worldbody></mujoco>")
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    turn = turn.reshape(3, 3)
    return model.body_mass[1], model.body_ipos[1], turn @ np.diag(model.body_inertia[1]) @ turn.T


def geom(kind: str, size: str, extra: str = "") -> str:
    return f'<geom type="{kind}" size="{size}" pos="0.1 -0.2 0.3" quat="0.9 0.2 -0.3 0.4" {extra}/>'


@pytest.mark.parametrize(
    ("joint", "code", "nq", "nv"),
    [(Fixed, 0, 0, 0), (Revolute, 1, 1, 1), (Prismatic, 2, 1, 1), (Ball, 3, 4, 3), (Free, 4, 7, 6), (Planar, 5, 3, 3)],
)
def test_joint_sizes(joint, code, nq, nv):
    assert (joint.code, joint.nq, joint.nv) == (code, nq, nv)
    assert JOINTS[code] is joint
    assert len(joint.zero()) == nq


def test_joint_zero_is_identity():
    assert Ball.zero() == (1, 0, 0, 0)
    assert Free.zero() == (0, 0, 0, 1, 0, 0, 0)


def test_joints_are_frozen_and_options_are_keywords():
    with pytest.raises(AttributeError):
        Revolute().damping = 1.0  # type: ignore[misc]
    assert Revolute((0, 1, 0), damping=0.1).axis == (0, 1, 0)
    with pytest.raises(TypeError):
        Free(0.1)  # type: ignore[misc]


@pytest.mark.parametrize(("shape", "kind", "size"), SHAPES, ids=[kind for _, kind, _ in SHAPES])
def test_inertia_is_mujocos(shape, kind, size):
    mass, com, inertia = shape.inertia()
    expected = mujoco_inertia(geom(kind, size, 'density="1000"'))
    for ours, theirs in zip((mass, com, to_matrix(inertia)), expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=TOL, atol=TOL)


def test_given_mass_replaces_density():
    mass, _, inertia = Box((0.1, 0.2, 0.3), density=5.0, mass=2.5, **POSE).inertia()
    expected = mujoco_inertia(geom("box", "0.1 0.2 0.3", 'mass="2.5"'))
    assert mass.item() == 2.5
    np.testing.assert_allclose(to_matrix(inertia).numpy(), expected[2], rtol=TOL, atol=TOL)


def test_combine_is_mujocos():
    shapes = [Capsule(0.05, 0.2, density=800.0, **POSE), Box((0.1, 0.05, 0.02), mass=1.5), Sphere(0.1, pos=(0.0, 0.4, 0.1))]
    mass, com, inertia = combine(shapes)
    expected = mujoco_inertia(
        geom("capsule", "0.05 0.2", 'density="800"'),
        '<geom type="box" size="0.1 0.05 0.02" mass="1.5"/>',
        '<geom type="sphere" size="0.1" pos="0 0.4 0.1"/>',
    )
    for ours, theirs in zip((mass, com, to_matrix(inertia)), expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=TOL, atol=TOL)


def test_shape_without_mass_adds_nothing():
    with_shell = combine([Box((0.1, 0.2, 0.3)), Sphere(0.4, density=0.0)])
    for ours, alone in zip(with_shell, Box((0.1, 0.2, 0.3)).inertia(), strict=True):
        torch.testing.assert_close(ours, alone)


def test_capsule_by_quadrature():
    """Midpoint rule over a grid of the capsule's bounding box: independent of any closed form."""
    radius, half = 0.3, 0.5
    axes = [(np.arange(160) + 0.5) / 160 * 2 * extent - extent for extent in (radius, radius, radius + half)]
    x, y, z = np.meshgrid(*axes, indexing="ij")
    inside = x**2 + y**2 + np.maximum(np.abs(z) - half, 0) ** 2 <= radius**2
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    mass, _, inertia = Capsule(radius, half, density=1.0).inertia()
    expected = [inside.sum() * cell, ((y**2 + z**2) * inside).sum() * cell, ((x**2 + y**2) * inside).sum() * cell]
    np.testing.assert_allclose([mass, inertia[0], inertia[2]], expected, rtol=2e-3)  # the grid's own error


@pytest.mark.parametrize("kind", [Sphere, Box, Capsule, Cylinder, Ellipsoid])
def test_gradients_of_inertia(kind):
    sizes = [torch.rand(shape, dtype=torch.float64) + 0.2 for shape in kind.sizes.values()]
    rest = [torch.rand(n, dtype=torch.float64) + 0.2 for n in ((), (3,), (4,))]
    inputs = [tensor.requires_grad_() for tensor in itertools.chain(sizes, rest)]

    def inertia(*values):
        *size, density, pos, quat = values
        return combine([kind(*size, density=density, pos=pos, quat=quat), Sphere(0.3)])

    assert torch.autograd.gradcheck(inertia, inputs)


def test_detach_leaves_plain_floats():
    length = torch.tensor(0.5, requires_grad=True)
    shape = Capsule(0.1, length / 2, pos=(0, 0, length / 2)).detach()
    assert shape == Capsule(0.1, 0.25, pos=(0.0, 0.0, 0.25))
    assert isinstance(shape.half_length, float)


def test_detach_keeps_what_is_no_number():
    shape = Sphere(torch.tensor(0.5), friction=torch.tensor(0.25), name="x", collide=False, group=6, mask=-2)
    assert shape.detach() == Sphere(0.5, friction=0.25, name="x", collide=False, group=6, mask=-2)


def test_codes_and_planes():
    kinds = (Plane, Sphere, Capsule, Box, Cylinder, Hull, Heightfield, Ellipsoid)
    assert [kind.code for kind in kinds] == [*range(7), None]
    for shape in (Plane(pos=(0, 0, 1)), Heightfield([[0, 1], [2, 3]], (1, 1), pos=(0, 0, 1))):
        mass, _, inertia = shape.inertia()
        assert mass == 0 and not inertia.any()


def test_six_and_matrix_are_inverse():
    six = torch.arange(12.0).reshape(2, 6)
    matrix = to_matrix(six)
    assert torch.equal(matrix, matrix.mT)
    assert matrix[0, 0, 1] == six[0, 3] and matrix[0, 0, 2] == six[0, 4] and matrix[0, 1, 2] == six[0, 5]
    assert torch.equal(to_six(matrix), six)
