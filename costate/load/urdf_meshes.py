"""Mesh files of a URDF's collision shapes, in forms that MuJoCo reads; what cannot be read is left out.

Visual meshes do not move anything: they are not opened, unless a link without inertia has no other shape to tell its size.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

import numpy as np

from costate.load.files import posix
from costate.load.findings import listed
from costate.load.urdf_find import Places
from costate.load.urdf_parts import Link, Robot, Shape
from costate.load.urdf_vertices import MAX_STL_FACES, as_binary_stl, as_points, is_text, vertices

MAX_BYTES = 128 * 2**20  # of one file
READ = ("obj", "stl", "dae", "msh")
FLAT = 1e-6  # thickness over width below which a mesh has no convex hull
THICKNESS = 1e-3  # m, what flat meshes get
LEAST_VOLUME = 1e-14  # m^3; MuJoCo refuses meshes of 1e-15 and less


class Meshes:
    """Mesh files by the names that they have in the repaired text; files that several shapes use are there once."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.assets: dict[str, bytes] = {}
        self._names: dict[tuple[str, bytes | None], str] = {}
        self._read: dict[str, np.ndarray] = {}
        self._moved: dict[tuple[str, str], list[str]] = {}

    def collect(self, robot: Robot, notes: list[str]) -> None:
        """Find all meshes of collision shapes; visual ones, and those that cannot be used, are left out. Changes the robot."""
        meshdir = robot.setting("compiler", "meshdir")
        if meshdir:  # MuJoCo takes nothing but the last part of a filename, and looks for it there
            self.places = Places([*self.places.folders, *self._below(meshdir)], self.places.given)
        for link in robot.links:
            meshes = [shape for shape in link.shapes if shape.kind == "mesh"]
            usable = [shape for shape in meshes if shape.collision and self._collision(link, shape, notes)]
            link.shapes = [shape for shape in link.shapes if shape.kind != "mesh" or any(shape is one for one in usable)]
            if _lacks_inertia(link) and not link.collisions():
                seen = [shape for shape in meshes if not shape.collision]
                link.shapes += [shape for shape in seen if self._visual(shape)]
        for (given, taken), links in self._moved.items():
            notes.append(f"{listed('link', links)}: meshes of {given!r} are taken from {taken!r}")

    def _below(self, meshdir: str) -> list[Path]:
        folders = [folder.resolve() for folder in self.places.folders]
        below = [(folder / meshdir).resolve() for folder in folders]
        return [path for path in below if any(path.is_relative_to(folder) for folder in folders)]

    def _collision(self, link: Link, shape: Shape, notes: list[str]) -> bool:
        """Whether the shape's mesh can be used; a note says what was done to it, or why not."""
        said = f"link {link.name!r}: collision mesh {shape.filename[:200]!r}"
        found = self._get(shape.filename, f"link {link.name!r}")
        if found is None:
            hint = "; the folder of its package can be given by search=[...]" if "://" in shape.filename else ""
            notes.append(f"{said} is not there{hint}: the shape is left out")
            return False
        path, data = found
        kind = _kind(path)
        try:
            if kind not in READ:
                raise ValueError(f"is of a kind that is not read (.{kind})")
            points, new, what = np.zeros((0, 3)), None, ""
            if kind != "msh":
                points = self._vertices(path, data)
                new, kind, what = _usable(data, kind, points, shape.numbers)
                shape.vertices = points * shape.numbers
        except ValueError as error:
            notes.append(f"{said} {error}: the shape is left out")
            return False
        if what:
            notes.append(f"{said} {what}")
        self._note_place(link, shape.filename, path)
        shape.filename = self._add(path, kind, new, data)
        return True

    def _note_place(self, link: Link, filename: str, path: str) -> None:
        """Remember where a mesh was found, if its filename does not say it; one note is made of many."""
        name = posix(filename.strip())
        name, place = (name if ":" in name else normpath(name)).split("/"), posix(path).split("/")
        common = 0
        while common < min(len(name), len(place)) and name[-1 - common] == place[-1 - common]:
            common += 1
        key = "/".join([*name[: len(name) - common], ""]), "/".join(place[: len(place) - common])
        if key[0] and not key[0].startswith("../"):
            names = self._moved.setdefault(key, [])
            names += [link.name] if link.name not in names else []

    def _get(self, filename: str, where: str) -> tuple[str, bytes] | None:
        """The file that a filename means; with a folder of meshes, the last part of the filename is looked for as well."""
        found = self.places.get(filename, where)
        short = re.split(r"[/\\]", filename)[-1]
        return found if found is not None or short == filename else self.places.get(short, where)

    def _visual(self, shape: Shape) -> bool:
        """Whether the vertices of a visual mesh can be had."""
        try:
            found = self.places.get(shape.filename, "")
            if found is None or _kind(found[0]) not in READ[:3]:
                return False
            shape.vertices = self._vertices(*found) * shape.numbers
            return len(shape.vertices) > 0 and bool(np.isfinite(shape.vertices).all())
        except ValueError:  # LoadError among them: what is only looked at may be anything
            return False

    def _vertices(self, path: str, data: bytes) -> np.ndarray:
        if len(data) > MAX_BYTES:
            raise ValueError(f"is larger than {MAX_BYTES // 2**20} MiB")
        if path not in self._read:
            try:
                self._read[path] = vertices(data, _kind(path))
            except (ValueError, OverflowError) as error:
                raise ValueError(f"cannot be read ({error})") from None
        return self._read[path]

    def _add(self, path: str, kind: str, new: bytes | None, data: bytes) -> str:
        """The name of a file in the assets; `new` is its content where it was changed."""
        if (path, new) not in self._names:
            stem = re.sub(r"[^A-Za-z0-9_.-]", "_", PurePosixPath(path).stem)
            name, number = f"{stem}.{kind}", 2
            while name in self.assets:
                name, number = f"{stem}_{number}.{kind}", number + 1
            self.assets[name] = data if new is None else new
            self._names[path, new] = name
        return self._names[path, new]


def _kind(path: str) -> str:
    return PurePosixPath(path).suffix.lower()[1:]


def _lacks_inertia(link: Link) -> bool:
    return link.inertial is not None and link.inertial.mass > 0 and not link.inertial.inertia.any()


def _usable(data: bytes, kind: str, points: np.ndarray, scale: np.ndarray) -> tuple[bytes | None, str, str]:
    """The content of a mesh file as MuJoCo takes it (None: as it is), its kind, and in words what was done.

    ValueError if it is no mesh.
    """
    if len(points) < 3 or not np.isfinite(points).all():
        raise ValueError("has fewer than 3 vertices" if len(points) < 3 else "has vertices that are not finite")
    scaled = points * scale
    centred = scaled - scaled.mean(axis=0)
    size = np.abs(centred).max()
    if not 0 < size < 1e6:
        raise ValueError(f"is {size:.2g} m large")
    axes = np.linalg.eigh(centred.T @ centred / size**2)[1][:, ::-1]  # principal axes as columns, the widest first
    widths = np.ptp(centred @ axes, axis=0)
    if widths[1] <= FLAT * widths[0]:
        raise ValueError("has all its vertices on one line")
    if widths[2] <= FLAT * widths[0]:
        half = 0.5 * THICKNESS * axes[:, 2]
        return (
            as_points(np.concatenate([scaled + half, scaled - half]) / scale),
            "obj",
            f"is flat: it gets a thickness of {THICKNESS:g} m",
        )
    if np.prod(widths) <= 6 * LEAST_VOLUME:
        raise ValueError(f"is too small ({' x '.join(f'{width:.2g}' for width in widths)} m)")
    if kind == "dae":
        return as_points(points), "obj", "is in Collada's format: its convex hull is taken"
    if kind == "stl" and is_text(data):
        return as_binary_stl(points), "stl", "is an STL file in text form: rewritten in binary form"
    if kind == "stl" and len(points) > 3 * MAX_STL_FACES:
        return as_points(points), "obj", f"has more than {MAX_STL_FACES:,} faces: its convex hull is taken"
    return None, kind, ""
