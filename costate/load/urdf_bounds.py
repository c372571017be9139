"""How large a link is."""

from __future__ import annotations

from itertools import product

import numpy as np

from costate.load.urdf_parts import Link, Shape

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))


def extent(link: Link) -> np.ndarray | None:
    """The sides [3] (m) of the box along the link's axes around its collision shapes, or visual ones if it has no others.

    None without shapes.
    """
    for shapes in (link.collisions(), [shape for shape in link.shapes if not shape.collision]):
        corners = [points for shape in shapes if (points := _points(shape)) is not None]
        if corners:
            everything = np.concatenate(corners)
            return everything.max(axis=0) - everything.min(axis=0)
    return None


def _points(shape: Shape) -> np.ndarray | None:
    """Points [n, 3] in the link's frame whose box is that of the shape (of turned cylinders: a little larger)."""
    numbers = shape.numbers
    if shape.kind == "sphere":
        return shape.origin.xyz + numbers[0] * CORNERS
    if shape.kind == "mesh":
        local = shape.vertices
    elif shape.kind == "box":
        local = 0.5 * numbers * CORNERS
    else:
        radius, length = numbers
        half = 0.5 * length + (radius if shape.kind == "capsule" else 0.0)
        local = np.array([radius, radius, half]) * CORNERS
    return None if local is None else shape.origin.xyz + local @ shape.origin.rotation().T
