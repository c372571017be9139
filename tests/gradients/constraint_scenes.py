"""Random worlds held by equality constraints: every kind, to the world, between trees, within a tree, with contact, and driven.

A scene fixes the tree and its ties; `worlds` draws states, controls, wrenches, step sizes and parameters for a batch of worlds:
on the constraints, some mm off them, or fast; each tie rigid or soft; in scenes with a ground some shape touches it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

import costate as cs
from costate._native.cpu import Engine
from tests.gradients.contact_scenes import FREE, STEP_SIZES, TILT, Worlds, gaps, multiply, nearest, pick, random_params, uniform
from tests.gradients.scenes import generator, normal

INERTIA = (0.02, 0.03, 0.025, 0.001, 0.002, -0.001)
FRAME = {"pos": (0.1, 0.05, 0.03), "quat": (1.0, 0.2, -0.1, 0.3)}
HINGE_AXIS, SLIDE_AXIS = 1, 2  # codes of what an actuator on a tie drives
MOTOR, POSITION, VELOCITY, SERVO = range(4)  # codes of actuators
GRIP = (0.0, 0.0, 1e-5, 1e-3)  # softness of ties, m/N and rad/(N m): half of them are rigid
OFF = 0.003  # m and rad, by which states miss the constraints
TRIES = 6  # worlds drawn for each one that is kept

# ---- kinds of ties: what is held between two bodies -----------------------------------------------------------------
LOCKS: dict[str, dict[str, bool]] = {
    "lock x": {"x": True},
    "lock y z": {"y": True, "z": True},
    "lock ry": {"ry": True},
    "lock z rx rz": {"z": True, "rx": True, "rz": True},
    "lock rx ry rz": {"rx": True, "ry": True, "rz": True},
}


def tie(scene: cs.Scene, kind: str, a: str, b: str, pos: tuple[float, ...] = FRAME["pos"], name: str | None = None) -> str:
    """Tie a and b by a kind, with frames along no axis."""
    pose = {**FRAME, "pos": pos, "name": name}
    if kind == "point":
        return scene.add_point(a, b, pos=pos, name=name)
    if kind == "weld":
        return scene.add_weld(a, b, **pose)
    if kind == "hinge":
        return scene.add_hinge(a, b, axis=(0.1, 1.0, 0.3), **pose)
    if kind == "slide":
        return scene.add_slide(a, b, axis=(0.3, -0.1, -1.0), **pose)
    if kind == "distance":
        return scene.add_distance(a, b, pos=pos, pos_b=(0.02, 0.03, 0.01), name=name)
    return scene.add_lock(a, b, **LOCKS[kind], **pose)


KINDS = ("point", "weld", "hinge", "slide", "distance", *LOCKS)


def ground(scene: cs.Scene) -> None:
    scene.add_shape(cs.Plane(quat=TILT, friction=0.8, restitution=0.2))


def ball(scene: cs.Scene, name: str, pos: tuple[float, ...], radius: float = 0.1, **joint: float) -> str:
    """A free body, heavier on one side, with a sphere."""
    body = {"mass": 1.3, "com": (0.01, 0.02, -0.01), "inertia": INERTIA, "quat": (1.0, 0.1, 0.05, -0.1)}
    return scene.add_body(name, joint=cs.Free(damping=0.02, **joint), pos=pos, shapes=cs.Sphere(radius, restitution=0.3), **body)


def pair(touching: bool) -> cs.Scene:
    """Two trees, a with a limb c, and b, to be tied together."""
    scene = cs.Scene()
    if touching:
        ground(scene)
    ball(scene, "a", (0.0, 0.0, 0.12))
    limb = {"mass": 0.5, "com": (0.05, 0.02, 0.1), "inertia": (0.01, 0.012, 0.009)}
    joint = cs.Revolute((0.0, 1.0, 0.2), damping=0.1, armature=0.01, stiffness=1.0)
    scene.add_body("c", parent="a", joint=joint, pos=(0.1, 0.0, 0.2), **limb)
    ball(scene, "b", (0.45, 0.1, 0.11))
    return scene


def held(kind: str) -> cs.Scene:
    """The kind twice: between the world and a tree, and between two trees."""
    scene = pair(touching=False)
    tie(scene, kind, "world", "a", (0.05, -0.1, 0.2))
    tie(scene, kind, "c", "b")
    return scene


def touching(kind: str) -> cs.Scene:
    """The kind once, between two trees that touch a ground."""
    scene = pair(touching=True)
    tie(scene, kind, "c", "b")
    return scene


# ---- loops, chains, couplings ---------------------------------------------------------------------------------------
def loop(root: cs.Joint, feet: bool) -> cs.Scene:
    """Two arms of one tree that hold each other's hands, a strut between them, and one arm's tail that reaches back."""
    scene, limb = cs.Scene(), cs.Capsule(0.03, 0.08, pos=(0.0, 0.0, -0.12), collide=False)
    foot = (limb, cs.Sphere(0.05, pos=(0.0, 0.0, -0.24))) if feet else limb
    if feet:
        ground(scene)
    scene.add_body("base", joint=root, pos=(0.0, 0.0, 0.6), shapes=cs.Sphere(0.1, collide=False))
    turn = {"damping": 0.05, "armature": 0.01}
    for side, y in (("left", 0.1), ("right", -0.1)):
        scene.add_body(side, parent="base", joint=cs.Ball(**turn), pos=(0.0, y, -0.1), quat=(1, -y, 0.1, 0), shapes=limb)
        joint = cs.Revolute((0.1, 1.0, 0.3), limits=(-0.05, 1.2), **turn) if y > 0 else cs.Ball(**turn)
        scene.add_body(f"{side} hand", parent=side, joint=joint, pos=(0, 0, -0.24), quat=(1, 3 * y, 0.1, 0), shapes=foot)
    tie(scene, "hinge", "left hand", "right hand", (0.0, -0.05, -0.1))
    tie(scene, "distance", "left", "right hand", (0.02, 0.0, -0.05))
    scene.add_body("tail", parent="right hand", joint=cs.Prismatic((1, 0.1, 0), damping=0.5), pos=(0.05, 0, 0), shapes=limb)
    tie(scene, "lock x", "base", "tail")
    return scene


def chain(feet: bool) -> cs.Scene:
    """Free bodies in a row, each tied to the one before in another way; without feet it hangs from the world."""
    scene = cs.Scene()
    if feet:
        ground(scene)
    names = [ball(scene, f"link{i}", (0.22 * i, 0.02 * i, 0.1), radius=0.08) for i in range(5)]
    if not feet:
        tie(scene, "hinge", "world", names[0], (-0.1, 0.0, 0.1))
    for kind, a, b in zip(("hinge", "point", "slide", "weld"), names, names[1:]):
        tie(scene, kind, a, b, (0.11, 0.0, 0.01))
    return scene


def couplings(feet: bool) -> cs.Scene:
    """Plain coordinates of every joint that has some: linear, quartic, held at a value; across trees and within one."""
    scene, limb = cs.Scene(), cs.Capsule(0.03, 0.1, pos=(0.0, 0.01, -0.12), collide=False)
    if feet:
        ground(scene)
    scene.add_body("base", joint=cs.Free(damping=0.1), pos=(0.0, 0.0, 0.35), shapes=cs.Sphere(0.1, collide=False))
    leg = (limb, cs.Sphere(0.05, pos=(0.0, 0.0, -0.25)))
    for i, axis in enumerate(((0, 1, 0.1), (1, 0.2, 0), (0.3, 1, 0))):
        joint = cs.Revolute(axis, damping=0.05, armature=0.01)
        scene.add_body(f"leg{i}", parent="base", joint=joint, pos=(0.2 * (i - 1), 0.1 * (-1) ** i, 0.0), shapes=leg)
    scene.add_body("rod", parent="leg2", joint=cs.Prismatic((0, 0.1, 1), damping=0.5), pos=(0, 0, -0.1), shapes=limb)
    cart = cs.Planar(damping=0.3, armature=0.05)
    scene.add_body("cart", joint=cart, pos=(0.5, 0, 0.2), quat=(0.8, 0.3, -0.3, 0.1), shapes=limb)
    scene.add_coupling("leg0", "leg1", ratio=-0.7, offset=0.05)
    scene.add_coupling("rod", "leg2", coefficients=(0.01, 0.05, 0.3, -0.2, 0.4))
    scene.add_coupling("cart", "leg1", dof=0, coefficients=(0.02, 0.3, -0.1))
    scene.add_coupling("cart", dof=2, offset=0.2)
    if not feet:
        scene.add_coupling("base", "cart", dof=1, other_dof=1, ratio=0.5)
    return scene


# ---- actuators ------------------------------------------------------------------------------------------------------
def servos(feet: bool) -> cs.Scene:
    """Servos on all joints that have coordinates, some of them in a loop, with dry friction and limits."""
    scene, limb = cs.Scene(), cs.Capsule(0.03, 0.1, pos=(0.0, 0.01, -0.12), collide=False)
    leg = (limb, cs.Sphere(0.05, pos=(0.0, 0.0, -0.25), friction=0.9))
    if feet:
        ground(scene)
    root = cs.Free() if feet else cs.Ball(damping=0.2)
    scene.add_body("base", joint=root, pos=(0.0, 0.0, 0.3), shapes=cs.Sphere(0.1, collide=False))
    for i, x in enumerate((0.2, -0.2)):
        hip = cs.Revolute((0.1, 1, 0.1), friction=0.1 * i, limits=(-0.05, 0.6) if i else None, armature=0.01)
        scene.add_body(f"leg{i}", parent="base", joint=hip, pos=(x, 0.1, 0.0), shapes=leg)
        scene.add_servo(f"leg{i}", gain=20.0, max_force=4.0, max_speed=1.0, gear=1.0 + 0.5 * i)
    piston = cs.Prismatic((0.1, 0, 1), damping=0.3)
    scene.add_body("piston", parent="base", joint=piston, pos=(0, -0.2, 0.0), shapes=leg)
    scene.add_servo("piston", gain=30.0, max_force=40.0, max_speed=0.5, gear=-1.4, control_limits=(-0.2, 0.3))
    scene.add_body("cart", joint=cs.Planar(damping=0.1), pos=(0.6, 0, 0.2), quat=(0.7, 0.7, 0.1, 0), shapes=limb)
    for dof in range(3):
        scene.add_servo("cart", gain=10.0, max_force=10.0, max_speed=0.7, dof=dof)
    tie(scene, "distance", "piston", "leg1", (0.0, 0.0, -0.2))
    scene.add_velocity("leg0", kd=0.5, force_limits=0.5, name="brake")
    return scene


def driven(feet: bool) -> cs.Scene:
    """Every actuator on hinge and slide constraints, between trees and to the world."""
    scene = cs.Scene()
    if feet:
        ground(scene)
    names = [ball(scene, f"link{i}", (0.22 * i, 0.02 * i, 0.1), radius=0.08) for i in range(4)]
    kinds = ("hinge", "slide", "hinge")
    ties = [tie(scene, kind, a, b, (0.11, 0.0, 0.01)) for kind, a, b in zip(kinds, names, names[1:])]
    scene.add_servo(ties[0], gain=20.0, max_force=4.0, max_speed=1.0, gear=0.8)
    scene.add_servo(ties[1], gain=30.0, max_force=20.0, max_speed=0.5, control_limits=(-0.4, 0.5))
    scene.add_position(ties[2], kp=20.0, kd=0.5, gear=1.2, force_limits=(-3.0, 2.0))
    scene.add_motor(ties[2], gear=1.5, force_limits=0.5, name="motor")
    if not feet:
        tie(scene, "hinge", "world", names[0], (-0.1, 0.0, 0.1), name="door")
        tie(scene, "slide", "world", ball(scene, "car", (0.0, 0.5, 0.1)), (0.0, 0.2, 0.1), name="rail")
        scene.add_velocity("door", kd=2.0, gear=-0.7, force_limits=1.0)
        scene.add_position("rail", kp=300.0, kd=5.0)
        scene.add_motor("rail", gear=2.0, control_limits=0.6, name="pull")
    return scene


ALONE: dict[str, Callable[[], cs.Scene]] = {
    **{kind: partial(held, kind) for kind in KINDS},
    "loop": partial(loop, cs.Ball(), False),
    "chain": partial(chain, False),
    "couplings": partial(couplings, False),
}
WITH_CONTACT: dict[str, Callable[[], cs.Scene]] = {
    **{f"{kind}, touching": partial(touching, kind) for kind in KINDS},
    "loop, touching": partial(loop, cs.Free(), True),
    "chain, touching": partial(chain, True),
    "couplings, touching": partial(couplings, True),
}
DRIVEN: dict[str, Callable[[], cs.Scene]] = {
    "servos": partial(servos, False),
    "servos, touching": partial(servos, True),
    "driven": partial(driven, False),
    "driven, touching": partial(driven, True),
}
SCENES = {**ALONE, **WITH_CONTACT, **DRIVEN}


@cache
def build(name: str, form: int = -1) -> cs.Model:
    """The scene's model; `form` picks the way to solve with the mass matrix, -1 leaves it to the engine."""
    model = SCENES[name]().build()
    model.__dict__["engine"] = Engine(model, form=form)
    return model


# ---- worlds ---------------------------------------------------------------------------------------------------------
def about_z(angle: Tensor) -> Tensor:
    """Quaternion [..., 4]."""
    half, none = angle / 2, torch.zeros_like(angle)
    return torch.stack((half.cos(), none, none, half.sin()), -1)


def shaken(model: cs.Model, gen: torch.Generator, count: int) -> cs.Params:
    """All parameters shaken, ties rigid or soft, actuators weak or strong; hinges that are driven start at any angle."""
    params = random_params(model, gen, count)
    new = {
        "tie_pos": model.defaults["tie_pos"] + OFF * normal(gen, count, *model.defaults["tie_pos"].shape).tanh(),
        "tie_quat": model.defaults["tie_quat"] + OFF * normal(gen, count, *model.defaults["tie_quat"].shape).tanh(),
        "tie_softness": pick(gen, GRIP, *params["tie_softness"].shape),
        "coupling": model.defaults["coupling"] + 0.02 * normal(gen, count, *model.defaults["coupling"].shape),
        "coupling_softness": pick(gen, GRIP, *params["coupling_softness"].shape),
    }
    for k in {k for k in model.motor_tie if k >= 0 and model.tie_axis[k] == HINGE_AXIS}:
        turn = about_z(uniform(gen, -3.2, 3.2, count))
        new["tie_quat"][:, 2 * k + 1] = multiply(new["tie_quat"][:, 2 * k + 1], turn)
    strong = pick(gen, (0.05, 1.0, 50.0), *params["force_lower"].shape)
    return params.replace(**new, force_lower=params["force_lower"] * strong, force_upper=params["force_upper"] * strong)


def on_constraints(model: cs.Model, q: Tensor, params: cs.Params) -> tuple[Tensor, Tensor]:
    """q on all constraints, and [W] how far off it still is; soft ones are taken as rigid."""
    rigid = params.replace(
        tie_softness=torch.zeros_like(params["tie_softness"]), coupling_softness=torch.zeros_like(params["coupling_softness"])
    )
    q = cs.project(model, q, rigid)
    return q, cs.constraint_error(model, q, rigid).abs().amax(-1)


def set_down(model: cs.Model, gen: torch.Generator, q: Tensor, params: cs.Params) -> tuple[Tensor, Tensor]:
    """All free roots shifted until something touches, and how far that [W] is from a penetration of 1 mm."""
    roots = [model.q_address[body] for body, code in enumerate(model.joint_type) if code == FREE]
    gap, n = nearest(gaps(model, q, params))
    shift = torch.where(gap.abs() < 1.0, uniform(gen, -4e-3, 1e-3, len(gap)) - gap, 0.0).unsqueeze(-1) * n
    q = q.clone()
    for root in roots:
        q[:, root : root + 3] += shift
    return q, (nearest(gaps(model, q, params))[0] + 1e-3).abs()


def worlds(name: str, count: int, seed: int = 0, *, form: int = -1) -> Worlds:
    """`count` random worlds of a scene, in turn on their constraints, off them by some mm, and fast."""
    model, gen, many = build(name, form), generator(seed), TRIES * count
    params = shaken(model, gen, many)
    q = model.integrate(torch.tensor(model.q0).expand(many, -1), 0.05 * normal(gen, many, model.nv))
    q, bad = on_constraints(model, q, params)
    if model.shape_type and model.shape_type[0] == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of those that are not on their constraints: they are not taken
            q, away = set_down(model, gen, q, params)
        bad = bad + away
    best = bad.argsort()[:count]
    q, params = q[best], cs.Params(model, {field: x[best] for field, x in params.items()})
    off, speed = (torch.tensor(x)[torch.arange(count) % 3].unsqueeze(-1) for x in ((0.0, OFF, OFF / 3), (0.2, 0.2, 3.0)))
    inputs = {
        "q": model.integrate(q, off * normal(gen, count, model.nv)),
        "v": speed * normal(gen, count, model.nv),
        "control": normal(gen, count, model.nu) * pick(gen, (0.05, 1.5, 6.0), count, model.nu),
        "external": normal(gen, count, model.nb, 6) * torch.tensor([0.1, 0.1, 0.1, 1.0, 1.0, 1.0]),
        "dt": pick(gen, STEP_SIZES, count),
    }
    return Worlds(model, inputs, params)
