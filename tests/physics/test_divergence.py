"""A world that stops being finite is flagged, held and silent; its neighbours never notice."""

import warnings

import pytest
import torch
from torch import Tensor

import costate as cs
from tests.parity.trees import costate_scene, random_tree

WORLDS, STEPS, BAD, WHEN = 6, 8, 2, 3  # world BAD blows up in control step WHEN
HUGE = {torch.float64: 1e308, torch.float32: 1e38}  # finite itself; gear times it is not
SUMMED = 1e-12  # a gradient summed over worlds, in packs cut at other places


def scene_model() -> cs.Model:
    scene = costate_scene(random_tree(3, 6))
    scene.add_motors(gear=20.0)
    return scene.build()


def start(model: cs.Model, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    rand = lambda *shape: 0.3 * torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    q, v, u = torch.tensor(model.q0) + rand(WORLDS, model.nq), rand(WORLDS, model.nv), rand(STEPS, WORLDS, model.nu)
    return q.to(dtype), v.to(dtype), u.to(dtype)


def grads(
    model: cs.Model, q: Tensor, v: Tensor, u: Tensor, *, shared: bool = False, substeps: int = 1
) -> tuple[cs.Trajectory, list[Tensor]]:
    """Trajectory and gradients by q, v, controls and masses of a loss on every state but the first."""
    worlds = q.shape[0]
    params = model.params(dtype=q.dtype)
    params = params.detach(requires_grad=("mass",)) if shared else params.expand(worlds).detach(requires_grad=("mass",))
    leaves = [x.clone().requires_grad_() for x in (q, v, u)]
    sim = cs.Simulator(model, dt=0.01, dtype=q.dtype)
    traj = sim.rollout(cs.State(*leaves[:2]), leaves[2], params, substeps=substeps)
    loss = (traj.q[1:].square().sum() + traj.v[1:].square().sum()) / 10
    return traj, list(torch.autograd.grad(loss, [*leaves, *params.leaves()]))


def blown_up(u: Tensor) -> Tensor:
    u = u.clone()
    u[WHEN, BAD] = HUGE[u.dtype]
    return u


OTHERS = [w for w in range(WORLDS) if w != BAD]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("substeps", [1, 3])
def test_a_diverged_world_is_flagged_and_held(dtype, substeps):
    model = scene_model()
    q, v, u = start(model, dtype)
    with pytest.warns(RuntimeWarning, match="1 of 6 worlds diverged"):
        traj, _ = grads(model, q, v, blown_up(u), substeps=substeps)
    calm, _ = grads(model, q, v, u, substeps=substeps)
    assert traj.diverged.tolist() == [w == BAD for w in range(WORLDS)]
    assert traj.diverged_at.tolist() == [WHEN if w == BAD else STEPS for w in range(WORLDS)]
    assert torch.isfinite(traj.q).all() and torch.isfinite(traj.v).all()
    assert torch.equal(traj.q[: WHEN + 1, BAD], calm.q[: WHEN + 1, BAD]), "up to there it ran as usual"
    for t in range(WHEN + 1, STEPS + 1):
        assert torch.equal(traj.q[t, BAD], traj.q[WHEN, BAD]) and torch.equal(traj.v[t, BAD], traj.v[WHEN, BAD])
    assert not calm.diverged.any() and (calm.diverged_at == STEPS).all()


@pytest.mark.filterwarnings("ignore:rollout")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_gives_no_gradient_and_the_others_keep_theirs(dtype):
    model = scene_model()
    q, v, u = start(model, dtype)
    bad, bad_bars = grads(model, q, v, blown_up(u))
    calm, calm_bars = grads(model, q, v, u)
    assert torch.equal(bad.q[:, OTHERS], calm.q[:, OTHERS]) and torch.equal(bad.v[:, OTHERS], calm.v[:, OTHERS])
    for name, b, c in zip(("q", "v", "control", "mass"), bad_bars, calm_bars):
        b, c = (b.transpose(0, 1), c.transpose(0, 1)) if name == "control" else (b, c)
        assert not b[BAD].any(), f"{name}: the diverged world has a gradient"
        assert torch.equal(b[OTHERS], c[OTHERS]), f"{name}: another world's gradient changed"
        assert c[BAD].any() and torch.isfinite(c).all(), f"{name}: nothing to compare"


@pytest.mark.filterwarnings("ignore:rollout")
def test_the_others_are_what_they_are_alone():
    """Also without the bad world in the batch at all; and shared parameters hear only the others."""
    model = scene_model()
    q, v, u = start(model)
    bad, bad_bars = grads(model, q, v, blown_up(u), shared=True)
    alone, alone_bars = grads(model, q[OTHERS], v[OTHERS], u[:, OTHERS], shared=True)
    assert torch.equal(bad.q[:, OTHERS], alone.q) and torch.equal(bad.v[:, OTHERS], alone.v)
    assert torch.equal(bad_bars[0][OTHERS], alone_bars[0]) and torch.equal(bad_bars[2][:, OTHERS], alone_bars[2])
    torch.testing.assert_close(bad_bars[3], alone_bars[3], rtol=SUMMED, atol=SUMMED)


def test_step_flags_and_holds():
    model = scene_model()
    q, v, u = start(model)
    sim = cs.Simulator(model, dt=0.01)
    with pytest.warns(RuntimeWarning, match="diverged"):
        state, info = sim.step(cs.State(q, v), blown_up(u)[WHEN], info=True)
    assert info.diverged.tolist() == [w == BAD for w in range(WORLDS)]
    assert torch.equal(state.v[BAD], v[BAD]) and torch.isfinite(info.acceleration).all()
    calm, info = sim.step(cs.State(q, v), u[WHEN], info=True)
    assert torch.equal(state.q[OTHERS], calm.q[OTHERS]) and not info.diverged.any()
    one = cs.State(q[BAD].numpy(), v[BAD].numpy())
    with pytest.warns(RuntimeWarning, match="diverged"):
        held, info = sim.step(one, blown_up(u)[WHEN, BAD].numpy(), info=True)
    assert info.diverged and (held.v == one.v).all()


@pytest.mark.filterwarnings("ignore:rollout")
def test_a_policy_that_blows_up_one_world():
    model = scene_model()
    q, v, u = start(model)
    sim = cs.Simulator(model, dt=0.01)

    def run(controls: Tensor) -> tuple[cs.Trajectory, Tensor]:
        gain = torch.ones(WORLDS, 1, dtype=torch.float64, requires_grad=True)
        traj = sim.rollout(cs.State(q, v), lambda state, carry, t: gain * controls[t], steps=STEPS)
        return traj, torch.autograd.grad(traj.q[1:].square().sum() + traj.v[1:].square().sum(), gain)[0]

    (bad, bad_bar), (calm, calm_bar) = run(blown_up(u)), run(u)
    assert bad.diverged_at.tolist() == [WHEN if w == BAD else STEPS for w in range(WORLDS)]
    assert torch.isfinite(bad.q).all() and torch.equal(bad.q[-1, BAD], bad.q[WHEN, BAD])
    assert torch.equal(bad.q[:, OTHERS], calm.q[:, OTHERS]) and torch.equal(bad_bar[OTHERS], calm_bar[OTHERS])
    assert bad_bar[BAD] == 0, "the diverged world has a gradient"
    assert (calm_bar != 0).all()


def test_a_calm_rollout_warns_of_nothing():
    model = scene_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traj, _ = grads(model, *start(model))
    assert not traj.diverged.any()
