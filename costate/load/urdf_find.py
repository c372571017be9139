"""Where the mesh files of a URDF are: package:// and relative paths, never outside the folders that are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from costate.load.errors import LoadError
from costate.load.files import posix, read_file

FIND = re.compile(r"\$\(find\s+([^)\s]+)\)/*")
SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.]+):/{1,2}")  # package:/ with one slash is found too


@dataclass
class Places:
    """Folders in which, and below which, mesh files may be; and files that are given as bytes, by name."""

    folders: Sequence[Path]
    given: Mapping[str, bytes] = field(default_factory=dict)

    def get(self, filename: str, where: str) -> tuple[str, bytes] | None:
        """The path and the bytes of the file that a mesh's filename means; None if there is none, LoadError if it is outside."""
        names = _names(filename)
        known = {PurePosixPath(posix(name)): name for name in self.given}
        for name in (*names, *(name.rsplit("/", 1)[-1] for name in names)):
            if PurePosixPath(name) in known:
                key = known[PurePosixPath(name)]
                return key, bytes(self.given[key])
        path = self._find(filename, where)
        return None if path is None else (str(path), read_file(path, where))

    def _find(self, filename: str, where: str) -> Path | None:
        outside = False
        allowed = [folder.resolve() for folder in self.folders]
        for candidate in _candidates(filename, allowed):
            try:
                path = candidate.resolve()  # follows links, too
                if not any(path.is_relative_to(folder) for folder in allowed):
                    outside = True
                elif path.is_file():
                    return path
            except (OSError, ValueError, RuntimeError):  # names that are too long, or links in a ring: no such file
                continue
        if outside:
            places = " and ".join(repr(str(folder)) for folder in self.folders)
            raise LoadError(f"{where}: mesh file {filename[:200]!r} is outside of {places}; allow its folder with search=[...]")
        return None


def _split(filename: str) -> tuple[str, str]:
    """The scheme of a filename, such as "package", and the rest."""
    name = FIND.sub(r"package://\1/", posix(filename.strip()))
    scheme = SCHEME.match(name)
    return ("", name) if scheme is None else (scheme[1].lower(), name[scheme.end() :])


def _names(filename: str) -> list[str]:
    """The path in a filename without scheme, and without the name of a package."""
    scheme, rest = _split(filename)
    if scheme not in ("package", "model"):
        return [rest]
    return [rest.lstrip("/"), rest.lstrip("/").partition("/")[2]]


def _candidates(filename: str, folders: Sequence[Path]) -> list[Path]:
    """Places where the file may be, best first. Of package://name/rest the package may be a folder, or the folder itself."""
    scheme, rest = _split(filename)
    if scheme in ("", "file"):
        return [folder / rest for folder in folders]  # of an absolute path, only that remains
    if scheme not in ("package", "model"):
        return []
    whole, inner = _names(filename)
    package = whole.partition("/")[0]
    named = [folder / inner for folder in folders if folder.name == package and inner]
    return [*named, *(folder / whole for folder in folders), *(folder / inner for folder in folders if inner)]
