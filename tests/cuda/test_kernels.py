"""Kernels as they are compiled for one model, with its tables as constants, against the engine: by g++, bit for bit.

What only a GPU can show is in test_gpu.py. Here a kernel is what NVRTC would be given, but for its entry, tests/cuda/on_cpu.cc.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import costate as cs
from bench.humanoid import humanoid_model
from costate._native.cpu import Op
from costate._native.cuda import engine as gpu
from costate._native.cuda import parts, source, structs
from tests.cuda.scenes import WORLDS, in_parts

ROOT = Path(__file__).parents[2]
# -fno-gnu-unique: a team of another size, in another kernel, is another one
COMPILE = [
    "g++",
    "-fno-gnu-unique",
    "-std=c++17",
    "-O1",
    "-march=native",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
    "-DCS_ISA=on_cpu",
]
STEPS, COUNT = 12, 5
FAST, FAST_TEAM = ("arm", "quadruped", "loop", "planar"), ("ant, alternating", "loop")  # the others run with --slow
pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")


class OnCpu(gpu.CudaEngine):
    """The engine of a GPU whose kernels run on the CPU, on tensors of the CPU. team : of so many threads, one after the other."""

    def __init__(self, model: cs.Model, folder: Path, team: int = 1) -> None:
        self._engine, self._tree, self._arch, self._folder = model.engine, model.engine.tree, "cpu", folder
        self._kernels, self._building, self._processors, self.device = {}, {}, 0, torch.device("cpu")
        self._most_local, self._most_scratch = 1 << 62 if team == 1 else 0, 1 << 62
        self._streams = SimpleNamespace(fork=lambda n: [None] * n, join=lambda streams: None)
        self._team = [f"-DCS_TEAM={team}", f'-DCS_TEAM_ON_CPU="{ROOT}/tests/cuda/team_on_cpu.h"'] if team > 1 else []

    def _all(self, keys):
        return [self._found(key) for key in keys]

    def _cubin(self, key):
        header, defined = self._source(key)
        folder = self._folder / str(len(self._kernels))
        folder.mkdir()
        (folder / source.MODEL).write_text(header)
        library = folder / "kernel.so"
        defined = [x for x in defined if not (self._team and x.startswith("-DCS_TEAM"))]
        command = [*COMPILE, *defined, *self._team, f"-I{folder}", ROOT / "tests/cuda/on_cpu.cc", "-o", library]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return str(library).encode(), None

    def _load(self, key, code, better=None):
        call = ctypes.CDLL(code.decode()).call
        call.restype = ctypes.c_char_p
        return gpu.Kernel(call, structs.options(self._named(key)), 0 if key.part is None else self._scratch(key))

    def _start(self, kernel, shape, call, memory, *numbers, stream=None):
        scratch = ctypes.c_void_p(memory.data_ptr() if memory is not None else None)
        wrong = kernel.function(
            ctypes.c_void_p(call.ctypes.data), scratch, *map(ctypes.c_long, numbers or (0, call["worlds"], 0, 0))
        )
        assert wrong is None, wrong


def cases():
    """Every world, by one thread and by a team, whose scratch is outside."""
    for team, fast in ((1, FAST), (4, FAST_TEAM)):
        for name in WORLDS:
            yield pytest.param(name, team, id=f"{name}, {team}", marks=() if name in fast else pytest.mark.slow)


@pytest.mark.parametrize(("name", "team"), [*cases()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_steps_and_their_adjoint(name, team, tmp_path):
    world = WORLDS[name]
    model = world.build()
    sim, kernels = world.simulator(model), OnCpu(model, tmp_path, team)
    q, v, u = world.inputs(model, COUNT, STEPS)
    inputs, _ = sim.gather(cs.State(q, v), u if model.nu else None, None, None, None, time=STEPS)
    found = [torch.empty(STEPS, COUNT, n, dtype=q.dtype) for n in (model.nq, model.nv)]
    at, status = torch.empty(COUNT, 1, dtype=torch.int32), torch.empty(COUNT, 11, dtype=q.dtype)
    kernels.rollout(COUNT, STEPS, 1, inputs, *found, at, sim.options, (status,))
    traj = sim.rollout(cs.State(q, v), u if model.nu else None, steps=STEPS)
    for x, y in zip((*found, status), (traj.q[1:], traj.v[1:], traj.status.numbers), strict=True):
        assert torch.equal(x, y)
    check_adjoint(kernels, (COUNT, STEPS, 1), inputs, found, at, sim.options)


def check_adjoint(kernels, counts, inputs, states, at, options, contacts_bar=None, **how):
    """The engine's bits, of random bars of all states; of parameters to rounding: worlds are added up in another order."""
    norms = [torch.full((counts[1], counts[0]), -1.0, dtype=torch.float64) for _ in range(2)]
    bars = [torch.randn_like(x) for x in states]
    ours = [None if x is None else torch.empty_like(x) for x in inputs]
    how = {"decay": 1.0, "truncate": 0, "options": options, "clip": 0.0} | how
    kernels.rollout_adj(*counts, inputs, (*states, *bars), at, ours, **how, contacts_bar=contacts_bar, norms=norms[0])
    theirs = [None if x is None else np.empty_like(x.numpy()) for x in inputs]
    arrays = [None if x is None else x.contiguous().numpy() for x in inputs]
    after = (*(x.numpy() for x in states), at.numpy(), *(x.numpy() for x in bars))
    shown = None if contacts_bar is None else contacts_bar.numpy()
    kernels._tree.rollout_adj(*counts, arrays, *after, theirs, *how.values(), shown, norms[1].numpy())
    assert torch.equal(*norms)
    for x, y in zip(ours, theirs, strict=True):
        if x is None:
            continue
        if x.shape[-2] == counts[0]:
            assert torch.equal(x, torch.from_numpy(y))
        else:
            torch.testing.assert_close(x, torch.from_numpy(y), rtol=1e-10, atol=1e-10 * float(np.abs(y).max()))


# by one thread, by few, and by so many that each has a number of every row of the factor, and of two dofs
IN_PARTS = [(name, team) for name in ("loop", "ant", "humanoid", "turning") for team in (1, 4)] + [("humanoid", 16)]


@pytest.mark.parametrize(
    ("name", "team"), [pytest.param(*case, marks=() if case[0] == "loop" else pytest.mark.slow) for case in IN_PARTS]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_parts_of_a_step_hand_on_all_they_found(name, team, tmp_path, monkeypatch):
    """A kernel for each; two worlds at a time, two substeps, and one world that stops being finite."""
    in_parts(monkeypatch)
    world = WORLDS[name]
    model = world.build()
    sim, kernels = world.simulator(model), OnCpu(model, tmp_path, team)
    kernels._most_local, steps, told = 0, STEPS // 2, [torch.empty(COUNT, 11, dtype=torch.float64)]
    keys = kernels._parts(kernels._key(gpu.ROLLOUT, False, 2, sim.options, torch.float64, COUNT))
    assert [key.part for key in keys] == [0, 1, 2, 5]
    kernels._most_scratch = 2 * kernels._scratch(keys[0])
    q, v, u = world.inputs(model, COUNT, steps)
    v[3, -1] = 1e200
    inputs, _ = sim.gather(cs.State(q, v), u if model.nu else None, None, None, None, time=steps)
    found = [torch.empty(steps, COUNT, n, dtype=q.dtype) for n in (model.nq, model.nv)]
    at = torch.empty(COUNT, 1, dtype=torch.int32)
    kernels.rollout(COUNT, steps, 2, inputs, *found, at, sim.options, told)
    traj = sim.rollout(cs.State(q, v), u if model.nu else None, steps=steps, substeps=2)
    for x, y in zip((*found, *told), (traj.q[1:], traj.v[1:], traj.status.numbers), strict=True):
        assert torch.equal(x, y)
    assert [int(x) for x in at] == [steps, steps, steps, 0, steps]


@pytest.mark.parametrize(
    ("name", "team"), [("loop", 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in (("loop", 4), ("humanoid", 4)))]
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_parts_of_an_adjoint(name, team, tmp_path, monkeypatch):
    """The same, with three substeps, a decay, and a costate that is clipped and cut."""
    in_parts(monkeypatch)
    world = WORLDS[name]
    model = world.build()
    sim, kernels, counts = world.simulator(model), OnCpu(model, tmp_path, team), (COUNT, 3, 3)
    kernels._most_local, key = 0, kernels._key(gpu.ROLLOUT, True, 3, sim.options, torch.float64, COUNT)
    assert [key.part for key in kernels._parts(key)] == [0, 1, 2, 5, 6]
    kernels._most_scratch = 2 * kernels._scratch(kernels._parts(key)[0])
    q, v, u = world.inputs(model, COUNT, counts[1])
    v[3, -1] = 1e200
    inputs, _ = sim.gather(cs.State(q, v), u if model.nu else None, None, None, None, time=counts[1])
    traj = sim.rollout(cs.State(q, v), u if model.nu else None, steps=counts[1], substeps=counts[2])
    at = torch.tensor([[3], [3], [3], [0], [3]], dtype=torch.int32)
    states = [x[1:].contiguous() for x in (traj.q, traj.v)]
    check_adjoint(kernels, counts, inputs, states, at, sim.options, decay=0.9, clip=2.0, truncate=2)


@pytest.mark.parametrize("team", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_parts_of_an_adjoint_with_impulses(team, tmp_path, monkeypatch):
    """What those that a step shows are worth."""
    in_parts(monkeypatch)
    model = WORLDS["quadruped"].build()
    sim, kernels = WORLDS["quadruped"].simulator(model), OnCpu(model, tmp_path, team)
    kernels._most_local = 0
    q, v, u = WORLDS["quadruped"].inputs(model, COUNT, 1)
    inputs, _ = sim.gather(cs.State(q, v), u, None, None, None, time=1)
    after, info = sim.step(cs.State(q, v), u[0], info=True)
    assert (info.contacts.impulse != 0).any()
    shown = torch.randn(COUNT, 12 * kernels._tree.max_contacts, dtype=torch.float64)
    at = torch.ones(COUNT, 1, dtype=torch.int32)
    check_adjoint(kernels, (COUNT, 1, 1), inputs, [x[None].contiguous() for x in after], at, sim.options, contacts_bar=shown)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_matrices_in_registers(tmp_path, monkeypatch):
    """Of a whole warp, in float32: few rows off their bounds, and more than it has threads; worlds that need a second round of
    passes. They are in an order."""
    in_parts(monkeypatch)
    zeros, orders = torch.zeros, []
    model, steps, many, f32 = humanoid_model(), 2, 2048, torch.float32
    sim, kernels = cs.Simulator(model, 0.005, dtype=f32), OnCpu(model, tmp_path, 32)
    kernels._most_local = 0
    numbers = torch.Generator().manual_seed(3)
    q = torch.tensor(model.q0, dtype=f32).expand(many, -1).clone()
    q[:, 2], q[:, 3], q[:, 5] = 0.15, 0.5**0.5, 0.5**0.5  # it lies on its front
    v = 0.5 * torch.randn(many, model.nv, generator=numbers)
    lying = sim.rollout(cs.State(q, v), torch.zeros(40, many, model.nu))[-1]
    u = torch.zeros(steps, many, model.nu)
    after, info = sim.step(lying, u[0], info=True)
    pressed, worlds = (info.contacts.impulse.norm(dim=-1) > 0).sum(-1).sort()
    assert 3 * pressed[-1] > 32 > 3 * pressed[0]
    _, info = sim.step(after, u[1], info=True)
    again = ((info.status.sweeps > 50) & (info.status.contacts <= 11)).nonzero().flatten()
    worlds = torch.cat((worlds[:1], again[:2], worlds[-4:]))
    start, u, count = cs.State(*(x[worlds].contiguous() for x in lying)), u[:, worlds].contiguous(), len(worlds)
    inputs, _ = sim.gather(start, u, None, None, None, time=steps)
    found, at = [torch.empty(steps, count, n) for n in (model.nq, model.nv)], torch.empty(count, 1, dtype=torch.int32)
    told = [torch.empty(count, 11)]
    monkeypatch.setattr(torch, "zeros", lambda *how, **more: orders.append(zeros(*how, **more)) or orders[-1])
    kernels.rollout(count, steps, 1, inputs, *found, at, sim.options, told)
    traj = sim.rollout(start, u)
    for x, y in zip((*found, *told), (traj.q[1:], traj.v[1:], traj.status.numbers), strict=True):
        assert torch.equal(x, y)
    lists = orders[0][: 2 * parts._LISTS].view(2, parts._LISTS)  # how many worlds there were in each, in an even and an odd step
    last = lists[(steps - 1) % 2]
    again, many, few = last.split((1, 16, 16))
    assert many.sum() + few.sum() == count and (last > 0).sum() > 2 and min(again.sum(), many.sum(), few.sum()) > 0


@pytest.mark.parametrize("team", [1, 4])
@pytest.mark.parametrize("op", [Op.POSES, pytest.param(Op.MASS_MATRIX, marks=pytest.mark.slow), Op.PREPARE])
def test_functions_of_an_instant(op, team, tmp_path):
    world = WORLDS["arm"]
    model = world.build()
    kernels = OnCpu(model, tmp_path, team)
    q, v, _ = world.inputs(model, COUNT, 1)
    theta = model.params().flat().unsqueeze(0)
    inputs = {Op.POSES: (q, v, theta), Op.MASS_MATRIX: (q, theta), Op.PREPARE: (theta,)}[op]
    worlds = 1 if op == Op.PREPARE else COUNT
    ours, theirs = ([torch.empty(worlds, n, dtype=q.dtype) for n in model.engine.outputs[op]] for _ in range(2))
    kernels.op(op, worlds, inputs, ours, None)
    model.engine.tree.op(op, worlds, [x.numpy() for x in inputs], [x.numpy() for x in theirs], None)
    assert all(torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("team", [1, 4])
def test_linearisation(team, tmp_path):
    world = WORLDS["loop"]
    model = world.build()
    sim, kernels = world.simulator(model), OnCpu(model, tmp_path, team)
    q, v, u = world.inputs(model, COUNT, 1)
    inputs, _ = sim.gather(cs.State(q, v), u[0], None, None, None)
    ours, theirs = ([torch.empty(COUNT, n, dtype=q.dtype) for n in model.engine.outputs[Op.LINEARIZE]] for _ in range(2))
    kernels.op(Op.LINEARIZE, COUNT, inputs, ours, sim.options)
    arrays = [None if x is None else x.numpy() for x in inputs]
    model.engine.tree.op(Op.LINEARIZE, COUNT, arrays, [x.numpy() for x in theirs], sim.options)
    assert all(torch.equal(x, y) for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", WORLDS)
def test_levels_hold_no_parent_of_each_other(name):
    """Threads that take the bodies of a level at once find all parents done, and every body has its turn."""
    tables = WORLDS[name].build().engine.tree.tables()
    ends = itertools.pairwise(tables["level_adr"])
    level = {body: k for k, (first, end) in enumerate(ends) for body in tables["level_body"][first:end]}
    assert sorted(level) == list(range(len(tables["parent"])))
    assert all(level[body] == (level[parent] + 1 if parent >= 0 else 0) for body, parent in enumerate(tables["parent"]))


def test_rows_of_small_models_have_fixed_places():
    """All that can touch has a place; models with more rows find places in every step."""
    known = {name: world.build() for name, world in WORLDS.items() if name in ("arm", "quadruped", "ant", "loop", "shapes")}
    fixed = {name: source.fixed_rows(model.engine.tree.counts(), model.engine.tree.tables()) for name, model in known.items()}
    assert [name for name, rows in fixed.items() if rows] == ["arm", "quadruped"]
    rows = fixed["quadruped"]
    assert rows is not None and rows["counts"][:3] == [4, 12, 1] and rows["list_n"] == [9] * 4
    assert len(rows["common_a"]) == 4 * 9 + 6 * 6, "legs share the base's dofs"
