"""costate info, run and bench."""

import sys

import pytest

import costate as cs
from costate.cli import bench, examples
from tests.cli.models import call

EXAMPLE = '"""Says what it was told."""\nimport sys\nprint("told", *sys.argv[1:])\nsys.exit(3)\n'
BENCH = {
    "__init__.py": "",
    "__main__.py": "NAMES = ('speed', 'memory')\ndef one_core(): pass\n",
    "speed.py": (
        "from types import SimpleNamespace\n"
        "def run(quick):\n"
        "    yield SimpleNamespace(title='Speed', columns=('what', 'us'), rows=[('a [b] step', '1.5')],\n"
        "        targets=[('fast', True), ('faster', False)], notes=f'quick {quick}')\n"
    ),
    "memory.py": "import a_package_that_nobody_has\n",
}


def test_info(capsys):
    ran = call(capsys, "info")
    assert ran.code == 0 and ran.err == ""
    for word in (cs.__version__, cs.instruction_set(), "threads", "torch", "GPU"):
        assert word in ran.out


def test_info_as_json(capsys):
    facts = call(capsys, "info", "--json").json
    assert facts["version"] == cs.__version__ and facts["threads"] == cs.get_num_threads()
    assert facts["instruction_set"] == cs.instruction_set() and bool(facts["gpu"]["names"]) == (facts["gpu"]["reason"] is None)


def test_examples_are_listed(capsys):
    ran = call(capsys, "run")
    assert ran.code == 0 and "chain" in ran.out and "mass of a chain" in ran.out
    listed = call(capsys, "run", "--json").json["examples"]
    assert {"chain", "pile", "throw_ball"} <= {example["name"] for example in listed}
    assert all(example["about"] for example in listed)


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """An installation without repository, in an empty folder."""
    monkeypatch.setattr(cs, "__file__", str(tmp_path / "lib" / "costate" / "__init__.py"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


def test_without_a_repository(capsys, elsewhere):
    assert "in the folder examples/" in call(capsys, "run", "chain").complaint
    assert "in the folder bench/" in call(capsys, "bench").complaint


def test_run_an_example(capfd, elsewhere):
    (elsewhere / "examples").mkdir()
    (elsewhere / "examples/echo.py").write_text(EXAMPLE)
    assert list(examples.find_examples()) == ["echo"]
    ran = call(capfd, "run", "echo", "--quick", "7")
    assert ran.code == 3 and ran.out == "told --quick 7\n" and ran.err == ""
    assert "no example named 'eco'; did you mean 'echo'?" in call(capfd, "run", "eco").complaint


def test_run_an_example_as_json(capfd, elsewhere):
    (elsewhere / "examples").mkdir()
    (elsewhere / "examples/echo.py").write_text(EXAMPLE)
    for words in (["--json", "echo", "--quick"], ["echo", "--quick", "--json"]):
        ran = call(capfd, "run", *words)
        assert ran.code == 3 and ran.json["exit_code"] == 3 and ran.json["arguments"] == ["--quick"]
        assert "told --quick" in ran.err


@pytest.fixture
def benches(elsewhere, monkeypatch):
    (elsewhere / "bench").mkdir()
    for name, text in BENCH.items():
        (elsewhere / "bench" / name).write_text(text)
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    for name in [name for name in sys.modules if name == "bench" or name.startswith("bench.")]:
        monkeypatch.delitem(sys.modules, name)
    yield elsewhere
    for name in [name for name in sys.modules if name == "bench" or name.startswith("bench.")]:
        del sys.modules[name]


def test_bench(capsys, benches):
    assert bench.find_bench().NAMES == ("speed", "memory")
    ran = call(capsys, "bench", "speed")
    assert ran.code == 0 and "a [b] step" in ran.out and "missed: faster" in ran.out and "1 of 2 targets missed" in ran.out
    found = call(capsys, "bench", "speed", "--quick", "--json").json
    assert found["missed"] == 1 and found["tables"][0]["rows"] == [["a [b] step", "1.5"]]
    assert found["tables"][0]["notes"] == "quick True"


def test_bad_benches(capsys, benches):
    assert "did you mean 'speed'?" in call(capsys, "bench", "sped").complaint
    assert "need a_package_that_nobody_has" in call(capsys, "bench", "memory").complaint
