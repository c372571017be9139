"""Paper B's robots: an arm with 4 servos and a quadruped with 8, each built as a tree and in maximal coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, radians

import torch
from torch import Tensor

import costate as cs

X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
Point = tuple[float, float, float]

# The arm. Printed: length, mass of all together, and the servos.
ARM, ARM_GAIN, ARM_TORQUE, ARM_SPEED = 1.0, 30.0, 30.0, radians(45)  # m, 1/s, N m, rad/s
ARM_MASS = {"base": 25.5, "shoulder": 0.5, "upper": 3.5, "elbow": 0.5, "fore": 2.0}  # kg, 32 in all
# The quadruped.
HALF_SPINE = (0.25, 0.1, 0.06)  # m
HIP, LEG, FOOT = (0.2, 0.13), 0.15, 0.025  # m: a hip from the middle, length of half a leg, radius
LEG_MASS = {"shoulder": 0.4, "upper": 0.6, "lower": 0.5, "foot": 0.3}
SPINE_MASS = 21.5
LEGS = {"front left": (1, 1), "front right": (1, -1), "hind left": (-1, 1), "hind right": (-1, -1)}
GAIN, TORQUE, SPEED = 30.0, 4.0, 2 * pi
FRICTION, SOFTNESS = 0.8, 0.0
HERTZ, SWING, LIFT, LEAN = 3.0, 0.25, 0.7, 0.16


class Assembly:
    """Puts bodies together, as a tree of joints, or each of them free and held to its parent by a constraint."""

    def __init__(self, *, maximal: bool, collisions: bool) -> None:
        self.scene, self.maximal = cs.Scene(collisions=collisions), maximal
        self._place: dict[str | None, Point] = {None: (0.0, 0.0, 0.0)}

    def add(
        self, name: str, at: Point, shapes: cs.scene.Shape | Sequence[cs.scene.Shape], *, parent: str | None = None,
        axis: Point | None = None, free: bool = False, joint: str | None = None,
    ) -> str:
        scene = self.scene
        self._place[name] = at
        x, y, z = (a - b for a, b in zip(at, self._place[parent], strict=True))
        if free or self.maximal:
            scene.add_body(name, joint=cs.Free(), pos=at, shapes=shapes)
        else:
            scene.add_body(name, parent=parent, pos=(x,y,z), joint=cs.Fixed() if axis is None else cs.Revolute(axis, name=joint), shapes=shapes)
        if self.maximal and not free:
            if axis is None:
                scene.add_weld(parent, name, pos=(x, y, z), name=joint)
            else:
                scene.add_hinge(parent, name, axis=axis, pos=(x, y, z), name=joint)
        return name


def quadruped(*, maximal: bool = False, legdx=0.0) -> cs.Model:
    robot = Assembly(maximal=maximal, collisions=True)
    robot.scene.add_ground(friction=FRICTION)
    touch = {"group": 2, "mask": 1, "friction": FRICTION, "softness": SOFTNESS}
    height = 2 * LEG + FOOT
    corners = [cs.Sphere(HALF_SPINE[2], mass=0.0, pos=(x * 0.19, y * 0.04, 0.0), **touch) for x, y in LEGS.values()]
    robot.add("spine", (0.0, 0.0, height), [cs.Box(HALF_SPINE, mass=SPINE_MASS, collide=False), *corners], free=True)
    for leg, (fore, left) in LEGS.items():
        x, y = fore * HIP[0], left * HIP[1]
        half = {"pos": (0.0, 0.0, -LEG / 2), "collide": False}
        robot.add(f"{leg} shoulder", (x, y, height), cs.Box((0.03, 0.03, 0.03), mass=LEG_MASS["shoulder"], collide=False), parent="spine")
        robot.add(f"{leg} upper", (x, y, height), cs.Capsule(0.02, LEG / 2, mass=LEG_MASS["upper"], **half), parent=f"{leg} shoulder", axis=Y, joint=f"{leg} hip")
        robot.add(f"{leg} lower", (x, y, height - LEG), cs.Capsule(0.015, LEG / 2, mass=LEG_MASS["lower"], **half), parent=f"{leg} upper", axis=Y, joint=f"{leg} knee")
        robot.add(f"{leg} foot", (x, y, FOOT), cs.Sphere(FOOT, mass=LEG_MASS["foot"], **touch), parent=f"{leg} lower")
        for joint in ("hip", "knee"):
            robot.scene.add_servo(f"{leg} {joint}", gain=GAIN, max_force=TORQUE, max_speed=SPEED)
    return robot.scene.build()
