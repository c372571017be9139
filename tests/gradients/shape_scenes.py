"""Random worlds whose shapes touch with faces, edges and corners, which those of contact_scenes.py have not.

In the scenes of two bodies the second is turned as the scene says, a little off, so that its contact is a face's or an edge's; it
is put where a situation wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import cos, pi, sin
from typing import NamedTuple

import torch
from torch import Tensor

import costate as cs
from costate.rotation import inverse, multiply, normalise, rotate
from tests.gradients.contact_scenes import (
    SITUATIONS,
    STEP_SIZES,
    TILT,
    Situation,
    Worlds,
    chosen,
    free,
    meeting_velocity,
    on_plane,
    pick,
    random_params,
    run_on,
    two,
    uniform,
)  # fmt: skip
from tests.gradients.distance_pairs import CORNERS, HEIGHTS
from tests.gradients.scenes import generator, normal

UPRIGHT, LYING, EDGE_X, EDGE_Y = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0), (1.0, 0.41421, 0.0, 0.0), (1.0, 0.0, 0.41421, 0.0)
# About x and y by -45 degrees: seen from the first box's edge along x, the second stands on an edge across that one
CROSSED, OVER_EDGE = (0.85355, -0.35355, -0.35355, 0.14645), (0.0, 0.25, 0.25)
OFF = 0.01  # how far the second body is turned from that; above 0.05 faces would no longer lie on each other
ASIDE = 2e-5  # m
SOFT = 2e-5  # m/N: which of four rigid corners bears how much would not be determined
BOX = cs.Box((0.1, 0.14, 0.07), pos=(0.02, 0.01, -0.03), quat=(0.9, 0.1, 0.2, -0.1), restitution=0.5)
CYLINDER = cs.Cylinder(0.09, 0.12, pos=(0.01, -0.02, 0.02), restitution=0.4)
# Six sides: faces of four and six corners, which stay flat as long as corners only move along with all others
PRISM = [[0.1 * cos(k * pi / 3), 0.1 * sin(k * pi / 3), z] for z in (-0.08, 0.08) for k in range(6)]
HULL = cs.Hull(CORNERS, pos=(0.01, 0.02, 0.0), restitution=0.3)


def on_field(shape: cs.Shape) -> cs.Scene:
    scene = cs.Scene()
    scene.add_shape(cs.Heightfield(HEIGHTS, (0.8, 0.7), pos=(0.1, -0.2, 0.05), quat=TILT, friction=0.7, restitution=0.6))
    scene.add_body("body", **free(shape))
    return scene


def mixed_pile() -> cs.Scene:
    """A cylinder that lies on a box, a hull that leans on both, on a tilted plane."""
    scene = cs.Scene(friction_rule="arithmetic")
    scene.add_shape(cs.Plane(quat=(1.0, 0.02, -0.01, 0.3), restitution=0.3))
    scene.add_body("box", **free(cs.Box((0.1, 0.14, 0.07), restitution=0.5), pos=(0.0, 0.0, 0.069)))
    scene.add_body("log", joint=cs.Free(), shapes=cs.Cylinder(0.09, 0.12), pos=(0.0, 0.0, 0.227), quat=LYING)
    scene.add_body("stone", **free(cs.Hull(CORNERS, restitution=0.2), pos=(0.205, 0.0, 0.125)))
    return scene


class Meeting(NamedTuple):
    """A scene, and how its second shape is turned against the first: each of these in turn; none: as the scene has it."""

    scene: Callable[[], cs.Scene]
    turns: tuple[tuple[float, ...], ...] = ()
    aside: float = 0.05  # m, how far it is put beside
    way: tuple[float, ...] = (0.0, 0.0, 0.35)  # m, where it is before it is put, seen from the first
    off: float = OFF


SCENES: dict[str, Meeting] = {
    "box on box": Meeting(lambda: two(BOX, cs.Box((0.09, 0.1, 0.12), restitution=0.4)), (UPRIGHT, LYING, (1.0, 0.0, 0.0, 0.3))),
    "edge on edge": Meeting(lambda: two(BOX, cs.Box((0.09, 0.1, 0.12))), (CROSSED,), 0.01, OVER_EDGE, 0.1),
    "capsule on box": Meeting(lambda: two(BOX, cs.Capsule(0.05, 0.1), friction_rule="product"), (UPRIGHT, LYING, EDGE_X)),
    "cylinder on plane": Meeting(lambda: on_plane(CYLINDER), (LYING, EDGE_X, (1.0, 0.1, 0.05, 0.2))),
    "cylinder on box": Meeting(lambda: two(BOX, CYLINDER, restitution_rule="maximum"), (UPRIGHT, LYING, EDGE_X)),
    "hull on hull": Meeting(lambda: two(HULL, cs.Hull([[-x, y, 0.9 * z] for x, y, z in CORNERS])), (UPRIGHT, LYING, EDGE_Y)),
    "prism on box": Meeting(lambda: two(BOX, cs.Hull(PRISM)), (UPRIGHT, LYING, EDGE_X)),
    "sphere on field": Meeting(lambda: on_field(cs.Sphere(0.1, pos=(0.02, 0.01, -0.03))), (UPRIGHT,), 0.3),
    "box on field": Meeting(lambda: on_field(cs.Box((0.06, 0.07, 0.05), quat=(0.9, 0.1, 0.2, -0.1))), (UPRIGHT, EDGE_X), 0.3),
    "mixed pile": Meeting(mixed_pile),
}


@cache
def build(name: str) -> cs.Model:
    return SCENES[name].scene().build()


def put(meeting: Meeting, model: cs.Model, gen: torch.Generator, params: cs.Params, situations: list[Situation]) -> tuple:
    """q, v of two shapes: the second is turned as the scene says, and touches the first as each world's situation says."""
    count, pos, turn = len(situations), slice(model.nq - 7, model.nq - 4), slice(model.nq - 4, model.nq)
    q = torch.tensor(model.q0).expand(count, -1).clone()
    frame, origin = normalise(params["shape_quat"][:, 0]), params["shape_pos"][:, 0]
    if model.nq > 7:
        q[:, 3:7] = normalise(normal(gen, count, 4))
        frame, origin = multiply(q[:, 3:7], frame), q[:, :3] + rotate(q[:, 3:7], origin)
    turns = torch.tensor(meeting.turns, dtype=torch.float64)[torch.arange(count) % len(meeting.turns)]
    turns = normalise(normalise(turns) + meeting.off * normal(gen, count, 4))
    q[:, turn] = multiply(multiply(frame, turns), inverse(normalise(params["shape_quat"][:, 1])))
    beside = meeting.aside * normal(gen, count, 3).tanh()
    q[:, pos] = origin + rotate(frame, beside + torch.tensor(meeting.way))
    target = torch.cat([uniform(gen, *s.gap, 1) for s in situations])
    for _ in range(6):  # along the normal, which turns on the way
        found = cs.distance(model, q, 0, 1, params)
        q[:, pos] += found.normal * (target - found.gap).unsqueeze(-1)
    q[:, pos] += ASIDE * normal(gen, count, 3)  # where normals took turns this ended exactly on a kink
    return q, meeting_velocity(gen, model, situations, found.normal)


def inputs_of(model: cs.Model, gen: torch.Generator, q: Tensor, v: Tensor) -> dict[str, Tensor]:
    count = len(q)
    return {
        "q": q,
        "v": v,
        "control": normal(gen, count, model.nu),
        "external": normal(gen, count, model.nb, 6) * torch.tensor([0.1, 0.1, 0.1, 1.0, 1.0, 1.0]),
        "dt": pick(gen, STEP_SIZES, count),
    }


def worlds(name: str, count: int, seed: int = 0, *, settle: float = 0.3) -> Worlds:
    """`count` random worlds of a scene; `settle`: which part of them has run for some steps."""
    model, gen, meeting = build(name), generator(seed), SCENES[name]
    if meeting.turns:
        situations = (list(SITUATIONS.values()) * (count // len(SITUATIONS) + 1))[:count]
        params = random_params(model, gen, count)
        friction = params["friction"] * torch.tensor([[s.friction] for s in situations])
        params = params.replace(friction=friction, softness=params["softness"] + SOFT)
        if name == "prism on box":
            params = params.replace(hull_vertex=model.defaults["hull_vertex"] * uniform(gen, 0.9, 1.1, count, 1, 3))
        q, v = put(meeting, model, gen, params, situations)
    else:
        q, v, params = chosen(model, gen, count)
        params = params.replace(softness=params["softness"] + SOFT)
    return run_on(Worlds(model, inputs_of(model, gen, q, v), params), gen, settle)


@cache
def heap(layers: int = 5) -> cs.Model:
    """70 boxes and spheres in layers, so many that the engine sweeps without matrices, and a slide that pushes into them."""
    scene, gen = cs.Scene(friction_rule="arithmetic"), generator(5)
    scene.add_shape(cs.Plane(quat=(1.0, 0.01, -0.02, 0.1)))
    slide = cs.Box((0.05, 0.3, 0.1), mask=1, softness=SOFT)
    scene.add_body("slide", joint=cs.Prismatic((1, 0, 0.02), damping=5.0), pos=(-0.46, 0.0, 0.12), shapes=slide)
    scene.add_motor("slide", gear=20.0)
    for k in range(70):
        i, j, layer = k % 14 // 4 if k % 14 < 12 else 3, k % 14 % 4 if k % 14 < 12 else k % 14 - 12, k // 14
        jitter = 0.005 * normal(gen, 3)
        pos = (
            0.2 * (i - 1.5) + jitter[0].item(),
            0.2 * (j - 1.5) + jitter[1].item(),
            0.0975 + 0.195 * layer + 0.2 * jitter[2].item(),
        )
        shape = cs.Sphere(0.1, softness=SOFT) if k % 3 == 1 else cs.Box((0.1, 0.1, 0.1), softness=SOFT)
        quat = (1.0, *(0.01 * normal(gen, 3)).tolist())
        scene.add_body(joint=cs.Free(), shapes=shape, pos=pos, quat=quat)
    return scene.build()


def heaps(count: int, seed: int = 0, steps: int = 20) -> Worlds:
    """`count` worlds of the heap after some steps of falling together."""
    model, gen = heap(), generator(seed)
    params = random_params(model, gen, count)
    params = params.replace(softness=params["softness"] + SOFT, restitution=0.3 * params["restitution"])
    q = model.integrate(torch.tensor(model.q0).expand(count, -1), 2e-3 * normal(gen, count, model.nv))
    inputs = inputs_of(model, gen, q, 0.05 * normal(gen, count, model.nv))
    sim = cs.Simulator(model)
    controls = inputs["control"].expand(steps, *inputs["control"].shape)
    with torch.no_grad():
        traj = sim.rollout(cs.State(inputs["q"], inputs["v"]), controls, params, dt=inputs["dt"])
    assert not traj.diverged.any()
    return Worlds(model, {**inputs, "q": traj.q[-1], "v": traj.v[-1]}, params)
