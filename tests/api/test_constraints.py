"""Constraints as a user sees them: info.constraints, names, status, warnings, reports; copies, threads, batches, numpy."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from torch.func import vmap
from torch.utils import _pytree as pytree

import costate as cs
from tests.api.linkages import APART, DT, ZOO_CONSTRAINTS, ZOO_ROWS, contradicting, four_bar, model, random_state

G = 9.81
REMAKE = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def leaves(x):
    """All arrays and tensors in a nest, also those of trajectories, as numpy."""
    x = (x.q, x.v, x.status) if isinstance(x, cs.Trajectory) else x
    return [np.asarray(y.detach() if isinstance(y, torch.Tensor) else y) for y in pytree.tree_leaves(x) if y is not None]


def same(a, b):
    a, b = leaves(a), leaves(b)
    return len(a) == len(b) > 0 and all(np.array_equal(x, y) for x, y in zip(a, b))


def zoo(dtype=torch.float64, worlds=5, **options):
    """A simulator of every kind of constraint, a state of `worlds` and controls for 4 steps."""
    m = model("zoo")
    state = cs.State(*(x.to(dtype) for x in random_state(m, generator(1), worlds)))
    controls = torch.randn(4, worlds, m.nu, generator=generator(2), dtype=torch.float64).to(dtype)
    return cs.Simulator(m, dt=DT, dtype=dtype, **options), state, controls


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---- info ------------------------------------------------------------------------------------------------------------
@DTYPES
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_shapes_types_and_names(batch, dtype):
    m = model("zoo")
    sim = cs.Simulator(m, dt=DT, dtype=dtype)
    state = cs.State(*(x.to(dtype) for x in random_state(m, generator(1), *batch)))
    _, info = sim.step(state, info=True)
    assert type(info.constraints) is cs.Constraints and m.ne == 24
    assert all(x.shape == (*batch, m.ne) and x.dtype == dtype for x in info.constraints)
    assert info.rows.impulse.shape == (*batch, len(ZOO_ROWS))
    assert m.equality_names == ZOO_CONSTRAINTS and sim.row_names == ZOO_ROWS
    assert info.status.drift.shape == info.status.contradiction.shape == batch


def test_a_hanging_ball():
    """The constraint bears its weight: an impulse of m g h upwards on body b, downwards where the ball is body a."""
    for pair, sign in (((None, "ball"), 1.0), (("ball", None), -1.0)):
        scene = cs.Scene()
        scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1, mass=2.0))
        scene.add_weld(*pair)
        sim = cs.Simulator(scene.build(), dt=DT)
        new, info = sim.step(sim.initial_state(), info=True)
        expected = torch.tensor([0, 0, sign * 2.0 * G * DT, 0, 0, 0], dtype=torch.float64)
        torch.testing.assert_close(info.constraints.impulse, expected, rtol=1e-6, atol=1e-9)
        assert info.constraints.error.abs().max() == 0 and new.v.abs().max() < 1e-7


def test_errors_are_those_of_the_start():
    sim, state, controls = zoo()
    _, info = sim.step(state, controls[0], info=True)
    torch.testing.assert_close(info.constraints.error, cs.constraint_error(sim.model, state.q), rtol=0, atol=1e-15)
    hard = [not name.startswith("lock") for name in sim.model.equality_names]
    torch.testing.assert_close(info.status.drift, info.constraints.error[:, hard].abs().amax(-1), rtol=0, atol=1e-15)


def test_no_gradient_and_it_says_so():
    sim, state, controls = zoo()
    params = sim.model.params(requires_grad=True)
    _, info = sim.step(cs.State(state.q.requires_grad_(), state.v), controls[0], params, info=True)
    for x in (*info.constraints, info.status.drift, info.status.contradiction):
        with pytest.raises(RuntimeError, match="does not require grad"):
            x.sum().backward()


def test_a_model_without_constraints():
    scene = cs.Scene()
    scene.add_body("arm", joint=cs.Revolute(), mass=1.0, inertia=(1, 1, 1), com=(0.1, 0, 0))
    m = scene.build()
    sim = cs.Simulator(m)
    _, info = sim.step(sim.initial_state(3), info=True)
    assert m.ne == 0 and m.equality_names == () and all(x.shape == (3, 0) for x in info.constraints)
    assert not info.status.drift.any() and not info.status.contradiction.any() and "drift" not in repr(info.status)
    q = torch.rand(3, 1, dtype=torch.float64)
    assert cs.constraint_error(m, q).shape == (3, 0) and torch.equal(cs.project(m, q), q)


# ---- status and warnings ---------------------------------------------------------------------------------------------
def test_status_of_a_rollout_is_the_worst_of_its_steps():
    sim, state, controls = zoo()
    traj, policy = sim.rollout(state, controls), sim.rollout(state, lambda s, c, t: controls[t], steps=4)
    each = []
    for control in controls:
        state, info = sim.step(state, control, info=True)
        each.append(info.status.numbers)
    assert torch.equal(traj.status.numbers[:, 8:], torch.stack(each).amax(0)[:, 8:])
    assert torch.equal(policy.status.numbers, traj.status.numbers)
    assert traj.status.drift.min() > 1e-3 and traj.status.contradiction.max() < 1e-6


def test_status_in_words():
    sim, state, _ = zoo()
    words = repr(sim.rollout(state, steps=2).status)
    assert ", drift <= 0.0" in words and ", contradiction <= " in words and words.endswith(")") and "\n" not in words


CALLS = ["step", "step, info", "numpy step", "rollout", "policy", "numpy rollout"]


def calls(sim, state):
    one = cs.State(state.q[1].numpy(), state.v[1].numpy())
    return {
        "step": lambda: sim.step(state),
        "step, info": lambda: sim.step(state, info=True),
        "numpy step": lambda: sim.step(one),
        "rollout": lambda: sim.rollout(state, steps=3),
        "policy": lambda: sim.rollout(state, lambda s, c, t: None, steps=3),
        "numpy rollout": lambda: sim.rollout(one, steps=3),
    }


@DTYPES
@pytest.mark.parametrize("call", CALLS)
def test_contradictions_give_one_warning(call, dtype):
    """Once per call, where the user called; both places are missed by the same share of the distance, and nothing breaks."""
    sim = cs.Simulator(model("contradicting"), dt=DT, dtype=dtype)
    run = calls(sim, sim.initial_state(3))[call]
    with pytest.warns(RuntimeWarning, match=r"contradict each other .*info\.constraints.*softness.*cs\.project") as caught:
        result = run()
    assert len(caught) == 1 and caught[0].filename == __file__
    where, missed = call.replace("numpy ", "").replace("policy", "rollout").split(",")[0], 0.2 * APART / DT / 2
    told = re.fullmatch(rf"{where}: .* misses them by (\S+) m/s or rad/s.*", str(caught[0].message))
    assert told and float(told[1]) == pytest.approx(missed, rel=1e-2)
    assert all(np.isfinite(x).all() for x in leaves(result))


def test_the_worst_world_is_named():
    m = model("contradicting")
    sim, params = cs.Simulator(m, dt=DT), m.params()
    frames = params["tie_pos"].expand(4, -1, -1).clone()
    frames[:, 2, 0] = torch.tensor([0.0, 0.01, 0.05, 0.0])
    with pytest.warns(RuntimeWarning, match=r"step: 2 of 4 worlds have constraints .* \(world 2 misses them by 0\.5 m/s"):
        sim.step(sim.initial_state(), params=params.replace(tie_pos=frames))


@DTYPES
def test_what_gives_way_under_load_is_no_contradiction(dtype, no_warnings):
    """Half a ton on a pin of 50 g: what every row's softness lets through is small in float64, and not quite so in float32."""
    scene = cs.Scene(collisions=False)
    scene.add_body("pin", joint=cs.Free(), shapes=cs.Sphere(0.02, mass=0.05))
    scene.add_body("load", joint=cs.Free(), pos=(0, 0, -0.5), shapes=cs.Box((0.3, 0.3, 0.3), mass=500.0))
    scene.add_point(None, "pin")
    scene.add_point("pin", "load")
    sim = cs.Simulator(scene.build(), dt=DT, dtype=dtype)
    missed = sim.rollout(sim.initial_state(2), steps=5).status.contradiction.max()
    assert missed < 1e-5 if dtype == torch.float64 else 1e-3 < missed < 5e-2


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("second", ["soft", "redundant"])
def test_no_warning_where_one_gives_way_or_all_agree(call, second, no_warnings):
    scene = contradicting(softness=1e-3) if second == "soft" else four_bar()
    if second == "redundant":
        scene.add_hinge("coupler", "rocker", axis=(0, -1, 0), pos=(0.9, 0, 0), pos_b=(0.6, 0, 0), quat_b=(1, 0, 0, 0))
    m = scene.build()
    sim = cs.Simulator(m, dt=DT)
    q = cs.project(m, sim.initial_state(3).q)
    calls(sim, cs.State(q, torch.zeros(3, m.nv, dtype=torch.float64)))[call]()
    _, info = sim.step(cs.State(q, torch.zeros(3, m.nv, dtype=torch.float64)), info=True)
    assert info.status.contradiction.max() < 1e-6
    if second == "redundant":  # which share the load
        a, b = info.constraints.impulse[0].reshape(2, 5)
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-9)


def test_transforms_and_compiled_code_are_left_alone(no_warnings):
    sim = cs.Simulator(model("contradicting"), dt=DT)
    new = vmap(lambda q, v: sim.step(cs.State(q, v), info=True)[1].status.contradiction)(*sim.initial_state(3))
    assert (new > 0.5).all()


def test_gradients_stay_finite_where_constraints_contradict():
    m = model("contradicting")
    for gradient in ("implicit", "exact"):
        sim, params = cs.Simulator(m, dt=DT, gradient=gradient), m.params(requires_grad=True)
        q = sim.initial_state(2).q.requires_grad_()
        with pytest.warns(RuntimeWarning, match="contradict"):
            traj = sim.rollout(cs.State(q, torch.zeros(2, m.nv, dtype=torch.float64)), params=params, steps=3)
        traj.q[-1].square().sum().backward()
        assert all(x.grad.isfinite().all() for x in (q, *params.leaves()) if x.grad is not None)
        # the middle of both, which moves half as far as one of them does
        half = params["tie_pos"].grad[[0, 2], 0] / (2 * traj.q[-1, :, 0].detach().sum())
        torch.testing.assert_close(half, torch.full((2,), 0.5, dtype=torch.float64), rtol=0, atol=1e-2)
        torch.testing.assert_close(traj.q[-1, :, 0], torch.full((2,), APART / 2, dtype=torch.float64), rtol=0, atol=1e-3)


# ---- options, copies -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("remake", REMAKE.values(), ids=REMAKE)
def test_copies(remake):
    sim, state, controls = zoo(project=3)
    made, params = remake(sim), remake(sim.model.params().expand(5))
    assert made.project == 3 and repr(made) == repr(sim) and made.model == sim.model
    assert made.model.equality_names == sim.model.equality_names
    expected = sim.rollout(state, controls)
    assert same(made.rollout(state, controls, params), expected) and same(remake(expected), expected)


def test_project_brings_the_end_of_a_step_closer():
    scene = four_bar()
    m = scene.build()
    q, fast = cs.project(m, torch.tensor(m.q0)), torch.tensor([6.0], dtype=torch.float64)
    drift = []
    for n in (0, 1, 2):
        sim = cs.Simulator(m, dt=DT, project=n)
        traj = sim.rollout(cs.State(q, torch.zeros(3, dtype=torch.float64)), fast.expand(50, 1))
        drift.append(traj.status.drift.item())
        assert same(sim.step(traj[10], fast), traj[11]) and sim.project == n
    assert drift[0] > 1e-4 > drift[1] and drift[1] > 10 * drift[2] and drift[2] < 1e-6


def test_softness_is_static_error_per_force_and_is_not_projected():
    softness = 1e-3
    scene = cs.Scene()
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1, mass=1.0))
    scene.add_point(None, "ball", softness=softness)
    sim = cs.Simulator(scene.build(), dt=DT)
    end = sim.rollout(sim.initial_state(), steps=400)[-1]
    _, info = sim.step(end, info=True)
    torch.testing.assert_close(end.q[2], torch.tensor(-softness * G, dtype=torch.float64), rtol=1e-3, atol=0)
    assert info.status.drift == 0 and info.status.contradiction == 0


def test_gradient_report():
    sim, state, controls = zoo()
    traj = sim.rollout(state, controls)
    report = sim.gradient_report(traj, loss=lambda traj: traj.q[-1].square().sum())
    assert report.costate_norm.isfinite().all() and report.converged.all() and "GradientReport: 4 steps" in str(report)
    assert set(report.flips) - {name for name in report.flips if " on " in name} <= set(ZOO_ROWS)
    assert "motor motor" not in report.flips  # both of its bounds are its force: it has no state to change


# ---- numbers that must not depend on anything ------------------------------------------------------------------------
def everything(sim, state, controls):
    """A rollout with its gradient by states, controls, step size and all parameters per world, and two functions of q."""
    q, u, dt = state.q.clone().requires_grad_(), controls.clone().requires_grad_(), torch.full(state.q.shape[:-1], DT).to(state.q)
    params = sim.model.params(dtype=sim.dtype).expand(*state.q.shape[:-1]).detach(requires_grad=True)
    traj = sim.rollout(cs.State(q, state.v), u, params, dt=dt.requires_grad_())
    extra = cs.project(sim.model, q, params, iterations=2).sin().sum() + cs.constraint_error(sim.model, q, params).square().sum()
    loss, wanted = traj.v.square().sum() + traj.q.sin().sum() + extra, (q, u, dt, *params.leaves())
    return traj.q.detach(), traj.v.detach(), traj.status.numbers, torch.autograd.grad(loss, wanted, allow_unused=True)


@DTYPES
@pytest.mark.parametrize("options", [{}, {"project": 2, "gradient": "exact"}], ids=["default", "exact"])
def test_threads(options, dtype):
    before = cs.get_num_threads()
    try:
        results = []
        for n in (1, 3):
            cs.set_num_threads(n)
            results.append(everything(*zoo(dtype, worlds=37, **options)))
    finally:
        cs.set_num_threads(before)
    assert same(results[0], results[1])


@DTYPES
@pytest.mark.parametrize("options", [{}, {"project": 2, "gradient": "exact"}], ids=["default", "exact"])
def test_a_world_does_not_see_its_neighbours(options, dtype):
    sim, state, controls = zoo(dtype, worlds=21, **options)
    q, v, status, grads = everything(sim, state, controls)
    for w in (0, 7, 8, 20):
        one = everything(sim, cs.State(state.q[[w]], state.v[[w]]), controls[:, [w]])
        assert torch.equal(one[0], q[:, [w]]) and torch.equal(one[1], v[:, [w]]) and torch.equal(one[2], status[[w]])
        for mine, all_ in zip(one[3], grads, strict=True):
            assert (mine is None and all_ is None) or torch.equal(mine, all_[:, [w]] if all_ is grads[1] else all_[[w]])


@DTYPES
def test_one_world_in_numpy_is_one_of_the_batch(dtype):
    sim, state, controls = zoo(dtype)
    traj = sim.rollout(state, controls)
    one = cs.State(state.q[3].numpy(), state.v[3].numpy())
    for t in range(4):
        with_info = sim.step(one, controls[t, 3].numpy(), info=True)
        one = sim.step(one, controls[t, 3].numpy())
        assert type(one.q) is np.ndarray and same(with_info[0], one)
        assert all(type(x) is np.ndarray and x.shape == (sim.model.ne,) for x in with_info[1].constraints)
        assert same(one, (traj.q[t + 1, 3], traj.v[t + 1, 3]))


def test_float32_is_close_to_float64():
    """To the softness of all rows in float32, 1e-5 of their weight."""
    results = [sim.rollout(state, controls) for sim, state, controls in (zoo(torch.float64), zoo(torch.float32))]
    torch.testing.assert_close(results[1].q.double(), results[0].q, rtol=0, atol=1e-4)
    torch.testing.assert_close(results[1].v.double(), results[0].v, rtol=0, atol=1e-2)


def test_vmap_is_the_batched_call():
    sim, state, controls = zoo()
    expected = sim.step(state, controls[0], info=True)
    assert same(vmap(lambda q, v, u: sim.step(cs.State(q, v), u, info=True))(*state, controls[0]), expected)
