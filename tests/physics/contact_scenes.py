"""Slopes, balls and boxes for the tests of contact, and how to run them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import costate as cs
from costate.scene.shapes import Shape

G = 9.81
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def run(
    scene: cs.Scene | cs.Model, steps: int, *, dt: float = 0.01, q: Any = None, v: Any = None, control: Any = None,
    external: Any = None, dtype: torch.dtype = torch.float64, **options: Any,
) -> cs.Trajectory:  # fmt: skip
    """A rollout of one world in numpy; q, v default to the scene's, control and external are held. Options: of the Simulator."""
    model = scene.build() if isinstance(scene, cs.Scene) else scene
    sim = cs.Simulator(model, dt=dt, dtype=dtype, **options)
    start = sim.initial_state()
    kind = start.q.numpy().dtype
    q = start.q.numpy() if q is None else np.array(q, dtype=kind)
    v = start.v.numpy() if v is None else np.array(v, dtype=kind)
    controls = None if control is None else np.tile(np.array(control, dtype=kind), (steps, 1))
    external = None if external is None else np.array(external, dtype=kind)
    traj = sim.rollout(cs.State(q, v), controls, steps=None if control is not None else steps, external=external)
    assert not np.any(traj.diverged)
    return traj


def look(
    scene: cs.Scene | cs.Model, *, dt: float = 0.01, q: Any = None, v: Any = None, control: Any = None, **options: Any
) -> tuple[cs.State, Any]:
    """One step of one world in numpy: the new state, and what step(info=True) tells."""
    model = scene.build() if isinstance(scene, cs.Scene) else scene
    sim = cs.Simulator(model, dt=dt, **options)
    start = sim.initial_state()
    q, v = (x.numpy() if y is None else np.array(y, dtype=float) for x, y in ((start.q, q), (start.v, v)))
    return sim.step(cs.State(q, v), None if control is None else np.array(control, dtype=float), info=True)


def quat_mul(a: Any, b: Any) -> np.ndarray:
    w = a[0] * b[0] - np.dot(a[1:], b[1:])
    return np.append(w, a[0] * np.array(b[1:]) + b[0] * np.array(a[1:]) + np.cross(a[1:], b[1:]))


def turn(axis: Any, angle: float) -> np.ndarray:
    """The quaternion wxyz that turns by `angle` (rad) about a unit axis."""
    return np.append(math.cos(angle / 2), math.sin(angle / 2) * np.array(axis, dtype=float))


def rotate(quat: Any, x: Any) -> np.ndarray:
    u = np.array(quat[1:])
    return x + 2 * np.cross(u, quat[0] * np.array(x) + np.cross(u, x))


@dataclass(frozen=True)
class Slope:
    """A plane through the origin, steep by `angle`, falling along world x and -z; its own x axis is `heading` off that."""

    angle: float
    heading: float = 0.0
    friction: float = 1.0

    @property
    def lean(self) -> np.ndarray:
        """What turns the level onto the slope."""
        return turn((0, 1, 0), self.angle)

    @property
    def normal(self) -> np.ndarray:
        return rotate(self.lean, (0, 0, 1))

    @property
    def downhill(self) -> np.ndarray:
        return rotate(self.lean, (1, 0, 0))

    @property
    def across(self) -> np.ndarray:
        return np.array((0.0, 1.0, 0.0))

    @property
    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """The plane's x and y in the world: the axes of its friction."""
        quat = quat_mul(self.lean, turn((0, 0, 1), self.heading))
        return rotate(quat, (1, 0, 0)), rotate(quat, (0, 1, 0))

    def scene(self, **options: Any) -> cs.Scene:
        """With the plane alone."""
        scene = cs.Scene(**options)
        quat = quat_mul(self.lean, turn((0, 0, 1), self.heading))
        scene.add_shape(cs.Plane(quat=quat, friction=self.friction), name="slope")
        return scene

    def with_block(self, *, yaw: float = 0.4, half: tuple[float, float, float] = (0.2, 0.15, 0.05)) -> cs.Scene:
        """And a flat block on it, turned by `yaw` against the fall of the slope."""
        scene, quat = self.scene(), quat_mul(self.lean, turn((0, 0, 1), yaw))
        box = cs.Box(half, friction=self.friction)
        scene.add_body("block", joint=cs.Free(), pos=half[2] * self.normal, quat=quat, shapes=box)
        return scene


def on_ground(*shapes: Shape, height: float = 0.0, quat: Any = UPRIGHT, ground: Any = None, **options: Any) -> cs.Scene:
    """One free body named "body" at `height` (m) over the ground; `ground`: keywords of add_ground, options: of the scene."""
    scene = cs.Scene(**options)
    scene.add_ground(**(ground or {}))
    scene.add_body("body", joint=cs.Free(), pos=(0, 0, height), quat=quat, shapes=shapes)
    return scene
