"""The documentation runs: every Python block, every link, and the copy of core/step.h."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", [("docs/check_snippets.py",), ("docs/sync_step.py", "--check")], ids=["snippets", "step.h"])
def test_docs(command):
    run = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
