"""Numbers of a URDF as they are found in the wild: with commas, units, dots too many, or left over from a macro."""

from __future__ import annotations

import re

import numpy as np

from costate.load.check import Node
from costate.load.errors import LoadError

LARGEST = 1e15  # of a size, mass, ...: what is larger overflows somewhere
SHOWN = 80  # characters of a bad attribute in a message

NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"[-+]?inf(?:inity)?", re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
OPTENV = re.compile(r"\$\(optenv\s+[^\s)]+([^)]*)\)")


def scan(text: str, count: int) -> tuple[list[float], bool]:
    """The numbers in a text that should have `count` of them, and whether it is written as it should be.

    ValueError, with what it must be, if it cannot be read.
    """
    plain = OPTENV.sub(r"\1", text)
    if "${" in plain or "$(" in plain:
        raise ValueError("a number, not a macro of xacro: expand the file with xacro first")
    words = plain.split()
    if len(words) == count and all(DECIMAL_COMMA.fullmatch(word) or NUMBER.fullmatch(word) for word in words):
        words = [word.replace(",", ".") for word in words]
    else:
        words = re.sub("[,;]", " ", plain).split()
    values = []
    for word in words:
        match = NUMBER.match(word) or INFINITE.fullmatch(word)
        if match is None:
            raise ValueError("a number" if count == 1 else f"{count} numbers")
        values.append(float(match[0]))
    exact = plain == text and len(values) == count and all(NUMBER.fullmatch(w) or INFINITE.fullmatch(w) for w in text.split())
    return values, exact


def vector(node: Node | None, name: str, default: tuple[float, ...], where: str, notes: list[str]) -> np.ndarray:
    """The numbers of an attribute, as many as `default` has; a note says where they were read with good will."""
    count = len(default)
    text = node.attributes.get(name, "") if node is not None else ""
    if node is None or not text.strip():
        return np.array(default)
    values, exact = _scan(node, name, count, where)
    if len(values) == 1 and name == "scale":
        values = values * count
    elif len(values) < count and name == "size":
        raise LoadError(f"{where}: <{node.tag} {name}> must be {count} numbers, got {text[:SHOWN]!r}")
    values = [*values[:count], *[0.0] * (count - len(values))]
    if not exact:
        notes.append(f"{where}: <{node.tag} {name}> is {text[:SHOWN]!r}, read as {' '.join(f'{value:g}' for value in values)}")
    for value in values:
        if not abs(value) <= LARGEST:
            raise LoadError(f"{where}: <{node.tag} {name}> must be finite and at most {LARGEST:g}, got {text[:SHOWN]!r}")
    return np.array(values)


def number(node: Node | None, name: str, default: float, where: str, notes: list[str]) -> float:
    """One number of an attribute; see vector."""
    return float(vector(node, name, (default,), where, notes)[0])


def optional(node: Node | None, name: str, where: str, notes: list[str]) -> float | None:
    """One number of an attribute, None where it is missing, and plus or minus LARGEST where it is infinite."""
    text = node.attributes.get(name, "") if node is not None else ""
    if node is None or not text.strip():
        return None
    values, exact = _scan(node, name, 1, where)
    value = min(max(values[0], -LARGEST), LARGEST)
    if not exact:
        notes.append(f"{where}: <{node.tag} {name}> is {text[:SHOWN]!r}, read as {value:g}")
    return value


def _scan(node: Node, name: str, count: int, where: str) -> tuple[list[float], bool]:
    text = node.attributes[name]
    try:
        values, exact = scan(text, count)
        if not values:
            raise ValueError("a number" if count == 1 else f"{count} numbers")
    except ValueError as error:
        raise LoadError(f"{where}: <{node.tag} {name}> must be {error}, got {text[:SHOWN]!r}") from None
    return values, exact
