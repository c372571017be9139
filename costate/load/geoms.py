"""Geoms as shapes: primitives as they are, meshes as convex hulls, ellipsoids as hulls of some points, heightfields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from costate.load.findings import listed
from costate.load.gather import MAX_HEIGHTS
from costate.load.hulls import points_on_sphere, reduce
from costate.load.source import Options, Source
from costate.load.surfaces import surface
from costate.scene.builder import Scene
from costate.scene.heightfield import Heightfield
from costate.scene.hull import Hull
from costate.scene.shapes import Box, Capsule, Cylinder, Ellipsoid, Plane, Shape, Sphere, Static

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = range(9)  # mjtGeom
ELLIPSOID_POINTS = 42


def add_geoms(source: Source, scene: Scene, options: Options, bits: Mapping[int, tuple[int, int]]) -> list[int]:
    """Add the geoms to the scene, and return those that may touch something; of the others the primitives are kept.

    bits : of each geom that may touch something its group and mask.
    """
    m, kept = source.m, []
    for geom in range(m.ngeom):
        body = m.geom_bodyid[geom]
        shape = _shape(source, geom, bits.get(geom), options.hull_vertices)
        if shape is None:
            continue
        if isinstance(shape, Static) and m.body_weldid[body] != 0:
            source.findings.refuse(f"geom {source.geoms[geom]!r}: a {type(shape).__name__.lower()} on a body that moves")
            continue
        scene.add_shape(shape, body=source.body_names[body], name=source.geoms[geom])
        if geom in bits:
            kept.append(geom)
    round_ones = [source.geoms[geom] for geom in kept if m.geom_type[geom] == ELLIPSOID]
    if round_ones:
        source.findings.approximate(
            f"{listed('geom', round_ones)}: an ellipsoid touches as the hull of {ELLIPSOID_POINTS} points"
        )
    if source.reduced:
        source.findings.approximate(
            f"{listed('mesh', list(source.reduced))}: the hull has {options.hull_vertices} vertices (hull_vertices), and lies up "
            f"to {1000 * max(source.reduced.values()):.2g} mm inside of that of all vertices"
        )
    return kept


def _shape(source: Source, geom: int, bits: tuple[int, int] | None, hull_vertices: int) -> Shape | None:
    """The shape of a geom, None for one that is only drawn and no primitive, or that cannot be represented."""
    m = source.m
    kind, size = int(m.geom_type[geom]), np.array(m.geom_size[geom])
    options: dict[str, Any] = {
        "pos": np.array(m.geom_pos[geom]),
        "quat": np.array(m.geom_quat[geom]),
        "collide": bits is not None,
    }
    if bits is not None:
        options |= {"group": bits[0], "mask": bits[1], **surface(source, geom)}
    if kind == PLANE:
        return Plane(**options)
    if kind == SPHERE:
        return Sphere(size[0], **options)
    if kind == CAPSULE:
        return Capsule(size[0], size[1], **options)
    if kind == CYLINDER:
        return Cylinder(size[0], size[1], **options)
    if kind == BOX:
        return Box(size, **options)
    if kind == ELLIPSOID:
        return Ellipsoid(size, **options) if bits is None else Hull(points_on_sphere(ELLIPSOID_POINTS) * size, **options)
    if bits is None:
        return None
    if kind == HFIELD:
        return _heightfield(source, geom, options)
    if kind == MESH:
        return _hull(source, geom, hull_vertices, options)
    source.findings.refuse(f"geom {source.geoms[geom]!r}: signed distance functions")
    return None


def _heightfield(source: Source, geom: int, options: dict[str, Any]) -> Shape | None:
    """MuJoCo's data [row, column] in 0 to 1: rows along y, columns along x."""
    m, field = source.m, source.m.geom_dataid[geom]
    rows, columns, start = int(m.hfield_nrow[field]), int(m.hfield_ncol[field]), int(m.hfield_adr[field])
    if rows * columns > MAX_HEIGHTS:
        source.findings.refuse(
            f"geom {source.geoms[geom]!r}: a heightfield of {rows} x {columns}, more than {MAX_HEIGHTS:,} heights"
        )
        return None
    half_x, half_y, top, _ = (float(x) for x in m.hfield_size[field])
    data = np.array(m.hfield_data[start : start + rows * columns], dtype=np.float64).reshape(rows, columns)
    return Heightfield(top * data.T, (half_x, half_y), **options)


def _hull(source: Source, geom: int, hull_vertices: int, options: dict[str, Any]) -> Shape | None:
    """The convex hull of a mesh, with no more vertices than are allowed."""
    m, mesh, name = source.m, source.m.geom_dataid[geom], source.geoms[geom]
    start = m.mesh_vertadr[mesh]
    points = np.array(m.mesh_vert[start : start + m.mesh_vertnum[mesh]], dtype=np.float64)
    try:
        vertices, error = reduce(points, hull_vertices)
        hull = Hull(vertices, **options)
        hull.corners()
    except ValueError as problem:
        source.findings.refuse(f"geom {name!r}: the mesh {m.mesh(mesh).name!r} has no hull that can be used: {problem}")
        return None
    if error > 0:
        source.reduced[m.mesh(mesh).name] = error
    return hull
