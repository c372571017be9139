"""Gradients of constraints against closed forms, against the same mechanism in other coordinates, and torch's own checks."""

import math

import pytest
import torch

import costate as cs
from tests.gradients.constraint_scenes import worlds
from tests.gradients.differences import error_of_derivative
from tests.gradients.scenes import generator, normal
from tests.gradients.test_contact_known_cases import gradients
from tests.gradients.test_linearize import jacobians_by_differences, tangent_step

G = 9.81
MODES = pytest.mark.parametrize("gradient", ["implicit", "exact"])


def tensor(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def close(found, wanted, tolerance):
    return (found - wanted).abs().max() <= tolerance * wanted.abs().max()


# ---- 1: the same mechanism in two kinds of coordinates --------------------------------------------------------------
def reduced_pendulum(mass, length, gravity):
    """A rod on a revolute joint; its angle is q."""
    scene = cs.Scene(gravity=torch.stack((gravity * 0, gravity * 0, -gravity)))
    com = torch.stack((length * 0, length * 0, -length))
    scene.add_body(joint=cs.Revolute((0, 1, 0), initial=0.8), mass=mass, com=com, inertia=(0.02, 0.02, 0.02))
    return scene, lambda traj: traj.q[:, 0]


def maximal_pendulum(mass, length, gravity):
    """A free rod tied to the world by a hinge."""
    scene = cs.Scene(gravity=torch.stack((gravity * 0, gravity * 0, -gravity)))
    turn, away = (math.cos(0.4), 0.0, math.sin(0.4), 0.0), (-math.sin(0.8), 0.0, -math.cos(0.8))
    joint = cs.Free(initial=(*(a * length.item() for a in away), *turn))
    scene.add_body("rod", joint=joint, mass=mass, inertia=(0.02, 0.02, 0.02))
    scene.add_hinge(None, "rod", axis=(0, 1, 0), pos_b=torch.stack((length * 0, length * 0, length)), quat_b=(1, 0, 0, 0))
    return scene, lambda traj: 2 * torch.atan2(traj.q[:, 5], traj.q[:, 3])


def swing(pendulum, h, gradient, time=0.6):
    """Angle at the end and its derivatives by mass, length and gravity."""
    numbers = {"mass": tensor(0.7), "length": tensor(0.3), "gravity": tensor(G)}
    scene, angle = pendulum(**numbers)
    model = scene.build()
    sim = cs.Simulator(model, h, gradient=gradient)
    state = sim.initial_state()
    if model.ne:  # where the rod starts depends on its length
        at = numbers["length"] * torch.tensor((-math.sin(0.8), 0.0, -math.cos(0.8)), dtype=torch.float64)
        state = cs.State(torch.cat((at, state.q[3:])), state.v)
    end = angle(sim.rollout(state, params=scene.params(), steps=round(time / h)))[-1]
    return torch.stack((end.detach(), *gradients(end, numbers).values()))


@MODES
def test_pendulum_in_maximal_coordinates(gradient):
    """Angle and derivatives differ by 8e-6 at 1 ms and fourfold at 2 ms: SHAKE follows the revolute joint."""
    far, near = ([swing(p, h, gradient) for p in (reduced_pendulum, maximal_pendulum)] for h in (2e-3, 1e-3))
    apart = [(a - b).abs() / a.abs() for a, b in (far, near)]
    assert apart[1].max() < 2e-5, apart
    assert (apart[0] / apart[1]).min() > 3.5, apart
    assert (near[0].abs() > 1e-2).all()


def four_bar(closing, masses, control=0.3):
    """Crank, coupler and rocker in the xz plane as a tree, closed by what `closing` adds; a motor turns the crank."""
    scene = cs.Scene()
    link = {"inertia": (0.01, 0.01, 0.01)}
    scene.add_body("crank", joint=cs.Revolute((0, 1, 0)), mass=masses[0], com=(0, 0, 0.1), **link)
    scene.add_body(
        "coupler", parent="crank", joint=cs.Revolute((0, 1, 0)), pos=(0, 0, 0.2), mass=masses[1], com=(0.15, 0, 0.05), **link
    )
    scene.add_body("rocker", joint=cs.Revolute((0, 1, 0)), pos=(0.4, 0, 0), mass=masses[2], com=(0, 0, 0.15), **link)
    closing(scene)
    scene.add_motor("crank")
    return scene


AT = {"pos": (0.35, 0, 0.1), "pos_b": (0, 0, 0.3)}
LEVEL = {**AT, "quat_b": (1, 0, 0, 0)}
CLOSINGS = {
    "two rows": lambda scene: scene.add_lock("coupler", "rocker", x=True, z=True, **LEVEL),
    "hinge": lambda scene: scene.add_hinge("coupler", "rocker", axis=(0, 1, 0), **LEVEL),
    "point": lambda scene: scene.add_point("coupler", "rocker", **AT),
}


def turn_four_bar(closing, gradient, project, steps=100):
    """Derivatives of the last state by everything that moves it."""
    masses = tensor([0.5, 0.8, 0.6])
    scene = four_bar(closing, masses)
    model = scene.build()
    sim, params = cs.Simulator(model, 0.005, gradient=gradient, project=project), scene.params()
    q = cs.project(model, torch.zeros(model.nq, dtype=torch.float64))
    assert cs.constraint_error(model, q).abs().max() < 1e-12
    control, external = tensor([0.3]), torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    state = cs.State(q.requires_grad_(), torch.zeros(3, dtype=torch.float64, requires_grad=True))
    traj = sim.rollout(state, control.expand(steps, 1), params, external=external)
    loss = torch.cat((traj.q[-1], traj.v[-1])) @ torch.linspace(0.5, 1.5, 6, dtype=torch.float64)
    return loss, gradients(loss, {"masses": masses, "control": control, "external": external, **dict(zip("qv", state))})


@pytest.mark.parametrize("closing", ["hinge", "point"])
@pytest.mark.parametrize("project", [0, 1])
@MODES
def test_redundant_rows_change_no_gradient(gradient, project, closing):
    """A planar loop is closed by two rows; a hinge has three more, which hold what nothing moves."""
    (y, wanted), (z, found) = (turn_four_bar(CLOSINGS[c], gradient, project) for c in ("two rows", closing))
    assert abs(y - z) < 1e-9
    for name, grad in wanted.items():
        assert close(found[name], grad, 1e-10), name  # measured 1e-14
        assert grad.norm() > 1e-3


def parallel_bars(maximal, numbers):
    """Two cranks of equal length and a coupler that stays level, as a tree with a loop or as free bodies."""
    scene, angle, length = cs.Scene(gravity=(0, 0, -G)), 0.7, 0.25
    turn, tip = (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0), (length * math.sin(angle), 0.0, length * math.cos(angle))
    bodies = {name: {"mass": m, "inertia": (0.004, 0.003, 0.002)} for name, m in zip(("left", "right", "bar"), numbers["mass"])}
    if not maximal:
        for name, x in (("left", 0.0), ("right", 0.4)):
            joint = cs.Revolute((0, 1, 0), initial=angle)
            scene.add_body(name, joint=joint, pos=(x, 0, 0), com=(0, 0, 0.1), **bodies[name])
        joint = cs.Revolute((0, 1, 0), initial=-angle)
        scene.add_body("bar", parent="left", joint=joint, pos=(0, 0, length), com=(0.2, 0, 0), **bodies["bar"])
        scene.add_motor("left")
    else:
        for name, x in (("left", 0.0), ("right", 0.4)):
            scene.add_body(name, joint=cs.Free(), pos=(x, 0, 0), quat=turn, com=(0, 0, 0.1), **bodies[name])
            scene.add_hinge(None, name, axis=(0, 1, 0), pos=(x, 0, 0), name=f"{name} pivot")
        scene.add_body("bar", joint=cs.Free(), pos=tip, com=(0.2, 0, 0), **bodies["bar"])
        scene.add_hinge("left", "bar", axis=(0, 1, 0), pos=(0, 0, length))
        scene.add_motor("left pivot")
    scene.add_hinge("right", "bar", axis=(0, 1, 0), pos=(0, 0, length))
    return scene, angle, length


@pytest.mark.parametrize("maximal", [False, True], ids=["tree", "maximal"])
@MODES
def test_parallel_bars(gradient, maximal):
    """From rest:  v = h (control + (m (a_left + a_right) + m_bar l) g sin) / (2 I + (m_left + m_right) a^2 + m_bar l^2)."""
    numbers = {"mass": tensor([0.5, 0.7, 0.9])}
    scene, angle, length = parallel_bars(maximal, numbers)
    model, h, a, control = scene.build(), 0.004, 0.1, tensor([0.3])
    params, sim = scene.params(), cs.Simulator(model, h, gradient=gradient, project=0)
    v = sim.step(sim.initial_state(), control, params).v[4 if maximal else 0]  # a free body turns about its own y
    left, right, bar = numbers["mass"].unbind()
    inertia = 2 * 0.003 + (left + right) * a**2 + bar * length**2
    wanted = h * (control[0] + G * math.sin(angle) * ((left + right) * a + bar * length)) / inertia
    assert v.item() == pytest.approx(wanted.item(), rel=1e-6)
    found, wanted = gradients(v, {**numbers, "control": control}), gradients(wanted, {**numbers, "control": control})
    for name, grad in wanted.items():
        assert close(found[name], grad, 1e-6), name


@MODES
def test_impulses_between_bodies_change_no_momentum(gradient):
    """Ties pull both bodies alike: the momentum after a step depends neither on their frames nor on their softness."""
    for scene in ("point, touching", "weld, touching", "slide, touching", "distance, touching", "lock z rx rz, touching"):
        some = worlds(scene, 6, seed=2)
        model, x = some.model, {**some.inputs, "v": some.inputs["v"].requires_grad_()}
        names = ("tie_pos", "tie_quat", "tie_length", "tie_softness")
        params = some.params.replace(**{name: some.params[name].clone().requires_grad_() for name in names})
        params = params.replace(
            **{name: torch.zeros_like(params[name]) for name in ("damping", "armature")}
        )  # they push on nothing
        q = x["q"].clone()
        q[:, [model.q_address[b] + 2 for b, p in enumerate(model.parent) if p < 0]] += 1.0  # off the ground
        sim = cs.Simulator(model, gradient=gradient)
        after = sim.step(cs.State(q, x["v"]), params=params, dt=x["dt"])
        momentum = cs.momentum(model, q, after.v, some.params)
        leaves = {name: params[name] for name in names}
        for grad in gradients((momentum * normal(generator(), *momentum.shape)).sum(), leaves).values():
            assert grad.abs().max() < 1e-9


# ---- 2: functions of the configuration ------------------------------------------------------------------------------
SOME = ("point", "weld", "hinge", "slide", "distance", "lock z rx rz", "lock ry", "loop", "chain", "couplings")


def held_fields(model):
    """Parameters that say where constraints are."""
    names = ("joint_pos", "joint_axis", "joint_anchor", "tie_pos", "tie_quat", "tie_length", "coupling")
    return [name for name in names if model.defaults[name].numel()]


@pytest.mark.parametrize("scene", SOME)
def test_constraint_error(scene):
    some, gen = worlds(scene, 2, seed=8), generator(9)
    model, q = some.model, some.inputs["q"]
    w = normal(gen, 2 * model.ne)
    assert error_of_derivative(lambda q: cs.constraint_error(model, q, some.params).flatten(), q, normal(gen, *q.shape), w) < 1e-8
    for name in held_fields(model):
        x = some.params[name]
        error = error_of_derivative(
            lambda x, name=name: cs.constraint_error(model, q, some.params.replace(**{name: x})).flatten(),
            x,
            normal(gen, *x.shape),
            w,
        )
        assert error < 1e-8, name


@pytest.mark.parametrize("iterations", [1, 2, 10])
@pytest.mark.parametrize("scene", SOME)
def test_project(scene, iterations):
    """Newton steps are differentiated as they ran; from a state some cm off, with rigid and soft ties."""
    some, gen = worlds(scene, 3, seed=8), generator(9)
    model = some.model
    q = model.integrate(some.inputs["q"], 0.03 * normal(gen, 3, model.nv))
    w = normal(gen, 3 * model.nq)

    def projected(q, params):
        return cs.project(model, q, params, iterations=iterations).flatten()

    assert error_of_derivative(lambda q: projected(q, some.params), q, normal(gen, *q.shape), w) < 1e-7
    for name in (*held_fields(model), "mass", "com", "armature"):
        x = some.params[name]
        d = 0.3 * normal(gen, *x.shape) * (1.0 if name in ("com", *held_fields(model)) else x)
        error = error_of_derivative(lambda x, name=name: projected(q, some.params.replace(**{name: x})), x, d, w)
        assert error < 1e-7, name


def test_project_to_a_sphere():
    """A point on a rod of given length: q = c + L (q0 - c) / |q0 - c|, since nothing turns a body held at its centre of mass."""
    scene = cs.Scene()
    scene.add_body("ball", joint=cs.Free(), pos=(0.3, 0.2, 0.1), mass=1.0, inertia=(0.1, 0.1, 0.1))
    scene.add_distance(None, "ball", pos=(0.1, 0, 0), length=0.5)
    model = scene.build()
    params, q0 = model.params(requires_grad=("tie_pos", "tie_length", "mass")), tensor(list(model.q0))
    found, centre = cs.project(model, q0, params)[:3], params["tie_pos"][0]
    wanted = centre + params["tie_length"][0] * (q0[:3] - centre) / (q0[:3] - centre).norm()
    assert (found - wanted).abs().max() < 1e-8
    w = torch.tensor([0.3, -1.0, 0.7], dtype=torch.float64)
    leaves = {"q": q0, "tie_length": params["tie_length"], "mass": params["mass"]}
    a, b = gradients(found @ w, leaves), gradients(wanted @ w, leaves)
    for name, grad in b.items():
        torch.testing.assert_close(a[name], grad, rtol=1e-7, atol=1e-8, msg=lambda m, name=name: f"{name}: {m}")


# ---- 3: steps, rollouts, linearisations and torch's transforms ------------------------------------------------------
@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("project", [0, 2])
@MODES
def test_rollout_is_a_chain_of_steps(gradient, project, substeps):
    some, steps, gen = worlds("driven, touching", 6, seed=5), 5, generator(6)
    sim = cs.Simulator(some.model, gradient=gradient, project=project)
    controls = some.inputs["control"] + 0.1 * normal(gen, steps, *some.inputs["control"].shape)
    wq, wv = normal(gen, steps, 6, some.model.nq), normal(gen, steps, 6, some.model.nv)

    def run(roll):
        x = {name: t.clone().requires_grad_() for name, t in {**some.inputs, "control": controls}.items()}
        params = some.params.detach(requires_grad=True)
        q, v = roll(x, params, {"external": x["external"], "dt": x["dt"]})
        return (q, v), gradients((wq * q).sum() + (wv * v).sum(), {**x, **params})

    def whole(x, params, options):
        traj = sim.rollout(cs.State(x["q"], x["v"]), x["control"], params, substeps=substeps, **options)
        return traj.q[1:], traj.v[1:]

    def chain(x, params, options):
        state, found = cs.State(x["q"], x["v"]), []
        for control in x["control"]:
            for _ in range(substeps):
                state = sim.step(state, control, params, **options)
            found.append(state)
        return torch.stack([s.q for s in found]), torch.stack([s.v for s in found])

    (ya, ga), (yb, gb) = run(whole), run(chain)
    for a, b in zip(ya, yb):
        assert torch.equal(a, b)
    for name, grad in ga.items():
        scale = max(1.0, gb[name].abs().max().item()) if grad.numel() else 1.0  # sums over steps are taken in another order
        torch.testing.assert_close(grad, gb[name], rtol=1e-9, atol=1e-9 * scale, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("scene", ["loop", "chain, touching", "couplings", "driven"])
def test_linearize(scene, project):
    """Against the step's own vector-Jacobian products, and against differences."""
    some, gen = worlds(scene, 5, seed=9), generator(10)
    model, x, nv = some.model, some.inputs, some.model.nv
    sim, state, options = (
        cs.Simulator(model, project=project),
        cs.State(x["q"], x["v"]),
        {"external": x["external"], "dt": x["dt"]},
    )
    A, B = sim.linearize(state, x["control"], some.params, **options)
    dx, du = torch.zeros(5, 2 * nv, dtype=torch.float64).requires_grad_(), torch.zeros_like(x["control"]).requires_grad_()
    w = normal(gen, 5, 2 * nv)
    out = tangent_step(sim, state, x["control"], some.params, dx, du, **options)
    for found, wanted in zip((A, B), torch.autograd.grad(out, (dx, du), w)):
        assert ((w.unsqueeze(-2) @ found).squeeze(-2) - wanted).norm() <= 1e-9 * wanted.norm()
    one = cs.State(x["q"][0], x["v"][0]), x["control"][0], cs.Params(model, {name: t[0] for name, t in some.params.items()})
    held = {name: t[0] for name, t in options.items()}
    tries = [jacobians_by_differences(sim, *one, h, **held) for h in (1e-5, 1e-6, 1e-7)]
    for i, found in enumerate((A[0], B[0])):
        if found.numel():
            assert min((found - wanted[i]).abs().max() for wanted in tries) < 1e-6 * found.abs().max()


@pytest.mark.parametrize("project", [0, 1])
@MODES
def test_gradcheck(gradient, project):
    """Whole Jacobians of a hinge that a servo drives, with a coupled limb, by everything."""
    scene = cs.Scene()
    arm = {"mass": 0.5, "com": (0.01, 0, -0.2), "inertia": (0.02, 0.02, 0.01)}
    soft = {"damping": 0.1, "armature": 0.01}
    scene.add_body("arm", joint=cs.Ball(**soft), pos=(0, 0, 1), **arm)
    scene.add_body("hand", parent="arm", joint=cs.Revolute((0, 1, 0.1), **soft), pos=(0, 0, -0.4), **arm)
    scene.add_body("door", joint=cs.Free(**soft), pos=(0.3, 0, 0.8), mass=1.0, com=(0.1, 0, 0), inertia=(0.03, 0.04, 0.05))
    scene.add_hinge(None, "door", pos=(0.3, 0, 0.8), axis=(0.1, 0, 1))
    scene.add_distance("hand", "door", pos=(0, 0, -0.1), pos_b=(0.2, 0, 0.1))
    scene.add_coupling("hand", coefficients=(0.1,), softness=1e-3)
    scene.add_servo("hinge0", gain=10.0, max_force=20.0, max_speed=3.0)
    model, gen = scene.build(), generator(3)
    sim, params = cs.Simulator(model, gradient=gradient, project=project), model.params()
    names = [name for name, x in params.items() if x.numel() and name not in ("kp", "kd", "stiffness", "rest", "tie_softness")]
    q = model.integrate(torch.tensor(model.q0), 0.01 * normal(gen, model.nv))
    tensors = (q, 0.3 * normal(gen, model.nv), tensor([0.2]), 0.3 * normal(gen, 3, 6), tensor(0.02), *(params[n] for n in names))

    def step(q, v, control, external, dt, *fields):
        return tuple(sim.step(cs.State(q, v), control, params.replace(**dict(zip(names, fields))), external=external, dt=dt))

    leaves = tuple(x.detach().clone().requires_grad_() for x in tensors)
    assert torch.autograd.gradcheck(step, leaves, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_vmap():
    """Mapped over worlds it is the batch, with its gradients."""
    some = worlds("driven, touching", 4, seed=11)
    sim, x = cs.Simulator(some.model), some.inputs
    fields = dict(some.params.items())

    def loss(x, fields):
        state = sim.step(
            cs.State(x["q"], x["v"]), x["control"], cs.Params(some.model, fields), external=x["external"], dt=x["dt"]
        )
        return state.q.sin().sum() + state.v.cos().sum()

    found = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)))(x, fields)
    leaves = ({name: t.clone().requires_grad_() for name, t in part.items()} for part in (x, fields))
    for part, mapped in zip(leaves := tuple(leaves), found):
        wanted = gradients(loss(*leaves), part)
        for name, grad in wanted.items():
            scale = grad.abs().max().item() if grad.numel() else 0.0
            torch.testing.assert_close(mapped[name], grad, rtol=1e-12, atol=1e-12 * scale)
