"""The rollout's own adjoint against torch's graph of a loop of single steps, with decay and truncation written out."""

import pytest
import torch

import costate as cs
from costate.scene.fields import FIELD_NAMES
from tests.gradients.differences import error_of_derivative
from tests.gradients.scenes import build, generator, normal, random_params, random_state

# Both do the same sums in another order; measured at most 3e-15.
TOLERANCE = 1e-12
# 2,000 steps let the truncation and round-off of differences grow; measured at most 5e-10.
TOLERANCE_LONG = 1e-6
STEPS, WORLDS = 10, 3
FIELDS = tuple(name for name in FIELD_NAMES if not name.startswith("site"))

OPTIONS = [
    {}, {"substeps": 3}, {"decay": 0.9}, {"decay": 0.0}, {"truncate": 4}, {"truncate": 1}, {"truncate": 100},
    {"decay": 0.8, "truncate": 3}, {"decay": 0.8, "truncate": 3, "substeps": 2},
]  # fmt: skip


def scaled(x, decay):
    """x, and its gradient times decay."""
    return x.detach() + decay * (x - x.detach())


def heard(tree, t, decay, truncate):
    """The tensors of step t's start as the steps after it see them: cut, scaled or as they are."""
    if truncate and t > 0 and t % truncate == 0:
        return [x.detach() for x in tree]
    return [scaled(x, decay) for x in tree]


def loop(sim, x, params, *, substeps=1, decay=1.0, truncate=None, policy=None):
    """What rollout does, one sim.step at a time."""
    q, v, carry = x["q"], x["v"], x.get("carry")
    qs, vs, controls = [q], [v], []
    for t in range(STEPS):
        q, v = heard((q, v), t, decay, truncate)
        if policy is None:
            control = x["controls"][t]
        else:
            (carry,) = heard((carry,), t, decay, truncate)
            control, carry = policy(cs.State(q, v), carry, t)
        external = x.get("external", x["externals"][t] if "externals" in x else None)
        for _ in range(substeps):
            q, v = sim.step(cs.State(q, v), control, params, external=external, dt=x.get("dt"))
        qs.append(q), vs.append(v), controls.append(control)
    return torch.stack(qs), torch.stack(vs), torch.stack(controls)


def leaves(model, gen, *names):
    sizes = {
        "controls": (STEPS, WORLDS, model.nu), "external": (WORLDS, model.nb, 6), "externals": (STEPS, WORLDS, model.nb, 6),
        "carry": (WORLDS, model.nu), "gain": (model.nu, model.nv),
    }  # fmt: skip
    found = {**random_state(model, gen, WORLDS)._asdict(), **{name: normal(gen, *sizes[name]) for name in names if name in sizes}}
    if "dt" in names:
        found["dt"] = 0.01 + 0.002 * normal(gen, WORLDS).tanh()
    return {name: x.requires_grad_() for name, x in found.items()}


def gradients(gen_seed, outputs, x, params):
    """Gradients of a random linear function of the outputs in all of x and params."""
    gen = generator(gen_seed)
    loss = sum((normal(gen, *y.shape) * y).sum() for y in outputs)
    every = {**x, **{name: params[name] for name in FIELDS}}
    return dict(zip(every, torch.autograd.grad(loss, list(every.values()), allow_unused=True)))


def assert_same_gradients(found, expected):
    for name, want in expected.items():
        got = found[name]
        if want is None or got is None:
            assert (want is None or not want.any()) and (got is None or not got.any()), name
            continue
        assert (got - want).norm() <= TOLERANCE * want.norm(), f"{name}: off by {((got - want).norm() / want.norm()).item():.1e}"


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("inputs", [("controls",), ("controls", "externals", "dt")], ids=" ".join)
@pytest.mark.parametrize("scene", ["every joint", "quadruped"])
def test_rollout_is_a_loop_of_steps(scene, inputs, options):
    model, gen = build(scene), generator(1)
    sim, params = cs.Simulator(model), random_params(model, gen).detach(requires_grad=FIELDS)
    x = leaves(model, gen, *inputs)
    traj = sim.rollout(cs.State(x["q"], x["v"]), x["controls"], params, external=x.get("externals"), dt=x.get("dt"), **options)
    q, v, _ = loop(sim, x, params, **options)
    assert torch.equal(traj.q, q) and torch.equal(traj.v, v)
    assert_same_gradients(gradients(2, traj.states, x, params), gradients(2, (q, v), x, params))


def test_constant_external_and_parameters_per_world():
    model, gen = build("every joint"), generator(3)
    sim, params = cs.Simulator(model), random_params(model, gen, WORLDS).detach(requires_grad=FIELDS)
    x = leaves(model, gen, "controls", "external")
    traj = sim.rollout(cs.State(x["q"], x["v"]), x["controls"], params, external=x["external"], substeps=2)
    q, v, _ = loop(sim, x, params, substeps=2)
    assert torch.equal(traj.q, q) and torch.equal(traj.v, v)
    assert_same_gradients(gradients(4, traj.states, x, params), gradients(4, (q, v), x, params))


@pytest.mark.parametrize("shared", ["controls", "externals"])
def test_what_all_worlds_share_over_time(shared):
    """A time axis without world axis means the same for every world, also where there are as many worlds as steps."""
    model, gen = build("every joint"), generator(4)
    sim = cs.Simulator(model)
    for worlds in (WORLDS, STEPS):
        state = random_state(model, gen, worlds)
        u, f = normal(gen, STEPS, 1, model.nu), normal(gen, STEPS, 1, model.nb, 6)
        u, f = (u[:, 0], f) if shared == "controls" else (u, f[:, 0].unsqueeze(1))
        found = sim.rollout(state, u, external=f)
        expected = sim.rollout(state, u.reshape(STEPS, 1, -1).expand(-1, worlds, -1), external=f.expand(-1, worlds, -1, -1))
        assert torch.equal(found.q, expected.q) and torch.equal(found.v, expected.v)


def feedback(gain):
    """A policy with an integrating carry; everything it sees matters."""

    def policy(state, carry, t):
        carry = 0.9 * carry + state.v @ gain.T
        return torch.tanh(carry + state.q.sum(-1, keepdim=True)) + 0.1 * t, carry

    return policy


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("inputs", [(), ("external", "dt")], ids=["plain", "external dt"])
def test_policy_rollout_is_a_loop_of_steps(inputs, options):
    model, gen = build("every joint"), generator(5)
    sim, params = cs.Simulator(model), random_params(model, gen).detach(requires_grad=FIELDS)
    x = leaves(model, gen, "carry", "gain", *inputs)
    policy, more = feedback(x["gain"]), {name: x[name] for name in inputs}
    traj = sim.rollout(cs.State(x["q"], x["v"]), policy, params, steps=STEPS, carry=x["carry"], **more, **options)
    q, v, controls = loop(sim, x, params, policy=policy, **options)
    assert torch.equal(traj.q, q) and torch.equal(traj.v, v) and torch.equal(traj.controls, controls)
    found = gradients(6, (*traj.states, traj.controls), x, params)
    assert_same_gradients(found, gradients(6, (q, v, controls), x, params))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("inputs", [("controls",), ("controls", "external"), ("controls", "externals", "dt")], ids=" ".join)
def test_policy_that_plays_back_controls(inputs, options):
    model, gen = build("every joint"), generator(7)
    sim, params = cs.Simulator(model), random_params(model, gen).detach(requires_grad=FIELDS)
    x = leaves(model, gen, *inputs)
    state, more = cs.State(x["q"], x["v"]), {"external": x.get("external", x.get("externals")), "dt": x.get("dt"), **options}
    tensor = sim.rollout(state, x["controls"], params, **more)
    played = sim.rollout(state, lambda state, carry, t: x["controls"][t], params, steps=STEPS, **more)
    assert torch.equal(tensor.q, played.q) and torch.equal(tensor.v, played.v) and played.carry is None
    assert_same_gradients(gradients(8, played.states, x, params), gradients(8, tensor.states, x, params))


def test_carry_may_be_any_nest_of_tensors():
    """Tensors in it are scaled and cut like the state; what is no tensor goes through."""
    sim, w = cs.Simulator(build("arm")), torch.ones(4, dtype=torch.float64, requires_grad=True)

    def policy(state, carry, t):
        assert carry["count"] == t
        return 0 * w, {"sum": (carry["sum"][0] + t * w,), "count": carry["count"] + 1}

    def gradient(**options):
        traj = sim.rollout(sim.initial_state(), policy, steps=4, carry={"sum": (w,), "count": 0}, **options)
        assert traj.carry["count"] == 4
        return torch.autograd.grad(traj.carry["sum"][0].sum(), w)[0][0].item()

    assert gradient() == 1 + 0 + 1 + 2 + 3
    assert gradient(truncate=2) == 2 + 3  # what came before step 2 is cut off
    assert gradient(decay=0.5) == 1 / 16 + 0 / 8 + 1 / 4 + 2 / 2 + 3


@pytest.mark.parametrize("dt", [torch.tensor(0.01), torch.tensor([0.01, 0.02, 0.005])], ids=["one", "per world"])
def test_gradient_in_dt_of_a_rollout(dt):
    model, gen = build("arm"), generator(9)
    sim, state, controls = cs.Simulator(model), random_state(model, gen, WORLDS), normal(gen, 50, WORLDS, model.nu)
    dt = dt.double()
    w = normal(gen, WORLDS * (model.nq + model.nv))

    def f(dt):
        return torch.cat([x.reshape(-1) for x in sim.rollout(state, controls, dt=dt)[-1]])

    # 50 steps: the step size enters each, which makes higher derivatives larger; measured 1e-9
    assert error_of_derivative(f, dt, dt * normal(gen, *dt.shape), w) < 1e-7


@pytest.mark.parametrize("wrt", ["q", "v", "controls", "damping", "joint_pos", "mass"])
def test_long_rollout(wrt):
    model, gen = build("arm"), generator(10)
    sim, steps, params = cs.Simulator(model, dt=0.005), 2000, random_params(model, gen)
    x = {**random_state(model, gen)._asdict(), "controls": 0.1 * normal(gen, steps, model.nu)}
    w = normal(gen, model.nq + model.nv)

    def f(value):
        y = {**x, wrt: value}
        here = params if wrt in x else params.replace(**{wrt: value})
        return torch.cat(sim.rollout(cs.State(y["q"], y["v"]), y["controls"], here)[-1])

    value = x.get(wrt, params.get(wrt))
    (grad,) = torch.autograd.grad(w @ f(leaf := value.clone().requires_grad_()), leaf)
    assert torch.isfinite(grad).all() and grad.any()
    assert error_of_derivative(f, value, value.abs().clamp(max=0.1) * normal(gen, *value.shape), w) < TOLERANCE_LONG


def test_a_world_that_diverges_gives_no_gradient_and_disturbs_nobody():
    model, gen = build("every joint"), generator(11)
    sim, params = cs.Simulator(model), model.params(requires_grad=FIELDS)
    x = {name: t.detach() for name, t in leaves(model, gen, "controls").items()}
    x["controls"][5, 1] = 1e308
    w = normal(gen, STEPS, WORLDS, model.nv)

    def run(worlds):
        q, v, u = (x[name][..., worlds, :].clone().requires_grad_() for name in ("q", "v", "controls"))
        traj = sim.rollout(cs.State(q, v), u, params)
        loss = (w[:, worlds] * traj.v[1:]).sum()
        return traj, torch.autograd.grad(loss, [q, v, u, *(params[name] for name in FIELDS)])

    with pytest.warns(RuntimeWarning, match="1 of 3 worlds diverged"):
        traj, grads = run([0, 1, 2])
    assert traj.diverged.tolist() == [False, True, False] and traj.diverged_at.tolist() == [STEPS, 5, STEPS]
    assert torch.isfinite(traj.q).all() and torch.isfinite(traj.v).all()
    _, expected = run([0, 2])
    for i, (found, want) in enumerate(zip(grads, expected)):
        if i < 3:
            assert not found[..., 1, :].any()
            found = found[..., [0, 2], :]
        assert torch.equal(found, want)
