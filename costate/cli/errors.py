"""Mistakes of users: one line each, without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

MISTAKE, REFUSED, INTERRUPTED, BROKEN_PIPE = 2, 1, 130, 141  # exit codes; the last two are those of SIGINT and SIGPIPE


class UserError(Exception):
    """What a user can mend; `code` is the exit code of the process, `elements` what a file was refused for."""

    def __init__(self, message: str, *, code: int = MISTAKE, elements: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.elements = tuple(elements)


@contextmanager
def user_errors(where: str = "") -> Iterator[None]:
    """What the library says about what a user gave becomes a UserError; `where` starts it."""
    try:
        yield
    except UserError:
        raise
    except (OSError, ValueError, TypeError, NotImplementedError, MemoryError, ModuleNotFoundError, KeyError) as error:
        elements = getattr(error, "elements", ())
        if elements:
            message = f"costate cannot represent {'; '.join(elements)}. --lenient goes on without"
            raise UserError(where + message, code=REFUSED, elements=elements) from error
        raise UserError(where + describe(error)) from error


def describe(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, MemoryError):
        return f"not enough memory: {one_line(str(error))}" if str(error) else "not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, KeyError) and error.args:
        return one_line(str(error.args[0]))
    return one_line(str(error)) or type(error).__name__


def one_line(text: str) -> str:
    """Lines joined: those of a list, which begin with a dash, by semicolons."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    joined = " ".join(f"{line[1:].strip()};" if line.startswith("-") else line for line in lines)
    return joined.rstrip(";")


def printable(text: str) -> str:
    """Text as a terminal may get it: names in files can hold anything, also what would steer it."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def existing_file(path: str) -> Path:
    """`path`, if there is such a file; UserError with the name of one that is spelt alike."""
    file = Path(path).expanduser()
    try:
        if file.is_file():
            return file
        if file.is_dir():
            raise UserError(f"{path}: is a folder, a file was expected")
        if file.exists():
            raise UserError(f"{path}: is no regular file")
        near = close(file.name, [entry.name for entry in file.parent.iterdir()]) if file.parent.is_dir() else None
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        raise UserError(f"{str(path)[:80]!r}: {describe(error)}") from None
    if not file.parent.is_dir():
        raise UserError(f"{path}: no such file, there is no folder {str(file.parent)!r}")
    raise UserError(f"{path}: no such file" + (f"; did you mean {str(file.parent / near)!r}?" if near else ""))


def close(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that is spelt most like `name`, if any is."""
    found = difflib.get_close_matches(name, list(names), n=1)
    return found[0] if found else None


def hint(name: str, names: Iterable[str]) -> str:
    """What to say after "no such name": the closest one, or what there is."""
    known = list(names)
    near = close(name, known)
    if near:
        return f"did you mean {near!r}?"
    return f"there are {', '.join(known)}" if known else "there are none"
