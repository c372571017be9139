"""Small URDFs, written in a line or two, and what MuJoCo makes of them after the repair."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import mujoco

from costate.load.urdf import repair

LIMIT = '<limit lower="-1" upper="1" effort="2" velocity="3"/>'


def inertial(mass: float = 1.0, xx: float = 1.0, yy: float = 1.0, zz: float = 1.0, xy: float = 0.0, origin: str = "") -> str:
    inertia = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="0" iyz="0"/>'
    return f'<inertial>{origin}<mass value="{mass}"/>{inertia}</inertial>'


def collision(geometry: str, origin: str = "") -> str:
    return f"<collision>{origin}<geometry>{geometry}</geometry></collision>"


def link(name: str, *parts: str) -> str:
    return f'<link name="{name}">{"".join(parts)}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = LIMIT, axis: str = "0 0 1") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{more}</joint>'


def robot(*parts: str) -> str:
    return f'<robot name="test">{"".join(parts)}</robot>'


def pendulum(*parts: str, more: str = LIMIT, kind: str = "revolute") -> str:
    """A link with these parts on one joint; without parts it has mass 1 and inertia 1."""
    return robot(link("base"), link("arm", *(parts or (inertial(),))), joint("hinge", "base", "arm", kind, more))


def repaired(text: str, folder: Path | None = None, **options: Any) -> tuple[Any, list[str]]:
    """MuJoCo's model after the repair, and the notes."""
    text, assets, notes = repair(text, folder, **options)
    return mujoco.MjModel.from_xml_string(text, assets), notes


# ---- meshes --------------------------------------------------------------------------------------------------------
CUBE = [(float(x), float(y), float(z)) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
FACES = [
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
]  # fmt: skip


def obj(points=CUBE, faces=FACES, first: int = 1) -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in points] + [f"f {a + first} {b + first} {c + first}" for a, b, c in faces]
    return "\n".join([*lines, ""]).encode()


def stl(points=CUBE, faces=FACES) -> bytes:
    corners = [[x for i in face for x in points[i]] for face in faces]
    return bytes(80) + struct.pack("<I", len(faces)) + b"".join(struct.pack("<12fH", 0, 0, 0, *face, 0) for face in corners)


def stl_text(points=CUBE, faces=FACES) -> bytes:
    loops = ["".join(f"vertex {x} {y} {z}\n" for x, y, z in (points[i] for i in face)) for face in faces]
    return (
        "solid cube\n" + "".join(f"facet normal 0 0 0\nouter loop\n{loop}endloop\nendfacet\n" for loop in loops) + "endsolid\n"
    ).encode()


def dae(points=CUBE, meter: float = 1.0, place: str = "") -> bytes:
    """A Collada file whose only geometry is put into the scene by a node with the transform `place`."""
    numbers = " ".join(str(x) for point in points for x in point)
    geometry = (
        '<geometry id="g"><mesh><source id="s"><float_array id="a" count="24">' + numbers + "</float_array></source>"
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices></mesh></geometry>'
    )
    node = f'<node>{place}<instance_geometry url="#g"/></node>'
    return (
        f'<?xml version="1.0"?><COLLADA><asset><unit meter="{meter}"/><up_axis>Y_UP</up_axis></asset>'
        f"<library_geometries>{geometry}</library_geometries><library_visual_scenes><visual_scene>{node}</visual_scene></library_visual_scenes></COLLADA>"
    ).encode()
