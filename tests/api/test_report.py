"""gradient_report: norms against a costate taken back by hand, changes and distances where they are known, text and plot."""

import sys

import numpy as np
import pytest
import torch

import costate as cs
from tests.api.toys import DT, ROW_NAMES, model, random_state, soft

MODEL = model()
SIM = cs.Simulator(MODEL, dt=DT)
STEPS, WORLDS, NV = 10, 3, MODEL.nv
SOFT = soft(MODEL)
# the same products in another order, with shapes that are not rigid: measured 1e-14
TOLERANCE = 1e-11
FIELDS = ("costate_norm", "changes", "closest", "contacts", "converged")


def run(*batch, seed=1, **options):
    state = random_state(MODEL, torch.Generator().manual_seed(seed), *batch)
    controls = 0.2 * torch.ones(STEPS, *batch, MODEL.nu, dtype=torch.float64)
    return SIM.rollout(state, controls, **options)


def falling(height=0.05, restitution=0.0):
    """A ball alone, above the ground."""
    scene = cs.Scene()
    scene.add_ground(restitution=restitution)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1 + height), shapes=cs.Sphere(0.1, restitution=restitution))
    return cs.Simulator(scene.build(), dt=DT)


def norms_by_hand(traj, bars):
    """bars [T + 1, worlds, 2 nv], tangent; one substep per control step, SOFT."""
    costate, found = torch.zeros_like(bars[0]), []
    for t in reversed(range(len(traj))):
        A, _ = SIM.linearize(traj[t], traj.controls[t], SOFT)
        costate = ((costate + bars[t + 1]).unsqueeze(-2) @ A).squeeze(-2)
        found.append(costate.norm(dim=-1))
    return torch.stack(found[::-1])


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_norms_without_a_loss(batch):
    traj = run(*batch, params=SOFT)
    report = SIM.gradient_report(traj, SOFT)
    bars = torch.zeros(STEPS + 1, *batch, 2 * NV, dtype=torch.float64)
    bars[-1] = (2 * NV) ** -0.5
    torch.testing.assert_close(report.costate_norm, norms_by_hand(traj, bars), rtol=TOLERANCE, atol=TOLERANCE)
    torch.testing.assert_close(report.end_norm, torch.ones(batch, dtype=torch.float64))
    assert all(getattr(report, name).shape == (STEPS, *batch) for name in FIELDS)
    assert report.growth.shape == (STEPS, *batch) and len(report) == STEPS
    torch.testing.assert_close(report.growth[-1], report.costate_norm[-1] / report.end_norm)


def test_norms_of_a_loss():
    traj = run(WORLDS, params=SOFT)
    weights = torch.randn(STEPS + 1, WORLDS, NV, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    report = SIM.gradient_report(traj, SOFT, loss=lambda t: (weights * t.v).sum() + t.q[-1, :, -1].square().sum())
    bars = torch.cat((torch.zeros_like(weights), weights), -1)
    bars[-1, :, NV - 1] += 2 * traj.q[-1, :, -1]
    torch.testing.assert_close(report.costate_norm, norms_by_hand(traj, bars), rtol=TOLERANCE, atol=TOLERANCE)
    torch.testing.assert_close(report.end_norm, bars[-1].norm(dim=-1))


def test_norms_are_those_of_autograd():
    """With substeps, params per world, wrenches and a step size of its own."""
    batch = (2,)
    params = SOFT.replace(mass=MODEL.defaults["mass"] * torch.tensor([[1.0], [1.3]], dtype=torch.float64))
    gen = torch.Generator().manual_seed(3)
    start = random_state(MODEL, gen, *batch)
    external = torch.randn(STEPS, *batch, MODEL.nb, 6, generator=gen, dtype=torch.float64)
    given = {"substeps": 3, "dt": 0.004, "external": external}
    turn, v = (torch.zeros_like(start.v).requires_grad_(), start.v.clone().requires_grad_())
    traj = SIM.rollout(cs.State(MODEL.integrate(start.q, turn), v), None, params, steps=STEPS, **given)
    bars = torch.autograd.grad(traj.v[-1].square().sum(), (turn, v))
    report = SIM.gradient_report(traj, params, loss=lambda t: t.v[-1].square().sum(), **given)
    torch.testing.assert_close(report.costate_norm[0], torch.cat(bars, -1).norm(dim=-1), rtol=TOLERANCE, atol=TOLERANCE)
    assert not report.costate_norm.requires_grad


def test_a_ball_that_lands():
    """Every change is a contact that begins or ends to push; it ends at rest."""
    sim = falling()
    traj = sim.rollout(sim.initial_state(), steps=40)
    report = sim.gradient_report(traj)
    pushed = (traj.v[1:, 2] - traj.v[:-1, 2] > -(1 - 1e-6) * 9.81 * DT).long()
    assert torch.equal(report.contacts, pushed) and pushed[-10:].all() and not pushed[0]
    expected = torch.cat((torch.zeros(1, dtype=torch.long), pushed[1:] != pushed[:-1]))
    assert torch.equal(report.changes, expected)
    landing, total = int(pushed.argmax()), int(expected.sum())
    assert report.flips == {"ball/0 on ground": total}
    # before the impact: the speed at which the gap would just close in this step, and the speed that is there
    gap, speed = traj.q[landing, 2] - 0.1, traj.v[landing, 2] - 9.81 * DT
    assert speed < 0 and gap + DT * speed < 0
    assert torch.isinf(report.closest[0]) and torch.isfinite(report.closest[landing:]).all() and (report.closest >= 0).all()
    # at rest the contact lets go if it moves up by what gravity gives in a step
    torch.testing.assert_close(report.closest[-1], torch.tensor(9.81 * DT, dtype=torch.float64), rtol=1e-6, atol=0)
    assert report.converged.all()
    text = str(report)
    assert f"{total} in {total} steps; most in step {landing} (1)" in text and f"ball/0 on ground: {total}" in text


def test_a_ball_that_bounces_changes_twice_per_bounce():
    sim = falling(0.2, restitution=0.8)
    report = sim.gradient_report(sim.rollout(sim.initial_state(2), steps=60))
    touching = report.contacts[:, 0]
    expected = (touching[1:] != touching[:-1]).sum()
    assert report.changes[:, 0].sum() == expected >= 4 and torch.equal(report.changes[:, 0], report.changes[:, 1])
    assert list(report.flips.values()) == [2 * expected]


def test_joint_rows_count():
    """The arm runs into its limit, its servo into its largest force."""
    state = SIM.initial_state()
    controls = torch.cat((torch.zeros(20, 1), 20 * torch.ones(60, 1))).double()
    report = SIM.gradient_report(SIM.rollout(state, controls))
    assert report.changes[20] >= 1 and set(ROW_NAMES) <= set(report.flips)


def test_numpy_in_numpy_out():
    traj = run(WORLDS)
    arrays = cs.Trajectory(traj.q.numpy(), traj.v.numpy(), traj.diverged_at.numpy(), traj.controls.numpy())
    found, expected = SIM.gradient_report(arrays), SIM.gradient_report(traj)
    for name in (*FIELDS, "end_norm", "growth"):
        assert type(getattr(found, name)) is np.ndarray
        assert np.array_equal(getattr(found, name), getattr(expected, name).numpy(), equal_nan=True)
    assert str(found) == str(expected) and found.flips == expected.flips


def test_a_trajectory_from_a_file_and_of_a_policy(tmp_path):
    state = random_state(MODEL, torch.Generator().manual_seed(4), WORLDS)
    traj = SIM.rollout(state, lambda s, c, t: 0.1 * s.v[..., -1:], steps=STEPS)
    traj.save(tmp_path / "motion.npz")
    found = SIM.gradient_report(cs.Trajectory.load(tmp_path / "motion.npz"))
    assert torch.equal(found.costate_norm, SIM.gradient_report(traj).costate_norm)


def test_float32():
    sim = cs.Simulator(MODEL, dt=DT, dtype=torch.float32)
    state = cs.State(*(x.float() for x in random_state(MODEL, torch.Generator().manual_seed(5), WORLDS)))
    report = sim.gradient_report(sim.rollout(state, steps=STEPS))
    assert report.costate_norm.dtype == torch.float32 and report.costate_norm.isfinite().all() and report.costate_norm.all()


def test_worlds_that_diverged():
    state = random_state(MODEL, torch.Generator().manual_seed(6), WORLDS)
    controls = torch.zeros(STEPS, WORLDS, 1, dtype=torch.float64)
    external = torch.zeros(STEPS, WORLDS, MODEL.nb, 6, dtype=torch.float64)
    external[4, 1] = 1e308
    with pytest.warns(RuntimeWarning, match="diverged"):
        traj = SIM.rollout(state, controls, external=external)
    assert traj.diverged.tolist() == [False, True, False]
    report = SIM.gradient_report(traj, external=external)
    assert not report.costate_norm[:, 1].any() and report.costate_norm[:, ::2].all() and report.costate_norm.isfinite().all()
    assert not report.changes[4:, 1].any() and "nan" not in str(report)


# ---- what is refused -------------------------------------------------------------------------------------------------
def test_what_the_trajectory_was_not_made_with_is_refused():
    traj, message = run(WORLDS), "the trajectory is another than these params, substeps, external and dt give: in step 0 of world"
    heavy = MODEL.params().replace(gravity=torch.tensor([0, 0, -20.0]).double())
    for options in ({"dt": 0.02}, {"substeps": 2}, {"params": heavy}, {"external": torch.ones(MODEL.nb, 6).double()}):
        with pytest.raises(ValueError, match=message):
            SIM.gradient_report(traj, **options)
    with pytest.raises(ValueError, match=message):
        SIM.gradient_report(cs.Trajectory(traj.q, traj.v + 1, traj.diverged_at, traj.controls))


def test_bad_input():
    traj = run(WORLDS)
    with pytest.raises(TypeError, match=r"trajectory must be a costate.Trajectory, got State"):
        SIM.gradient_report(traj[0])
    with pytest.raises(TypeError, match=r"loss must give a scalar tensor"):
        SIM.gradient_report(traj, loss=lambda t: t.v[-1])
    with pytest.raises(TypeError, match=r"loss must give a scalar tensor"):
        SIM.gradient_report(traj, loss=lambda t: 1.0)
    with pytest.raises(ValueError, match="loss does not depend on the trajectory"):
        SIM.gradient_report(traj, loss=lambda t: t.controls.sum())
    with pytest.raises(ValueError, match="substeps must be a positive int"):
        SIM.gradient_report(traj, substeps=0)
    with pytest.raises(ValueError, match=r"the trajectory has worlds \(3,\)"):
        SIM.gradient_report(traj, dt=torch.full((2, 3), 0.01, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"trajectory.q must be float64, got float32"):
        SIM.gradient_report(cs.Trajectory(traj.q.float(), traj.v.float(), traj.diverged_at))


# ---- text and plot ---------------------------------------------------------------------------------------------------
def test_text():
    report = SIM.gradient_report(run(2, 3))
    lines = str(report).splitlines()
    assert lines[0] == f"GradientReport: {STEPS} steps of 6 worlds"
    for word in ("costate norm", "grows most", "contacts", "changes", "closest to one", "not converged"):
        assert any(line.startswith(f"  {word}") for line in lines[1:])
    assert "of world 0, " in str(report) or "of world 1, " in str(report)
    assert repr(report) == f"GradientReport(steps={STEPS}, worlds=(2, 3))"
    assert "world" not in str(SIM.gradient_report(run()))


@pytest.mark.parametrize("worlds", [1, 40])
def test_plot(tmp_path, worlds):
    pytest.importorskip("matplotlib")
    report = SIM.gradient_report(run(worlds))
    figure = report.plot(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 10_000 and len(figure.axes) == 3
    falling_ball = falling(1.0)
    assert falling_ball.gradient_report(falling_ball.rollout(falling_ball.initial_state(), steps=2)).plot() is not None


def test_plot_without_matplotlib(monkeypatch):
    report = SIM.gradient_report(run())
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="needs matplotlib"):
        report.plot()
