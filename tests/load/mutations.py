"""Files that are wrong, odd or hostile, made from good ones: the same file for the same number, always.

Most cases change a few elements, attributes and numbers, so that they get past the first check and deep into the loader; some
cut and mix the text, and some ask for too much: entities, depth, counts, files elsewhere.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from costate.load.library import mujoco
from tests.load.bombs import BOMBS
from tests.load.fuzz_seeds import Seed, seeds

NUMBERS = (
    "0", "-0", "1", "-1", "2", "0.5", "1e-3", "1e3", "1e-9", "1e9", "-1e9", "1e-15", "1e15", "1e-30", "1e30", "-1e30", "1e-160",
    "1e160", "1e-320", "1e308", "-1e308", "1e400", "-1e400", "nan", "inf", "-inf", "NaN", "2147483647", "-2147483648",
    "4294967296",
    "99999999999999999999",
)  # fmt: skip
USUAL = ("0", "1", "-1", "2", "0.5", "0.1", "-0.3", "3")
NO_NUMBERS = (
    "", " ", "abc", "true", "1,5", "1.2.3", "--1", "0x10", "1e", "1 2", "\u0661", "\uff11", "\u221e", "1;2", "${x}", "%s%n",
    "\t\n",
    "x" * 3000, "1 " * 2000,
)  # fmt: skip
NAMES = (
    "",
    "world",
    "missing",
    "arm",
    "base",
    "a",
    "\u00e9\u4e2d\U0001f916",
    "a/b",
    "a:b",
    "../x",
    "\u202e",
    "'\"<>&",
    "n" * 3000,
)
PATHS = (
    "../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "file:///etc/passwd", "package://../../etc/passwd",
    "package://none/mesh.stl", "http://localhost/x.stl", "C:\\x.stl", "..\\..\\x.stl", ".", "..", "", "missing.stl",
    "no/such/mesh.obj",
    "mesh.stl", "solid.obj", "a.obj", "c.dae", "x" * 5000, "a\u0000b", "$(find x)/y.stl", "case.xml", "case.urdf",
)  # fmt: skip
WORDS = {
    "type": ("hinge", "slide", "ball", "free", "sphere", "capsule", "ellipsoid", "cylinder", "box", "plane", "hfield",
    "mesh", "sdf",
             "fixed", "revolute", "prismatic", "continuous", "floating", "planar", "grid", "spherical"),
    "limited": ("true", "false", "auto"), "integrator": ("Euler", "RK4", "implicit", "implicitfast"),
    "cone": ("pyramidal", "elliptic"), "angle": ("radian", "degree"), "coordinate": ("local", "global"),
    "inertiafromgeom": ("true", "false", "auto"), "condim": ("1", "2", "3", "4", "5", "6"),
    "dyntype": ("none", "integrator", "filter", "filterexact", "muscle", "user"), "gaintype": ("fixed", "affine", "muscle",
    "user"),
    "biastype": ("none", "affine", "muscle", "user"), "eulerseq": ("xyz", "ZYX", "xxx", "x"), "mocap": ("true", "false"),
    "inertia": ("convex", "exact", "legacy", "shell"),
    "builtin": ("sphere", "hemisphere", "cone", "torus", "wedge", "plate", "supersphere", "supertorus", "prism"),
    "objtype": ("body", "xbody", "geom", "site", "camera"), "fusestatic": ("true", "false"), "balanceinertia": ("true", "false"),
    "discardvisual": ("true", "false"), "active": ("true", "false"),
}  # fmt: skip
SWITCHES = ("enable", "disable", "true", "false", "auto")
LENGTHS = {
    "pos": 3, "quat": 4, "euler": 3, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "axis": 3, "range": 2, "friction": 3, "solref": 2,
    "solimp": 5, "solreflimit": 2, "solimplimit": 5, "solreffriction": 2, "solimpfriction": 5, "fromto": 6, "size": 3, "gear": 6,
    "ctrlrange": 2, "forcerange": 2, "actuatorfrcrange": 2, "actrange": 2, "lengthrange": 2, "gainprm": 3, "biasprm": 3,
    "dynprm": 3,
    "gravity": 3, "wind": 3, "magnetic": 3, "anchor": 3, "relpose": 7, "polycoef": 5, "rgba": 4, "diaginertia": 3,
    "fullinertia": 6,
    "scale": 3, "refpos": 3, "refquat": 4, "fluidcoef": 5, "offset": 3, "xyz": 3, "rpy": 3, "normal": 3, "surfacevel": 3,
    "inertiagrouprange": 2, "springdamper": 2, "stiffness": 1, "count": 3, "spacing": 3, "o_solref": 2, "o_solimp": 5,
    "o_friction": 5,
}  # fmt: skip
REFERENCES = re.compile(
    r"(body|joint|geom|site|tendon|actuator|mesh|hfield|material|class|model|link|instance|plugin|parent|child)\d?$"
)
FILES = ("file", "filename", "meshdir", "assetdir")
COUNTS = {
    "count",
    "nrow",
    "ncol",
    "width",
    "height",
    "size",
    "nuser_body",
    "nkey",
    "dim",
    "params",
    "cellcount",
    "group",
    "contype",
}
URDF_TAGS = {
    "robot": ("name",), "link": ("name",), "joint": ("name", "type"), "origin": ("xyz", "rpy"), "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "box": ("size",), "sphere": ("radius",), "mesh": ("filename", "scale"),
    "cylinder": ("radius", "length"), "capsule": ("radius", "length"), "plane": ("normal",), "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"), "dynamics": ("damping", "friction"), "parent": ("link",),
    "child": ("link",),
    "mimic": ("joint", "multiplier", "offset"), "collision": ("name",), "visual": (), "geometry": (), "inertial": (),
    "mujoco": (),
    "compiler": ("angle", "fusestatic", "balanceinertia", "boundmass", "discardvisual", "meshdir", "strippath",
    "inertiafromgeom"),
    "option": ("timestep", "gravity", "integrator"),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One file with what lies beside it, where else files may be, the options it is loaded with, and what was done to it."""

    name: str
    main: str
    files: dict[str, bytes]
    folder: Path | None
    options: dict[str, Any]


@cache
def vocabulary(urdf: bool) -> dict[str, tuple[str, ...]]:
    """The tags of the format, each with its attributes."""
    if urdf:
        return URDF_TAGS
    found: dict[str, set[str]] = {}
    tag = ""
    for line in mujoco().mj_printSchema(False, False).splitlines():
        head = re.match(r"\s*(?:\(world\))?(\w+) \(.\)(.*)", line)
        tag, rest = (head[1], head[2]) if head else (tag, line)
        found.setdefault(tag, set()).update(re.findall(r"\w+", rest))
    found |= {"frame": found["body"], "replicate": found["body"] | {"count", "offset", "sep"}, "include": {"file"}}
    return {tag: tuple(sorted(names)) for tag, names in sorted(found.items()) if tag}


def value(rng: Random, name: str) -> str:
    """Something that an attribute of this name might hold, or should not."""
    if rng.random() < 0.05:
        return rng.choice(NO_NUMBERS)
    if name in WORDS:
        return rng.choice(WORDS[name])
    if name in FILES:
        return rng.choice(PATHS)
    if REFERENCES.match(name) or name == "name":
        return rng.choice(NAMES)
    if name.endswith("limited"):
        return rng.choice(WORDS["limited"])
    if rng.random() < 0.05:
        return rng.choice(SWITCHES)
    count = LENGTHS.get(name, 1) if rng.random() < 0.85 else rng.choice((0, 1, 2, 3, 4, 5, 7, 12))
    return " ".join(rng.choice(NUMBERS if rng.random() < 0.3 else USUAL) for _ in range(count))


# ---- on elements ---------------------------------------------------------------------------------------------------
class Tree:
    """The elements of a file, and what can be done to them."""

    def __init__(self, root: ET.Element, urdf: bool, rng: Random) -> None:
        self.root, self.urdf, self.rng = root, urdf, rng

    def any(self) -> ET.Element:
        return self.rng.choice(list(self.root.iter()))

    def attribute(self, numbers: bool = False) -> tuple[ET.Element, str] | None:
        """An attribute that is there, one with numbers if that is asked for."""
        found = [
            (e, name) for e in self.root.iter() for name, text in e.attrib.items() if not numbers or re.match(r"\s*[-+.\d]", text)
        ]
        return self.rng.choice(found) if found else None

    def placed(self) -> tuple[ET.Element, ET.Element] | None:
        """An element with its parent."""
        found = [(parent, child) for parent in self.root.iter() for child in parent]
        return self.rng.choice(found) if found else None

    def set_number(self) -> None:
        """One number of an attribute is another."""
        if chosen := self.attribute(numbers=True):
            element, name = chosen
            words = element.attrib[name].split()
            words[self.rng.randrange(len(words))] = self.rng.choice(NUMBERS)
            element.set(name, " ".join(words))

    def scale_numbers(self) -> None:
        """The numbers of an attribute are scaled, negated or rounded."""
        if chosen := self.attribute(numbers=True):
            element, name = chosen
            factor = self.rng.choice((0.0, -1.0, 1e-8, 1e-3, 0.1, 10.0, 1e3, 1e8))
            words = [f"{factor * float(w):.6g}" if re.fullmatch(r"[-+]?[\d.]+", w) and w.strip("-+.") and w.count(".") < 2 else w
                     for w in element.attrib[name].split()]  # fmt: skip
            element.set(name, " ".join(words))

    def set_length(self) -> None:
        """An attribute has more or fewer numbers than it should."""
        if chosen := self.attribute(numbers=True):
            element, name = chosen
            words = element.attrib[name].split()
            count = self.rng.choice((0, 1, 2, 3, 4, 5, 7, 11, 1000))
            element.set(name, " ".join((words * (count // len(words) + 1))[:count]))

    def set_value(self) -> None:
        if chosen := self.attribute():
            chosen[0].set(chosen[1], value(self.rng, chosen[1]))

    def set_count(self) -> None:
        """Of what counts something, another number."""
        found = [(e, name) for e in self.root.iter() for name in e.attrib if name in COUNTS]
        if found:
            element, name = self.rng.choice(found)
            element.set(
                name, self.rng.choice(("0", "-1", "1", "7", "100", "1000", "3000", "100000", "10000000", "2147483647", "1e9"))
            )

    def refer_elsewhere(self) -> None:
        """A reference to another name that exists, or to none."""
        found = [(e, name) for e in self.root.iter() for name in e.attrib if REFERENCES.match(name)]
        names = [e.attrib["name"] for e in self.root.iter() if "name" in e.attrib]
        if found and names:
            element, name = self.rng.choice(found)
            element.set(name, self.rng.choice(names if self.rng.random() < 0.7 else NAMES))

    def drop_attribute(self) -> None:
        if chosen := self.attribute():
            del chosen[0].attrib[chosen[1]]

    def swap_attributes(self) -> None:
        a, b = self.attribute(), self.attribute()
        if a and b:
            (x, m), (y, n) = a, b
            x.attrib[m], y.attrib[n] = y.attrib[n], x.attrib[m]

    def add_attribute(self) -> None:
        """One that its element may have."""
        element = self.any()
        if names := vocabulary(self.urdf).get(element.tag):
            name = self.rng.choice(names)
            element.set(name, value(self.rng, name))

    def rename_tag(self) -> None:
        self.any().tag = self.rng.choice(list(vocabulary(self.urdf)))

    def add_element(self) -> None:
        """One with some attributes of its kind, anywhere."""
        tag = self.rng.choice(list(vocabulary(self.urdf)))
        names = vocabulary(self.urdf)[tag]
        chosen = self.rng.sample(names, min(len(names), self.rng.randrange(5)))
        parent = self.any()
        parent.insert(self.rng.randint(0, len(parent)), ET.Element(tag, {name: value(self.rng, name) for name in chosen}))

    def drop_element(self) -> None:
        if chosen := self.placed():
            chosen[0].remove(chosen[1])

    def drop_masses(self) -> None:
        """What gives mass goes, everywhere or somewhere."""
        share = self.rng.choice((0.2, 1.0))
        for parent in list(self.root.iter()):
            for child in list(parent):
                if child.tag in ("inertial", "mass", "inertia", "geom", "collision") and self.rng.random() < share:
                    parent.remove(child)

    def copy_element(self) -> None:
        """An element is there twice, the copy with other names or with the same."""
        if chosen := self.placed():
            copy = ET.fromstring(ET.tostring(chosen[1]))
            if self.rng.random() < 0.7:
                for element in copy.iter():
                    if "name" in element.attrib:
                        element.set("name", f"{element.attrib['name']}{self.rng.randrange(1000)}")
            parent = chosen[0] if self.rng.random() < 0.6 else self.any()
            parent.append(copy)

    def swap_elements(self) -> None:
        a, b = self.placed(), self.placed()
        if a and b and a[1] is not b[1] and b[1] not in a[1].iter() and a[1] not in b[1].iter():
            i, j = list(a[0]).index(a[1]), list(b[0]).index(b[1])
            a[0][i], b[0][j] = b[1], a[1]

    def move_element(self) -> None:
        if chosen := self.placed():
            inside = set(chosen[1].iter())
            places = [element for element in self.root.iter() if element not in inside]
            chosen[0].remove(chosen[1])
            self.rng.choice(places).append(chosen[1])


ON_TREES: tuple[tuple[Callable[[Tree], None], int], ...] = (
    (Tree.set_number, 24), (Tree.scale_numbers, 16), (Tree.set_length, 5), (Tree.set_value, 8), (Tree.set_count, 5),
    (Tree.refer_elsewhere, 6), (Tree.drop_attribute, 8), (Tree.swap_attributes, 4), (Tree.add_attribute, 24),
    (Tree.rename_tag, 3),
    (Tree.add_element, 6), (Tree.drop_element, 8), (Tree.drop_masses, 3), (Tree.copy_element, 7), (Tree.swap_elements, 4),
    (Tree.move_element, 5),
)  # fmt: skip


# ---- on text -------------------------------------------------------------------------------------------------------
def mixed(text: bytes, rng: Random) -> bytes:
    """The text with pieces cut, doubled, moved or replaced; rubbish among it; in another encoding."""
    a = rng.randrange(len(text) + 1)
    b = min(a + rng.randrange(1, 200), len(text))
    word = rng.choice(
        (b"\x00", b"\xff\xfe", b"\xc3", b"<", b"&", b"&a;", b"&#0;", b"&#x110000;", b"]]>", b"<!--", b"-->", b"<![CDATA[",
        b"<?x?>", b'"',
         b"</body>", b"</link>", b"<body>", b"<link/>", "\u4e2d".encode(), rng.randbytes(20))
    )  # fmt: skip
    return rng.choice(
        (
            lambda: text[:a],
            lambda: text[a:],
            lambda: text[:a] + text[b:],
            lambda: text[:b] + text[a:],
            lambda: text[:a] + word + text[b:],
            lambda: text[:a] + word + text[a:],
            lambda: text[:a] + bytes(255 - byte for byte in text[a:b]) + text[b:],
            lambda: bytes(byte ^ (1 << rng.randrange(8)) if rng.random() < 0.003 else byte for byte in text),
            lambda: text.decode("latin-1").encode(rng.choice(("utf-16", "utf-32", "utf-8-sig"))),
            lambda: (
                b'<?xml version="1.0" encoding="' + rng.choice((b"utf-7", b"x", b"utf-16", b"ascii", b"cp037")) + b'"?>' + text
            ),
            lambda: rng.randbytes(rng.randrange(3000)),
        )
    )()


def spoilt(files: dict[str, bytes], rng: Random) -> dict[str, bytes]:
    """A file beside the main one is missing, cut or damaged."""
    if not files:
        return files
    name = rng.choice(sorted(files))
    data = bytearray(files[name])
    for _ in range(rng.randrange(1, 30)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    made = rng.choice((None, b"", bytes(data), bytes(data[: rng.randrange(len(data) + 1)]), files[name] * 3, rng.randbytes(500)))
    return {other: content for other, content in files.items() if other != name} | ({} if made is None else {name: made})


def options(rng: Random) -> dict[str, Any]:
    """How the file is loaded."""
    chosen: dict[str, Any] = {"strict": rng.random() < 0.3}
    if rng.random() < 0.3:
        chosen["floating"] = rng.random() < 0.7
    for name, choices in (("ground", (True, -1.0)), ("fuse", (True,)), ("self_collision", (False,)), ("hull_vertices", (4, 16))):
        if rng.random() < 0.15:
            chosen[name] = rng.choice(choices)
    if rng.random() < 0.1:
        drives = ({"actuators": "torque"}, {"actuators": "position", "kp": 10.0, "kd": 1.0})
        chosen |= rng.choice((*drives, {"actuators": "servo", "max_speed": 3.0, "max_force": 5.0}))
    return chosen


def case(index: int) -> Case:
    """The case of this number."""
    rng = Random(index)
    seed = rng.choice(rng.choice(seeds()))
    text, files, done = seed.text, seed.files, []
    kind = rng.random()
    if kind < 0.1:
        name = rng.choice(sorted(BOMBS))
        made = BOMBS[name](rng, text, seed.suffix == ".urdf")
        text, files, done = made["main"], {**files, **{key: data for key, data in made.items() if key != "main"}}, [name]
    elif kind < 0.9:
        text, done = _changed(seed, rng)
    if kind >= 0.9 or rng.random() < 0.02:
        text, done = mixed(text, rng), [*done, "mixed"]
    if rng.random() < 0.15:
        files, done = spoilt(files, rng), [*done, "spoilt"]
    main = f"case{seed.suffix}"
    return Case(f"{index}: {seed.name}, {', '.join(done)}", main, {**files, main: text}, seed.folder, options(rng))


def _changed(seed: Seed, rng: Random) -> tuple[bytes, list[str]]:
    try:
        root = ET.fromstring(seed.text)
    except ET.ParseError:  # of those in the wild
        return mixed(seed.text, rng), ["mixed"]
    tree = Tree(root, seed.suffix == ".urdf", rng)
    functions, weights = zip(*ON_TREES)
    chosen = rng.choices(functions, weights, k=rng.choice((1, 1, 1, 2, 2, 3, 6)))
    for function in chosen:
        function(tree)
    return ET.tostring(root), [function.__name__ for function in chosen]
