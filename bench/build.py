"""How long the extension takes to build from nothing, with two jobs, in a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from bench.tables import Table

ROOT = Path(__file__).parents[1]
JOBS = 2
TARGET = 180.0  # s


def run(*, quick: bool) -> list[Table]:
    """One row; there is no quicker form."""
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake") or "cmake"
    ninja = shutil.which("ninja", path=str(Path(sys.executable).parent)) or shutil.which("ninja") or "ninja"
    options = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={sys.executable}"]
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        subprocess.run([cmake, "-S", str(ROOT), "-B", folder, *options], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([cmake, "--build", folder, "--parallel", str(JOBS)], check=True, stdout=subprocess.DEVNULL)
        spent = perf_counter() - start
        size = sum(path.stat().st_size for path in Path(folder).glob("_core*.so"))
    table = Table("Build of the extension from nothing", ("jobs", "seconds", "extension, MB"))
    table.add(JOBS, f"{spent:.0f}", f"{size / 1e6:.1f}")
    table.target(f"under {TARGET:g} s with {JOBS} jobs: {spent:.0f} s", spent < TARGET)
    return [table]
