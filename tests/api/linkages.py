"""Small scenes with constraints: a four-bar, every kind of constraint at once on the ground, and two that cannot both be kept."""

from __future__ import annotations

from functools import cache

import torch

import costate as cs

Y, DT = (0, -1, 0), 0.01
LINKS = {"crank": 0.3, "coupler": 0.9, "rocker": 0.6}  # m
APART = 0.1  # m, between the two places where a point of the contradicting model should be


def _link(length: float) -> cs.Capsule:
    return cs.Capsule(0.02, length / 2, mass=length, pos=(length / 2, 0, 0), quat=(1, 0, 1, 0), collide=False)


def four_bar(crank: float = 1.0, coupler: float = -0.6, rocker: float = 1.6, **pin) -> cs.Scene:
    """Crank and coupler, and a rocker 1 m beside, closed by a hinge; the angles fit to 9 mm. `pin` : of the hinge."""
    scene = cs.Scene()
    scene.add_body("crank", joint=cs.Revolute(Y, initial=crank), shapes=_link(LINKS["crank"]))
    at = (LINKS["crank"], 0, 0)
    scene.add_body("coupler", parent="crank", pos=at, joint=cs.Revolute(Y, initial=coupler), shapes=_link(LINKS["coupler"]))
    scene.add_body("rocker", pos=(1, 0, 0), joint=cs.Revolute(Y, initial=rocker), shapes=_link(LINKS["rocker"]))
    ends = {"pos": (LINKS["coupler"], 0, 0), "pos_b": (LINKS["rocker"], 0, 0), "quat_b": (1, 0, 0, 0)}
    scene.add_hinge("coupler", "rocker", axis=Y, name="pin", **ends, **pin)
    scene.add_servo("crank", gain=10.0, max_force=20.0, max_speed=6.0, name="drive")
    return scene


def contradicting(**second) -> cs.Scene:
    """A ball, free but for its centre, which should be in two places at once. `second` : options of the second point."""
    scene = cs.Scene(collisions=False)
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1, mass=1.0))
    scene.add_point(None, "ball", pos_b=(0, 0, 0), name="here")
    scene.add_point(None, "ball", pos=(APART, 0, 0), pos_b=(0, 0, 0), name="there", **second)
    return scene


def zoo() -> cs.Scene:
    """Every kind of constraint, one of them soft, every kind of actuator on constraints, and spheres on the ground."""
    scene = cs.Scene()
    scene.add_ground(friction=0.8)
    ball = {"joint": cs.Free(), "shapes": cs.Sphere(0.1, mass=1.0)}
    for i in range(7):
        scene.add_body(f"ball{i}", pos=(0.25 * i, 0, 0.1 if i % 2 else 0.3), **ball)
    scene.add_hinge("ball0", "ball1", axis=(0, 1, 0), pos=(0.1, 0, 0), name="hinge")
    scene.add_slide("ball1", "ball2", axis=(1, 0, 0), name="slide")
    scene.add_point("ball2", "ball3", pos=(0.1, 0, 0), name="point")
    scene.add_distance("ball3", "ball4", name="rod")
    scene.add_weld("ball4", "ball5", name="weld")
    scene.add_lock("ball5", "ball6", y=True, rx=True, rz=True, softness=1e-4, name="lock")
    scene.add_body("left", pos=(0, 1, 1), joint=cs.Revolute(Y, damping=0.1), shapes=_link(0.3))
    scene.add_body("right", pos=(1, 1, 1), joint=cs.Revolute(Y, friction=0.01, limits=(-2, 2)), shapes=_link(0.3))
    scene.add_coupling("left", "right", ratio=-2.0, name="gears")
    scene.add_motor("hinge", gear=0.5, name="motor")
    scene.add_position("slide", kp=50.0, kd=5.0, name="spring")
    scene.add_velocity("hinge", kd=0.1, force_limits=0.5, name="damper")
    scene.add_servo("right", gain=20.0, max_force=3.0, max_speed=4.0, name="servo")
    scene.add_position("left", kp=3.0, kd=0.1, force_limits=2.0, name="limited")
    scene.add_motor("left", force_limits=1.0, name="clipped")
    return scene


ZOO_ROWS = (
    "dry friction of right", "motor motor", "position spring", "force limit of damper", "servo servo", "force limit of limited",
    "limit of right",
)  # fmt: skip
ZOO_CONSTRAINTS = (
    *(f"hinge {row}" for row in ("x", "y", "z", "rx", "ry")), *(f"slide {row}" for row in ("x", "y", "rx", "ry", "rz")),
    *(f"point {row}" for row in "xyz"), "rod", *(f"weld {row}" for row in ("x", "y", "z", "rx", "ry", "rz")), "lock y", "lock rx",
    "lock rz", "gears",
)  # fmt: skip


@cache
def model(name: str) -> cs.Model:
    return {"four-bar": four_bar, "contradicting": contradicting, "zoo": zoo}[name]().build()


def random_state(m: cs.Model, gen: torch.Generator, *batch: int) -> cs.State:
    """Off the constraints by some millimetres and centimetres per second. Float64."""
    normal = [torch.randn(*batch, m.nv, generator=gen, dtype=torch.float64) for _ in range(2)]
    q = m.integrate(torch.tensor(m.q0).expand(*batch, -1).contiguous(), 0.004 * normal[0])
    return cs.State(q, 0.05 * normal[1])
