"""A Robot as a costate Model. Needs nothing but costate: also on machines without the peers."""

from __future__ import annotations

from math import hypot
from typing import Any

import costate as cs
from bench.robots import Geom, Robot, Triple

GROUND, ROBOT = 1, 2  # groups of shapes


def costate_model(robot: Robot, *, self_collision: bool = False, apart: tuple[tuple[str, str], ...] = ()) -> cs.Model:
    """One motor or servo per hinge, none on free bases. Shapes touch the ground; with self_collision also each other, but not
    those of links that follow each other, whatever is without shape between them, nor those of the links in `apart`."""
    scene = cs.Scene(self_collision=self_collision)
    if robot.grounded:
        scene.add_ground(friction=robot.friction)
    for link in robot.links:
        passive = {"armature": link.armature, "damping": link.damping}
        joint = cs.Free() if link.joint == "free" else cs.Revolute(axis=link.axis, limits=link.limits, **passive)
        parent = None if link.parent < 0 else robot.links[link.parent].name
        scene.add_body(link.name, parent=parent, joint=joint, pos=link.pos, mass=link.mass, com=link.com, inertia=link.inertia)
        for geom in link.geoms:
            scene.add_shape(
                solid(geom, friction=robot.friction, group=ROBOT, mask=-1 if self_collision else GROUND), body=link.name
            )
    for pair in (*neighbours(robot), *apart) if self_collision else ():
        scene.exclude(*pair)
    for link in robot.links:
        if link.joint == "free":
            continue
        if robot.kp:
            scene.add_position(link.name, kp=robot.kp, kd=robot.kd)
        else:
            scene.add_motor(link.name, gear=robot.gear)
    return scene.build()


def solid(geom: Geom, **surface: Any) -> cs.Sphere | cs.Capsule:
    """The shape of a geom, in the link's frame; `surface` as every shape takes it."""
    if geom.end is None:
        return cs.Sphere(geom.radius, pos=geom.start, **surface)
    (x0, y0, z0), (x1, y1, z1) = geom.start, geom.end
    way, middle = (x1 - x0, y1 - y0, z1 - z0), ((x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2)
    return cs.Capsule(geom.radius, hypot(*way) / 2, pos=middle, quat=_turn_z_to(way), **surface)


def neighbours(robot: Robot) -> list[tuple[str, str]]:
    """Every link with shapes and the next one above it that has some."""
    pairs: list[tuple[str, str]] = []
    for link in robot.links:
        above = link.parent
        while above >= 0 and not robot.links[above].geoms:
            above = robot.links[above].parent
        if link.geoms and above >= 0:
            pairs.append((robot.links[above].name, link.name))
    return pairs


def _turn_z_to(way: Triple) -> tuple[float, float, float, float]:
    """Unit quaternion wxyz of the shortest turn from z to the direction of `way`; about x where that points straight down."""
    x, y, z = (part / hypot(*way) for part in way)
    size = hypot(1 + z, y, x)
    return ((1 + z) / size, -y / size, x / size, 0.0) if size > 1e-6 else (0.0, 1.0, 0.0, 0.0)
