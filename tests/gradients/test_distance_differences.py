"""Every derivative of cs.distance against central differences: all pairs of shapes, all kinds of features, apart to overlapping.

Of face contacts only the deepest point is seen here, which is a vertex or two edges; points where an edge is cut by the side of a
face are in whole steps (test_shape_differences.py) and in tests/core.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

import costate as cs
from costate.rotation import inverse, multiply, normalise, rotate
from tests.gradients.contact_differences import LEVELS, RATIO, ROUNDING, TINY, extrapolate
from tests.gradients.contact_scenes import uniform
from tests.gradients.distance_pairs import PAIRS, Poses, build, planes, poses
from tests.gradients.scenes import generator, normal

COUNT = 64  # worlds of a pair
# Promised, relative; measured 1e-11 and 3e-8 at most
MEDIAN, WORST = 1e-9, 1e-7
# A difference in more doubt than this says nothing: a kink is nearer than its steps. Measured: 1% of a pair's cases at most
DOUBT, KINKS = 3e-8, 0.02
FIRST = 1e-3  # the largest step, of each input's scale
# m, rad: how much an input may change by
SCALES = {
    "q": 0.03, "shape_pos": 0.02, "shape_quat": 0.1, "shape_size": 0.02, "hull_vertex": 0.02, "height": 0.02,
    "joint_pos": 0.02, "joint_quat": 0.1, "joint_anchor": 0.02, "joint_axis": 0.1,
}  # fmt: skip
FLOOR = 0.1  # derivatives are at least so large, per unit of their directions, as errors are measured: a gap's is 1 by any place


class Case(NamedTuple):
    """One derivative, as in contact_differences."""

    pair: tuple[str, str]
    world: int
    place: str
    input: str
    output: str
    exact: float
    difference: float
    doubt: float
    error: float


@cache
def some_poses(a: str, b: str, count: int = COUNT, seed: int = 1) -> Poses:
    """Poses of a pair in which there is a distance: over a field, not beside it."""
    found = poses(a, b, count, seed)
    there = cs.distance(found.model, found.q, "first", "b/0", found.params).gap.isfinite()
    params = cs.Params(found.model, {name: x[there] for name, x in found.params.items()})
    return found._replace(q=found.q[there], params=params, place=[p for p, t in zip(found.place, there) if t])


def distance(model: cs.Model, q: Tensor, params: cs.Params) -> dict[str, Tensor]:
    y = cs.distance(model, q, "first", "b/0", params)
    return {"gap": y.gap.unsqueeze(-1), "normal": y.normal, "point_a": y.point_a, "point_b": y.point_b}


def moved(p: Poses, name: str, by: Tensor) -> tuple[Tensor, cs.Params]:
    if name == "q":
        return p.model.integrate(p.q.expand(*by.shape[:-1], -1), by), p.params
    return p.q, p.params.replace(**{name: p.params[name] + by})


def compare(p: Poses, seed: int = 2) -> list[Case]:
    """Every derivative of all worlds of a pair along a random direction of every input."""
    gen = generator(seed)
    worlds = len(p.q)
    along = {"q": SCALES["q"] * normal(gen, worlds, p.model.nv)}
    along |= {name: SCALES[name] * normal(gen, *x.shape) for name, x in p.params.items() if name in SCALES and x.numel()}
    zero = {name: torch.zeros_like(d).requires_grad_() for name, d in along.items()}
    inputs = p.model.integrate(p.q, zero["q"])
    outputs = distance(p.model, inputs, p.params.replace(**{n: p.params[n] + z for n, z in zero.items() if n != "q"}))
    weights = {name: normal(gen, *y.shape) for name, y in outputs.items()}
    grads = {
        name: torch.autograd.grad((weights[name] * y).sum(), list(zero.values()), retain_graph=True, allow_unused=True)
        for name, y in outputs.items()
    }
    sizes = FIRST / RATIO ** torch.arange(LEVELS, dtype=torch.float64)
    cases = []
    for i, (name, d) in enumerate(along.items()):
        tiny = torch.tensor(TINY, dtype=torch.float64)
        h = torch.cat((sizes, -sizes, tiny, -tiny, torch.zeros(1, dtype=torch.float64))).reshape(-1, *[1] * d.ndim)
        with torch.no_grad():
            found = distance(p.model, *moved(p, name, h * d))
        for output, y in found.items():
            total, size = (weights[output] * y).sum(-1), sizes.unsqueeze(-1)
            forth, back, middle = total[:LEVELS], total[LEVELS : 2 * LEVELS], total[-1]
            slopes, (there, here) = (forth - back) / (2 * size), total[2 * LEVELS : -1].chunk(2)
            least = ROUNDING * (weights[output] * y[-1]).abs().sum(-1)
            rounding = torch.maximum((there + here - 2 * middle).abs().amax(0), least) / size
            difference, doubt = extrapolate(slopes, torch.ones_like(slopes, dtype=torch.bool), rounding)
            # half of the difference of slopes to both sides falls with the step, unless there is a kink in the middle
            sides = (forth + back - 2 * middle) / (2 * size)
            doubt = torch.maximum(doubt, (sides[3] - sides[2] / RATIO).abs() - 100 * rounding[3])
            g, flat = grads[output][i], d.reshape(worlds, -1)
            g = torch.zeros_like(flat) if g is None else g.reshape(worlds, -1)
            value, likely = (g * flat).sum(-1), g.norm(dim=-1) * flat.norm(dim=-1) / flat.shape[-1] ** 0.5
            least = FLOOR * weights[output].norm(dim=-1) * flat.norm(dim=-1)
            scale = torch.stack((value.abs(), likely, difference.abs(), least)).amax(0)
            numbers = zip(
                p.place,
                value.tolist(),
                difference.tolist(),
                (doubt / scale).tolist(),
                ((value - difference).abs() / scale).tolist(),
            )
            cases += [Case(p.pair, w, place, name, output, *rest) for w, (place, *rest) in enumerate(numbers)]
    return cases


class Summary(NamedTuple):
    count: int
    median: float  # of derivatives that are not zero
    kinks: float  # share
    worst: list[Case]

    def __str__(self) -> str:
        worst = "".join(f"\n    {case}" for case in self.worst)
        return f"{self.count} cases, median {self.median:.1e}, {self.kinks:.2%} kinks, worst:{worst}"


def summary(cases: list[Case], show: int = 4) -> Summary:
    kept = [case for case in cases if case.doubt <= DOUBT]
    errors = torch.tensor([case.error for case in kept if case.exact != 0 or case.difference != 0])
    worst = sorted(kept, key=lambda case: case.error if case.error == case.error else float("inf"), reverse=True)[:show]
    return Summary(len(cases), errors.median().item(), 1 - len(kept) / len(cases), worst)


def check(cases: list[Case]) -> None:
    found = summary(cases)
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.kinks <= KINKS, found


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_pair(pair):
    check(compare(some_poses(*pair)))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3, 5))
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_pair_in_more_poses(pair, seed):
    check(compare(some_poses(*pair, 16 * COUNT, seed), seed))


# on how many faces of both shapes the closest points lie: faces, edges and vertices with each other
KINDS = ((1, 3), (3, 1), (2, 2), (2, 3), (3, 2), (3, 3))
FACETED = ("box", "cylinder", "hull")


def kinds(p: Poses) -> Counter:
    """How often which features are closest: on how many faces of both shapes the closest points lie, 0 of what is round."""
    y = cs.distance(p.model, p.q, "first", "b/0", p.params)
    on = (planes(p, shape, x).clamp(max=3).tolist() for shape, x in enumerate((y.point_a, y.point_b)))
    return Counter(zip(*on))


def test_all_features_occur():
    """Of every pair of shapes with faces every kind of feature is among the cases; of others all faces, edges and vertices."""
    ground = Counter()
    for a, b in PAIRS:
        found = kinds(some_poses(a, b))
        if a in FACETED and b in FACETED:
            assert all(found[kind] > 0 for kind in KINDS), (a, b, found)
        elif a in ("sphere", "capsule") and b in FACETED:
            assert all(found[0, n] > 0 for n in (1, 2, 3)), (a, b, found)
        elif a == "field":
            assert found[1, 3 * (b in FACETED)] > 0 and found[2, 3 * (b in FACETED)] > 0, (a, b, found)
            ground += found
    assert ground[3, 0] > 0 and ground[3, 3] > 0, ground
    rims = some_poses("plane", "cylinder")  # points of the rim lie on an end alone
    assert kinds(rims) == {(1, 1): len(rims.q)}


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_gap_grows_along_the_normal(pair):
    """d gap / d x_b = n = -d gap / d x_a for all displacements of either shape, whatever touches."""
    p = some_poses(*pair)
    q, pos = p.q.clone().requires_grad_(), p.params["joint_pos"].clone().requires_grad_()
    y = cs.distance(p.model, q, "first", "b/0", p.params.replace(joint_pos=pos))
    to_q, to_pos = torch.autograd.grad(y.gap.sum(), (q, pos))
    assert (to_q[:, -7:-4] - y.normal).norm(dim=-1).max() < 1e-9
    assert (to_pos[:, 0] + y.normal).norm(dim=-1).max() < 1e-9


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_closest_points(pair):
    """point_b - point_a = gap n: to first order too. The other order of shapes has the same distance."""
    p = some_poses(*pair)
    q, gen = p.q.clone().requires_grad_(), generator(4)
    y = cs.distance(p.model, q, "first", "b/0", p.params)
    apart = y.point_b - y.point_a - y.gap.unsqueeze(-1) * y.normal
    assert apart.abs().max() < 1e-13
    (slope,) = torch.autograd.grad((apart * normal(gen, *apart.shape)).sum(), q, retain_graph=True)
    (likely,) = torch.autograd.grad((y.point_b * normal(gen, *apart.shape)).sum() + y.normal.sum(), q)
    assert (slope.norm(dim=-1) / (1 + likely.norm(dim=-1))).max() < 1e-11
    back = cs.distance(p.model, p.q, "b/0", "first", p.params)
    for forth, same in ((back.gap, y.gap), (-back.normal, y.normal), (back.point_b, y.point_a), (back.point_a, y.point_b)):
        assert (forth - same).abs().max() < 1e-12


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_moving_everything_together(pair):
    """Distances stay, normals and points move along, and no derivative of the gap is left; far away too."""
    p, gen = some_poses(*pair), generator(5)
    turn, shift = normalise(normal(gen, len(p.q), 4)), 10 * normal(gen, len(p.q), 3)
    # the first tree by its joint's frame, the free body by its own coordinates
    pos, quat, q = p.params["joint_pos"].clone(), p.params["joint_quat"].clone(), p.q.clone()
    pos[:, 0], quat[:, 0] = rotate(turn, pos[:, 0]) + shift, multiply(turn, quat[:, 0])
    q[:, -7:-4], q[:, -4:] = rotate(turn, q[:, -7:-4]) + shift, multiply(turn, q[:, -4:])
    pos, q = pos.requires_grad_(), q.requires_grad_()
    here = cs.distance(p.model, p.q, "first", "b/0", p.params)
    there = cs.distance(p.model, q, "first", "b/0", p.params.replace(joint_pos=pos, joint_quat=quat))
    assert (there.gap - here.gap).abs().max() < 1e-12
    assert (there.normal - rotate(turn, here.normal)).abs().max() < 1e-9
    to_pos, to_q = torch.autograd.grad(there.gap.sum(), (pos, q))
    assert (to_pos[:, 0] + to_q[:, -7:-4]).abs().max() < 1e-12


def test_boxes_with_faces_nearly_parallel():
    """Far apart or overlapping, within 3 degrees: moved by the gap along the normal they just touch; both points are theirs.

    Faces like these touch in several points, whose gaps count along other normals: smaller ones among them are no distances.
    """
    count, gen, model = 512, generator(6), build("box", "box")
    half = model.defaults["shape_size"]
    q = torch.tensor(model.q0).expand(count, -1).clone()
    bodies = cs.kinematics(model, q)
    frame, tilt = bodies.quaternion[:, 0], torch.ones(count, 4, dtype=torch.float64)
    tilt[:, 1:] = 0.025 * normal(gen, count, 3).tanh() / 3**0.5
    way = torch.stack((*(0.25 * normal(gen, 2, count).tanh()), uniform(gen, 0.12, 1.2, count)), -1)
    q[:, -7:-4], q[:, -4:] = bodies.position[:, 0] + rotate(frame, way), normalise(multiply(frame, tilt))
    y, bodies = cs.distance(model, q, 0, 1), cs.kinematics(model, q)
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    x = [bodies.position[:, i : i + 1] + rotate(bodies.quaternion[:, i : i + 1], corners * half[i]) for i in range(2)]
    along = [(y.normal.unsqueeze(1) * corner).sum(-1) for corner in x]
    assert (along[1].amin(-1) - along[0].amax(-1) - y.gap).abs().max() < 1e-9
    for i, point in enumerate((y.point_a, y.point_b)):
        local = rotate(inverse(bodies.quaternion[:, i]), point - bodies.position[:, i])
        assert (local.abs() - half[i])[y.gap > 0].max() < 1e-9


# float32 sees the same features unless others are as close to 1e-7 of the sizes; normals between near points turn by rounding/gap
SINGLE, SAME = 2e-6, 0.97


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_float32(pair):
    """Values and gradients of the gap as in float64."""
    p = some_poses(*pair)

    def run(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        q = p.q.to(dtype).requires_grad_()
        size = p.params["shape_size"].to(dtype).requires_grad_()
        fields = {name: x.to(dtype) for name, x in p.params.items()}
        y = cs.distance(p.model, q, "first", "b/0", cs.Params(p.model, {**fields, "shape_size": size}))
        return y.gap.detach().double(), *(g.double() for g in torch.autograd.grad(y.gap.sum(), (q, size)))

    gap, *grads = run(torch.float32)
    right, *expected = run(torch.float64)
    assert (gap - right).abs().max() < SINGLE
    apart = torch.tensor([place == "apart" for place in p.place])
    for g, e in zip(grads, expected):
        close = (g - e).reshape(len(g), -1).abs().amax(-1) < 1e-3
        assert close[apart].double().mean() >= SAME, close[apart]
        assert close.double().mean() > 0.8, close
