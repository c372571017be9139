"""The process that MuJoCo's compiler runs in. Started by compile.py as a script: it imports nothing of costate.

It reads requests from its standard input and writes answers to its standard output, until the input ends. Both are frames: the
length of a JSON header, the header, and the blobs whose lengths the header lists. The compiler may crash, hang or ask for all
memory; that is why it is here, behind limits.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
import warnings
from importlib import import_module
from typing import Any, BinaryIO

MOST_WARNINGS = 100
LONGEST = 1e6  # s
NO_MEMORY = "the model needs more memory than the compiler may have"


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], list[bytes]] | None:
    """Header and blobs of the next frame, None at the end."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    header = json.loads(stream.read(struct.unpack("<Q", head)[0]))
    return header, [stream.read(size) for size in header["sizes"]]


def write_frame(stream: BinaryIO, header: dict[str, Any], blobs: list[bytes]) -> None:
    """Write one frame."""
    text = json.dumps({**header, "sizes": [len(blob) for blob in blobs]}).encode()
    stream.write(struct.pack("<Q", len(text)) + text)
    for blob in blobs:
        stream.write(blob)
    stream.flush()


def limit_memory(size: int) -> None:
    """Bound the address space (bytes) where the system can."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return
    for kind, most in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def limit_time(seconds: float) -> None:
    """Bound the time that this process may still compute, where the system can: whoever would end it may be gone."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows
        return
    most = int(time.process_time() + min(seconds * (os.cpu_count() or 1), LONGEST)) + 2  # meshes have threads
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def compile_model(header: dict[str, Any], blobs: list[bytes]) -> tuple[bytes, list[str]]:
    """The compiled model as the bytes of an MJB file, and the names of keyframes that do not fit it any more."""
    import numpy as np

    mujoco: Any = import_module("mujoco")
    text, *files = blobs
    assets = dict(zip(header["names"], files))
    models = {name: assets.pop(name) for name in header["names"] if name.endswith(".xml")}  # which the text attaches
    spec = mujoco.MjSpec.from_string(text.decode(), include=models, assets=assets)
    if header["fuse"] is not None:
        spec.compiler.fusestatic = header["fuse"]
    lost: list[str] = []
    if header["floating"] is not None and set_base(mujoco, spec, header["floating"]):
        for i, key in enumerate(list(spec.keys)):
            lost.append(key.name or f"key{i}")
            spec.delete(key)
    model = spec.compile()
    count = mujoco.mj_sizeModel(model)
    if count > header["most"]:
        raise ValueError(f"the compiled model is too large: {count / 2**20:.0f} MiB")
    buffer = np.empty(count, np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes(), lost


def set_base(mujoco: Any, spec: Any, floating: bool) -> bool:
    """Give the bodies on the world free joints, or take them away; return whether there was anything to do."""
    changed = False
    for body in spec.worldbody.bodies:
        free = [joint for joint in body.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
        if floating and not body.joints and not body.mocap:
            body.add_freejoint()
            changed = True
        elif not floating:
            for joint in free:
                spec.delete(joint)
                changed = True
    return changed


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    while (frame := read_frame(requests)) is not None:
        header, blobs = frame
        limit_time(header["seconds"])
        try:
            with warnings.catch_warnings(record=True) as caught:  # the bindings make Python warnings of MuJoCo's
                warnings.simplefilter("always")
                model, lost = compile_model(header, blobs)
        except MemoryError:
            write_frame(answers, {"error": NO_MEMORY}, [])
        except Exception as error:
            said = str(error) or type(error).__name__
            write_frame(answers, {"error": f"{said} (most often: {NO_MEMORY})" if "unknown exception" in said else said}, [])
        else:
            said = [str(warning.message) for warning in caught[:MOST_WARNINGS]]
            write_frame(answers, {"warnings": said, "lost": lost}, [model])


def main() -> None:
    """Set the limits, and serve. Whatever libraries print must not end up among the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    settings = json.loads(sys.argv[1])
    sys.path[:] = settings["path"]
    limit_memory(settings["memory"])
    try:
        import_module("mujoco")  # before the first request, so that the time limit is one of the compiler
    except Exception as error:
        write_frame(answers, {"error": f"{type(error).__name__}: {error}"}, [])
        return
    write_frame(answers, {}, [])
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
