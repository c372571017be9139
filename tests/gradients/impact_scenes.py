"""Scenes whose steps are split at impacts: shapes between walls, and robots, chains and motors that hit something."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import costate as cs
from tests.gradients.scenes import generator, normal

SURFACE: dict[str, Any] = {"friction": 0.3, "restitution": 0.8}
KITE = [(0.2, 0.0), (0.05, 0.2), (-0.2, 0.1), (-0.1, -0.15)]


class Flight(NamedTuple):
    """A scene and how its worlds begin: the initial configuration, velocities around `velocity` (per dof, or None: zero)."""

    scene: Callable[[float], cs.Scene]  # of gravity
    spread: tuple[float, ...]  # of velocities, per dof or per body
    velocity: tuple[float, ...] | None = None
    field: str = "shape_size"  # one more parameter than all scenes have


def hall(gravity: float, half: float = 0.8, *, solid: bool = False) -> cs.Scene:
    """Four walls: half planes, or rectangles."""
    scene = cs.Scene(planar=True, gravity=(0.3, -gravity) if gravity else (0, 0))
    for k in range(4):
        angle = k * math.pi / 2
        out = torch.tensor([math.sin(angle), -math.cos(angle)], dtype=torch.float64)
        if solid:
            scene.add_shape(cs.Rectangle((half + 0.2, 0.1), pos=tuple((half + 0.1) * out), angle=angle, **SURFACE))
        else:
            scene.add_shape(cs.HalfPlane(pos=tuple(half * out), angle=angle, **SURFACE))
    return scene


def room(gravity: float, half: float = 0.8) -> cs.Scene:
    """Six planes."""
    scene, s = cs.Scene(gravity=(0.3, 0.2, -gravity) if gravity else (0, 0, 0)), math.sqrt(0.5)
    turns = {(0, 0, -1): (1, 0, 0, 0), (0, 0, 1): (0, 1, 0, 0), (1, 0, 0): (s, 0, -s, 0)}
    turns.update({(-1, 0, 0): (s, 0, s, 0), (0, 1, 0): (s, s, 0, 0), (0, -1, 0): (s, -s, 0, 0)})
    for side, quat in turns.items():
        scene.add_shape(cs.Plane(pos=tuple(half * x for x in side), quat=quat, **SURFACE))
    return scene


def billiard(gravity: float) -> cs.Scene:
    scene = hall(gravity, 0.6)
    for i in range(3):
        disc = cs.Circle(0.08 + 0.02 * i, mass=1.0 + 0.5 * i, **SURFACE)
        scene.add_body(f"b{i}", pos=(-0.35 + 0.35 * i, 0.1 * (-1) ** i), shapes=disc)
    return scene


def rectangle(gravity: float) -> cs.Scene:
    scene = hall(gravity, solid=True)
    scene.add_body("a", shapes=cs.Rectangle((0.2, 0.1), mass=1.0, **SURFACE))
    return scene


def polygons(gravity: float) -> cs.Scene:
    scene = hall(gravity)
    scene.add_body("a", pos=(-0.4, 0.1), shapes=cs.Rectangle((0.2, 0.1), mass=1.0, **SURFACE))
    scene.add_body("b", pos=(0.3, 0), shapes=cs.Polygon(KITE, mass=1.4, **SURFACE))
    return scene


def balls(gravity: float) -> cs.Scene:
    """On a table, where there is gravity; they slip and spin."""
    scene = room(gravity)
    for i in range(3):
        sphere = cs.Sphere(0.12 + 0.02 * i, mass=1.0 + 0.3 * i, **SURFACE)
        scene.add_body(f"b{i}", joint=cs.Free(), pos=(-0.45 + 0.45 * i, 0.1 * i, -0.66 + 0.02 * i), shapes=sphere)
    return scene


def solids(gravity: float) -> cs.Scene:
    scene = room(gravity)
    scene.add_body("box", joint=cs.Free(), pos=(-0.4, 0, 0), shapes=cs.Box((0.2, 0.15, 0.1), mass=1.0, **SURFACE))
    scene.add_body("rod", joint=cs.Free(), pos=(0.4, 0, 0), shapes=cs.Capsule(0.08, 0.2, mass=1.0, **SURFACE))
    return scene


def pendulum(gravity: float) -> cs.Scene:
    """Two links and a bob that swings against a wall."""
    scene = cs.Scene(planar=True, gravity=(0, -gravity))
    scene.add_shape(cs.HalfPlane(pos=(0.3, 0), angle=math.pi / 2, **SURFACE))
    upper = cs.Rectangle((0.03, 0.3), mass=1.0, pos=(0, -0.3), collide=False)
    scene.add_body("a", joint=cs.Revolute(damping=0.05, initial=-0.6), pos=(0, 2), shapes=upper)
    lower = cs.Rectangle((0.03, 0.2), mass=0.5, pos=(0, -0.2), collide=False)
    bob = cs.Circle(0.08, pos=(0, -0.4), mass=0.5, **SURFACE)
    scene.add_body("b", parent="a", joint=cs.Revolute(damping=0.05, initial=0.4), pos=(0, -0.6), shapes=(lower, bob))
    scene.add_motor("a", gear=2.0)
    return scene


def chain(gravity: float) -> cs.Scene:
    """Links that hinges hold together, and a ball that hits them."""
    scene = cs.Scene(planar=True, gravity=(0, -gravity))
    for i in range(3):
        scene.add_body(f"l{i}", pos=(0.25 + 0.5 * i, 1), shapes=cs.Rectangle((0.22, 0.04), mass=1.0, **SURFACE))
        if i:
            scene.add_hinge(f"l{i - 1}", f"l{i}", pos=(0.25, 0))
    scene.add_body("ball", pos=(0.6, 1.4), shapes=cs.Circle(0.1, mass=0.7, **SURFACE))
    return scene


def servo(gravity: float) -> cs.Scene:
    """A ball on an arm with a servo, dry friction and limits."""
    scene = cs.Scene(planar=True, gravity=(0, -gravity))
    arm = cs.Rectangle((0.3, 0.03), mass=1.0, pos=(0.3, 0), **SURFACE)
    scene.add_body("a", joint=cs.Revolute(friction=0.1, limits=(-0.8, 0.8)), pos=(0, 0.6), shapes=arm)
    scene.add_servo("a", gain=5.0, max_speed=2.0, max_force=8.0)
    scene.add_body("ball", pos=(0.4, 1.0), shapes=cs.Circle(0.1, mass=0.5, **SURFACE))
    return scene


def robot(gravity: float) -> cs.Scene:
    """A floating base on a leg with an actuator, and an arm on a ball joint."""
    scene = cs.Scene(gravity=(0.3, 0.2, -gravity))
    scene.add_ground(**SURFACE)
    scene.add_body("base", joint=cs.Free(), pos=(0, 0, 0.55), shapes=cs.Sphere(0.1, mass=2.0, **SURFACE))
    leg = (
        cs.Capsule(0.03, 0.15, mass=0.5, pos=(0, 0, -0.2), collide=False),
        cs.Sphere(0.05, pos=(0, 0, -0.4), mass=0.3, **SURFACE),
    )
    scene.add_body("leg", parent="base", joint=cs.Revolute((0, 1, 0), damping=0.1), pos=(0.1, 0, 0), shapes=leg)
    arm = cs.Capsule(0.04, 0.15, mass=0.5, pos=(0, 0, -0.2), **SURFACE)
    scene.add_body("arm", parent="base", joint=cs.Ball(damping=0.1), pos=(-0.1, 0, 0), shapes=arm)
    scene.add_position("leg", kp=20.0, kd=1.0)
    return scene


PLANE, SPACE = (2.0, 2.0, 5.0), (2.0, 2.0, 2.0, 4.0, 4.0, 4.0)
FLIGHTS = {
    "billiard": Flight(billiard, PLANE),
    "rectangle": Flight(rectangle, PLANE),
    "polygons": Flight(polygons, PLANE, field="hull_vertex"),
    "balls": Flight(balls, SPACE),
    "solids": Flight(solids, SPACE),
    "pendulum": Flight(pendulum, (0.2,), (2.0, 1.0), "joint_pos"),
    "chain": Flight(chain, (0.1,), (0.0,) * 9 + (0.3, -3.0, 1.0), "tie_pos"),
    "servo": Flight(servo, (0.1,), (0.0, 0.2, -2.0, 0.0), "dry_friction"),
    "robot": Flight(robot, (0.1,), (0.5, 0.2, -1.0, 0.3, 0.2, 0.1, 0.5, 0.4, 0.3, 0.2), "joint_pos"),
}


def start(name: str, gravity: float, worlds: int, seed: int = 0) -> tuple[cs.Model, Tensor, Tensor]:
    """Model, and q, v of many worlds."""
    flight = FLIGHTS[name]
    model = flight.scene(gravity).build()
    q = torch.tensor(model.q0, dtype=torch.float64).expand(worlds, -1).clone()
    spread = torch.tensor(flight.spread, dtype=torch.float64).repeat(model.nv)[: model.nv]
    v = normal(generator(seed), worlds, model.nv) * spread
    return model, q, v if flight.velocity is None else v + torch.tensor(flight.velocity, dtype=torch.float64)
