"""A ball, a rod and a crate on the ground, and an arm with every kind of joint row: small scenes with contact."""

from __future__ import annotations

from functools import cache

import torch

import costate as cs

RADIUS, DT = 0.1, 0.01
ROW_NAMES = ("dry friction of arm", "force limit of servo", "limit of arm")


def toys(*, ground_first: bool = True, crate: bool = True, **options) -> cs.Scene:
    """ground_first: whether the plane has the lower shape index; options go to the scene."""
    scene = cs.Scene(**options)
    if ground_first:
        scene.add_ground(friction=0.8)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, RADIUS), shapes=cs.Sphere(RADIUS, friction=0.8, name="ball_shape"))
    rod = cs.Capsule(0.05, 0.2, friction=0.5, name="rod_shape")
    scene.add_body("rod", joint=cs.Free(), pos=(1, 0, 0.05), quat=(1, 0, 1, 0), shapes=rod)
    if crate:
        box = cs.Box((0.2, 0.1, 0.1), friction=0.5, name="crate_shape")
        scene.add_body("crate", joint=cs.Free(), pos=(2, 0, 0.1), shapes=box)
        for other in ("ball", "rod"):  # boxes have no contact with round shapes
            scene.exclude("crate", other)
    link = cs.Capsule(0.05, 0.3, density=100.0, pos=(0, 0, -0.3), collide=False)  # lighter than what the servo lifts
    joint = cs.Revolute((0, 1, 0), limits=(-0.5, 0.5), friction=0.1, damping=0.05)
    scene.add_body("arm", joint=joint, pos=(0, 3, 2), shapes=link)
    scene.add_position("arm", kp=30.0, kd=1.0, force_limits=2.0, name="servo")
    if not ground_first:
        scene.add_ground(friction=0.8)
    return scene


@cache
def model() -> cs.Model:
    return toys().build()


def soft(m: cs.Model) -> cs.Params:
    """The model's params with shapes that are not rigid: corners of the crate sink by 80 micrometres.

    How four rigid corners share a load only the softness of 1e-9 decides that every row has: rounding becomes 1e-7 of the
    impulses, and where corners slide of the velocities too. With soft ones it stays rounding.
    """
    return m.params().replace(softness=torch.full_like(m.defaults["softness"], 1e-6))


def pressed(m: cs.Model, seed: int = 0) -> cs.State:
    """All bodies on the ground, 2 mm inside and on their way down, while they slide and turn. Float64."""
    gen = torch.Generator().manual_seed(seed)
    q, v = torch.tensor(m.q0), 0.3 * torch.randn(m.nv, generator=gen, dtype=torch.float64)
    for body, code in enumerate(m.joint_type):
        if code == 4:
            q[m.q_address[body] + 2] -= 0.002
            v[m.v_address[body] + 2] = -0.05
    return cs.State(q, v)


def random_state(m: cs.Model, gen: torch.Generator, *batch: int) -> cs.State:
    """Near the ground, some a little inside, moving; the arm sometimes beyond its limits. Float64."""
    normal = [torch.randn(*batch, n, generator=gen, dtype=torch.float64) for n in (m.nv, m.nv)]
    q = m.integrate(torch.tensor(m.q0).expand(*batch, -1).contiguous(), 0.004 * normal[0])
    arm = torch.zeros(m.nq, dtype=torch.float64)
    arm[-1] = 0.5
    return cs.State(q + arm * torch.randn(*batch, 1, generator=gen, dtype=torch.float64).tanh(), 0.3 * normal[1])
