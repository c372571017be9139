"""Scenes that nobody would build: random trees of all joints and shapes, with numbers often zero, equal, round or extreme."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

import costate as cs

AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0))
RULES = ("geometric", "maximum", "minimum", "arithmetic", "product")
SOLID, BOXES = 1, 2  # groups: boxes only touch planes


def position(rng: Random, size: float = 0.3) -> tuple[float, ...]:
    """On a grid as often as not, so that points, axes and planes coincide."""
    return tuple(round(rng.uniform(-size, size), rng.choice((1, 3, 15))) for _ in range(3))


def quaternion(rng: Random) -> tuple[float, ...]:
    if rng.random() < 0.5:
        half = rng.choice((0.0, math.pi / 4, math.pi / 2))
        return (math.cos(half), *(math.sin(half) * a for a in rng.choice(AXES[:3])))
    return tuple(rng.gauss(0, 1) for _ in range(4))


def surface(rng: Random) -> dict:
    return {
        "friction": rng.choice((0.0, 0.3, 1.0, 10.0)),
        "restitution": rng.choice((0.0, 0.0, 0.5, 1.0)),
        "softness": rng.choice((0.0, 0.0, 1e-6, 1e-3)),
    }


def shape(rng: Random) -> cs.Shape:
    pose = {"pos": position(rng, 0.1), "quat": quaternion(rng), "density": rng.choice((1.0, 1000.0, 1000.0, 1e5)), **surface(rng)}
    kind, r = rng.randrange(3), rng.choice((0.02, 0.1, 0.1, 0.5))
    if kind == 0:
        return cs.Sphere(r, mask=SOLID, **pose)
    if kind == 1:
        return cs.Capsule(r, rng.choice((0.01, 0.1, 0.3)), mask=SOLID, **pose)
    return cs.Box((r, rng.choice((0.05, r)), 0.1), group=BOXES, mask=0, **pose)


def joint(rng: Random, root: bool) -> cs.Joint:
    common = {
        "damping": rng.choice((0.0, 0.0, 0.1, 10.0)),
        "armature": rng.choice((0.0, 0.01)),
        "friction": rng.choice((0.0, 0.0, 0.1)),
        "stiffness": rng.choice((0.0, 0.0, 5.0)),
    }
    low = rng.choice((-1.0, -0.1, 0.0))
    limits = rng.choice((None, (low, low + rng.choice((0.005, 0.3, 1.0)))))
    if root and rng.random() < 0.5:
        return cs.Free(**common)
    kind = rng.randrange(5)
    if kind == 0:
        return cs.Revolute(rng.choice(AXES), anchor=position(rng, 0.05), limits=limits, **common)
    if kind == 1:
        return cs.Prismatic(rng.choice(AXES), limits=limits, **common)
    if kind == 2:
        return cs.Ball(limit=rng.choice((None, 0.01, 0.5, math.pi)), **common)
    return cs.Planar(**common) if kind == 3 else cs.Fixed()


def actuators(scene: cs.Scene, rng: Random, name: str, kind: cs.Joint) -> None:
    if kind.nv == 0 or rng.random() < 0.4:
        return
    dof = rng.randrange(kind.nv)
    options = {
        "gear": rng.choice((1.0, -2.0, 0.0)),
        "control_limits": rng.choice((None, 1.0, (0.0, 0.0), (-0.5, 0.0))),
        "force_limits": rng.choice((None, 1.0, (0.0, 0.0), (0.0, 2.0))),
    }
    what = rng.randrange(3)
    if what == 0 and (isinstance(kind, (cs.Revolute, cs.Prismatic, cs.Planar)) or (isinstance(kind, cs.Free) and dof < 3)):
        scene.add_position(name, dof=dof, kp=rng.choice((1.0, 1e4)), kd=rng.choice((0.0, 10.0)), **options)
    elif what == 1:
        scene.add_velocity(name, dof=dof, kd=rng.choice((0.1, 100.0)), **options)
    else:
        scene.add_motor(name, dof=dof, **options)


def random_scene(rng: Random) -> cs.Model:
    gravity = rng.choice(((0, 0, -9.81), (0, 0, -9.81), (0, 0, 0)))
    rules = {"friction_rule": rng.choice(RULES), "restitution_rule": rng.choice(RULES), "self_collision": rng.random() < 0.7}
    scene = cs.Scene(gravity=gravity, max_contacts=rng.choice((None, None, 4)), **rules)
    if rng.random() < 0.8:
        height, tilt = rng.choice((-0.3, 0.0, -1e-3)), rng.choice((0.0, 0.1))
        scene.add_shape(cs.Plane(pos=(0, 0, height), quat=(1, tilt, 0, 0), **surface(rng)))
    if rng.random() < 0.3:
        scene.add_shape(cs.Capsule(0.1, 0.2, pos=position(rng), quat=quaternion(rng), mask=SOLID, **surface(rng)))
    names: list[str] = []
    for i in range(rng.randint(1, 6)):
        root = not names or rng.random() < 0.4
        kind, pose = joint(rng, root), {"pos": position(rng), "quat": quaternion(rng)}
        shapes = [shape(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        names.append(scene.add_body(f"b{i}", parent=None if root else rng.choice(names), joint=kind, shapes=shapes, **pose))
        actuators(scene, rng, names[-1], kind)
    return scene.build()


def random_inputs(model: cs.Model, rng: Random, worlds: int) -> dict[str, Tensor]:
    """q, v, control, external, dt: every world may be at rest, in its default pose, or anywhere."""

    def choose(size: float, *shape: int, zero: float = 0.4, huge: float = 0.05) -> Tensor:
        scale = [0.0 if rng.random() < zero else size * (100 if rng.random() < huge else 1) for _ in range(worlds)]
        return torch.stack([s * torch.randn(*shape, dtype=torch.float64) for s in scale])

    q = model.integrate(torch.tensor(model.q0).expand(worlds, -1), choose(0.3, model.nv, huge=0.0))
    dt = torch.tensor([rng.choice((1e-4, 0.002, 0.01, 0.05)) for _ in range(worlds)], dtype=torch.float64)
    v, control, external = choose(1.0, model.nv), choose(1.0, model.nu), choose(1.0, model.nb, 6, zero=0.7)
    return {"q": q, "v": v, "control": control, "external": external, "dt": dt}
