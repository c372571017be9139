"""From the parts of a URDF to its text, in the form that MuJoCo's compiler takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from costate.load.check import Node, write
from costate.load.urdf_parts import Inertial, Joint, Link, Origin, Robot, Shape

# Names of all links survive, and mesh files are found by their names alone. Folders were dealt with before.
COMPILER = {"fusestatic": "false", "strippath": "false"}
FOLDERS = ("meshdir", "assetdir", "texturedir")
SETTINGS = ("compiler", "option")  # not size, which asks for memory


def written(robot: Robot) -> str:
    """The robot as URDF text."""
    root = Node("robot", {"name": robot.name or "robot"}, 1)
    settings = [Node("compiler", {}, 1), *(node for node in robot.settings if node.tag in SETTINGS)]
    merged = {node.tag: Node(node.tag, {}, 1) for node in settings}
    for node in settings:
        merged[node.tag].attributes.update(node.attributes)
    compiler = merged["compiler"].attributes
    merged["compiler"].attributes = {name: value for name, value in compiler.items() if name not in FOLDERS} | COMPILER
    root.children.append(Node("mujoco", {}, 1, list(merged.values())))
    root.children += [_link(link) for link in robot.links] + [_joint(joint) for joint in robot.joints]
    return write(root)


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _origin(origin: Origin, line: int) -> list[Node]:
    values = {"xyz": origin.xyz, "rpy": origin.rpy}
    attributes = {name: _numbers(value) for name, value in values.items() if np.any(value)}
    return [Node("origin", attributes, line)] if attributes else []


def _link(link: Link) -> Node:
    node = Node("link", {"name": link.name}, link.line)
    if link.inertial is not None:
        node.children.append(_inertial(link.inertial))
    node.children += [_shape(shape) for shape in link.shapes if shape.collision or shape.kind != "mesh"]
    return node


def _inertial(inertial: Inertial) -> Node:
    I, line = inertial.inertia, inertial.line
    entries = {"ixx": I[0, 0], "ixy": I[0, 1], "ixz": I[0, 2], "iyy": I[1, 1], "iyz": I[1, 2], "izz": I[2, 2]}
    mass = Node("mass", {"value": _numbers([inertial.mass])}, line)
    inertia = Node("inertia", {name: _numbers([value]) for name, value in entries.items()}, line)
    return Node("inertial", {}, line, [*_origin(inertial.origin, line), mass, inertia])


def _shape(shape: Shape) -> Node:
    if shape.kind == "mesh":
        attributes = {"filename": shape.filename, "scale": _numbers(shape.numbers)}
    elif shape.kind == "box":
        attributes = {"size": _numbers(shape.numbers)}
    else:
        attributes = {name: _numbers([value]) for name, value in zip(("radius", "length"), shape.numbers)}
    geometry = Node("geometry", {}, shape.line, [Node(shape.kind, attributes, shape.line)])
    name = {"name": shape.name} if shape.name else {}
    return Node("collision" if shape.collision else "visual", name, shape.line, [*_origin(shape.origin, shape.line), geometry])


def _joint(joint: Joint) -> Node:
    line = joint.line
    node = Node("joint", {"name": joint.name, "type": joint.kind}, line, _origin(joint.origin, line))
    node.children += [Node("parent", {"link": joint.parent}, line), Node("child", {"link": joint.child}, line)]
    if joint.axis is not None:
        node.children.append(Node("axis", {"xyz": _numbers(joint.axis)}, line))
    for tag, names in (("limit", ("lower", "upper", "effort", "velocity")), ("dynamics", ("damping", "friction"))):
        given = {name: _numbers([getattr(joint, name)]) for name in names if getattr(joint, name) is not None}
        if given:
            node.children.append(Node(tag, given, line))
    if joint.mimic is not None:
        factors = {"multiplier": _numbers([joint.mimic.multiplier]), "offset": _numbers([joint.mimic.offset])}
        node.children.append(Node("mimic", {"joint": joint.mimic.joint, **factors}, line))
    return node
