"""From an MJCF file to what MuJoCo's compiler gets: one text, and the bytes of its assets.

All files are read here, so that the compiler needs no file system: included files are put in place, assets get new names. What
is only for looks (textures, skins) is left out unread, and so are sizes of buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath

from costate.load.check import MAX_DEPTH, MAX_ELEMENTS, Node, parse, write
from costate.load.errors import LoadError
from costate.load.files import MAX_ASSETS, Files, posix

MAX_ATTACHED = 8  # models that attach models, how deep
NEEDLESS = {"texture", "skin", "layer", "visual", "size"}  # elements that change nothing but pictures and sizes of buffers
MAX_COPIES = 10_000  # of elements in <replicate>, which may be nested; of points in <flexcomp>
MAX_HEIGHTS = 4_000_000  # of a heightfield
DIRECTORIES = ("assetdir", "meshdir", "texturedir", "strippath")  # attributes of <compiler>


@dataclass
class Gathering:
    """The assets of a model as they are found, each under a name of its own."""

    files: Files
    assets: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    elements: int = 0

    def prepare(self, root: Node, where: str, folder: str = "", depth: int = 0) -> str:
        """The text of a model with its includes in place and new names for its assets.

        folder : of the model, where names of files start from. depth : of models that attach models.
        """
        if depth > MAX_ATTACHED:
            raise LoadError(f"{where}: models that attach models must be nested at most {MAX_ATTACHED} deep, got more")
        root.children = self._expanded(root, where, folder, folder, set(), 1)
        _drop_needless(root)
        _check_copies(root, where)
        _check_counts(root, where)
        compiler = _compiler(root)
        meshes = compiler.get("meshdir") or compiler.get("assetdir") or ""
        strip = compiler.get("strippath") == "true"
        for node in root.walk():
            name = posix(node.attributes.get("file", ""))
            at = f"{where}: <{node.tag}> in line {node.line}"
            if node.tag == "model" and not name:  # the compiler only says "unknown exception"
                raise LoadError(f"{at}: file is missing")
            if not name or node.tag == "key":
                continue
            if node.tag == "model":
                node.attributes["file"] = self._attached(at, str(PurePosixPath(folder, name)), depth)
                continue
            if node.tag in ("mesh", "hfield"):
                node.attributes.setdefault("name", PurePosixPath(name).stem)  # as MuJoCo calls it
            short = PurePosixPath(name).name if strip else name
            found, data = self.files.read(at, [str(PurePosixPath(folder, meshes, short))])
            node.attributes["file"] = self._keep(at, PurePosixPath(posix(found)).suffix, data)
        return write(root)

    def _expanded(self, node: Node, where: str, folder: str, base: str, seen: set[str], level: int) -> list[Node]:
        """The children of an element, with the elements of included files in place of every <include>.

        folder, base : of the model, and of the file which this element is in. seen : files that were included before.
        """
        self.elements += len(node.children)
        if level > MAX_DEPTH or self.elements > MAX_ELEMENTS:
            raise LoadError(f"{where}: with its includes the file must have at most {MAX_ELEMENTS:,} elements, {MAX_DEPTH} deep")
        children: list[Node] = []
        for child in node.children:
            if child.tag == "include":
                children += self._included(child, where, folder, base, seen, level)
            else:
                child.children = self._expanded(child, where, folder, base, seen, level + 1)
                children.append(child)
        return children

    def _included(self, include: Node, where: str, folder: str, base: str, seen: set[str], level: int) -> list[Node]:
        at = f"{where}: <include> in line {include.line}"
        name = posix(include.attributes.get("file", ""))
        if not name:
            raise LoadError(f"{at}: file is missing")
        found, data = self.files.read(at, _places(name, folder, base))
        if found in seen:
            raise LoadError(f"{at}: file {name!r} is included already")
        seen.add(found)
        root = parse(data, found)
        if not root.children:
            raise LoadError(f"{at}: file {name!r} must have elements, got none")
        for node in root.walk():
            node.line = include.line
        inner = str(PurePosixPath(base, name).parent)
        return self._expanded(root, where, folder, inner, seen, level + 1)

    def _attached(self, at: str, name: str, depth: int) -> str:
        found, data = self.files.read(at, [name])
        root = parse(data, found)
        if root.tag != "mujoco":
            raise LoadError(f"{at}: file {name!r} must be an MJCF file, got <{root.tag}>")
        text = self.prepare(root, found, str(PurePosixPath(name).parent), depth + 1)
        return self._keep(at, ".xml", text.encode())

    def _keep(self, at: str, suffix: str, data: bytes) -> str:
        """Keep an asset and return its new name."""
        self.size += len(data)
        if self.size > MAX_ASSETS:
            raise LoadError(f"{at}: the assets must be at most {MAX_ASSETS // 2**20} MiB in all, got more")
        name = f"file{len(self.assets)}{suffix}"
        self.assets[name] = data
        return name


def _places(name: str, folder: str, base: str) -> Sequence[str]:
    """Where an included file may be: from the folder of the model, then from that of the file that includes it."""
    return list(dict.fromkeys((str(PurePosixPath(folder, name)), str(PurePosixPath(base, name)))))


def _compiler(root: Node) -> dict[str, str]:
    """Where the compiler looks for files, as all <compiler> elements say, the last first; taken out of them."""
    found: dict[str, str] = {}
    for node in root.children:
        if node.tag == "compiler":
            found |= {name: posix(node.attributes.pop(name)) for name in DIRECTORIES if name in node.attributes}
    return found


def _drop_needless(root: Node) -> None:
    for node in root.walk():
        node.children = [child for child in node.children if child.tag not in NEEDLESS]
        if node.tag in ("material", "light"):
            node.attributes.pop("texture", None)


def _check_copies(root: Node, where: str) -> None:
    """The compiler would go on for hours before it runs out of memory."""
    stack, total = [(root, 1)], 0
    while stack:
        node, copies = stack.pop()
        if node.tag == "replicate":
            copies *= max(_integer(node.attributes.get("count", "")), 1)
        total += copies
        if total > MAX_ELEMENTS or copies > MAX_COPIES:
            raise LoadError(f"{where}: <replicate> must make at most {MAX_COPIES:,} copies, line {node.line} makes more")
        stack += [(child, copies) for child in node.children]


def _check_counts(root: Node, where: str) -> None:
    """The compiler would fill its memory, or its time."""
    for node in root.walk():
        if node.tag == "flexcomp":
            words, most, what = node.attributes.get("count", "").split(), MAX_COPIES, "points"
        elif node.tag == "hfield":
            words, most, what = [node.attributes.get(word, "") for word in ("nrow", "ncol")], MAX_HEIGHTS, "heights"
        else:
            continue
        count = prod(max(_integer(word), 1) for word in words)
        if count > most:
            raise LoadError(f"{where}: <{node.tag}> in line {node.line} must have at most {most:,} {what}, got more")


def _integer(text: str) -> int:
    """What a reader that is not strict takes the text for; 0 if it is no number."""
    try:
        return int(min(float(text), float(MAX_ELEMENTS)))
    except (ValueError, OverflowError):
        return 0
