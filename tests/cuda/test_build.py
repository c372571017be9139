"""What becomes of a kernel's source: compiled once, kept by what it was made from, errors told; with NVRTC pretended."""

import builtins
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

import costate as cs
from costate._native.cuda import build, source
from costate._native.cuda import engine as gpu
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


def make(model="struct Tree {};", definitions=("-DCS_ADJOINT=0",), arch="sm_90", **how):
    return build.cubin(build.job(model, list(definitions), arch, **how), "steps")


def test_it_is_compiled_once(nvrtc, tmp_path):
    assert make() == make() == b"code 1" and len(nvrtc.calls) == 1
    assert [path.read_bytes() for path in (tmp_path / "cache").iterdir()] == [b"code 1"], "and nothing else is left there"


@pytest.mark.parametrize("other", [
    {"model": "struct Tree { int more; };"}, {"definitions": ("-DCS_ADJOINT=1",)}, {"arch": "sm_80"}, {"quick": True},
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


def test_nothing_fuses_but_what_the_source_says(nvrtc):
    make()
    assert "-fmad=false" in nvrtc.calls[0]


def test_what_takes_long_is_told(nvrtc, monkeypatch, capsys):
    monkeypatch.setattr(build, "_PATIENCE_S", 0.05)
    make()
    assert capsys.readouterr().err == ""
    nvrtc.seconds = 0.3
    make(arch="sm_100")
    assert "compiling steps (first use" in capsys.readouterr().err


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


# ---- quickly at first, and well by another process -------------------------------------------------------------------------
CUPY = """
import os, time
class NVRTCError(RuntimeError): pass
def createProgram(*args): return args
def compileProgram(program, options):
    while os.path.exists(program[0]): time.sleep(0.01)
    if "-DFAILS" in options: raise NVRTCError("no")
def getCUBIN(program): return b"well made"
def getProgramLog(program): return "what is this?"
def destroyProgram(program): pass
"""


@pytest.fixture
def beside(nvrtc, monkeypatch, tmp_path):
    """Other processes find a CuPy that compiles as soon as the file `hold` is gone; here NVRTC makes quick ones."""
    package = tmp_path / "packages" / "cupy" / "cuda"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "nvrtc.py").write_text(CUPY)
    monkeypatch.setenv("PYTHONPATH", str(package.parents[1]))
    hold = tmp_path / "hold"
    hold.touch()
    monkeypatch.setattr(source, "entry", lambda: str(hold))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return hold


class Engine(gpu.CudaEngine):
    """Without a GPU: a kernel's function is its code."""

    def __init__(self, model):
        self._engine, self._tree, self._arch = model.engine, model.engine.tree, "sm_90"
        self._kernels, self._building, self._workers, self._processors = {}, {}, ThreadPoolExecutor(1), 132

    def _load(self, key, code, better=None):
        return gpu.Kernel(code, None, 0, better=better)

    def steps(self, *, adjoint=False, options=None):
        return self._kernel(gpu.ROLLOUT, adjoint, 1, options, torch.float32, 64).function


def eventually(get, expected):
    for _ in range(1000):
        if get() == expected:
            return True
        time.sleep(0.02)
    return False


def test_a_better_kernel_takes_the_place_of_a_quick_one(beside, nvrtc, monkeypatch):
    engine = Engine(WORLDS["arm"].build())
    assert engine.steps() == engine.steps() == b"code 1" and "-Ofc=min" in nvrtc.calls[0]
    beside.unlink()
    with monkeypatch.context() as capture:
        capture.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        (kernel,) = engine._kernels.values()
        assert eventually(kernel.better.done, True) and engine.steps() == b"code 1", "not while a graph is captured"
    assert engine.steps() == b"well made"
    again = Engine(WORLDS["arm"].build())
    assert again.steps() == b"well made" and len(nvrtc.calls) == 1, "the cache has it"


def test_adjoints_are_compiled_while_steps_run(beside, nvrtc):
    engine = Engine(WORLDS["arm"].build())
    for _ in range(2):
        engine.prepare_adjoint(64, 1, None, torch.float32)
    assert engine.steps(adjoint=True) == b"code 1"
    beside.unlink()
    assert eventually(lambda: engine.steps(adjoint=True), b"well made")
    assert len(nvrtc.calls) == 1


def test_compile_waits_for_the_better_ones(beside, nvrtc):
    engine = Engine(WORLDS["arm"].build())
    threading.Timer(0.3, beside.unlink).start()
    engine.compile(1, None, torch.float32, gradient=True, worlds=None)
    assert engine.steps() == engine.steps(adjoint=True) == b"well made" and not nvrtc.calls


def test_a_process_that_fails_is_told(beside, nvrtc, monkeypatch):
    beside.unlink()
    monkeypatch.setattr(build, "_OPTIONS", ("-DFAILS",))
    engine = Engine(WORLDS["arm"].build())
    engine.steps()
    (kernel,) = engine._kernels.values()
    assert eventually(kernel.better.done, True)
    with pytest.warns(RuntimeWarning, match=r"as slow as(.|\n)*what is this"):
        engine.steps()
    assert engine.steps() == b"code 1"
    with pytest.raises(RuntimeError, match="what is this"):
        Engine(WORLDS["arm"].build()).compile(1, None, torch.float32, gradient=False, worlds=64)


def test_an_old_compiler_has_no_quick_way(beside, nvrtc, monkeypatch):
    monkeypatch.setattr(nvrtc, "getVersion", lambda: (12, 4))
    assert Engine(WORLDS["arm"].build()).steps() == b"code 1" and "-Ofc=min" not in nvrtc.calls[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu():
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        cs.Simulator(WORLDS["arm"].build(), device="cuda")


def test_every_table_of_a_model_is_in_its_header():
    tree = WORLDS["quadruped"].build().engine.tree
    text = source.model_header(tree, fixed=True)
    assert all(f" {name} = " in text for name in (*tree.counts(), *tree.tables(), "common_adr"))
    assert "FixedRows" not in source.model_header(tree, fixed=False)


def test_few_worlds_are_spread():
    engine, own, team = Engine(WORLDS["arm"].build()), gpu.Kernel(None, None, 0), gpu.Kernel(None, None, 16, 1024, 32)
    assert [engine._shape(n, own) for n in (65_536, 8192, 1)] == [(1, 128), (1, 32), (1, 32)]
    assert [engine._shape(n, team) for n in (65_536, 4224, 4223, 132, 1)] == [(32, 32), (32, 32), (32, 16), (32, 1), (32, 1)]


def test_few_worlds_have_kernels_of_their_own():
    """Where rows have no fixed places a team of threads steps each of them."""
    for name, own in (("ant", True), ("quadruped", False)):
        engine = Engine(WORLDS[name].build())
        few, many = (engine._key(gpu.ROLLOUT, False, 1, None, torch.float32, n) for n in (2112, 2113))
        assert (few.outside, many.outside) == (own, False)
        assert all(f"-DCS_TEAM={32 if key.outside else 1}" in engine._source(key)[1] for key in (few, many))
        assert not engine._key(0, False, 1, None, torch.float32, 1).outside, "other calls have one kernel"


def test_scratch_keeps_to_what_torch_may_use(nvrtc, monkeypatch):
    """Where threads' own memory would be too much, scratch is outside, and rows have no fixed places."""
    model = WORLDS["quadruped"].build()
    gpu_of = SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, max_threads_per_multi_processor=2048, total_memory=150e9
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu_of)
    found = {}
    for part in (1.0, 0.02):
        monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device, part=part: part, raising=False)
        engine = gpu.CudaEngine(model.engine, torch.device("cuda", 0))
        key = engine._key(gpu.ROLLOUT, True, 1, None, torch.float32, 8192)
        defined = engine._source(key)[1]
        found[part] = key.outside, "-DCS_LOCAL=0" in defined, "-DCS_FIXED_ROWS" in defined
    assert found == {1.0: (False, False, True), 0.02: (True, True, False)}
    monkeypatch.delattr(torch.cuda, "get_per_process_memory_fraction")
    assert gpu.CudaEngine(model.engine, torch.device("cuda", 0))._most_scratch == int(150e9 / 8), "an older torch cannot be told"
