"""Balls, blocks and walls in the plane and in space for the tests of impacts in time, and how to run them."""

from __future__ import annotations

import math
from typing import Any

import torch

import costate as cs
from costate.scene.shapes import Shape

ELASTIC: dict[str, Any] = {"restitution": 1.0}
SMOOTH: dict[str, Any] = {"restitution": 1.0, "friction": 0.0}
RADIUS = 0.1
# Rows give way by 1e-9 of their stiffness, which a chain of elastic hits repeats. Times of impact are found to 1e-12 m
SOLVED, MET = 1e-7, 1e-9


def ball(planar: bool, radius: float = RADIUS, **shape: Any) -> Shape:
    return cs.Circle(radius, **shape) if planar else cs.Sphere(radius, **shape)


def block(planar: bool, x: float, y: float, **shape: Any) -> Shape:
    """A rectangle, or a box that is as deep as it is high."""
    return cs.Rectangle((x, y), **shape) if planar else cs.Box((x, y, y), **shape)


class Room(cs.Scene):
    """A scene that knows whether it is planar."""

    def __init__(self, planar: bool, **options: Any) -> None:
        super().__init__(planar=planar, **options)
        self.planar = planar


def empty(planar: bool, gravity: float = 0.0, **options: Any) -> Room:
    return Room(planar, gravity=(0, -gravity) if planar else (0, 0, -gravity), **options)


def add(scene: Room, name: str, x: float, y: float, *shapes: Shape) -> None:
    """A free body; y is the height, which is z in space."""
    if scene.planar:
        scene.add_body(name, pos=(x, y), shapes=shapes)
    else:
        scene.add_body(name, joint=cs.Free(), pos=(x, 0, y), shapes=shapes)


def add_walls(scene: Room, half: float, **surface: Any) -> None:
    """All around, as half planes or planes."""
    if scene.planar:
        for k in range(4):
            angle = k * math.pi / 2
            pos = (half * math.sin(angle), -half * math.cos(angle))
            scene.add_shape(cs.HalfPlane(pos=pos, angle=angle, **surface))
        return
    s = math.sqrt(0.5)
    turns = {(0, 0, -1): (1, 0, 0, 0), (0, 0, 1): (0, 1, 0, 0), (1, 0, 0): (s, 0, -s, 0)}
    turns.update({(-1, 0, 0): (s, 0, s, 0), (0, 1, 0): (s, s, 0, 0), (0, -1, 0): (s, -s, 0, 0)})
    for side, quat in turns.items():
        scene.add_shape(cs.Plane(pos=tuple(half * x for x in side), quat=quat, **surface))


def simulator(scene: cs.Scene, dt: float = 1 / 60, **options: Any) -> cs.Simulator:
    return cs.Simulator(scene.build(), dt, **{"impacts": "toi", **options})


def moving(sim: cs.Simulator, worlds: int | None = None, **velocities: tuple[float, ...]) -> cs.State:
    """The initial state with the first numbers of the velocities of bodies."""
    state = sim.initial_state(worlds)
    for name, velocity in velocities.items():
        at = sim.model.v_address[sim.model.body(name)]
        state.v[..., at : at + len(velocity)] = torch.tensor(velocity, dtype=sim.dtype)
    return state


def coordinate(traj: Any, planar: bool, body: int, axis: int = 0) -> torch.Tensor:
    """Of a free body over time: 0 is x, 1 the height."""
    return traj.q[..., 3 * body + axis] if planar else traj.q[..., 7 * body + (0, 2)[axis]]


def speed(v: torch.Tensor, planar: bool, body: int, axis: int = 0) -> torch.Tensor:
    return v[..., 3 * body + axis] if planar else v[..., 6 * body + (0, 2)[axis]]


def energy(model: cs.Model, traj: Any) -> torch.Tensor:
    return sum(cs.energy(model, traj.q, traj.v))
