"""Scenes: bodies, joints and shapes; the immutable Model built from them; and its parameters."""

from costate.scene.builder import Scene
from costate.scene.heightfield import Heightfield
from costate.scene.hull import Hull
from costate.scene.joints import Ball, Fixed, Free, Joint, Planar, Prismatic, Revolute
from costate.scene.model import Model
from costate.scene.params import Params
from costate.scene.planar_shapes import Circle, HalfPlane, PlanarShape, Polygon, Rectangle
from costate.scene.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Shape, Sphere, combine
from costate.scene.unconstrained import Unconstrained

__all__ = [
    "Ball", "Box", "Capsule", "Circle", "Cylinder", "Ellipsoid", "Fixed", "Free", "HalfPlane", "Heightfield", "Hull", "Joint",
    "Model", "Params", "Planar", "PlanarShape", "Plane", "Polygon", "Prismatic", "Rectangle", "Revolute", "Scene", "Shape",
    "Sphere", "Unconstrained", "combine",
]  # fmt: skip
