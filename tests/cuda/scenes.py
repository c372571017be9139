"""Kinds of worlds that a GPU must compute as the CPU does; nothing but costate and torch is needed to build them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

import costate as cs
from bench.humanoid import humanoid_model
from bench.ours import costate_model
from bench.walkers import ant, standing_quadruped
from costate._native.cuda import engine as gpu

FLOOR = {"friction": 0.7, "restitution": 0.3}


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of all models, and their adjoints, are a kernel for each part from here on, as few worlds as there may be."""
    whole = gpu.CudaEngine._key

    def key(engine: gpu.CudaEngine, op: int, adjoint: bool, *how: Any) -> gpu.Key:
        apart = {"outside": True, "apart": True} if op == gpu.ROLLOUT else {}
        return whole(engine, op, adjoint, *how)._replace(**apart)

    monkeypatch.setattr(gpu.CudaEngine, "_key", key)


@dataclass(frozen=True)
class World:
    """A model, the options of its simulator, and how wildly its worlds begin (m, rad; m/s, rad/s; units of control)."""

    build: Callable[[], cs.Model]
    dt: float = 0.005
    options: dict[str, Any] = field(default_factory=dict)
    spread: tuple[float, float, float] = (0.02, 0.3, 0.5)

    def simulator(self, model: cs.Model, device: str = "cpu", dtype: torch.dtype = torch.float64) -> cs.Simulator:
        """Of this kind."""
        return cs.Simulator(model, self.dt, device=device, dtype=dtype, **self.options)

    def inputs(
        self, model: cs.Model, worlds: int, steps: int, dtype: torch.dtype = torch.float64
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q, v [worlds, n] and controls [steps, worlds, nu]: the same numbers every time, on the cpu."""
        numbers, (place, speed, drive) = torch.Generator().manual_seed(7), self.spread
        normal = lambda *shape: torch.randn(*shape, generator=numbers, dtype=torch.float64)  # noqa: E731
        q = model.integrate(torch.tensor(model.q0).expand(worlds, -1), place * normal(worlds, model.nv))
        if model.ne:
            q = cs.project(model, q)
        v, u = speed * normal(worlds, model.nv), drive * normal(steps, worlds, model.nu)
        return q.to(dtype), v.to(dtype), u.to(dtype)


def _arm() -> cs.Model:
    """Limits, dry friction, a spring, a position servo with a force limit; nothing touches."""
    scene = cs.Scene()
    rod = cs.Capsule(0.03, 0.2, mass=1.0, pos=(0, 0, -0.2))
    scene.add_body("upper", joint=cs.Revolute(axis=(0, 1, 0), limits=(-0.3, 0.3), friction=0.2, damping=0.05), shapes=rod)
    scene.add_body("lower", parent="upper", pos=(0, 0, -0.4), joint=cs.Ball(damping=0.02), shapes=rod)
    scene.add_body("slide", parent="lower", pos=(0, 0, -0.4), joint=cs.Prismatic(axis=(0, 0, 1), stiffness=40.0), mass=0.5,
                   inertia=(0.01, 0.01, 0.01))  # fmt: skip
    scene.add_position("upper", kp=30.0, kd=1.0, force_limits=(-2.0, 2.0))
    return scene.build()


def _shapes() -> cs.Model:
    """Boxes, a cylinder, a hull, a capsule and a ball fall onto each other, a plane and hills."""
    scene = cs.Scene(max_contacts=40)
    scene.add_ground(**FLOOR)
    heights = [[0.05 * ((i * 3 + j * 5) % 4) for i in range(5)] for j in range(5)]
    scene.add_shape(cs.Heightfield(heights, (0.6, 0.6), pos=(0.9, 0.0, 0.02), **FLOOR))
    corners = [(0.1, 0, 0), (-0.1, 0, 0), (0, 0.1, 0), (0, -0.1, 0), (0, 0, 0.12), (0, 0, -0.08)]
    kinds = (
        cs.Box((0.1, 0.08, 0.06), **FLOOR), cs.Cylinder(0.06, 0.08, **FLOOR), cs.Hull(corners, **FLOOR),
        cs.Capsule(0.05, 0.1, **FLOOR), cs.Sphere(0.07, **FLOOR),
    )  # fmt: skip
    for i, shape in enumerate(kinds):
        scene.add_body(
            f"body{i}", joint=cs.Free(), pos=(0.04 * i if i < 3 else 0.9, 0.03 * i, 0.12 + 0.17 * (i % 3)), shapes=shape
        )
    return scene.build()


def _turning() -> cs.Model:
    """Torsional and rolling friction."""
    scene = cs.Scene()
    scene.add_ground(condim=6, torsion=0.02, rolling=0.01, **FLOOR)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, condim=6, torsion=0.02, rolling=0.01, **FLOOR))
    scene.add_body("coin", joint=cs.Free(), pos=(0.4, 0, 0.05), shapes=cs.Box((0.1, 0.1, 0.05), condim=4, torsion=0.02, **FLOOR))
    return scene.build()


def _loop() -> cs.Model:
    """Two hanging bars and one between them, closed by hinges; driven by a servo on a foot of the loop; a weld and a coupling."""
    scene = cs.Scene()
    rod = cs.Capsule(0.02, 0.15, mass=1.0, pos=(0, 0, -0.15))
    scene.add_body("left", joint=cs.Revolute(axis=(0, 1, 0)), shapes=rod)
    scene.add_body("right", pos=(0.4, 0, 0), joint=cs.Revolute(axis=(0, 1, 0)), shapes=rod)
    scene.add_body("bar", pos=(0.2, 0, -0.3), joint=cs.Free(), mass=0.5, inertia=(0.01, 0.01, 0.01))
    scene.add_hinge("left", "bar", axis=(0, 1, 0), pos=(0, 0, -0.3))
    scene.add_hinge("right", "bar", axis=(0, 1, 0), pos=(0.4, 0, -0.3))
    scene.add_servo("left", gain=10.0, max_force=5.0, max_speed=2.0)
    return scene.build()


def _chain() -> cs.Model:
    """Deep enough for the articulated form, with a ball at its end that hits the floor."""
    scene = cs.Scene(self_collision=False)
    scene.add_ground(**FLOOR)
    for i in range(24):
        joint = cs.Revolute(axis=(0, 1, 0) if i % 2 else (1, 0, 0), damping=0.01)
        where = {"pos": (0, 0, 0.97)} if i == 0 else {"parent": f"link{i - 1}", "pos": (0, 0, -0.04)}
        tip = (cs.Sphere(0.05, mass=0.2, pos=(0, 0, -0.04), **FLOOR),) if i == 23 else ()
        scene.add_body(f"link{i}", joint=joint, mass=0.1, inertia=(1e-4, 1e-4, 1e-4), com=(0, 0, -0.02), shapes=tip, **where)
    return scene.build()


def _planar() -> cs.Model:
    """Rectangles, a polygon and a circle in a plane, two of them hinged."""
    scene = cs.Scene(planar=True)
    scene.add_ground(**FLOOR)
    scene.add_body("low", joint=cs.Planar(), pos=(0, 0.1), shapes=cs.Rectangle((0.2, 0.1), mass=1.0, **FLOOR))
    scene.add_body("high", joint=cs.Planar(), pos=(0.05, 0.31), shapes=cs.Rectangle((0.1, 0.1), mass=1.0, **FLOOR))
    scene.add_body("ball", joint=cs.Planar(), pos=(0.5, 0.2), shapes=cs.Circle(0.1, mass=0.5, **FLOOR))
    triangle = cs.Polygon([(-0.1, -0.1), (0.1, -0.1), (0.0, 0.15)], mass=0.5, **FLOOR)
    scene.add_body("triangle", joint=cs.Planar(), pos=(-0.5, 0.2), shapes=triangle)
    return scene.build()


def _balls() -> cs.Model:
    """Bouncing balls."""
    scene = cs.Scene()
    scene.add_ground(restitution=0.9, friction=0.3)
    for i in range(3):
        ball = cs.Sphere(0.1, restitution=0.8, friction=0.3)
        scene.add_body(f"ball{i}", joint=cs.Free(), pos=(0.22 * i, 0, 0.12 + 0.05 * i), shapes=ball)
    return scene.build()


WORLDS = {
    "arm": World(_arm, spread=(0.2, 1.0, 0.5)),
    "quadruped": World(lambda: costate_model(standing_quadruped()), spread=(0.03, 0.3, 0.3)),
    "quadruped, exact": World(
        lambda: costate_model(standing_quadruped()), options={"gradient": "exact"}, spread=(0.03, 0.3, 0.3)
    ),
    "ant": World(lambda: costate_model(ant()), 0.01, spread=(0.05, 0.5, 0.2)),
    "ant, alternating": World(
        lambda: costate_model(ant()), 0.01, {"solver": cs.PGS(form="alternating"), "gradient": "exact"}, (0.05, 0.5, 0.2)
    ),
    "humanoid": World(humanoid_model, spread=(0.03, 0.3, 0.3)),
    "shapes": World(_shapes, 0.004),
    "turning": World(_turning, spread=(0.01, 0.5, 0.0)),
    "loop": World(_loop, options={"project": 2}, spread=(0.1, 0.3, 0.3)),
    "chain": World(_chain, 0.002, spread=(0.02, 0.2, 0.0)),
    "planar": World(_planar, options={"solver": cs.PGS(cone="disc")}),
    "interior": World(_balls, options={"solver": cs.InteriorPoint(cone=6)}, spread=(0.01, 0.5, 0.0)),
    "impacts": World(_balls, 0.01, options={"impacts": "toi"}, spread=(0.01, 0.5, 0.0)),
}
