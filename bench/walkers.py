"""Robots that stand on the ground: a quadruped on four spherical feet, ten of them, and MuJoCo's ant."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, pi, radians

from bench.robots import Geom, Link, Robot, Triple, Z, quadruped

FOOT = Geom(0.02, (0.0, 0.0, -0.26))
STANCE = tuple(angle for side in (-1, 1, -1, 1) for angle in (0.12 * side, 0.65, -1.3))  # feet below the hips, legs astride, rad
STANDING = 0.423  # m, height of the base there: 0.51 m cos(0.65) cos(0.12) and the foot
KP, KD = 300.0, 9.0  # N m/rad, N m s/rad: the legs sink by 0.03 rad under the weight
ROTOR = 0.03  # kg m^2, of the geared motors: without it MuJoCo, whose servos are not implicit in kp, trembles at 5 ms
ANT_DENSITY, ANT_RADIUS = 5.0, 0.08  # kg/m^3, m


def standing_quadruped() -> Robot:
    """The quadruped of 18 dof on feet of 2 cm, with servos that hold it up."""
    links = [replace(link, armature=ROTOR, geoms=(FOOT,) * link.name.startswith("shank")) for link in quadruped().links]
    links[0] = replace(links[0], pos=(0.0, 0.0, STANDING), armature=0.0)
    return Robot("standing quadruped", tuple(links), kp=KP, kd=KD, stance=STANCE)


def many(robot: Robot, count: int) -> Robot:
    """`count` of them in one world, side by side, 2 m apart; they touch the ground only."""
    links: list[Link] = []
    for i in range(count):
        first = len(links)
        for link in robot.links:
            x, y, z = link.pos
            pos = (x, y + 2.0 * i, z) if link.joint == "free" else link.pos
            parent = link.parent if link.parent < 0 else link.parent + first
            links.append(replace(link, name=f"{link.name}_{i}", pos=pos, parent=parent))
    return replace(robot, name=f"{count} of {robot.name}", links=tuple(links), stance=count * robot.stance)


def ant() -> Robot:
    """MuJoCo's ant: a ball of 0.25 m with four legs of three capsules, 14 dof; motors of 150 N m, limits, armature, damping."""
    spokes = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))
    # the first capsule of every leg is part of the torso
    torso = (Geom(0.25, (0.0, 0.0, 0.0)), *(Geom(ANT_RADIUS, (0.0, 0.0, 0.0), (0.2 * x, 0.2 * y, 0.0)) for x, y in spokes))
    links = [_solid("torso", -1, "free", Z, (0.0, 0.0, 0.55), torso)]
    low, high = radians(30), radians(70)
    for i, (x, y) in enumerate(spokes):
        # as in the original file: the ankles of the legs in front and behind turn about opposite axes
        axis, (near, far) = ((-x * y, 1.0, 0.0), (low, high) if i in (0, 3) else (-high, -low))
        for name, parent, turn, reach, limits in (
            (f"hip{i}", 0, Z, 0.2, (-low, low)),
            (f"ankle{i}", len(links), axis, 0.4, (near, far)),
        ):
            capsule = Geom(ANT_RADIUS, (0.0, 0.0, 0.0), (reach * x, reach * y, 0.0))
            link = _solid(name, parent, "hinge", turn, (0.2 * x, 0.2 * y, 0.0), (capsule,))
            links.append(replace(link, limits=limits, armature=1.0, damping=1.0))
    stance = tuple(angle for i in range(4) for angle in (0.0, 0.87 if i in (0, 3) else -0.87))
    return Robot("ant", tuple(links), gear=150.0, margin=0.01, stance=stance)


def _solid(name: str, parent: int, joint: str, axis: Triple, pos: Triple, geoms: tuple[Geom, ...]) -> Link:
    """A link with mass, centre of mass and inertia of its geoms, all solid; their axes lie in the xy plane."""
    parts = [_part(geom) for geom in geoms]
    mass = sum(m for m, *_ in parts)
    com = tuple(sum(m * c[k] for m, c, _ in parts) / mass for k in range(3))
    xx = yy = zz = xy = 0.0
    for m, c, (ixx, iyy, izz, ixy) in parts:
        x, y = c[0] - com[0], c[1] - com[1]
        xx, yy, zz, xy = xx + ixx + m * y * y, yy + iyy + m * x * x, zz + izz + m * (x * x + y * y), xy + ixy - m * x * y
    return Link(name, parent, joint, axis, pos, mass, (com[0], com[1], com[2]), (xx, yy, zz, xy, 0.0, 0.0), geoms)


def _part(geom: Geom) -> tuple[float, Triple, tuple[float, float, float, float]]:
    """Mass (kg), centre (m) and inertia xx, yy, zz, xy (kg m^2) about it."""
    r, (x0, y0, z0) = geom.radius, geom.start
    if geom.end is None:
        m = ANT_DENSITY * 4 / 3 * pi * r**3
        return m, geom.start, (0.4 * m * r * r, 0.4 * m * r * r, 0.4 * m * r * r, 0.0)
    x, y = geom.end[0] - x0, geom.end[1] - y0
    length = hypot(x, y)
    half = length / 2
    tube, caps = ANT_DENSITY * pi * r * r * length, ANT_DENSITY * 4 / 3 * pi * r**3
    along = tube * r * r / 2 + caps * 0.4 * r * r
    across = tube * (r * r / 4 + half * half / 3) + caps * (0.4 * r * r + half * half + 0.75 * r * half)
    ux, uy = x / length, y / length
    inertia = (
        across + (along - across) * ux * ux,
        across + (along - across) * uy * uy,
        across,
        (along - across) * ux * uy,
    )
    return tube + caps, (x0 + x / 2, y0 + y / 2, z0), inertia
