"""impacts="toi" where little bounces: rest, joints, constraints and motors; endless rows of hits; batches."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G
from tests.physics.impact_scenes import (
    ELASTIC,
    RADIUS,
    SMOOTH,
    SOLVED,
    add,
    add_walls,
    ball,
    block,
    coordinate,
    empty,
    energy,
    moving,
    simulator,
)

SPACES = pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])


# ---- rest, and whatever has no impacts -----------------------------------------------------------------------------
@SPACES
@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("boxes", [1, 5])
def test_boxes_at_rest_stay_as_they_would_without(planar, e, boxes):
    scene = empty(planar, G)
    scene.add_ground(restitution=e)
    for i in range(boxes):
        add(scene, f"b{i}", 0, 0.1 + 0.2 * i, block(planar, 0.15, 0.1, mass=1.0, restitution=e))
    sim = simulator(scene)
    with_toi, without = (s.rollout(s.initial_state(), steps=300) for s in (sim, cs.Simulator(sim.model, 1 / 60)))
    assert with_toi.status.impacts == 0
    torch.testing.assert_close(with_toi.q, without.q, rtol=0, atol=1e-12)
    assert with_toi.v.abs().max() < SOLVED


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_a_bounce_elsewhere_leaves_a_stack_alone(dtype):
    """However little is left of the step at the bounce: what rests is not pushed out faster for it."""
    scene = empty(True, G)
    scene.add_ground(**ELASTIC)
    for i in range(5):
        add(scene, f"b{i}", 0, 0.1 + i * 0.2, cs.Rectangle((0.15, 0.1), mass=1.0, restitution=0.0))
    add(scene, "ball", 3, 5.0, ball(True, **ELASTIC))
    sim = simulator(scene, dtype=dtype)
    settled = sim.rollout(sim.initial_state(), steps=30)[-1]
    for before in (1e-3, 1e-5, 1e-6):
        state, t = settled.detach(), 1 / 60 - before
        state.v[-2], state.q[-2] = -3.0, RADIUS + 3 * t + G * t * t / 2
        traj = sim.rollout(state, steps=10)
        assert traj.status.impacts == 1
        assert traj.v[:, :15].abs().max() < (SOLVED if dtype == torch.float64 else 1e-4)


def test_a_hovering_body_hovers():
    """A force that balances gravity, to the last bit of it: the parabola is that of all forces."""
    scene = empty(True, G)
    scene.add_ground()
    add(scene, "drone", 0, 1, ball(True, mass=2.0))
    sim = simulator(scene)
    lift = torch.tensor([[0.0, 2.0 * G, 0.0]], dtype=torch.float64)
    traj = sim.rollout(sim.initial_state(), steps=600, external=lift)
    assert (traj.q - traj.q[0]).abs().max() < 1e-9


@SPACES
def test_a_force_that_is_almost_nothing_changes_almost_nothing(planar):
    """A bounce with a sideways force of 1e-9 N."""
    scene = empty(planar, G)
    scene.add_ground(restitution=0.8)
    add(scene, "ball", 0, 1.1, ball(planar, mass=1.0, restitution=0.8))
    sim = simulator(scene)
    push = torch.zeros(1, 3 if planar else 6, dtype=torch.float64)
    still = sim.rollout(sim.initial_state(), steps=60, external=push)
    push[0, 0 if planar else 3] = 1e-9
    pushed = sim.rollout(sim.initial_state(), steps=60, external=push)
    torch.testing.assert_close(still.q, pushed.q, rtol=0, atol=1e-8)


# ---- joints, constraints, motors -----------------------------------------------------------------------------------
def arm(*, shapes: bool) -> cs.Scene:
    """A double pendulum with a motor and a limit, far from the wall that makes it a model with contact."""
    scene = cs.Scene(planar=True)
    scene.add_shape(cs.HalfPlane(pos=(0, -50)))
    for i in range(2):
        link = cs.Rectangle((0.03, 0.3), mass=1.0, pos=(0, -0.3), collide=shapes and i == 1)
        joint = cs.Revolute(limits=(-2.5, 2.5), damping=0.05, friction=0.01, initial=1.0)
        where = {"parent": f"l{i - 1}", "pos": (0, -0.6)} if i else {"pos": (0, 0)}
        scene.add_body(f"l{i}", joint=joint, shapes=link, **where)
    scene.add_motor("l1", gear=2.0)
    return scene


def test_a_robot_that_touches_nothing_moves_as_without():
    model = arm(shapes=True).build()
    controls = torch.randn(200, 1, dtype=torch.float64)
    runs = []
    for impacts in ("toi", None):
        sim = cs.Simulator(model, 0.01, impacts=impacts)
        runs.append(sim.rollout(moving(sim, l0=(3.0,)), controls))
    assert torch.equal(runs[0].q, runs[1].q)
    assert torch.equal(runs[0].v, runs[1].v)


@pytest.mark.parametrize("e", [0.0, 1.0])
def test_a_pendulum_hits_a_wall(e):
    """In the lowest point: it comes back with e times its speed, whatever the step size says."""
    scene = cs.Scene(planar=True)
    scene.add_shape(cs.HalfPlane(pos=(RADIUS, 0), angle=math.pi / 2, restitution=e, friction=0.0))
    bob = cs.Circle(RADIUS, pos=(0, -1), mass=1.0, restitution=e, friction=0.0)
    scene.add_body("pendulum", joint=cs.Revolute(initial=-1.0), shapes=bob)
    fine, coarse = (simulator(scene, dt) for dt in (1e-4, 1 / 60))
    traj = fine.rollout(fine.initial_state(), steps=8000)
    hit = int((traj.v[1:, 0] < traj.v[:-1, 0] - 0.1).nonzero()[0])
    assert abs(traj.q[hit, 0]) < 1e-3
    assert abs(traj.v[hit + 1, 0] + e * traj.v[hit, 0]) < 2e-3
    assert traj.q[:, 0].max() < 1e-6
    rough = coarse.rollout(coarse.initial_state(), steps=48)
    assert rough.q[:, 0].max() < 1e-6
    assert rough.status.impacts >= 1
    assert abs(rough.q[-1, 0] - traj.q[-1, 0]) < 0.05


def chain_and_ball(e: float) -> cs.Scene:
    """Three links that hinges hold together, in space without gravity, and a ball that comes at them."""
    scene = cs.Scene(planar=True, gravity=(0, 0))
    for i in range(3):
        scene.add_body(f"l{i}", pos=(0.25 + 0.5 * i, 0), shapes=cs.Rectangle((0.22, 0.04), mass=1.0, restitution=e, friction=0.0))
        if i:
            scene.add_hinge(f"l{i - 1}", f"l{i}", pos=(0.25, 0))
    scene.add_body("ball", pos=(0.6, 0.4), shapes=cs.Circle(RADIUS, mass=0.7, restitution=e, friction=0.0))
    return scene


@pytest.mark.parametrize("e", [0.0, 1.0])
def test_a_ball_hits_a_chain_of_hinged_links(e):
    """Momentum and angular momentum are kept, and with e = 1 energy; the hinges hold."""
    sim = simulator(chain_and_ball(e), 1 / 60)
    traj = sim.rollout(moving(sim, ball=(0.3, -3.0, 0.0)), steps=12)
    assert traj.status.impacts >= 1
    assert traj.status.drift < 2e-3
    P = cs.momentum(sim.model, traj.q, traj.v)
    torch.testing.assert_close(P[-1], P[0], rtol=0, atol=2e-3)  # about the origin it moves on by h v x m v
    E = energy(sim.model, traj)
    loss = (E[0] - E[-1]) / E[0]
    assert (abs(loss) < 0.03) if e else (0.05 < loss < 0.95)  # hinges are held to the first order in dt


def test_hinges_hold_when_something_else_bounces():
    """Shortly before the end of a step: errors are not undone within the microseconds that are left."""
    scene = cs.Scene(planar=True)
    scene.add_ground(**ELASTIC)
    for name, x in (("a", 0.0), ("b", 0.45)):
        scene.add_body(name, pos=(x, 5), shapes=cs.Rectangle((0.2, 0.05), mass=1.0))
    scene.add_hinge("a", "b", pos=(0.225, 0))
    scene.add_body("ball", pos=(3, 1.0), shapes=cs.Circle(RADIUS, mass=1.0, **ELASTIC))
    sim = simulator(scene)
    state = sim.rollout(moving(sim, a=(0.0, 0.0, 6.0), b=(0.0, 0.0, -8.0)), steps=10)[-1]
    fastest = state.v[:6].abs().max()
    for before in (1e-3, 1e-5, 1e-7):
        t, now = 1 / 60 - before, state.detach()
        now.v[-2], now.q[-2] = -3.0, RADIUS + 3 * t + G * t * t / 2
        new, info = sim.step(now, info=True)
        assert info.status.impacts == 1
        assert new.v[:6].abs().max() < 1.2 * fastest


def test_a_servo_holds_against_a_ball():
    """An arm that its servo keeps level: hit, pushed down, and back where it was."""
    scene = cs.Scene(planar=True)
    plank = cs.Rectangle((0.4, 0.03), mass=1.0, pos=(0.4, 0), restitution=0.5)
    scene.add_body("arm", joint=cs.Revolute(limits=(-1.0, 1.0)), shapes=plank)
    scene.add_servo("arm", gain=10.0, max_speed=4.0, max_force=30.0)
    scene.add_body("ball", pos=(0.5, 0.8), shapes=cs.Circle(RADIUS, mass=0.3, restitution=0.5))
    sim = simulator(scene)
    traj = sim.rollout(sim.initial_state(), torch.zeros(60, 1, dtype=torch.float64))
    assert traj.status.impacts >= 2
    assert traj.q[:, 0].min() < -0.002
    assert traj.q[:, 0].min() > -0.3
    assert abs(traj.q[-1, 0]) < 0.02
    assert traj.status.penetration < 1e-6


# ---- endless rows of hits ------------------------------------------------------------------------------------------
def finite(sim: cs.Simulator, state: cs.State, steps: int) -> cs.Trajectory:
    """A rollout that must not diverge."""
    traj = sim.rollout(state, steps=steps)
    assert not traj.diverged.any()
    assert torch.isfinite(traj.q).all()
    return traj


@SPACES
@pytest.mark.parametrize("e", [0.5, 1.0])
def test_into_a_wedge(planar, e):
    """Ever more hits towards its tip: after 32 the rest of a step goes on without a bounce, and nothing gets through."""
    scene = empty(planar, G)
    for side in (-1, 1):
        angle = side * math.pi / 3
        if planar:
            scene.add_shape(cs.HalfPlane(angle=angle, restitution=e, friction=0.0))
        else:
            quat = (math.cos(angle / 2), 0, -math.sin(angle / 2), 0)
            scene.add_shape(cs.Plane(quat=quat, restitution=e, friction=0.0))
    add(scene, "ball", 0.05, 1.5, ball(planar, mass=1.0, restitution=e, friction=0.0))
    sim = simulator(scene, 1 / 20)
    traj = finite(sim, sim.initial_state(), 200)
    x, y = coordinate(traj, planar, 0), coordinate(traj, planar, 0, 1)
    tip = RADIUS / math.cos(math.pi / 3)
    assert (y > tip + math.tan(math.pi / 3) * x.abs() - 1e-3).all()
    E = energy(sim.model, traj)
    assert E.max() <= E[0] + 1e-6
    if e < 1:
        assert abs(y[-1] - tip) < 1e-3
        assert traj.v[-1].abs().max() < 1e-3


@pytest.mark.parametrize("angle", [1e-6, 0.01, 0.3])
@pytest.mark.parametrize("dt", [1 / 20, 1 / 60, 1 / 240])
def test_a_box_chatters_on_its_corners_and_lies_down(angle, dt):
    scene = empty(True, G)
    scene.add_ground(restitution=0.5)
    scene.add_body("box", pos=(0, 0.5), angle=angle, shapes=cs.Rectangle((0.2, 0.1), mass=1.0, restitution=0.5))
    sim = simulator(scene, dt)
    traj = finite(sim, sim.initial_state(), int(3 / dt))
    E = energy(sim.model, traj)
    assert E.max() <= E[0] + 1e-9
    assert abs(traj.q[-1, 1] - 0.1) < 1e-4
    assert abs(traj.q[-1, 2]) < 1e-4
    assert traj.v[-1].abs().max() < 1e-4


def test_a_ball_between_a_piston_and_a_wall():
    """A heavy body closes in on an elastic ball: hits without end, until it is squeezed. It stays between them."""
    scene = empty(True)
    add(scene, "heavy", 0, 0, ball(True, mass=10.0, **SMOOTH))
    add(scene, "light", 0.25, 0, ball(True, mass=0.1, **SMOOTH))
    scene.add_shape(cs.Rectangle((0.01, 1.0), pos=(0.6, 0), **SMOOTH))
    sim = simulator(scene, 1 / 20)
    traj = finite(sim, moving(sim, heavy=(10.0,)), 20)
    assert traj.q[:, 3].max() < 0.49 + 1e-4
    assert (traj.q[:, 3] - traj.q[:, 0] > 0.2 - 1e-4).all()
    assert energy(sim.model, traj)[-1] < 500 * (1 + 1e-6)


# ---- batches -------------------------------------------------------------------------------------------------------
def busy(planar: bool, **options: Any) -> cs.Scene:
    """Balls and a block between walls, with gravity, friction and spin."""
    scene = empty(planar, G, **options)
    add_walls(scene, 0.7, restitution=0.8, friction=0.3)
    for i in range(2):
        add(scene, f"b{i}", -0.35 + 0.4 * i, 0.1 * i, ball(planar, 0.1, mass=1.0 + i, restitution=0.9, friction=0.3))
    add(scene, "box", 0.35, -0.2, block(planar, 0.15, 0.1, mass=1.5, restitution=0.7, friction=0.5))
    return scene


@SPACES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_256_worlds_are_256_times_one_world(planar, dtype):
    """Bit for bit, forward and back, whatever their lane-mates do; and in numpy, step by step."""
    n, steps = 256, 12
    sim = simulator(busy(planar), 1 / 30, dtype=dtype)
    state = sim.initial_state(n)
    v = (3 * torch.randn(n, sim.model.nv, dtype=torch.float64)).to(dtype)
    v[3] = 0.0
    wq, wv = torch.randn(sim.model.nq, dtype=dtype), torch.randn(sim.model.nv, dtype=dtype)

    def run(q, v):
        q, v = q.clone().requires_grad_(), v.clone().requires_grad_()
        traj = sim.rollout(cs.State(q, v), steps=steps)
        grads = torch.autograd.grad((traj.q[-1] @ wq + traj.v[-1] @ wv).sum(), (q, v))
        return traj, grads

    traj, grads = run(state.q, v)
    assert 3 < traj.status.impacts.float().mean() < 60
    for w in range(0, n, 17):
        one, mine = run(state.q[w], v[w])
        assert torch.equal(one.q, traj.q[:, w])
        assert torch.equal(one.v, traj.v[:, w])
        assert torch.equal(one.status.numbers, traj.status.numbers[w])
        for a, b in zip(mine, grads):
            assert torch.equal(a, b[w])
        now = cs.State(state.q[w].numpy(), v[w].numpy())
        for k in range(1, steps + 1):
            now = sim.step(now)
            np.testing.assert_array_equal(now.q, traj.q[k, w].detach())


@pytest.mark.full
@SPACES
def test_many_worlds_for_long(planar):
    """A minute of 256 busy worlds: none diverges, none leaves the room, none gains energy that free flight does not."""
    sim = simulator(busy(planar), 1 / 30)
    state = sim.initial_state(256)
    traj = sim.rollout(cs.State(state.q, 3 * torch.randn_like(state.v)), steps=1800)
    assert not traj.diverged.any()
    E = energy(sim.model, traj)
    k, w = torch.nonzero(E[1:] > E[:-1] + 0.02 * (E[0] - E.min()), as_tuple=True)
    if not len(k):
        return
    alone = cs.Simulator(busy(planar, collisions=False).build(), 1 / 30).step(cs.State(traj.q[k, w], traj.v[k, w]))
    free = sum(cs.energy(sim.model, alone.q, alone.v))
    assert (E[k + 1, w] < torch.maximum(free, E[k, w]) + 0.02 * (E[0, w] - E.min())).all()
    for i in range(3):
        for axis in range(2):
            assert coordinate(traj, planar, i, axis).abs().max() < 0.7
