"""Hulls: which points are corners, the faces they make, inertia, and what reaches the model and its parameters."""

import itertools
import pickle
import sys
from collections import Counter

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

import costate as cs
from costate.scene import Box, Cylinder, Free, Hull, Scene, Sphere, combine
from costate.scene import hull as hull_module
from costate.scene.faces import TOLERANCE, Faces, find_faces
from costate.scene.inertia import to_matrix

TOL = 1e-10  # two closed forms in double
CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
CUBE_LOOPS = ((0, 1, 3, 2), (0, 2, 6, 4), (0, 4, 5, 1), (1, 5, 7, 3), (2, 3, 7, 6), (4, 6, 7, 5))
POSE = {"pos": (0.1, -0.2, 0.3), "quat": (0.9, 0.2, -0.3, 0.4)}


def turned(points: np.ndarray, seed: int) -> np.ndarray:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return points @ (q * np.sign(np.linalg.det(q)))


def prism(n: int) -> np.ndarray:
    angle = 2 * np.pi * np.arange(n) / n
    ring = np.stack((np.cos(angle), np.sin(angle)), -1)
    return np.vstack([np.c_[ring, np.full(n, z)] for z in (-0.5, 0.5)])


def check(points: np.ndarray) -> tuple[np.ndarray, Faces]:
    """The corners and faces: closed, every point below every face, polygons flat, planes spanned by the largest triangle."""
    kept, faces = find_faces(points)
    x, size = points[kept], np.ptp(points, axis=0).max()
    assert (np.diff(kept) > 0).all() and set(itertools.chain(*faces.loops)) == set(range(len(x)))
    edges = Counter((loop[i - 1], loop[i]) for loop in faces.loops for i in range(len(loop)))
    assert all(count == 1 and (b, a) in edges for (a, b), count in edges.items())
    assert len(x) - len(edges) // 2 + len(faces.loops) == 2, "Euler"
    for loop, (a, b, c) in zip(faces.loops, faces.planes, strict=True):
        assert loop[0] == min(loop) and loop.index(a) < loop.index(b) < loop.index(c)
        normal = np.cross(x[b] - x[a], x[c] - x[a])
        areas = [np.linalg.norm(np.cross(x[j] - x[i], x[k] - x[i])) for i, j, k in itertools.combinations(loop, 3)]
        assert np.linalg.norm(normal) > (1 - 1e-6) * max(areas)
        height = (points - x[a]) @ normal / np.linalg.norm(normal)
        assert height.max() < 10 * TOLERANCE * size and np.abs(height[kept[list(loop)]]).max() < 10 * TOLERANCE * size
    return kept, faces


# ---- corners and faces ---------------------------------------------------------------------------------------------
def test_a_cube():
    kept, faces = check(CUBE)
    assert kept.tolist() == list(range(8)) and faces.loops == CUBE_LOOPS
    assert faces.planes == tuple(loop[:3] for loop in CUBE_LOOPS)  # of equal triangles the first


@pytest.mark.parametrize("seed", range(10))
def test_random_points(seed):
    points = np.random.default_rng(seed).normal(size=(40, 3))
    kept, faces = check(points)
    known = ConvexHull(points)
    assert kept.tolist() == sorted(known.vertices) and len(faces.loops) == len(known.simplices)
    mass, *_ = Hull(points, density=1.0).inertia()
    assert mass.item() == pytest.approx(known.volume, rel=TOL)


def test_points_that_are_no_corners_are_dropped():
    inside = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    on_faces = [(1, 0.2, 0.3), (-0.1, 1, 0.5), (0, 0, -1)]
    on_edges = [(1, 1, 0.5), (0, -1, -1), (0.1, -1, -1)]
    points = np.vstack((inside, on_faces, CUBE, CUBE[::-1], on_edges))
    kept, faces = check(points)
    assert kept.tolist() == list(range(53, 61)) and faces.loops == CUBE_LOOPS  # in their order, of equal ones the first
    near = np.vstack([CUBE + 1e-8 * np.random.default_rng(seed).normal(size=(8, 3)) for seed in range(4)])
    kept, faces = check(near)
    assert len(kept) == 8 and len(faces.loops) == 6


@pytest.mark.parametrize("n", [3, 5, 16, 31])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polygons_are_whole(n, dtype):
    """Also where the points of a face are off its plane by the rounding of a file in float32."""
    kept, faces = check(turned(prism(n), n).astype(dtype).astype(np.float64))
    assert len(kept) == 2 * n and sorted(map(len, faces.loops)) == sorted([4] * n + [n, n])


def test_a_fine_grid_on_a_plate():
    axes = np.linspace(-1, 1, 7)
    plate = np.array(list(itertools.product(axes, axes, axes))) * (1.0, 0.3, 1e-3)
    kept, faces = check((turned(plate, 1) + 3).astype(np.float32).astype(np.float64))
    assert len(kept) == 8 and len(faces.loops) == 6


def test_what_is_not_flat_is_not_merged():
    for height, corners, count in ((100 * TOLERANCE, 9, 9), (0.1 * TOLERANCE, 8, 6)):
        kept, faces = check(np.vstack((CUBE, [(0, 0, 1 + height)])))
        assert (len(kept), len(faces.loops)) == (corners, count), height
    bent = CUBE + np.outer((CUBE == 1).all(1), (0, 0, 1e-3))  # one corner lifted: its top is two triangles
    kept, faces = check(bent)
    assert sorted(map(len, faces.loops)) == [3, 3, 4, 4, 4, 4, 4]


def test_blades_keep_both_sides():
    """Small triangles on both sides of an edge, within the tolerance of one plane, look opposite ways."""
    x = np.array([0.0, 1e-4, 1.0])
    points = np.array([(x, y, z * 1e-3 * x) for x in x for y in (-1, 1) for z in (-1, 1)])
    kept, faces = check(points)
    assert len(kept) == 6 and len(faces.loops) == 5


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_size_does_not_matter(scale):
    points = turned(np.vstack((CUBE, prism(6))), 3)
    expected = find_faces(points)
    kept, faces = check(scale * (points + np.array((10, -20, 30))))
    assert kept.tolist() == expected[0].tolist() and faces.loops == expected[1].loops


def test_scipy_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    hull_module._known_faces.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r"Hull needs scipy .* costate\[hull\]"):
        Hull(CUBE).inertia()


def test_too_many_corners():
    points = np.random.default_rng(0).normal(size=(65, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    assert len(Hull(points[:64]).corners()[0]) == 64
    with pytest.raises(ValueError, match=r"Hull vertices must have at most 64 corners, got 65; give fewer points, or"):
        Hull(points).inertia()
    with pytest.raises(ValueError, match=r"at most 64 corners, got 2000"):  # of a face with a thousand
        Hull(prism(1000)).inertia()


# ---- inertia -------------------------------------------------------------------------------------------------------
def test_inertia_is_that_of_the_box():
    half, offset = np.array((0.1, 0.2, 0.35)), np.array((0.3, 0.1, -0.5))
    for options in ({"density": 800.0}, {"mass": 2.5}):
        ours = Hull(CUBE * half + offset, pos=-offset, **options).inertia()
        for x, y in zip(ours, Box(half, **options).inertia(), strict=True):
            torch.testing.assert_close(x, y, rtol=TOL, atol=TOL)
    _, com, _ = Hull(CUBE * half + offset).inertia()
    torch.testing.assert_close(com, torch.from_numpy(offset))


def test_inertia_is_mujocos():
    points = np.random.default_rng(5).normal(size=(20, 3)) + np.array((0.4, 0, 1))
    corners = Hull(points).corners()[0].numpy()
    text = " ".join(map(str, corners.ravel()))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="m" vertex="{text}" inertia="exact"/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="m" density="700" pos="0.1 -0.2 0.3" quat="0.9 0.2 -0.3 0.4"/></body></worldbody></mujoco>'
    )
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    turn = turn.reshape(3, 3)
    mass, com, inertia = Hull(points, density=700.0, **POSE).inertia()
    # MuJoCo keeps vertices of meshes in float32
    np.testing.assert_allclose(mass.item(), model.body_mass[1], rtol=1e-5)
    np.testing.assert_allclose(com.numpy(), model.body_ipos[1], rtol=1e-5)
    expected = turn @ np.diag(model.body_inertia[1]) @ turn.T
    np.testing.assert_allclose(to_matrix(inertia).numpy(), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_inertia_does_not_depend_on_the_frame():
    points = np.random.default_rng(6).normal(size=(12, 3))
    here, there = Hull(points).inertia(), Hull(points + 1e3, pos=(-1e3, -1e3, -1e3)).inertia()
    for x, y in zip(here, there, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-8)  # 1e3 loses three digits of the corners


def test_gradients_of_inertia():
    rng = np.random.default_rng(7)
    inputs = [torch.from_numpy(rng.normal(size=(7, 3))), *(torch.rand(n, dtype=torch.float64) + 0.2 for n in ((), (3,), (4,)))]
    inputs = [tensor.requires_grad_() for tensor in inputs]

    def inertia(vertices, density, pos, quat):
        return combine([Hull(vertices, density=density, pos=pos, quat=quat), Sphere(0.3)])

    assert torch.autograd.gradcheck(inertia, inputs)


def test_gradients_on_a_cube():
    """Faces of two triangles: the derivative is that of the polyhedron with these triangles; of volume and centre it is exact."""
    vertices = torch.from_numpy(CUBE).clone().requires_grad_()
    mass, com, _ = Hull(vertices, density=1.0).inertia()
    (by_vertex,) = torch.autograd.grad(mass, vertices, retain_graph=True)
    torch.testing.assert_close((by_vertex * vertices).sum(), 3 * mass)  # volume is of third degree
    (by_vertex,) = torch.autograd.grad(com[2], vertices)
    torch.testing.assert_close(by_vertex.sum(0), torch.tensor((0.0, 0.0, 1.0), dtype=torch.float64))  # it moves along


# ---- model and parameters ------------------------------------------------------------------------------------------
def two_hulls(first=None) -> Scene:
    scene = Scene()
    scene.add_ground()
    scene.add_body("wedge", joint=Free(), shapes=Hull(prism(3)[::-1] if first is None else first, name="wedge"))
    scene.add_body("can", joint=Free(), shapes=Cylinder(0.1, 0.2))
    scene.add_body("cube", joint=Free(), shapes=[Hull(np.vstack(([(0, 0, 0)], CUBE))), Hull(CUBE, collide=False)])
    return scene


def test_structure():
    model = two_hulls().build()
    assert model.shape_names == ("ground", "wedge", "can/0", "cube/0") and model.shape_type == (0, 5, 4, 5)
    assert model.hull_vertices == (6, 8) and model.hull_faces == (5, 6)
    assert sorted(model.hull_loop_size[:5]) == [3, 3, 4, 4, 4] and model.hull_loop_size[5:] == (4,) * 6
    assert model.hull_loop[-24:] == tuple(itertools.chain(*CUBE_LOOPS)) and len(model.hull_plane) == 3 * 11
    assert model.field_nx == model.field_ny == ()
    d = model.defaults
    assert d["shape_size"].tolist() == [[0, 0, 0], [0, 0, 0], [0.1, 0.2, 0], [0, 0, 0]]
    assert d["hull_vertex"].shape == (14, 3) and d["height"].shape == (0,)
    np.testing.assert_array_equal(d["hull_vertex"][model.vertices("wedge")], prism(3)[::-1])
    np.testing.assert_array_equal(d["hull_vertex"][model.vertices("cube/0")], CUBE)
    with pytest.raises(KeyError, match="shape 'can/0' is no hull"):
        model.vertices("can/0")
    assert model.shapes[0] == (Hull(tuple(map(tuple, prism(3)[::-1].tolist())), name="wedge"),)


def test_equality_and_topology():
    model, copy = two_hulls().build(), pickle.loads(pickle.dumps(two_hulls().build()))
    assert copy == model and hash(copy) == hash(model) and copy.topology == model.topology
    longer = two_hulls(2 * prism(3)[::-1]).build()
    assert longer != model and longer.topology == model.topology
    assert two_hulls(prism(4)).build().topology != model.topology


def test_params_keep_the_graph():
    points = torch.from_numpy(np.vstack((np.zeros((1, 3)), prism(3)))).requires_grad_()
    params = two_hulls(points).params()
    weight = torch.rand(14, 3, dtype=torch.float64)
    (params["hull_vertex"] * weight).sum().backward()
    assert torch.equal(points.grad[1:], weight[:6]) and not points.grad[0].any()
    assert not two_hulls(points).build().defaults["hull_vertex"].requires_grad
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    mixed = [(scale, 0.0, 0.0), (0.0, scale, 0.0), (0.0, 0.0, scale), (0.0, 0.0, 0.0)]
    scene = Scene()
    scene.add_ground()
    scene.add_body("a", joint=Free(), shapes=Hull(mixed, density=6.0))
    params = scene.params()
    (by_scale,) = torch.autograd.grad(params["mass"].sum() + params["hull_vertex"].sum(), scale)
    assert by_scale.item() == pytest.approx(3 * 2.0**2 + 3)


def test_check_of_params():
    params = two_hulls().build().params()
    params.check()
    bad = params["hull_vertex"].clone()
    bad[7, 1] = float("nan")
    with pytest.raises(ValueError, match=r"params: hull_vertex of shape 'cube/0' must be finite, got \(-1.0, nan, 1.0\)"):
        params.replace(hull_vertex=bad).check()
    params.replace(hull_vertex=-params["hull_vertex"]).check()  # any finite number will do
    free = params.unconstrained(("hull_vertex", "shape_size"))
    assert free.tensors["hull_vertex"].shape == (14, 3) and free.tensors["log_shape_size"].shape == (2,)


# ---- engine --------------------------------------------------------------------------------------------------------
def test_the_engine_takes_hulls():
    model = two_hulls().build()
    sim = cs.Simulator(model, dt=0.001)
    params = model.params(requires_grad=("hull_vertex",))
    assert params.flat().shape == (model.engine.tree.params_size,)
    state = sim.initial_state()
    q = state.q.clone()
    q[2], q[9], q[16] = 2.0, 5.0, 8.0  # far from the ground and from each other
    traj = sim.rollout(cs.State(q, state.v), params=params, steps=10)
    assert traj.q.isfinite().all() and not traj.status.contacts.any()


def test_a_hull_rests_as_a_box_does():
    ends = []
    for shape in (Box((0.1, 0.2, 0.3), mass=1.0), Hull(CUBE * (0.1, 0.2, 0.3), mass=1.0)):
        scene = Scene()
        scene.add_ground()
        scene.add_body("a", joint=Free(), pos=(0, 0, 0.3), shapes=shape)
        sim = cs.Simulator(scene.build(), dt=0.005)
        end = sim.rollout(sim.initial_state(), steps=100)[-1]
        ends.append(end.q)
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-6)
