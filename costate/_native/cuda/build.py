"""From source to a loaded kernel: compiled by NVRTC at first use, kept on disk by the hash of all that it was made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.errors import LiveError
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from costate._native.cuda import compiler, source
from costate._native.cuda.compiler import Job, compiled, keep

_PATIENCE_S = 2.0  # compiling that takes longer is told
# results are to be those of the CPU, where a product and a sum fuse only if the source says so
_OPTIONS = ("-std=c++17", "-default-device", "--extra-device-vectorization", "-fmad=false")
# the compiler's own way to save time, and the first version that is known to have it; each op once, several at a time
_QUICK, _QUICK_SINCE = ("-Ofc=min", "--split-compile=0", "-DCS_QUICK"), (13, 0)


def require_cupy() -> Any:
    """The package, or an error that says what to install."""
    try:
        import cupy  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs CuPy, which compiles and launches the kernels: pip install 'costate[cuda]' "
            "(or the cupy package that fits your CUDA driver)"
        ) from error
    return cupy


def cache_folder() -> Path:
    """Where compiled kernels are kept: COSTATE_CACHE, or costate/ in the user's cache folder."""
    own = os.environ.get("COSTATE_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "costate"


def job(model: str, definitions: list[str], arch: str, *, quick: bool = False) -> Job:
    """A kernel for `arch`, for example sm_90. quick : compiled in a fraction of the time, to run several times slower."""
    nvrtc = require_cupy().cuda.nvrtc
    options = [f"-arch={arch}", *_OPTIONS, *definitions, *_QUICK * quick]
    content = repr((nvrtc.getVersion(), options, model, source.entry(), source.headers()))
    path = cache_folder() / f"{hashlib.sha256(content.encode()).hexdigest()}.cubin"
    return Job(source.entry(), model, source.MODEL, str(source.folder()), options, str(path))


def may_be_quick() -> bool:
    """Whether this NVRTC has a quick way."""
    return tuple(require_cupy().cuda.nvrtc.getVersion()) >= _QUICK_SINCE


def cubin(job: Job, what: str) -> bytes:
    """Machine code; from the cache if it was compiled before."""
    path = Path(job.path)
    if path.is_file():
        return path.read_bytes()
    with told(f"compiling {what} (first use of this model; kept in {path.parent})"):
        code = compiled(require_cupy().cuda.nvrtc, job)
    keep(job, code)
    return code


class Beside:
    """A kernel that another process compiles; it ends on its own, also after this one, and leaves it in the cache."""

    def __init__(self, job: Job) -> None:
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        command = [sys.executable, str(Path(compiler.__file__))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._out, stderr=self._err, start_new_session=True
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:  # if it has failed, `code` says why
            pipe.write(json.dumps(job._asdict()).encode())

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._process.poll() is not None

    def code(self) -> bytes:
        """The machine code, once it is there; raises what went wrong."""
        failed = self._process.wait()
        found = self._err if failed else self._out
        found.seek(0)
        words = found.read()
        if failed:
            raise RuntimeError(f"compiling a kernel in a process of its own failed:\n{words.decode(errors='replace').strip()}")
        return words


@contextlib.contextmanager
def told(text: str) -> Iterator[None]:
    """Say on stderr what takes so long, if it does: on a terminal with the seconds that have passed."""
    bars: list[Progress] = []

    def show() -> None:
        if sys.stderr.isatty():
            columns = (SpinnerColumn(), TextColumn("costate: {task.description}"), TimeElapsedColumn())
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            bar.add_task(text, total=None)
            with contextlib.suppress(LiveError):  # a second one beside the first: that one is enough
                bar.start()
                bars.append(bar)
        else:
            print(f"costate: {text} ...", file=sys.stderr, flush=True)

    timer = threading.Timer(_PATIENCE_S, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        for bar in bars:
            bar.stop()
