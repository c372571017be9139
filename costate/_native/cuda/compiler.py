"""Compile one kernel with NVRTC, and keep it. Also a program of its own, `python compiler.py < job`, that needs only CuPy."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple


class Job(NamedTuple):
    """One kernel: the texts of its entry and of the model's header (and that one's name), where the others are, options of NVRTC,
    and the file that its machine code goes to."""

    entry: str
    model: str
    name: str
    folder: str
    options: list[str]
    path: str


def compiled(nvrtc: Any, job: Job) -> bytes:
    """Machine code; `nvrtc` is CuPy's."""
    program = nvrtc.createProgram(job.entry, "cuda.cu", [job.model.encode()], [job.name.encode()])
    try:
        nvrtc.compileProgram(program, [*job.options, f"-I{job.folder}", f"-I{job.folder}/drivers"])
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        raise RuntimeError(f"NVRTC could not compile a kernel:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)


def keep(job: Job, code: bytes) -> None:
    """In its file, of which others never see half. A cache that cannot be written to costs time, nothing else."""
    path = Path(job.path)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)


def main() -> None:
    """Read a Job as JSON from stdin, compile it, keep it if that is possible, and write it to stdout."""
    del sys.path[0]  # this folder, whose modules nobody else is to find
    from cupy.cuda import nvrtc  # pyright: ignore[reportMissingImports]

    job = Job(**json.load(sys.stdin))
    os.nice(5)  # whoever waits for results comes first
    code = compiled(nvrtc, job)
    keep(job, code)
    sys.stdout.buffer.write(code)


if __name__ == "__main__":
    main()
