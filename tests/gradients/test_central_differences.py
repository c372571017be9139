"""Every gradient of every public function, in every input and parameter, against central differences."""

import pytest
import torch

import costate as cs
from tests.gradients.differences import CALLS, direction, error_of_derivative, flatten, random_inputs
from tests.gradients.scenes import ARTICULATED, SPARSE, build, free_fields, generator, normal, random_params, random_q

# What central differences in float64 can promise: their own error is about eps^(2/3) of the function's size, 4e-11, times
# the ratio of its third derivative to its first; measured at most 5e-9 here.
TOLERANCE = 1e-7
# float32 has 24 bits, 6e-8; a step of these scenes loses two digits of them in the solve with the mass matrix and in sums
# over worlds, measured at most 2e-5.
TOLERANCE_FLOAT32 = 1e-4
WORLDS = 3

MODELS = {
    "every joint": ("every joint", SPARSE),
    "every joint, articulated": ("every joint", ARTICULATED),
    "chain": ("chain", SPARSE),
    "chain, articulated": ("chain", ARTICULATED),
}
FIELDS = free_fields(build("every joint"))
CASES = [(name, field) for name, call in CALLS.items() for field in (*call.inputs, *(FIELDS if call.params else ()))]


def error(name: str, field: str, model: cs.Model, params_batch: tuple[int, ...]) -> float:
    call, gen, sim = CALLS[name], generator(1), cs.Simulator(model)
    inputs = random_inputs(model, gen, call.inputs, WORLDS)
    params = random_params(model, gen, *params_batch)

    def f(x):
        if field in inputs:
            return flatten(call.run(sim, {**inputs, field: x}, params))
        return flatten(call.run(sim, inputs, params.replace(**{field: x})))

    x = inputs.get(field, params.get(field))
    w = normal(gen, len(f(x)))
    return error_of_derivative(f, x, direction(model, gen, field, x), w)


@pytest.mark.parametrize("scene", MODELS)
@pytest.mark.parametrize(("name", "field"), CASES)
def test_gradient(scene, name, field):
    assert error(name, field, build(*MODELS[scene]), ()) < TOLERANCE


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.params])
def test_gradient_of_parameters_per_world(name, field):
    assert error(name, field, build("every joint"), (WORLDS,)) < TOLERANCE


@pytest.mark.parametrize("name", CALLS)
def test_float32(name):
    model, call, gen = build("every joint"), CALLS[name], generator(2)
    inputs, params = random_inputs(model, gen, call.inputs, WORLDS), random_params(model, gen)
    w, grads = None, {}
    for dtype in (torch.float64, torch.float32):
        sim = cs.Simulator(model, dtype=dtype)
        leaves = {key: x.to(dtype).requires_grad_() for key, x in inputs.items()}
        here = params.to(dtype).detach(requires_grad=call.params)
        out = flatten(call.run(sim, leaves, here))
        assert out.dtype == dtype
        w = normal(gen, len(out)) if w is None else w
        all_leaves = {**leaves, **(here if call.params else {})}
        found = torch.autograd.grad(w.to(dtype) @ out, list(all_leaves.values()), allow_unused=True)
        grads[dtype] = dict(zip(all_leaves, found))
    for key, exact in grads[torch.float64].items():
        if exact is None or not exact.any():
            continue
        found = grads[torch.float32][key]
        assert found.dtype == torch.float32
        assert (found - exact).norm() < TOLERANCE_FLOAT32 * exact.norm(), key


def test_gradients_that_must_not_vanish():
    """The floor of the comparison must hide no gradient: a step depends on every field but the sites'."""
    model, gen = build("every joint"), generator(3)
    inputs = random_inputs(model, gen, CALLS["step"].inputs, WORLDS)
    params = random_params(model, gen).detach(requires_grad=True)
    w = normal(gen, len(flatten(CALLS["step"].run(cs.Simulator(model), inputs, params))))
    loss = w @ flatten(CALLS["step"].run(cs.Simulator(model), inputs, params))
    grads = dict(zip(FIELDS, torch.autograd.grad(loss, [params[name] for name in FIELDS], allow_unused=True)))
    assert {name for name, grad in grads.items() if grad is None or grad.norm() < 1e-6 * loss.abs()} == {"site_pos", "site_quat"}


# turns by these angles: none, tiny, both sides of where closed forms take over from series, nearly half a turn, and more
ANGLES = (0.0, 1e-9, 0.0999, 0.1001, 3.1, 7.0)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("scale", [1.0, 0.3], ids=["unit", "not unit"])
@pytest.mark.parametrize("field", ["q", "dq"])
def test_integrate_at_angles(angle, scale, field):
    model, gen = build("every joint"), generator(4)
    inputs = {"q": scale * random_q(model, gen, WORLDS), "dq": angle * turns(model, gen)}
    w = normal(gen, WORLDS * model.nq)

    def f(x):
        return model.integrate(**{**inputs, field: x}).reshape(-1)

    x = inputs[field]
    assert error_of_derivative(f, x, normal(gen, *x.shape), w) < TOLERANCE


@pytest.mark.parametrize("angle", ANGLES[:-1])
@pytest.mark.parametrize("field", ["q1", "q2"])
def test_difference_at_angles(angle, field):
    model, gen = build("every joint"), generator(5)
    q = random_q(model, gen, WORLDS)
    inputs = {"q1": q, "q2": model.integrate(q, angle * turns(model, gen))}
    w = normal(gen, WORLDS * model.nv)

    def f(x):
        return model.difference(**{**inputs, field: x}).reshape(-1)

    x = inputs[field]
    assert error_of_derivative(f, x, normal(gen, *x.shape), w) < TOLERANCE


@pytest.mark.parametrize("field", ["q", "v", "rest"])
def test_step_from_rest(field):
    """All springs relaxed, nothing moves: every turn is exactly zero."""
    model, gen, sim = build("every joint"), generator(6), cs.Simulator(build("every joint"))
    q, params = torch.tensor(model.q0), model.params()
    inputs = {"q": q, "v": torch.zeros(model.nv, dtype=q.dtype), "rest": q.clone()}
    w = normal(gen, model.nq + model.nv)

    def f(x):
        y = {**inputs, field: x}
        return torch.cat(sim.step(cs.State(y["q"], y["v"]), params=params.replace(rest=y["rest"])))

    x = inputs[field]
    assert error_of_derivative(f, x, normal(gen, *x.shape), w) < TOLERANCE


def turns(model, gen):
    """A tangent vector per world, of length 1 in each joint that turns."""
    dq = normal(gen, WORLDS, model.nv)
    for body, start in enumerate(model.v_address):
        span = {3: slice(start, start + 3), 4: slice(start + 3, start + 6)}.get(model.joint_type[body])
        if span is not None:
            dq[:, span] /= dq[:, span].norm(dim=-1, keepdim=True)
    return dq
