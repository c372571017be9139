"""How the functions behave as part of torch: graphs, second derivatives, functional transforms, compilation, inference mode."""

import pytest
import torch
from torch.func import grad, jacfwd, jacrev, vjp, vmap

import costate as cs
from tests.gradients.differences import CALLS, flatten, random_inputs
from tests.gradients.scenes import SCENES, build, generator, normal, random_params, random_state

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),  # torch.func's own
]
WORLDS, STEPS = 3, 4
MODEL = build("every joint")
SIM = cs.Simulator(MODEL)
# vmap only merges samples into the batch: nothing may change, up to sums over worlds that share a parameter.
TOLERANCE = 1e-13


def state(*batch):
    return random_state(MODEL, generator(1), *batch)


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE * expected.abs().max().item())


# ---- graphs ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CALLS)
def test_no_graph_without_requires_grad_and_the_same_numbers_with(name):
    call, gen = CALLS[name], generator(2)
    inputs, params = random_inputs(MODEL, gen, call.inputs, WORLDS), random_params(MODEL, gen)
    plain = flatten(call.run(SIM, inputs, params))
    assert not plain.requires_grad and plain.grad_fn is None
    leaves = {key: x.clone().requires_grad_() for key, x in inputs.items()}
    tracked = flatten(call.run(SIM, leaves, params.detach(requires_grad=True)))
    assert tracked.requires_grad and torch.equal(plain, tracked.detach())
    with torch.no_grad():
        assert not flatten(call.run(SIM, leaves, params)).requires_grad


@pytest.mark.parametrize("name", CALLS)
def test_gradient_of_one_input_alone_is_the_same(name):
    """Asking for less must not change what is asked for."""
    call, gen = CALLS[name], generator(3)
    inputs = random_inputs(MODEL, gen, call.inputs, WORLDS)
    leaves = {key: x.clone().requires_grad_() for key, x in inputs.items()}
    params = MODEL.params(requires_grad=True)
    together = torch.autograd.grad(flatten(call.run(SIM, leaves, params)).sin().sum(), list(leaves.values()))
    for key, expected in zip(leaves, together):
        alone = {**inputs, key: leaves[key]}
        (found,) = torch.autograd.grad(flatten(call.run(SIM, alone, None)).sin().sum(), leaves[key])
        assert torch.equal(found, expected)


def test_where_cuts_the_graph_of_worlds_that_are_reset():
    old, fresh = (cs.State(*(x.requires_grad_() for x in random_state(MODEL, generator(i), WORLDS))) for i in range(2))
    mask = torch.tensor([False, True, False])
    mixed = old.where(mask, fresh)
    assert torch.equal(mixed.q[1], fresh.q[1]) and torch.equal(mixed.q[::2], old.q[::2])
    next_state = SIM.step(mixed)
    (next_state.q.sum() + next_state.v.sum()).backward()
    assert fresh.q.grad is None and fresh.v.grad is None
    assert not old.q.grad[1].any() and not old.v.grad[1].any() and old.v.grad[::2].all()


# ---- second derivatives: refused, not wrong -------------------------------------------------------------------------
@pytest.mark.parametrize("name", CALLS)
def test_second_derivative_raises(name):
    call = CALLS[name]
    inputs = random_inputs(MODEL, generator(4), call.inputs, WORLDS)
    inputs["q"].requires_grad_()
    loss = flatten(call.run(SIM, inputs, None)).square().sum()
    (first,) = torch.autograd.grad(loss, inputs["q"], create_graph=True)
    assert first.requires_grad and first.any()
    with pytest.raises(NotImplementedError, match=r"second derivatives .*not\s+supported.*linearize"):
        first.square().sum().backward()


def test_second_derivative_through_backward_and_functional_transforms_raises():
    q, v = state()
    q.requires_grad_()
    SIM.step(cs.State(q, v)).v.square().sum().backward(create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(q.grad.sum(), q)
    q.grad = None
    f = grad(lambda q: SIM.step(cs.State(q, v)).v.square().sum())
    with pytest.raises(NotImplementedError, match="second derivatives"):
        grad(lambda q: f(q).sum())(q.detach())
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.functional.hessian(lambda q: SIM.step(cs.State(q, v)).v.square().sum(), q.detach())


def test_forward_mode_raises():
    q, v = state()
    with pytest.raises(NotImplementedError, match=r"jvp|forward"):
        jacfwd(lambda q: SIM.step(cs.State(q, v)).v)(q)


# ---- vmap, jacrev, vjp ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CALLS)
def test_vmap_is_the_batched_call(name):
    call = CALLS[name]
    inputs = random_inputs(MODEL, generator(5), call.inputs, WORLDS)
    inputs.pop("one_dt", None)
    timed = {key: 1 if key in ("controls", "externals") else 0 for key in inputs}
    out = vmap(lambda x: call.run(SIM, x, None), in_dims=(timed,), out_dims=1 if name.startswith("rollout") else 0)(inputs)
    assert torch.equal(flatten(out), flatten(call.run(SIM, inputs, None)))


@pytest.mark.parametrize("field", ["q", "control", "dt", "external", "mass", "joint_quat", "gravity"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["one world", "two worlds"])
def test_vmap_over_one_argument(field, batch):
    gen = generator(6)
    s, params = state(*batch), MODEL.params()
    many = {
        "q": random_state(MODEL, gen, WORLDS, *batch).q, "control": normal(gen, WORLDS, *batch, MODEL.nu),
        "dt": torch.tensor([0.01, 0.02, 0.005]).double(), "external": normal(gen, WORLDS, *batch, MODEL.nb, 6),
        **random_params(MODEL, gen, WORLDS),
    }[field]  # fmt: skip

    def f(x):
        y = {"q": s.q, "control": None, "dt": None, "external": None, "params": params}
        y = {**y, field: x} if field in y else {**y, "params": params.replace(**{field: x})}
        return torch.cat(SIM.step(cs.State(y["q"], s.v), y["control"], y["params"], external=y["external"], dt=y["dt"]), -1)

    assert torch.equal(vmap(f)(many), torch.stack([f(x) for x in many]))
    gradients = vmap(grad(lambda x: f(x).sin().sum()))(many)
    assert_close(gradients, torch.stack([grad(lambda x: f(x).sin().sum())(x) for x in many]))


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one world", "two worlds"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("wrt", [(0,), (1,), (2,), (3,), (0, 1, 2, 3)], ids=["q", "controls", "mass", "dt", "all"])
def test_jacrev_is_one_gradient_per_output(batch, steps, wrt):
    s, controls = state(*batch), normal(generator(7), steps, *batch, MODEL.nu)

    def f(q, controls, mass, dt):
        here = MODEL.params().replace(mass=mass)
        return SIM.rollout(cs.State(q, s.v), controls, here, dt=dt)[-1].v.reshape(-1)

    inputs = (s.q, controls, MODEL.params()["mass"], torch.tensor(0.01, dtype=torch.float64))
    found = jacrev(f, argnums=wrt)(*inputs)
    expected = torch.autograd.functional.jacobian(f, inputs)
    for i, a in zip(wrt, found):
        assert_close(a, expected[i])


@pytest.mark.parametrize("name", ["mass_matrix", "forward_dynamics", "kinematics", "energy", "integrate", "difference"])
def test_jacrev_of_functions_of_an_instant(name):
    call = CALLS[name]
    inputs = {key: x[0] for key, x in random_inputs(MODEL, generator(8), call.inputs, 1).items()}

    def f(q):
        return flatten(call.run(SIM, {**inputs, "q": q}, None))

    assert_close(jacrev(f)(inputs["q"]), torch.autograd.functional.jacobian(f, inputs["q"]))


def test_jacrev_is_linearize():
    s, control, nv = state(), normal(generator(9), MODEL.nu), MODEL.nv
    A, B = SIM.linearize(s, control)
    q_next = SIM.step(s, control).q

    def f(x, u):
        q, v = SIM.step(cs.State(MODEL.integrate(s.q, x[:nv]), s.v + x[nv:]), control + u)
        return torch.cat((MODEL.difference(q_next, q), v))

    x, u = torch.zeros(2 * nv, dtype=torch.float64), torch.zeros(MODEL.nu, dtype=torch.float64)
    jacobians = jacrev(f, argnums=(0, 1))(x, u)
    for found, expected in zip(jacobians, (A, B)):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)  # forward and reverse mode sum in another order
    _, pull = vjp(f, x, u)
    w = normal(generator(10), 2 * nv)
    for found, expected in zip(pull(w), (w @ A, w @ B)):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one world", "two worlds"])
def test_jacrev_of_a_step(batch):
    s = state(*batch)

    def f(q):
        return SIM.step(cs.State(q, s.v)).v

    assert_close(jacrev(f)(s.q), torch.autograd.functional.jacobian(f, s.q))


def test_vmap_over_a_policy_rollout():
    s = state(WORLDS)

    def f(q, v):
        return SIM.rollout(cs.State(q, v), lambda s, c, t: s.v[..., : MODEL.nu].sin(), steps=STEPS).v

    assert torch.equal(vmap(f, out_dims=1)(*s), f(*s))


# ---- modes that leave traces where caches are careless --------------------------------------------------------------
@pytest.mark.parametrize("mode", ["inference_mode", "no_grad", "jacrev", "vmap"])
def test_first_use_inside_a_mode_leaves_nothing_behind(mode):
    model = SCENES["every joint"]().build()
    sim, s = cs.Simulator(model), state(WORLDS)

    def use(q):
        new = sim.step(cs.State(q, s.v))
        return torch.cat((new.q, new.v, cs.kinematics(model, q, s.v).site_position.flatten(-2)), -1)

    if mode in ("inference_mode", "no_grad"):
        with getattr(torch, mode)():
            use(s.q)
    else:
        {"jacrev": jacrev, "vmap": vmap}[mode](use)(s.q if mode == "jacrev" else s.q.unsqueeze(0))
    q = s.q.clone().requires_grad_()
    (found,) = torch.autograd.grad(use(q).sin().sum(), q)
    model, sim = MODEL, SIM
    (expected,) = torch.autograd.grad(use(q).sin().sum(), q)
    assert torch.equal(found, expected)
