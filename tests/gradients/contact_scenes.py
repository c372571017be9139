"""Random worlds that touch: all pairs of shapes and all kinds of rows, in every state that a contact or a row can be in.

A scene fixes the tree; `worlds` draws states, controls, wrenches, step sizes and parameters for a batch of its worlds. Bodies are
put where a situation wants them (resting, pushed out of each other, at an impact ...), and some of the worlds then run on for a
few steps, so that contacts also are as a simulation finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

import costate as cs
from costate._native.cpu import Engine
from tests.gradients.scenes import generator, normal

TILT = (1.0, 0.06, -0.04, 0.3)  # of planes: no axis of the world, no common direction of friction
STEP_SIZES = (0.002, 0.005, 0.01)
PLANE, CAPSULE = 0, 2  # codes of shapes
BALL, FREE = 3, 4  # codes of joints
LONGEST_RUN = 30  # steps that a world may have run before
# Parameters that are shaken by lengths and angles, all others by parts of their values
SHIFTED = (
    "com", "joint_pos", "joint_anchor", "joint_axis", "joint_quat", "shape_pos", "shape_quat", "rest", "hull_vertex", "height",
)  # fmt: skip


def free(*shapes: cs.Shape, pos: tuple[float, ...] = (0.0, 0.0, 0.0)) -> dict:
    return {"joint": cs.Free(damping=0.01), "shapes": shapes, "pos": pos}


def on_plane(shape: cs.Shape) -> cs.Scene:
    """A body whose shape sits off its origin, and a tilted plane."""
    scene = cs.Scene()
    scene.add_shape(cs.Plane(pos=(0.1, -0.2, 0.05), quat=TILT, friction=0.7, restitution=0.6))
    scene.add_body("body", **free(shape))
    return scene


def sphere_on_plane() -> cs.Scene:
    return on_plane(cs.Sphere(0.1, pos=(0.02, 0.01, -0.03), restitution=0.5))


def capsule_on_plane() -> cs.Scene:
    return on_plane(cs.Capsule(0.06, 0.12, pos=(0.02, 0.01, -0.03), quat=(0.8, 0.3, 0.2, -0.1), restitution=0.5))


def box_on_plane() -> cs.Scene:
    return on_plane(cs.Box((0.1, 0.14, 0.07), pos=(0.02, 0.01, -0.03), quat=(0.9, 0.1, 0.2, -0.1), restitution=0.5))


def two(a: cs.Shape, b: cs.Shape, **rules: str) -> cs.Scene:
    """Two free bodies, no ground."""
    scene = cs.Scene(**rules)
    scene.add_body("a", **free(a))
    scene.add_body("b", **free(b, pos=(0.1, 0.1, 0.1)))
    return scene


def sphere_on_sphere() -> cs.Scene:
    a, b = cs.Sphere(0.1, pos=(0.01, 0.0, 0.02), restitution=0.7), cs.Sphere(0.07, pos=(0.0, 0.02, 0.0), restitution=0.4)
    return two(a, b, friction_rule="maximum", restitution_rule="product")


def sphere_on_capsule() -> cs.Scene:
    a = cs.Capsule(0.05, 0.1, quat=(0.9, 0.2, -0.3, 0.1), restitution=0.7)
    return two(a, cs.Sphere(0.07, restitution=0.4), friction_rule="product", restitution_rule="arithmetic")


def capsule_on_capsule() -> cs.Scene:
    a = cs.Capsule(0.05, 0.1, quat=(0.9, 0.2, -0.3, 0.1), restitution=0.7)
    b = cs.Capsule(0.04, 0.15, pos=(0.01, 0.0, 0.02), restitution=0.4)
    return two(a, b, friction_rule="minimum", restitution_rule="maximum")


def pile() -> cs.Scene:
    """Four trees, all on a plane that belongs to a fixed body, leaning on each other and on a post of the world."""
    scene = cs.Scene(friction_rule="arithmetic")
    scene.add_body("table", pos=(0.0, 0.0, 0.1), quat=(1.0, 0.03, 0.05, 0.0), mass=1.0, inertia=(1.0, 1.0, 1.0))
    scene.add_shape(cs.Plane(quat=(1.0, -0.02, 0.04, 0.1), restitution=0.3), body="table")
    scene.add_shape(cs.Capsule(0.05, 0.2, pos=(0.0, 0.0, 0.2), restitution=0.5))
    scene.add_body("ball", **free(cs.Sphere(0.08, restitution=0.5), pos=(0.13, 0.0, 0.19)))
    scene.add_body("rod", **free(cs.Capsule(0.05, 0.1, quat=(0.7, 0.7, 0.0, 0.0)), pos=(0.0, 0.12, 0.16)))
    dumbbell = (cs.Sphere(0.06, pos=(0.0, 0.0, 0.1)), cs.Sphere(0.05, pos=(0.0, 0.0, -0.1)), cs.Capsule(0.02, 0.1))
    scene.add_body("dumbbell", **free(*dumbbell, pos=(0.12, 0.13, 0.24)))
    scene.add_body("stone", **free(cs.Sphere(0.07, restitution=0.2), pos=(-0.11, 0.06, 0.18)))
    return scene


def walker() -> cs.Scene:
    """A floating base on legs of every joint, with every kind of actuator and limit, dry friction, and a stone in the way."""
    scene = cs.Scene()
    scene.add_shape(cs.Plane(quat=TILT, friction=0.8, restitution=0.2))
    scene.add_shape(cs.Sphere(0.1, pos=(0.3, 0.25, 0.0), mask=1), name="rock")
    body = (cs.Sphere(0.1, mask=1), cs.Capsule(0.05, 0.1, pos=(-0.1, 0.0, 0.02), quat=(0.7, 0.0, 0.7, 0.0), mask=1))
    scene.add_body("base", joint=cs.Free(), shapes=body, pos=(0.0, 0.0, 0.4))

    hip = cs.Revolute((0.1, 1.0, 0.2), limits=(-0.5, 0.6), friction=0.2, damping=0.05, armature=0.01)
    leg = (cs.Capsule(0.03, 0.1, pos=(0.0, 0.0, -0.12), mask=1), cs.Sphere(0.05, pos=(0.0, 0.01, -0.25), mask=1))
    scene.add_body("hip", parent="base", joint=hip, pos=(0.15, 0.1, 0.0), shapes=leg)
    piston = cs.Prismatic((0.1, -0.1, 1.0), limits=(-0.05, 0.04), damping=1.0, stiffness=50.0, rest=(0.01,))
    foot = cs.Sphere(0.05, pos=(0.0, 0.0, -0.25), mask=1)
    scene.add_body("piston", parent="base", joint=piston, pos=(0.12, -0.15, 0.0), shapes=foot)
    ball = cs.Ball(limit=0.5, friction=(0.05, 0.0, 0.1), damping=0.02, anchor=(0.0, 0.01, 0.02))
    leg = cs.Capsule(0.04, 0.1, pos=(0.0, 0.0, -0.14), mask=1)
    scene.add_body("ball", parent="base", joint=ball, pos=(-0.15, 0.15, 0.0), quat=(0.9, 0.1, 0.0, 0.1), shapes=leg)
    side, knee = cs.Revolute((1, 0, 0), damping=0.05), cs.Revolute((0, 1, 0), limits=(-0.4, 0.4), damping=0.05, armature=0.005)
    scene.add_body("thigh", parent="base", joint=side, pos=(-0.12, -0.18, 0.0), mass=0.5, inertia=(1e-3, 1e-3, 1e-3))
    sole = cs.Box((0.06, 0.04, 0.02), pos=(0.01, 0.0, -0.22), group=2, mask=0)  # of all shapes it only touches the plane
    scene.add_body("shin", parent="thigh", joint=knee, pos=(0, 0, -0.05), shapes=sole)
    scene.add_body("stone", **free(cs.Sphere(0.06, mask=1), pos=(0.28, -0.2, 0.1)))

    scene.add_position("hip", kp=60.0, kd=1.0, gear=1.2, force_limits=(-3.0, 4.0))
    scene.add_position("piston", kp=800.0, kd=10.0, control_limits=(-0.03, 0.03))
    scene.add_velocity("ball", dof=1, kd=0.5, force_limits=0.3)
    scene.add_velocity("thigh", kd=2.0, gear=0.8, control_limits=1.0, force_limits=(-1.5, 1.0))
    scene.add_motor("shin", gear=2.0, control_limits=(-1.2, 1.0), force_limits=0.8)
    scene.add_motor("ball", dof=2, force_limits=(-0.5, 0.5))
    return scene


def arm() -> cs.Scene:
    """A fixed base: the arm presses on a tilted table and on a loose rod; a cart on a planar joint stands beside it."""
    scene = cs.Scene(friction_rule="product")
    scene.add_body("table", quat=(1.0, 0.05, -0.03, 0.2), mass=1.0, inertia=(1.0, 1.0, 1.0))
    scene.add_shape(cs.Plane(friction=0.9), body="table")
    link = cs.Capsule(0.04, 0.1, pos=(0.0, 0.0, -0.1))
    joint = {"damping": 0.1, "armature": 0.02, "friction": 0.3}
    scene.add_body("upper", joint=cs.Revolute((0, 1, 0.1), limits=(-0.6, 0.6), **joint), pos=(0, 0, 0.52), shapes=link)
    scene.add_body("lower", parent="upper", joint=cs.Ball(limit=1.2, damping=0.05), pos=(0, 0, -0.24), shapes=link)
    reach = cs.Prismatic((0, 0, -1), limits=(-0.02, 0.08), damping=2.0)
    scene.add_body("hand", parent="lower", joint=reach, pos=(0, 0, -0.22), shapes=cs.Sphere(0.05))
    scene.add_body("rod", **free(cs.Capsule(0.04, 0.15, quat=(0.7, 0.7, 0.0, 0.0)), pos=(0.12, 0.05, 0.05)))
    wheels = (cs.Sphere(0.06, pos=(0.1, 0.0, 0.0)), cs.Sphere(0.06, pos=(-0.1, 0.0, 0.0)))
    cart = cs.Planar(damping=0.1, friction=(0.2, 0.0, 0.01))
    scene.add_body("cart", joint=cart, pos=(-0.3, 0.1, 0.06), quat=(0.7, 0.7, 0.05, 0.0), shapes=wheels)
    scene.add_position("upper", kp=40.0, kd=1.0, force_limits=4.0)
    scene.add_position("hand", kp=500.0, kd=5.0, control_limits=(-0.01, 0.06), force_limits=(-20.0, 30.0))
    scene.add_velocity("cart", dof=0, kd=3.0)
    scene.add_position("cart", dof=1, kp=100.0, kd=2.0, name="lift")
    return scene


PAIRS: dict[str, Callable[[], cs.Scene]] = {
    "sphere on plane": sphere_on_plane,
    "capsule on plane": capsule_on_plane,
    "box on plane": box_on_plane,
    "sphere on sphere": sphere_on_sphere,
    "sphere on capsule": sphere_on_capsule,
    "capsule on capsule": capsule_on_capsule,
}
SCENES: dict[str, Callable[[], cs.Scene]] = {**PAIRS, "pile": pile, "walker": walker, "arm": arm}


@cache
def build(name: str, form: int = -1) -> cs.Model:
    """The scene's model; `form` picks the way to solve with the mass matrix, -1 leaves it to the engine."""
    model = SCENES[name]().build()
    model.__dict__["engine"] = Engine(model, form=form)
    return model


class Worlds(NamedTuple):
    """All inputs of one step for a batch of worlds: [W, ...] each, also the parameters."""

    model: cs.Model
    inputs: dict[str, Tensor]  # q, v, control, external, dt
    params: cs.Params


def step_with_info(sim: cs.Simulator, x: dict[str, Tensor], params: cs.Params) -> tuple[cs.State, cs.Info]:
    """One step of worlds, with everything it tells."""
    return sim.step(cs.State(x["q"], x["v"]), x["control"], params, external=x["external"], dt=x["dt"], info=True)


class Situation(NamedTuple):
    """Where two shapes are put: gap, m; speeds along the normal and across, m/s; factor of friction."""

    gap: tuple[float, float]
    normal: tuple[float, float]
    slip: float
    friction: float = 1.0
    flat: bool = False  # turned so that a face or an edge lies along the plane


SITUATIONS = {
    "resting": Situation((-1e-4, 1e-4), (-0.01, 0.01), 1e-3, 1.5, flat=True),
    "sticking": Situation((-1e-3, 1e-4), (-0.05, -0.02), 0.01, 3.0),
    "sliding": Situation((-1e-3, 1e-4), (-0.08, 0.01), 1.5, 0.4),
    "sliding flat": Situation((-1e-3, 1e-4), (-0.05, 0.01), 1.5, 0.4, flat=True),
    "separated": Situation((1e-3, 8e-3), (0.1, 1.0), 1.0),
    "approaching": Situation((1e-4, 2e-3), (-0.09, -0.02), 0.3),
    "impact": Situation((-1e-3, 5e-4), (-3.0, -0.8), 0.5),
    "oblique impact": Situation((-1e-3, 5e-4), (-3.0, -0.8), 3.0, 0.3),
    "pushed out slowly": Situation((-4e-3, -1e-3), (-0.05, 0.05), 0.2),
    "pushed out at full speed": Situation((-0.04, -0.03), (-0.05, 0.05), 0.2),
}


def uniform(gen: torch.Generator, low: float, high: float, *shape: int) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=gen, dtype=torch.float64)


def pick(gen: torch.Generator, values: tuple[float, ...], *shape: int) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[torch.randint(len(values), shape, generator=gen)]


def without_effect(model: cs.Model) -> tuple[str, ...]:
    """Fields that every shape has, but that do nothing here."""
    return () if max(model.shape_condim, default=0) > 3 else ("torsion", "rolling")


def random_params(model: cs.Model, gen: torch.Generator, count: int) -> cs.Params:
    """The model's numbers, shaken by a few percent and one row per world; coefficients of contact anywhere in their range."""
    fields = {}
    for name, value in model.defaults.items():
        shape = (count, *value.shape)
        if name in without_effect(model):
            fields[name] = value.expand(shape).contiguous()
            continue
        if name in ("mass", "inertia"):  # a common factor keeps the triangle inequality
            factor = 1 + 0.1 * normal(gen, count, model.nb).tanh()
            shaken = value * (factor if name == "mass" else factor.unsqueeze(-1))
        elif name == "friction":
            shaken = uniform(gen, 0.1, 1.2, *shape)
        elif name == "restitution":
            shaken = uniform(gen, 0.05, 0.9, *shape)
        elif name == "softness":  # half of all worlds are rigid
            shaken = pick(gen, (0.0, 1e-5, 1e-4), *shape) * pick(gen, (0.0, 1.0), count, 1)
        elif name in SHIFTED:
            shaken = value + 0.003 * normal(gen, *shape).tanh()
        else:
            shaken = value * (1 + 0.1 * normal(gen, *shape).tanh())
        fields[name] = shaken.contiguous()
    return cs.Params(model, fields)


def gaps(model: cs.Model, q: Tensor, params: cs.Params) -> cs.info.Contacts:
    """All points that may touch, however far apart they are."""
    sim = cs.Simulator(model, dt=1e-6, contact=cs.Contact(margin=1e3))
    return sim.step(cs.State(q, q.new_zeros(*q.shape[:-1], model.nv)), params=params, info=True)[1].contacts


def nearest(contacts: cs.info.Contacts) -> tuple[Tensor, Tensor]:
    """Gap [W] and normal [W, 3] of the deepest contact."""
    gap, slot = torch.where(contacts.active, contacts.gap, torch.inf).min(-1)
    return gap, contacts.normal[torch.arange(len(slot)), slot]


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Product of quaternions [..., 4]."""
    real = a[..., :1] * b[..., :1] - (a[..., 1:] * b[..., 1:]).sum(-1, keepdim=True)
    cross = torch.linalg.cross(*torch.broadcast_tensors(a[..., 1:], b[..., 1:]))
    return torch.cat((real, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + cross), -1)


def lying(model: cs.Model, params: cs.Params) -> Tensor:
    """Quaternion [W, 4] of the body that lays its shape flat on the plane: the box on a face, the capsule on its side."""
    plane, shape = params["shape_quat"].unbind(-2)
    side = torch.tensor((1.0, 1.0, 0.0, 0.0) if model.shape_type[1] == CAPSULE else (1.0, 0.0, 0.0, 0.0), dtype=torch.float64)
    back = shape * torch.tensor((1.0, -1.0, -1.0, -1.0))
    return multiply(multiply(plane, side), back)


def meeting_velocity(gen: torch.Generator, model: cs.Model, situations: list[Situation], n: Tensor) -> Tensor:
    """[count, nv]: the last body approaches along the normals n [count, 3] and slides across them, as each situation says."""
    count = len(n)
    across = torch.linalg.cross(n, normal(gen, count, 3))
    across /= across.norm(dim=-1, keepdim=True)
    speed = torch.cat([uniform(gen, *s.normal, 1) for s in situations]).unsqueeze(-1)
    slip = torch.tensor([[s.slip] for s in situations], dtype=torch.float64)
    v = 0.2 * normal(gen, count, model.nv)
    v[:, -6:-3] = n * speed + across * slip
    v[:, -3:] = 0.2 * slip * normal(gen, count, 3)
    if model.nv > 6:  # both bodies fly along together
        v[:, -6:-3] += v[:, :3]
    return v


def put(model: cs.Model, gen: torch.Generator, params: cs.Params, situations: list[Situation]) -> tuple[Tensor, Tensor]:
    """q, v of a pair of shapes: the last body touches the other as each world's situation says."""
    count, pos, turn = len(situations), slice(model.nq - 7, model.nq - 4), slice(model.nq - 4, model.nq)
    q = torch.tensor(model.q0) + 0.05 * normal(gen, count, model.nq)
    q[:, turn] = normal(gen, count, 4)
    if model.shape_type[0] == PLANE:
        flat = torch.tensor([s.flat for s in situations])
        q[flat, turn] = (lying(model, params) + 1e-3 * normal(gen, count, 4))[flat]
    gap, n = nearest(gaps(model, q, params))
    q[:, pos] += n * (torch.cat([uniform(gen, *s.gap, 1) for s in situations]) - gap).unsqueeze(-1)
    return q, meeting_velocity(gen, model, situations, n)


def scatter(model: cs.Model, gen: torch.Generator, params: cs.Params) -> tuple[Tensor, Tensor]:
    """q, v around the default configuration, with limited joints close to their limits or a bit beyond."""
    (count,) = params.batch_shape
    dq = 0.02 * normal(gen, count, model.nv)
    for body, code in enumerate(model.joint_type):
        if code == FREE:
            turn = model.v_address[body] + 3
            dq[:, turn : turn + 3] *= 5
    q = model.integrate(torch.tensor(model.q0).expand(count, -1), dq)
    v = 0.3 * normal(gen, count, model.nv)
    for i, body in enumerate(model.limit_body):
        start, lower, upper = model.q_address[body], params["limit_lower"][:, i], params["limit_upper"][:, i]
        inside = pick(gen, (-0.01, -1e-4, 2e-4, 1e-3), count)
        if model.joint_type[body] == BALL:
            axis = normal(gen, count, 3)
            half = (upper - inside).unsqueeze(-1) / 2
            q[:, start : start + 4] = torch.cat((half.cos(), half.sin() * axis / axis.norm(dim=-1, keepdim=True)), -1)
            continue
        spot = torch.randint(3, (count,), generator=gen)
        inside = inside * (upper - lower)
        q[:, start] = torch.where(spot == 0, lower + inside, torch.where(spot == 1, upper - inside, q[:, start]))
    return q, v


def chosen(model: cs.Model, gen: torch.Generator, count: int) -> tuple[Tensor, Tensor, cs.Params]:
    """q, v, params: of many scattered worlds those that touch, and not too deep; a walker is first set down on the ground."""
    params = random_params(model, gen, 8 * count)
    q, v = scatter(model, gen, params)
    if model.joint_type[0] == FREE:
        gap, n = nearest(gaps(model, q, params))
        q[:, :3] -= torch.where(gap.abs() < 0.3, gap - uniform(gen, -5e-3, 5e-4, len(gap)), 0.0).unsqueeze(-1) * n
    gap, _ = nearest(gaps(model, q, params))
    best = (gap + 2e-3).abs().argsort()[:count]
    return q[best], v[best], cs.Params(model, {name: x[best] for name, x in params.items()})


def run_on(worlds: Worlds, gen: torch.Generator, chance: float) -> Worlds:
    """The same worlds, some of them after a few steps."""
    x = worlds.inputs
    sim = cs.Simulator(worlds.model)
    traj = sim.rollout(cs.State(x["q"], x["v"]), x["control"].expand(LONGEST_RUN, *x["control"].shape), worlds.params, dt=x["dt"])
    at = torch.randint(1, LONGEST_RUN + 1, x["dt"].shape, generator=gen) * (uniform(gen, 0, 1, *x["dt"].shape) < chance)
    each = torch.arange(len(at))
    return worlds._replace(inputs={**x, "q": traj.q[at, each], "v": traj.v[at, each]})


def worlds(name: str, count: int, seed: int = 0, *, form: int = -1, settle: float = 0.3) -> Worlds:
    """`count` random worlds of a scene; `settle`: which part of them has run for some steps."""
    model, gen = build(name, form), generator(seed)
    if name in PAIRS:
        situations = (list(SITUATIONS.values()) * (count // len(SITUATIONS) + 1))[:count]
        params = random_params(model, gen, count)
        # what lies flat is not rigid: which of its contacts bear how much would not be determined
        soft = params["softness"] + torch.tensor([[2e-5 * s.flat] for s in situations])
        params = params.replace(friction=params["friction"] * torch.tensor([[s.friction] for s in situations]), softness=soft)
        q, v = put(model, gen, params, situations)
    else:
        q, v, params = chosen(model, gen, count)
    inputs = {
        "q": q,
        "v": v,
        "control": normal(gen, count, model.nu) * pick(gen, (0.05, 1.5), count, model.nu),
        "external": normal(gen, count, model.nb, 6) * torch.tensor([0.1, 0.1, 0.1, 1.0, 1.0, 1.0]),
        "dt": pick(gen, STEP_SIZES, count),
    }
    return run_on(Worlds(model, inputs, params), gen, settle)
