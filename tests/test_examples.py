"""Every example runs: its check() does what the example shows, small enough for a test."""

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.skipif(not EXAMPLES, reason="there are no examples yet")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what an example writes goes away
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    assert callable(getattr(module, "check", None)), f"{path.name} has no check()"
    module.check()
