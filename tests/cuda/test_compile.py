"""core/ compiles as CUDA device code, wherever nvcc is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests/cuda/compile.cu"
COMMAND = ["nvcc", "-std=c++17", "-arch=sm_90", "-ptx", "-Xcicc", "-O0"]  # to optimise and to assemble would only take time
TIMEOUT_S = 600  # some seconds; a compiler that hangs must not hang the whole run


def test_every_header_is_included():
    text = SOURCE.read_text()
    headers = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "core").rglob("*.h"))
    missing = [header for header in headers if f'#include "../../{header}"' not in text]
    assert not missing, f"{SOURCE.name} does not include {', '.join(missing)}"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc, the CUDA compiler")
@pytest.mark.parametrize("team", [1, 32])
def test_core_compiles_as_device_code(team, tmp_path):
    command = [*COMMAND, f"-DCS_TEAM={team}", SOURCE, "-o", tmp_path / "compile.o"]
    run = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, f"nvcc failed with status {run.returncode}:\n{run.stdout}"
