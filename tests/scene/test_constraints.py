"""Equality constraints: kinds, names and rows of the fields, the graph, which bodies may touch, the model built from them."""

import copy
import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from costate.scene import Ball, Fixed, Free, Model, Planar, Prismatic, Revolute, Scene, Sphere

BALL = Sphere(0.1)
COUPLED = ("coupling", "coupling_softness")
TIED = ("tie_pos", "tie_quat", "tie_length", "tie_softness")


def bodies(**options) -> Scene:
    """Free bodies a and b, b one metre above a; a cart on rails with an arm and a ball on its tip."""
    scene = Scene(**options)
    scene.add_body("a", joint=Free(), shapes=BALL)
    scene.add_body("b", joint=Free(), pos=(0, 0, 1), shapes=BALL)
    scene.add_body("cart", joint=Planar(), pos=(2, 0, 0), shapes=BALL)
    scene.add_body("arm", parent="cart", joint=Revolute(name="elbow"), shapes=BALL)
    scene.add_body("tip", parent="arm", joint=Ball(), pos=(0.5, 0, 0), shapes=BALL)
    return scene


def every_kind() -> Scene:
    scene = bodies()
    scene.add_point("a", "b")
    scene.add_weld("a", "tip", softness=0.25)
    scene.add_hinge("a", "b", name="door")
    scene.add_slide(None, "b", softness=0.5)
    scene.add_distance("a", "b", length=3.0)
    scene.add_lock("a", "arm", y=True, rx=True, rz=True)
    scene.add_coupling("elbow", "cart", other_dof=2, ratio=-2.0, offset=0.5, softness=0.125)
    scene.add_coupling("cart", dof=1, offset=4.0, name="rail")
    return scene


@pytest.fixture
def model() -> Model:
    return every_kind().build()


# ---- kinds ---------------------------------------------------------------------------------------------------------
def test_kinds_and_names(model):
    assert model.tie_names == ("point0", "weld0", "door", "slide0", "distance0", "lock0")
    assert model.coupling_names == ("coupling0", "rail")
    assert model.tie_a == (0, 0, 0, -1, 0, 0) and model.tie_b == (1, 4, 1, 1, 1, 3)
    assert model.tie_axis == (0, 0, 1, 2, 0, 0)
    assert model.tie_locks == ((0, 1, 2), (0, 1, 2, 4, 5, 6), (0, 1, 2, 8, 9), (0, 1, 4, 5, 6), (3,), (1, 7, 12))
    assert model.coupling_dof1 == (15, 13) and model.coupling_dof2 == (14, -1)
    assert model.ne == 3 + 6 + 5 + 5 + 1 + 3 + 2
    assert model.equality_names == (
        "point0 x", "point0 y", "point0 z", "weld0 x", "weld0 y", "weld0 z", "weld0 rx", "weld0 ry", "weld0 rz",
        "door x", "door y", "door z", "door rx", "door ry", "slide0 x", "slide0 y", "slide0 rx", "slide0 ry", "slide0 rz",
        "distance0", "lock0 y", "lock0 rx", "lock0 rz", "coupling0", "rail",
    )  # fmt: skip
    assert model.tie("door") == 2 and model.coupling("rail") == 1


def test_numbers_of_every_kind(model):
    d = model.defaults
    assert d["tie_length"].tolist() == [1, 1, 1, 1, 3, 1]
    assert d["tie_softness"].tolist() == [0, 0.25, 0, 0.5, 0, 0]
    assert d["coupling"].tolist() == [[0.5, -2, 0, 0, 0], [4, 0, 0, 0, 0]]
    assert d["coupling_softness"].tolist() == [0.125, 0]
    shapes = {"tie_pos": (12, 3), "tie_quat": (12, 4), "tie_length": (6,), "coupling": (2, 5), "coupling_softness": (2,)}
    assert {name: model.field_shapes[name] for name in shapes} == shapes
    assert all(d[name].shape == shape for name, shape in model.field_shapes.items())
    model.params().check()
    model.params(dtype=torch.float32).expand(3).check()


def error(lock: int, turn: np.ndarray) -> float:
    """The error of a lock if frame b is turned by the rotation matrix `turn` against frame a; small rotations in 4 to 6."""
    if lock < 3:
        return 0.0
    if lock < 7:
        return (turn - turn.T)[[2, 0, 1], [1, 2, 0]][lock - 4] / 2
    r, k = divmod(lock - 7, 2)
    n = (r + 1 + k) % 3
    (m,) = {0, 1, 2} - {r, n}
    return (1 - 2 * k) * turn[m, n]  # the axis m of a along the axis n of b


def turned(axis: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    turn = np.eye(3)
    turn[np.ix_(*[[(axis + 1) % 3, (axis + 2) % 3]] * 2)] = [[c, -s], [s, c]]
    return turn


@pytest.mark.parametrize("chosen", [c for c in itertools.product((False, True), repeat=6) if any(c)])
def test_locks_hold_what_was_chosen_and_leave_the_rest(chosen):
    words = ("x", "y", "z", "rx", "ry", "rz")
    scene = bodies()
    scene.add_lock("a", "b", **dict(zip(words, chosen, strict=True)))
    model = scene.build()
    locks, rotations = model.tie_locks[0], [r for r in range(3) if chosen[3 + r]]
    assert [name.removeprefix("lock0 ") for name in model.equality_names] == [w for w, c in zip(words, chosen) if c]
    turns = locks[len(locks) - len(rotations) :]
    rates = np.array([[error(lock, turned(r, 1e-6)) / 1e-6 for r in range(3)] for lock in turns])
    np.testing.assert_allclose(rates.reshape(-1, 3), np.eye(3)[rotations], atol=1e-5)
    if len(rotations) == 2:  # a full turn about the free axis is free
        free = 3 - sum(rotations)
        np.testing.assert_allclose([error(lock, turned(free, 2.0)) for lock in turns], 0, atol=1e-15)


def test_hinge_and_point_are_locks_too():
    scene = bodies()
    scene.add_lock("a", "b", x=True, y=True, z=True, rx=True, ry=True)
    scene.add_hinge("a", "b")
    scene.add_lock("a", "b", x=True, y=True, rx=True, ry=True, rz=True)
    scene.add_slide("a", "b")
    locks = scene.build().tie_locks
    assert locks[0] == locks[1] and locks[2] == locks[3]


@pytest.mark.parametrize("world", [None, "world", -1])
def test_bodies_by_name_or_index_and_the_world(world):
    scene = bodies()
    scene.add_point(world, 1)
    scene.add_point("b", world)
    model = scene.build()
    assert model.tie_a == (-1, 1) and model.tie_b == (1, -1)


def test_coefficients_of_couplings():
    scene = bodies()
    scene.add_coupling("elbow", "cart", coefficients=(1, 2, 3, 4, 5))
    scene.add_coupling("elbow", "cart", coefficients=[7])
    scene.add_coupling("arm", "a", other_dof=2, coefficients=torch.tensor([1.0, 2.0, 3.0]))
    scene.add_coupling("elbow", "cart")
    scene.add_coupling("elbow", "cart", offset=2)
    scene.add_coupling("elbow", coefficients=(0.25,))
    scene.add_coupling("elbow")
    scene.add_coupling("cart", "cart", dof=0, other_dof=1)
    model = scene.build()
    assert model.defaults["coupling"].tolist() == [
        [1, 2, 3, 4, 5], [7, 0, 0, 0, 0], [1, 2, 3, 0, 0], [0, 1, 0, 0, 0], [2, 1, 0, 0, 0], [0.25, 0, 0, 0, 0], [0] * 5,
        [0, 1, 0, 0, 0],
    ]  # fmt: skip
    assert model.coupling_dof1 == (15, 15, 15, 15, 15, 15, 15, 12)
    assert model.coupling_dof2 == (12, 12, 2, 12, 12, -1, -1, 13)


# ---- names ---------------------------------------------------------------------------------------------------------
def test_default_names_count_each_kind():
    scene = bodies()
    names = [
        scene.add_point("a", "b"),
        scene.add_weld("a", "b"),
        scene.add_point("a", "tip"),
        scene.add_point("a", "b", name="p"),
    ]
    assert names == ["point0", "weld0", "point1", "p"] and scene.add_point("b", "tip") == "point3"
    assert [scene.add_coupling("elbow", "cart") for _ in range(2)] == ["coupling0", "coupling1"]
    assert repr(scene) == "Scene(5 bodies, 0 sites, 0 motors, 7 constraints)"


def test_names_are_shared_with_joints():
    scene = bodies()
    scene.add_body("hinge0", parent="a", joint=Revolute(), shapes=BALL)
    assert scene.add_hinge("a", "b") == "hinge0_1"
    assert scene.add_body("hinge0_1", parent="a", joint=Revolute(), shapes=BALL) == "hinge0_1"
    model = scene.build()
    assert model.joint_names[-1] == "hinge0_1_1" and model.tie_names == ("hinge0_1",)


# ---- which bodies may touch ------------------------------------------------------------------------------------------
def touching(scene: Scene) -> set[tuple[str, str]]:
    model = scene.build()
    return {(model.shape_names[a], model.shape_names[b]) for a, b in model.pairs.tolist()}


@pytest.mark.parametrize("add", ["add_point", "add_weld", "add_hinge", "add_slide", "add_distance", "add_lock"])
@pytest.mark.parametrize("collide", [None, False, True])
def test_tied_bodies_touch_only_if_they_shall(add, collide):
    scene, free = bodies(), bodies()
    options = {} if collide is None else {"collide": collide}
    getattr(scene, add)("b", "a", **options, **({"x": True} if add == "add_lock" else {}))
    touch = add == "add_distance" if collide is None else collide
    assert touching(scene) == (touching(free) if touch else touching(free) - {("a/0", "b/0")})


def test_what_is_fixed_to_tied_bodies_does_not_touch_either():
    scene = bodies()
    scene.add_body("a2", parent="a", joint=Fixed(), shapes=BALL)
    scene.add_body("b2", parent="b", joint=Fixed(), massless=True)
    scene.add_point("a", "b2")
    found = touching(scene)
    assert not {("a/0", "b/0"), ("b/0", "a2/0")} & found and ("a/0", "cart/0") in found and ("cart/0", "a2/0") in found


def test_tied_to_what_stands_still():
    scene = bodies()
    scene.add_ground()
    scene.add_body("post", shapes=BALL)
    scene.add_body("wall", shapes=BALL)
    before = touching(scene)
    scene.add_point(None, "a")
    assert touching(scene) == before  # what hangs in the world still falls to the ground
    scene.add_point("post", "a")
    assert touching(scene) == before - {("a/0", "post/0")}  # and touches the wall


# ---- the model -----------------------------------------------------------------------------------------------------
def test_summary(model):
    lines = model.summary().splitlines()
    assert lines[0] == "Model(nb=5, nq=22, nv=19, nu=0, ns=0, ne=25)"
    start = next(i for i, line in enumerate(lines) if "constraint" in line)
    table = [line.split() for line in lines[start:]]
    assert table[:3] == [
        ["constraint", "kind", "a", "b", "rows"],
        ["0", "point0", "point", "a", "b", "3"],
        ["1", "weld0", "weld", "a", "tip", "6"],
    ]
    assert table[3:9] == [
        ["2", "door", "hinge", "a", "b", "5"],
        ["3", "slide0", "slide", "world", "b", "5"],
        ["4", "distance0", "distance", "a", "b", "1"],
        ["5", "lock0", "lock", "a", "arm", "3"],
        ["0", "coupling0", "coupling", "elbow", "cart[2]", "1"],
        ["1", "rail", "coupling", "cart[1]", "-", "1"],
    ]
    assert table[9] == [] and "pairs that may touch" in lines[-1]


@pytest.mark.parametrize("remake", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_pickle_and_equality(model, remake):
    again = remake(model)
    assert again == model == every_kind().build() and hash(again) == hash(model) and again.topology == model.topology
    other = every_kind()
    other.add_point("a", "tip")
    assert other.build() != model


def test_names_and_numbers_are_compared():
    def one(**options):
        scene = bodies()
        scene.add_point("a", "b", **options)
        return scene.build()

    assert one() != one(name="p") and one() != one(softness=1.0) and one() != one(pos=(0, 0, 1))
    assert one().topology == one(name="p", softness=1.0, pos=(0, 0, 1)).topology


def test_topology_tells_structures_apart():
    adds = [
        lambda s: None,
        lambda s: s.add_point("a", "b", collide=True),
        lambda s: s.add_point("b", "a", collide=True),
        lambda s: s.add_point("a", "tip", collide=True),
        lambda s: s.add_weld("a", "b", collide=True),
        lambda s: s.add_hinge("a", "b", collide=True),
        lambda s: s.add_lock("a", "b", x=True, y=True, z=True, rx=True, ry=True, collide=True),
        lambda s: s.add_lock("a", "b", x=True, collide=True),
        lambda s: s.add_coupling("elbow", "cart"),
        lambda s: s.add_coupling("elbow", "cart", other_dof=1),
        lambda s: s.add_coupling("cart", "elbow"),
        lambda s: s.add_coupling("elbow"),
    ]
    topologies = set()
    for add in adds:
        scene = bodies()
        add(scene)
        topologies.add(scene.build().topology)
    assert len(topologies) == len(adds)


def test_unknown_names_get_a_hint(model):
    with pytest.raises(KeyError, match="no tie named 'doors'; did you mean 'door'"):
        model.tie("doors")
    with pytest.raises(KeyError, match="no coupling named 'door'; there are: coupling0, rail"):
        model.coupling("door")


def test_scenes_without_any(model):
    plain = bodies().build()
    assert plain.ne == 0 and plain.equality_names == plain.tie_locks == plain.coupling_dof1 == ()
    assert all(plain.field_shapes[name][0] == 0 for name in (*TIED, *COUPLED))
    assert "constraint" not in plain.summary() and "ne=" not in repr(plain)


def test_the_engine_is_told(monkeypatch):
    from costate._native import cpu

    told = {}
    fake = SimpleNamespace(
        Tree=lambda *args, **options: told.update(options, motor_dof=args[2]) or SimpleNamespace(params_size=0, equality_rows=0)
    )
    monkeypatch.setattr(cpu, "_core", fake)
    scene = every_kind()
    scene.add_motor("door")
    scene.add_servo("elbow", gain=1, max_force=1, max_speed=1)
    cpu.Engine(scene.build())
    wanted = {
        "tie_a": [0, 0, 0, -1, 0, 0], "tie_b": [1, 4, 1, 1, 1, 3], "tie_axis": [0, 0, 1, 2, 0, 0],
        "tie_first": [0, 3, 9, 14, 19, 20, 23],
        "lock": [0, 1, 2, 0, 1, 2, 4, 5, 6, 0, 1, 2, 8, 9, 0, 1, 4, 5, 6, 3, 1, 7, 12],
        "coupling_dof1": [15, 13], "coupling_dof2": [14, -1], "motor_tie": [2, -1], "motor_dof": [-1, 15],
        "actuator_type": [0, 3], "bound": [-1, 0],
    }  # fmt: skip
    assert {name: told[name] for name in wanted} == wanted


# ---- parameters ----------------------------------------------------------------------------------------------------
def test_numbers_keep_their_graph():
    def theta(pos, pos_b, quat, quat_b, axis, length, softness, ratio, offset, curve):
        scene = bodies()
        scene.add_point("a", "b", pos=pos, softness=softness)
        scene.add_weld("a", "b", pos=pos, quat=quat, quat_b=quat_b)
        scene.add_hinge("a", "tip", axis=axis, pos_b=pos_b, quat=quat)
        scene.add_slide("a", "b", axis=-axis, softness=softness**2)
        scene.add_distance("a", "b", pos=pos, pos_b=pos_b)
        scene.add_distance("a", "b", length=length)
        scene.add_coupling("elbow", "cart", ratio=ratio, offset=offset, softness=softness)
        scene.add_coupling("elbow", "cart", coefficients=(0, offset, ratio, curve))
        params = scene.params()
        return tuple(params[name] for name in (*TIED, *COUPLED))

    generator = torch.Generator().manual_seed(1)
    vectors = [torch.randn(n, generator=generator, dtype=torch.float64, requires_grad=True) for n in (3, 3, 4, 4, 3)]
    numbers = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (2.0, 0.3, 1.5, -0.7, 0.2)]
    assert torch.autograd.gradcheck(theta, (*vectors, *numbers))
    rows = torch.autograd.functional.jacobian(lambda *x: torch.cat([t.flatten() for t in theta(*x)]), (*vectors, *numbers))
    assert all(column.any() for column in rows)


def test_build_is_detached():
    softness = torch.tensor(0.5, requires_grad=True)
    scene = bodies()
    scene.add_point("a", "b", softness=softness)
    assert scene.params()["tie_softness"].requires_grad and not scene.build().defaults["tie_softness"].requires_grad


def test_unconstrained():
    scene = every_kind()
    scene.add_coupling("elbow", "cart", coefficients=(1, 2, 3))
    params = scene.build().params()
    fields = (*TIED, *COUPLED)
    free = params.unconstrained(fields)
    assert {name: tuple(t.shape) for name, t in free.tensors.items()} == {
        "tie_pos": (12, 3), "tie_quat": (12, 4), "log_tie_length": (6,), "log_tie_softness": (2,), "coupling": (3, 5),
        "log_coupling_softness": (1,),
    }  # fmt: skip
    for name in fields:
        torch.testing.assert_close(free.params()[name].detach(), params[name], rtol=1e-14, atol=1e-14)
    with torch.no_grad():
        for name in ("log_tie_length", "log_tie_softness", "log_coupling_softness"):
            free.tensors[name].copy_(torch.linspace(-5, 5, free.tensors[name].numel()))
    moved = free.params()
    moved.check()
    assert not moved["tie_softness"][[0, 2, 4, 5]].any() and moved["tie_softness"][[1, 3]].min() > 0


def test_prismatic_and_free_coordinates_can_be_coupled():
    scene = Scene()
    scene.add_body("rod", joint=Prismatic(), shapes=BALL)
    scene.add_body("free", joint=Free(), shapes=BALL)
    scene.add_coupling("rod", "free", other_dof=2)
    assert scene.build().coupling_dof1 == (0,) and scene.build().coupling_dof2 == (3,)
