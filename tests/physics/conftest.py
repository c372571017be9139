"""Shared by the tests of batches: every instruction set, and the settings of the process as they were."""

import pytest

import costate as cs
from costate._native import _core

SETS = ("base", "avx2", "avx512")


@pytest.fixture
def restored():
    """Threads and instruction set, after the test as before it."""
    threads, best = cs.get_num_threads(), cs.instruction_set()
    yield
    cs.set_num_threads(threads)
    _core.set_instruction_set(best)


@pytest.fixture(params=SETS)
def instructions(request, restored):
    """The test under each instruction set that this machine has."""
    try:
        _core.set_instruction_set(request.param)
    except ValueError:
        pytest.skip(f"{request.param} is not available on this machine")
    return request.param
