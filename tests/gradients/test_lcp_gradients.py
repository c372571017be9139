"""Derivatives of complementarity problems: closed forms, torch's gradcheck by every argument, degenerate and redundant rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck

from costate.lcp import lcp
from costate.lcp_solver import Problem
from tests.gradients.lcp_cases import BLOCKS, GRAVITY, STEP, Block, block, impulses, number, problem, random_problem, tensor

EXACT = {"rtol": 1e-12, "atol": 1e-12}  # closed forms of order 1: a few roundings
# Central differences with h = 1e-6: round-off gives 1e-16 / 1e-6 of outputs of order 1 to 10.
OPTIONS = {"eps": 1e-6, "atol": 1e-7, "rtol": 1e-6}
MARGIN = 1e-3  # how far from a kink a problem must be so that differences do not cross it


@pytest.fixture(autouse=True)
def one_thread():
    """Hundreds of tiny problems: threads would only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def leaves(tensors):
    return tuple(x.detach().clone().requires_grad_() for x in tensors)


def step(start: Block, **changes: Tensor):
    """The solution after one step, the changes as leaves of the graph."""
    return lcp(**problem(start._replace(**changes)))


def derivative(start: Block, field: str, output) -> Tensor:
    """Of one number of the solution by a field of the block."""
    (leaf,) = leaves([getattr(start, field)])
    return torch.autograd.grad(output(step(start, **{field: leaf})), leaf)[0]


def speed(solution) -> Tensor:
    return solution.x[0]


# ---- closed forms --------------------------------------------------------------------------------------------------
# After a step a block that slides has the speed v - mu g h, whatever its mass.
def test_a_sliding_block_by_friction():
    torch.testing.assert_close(derivative(BLOCKS["sliding"], "mu", speed), number(-GRAVITY * STEP), **EXACT)


def test_a_sliding_block_by_mass():
    torch.testing.assert_close(derivative(BLOCKS["sliding"], "mass", speed), number(0.0), **EXACT)


def test_a_sliding_block_by_its_velocity_and_forces():
    start = BLOCKS["sliding"]
    torch.testing.assert_close(
        derivative(start, "velocity", speed), tensor(1, start.mu, 0), **EXACT
    )  # faster down: more friction
    per_mass = STEP / float(start.mass)
    torch.testing.assert_close(derivative(start, "force", speed), per_mass * tensor(1, start.mu, 0), **EXACT)


def test_impulses_of_a_sliding_block():
    start = BLOCKS["sliding"]  # normal m g h, friction mu m g h towards -x, gamma the speed
    expected = tensor(GRAVITY * STEP, 0, float(start.mu) * GRAVITY * STEP, 0)
    for row in range(4):
        torch.testing.assert_close(derivative(start, "mass", lambda found, row=row: found.z[row]), expected[row], **EXACT)


def test_slack_of_a_sliding_block():
    # of the direction that does not brake: sigma = v + gamma = 2 v
    found = derivative(BLOCKS["sliding"], "mu", lambda found: found.s[1])
    torch.testing.assert_close(found, number(-2 * GRAVITY * STEP), **EXACT)


def test_a_sticking_block():
    start = BLOCKS["sticking, stops"]
    for field in ("mass", "mu", "velocity", "force"):
        found = derivative(start, field, speed)
        torch.testing.assert_close(found, torch.zeros_like(found), **EXACT)
    friction = derivative(start, "mass", lambda found: impulses(found.z)[1])  # -m v stops it
    torch.testing.assert_close(friction, -start.velocity[0], **EXACT)


def test_a_block_that_lifts():
    torch.testing.assert_close(derivative(BLOCKS["lifts"], "velocity", lambda found: found.x[1]), tensor(0, 1, 0), **EXACT)
    torch.testing.assert_close(derivative(BLOCKS["lifts"], "mu", speed), number(0.0), **EXACT)


def test_the_transpose_is_what_makes_it_right(monkeypatch):
    """The KKT matrix of friction is not symmetric. Solving with it instead of its transpose makes a sliding block's speed depend
    on its mass; these tests notice."""
    monkeypatch.setattr(Problem, "transposed", lambda self: self)
    assert abs(float(derivative(BLOCKS["sliding"], "mass", speed))) > 1e-3
    with pytest.raises(GradcheckError):
        check_random(0)


# ---- every argument ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    start = BLOCKS[name]
    # less than no friction is no problem with a solution
    fields = [field for field in Block._fields if field != "mu" or start.mu > 0]

    def run(*values):
        found = step(start, **dict(zip(fields, values)))
        return found.x, impulses(found.z)

    assert gradcheck(run, leaves(getattr(start, field) for field in fields), **OPTIONS)


@pytest.mark.parametrize("name", ["sliding", "sliding back, pulled", "falls and slides", "two feet, sliding"])
def test_every_entry_of_a_sliding_block(name):
    """Not only changes that leave the problem one of contact: M, q, G, m and F as any numbers."""
    data = problem(BLOCKS[name])
    assert torch.maximum(*lcp(**data)[1:3]).min() > MARGIN
    assert gradcheck(lambda *values: lcp(**dict(zip(data, values)))[:3], leaves(data.values()), **OPTIONS)


def check_random(seed: int, *worlds: int, **sizes: int) -> None:
    data = random_problem(seed, *worlds, **sizes)
    found = lcp(**data)
    assert torch.maximum(found.z, found.s).min() > MARGIN
    assert gradcheck(lambda *values: lcp(**dict(zip(data, values)))[:4], leaves(data.values()), **OPTIONS)


@pytest.mark.parametrize("seed", range(6))
def test_random_problems(seed):
    check_random(seed)


@pytest.mark.parametrize("sizes", [{"e": 0}, {"p": 1, "e": 3}, {"n": 2, "p": 6}, {"n": 1, "p": 1, "e": 0}], ids=str)
def test_random_sizes(sizes):
    check_random(1, **{"n": 4, "p": 3, "e": 1} | sizes)


def test_a_batch():
    check_random(7, 2, 2, n=2, p=2)


def test_what_worlds_share():
    """Gradients of an argument without leading dimensions are sums over the worlds, also where a world has none of its own."""
    alone, shared = random_problem(3, 3, n=2, p=2), random_problem(4, n=2, p=2)
    data = {name: (shared if name in "MAF" else alone)[name] for name in alone}
    assert torch.maximum(*lcp(**data)[1:3]).min() > MARGIN
    assert gradcheck(lambda *values: lcp(**dict(zip(data, values)))[:4], leaves(data.values()), **OPTIONS)


@pytest.mark.parametrize("left_out", ["A", "F"])
def test_arguments_that_are_left_out(left_out):
    data = random_problem(1)
    for name in ("A", "b") if left_out == "A" else ("F",):
        del data[name]
    assert torch.maximum(*lcp(**data)[1:3]).min() > MARGIN
    assert gradcheck(lambda *values: lcp(**dict(zip(data, values)))[:4], leaves(data.values()), **OPTIONS)


def test_a_symmetric_M_gets_both_halves():
    """The bar of M is that of its entries; through a symmetric parametrisation it is the derivative of the quadratic program."""
    data = random_problem(2)
    root = data.pop("M")
    (leaf,) = leaves([root])
    assert gradcheck(lambda root: lcp(root @ root.mT + torch.eye(4).double(), **data)[:4], (leaf,), **OPTIONS)


# ---- redundant and degenerate rows ---------------------------------------------------------------------------------
def test_redundant_equalities():
    """Rows of A that are sums of others: x and A^T y are functions of the rows that they are made of."""
    data = random_problem(4, n=5, e=2)
    mix = tensor(*[[1.0, 0], [0, 1], [1, 1], [2, -1], [0, 0]])
    A, b = data.pop("A"), data.pop("b")

    def run(A, b, *values):
        found = lcp(**dict(zip(data, values)), A=mix @ A, b=mix @ b)
        return found.x, found.z, found.s, mix.mT @ found.y

    assert torch.maximum(*run(A, b, *data.values())[1:3]).min() > MARGIN
    assert gradcheck(run, leaves((A, b, *data.values())), **OPTIONS)


def test_redundant_inequalities():
    """Two equal rows that are both active: x is a function of the row that they are made of, and z of their sum."""
    data = random_problem(2, p=2, e=0)
    G, m = -torch.ones(1, 4).double(), tensor(-3.0)
    (G, m), rest = leaves((G, m)), {"M": data["M"], "q": data["q"]}

    def run(G, m):
        found = lcp(**rest, G=G.expand(2, 4), m=m.expand(2))
        return found.x, found.z.sum()

    assert (lcp(**rest, G=G.expand(2, 4), m=m.expand(2)).z > MARGIN).all()
    assert gradcheck(run, (G, m), **OPTIONS)


def test_a_row_on_its_kink_counts_as_open():
    """z = s = 0: the block leaves the floor by itself, at no speed."""
    q = tensor(0.0).requires_grad_()
    found = lcp(tensor(2.0)[None], q, -tensor(1.0)[None], tensor(0.0))
    assert found.z == 0 and found.s == 0
    found.x.sum().backward()
    torch.testing.assert_close(q.grad, tensor(-0.5), **EXACT)


@pytest.mark.parametrize("feet", [1, 2])
def test_kinks_of_friction_have_finite_gradients(feet):
    """On the border between sticking and sliding, and between lifting and staying."""
    slow, light = block((0.5 * GRAVITY * STEP, 0, 0), feet=feet), block((1, GRAVITY * STEP, 0), feet=feet)
    for start in (slow, light):
        values = leaves(start)
        found = lcp(**problem(Block(*values)))
        (found.x.sum() + found.z.square().sum() + found.s.sum()).backward()
        assert all(x.grad is None or x.grad.isfinite().all() for x in values)


def test_worlds_without_solution_give_no_gradient():
    """Two rows that contradict each other, beside a world that has a solution."""
    G, m = tensor([1.0], [-1.0]), tensor([1.0, 1.0], [-1.0, -1.0]).requires_grad_()
    q = tensor([-5.0], [-5.0]).requires_grad_()
    found = lcp(tensor(1.0)[None], q, G, m, on_failure="flag")
    assert found.solved.tolist() == [True, False]
    (found.x.sum() + found.z.sum()).backward()
    torch.testing.assert_close(q.grad, tensor([-1.0], [0.0]), **EXACT)  # z = -q - m holds x = m
    torch.testing.assert_close(m.grad, tensor([0.0, 0.0], [0.0, 0.0]), **EXACT)


# ---- torch ---------------------------------------------------------------------------------------------------------
def test_second_derivatives_are_refused():
    data = random_problem(0)
    (q,) = leaves([data["q"]])
    (first,) = torch.autograd.grad(lcp(**data | {"q": q}).x.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiates once"):
        first.sum().backward()


def test_vmap_and_jacrev():
    data = random_problem(5, 3)
    shared = {name: data[name][0] for name in ("M", "G", "A", "F", "b")}

    def x(q, m):
        return lcp(q=q, m=m, **shared).x

    batch = x(data["q"], data["m"])
    torch.testing.assert_close(torch.func.vmap(x)(data["q"], data["m"]), batch, **EXACT)
    jacobian = torch.func.vmap(torch.func.jacrev(x, argnums=(0, 1)))(data["q"], data["m"])
    for i in range(3):
        alone = torch.autograd.functional.jacobian(x, (data["q"][i], data["m"][i]))
        for found, expected in zip(jacobian, alone):
            torch.testing.assert_close(found[i], expected, **EXACT)


def test_float32_has_gradients_of_float64():
    data = random_problem(1, 3)
    grads = []
    for dtype in (torch.float64, torch.float32):
        values = leaves(x.float().to(dtype) for x in data.values())
        found = lcp(**dict(zip(data, values)))
        (found.x.sum() + found.z.sum() + found.y.sum()).backward()
        grads.append([x.grad for x in values])
    for double, single in zip(*grads):
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), double, rtol=1e-6, atol=1e-6)  # one rounding of the result, of order 10
