"""cs.project puts a mechanism together, cs.constraint_error tells how far it is off: values, batches, numpy, gradients."""

import math

import numpy as np
import pytest
import torch
from torch.func import jacrev, vmap

import costate as cs
from tests.api.linkages import APART, LINKS, contradicting, four_bar, model, random_state

CLOSED = {torch.float64: 1e-12, torch.float32: 1e-5}  # rad and m; of round-off
DTYPES = pytest.mark.parametrize("dtype", list(CLOSED), ids=["float64", "float32"])
MODEL = model("four-bar")
# The joints of the four-bar let nothing leave its plane: ends moved out of it would contradict them
IN_PLANE = {"four-bar": torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64), "zoo": torch.ones(3, dtype=torch.float64)}


def ends(q):
    """[..., 2, 2]: where in the plane the tips of coupler and rocker are, by the angles' own geometry."""
    first, second, third = q[..., 0], q[..., 0] + q[..., 1], q[..., 2]

    def along(angle, length):
        return length * torch.stack((angle.cos(), angle.sin()), -1)

    coupler = along(first, LINKS["crank"]) + along(second, LINKS["coupler"])
    return torch.stack((coupler, along(third, LINKS["rocker"]) + q.new_tensor((1.0, 0.0))), -2)


# ---- values ----------------------------------------------------------------------------------------------------------
def test_errors_of_a_four_bar():
    """In the axes of the coupler, whose z is the hinge's; rotations agree."""
    q = torch.tensor(MODEL.q0)
    found, (coupler, rocker) = cs.constraint_error(MODEL, q), ends(q)
    assert MODEL.equality_names == ("pin x", "pin y", "pin z", "pin rx", "pin ry")
    torch.testing.assert_close(found[:3].norm(), (rocker - coupler).norm(), rtol=1e-12, atol=0)
    assert found[:3].norm() > 5e-3 and found[2:].abs().max() < 1e-15


def test_every_kind_of_error():
    """Frames moved and turned against each other by hand; signs are those of b against a, along and about the axes of a."""
    scene = cs.Scene(collisions=False)
    for name in "ab":
        scene.add_body(name, joint=cs.Free(), shapes=cs.Sphere(0.1))
    at = {"pos": (0, 0, 0), "pos_b": (0, 0, 0)}
    turned = {**at, "quat_b": (1, 0, 0, 0)}
    scene.add_weld("a", "b", **turned)
    scene.add_distance("a", "b", **at, length=0.5)
    scene.add_lock("a", "b", rz=True, **turned)
    m = scene.build()
    q, angle, d = torch.tensor(m.q0), 0.3, (0.1, -0.2, 0.4)
    q[7:10], q[10:] = (
        torch.tensor(d, dtype=q.dtype),
        torch.tensor([math.cos(angle / 2), 0, 0, math.sin(angle / 2)], dtype=q.dtype),
    )
    expected = [*d, 0, 0, 2 * math.sin(angle / 2), math.hypot(*d) - 0.5, math.sin(angle)]
    torch.testing.assert_close(cs.constraint_error(m, q), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-15)


@DTYPES
def test_a_loop_given_roughly_is_closed(dtype):
    rough = torch.tensor(MODEL.q0, dtype=dtype)
    q = cs.project(MODEL, rough)
    assert q.dtype == dtype and cs.constraint_error(MODEL, q).abs().max() < CLOSED[dtype]
    coupler, rocker = ends(q)
    torch.testing.assert_close(coupler, rocker, rtol=0, atol=2 * CLOSED[dtype])
    assert 1e-3 < (q - rough).abs().max() < 0.05  # near where it was
    torch.testing.assert_close(cs.project(MODEL, q), q, rtol=0, atol=2 * CLOSED[dtype])  # and what is closed stays


def test_one_step_is_the_smallest_in_the_metric_of_the_mass_matrix():
    q = torch.tensor(MODEL.q0)
    J, phi, M = (
        jacrev(lambda q: cs.constraint_error(MODEL, q))(q)[:2],
        cs.constraint_error(MODEL, q)[:2],
        cs.mass_matrix(MODEL, q),
    )
    weighted = torch.linalg.solve(M, J.T)
    expected = q - weighted @ torch.linalg.solve(J @ weighted, phi)
    torch.testing.assert_close(cs.project(MODEL, q, iterations=1), expected, rtol=0, atol=1e-8)
    errors = [cs.constraint_error(MODEL, cs.project(MODEL, q, iterations=n)).abs().max() for n in (1, 2, 3)]
    assert errors[0] < 1e-3 and errors[1] < 1e-6 and errors[2] < 1e-12  # Newton's method


def test_redundant_constraints_are_harmless():
    scene = four_bar()
    for _ in range(2):
        scene.add_hinge("coupler", "rocker", axis=(0, -1, 0), pos=(0.9, 0, 0), pos_b=(0.6, 0, 0), quat_b=(1, 0, 0, 0))
    q = cs.project(scene.build(), torch.tensor(MODEL.q0))
    torch.testing.assert_close(q, cs.project(MODEL, torch.tensor(MODEL.q0)), rtol=0, atol=1e-9)


def test_contradicting_constraints_meet_in_the_middle():
    m = model("contradicting")
    q = cs.project(m, torch.tensor(m.q0), iterations=30)
    expected = torch.tensor([APART / 2, 0, 0, -APART / 2, 0, 0], dtype=torch.float64)
    assert q.isfinite().all()
    torch.testing.assert_close(cs.constraint_error(m, q), expected, rtol=0, atol=1e-6)


def test_soft_constraints_count_for_nothing():
    m = contradicting(softness=1e-3).build()
    q = torch.tensor(m.q0)
    q[0] = 0.03
    assert cs.project(m, q)[0].abs() < 1e-12 and abs(cs.constraint_error(m, q)[3] - (0.03 - APART)) < 1e-15
    soft = four_bar(softness=1e-4).build()
    assert torch.equal(cs.project(soft, torch.tensor(soft.q0)), torch.tensor(soft.q0))


def test_where_no_closure_exists_it_stays_finite():
    """A rocker too far away to be reached."""
    params = MODEL.params()
    far = params.replace(joint_pos=params["joint_pos"] + torch.tensor([[0, 0, 0], [0, 0, 0], [5, 0, 0]]))
    q = cs.project(MODEL, torch.tensor(MODEL.q0), far, iterations=50)
    assert q.isfinite().all() and cs.constraint_error(MODEL, q, far).norm() > 4


# ---- batches, numpy, arguments ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["four-bar", "zoo"])
def test_batches_and_parameters_per_world(name):
    m = model(name)
    q, params = random_state(m, torch.Generator().manual_seed(3), 5).q, m.params()
    moved = 0.003 * torch.rand(5, *params["tie_pos"].shape, dtype=torch.float64)
    frames = params["tie_pos"] + moved * IN_PLANE[name]
    own = params.replace(tie_pos=frames)
    new, error = cs.project(m, q, own), cs.constraint_error(m, q, own)
    assert new.shape == q.shape and error.shape == (5, m.ne)
    for w in range(5):
        one = params.replace(tie_pos=frames[w])
        assert torch.equal(cs.project(m, q[w], one), new[w]) and torch.equal(cs.constraint_error(m, q[w], one), error[w])
    assert cs.project(m, q[0], own).shape == (5, m.nq) and cs.constraint_error(m, q[0], own).shape == (5, m.ne)
    assert cs.project(m, q.expand(2, 5, -1), own).shape == (2, 5, m.nq)
    hard = [not row.startswith("lock") for row in m.equality_names]
    assert cs.constraint_error(m, new, own)[:, hard].abs().max() < 1e-10


def test_numpy():
    q = np.array(MODEL.q0)
    new, error = cs.project(MODEL, q), cs.constraint_error(MODEL, q)
    assert type(new) is type(error) is np.ndarray and new.shape == (3,) and error.shape == (5,)
    assert np.array_equal(new, cs.project(MODEL, torch.tensor(q)).numpy())
    assert np.array_equal(error, cs.constraint_error(MODEL, torch.tensor(q)).numpy()) and np.array_equal(q, MODEL.q0)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True, None])
def test_bad_iterations(iterations):
    with pytest.raises(ValueError, match="iterations must be a positive int, got"):
        cs.project(MODEL, torch.tensor(MODEL.q0), iterations=iterations)


@pytest.mark.parametrize("function", [cs.project, cs.constraint_error])
def test_bad_configurations(function):
    with pytest.raises(ValueError, match=r"q must be finite: q\[1\] is nan"):
        function(MODEL, torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64))
    with pytest.raises(ValueError, match=r"q must have shape \[\.\.\., 3\]"):
        function(MODEL, torch.zeros(4, dtype=torch.float64))
    with pytest.raises(TypeError, match="params"):
        function(MODEL, torch.zeros(3, dtype=torch.float64), {"mass": 1.0})


# ---- gradients -------------------------------------------------------------------------------------------------------
def test_the_gradient_of_a_closed_loop():
    """Of the rocker's angle by the crank's, with the law of cosines: the crank is held where it is by a large armature."""
    armature = MODEL.params().replace(armature=torch.tensor([1e9, 0, 0], dtype=torch.float64))

    def rocker(crank):
        q = torch.stack((crank, torch.full_like(crank, -0.6), torch.full_like(crank, 1.6)))
        return cs.project(MODEL, q, armature)[2]

    def closed_form(crank):
        a, b, c = LINKS.values()
        x, y = 1 - a * crank.cos(), -a * crank.sin()
        far = torch.hypot(x, y)
        return math.pi + torch.atan2(y, x) - torch.acos((far**2 + c**2 - b**2) / (2 * far * c))

    found, expected = ((f(x := torch.tensor(1.0).double().requires_grad_()), x) for f in (rocker, closed_form))
    torch.testing.assert_close(found[0], expected[0], rtol=1e-8, atol=0)
    for angle, _ in (found, expected):
        angle.backward()
    torch.testing.assert_close(found[1].grad, expected[1].grad, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["four-bar", "zoo"])
def test_gradients_against_differences(name):
    m = model(name)
    gen, params = torch.Generator().manual_seed(4), m.params()
    fields = {"four-bar": ("mass", "tie_pos", "joint_pos"), "zoo": ("mass", "tie_pos", "tie_quat", "tie_length", "coupling")}[
        name
    ]
    start = {"q": random_state(m, gen).q, **{field: params[field].clone() for field in fields}}
    weights = [torch.randn(n, generator=gen, dtype=torch.float64) for n in (m.nq, m.ne)]

    def f(x):
        own = params.replace(**{field: x[field] for field in fields})
        return cs.project(m, x["q"], own, iterations=3) @ weights[0] + cs.constraint_error(m, x["q"], own) @ weights[1]

    x = {key: value.clone().requires_grad_() for key, value in start.items()}
    bars = dict(zip(x, torch.autograd.grad(f(x), list(x.values())), strict=True))
    for field, bar in bars.items():
        d, h = torch.randn(bar.shape, generator=gen, dtype=torch.float64), 1e-6
        d = d * IN_PLANE[name] if field.endswith("_pos") else d
        ahead, behind = (f({**start, field: start[field] + s * h * d}) for s in (1, -1))
        torch.testing.assert_close((bar * d).sum(), (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7)


def test_vmap_and_jacobians():
    q = random_state(MODEL, torch.Generator().manual_seed(5), 4).q
    assert torch.equal(vmap(lambda q: cs.project(MODEL, q))(q), cs.project(MODEL, q))
    J = vmap(jacrev(lambda q: cs.constraint_error(MODEL, q)))(q)
    assert J.shape == (4, 5, 3) and torch.linalg.matrix_rank(J).tolist() == [2] * 4
