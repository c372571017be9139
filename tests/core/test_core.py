"""Runs the C++ test programs that `make core-tests` builds, each as one test."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "tests/core").glob("test_*.cc"))
TIMEOUT_S = 300  # a program that hangs must not hang the whole run


def test_there_are_programs():
    assert SOURCES, "no tests/core/test_*.cc"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_program(source):
    program = ROOT / "build/tests/bin" / source.stem
    assert program.exists(), f"{program} is not built: run make core-tests"
    run = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, f"{source.name} failed with status {run.returncode}:\n{run.stdout}"
