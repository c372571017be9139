"""100,000 random pairs of shapes of sizes over six orders of magnitude, in the poses that break collision: nothing is NaN.

Each answer is judged by itself: the normal has length 1, the plane across it separates the shapes by exactly the gap, and the gap
lies between what balls around and balls inside both shapes allow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch

import costate as cs
from tests.parity.convex_pairs import (
    KINDS,
    PAIRS,
    Side,
    bodies,
    configuration,
    hull_points,
    largest,
    pair_model,
    product,
    quarter_turns,
    quaternions,
    sizes,
    small_turns,
    solid_of,
    unit,
)  # fmt: skip
from tests.parity.convex_reference import separation

TOTAL = 100_000
ALL = [("plane", kind) for kind in KINDS] + [("field", kind) for kind in KINDS] + PAIRS
WORLDS = TOTAL // len(ALL)
SIZES = (1e-3, 1e3)  # m
OFFSET = 1e4  # m
UNIT = 1e-12
# Of gaps: lengths of the pair, its place in the world, and of the smaller shape what a face may be worse than two edges by
NEAR, FAR, PREFER = 1e-11, 1e-14, 2e-7
ROUNDING = 1e-14
CROSSING = 1e-9  # m, between the axes of capsules
UPRIGHT = 1e-6  # of the radius: an upright cylinder stands on corners of its rim
POSES = ("any", "near", "deep", "same", "parallel", "far")


class Worlds(NamedTuple):
    a: Side
    b: Side
    pose: np.ndarray  # [W] which of POSES


def random_sizes(rng: np.random.Generator, n: int) -> np.ndarray:
    """[n, 3]: a third any, up to a million times longer than wide; the rest of one size each, up to the factor 3."""
    low, high = np.log10(SIZES)
    x = rng.uniform(low, high, (n, 3))
    x[n // 3 :] = np.clip(x[n // 3 :, :1] + rng.uniform(-0.5, 0.5, (n - n // 3, 3)), low, high)
    return 10 ** x[rng.permutation(n)]


def worlds(a: str, b: str, n: int, seed: int) -> Worlds:
    """Shapes a and b in poses of all sorts; "near" pairs are still apart as any, see `touching`."""
    rng = np.random.default_rng([seed, *map(ord, a + b)])
    pose = np.arange(n) % len(POSES)
    size_a, size_b = random_sizes(rng, n), random_sizes(rng, n)
    alike = rng.random(n) < 0.3
    size_b[alike] = size_a[alike]
    if a == "field":
        size_a[:, :2] = 10 ** rng.uniform(*np.log10(SIZES), (n, 1))
    quat_a, quat_b = quaternions(rng, n), quaternions(rng, n)
    turned = product(quat_a, quarter_turns(rng, n))
    turned[::4] = product(turned[::4], small_turns(rng, len(turned[::4]), 1e-16, 1e-3))
    quat_b = np.where(np.isin(pose, (3, 4))[:, None] | (rng.random((n, 1)) < 0.3), turned, quat_b)
    pos = rng.normal(size=(n, 3)) * 10 ** rng.uniform(-3, 1, (n, 1))
    first, second = Side(a, size_a, pos, quat_a), Side(b, size_b, pos, quat_b)
    reach_a = size_a[:, 0] if a in ("plane", "field") else largest(first)
    reach = reach_a + largest(second)
    way = unit(rng.normal(size=(n, 3)))
    deep = 10 ** rng.uniform(-12, -1, n) * np.minimum(reach_a, reach)
    far = [1.5 * rng.random(n) * reach, rng.random(n) * reach, deep, np.zeros(n), np.zeros(n), OFFSET * rng.random(n)]  # as POSES
    step = np.choose(pose, far)[:, None] * way
    # faces on each other: along an axis by both half sizes, exactly or but for rounding
    axis = rng.integers(0, 3, n)
    along = np.zeros((n, 3))
    along[np.arange(n), axis] = (size_a + size_b)[np.arange(n), axis] * np.where(rng.random(n) < 0.5, 1, 1 + 1e-15)
    along = product(product(quat_a, np.column_stack((np.zeros(n), along))), quat_a * (1, -1, -1, -1))[:, 1:]
    step[pose == 4] = along[pose == 4]
    both = np.where((pose == 5) & (rng.random(n) < 0.5), OFFSET, 0.0)[:, None]
    step = np.where(both > 0, 1e-3 * step, step)
    second = second._replace(pos=pos + step + both, quat=quat_b)
    return Worlds(first._replace(pos=pos + both), second, pose)


def touching(w: Worlds, gap: np.ndarray, normal: np.ndarray, seed: int = 0) -> Worlds:
    """Where the pose is "near", b is moved along the normal until almost nothing is between them, or they just overlap."""
    rng = np.random.default_rng(seed)
    small = np.minimum(largest(w.b), largest(w.a) if w.a.kind not in ("plane", "field") else np.inf)
    left = small * 10 ** rng.uniform(-16, -2, len(small)) * rng.choice((-1, 0, 1), len(small))
    move = (w.pose == 1) & np.isfinite(gap)
    shift = np.where(move, left - np.where(move, gap, 0.0), 0.0)[:, None] * normal
    return w._replace(b=w.b._replace(pos=w.b.pos + shift))


def inner(s: Side) -> np.ndarray:
    """Radius [W] of a ball around the shape's origin inside of it."""
    x, y, _ = s.size.T
    if s.kind in ("sphere", "capsule"):
        return x
    if s.kind == "cylinder":
        return np.minimum(np.cos(np.pi / 16) * x, y)
    if s.kind == "box":
        return s.size.min(1)
    t = (s.size[:, None] * hull_points())[:, solid_of("hull").faces]
    n = np.cross(t[:, :, 1] - t[:, :, 0], t[:, :, 2] - t[:, :, 0])
    return ((n * t[:, :, 0]).sum(-1) / np.linalg.norm(n, axis=-1)).min(1)


def rounding(w: Worlds) -> np.ndarray:
    """How well a gap is known [W], m."""
    reach_a, reach_b = largest(w.a), largest(w.b)
    place = np.linalg.norm(w.a.pos, axis=1) + np.linalg.norm(w.b.pos, axis=1)
    return NEAR * (reach_a + reach_b) + FAR * place + PREFER * np.minimum(reach_a, reach_b)


def turning(w: Worlds, core: np.ndarray) -> np.ndarray:
    """How far a shape's end moves [W], m, by the rounding of a normal between points that are `core` apart.

    Nothing for those that touch: their normal is that of a face, or across two edges."""
    size = largest(w.a) + largest(w.b)
    length = size + np.linalg.norm(w.a.pos, axis=1) + np.linalg.norm(w.b.pos, axis=1)
    apart = core > 1e-12 * length
    return np.where(apart, size * ROUNDING * length / np.where(apart, core, 1.0), 0.0)


def check_answers(w: Worlds, gap: np.ndarray, normal: np.ndarray) -> None:
    assert not np.isnan(gap).any() and np.isfinite(normal).all()
    assert np.abs(np.linalg.norm(normal, axis=1) - 1).max() < UNIT
    if w.a.kind == "field":  # gaps of deep points are those of planes, which have no bound
        assert (gap > -np.inf).all()
        return
    assert np.isfinite(gap).all()
    if w.a.kind == "plane":
        middle = ((w.b.pos - w.a.pos) * normal).sum(1)
        place = np.linalg.norm(w.a.pos, axis=1) + np.linalg.norm(w.b.pos, axis=1)
        slack = NEAR * largest(w.b) + UPRIGHT * w.b.size[:, 0] + FAR * place
        assert (gap > middle - largest(w.b) - slack).all() and (gap < middle - inner(w.b) + slack).all()
        return
    slack = rounding(w)
    middle = np.linalg.norm(w.b.pos - w.a.pos, axis=1)
    assert (gap > middle - largest(w.a) - largest(w.b) - slack).all()
    assert (gap < middle - inner(w.a) - inner(w.b) + slack).all()
    a, b = bodies(w.a), bodies(w.b)
    core = gap + a.r + b.r
    off = np.abs(separation(a, b, normal) - gap) / (slack + turning(w, core))
    if len(a.solid.faces) + len(b.solid.faces) == 0:  # axes that meet have no normal: segments.h takes z
        off = off[core > CROSSING]
    assert off.max() < 1, f"separation is off by {off.max():.1e} of what is allowed, entry {off.argmax()}"


def params_of(model: cs.Model, w: Worlds, seed: int) -> cs.Params:
    """Sizes of all worlds; heights as high as a terrain is long, or flat; mass 1 and inertia as of a ball around the shape."""
    params = sizes(model, w.a, w.b)
    moving = [s for s in (w.a, w.b) if s.kind not in ("plane", "field")]
    inertia = torch.zeros(len(w.pose), len(moving), 6, dtype=torch.float64)
    inertia[..., :3] = torch.from_numpy(np.stack([0.4 * largest(s) ** 2 for s in moving], 1))[..., None]
    fields = {"mass": 1.0, "inertia": inertia, "com": 0.0}
    if w.a.kind == "field":
        rng = np.random.default_rng(seed)
        high = w.a.size[:, :1] * 10 ** rng.uniform(-3, 0, (len(w.pose), 1)) * (rng.random((len(w.pose), 1)) < 0.7)
        fields["height"] = torch.from_numpy(high * rng.normal(size=(len(high), model.defaults["height"].shape[0])))
    return params.replace(**fields)


def distances(model: cs.Model, w: Worlds, seed: int, dtype: torch.dtype = torch.float64) -> tuple[np.ndarray, np.ndarray]:
    """Gap and normal, in numpy, after a backward pass through everything whose gradients must be finite."""
    params = params_of(model, w, seed).to(dtype)
    fields = ["shape_size", "shape_pos", "shape_quat", "hull_vertex", "height"]
    fields = [name for name in fields if params[name].numel()]
    leaves = {name: params[name].detach().clone().requires_grad_() for name in fields}
    q = configuration(w.a, w.b).to(dtype).requires_grad_()
    d = cs.distance(model, q, "a", "b", params.replace(**leaves))
    there = d.gap.isfinite()
    sum(torch.where(there, x.reshape(len(q), -1).sum(1), 0.0).sum() for x in d).backward()
    for name, x in {"q": q, **leaves}.items():
        bad = ~x.grad.isfinite()
        assert not bad.any(), f"gradient by {name} is not finite in world {int(bad.reshape(len(q), -1).any(1).int().argmax())}"
    return d.gap.detach().numpy(), d.normal.detach().numpy()


def scenes(a: str, b: str, n: int, seed: int) -> tuple[cs.Model, Worlds]:
    model, w = pair_model(a, b), worlds(a, b, n, seed)
    params = params_of(model, w, seed)
    gap, normal, _, _ = (x.numpy() for x in cs.distance(model, configuration(w.a, w.b), "a", "b", params))
    return model, touching(w, gap, normal)


@pytest.mark.parametrize(("a", "b"), ALL)
def test_distance(a, b):
    model, w = scenes(a, b, WORLDS, 0)
    gap, normal = distances(model, w, 0)
    check_answers(w, gap, normal)
    if a != "field":
        assert (gap < 0).mean() > 0.2 and (gap > 0).mean() > 0.2


@pytest.mark.parametrize(("a", "b"), ALL)
def test_distance_in_float32(a, b):
    """Nothing but numbers is asked for: what is small and far away is lost in rounding."""
    model, w = scenes(a, b, WORLDS // 10, 1)
    gap, normal = distances(model, w, 1, torch.float32)
    assert not np.isnan(gap).any() and np.abs(np.linalg.norm(normal, axis=1) - 1).max() < 1e-5


@pytest.mark.parametrize("gradient", ["implicit", "exact"])
@pytest.mark.parametrize(("a", "b"), ALL)
def test_steps(a, b, gradient):
    """One step forward and backward, at some speed: finite, held by nobody, with contacts that are what they should be."""
    seed = 2 if gradient == "implicit" else 3
    model, w = scenes(a, b, WORLDS if gradient == "implicit" else WORLDS // 10, seed)
    params = params_of(model, w, seed)
    leaves = {name: params[name].detach().clone().requires_grad_() for name in ("shape_size", "hull_vertex", "height")}
    q = configuration(w.a, w.b).requires_grad_()
    v = 0.1 * torch.randn(len(q), model.nv, dtype=torch.float64)
    sim = cs.Simulator(model, 0.01, gradient=gradient)
    state, info = sim.step(cs.State(q, v), params=params.replace(**leaves), info=True)
    assert not info.diverged.any() and state.q.isfinite().all() and state.v.isfinite().all()
    contacts = info.contacts
    active = contacts.active.numpy()
    assert active.any(1).mean() > 0.2
    assert all(x[contacts.active].isfinite().all() for x in (contacts.gap, contacts.point, contacts.impulse))
    assert np.abs(np.linalg.norm(contacts.normal.numpy()[active], axis=1) - 1).max() < UNIT
    (state.v.sum() + (torch.sin(torch.arange(model.nq)) * state.q).sum()).backward()
    for name, x in {"q": q, **leaves}.items():
        bad = ~x.grad.isfinite()
        assert not bad.any(), f"gradient by {name} is not finite in world {int(bad.reshape(len(q), -1).any(1).int().argmax())}"
