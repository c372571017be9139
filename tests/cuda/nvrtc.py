"""NVRTC from its own package, as costate._native.cuda.compiler calls CuPy's: compiles kernels on machines without a GPU."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import metadata
from pathlib import Path

from costate._native.cuda.compiler import Job

PACKAGE = "nvidia-cuda-nvrtc"


class NVRTCError(RuntimeError):
    """What NVRTC calls its status."""


@cache
def library() -> ctypes.CDLL | None:
    """None where the package is not installed."""
    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in files if file.name.startswith("libnvrtc.so")]
    return ctypes.CDLL(str(found[0])) if found else None


def _call(name: str, *arguments: object) -> None:
    nvrtc = library()
    assert nvrtc is not None
    status = getattr(nvrtc, name)(*arguments)
    if status:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise NVRTCError(f"{name}: {nvrtc.nvrtcGetErrorString(status).decode()}")


def _texts(texts: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*texts)


def _bytes(what: str, program: ctypes.c_void_p) -> bytes:
    """What a program has of this: its machine code, or its log."""
    size = ctypes.c_size_t()
    _call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
    held = ctypes.create_string_buffer(size.value)
    _call(f"nvrtcGet{what}", program, held)
    return held.raw


def getVersion() -> tuple[int, int]:
    """Major, minor."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def createProgram(text: str, name: str, headers: list[bytes], names: list[bytes]) -> ctypes.c_void_p:
    """A program to compile."""
    program = ctypes.c_void_p()
    included = (len(headers), _texts(headers), _texts(names))
    _call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), name.encode(), *included)
    return program


def compileProgram(program: ctypes.c_void_p, options: list[str]) -> None:
    """Raises NVRTCError; the log says why."""
    _call("nvrtcCompileProgram", program, len(options), _texts([option.encode() for option in options]))


def getCUBIN(program: ctypes.c_void_p) -> bytes:
    """Machine code."""
    return _bytes("CUBIN", program)


def getProgramLog(program: ctypes.c_void_p) -> str:
    """The compiler's words."""
    return _bytes("ProgramLog", program).rstrip(b"\0").decode()


def destroyProgram(program: ctypes.c_void_p) -> None:
    """Its memory is free."""
    _call("nvrtcDestroyProgram", ctypes.byref(program))


def compiled_ptx(job: Job) -> str:
    """The code that machine code is made of, for any processor of job's generation."""
    program = createProgram(job.entry, "cuda.cu", [job.model.encode()], [job.name.encode()])
    try:
        compileProgram(program, [*job.options, f"-I{job.folder}", f"-I{job.folder}/drivers"])
        return _bytes("PTX", program).rstrip(b"\0").decode()
    except NVRTCError as error:
        raise NVRTCError(getProgramLog(program)) from error
    finally:
        destroyProgram(program)
