"""Shapes of planar scenes: corners of polygons, area, centre and inertia, and what reaches the model and its parameters."""

import itertools
import pickle
from math import cos, pi, sin

import numpy as np
import pytest
import torch

from costate.rotation import rotate
from costate.scene import Circle, Fixed, HalfPlane, Hull, Polygon, Rectangle, Scene, combine
from costate.scene.planar_shapes import MAX_CORNERS, counterclockwise

TOL = 1e-12  # relative, two closed forms in double
SQUARE = ((1, 1), (-1, 1), (-1, -1), (1, -1))
POSE = {"pos": (0.3, -0.2), "angle": 0.7}


def ring(n: int, radius: float = 1.0, start: float = 0.2) -> np.ndarray:
    angle = start + 2 * pi * np.arange(n) / n
    return radius * np.stack((np.cos(angle), np.sin(angle)), -1)


def random_corners(seed: int, n: int = 7) -> np.ndarray:
    """Corners of a convex polygon, counterclockwise, far from round: points of an ellipse somewhere in the plane."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * pi, n) + 2 * pi * np.arange(n)) / n  # no gap of half a turn
    return np.stack((np.cos(angle), np.sin(angle)), -1) * rng.uniform(0.2, 2.0, 2) + rng.normal(size=2)


def four(mass, com, six) -> list[float]:
    """Mass, centre of mass (x, y) and moment about z."""
    return [mass.item(), *com[:2].tolist(), six[2].item()]


def moments(shape) -> list[float]:
    mass, com, six = shape.inertia()
    assert com[2] == 0 and six.tolist() == [six[2] / 2, six[2] / 2, six[2], 0, 0, 0]
    return four(mass, com, six)


# ---- inertia -------------------------------------------------------------------------------------------------------
def test_closed_forms():
    assert moments(Circle(0.3, density=2.0)) == pytest.approx([2 * pi * 0.09, 0, 0, pi * 0.3**4], rel=TOL)
    assert moments(Circle(0.3, mass=4.0)) == pytest.approx([4, 0, 0, 4 * 0.09 / 2], rel=TOL)
    assert moments(Rectangle((0.2, 0.5), density=3.0)) == pytest.approx([1.2, 0, 0, 1.2 * (0.04 + 0.25) / 3], rel=TOL)
    a, b = 0.6, 0.9
    triangle = Polygon(((0, 0), (a, 0), (0, b)), density=10.0)
    assert moments(triangle) == pytest.approx([5 * a * b, a / 3, b / 3, 5 * a * b * (a**2 + b**2) / 18], rel=TOL)


@pytest.mark.parametrize("n", [3, 4, 7, MAX_CORNERS])
def test_regular_polygons(n):
    mass, *com, moment = moments(Polygon(ring(n, 0.4), density=5.0))
    area = n / 2 * 0.16 * sin(2 * pi / n)
    assert mass == pytest.approx(5 * area, rel=TOL) and np.abs(com).max() < TOL
    assert moment == pytest.approx(mass * 0.16 / 2 * (1 - 2 / 3 * sin(pi / n) ** 2), rel=TOL)


@pytest.mark.parametrize("seed", range(5))
def test_a_polygon_weighs_as_its_prism(seed):
    corners = random_corners(seed)
    prism = np.vstack([np.c_[corners, np.full(len(corners), z)] for z in (0.0, 0.5)])
    solid = four(*Hull(prism, density=2.0).inertia())  # twice as dense and half as high
    assert moments(Polygon(corners, density=1.0)) == pytest.approx(solid, rel=1e-10)


@pytest.mark.parametrize(
    "shape", [Circle(0.3, **POSE), Rectangle((0.2, 0.5), **POSE), Polygon(((0, 0), (0.6, 0), (0, 0.9)), **POSE)]
)
def test_pose_turns_and_shifts_the_centre(shape):
    home = moments(type(shape)(getattr(shape, next(iter(shape.sizes), "vertices"))))
    c, s = cos(0.7), sin(0.7)
    mass, x, y, moment = home
    assert moments(shape) == pytest.approx([mass, 0.3 + c * x - s * y, -0.2 + s * x + c * y, moment], rel=TOL)


def test_a_rectangle_is_a_polygon_is_two_rectangles():
    whole = Rectangle((0.4, 0.1), density=7.0, **POSE)
    corners = np.array(SQUARE) * (0.4, 0.1)
    assert moments(Polygon(corners, density=7.0, **POSE)) == pytest.approx(moments(whole), rel=TOL)
    along = np.array((cos(0.7), sin(0.7))) * 0.2
    parts = [Rectangle((0.2, 0.1), density=7.0, pos=np.array((0.3, -0.2)) + side * along, angle=0.7) for side in (-1, 1)]
    assert four(*combine(parts)) == pytest.approx(moments(whole), rel=TOL)
    scene = Scene(planar=True)
    scene.add_body(shapes=parts)
    six = scene.build().defaults["inertia"][0]
    assert six[2] == pytest.approx(moments(whole)[3], rel=TOL) and six[:2].tolist() == [six[2] / 2] * 2


def test_inertia_keeps_the_graph():
    def numbers(vertices, radius, half, density, pos, angle):
        pose = {"density": density, "pos": pos, "angle": angle}
        shapes = Polygon(vertices, **pose), Circle(radius, **pose), Rectangle(half, **pose)
        return tuple(itertools.chain(*(shape.inertia() for shape in shapes)))

    given = (random_corners(1), 0.3, (0.2, 0.5), 2.0, (0.3, -0.2), 0.7)
    assert torch.autograd.gradcheck(numbers, [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in given])


# ---- corners -------------------------------------------------------------------------------------------------------
def signed_area(x: np.ndarray) -> float:
    y = np.roll(x, -1, 0)
    return 0.5 * (x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0]).sum()


@pytest.mark.parametrize("seed", range(3))
def test_any_order_becomes_counterclockwise(seed):
    corners = random_corners(seed, n=5)
    for order in itertools.permutations(range(5)):
        found = Polygon(corners[list(order)]).corners().numpy()
        start = order[0]
        np.testing.assert_array_equal(found, np.roll(corners, -start, 0))  # the first given stays the first
        assert signed_area(found) > 0


def test_a_far_and_tiny_polygon():
    corners = ring(MAX_CORNERS, radius=1e-3) + np.array((1e3, -2e3))
    assert counterclockwise(corners[::-1]).tolist() == [0, *range(MAX_CORNERS - 1, 0, -1)]


BAD = {
    "two points": (((0, 0), (1, 0)), "must be 3 to 32 points, got 2"),
    "too many": (ring(33), "must be 3 to 32 points, got 33"),
    "on a line": (((0, 0), (1, 1), (2, 2), (5, 5)), "must span an area, got 4 points that lie on a line"),
    "one place": (((1, 2), (1, 2), (1, 2)), "must span an area, got 3 points"),
    "inside": ((*SQUARE, (0.2, 0.1)), "must be the corners of a convex polygon, got (0.2, 0.1) as vertex 4, which is inside"),
    "in the middle": (((0, 0), *SQUARE), "got (0.0, 0.0) as vertex 0"),
    "on an edge": (((1, 1), (0, 1), (-1, 1), (-1, -1), (1, -1)), "got (0.0, 1.0) as vertex 1"),
    "twice": ((*SQUARE, (-1, 1)), "which is inside of it, on an edge, or given twice"),
    "not convex": (((0, 0), (2, 0), (0.5, 0.5), (0, 2)), "got (0.5, 0.5) as vertex 2"),
    "three numbers": (((0, 0, 0), (1, 0, 0), (0, 1, 0)), "must be points [n, 2], got shape (3, 3)"),
    "one point": ((1.0, 2.0), "must be points [n, 2], got shape (2,)"),
    "nan": (((0, 0), (1, 0), (0, float("nan"))), "must be finite, got (0.0, nan) as vertex 2"),
    "ragged": (((0, 0), (1, 0), (0,)), "must be numbers in rows of equal length"),
}


@pytest.mark.parametrize("vertices, words", BAD.values(), ids=BAD)
def test_bad_corners(vertices, words):
    scene = Scene(planar=True)
    with pytest.raises(ValueError) as caught:
        scene.add_body("plate", shapes=Polygon(vertices))
    assert str(caught.value).startswith("add_body('plate'): Polygon vertices ") and words in str(caught.value)
    assert "Scene(0 bodies" in repr(scene)


def test_bad_sizes_name_the_shape():
    scene = Scene(planar=True)
    for shape, words in (
        (Circle(0.0), "Circle radius must be positive, got 0.0"),
        (Circle((0.1, 0.2)), "Circle radius must be one number"),
        (Rectangle((0.1, -0.2)), "Rectangle half must be positive"),
        (Rectangle((0.1, 0.2, 0.3)), "Rectangle half must be 2 numbers"),
        (Rectangle(0.1), "Rectangle half must be 2 numbers"),
        (Circle(0.1, pos=(0, 0, 0)), "Circle pos must be 2 numbers in a planar scene, got (0.0, 0.0, 0.0)"),
        (Circle(0.1, angle=(0, 1)), "Circle angle must be one number"),
        (Circle(0.1, density=-1), "Circle density must not be negative"),
        (Circle(0.1, mass=float("inf")), "Circle mass must be finite"),
    ):
        with pytest.raises(ValueError) as caught:
            scene.add_body(shapes=shape)
        assert f"add_body('body0'): {words}" in str(caught.value)
    with pytest.raises(TypeError, match="unexpected keyword argument 'quat'"):
        Circle(0.1, quat=(1, 0, 0, 0))


# ---- what reaches the model ----------------------------------------------------------------------------------------
def shapes_scene(**tensors) -> Scene:
    scene = Scene(planar=True)
    scene.add_ground()
    kite = tensors.get("kite", ((0.5, 0), (0, 1), (-0.5, 0), (0, -0.25)))
    scene.add_body("plate", pos=(0, 2), shapes=Polygon(kite, pos=(0.1, 0.2), angle=0.3, name="kite"))
    scene.add_body("brick", pos=(2, 2), shapes=Rectangle(tensors.get("half", (0.2, 0.1)), friction=0.4, restitution=0.5))
    scene.add_body("ball", pos=(4, 2), shapes=Circle(0.3, softness=1e-4))
    scene.add_body("wedge", pos=(6, 2), shapes=Polygon(((0, 0), (1, 0), (0, 1)), name="wedge"))
    return scene


def test_fields_of_shapes():
    model = shapes_scene().build()
    assert model.shape_names == ("ground", "kite", "brick/0", "ball/0", "wedge")
    assert model.shape_type == (0, 8, 7, 1, 8) and len(model.pairs) == 10
    assert model.hull_vertices == (4, 3) and model.hull_faces == (0, 0)
    assert model.hull_loop == model.hull_loop_size == model.hull_plane == ()
    d = model.defaults
    assert d["shape_size"].tolist() == [[0, 0, 0], [0, 0, 0], [0.2, 0.1, 0], [0.3, 0, 0], [0, 0, 0]]
    assert d["hull_vertex"].tolist() == [
        [0.5, 0, 0], [0, 1, 0], [-0.5, 0, 0], [0, -0.25, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0],
    ]  # fmt: skip
    assert model.vertices("kite") == slice(0, 4) and model.vertices("wedge") == slice(4, 7)
    with pytest.raises(KeyError, match="shape 'ball/0' is no polygon"):
        model.vertices("ball/0")
    assert d["shape_pos"][1].tolist() == [0.1, 0.2, 0] and d["friction"][2] == 0.4
    np.testing.assert_allclose(d["shape_quat"][1], (cos(0.15), 0, 0, sin(0.15)), rtol=1e-15)


def test_numbers_keep_their_graph():
    kite = torch.tensor(((0.5, 0), (0, -0.25), (-0.5, 0), (0, 1)), dtype=torch.float64, requires_grad=True)  # clockwise
    half = torch.tensor((0.2, 0.1), dtype=torch.float64, requires_grad=True)
    params = shapes_scene(kite=kite, half=half).params()
    weights = torch.arange(12, dtype=torch.float64).reshape(4, 3)
    (params["hull_vertex"][:4] * weights).sum().backward()
    assert kite.grad.tolist() == [[0, 1], [9, 10], [6, 7], [3, 4]]
    params["shape_size"][2].sum().backward()
    assert half.grad.tolist() == [1, 1]


def test_bad_parameters_name_their_shape():
    params = shapes_scene().build().params()
    params.check()
    size, vertex = params["shape_size"].clone(), params["hull_vertex"].clone()
    size[2, 1], vertex[5, 0] = 0.0, float("nan")
    with pytest.raises(ValueError, match="shape_size of shape 'brick/0' must be positive"):
        params.replace(shape_size=size).check()
    with pytest.raises(ValueError, match="hull_vertex of shape 'wedge' must be finite"):
        params.replace(hull_vertex=vertex).check()


def test_shapes_of_the_model_are_plain():
    half = torch.tensor((0.2, 0.1), requires_grad=True)
    scene = Scene(planar=True)
    scene.add_body(shapes=(Rectangle(half), Polygon(torch.tensor(SQUARE), pos=(1, torch.tensor(2.0)))))
    rectangle, square = scene.build().shapes[0]
    assert rectangle.half == pytest.approx((0.2, 0.1)) and square.vertices == SQUARE and square.pos == (1, 2)
    again = pickle.loads(pickle.dumps((rectangle, square)))
    assert again == (rectangle, square)


# ---- half planes ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("angle", [0.0, 0.5, -2.0, 4.0])
def test_half_planes_are_planes_of_the_engine(angle):
    frame = HalfPlane(pos=(0.3, -0.2), angle=angle).frame(where="")
    axes = {name: rotate(frame.quat, torch.eye(3, dtype=torch.float64)[i]) for i, name in enumerate("xyz")}
    c, s = cos(angle), sin(angle)
    np.testing.assert_allclose(axes["z"], (-s, c, 0), atol=1e-15)  # outwards
    np.testing.assert_allclose(axes["y"], (c, s, 0), atol=1e-15)  # along the line
    np.testing.assert_allclose(axes["x"], (0, 0, 1), atol=1e-15)
    assert frame.pos.tolist() == [0.3, -0.2, 0]


def test_grounds():
    scene = Scene(planar=True)
    assert scene.add_ground(0.5, friction=0.25) == "ground"
    assert scene.add_ground(angle=0.4, restitution=0.5, softness=0.125) == "ground_1"
    assert scene.add_shape(HalfPlane(pos=(1, 2), angle=0.4, name="wall")) == "wall"
    scene.add_body("ball", shapes=Circle(0.1))
    model = scene.build()
    assert model.shape_type == (0, 0, 0, 1) and model.pairs.tolist() == [[0, 3], [1, 3], [2, 3]]
    d = model.defaults
    assert d["shape_pos"].tolist() == [[0, 0.5, 0], [0, 0, 0], [1, 2, 0], [0, 0, 0]]
    assert d["shape_quat"][1].tolist() == d["shape_quat"][2].tolist()
    assert d["friction"].tolist() == [0.25, 1, 1, 1] and d["softness"][1] == 0.125 and d["restitution"][1] == 0.5


def test_half_planes_do_not_move():
    scene = Scene(planar=True)
    scene.add_body("post", joint=Fixed(), pos=(0, 1), shapes=Circle(0.1))
    scene.add_shape(HalfPlane(), body="post")
    scene.add_body("ball", shapes=Circle(0.1))
    with pytest.raises(ValueError, match="HalfPlane must be on the world or on a body that is fixed to it, got body 'ball'"):
        scene.add_shape(HalfPlane(), body="ball")
    with pytest.raises(ValueError, match="HalfPlane has no mass, got mass 1"):
        scene.add_body("wall", joint=Fixed(), mass=1.0, inertia=1.0, shapes=HalfPlane(mass=1.0))
