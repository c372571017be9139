"""One file of a JSON header and named arrays: a numpy .npz without compression, read so that no file can do harm.

numpy's own reader would believe a file's header about shapes and evaluate it. Here the sizes that a file claims must be those it
has, dtypes and shapes must be those asked for, nothing is unpickled, and whatever is wrong is a ValueError.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

HEADER = "header"
MOST_ENTRIES = 1000
MAGIC = re.compile(rb"\x93NUMPY\x01\x00(..)", re.DOTALL)
NPY = re.compile(rb"\{'descr': '([<|][fiu][1-8])', 'fortran_order': False, 'shape': \(([0-9, ]{0,80})\), \} *\n")
# What reading a broken zip file raises, and what a hostile JSON does
BROKEN = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, OverflowError,
    IndexError, KeyError, RecursionError, MemoryError,
)  # fmt: skip


def write(path: str | PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write `header` and `arrays` to one file. The same content gives the same bytes."""
    text = np.frombuffer(json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii"), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{HEADER: text, **arrays})
    Path(path).write_bytes(buffer.getbuffer())


class Archive:
    """What `write` wrote, read from `path`; ValueError, "<path>: ...", where it is broken. OSError where there is no such file.

    Attributes
    ----------
    header : a dict, its content not checked.
    names : of the arrays.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)
        if Path(path).exists() and not Path(path).is_file():
            self.refuse("not a file")  # devices may never end
        data = Path(path).read_bytes()
        try:
            self._entries = _entries(data)
            text = self._read(HEADER, "|u1", 1)
            header = json.loads(text.tobytes().decode("ascii"), parse_constant=_refuse)
        except BROKEN as error:
            self.refuse(f"not a file that costate wrote, or broken ({_brief(error)})")
        if not isinstance(header, dict):
            self.refuse("not a file that costate wrote, its header is no object")
        self.header: dict[str, Any] = header
        self.names = frozenset(self._entries) - {HEADER}

    def array(self, name: str, dtype: str, shape: tuple[int | None, ...]) -> np.ndarray:
        """The array called `name`, which must have this dtype and shape; None: any length."""
        try:
            array = self._read(name, dtype, len(shape))
        except BROKEN as error:
            self.refuse(f"array {name!r} is broken or missing ({_brief(error)})")
        if any(want is not None and want != n for want, n in zip(shape, array.shape, strict=True)):
            wanted = ["n" if n is None else n for n in shape]
            self.refuse(f"array {name!r} must have shape {wanted}, got {list(array.shape)}")
        return array

    def refuse(self, why: str) -> NoReturn:
        """Raise ValueError that names the file."""
        raise ValueError(f"{self.path}: {why}") from None

    def _read(self, name: str, dtype: str, ndim: int) -> np.ndarray:
        if name not in self._entries:
            raise ValueError("there is none")
        data = self._entries[name]
        magic = MAGIC.match(data)
        start = 10 + int.from_bytes(magic[1], "little") if magic else 0
        head = NPY.fullmatch(data[10:start])
        if head is None or head[1].decode() != dtype:
            raise ValueError(f"not an array of {dtype}")
        shape = tuple(int(n) for n in head[2].decode().split(",") if n.strip())
        if len(shape) != ndim or prod(shape) * np.dtype(dtype).itemsize != len(data) - start:
            raise ValueError("its size is not what it claims")
        return np.frombuffer(data, dtype, offset=start).reshape(shape).copy()


def _entries(data: bytes) -> dict[str, bytes]:
    """Name -> content of all arrays in a zip file; without compression, all of them together are no larger than the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        infos = file.infolist()
        if len(infos) > MOST_ENTRIES or len({info.filename for info in infos}) < len(infos):
            raise ValueError("too many entries, or two of one name")
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos) or sum(info.file_size for info in infos) > len(data):
            raise ValueError("compressed, or sizes that are none")
        return {info.filename.removesuffix(".npy"): file.read(info) for info in infos}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"header holds {constant}")


def _brief(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:120] if lines else type(error).__name__
