"""The solver behind costate.lcp: a mixed complementarity problem, many worlds at once.

    M x + G^T z + A^T y = -q,      s + G x + F z = m,      A x = b,      s >= 0,  z >= 0,  s . z = 0

    reduce           x and y as functions of z: s = B z + c with B = G N G^T - F, N the inverse of [M A^T; A 0], rows scaled
    interior_point   primal-dual steps with predictor and corrector on s = B z + c
    lemke            pivots on the same, for worlds whose interior path turns back (friction is not monotone)
    polish           Newton's method on the equations of the rows that are active: exact to round-off
    kkt_solve        the linear system of all rows that are active; polish and the adjoint (costate/lcp.py) rest on it

Everything is float64, shapes are [worlds, ...]. docs/maths/lcp.md has the derivation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

RANK = 1e-11  # condition beyond which a scaled matrix counts as singular; redundant rows leave 1e-15, bodies of 1 g and 10 t 1e-7
_NOISE = 1e-13  # part of what G N G^T would be without A that counts as 0: rows that equalities hold leave round-off
_TO_BOUNDARY = 0.99  # part of the way to the nearest bound that a step may go
_STALLED = 1e-8  # a step shorter than this part leads nowhere any more
_TIES = 1e-7  # size of the numbers that keep Lemke's ratios apart; polish takes them away
_POLISH = 6  # most Newton steps; from the interior point's answer one or two are enough
_ENOUGH = 1e-3  # part of the tolerance at which polish ends, and below which z and s are both 0
_SMALLEST = 1e-14  # tolerance that the interior point can still reach


class Problem(NamedTuple):
    """The data of a batch of problems."""

    M: Tensor  # [worlds, n, n]
    q: Tensor  # [worlds, n]
    G: Tensor  # [worlds, p, n]
    m: Tensor  # [worlds, p]
    A: Tensor  # [worlds, e, n]
    F: Tensor  # [worlds, p, p]
    b: Tensor  # [worlds, e]

    def take(self, worlds: Tensor) -> Problem:
        """Some of the worlds."""
        return Problem(*(part[worlds] for part in self))

    def transposed(self) -> Problem:
        """The problem whose KKT matrix is the transpose of this one's: G and A are on both sides already."""
        return self._replace(M=self.M.mT, F=self.F.mT)


class Reduced(NamedTuple):
    """A problem with x and y eliminated, and the scales of its rows; all of them make units of sqrt(J) in mechanics."""

    N: Tensor  # [worlds, n + e, n + e] inverse of [M A^T; A 0], the pseudo-inverse where it has none
    start: Tensor  # [worlds, n + e] x and y where z = 0
    B: Tensor  # [worlds, p, p] s = B z + c, scaled: s = s~ / d, z = d z~
    c: Tensor  # [worlds, p] scaled
    k: Tensor  # [worlds, n] scale of the equations of x: 1 / sqrt(|M_jj|)
    d: Tensor  # [worlds, p] scale of the rows of G: makes the largest entries of B one
    a: Tensor  # [worlds, e] scale of the rows of A
    size: Tensor  # [worlds, 1] of the data: what the residual is relative to

    def take(self, worlds: Tensor) -> Reduced:
        """Some of the worlds."""
        return Reduced(*(part[worlds] for part in self))


class Point(NamedTuple):
    """A candidate solution; s follows from it."""

    x: Tensor
    z: Tensor
    y: Tensor
    residual: Tensor  # [worlds]

    def improve(self, worlds: Tensor, other: Point) -> Point:
        """This, with `other` in those of `worlds` where it is better."""
        better = other.residual < self.residual[worlds]
        for mine, its in zip(self, other, strict=True):
            mine[worlds[better]] = its[better]
        return self


def times(A: Tensor, x: Tensor) -> Tensor:
    """A x."""
    return (A @ x.unsqueeze(-1)).squeeze(-1)


def slack(p: Problem, x: Tensor, z: Tensor) -> Tensor:
    """What is left in every row: s = m - G x - F z, of any sign."""
    return p.m - times(p.G, x) - times(p.F, z)


def largest(x: Tensor) -> Tensor:
    """[worlds, 1]: largest magnitude, 0 where there is nothing."""
    return x.abs().amax(-1, keepdim=True) if x.shape[-1] else x.new_zeros((*x.shape[:-1], 1))


def inverse(K: Tensor) -> Tensor:
    """The inverse, or the pseudo-inverse where K is singular: of all solutions the smallest, of none the nearest."""
    if K.shape[-1] == 0:
        return K
    inv = torch.linalg.inv_ex(K).inverse
    condition = K.abs().sum(-1).amax(-1) * inv.abs().sum(-1).amax(-1)
    singular = ~(condition < 1 / RANK)
    if bool(singular.any()):
        inv[singular] = torch.linalg.pinv(K[singular].nan_to_num(0.0, 0.0, 0.0), rtol=RANK)
    return inv


# ---- elimination of x and y ----------------------------------------------------------------------------------------
def reduce(p: Problem) -> Reduced:
    """Eliminate x and y, and scale the rows."""
    k = _unit_root(p.M.diagonal(dim1=-2, dim2=-1))
    N, a = _eliminate_equalities(p, k)
    n = p.q.shape[-1]
    start = times(N, torch.cat((-p.q, p.b), -1))
    x = start[:, :n]
    d = _unit_root((p.G * k.unsqueeze(-2)).square().sum(-1))
    B = _scale(p.G @ N[:, :n, :n] @ p.G.mT, d)
    B = torch.where(B.abs() > _NOISE, B, 0.0) - _scale(p.F, d)
    more = _equilibrate(B)
    B, d = _scale(B, more), d * more
    # a large m of a row that is far from being active says nothing about the size of a solution
    parts = (k * p.q, x / k, p.b * a, d * p.m.clamp(max=0.0))
    size = torch.cat([largest(part) for part in parts], -1).amax(-1, keepdim=True)
    size = torch.where(size > 0, size, 1.0)
    c = d * (p.m - times(p.G, x)) / size
    return Reduced(N, start, B, c, k, d, a, size)


def _eliminate_equalities(p: Problem, k: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of [M A^T; A 0], and the scale of A's rows.

    A scaled = U S V^T; the rows V^T hold what A holds and are orthonormal, those of S = 0 (redundant ones) drop out. So
    conditions are those of M alone, and of all y with the same A^T y it is the smallest.
    """
    n, e = p.q.shape[-1], p.b.shape[-1]
    M = _scale(p.M, k)
    a = _unit_root((p.A * k.unsqueeze(-2)).square().sum(-1))
    if e == 0:
        return _scale(inverse(M), k), a
    U, S, Vh = torch.linalg.svd(a.unsqueeze(-1) * p.A * k.unsqueeze(-2), full_matrices=False)
    kept = S > RANK
    V = torch.where(kept.unsqueeze(-1), Vh, 0.0)
    K = torch.cat((torch.cat((M, V.mT), -1), torch.cat((V, torch.diag_embed((~kept).to(M.dtype))), -1)), -2)
    back = M.new_zeros((*M.shape[:-2], n + e, n + S.shape[-1]))
    back[:, :n, :n] = torch.diag_embed(k)
    back[:, n:, n:] = a.unsqueeze(-1) * U * torch.where(kept, 1 / S.clamp(min=RANK), 0.0).unsqueeze(-2)
    return back @ inverse(K) @ back.mT, a


def _unit_root(x: Tensor) -> Tensor:
    """1 / sqrt(|x|), 1 where x is 0."""
    return torch.where(x == 0, 1.0, x.abs()).rsqrt()


def _scale(B: Tensor, d: Tensor) -> Tensor:
    """Rows and columns multiplied by d."""
    return d.unsqueeze(-1) * B * d.unsqueeze(-2)


def _equilibrate(B: Tensor) -> Tensor:
    """d such that the largest entry of every row and column of d B d is about one (Ruiz 2001, symmetric)."""
    d = B.new_ones(B.shape[:-1])
    for _ in range(8 if B.shape[-1] else 0):
        scaled = _scale(B, d).abs()
        d = d * _unit_root(torch.maximum(scaled.amax(-1), scaled.amax(-2)))
    return d


# ---- the complementarity problem s = B z + c -----------------------------------------------------------------------
def interior_point(B: Tensor, c: Tensor, iterations: int, tolerance: float) -> tuple[Tensor, Tensor]:
    """z and the iterations [worlds] of the primal-dual method; a world that is solved or stuck is frozen.

    Predictor and corrector after Mehrotra (1992) and Mattingley and Boyd (2012). Ends where s - B z - c and all z_i s_i are
    below the tolerance.
    """
    z, s = torch.ones_like(c), c.clamp(min=1.0)
    count = torch.zeros(len(c), dtype=torch.long, device=c.device)
    worlds, step = torch.arange(len(c), device=c.device), torch.ones_like(c[:, 0])
    z_all = z.clone()
    for done in range(iterations + 1):
        z_all[worlds], count[worlds] = z, done
        r = s - times(B, z) - c
        solved = torch.maximum(largest(r), largest(z * s)).squeeze(-1) < tolerance
        go = ~solved & (step > _STALLED)
        if done == iterations or not bool(go.any()):
            break
        if not bool(go.all()):
            worlds, B, c, z, s, r = (part[go] for part in (worlds, B, c, z, s, r))
        z, s, step = _interior_step(B, z, s, r)
    return z_all, count


def _interior_step(B: Tensor, z: Tensor, s: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """z and s after one step from where r = s - B z - c, and the part of it that was taken [worlds]."""
    # z ds + s dz = -t and ds = B dz - r:  (Z B + S) dz = z r - t, rows divided by z + s so that none of them vanishes
    weight = 1 / (z + s)
    LU, pivots, _ = torch.linalg.lu_factor_ex((weight * z).unsqueeze(-1) * B + torch.diag_embed(weight * s))

    def direction(t: Tensor) -> tuple[Tensor, Tensor]:
        dz = torch.linalg.lu_solve(LU, pivots, (weight * (z * r - t)).unsqueeze(-1)).squeeze(-1)
        return dz, times(B, dz) - r

    # predictor: straight to complementarity; how far it gets says how much centring is needed
    dz, ds = direction(z * s)
    part = _to_boundary(z, s, dz, ds).clamp(max=1.0)
    gap, left = (z * s).mean(-1, keepdim=True), ((z + part * dz) * (s + part * ds)).mean(-1, keepdim=True)
    # corrector: the curvature of z s along the predictor, and that much centring
    dz, ds = direction(z * s + dz * ds - gap * (left / gap).clamp(0.0, 1.0) ** 3)
    part = (_TO_BOUNDARY * _to_boundary(z, s, dz, ds)).clamp(max=1.0)
    ok = part.isfinite() & dz.isfinite().all(-1, keepdim=True) & ds.isfinite().all(-1, keepdim=True)
    z, s = torch.where(ok, z + part * dz, z), torch.where(ok, s + part * ds, s)
    return z, s, torch.where(ok, part, 0.0).squeeze(-1)


def _to_boundary(z: Tensor, s: Tensor, dz: Tensor, ds: Tensor) -> Tensor:
    """[worlds, 1]: how many times the step fits until a z or s is 0."""
    ratio = torch.where(dz < 0, -z / dz, torch.inf), torch.where(ds < 0, -s / ds, torch.inf)
    return torch.minimum(*ratio).amin(-1, keepdim=True)


def lemke(B: Tensor, c: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """z and the number of pivots [worlds] of Lemke's method (Cottle, Pang and Stone 1992, section 4.4) on s = B z + c.

    It follows s = B z + c + t from large t to t = 0 and can turn back on its way; for B of contact with friction it arrives
    unless contacts contradict each other (Anitescu and Potra 1997). Where it does not, z is where it ended.
    """
    worlds, p = c.shape
    every = torch.arange(worlds, device=c.device)
    # columns s, z, t, right-hand side; a little of something else for each row, so that no two ratios are equal
    ties = _TIES * torch.linspace(1.0, 2.0, p, dtype=c.dtype, device=c.device).sqrt()
    one = torch.ones_like(c).unsqueeze(-1)
    table = torch.cat((torch.eye(p, dtype=c.dtype, device=c.device).expand_as(B), -B, -one, (c + ties).unsqueeze(-1)), -1)
    basis = torch.arange(p, device=c.device).repeat(worlds, 1)
    row, enter = (c + ties).argmin(-1), torch.full_like(every, 2 * p)
    go, count = (c + ties).amin(-1) < 0, torch.zeros_like(every)
    for _ in range(most):
        if not bool(go.any()):
            break
        table = torch.where(go[:, None, None], _pivot(table, every, row, enter), table)
        leave = basis[every, row]
        basis[every, row] = torch.where(go, enter, leave)
        count += go
        go = go & (leave != 2 * p)
        # its complement comes in; the row that reaches 0 first goes out
        enter = torch.where(go, torch.where(leave < p, leave + p, leave - p), 0)
        column = table[every, :, enter]
        ratio = torch.where(column > RANK, table[..., -1] / column, torch.inf)
        row = ratio.argmin(-1)
        go = go & ratio.amin(-1).isfinite()
    values = table.new_zeros((worlds, 2 * p + 1)).scatter(1, basis, table[..., -1])
    return values[:, p : 2 * p].nan_to_num(0.0, 0.0, 0.0).clamp(min=0.0), count


def _pivot(table: Tensor, every: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The tables after the exchange of the variables of these rows and columns."""
    pivot = table[every, row] / table[every, row, column].unsqueeze(-1)
    factor = table[every, :, column]
    after = table - factor.unsqueeze(-1) * pivot.unsqueeze(-2)
    after[every, row] = pivot
    return after


# ---- the equations of the rows that are active ---------------------------------------------------------------------
def kkt_solve(p: Problem, red: Reduced, active: Tensor) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """The function that takes rx, rz, ry to dx, dz, dy, with z and its rows cut down to the active ones I:

    M dx + G_I^T dz + A^T dy = rx,      G_I dx + F_II dz = rz,      A dx = ry

    Where rows are redundant it is the smallest dz and dy. One turn of refinement against the equations themselves.
    """
    n = p.q.shape[-1]
    both = active.unsqueeze(-1) & active.unsqueeze(-2)
    B_inverse = inverse(torch.where(both, red.B, torch.diag_embed((~active).to(red.B.dtype))))

    def eliminate(rx: Tensor, rz: Tensor, ry: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        free = times(red.N, torch.cat((rx, ry), -1))[:, :n]
        right = torch.where(active, red.d * (times(p.G, free) - rz), 0.0)
        dz = torch.where(active, red.d * times(B_inverse, right), 0.0)
        both = times(red.N, torch.cat((rx - times(p.G.mT, dz), ry), -1))
        return both[:, :n], dz, both[:, n:]

    def solve(rx: Tensor, rz: Tensor, ry: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dx, dz, dy = eliminate(rx, rz, ry)
        ex = rx - times(p.M, dx) - times(p.G.mT, dz) - times(p.A.mT, dy)
        again = eliminate(ex, rz - times(p.G, dx) - times(p.F, dz), ry - times(p.A, dx))
        return dx + again[0], dz + again[1], dy + again[2]

    return solve


def is_active(red: Reduced, z: Tensor, s: Tensor, least: float = 0.0) -> Tensor:
    """Rows with z > s in units that can be compared; both below `least`: not active."""
    scaled = z / red.d
    return (scaled > red.d * s) & (scaled > least * red.size)


def residual(p: Problem, red: Reduced, x: Tensor, z: Tensor, y: Tensor) -> Tensor:
    """[worlds]: the largest error of all equations, relative to the size of the data (docs/maths/lcp.md); inf if not finite."""
    balance = red.k * (times(p.M, x) + times(p.G.mT, z) + times(p.A.mT, y) + p.q)
    natural = torch.minimum(z / red.d, red.d * slack(p, x, z))
    errors = (balance, natural, red.a * (times(p.A, x) - p.b))
    worst = torch.cat([largest(part) for part in errors], -1).amax(-1) / red.size.squeeze(-1)
    return torch.where(worst.isfinite(), worst, torch.inf)


def polish(p: Problem, red: Reduced, z: Tensor, tolerance: float) -> Point:
    """Newton's method on the natural map min(z, s) = 0 (semismooth), from z; the best of all that it meets."""
    n = p.q.shape[-1]
    x, y = (red.start - times(red.N[..., :n], times(p.G.mT, z))).split((n, p.b.shape[-1]), -1)
    best = Point(x, z, y, residual(p, red, x, z, y))
    worlds = torch.arange(len(z), device=z.device)
    for _ in range(_POLISH):
        active = is_active(red, z, slack(p, x, z))
        z = torch.where(active, z, 0.0)
        balance = times(p.M, x) + times(p.G.mT, z) + times(p.A.mT, y) + p.q
        dx, dz, dy = kkt_solve(p, red, active)(-balance, slack(p, x, z), p.b - times(p.A, x))
        now = Point(x + dx, z + dz, y + dy, residual(p, red, x + dx, z + dz, y + dy))
        best = best.improve(worlds, now)
        # a world that is barely solved takes one step more; the others go on from here, better or worse
        go = best.residual[worlds] > _ENOUGH * tolerance
        if not bool(go.any()):
            break
        worlds, p, red = worlds[go], p.take(go), red.take(go)
        x, z, y = now.x[go], now.z[go], now.y[go]
    return best


# ---- all together --------------------------------------------------------------------------------------------------
def solve(p: Problem, iterations: int, tolerance: float) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """x, z, s, y, the residual and the iterations: z and s are not negative, and of each pair one is exactly 0."""
    red = reduce(p)
    z, count = p.m, torch.zeros(len(p.m), dtype=torch.long, device=p.m.device)
    if z.shape[-1]:
        z, count = interior_point(red.B, red.c, iterations, max(0.1 * tolerance, _SMALLEST))
    point = polish(p, red, red.size * red.d * z, tolerance)
    left = (point.residual > tolerance).nonzero().squeeze(-1)
    if len(left) and z.shape[-1]:
        hard, hard_red = p.take(left), red.take(left)
        z, pivots = lemke(hard_red.B, hard_red.c, 20 + 20 * z.shape[-1])
        point = point.improve(left, polish(hard, hard_red, hard_red.size * hard_red.d * z, tolerance))
        count[left] += pivots
    s = slack(p, point.x, point.z)
    active = is_active(red, point.z, s, _ENOUGH * tolerance)
    z, s = torch.where(active, point.z, 0.0), torch.where(active, 0.0, s.clamp(min=0.0))
    worst = residual(p, red, point.x, z, point.y)
    # numbers too large to be computed with end as inf in the residual, and nowhere else
    x, z, s, y = (part.nan_to_num(0.0, 0.0, 0.0) for part in (point.x, z, s, point.y))
    return x, z, s, y, worst, count
