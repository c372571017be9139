"""Contact gradients that other engines are known to get wrong, each against its closed form or against differences."""

import math

import pytest
import torch

import costate as cs
from tests.gradients.contact_differences import compare
from tests.gradients.contact_scenes import worlds
from tests.gradients.scenes import generator, normal

G = 9.81
# Closed forms hold up to the softness that keeps redundant rows solvable, 1e-9 of a row's own.
CLOSED = 1e-7
MODES = pytest.mark.parametrize("gradient", ["implicit", "exact"])


def gradients(loss, leaves):
    """By name; zero where the loss does not depend on a leaf."""
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, retain_graph=True)
    return {name: torch.zeros_like(x) if g is None else g for (name, x), g in zip(leaves.items(), found)}


def start(sim, **velocities):
    """The initial state with the velocities [nv of the body] of the bodies that are named, as leaves (q, v)."""
    state = sim.initial_state()
    for name, velocity in velocities.items():
        at = sim.model.v_address[sim.model.body(name)]
        state.v[at : at + len(velocity)] = torch.tensor(velocity, dtype=torch.float64)
    return cs.State(state.q.requires_grad_(), state.v.requires_grad_())


# ---- 1: sliding -----------------------------------------------------------------------------------------------------
@MODES
def test_sliding_block(gradient):
    """x(T) = v0 T - mu g T^2 / 2, in steps mu g h^2 n (n + 1) / 2; the mass does not matter."""
    h, n, mu = 0.005, 60, 0.3
    scene = cs.Scene(friction_rule="product")
    scene.add_ground(friction=1.0)
    scene.add_body("block", joint=cs.Free(), pos=(0, 0, 0.05), shapes=cs.Box((0.1, 0.12, 0.05), friction=mu))
    model = scene.build()
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    along = torch.tensor([0.8, 0.6], dtype=torch.float64)  # no axis of the friction frame
    state = start(sim, block=(2.4, 1.8))
    x = sim.rollout(state, params=params, steps=n).q[-1, :2] @ along
    assert x.item() == pytest.approx(3.0 * n * h - mu * G * h * h * n * (n + 1) / 2, rel=CLOSED)
    grads = gradients(x, {**params, "v": state.v})
    true = -G * (n * h) ** 2 / 2
    assert grads["friction"][model.shape("block/0")].item() == pytest.approx(true * (1 + 1 / n), rel=CLOSED)
    assert grads["friction"][model.shape("ground")].item() == pytest.approx(mu * true * (1 + 1 / n), rel=CLOSED)
    for name in ("mass", "inertia", "restitution"):
        assert grads[name].abs().max() < CLOSED, name
    assert (grads["v"][:2] @ along).item() == pytest.approx(n * h, rel=CLOSED)


# ---- 3: what a maximal-coordinate or replayed adjoint gets wrong ----------------------------------------------------
@MODES
def test_joint_angles_of_a_floating_base_in_contact(gradient):
    """Every joint angle of a robot on its feet, against differences."""
    some = worlds("walker", 16, seed=3)
    sims = {gradient: cs.Simulator(some.model, gradient=gradient)}
    cases = compare("walker", some, sims, only=("q", "joint_pos", "joint_axis"))
    smooth = [case.error for case in cases if not case.kink]
    assert len(smooth) > 0.9 * len(cases)
    assert max(smooth) < 1e-6


@MODES
@pytest.mark.parametrize("e", [0.0, 0.6])
def test_two_contacts_that_share_a_body(gradient, e):
    """Ball a hits b, which leans on c:  v_b = v_c = m_a v (1 + e) / M,  v_a = v_b - e v."""
    scene = cs.Scene(gravity=(0, 0, 0), restitution_rule="product")
    for name, x, mass in (("a", 0.0, 1.0), ("b", 0.2, 2.0), ("c", 0.4, 3.0)):
        shape = cs.Sphere(0.1, mass=mass, friction=0.5, restitution=1.0 if name == "b" else max(e, 1e-3))
        scene.add_body(name, joint=cs.Free(), pos=(x, 0, 0), shapes=shape)
    model, v = scene.build(), 1.5
    sim = cs.Simulator(model, gradient=gradient)
    params = model.params(requires_grad=True).replace(restitution=torch.tensor([e, 1.0, e], dtype=torch.float64).requires_grad_())
    state = start(sim, a=(v, 0, 0))
    after, info = sim.step(state, params=params, info=True)
    va, vb, vc = after.v[0], after.v[6], after.v[12]
    total = 6.0
    assert [x.item() for x in (vb, vc)] == pytest.approx([v * (1 + e) / total] * 2, rel=CLOSED)
    assert va.item() == pytest.approx(v * (1 + e) / total - e * v, rel=CLOSED)
    leaves = {"mass": params["mass"], "restitution": params["restitution"], "v": state.v}
    grads = gradients(vc, leaves)
    by_mass = v * (1 + e) / total**2 * torch.tensor([5.0, -1.0, -1.0], dtype=torch.float64)
    torch.testing.assert_close(grads["mass"], by_mass, rtol=CLOSED, atol=CLOSED)
    by_restitution = v / total * torch.tensor([1.0, e, 0.0], dtype=torch.float64)
    torch.testing.assert_close(grads["restitution"], by_restitution, rtol=CLOSED, atol=CLOSED)
    assert grads["v"][0].item() == pytest.approx((1 + e) / total, rel=CLOSED)
    # the impulse that c gets is its momentum
    at = (info.contacts.shape_b == 2).nonzero()[0, 0]
    grads = gradients(info.contacts.impulse[at, 0], leaves)
    assert grads["v"][0].item() == pytest.approx(3.0 * (1 + e) / total, rel=CLOSED)


@MODES
def test_restitution(gradient):
    """v+ = -e v at the hit, whatever the step size, then a flight: dz/de = -v T, and geometric mean's share of each shape."""
    scene = cs.Scene()
    scene.add_ground(restitution=0.9)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, restitution=0.4))
    model, h, n, v = scene.build(), 0.002, 50, -2.0
    sim, params = cs.Simulator(model, h, gradient=gradient), model.params(requires_grad=True)
    state = start(sim, ball=(0, 0, v))
    traj = sim.rollout(state, params=params, steps=n)
    e = math.sqrt(0.9 * 0.4)
    assert traj.v[1, 2].item() == pytest.approx(-e * v, rel=CLOSED)
    grads = gradients(traj.q[-1, 2], {**params, "v": state.v})
    assert grads["restitution"][model.shape("ground")].item() == pytest.approx(-v * n * h * e / (2 * 0.9), rel=CLOSED)
    assert grads["restitution"][model.shape("ball/0")].item() == pytest.approx(-v * n * h * e / (2 * 0.4), rel=CLOSED)
    assert grads["v"][2].item() == pytest.approx(-e * n * h, rel=CLOSED)
    assert grads["mass"].abs().max() < CLOSED


@MODES
@pytest.mark.parametrize("mu", [0.03, 2.0], ids=["slides", "sticks"])
def test_oblique_hit_of_two_spheres(gradient, mu):
    """Momentum and angular momentum pass unchanged, and so do their gradients; the speeds themselves depend on friction."""
    scene = cs.Scene(gravity=(0, 0, 0))
    for name, x, mass in (("a", -0.1, 1.0), ("b", 0.1, 2.5)):
        shape = cs.Sphere(0.1001, mass=mass, friction=mu, restitution=0.5)
        scene.add_body(name, joint=cs.Free(), pos=(x, 0, 0.03 * x), shapes=shape)
    model = scene.build()
    sim, params = cs.Simulator(model, 1e-3, gradient=gradient), model.params(requires_grad=("friction", "restitution"))
    state = start(sim, a=(2.0, 0.7, 0.2, 1.0, -2.0, 3.0), b=(-1.0, -0.3, 0.1, 2.0, 0.5, -1.0))
    after, info = sim.step(state, params=params, info=True)
    assert info.contacts.state.tolist() == [3 if mu < 1 else 2]
    # about the centre of mass where the bodies are: a step moves them, and that alone changes neither
    for axis in range(6):
        before, now = (momentum(model, state.q, v)[axis] for v in (state.v, after.v))
        assert now.item() == pytest.approx(before.item(), abs=1e-12)
        grads = gradients(now, {"friction": params["friction"], "restitution": params["restitution"], "v": state.v})
        assert grads["friction"].abs().max() < 1e-12
        assert grads["restitution"].abs().max() < 1e-12
        torch.testing.assert_close(grads["v"], gradients(before, {"v": state.v})["v"], rtol=0, atol=1e-12)
    grads = gradients(after.v[1], {name: params[name] for name in ("friction", "restitution")})
    assert (grads["friction"].abs().max() > 0.01) == (mu < 1)
    assert gradients(after.v[0], {"e": params["restitution"]})["e"].abs().max() > 0.1


def momentum(model, q, v):
    """Linear and angular momentum about the world's origin, of two free spheres of the model."""
    m, inertia = model.defaults["mass"], model.defaults["inertia"][:, 0]
    p = sum(m[i] * v[6 * i : 6 * i + 3] for i in range(2))
    turn = sum(
        torch.linalg.cross(q[7 * i : 7 * i + 3].detach(), m[i] * v[6 * i : 6 * i + 3]) + inertia[i] * v[6 * i + 3 : 6 * i + 6]
        for i in range(2)
    )
    return torch.cat((p, turn))


@MODES
@pytest.mark.parametrize("field", ["inertia", "mass", "com", "shape_size"])
def test_share_of_a_load(gradient, field):
    """A rigid box on four corners: how much each of them bears, against differences."""
    scene = cs.Scene()
    scene.add_ground(friction=0.5)
    body = {"mass": 4.0, "inertia": (0.03, 0.02, 0.025), "com": (0.03, 0.02, 0.0)}
    scene.add_body("box", joint=cs.Free(), pos=(0, 0, 0.07 - 1e-5), shapes=cs.Box((0.1, 0.14, 0.07), friction=0.5), **body)
    model = scene.build()
    sim, params = cs.Simulator(model, 0.002, gradient=gradient), model.params(requires_grad=(field,))
    d = 0.2 * model.defaults[field] * normal(generator(), *model.defaults[field].shape)
    if field == "shape_size":  # not its height: the corners stay where they are
        d[:, 2] = 0

    def loads(params):
        return sim.step(sim.initial_state(), params=params, info=True)[1].contacts.impulse[:4, 2]

    h, slopes = 1e-2, []
    for load in loads(params):
        slopes.append((gradients(load, {"x": params[field]})["x"] * d).sum())
    there, back = (loads(params.detach().replace(**{field: params[field].detach() + s * d})) for s in (h, -h))
    torch.testing.assert_close(torch.stack(slopes), (there - back) / (2 * h), rtol=1e-3, atol=1e-6)


@MODES
@pytest.mark.parametrize("field", ["inertia", "mass", "com"])
def test_share_between_a_limit_and_a_contact(gradient, field):
    """A foot stands on its joint's end and on the ground: how fast the cart slows down depends on which bears how much."""
    scene = cs.Scene()
    scene.add_ground(friction=0.5)
    scene.add_body("cart", joint=cs.Prismatic((1, 0, 0)), mass=3.0, inertia=(0.1, 0.1, 0.1))
    foot = cs.Prismatic((0, 0, 1), limits=(0.0, 1.0))
    scene.add_body("foot", parent="cart", joint=foot, pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, mass=2.0, friction=0.5))
    head = cs.Sphere(0.05, mass=0.7, pos=(0.1, 0, 0.1), collide=False)
    scene.add_body("head", parent="foot", joint=cs.Revolute((0, 1, 0), damping=0.1), pos=(0.1, 0, 0.2), shapes=head)
    model = scene.build()
    sim, params = cs.Simulator(model, 0.002, gradient=gradient), model.params(requires_grad=(field,))
    q, v = (torch.tensor(x, dtype=torch.float64) for x in ((0.0, 0.0, 0.3), (1.0, 0.0, 0.2)))
    d = 0.2 * normal(generator(), *model.defaults[field].shape) * (model.defaults[field].abs() + 0.05)

    def speed(params):
        return sim.step(cs.State(q, v), params=params).v[0]

    slope = (gradients(speed(params), {"x": params[field]})["x"] * d).sum()
    h = 1e-3
    there, back = (speed(params.detach().replace(**{field: params[field].detach() + s * d})) for s in (h, -h))
    torch.testing.assert_close(slope, (there - back) / (2 * h), rtol=1e-3, atol=1e-9)


def standing() -> cs.Model:
    """A robot with a floating base and four feet, held up by servos."""
    scene = cs.Scene()
    scene.add_ground(friction=0.8)
    scene.add_body("trunk", joint=cs.Free(), pos=(0, 0, 0.32), shapes=cs.Box((0.2, 0.1, 0.05), mass=8.0, collide=False))
    for i, (x, y) in enumerate(((0.2, 0.12), (0.2, -0.12), (-0.2, 0.12), (-0.2, -0.12))):
        leg = cs.Capsule(0.02, 0.12, pos=(0, 0, -0.14), collide=False), cs.Sphere(0.03, pos=(0, 0, -0.29))
        joint = cs.Revolute((0, 1, 0), damping=0.1, armature=0.01)
        scene.add_body(f"leg{i}", parent="trunk", joint=joint, pos=(x, y, 0), shapes=leg)
        scene.add_position(f"leg{i}", kp=100.0, kd=3.0)
    return scene.build()


@MODES
def test_standing_still_for_600_steps(gradient):
    """The costate of a robot at rest neither overflows nor becomes NaN; stiff contact forgets most of the past."""
    model, steps = standing(), 600
    sim, params = cs.Simulator(model, 0.005, gradient=gradient), model.params(requires_grad=True)
    state = start(sim)
    traj = sim.rollout(state, torch.zeros(steps, model.nu, dtype=torch.float64), params)
    assert traj.status.contacts.item() == 4
    assert traj.v[-1].abs().max() < 1e-6
    assert abs(traj.q[-1, 2].item() - 0.32) < 1e-3
    grads = gradients(traj.q[-1] @ normal(generator(), model.nq), {**params, "q": state.q, "v": state.v})
    for name, grad in grads.items():
        assert torch.isfinite(grad).all(), name
    for name in ("q", "v", "friction", "shape_size", "mass", "kp"):
        assert grads[name].norm() < 100, name
    assert grads["q"].norm() > 0.1


# ---- 5: branches that are not taken ---------------------------------------------------------------------------------
def ball_on_ground(height=0.1, **shape):
    scene = cs.Scene()
    scene.add_ground(friction=shape.get("friction", 1.0), restitution=shape.get("restitution", 0.0))
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, height), shapes=cs.Sphere(0.1, **shape))
    return scene


def two_bodies(a, b, pos=(0, 0, 0), quat=(1, 0, 0, 0)):
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("a", joint=cs.Free(), shapes=a)
    scene.add_body("b", joint=cs.Free(), shapes=b, pos=pos, quat=quat)
    return scene


def jointed(joint, gravity=(0.0, 0.0, 0.0)):
    scene = cs.Scene(gravity=gravity)
    scene.add_body("link", joint=joint, shapes=cs.Capsule(0.05, 0.1, pos=(0, 0, -0.1)))
    return scene


def driven(**limits):
    scene = jointed(cs.Revolute((0, 1, 0)))
    scene.add_position("link", kp=10.0, kd=1.0, **limits)
    scene.add_velocity("link", kd=1.0, name="rate", **limits)
    scene.add_motor("link", name="motor", **limits)
    return scene


ROD = cs.Capsule(0.05, 0.2)
ZEROS = {
    "at rest, touching exactly": lambda: (ball_on_ground(), {}),
    "no gravity, touching exactly: no impulse at all": lambda: (two_bodies(cs.Sphere(0.1), cs.Sphere(0.1), (0.2, 0, 0)), {}),
    "one ulp off the ground": lambda: (ball_on_ground(math.nextafter(0.1, 1)), {}),
    "slides without turning": lambda: (ball_on_ground(), {"ball": (1.0, 0, 0)}),
    "rolls: no slip": lambda: (ball_on_ground(), {"ball": (0.1, 0, 0, 0, 1.0, 0)}),
    "hits with no slip": lambda: (ball_on_ground(restitution=0.5), {"ball": (0, 0, -2.0)}),
    "hits, restitution 0": lambda: (ball_on_ground(), {"ball": (0.3, 0, -2.0)}),
    "hits, restitution 1": lambda: (ball_on_ground(restitution=1.0), {"ball": (0.3, 0, -2.0)}),
    "exactly at the bounce speed": lambda: (ball_on_ground(restitution=0.5), {"ball": (0, 0, -0.1)}),
    "no friction": lambda: (ball_on_ground(friction=0.0), {"ball": (1.0, 0, 0)}),
    "no friction, at rest": lambda: (ball_on_ground(friction=0.0), {}),
    "exactly at the margin": lambda: (ball_on_ground(0.11), {}),
    "centres coincide": lambda: (two_bodies(cs.Sphere(0.1), cs.Sphere(0.1)), {}),
    "centre on the other's axis": lambda: (two_bodies(ROD, cs.Sphere(0.1), (0, 0, 0.05)), {}),
    "centre on the other's end": lambda: (two_bodies(ROD, cs.Sphere(0.1), (0, 0, 0.2)), {}),
    "rods coincide": lambda: (two_bodies(ROD, ROD), {}),
    "rods in one line": lambda: (two_bodies(ROD, ROD, (0, 0, 0.45)), {}),
    "rods side by side": lambda: (two_bodies(ROD, ROD, (0.09, 0, 0)), {}),
    "rods side by side, shifted": lambda: (two_bodies(ROD, ROD, (0.09, 0, 0.1)), {}),
    "rods cross through each other": lambda: (two_bodies(ROD, ROD, quat=(1, 1, 0, 0)), {}),
    "rods cross": lambda: (two_bodies(ROD, ROD, (0, 0.1, 0), (1, 0, 1, 0)), {}),
    "normal straight down": lambda: (two_bodies(cs.Sphere(0.1), cs.Sphere(0.1), (0, 0, -0.2)), {"b": (0.1, 0.2, 0.5)}),
    "at its lower limit": lambda: (jointed(cs.Revolute((0, 1, 0), limits=(0.0, 1.0))), {}),
    "limits as far on both sides": lambda: (jointed(cs.Prismatic((0, 0, 1), limits=(-0.005, 0.005))), {"link": (0.3,)}),
    "ball joint not turned": lambda: (jointed(cs.Ball(limit=0.005)), {}),
    "ball joint that may turn anywhere": lambda: (jointed(cs.Ball(limit=math.pi, initial=(0, 1, 0, 0))), {"link": (1, 0, 0)}),
    "dry friction at rest": lambda: (jointed(cs.Revolute((0, 1, 0), friction=0.1)), {}),
    "dry friction on a ball joint at rest": lambda: (jointed(cs.Ball(friction=0.1)), {}),
    "force limits of zero": lambda: (driven(force_limits=(0.0, 0.0)), {}),
    "control at its limit": lambda: (driven(control_limits=(-1.0, 0.0)), {}),
    "force at its limit": lambda: (driven(force_limits=(0.0, 1.0)), {}),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("case", ZEROS)
def test_branches_not_taken(case, dtype):
    """Zero vectors, zero speeds and exact ties: every gradient is finite, in both modes and with every cone."""
    scene, velocities = ZEROS[case]()
    model = scene.build()
    for gradient, cone in (("implicit", "disc"), ("exact", "disc"), ("implicit", "square"), ("exact", 5)):
        sim = cs.Simulator(model, gradient=gradient, dtype=dtype, solver=cs.PGS(cone=cone))
        state = start(cs.Simulator(model), **velocities)
        q, v = (x.detach().to(dtype).requires_grad_() for x in state)
        control = torch.zeros(model.nu, dtype=dtype, requires_grad=True)
        external = torch.zeros(model.nb, 6, dtype=dtype, requires_grad=True)
        dt = torch.tensor(0.01, dtype=dtype, requires_grad=True)
        params = model.params(requires_grad=True, dtype=dtype)
        after, info = sim.step(cs.State(q, v), control, params, external=external, dt=dt, info=True)
        assert not info.diverged
        leaves = {"q": q, "v": v, "control": control, "external": external, "dt": dt, **params}
        for name, y in (("q", after.q), ("v", after.v), ("acceleration", info.acceleration), ("impulse", info.contacts.impulse)):
            if not y.requires_grad:
                continue
            for field, grad in gradients(y.sum(), leaves).items():
                assert torch.isfinite(grad).all(), (gradient, cone, name, field, grad)


@MODES
def test_branch_taken_at_zero(gradient):
    """Where a contact is exactly at rest the derivative is that of sticking: a push along the ground moves nothing."""
    model = ball_on_ground().build()
    sim = cs.Simulator(model, gradient=gradient)
    state, external = start(sim), torch.zeros(1, 6, dtype=torch.float64, requires_grad=True)
    after = sim.step(state, external=external)
    grads = gradients(after.v[0], {"external": external, "v": state.v})
    # a sphere that rolls: force F at the centre gives h F / (m + I / r^2) = 5/7 of what a free one would get
    free = 0.01 / model.defaults["mass"].item()
    assert grads["external"][0, 3].item() == pytest.approx(5 / 7 * free, rel=1e-6)
    assert grads["v"][0].item() == pytest.approx(5 / 7, rel=1e-6)
    assert grads["v"][4].item() == pytest.approx(2 / 7 * 0.1, rel=1e-6)


# ---- 6: the backward pass differentiates the step that ran ----------------------------------------------------------
@MODES
@pytest.mark.parametrize("solver", [cs.PGS(15, tolerance=1e-13), cs.PGS(2, polish=0)], ids=["converged", "cut short"])
@pytest.mark.parametrize("substeps", [1, 3])
def test_rollout_is_a_chain_of_steps(gradient, solver, substeps):
    """What is recomputed from a checkpoint is bitwise what ran: no state is hidden, no warm start forgotten."""
    some, steps = worlds("walker", 12, seed=5), 6
    model, gen = some.model, generator(6)
    sim = cs.Simulator(model, gradient=gradient, solver=solver)
    controls = some.inputs["control"] + 0.1 * normal(gen, steps, *some.inputs["control"].shape)
    wq, wv = normal(gen, steps + 1, 12, model.nq), normal(gen, steps + 1, 12, model.nv)

    def run(roll):
        x = {name: t.clone().requires_grad_() for name, t in {**some.inputs, "control": controls}.items()}
        params = some.params.detach(requires_grad=True)
        q, v = roll(x, params)
        leaves = {**x, **params}
        return (q, v), gradients((wq * q).sum() + (wv * v).sum(), leaves)

    def whole(x, params):
        traj = sim.rollout(cs.State(x["q"], x["v"]), x["control"], params, substeps=substeps, external=x["external"], dt=x["dt"])
        return traj.q, traj.v

    def chain(x, params):
        states = [cs.State(x["q"], x["v"])]
        for control in x["control"]:
            state = states[-1]
            for _ in range(substeps):
                state = sim.step(state, control, params, external=x["external"], dt=x["dt"])
            states.append(state)
        return torch.stack([s.q for s in states]), torch.stack([s.v for s in states])

    (ya, ga), (yb, gb) = run(whole), run(chain)
    for a, b in zip(ya, yb):
        torch.testing.assert_close(a[1:], b[1:], rtol=0, atol=0)
    for name, grad in ga.items():
        # sums over steps are taken in another order
        scale = max(1.0, gb[name].abs().max().item()) if grad.numel() else 1.0
        torch.testing.assert_close(grad, gb[name], rtol=1e-9, atol=1e-9 * scale, msg=lambda m, name=name: f"{name}: {m}")


@MODES
@pytest.mark.parametrize("friction, gap, speed", [(1.0, 0.008, -0.3), (1.0, 0.008, 0.1), (0.0, 0.0, 0.0)])
def test_a_contact_that_holds_nothing_back(gradient, friction, gap, speed):
    """Above the floor, or without friction: exactly no slip, and yet whatever starts to slip goes on."""
    scene = cs.Scene()
    scene.add_ground(friction=friction)
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 0.5 + gap), shapes=cs.Sphere(0.5, mass=1.0, friction=friction))
    sim = cs.Simulator(scene.build(), 0.01, gradient=gradient)
    v = torch.tensor([0, 0, speed, 0, 0, 0], dtype=torch.float64, requires_grad=True)
    new = sim.step(cs.State(sim.initial_state().q, v))
    (slope,) = torch.autograd.grad(new.v[0], v)
    torch.testing.assert_close(slope, torch.eye(6, dtype=torch.float64)[0], rtol=0, atol=1e-12)
