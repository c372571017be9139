"""Planar scenes: bodies, joints and constraints given in the plane, the model built from them, and mistakes that are named."""

import copy
import pickle
from math import atan2, cos, sin
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import costate as cs
from costate.rotation import rotate
from costate.scene import (
    Ball,
    Box,
    Capsule,
    Circle,
    Cylinder,
    Ellipsoid,
    Fixed,
    Free,
    HalfPlane,
    Heightfield,
    Hull,
    Planar,
    Plane,
    Polygon,
    Prismatic,
    Rectangle,
    Revolute,
    Scene,
    Sphere,
)

DISC = Circle(0.1, mass=1.0)
TRIANGLE = ((0, 0), (1, 0), (0, 1))


def turn(angle: float) -> list[float]:
    return [cos(angle / 2), 0, 0, sin(angle / 2)]


def two(**options) -> Scene:
    """Free bodies a and b."""
    scene = Scene(planar=True, **options)
    scene.add_body("a", pos=(1, 2), angle=0.5, shapes=DISC)
    scene.add_body("b", pos=(3, 1), angle=-0.25, shapes=DISC)
    return scene


def every_kind() -> Scene:
    scene = two()
    scene.add_body("arm", joint=Revolute(name="elbow"), pos=(5, 0), shapes=DISC)
    scene.add_point("a", "b")
    scene.add_weld("a", "arm", pos=(0.1, 0.2), softness=0.25)
    scene.add_hinge("a", "b", name="door")
    scene.add_slide(None, "b", axis=(1, 1))
    scene.add_distance("a", "b", length=3.0)
    scene.add_lock("b", "arm", y=True, rotation=True)
    scene.add_coupling("elbow", "a", other_dof=2, ratio=-2.0)
    scene.add_servo("door", gain=1, max_force=2, max_speed=3)
    scene.add_motor("slide0")
    scene.add_motor("elbow")
    return scene


# ---- bodies and joints ---------------------------------------------------------------------------------------------
def test_a_free_body():
    scene = Scene(planar=True)
    scene.add_body("ball", pos=(0.5, 1.5), angle=4.0, shapes=DISC)
    model = scene.build()
    assert model.planar and model.joint_type == (Planar.code,) and (model.nq, model.nv) == (3, 3)
    assert model.q0.tolist() == [0.5, 1.5, 4.0]  # angles count full turns
    d = model.defaults
    assert d["joint_pos"].tolist() == [[0, 0, 0]] and d["joint_quat"].tolist() == [[1, 0, 0, 0]]
    assert d["rest"].tolist() == [0.5, 1.5, 4.0]  # as of a free body in space
    assert d["gravity"].tolist() == [0, -9.81, 0]
    np.testing.assert_allclose(d["inertia"], [[0.0025, 0.0025, 0.005, 0, 0, 0]], rtol=1e-15)


def test_joints_of_a_tree():
    scene = Scene(planar=True, gravity=(1.0, -2.0))
    scene.add_body("post", joint=Fixed(), pos=(0, 1), shapes=DISC)
    scene.add_body("arm", parent="post", joint=Revolute(anchor=(0.1, 0.2), limits=(-1, 1)), pos=(1, 0), angle=0.5, shapes=DISC)
    scene.add_body("rod", parent="arm", joint=Prismatic(axis=(3, 4), initial=0.5), pos=(0, 2), shapes=DISC)
    scene.add_body("plate", parent="rod", joint=Planar(anchor=(0.3, 0.4)), pos=(1, 1), angle=-0.5, shapes=DISC)
    scene.add_body("tip", parent="plate", pos=(0, 1), shapes=DISC)
    model = scene.build()
    assert model.joint_type == (0, 1, 2, 5, 0) and model.parent == (-1, 0, 1, 2, 3)
    assert model.q0.tolist() == [0, 0.5, 0, 0, 0]
    d = model.defaults
    assert d["gravity"].tolist() == [1, -2, 0]
    assert d["joint_pos"].tolist() == [[0, 1, 0], [1, 0, 0], [0, 2, 0], [1, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(d["joint_quat"], [turn(x) for x in (0, 0.5, 0, -0.5, 0)], rtol=1e-15)
    assert d["joint_anchor"].tolist() == [[0, 0, 0], [0.1, 0.2, 0], [0, 0, 0], [0.3, 0.4, 0], [0, 0, 0]]
    assert d["joint_axis"][1].tolist() == [0, 0, 1] and d["joint_axis"][2].tolist() == [3, 4, 0]
    assert d["limit_upper"].tolist() == [1]


def test_inertia_as_numbers():
    scene = Scene(planar=True)
    scene.add_body("a", mass=2.0, inertia=0.5, com=(0.1, 0.2))
    scene.add_body("b", mass=3.0, shapes=Rectangle((0.3, 0.4), mass=1.0))
    scene.add_body("c", joint=Prismatic(axis=(1, 0)), massless=True)
    scene.add_body("d", parent="c", joint=Prismatic(axis=(0, 1)), mass=1.0, inertia=1.0)
    d = scene.build().defaults
    assert d["com"].tolist() == [[0.1, 0.2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert d["inertia"][0].tolist() == [0.25, 0.25, 0.5, 0, 0, 0] and not d["inertia"][2].any()
    assert d["mass"].tolist() == [2, 3, 0, 1] and d["inertia"][1, 2] == pytest.approx(0.25, rel=1e-15)


def test_initial_is_the_pose_or_agrees_with_it():
    scene = Scene(planar=True)
    scene.add_body("a", joint=Planar(initial=(1, 2, 3)), shapes=DISC)
    scene.add_body("b", joint=Planar(initial=(1, 2, 3)), pos=(1, 2), angle=3.0, shapes=DISC)
    with pytest.raises(ValueError, match=r"pos and angle disagree with initial of the planar joint.*\(1.0, 2.0, 3.0\)"):
        scene.add_body("c", joint=Planar(initial=(1, 2, 3)), pos=(1, 2), shapes=DISC)
    assert scene.build().q0.tolist() == [1, 2, 3, 1, 2, 3]


def test_sites_motors_and_words():
    scene = two()
    scene.add_body("arm", parent="a", joint=Revolute(), shapes=DISC)
    scene.add_body("plate", parent="arm", joint=Planar(), shapes=DISC)
    scene.add_site("tip", body="arm", pos=(0.1, 0.2), angle=0.5)
    assert scene.add_motors() == ("arm", "plate_0", "plate_1", "plate_2")  # none on bodies that move freely
    assert scene.add_position("b", dof=2, kp=1.0) == "b_2"
    model = scene.build()
    assert model.defaults["site_pos"].tolist() == [[0.1, 0.2, 0]]
    np.testing.assert_allclose(model.defaults["site_quat"], [turn(0.5)], rtol=1e-15)
    assert repr(model) == "Model(nb=4, nq=10, nv=10, nu=5, ns=1, planar)"
    assert repr(scene) == "Scene(4 bodies, 1 sites, 5 motors, planar)"


def test_numbers_keep_their_graph():
    x = {name: torch.tensor(float(i + 1), dtype=torch.float64, requires_grad=True) for i, name in enumerate("gpacixs")}
    scene = Scene(planar=True, gravity=(0.0, x["g"]))
    scene.add_body(
        "a", joint=Prismatic(axis=(1.0, x["x"])), pos=(x["p"], 0.0), angle=x["a"], mass=1.0, inertia=x["i"], com=(0, x["c"])
    )
    scene.add_site("s", body="a", pos=(0, 0), angle=x["s"])
    p = scene.params()
    rows = (p["gravity"][1], p["joint_pos"][0, 0], p["joint_quat"][0, 3], p["com"][0, 1], p["inertia"][0, 2])
    rows = (*rows, p["joint_axis"][0, 1], p["site_quat"][0, 3])
    grads = torch.autograd.grad(torch.stack(rows).sum(), list(x.values()))
    assert [g.item() for g in grads] == pytest.approx([1, 1, cos(3 / 2) / 2, 1, 1, 1, cos(7 / 2) / 2], rel=1e-14)


# ---- constraints ---------------------------------------------------------------------------------------------------
def test_kinds_and_names():
    model = every_kind().build()
    assert model.tie_names == ("point0", "weld0", "door", "slide0", "distance0", "lock0")
    assert model.tie_locks == ((0, 1), (0, 1, 6), (0, 1), (1, 4), (3,), (1, 6)) and model.tie_axis == (0, 0, 1, 2, 0, 0)
    assert model.equality_names == (
        "point0 x", "point0 y", "weld0 x", "weld0 y", "weld0 rotation", "door x", "door y", "slide0 across", "slide0 rotation",
        "distance0", "lock0 y", "lock0 rotation", "coupling0",
    )  # fmt: skip
    assert model.ne == 13 and model.coupling_dof2 == (2,) and model.motor_tie == (2, 3, -1)
    table = model.summary().split("constraint ")[1].split("\n\n")[0]
    kinds = [line.split()[2] for line in table.splitlines()[1:]]
    assert kinds == ["point", "weld", "hinge", "slide", "distance", "lock", "coupling"]


@pytest.mark.parametrize("chosen", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)])
def test_locks(chosen):
    scene = two()
    scene.add_lock("a", "b", **dict(zip(("x", "y", "rotation"), map(bool, chosen))))
    assert scene.build().tie_locks == (tuple(lock for lock, choice in zip((0, 1, 6), chosen) if choice),)


def test_frames_of_ties():
    """Frame b is where frame a is, unless it is given; that of a slide has its axis as z and looks at the plane along x."""
    scene = two()
    scene.add_weld("a", "b", pos=(0.1, 0.2), angle=0.75)
    scene.add_weld("a", "b", pos_b=(0.3, 0.4), angle_b=1.0)
    scene.add_slide("a", "b", pos=(0.1, 0.2), axis=(3, 4))
    d = scene.build().defaults
    pos, quat = d["tie_pos"], d["tie_quat"]
    x, y = 1 + cos(0.5) * 0.1 - sin(0.5) * 0.2, 2 + sin(0.5) * 0.1 + cos(0.5) * 0.2  # in the world
    dx, dy = x - 3, y - 1
    seen = [cos(0.25) * dx - sin(0.25) * dy, sin(0.25) * dx + cos(0.25) * dy, 0]  # from b, turned by -0.25
    np.testing.assert_allclose(pos, [(0.1, 0.2, 0), seen, (0, 0, 0), (0.3, 0.4, 0), (0.1, 0.2, 0), seen], atol=1e-15)
    np.testing.assert_allclose(quat[:4], [turn(x) for x in (0.75, 0.75 + 0.75, 0.0, 1.0)], atol=1e-15)
    for side, body in ((4, 0.0), (5, 0.75)):
        axes = [rotate(quat[side], torch.eye(3, dtype=torch.float64)[i]) for i in range(3)]
        angle = atan2(4, 3) + body
        np.testing.assert_allclose(axes[2], (cos(angle), sin(angle), 0), atol=1e-15)
        np.testing.assert_allclose(axes[0], (0, 0, 1), atol=1e-15)
        np.testing.assert_allclose(axes[1], (sin(angle), -cos(angle), 0), atol=1e-15)  # to the right


def test_distances_and_collisions():
    scene = two()
    scene.add_distance("a", "b", pos=(0.5, 0), pos_b=(0, 0.5))
    a, b = np.array((1 + cos(0.5) / 2, 2 + sin(0.5) / 2)), np.array((3 + sin(0.25) / 2, 1 + cos(0.25) / 2))
    assert scene.build().defaults["tie_length"].item() == pytest.approx(np.linalg.norm(a - b), rel=1e-14)
    assert len(scene.build().pairs) == 1
    scene.add_hinge("a", "b")
    assert len(scene.build().pairs) == 0


# ---- the model -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("remake", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_pickle_and_topology(remake):
    model = every_kind().build()
    again = remake(model)
    assert again == model and again.planar and again.topology == model.topology
    flat, spatial = Scene(planar=True), Scene(gravity=(0, -9.81, 0))
    for scene, inertia in ((flat, 0.5), (spatial, (0.25, 0.25, 0.5))):
        scene.add_body("a", joint=Planar(), mass=1.0, inertia=inertia)
    assert flat.build() != spatial.build() and flat.build().topology != spatial.build().topology
    assert not spatial.build().planar


def test_the_engine_is_told(monkeypatch):
    from costate._native import cpu

    told = {}
    fake = SimpleNamespace(Tree=lambda *args, **options: told.update(options) or SimpleNamespace(params_size=0, equality_rows=0))
    monkeypatch.setattr(cpu, "_core", fake)
    scene = every_kind()
    scene.add_ground()
    scene.add_body("plate", shapes=Polygon(TRIANGLE))
    cpu.Engine(scene.build())
    assert told["planar"] is True and told["hull_vertices"] == [3] and told["hull_faces"] == [0]
    assert told["lock"] == [0, 1, 0, 1, 6, 0, 1, 1, 4, 3, 1, 6]


def test_only_the_inertia_about_z_is_judged():
    model = two().build()
    params, sim = model.params(), cs.Simulator(model)
    grown = params["inertia"].clone()
    grown[:, 2] *= 3.0  # in space no mass could be distributed so
    params.replace(inertia=grown).check()
    still = sim.initial_state()
    torque = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    turning = [sim.step(still, params=p, external=torque).v[2] for p in (params, params.replace(inertia=grown))]
    assert turning[1].item() == pytest.approx(turning[0].item() / 3, rel=1e-14)
    grown[1, 2] = 0.0
    with pytest.raises(ValueError, match="inertia about z of body 'b' must be positive"):
        params.replace(inertia=grown).check()


def test_unconstrained():
    params = two().build().params()
    free = params.unconstrained(("mass", "inertia", "shape_size"))
    assert {name: len(t) for name, t in free.tensors.items()} == {"log_mass": 2, "log_inertia": 2, "log_shape_size": 2}
    torch.testing.assert_close(free.params()["inertia"].detach(), params["inertia"], rtol=1e-14, atol=0)
    with torch.no_grad():
        free.tensors["log_inertia"].copy_(torch.tensor([-3.0, 3.0]))
    moved = free.params()
    moved.check()
    assert moved["inertia"][:, 2].tolist() == pytest.approx(np.exp([-3, 3]), rel=1e-14)
    assert torch.equal(moved["inertia"][:, 0], moved["inertia"][:, 2] / 2)
    moved["inertia"].sum().backward()
    assert free.tensors["log_inertia"].grad.tolist() == pytest.approx(2 * np.exp([-3, 3]), rel=1e-14)


# ---- mistakes ------------------------------------------------------------------------------------------------------
def call(method, *arguments, **options):
    return lambda scene: getattr(scene, method)(*arguments, **options)


GRAD = torch.tensor([1.0, 2.0], requires_grad=True)

# of a planar scene with free bodies a and b: call, exception, words
FLAT = {
    "pos": (call("add_body", pos=(0, 1, 0), shapes=DISC), ValueError, "pos must be 2 numbers in a planar scene, got (0.0, 1.0"),
    "quat": (call("add_body", quat=(1, 0, 0, 0), shapes=DISC), ValueError, "quat has no place in a planar scene, give angle"),
    "angle": (call("add_body", angle=(0, 1), shapes=DISC), ValueError, "angle must be one number"),
    "com": (call("add_body", com=(0, 0, 0), mass=1.0, inertia=1.0), ValueError, "com must be 2 numbers in a planar scene"),
    "inertia": (call("add_body", mass=1.0, inertia=(1, 1, 1)), ValueError, "inertia must be one number, got (1.0, 1.0, 1.0)"),
    "inertia sign": (call("add_body", mass=1.0, inertia=-1.0), ValueError, "inertia must be positive, got -1.0"),
    "pos grad": (call("add_body", pos=GRAD, shapes=DISC), TypeError, "pos sets the initial state"),
    "angle grad": (call("add_body", angle=GRAD[0], shapes=DISC), TypeError, "angle sets the initial state"),
    "free": (call("add_body", joint=Free(), shapes=DISC), TypeError, "a Free joint leaves the plane: use Planar"),
    "ball": (call("add_body", joint=Ball(), shapes=DISC), TypeError, "a Ball joint leaves the plane: use Revolute"),
    "revolute axis": (call("add_body", joint=Revolute((0, 1, 0)), shapes=DISC), ValueError, "axis of a Revolute joint is z"),
    "prismatic axis": (call("add_body", joint=Prismatic(), shapes=DISC), ValueError, "axis must be 2 numbers in a planar scene"),
    "no axis": (call("add_body", joint=Prismatic((0, 0)), shapes=DISC), ValueError, "axis must not be zero"),
    "anchor": (call("add_body", joint=Revolute(anchor=(1, 2, 3)), shapes=DISC), ValueError, "anchor must be 2 numbers"),
    "free anchor": (call("add_body", joint=Planar((1, 2)), shapes=DISC), ValueError, "anchor: a body that moves freely"),
    "sphere": (call("add_body", "c", shapes=Sphere(0.1)), TypeError, "add_body('c'): Sphere is a shape of space", "use Circle"),
    "box": (call("add_body", shapes=Box((1, 1, 1))), TypeError, "use Rectangle"),
    "hull": (call("add_shape", Hull(np.eye(3))), TypeError, "use Polygon"),
    "capsule": (call("add_shape", Capsule(1, 1)), TypeError, "use a Rectangle and two Circles"),
    "cylinder": (call("add_shape", Cylinder(1, 1)), TypeError, "use Circle or Rectangle"),
    "ellipsoid": (call("add_shape", Ellipsoid((1, 1, 1))), TypeError, "use Polygon"),
    "plane": (call("add_shape", Plane()), TypeError, "this scene is planar: use HalfPlane"),
    "heightfield": (call("add_shape", Heightfield(np.eye(2), (1, 1))), TypeError, "use Polygons"),
    "ground": (call("add_ground", angle=(1, 2)), ValueError, "HalfPlane angle must be one number"),
    "site": (call("add_site", body="a", pos=(0, 0, 0)), ValueError, "pos must be 2 numbers in a planar scene"),
    "site quat": (call("add_site", body="a", quat=(1, 0, 0, 0)), ValueError, "quat has no place in a planar scene"),
    "hinge axis": (call("add_hinge", "a", "b", axis=(0, 0, 1)), ValueError, "axis of a hinge is z in a planar scene"),
    "slide axis": (call("add_slide", "a", "b", axis=(0, 0, 1)), ValueError, "axis must be 2 numbers in a planar scene"),
    "slide zero": (call("add_slide", "a", "b", axis=(0, 0)), ValueError, "axis must not be zero"),
    "weld quat": (call("add_weld", "a", "b", quat_b=(1, 0, 0, 0)), ValueError, "quat_b has no place", "give angle_b"),
    "point pos": (call("add_point", "a", "b", pos=(0, 0, 0)), ValueError, "add_point('point0'): pos must be 2 numbers"),
    "point pos_b": (call("add_point", "a", "b", pos_b=(0, 0, 0)), ValueError, "pos_b must be 2 numbers"),
    "lock z": (call("add_lock", "a", "b", z=True), ValueError, "z has no place in a planar scene, choose from x, y, rotation"),
    "lock rz": (call("add_lock", "a", "b", x=True, rz=True), ValueError, "rz has no place in a planar scene"),
    "lock none": (call("add_lock", "a", "b"), ValueError, "choose at least one of x, y, rotation"),
    "hinge limits": (call("add_hinge", "a", "b", limits=(-1, 1)), NotImplementedError, "Revolute(limits=...)", "(-1.0, 1.0)"),
    "slide limits": (call("add_slide", "a", "b", limits=(-1, 1)), NotImplementedError, "Prismatic(limits=...)"),
    "drive a point": (lambda s: s.add_motor(s.add_point("a", "b")), ValueError, "which is a point constraint"),
}  # fmt: skip

# of a scene in space
SPACE = {
    "circle": (call("add_body", "c", shapes=Circle(1)), TypeError, "Circle is a shape of planar scenes", "use Sphere"),
    "rectangle": (call("add_shape", Rectangle((1, 1))), TypeError, "use Box"),
    "polygon": (call("add_shape", Polygon(TRIANGLE)), TypeError, "use Hull"),
    "half plane": (call("add_shape", HalfPlane()), TypeError, "use Plane"),
    "angle": (call("add_body", angle=1.0, mass=1.0, inertia=(1, 1, 1)), ValueError, "angle is for planar scenes, here give quat"),
    "ground": (call("add_ground", angle=0.1), ValueError, "add_ground: angle is for planar scenes"),
    "pos": (call("add_body", pos=(0, 1), mass=1.0, inertia=(1, 1, 1)), ValueError, "pos must be 3 numbers"),
    "weld angle": (call("add_weld", "a", "b", angle=1.0), ValueError, "angle is for planar scenes, here give quat"),
    "weld angle_b": (call("add_weld", "a", "b", angle_b=1.0), ValueError, "angle_b is for planar scenes, here give quat_b"),
    "rotation": (call("add_lock", "a", "b", rotation=True), ValueError, "rotation has no place in a scene in space"),
    "limits": (call("add_hinge", "a", "b", limits=(-1, 1)), NotImplementedError, "constraints have no limits"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*FLAT.values(), *SPACE.values()], ids=[*FLAT, *(f"space: {name}" for name in SPACE)])
def test_mistakes_are_named(case):
    wrong, error, *words = case
    scene = two()
    if case in SPACE.values():
        scene = Scene()
        for name in "ab":
            scene.add_body(name, joint=Free(), shapes=Sphere(0.1))
    before = repr(scene)
    with pytest.raises(error) as caught:
        wrong(scene)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"
    if "point constraint" not in words[0]:
        assert repr(scene) == before  # nothing was added


def test_bad_scenes():
    with pytest.raises(ValueError, match="gravity must be 2 numbers in a planar scene"):
        Scene(planar=True, gravity=(0, 0, -9.81))
    with pytest.raises(ValueError, match="gravity must be 3 numbers"):
        Scene(gravity=(0, -9.81))
    with pytest.raises(TypeError, match="planar must be True or False, got 2"):
        Scene(planar=2)
