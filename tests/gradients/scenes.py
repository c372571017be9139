"""Small scenes that together have every joint type and every parameter, random states and parameters for them, a quadruped."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

import costate as cs
from costate._native.cpu import Engine

BOX = cs.Box((0.11, 0.16, 0.07), pos=(0.03, -0.02, 0.05), quat=(0.9, 0.1, -0.2, 0.3), density=600.0)
ROD = cs.Capsule(0.04, 0.15, pos=(0.02, 0.01, -0.15), quat=(0.95, 0.2, 0.1, 0.05))
SPARSE, ARTICULATED = 0, 1  # the two ways to solve with the mass matrix


def every_joint() -> cs.Scene:
    """All six joint types, springs, damping, armature, motors, sites, two trees, and massless bodies that stack joints."""
    scene = cs.Scene(gravity=(0.3, -0.5, -9.7), collisions=False)
    scene.add_body("base", joint=cs.Free(damping=0.1, stiffness=3.0, armature=0.02), pos=(0.1, 0.2, 1.0), shapes=BOX)
    hip = cs.Revolute((0.2, 1.0, -0.3), anchor=(0.05, 0.02, 0.1), damping=0.2, armature=0.05, stiffness=2.0, rest=(0.4,))
    scene.add_body("hip", parent="base", joint=hip, pos=(0.2, 0.1, 0.0), quat=(0.9, 0.3, 0.1, -0.2), shapes=ROD)
    ball = cs.Ball(anchor=(-0.03, 0.04, 0.06), damping=(0.1, 0.2, 0.3), armature=0.01, stiffness=1.5, rest=(0.9, 0.2, 0.1, 0.3))
    scene.add_body("ball", parent="hip", joint=ball, pos=(0.0, 0.1, -0.3), quat=(0.8, -0.2, 0.4, 0.1), shapes=(BOX, ROD))
    slide = cs.Prismatic((1.0, 0.5, 0.2), damping=0.4, armature=0.03, stiffness=20.0, rest=(0.05,))
    scene.add_body("slide", parent="base", joint=slide, pos=(-0.2, 0.0, 0.1), quat=(0.7, 0.1, 0.1, 0.6), shapes=ROD)
    # a universal joint that also slides: three joints in one place
    scene.add_body("yaw", parent="slide", joint=cs.Revolute((0, 0, 1), damping=0.1), pos=(0.1, 0.0, -0.2), massless=True)
    scene.add_body("reach", parent="yaw", joint=cs.Prismatic((1, 0, 0.1), armature=0.1), quat=(0.9, 0, 0.1, 0), massless=True)
    scene.add_body("pitch", parent="reach", joint=cs.Revolute((0, 1, 0.2), stiffness=1.0), pos=(0.1, 0, 0), shapes=ROD)
    scene.add_body("tool", parent="pitch", joint=cs.Fixed(), pos=(0.1, 0.05, 0.2), quat=(0.9, 0.2, 0.3, 0.1), shapes=BOX)
    cart = cs.Planar(anchor=(0.02, -0.05, 0.01), damping=0.3, armature=(0.1, 0.2, 0.05), stiffness=4.0, rest=(0.1, 0.2, 0.3))
    scene.add_body("cart", joint=cart, pos=(1.0, 0.5, 0.2), quat=(0.8, 0.3, -0.3, 0.1), shapes=BOX)
    scene.add_body("pole", parent="cart", joint=cs.Revolute((1, 0.1, 0), damping=0.05), pos=(0.1, 0.0, 0.3), shapes=ROD)
    scene.add_motors(gear=2.0)
    scene.add_site("grip", body="tool", pos=(0.1, 0.2, 0.3), quat=(0.9, 0.1, 0.2, 0.3))
    scene.add_site("eye", body="ball", pos=(-0.1, 0.02, 0.05))
    return scene


def chain(links: int = 12) -> cs.Scene:
    """A deep chain of revolute and ball joints on a fixed foot."""
    scene = cs.Scene(collisions=False)
    scene.add_body("foot", joint=cs.Fixed(), pos=(0.1, 0.0, 0.5), quat=(0.9, 0.1, 0.0, 0.2), shapes=BOX)
    for i in range(links):
        options = {"damping": 0.05, "armature": 0.01, "stiffness": 0.3}
        joint = cs.Ball(**options) if i % 5 == 2 else cs.Revolute(((0, 1, 0), (1, 0, 0.2))[i % 2], anchor=(0, 0, 0.02), **options)
        scene.add_body(parent=i, joint=joint, pos=(0.0, 0.02, -0.3), shapes=ROD)
    scene.add_motor(3, gear=1.5)
    scene.add_site(body=links, pos=(0, 0, -0.3))
    return scene


def arm() -> cs.Scene:
    """The smallest scene with a quaternion, a motor and a site, for tests that take whole Jacobians."""
    scene = cs.Scene()
    joint = cs.Ball(damping=0.1, stiffness=0.5, armature=0.02, rest=(0.9, 0.1, 0.2, 0.0))
    scene.add_body("upper", joint=joint, pos=(0, 0, 1), shapes=ROD)
    joint = cs.Revolute((0, 1, 0.1), damping=0.2, stiffness=1.0, armature=0.01)
    scene.add_body("lower", parent="upper", joint=joint, pos=(0.02, 0.01, -0.3), shapes=ROD)
    scene.add_motors(gear=1.5)
    scene.add_site("tip", body="lower", pos=(0, 0, -0.3))
    return scene


def quadruped() -> cs.Scene:
    """A trunk with four legs of three motors each: 18 dofs."""
    scene = cs.Scene(collisions=False)
    scene.add_body("trunk", joint=cs.Free(), pos=(0, 0, 0.5), shapes=cs.Box((0.25, 0.12, 0.06), density=1500.0))
    for name, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("rl", -0.2, 0.1), ("rr", -0.2, -0.1)):
        hip = cs.Revolute((1, 0, 0), damping=0.1, armature=0.01)
        knee = cs.Revolute((0, 1, 0), damping=0.1, armature=0.01, stiffness=2.0, rest=(0.5,))
        scene.add_body(f"{name}_hip", parent="trunk", joint=hip, pos=(x, y, 0), shapes=cs.Sphere(0.05))
        scene.add_body(f"{name}_thigh", parent=f"{name}_hip", joint=knee, pos=(0, y / 2, 0), shapes=ROD)
        scene.add_body(f"{name}_calf", parent=f"{name}_thigh", joint=knee, pos=(0, 0, -0.3), shapes=ROD)
    scene.add_motors(gear=5.0)
    return scene


SCENES = {"every joint": every_joint, "chain": chain, "arm": arm, "quadruped": quadruped}


@cache
def build(name: str, form: int = -1) -> cs.Model:
    """The scene's model; `form` picks the way to solve, -1 leaves it to the engine."""
    model = SCENES[name]().build()
    model.__dict__["engine"] = Engine(model, form=form)
    return model


def free_fields(model: cs.Model) -> tuple[str, ...]:
    """Parameter fields that a model has and that may take other values: the gains of plain motors are always zero."""
    return tuple(name for name, value in model.defaults.items() if value.numel() and name not in ("kp", "kd"))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(gen: torch.Generator, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=gen, dtype=torch.float64).to(dtype)


def random_q(model: cs.Model, gen: torch.Generator, *batch: int) -> Tensor:
    """Around the default configuration, with quaternions that are not normalised."""
    return torch.tensor(model.q0) + 0.4 * normal(gen, *batch, model.nq)


def random_state(model: cs.Model, gen: torch.Generator, *batch: int) -> cs.State:
    return cs.State(random_q(model, gen, *batch), normal(gen, *batch, model.nv))


def random_params(model: cs.Model, gen: torch.Generator, *batch: int) -> cs.Params:
    """The model's numbers, shaken by a few percent; nothing zero that may be positive, no axis or quaternion normalised."""
    fields = {}
    for name, value in model.defaults.items():
        shaken = value.expand(*batch, *value.shape) + 0.05 * normal(gen, *batch, *value.shape)
        if name in ("mass", "inertia"):  # a common factor keeps the triangle inequality
            factor = 1 + 0.1 * normal(gen, *batch, model.nb).tanh()
            shaken = value * (factor if name == "mass" else factor.unsqueeze(-1))
        elif name == "com":
            shaken = torch.where(torch.tensor(model.massless).unsqueeze(-1), value, shaken)
        elif name in ("kp", "kd"):  # zero for motors
            shaken = value.expand(*batch, *value.shape)
        elif name in ("stiffness", "damping", "armature"):
            shaken = value + 0.1 + 0.05 * normal(gen, *batch, *value.shape).tanh()
        fields[name] = shaken.contiguous()
    return cs.Params(model, fields)
