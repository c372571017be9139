"""From source to a loaded kernel: compiled by NVRTC at first use, kept on disk by the hash of all that it was made from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.errors import LiveError
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from costate._native.cuda import source

_PATIENCE_S = 2.0  # compiling that takes longer is told
_OPTIONS = ("-std=c++17", "-default-device", "--extra-device-vectorization")
# float64 is to agree with the CPU, where a product and a sum fuse only if the source says so
_PRECISION = {"double": ("-fmad=false",), "float": ("-fmad=true",)}


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


def cubin(model: str, definitions: list[str], scalar: str, arch: str, what: str) -> bytes:
    """Machine code of one kernel for `arch`, for example sm_90; from the cache if it was compiled before."""
    nvrtc = require_cupy().cuda.nvrtc
    options = [f"-arch={arch}", *_OPTIONS, *_PRECISION[scalar], *definitions]
    content = repr((nvrtc.getVersion(), options, model, source.entry(), source.headers()))
    path = cache_folder() / f"{hashlib.sha256(content.encode()).hexdigest()}.cubin"
    if path.is_file():
        return path.read_bytes()
    with _told(f"compiling {what} for {arch} (first use of this model; kept in {path.parent})"):
        code = _compile(nvrtc, model, options)
    with contextlib.suppress(OSError):  # a cache that cannot be written to costs time, nothing else
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)  # others never see half a file
    return code


def _compile(nvrtc: Any, model: str, options: list[str]) -> bytes:
    program = nvrtc.createProgram(source.entry(), "cuda.cu", [model.encode()], [source.MODEL.encode()])
    try:
        folder = source.folder()
        nvrtc.compileProgram(program, [*options, f"-I{folder}", f"-I{folder / 'drivers'}"])
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"NVRTC could not compile a kernel:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


@contextlib.contextmanager
def _told(text: str) -> Iterator[None]:
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
