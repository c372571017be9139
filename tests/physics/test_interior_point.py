"""The interior point solver: the same steps as sweeps that converged, closed forms, a status that says what it reached.

Both solve the same rows, whose friction is an interval in the plane and a polygon in space. Where friction holds more than it
must, impulses share a load in many ways, but velocities are one.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import costate as cs
from tests.gradients import planar_scenes as planar_worlds
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.contact_scenes import worlds as space_worlds
from tests.physics.contact_scenes import G, Slope, look, on_ground, run, turn
from tests.physics.planar_scenes import SURFACES, TRAPEZOID, Surface, chain, dominoes, pyramid, stack

H = 0.01
AGREE = 1e-6  # m/s, rad/s; what is asked for
SOLVED = 1e-10  # m/s, residual; what is asked for
FORCE = 1e-7  # relative: rows give way by 1e-9 of their stiffness
INTERIOR = cs.InteriorPoint()
TIGHT = cs.PGS(iterations=2000, polish=12)


# ---- against sweeps ------------------------------------------------------------------------------------------------
def hit_chain() -> cs.Scene:
    scene = chain(6, 0.0, collide=True)
    scene.add_body("ball", pos=(-0.3, -0.4), shapes=cs.Circle(0.1, mass=0.2, restitution=0.5))
    return scene


# scene; its first velocities, by dof
FLAT = {
    "stack": (lambda: stack(5), {0: 1.0, 9: -2.0}),
    "pyramid": (lambda: pyramid(4), {27: 2.0}),
    "dominoes": (lambda: dominoes(4), {0: 0.225, 2: -1.5}),
    "chain": (hit_chain, {18: 2.0, 19: 1.0}),
}


def both(model: cs.Model, q: np.ndarray, v: np.ndarray, cone: object = None, **options) -> tuple:
    """One step of many worlds by each solver, with what it tells."""
    sweeps = TIGHT if cone is None else replace(TIGHT, cone=cone)
    inner = INTERIOR if cone is None else replace(INTERIOR, cone=cone)
    return tuple(cs.Simulator(model, H, solver=s, **options).step(cs.State(q, v), info=True) for s in (sweeps, inner))


@pytest.mark.parametrize("name", FLAT)
def test_the_same_steps_as_sweeps_in_the_plane(name):
    """From states along 1.5 s of motion; all of them are solved by both."""
    make, fast = FLAT[name]
    model = make().build()
    v = np.zeros(model.nv)
    for dof, speed in fast.items():
        v[dof] = speed
    traj = run(model, 150, v=v, solver=TIGHT)
    (a, swept), (b, info) = both(model, traj.q[:-1:2], traj.v[:-1:2])
    assert info.status.converged.all() and info.status.residual.max() < SOLVED
    assert swept.status.residual.max() < AGREE / 10, "2000 sweeps may leave a bit"
    np.testing.assert_allclose(b.v, a.v, atol=AGREE)
    assert info.status.contacts.max() > 1 and np.abs(traj.q - traj.q[0]).max() > 0.05


@pytest.mark.parametrize("name", planar_worlds.SCENES)
def test_the_same_steps_as_sweeps_in_random_planar_worlds(name):
    """All pairs of shapes in all situations, stacks, chains, ties and trees with every row."""
    some = planar_worlds.worlds(name, 30, seed=11)
    found = [step_with_info(cs.Simulator(some.model, solver=s), some.inputs, some.params) for s in (TIGHT, INTERIOR)]
    (a, swept), (b, info) = found
    good = swept.status.converged & info.status.converged
    assert info.status.converged.double().mean() > 0.95 and good.double().mean() > 0.9
    scale = 1 + a.v.abs().amax(-1, keepdim=True)
    assert ((b.v - a.v).abs() / scale)[good].max() < AGREE


@pytest.mark.parametrize("cone", [3, 4, 8])
@pytest.mark.parametrize("name", ["sphere on plane", "capsule on plane", "box on plane", "sphere on sphere", "pile", "walker"])
def test_the_same_steps_as_sweeps_in_space(name, cone):
    """With the same polygon; corners agree by construction."""
    some = space_worlds(name, 20, seed=12)
    solvers = (replace(TIGHT, cone=cone), replace(INTERIOR, cone=cone))
    (a, swept), (b, info) = (step_with_info(cs.Simulator(some.model, solver=s), some.inputs, some.params) for s in solvers)
    good = swept.status.converged & info.status.converged
    assert info.status.converged.double().mean() > 0.9 and good.double().mean() > 0.8
    scale = 1 + a.v.abs().amax(-1, keepdim=True)
    assert ((b.v - a.v).abs() / scale)[good].max() < AGREE


def test_the_number_of_directions_does_not_count_in_the_plane():
    model = stack(3).build()
    v = 0.3 * np.arange(9.0)
    steps = [look(model, v=v, solver=cs.InteriorPoint(cone=n))[0].v for n in (3, 4, 32)]
    assert (steps[0] == steps[1]).all() and (steps[0] == steps[2]).all()


# ---- closed forms --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("part", [0.9, 0.999, 1.001, 1.5])
def test_a_block_sticks_or_slides_by_the_friction_angle(part, kind):
    surface, mu = Surface(math.atan(part * 0.5), 0.5, kind=kind), 0.5
    block = cs.Polygon(TRAPEZOID, density=100.0, friction=mu)
    traj = run(surface.with_body(block, 0.05, x=-2.0), 100, solver=INTERIOR)
    a = max(G * (math.sin(surface.angle) - mu * math.cos(surface.angle)), 0.0)
    np.testing.assert_allclose(traj.v[:, :2], np.outer(a * H * np.arange(101), surface.downhill), atol=FORCE * G)
    assert traj.status.converged and traj.status.residual < SOLVED


def test_a_circle_rolls_down_a_slope():
    surface, r = Surface(0.4, 0.5), 0.1
    traj = run(surface.with_body(cs.Circle(r, friction=0.5, density=100.0), r), 100, solver=INTERIOR)
    speed = 2 / 3 * G * math.sin(0.4) * H * np.arange(101)
    np.testing.assert_allclose(traj.v[:, :2], np.outer(speed, surface.downhill), atol=FORCE * G)
    np.testing.assert_allclose(traj.v[:, 2], -speed / r, atol=FORCE * G / r)


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_hit_rebounds_with_e_times_its_speed(e):
    box = cs.Rectangle((0.1, 0.05), density=100.0, restitution=e)
    scene = Surface(restitution=e).with_body(box, 0.05, gravity=(0, 0))
    np.testing.assert_allclose(look(scene, v=[0, -2.0, 0], solver=INTERIOR)[0].v, [0, 2 * e, 0], atol=FORCE)


@pytest.mark.parametrize("corners", [3, 4, 8])
def test_a_pyramid_holds_mu_n_at_a_corner_and_less_between(corners):
    """In space: down a slope friction pulls up; towards a corner it holds mu n, towards the middle of an edge the apothem's."""
    solver, apothem = cs.InteriorPoint(cone=corners), math.cos(math.pi / corners)
    for heading, share in ((math.pi, 1.0), (math.pi + math.pi / corners, apothem)):
        for part in (0.99, 1.01):
            slope = Slope(math.atan(part * share * 0.5), heading, 0.5)
            traj = run(slope.with_block(), 50, solver=solver)
            a = max(G * (math.sin(slope.angle) - share * 0.5 * math.cos(slope.angle)), 0.0)
            np.testing.assert_allclose(traj.v[-1, :3], 50 * H * a * slope.downhill, atol=1e-6)


@pytest.mark.parametrize(("force", "end"), [(50.0, 0.4), (-50.0, -0.2)])
def test_limits_dry_friction_and_servos_are_solved_too(force, end):
    """A cart stops at its limit; dry friction takes its share on the way; a weak servo gives all that it has."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("cart", joint=cs.Prismatic((1, 0), limits=(-0.2, 0.4), friction=5.0), mass=2.0, inertia=1.0)
    scene.add_motor("cart")
    first = run(scene, 3, control=[force], solver=INTERIOR).v[:, 0]
    np.testing.assert_allclose(first, np.arange(4) * H * math.copysign(abs(force) - 5, force) / 2, rtol=FORCE)
    traj = run(scene, 100, control=[force], solver=INTERIOR)
    assert abs(traj.q[-1, 0] - end) < 1e-8 and np.abs(traj.v[-1]).max() < 1e-8
    servo = cs.Scene(planar=True, gravity=(0, 0))
    servo.add_body("cart", joint=cs.Prismatic((1, 0)), mass=2.0, inertia=1.0)
    servo.add_servo("cart", gain=20.0, max_force=abs(force), max_speed=10.0)
    np.testing.assert_allclose(
        run(servo, 3, control=[math.copysign(5.0, force)], solver=INTERIOR).v[:, 0], np.arange(4) * H * force / 2, rtol=1e-6
    )


# ---- many bodies ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [lambda: stack(10), lambda: pyramid(4)], ids=["stack", "pyramid"])
def test_ten_rectangles_stand(make):
    """5 s; every step is solved to round-off in a few steps of the interior point."""
    traj = run(make(), 500, solver=INTERIOR)
    assert np.abs(traj.q - traj.q[0]).max() < 1e-6 and traj.status.converged and traj.status.residual < SOLVED
    assert 3 < traj.status.sweeps <= 30


@pytest.mark.parametrize("extra", ["hinge", "weld", "point"])
def test_redundant_constraints(extra):
    """Two of them between the same bodies beside contacts: what one does."""
    found = []
    for count in (1, 2):
        scene = cs.Scene(planar=True)
        scene.add_ground(friction=0.5)
        for k in range(3):
            scene.add_body(f"b{k}", pos=(0.3 * k, 0.3), angle=0.1 * k, shapes=cs.Circle(0.1, density=100.0, friction=0.5))
        for a, b in (("b0", "b1"), ("b1", "b2")):
            for _ in range(count):
                getattr(scene, f"add_{extra}")(a, b, pos=(0.15, 0.0))
        traj = run(scene, 100, v=[1.0, 0, 2.0, *[0.0] * 6], solver=INTERIOR)
        assert traj.status.converged and traj.status.contacts >= 2
        found.append(traj.q)
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


def test_a_chain_in_maximal_coordinates():
    model = hit_chain().build()
    traj = run(model, 300, v=[*[0.0] * 18, 2.0, 1.0, 0.0], solver=INTERIOR, project=5)
    assert np.abs(cs.constraint_error(model, traj.q)).max() < 1e-6 and traj.status.converged


def test_twice_the_same_shape():
    """Every contact twice: all rows are redundant."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.5)
    box = cs.Rectangle((0.1, 0.05), density=100.0, friction=0.5)
    scene.add_body("body", pos=(0, 0.05), shapes=[box, box])
    traj = run(scene, 100, v=[1.0, 0, 0], solver=INTERIOR)
    assert traj.status.residual < SOLVED and traj.status.contacts == 4
    n = np.arange(21)
    np.testing.assert_allclose(traj.v[:21, 0], 1 - 0.5 * G * H * n, rtol=1e-6)
    assert np.abs(traj.v[-1]).max() < 1e-8


# ---- status --------------------------------------------------------------------------------------------------------
def test_a_solve_that_fails_says_so():
    """One step of the interior point solves nothing: the world is flagged, the residual told, and a warning names it."""
    model = stack(5).build()
    sim = cs.Simulator(model, H, solver=cs.InteriorPoint(iterations=1))
    v = torch.zeros(3, model.nv, dtype=torch.float64)
    v[:, 0] = torch.tensor([0.0, 1.0, 2.0])
    with pytest.warns(RuntimeWarning, match="InteriorPoint"):
        state, info = sim.step(cs.State(sim.initial_state(3).q, v), info=True)
    assert not info.status.converged.any() and (info.status.residual > 1e-6).all() and (info.status.sweeps == 1).all()
    assert (info.status.unconverged == 1).all() and torch.isfinite(state.v).all()
    with pytest.warns(RuntimeWarning, match="InteriorPoint"):
        traj = sim.rollout(sim.initial_state(), steps=4)
    assert traj.status.unconverged == 4


def test_the_residual_is_that_of_the_velocities():
    """What a rough solve is off by in v is of the order of its residual."""
    model = stack(3).build()
    v = np.array([1.0, 0, 0, 0, -1.0, 0, 0, 0, 0.5])
    exact = look(model, v=v, solver=INTERIOR)[0].v
    for tolerance in (1e-2, 1e-4, 1e-6):
        state, info = look(model, v=v, solver=cs.InteriorPoint(tolerance=tolerance))
        assert info.status.converged and info.status.residual < tolerance
        assert np.abs(state.v - exact).max() < 100 * tolerance
    counts = [look(model, v=v, solver=cs.InteriorPoint(tolerance=t))[1].status.sweeps for t in (1e-2, 1e-6, 1e-10)]
    assert counts[0] < counts[1] <= counts[2] <= 50


def test_no_contact_no_step():
    traj = run(Surface().with_body(cs.Circle(0.1), 3.0), 10, solver=INTERIOR)
    assert traj.status.sweeps == 0 and traj.status.residual == 0


# ---- batches -------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_batch_is_its_worlds(instructions, dtype):
    """To the last bit, whatever else is in the batch, with gradients."""
    some = planar_worlds.worlds("pile", 21, seed=13)
    x = {name: t.to(dtype) for name, t in some.inputs.items()}
    sim = cs.Simulator(some.model, dtype=dtype, solver=INTERIOR)

    def go(worlds: list[int]) -> list[torch.Tensor]:
        q, v = (x[name][worlds].clone().requires_grad_() for name in ("q", "v"))
        traj = sim.rollout(cs.State(q, v), steps=5, dt=x["dt"][worlds])
        return [traj.q[-1].detach(), traj.status.numbers, *torch.autograd.grad((traj.q * traj.q).sum() + traj.v.sum(), (q, v))]

    everything = go(list(range(21)))
    for worlds in ([0], [7], [3, 4, 5, 20], list(range(20, -1, -1))):
        for a, b in zip(go(worlds), everything):
            assert torch.equal(a, b[worlds])


def test_single_precision():
    """A stack stands, to what float32 can tell."""
    traj = run(stack(5), 100, dtype=torch.float32, solver=INTERIOR)
    assert np.abs(traj.q - traj.q[0]).max() < 1e-4


def test_a_box_on_the_ground_in_space():
    """Tilted, thrown and turning: it comes to rest flat."""
    scene = on_ground(cs.Box((0.2, 0.15, 0.1), friction=0.5), height=0.4, quat=turn((0.6, 0.8, 0), 0.5), ground={"friction": 0.5})
    traj = run(scene, 300, v=[1.0, 0.5, 0, 1.0, 2.0, 0.5], solver=cs.InteriorPoint(cone=8))
    assert np.abs(traj.v[-1]).max() < 1e-6 and traj.status.residual < 1e-6
    assert min(abs(traj.q[-1, 2] - h) for h in (0.2, 0.15, 0.1)) < 1e-6
