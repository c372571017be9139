"""Every kind of kernel compiles for a GPU, with the model's tables as constants, on any machine that has NVRTC's package.

As quickly as NVRTC can: what first use compiles, too. The kernels of parts and of one model also as well as it can.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from costate._native.cpu import Op
from costate._native.cuda import build, compiler
from costate._native.cuda import engine as gpu
from tests.cuda import nvrtc
from tests.cuda.scenes import WORLDS, in_parts

ARCH = "sm_90"
ELF = b"\x7fELF"
pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason=f"needs the package {nvrtc.PACKAGE}")


class Compiles(gpu.CudaEngine):
    """Without a GPU: its kernels are machine code. outside : scratch is outside the memory of threads."""

    def __init__(self, name, *, outside):
        self.world = WORLDS[name]
        model = self.world.build()
        self._engine, self._tree, self._processors, self._most_local = (
            model.engine,
            model.engine.tree,
            0,
            0 if outside else 1 << 62,
        )
        self.options = self.world.simulator(model).options

    def key(self, op=gpu.ROLLOUT, *, adjoint=False, dtype=torch.float64):
        return self._key(op, adjoint, 1, self.options, dtype, 8192)

    def code(self, key, *, quick=True):
        job = build.job(*self._source(key, quick=quick), ARCH, quick=quick and build.may_be_quick())
        return compiler.compiled(nvrtc, job)


@pytest.fixture(autouse=True)
def as_cupy(monkeypatch):
    monkeypatch.setattr(build, "require_cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(nvrtc=nvrtc)))


def some(*fast):
    """All worlds; those that are not named with --slow."""
    return [pytest.param(name, marks=() if name in fast else pytest.mark.slow) for name in WORLDS]


@pytest.mark.parametrize("outside", [False, True], ids=["threads", "teams"])
@pytest.mark.parametrize("name", some("quadruped"))
def test_steps_and_their_adjoint(name, outside):
    engine = Compiles(name, outside=outside)
    assert all(engine.code(engine.key(adjoint=adjoint)).startswith(ELF) for adjoint in (False, True))


@pytest.mark.parametrize("op", [Op.POSES, *(pytest.param(op, marks=pytest.mark.slow) for op in Op if op != Op.POSES)])
def test_functions_of_an_instant(op):
    engine = Compiles("loop", outside=False)
    assert engine.code(engine.key(op)).startswith(ELF)


@pytest.mark.slow
def test_well_and_in_single_precision():
    engine = Compiles("quadruped", outside=False)
    code = engine.code(engine.key(dtype=torch.float32), quick=False)
    # 351 kB where its rows, all unrolled, are in registers as far as they go; 531 kB when they were not
    assert code.startswith(ELF) and len(code) < 440_000


@pytest.mark.slow
def test_parts_of_a_step(monkeypatch):
    in_parts(monkeypatch)
    engine = Compiles("humanoid", outside=True)
    for adjoint, count in ((False, 6), (True, 7)):
        parts = engine._parts(engine.key(adjoint=adjoint, dtype=torch.float32))
        assert len(parts) == count
        assert all(engine.code(part, quick=quick).startswith(ELF) for part in parts for quick in (True, not adjoint))


@pytest.mark.slow
def test_a_solver_of_its_own_in_double_precision(monkeypatch):
    """It holds no matrices, and has not the shared memory that others take for them: that would be too much."""
    in_parts(monkeypatch)
    engine = Compiles("shapes", outside=True)
    solver = engine._parts(engine.key())[3]
    assert engine.code(solver).startswith(ELF)


def test_what_does_not_compile_is_told():
    engine = Compiles("arm", outside=False)
    header, defined = engine._source(engine.key(Op.POSES))
    with pytest.raises(RuntimeError, match=r"NVRTC could not compile(.|\n)*this is not C"):
        compiler.compiled(nvrtc, build.job(header + "\n#error this is not C\n", defined, ARCH))
