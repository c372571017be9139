"""Numbers by which the engine knows kinds of actuators, of shapes and of rules for pairs (core/data/model.h)."""

from __future__ import annotations

MOTOR, POSITION, VELOCITY = 0, 1, 2

# what makes one coefficient of the two of shapes that touch
PAIR_RULES = {"geometric": 0, "maximum": 1, "minimum": 2, "arithmetic": 3, "product": 4}

SIZE_COUNTS = (0, 1, 2, 3)  # numbers in shape_size that count: plane none; radius; radius, half length; half extents

# pairs of shape codes, the lower first, that the engine finds contacts of: all against a plane, sphere and capsule
SUPPORTED = frozenset({(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 2)})
