"""Where the files of a model are: in its folder, in folders that the user allows, or given as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from costate.load.errors import LoadError

MAX_ASSETS = 512 * 2**20  # bytes of all files of a model


class Files(Protocol):
    """Where the files of a model come from."""

    def read(self, where: str, names: Sequence[str]) -> tuple[str, bytes]:
        """The first of `names` that exists: what it is called, and its bytes; `where` starts error messages."""
        ...


@dataclass(frozen=True)
class Folder:
    """Files in the folder of a model, or in further ones that are allowed."""

    folder: Path
    search: tuple[Path, ...] = ()

    def read(self, where: str, names: Sequence[str]) -> tuple[str, bytes]:
        """See `Files`."""
        for name in names:
            path = self.find(where, name)
            if path is not None:
                return str(path), read_file(path, where)
        raise LoadError(f"{where}: file {names[0]!r} does not exist in {self._places()}")

    def find(self, where: str, name: str) -> Path | None:
        """The file called `name`, None if it does not exist; LoadError if it is outside of all allowed folders."""
        outside = False
        roots = [root.resolve() for root in (self.folder, *self.search)]
        try:
            for root in roots:
                path = (root / posix(name)).resolve()  # follows links, too
                if not any(path.is_relative_to(allowed) for allowed in roots):
                    outside = True
                elif path.is_file():
                    return path
        except (OSError, ValueError, RuntimeError):  # too long, with null characters, links in a circle
            raise LoadError(f"{where}: {name[:200]!r} is no name of a file") from None
        if outside:
            raise LoadError(f"{where}: file {name!r} is outside of {self._places()}; allow its folder with search=[...]")
        return None

    def _places(self) -> str:
        return " and ".join(repr(str(folder)) for folder in (self.folder, *self.search))


@dataclass(frozen=True)
class Given:
    """Files that are given as bytes, by name."""

    assets: Mapping[str, bytes]

    def read(self, where: str, names: Sequence[str]) -> tuple[str, bytes]:
        """See `Files`."""
        for name in names:
            for known, data in self.assets.items():
                if PurePosixPath(posix(known)) == PurePosixPath(posix(name)):
                    return known, bytes(data)
        given = ", ".join(map(repr, self.assets)) or "none"
        raise LoadError(f"{where}: file {names[0]!r} is not among the assets that were given: {given}")


def posix(name: str) -> str:
    """A file name with forward slashes; files made on other systems have backward ones."""
    return name.replace("\\", "/")


def read_file(path: Path, where: str) -> bytes:
    """The bytes of a file, or a LoadError; `where` starts error messages."""
    try:
        size = path.stat().st_size
        if size > MAX_ASSETS:
            raise LoadError(f"{where}: file {str(path)!r} must be at most {MAX_ASSETS // 2**20} MiB, got {size / 2**20:.1f} MiB")
        return path.read_bytes()
    except OSError as error:
        raise LoadError(f"{where}: file {str(path)!r} cannot be read: {error.strerror or error}") from None
