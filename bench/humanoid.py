"""A humanoid of 27 dof, laid out and sized as the one that comes with MuJoCo: capsules and spheres, 21 hinges with motors.

Bodies with several hinges are rows of links: all but the last have no shape, and a gram, since MuJoCo has no links without mass.
Unlike MuJoCo's it has no springs in its joints, the same motor in every joint, and friction wherever it touches.
"""

from __future__ import annotations

from math import radians
from typing import NamedTuple

import costate as cs
from bench.ours import costate_model, solid
from bench.robots import Geom, Link, Robot, Triple, X, Y, Z
from costate.scene import combine

DENSITY = 1000.0  # kg/m^3
HEIGHT = 1.282  # m, of the torso when it stands
ARMATURE = 0.01  # kg m^2
GEAR = 20.0  # N m: weak, so that it lies where it fell
FRICTION = 0.7
BIG, SMALL = 5.0, 0.2  # N m s/rad, damping
NO_MASS, NO_INERTIA = 1e-3, (1e-6, 1e-6, 1e-6)  # kg, kg m^2


class Part(NamedTuple):
    """A hinge and what hangs on it, of the right side or in the middle; m, in the link's frame, and degrees."""

    name: str
    parent: str
    axis: Triple
    pos: Triple
    limits: tuple[float, float]
    damping: float
    geoms: tuple[Geom, ...] = ()


HERE: Triple = (0.0, 0.0, 0.0)
TORSO = (
    Geom(0.07, (0.0, -0.07, 0.0), (0.0, 0.07, 0.0)),
    Geom(0.06, (-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12)),
    Geom(0.09, (0.0, 0.0, 0.19)),  # the head
)
WAIST = Geom(0.06, (0.0, -0.06, -0.065), (0.0, 0.06, -0.065))
PELVIS = Geom(0.09, (-0.02, -0.07, -0.1), (-0.02, 0.07, -0.1))
THIGH = Geom(0.06, HERE, (0.0, 0.01, -0.34))
SHIN = Geom(0.049, (0.0, 0.0, -0.02), (0.0, 0.0, -0.32))
FOOT = (Geom(0.027, (-0.07, -0.01, -0.08), (0.14, -0.03, -0.08)), Geom(0.027, (-0.07, 0.01, -0.08), (0.14, 0.03, -0.08)))
UPPER_ARM = Geom(0.04, HERE, (0.16, -0.16, -0.16))
HAND = (Geom(0.031, (0.01, 0.01, 0.01), (0.17, 0.17, 0.17)), Geom(0.04, (0.18, 0.18, 0.18)))  # and the lower arm
TRUNK = (
    Part("abdomen_z", "torso", Z, (-0.01, 0.0, -0.195), (-45, 45), BIG),
    Part("abdomen_y", "abdomen_z", Y, HERE, (-75, 30), BIG, (WAIST,)),
    Part("abdomen_x", "abdomen_y", X, (0.0, 0.0, -0.13), (-35, 35), BIG, (PELVIS,)),
)
LEG = (
    Part("hip_x", "abdomen_x", X, (0.0, -0.1, -0.14), (-30, 10), BIG),
    Part("hip_z", "hip_x", Z, HERE, (-60, 35), BIG),
    Part("hip_y", "hip_z", Y, HERE, (-150, 20), BIG, (THIGH,)),
    Part("knee", "hip_y", (0.0, -1.0, 0.0), (0.0, 0.01, -0.38), (-160, 2), SMALL, (SHIN,)),
    Part("ankle_y", "knee", Y, (0.0, 0.0, -0.33), (-50, 50), SMALL),
    Part("ankle_x", "ankle_y", (1.0, 0.0, 0.5), HERE, (-50, 50), SMALL, FOOT),
)
ARM = (
    Part("shoulder1", "torso", (2.0, 1.0, 1.0), (0.0, -0.17, 0.06), (-85, 60), SMALL),
    Part("shoulder2", "shoulder1", (0.0, -1.0, 1.0), HERE, (-85, 60), SMALL, (UPPER_ARM,)),
    Part("elbow", "shoulder2", (0.0, -1.0, 1.0), (0.18, -0.18, -0.18), (-90, 50), SMALL, HAND),
)
# overlap when a leg is lifted; MuJoCo's has the same exclusions
APART = (("abdomen_y", "right_hip_y"), ("abdomen_y", "left_hip_y"))


def humanoid() -> Robot:
    """41 kg, upright with its feet on the ground when all hinges are at zero."""
    links = [_link("torso", -1, "free", Z, (0.0, 0.0, HEIGHT), TORSO)]
    parts = [*TRUNK, *(part for limb in (LEG, ARM) for side in ("right", "left") for part in _on(side, limb))]
    for part in parts:
        parent = next(i for i, link in enumerate(links) if link.name == part.parent)
        limits = (radians(part.limits[0]), radians(part.limits[1]))
        links.append(_link(part.name, parent, "hinge", part.axis, part.pos, part.geoms, limits, part.damping))
    return Robot("humanoid of 27 dof", tuple(links), gear=GEAR, friction=FRICTION, stance=(0.0,) * len(parts))


def humanoid_model() -> cs.Model:
    """On the ground, with contact between all links but those that follow each other (and those in APART)."""
    return costate_model(humanoid(), self_collision=True, apart=APART)


def _on(side: str, limb: tuple[Part, ...]) -> list[Part]:
    """A limb on one side. Mirrored in y, a turn by the same angle is about (-x, y, -z)."""
    sign, middle = (1.0 if side == "right" else -1.0), {"torso", *(part.name for part in TRUNK)}

    def mirror(p: Triple) -> Triple:
        return p[0], sign * p[1], p[2]

    return [
        part._replace(
            name=f"{side}_{part.name}",
            parent=part.parent if part.parent in middle else f"{side}_{part.parent}",
            axis=(sign * part.axis[0], part.axis[1], sign * part.axis[2]),
            pos=mirror(part.pos),
            geoms=tuple(Geom(g.radius, mirror(g.start), None if g.end is None else mirror(g.end)) for g in part.geoms),
        )
        for part in limb
    ]


def _link(
    name: str, parent: int, joint: str, axis: Triple, pos: Triple, geoms: tuple[Geom, ...],
    limits: tuple[float, float] | None = None, damping: float = 0.0,
) -> Link:  # fmt: skip
    """Mass, centre of mass and inertia are those of its geoms, all solid."""
    mass, com, inertia = NO_MASS, HERE, NO_INERTIA
    if geoms:
        mass, com, inertia = (
            tuple(x.tolist()) if x.ndim else x.item() for x in combine([solid(g, density=DENSITY) for g in geoms])
        )
    return Link(name, parent, joint, axis, pos, mass, com, inertia, geoms, limits, ARMATURE if limits else 0.0, damping)
