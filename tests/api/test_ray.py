"""Ray casts: closed forms, MuJoCo's mj_ray on random scenes, batches, numpy, and what is refused."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor

import costate as cs

EXACT = 1e-12  # relative; a few roundings
MUJOCO = 1e-6  # m, and of a unit normal; mj_ray itself differs by 1e-9 where a ray grazes a surface

CORNERS = np.array([[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) * 0.2
SOLIDS = {
    "sphere": cs.Sphere(0.3),
    "capsule": cs.Capsule(0.2, 0.4),
    "box": cs.Box((0.2, 0.3, 0.4)),
    "cylinder": cs.Cylinder(0.3, 0.4),
    "hull": cs.Hull(CORNERS),
}


def tensor(*numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def one(*shapes: cs.Shape, ground: float = -10.0) -> cs.Model:
    """A body at the origin with these shapes, far above the ground: a shape must be able to touch something to be seen."""
    scene = cs.Scene()
    scene.add_ground(ground)
    scene.add_body("body", joint=cs.Free(), shapes=shapes, mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1, 0, 0, 0))
    return scene.build()


def cast(model: cs.Model, origin: Any, direction: Any, **options: Any) -> cs.Rays:
    """One ray."""
    rays = cs.ray_cast(model, tensor(*model.q0), tensor(origin), tensor(direction), **options)
    return cs.Rays(*(x[0] for x in rays))


# ---- closed forms --------------------------------------------------------------------------------------------------
# shape, origin, direction -> distance, normal
SLOPE = 2**-0.5
CASES = {
    "sphere": ("sphere", (2, 0, 0), (-3, 0, 0), 1.7, (1, 0, 0)),
    "sphere off centre": ("sphere", (2, 0.18, 0), (-1, 0, 0), 2 - 0.24, (0.8, 0.6, 0)),
    "out of a sphere": ("sphere", (0.1, 0, 0), (2, 0, 0), 0.2, (1, 0, 0)),
    "tube": ("capsule", (0, 2, 0.3), (0, -1, 0), 1.8, (0, 1, 0)),
    "upper ball": ("capsule", (0, 0, 2), (0, 0, -1), 1.4, (0, 0, 1)),
    "lower ball": ("capsule", (2, 0, -0.52), (-1, 0, 0), 2 - 0.16, (0.8, 0, -0.6)),
    "along a capsule from inside": ("capsule", (0, 0, 0.1), (0, 0, -1), 0.7, (0, 0, -1)),
    "out of a tube": ("capsule", (0, 0, 0.1), (0, -1, 0), 0.2, (0, -1, 0)),
    "box": ("box", (0.1, 0.1, 1), (0, 0, -1), 0.6, (0, 0, 1)),
    "box, oblique": ("box", (1.2, 1, 0), (-1, -1, 0), 1 / SLOPE, (1, 0, 0)),
    "out of a box": ("box", (0, 0, 0), (0, -1, 0), 0.3, (0, -1, 0)),
    "side": ("cylinder", (2, 0.18, 0.39), (-1, 0, 0), 2 - 0.24, (0.8, 0.6, 0)),
    "end": ("cylinder", (0.2, 0.2, -2), (0, 0, 1), 1.6, (0, 0, -1)),
    "out of an end": ("cylinder", (0.2, 0.2, 0), (0, 0, 5), 0.4, (0, 0, 1)),
    "hull": ("hull", (1, 1, -1), (-1, -1, 1), 3**0.5 * (1 - 0.2 / 3), (3**-0.5, 3**-0.5, -(3**-0.5))),
    "out of a hull": ("hull", (0, 0, 0), (1, 1, -1), 0.2 / 3**0.5, (3**-0.5, 3**-0.5, -(3**-0.5))),
    "plane": ("sphere", (1, 0, -9), (0, 3, -4), 1.25, (0, 0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_forms(name):
    shape, origin, direction, distance, normal = CASES[name]
    model = one(SOLIDS[shape])
    found = cast(model, origin, direction)
    assert model.shape_names[found.shape] == ("ground" if name == "plane" else "body/0")
    torch.testing.assert_close(found.distance, tensor(distance)[0], rtol=EXACT, atol=EXACT)
    torch.testing.assert_close(found.normal, tensor(*normal), rtol=EXACT, atol=EXACT)
    along = tensor(*direction) / tensor(*direction).norm()
    torch.testing.assert_close(found.point, tensor(*origin) + distance * along, rtol=EXACT, atol=EXACT)


MISSES = {
    "away": ("box", (0, 0, 1), (0, 0, 1)),
    "past": ("sphere", (0, 0.31, 1), (0, 0, 1)),
    "only touches": ("sphere", (-1, 0, 0.3), (1, 0, 0)),
    "beside, along a face": ("box", (-1, 0.31, 0), (1, 0, 0)),
    "beside, along the axis": ("cylinder", (0.31, 0, 1), (0, 0, 1)),
    "above an end": ("cylinder", (-1, 0, 0.41), (1, 0, 0)),
    "parallel to the plane": ("sphere", (0, 0, -5), (1, 0, 0)),
    "plane from below": ("sphere", (0, 3, -11), (0, 0, 1)),
}


@pytest.mark.parametrize("name", MISSES)
def test_nothing_is_hit(name):
    shape, origin, direction = MISSES[name]
    found = cast(one(SOLIDS[shape]), origin, direction)
    assert found.distance == float("inf") and found.shape == -1
    assert not found.point.any() and not found.normal.any()


def test_the_nearest_of_several_and_only_those_asked_for():
    model = one(cs.Sphere(0.1, pos=(1, 0, 0), name="near"), cs.Box((0.1, 0.1, 0.1), pos=(2, 0, 0), name="far"))
    origin, direction = (0, 0, 0), (1, 0, 0)
    for shapes, name, distance in (
        (None, "near", 0.9), ("far", "far", 1.9), (["far", "near"], "near", 0.9), ([model.shape("far"), "ground"], "far", 1.9),
    ):  # fmt: skip
        found = cast(model, origin, direction, shapes=shapes)
        assert model.shape_names[found.shape] == name and abs(found.distance - distance) < EXACT
    assert cast(model, origin, direction, max_distance=0.89).shape == -1
    assert cast(model, origin, direction, max_distance=0.91).shape == model.shape("near")


def test_shapes_of_fixed_bodies_and_of_the_world_move_with_what_carries_them():
    scene = cs.Scene()
    scene.add_body("arm", joint=cs.Revolute((0, 1, 0)), shapes=cs.Box((0.05, 0.05, 0.05), pos=(1, 0, 0)))
    scene.add_shape(cs.Box((0.2, 0.2, 0.2), pos=(0, 3, 0)), name="wall")
    model = scene.build()
    angle = tensor(0.3)
    tip = torch.stack((angle.cos(), tensor(0.0), -angle.sin()), -1)
    found = cs.ray_cast(model, angle, torch.zeros_like(tip), tip)
    torch.testing.assert_close(found.distance, tensor(0.95), rtol=EXACT, atol=0)
    torch.testing.assert_close(found.normal, -tip, rtol=EXACT, atol=EXACT)
    assert cs.ray_cast(model, angle, tensor([0.0, 0, 0]), tensor([0.0, 1, 0])).shape == model.shape("wall")


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
def text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def both_engines(rng: np.random.Generator, bodies: int = 4) -> tuple[cs.Model, Any]:
    """A plane and bodies with random shapes of all kinds; those of the two models in the same order."""
    scene, assets, world = cs.Scene(), [], '<geom type="plane" size="0 0 1" pos="0 0 -1.5"/>'
    scene.add_ground(-1.5)
    for k in range(bodies):
        shapes: list[cs.Shape] = []
        geoms = []
        for kind in rng.permutation(list(SOLIDS))[:3]:
            r, half, points = rng.uniform(0.1, 0.5, 3), rng.uniform(0.1, 0.5), rng.normal(size=(12, 3)) * 0.3
            pos, quat = rng.normal(size=3) * 0.5, rng.normal(size=4)
            make = {
                "sphere": (cs.Sphere, (r[0],)), "capsule": (cs.Capsule, (r[0], half)), "cylinder": (cs.Cylinder, (r[0], half)),
                "box": (cs.Box, (r,)), "hull": (cs.Hull, (points,)),
            }  # fmt: skip
            shape, sizes = make[kind]
            shapes.append(shape(*sizes, pos=pos, quat=quat))
            as_geom = f'type="{kind}" size="{" ".join(map(text, sizes))}"'
            if kind == "hull":
                name = f"mesh{len(assets)}"
                assets.append(f'<mesh name="{name}" vertex="{text(points)}"/>')
                as_geom = f'type="mesh" mesh="{name}"'
            geoms.append(f'<geom {as_geom} pos="{text(pos)}" quat="{text(quat)}"/>')
        scene.add_body(f"b{k}", joint=cs.Free(), shapes=shapes)
        world += f"<body><freejoint/>{''.join(geoms)}</body>"
    xml = f"<mujoco><asset>{''.join(assets)}</asset><worldbody>{world}</worldbody></mujoco>"
    return scene.build(), mujoco.MjModel.from_xml_string(xml)


def mj_rays(model: Any, q: np.ndarray, o: np.ndarray, d: np.ndarray) -> cs.Rays:
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    distance, shape, normal = np.zeros(len(o)), np.zeros((len(o), 1), np.int32), np.zeros((len(o), 3))
    for i in range(len(o)):
        distance[i] = mujoco.mj_ray(model, data, o[i], d[i], None, 1, -1, shape[i], normal[i])
    distance = np.where(distance < 0, np.inf, distance)
    return cs.Rays(distance, o + np.where(np.isinf(distance), 0, distance)[:, None] * d, normal, shape[:, 0])


@pytest.mark.parametrize("seed", range(8))
def test_random_scenes_as_mj_ray(seed):
    """Outside and inside of solids; a ray that grazes may hit here and pass there."""
    rng = np.random.default_rng(seed)
    ours, theirs = both_engines(rng)
    q = np.concatenate([np.concatenate((rng.normal(size=3) * 0.7, x / np.linalg.norm(x))) for x in rng.normal(size=(4, 4))])
    o = rng.normal(size=(1000, 3))
    d = rng.normal(size=(1000, 3))
    d /= np.linalg.norm(d, axis=-1, keepdims=True)
    found, expected = cs.ray_cast(ours, q, o, 3 * d), mj_rays(theirs, q, o, d)
    same = found.shape == expected.shape
    hit = same & (found.shape >= 0)
    assert same.mean() > 0.998 and hit.mean() > 0.5
    assert set(np.unique(found.shape[hit])) >= set(range(10))
    assert 20 < ((found.normal * d).sum(-1) > 0).sum() < 500  # started inside
    np.testing.assert_allclose(found.distance[hit], expected.distance[hit], atol=MUJOCO)
    np.testing.assert_allclose(found.point[hit], expected.point[hit], atol=MUJOCO)
    off = np.abs(found.normal - expected.normal)[hit].max(-1)
    assert (off < MUJOCO).mean() > 0.995, np.sort(off)[-10:]
    np.testing.assert_allclose(np.linalg.norm(found.normal[hit], axis=-1), 1, rtol=EXACT)


# ---- batches, numpy, dtypes ----------------------------------------------------------------------------------------
def test_batches_broadcast(rng):
    model, _ = both_engines(rng)
    q = torch.tensor(model.q0) + 0.3 * torch.randn(3, 1, model.nq, dtype=torch.float64)
    o, d = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(1, 3, dtype=torch.float64)
    params = model.params().replace(shape_size=model.defaults["shape_size"] * (1 + 0.1 * torch.rand(2, 1, 1).double()))
    many = cs.ray_cast(model, q, o, d, params)
    assert many.distance.shape == (3, 2, 5) and many.point.shape == many.normal.shape == (3, 2, 5, 3)
    for i in range(3):
        for j in range(2):
            own = params.replace(shape_size=params["shape_size"][j])
            for r in range(5):
                single = cs.ray_cast(model, q[i, 0], o[j, r : r + 1], d, own)
                for x, y in zip(single, many):
                    torch.testing.assert_close(x[0], y[i, j, r], rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numpy_gives_torchs_numbers(rng, dtype):
    model, _ = both_engines(rng)
    q, o, d = (x.astype(dtype) for x in (model.q0, rng.normal(size=(20, 3)), rng.normal(size=(20, 3))))
    arrays = cs.ray_cast(model, q, o, d)
    assert all(type(x) is np.ndarray for x in arrays) and arrays.shape.dtype == np.int64
    assert all(x.dtype == dtype for x in arrays[:3])
    for x, y in zip(arrays, cs.ray_cast(model, *map(torch.from_numpy, (q, o, d)))):
        assert np.array_equal(x, y)
    with pytest.raises(TypeError, match="a gradient would be lost"):
        cs.ray_cast(model, q, o, d, model.params(requires_grad="shape_size"))


def test_length_of_the_direction_does_not_matter(rng):
    model = one(*SOLIDS.values())
    q, o, d = torch.tensor(model.q0), torch.tensor(rng.normal(size=(100, 3))), torch.tensor(rng.normal(size=(100, 3)))
    plain = cs.ray_cast(model, q, o, d)
    for length in (1e-200, 1e-3, 1e200):
        found = cs.ray_cast(model, q, o, d * length)
        assert torch.equal(found.shape, plain.shape)
        torch.testing.assert_close(found.distance, plain.distance, rtol=1e-9, atol=1e-9)


def test_no_rays():
    model = one(*SOLIDS.values())
    for found in (cs.ray_cast(model, model.q0, np.zeros((0, 3)), np.ones((n, 3))) for n in (0, 1)):
        assert found.distance.shape == found.shape.shape == (0,) and found.point.shape == (0, 3)


def test_indices_of_any_kind():
    model = one(*SOLIDS.values())
    rays = (model.q0, np.full((1, 3), 2.0), np.full((1, 3), -1.0))
    for shapes in (2, [2], np.array([2, 1]), torch.tensor([2, 1])):
        assert cs.ray_cast(model, *rays, shapes=shapes).shape in ([1], [2])


def test_vmap_and_jacrev(rng):
    model, _ = both_engines(rng)
    q = torch.tensor(model.q0) + 0.1 * torch.randn(4, model.nq, dtype=torch.float64)
    o, d = torch.randn(4, 6, 3, dtype=torch.float64), torch.randn(4, 6, 3, dtype=torch.float64)
    together = cs.ray_cast(model, q, o, d)
    mapped = torch.func.vmap(lambda *args: tuple(cs.ray_cast(model, *args)))(q, o, d)
    for x, y in zip(mapped, together):
        torch.testing.assert_close(x, y, rtol=EXACT, atol=EXACT)
    jacobian = torch.func.jacrev(lambda x: cs.ray_cast(model, q[0], x, d[0]).distance.clamp(max=100))(o[0])
    leaf = o[0].clone().requires_grad_()
    cs.ray_cast(model, q[0], leaf, d[0]).distance.clamp(max=100).sum().backward()
    torch.testing.assert_close(jacobian.sum(0), leaf.grad)


# ---- refused -------------------------------------------------------------------------------------------------------
GOOD = {"q": None, "origin": torch.zeros(2, 3).double(), "direction": torch.ones(2, 3).double()}
BAD = {
    "shape name": ({"shapes": "bodi/0"}, KeyError, "no shape that may touch another is named 'bodi/0'; did you mean"),
    "shape index": ({"shapes": [7]}, ValueError, "shapes must be names or indices below 2, got 7"),
    "shape mask": ({"shapes": [True, False]}, ValueError, "shapes must be names or indices below 2, got True"),
    "no shapes": ({"shapes": []}, ValueError, "shapes must name at least one shape"),
    "width": ({"origin": torch.zeros(2, 2).double()}, ValueError, r"origin must have shape \[\.\.\., 3\], got \(2, 2\)"),
    "one vector": ({"direction": torch.ones(3).double()}, ValueError, r"direction must have shape \[\.\.\., R, 3\], got \(3,\)"),
    "rays": ({"origin": torch.zeros(3, 3).double()}, ValueError, "origin and direction must have as many rays, got 3 and 2"),
    "batch": (
        {"q": torch.zeros(4, 7).double() + 1, "origin": torch.zeros(3, 2, 3).double()}, ValueError,
        r"batch shapes do not broadcast: q \(4,\), origin \(3,\)",
    ),
    "dtype": ({"origin": torch.zeros(2, 3)}, TypeError, "origin must be float64, got float32"),
    "type": ({"origin": [[0.0, 0.0, 0.0]]}, TypeError, "origin must be a torch tensor or numpy array, got list"),
    "q": ({"q": torch.zeros(6).double()}, ValueError, r"q must have shape \[\.\.\., 7\], got \(6,\)"),
    "zero": ({"direction": tensor([1, 0, 0], [0, 0, 0])}, ValueError, r"direction must not be zero, got .* at ray \(1,\)"),
    "nan origin": ({"origin": torch.full((2, 3), float("nan")).double()}, ValueError, "origin.*nan"),
    "nan direction": ({"direction": tensor([1, 0, float("nan")])}, ValueError, "direction.*nan"),
    "inf": ({"direction": tensor([1, 0, float("inf")])}, ValueError, "direction.*inf"),
    "max_distance": ({"max_distance": 0.0}, ValueError, "max_distance must be a positive number, got 0.0"),
    "nan max_distance": ({"max_distance": float("nan")}, ValueError, "max_distance must be a positive number, got nan"),
    "params": ({"params": one(SOLIDS["box"], SOLIDS["sphere"]).params()}, ValueError, "params belong to another model"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    wrong, error, message = BAD[name]
    model = one(SOLIDS["box"])
    arguments = {**GOOD, "q": torch.tensor(model.q0), **wrong}
    with pytest.raises(error, match=message):
        cs.ray_cast(model, **arguments)


def test_a_model_without_anything_to_hit():
    scene = cs.Scene()
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1))
    model = scene.build()
    with pytest.raises(ValueError, match="model has no shapes that may touch another"):
        cs.ray_cast(model, model.q0, np.zeros((1, 3)), np.ones((1, 3)))
