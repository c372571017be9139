"""Gradients through impacts="toi": closed forms of bounces, and central differences of shots with many hits at coarse steps."""

import math

import pytest
import torch

import costate as cs
from tests.gradients.impact_scenes import FLIGHTS, start
from tests.gradients.scenes import generator, normal

G = 9.81
MODES = pytest.mark.parametrize("gradient", ["implicit", "exact"])
SPACES = pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])
# Closed forms hold up to the softness that keeps rows solvable, 1e-9 of a row's own
CLOSED = 1e-7


def bouncing(planar: bool, gravity: float, e: float) -> cs.Scene:
    """A ball of 0.1 m, one metre above the ground."""
    scene = cs.Scene(planar=planar, gravity=(0, -gravity) if planar else (0, 0, -gravity), restitution_rule="product")
    scene.add_ground(restitution=1.0)
    if planar:
        scene.add_body("ball", pos=(0, 1.1), shapes=cs.Circle(0.1, mass=1.0, restitution=e))
    else:
        scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 1.1), shapes=cs.Sphere(0.1, mass=1.0, restitution=e))
    return scene


def fall(planar: bool, gravity: float, e: float, v0: float, steps: int, gradient: str, dt: float = 1 / 60):
    """Height at the end, and its derivatives by height, downward speed, restitution, radius and gravity."""
    model, up = bouncing(planar, gravity, e).build(), 1 if planar else 2
    sim = cs.Simulator(model, dt, impacts="toi", gradient=gradient)
    q, v = sim.initial_state()
    v[up] = -v0
    q.requires_grad_(), v.requires_grad_()
    params = model.params(requires_grad=("restitution", "shape_size", "gravity"))
    traj = sim.rollout(cs.State(q, v), params=params, steps=steps)
    y = traj.q[-1, up]
    found = torch.autograd.grad(y, (q, v, params["restitution"], params["shape_size"], params["gravity"]))
    shape = model.shape("ball/0")
    grads = {
        "y0": found[0][up], "v0": -found[1][up], "e": found[2][shape], "r": found[3][shape, 0],
        "g": -found[4].reshape(-1)[up],
    }  # fmt: skip
    return y.item(), {name: g.item() for name, g in grads.items()}, traj.status.impacts.item()


def after_one_bounce(gravity: float, e: float, v0: float, T: float):
    """The same in closed form, by autograd of it."""
    y0, v, e, r, g = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (1.1, v0, e, 0.1, gravity))
    gap = y0 - r
    speed = torch.sqrt(v * v + 2 * g * gap)
    tau = 2 * gap / (v + speed)
    left = T - tau
    y = r + e * speed * left - g * left * left / 2
    return y.item(), {name: x.item() for name, x in zip(("y0", "v0", "e", "r", "g"), torch.autograd.grad(y, (y0, v, e, r, g)))}


@MODES
@SPACES
@pytest.mark.parametrize(("gravity", "e"), [(0.0, 1.0), (G, 1.0), (G, 0.6)])
@pytest.mark.parametrize("v0", [2.0, 2.3])
def test_a_bounce(gradient, planar, gravity, e, v0):
    """Without gravity dy_T/dy0 = -1 and dy_T/dv0 = T, elastic. With v0 = 2 it meets the ground exactly at the end of a step."""
    n = 40
    y, grads, impacts = fall(planar, gravity, e, v0, n, gradient)
    true, expected = after_one_bounce(gravity, e, v0, n / 60)
    assert impacts == 1
    assert y == pytest.approx(true, abs=CLOSED)
    for name, value in expected.items():
        assert grads[name] == pytest.approx(value, abs=10 * CLOSED), name
    if gravity == 0:
        assert expected["y0"] == pytest.approx(-1)
        assert expected["v0"] == pytest.approx(n / 60)
    elif e == 1:
        speed = math.sqrt(v0 * v0 + 2 * G)
        assert expected["y0"] == pytest.approx(2 * G * (n / 60 - (speed - v0) / G) / speed - 1)


@MODES
@pytest.mark.parametrize("gravity", [0.0, G])
def test_fixed_steps_give_the_wrong_sign(gradient, gravity):
    """What impacts="toi" is for: without it a step cannot know when inside it the ball hit the ground."""
    model = bouncing(True, gravity, 1.0).build()
    slopes = []
    for impacts in (None, "toi"):
        sim = cs.Simulator(model, 1 / 60, impacts=impacts, gradient=gradient)
        q = sim.initial_state().q.requires_grad_()
        v = torch.tensor([0, -2.3, 0], dtype=torch.float64)
        slopes.append(torch.autograd.grad(sim.rollout(cs.State(q, v), steps=34).q[-1, 1], q)[0][1].item())
    assert slopes[0] == pytest.approx(1.0)
    assert slopes[1] < (-0.9 if gravity == 0 else 0.9)


@MODES
@pytest.mark.parametrize("dt", [1 / 60, 1 / 20, 1 / 5])
@pytest.mark.parametrize("bounces", [3, 4, 7])
def test_to_and_fro_between_walls(gradient, dt, bounces):
    """n elastic hits: dx_T/dx0 = (-1)^n, dx_T/dv0 = (-1)^n T, and by a wall's place and by dt as a mirror has it."""
    half, r, x0, v0 = 0.5, 0.1, 0.05, 3.0
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for k, x in enumerate((half, -half)):
        scene.add_shape(cs.HalfPlane(pos=(x, 0), angle=math.pi / 2 - k * math.pi, restitution=1.0), name=f"wall{k}")
    scene.add_body("ball", shapes=cs.Circle(r, mass=1.0, restitution=1.0))
    model = scene.build()
    sim = cs.Simulator(model, dt, impacts="toi", gradient=gradient)
    T = ((half - r - x0) + (bounces - 1) * 2 * (half - r) + 0.3) / v0
    n = max(1, round(T / dt))
    h = torch.tensor(T / n, dtype=torch.float64, requires_grad=True)
    q, v = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    q[0], v[0] = x0, v0
    q.requires_grad_(), v.requires_grad_()
    params = model.params(requires_grad=("shape_pos", "shape_size", "mass", "friction"))
    traj = sim.rollout(cs.State(q, v), params=params, steps=n, dt=h)
    assert traj.status.impacts == bounces
    sign = (-1) ** bounces
    x = traj.q[-1, 0]
    assert x.item() == pytest.approx(-sign * (half - r) + sign * 0.3, abs=1e-6)
    names = ("shape_pos", "shape_size", "mass", "friction")
    gq, gv, gh, *found = torch.autograd.grad(x, (q, v, h, *(params[name] for name in names)))
    grads = dict(zip(names, found))
    assert gq[0].item() == pytest.approx(sign, abs=1e-6)
    assert gv[0].item() == pytest.approx(sign * T, abs=1e-6)
    assert gh.item() == pytest.approx(sign * v0 * n, rel=1e-6)
    # mirrored n times, once more on the right than on the left if n is odd: x = (-1)^n (x0 + v0 T) + ...
    right, left = (bounces + 1) // 2, bounces // 2
    by_right = -sign * 2 * right
    by_left = -sign * 2 * left  # outwards
    assert grads["shape_pos"][model.shape("wall0"), 0].item() == pytest.approx(by_right, abs=1e-6)
    assert grads["shape_pos"][model.shape("wall1"), 0].item() == pytest.approx(-by_left, abs=1e-6)
    assert grads["shape_size"][model.shape("ball/0"), 0].item() == pytest.approx(-by_right - by_left, abs=1e-6)
    assert grads["mass"].abs().max() < 1e-6
    assert grads["friction"].abs().max() < 1e-6


@MODES
@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("places", [(-1.0, 1.0), (-1.013, 0.99)], ids=["end of a step", "within a step"])
def test_two_balls_that_meet(gradient, e, places):
    """x_T of both by places, speeds, masses and restitution, also where they stay together."""
    masses, v0, T, r = (1.0, 3.0), (4.0, -2.0), 0.5, 0.1
    scene = cs.Scene(planar=True, gravity=(0, 0), restitution_rule="product")
    for i in range(2):
        shape = cs.Circle(r, mass=masses[i], restitution=(e, 1.0)[i], friction=0.0)
        scene.add_body(f"b{i}", pos=(places[i], 0), shapes=shape)
    model = scene.build()
    sim = cs.Simulator(model, 1 / 20, impacts="toi", gradient=gradient)

    def closed(x, v, m, e):
        t = (x[1] - x[0] - 2 * r) / (v[0] - v[1])
        mean = (m * v).sum() / m.sum()
        return x + v * t + (mean - e * (v - mean)) * (T - t)

    x, v, m, restitution = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (places, v0, masses, (e, 1.0)))
    zero = torch.zeros(2, dtype=torch.float64)
    state = cs.State(torch.stack((x, zero, zero), -1).flatten(), torch.stack((v, zero, zero), -1).flatten())
    params = model.params().replace(mass=m, restitution=restitution)
    end = sim.rollout(state, params=params, steps=10)[-1].q[::3]
    true = closed(x, v, m, restitution.prod())
    torch.testing.assert_close(end, true, rtol=0, atol=CLOSED)
    w = torch.tensor([0.7, -0.4], dtype=torch.float64)
    leaves = (x, v, m, restitution) if e else (x, v, m)  # what leaves with less than a hundredth of bounce_speed does not leave
    for a, b in zip(*(torch.autograd.grad((w * y).sum(), leaves) for y in (end, true))):
        torch.testing.assert_close(a, b, rtol=0, atol=10 * CLOSED)


# ---- central differences -------------------------------------------------------------------------------------------
SIZES = (1e-5, 1e-6, 1e-7)
AGREE, ERROR = 1e-4, 1e-5  # of differences with each other, and of the adjoint with them
FIELDS = ("mass", "friction", "restitution", "shape_size", "gravity", "inertia", "com", "shape_pos")


def leaves_of(model: cs.Model, q, v, steps: int, dt: float, fields, gen) -> dict:
    """All inputs, one per world."""
    worlds = len(q)
    params = model.params().expand(worlds)
    external = 0.1 * normal(gen, worlds, model.nb, 3 if model.planar else 6)
    control = 0.3 * normal(gen, steps, worlds, model.nu)
    some = {"q": q, "v": v, "external": external, "dt": torch.full((worlds,), dt, dtype=torch.float64)}
    if model.nu:
        some["control"] = control
    return {**some, **{name: params[name].clone() for name in fields}}


def direction(name: str, x, gen):
    """Of the scale of x; inertia as a whole, since it must stay one."""
    if name == "inertia":
        return 0.5 * x * normal(gen, *x.shape[:-1], 1)
    d = normal(gen, *x.shape)
    if name in ("com", "shape_pos", "joint_pos", "hull_vertex", "tie_pos"):
        d = 0.1 * d
        if x.shape[-1] == 3:
            d[..., 2] = d[..., 2] * (x[..., 2] != 0).any()
        return d
    return d * x.abs() if name in FIELDS or name in ("dt", "dry_friction") else d


def compare(model: cs.Model, q, v, *, steps: int, dt: float, gradient: str, fields, seed: int = 1):
    """(name, world) -> adjoint, best difference, whether differences agree; and the trajectory."""
    sim, gen = cs.Simulator(model, dt, impacts="toi", gradient=gradient), generator(seed)
    leaves = leaves_of(model, q, v, steps, dt, fields, gen)
    wq, wv = normal(gen, len(q), model.nq), normal(gen, len(q), model.nv)

    def run(x):
        params = model.params().expand(len(q)).replace(**{name: x[name] for name in fields})
        count = None if "control" in x else steps
        start = cs.State(x["q"], x["v"])
        traj = sim.rollout(start, x.get("control"), params, steps=count, external=x["external"], dt=x["dt"])
        return (wq * traj.q[-1]).sum(-1) + (wv * traj.v[-1]).sum(-1), traj

    grown = {name: x.clone().requires_grad_() for name, x in leaves.items()}
    y, traj = run(grown)
    grads = dict(zip(grown, torch.autograd.grad(y.sum(), list(grown.values()))))
    found = []
    for name, x in leaves.items():
        d = direction(name, x, gen)
        each = (1, 0, *range(2, x.ndim)) if name == "control" else range(x.ndim)
        flat = [a.permute(*each).reshape(len(q), -1) for a in (grads[name], d)]
        exact = (flat[0] * flat[1]).sum(-1)
        # gaps at impacts are zero to 1e-12 only, which differences over 1e-7 see
        size = 0.03 * flat[0].norm(dim=-1) * flat[1].norm(dim=-1)
        with torch.no_grad():
            sides = torch.stack(
                [torch.stack([(run({**leaves, name: x + side * s * d})[0] - y) / (side * s) for side in (1, -1)]) for s in SIZES]
            )
        slopes = sides.mean(1)
        scale = torch.maximum(torch.maximum(exact.abs(), slopes.abs().amin(0)), size).clamp(min=1e-6)
        # two sizes agree with each other, whatever the third one jumped over
        noise = torch.minimum((slopes[0] - slopes[1]).abs(), (slopes[1] - slopes[2]).abs()) / scale
        # at a kink, as where a ball rests without a gap, the adjoint is that of one side; and noise is no error
        error = (torch.cat((sides.flatten(0, 1), slopes)) - exact).abs().amin(0) / scale - noise
        agree = noise < AGREE
        found += [(name, w, exact[w].item(), slopes[:, w].tolist(), error[w].item(), bool(agree[w])) for w in range(len(q))]
    return found, traj


def check(found, traj, impacts: float, decided: float = 0.8, bound: float = ERROR):
    assert not traj.diverged.any()
    assert traj.status.impacts.float().mean() >= impacts
    sure = [case for case in found if case[-1]]
    assert len(sure) > decided * len(found)
    wrong = [case for case in sure if case[4] > bound]
    assert not wrong, f"{len(wrong)} of {len(sure)}: {sorted(wrong, key=lambda case: -case[4])[:4]}"


# how many there are on average, at least
IMPACTS = {
    "billiard": 4,
    "rectangle": 1,
    "polygons": 2,
    "balls": 3,
    "solids": 2,
    "pendulum": 1,
    "chain": 1,
    "servo": 1,
    "robot": 1,
}


@MODES
@pytest.mark.parametrize("gravity", [0.0, G])
@pytest.mark.parametrize("name", ["billiard", "rectangle", "polygons", "balls", "solids"])
def test_shots_at_coarse_steps(name, gravity, gradient):
    """Eight steps of 1/20 s between walls, with friction and spin; by everything."""
    model, q, v = start(name, gravity, 8)
    fields = (*FIELDS, FLIGHTS[name].field) if FLIGHTS[name].field not in FIELDS else FIELDS
    found, traj = compare(model, q, v, steps=8, dt=1 / 20, gradient=gradient, fields=fields)
    check(found, traj, IMPACTS[name])


@MODES
@pytest.mark.parametrize("name", ["pendulum", "chain", "servo", "robot"])
def test_joints_constraints_and_motors(name, gradient):
    """Parts end where forces, joints and rows have bent the way. Not for longer: what chatters on the ground is all kinks."""
    model, q, v = start(name, G if name != "chain" else 0.0, 6)
    fields = (*FIELDS, FLIGHTS[name].field)
    steps = 10 if name == "pendulum" else 6
    found, traj = compare(model, q, v, steps=steps, dt=1 / 30, gradient=gradient, fields=fields)
    check(found, traj, IMPACTS[name], 0.7)


@pytest.mark.full
@MODES
@pytest.mark.parametrize("gravity", [0.0, G])
@pytest.mark.parametrize("name", list(FLIGHTS))
def test_many_shots(name, gravity, gradient):
    """The same with more worlds, at three step sizes."""
    fields = (*FIELDS, FLIGHTS[name].field) if FLIGHTS[name].field not in FIELDS else FIELDS
    for dt in (1 / 20, 1 / 60, 1 / 240):
        model, q, v = start(name, gravity, 32, seed=round(1 / dt))
        found, traj = compare(model, q, v, steps=round(0.4 / dt), dt=dt, gradient=gradient, fields=fields)
        check(
            found, traj, 0, 0.6, 3 * ERROR if name == "robot" else ERROR
        )  # friction is solved to a tolerance, which chattering enlarges
