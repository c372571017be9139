"""The XML of a file, read by expat with bounds: no document types and entities, not too deep, too large or too many elements.

MuJoCo's own parser sees only what `write` makes of the elements read here: plain tags and attributes in UTF-8, without comments
and text. Elements keep their line numbers, so that MuJoCo's messages tell those of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from costate.load.errors import LoadError

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 200  # of elements: a recursive reader has room for that many
MAX_ELEMENTS = 200_000
MAX_ATTRIBUTES = 200  # of one element
MAX_NAME = 10_000  # characters of tags and attribute names


@dataclass
class Node:
    """An element with its attributes and children; `line` is where it starts in its file."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """This element and all below it, parents first."""
        stack: list[Node] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


class _Reader:
    """Handlers for expat that build the tree, and stop at what is too much."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.root: Node | None = None
        self.count = 0
        self.open: list[Node] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.entity
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.refusal(f"has more than {MAX_ELEMENTS:,} elements")
        if len(self.open) >= MAX_DEPTH:
            raise self.refusal(f"nests elements deeper than {MAX_DEPTH}")
        if len(attributes) > MAX_ATTRIBUTES:
            raise self.refusal(f"has an element with {len(attributes)} attributes, more than {MAX_ATTRIBUTES}")
        if len(tag) > MAX_NAME or any(len(name) > MAX_NAME for name in attributes):
            raise self.refusal(f"has a name longer than {MAX_NAME:,} characters")
        node = Node(tag, attributes, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def end(self, tag: str) -> None:
        self.open.pop()

    def doctype(self, *_: object) -> None:
        raise self.refusal("declares a document type; files with DTDs and entities are not read")

    def entity(self, *_: object) -> None:
        raise self.refusal("declares an entity; files with DTDs and entities are not read")

    def refusal(self, what: str) -> LoadError:
        return LoadError(f"{self.where}: line {self.parser.CurrentLineNumber} {what}")


def parse(data: bytes, where: str) -> Node:
    """The root element of an XML file, or a LoadError; `where` starts error messages."""
    if len(data) > MAX_BYTES:
        raise LoadError(f"{where}: the file must be at most {MAX_BYTES // 2**20} MiB, got {len(data) / 2**20:.1f} MiB")
    stripped = data.lstrip()  # space before the XML declaration is against the rules, but common
    lost = data[: len(data) - len(stripped)].count(b"\n")
    reader = _Reader(where)
    try:
        reader.parser.Parse(stripped, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, "not well formed")
        raise LoadError(
            f"{where}: not well-formed XML, line {error.lineno + lost}, column {error.offset + 1}: {reason}"
        ) from None
    except (ValueError, UnicodeError, LookupError) as error:  # an encoding that does not exist, or LoadError from a handler
        raise error if isinstance(error, LoadError) else LoadError(f"{where}: the text cannot be decoded: {error}") from None
    if reader.root is None:
        raise LoadError(f"{where}: the file must hold an XML element, got none")
    if lost:
        for node in reader.root.walk():
            node.line += lost
    return reader.root


def write(root: Node) -> str:
    """The element as XML text; each element starts at its own line as far as those before it leave room."""
    parts: list[str] = []
    line = 1
    stack: list[Node | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            parts.append(node)
            continue
        missing = max(node.line - line, 0)
        line += missing
        attributes = "".join(f" {name}={_quoted(value)}" for name, value in node.attributes.items())
        parts.append(f"{chr(10) * missing}<{node.tag}{attributes}{'>' if node.children else '/>'}")
        if node.children:
            stack.append(f"</{node.tag}>")
            stack.extend(reversed(node.children))
    return "".join(parts)


def _quoted(value: str) -> str:
    """An attribute's value in quotes; line breaks become references, so that lines can be counted."""
    return quoteattr(value, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
