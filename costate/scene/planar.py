"""What only planar scenes, or only those in space, take: joints and shapes, with words about what to use instead."""

from __future__ import annotations

from dataclasses import replace

from costate.scene.checks import DIRECTION
from costate.scene.frames import ORIGIN, lift, two_numbers
from costate.scene.joints import Ball, Free, Joint, Planar, Prismatic, Revolute
from costate.scene.planar_shapes import PlanarShape
from costate.scene.shapes import Shape
from costate.scene.values import plain

# by the name of a shape: what to use in its place where it does not belong
INSTEAD = {
    "Sphere": "Circle", "Box": "Rectangle", "Hull": "Polygon", "Plane": "HalfPlane", "Capsule": "a Rectangle and two Circles",
    "Cylinder": "Circle or Rectangle", "Ellipsoid": "Polygon", "Heightfield": "Polygons",
    "Circle": "Sphere or Cylinder", "Rectangle": "Box", "Polygon": "Hull", "HalfPlane": "Plane",
}  # fmt: skip


def check_dimension(where: str, shape: Shape, planar: bool) -> None:
    """Shapes of the plane belong into planar scenes, all others into space; `where` starts error messages."""
    if isinstance(shape, PlanarShape) == planar:
        return
    kind = type(shape).__name__
    instead = f"use {INSTEAD[kind]}" if kind in INSTEAD else "use one that is"
    home = "space, and this scene is planar" if planar else "planar scenes, Scene(planar=True), and this one is in space"
    raise TypeError(f"{where}{kind} is a shape of {home}: {instead}, got {shape!r}")


def in_plane(where: str, joint: Joint, *, free: bool) -> Joint:
    """`joint` with axis and anchor of the plane as vectors of space; `where` starts error messages.

    free : it joins a body to the world that moves freely.
    """
    kind = type(joint).__name__
    if isinstance(joint, (Ball, Free)):
        instead = "Revolute" if isinstance(joint, Ball) else "Planar"
        raise TypeError(f"{where}a {kind} joint leaves the plane: use {instead} in a planar scene, got {joint!r}")
    if isinstance(joint, Prismatic):
        return replace(joint, axis=lift(two_numbers(f"{where}axis", joint.axis, DIRECTION)))
    if isinstance(joint, Revolute) and plain(joint.axis) != Revolute.axis:
        raise ValueError(f"{where}axis of a Revolute joint is z in a planar scene: leave it out, got {plain(joint.axis)}")
    if not isinstance(joint, (Revolute, Planar)) or plain(joint.anchor) == ORIGIN:
        return joint
    if free:
        raise ValueError(f"{where}anchor: a body that moves freely in the plane has none, got {plain(joint.anchor)}")
    return replace(joint, anchor=lift(two_numbers(f"{where}anchor", joint.anchor)))
