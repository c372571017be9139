"""Scenes that nobody would build: random trees of all joints and shapes, with numbers often zero, equal, round or extreme."""

from __future__ import annotations

import math
from contextlib import suppress
from random import Random

import torch
from torch import Tensor

import costate as cs

AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0))
RULES = ("geometric", "maximum", "minimum", "arithmetic", "product")
LOCKS = ("x", "y", "z", "rx", "ry", "rz")
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
    return random_bodies(rng)[0].build()


def random_bodies(rng: Random) -> tuple[cs.Scene, dict[str, cs.Joint]]:
    """The scene, and the joint of every body."""
    gravity = rng.choice(((0, 0, -9.81), (0, 0, -9.81), (0, 0, 0)))
    rules = {"friction_rule": rng.choice(RULES), "restitution_rule": rng.choice(RULES), "self_collision": rng.random() < 0.7}
    scene = cs.Scene(gravity=gravity, max_contacts=rng.choice((None, None, 4)), **rules)
    if rng.random() < 0.8:
        height, tilt = rng.choice((-0.3, 0.0, -1e-3)), rng.choice((0.0, 0.1))
        scene.add_shape(cs.Plane(pos=(0, 0, height), quat=(1, tilt, 0, 0), **surface(rng)))
    if rng.random() < 0.3:
        scene.add_shape(cs.Capsule(0.1, 0.2, pos=position(rng), quat=quaternion(rng), mask=SOLID, **surface(rng)))
    joints: dict[str, cs.Joint] = {}
    for i in range(rng.randint(1, 6)):
        root = not joints or rng.random() < 0.4
        kind, pose = joint(rng, root), {"pos": position(rng), "quat": quaternion(rng)}
        shapes = [shape(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        parent = None if root else rng.choice(list(joints))
        joints[scene.add_body(f"b{i}", parent=parent, joint=kind, shapes=shapes, **pose)] = kind
        actuators(scene, rng, f"b{i}", kind)
    return scene, joints


def tie(scene: cs.Scene, rng: Random, a: str, b: str) -> str:
    """Any tie, which holds in the initial configuration as often as not; frames and softness round, equal, or a turn apart."""
    common = {"softness": rng.choice((0.0, 0.0, 0.0, 1e-6, 1e-2)), "collide": rng.random() < 0.3, "pos": position(rng, 0.2)}
    own = {"pos_b": position(rng, 0.2)} if rng.random() < 0.3 else {}
    kind = rng.randrange(6)
    if kind == 0:
        return scene.add_point(a, b, **common, **own)
    if kind == 1:
        length = rng.choice((1e-3, 0.1, 0.1, 1.0))
        return scene.add_distance(a, b, **common, pos_b=position(rng, 0.2), length=length)
    if rng.random() < 0.3:
        own["quat_b"] = quaternion(rng)
    common["quat"] = quaternion(rng)
    if kind == 2:
        return scene.add_weld(a, b, **common, **own)
    if kind == 3:
        return scene.add_lock(a, b, **common, **own, **dict.fromkeys(rng.sample(LOCKS, rng.randint(1, 6)), True))
    add = scene.add_hinge if kind == 4 else scene.add_slide
    return add(a, b, axis=rng.choice(AXES), **common, **own)


def drive(scene: cs.Scene, rng: Random, name: str, dof: int) -> None:
    """Any actuator that needs a coordinate, on a joint or a tie."""
    gear, unique = rng.choice((1.0, -2.0, 0.01)), f"drive {name} {dof} {rng.random()}"
    force = {"force_limits": rng.choice((None, 1.0, (0.0, 0.0), (0.0, 2.0))), "control_limits": rng.choice((None, (-0.5, 0.0)))}
    what = rng.randrange(4)
    if what == 0:
        scene.add_motor(name, dof=dof, gear=gear, name=unique, **force)
    elif what == 1:
        scene.add_position(name, dof=dof, gear=gear, kp=rng.choice((1.0, 1e4)), kd=rng.choice((0.0, 10.0)), name=unique, **force)
    else:
        gain, speed = rng.choice((1e-3, 1.0, 30.0, 1e4)), rng.choice((1e-6, 1.0, 1e3))
        scene.add_servo(name, dof=dof, gear=gear, gain=gain, max_force=rng.choice((0.0, 4.0, 1e6)), max_speed=speed, name=unique)


def plain_dofs(joints: dict[str, cs.Joint]) -> list[tuple[str, int]]:
    """Bodies and dofs whose joint coordinate is a number."""
    return [(name, dof) for name, kind in joints.items() for dof in range(kind.nv) if kind.has_coordinate(dof)]


def random_constraints(rng: Random) -> cs.Model:
    """A random scene with ties and couplings, many of them violated, redundant, or in contradiction to each other."""
    scene, joints = random_bodies(rng)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        a, b = rng.sample(["world", *joints], 2)
        for _ in range(rng.choice((1, 1, 1, 2))):  # the same two bodies again
            name = ""
            with suppress(ValueError):  # no joint moves one against the other
                name = tie(scene, rng, a, b)
            if name.startswith(("hinge", "slide")) and rng.random() < 0.7:
                drive(scene, rng, name, 0)
    dofs = plain_dofs(joints)
    for name, dof in rng.sample(dofs, min(len(dofs), rng.choice((0, 1, 1, 3)))):
        if rng.random() < 0.5:
            drive(scene, rng, name, dof)
        other, other_dof = rng.choice(dofs)
        softness = rng.choice((0.0, 0.0, 1e-2))
        if (other, other_dof) == (name, dof):
            scene.add_coupling(name, dof=dof, offset=rng.choice((0.0, 0.5)), softness=softness)
        else:
            c = [rng.choice((0.0, 1.0, -0.3, 3.0)) for _ in range(rng.randint(1, 5))]
            scene.add_coupling(name, other, dof=dof, other_dof=other_dof, coefficients=c, softness=softness)
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
