"""Shapes that touch: which pairs may, the rows of their fields, and the graph of what they were given."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from costate.scene import Ball, Box, Capsule, Cylinder, Fixed, Free, Plane, Revolute, Scene, Sphere

BALL, ROD, BOX = Sphere(0.1), Capsule(0.05, 0.2), Box((0.1, 0.2, 0.3))


def touching(scene: Scene) -> set[frozenset[str]]:
    """The candidate pairs, by name."""
    model = scene.build()
    found = [tuple(pair) for pair in model.pairs.tolist()]
    assert all(a < b for a, b in found) and len(set(found)) == len(found)
    return {frozenset((model.shape_names[a], model.shape_names[b])) for a, b in found}


def pairs(*names: str) -> set[frozenset[str]]:
    """pairs("a b", "a c"): what `touching` gives, a for a/0."""
    full = [[name if "/" in name or name == "ground" else f"{name}/0" for name in pair.split()] for pair in names]
    return {frozenset(pair) for pair in full}


def snake(**options) -> Scene:
    """Free body a, b on a, c on b, each a sphere."""
    scene = Scene(**options)
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", parent="a", joint=Revolute(), shapes=BALL)
    scene.add_body("c", parent="b", joint=Ball(), shapes=BALL)
    return scene


# ---- which pairs ---------------------------------------------------------------------------------------------------
def test_parents_and_children_do_not_touch():
    assert touching(snake()) == pairs("a c")


def test_everything_that_moves_touches_the_ground():
    scene = snake()
    assert scene.add_ground() == "ground"
    assert touching(scene) == pairs("a c", "a ground", "b ground", "c ground")


def test_order_of_creation_does_not_matter():
    found = []
    for order in itertools.permutations(range(4)):
        scene = Scene()
        adds = [
            lambda s: s.add_body("ball", joint=Free(), shapes=Sphere(0.1, mask=5)),
            lambda s: s.add_body("rod", joint=Free(), shapes=Capsule(0.1, 0.2, mask=5)),
            lambda s: s.add_body("box", joint=Free(), shapes=Box((1, 1, 1), group=2, mask=4)),
            lambda s: s.add_shape(Plane(group=4, name="ground")),
        ]
        for i in order:
            adds[i](scene)
        found.append(touching(scene))
    assert all(other == found[0] for other in found)
    assert found[0] == pairs("ball rod", "ball ground", "rod ground", "box ground")


def test_welded_bodies_count_as_one():
    scene = snake()
    scene.add_body("a2", parent="a", joint=Fixed(), shapes=BALL)  # part of a: not against a and b, but against c
    scene.add_body("c2", parent="c", joint=Fixed(), shapes=BALL)  # part of c
    scene.add_body("c3", parent="c2", joint=Revolute(), shapes=BALL)  # a child of c as of c2
    assert touching(scene) == pairs("a c", "a c2", "a c3", "a2 c", "a2 c2", "a2 c3", "b c3")


def test_what_stands_still_touches_only_what_moves():
    scene = Scene()
    scene.add_ground()
    scene.add_body("table", shapes=BALL)
    scene.add_body("lamp", parent="table", pos=(0, 0, 1), shapes=BALL)
    scene.add_body("arm", parent="lamp", joint=Revolute(), shapes=BALL)  # its parent stands still: it is touched, as in MuJoCo
    scene.add_body("hand", parent="arm", joint=Revolute(), shapes=BALL)
    still, moving = ("table", "lamp", "ground"), ("arm", "hand")
    assert touching(scene) == pairs(*(f"{a} {b}" for a in still for b in moving))


def test_shapes_of_one_body_do_not_touch():
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=[BALL, ROD])
    scene.add_body("b", joint=Free(), shapes=[BALL, ROD])
    assert touching(scene) == pairs("a/0 b/0", "a/0 b/1", "a/1 b/0", "a/1 b/1")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({}, {}, True),
        ({"collide": False}, {}, False),
        ({"group": 2}, {}, True),
        ({"group": 2, "mask": 1}, {"group": 4, "mask": 1}, False),
        ({"group": 2, "mask": 0}, {"group": 4, "mask": 2}, True),  # one side is enough
        ({"group": 4, "mask": 2}, {"group": 2, "mask": 0}, True),
        ({"group": 0}, {"group": 0}, False),
        ({"mask": ~2}, {"group": 2, "mask": ~1}, False),
        ({"group": 1 << 31, "mask": 0}, {}, True),
    ],
)
def test_groups(a, b, expected):
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=Sphere(0.1, **a))
    scene.add_body("b", joint=Free(), shapes=Sphere(0.1, **b))
    assert touching(scene) == (pairs("a b") if expected else set())


def test_groups_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 4, (6, 2)).tolist()
    scene, xml = Scene(), ""
    for i, (group, mask) in enumerate(bits):
        scene.add_body(f"b{i}", joint=Free(), shapes=Sphere(1.0, group=group, mask=mask))
        xml += f'<body><freejoint/><geom name="b{i}/0" size="1" contype="{group}" conaffinity="{mask}"/></body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)  # all in one place: each pair that may touch does
    assert touching(scene) == {frozenset((model.geom(c.geom1).name, model.geom(c.geom2).name)) for c in data.contact}


def test_welds_and_parents_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(1)
    for _ in range(20):
        scene, spec = Scene(), mujoco.MjSpec()
        bodies = [spec.worldbody]
        spec.worldbody.add_geom(name="world/0", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1, 0, 0])
        scene.add_shape(Sphere(1.0))
        for i in range(8):
            parent, moves = int(rng.integers(-1, i)), bool(rng.integers(2))
            scene.add_body(f"b{i}", parent=parent, joint=Revolute() if moves else Fixed(), shapes=Sphere(1.0))
            bodies.append(bodies[parent + 1].add_body(name=f"b{i}"))
            bodies[-1].add_geom(name=f"b{i}/0", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1, 0, 0])
            if moves:
                bodies[-1].add_joint(type=mujoco.mjtJoint.mjJNT_HINGE)
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        assert touching(scene) == {frozenset((model.geom(c.geom1).name, model.geom(c.geom2).name)) for c in data.contact}


def test_self_collision_off_keeps_pairs_of_different_trees():
    scene = snake(self_collision=False)
    scene.add_ground()
    scene.add_body("d", joint=Free(), shapes=BALL)
    assert touching(scene) == pairs("a d", "b d", "c d", "a ground", "b ground", "c ground", "d ground")


def test_collisions_off():
    scene = snake(collisions=False)
    scene.add_ground()
    scene.add_body("d", joint=Free(), shapes=[BOX, Cylinder(0.1, 0.2)])
    model = scene.build()
    assert model.pairs.shape == (0, 2) and model.shape_names == model.shape_body == ()
    assert all(model.field_shapes[name][0] == 0 for name in ("shape_pos", "shape_size", "friction"))
    assert model.shapes[0] == (BALL,) and isinstance(model.world_shapes[0], Plane)


def test_exclude_bodies_and_shapes():
    scene = snake()
    scene.add_ground()
    scene.exclude("c", "a")
    scene.exclude("world", "b")
    scene.exclude("ground", "c/0")
    scene.add_shape(BALL, body="c")  # later shapes of an excluded body are excluded too; of an excluded shape's body not
    assert touching(scene) == pairs("a ground", "c/1 ground")


def test_exclude_a_body_and_a_shape():
    scene = snake()
    wall = scene.add_shape(Plane(name="wall"))
    scene.add_ground()
    scene.exclude(wall, "a")
    scene.exclude("a", "c")
    assert touching(scene) == pairs("a ground", "b ground", "c ground") | {frozenset(("wall", f"{x}/0")) for x in "bc"}


def test_planes_do_not_touch_each_other():
    scene = Scene()
    scene.add_ground()
    scene.add_shape(Plane(quat=(1, 0, 1, 0)))
    scene.add_body("wall", mass=1, inertia=(1, 1, 1), shapes=Plane())
    scene.add_body("a", joint=Free(), shapes=BALL)
    assert touching(scene) == pairs("ground a", "world/1 a", "wall a")


# ---- fields --------------------------------------------------------------------------------------------------------
def test_rows_of_the_fields():
    scene = Scene(friction_rule="maximum", restitution_rule="product", max_contacts=7)
    scene.add_ground(0.5, friction=0.3, restitution=0.2, softness=1e-4)
    scene.add_body("a", joint=Free(), shapes=[Sphere(0.2, pos=(1, 2, 3), friction=0.7), Cylinder(1, 1, collide=False)])
    scene.add_body("b", parent="a", joint=Revolute(), shapes=Capsule(0.1, 0.4, quat=(0, 2, 0, 0), restitution=1))
    scene.add_shape(Box((1, 2, 3), mask=2, name="foot"), body="b")
    scene.exclude("foot", "a")
    model = scene.build()
    d = model.defaults
    assert model.shape_names == ("ground", "a/0", "b/0", "foot")
    assert model.shape_body == (-1, 0, 1, 1) and model.shape_type == (0, 1, 2, 3)
    assert model.pairs.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert (model.friction_rule, model.restitution_rule, model.max_contacts) == (1, 4, 7)
    assert d["shape_size"].tolist() == [[0, 0, 0], [0.2, 0, 0], [0.1, 0.4, 0], [1, 2, 3]]
    assert d["shape_pos"].tolist() == [[0, 0, 0.5], [1, 2, 3], [0, 0, 0], [0, 0, 0]]
    assert d["shape_quat"].tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0]]
    assert d["friction"].tolist() == [0.3, 0.7, 1, 1]
    assert d["restitution"].tolist() == [0.2, 0, 1, 0]
    assert d["softness"].tolist() == [1e-4, 0, 0, 0]
    assert model.shape("foot") == 3 and len(model.shapes[0]) == 2 and len(model.shapes[1]) == 2
    assert model.summary().splitlines()[-1] == "4 shapes in 3 pairs that may touch"
    with pytest.raises(KeyError, match="no shape that may touch another is named 'a/1'"):
        model.shape("a/1")


def test_only_shapes_in_a_pair_have_rows():
    scene = snake()
    model = scene.build()
    assert model.shape_names == ("a/0", "c/0") and model.pairs.tolist() == [[0, 1]] and model.shape_body == (0, 2)
    assert model.defaults["friction"].shape == (2,)


def test_defaults_of_the_scene():
    model = snake().build()
    assert (model.friction_rule, model.restitution_rule, model.max_contacts) == (0, 0, -1)


def test_names():
    scene = Scene()
    scene.add_body("a", joint=Free(), shapes=[BALL, Sphere(0.1, name="nose"), BALL])
    assert scene.add_shape(BALL, body="a") == "a/3"
    assert scene.add_shape(BALL, body=0, name="tail") == "tail"
    assert scene.add_shape(BALL) == "world/0"
    assert scene.add_shape(Sphere(0.1, name="x"), name="y") == "y"
    assert (scene.add_ground(), scene.add_ground(), scene.add_ground(name="sea")) == ("ground", "ground_1", "sea")
    assert set(scene.build().shape_names) == {"a/0", "nose", "a/2", "a/3", "tail", "world/0", "y", "ground", "ground_1", "sea"}


def test_added_shapes_have_no_mass():
    scene = Scene()
    scene.add_body("frame", joint=Revolute(), massless=True)
    scene.add_body("a", parent="frame", joint=Revolute((1, 0, 0)), shapes=BALL)
    before = scene.build().defaults
    scene.add_shape(Sphere(0.5), body="a")
    scene.add_shape(Sphere(0.5), body="frame")
    scene.add_ground()
    after = scene.build().defaults
    assert all(torch.equal(before[name], after[name]) for name in ("mass", "com", "inertia"))


def test_a_plane_adds_no_mass():
    scene = Scene()
    scene.add_body("a", shapes=[Plane(pos=(0, 0, 5)), BALL])
    alone = Scene()
    alone.add_body("a", shapes=BALL)
    ours, theirs = scene.build().defaults, alone.build().defaults
    for name in ("mass", "com", "inertia"):
        torch.testing.assert_close(ours[name], theirs[name])


def test_topology_tells_structures_apart():
    base = snake().build()
    ground, hard, few = snake(), snake(friction_rule="minimum"), snake(max_contacts=3)
    ground.add_ground()
    assert snake().build().topology == base.topology
    assert len({model.topology for model in (base, ground.build(), hard.build(), few.build())}) == 4


def test_pickle_and_equality():
    scene = snake(restitution_rule="arithmetic")
    scene.add_ground()
    model = scene.build()
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model == scene.build() and hash(copy) == hash(model) and not copy.pairs.flags.writeable
    scene.exclude("ground", "a")
    other = scene.build()
    assert other != model and other.shape_names == model.shape_names and other.topology != model.topology


def test_the_engine_is_told(monkeypatch):
    from costate._native import cpu

    told = {}
    fake = SimpleNamespace(Tree=lambda *args, **options: told.update(options) or SimpleNamespace(params_size=0, equality_rows=0))
    monkeypatch.setattr(cpu, "_core", fake)
    scene = snake(friction_rule="minimum", restitution_rule="product", max_contacts=5)
    scene.add_ground()
    scene.add_body("d", parent="c", joint=Revolute(limits=(0, 1), friction=0.1), massless=True)
    scene.add_body("e", parent="d", shapes=Sphere(0.1, collide=False))
    scene.add_motor("b")
    scene.add_position("b", kp=1.0, control_limits=1.0)
    scene.add_velocity("b", kd=1.0, force_limits=1.0)
    cpu.Engine(scene.build())
    assert told == {
        "actuator_type": [0, 1, 2], "clip": [-1, 0, -1], "bound": [-1, -1, 0], "limit_body": [3], "limit_dof": [10],
        "dry_dof": [10], "shape_body": [0, 1, 2, -1], "shape_type": [1, 1, 1, 0], "pair_a": [0, 0, 1, 2],
        "pair_b": [2, 3, 3, 3], "hull_vertices": [], "hull_faces": [], "hull_loop_size": [], "hull_loop": [], "hull_plane": [],
        "field_nx": [], "field_ny": [], "large": -1, "friction_rule": 2, "restitution_rule": 4, "max_contacts": 5,
        "tie_a": [], "tie_b": [], "tie_axis": [], "tie_first": [0], "lock": [], "coupling_dof1": [], "coupling_dof2": [],
        "motor_tie": [-1, -1, -1], "planar": False, "shape_condim": [3, 3, 3, 3], "one_group": -1,
    }  # fmt: skip


def test_failed_add_leaves_no_trace():
    scene = Scene()
    with pytest.raises(ValueError):
        scene.add_body("a", joint=Free(), shapes=[Sphere(0.1, name="x"), Sphere(0.1, friction=-1)])
    with pytest.raises(ValueError):
        scene.add_body("a", joint=Free(damping=-1), shapes=Sphere(0.1, name="x"))
    with pytest.raises(ValueError):
        scene.add_ground(friction=-1)
    assert scene.add_shape(Sphere(0.1, name="x")) == "x" and scene.add_ground() == "ground"


# ---- graph ---------------------------------------------------------------------------------------------------------
def test_params_keep_the_graph():
    """A radius that changes mass, inertia and contact size at once, and every other number of a shape."""

    def theta(radius, length, height, friction, restitution, softness, offset):
        surface = {"friction": friction, "restitution": restitution, "softness": softness}
        scene = Scene()
        scene.add_ground(height, **surface)
        scene.add_body("a", joint=Free(), shapes=Sphere(radius, pos=(0, offset, 0), **surface))
        scene.add_body("b", joint=Free(), shapes=Capsule(radius, length, quat=(1, offset, 0, 0), friction=friction**2))
        scene.add_body("c", joint=Free(), shapes=Box((radius, length, 1.0), mask=0, group=2))
        scene.exclude("a", "c")
        scene.exclude("b", "c")
        return scene.params().flat()

    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.2, 0.5, 0.1, 0.8, 0.3, 1e-3, 0.4)]
    assert torch.autograd.gradcheck(theta, inputs)
    jacobian = torch.autograd.functional.jacobian(theta, tuple(inputs))
    assert all(column.count_nonzero() >= 1 for column in jacobian)


def test_build_is_detached():
    radius = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    scene = Scene()
    scene.add_ground(radius)
    scene.add_body("a", joint=Free(), shapes=Sphere(radius, friction=radius, name="nose", collide=True, group=3))
    model, params = scene.build(), scene.params()
    assert not any(tensor.requires_grad for tensor in model.defaults.values())
    assert params["shape_size"].requires_grad and params["friction"].requires_grad
    assert model.shapes == ((Sphere(0.2, friction=0.2, name="nose", group=3),),)
    params["shape_size"].sum().backward()
    assert radius.grad == 1.0
