"""Names of bodies, joints, sites, motors, constraints: unique within their kind, and found again with a hint on misspelling."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Mapping

WORLD = "world"


def new_name(where: str, kind: str, name: str | None, default: str, taken: Collection[str]) -> str:
    """`name` if nothing has it; if None, `default` or the first unused of default_1, ...; `where` starts error messages."""
    if name is None:
        candidates = itertools.chain((default,), (f"{default}_{i}" for i in itertools.count(1)))
        return next(candidate for candidate in candidates if candidate not in taken)
    if not isinstance(name, str):
        raise TypeError(f"{where}name of a {kind} must be a str, got {name!r}")
    if name in taken:
        raise ValueError(f"{where}there is a {kind} named {name!r} already")
    if name in ("", WORLD):
        raise ValueError(f"{where}{kind} name {name!r} is reserved")
    return name


def find(complaint: str, key: str | int, known: Mapping[str, int], *, also: Collection[str] = ()) -> int:
    """Index of what is given by name or index; `also`: further names to suggest; errors start with `complaint`."""
    if isinstance(key, str) and key in known:
        return known[key]
    if isinstance(key, int) and key in known.values():
        return key
    raise ValueError(f"{complaint} {key!r}; {suggest(key, (*also, *known))}")


def body_or_world(complaint: str, key: str | int | None, known: Mapping[str, int]) -> int:
    """Index of a body, or -1 for the world: None, "world" or -1; errors start with `complaint`."""
    return -1 if key in (None, WORLD, -1) else find(complaint, key, known)


def suggest(name: object, names: Collection[str]) -> str:
    """What to say after 'no such name': the closest one there is, or some of them."""
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(itertools.islice(names, 20))}" if names else "there are none yet"
