"""What a long rollout with its gradient costs in memory, and that nothing leaks. Measured in processes of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MB = 1e6
# The promise: 5,000 steps with backward take less than this above inputs and outputs. Measured 0.1 MB.
PEAK = 5 * MB
STEPS, PILE_STEPS = 5000, 100
# One leaked copy of q and v of 256 worlds is 76 kB a call; the allocator's own noise stays below 1 MB.
REPEATS, LEAK = 50, 2 * MB

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure peak memory")


def probe(*arguments: object) -> tuple[int, int]:
    command = [sys.executable, "-m", "tests.gradients.memory_probe", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    grown, outputs = map(int, run.stdout.split())
    return grown, outputs


def test_long_rollout_with_backward():
    grown, outputs = probe("rollout", STEPS)
    above = grown - outputs
    print(f"{STEPS} steps and backward: grew by {grown / MB:.2f} MB, {above / MB:.2f} MB above the outputs")
    assert grown > 0.5 * outputs, "the outputs themselves must show, or nothing was measured"
    assert above < PEAK


def test_rollout_of_a_pile_with_backward():
    """The sweeps of one step of the heap are 0.3 MB, of all steps 30 MB: they are kept one step at a time."""
    grown, outputs = probe("pile", PILE_STEPS)
    above = grown - outputs
    print(f"{PILE_STEPS} steps of a pile and backward: grew by {grown / MB:.2f} MB, {above / MB:.2f} MB above the outputs")
    assert above < PEAK


def test_no_leak_over_repeated_steps():
    grown, _ = probe("repeat", REPEATS)
    print(f"{REPEATS} steps with backward: grew by {grown / MB:.2f} MB")
    assert grown < LEAK
