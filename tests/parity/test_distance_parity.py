"""cs.distance against a solver that tries everything (convex_reference.py), and against MuJoCo's mj_geomDistance."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from tests.parity import convex_reference as reference
from tests.parity.convex_pairs import (
    KINDS,
    PAIRS,
    Side,
    bodies,
    configuration,
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

TOLERANCE = 1e-6  # m and of unit normals, as asked for; sizes are 0.05 to 1 m
USUAL = 1e-13  # m; the median: only where a face is preferred to edges (by 1e-7 of the size) is anything larger
# Normals are compared where they are determined: an axis in another direction is worse by more than what the engine prefers faces
# by, and solids that are apart are not just about to touch, where it prefers them too
RIVAL, TOUCHING = 1e-6, 2e-6
SKIPPED = 0.04  # part of the poses, at most: a quarter have parallel axes, where faces rival each other; measured 0.035
POSES, ALL_POSES = 1_000, 10_000


def sides(a: str, b: str, worlds: int, seed: int) -> tuple[Side, Side]:
    """Any sizes and poses; in a quarter of the worlds axes are parallel, in half of these up to a small turn."""
    rng = np.random.default_rng([seed, *map(ord, a + b)])
    size_a, size_b = 10 ** rng.uniform(np.log10(0.05), 0, (2, worlds, 3))
    quat_a, quat_b = quaternions(rng, worlds), quaternions(rng, worlds)
    k, m = worlds // 4, worlds // 8
    quat_b[:k] = product(quat_a[:k], quarter_turns(rng, k))
    quat_b[:m] = product(quat_b[:m], small_turns(rng, m, 1e-9, 1e-2))
    pos = rng.normal(size=(worlds, 3))
    a_ = Side(a, size_a, pos, quat_a)
    far = 1.3 * rng.uniform(size=(worlds, 1)) * (largest(a_) + largest(Side(b, size_b, pos, quat_b)))[:, None]
    return a_, Side(b, size_b, pos + far * unit(rng.normal(size=(worlds, 3))), quat_b)


def check_pair(a: str, b: str, worlds: int, seed: int = 0) -> str:
    """Check gaps, normals and points; returns the numbers."""
    side_a, side_b = sides(a, b, worlds, seed)
    model = pair_model(a, b)
    params, q = sizes(model, side_a, side_b), configuration(side_a, side_b)
    gap, normal, on_a, on_b = (x.numpy() for x in cs.distance(model, q, "a", "b", params))
    body_a, body_b = bodies(side_a), bodies(side_b)
    right = reference.distance(body_a, body_b)

    error = np.abs(gap - right.gap)
    assert error.max() < TOLERANCE and np.median(error) < USUAL, f"gap: {error.max():.1e} in world {error.argmax()}"
    core = right.gap + body_a.r + body_b.r
    sure = (right.rival > RIVAL) & ~((core > -TOUCHING) & (core < TOUCHING))
    turn = np.linalg.norm(normal - right.normal, axis=1)[sure]
    assert turn.max() < TOLERANCE, f"normal: {turn.max():.1e} in world {np.flatnonzero(sure)[turn.argmax()]}"
    assert (~sure).mean() < SKIPPED
    # the points: as far apart as the gap says, and where solids are apart on both of them
    assert np.abs(on_b - on_a - gap[:, None] * normal).max() < 1e-12
    apart = (core > TOUCHING) & sure
    outside = max(reference.outside(s, x)[apart].max() for s, x in ((body_a, on_a), (body_b, on_b)))
    assert outside < TOLERANCE
    # the other way round
    swapped = [x.numpy() for x in cs.distance(model, q, "b", "a", params)]
    assert np.abs(swapped[0] - gap).max() < TOLERANCE and np.abs(swapped[1] + normal)[sure].max() < TOLERANCE
    overlapping, usual = (right.gap < 0).mean(), np.quantile(error, 0.999)
    assert 0.04 < overlapping < 0.9
    return (
        f"{a:>8} {b:<8} {worlds} poses, {overlapping:.0%} overlap: gap {error.max():.1e} (99.9%: {usual:.1e}), "
        f"normal {turn.max():.1e}, {int((~sure).sum())} not determined, points {outside:.1e}"
    )


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_gap_and_normal(a, b):
    print(check_pair(a, b, POSES))


@pytest.mark.full
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_gap_and_normal_in_all_poses(a, b):
    print(check_pair(a, b, ALL_POSES, seed=1))


@pytest.mark.parametrize(("a", "b"), [pair for pair in PAIRS if "box" in pair or "cylinder" in pair or "hull" in pair])
def test_contact_sees_the_same(a, b):
    """The first point of the pair in a step, among those that hold it, is the closest one."""
    side_a, side_b = sides(a, b, POSES, seed=3)
    model = pair_model(a, b)
    params, q = sizes(model, side_a, side_b), configuration(side_a, side_b)
    sim = cs.Simulator(model, 1e-3, contact=cs.Contact(margin=100.0))  # all of them are near
    contacts = sim.step(cs.State(q, torch.zeros(POSES, 12, dtype=torch.float64)), params=params, info=True)[1].contacts
    first = contacts.active & (contacts.candidate == 0)
    assert (first.sum(1) == 1).all()
    right = cs.distance(model, q, "a", "b", params)
    assert (contacts.gap[first] - right.gap).abs().max() < 1e-12
    assert (contacts.normal[first] - right.normal).abs().max() < 1e-12


# ---- poses that random ones seldom meet -----------------------------------------------------------------------------
@pytest.mark.parametrize("between", [0.2, 0.05, 0.01])
def test_nearly_parallel_capsules(between):
    """They cross in the middle, turned by ever smaller angles; also parallel ones, that touch along their whole length."""
    angle = np.concatenate((np.logspace(-9, -1, 50), [0.0]))
    worlds, none = len(angle), np.zeros(len(angle))
    size = np.tile((0.1, 0.5, 0.0), (worlds, 1))
    upright, turned = np.tile((1.0, 0, 0, 0), (worlds, 1)), np.stack((np.cos(angle / 2), np.sin(angle / 2), none, none), 1)
    a = Side("capsule", size, np.zeros((worlds, 3)), upright)
    b = Side("capsule", size, np.tile((between, 0, 0), (worlds, 1)), turned)
    model = pair_model("capsule", "capsule")
    d = cs.distance(model, configuration(a, b), "a", "b", sizes(model, a, b))
    assert (d.gap - (between - 0.2)).abs().max() < TOLERANCE
    assert (d.normal - torch.tensor([1.0, 0, 0])).abs().max() < TOLERANCE


@pytest.mark.parametrize("lift", [0.0, 1e-13, 1e-11, 1e-10, 1e-9, 1e-7, -1e-13, -1e-11, -1e-9])
def test_edges_that_touch(lift):
    """A lying can has its lowest edge on an edge of a box: whatever the normal is, the plane across it keeps them apart."""
    box = Side("box", np.full((1, 3), 0.1), np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]))
    lying = np.array([[np.sqrt(0.5), 0, np.sqrt(0.5), 0]])
    can = Side("cylinder", np.array([[0.5, 2.0, 0]]), np.array([[0, 0.1, 0.6 + lift]]), lying)
    model = pair_model("box", "cylinder")
    d = cs.distance(model, configuration(box, can), "a", "b", sizes(model, box, can))
    assert abs(d.gap.item() - lift) < 1e-9
    assert abs(reference.separation(bodies(box), bodies(can), d.normal.numpy()).item() - d.gap.item()) < 1e-7


# ---- planes --------------------------------------------------------------------------------------------------------
def above_plane(side: Side, n: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Gap [W] over planes through origin with normal n; the cylinder is round."""
    if side.kind == "cylinder":
        axis = reference.rotation(side.quat)[:, :, 2]
        cosine, sine = np.abs((axis * n).sum(1)), np.linalg.norm(np.cross(axis, n), axis=1)
        reach = side.size[:, 1] * cosine + side.size[:, 0] * sine
        return ((side.pos - origin) * n).sum(1) - reach
    body = bodies(side)
    return np.einsum("wvi,wi->wv", body.x - origin[:, None], n).min(1) - body.r


@pytest.mark.parametrize("worlds", [POSES, pytest.param(ALL_POSES, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", KINDS)
def test_planes(kind, worlds):
    """Planes in any pose; in a quarter of the worlds the shape is level, in half of these but for a small turn."""
    rng = np.random.default_rng(list(map(ord, kind)))
    plane = Side("plane", np.ones((worlds, 3)), rng.normal(size=(worlds, 3)), quaternions(rng, worlds))
    quat, k = quaternions(rng, worlds), worlds // 4
    quat[:k] = product(plane.quat[:k], quarter_turns(rng, k))
    quat[: k // 2] = product(quat[: k // 2], small_turns(rng, k // 2, 1e-9, 1e-2))
    side = Side(kind, 10 ** rng.uniform(np.log10(0.05), 0, (worlds, 3)), rng.normal(size=(worlds, 3)), quat)
    model = pair_model("plane", kind)
    params, q = sizes(model, plane, side), configuration(side)
    gap, normal, on_a, on_b = (x.numpy() for x in cs.distance(model, q, "a", "b", params))
    n = reference.rotation(plane.quat)[:, :, 2]
    error = np.abs(gap - above_plane(side, n, plane.pos))
    assert error.max() < TOLERANCE and np.abs(normal - n).max() < 1e-14
    assert np.abs(on_b - on_a - gap[:, None] * normal).max() < 1e-12
    assert np.abs(((on_a - plane.pos) * n).sum(1)).max() < 1e-12
    swapped = cs.distance(model, q, "b", "a", params)
    for one, other in ((swapped.gap, gap), (swapped.normal, -normal), (swapped.point_a, on_b)):
        assert np.array_equal(one, other)
    print(f"   plane {kind:<8} {worlds} poses, {(gap < 0).mean():.0%} overlap: gap {error.max():.1e}")


# ---- a ball over a heightfield -------------------------------------------------------------------------------------
HEIGHTS, HALF, RADIUS = (7, 9), (1.5, 2.0), 0.1


def triangles(heights: np.ndarray) -> np.ndarray:
    """All triangles [T, 3 corners, 3], counterclockwise from above."""
    nx, ny = heights.shape
    x, y = np.meshgrid(np.linspace(-HALF[0], HALF[0], nx), np.linspace(-HALF[1], HALF[1], ny), indexing="ij")
    p = np.stack((x, y, heights), -1)
    a, b, c, d = p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]
    return np.concatenate([np.stack(t, -2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))])


def nearest(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Way [W, T, 3] from the nearest point of each triangle to x [W, 3], and its square."""
    p = x[:, None]
    n = unit(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]))
    height = ((p - t[:, 0]) * n).sum(-1)
    foot = p - height[..., None] * n
    inside = np.ones(height.shape, bool)
    best, least = np.zeros((*height.shape, 3)), np.full(height.shape, np.inf)
    for i in range(3):
        start, edge = t[:, i], t[:, (i + 1) % 3] - t[:, i]
        inside &= (np.cross(edge, foot - start) * n).sum(-1) >= 0
        s = np.clip(((p - start) * edge).sum(-1) / (edge * edge).sum(-1), 0, 1)
        way = p - start - s[..., None] * edge
        d2 = (way * way).sum(-1)
        best, least = np.where((d2 < least)[..., None], way, best), np.minimum(d2, least)
    return np.where(inside[..., None], height[..., None] * n, best), np.where(inside, height**2, least)


def overhead(x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangle that each x [W, 3] is above or below, and how high above its plane, measured upwards."""
    a, b, c = (t[:, i, :2] - x[:, None, :2] for i in range(3))
    turns = [p[..., 0] * q[..., 1] - p[..., 1] * q[..., 0] for p, q in ((a, b), (b, c), (c, a))]
    within = np.min(turns, 0).argmax(1)
    n = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])[within]
    return within, ((x - t[within, 0]) * n).sum(1) / n[:, 2]


@pytest.mark.parametrize("worlds", [POSES, pytest.param(ALL_POSES, marks=pytest.mark.full)])
def test_a_ball_over_a_heightfield(worlds, rng):
    """Every triangle is tried. Below the surface the triangle above the centre counts; outside of the grid there is nothing."""
    heights = 0.3 * rng.normal(size=HEIGHTS)
    scene = cs.Scene()
    scene.add_shape(cs.Heightfield(heights, HALF, name="a", pos=(0.3, -0.2, 0.1), quat=(0.9, 0.1, -0.2, 0.3)))
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(RADIUS, name="b"))
    R = reference.rotation(unit(np.array([[0.9, 0.1, -0.2, 0.3]])))[0]
    x = rng.uniform(-1.1, 1.1, (worlds, 3)) * (*HALF, 1.0)
    q = np.concatenate((x @ R.T + (0.3, -0.2, 0.1), quaternions(rng, worlds)), 1)
    gap, normal, _, _ = cs.distance(scene.build(), q, "a", "b")
    inside = (np.abs(x[:, :2]) <= HALF).all(1)
    assert np.isposinf(gap[~inside]).all() and np.isfinite(gap[inside]).all() and inside.mean() > 0.7
    x, gap, normal = x[inside], gap[inside], normal[inside] @ R
    t = triangles(heights)
    way, d2 = nearest(x, t)
    rows, under = np.arange(len(x)), d2.argmin(1)
    within, up = overhead(x, t)
    distance = np.sqrt(d2[rows, under])
    n = unit(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]))[within]
    above = up > 0
    right = np.where(above, distance, ((x - t[within, 0]) * n).sum(1))
    error = np.abs(gap - (right - RADIUS))
    assert error.max() < TOLERANCE and 0.2 < above.mean() < 0.8
    # normals where no other place is as near, and the surface is not just there
    others = np.linalg.norm(way - way[rows, under][:, None], axis=-1) > 1e-3 * distance[:, None]
    rival = np.sqrt(np.where(others, d2, np.inf).min(1)) - distance
    sure = ~above | ((rival > RIVAL) & (distance > 1e-6))
    turn = np.linalg.norm(normal - np.where(above[:, None], way[rows, under] / distance[:, None], n), axis=1)[sure]
    assert turn.max() < TOLERANCE and (~sure).mean() < SKIPPED
    print(
        f"   field sphere   {len(x)} of {worlds} poses over it, {(~above).mean():.0%} below: gap {error.max():.1e}, "
        f"normal {turn.max():.1e}, {int((~sure).sum())} not determined"
    )


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
CCD = 1e-9  # its solver of general pairs stops within this
# Corners of its meshes are float32 and were turned into the axes of inertia: 4e-8 of the gap measured. Normals come from such
# points, so they are compared from a distance on
THEIRS, THEIR_NORMALS, FROM = 1e-6, 2e-5, 0.01
WRONG = 0.01  # part of its answers that its own normals contradict: one of 1,000 overlapping meshes measured
FIXED = {
    "sphere": (0.3, 0, 0),
    "capsule": (0.2, 0.4, 0),
    "box": (0.3, 0.4, 0.25),
    "cylinder": (0.35, 0.3, 0),
    "hull": (0.5, 0.4, 0.3),
}


def text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def geom(kind: str) -> tuple[str, str]:
    """Asset and geom; the cylinder is a mesh, the prism that contact sees, because that of MuJoCo is round."""
    x, y, z = FIXED[kind]
    if kind in ("cylinder", "hull"):
        corners = solid_of(kind).corners * ((x, x, y) if kind == "cylinder" else (x, y, z))
        return f'<mesh name="{kind}" vertex="{text(corners)}"/>', f'<geom type="mesh" mesh="{kind}"/>'
    used = {"sphere": (x,), "capsule": (x, y), "box": (x, y, z)}[kind]
    return "", f'<geom type="{kind}" size="{text(used)}"/>'


def mujoco_distance(a: str, b: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gap [W] and normal [W, 3] by mj_geomDistance."""
    (asset_a, geom_a), (asset_b, geom_b) = geom(a), geom(b)
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="{CCD}" ccd_iterations="500"/><asset>{asset_a}{asset_b if a != b else ""}</asset>
        <worldbody><body><freejoint/>{geom_a}</body><body><freejoint/>{geom_b}</body></worldbody></mujoco>"""
    )
    data, gap, ends = mujoco.MjData(model), np.zeros(len(q)), np.zeros((len(q), 6))
    for i, x in enumerate(q):
        data.qpos[:] = x
        mujoco.mj_kinematics(model, data)
        gap[i] = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, ends[i])
    return gap, np.sign(gap)[:, None] * unit(ends[:, 3:] - ends[:, :3])


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_mujoco(a, b):
    """Where MuJoCo is right: its capsule and box do not know how deep they are once the capsule's axis is in the box."""
    worlds = 300
    side_a, side_b = (s._replace(size=np.tile(np.array(FIXED[s.kind], float), (worlds, 1))) for s in sides(a, b, worlds, seed=2))
    far = np.random.default_rng(0).uniform(0, 1.2, (worlds, 1))
    side_b = side_b._replace(pos=side_a.pos + far * unit(side_b.pos - side_a.pos))
    q = configuration(side_a, side_b).numpy()
    model = pair_model(a, b)
    gap, normal, _, _ = (np.asarray(x) for x in cs.distance(model, q, "a", "b", sizes(model, side_a, side_b)))
    theirs, n = mujoco_distance(a, b, q)
    body_a, body_b = bodies(side_a), bodies(side_b)
    right = np.abs(reference.separation(body_a, body_b, n) - theirs) < THEIRS
    right |= np.abs(theirs) < 1e-4  # too near to know the normal from two points
    if (a, b) == ("capsule", "box"):
        right |= gap + body_a.r > 0
        assert (right & (gap < 0)).sum() > 20
    else:
        assert (~right).mean() <= WRONG
    error = np.abs(gap - theirs)[right]
    assert error.max() < THEIRS
    sure = right & (np.abs(theirs) > FROM) & (reference.distance(body_a, body_b).rival > RIVAL)
    turn = np.linalg.norm(normal - n, axis=1)[sure]
    assert turn.max() < THEIR_NORMALS and sure.sum() > 50
    print(f"  mujoco {a} {b}: gap {error.max():.1e}, normal {turn.max():.1e}, wrong {int((~right).sum())}")
