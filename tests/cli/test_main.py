"""The command line as a whole: help, version, mistakes, interruptions, pipes, and what it imports."""

import json
import os
import signal
import subprocess
import sys

import pytest

import costate as cs
from costate.cli import main
from costate.cli.parser import COMMANDS
from tests.cli.models import call

# a simulation that says when it has begun, and does not end by itself
ENDLESS = """
import sys
from costate.cli import main, simulate
look = simulate._look
simulate._look = lambda *given: (look(*given), print("begun", flush=True))
sys.exit(main(["simulate", sys.argv[1], "--time", "1000000"]))
"""


def process(*words, **options):
    command = [sys.executable, "-m", "costate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.parametrize("words", [["--help"], ["load", "--help"], ["simulate", "--help"]])
def test_help(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    out = capsys.readouterr().out
    assert ended.value.code == 0 and "usage: costate" in out
    if words == ["--help"]:
        assert all(name in out for name in COMMANDS)


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"costate {cs.__version__}\n"


def test_without_a_command_it_prints_the_help(capsys):
    ran = call(capsys)
    assert ran.code == 0 and "usage: costate" in ran.out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["simulat", "x"], "did you mean 'simulate'?"),
        (["fly"], "must be one of info, load, simulate, bench, run, got 'fly'"),
        (["simulate", "x.xml", "--tim", "1"], "unknown argument --tim; did you mean --time?"),
        (["simulate", "x.xml", "--tim=1"], "did you mean --time?"),
        (["info", "more"], "unknown argument more; see costate info --help"),
        (["simulate"], "the following arguments are required: file"),
        (["simulate", "x.xml", "--time", "soon"], "--time: must be a finite number, got 'soon'"),
        (["simulate", "x.xml", "--time", "nan"], "--time: must be a finite number, got 'nan'"),
        (["simulate", "x.xml", "--dt", "0"], "--dt: must be positive, got '0'"),
        (["simulate", "x.xml", "--dt", "-1"], "--dt: must be positive, got '-1'"),
        (["simulate", "x.xml", "--worlds", "2.5"], "--worlds: must be a positive whole number, got '2.5'"),
        (["load", "x.xml", "--actuators", "torques"], "did you mean 'torque'?"),
    ],
)
def test_mistakes_are_one_line(capsys, words, wanted):
    ran = call(capsys, *words)
    assert ran.code == 2 and ran.out == "" and wanted in ran.complaint


def test_mistakes_as_json(capsys):
    ran = call(capsys, "load", "no such file.xml", "--json")
    assert ran.code == 2 and ran.json["exit_code"] == 2 and ran.json["error"] == ran.complaint


def test_as_a_process(tmp_path):
    ran = process("info", "--json")
    assert ran.returncode == 0 and json.loads(ran.stdout)["version"] == cs.__version__
    ran = process("load", tmp_path / "none.xml")
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and "no such file" in ran.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes as on Unix")
def test_interrupted_and_broken_pipe(saved):
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, saved], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130 and "Traceback" not in err
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "costate", "run"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert ran.returncode == 141 and ran.stderr == ""


def test_interrupted_in_process(capsys, monkeypatch):
    def interrupt(arguments, out):
        raise KeyboardInterrupt

    monkeypatch.setattr("costate.cli.info.run", interrupt)
    ran = call(capsys, "info")
    assert ran.code == 130 and ran.err == "interrupted\n"
