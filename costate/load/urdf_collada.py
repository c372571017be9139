"""Vertices of a Collada file (.dae): positions of all geometries, moved by the nodes of the scene, in metres.

As ROS does, the file's unit counts and its up axis does not: a URDF's mesh is in the axes in which it was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

MAX_DEPTH, MAX_ELEMENTS, MAX_POINTS = 200, 500_000, 5_000_000
KEPT_TEXT = {"float_array", "matrix", "translate", "rotate", "scale"}


@dataclass
class _Element:
    tag: str
    attributes: dict[str, str]
    text: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    def all(self, tag: str) -> list[_Element]:
        """All elements of that tag below this one, in the file's order."""
        found, stack = [], list(reversed(self.children))
        while stack:
            element = stack.pop()
            found += [element] if element.tag == tag else []
            stack.extend(reversed(element.children))
        return found

    def numbers(self) -> np.ndarray:
        return np.array("".join(self.text).split(), dtype=float)


def collada_vertices(data: bytes) -> np.ndarray:
    """The vertices [n, 3] (m) of a Collada file; ValueError if it is none."""
    root = _parse(data)
    units = [
        float(unit.attributes.get("meter", 1)) for asset in root.children if asset.tag == "asset" for unit in asset.all("unit")
    ]
    geometries = {geometry.attributes.get("id", ""): _positions(geometry) for geometry in root.all("geometry")}
    placed, count = [], 0
    for scene in root.all("visual_scene"):
        stack = [(node, np.eye(4)) for node in scene.children if node.tag == "node"]
        while stack:
            node, above = stack.pop()
            place = above @ _transform(node)
            for child in node.children:
                url = child.attributes.get("url", "").lstrip("#")
                if child.tag == "node":
                    stack.append((child, place))
                elif child.tag == "instance_geometry" and url in geometries:
                    placed.append(geometries[url] @ place[:3, :3].T + place[:3, 3])
                    count += len(placed[-1])
                    if count > MAX_POINTS:
                        raise ValueError(f"more than {MAX_POINTS:,} vertices")
    points = np.concatenate(placed or [np.zeros((0, 3)), *geometries.values()])
    return points * (units[0] if units else 1.0)


def _parse(data: bytes) -> _Element:
    """The elements of the file; document types and entities are refused."""
    top = _Element("", {})
    stack, count = [top], 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS or len(stack) > MAX_DEPTH:
            raise ValueError("too many elements")
        stack[-1].children.append(_Element(tag, attributes))
        stack.append(stack[-1].children[-1])

    def text(content: str) -> None:
        if stack[-1].tag in KEPT_TEXT:
            stack[-1].text.append(content)

    def refuse(*_: object) -> None:
        raise ValueError("document types and entities are not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(f"not well-formed XML ({error})") from None
    return top.children[0]


def _positions(geometry: _Element) -> np.ndarray:
    """The positions [n, 3] of a geometry's vertices."""
    sources = {source.attributes.get("id", ""): source for source in geometry.all("source")}
    found = [np.zeros((0, 3))]
    for vertices in geometry.all("vertices"):
        for given in vertices.children:
            source = sources.get(given.attributes.get("source", "").lstrip("#"))
            if given.attributes.get("semantic") == "POSITION" and source is not None:
                for array in source.all("float_array"):
                    numbers = array.numbers()
                    found.append(numbers[: len(numbers) // 3 * 3].reshape(-1, 3))
    return np.concatenate(found)


def _transform(node: _Element) -> np.ndarray:
    """The transform [4, 4] of a node: its matrix, translate, rotate and scale elements, in their order."""
    place = np.eye(4)
    for child in node.children:
        step = np.eye(4)
        if child.tag == "matrix":
            step = child.numbers().reshape(4, 4)
        elif child.tag == "translate":
            step[:3, 3] = child.numbers()
        elif child.tag == "scale":
            step[:3, :3] = np.diag(child.numbers())
        elif child.tag == "rotate":
            x, y, z, angle = child.numbers()
            axis = np.array([x, y, z]) / (np.linalg.norm([x, y, z]) or 1.0)
            cross = np.cross(np.eye(3), axis)  # cross @ x is axis x x
            step[:3, :3] = np.eye(3) + np.sin(np.radians(angle)) * cross + (1 - np.cos(np.radians(angle))) * cross @ cross
        place = place @ step
    return place
