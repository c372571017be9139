"""Numbers by which the engine knows kinds of actuators, shapes, rules for pairs and locks of ties (core/data/model.h)."""

from __future__ import annotations

MOTOR, POSITION, VELOCITY, SERVO, GENERAL = range(5)

# what makes one coefficient of the two of shapes that touch
PAIR_RULES = {"geometric": 0, "maximum": 1, "minimum": 2, "arithmetic": 3, "product": 4}

# FIELD: a heightfield; in planar scenes SPHERE is a circle and PLANE a half plane
PLANE, SPHERE, CAPSULE, BOX, CYLINDER, HULL, FIELD, RECTANGLE, POLYGON = range(9)
WITH_VERTICES = (HULL, POLYGON)  # shapes that have rows of hull_vertex
CONDIMS = (1, 3, 4, 6)  # without friction; with; also against turning; also against rolling
NO_CONTACT = -1  # shapes that only give inertia

# numbers in shape_size that count: plane none; radius; radius, half length (twice); half extents; hull none; half lengths (twice)
SIZE_COUNTS = {PLANE: 0, SPHERE: 1, CAPSULE: 2, BOX: 3, CYLINDER: 2, HULL: 0, FIELD: 2, RECTANGLE: 2, POLYGON: 0}

NO_AXIS, HINGE_AXIS, SLIDE_AXIS = 0, 1, 2  # what an actuator on a tie drives

# Locks: 0 to 2 translations along the axes of frame a, DISTANCE, from TURN rotations of a weld, from ALIGN alignments 7 + 2 r + k
DISTANCE, TURN, ALIGN = 3, 4, 7
LOCK_LABELS = ("x", "y", "z", "", "rx", "ry", "rz", "rx", "rx", "ry", "ry", "rz", "rz")

# kind of tie -> its locks, and what an actuator drives
TIES: dict[str, tuple[tuple[int, ...], int]] = {
    "point": ((0, 1, 2), NO_AXIS),
    "weld": ((0, 1, 2, 4, 5, 6), NO_AXIS),
    "hinge": ((0, 1, 2, 8, 9), HINGE_AXIS),
    "slide": ((0, 1, 4, 5, 6), SLIDE_AXIS),
    "distance": ((DISTANCE,), NO_AXIS),
}

# The same in planar scenes. The frames of a slide have its axis as z and the world's z as x (see constraints.py)
PLANAR_TIES: dict[str, tuple[tuple[int, ...], int]] = {
    "point": ((0, 1), NO_AXIS),
    "weld": ((0, 1, TURN + 2), NO_AXIS),
    "hinge": ((0, 1), HINGE_AXIS),
    "slide": ((1, TURN), SLIDE_AXIS),
    "distance": ((DISTANCE,), NO_AXIS),
}
PLANAR_LABELS = {0: "x", 1: "y", DISTANCE: "", TURN + 2: "rotation"}
PLANAR_SLIDE_LABELS = {1: "across", TURN: "rotation"}
