"""Every gradient of every public function, in every input and parameter, against central differences."""

import pytest
import torch

import costate as cs
from costate.scene.fields import FIELD_NAMES
from tests.gradients.differences import CALLS, direction, error_of_derivative, flatten, random_inputs
from tests.gradients.scenes import ARTICULATED, SPARSE, build, generator, normal, random_params

# What central differences in float64 can promise: their own error is about eps^(2/3) of the function's size, 4e-11, times
# the ratio of its third derivative to its first; measured at most 2e-9 here.
TOLERANCE = 1e-7
# float32 has 24 bits, 6e-8; a step of these scenes loses two digits of them in the solve with the mass matrix and in sums
# over worlds, measured at most 3e-5.
TOLERANCE_FLOAT32 = 2e-4
WORLDS, DIRECTIONS = 3, 2

MODELS = {
    "every joint": ("every joint", SPARSE),
    "every joint, articulated": ("every joint", ARTICULATED),
    "chain": ("chain", -1),
}
CASES = [(name, field) for name, call in CALLS.items() for field in (*call.inputs, *(FIELD_NAMES if call.params else ()))]


def worst_error(name: str, field: str, model: cs.Model, params_batch: tuple[int, ...]) -> float:
    call, gen, sim = CALLS[name], generator(1), cs.Simulator(model)
    inputs = random_inputs(model, gen, call.inputs, WORLDS)
    params = random_params(model, gen, *params_batch)

    def f(x):
        if field in inputs:
            return flatten(call.run(sim, {**inputs, field: x}, params))
        return flatten(call.run(sim, inputs, params.replace(**{field: x})))

    x = inputs.get(field, params.get(field))
    w = normal(gen, len(f(x)))
    return max(error_of_derivative(f, x, direction(model, gen, field, x), w) for _ in range(DIRECTIONS))


@pytest.mark.parametrize("scene", MODELS)
@pytest.mark.parametrize(("name", "field"), CASES)
def test_gradient(scene, name, field):
    assert worst_error(name, field, build(*MODELS[scene]), ()) < TOLERANCE


@pytest.mark.parametrize("field", FIELD_NAMES)
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.params])
def test_gradient_of_parameters_per_world(name, field):
    assert worst_error(name, field, build("every joint"), (WORLDS,)) < TOLERANCE


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
    grads = dict(zip(params, torch.autograd.grad(loss, list(params.values()), allow_unused=True)))
    assert {name for name, grad in grads.items() if grad is None or grad.norm() < 1e-6 * loss.abs()} == {"site_pos", "site_quat"}
