"""Mutated files: each loads and steps, or is refused with a LoadError; no crash, no hang, no memory without bounds.

The cases are in mutations.py and bombs.py, what is asked of each in fuzzing.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from costate.load import LoadError, compile, load_string
from tests.load.fuzzing import MOST_MEMORY, ROOT, Outcome, Worker, report, run
from tests.load.mutations import case

ALL, SOME = 5_000, 150
LEAST_LOADED, LEAST_REFUSED = 0.2, 0.2  # of all: else the mutations are too wild, or too tame, to find anything
BODY = '<body name="b"><joint/><geom size=".1" pos="0 0 1"/></body>'
FINE = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"
NO_NUMBER = f'<mujoco><option gravity="nan 0 0"/><worldbody>{BODY}</worldbody></mujoco>'  # which MuJoCo warns of
HUGE = (
    '<mujoco><asset><hfield name="h" nrow="90000" ncol="90000" size="1 1 1 1"/></asset>'
    f'<worldbody><geom type="hfield" hfield="h"/>{BODY}</worldbody></mujoco>'
)


def is_well(outcomes: list[Outcome]) -> bool:
    """No bugs, and enough of both ends."""
    loaded = sum(outcome.kind == "loaded" for outcome in outcomes)
    balanced = loaded > LEAST_LOADED * len(outcomes) and len(outcomes) - loaded > LEAST_REFUSED * len(outcomes)
    return balanced and not any(outcome.bug for outcome in outcomes)


@pytest.mark.slow
def test_mutated_files_load_or_are_refused():
    outcomes = list(run(range(0, ALL, ALL // SOME)))
    assert is_well(outcomes), report(outcomes)


@pytest.mark.full
def test_all_mutated_files_load_or_are_refused():
    outcomes = list(run(range(ALL)))
    print(report(outcomes))
    assert is_well(outcomes), report(outcomes)


def test_a_case_is_the_same_every_time():
    assert all(case(index) == case(index) for index in range(0, 300, 7))


def test_the_fuzzer_sees_a_process_that_dies():
    worker = Worker()
    os.kill(worker._process.pid, signal.SIGSEGV)
    outcome = worker.ask(0)
    worker.close()
    assert outcome.bug and outcome.kind == "crash" and "status -11" in report([outcome])


def test_out_of_memory_leaves_no_locks_closed():
    """After it MuJoCo's next warning would wait forever, in a child that goes on as if nothing had been."""
    with pytest.raises(LoadError, match="more memory than the compiler may have"):
        compile.compile_model(HUGE, {}, "huge", settings=compile.Settings(), timeout=5.0)  # load would not even ask
    with pytest.raises(LoadError, match="must be finite"):
        load_string(NO_NUMBER)


def test_an_interrupted_load_does_not_spoil_the_next():
    """Ctrl-C while the compiler is at work: its answer must not be taken for that of another file."""
    assert load_string(FINE).nb == 1
    child = compile._warm
    assert child is not None
    os.kill(child._process.pid, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        load_string(FINE)
    two = f"<mujoco><worldbody>{BODY}<body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    assert load_string(two).nb == 2
    assert compile._warm is not child


def test_a_compiler_without_parent_comes_to_an_end():
    """It has a bound of its own on the time that it computes."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from costate.load import child\nchild.limit_time(0.1)\nwhile True: pass"
    )
    done = subprocess.run([sys.executable, "-c", script, str(ROOT)], timeout=120, check=False)
    assert done.returncode == -signal.SIGXCPU


def test_the_compiler_may_have_no_more_memory_than_the_bound():
    assert compile.MEMORY <= MOST_MEMORY
