"""Random planar worlds that touch: all pairs of shapes with corners and with edges, stacks, chains, ties, trees with every row.

As in contact_scenes.py: a scene fixes the tree, `worlds` draws states, controls, forces, step sizes and parameters for a batch of
its worlds. Parameters have numbers that leave the plane; `flat` takes them out, so that only what users can give is moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

import costate as cs
from costate.rotation import multiply
from tests.gradients.contact_scenes import SITUATIONS, STEP_SIZES, Situation, Worlds, pick, random_params, run_on, uniform
from tests.gradients.scenes import generator, normal

SOFT = 2e-5  # m/N: how much of a load each of two rigid corners bears would not be determined together with others
OFF = 0.01  # rad, how far edges are from parallel
ASIDE = 2e-5  # m: where normals take turns a place found along them is exactly on a kink
POSITIONS = ("com", "joint_pos", "joint_anchor", "shape_pos", "hull_vertex", "tie_pos")
TURNS = ("joint_quat", "shape_quat", "tie_quat")
TRIANGLE = ((-0.08, -0.06), (0.12, -0.05), (0.0, 0.11))
FIVE = ((-0.1, -0.07), (0.07, -0.08), (0.13, 0.02), (0.03, 0.1), (-0.09, 0.06))


def flat(params: cs.Params) -> cs.Params:
    """The same with what leaves the plane taken out: a linear map, the identity on all that a planar scene can have."""
    known, level = params.model.defaults, torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    new = {name: params[name] * level for name in (*POSITIONS, "gravity") if params[name].numel()}
    for name in TURNS:
        # turning a frame about the world's or a body's z multiplies from the left: (c, 0, 0, s) q
        one = known[name] / known[name].norm(dim=-1, keepdim=True).clamp(min=1e-9)
        other = multiply(one.new_tensor((0.0, 0.0, 0.0, 1.0)).expand_as(one), one)
        x = params[name]
        new[name] = one * (x * one).sum(-1, keepdim=True) + other * (x * other).sum(-1, keepdim=True)
    plate = torch.tensor([0.5, 0.5, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    new["inertia"] = params["inertia"][..., 2:3] * plate
    upright = (known["joint_axis"][..., 2:] != 0).double()
    new["joint_axis"] = params["joint_axis"] * (upright * (1 - level) + (1 - upright) * level)
    return params.replace(**{name: x for name, x in new.items() if x.numel()})


# ---- two shapes ----------------------------------------------------------------------------------------------------
def on_line(shape: cs.Shape) -> cs.Scene:
    """A body whose shape sits off its origin, and a tilted half plane."""
    scene = cs.Scene(planar=True)
    scene.add_shape(cs.HalfPlane(pos=(0.1, 0.05), angle=0.15, friction=0.7, restitution=0.6))
    scene.add_body("body", joint=cs.Planar(damping=0.01), shapes=shape)
    return scene


def two(a: cs.Shape, b: cs.Shape, **rules: str) -> cs.Scene:
    """Two free bodies, no ground."""
    scene = cs.Scene(planar=True, **rules)
    scene.add_body("a", joint=cs.Planar(damping=0.01), shapes=a)
    scene.add_body("b", joint=cs.Planar(damping=0.01), pos=(0, 0.35), shapes=b)
    return scene


def sides(vertices: tuple[tuple[float, float], ...]) -> tuple[float, ...]:
    """By which angles a counterclockwise polygon is turned to lie on each of its edges."""
    ends = (*vertices[1:], vertices[0])
    return tuple(-math.atan2(y - y0, x - x0) for (x0, y0), (x, y) in zip(vertices, ends))


RIGHT = (0.0, math.pi / 2, math.pi, -math.pi / 2)
PLACE = {"pos": (0.02, -0.03), "angle": 0.3}
CIRCLE = cs.Circle(0.1, pos=(0.02, -0.03), restitution=0.5, density=100.0)
BOX = cs.Rectangle((0.1, 0.07), restitution=0.5, density=100.0, **PLACE)
SMALL = cs.Rectangle((0.05, 0.12), restitution=0.4, density=100.0)
WEDGE, STONE = (cs.Polygon(x, restitution=0.3, density=100.0, **PLACE) for x in (TRIANGLE, FIVE))


class Meeting(NamedTuple):
    """A scene of two shapes, and by which angles the second lies flat on the first, which is below."""

    scene: Callable[[], cs.Scene]
    turns: tuple[float, ...] = ()


PAIRS: dict[str, Meeting] = {
    "circle on line": Meeting(lambda: on_line(CIRCLE)),
    "rectangle on line": Meeting(lambda: on_line(BOX), RIGHT),
    "polygon on line": Meeting(lambda: on_line(STONE), sides(FIVE)),
    "circle on circle": Meeting(lambda: two(CIRCLE, cs.Circle(0.07, density=100.0), friction_rule="maximum")),
    "circle on rectangle": Meeting(lambda: two(BOX, cs.Circle(0.07, density=100.0), restitution_rule="product")),
    "circle on polygon": Meeting(lambda: two(WEDGE, CIRCLE, friction_rule="minimum")),
    "rectangle on rectangle": Meeting(lambda: two(BOX, SMALL, restitution_rule="maximum"), RIGHT),
    "polygon on rectangle": Meeting(lambda: two(BOX, WEDGE, friction_rule="product"), sides(TRIANGLE)),
    "polygon on polygon": Meeting(lambda: two(WEDGE, STONE), sides(FIVE)),
}


# ---- several -------------------------------------------------------------------------------------------------------
def stack() -> cs.Scene:
    """Three rectangles one above the other, and a polygon on top, on a table that is fixed to the world."""
    scene = cs.Scene(planar=True, friction_rule="arithmetic")
    scene.add_body("table", joint=cs.Fixed(), pos=(0.1, -0.1), angle=0.02, mass=1.0, inertia=1.0)
    scene.add_shape(cs.Rectangle((1.0, 0.1), restitution=0.3), body="table")
    for k in range(3):
        half = (0.1 + 0.02 * k, 0.05)
        scene.add_body(f"box{k}", pos=(0.02 * k, 0.0495 + 0.099 * k), shapes=cs.Rectangle(half, density=100.0))
    scene.add_body("stone", pos=(0.05, 0.36), shapes=cs.Polygon(FIVE, density=100.0, restitution=0.2))
    return scene


def pile() -> cs.Scene:
    """All shapes between two lines."""
    scene = cs.Scene(planar=True)
    scene.add_ground(angle=0.05, friction=0.8)
    scene.add_shape(cs.HalfPlane(pos=(0.31, 0), angle=1.4, friction=0.5))
    scene.add_body("disc", pos=(0.2, 0.109), shapes=cs.Circle(0.1, density=100.0, restitution=0.5))
    scene.add_body("box", pos=(0.0, 0.07), shapes=cs.Rectangle((0.1, 0.07), density=100.0))
    scene.add_body("stone", pos=(0.08, 0.235), angle=-0.1, shapes=cs.Polygon(FIVE, density=100.0))
    return scene


def chain() -> cs.Scene:
    """Four links on hinges, hung on the world, whose last ones lie on the ground beside a ball."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.7, restitution=0.2)
    before, x, y = None, 0.0, 0.42
    for i, angle in enumerate((-1.3, -0.9, -0.45, 0.0)):
        dx, dy = 0.1 * math.cos(angle), 0.1 * math.sin(angle)
        link = cs.Rectangle((0.1, 0.02), density=200.0, friction=0.6)
        name = scene.add_body(f"link{i}", pos=(x + dx, max(y + dy, 0.0195)), angle=angle, shapes=link)
        scene.add_hinge(before, name, pos=(0.1, 0) if before else (x, y))
        before, x, y = name, x + 2 * dx, y + 2 * dy
    scene.add_body("ball", pos=(x + 0.0595, 0.0598), shapes=cs.Circle(0.06, density=100.0, restitution=0.5))
    return scene


def ties() -> cs.Scene:
    """Every other tie, between bodies that touch the ground, to the world and between them; two of them driven."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.8, restitution=0.3)
    ball = lambda k, r=0.08: cs.Circle(r, density=100.0, friction=0.5 + 0.1 * k)  # noqa: E731
    for k in range(6):
        scene.add_body(f"b{k}", pos=(0.3 * k, 0.0797), angle=0.2 * k, shapes=ball(k), mass=1.0, com=(0.01, -0.01), inertia=0.01)
    scene.add_slide("b0", "b1", axis=(1, 0.2), pos=(0.1, 0.02), name="rail")
    scene.add_weld("b1", "b2", pos=(0.15, 0.0), angle=0.1, softness=1e-4)
    scene.add_distance("b2", "b3", pos=(0.02, 0.05), pos_b=(-0.01, 0.03))
    scene.add_lock("b3", "b4", y=True, pos=(0.1, 0.05), angle=0.4)
    scene.add_lock("b4", "b5", x=True, rotation=True, pos=(0.1, -0.05), angle=-0.2)
    scene.add_hinge("world", "b5", pos=(1.6, 0.15), name="door")
    scene.add_position("rail", kp=300.0, kd=5.0, force_limits=(-20.0, 15.0))
    scene.add_servo("door", gain=20.0, max_force=2.0, max_speed=1.0)
    return scene


def walker() -> cs.Scene:
    """A tree on the ground: a trunk that moves freely, legs with limits, springs, dry friction, every actuator; a cart."""
    scene = cs.Scene(planar=True)
    scene.add_ground(angle=-0.04, friction=0.8, restitution=0.2)
    trunk = cs.Rectangle((0.2, 0.05), density=100.0, collide=False)
    scene.add_body("trunk", pos=(0, 0.47), shapes=trunk)
    foot = lambda y: cs.Circle(0.04, density=100.0, pos=(0.01, y))  # noqa: E731
    hip = cs.Revolute(limits=(-0.5, 0.6), friction=0.2, damping=0.05, armature=0.01, anchor=(0.0, 0.01))
    scene.add_body(
        "hip", parent="trunk", joint=hip, pos=(0.15, 0), shapes=cs.Rectangle((0.02, 0.1), density=100.0, pos=(0, -0.1))
    )
    knee = cs.Revolute(limits=(-0.4, 0.4), stiffness=3.0, rest=(0.1,), damping=0.05)
    scene.add_body("knee", parent="hip", joint=knee, pos=(0, -0.2), angle=0.05, shapes=foot(-0.223))
    piston = cs.Prismatic((0.1, 1.0), limits=(-0.05, 0.04), damping=1.0, stiffness=50.0, rest=(0.01,))
    sole = cs.Rectangle((0.06, 0.02), density=100.0, pos=(0.0, -0.44))
    scene.add_body("piston", parent="trunk", joint=piston, pos=(-0.15, 0), shapes=sole)
    cart = cs.Prismatic((1.0, 0.0), damping=0.3, friction=0.5)
    scene.add_body("cart", joint=cart, pos=(0.6, 0.04), shapes=cs.Rectangle((0.1, 0.04), density=100.0))
    scene.add_body("stone", pos=(0.62, 0.2), angle=0.4, shapes=cs.Polygon(TRIANGLE, density=100.0))
    scene.add_position("hip", kp=60.0, kd=1.0, gear=1.2, force_limits=(-3.0, 4.0))
    scene.add_velocity("knee", kd=0.5, control_limits=1.0, force_limits=0.3)
    scene.add_servo("piston", gain=20.0, max_force=40.0, max_speed=0.5, gear=-1.3)
    scene.add_motor("cart", gear=2.0, control_limits=(-1.2, 1.0), force_limits=0.8)
    return scene


SEVERAL: dict[str, Callable[[], cs.Scene]] = {"stack": stack, "pile": pile, "chain": chain, "ties": ties, "walker": walker}
SCENES = (*PAIRS, *SEVERAL)


@cache
def build(name: str) -> cs.Model:
    return (PAIRS[name].scene if name in PAIRS else SEVERAL[name])().build()


# ---- worlds ---------------------------------------------------------------------------------------------------------
def put(meeting: Meeting, model: cs.Model, gen: torch.Generator, params: cs.Params, situations: list[Situation]) -> tuple:
    """q, v of two shapes: the second lies on the first, or stands on a corner, and touches it as each situation says."""
    count = len(situations)
    q = torch.tensor(model.q0).expand(count, -1).clone()
    frame = torch.full((count,), 0.15, dtype=torch.float64)  # of the line
    if model.nq > 3:
        frame = uniform(gen, -3, 3, count)
        q[:, 2] = frame - 2 * torch.atan2(params["shape_quat"][:, 0, 3], params["shape_quat"][:, 0, 0])
    turn = uniform(gen, -3, 3, count)
    if meeting.turns:
        chosen = torch.tensor(meeting.turns, dtype=torch.float64)[torch.arange(count) // 2 % len(meeting.turns)]
        even = torch.tensor([s.flat for s in situations]) | (torch.arange(count) % 2 == 0)
        turn = torch.where(even, chosen + OFF * normal(gen, count), turn)
    q[:, -1] = frame + turn - 2 * torch.atan2(params["shape_quat"][:, -1, 3], params["shape_quat"][:, -1, 0])
    up = torch.stack((-frame.sin(), frame.cos()), -1)
    along = torch.stack((frame.cos(), frame.sin()), -1)
    q[:, -3:-1] = (q[:, :2] if model.nq > 3 else 0.0) + 0.35 * up + 0.05 * normal(gen, count, 1).tanh() * along
    target = torch.cat([uniform(gen, *s.gap, 1) for s in situations])
    for _ in range(6):  # along the normal, which turns on the way
        found = cs.distance(model, q, 0, 1, params)
        q[:, -3:-1] += (found.normal * (target - found.gap).unsqueeze(-1))[:, :2]
    q[:, -3:-1] += ASIDE * normal(gen, count, 2)
    return q, meeting_velocity(gen, model, situations, found.normal[:, :2])


def meeting_velocity(gen: torch.Generator, model: cs.Model, situations: list[Situation], n: Tensor) -> Tensor:
    """[count, nv]: the last body approaches along the normals n [count, 2] and slides across them, as each situation says."""
    count = len(n)
    speed = torch.cat([uniform(gen, *s.normal, 1) for s in situations]).unsqueeze(-1)
    slip = torch.tensor([[s.slip] for s in situations], dtype=torch.float64) * pick(gen, (-1.0, 1.0), count, 1)
    v = 0.2 * normal(gen, count, model.nv)
    v[:, -3:-1] = n * speed + torch.stack((-n[:, 1], n[:, 0]), -1) * slip
    v[:, -1:] = 0.2 * slip * normal(gen, count, 1)
    if model.nv > 3:  # both bodies fly along together
        v[:, -3:-1] += v[:, :2]
    return v


def scatter(model: cs.Model, gen: torch.Generator, params: cs.Params) -> tuple[Tensor, Tensor]:
    """q, v around the default configuration and on the constraints, limited joints close to their limits or a bit beyond."""
    (count,) = params.batch_shape
    q = torch.tensor(model.q0) + pick(gen, (5e-4, 3e-3), count, 1) * normal(gen, count, model.nq)
    for i, body in enumerate(model.limit_body):
        lower, upper, at = params["limit_lower"][:, i], params["limit_upper"][:, i], model.q_address[body]
        inside, spot = pick(gen, (-0.01, -1e-4, 2e-4, 1e-3), count) * (upper - lower), torch.randint(4, (count,), generator=gen)
        q[:, at] = torch.where(spot == 0, lower + inside, torch.where(spot == 1, upper - inside, q[:, at]))
    if model.tie_a:
        rigid = params.replace(tie_softness=torch.zeros_like(params["tie_softness"]))
        q = cs.project(model, q, rigid) + pick(gen, (0.0, 1e-3), count, 1) * normal(gen, count, model.nq)
    return q, pick(gen, (0.05, 0.3, 1.0), count, 1) * normal(gen, count, model.nv)


def worlds(name: str, count: int, seed: int = 0, *, settle: float = 0.3) -> Worlds:
    """`count` random worlds of a scene; `settle`: which part of them has run for some steps."""
    model, gen = build(name), generator(seed)
    params = flat(random_params(model, gen, count))
    if name in PAIRS:
        situations = (list(SITUATIONS.values()) * (count // len(SITUATIONS) + 1))[:count]
        friction = params["friction"] * torch.tensor([[s.friction] for s in situations])
        params = params.replace(friction=friction, softness=params["softness"] + SOFT)
        q, v = put(PAIRS[name], model, gen, params, situations)
    else:
        # of the two points of an edge one may be at its limit while the other holds, and only 1e-9 decides which: rarely so
        # where friction is large or small
        friction = params["friction"] * pick(gen, (0.2, 2.0), count, 1)
        params = params.replace(friction=friction, softness=params["softness"] + SOFT)
        q, v = scatter(model, gen, params)
    inputs = {
        "q": q,
        "v": v,
        "control": normal(gen, count, model.nu) * pick(gen, (0.05, 1.5), count, model.nu),
        "external": normal(gen, count, model.nb, 3) * torch.tensor([1.0, 1.0, 0.1]),
        "dt": pick(gen, STEP_SIZES, count),
    }
    return run_on(Worlds(model, inputs, params), gen, settle)
