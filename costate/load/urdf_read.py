"""From the elements of a URDF to its parts; what MuJoCo does not read of them is left behind."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from costate.load.check import MAX_BYTES, Node, parse
from costate.load.errors import LoadError
from costate.load.urdf_numbers import number, optional, vector
from costate.load.urdf_parts import DIMENSIONS, Inertial, Joint, Link, Mimic, Origin, Robot, Shape

MAX_LINKS = 10_000  # and joints; more would take long
DECLARATION = re.compile(r"\s*<\?xml\b[^>]*\?>")  # names an encoding, but the text is decoded already
ROOT = re.compile(r"\s*(?:<[?][^>]*>\s*)*<robot[\s/>]")
PLANE_SIDE, PLANE_DEPTH = 200.0, 10.0  # m, of the box that stands for a plane


def elements(text: str, where: str) -> Node:
    """The root element of a URDF's text; `where` starts error messages."""
    if len(text) > MAX_BYTES:
        raise LoadError(f"{where}: the text must be at most {MAX_BYTES // 2**20} MiB, got {len(text) / 2**20:.1f} MiB")
    return parse(_plain_text(text).encode("utf-8", "replace"), where)


def read(root: Node, notes: list[str]) -> Robot:
    """The parts of a URDF; notes get a line for everything that was not as it should be."""
    if root.tag != "robot":
        raise LoadError(f"the root element of a URDF must be <robot>, got <{root.tag[:40]}>")
    counts = Counter(node.tag for node in root.children)
    for tag in ("link", "joint"):
        if counts[tag] > MAX_LINKS:
            raise LoadError(f"a URDF must have at most {MAX_LINKS:,} {tag}s, got {counts[tag]:,}")
    robot = Robot(root.attributes.get("name", ""))
    macros = sorted({node.tag for node in root.children if node.tag.startswith("xacro:")})
    if macros:
        notes.append(f"elements of xacro are ignored ({', '.join(macros[:5])}): expand the file with xacro if they matter")
    for node in root.children:
        if node.tag == "link":
            robot.links.append(_link(node, len(robot.links), notes))
        elif node.tag == "joint":
            robot.joints.append(_joint(node, len(robot.joints), notes))
        elif node.tag == "mujoco":
            robot.settings += [Node(child.tag, dict(child.attributes), child.line) for child in node.children]
    if not robot.links:
        raise LoadError("a URDF must have a link, got none")
    return robot


def is_urdf(data: bytes) -> bool:
    """Whether a file's root element is <robot>, told without parsing it: in the wild not all of it is well-formed XML."""
    return ROOT.match(_plain_text(data[:MAX_BYTES].decode("utf-8", "replace"))) is not None


def _plain_text(text: str) -> str:
    """The text without a mark of the order of bytes, XML declaration, comments, and zeros at its end; lines keep their numbers.

    In the wild there is '--' in comments, which XML forbids.
    """
    text = text.lstrip("\ufeff").rstrip("\0 \t\r\n")
    declaration = DECLARATION.match(text)
    if declaration:
        text = "\n" * declaration[0].count("\n") + text[declaration.end() :]
    parts, start = [], 0
    while (begin := text.find("<!--", start)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        parts += [text[start:begin], "\n" * text.count("\n", begin, end)]
        start = end + 3
    return "".join([*parts, text[start:]])


def _name(node: Node, index: int, notes: list[str]) -> str:
    name = node.attributes.get("name", "")
    if not name:
        name = f"{node.tag}_{index}"
        notes.append(f"{node.tag} number {index} (line {node.line}) has no name: called {name!r}")
    return name


def _child(node: Node, tag: str, where: str, notes: list[str]) -> Node | None:
    """The child of that tag; the first one, where the file has it several times."""
    found = [child for child in node.children if child.tag == tag]
    if len(found) > 1:
        same = all(_plain(child) == _plain(found[0]) for child in found)
        notes.append(f"{where}: has {len(found)} <{tag}>{', all the same' if same else ''}: the first one is taken")
    return found[0] if found else None


def _plain(node: Node) -> list[tuple[str, dict[str, str]]]:
    return [(part.tag, part.attributes) for part in node.walk()]


def _origin(node: Node, where: str, notes: list[str]) -> Origin:
    origin = _child(node, "origin", where, notes)
    return Origin(vector(origin, "xyz", (0, 0, 0), where, notes) + 0.0, vector(origin, "rpy", (0, 0, 0), where, notes) + 0.0)


# ---- links ---------------------------------------------------------------------------------------------------------
def _link(node: Node, index: int, notes: list[str]) -> Link:
    link = Link(_name(node, index, notes), node.line, source=node)
    where = f"link {link.name!r}"
    inertial = _child(node, "inertial", where, notes)
    if inertial is not None:
        link.inertial = _inertial(inertial, where, notes)
    for child in node.children:
        if child.tag in ("collision", "visual"):
            # Of what is only looked at, nothing has to be right: it goes without a word.
            shape = _shape(child, where, notes if child.tag == "collision" else [])
            link.shapes += [shape] if shape is not None else []
    return link


def _inertial(node: Node, where: str, notes: list[str]) -> Inertial:
    mass, inertia = _child(node, "mass", where, notes), _child(node, "inertia", where, notes)
    entries = {name: number(inertia, name, 0.0, where, notes) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
    missing = [name for name in entries if inertia is not None and name not in inertia.attributes]
    if mass is None or "value" not in mass.attributes:
        notes.append(f"{where}: <inertial> has no mass: taken as 0")
    if inertia is None:
        notes.append(f"{where}: <inertial> has no <inertia>: taken as 0")
    elif missing:
        notes.append(f"{where}: <inertia> has no {', '.join(missing)}: taken as 0")
    xx, yy, zz, xy, xz, yz = entries.values()
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(_origin(node, where, notes), number(mass, "value", 0.0, where, notes), matrix, node.line)


def _shape(node: Node, where: str, notes: list[str]) -> Shape | None:
    """A shape, or None with a note where it is none that can touch."""
    seen = node.tag == "visual"
    geometry = _child(node, "geometry", where, notes)
    found = [child for child in geometry.children if child.tag in DIMENSIONS or child.tag == "plane"] if geometry else []
    if not found:
        kinds = ", ".join(f"<{child.tag}>" for child in geometry.children) if geometry else ""
        notes.append(f"{where}: a collision shape {f'of kind {kinds}' if kinds else 'without geometry'} is left out")
        return None
    kind, part = found[0].tag, found[0]
    try:
        origin = _origin(node, where, notes)
        if kind == "plane":
            return _plane(part, origin, where, notes, not seen)
        numbers = _numbers(part, where, notes)
    except LoadError:
        if seen:
            return None
        raise
    shape = Shape(kind, numbers, origin, node.line, not seen, "" if seen else node.attributes.get("name", ""))
    shape.filename = part.attributes.get("filename", "") if kind == "mesh" else ""
    if (kind == "mesh" and not numbers.all()) or (kind != "mesh" and numbers.min() <= 0):
        sizes = " ".join(f"{value:g}" for value in numbers)
        notes.append(f"{where}: a collision <{kind}> of {'scale' if kind == 'mesh' else 'size'} {sizes} is left out")
        return None
    return shape


def _numbers(part: Node, where: str, notes: list[str]) -> np.ndarray:
    if part.tag == "box":
        return vector(part, "size", (0, 0, 0), where, notes)
    if part.tag == "mesh":
        return vector(part, "scale", (1, 1, 1), where, notes)
    names = ("radius", "length")[: DIMENSIONS[part.tag]]
    return np.array([number(part, name, 0.0, where, notes) for name in names])


def _plane(part: Node, origin: Origin, where: str, notes: list[str], collision: bool) -> Shape:
    """A plane as a large flat box whose upper side it is."""
    normal = vector(part, "normal", (0, 0, 1), where, notes)
    length = np.linalg.norm(normal)
    normal = normal / length if length > 0 else np.array([0.0, 0.0, 1.0])
    x, y, z = normal
    tilt = Origin(rpy=np.array([np.arctan2(-y, np.hypot(x, z)), np.arctan2(x, z), 0.0]))
    tilt.xyz = -0.5 * PLANE_DEPTH * (tilt.rotation() @ [0.0, 0.0, 1.0])
    notes.append(f"{where}: a collision <plane> becomes a box of {PLANE_SIDE:g} x {PLANE_SIDE:g} x {PLANE_DEPTH:g} m below it")
    return Shape("box", np.array([PLANE_SIDE, PLANE_SIDE, PLANE_DEPTH]), origin.times(tilt), part.line, collision)


# ---- joints --------------------------------------------------------------------------------------------------------
def _joint(node: Node, index: int, notes: list[str]) -> Joint:
    name = _name(node, index, notes)
    where = f"joint {name!r}"
    parent, child = _child(node, "parent", where, notes), _child(node, "child", where, notes)
    above, below = (end.attributes.get("link", "") if end is not None else "" for end in (parent, child))
    joint = Joint(name, node.attributes.get("type", ""), above, below, node.line, _origin(node, where, notes))
    axis, limit, dynamics = (_child(node, tag, where, notes) for tag in ("axis", "limit", "dynamics"))
    if axis is not None and axis.attributes.get("xyz", "").strip():
        joint.axis = vector(axis, "xyz", (1, 0, 0), where, notes)
    for field in ("lower", "upper", "effort", "velocity"):
        setattr(joint, field, optional(limit, field, where, notes))
    for field in ("damping", "friction"):
        setattr(joint, field, optional(dynamics, field, where, notes))
    mimic = _child(node, "mimic", where, notes)
    if mimic is not None:
        multiplier, offset = number(mimic, "multiplier", 1.0, where, notes), number(mimic, "offset", 0.0, where, notes)
        joint.mimic = Mimic(mimic.attributes.get("joint", ""), multiplier, offset)
    return joint


def same(a: Link, b: Link) -> bool:
    """Whether two links are written with the same elements."""
    return a.source is not None and b.source is not None and _plain(a.source) == _plain(b.source)
