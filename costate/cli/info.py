"""costate info: the version, and what it runs on."""

from __future__ import annotations

import os
import platform
from argparse import Namespace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from costate.cli.output import Output

OTHERS = ("numpy", "mujoco", "scipy", "gymnasium")  # packages that costate uses, or can


def run(arguments: Namespace, out: Output) -> int:
    """Print the table, or the object."""
    facts = collect()
    gpu = facts["gpu"]
    rows = [
        ("costate", f"{facts['version']} in {facts['location']}"),
        ("python", f"{facts['python']} on {facts['platform']}"),
        ("processor", facts["processor"]),
        ("instruction set", facts["instruction_set"]),
        ("threads", f"{facts['threads']} of {facts['cores']} cores (COSTATE_NUM_THREADS sets them)"),
        ("torch", facts["torch"]),
        ("GPU", ", ".join(gpu["names"]) if gpu["names"] else f"none: {gpu['reason']}"),
        ("runs on", ", ".join(gpu["devices"]) + (f" ({gpu['missing']})" if gpu["missing"] else "")),
        *((name, text or "not installed") for name, text in facts["packages"].items()),
    ]
    out.table("costate", rows)
    out.result(facts)
    return 0


def collect() -> dict[str, Any]:
    """All that is printed, as JSON takes it."""
    import torch

    import costate as cs

    return {
        "version": cs.__version__,
        "location": os.path.dirname(cs.__file__),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "instruction_set": cs.instruction_set(),
        "threads": cs.get_num_threads(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "gpu": _gpu(),
        "packages": {name: _version(name) for name in OTHERS},
    }


def _gpu() -> dict[str, Any]:
    """Which there are, why there is none, and whether costate can use it, or what is missing."""
    import torch

    names: list[str] = []
    reason = None
    if torch.version.cuda is None:
        reason = "this torch is built without CUDA"
    elif not torch.cuda.is_available():
        reason = "CUDA finds no device, or no driver"
    else:
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    cupy = find_spec("cupy") is not None
    used = bool(names) and cupy
    missing = "for the GPU: pip install 'costate[cuda]'" if names and not cupy else None
    return {"names": names, "reason": reason, "used": used, "missing": missing, "devices": ["cpu", "cuda"] if used else ["cpu"]}


def _processor() -> str:
    """Its name; Linux tells it in a file."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
