"""Gradients of planar motion against closed forms, those that other engines are known to get wrong first."""

import math

import pytest
import torch

import costate as cs
from tests.gradients.test_contact_known_cases import CLOSED, gradients, start

G = 9.81
MODES = pytest.mark.parametrize("gradient", ["implicit", "exact"])
SIZE = {"box": (cs.Rectangle((0.1, 0.05), density=100.0, friction=0.3), 0.05), "ball": (cs.Circle(0.1, density=100.0), 0.1)}


def on_slope(shape, above, *, angle=0.0, mu=1.0, e=0.0, **options):
    """On a half plane that falls along x by `angle`; friction and restitution are those of the shape."""
    scene = cs.Scene(planar=True, friction_rule="product", restitution_rule="product", **options)
    scene.add_shape(cs.HalfPlane(angle=-angle, friction=mu, restitution=e), name="slope")
    at = (above * math.sin(angle), above * math.cos(angle))
    scene.add_body("body", pos=at, angle=-angle, shapes=shape)
    return scene


# ---- 1: sliding -----------------------------------------------------------------------------------------------------
@MODES
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_sliding_block(gradient, direction):
    """x(T) = v0 T - mu g T^2 / 2, in steps mu g h^2 n (n + 1) / 2: dx/dmu = -g T^2 / 2 and dx/dm = 0, to the left and right."""
    h, n, mu, v0 = 0.005, 60, 0.3, 3.0
    model = on_slope(cs.Rectangle((0.1, 0.05), density=100.0, friction=mu), 0.05).build()
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    state = start(sim, body=(direction * v0, 0))
    x = sim.rollout(state, params=params, steps=n).q[-1, 0] * direction
    assert x.item() == pytest.approx(v0 * n * h - mu * G * h * h * n * (n + 1) / 2, rel=CLOSED)
    grads = gradients(x, {**params, "q": state.q, "v": state.v})
    true = -G * (n * h) ** 2 / 2
    assert grads["friction"][model.shape("body/0")].item() == pytest.approx(true * (1 + 1 / n), rel=CLOSED)
    assert grads["friction"][model.shape("slope")].item() == pytest.approx(mu * true * (1 + 1 / n), rel=CLOSED)
    for name in ("mass", "inertia", "restitution"):
        assert grads[name].abs().max() < CLOSED, name
    assert direction * grads["v"][0].item() == pytest.approx(n * h, rel=CLOSED)
    assert direction * grads["q"][0].item() == pytest.approx(1, rel=CLOSED)
    assert grads["gravity"][1].item() == pytest.approx(-mu * true / G * (1 + 1 / n), rel=CLOSED)


@MODES
def test_a_block_that_slides_down_a_slope(gradient):
    """s(T) = g (sin - mu cos) T^2 / 2 along it: by friction, by the slope's angle, by gravity; the mass does not matter."""
    h, n, mu, angle = 0.005, 80, 0.2, 0.5
    model = on_slope(cs.Rectangle((0.1, 0.05), density=100.0, friction=mu), 0.05, angle=angle).build()
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    downhill = torch.tensor([math.cos(angle), -math.sin(angle)], dtype=torch.float64)
    s = (sim.rollout(sim.initial_state(), params=params, steps=n).q[-1, :2] - sim.initial_state().q[:2]) @ downhill
    half = h * h * n * (n + 1) / 2
    assert s.item() == pytest.approx(G * (math.sin(angle) - mu * math.cos(angle)) * half, rel=CLOSED)
    grads = gradients(s, params)
    assert grads["friction"][model.shape("body/0")].item() == pytest.approx(-G * math.cos(angle) * half, rel=CLOSED)
    assert grads["gravity"][0].item() == pytest.approx((math.cos(angle) + mu * math.sin(angle)) * half, rel=CLOSED)
    assert grads["gravity"][1].item() == pytest.approx(-(math.sin(angle) - mu * math.cos(angle)) * half, rel=CLOSED)
    assert grads["mass"].abs().max() < CLOSED


@MODES
def test_a_block_that_sticks(gradient):
    """On a slope below the friction angle: a shove up to what friction holds moves nothing, friction and mass move nothing."""
    model = on_slope(cs.Rectangle((0.1, 0.05), density=100.0, friction=0.8), 0.05, angle=0.3).build()
    sim, params = cs.Simulator(model, 0.005, gradient=gradient), model.params(requires_grad=True)
    external = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    traj = sim.rollout(sim.initial_state(), params=params, steps=40, external=external)
    grads = gradients(traj.q[-1, 0] - 0.7 * traj.q[-1, 1], {**params, "external": external})
    for name in ("friction", "mass", "gravity", "external", "inertia"):
        assert grads[name].abs().max() < 1e-6, (name, grads[name])


# ---- rolling --------------------------------------------------------------------------------------------------------
@MODES
def test_a_circle_that_rolls_down_a_slope(gradient):
    """a = g sin / (1 + I / m r^2) with I as given: 2/3 g sin; by mass, inertia, radius and gravity. Friction does not matter."""
    h, n, angle, r, m = 0.005, 80, 0.4, 0.1, 2.0
    scene = cs.Scene(planar=True)
    scene.add_shape(cs.HalfPlane(angle=-angle))
    at = (r * math.sin(angle), r * math.cos(angle))
    scene.add_body("body", pos=at, shapes=cs.Circle(r, mass=m), mass=m, inertia=m * r * r / 2, com=(0, 0))
    model = scene.build()
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    downhill = torch.tensor([math.cos(angle), -math.sin(angle)], dtype=torch.float64)
    s = (sim.rollout(sim.initial_state(), params=params, steps=n).q[-1, :2] - sim.initial_state().q[:2]) @ downhill
    half, k = h * h * n * (n + 1) / 2, 0.5  # k = I / m r^2
    assert s.item() == pytest.approx(2 / 3 * G * math.sin(angle) * half, rel=CLOSED)
    grads = gradients(s, params)
    slope = -G * math.sin(angle) / (1 + k) ** 2 * half  # by k
    assert grads["mass"].item() == pytest.approx(-slope * k / m, rel=1e-6)
    assert grads["inertia"][0, 2].item() == pytest.approx(slope / (m * r * r), rel=1e-6)
    assert grads["gravity"][0].item() == pytest.approx(math.cos(angle) * half * 2 / 3, rel=1e-6)
    assert grads["friction"].abs().max() < 1e-6


@MODES
def test_the_spin_of_a_circle_that_begins_to_roll(gradient):
    """It slips until it rolls, at a third of the speed that its rim had, or two thirds of the one that it had itself."""
    h, n, r = 0.005, 100, 0.1
    model = on_slope(cs.Circle(r, mass=1.0, friction=0.5), r).build()
    sim = cs.Simulator(model, h, gradient=gradient)
    state = start(sim, body=(0.0, 0.0, -6.0))
    v = sim.rollout(state, steps=n).v[-1]
    assert v[0].item() == pytest.approx(6.0 * r / 3, rel=CLOSED)
    grads = gradients(v[0], {"v": state.v})
    assert grads["v"][2].item() == pytest.approx(-r / 3, rel=CLOSED)
    assert grads["v"][0].item() == pytest.approx(2 / 3, rel=CLOSED)


# ---- hits -----------------------------------------------------------------------------------------------------------
@MODES
@pytest.mark.parametrize("shape", ["box", "ball"])
def test_restitution(gradient, shape):
    """v+ = -e v at the hit, then a flight: dy/de = -v T, by each shape's share."""
    made, above = SIZE[shape]
    scene = cs.Scene(planar=True)
    scene.add_ground(restitution=0.9)
    half = {"half": (0.1, 0.05)} if shape == "box" else {"radius": 0.1}
    scene.add_body("body", pos=(0, above), shapes=type(made)(**half, density=100.0, restitution=0.4))
    model, h, n, v = scene.build(), 0.002, 50, -2.0
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    state = start(sim, body=(0, v))
    traj = sim.rollout(state, params=params, steps=n)
    e = math.sqrt(0.9 * 0.4)
    assert traj.v[1, 1].item() == pytest.approx(-e * v, rel=CLOSED)
    grads = gradients(traj.q[-1, 1], {**params, "v": state.v})
    assert grads["restitution"][model.shape("ground")].item() == pytest.approx(-v * n * h * e / (2 * 0.9), rel=CLOSED)
    assert grads["restitution"][model.shape("body/0")].item() == pytest.approx(-v * n * h * e / (2 * 0.4), rel=CLOSED)
    assert grads["v"][1].item() == pytest.approx(-e * n * h, rel=CLOSED)
    assert grads["mass"].abs().max() < CLOSED


@MODES
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_two_contacts_that_share_a_body(gradient, e):
    """Circle a hits b, which leans on c:  v_b = v_c = m_a v (1 + e) / M,  v_a = v_b - e v."""
    scene = cs.Scene(planar=True, gravity=(0, 0), restitution_rule="product")
    for name, x, mass in (("a", 0.0, 1.0), ("b", 0.2, 2.0), ("c", 0.4, 3.0)):
        shape = cs.Circle(0.1, mass=mass, friction=0.5, restitution=1.0 if name == "b" else max(e, 1e-3))
        scene.add_body(name, pos=(x, 0), shapes=shape)
    model, v, total = scene.build(), 1.5, 6.0
    sim = cs.Simulator(model, gradient=gradient)
    params = model.params(requires_grad=True).replace(restitution=torch.tensor([e, 1.0, e], dtype=torch.float64).requires_grad_())
    state = start(sim, a=(v, 0))
    after = sim.step(state, params=params)
    assert [after.v[k].item() for k in (0, 3, 6)] == pytest.approx(
        [v * (1 + e) / total - e * v, *[v * (1 + e) / total] * 2], rel=CLOSED
    )
    grads = gradients(after.v[6], {"mass": params["mass"], "restitution": params["restitution"], "v": state.v})
    by_mass = v * (1 + e) / total**2 * torch.tensor([5.0, -1.0, -1.0], dtype=torch.float64)
    torch.testing.assert_close(grads["mass"], by_mass, rtol=CLOSED, atol=CLOSED)
    by_restitution = v / total * torch.tensor([1.0, e, 0.0], dtype=torch.float64)
    torch.testing.assert_close(grads["restitution"], by_restitution, rtol=CLOSED, atol=CLOSED)
    assert grads["v"][0].item() == pytest.approx((1 + e) / total, rel=CLOSED)


@MODES
@pytest.mark.parametrize("mu", [0.03, 2.0], ids=["slides", "sticks"])
def test_momentum_of_an_oblique_hit(gradient, mu):
    """Linear and angular momentum pass unchanged, and so do their gradients; the speeds themselves depend on friction."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for name, x, mass in (("a", -0.1, 1.0), ("b", 0.1, 2.5)):
        shape = cs.Circle(0.1001, mass=mass, friction=mu, restitution=0.5)
        scene.add_body(name, pos=(x, 0.03 * x), shapes=shape)
    model = scene.build()
    sim, params = cs.Simulator(model, 1e-3, gradient=gradient), model.params(requires_grad=("friction", "restitution"))
    state = start(sim, a=(2.0, 0.7, 3.0), b=(-1.0, -0.3, -1.0))
    after = sim.step(state, params=params)
    for axis in (2, 3, 4):
        before, now = (cs.momentum(model, state.q.detach(), v)[axis] for v in (state.v, after.v))
        assert now.item() == pytest.approx(before.item(), abs=1e-12)
        grads = gradients(now, {"friction": params["friction"], "restitution": params["restitution"], "v": state.v})
        assert grads["friction"].abs().max() < 1e-12 and grads["restitution"].abs().max() < 1e-12
        torch.testing.assert_close(grads["v"], gradients(before, {"v": state.v})["v"], rtol=0, atol=1e-12)
    found = gradients(after.v[1], {"friction": params["friction"]})["friction"].abs().max()
    assert (found > 0.01) == (mu < 1)


# ---- shapes ---------------------------------------------------------------------------------------------------------
@MODES
def test_the_height_of_a_polygon_at_rest(gradient):
    """It stands on two corners: they move it up by as much as they go down, in proportion to how near they are to its origin;
    all others do nothing."""
    corners = [(-0.1, -0.05), (0.2, -0.05), (0.15, 0.1), (-0.05, 0.12)]
    scene = cs.Scene(planar=True)
    scene.add_ground()
    scene.add_body("stone", pos=(0, 0.05), shapes=cs.Polygon(corners), mass=2.0, inertia=0.1, com=(0.03, 0))
    model = scene.build()
    sim, params = cs.Simulator(model, 0.01, gradient=gradient), model.params(requires_grad=True)
    y = sim.rollout(sim.initial_state(), params=params, steps=300).q[-1, 1]
    grads = gradients(y, params)
    expected = torch.zeros(4, 3, dtype=torch.float64)
    expected[0, 1], expected[1, 1] = -0.2 / 0.3, -0.1 / 0.3  # a line through both, at x = 0
    torch.testing.assert_close(grads["hull_vertex"], expected, rtol=0, atol=1e-5)
    assert grads["mass"].abs().max() < 1e-6 and grads["friction"].abs().max() < 1e-6


@MODES
@pytest.mark.parametrize("kind", ["rectangle", "circle"])
def test_the_height_of_what_rests(gradient, kind):
    """By its half size, or radius: 1; by the height of the ground: 1."""
    scene = cs.Scene(planar=True)
    scene.add_ground(0.2)
    shape = cs.Rectangle((0.2, 0.05), density=100.0) if kind == "rectangle" else cs.Circle(0.05, density=100.0)
    scene.add_body("body", pos=(0, 0.25), shapes=shape)
    model = scene.build()
    sim, params = cs.Simulator(model, 0.01, gradient=gradient), model.params(requires_grad=True)
    grads = gradients(sim.rollout(sim.initial_state(), params=params, steps=200).q[-1, 1], params)
    size = torch.tensor([0.0, 1.0, 0.0] if kind == "rectangle" else [1.0, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(grads["shape_size"][1], size, rtol=0, atol=1e-6)
    assert grads["shape_pos"][0, 1].item() == pytest.approx(1, abs=1e-6)


# ---- constraints ----------------------------------------------------------------------------------------------------
def test_the_pivot_of_a_pendulum():
    """Moved by d, the whole motion is moved by d: gradients by the hinge's frame and the first state add up to one."""
    scene = cs.Scene(planar=True)
    scene.add_body("rod", pos=(0.5, 0), shapes=cs.Rectangle((0.5, 0.02), mass=1.0, collide=False))
    scene.add_hinge(None, "rod", pos=(0, 0))
    model = scene.build()
    sim, params = cs.Simulator(model, 0.005, project=2), model.params(requires_grad=True)
    state = start(sim)
    end = sim.rollout(state, params=params, steps=60).q[-1]
    for axis in range(2):
        grads = gradients(end[axis], {"tie": params["tie_pos"], "q": state.q})
        moved = grads["tie"][0, :2] + grads["q"][:2]
        torch.testing.assert_close(moved, torch.eye(2, dtype=torch.float64)[axis], rtol=0, atol=1e-9)
    assert grads["tie"][0, :2].abs().max() > 0.1


def test_standing_still_for_600_steps():
    """The costate of a stack at rest neither overflows nor becomes NaN."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.6)
    for k in range(5):
        scene.add_body(pos=(0, 0.05 + 0.1 * k), shapes=cs.Rectangle((0.1, 0.05), density=100.0, friction=0.6))
    model = scene.build()
    sim, params = cs.Simulator(model, 0.005), model.params(requires_grad=True)
    state = start(sim)
    traj = sim.rollout(state, params=params, steps=600)
    assert traj.v[-1].abs().max() < 1e-6
    grads = gradients(traj.q[-1].sum(), {**params, "q": state.q, "v": state.v})
    for name, grad in grads.items():
        assert torch.isfinite(grad).all() and grad.norm() < 1e4, name
    # each is as high as all half sizes below it, twice, and its own
    assert grads["shape_size"][1:, 1].tolist() == pytest.approx([9.0, 7.0, 5.0, 3.0, 1.0], abs=1e-5)


# ---- branches that are not taken ------------------------------------------------------------------------------------
def two_bodies(a, b, pos=(0, 0), angle=0.0):
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", shapes=a)
    scene.add_body("b", shapes=b, pos=pos, angle=angle)
    return scene, {}


DISC, SQUARE = cs.Circle(0.1, density=100.0), cs.Rectangle((0.1, 0.1), density=100.0)
DIAMOND = cs.Polygon([(0.1, 0), (0, 0.1), (-0.1, 0), (0, -0.1)], density=100.0)
ZEROS = {
    "at rest, touching exactly": lambda: (on_slope(DISC, 0.1), {}),
    "a square at rest": lambda: (on_slope(SQUARE, 0.1), {}),
    "on a corner": lambda: (on_slope(DIAMOND, 0.1), {}),
    "no gravity, touching exactly": lambda: two_bodies(DISC, DISC, (0.2, 0)),
    "slides without turning": lambda: (on_slope(DISC, 0.1), {"body": (1.0, 0, 0)}),
    "rolls: no slip": lambda: (on_slope(DISC, 0.1), {"body": (0.1, 0, -1.0)}),
    "hits with no slip": lambda: (on_slope(cs.Circle(0.1, restitution=0.5), 0.1, e=1.0), {"body": (0, -2.0, 0)}),
    "no friction, at rest": lambda: (on_slope(SQUARE, 0.1, mu=0.0), {}),
    "exactly at the margin": lambda: (on_slope(DISC, 0.11), {}),
    "circles coincide": lambda: two_bodies(DISC, DISC),
    "squares coincide": lambda: two_bodies(SQUARE, SQUARE),
    "polygons coincide": lambda: two_bodies(DIAMOND, DIAMOND),
    "a circle in the middle of a square": lambda: two_bodies(SQUARE, DISC),
    "a circle on a corner's diagonal": lambda: two_bodies(SQUARE, DISC, (0.17, 0.17)),
    "a circle on an edge's line": lambda: two_bodies(SQUARE, DISC, (0.2, 0.1)),
    "edge on edge, one along": lambda: two_bodies(SQUARE, SQUARE, (0.2, 0.0)),
    "edge on edge, half beside": lambda: two_bodies(SQUARE, SQUARE, (0.2, 0.1)),
    "corner on corner": lambda: two_bodies(SQUARE, SQUARE, (0.2, 0.2)),
    "corner on edge, upright": lambda: two_bodies(SQUARE, DIAMOND, (0.2, 0.0)),
    "corner on corner, crossed": lambda: two_bodies(DIAMOND, DIAMOND, (0.2, 0.0)),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("case", ZEROS)
def test_branches_not_taken(case, dtype):
    """Zero vectors, zero speeds and exact ties: every gradient is finite, in both modes."""
    scene, velocities = ZEROS[case]()
    model = scene.build()
    for gradient in ("implicit", "exact"):
        sim = cs.Simulator(model, gradient=gradient, dtype=dtype)
        q, v = (x.detach().to(dtype).requires_grad_() for x in start(cs.Simulator(model), **velocities))
        params, dt = model.params(requires_grad=True, dtype=dtype), torch.tensor(0.01, dtype=dtype, requires_grad=True)
        after, info = sim.step(cs.State(q, v), params=params, dt=dt, info=True)
        assert not info.diverged
        for name, y in (("q", after.q), ("v", after.v), ("impulse", info.contacts.impulse)):
            for field, grad in gradients(y.sum(), {"q": q, "v": v, "dt": dt, **params}).items():
                assert torch.isfinite(grad).all(), (gradient, name, field, grad)
