"""What becomes of a kernel's source: compiled once, kept by what it was made from, errors told; with NVRTC pretended."""

import builtins
import time
from types import SimpleNamespace

import pytest
import torch

import costate as cs
from costate._native.cuda import build, source
from tests.cuda.scenes import WORLDS


class Compiler:
    """NVRTC as CuPy offers it; what it makes says how often it was called."""

    class NVRTCError(RuntimeError):
        pass

    def __init__(self, seconds=0.0, fails=False):
        self.calls, self.seconds, self.fails = [], seconds, fails

    def getVersion(self):
        return 13, 0

    def createProgram(self, text, name, headers, names):
        return text, headers, names

    def compileProgram(self, program, options):
        self.calls.append(options)
        time.sleep(self.seconds)
        if self.fails:
            raise self.NVRTCError("no")

    def getCUBIN(self, program):
        return b"code %d" % len(self.calls)

    def getProgramLog(self, program):
        return "line 1: what is this?"

    def destroyProgram(self, program):
        pass


@pytest.fixture
def nvrtc(monkeypatch, tmp_path):
    compiler = Compiler()
    monkeypatch.setattr(build, "require_cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(nvrtc=compiler)))
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "cache"))
    return compiler


def make(model="struct Tree {};", definitions=("-DCS_ADJOINT=0",), scalar="float", arch="sm_90"):
    return build.cubin(model, list(definitions), scalar, arch, "steps")


def test_it_is_compiled_once(nvrtc, tmp_path):
    assert make() == make() == b"code 1" and len(nvrtc.calls) == 1
    assert [path.read_bytes() for path in (tmp_path / "cache").iterdir()] == [b"code 1"], "and nothing else is left there"


@pytest.mark.parametrize("other", [
    {"model": "struct Tree { int more; };"}, {"definitions": ("-DCS_ADJOINT=1",)}, {"scalar": "double"}, {"arch": "sm_80"},
])  # fmt: skip
def test_anything_else_is_another_kernel(nvrtc, other):
    assert make() == b"code 1" and make(**other) == b"code 2"


def test_other_headers_make_other_kernels(nvrtc, monkeypatch):
    make()
    monkeypatch.setattr(source, "headers", lambda: (("core/step.h", "// another one"),))
    assert make() == b"code 2"


def test_a_cache_that_cannot_be_written_costs_time_only(nvrtc, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("COSTATE_CACHE", str(tmp_path / "file"))
    assert make() == b"code 1" and make() == b"code 2"


def test_fusing_follows_the_precision(nvrtc):
    make(scalar="float")
    make(scalar="double")
    assert "-fmad=true" in nvrtc.calls[0] and "-fmad=false" in nvrtc.calls[1]


def test_what_takes_long_is_told(nvrtc, monkeypatch, capsys):
    monkeypatch.setattr(build, "_PATIENCE_S", 0.05)
    make()
    assert capsys.readouterr().err == ""
    nvrtc.seconds = 0.3
    make(arch="sm_100")
    assert "compiling steps for sm_100" in capsys.readouterr().err


def test_the_compilers_words_are_passed_on(nvrtc):
    nvrtc.fails = True
    with pytest.raises(RuntimeError, match="what is this"):
        make()


def test_without_cupy(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **options):
        if name == "cupy":
            raise ImportError("no cupy")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install 'costate\[cuda\]'"):
        build.require_cupy()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu():
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        cs.Simulator(WORLDS["arm"].build(), device="cuda")


def test_every_table_of_a_model_is_in_its_header():
    tree = WORLDS["quadruped"].build().engine.tree
    text = source.model_header(tree, fixed=True)
    assert all(f" {name} = " in text for name in (*tree.counts(), *tree.tables(), "common_adr"))
    assert "FixedRows" not in source.model_header(tree, fixed=False)
