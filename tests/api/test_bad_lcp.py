"""Complementarity problems without a solution, and arguments that make none: errors that name what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.lcp import LCPError, lcp
from tests.gradients.lcp_cases import random_problem, tensor

SQUEEZED = {"M": tensor([1.0]), "G": tensor([1.0], [-1.0]), "q": tensor(-5.0)}  # with m = (-1, -1): x <= -1 and x >= 1


# ---- no solution ---------------------------------------------------------------------------------------------------
def test_rows_that_contradict_each_other_raise():
    m = tensor([1.0, 1.0], [-1.0, -1.0], [2.0, 2.0], [-3.0, -3.0])
    with pytest.raises(LCPError, match=r"2 of 4 worlds are not solved \(worst residual [0-9.e-]+, world [13];.*contradict"):
        lcp(**SQUEEZED, m=m)


def test_or_are_flagged():
    m = tensor([1.0, 1.0], [-1.0, -1.0], [2.0, 2.0])
    found = lcp(**SQUEEZED, m=m, on_failure="flag")
    assert found.solved.tolist() == [True, False, True]
    assert found.residual[1] > 0.1 and found.residual[[0, 2]].max() < 1e-12
    assert all(part.isfinite().all() for part in found)
    torch.testing.assert_close(found.x[[0, 2]], tensor([1.0], [2.0]))  # the others are solved


def test_equalities_that_contradict_each_other():
    data = random_problem(0, e=1)
    twice = data | {"A": data["A"].repeat(2, 1), "b": torch.cat((data["b"], data["b"] + 1))}
    with pytest.raises(LCPError, match="1 of 1 worlds"):
        lcp(**twice)
    assert lcp(**twice, on_failure="flag").residual > 1e-2


def test_a_contact_against_equalities():
    with pytest.raises(LCPError, match="contradict"):
        lcp(tensor([1.0]), tensor(0.0), tensor([-1.0]), tensor(-1.0), A=tensor([1.0]))


def test_a_singular_mass_matrix():
    data = random_problem(0, p=1, e=0) | {"M": torch.zeros(4, 4, dtype=torch.float64)}
    with pytest.raises(LCPError, match="M may be singular"):
        lcp(**data)
    found = lcp(**data, on_failure="flag")
    assert not found.solved and all(part.isfinite().all() for part in found)


def test_too_few_iterations():
    """Pivots take over where the interior point was not given the time; the answer is the same."""
    data = random_problem(2, 50, n=20, p=20, e=0)
    few, enough = lcp(**data, iterations=1), lcp(**data)
    assert (enough.iterations < 20).all() and (few.iterations > 5).any()
    torch.testing.assert_close(few.x, enough.x, rtol=1e-10, atol=1e-10)


def test_numbers_too_large_to_compute_with():
    found = lcp(1e-200 * tensor([1.0]), tensor(1e150), tensor([-1.0]), tensor(0.0), on_failure="flag")
    assert not found.solved and found.residual == torch.inf
    assert all(part.isfinite().all() for part in found[:4])


# ---- bad arguments -------------------------------------------------------------------------------------------------
SHAPES = {"M": (3, 4), "q": (5,), "G": (3, 5), "m": (4,), "A": (1, 3), "F": (2, 2), "b": (2,)}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    data = random_problem(0) | {name: torch.zeros(SHAPES[name], dtype=torch.float64)}
    with pytest.raises(ValueError, match=rf"lcp: {name} must have shape \[\.\.\., .*got \({SHAPES[name][0]},"):
        lcp(**data)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_values_that_are_not_finite(name, value):
    data = random_problem(0, 3)
    data[name][1].view(-1)[-1] = value
    with pytest.raises(ValueError, match=f"lcp: {name} must be finite, got NaN or inf in world 1"):
        lcp(**data, on_failure="flag")


@pytest.mark.parametrize("name", SHAPES)
def test_types(name):
    data = random_problem(0)
    with pytest.raises(TypeError, match=f"lcp: {name} must be a torch tensor, got ndarray"):
        lcp(**data | {name: np.asarray(data[name])})
    with pytest.raises(TypeError, match=f"lcp: {name} must be float64 or float32, got int64"):
        lcp(**data | {name: data[name].long()})
    if name != "M":
        with pytest.raises(TypeError, match=f"lcp: {name} must be float64 as M is, got float32"):
            lcp(**data | {name: data[name].float()})
        with pytest.raises(TypeError, match=f"lcp: {name} must be on cpu as M is, got meta"):
            lcp(**data | {name: data[name].to("meta")})


@pytest.mark.parametrize("name", ["M", "q", "G", "m"])
def test_what_must_be_given(name):
    with pytest.raises(TypeError, match=f"lcp: {name} must be a torch tensor, got NoneType"):
        lcp(**random_problem(0) | {name: None})


def test_too_few_dimensions():
    with pytest.raises(ValueError, match=r"lcp: G must have shape \[\.\.\., p, n\], got \(4,\)"):
        lcp(**random_problem(0) | {"G": torch.zeros(4, dtype=torch.float64)})


def test_b_without_A():
    data = random_problem(0)
    del data["A"]
    with pytest.raises(ValueError, match="A is not given"):
        lcp(**data)


def test_no_unknowns():
    with pytest.raises(ValueError, match="M must have at least one row"):
        lcp(**random_problem(0, n=0, e=0))


def test_batches_that_do_not_fit():
    data = random_problem(0, 3)
    with pytest.raises(ValueError, match=r"batch shapes do not broadcast.*q \(2,\)"):
        lcp(**data | {"q": data["q"][:2]})
    with pytest.raises(ValueError, match="no worlds"):
        lcp(**{name: x[:0] for name, x in data.items()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations must be a positive int"),
        ({"iterations": 2.0}, "iterations must be a positive int"),
        ({"tolerance": 0.0}, "tolerance must be a positive finite float"),
        ({"tolerance": float("nan")}, "tolerance must be a positive finite float"),
        ({"on_failure": "warn"}, 'on_failure must be "raise" or "flag"'),
    ],
    ids=str,
)
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        lcp(**random_problem(0), **options)


def test_under_vmap():
    """Only the function itself sees the numbers there; it says the same."""
    data = random_problem(0, 3)
    q = data.pop("q")
    q[1, 0] = torch.nan
    shared = {name: x[0] for name, x in data.items()}
    with pytest.raises(ValueError, match="lcp: q must be finite, got NaN or inf in world 1"):
        torch.func.vmap(lambda q: lcp(q=q, **shared).x)(q)
    with pytest.raises(LCPError, match="1 of 2 worlds"):
        torch.func.vmap(lambda m: lcp(**SQUEEZED, m=m).x)(tensor([1.0, 1.0], [-1.0, -1.0]))
