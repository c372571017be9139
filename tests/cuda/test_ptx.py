"""What NVRTC makes of kernels, run on the CPU as PTX: the engine's bits.

What only machine code can spoil, test_gpu.py finds.
"""

from __future__ import annotations

import platform
import shutil

import pytest
import torch

import costate as cs
from costate._native.cuda import build, parts
from tests.cuda import nvrtc, ptx
from tests.cuda.on_ptx import OnPtx, lying, same_bits, same_gradients
from tests.cuda.scenes import WORLDS

pytestmark = [
    pytest.mark.skipif(nvrtc.library() is None, reason=f"needs the package {nvrtc.PACKAGE}"),
    pytest.mark.skipif(not shutil.which("g++") or platform.machine() != "x86_64", reason="needs g++ on x86-64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def keep_cupy(monkeypatch):
    monkeypatch.setattr(build, "require_cupy", build.require_cupy)  # which the engine replaces


def cases():
    """Kernels by one thread and by teams, compiled well and quickly, in both precisions."""
    for name, outside, quick, dtype in (
        ("arm", False, False, torch.float64), ("quadruped", False, False, torch.float32),
        ("quadruped", False, True, torch.float64), ("ant", True, False, torch.float32), ("loop", True, True, torch.float64),
    ):  # fmt: skip
        words = (name, "teams" if outside else "threads", "quick" if quick else "well", str(dtype)[6:])
        mark = pytest.mark.slow if outside or quick else pytest.mark.full
        yield pytest.param(name, outside, quick, dtype, id=", ".join(words), marks=() if name == "arm" else mark)


@pytest.mark.parametrize(("name", "outside", "quick", "dtype"), [*cases()])
def test_rollouts(name, outside, quick, dtype, tmp_path):
    world = WORLDS[name]
    model = world.build()
    q, v, u = world.inputs(model, 3, 4, dtype)
    engine = OnPtx(model, tmp_path, outside=outside, quick=quick)
    assert same_bits(engine, world.simulator(model, dtype=dtype), cs.State(q, v), u)
    assert sum(count.total() for count in engine.count().values()) > 1000


@pytest.mark.slow
def test_parts_of_a_step(tmp_path, monkeypatch):
    """In float32, with matrices in registers; and that each part is counted."""
    monkeypatch.setattr(parts, "better", lambda *_: True)
    worlds = lying(4, 2)
    engine = OnPtx(worlds.model, tmp_path, outside=True)
    assert same_bits(engine, worlds.simulator(), worlds.start, worlds.controls)
    # which has the implicit one to compare itself with
    assert same_gradients(engine, worlds.simulator(gradient="exact"), worlds.start, worlds.controls)
    count = engine.count()
    assert {(key.adjoint, key.part) for key in count} == {(False, k) for k in range(6)} | {(True, k) for k in range(7)}
    assert all("held_passes" in {name for _, chain in count[key] for name in chain} for key in count if key.part in (3, 5))


def test_what_is_not_known_is_an_error():
    with pytest.raises(NotImplementedError, match=r"tex\.2d"):
        ptx.translate(".visible .entry call()\n{\ntex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\nret;\n}")
