# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false
# (torch's own types of Function know neither vmap rules nor setup_context with several arguments)
"""Mixed linear complementarity problems as a differentiable torch function (de Avila Belbute-Peres et al. 2018, eq. 2 and 3).

The solver is costate/lcp_solver.py; here are the checks of what a user passes, and the derivative of a solution.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from costate.autodiff.torch import apply, outside_graphs
from costate.batch import DTYPES, broadcast
from costate.lcp_solver import Problem, kkt_solve, reduce, solve, times

_SIZES = {"M": "nn", "q": "n", "G": "pn", "m": "p", "A": "en", "F": "pp", "b": "e"}  # in the order of Problem


class LCPError(RuntimeError):
    """Some worlds of a call of lcp have no solution, or none was found."""


class LCPSolution(NamedTuple):
    """What lcp returns; x, z, s and y are differentiable."""

    x: Tensor  # [..., n]
    z: Tensor  # [..., p] not negative; multipliers of the inequality rows
    s: Tensor  # [..., p] not negative; of z_i and s_i one is exactly 0
    y: Tensor  # [..., e] multipliers of the equality rows
    residual: Tensor  # [...] float64, largest error of all equations, relative to the size of the data
    solved: Tensor  # [...] bool: the residual is at most the tolerance
    iterations: Tensor  # [...] int64, of the interior point; plus the pivots of Lemke's method where that had to help


@outside_graphs
def lcp(
    M: Tensor, q: Tensor, G: Tensor, m: Tensor, A: Tensor | None = None, F: Tensor | None = None, *, b: Tensor | None = None,
    iterations: int = 50, tolerance: float = 1e-10, on_failure: Literal["raise", "flag"] = "raise",
) -> LCPSolution:  # fmt: skip
    """Solve a mixed linear complementarity problem in every world, and differentiate the solution by all data:

        M x + G^T z + A^T y = -q,      s + G x + F z = m,      A x = b,      s >= 0,  z >= 0,  s . z = 0

    Contact with friction is one with an F that is not symmetric, see docs/guide/lcp.md. With F = 0 and a symmetric M it is the
    quadratic program: minimise x . M x / 2 + q . x subject to G x <= m, A x = b. Leading dimensions broadcast, on any device;
    float32 is solved in float64 and rounded.

    Parameters
    ----------
    M : [..., n, n], invertible where A x = 0, need not be symmetric. In mechanics the mass matrix, kg.
    q : [..., n]. N s.
    G : [..., p, n], rows of the inequalities; dependent rows are allowed.
    m : [..., p]. m/s, N s for bounds of friction.
    A : [..., e, n], rows of the equalities, none by default; dependent rows are allowed unless b contradicts them.
    F : [..., p, p], 0 by default; need be neither symmetric nor positive.
    b : [..., e], right-hand side of the equalities, 0 by default. m/s.
    iterations : most iterations of the interior point method.
    tolerance : residual that counts as solved; relative to the size of the data, see docs/maths/lcp.md.
    on_failure : "raise": LCPError if a world is not solved. "flag": `solved` is False there; x, z, s, y are the best that was
        found, and that world gives no gradient (zeros, as worlds of a rollout that diverged).
    """
    data = _check_data({"M": M, "q": q, "G": G, "m": m, "A": A, "F": F, "b": b})
    options = _check_options(iterations, tolerance, on_failure)
    batch = broadcast({name: _split(name, x)[0] for name, x in data.items()})
    worlds = math.prod(batch)
    flat = [
        x.to(torch.float64).expand(*batch, *size).reshape(worlds, *size)
        for x, size in ((x, _split(name, x)[1]) for name, x in data.items())
    ]
    *values, residual, solved, count = apply(_Solve, options, *flat)
    x, z, s, y = (value.to(M.dtype).reshape(*batch, value.shape[-1]) for value in values)
    return LCPSolution(x, z, s, y, residual.reshape(batch), solved.reshape(batch), count.reshape(batch))


# ---- the derivative ------------------------------------------------------------------------------------------------
class _Options(NamedTuple):
    iterations: int
    tolerance: float
    raises: bool


class _Solve(Function):
    """options, the data [worlds, ...] -> x, z, s, y, residual, solved, iterations."""

    @staticmethod
    def forward(options: _Options, *data: Tensor) -> tuple[Tensor, ...]:
        _check_finite(data)
        x, z, s, y, residual, count = solve(Problem(*data), options.iterations, options.tolerance)
        solved = residual <= options.tolerance
        if options.raises and not bool(solved.all()):
            raise LCPError(_failure(residual, solved, options))
        return x, z, s, y, residual, solved, count

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, z, _, y, *told = output
        ctx.save_for_backward(*inputs[1:], x, z, y, told[1])
        ctx.mark_non_differentiable(*told)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> tuple[Any, ...]:
        wanted = tuple(ctx.needs_input_grad[1:])
        if not any(wanted) or all(bar is None for bar in bars[:4]):
            return (None,) * (1 + len(wanted))
        found = iter(apply(_SolveAdj, wanted, *ctx.saved_tensors, *bars[:4]))
        return (None, *(next(found) if want else None for want in wanted))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], options: _Options, *data: Tensor) -> tuple[Any, Any]:
        n = info.batch_size
        output = apply(_Solve, options, *(_merge(n, x, dim) for x, dim in zip(data, in_dims[1:], strict=True)))
        return tuple(y.unflatten(0, (n, len(y) // n)) for y in output), (0,) * len(output)


class _SolveAdj(Function):
    """The data, x, z, y, solved, and bars of x, z, s, y -> bars of the data that are wanted."""

    @staticmethod
    def forward(wanted: tuple[bool, ...], *tensors: Any) -> tuple[Tensor, ...]:
        *data, x, z, y, solved = tensors[:11]
        bars = (torch.zeros_like(like) if bar is None else bar for bar, like in zip(tensors[11:], (x, z, z, y), strict=True))
        found = _bars(Problem(*data), x, z, y, *bars, wanted=wanted)
        return tuple(torch.where(solved.reshape(-1, *(1,) * (bar.ndim - 1)), bar, 0.0) for bar in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(
            "lcp differentiates once: second derivatives (create_graph=True, or a gradient of a gradient) are not supported. "
            "For curvature use differences of gradients."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], wanted: tuple[bool, ...], *tensors: Tensor | None) -> tuple[Any, Any]:
        n = info.batch_size
        output = apply(_SolveAdj, wanted, *(_merge(n, x, dim) for x, dim in zip(tensors, in_dims[1:], strict=True)))
        return tuple(y.unflatten(0, (n, len(y) // n)) for y in output), (0,) * len(output)


def _bars(
    p: Problem, x: Tensor, z: Tensor, y: Tensor, x_bar: Tensor, z_bar: Tensor, s_bar: Tensor, y_bar: Tensor, *,
    wanted: tuple[bool, ...],
) -> tuple[Tensor, ...]:  # fmt: skip
    """Bars of the data. One solve with the transpose of the KKT matrix: that of M^T and F^T in place of M and F."""
    active = z > 0
    # s = m - G x - F z where a row is not active, 0 where it is
    s_bar = torch.where(active, 0.0, s_bar)
    x_bar, z_bar = x_bar - times(p.G.mT, s_bar), torch.where(active, z_bar - times(p.F.mT, s_bar), 0.0)
    transposed = p.transposed()
    dx, dz, dy = kkt_solve(transposed, reduce(transposed), active)(-x_bar, -z_bar, -y_bar)
    # the derivative is that of dx . [M x + G^T z + A^T y + q] + dz . [G x + F z - m] + dy . [A x - b] - s_bar . [G x + F z - m]
    dz = dz - s_bar
    bars = {
        "M": lambda: _outer(dx, x),
        "q": lambda: dx,
        "G": lambda: _outer(z, dx) + _outer(dz, x),
        "m": lambda: -dz,
        "A": lambda: _outer(y, dx) + _outer(dy, x),
        "F": lambda: _outer(dz, z),
        "b": lambda: -dy,
    }
    return tuple(bars[name]() for name, want in zip(_SIZES, wanted, strict=True) if want)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    return a.unsqueeze(-1) * b.unsqueeze(-2)


def _merge(n: int, x: Tensor | None, dim: int | None) -> Tensor | None:
    """vmap's n samples of [worlds, ...] as more worlds."""
    if x is None:
        return None
    moved = x.unsqueeze(0).expand(n, *x.shape) if dim is None else x.movedim(dim, 0)
    return moved.flatten(0, 1)


# ---- checks --------------------------------------------------------------------------------------------------------
def _split(name: str, x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Batch shape and size of an argument."""
    cut = x.ndim - len(_SIZES[name])
    return tuple(x.shape[:cut]), tuple(x.shape[cut:])


def _check_data(given: dict[str, Tensor | None]) -> dict[str, Tensor]:
    """All seven as tensors that fit together; TypeError and ValueError name the argument."""
    if given["A"] is None and given["b"] is not None:
        raise ValueError("lcp: b is the right-hand side of A x = b, but A is not given")
    first = given["M"]
    for name, x in given.items():
        if x is None and name in ("A", "F", "b"):
            continue
        if not isinstance(x, Tensor):
            raise TypeError(f"lcp: {name} must be a torch tensor, got {type(x).__name__}")
        if x.dtype not in DTYPES:
            raise TypeError(f"lcp: {name} must be float64 or float32, got {_name(x.dtype)}")
        assert first is not None  # M comes first and must be given
        if x.dtype != first.dtype:
            raise TypeError(f"lcp: {name} must be {_name(first.dtype)} as M is, got {_name(x.dtype)}")
        if x.device != first.device:
            raise TypeError(f"lcp: {name} must be on {first.device} as M is, got {x.device}")
        if x.ndim < len(_SIZES[name]):
            raise ValueError(f"lcp: {name} must have shape [..., {', '.join(_SIZES[name])}], got {tuple(x.shape)}")
    return _check_shapes({name: x for name, x in given.items() if x is not None})


def _check_shapes(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Refuse sizes that do not fit; fill in what is not given."""
    M, G = given["M"], given["G"]
    e = given["A"].shape[-2] if "A" in given else 0
    counts = {"n": M.shape[-1], "p": G.shape[-2], "e": e}
    if counts["n"] == 0:
        raise ValueError("lcp: M must have at least one row, got none")
    shapes = {name: tuple(counts[letter] for letter in letters) for name, letters in _SIZES.items()}
    for name, x in given.items():
        if _split(name, x)[1] != shapes[name]:
            wanted = ", ".join(map(str, shapes[name]))
            raise ValueError(
                f"lcp: {name} must have shape [..., {wanted}], got {tuple(x.shape)} (n = {counts['n']} from M, "
                f"p = {counts['p']} from G, e = {counts['e']} from A)"
            )
    return {name: given[name] if name in given else M.new_zeros(shapes[name]) for name in _SIZES}


def _check_options(iterations: Any, tolerance: Any, on_failure: Any) -> _Options:
    if not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1:
        raise ValueError(f"lcp: iterations must be a positive int, got {iterations!r}")
    if not isinstance(tolerance, float) or not (math.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"lcp: tolerance must be a positive finite float, got {tolerance!r}")
    if on_failure not in ("raise", "flag"):
        raise ValueError(f'lcp: on_failure must be "raise" or "flag", got {on_failure!r}')
    return _Options(iterations, tolerance, on_failure == "raise")


def _check_finite(data: tuple[Tensor, ...]) -> None:
    """Here and not with the other checks: under vmap only the function itself sees the numbers."""
    for name, x in zip(_SIZES, data, strict=True):
        bad = ~x.isfinite().flatten(1).all(-1)
        if bool(bad.any()):
            raise ValueError(f"lcp: {name} must be finite, got NaN or inf in world {int(bad.int().argmax())}")


def _failure(residual: Tensor, solved: Tensor, options: _Options) -> str:
    worst = int(residual.argmax())
    return (
        f"lcp: {int((~solved).sum())} of {len(solved)} worlds are not solved (worst residual {float(residual[worst]):.3g}, world "
        f"{worst}; tolerance {options.tolerance:.3g}). The rows may contradict each other or M may be singular; "
        'on_failure="flag" returns what was found and says in `solved` where it is no solution'
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
