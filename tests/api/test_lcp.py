"""Complementarity problems: closed forms, all active sets tried one by one, batches, redundant rows, failures, bad input."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch
from torch import Tensor

import costate.lcp_solver as solver
from costate.lcp import LCPSolution, lcp
from tests.gradients.lcp_cases import BLOCKS, GRAVITY, STEP, block, impulses, number, problem, random_problem, tensor

EXACT = {"rtol": 1e-12, "atol": 1e-12}  # numbers of order 1 from well-conditioned systems
TOLERANCE = 1e-10  # of lcp; everything here is far better conditioned
ROUNDED = 1e-12  # residual after the last Newton step


def check(data: dict[str, Tensor], found: LCPSolution, tolerance: float = 1e-10) -> None:
    """The equations as they are written, in absolute numbers of order 1."""
    zero = torch.zeros_like(found.x[..., :0])
    A, b = data.get("A", zero.new_zeros(0, found.x.shape[-1])), data.get("b", torch.zeros_like(found.y))
    F = data.get("F", zero.new_zeros(found.z.shape[-1], found.z.shape[-1]))
    times = solver.times
    balance = times(data["M"], found.x) + times(data["G"].mT, found.z) + times(A.mT, found.y) + data["q"]
    rows = found.s + times(data["G"], found.x) + times(F, found.z) - data["m"]
    for error in (balance, rows, times(A, found.x) - b):
        torch.testing.assert_close(error, torch.zeros_like(error), rtol=0, atol=tolerance)
    assert (found.z >= 0).all() and (found.s >= 0).all() and (found.z * found.s == 0).all()
    assert found.solved.all() and (found.residual <= TOLERANCE).all()


# ---- closed forms --------------------------------------------------------------------------------------------------
def test_without_inequalities():
    data = random_problem(0, p=0, e=2)
    found = lcp(**data)
    n, e = 4, 2
    K = torch.zeros(n + e, n + e, dtype=torch.float64)
    K[:n, :n], K[:n, n:], K[n:, :n] = data["M"], data["A"].mT, data["A"]
    expected = torch.linalg.solve(K, torch.cat((-data["q"], data["b"])))
    torch.testing.assert_close(torch.cat((found.x, found.y)), expected, **EXACT)
    assert found.z.shape == found.s.shape == (0,) and found.solved and found.iterations == 0


def test_a_projection_into_a_box():
    q = tensor(-3.0, -0.5, 2.0)
    eye = torch.eye(3, dtype=torch.float64)
    found = lcp(eye, q, torch.cat((eye, -eye)), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(found.x, tensor(1, 0.5, -1), **EXACT)
    torch.testing.assert_close(found.z, tensor(2, 0, 0, 0, 0, 1), **EXACT)
    torch.testing.assert_close(found.s, tensor(0, 0.5, 2, 2, 1.5, 0), **EXACT)


def test_bounds_that_are_never_reached_cost_no_accuracy():
    eye = torch.eye(2, dtype=torch.float64)
    found = lcp(eye, tensor(1e-3, -3e-3), torch.cat((eye, -eye)), tensor(1e9, 1e9, 5e-4, 1e9))
    torch.testing.assert_close(found.x, tensor(-5e-4, 3e-3), rtol=1e-12, atol=0)
    torch.testing.assert_close(found.z, tensor(0, 0, 5e-4, 0), rtol=1e-12, atol=0)


WEIGHT = 2.0 * GRAVITY * STEP  # impulse of the block's weight in a step, N s
# velocity after the step, normal impulse, friction
EXPECTED = {
    "at rest": ((0, 0, 0), WEIGHT, 0),
    "sticking, pushed": ((0, 0, 0), WEIGHT, -5 * STEP),
    "sticking, stops": ((0, 0, 0), WEIGHT, -2 * 0.03),
    "sliding": ((1 - 0.5 * GRAVITY * STEP, 0, 0), WEIGHT, -0.5 * WEIGHT),
    "frictionless": ((1, 0, 0), WEIGHT + 2 * 2, 0),
    "falls and slides": ((3 - 0.2 * (1 + GRAVITY * STEP), 0, 0), WEIGHT + 2, -0.2 * (WEIGHT + 2)),
    "falls and sticks": ((0, 0, 0), WEIGHT + 2, -0.2),
    "lifts": ((1, 0.5 - GRAVITY * STEP, 0), 0, 0),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_blocks(name):
    velocity, normal, friction = EXPECTED[name]
    data = problem(BLOCKS[name])
    found = lcp(**data)
    check(data, found)
    torch.testing.assert_close(found.x, tensor(*velocity), **EXACT)
    torch.testing.assert_close(impulses(found.z), tensor(normal, friction), **EXACT)


def test_gamma_is_the_sliding_speed():
    found = lcp(**problem(BLOCKS["sliding"]))
    torch.testing.assert_close(found.z[3], found.x[0], **EXACT)


def test_restitution():
    """A target of -0.5 times the speed of impact: the block leaves with half of it."""
    start = block((0.1, -2, 0), mu=0.0)
    found = lcp(**problem(start._replace(target=tensor(0.5 * -2))))
    torch.testing.assert_close(found.x[1], number(1.0), **EXACT)


@pytest.mark.parametrize("name", [name for name in BLOCKS if name.startswith("two")])
def test_blocks_on_two_feet(name):
    data = problem(BLOCKS[name])
    check(data, lcp(**data))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit):
    """The same block in other units of mass: same velocities, impulses in proportion."""
    data = problem(BLOCKS["two feet, sliding"])
    found, scaled = lcp(**data), lcp(**data | {"M": unit * data["M"], "q": unit * data["q"]})
    torch.testing.assert_close(scaled.x, found.x, **EXACT)
    torch.testing.assert_close(impulses(scaled.z) / unit, impulses(found.z), **EXACT)
    assert scaled.iterations == found.iterations  # rows are brought to one scale first


# ---- against all active sets ---------------------------------------------------------------------------------------
def enumerate_solutions(data: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """x and z of every choice of active rows whose equations have a solution of the right signs."""
    n, p, e = data["M"].shape[-1], len(data["m"]), len(data["b"])
    solutions = []
    for chosen in itertools.product([False, True], repeat=p):
        rows = [i for i in range(p) if chosen[i]]
        K = torch.zeros(n + len(rows) + e, n + len(rows) + e, dtype=torch.float64)
        G, k = data["G"][rows], n + len(rows)
        K[:n, :n], K[:n, n:k], K[:n, k:] = data["M"], G.mT, data["A"].mT
        K[n:k, :n], K[n:k, n:k], K[k:, :n] = G, data["F"][rows][:, rows], data["A"]
        all_ = torch.linalg.solve(K, torch.cat((-data["q"], data["m"][rows], data["b"])))
        z = torch.zeros(p, dtype=torch.float64)
        z[rows] = all_[n:k]
        s = data["m"] - data["G"] @ all_[:n] - data["F"] @ z
        s[rows] = 0
        if (z >= 0).all() and (s >= 0).all():
            solutions.append((all_[:n], z))
    return solutions


@pytest.mark.parametrize("sizes", [{"p": 4}, {"n": 2, "p": 6}, {"n": 6, "p": 5, "e": 3}], ids=str)
def test_random_problems_against_all_active_sets(sizes):
    used = set()
    for seed in range(20):
        data = random_problem(seed, **{"n": 4, "e": 1} | sizes)
        ((x, z),) = enumerate_solutions(data)
        found = lcp(**data)
        check(data, found)
        torch.testing.assert_close(found.x, x, rtol=1e-10, atol=1e-10)  # conditions of up to a hundred
        torch.testing.assert_close(found.z, z, rtol=1e-10, atol=1e-10)
        used.add(tuple((z > 0).tolist()))
    assert len(used) > 8  # the numbers do not all say the same


def heap(worlds: int, bodies: int, contacts: int, directions: int, seed: int = 0) -> dict[str, Tensor]:
    """Contacts with friction between random directions: harsher than bodies that exist, and not monotone."""
    gen = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(worlds, *size, generator=gen, dtype=torch.float64)

    n, c, d = 3 * bodies, contacts, directions
    M = torch.diag_embed(10 ** (2 * torch.rand(worlds, n, generator=gen, dtype=torch.float64) - 1))
    angle = torch.arange(d, dtype=torch.float64) * (2 * torch.pi / d)
    tangents = torch.stack((angle.cos(), angle.sin()), -1) @ normal(c, 2, n)
    mu = 1.6 * torch.rand(worlds, c, generator=gen, dtype=torch.float64)
    E = torch.eye(c, dtype=torch.float64).repeat_interleave(d, 0)
    F = torch.zeros(worlds, c * (d + 2), c * (d + 2), dtype=torch.float64)
    F[:, c : c + c * d, c + c * d :], F[:, c + c * d :, c : c + c * d], F[:, c + c * d :, :c] = -E, E.mT, -torch.diag_embed(mu)
    G = -torch.cat((normal(c, n), tangents.reshape(worlds, c * d, n), torch.zeros(worlds, c, n, dtype=torch.float64)), 1)
    return {"M": M, "q": -solver.times(M, normal(n)), "G": G, "m": torch.zeros(worlds, c * (d + 2), dtype=torch.float64), "F": F}


@pytest.mark.parametrize("contacts", [1, 2, 4, 6])
def test_friction_always_has_a_solution_that_is_found(contacts):
    data = heap(500, 2, contacts, 4)
    found = lcp(**data)
    check(data, found, 1e-9)  # impulses of up to a thousand
    assert (found.residual < ROUNDED).all()


def test_worlds_whose_interior_path_turns_back(monkeypatch):
    """Some problems of friction are only solved by pivots; without them they fail, and say so."""
    data = heap(500, 1, 2, 4)
    assert lcp(**data).solved.all()
    monkeypatch.setattr(solver, "lemke", lambda B, c, most: (torch.zeros_like(c), torch.zeros_like(c[:, 0], dtype=torch.long)))
    assert 0 < (~lcp(**data, on_failure="flag").solved).sum() < 50


def test_pivots_alone(monkeypatch):
    """Lemke's method on everything: it is only asked where the interior point failed, so it is checked here."""
    data = heap(200, 2, 4, 4, seed=1)
    expected = lcp(**data)
    monkeypatch.setattr(solver, "interior_point", lambda B, c, *_: (torch.zeros_like(c), torch.zeros(len(c), dtype=torch.long)))
    monkeypatch.setattr(solver, "_POLISH", 1)
    found = lcp(**data)
    check(data, found, 1e-9)
    assert (found.iterations > expected.iterations).any()


# ---- redundant and empty rows --------------------------------------------------------------------------------------
MIX = tensor([1.0, 0], [0, 1], [1, 1], [2, -1], [0, 0], [1e-3, 0])  # rows that say what two rows say


def test_redundant_equalities():
    data = random_problem(4, 3, n=5, e=2)
    mixed = data | {"A": MIX @ data["A"], "b": solver.times(MIX, data["b"])}
    found, expected = lcp(**mixed), lcp(**data)
    check(mixed, found)
    torch.testing.assert_close(found.x, expected.x, **EXACT)
    torch.testing.assert_close(found.z, expected.z, **EXACT)
    torch.testing.assert_close(solver.times(MIX.mT, found.y), expected.y, **EXACT)


def test_more_equalities_than_unknowns():
    """Everything is held, with contacts on top that can do nothing."""
    A = tensor([1.0, 0], [0, 1], [1, 1], [2, 1])
    data = {"M": torch.eye(2).double(), "q": tensor(1, 2), "G": -torch.eye(2).double(), "m": tensor(0, 0), "A": A}
    found = lcp(**data)
    check(data, found)
    torch.testing.assert_close(found.x, tensor(0, 0), **EXACT)
    assert found.z.max() < 10  # any impulse would do: not a large one


def test_equal_inequalities_share_the_load():
    found = lcp(tensor([2.0]), tensor(4.0), tensor([-1.0], [-1.0]), tensor(0.0, 0.0))
    torch.testing.assert_close(found.z, tensor(2, 2), **EXACT)


def test_rows_of_zeros():
    found = lcp(tensor([2.0]), tensor(4.0), tensor([0.0], [0.0]), tensor(0.0, 1.0))
    torch.testing.assert_close(found.x, tensor(-2), **EXACT)
    assert found.s.tolist() == [0.0, 1.0] and found.z[1] == 0


def test_nothing_to_do():
    found = lcp(tensor([2.0]), tensor(0.0), tensor([1.0], [1.0]), tensor(0.0, 0.0))
    assert all((part == 0).all() for part in found[:5]) and found.solved


def test_a_singular_mass_matrix_held_by_equalities():
    found = lcp(
        torch.diag(tensor(1.0, 0.0)),
        tensor(1.0, 0.0),
        -torch.eye(2).double(),
        tensor(0.0, 0.0),
        A=tensor([0.0, 1.0]),
        b=tensor(3.0),
    )
    torch.testing.assert_close(found.x, tensor(0, 3), **EXACT)


# ---- batches -------------------------------------------------------------------------------------------------------
def test_worlds_do_not_see_each_other():
    """Each world as if it were alone: values and iterations, beside worlds that take longer."""
    data = heap(60, 1, 2, 4, seed=3)
    together = lcp(**data)
    assert together.iterations.min() < together.iterations.max()
    for i in range(60):
        alone = lcp(**{name: x[i] for name, x in data.items()})
        assert alone.iterations == together.iterations[i]
        torch.testing.assert_close(alone.x, together.x[i], **EXACT)


def test_leading_dimensions_broadcast():
    rows, columns, shared = random_problem(3, 2, 1), random_problem(4, 3), random_problem(5)
    data = {
        "M": shared["M"],
        "q": rows["q"],
        "G": shared["G"],
        "m": columns["m"],
        "A": rows["A"],
        "F": shared["F"],
        "b": columns["b"],
    }
    found = lcp(**data)
    assert found.x.shape == (2, 3, 4) and found.y.shape == (2, 3, 1)
    assert found.residual.shape == found.solved.shape == found.iterations.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        picked = {"q": rows["q"][i, 0], "A": rows["A"][i, 0], "m": columns["m"][j], "b": columns["b"][j]}
        alone = lcp(**shared | picked)
        torch.testing.assert_close(found.x[i, j], alone.x, **EXACT)
        torch.testing.assert_close(found.y[i, j], alone.y, **EXACT)


def test_float32():
    data = {name: x.float() for name, x in random_problem(1, 3).items()}
    found, expected = lcp(**data), lcp(**{name: x.double() for name, x in data.items()})
    for single, double in zip(found[:4], expected[:4]):
        assert single.dtype == torch.float32 and torch.equal(single, double.float())
    assert torch.equal(found.residual, expected.residual)


def test_arguments_are_left_alone():
    data = random_problem(1, 3)
    before = {name: x.clone() for name, x in data.items()}
    lcp(**data)
    assert all(torch.equal(data[name], before[name]) for name in data)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu():
    data = heap(100, 2, 4, 4)
    found, expected = lcp(**{name: x.cuda() for name, x in data.items()}), lcp(**data)
    assert found.x.device.type == "cuda"
    torch.testing.assert_close(found.x.cpu(), expected.x, rtol=1e-9, atol=1e-9)


def test_inside_compiled_functions():
    data = random_problem(1, 3)
    q = data.pop("q").requires_grad_()
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dynamo tells of every graph break
        found = torch.compile(lambda q: 2 * lcp(q=q, **data).x, backend="eager")(q)
    torch._dynamo.reset()
    expected = 2 * lcp(q=q, **data).x
    assert torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad(x.sum(), q)[0] for x in (found, expected)))
