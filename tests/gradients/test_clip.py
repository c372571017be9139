"""Costate clipping: against a costate taken back by hand with linearize, in rollouts with controls and with a policy."""

import pytest
import torch
from torch.func import vmap

import costate as cs

STEPS, WORLDS, DT = 12, 3, 0.01
# the same products in another order; the solve's own tolerance is 1e-10
TOLERANCE = 1e-7


def scene():
    """Quaternions, plain coordinates and contact."""
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.12), shapes=cs.Sphere(0.1))
    scene.add_body("upper", joint=cs.Ball(damping=0.01), pos=(1, 0, 1), shapes=cs.Capsule(0.05, 0.2, pos=(0, 0, -0.2)))
    lower = cs.Capsule(0.05, 0.2, pos=(0, 0, -0.2))
    scene.add_body("lower", parent="upper", joint=cs.Revolute((0, 1, 0)), pos=(0, 0, -0.4), shapes=lower)
    scene.add_motors()
    return scene


MODEL = scene().build()
SIM = cs.Simulator(MODEL, dt=DT)
NV = MODEL.nv


def setup(seed=0, worlds=WORLDS):
    gen = torch.Generator().manual_seed(seed)
    x, v = (torch.randn(worlds, NV, generator=gen, dtype=torch.float64) for _ in range(2))
    state = cs.State(MODEL.integrate(torch.tensor(MODEL.q0).expand(worlds, -1).contiguous(), 0.02 * x), 0.5 * v)
    controls = torch.randn(STEPS, worlds, MODEL.nu, generator=gen, dtype=torch.float64)
    weights = torch.randn(STEPS, worlds, NV, generator=gen, dtype=torch.float64)
    return state, controls, weights


def by_hand(state, controls, weights, clip, decay=1.0, truncate=None):
    """Gradients of sum(weights * v after each step), with respect to (tangent q, v) at the start and all controls."""
    traj = SIM.rollout(state, controls)
    costate = torch.zeros(WORLDS, 2 * NV, dtype=torch.float64)
    control_bars = []
    for t in reversed(range(STEPS)):
        costate[:, NV:] += weights[t]
        A, B = SIM.linearize(traj[t], controls[t])
        control_bars.append((costate.unsqueeze(1) @ B).squeeze(1))
        costate = (costate.unsqueeze(1) @ A).squeeze(1)
        norm = costate.norm(dim=-1, keepdim=True)
        costate = costate * (clip / norm).clamp(max=1.0) if clip else costate
        costate = costate * (0.0 if truncate and t > 0 and t % truncate == 0 else decay)
    return costate, torch.stack(control_bars[::-1])


def gradients(state, controls, weights, *, policy=False, **options):
    """The same through the engine: q is moved by a tangent vector, so that its gradient is tangent too."""
    turn, v, u = torch.zeros_like(state.v).requires_grad_(), state.v.clone().requires_grad_(), controls.clone().requires_grad_()
    start = cs.State(MODEL.integrate(state.q, turn), v)
    control = (lambda s, c, t: u[t]) if policy else u
    traj = SIM.rollout(start, control, steps=STEPS, **options)
    bars = torch.autograd.grad((weights * traj.v[1:]).sum(), (turn, v, u))
    return torch.cat(bars[:2], -1), bars[2]


def assert_close(found, expected):
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=TOLERANCE, atol=TOLERANCE * b.abs().max().item())


@pytest.mark.parametrize("policy", [False, True], ids=["controls", "policy"])
@pytest.mark.parametrize(
    "options", [{}, {"clip": 0.5}, {"clip": 3.0}, {"clip": 2.0, "decay": 0.8}, {"clip": 2.0, "truncate": 4}], ids=str
)
def test_against_a_costate_by_hand(options, policy):
    given = setup(1)
    expected = by_hand(*given, options.get("clip"), options.get("decay", 1.0), options.get("truncate"))
    assert_close(gradients(*given, policy=policy, **options), expected)


@pytest.mark.parametrize("policy", [False, True], ids=["controls", "policy"])
def test_a_costate_below_the_limit_is_left_alone(policy):
    given = setup(2)
    for found, expected in zip(gradients(*given, policy=policy, clip=1e9), gradients(*given, policy=policy)):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("policy", [False, True], ids=["controls", "policy"])
def test_each_world_has_its_own_limit(policy):
    """The loss of world 1 counts more than that of the others: only its gradient is clipped."""
    state, controls, weights = setup(3)
    weights = weights * torch.tensor([1e-5, 1.0, 1e-5], dtype=torch.float64).view(1, 3, 1)
    found, _ = gradients(state, controls, weights, policy=policy, clip=0.1)
    free, _ = gradients(state, controls, weights, policy=policy)
    assert torch.equal(found[::2], free[::2]) and free[1].norm() > 1
    torch.testing.assert_close(found[1].norm(), torch.tensor(0.1, dtype=torch.float64))
    alone = cs.State(*(x[1:2] for x in state)), controls[:, 1:2], weights[:, 1:2]
    torch.testing.assert_close(gradients(*alone, policy=policy, clip=0.1)[0][0], found[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("policy", [False, True], ids=["controls", "policy"])
def test_a_huge_costate_keeps_its_direction(policy, dtype):
    """The square of its norm is not a number of this precision."""
    sim = cs.Simulator(MODEL, dt=DT, dtype=dtype)
    state, controls, _ = setup(4)
    huge = 1e25 if dtype is torch.float32 else 1e200
    found = []
    for scale in (1.0, huge):
        v, u = state.v.to(dtype).requires_grad_(), controls.to(dtype)
        traj = sim.rollout(cs.State(state.q.to(dtype), v), (lambda s, c, t, u=u: u[t]) if policy else u, steps=STEPS, clip=1e-3)
        found.append(torch.autograd.grad((scale * traj.v[-1]).sum(), v)[0])
    assert found[1].isfinite().all() and found[1].any()
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-7)


def test_states_that_broadcast():
    """One start for all worlds: each world's costate is clipped before they are summed."""
    state, controls, weights = setup(5)
    for policy in (False, True):
        v = state.v[0].clone().requires_grad_()
        u = (lambda s, c, t: controls[t]) if policy else controls
        traj = SIM.rollout(cs.State(state.q, v), u, steps=STEPS, clip=0.1)
        (found,) = torch.autograd.grad((weights * traj.v[1:]).sum(), v)
        each = gradients(cs.State(state.q, state.v[:1].expand(WORLDS, -1)), controls, weights, policy=policy, clip=0.1)[0]
        torch.testing.assert_close(found, each[:, NV:].sum(0), rtol=1e-9, atol=1e-12)


def test_vmap():
    state, controls, weights = setup(6)
    for policy in (False, True):

        def f(q, v, u, w, policy=policy):
            traj = SIM.rollout(cs.State(q, v), (lambda s, c, t: u[t]) if policy else u, steps=STEPS, clip=0.3)
            return (w * traj.v[1:]).sum()

        found = vmap(torch.func.grad(f, argnums=1), in_dims=(0, 0, 1, 1))(*state, controls, weights)
        v = state.v.clone().requires_grad_()
        (expected,) = torch.autograd.grad(f(state.q, v, controls, weights), v)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("clip", [0, -1.0, float("nan"), float("inf"), "1", True], ids=repr)
def test_bad_limits_are_refused(clip):
    state, controls, _ = setup()
    for u in (controls, lambda s, c, t: controls[t]):
        with pytest.raises(ValueError, match="clip must be a positive finite number or None"):
            SIM.rollout(state, u, steps=STEPS, clip=clip)
