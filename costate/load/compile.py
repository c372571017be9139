"""MuJoCo's compiler in a process of its own: it may crash, hang or eat memory there, and only a LoadError comes of it.

One child is kept warm, because starting one takes a third of a second, and most models compile in a few milliseconds. Every
process, and every process that is forked from it, has its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from costate.load.child import read_frame, write_frame
from costate.load.errors import LoadError
from costate.load.library import MjModel, mujoco

MEMORY = 2 * 2**30  # bytes of address space of the child, of which it uses some 0.5 GiB before it begins
START_TIME = 60.0  # s, that the child has to import mujoco, also on a machine that is busy
MAX_MODEL = 256 * 2**20  # bytes of a compiled model
MOST_USES = 1000  # of one child: what the compiler loses when it fails must not add up
SPENT = ("memory", "unknown exception")  # in an error: the compiler ran out of memory, and may have left locks closed


@dataclass(frozen=True)
class Settings:
    """How a model is compiled, beyond what its text says; None: as that says.

    fuse : bodies without joints become part of their parents. floating : bodies on the world have free joints, or have none.
    """

    fuse: bool | None = None
    floating: bool | None = None


class Compiled(NamedTuple):
    """A compiled model as the bytes of an MJB file, MuJoCo's warnings, and keyframes that do not fit it any more."""

    data: bytes
    warnings: list[str]
    lost: list[str]


class Child:
    """A process that compiles models, one after the other."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.uses = 0
        self._folder = tempfile.TemporaryDirectory(prefix="costate-")  # where MuJoCo may leave a log
        settings = {"path": sys.path, "memory": MEMORY}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py")), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
        )
        answer = self._exchange(None, [], START_TIME)
        if answer is None or "error" in answer[0]:
            self.close()
            raise LoadError(f"mujoco cannot be imported: {answer[0]['error'] if answer else self.ending()}")

    def ask(self, header: dict[str, Any], blobs: list[bytes], timeout: float) -> tuple[dict[str, Any], list[bytes]] | None:
        """The answer to a request; None if the child ended, or took longer than `timeout` (s) and was ended."""
        self.uses += 1
        return self._exchange(header, blobs, timeout)

    def alive(self) -> bool:
        """Whether it can take requests of this process."""
        return self.owner == os.getpid() and self._process.poll() is None and self.uses < MOST_USES

    def ending(self) -> str:
        """How it ended."""
        code = self._process.wait()
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with status {code}"

    def close(self) -> None:
        """End it."""
        if self.owner != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        self._folder.cleanup()

    def _exchange(self, header: dict[str, Any] | None, blobs: list[bytes], timeout: float) -> Any:
        timer = threading.Timer(timeout, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            if header is not None:
                write_frame(cast(BinaryIO, self._process.stdin), header, blobs)
            return read_frame(cast(BinaryIO, self._process.stdout))
        except (OSError, ValueError):  # the pipe broke, or an answer was cut off
            return None
        finally:
            timer.cancel()


_lock = threading.Lock()
_warm: Child | None = None


def compile_model(text: str, assets: Mapping[str, bytes], where: str, *, settings: Settings, timeout: float) -> Compiled:
    """The compiled model, or a LoadError; `where` starts error messages.

    text : MJCF or URDF without includes; assets : its files by name. timeout : s, for the compiler.
    """
    global _warm
    header = {"names": list(assets), "fuse": settings.fuse, "floating": settings.floating, "most": MAX_MODEL, "seconds": timeout}
    with _lock:
        if _warm is None or not _warm.alive():
            _drop()
            _warm = Child()
        try:
            answer = _warm.ask(header, [text.encode(), *assets.values()], timeout)
        except BaseException:  # Ctrl-C: an answer that is still to come must not be taken for the next one
            _drop()
            raise
        if answer is None:
            reason = _warm.ending()
            _drop()
            raise LoadError(f"{where}: MuJoCo's compiler failed or took longer than {timeout:g} s: {reason}")
        if any(word in answer[0].get("error", "") for word in SPENT):
            _drop()
    if "error" in answer[0]:
        message = " ".join(str(answer[0]["error"]).split())
        raise LoadError(f"{where}: MuJoCo's compiler says: {message}")
    warnings = [" ".join(str(line).split()) for line in answer[0]["warnings"]]
    return Compiled(answer[1][0], warnings, [str(name) for name in answer[0]["lost"]])


def read_model(data: bytes) -> MjModel:
    """The compiled model from the bytes of an MJB file."""
    return mujoco().MjModel.from_binary_path("model.mjb", {"model.mjb": data})


@atexit.register
def _drop() -> None:
    """End the warm child, if there is one; another will be started when it is needed."""
    global _warm
    child, _warm = _warm, None
    if child is not None:
        child.close()
