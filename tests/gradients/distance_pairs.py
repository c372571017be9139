"""Pairs of shapes in random poses for tests of cs.distance: apart, touching, overlapping; and what kind of features are closest.

The first shape turns on a hinge, or stands on a fixed body if it never ends; the second is free. So distances depend on every
parameter of joint frames.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement
from math import cos, pi
from typing import NamedTuple

import torch
from torch import Tensor

import costate as cs
from costate.rotation import inverse, multiply, normalise, rotate
from tests.gradients.contact_scenes import uniform
from tests.gradients.scenes import generator, normal

# Corners of a hull with triangles only: derivatives by corners that bend a face of four would ask which three of them span it
CORNERS = (
    (0.15, 0.01, 0.02), (-0.13, 0.03, -0.02), (0.02, 0.14, 0.01), (0.01, -0.16, 0.03), (-0.02, 0.02, 0.17), (0.03, -0.01, -0.12),
    (0.09, 0.09, 0.1), (-0.09, -0.08, 0.09), (0.09, -0.09, -0.08), (-0.08, 0.1, -0.08),
)  # fmt: skip
HEIGHTS = tuple(tuple(0.25 * ((5 * i * i + 3 * i * j + 7 * j * j) % 11 / 11) for j in range(7)) for i in range(8))
SHAPES: dict[str, cs.Shape] = {
    "plane": cs.Plane(),
    "field": cs.Heightfield(HEIGHTS, (1.0, 0.8)),
    "sphere": cs.Sphere(0.1),
    "capsule": cs.Capsule(0.06, 0.12),
    "box": cs.Box((0.1, 0.14, 0.07)),
    "cylinder": cs.Cylinder(0.09, 0.12),
    "hull": cs.Hull(CORNERS),
}
STATIC = ("plane", "field")
PAIRS = [pair for pair in combinations_with_replacement(SHAPES, 2) if pair[1] not in STATIC]
# m: how far apart the pair is put. Between apart and touching lies where directions turn fastest
PLACES = {"apart": (0.02, 0.15), "near": (1e-3, 1e-2), "touching": (-1e-3, 1e-3), "overlapping": (-0.04, -5e-3)}
ASIDE = 1e-4  # m
TILT = (0.9, 0.1, -0.15, 0.3)


class Poses(NamedTuple):
    """`W` worlds of a pair: configurations [W, nq], parameters, and where each was to be put."""

    pair: tuple[str, str]
    model: cs.Model
    q: Tensor
    params: cs.Params
    place: list[str]


@cache
def build(a: str, b: str) -> cs.Model:
    scene = cs.Scene()
    hinge = cs.Revolute((0.2, 0.3, 1.0), anchor=(0.03, -0.02, 0.05))
    joint = cs.Fixed() if a in STATIC else hinge
    scene.add_body("a", joint=joint, pos=(0.1, 0.2, -0.1), quat=TILT, mass=1.0, inertia=(1.0, 1.0, 1.0))
    scene.add_shape(SHAPES[a], body="a", name="first")
    scene.add_body("b", joint=cs.Free(), shapes=SHAPES[b], pos=(0.2, 0.1, 0.3), quat=(0.8, 0.3, 0.2, 0.1))
    return scene.build()


def shaken(model: cs.Model, gen: torch.Generator, count: int) -> cs.Params:
    """One row of parameters per world: places anywhere near, sizes within 20%, quaternions of any length."""
    fields = {}
    for name, value in model.defaults.items():
        shape = (count, *value.shape)
        if name in ("shape_pos", "joint_pos", "joint_anchor", "joint_axis"):
            value = value + 0.03 * normal(gen, *shape)
        elif name in ("shape_quat", "joint_quat"):
            value = value + 0.2 * normal(gen, *shape)
        elif name in ("hull_vertex", "height"):
            value = value + 0.006 * normal(gen, *shape).tanh()
        elif name == "shape_size":
            value = value * (1 + 0.2 * normal(gen, *shape).tanh())
        fields[name] = value.expand(shape).contiguous()
    return cs.Params(model, fields)


def aligned(gen: torch.Generator, count: int) -> Tensor:
    """Quaternions [count, 4] near those that lay faces and edges of two frames along each other: 90 and 45 degrees, and less."""
    turns = torch.tensor([(1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1), (1, 0.41421, 0, 0), (1, 0, 0.41421, 0)])
    picks = turns.double()[torch.randint(len(turns), (2, count), generator=gen)]
    spin = torch.zeros(count, 4, dtype=torch.float64)
    spin[:, 0], spin[:, 3] = 1.0, normal(gen, count)
    return multiply(multiply(picks[0], spin), picks[1]) + 0.02 * normal(gen, count, 4)


def poses(a: str, b: str, count: int, seed: int = 0) -> Poses:
    """`count` random worlds of a pair, one of PLACES after the other; half of them with faces or edges along each other."""
    model, gen = build(a, b), generator(seed)
    params = shaken(model, gen, count)
    q = torch.tensor(model.q0).expand(count, -1).clone()
    if model.nq > 7:
        q[:, 0] = normal(gen, count)
    pos, turn = slice(model.nq - 7, model.nq - 4), slice(model.nq - 4, model.nq)
    q[:, turn] = normal(gen, count, 4)
    half = torch.arange(count) % 8 < 4
    frame = cs.kinematics(model, q, params=params).quaternion[:, 0]
    flat = multiply(frame, params["shape_quat"][:, 0])
    q[half, turn] = multiply(multiply(flat, aligned(gen, count)), inverse(params["shape_quat"][:, 1]))[half]
    q[:, pos] = normal(gen, count, 3) * (0.25 if a == "field" else 0.3)
    place = [list(PLACES)[i % len(PLACES)] for i in range(count)]
    target = torch.cat([uniform(gen, *PLACES[name], 1) for name in place])
    for _ in range(6):  # along the normal, which turns on the way
        found = cs.distance(model, q, "first", "b/0", params)
        q[:, pos] += found.normal * (target - found.gap).nan_to_num(0.0, 0.0, 0.0).unsqueeze(-1)
    # where normals took turns this ended exactly on a kink
    q[:, pos] += ASIDE * normal(gen, count, 3)
    return Poses((a, b), model, q, params, place)


def planes(poses: Poses, shape: int, x: Tensor, tolerance: float = 1e-9) -> Tensor:
    """[W] on how many faces of a shape points x [W, 3] lie: 1 face, 2 edge, more: vertex; 0 of what is round.

    tolerance : m, of points on a face
    """
    name, params = poses.pair[shape], poses.params
    bodies = cs.kinematics(poses.model, poses.q, params=params)
    size, turn = params["shape_size"][:, shape], normalise(params["shape_quat"][:, shape])
    local = rotate(inverse(bodies.quaternion[:, shape]), x - bodies.position[:, shape])
    local = rotate(inverse(turn), local - params["shape_pos"][:, shape])
    if name == "box":
        return ((local.abs() - size).abs() < tolerance).sum(-1)
    if name == "cylinder":
        angle = torch.arange(0.5, 16, dtype=torch.float64) * pi / 8
        sides = local[:, :1] * angle.cos() + local[:, 1:2] * angle.sin() - size[:, :1] * cos(pi / 16)
        return (sides.abs() < tolerance).sum(-1) + ((local[:, 2].abs() - size[:, 1]).abs() < tolerance)
    if name == "hull":
        loops = torch.tensor(poses.model.hull_loop).reshape(-1, 3)
        first = 0 if shape == 0 or poses.pair[0] != "hull" else len(params["hull_vertex"][0]) // 2
        faces = len(loops) if poses.pair[0] != "hull" or poses.pair[1] != "hull" else len(loops) // 2
        p, q, r = (params["hull_vertex"][:, first + loops[:faces, k]] for k in range(3))
        n = torch.linalg.cross(q - p, r - p)
        n = n / n.norm(dim=-1, keepdim=True)
        return ((n * (local.unsqueeze(1) - p)).sum(-1).abs() < tolerance).sum(-1)
    if name == "field":  # 1, and the lines of the grid and of diagonals that x is on
        cells = torch.tensor([len(HEIGHTS) - 1, len(HEIGHTS[0]) - 1]) / 2
        u, v = ((local[:, :2] / size[:, :2] + 1) * cells).unbind(-1)
        lines = torch.stack((u, v, u - v), -1)
        return 1 + ((lines - lines.round()).abs() < 10 * tolerance).sum(-1)
    return torch.full((len(x),), int(name == "plane"))
