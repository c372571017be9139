"""A world's motion and gradients are the same bits whatever runs beside it: batch size, lane, threads, leading dimensions."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import costate as cs
from costate._native import _core
from costate._native.cpu import Engine
from tests.parity.trees import Tree, assert_close, costate_model, costate_scene, random_state, random_tree
from tests.physics.conftest import SETS

pytestmark = pytest.mark.usefixtures("restored")

DTYPES = (torch.float64, torch.float32)
WORLDS, STEPS = 37, 4  # more than two packs of every width, the last one not full
FORMS_AGREE = 1e-10  # sparse and articulated factor the same matrix; its condition number is up to 1e4
SETS_AGREE = 1e-11  # packs of other widths use the same operations, but the baseline has no fused multiply-add in hardware
TREE = random_tree(40, 10)  # has every joint type, and branches


def model_with_motors(tree: Tree, *, form: int = -1) -> cs.Model:
    scene = costate_scene(tree)
    scene.add_motors(gear=2.0)
    model = scene.build()
    model.__dict__["engine"] = Engine(model, form=form)
    return model


Inputs = dict[str, Tensor]


def inputs(model: cs.Model, worlds: int, dtype: torch.dtype) -> Inputs:
    """Everything a rollout takes, different in every world; `mass` and `com` stand for the parameters."""
    g = torch.Generator().manual_seed(1)
    rand = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)  # noqa: E731
    return {
        "q": torch.tensor(model.q0).to(dtype) + 0.3 * rand(worlds, model.nq),
        "v": rand(worlds, model.nv),
        "control": rand(STEPS, worlds, model.nu),
        "external": rand(worlds, model.nb, 6),
        "dt": 0.005 + 0.001 * rand(worlds).abs(),
        "mass": model.defaults["mass"].to(dtype) * (1 + 0.1 * rand(worlds, model.nb).abs()),
        "com": model.defaults["com"].to(dtype) + 0.1 * rand(worlds, model.nb, 3),
        "weight_q": rand(STEPS + 1, worlds, model.nq),
        "weight_v": rand(STEPS + 1, worlds, model.nv),
    }


def pick(x: Inputs, worlds: list[int]) -> Inputs:
    timed = ("control", "weight_q", "weight_v")
    return {name: t[:, worlds] if name in timed else t[worlds] for name, t in x.items()}


def run(model: cs.Model, x: Inputs) -> dict[str, Tensor]:
    """Trajectory, and gradients of a weighted sum of it: world by world, since weights touch one world each."""
    leaves = {name: t.clone().requires_grad_() for name, t in x.items() if not name.startswith("weight")}
    params = model.params(dtype=x["q"].dtype).replace(mass=leaves["mass"], com=leaves["com"])
    state = cs.State(leaves["q"], leaves["v"])
    sim = cs.Simulator(model, dtype=x["q"].dtype)
    traj = sim.rollout(state, leaves["control"], params, external=leaves["external"], dt=leaves["dt"])
    loss = (x["weight_q"] * traj.q).sum() + (x["weight_v"] * traj.v).sum()
    names = list(leaves)
    bars = torch.autograd.grad(loss, [leaves[name] for name in names])
    return {"traj.q": traj.q.detach(), "traj.v": traj.v.detach()} | {f"bar of {n}": g for n, g in zip(names, bars)}


def worlds_of(results: dict[str, Tensor], worlds: list[int]) -> dict[str, Tensor]:
    timed = ("traj.q", "traj.v", "bar of control")
    return {name: t[:, worlds] if name in timed else t[worlds] for name, t in results.items()}


def assert_same_bits(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    for name, x in a.items():
        assert torch.equal(x, b[name]), f"{name}: differs by {(x - b[name]).abs().max():.1e}"
        assert torch.isfinite(x).all() and x.abs().max() > 0, f"{name}: nothing to compare"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("worlds", [1, 3, 8, 17])
def test_batch_size(instructions, worlds, dtype):
    model = model_with_motors(TREE)
    assert set(model.joint_type) == set(range(6)), "every joint type takes part"
    x = inputs(model, WORLDS, dtype)
    some = list(range(20, 20 + worlds))
    assert_same_bits(run(model, pick(x, some)), worlds_of(run(model, x), some))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", [0, 1])
def test_lane_position(instructions, dtype, form):
    model = model_with_motors(TREE, form=form)
    x = inputs(model, WORLDS, dtype)
    order = torch.randperm(WORLDS, generator=torch.Generator().manual_seed(2)).tolist()
    results = [run(model, y) for y in (pick(x, order), x)]
    assert_same_bits(results[0], worlds_of(results[1], order))


@pytest.mark.parametrize("dtype", DTYPES)
def test_thread_count(instructions, dtype):
    model = model_with_motors(TREE)
    x = inputs(model, WORLDS, dtype)
    shared = x | {name: x[name][0] for name in ("mass", "com", "dt")}  # their gradients are sums over all worlds
    found = []
    for threads in (1, 2, 3):
        cs.set_num_threads(threads)
        found.append((run(model, x), run(model, shared)))
    for per_world, summed in found[1:]:
        assert_same_bits(per_world, found[0][0])
        assert_same_bits(summed, found[0][1])
    assert found[0][1]["bar of mass"].shape == (model.nb,)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_leading_dimensions(batch):
    model = model_with_motors(TREE)
    n = max(1, torch.Size(batch).numel())
    x = inputs(model, n, torch.float64)
    timed = ("control", "weight_q", "weight_v")
    shapes = {k: (*t.shape[:1], *batch, *t.shape[2:]) if k in timed else (*batch, *t.shape[1:]) for k, t in x.items()}
    shaped = {k: t.reshape(shapes[k]) for k, t in x.items()}
    flat, found = run(model, x), run(model, shaped)
    assert found["traj.q"].shape == (STEPS + 1, *batch, model.nq)
    assert_same_bits({name: t.reshape(flat[name].shape) for name, t in found.items()}, flat)
    a = cs.forward_dynamics(model, shaped["q"], shaped["v"], shaped["v"], external=shaped["external"])
    assert a.shape == (*batch, model.nv)
    assert torch.equal(a.reshape(n, -1), cs.forward_dynamics(model, x["q"], x["v"], x["v"], external=x["external"]))


def test_leading_dimensions_broadcast():
    """q of one world, v of three, parameters of two by one: six worlds, and bars of the shapes that went in."""
    model = model_with_motors(TREE)
    x = inputs(model, 6, torch.float64)
    q, v, mass = x["q"][0].requires_grad_(), x["v"][:3].requires_grad_(), x["mass"][:2].unsqueeze(1).requires_grad_()
    params = model.params().replace(mass=mass)
    a = cs.forward_dynamics(model, q, v, torch.zeros(model.nv, dtype=torch.float64), params)
    assert a.shape == (2, 3, model.nv)
    for i in range(2):
        for j in range(3):
            one = cs.forward_dynamics(model, q, v[j], 0 * v[j], model.params().replace(mass=mass[i, 0]))
            assert torch.equal(a[i, j], one)
    bars = torch.autograd.grad(a.square().sum(), (q, v, mass))
    assert [b.shape for b in bars] == [q.shape, v.shape, mass.shape]


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_model_without_motors_takes_empty_controls(batch):
    """What a policy written for any model hands over; the same as no controls."""
    model = costate_model(TREE)
    sim = cs.Simulator(model)
    state = sim.initial_state(batch or None)
    empty = torch.zeros(STEPS, *batch, 0, dtype=torch.float64)
    assert torch.equal(sim.rollout(state, empty).q, sim.rollout(state, steps=STEPS).q)
    assert torch.equal(sim.step(state, empty[0]).q, sim.step(state).q)


def test_instruction_sets_agree():
    model, found = model_with_motors(TREE), {}
    x = inputs(model, 5, torch.float64)
    for name in SETS:
        try:
            _core.set_instruction_set(name)
        except ValueError:
            continue
        found[name] = run(model, x)
    assert "base" in found
    for name, results in found.items():
        for key, t in results.items():
            assert_close(f"{name} {key}", t, found["base"][key], SETS_AGREE)


@pytest.mark.parametrize("length", [3, 40])
def test_deep_chains_use_the_articulated_form_and_agree_with_the_sparse_one(length):
    tree = random_tree(0, length, joints=("revolute", "prismatic", "ball"))
    tree = replace(tree, bodies=tuple(replace(b, parent=i - 1) for i, b in enumerate(tree.bodies)))
    chosen, sparse, articulated = (model_with_motors(tree, form=form) for form in (-1, 0, 1))
    assert chosen.engine.tree.form == (1 if length == 40 else 0)
    q, v = (torch.tensor(x).expand(3, -1) for x in random_state(0, tree))
    x = inputs(sparse, 3, torch.float64) | {"q": q, "v": v}
    a, b = run(sparse, x), run(articulated, x)
    for name, t in a.items():
        assert_close(name, b[name], t, FORMS_AGREE)
    A = [cs.Simulator(m).linearize(cs.State(q, v))[0] for m in (sparse, articulated)]
    assert_close("linearize", A[1], A[0], FORMS_AGREE)
