"""URDFs as they are found in the wild, repaired so that MuJoCo's compiler takes them.

    read       urdf_read.py, urdf_numbers.py     elements and sloppy numbers -> parts (urdf_parts.py)
    untangle   urdf_tree.py                      names, trees
    joints     urdf_joints.py                    types, limits, mimics, joints that float
    meshes     urdf_meshes.py, urdf_find.py      files, their formats (urdf_vertices.py, urdf_collada.py)
    inertias   urdf_inertia.py, urdf_bounds.py   impossible ones, and moving links without
    written    urdf_write.py                     parts -> text

Each repair is the smallest one after which the compiler takes the file, and is told in a line of its own; a table of them is in
docs/guide/urdf.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from costate.load.errors import LoadError
from costate.load.urdf_find import Places
from costate.load.urdf_inertia import repair_inertias
from costate.load.urdf_joints import repair_joints
from costate.load.urdf_meshes import Meshes
from costate.load.urdf_read import elements, is_urdf, read
from costate.load.urdf_tree import untangle
from costate.load.urdf_write import written

__all__ = ["is_urdf", "repair"]


def repair(
    text: str,
    folder: Path | None,
    search: Sequence[Path] = (),
    *,
    assets: Mapping[str, bytes] | None = None,
    floating: bool = False,
    where: str = "URDF",
) -> tuple[str, dict[str, bytes], list[str]]:
    """Text of a URDF that MuJoCo's compiler takes, from that of one that it may refuse.

    Parameters
    ----------
    text : the URDF.
    folder : of the file; meshes are read in it and below. None for a text without a file.
    search : further folders in which meshes may be, such as those of packages.
    assets : mesh files that are given as bytes, by name.
    floating : whether the root will be given a free joint, so that it needs mass and inertia as other links that move do.
    where : start of error messages.

    Returns
    -------
    text : the repaired URDF; its mesh files have plain names.
    assets : the content of these files, by name.
    notes : one line for each repair, with the link or joint and what was done.
    """
    notes: list[str] = []
    root = elements(text, where)
    meshes = Meshes(Places([*([folder] if folder is not None else []), *search], assets or {}))
    try:
        robot = read(root, notes)
        untangle(robot, notes)
        repair_joints(robot, notes, floating=floating)
        meshes.collect(robot, notes)
        repair_inertias(robot, notes, floating=floating)
    except LoadError as error:
        raise LoadError(f"{where}: {error}") from None
    return written(robot), meshes.assets, notes
