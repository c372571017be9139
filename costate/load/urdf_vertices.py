"""Vertices of mesh files: Wavefront OBJ, STL in both forms; Collada is in urdf_collada."""

from __future__ import annotations

import re

import numpy as np

from costate.load.urdf_collada import collada_vertices

STL_HEADER, STL_FACE = 84, 50  # bytes
MAX_STL_FACES = 200_000  # that MuJoCo reads
VERTEX = re.compile(rb"^[ \t]*v(?:ertex)?[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)


def vertices(data: bytes, kind: str) -> np.ndarray:
    """The vertices [n, 3] of a file of kind "obj", "stl" or "dae"; ValueError if it is none."""
    if kind == "dae":
        return collada_vertices(data)
    if kind == "stl" and not is_text(data):
        return _binary_stl(data)
    return np.array([[float(x) for x in match.groups()] for match in VERTEX.finditer(data)]).reshape(-1, 3)


def is_text(data: bytes) -> bool:
    """Whether an STL file is in text form: some binary ones begin with "solid" too, but their length is right."""
    faces = int.from_bytes(data[80:84], "little") if len(data) >= STL_HEADER else -1
    return len(data) != STL_HEADER + STL_FACE * faces and data.lstrip()[:5].lower() == b"solid"


def _binary_stl(data: bytes) -> np.ndarray:
    faces = (len(data) - STL_HEADER) // STL_FACE
    if faces <= 0:
        return np.zeros((0, 3))
    stated = int.from_bytes(data[80:84], "little")
    layout = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    table = np.frombuffer(data, layout, count=min(faces, stated), offset=STL_HEADER)
    return table["corners"].reshape(-1, 3).astype(float)


def as_binary_stl(corners: np.ndarray) -> bytes:
    """Triangles [3 n, 3] as a binary STL file, the form that MuJoCo reads."""
    layout = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    table = np.zeros(len(corners) // 3, layout)
    table["corners"] = corners[: 3 * len(table)].reshape(-1, 3, 3)
    return bytes(80) + len(table).to_bytes(4, "little") + table.tobytes()


def as_points(points: np.ndarray) -> bytes:
    """Points [n, 3] as an OBJ file without faces: MuJoCo takes their convex hull."""
    return "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in np.unique(points, axis=0).tolist()).encode()
