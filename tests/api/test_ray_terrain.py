"""Ray casts onto heightfields: every triangle one by one, corners and edges, the border, blocks and their memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from costate import ray
from tests.api.test_ray import EXACT, cast, tensor


def terrain(heights: Any, half: tuple[float, float], **options: Any) -> cs.Model:
    scene = cs.Scene()
    scene.add_shape(cs.Heightfield(heights, half, **options), name="terrain")
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 100), shapes=cs.Sphere(0.1))
    return scene.build()


def each_triangle(heights: np.ndarray, half: tuple[float, float], o: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances and normals by testing every triangle: from above, inside of its three edges seen along the ray."""
    nx, ny = heights.shape
    x = np.stack(np.meshgrid(np.linspace(-half[0], half[0], nx), np.linspace(-half[1], half[1], ny), indexing="ij"), -1)
    x = np.concatenate((x, heights[..., None]), -1)
    lower, upper = (x[:-1, :-1], x[1:, :-1], x[1:, 1:]), (x[:-1, :-1], x[1:, 1:], x[:-1, 1:])
    a, b, c = (np.concatenate((p.reshape(-1, 3), q.reshape(-1, 3))) for p, q in zip(lower, upper))
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    rate = d @ n.T
    t = ((a * n).sum(-1) - o @ n.T) / rate
    sides = [np.einsum("rk,rtk->rt", d, np.cross(p - o[:, None], q - o[:, None])) for p, q in ((a, b), (b, c), (c, a))]
    t[(rate >= 0) | (t < 0) | (np.stack(sides) > 0).any(0)] = np.inf
    return t.min(1), n[t.argmin(1)]


@pytest.mark.parametrize(("nx", "ny"), [(2, 2), (2, 5), (7, 3), (20, 31)])
def test_a_terrain_is_hit_where_one_of_its_triangles_is(rng, nx, ny):
    heights, half = rng.normal(size=(nx, ny)) * 0.3, (1.5, 0.8)
    model = terrain(heights, half)
    o = rng.normal(size=(3000, 3)) * (1.5, 1, 0.7) + (0, 0, 0.3)
    d = rng.normal(size=(3000, 3)) - (o + np.array((0, 0, 0.3))) * rng.uniform(size=(3000, 1)) * 3
    d[:100] = (0, 0, -1)
    d[100:200, 0] = 0
    d[200:300, 1] = 0
    d[300:400, 1] = d[300:400, 0] * half[1] / half[0] * (nx - 1) / (ny - 1)  # along the diagonals
    expected, normal = each_triangle(heights, half, o, d / np.linalg.norm(d, axis=-1, keepdims=True))
    found = cs.ray_cast(model, model.q0, o, d, shapes="terrain")
    np.testing.assert_allclose(found.distance, expected, rtol=1e-9, atol=1e-9)
    hit = found.shape >= 0
    assert hit.mean() > 0.1
    np.testing.assert_allclose(found.normal[hit], normal[hit], atol=1e-9)


def test_no_ray_slips_between_the_triangles(rng):
    """Aimed at corners and at middles of edges from all sides: by rounding between them, but never through."""
    heights = rng.normal(size=(6, 6)) * 0.1
    model = terrain(heights, (1.0, 1.0))
    i, j = (x.ravel() for x in np.meshgrid(np.arange(0.5, 5, 0.5), np.arange(0.5, 5, 0.5), indexing="ij"))
    low, up = (np.floor(x).astype(int) for x in (i, j)), (np.ceil(x).astype(int) for x in (i, j))
    (i0, j0), (i1, j1) = low, up
    z = (heights[i0, j0] + heights[i1, j1]) / 2
    aim = np.stack((i * 0.4 - 1, j * 0.4 - 1, z), -1)
    start = aim + rng.normal(size=(50, 1, 3)) * 0.1 + (0, 0, 3)
    found = cs.ray_cast(model, model.q0, start, aim - start)
    assert (found.shape == model.shape("terrain")).all()
    np.testing.assert_allclose(found.distance, np.linalg.norm(aim - start, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_no_ray_gets_below_a_terrain_at_its_corners(seed):
    """Aimed at a spot just below a corner, along lines of the grid, diagonals or anyhow, flat or steep: stopped before it."""
    rng = np.random.default_rng(seed)
    (nx, ny), half, rough = rng.integers(3, 14, 2), 10 ** rng.uniform(-2, 2, 2), 10 ** rng.uniform(-6, 1)
    heights = rng.normal(size=(nx, ny)) * rough
    heights[[0, -1]] = heights[:, [0, -1]] = heights.min() - rough  # low at the border, where rays come in
    model = terrain(heights, tuple(half))
    i, j = rng.integers(1, nx - 1, 400), rng.integers(1, ny - 1, 400)
    aim = np.stack((half[0] * (2 * i / (nx - 1) - 1), half[1] * (2 * j / (ny - 1) - 1), heights[i, j]), -1)
    back = rng.normal(size=(400, 3))
    back[:100, 0] = back[100:200, 1] = 0
    back[200:300, :2] = half / (nx - 1, ny - 1) * rng.choice([-1, 1], (100, 1))
    back[:, 2] = np.abs(back[:, 2]) * 10 ** rng.uniform(-3, 1, 400)
    start = aim + back * ((heights.max() + 0.1 * rough - aim[:, 2]) / back[:, 2])[:, None]
    way = aim - start - np.array([0, 0, 1e-9 * rough])
    found = cs.ray_cast(model, model.q0, start, way, shapes="terrain")
    assert (found.distance <= np.linalg.norm(way, axis=-1) * (1 + 1e-9)).all()


def test_straight_down_onto_the_grid_gives_the_heights(rng):
    heights = rng.normal(size=(6, 9))
    model = terrain(heights, (1.0, 2.0))
    x, y = np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-2, 2, 9), indexing="ij")
    inner = (slice(1, -1), slice(1, -1))  # whether a ray along the very border hits is left to rounding
    above = np.stack((x, y, np.full_like(x, 10.0)), -1)[inner].reshape(-1, 3)
    found = cs.ray_cast(model, model.q0, above, np.array([[0.0, 0, -1]]), shapes="terrain")
    np.testing.assert_allclose(10 - found.distance, heights[inner].ravel(), atol=1e-13)


def test_a_terrain_has_one_side_and_ends():
    model = terrain(np.zeros((3, 4)), (1.0, 2.0), pos=(0, 0, 1.0))
    assert cast(model, (0.3, 0.3, 0), (0, 0, 1)).shape != model.shape("terrain")
    assert cast(model, (1.1, 0, 2), (0, 0, -1)).shape == -1
    found = cast(model, (-3, 0.1, 3), (1, 0, -1))
    assert abs(found.distance - 8**0.5) < EXACT and torch.equal(found.normal, tensor(0, 0, 1))
    assert cast(model, (-3, 0.1, 3), (1, 0, -0.4)).shape == -1  # past its far edge


def test_blocks_do_not_change_a_number(rng, monkeypatch):
    model = terrain(rng.normal(size=(12, 9)), (1.0, 1.0))
    o, d = rng.normal(size=(2, 4, 50, 3)) + np.array([[[[0, 0, 3]]], [[[0, 0, -2]]]])
    q = np.tile(model.q0, (4, 1))
    whole = cs.ray_cast(model, q, o, d)
    for block in (1, 3000, 20000):
        monkeypatch.setattr(ray, "BLOCK", block)
        for x, y in zip(cs.ray_cast(model, q, o, d), whole):
            assert np.array_equal(x, y)
