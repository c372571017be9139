"""The built extension: its type stubs are current, and no code of one instruction set leaks into another."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from costate._native import _core

ROOT = Path(__file__).parents[1]
OBJECTS = ROOT / f"build/ext-{sys.implementation.cache_tag}/CMakeFiles"


def test_stubs_are_up_to_date(tmp_path):
    generated = tmp_path / "_core.pyi"
    folder = Path(_core.__file__).parent
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_core", "-i", folder, "-o", generated]
    subprocess.run(command, check=True)
    assert (ROOT / "costate/_native/_core.pyi").read_text() == generated.read_text(), "run make stubs"


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
def test_no_function_is_shared_between_instruction_sets():
    # The linker keeps one copy of an inline function. If two instruction sets define the same one, the baseline may end
    # up running AVX-512 code and crash an older machine; the inner namespace CS_ISA of config.h keeps them apart.
    seen: dict[str, str] = {}
    for path in sorted(OBJECTS.glob("*_*_*.dir/**/*.o")):
        isa = re.search(r"_(base|avx2|avx512)_(double|float)\.dir", str(path))
        assert isa, path
        lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
        for symbol in (line.split()[-1] for line in lines if re.search(r" [WVuT] ", line)):
            assert seen.setdefault(symbol, isa[1]) == isa[1], f"{symbol} is in both {seen[symbol]} and {isa[1]}"
    assert seen, f"no objects in {OBJECTS}: run make build"
