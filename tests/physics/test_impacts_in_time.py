"""impacts="toi": bounces that keep their height, hits in the right order and at the right time, nothing that tunnels."""

import math

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.shapes import Shape
from tests.physics.contact_scenes import G
from tests.physics.impact_scenes import (
    ELASTIC,
    MET,
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
    speed,
)

SPACES = pytest.mark.parametrize("planar", [True, False], ids=["plane", "space"])


# ---- a ball and the ground -----------------------------------------------------------------------------------------
def dropped(planar: bool, e: float, height: float = 1.0, **ground) -> cs.Scene:
    scene = empty(planar, G)
    scene.add_ground(restitution=e, **ground)
    add(scene, "ball", 0, RADIUS + height, ball(planar, restitution=e))
    return scene


@SPACES
@pytest.mark.parametrize("dt", [1 / 60, 1 / 20])
def test_an_elastic_ball_keeps_its_height(planar, dt):
    """Where it is after a hundred bounces follows from its period; plain steps do not know when a bounce was."""
    sim = simulator(dropped(planar, 1.0), dt)
    period = 2 * math.sqrt(2 / G)
    n = int(100 * period / dt)
    traj = sim.rollout(sim.initial_state(), steps=n)
    t = (dt * torch.arange(n + 1, dtype=torch.float64) + period / 2) % period - period / 2
    height = coordinate(traj, planar, 0, 1) - RADIUS
    torch.testing.assert_close(height, 1 - G * t**2 / 2, rtol=0, atol=1e-3)
    assert traj.status.impacts == 100
    assert traj.status.penetration < MET
    plain = cs.Simulator(sim.model, dt).rollout(sim.initial_state(), steps=n)
    assert (coordinate(plain, planar, 0, 1) - RADIUS - height).abs().max() > 0.1
    assert plain.status.impacts == 0


@SPACES
def test_heights_fall_with_the_square_of_restitution(planar):
    e, dt = 0.5, 1 / 60
    sim = simulator(dropped(planar, e), dt)
    traj = sim.rollout(sim.initial_state(), steps=120)
    first, rise = math.sqrt(2 / G), e * math.sqrt(2 / G)
    height = coordinate(traj, planar, 0, 1) - RADIUS
    for k in range(3):
        top = first + sum(2 * rise * e**j for j in range(k)) + rise * e**k
        near = int(top / dt)
        t = dt * near - top
        assert abs(height[near] - (e ** (2 * k + 2) - G * t * t / 2)) < 1e-5, k


@SPACES
@pytest.mark.parametrize("e", [0.3, 0.9])
def test_it_comes_to_rest_in_finite_time(planar, e):
    """As long as all bounces together take, and no longer: below bounce_speed it stays down."""
    sim = simulator(dropped(planar, e), 1 / 60)
    whole = math.sqrt(2 / G) * (1 + e) / (1 - e)
    traj = sim.rollout(sim.initial_state(), steps=int(whole * 60) + 2)
    assert traj.v[-1].abs().max() < SOLVED
    assert abs(coordinate(traj, planar, 0, 1)[-1] - RADIUS) < SOLVED
    still = sim.rollout(traj[-1], steps=200)
    assert still.v.abs().max() < SOLVED
    assert still.status.impacts == 0


@SPACES
def test_without_restitution_it_stops_where_it_lands(planar):
    """A ball that slides on: friction begins at the time of impact, not at the start of its step."""
    mu, v0, dt = 0.3, 4.0, 1 / 60
    scene = empty(planar, G, friction_rule="product")
    scene.add_ground(friction=1.0)
    add(scene, "box", 0, 0.1 + 0.5, block(planar, 0.2, 0.1, friction=mu))
    sim = simulator(scene, dt)
    traj = sim.rollout(moving(sim, box=(v0,)), steps=40)
    lands = math.sqrt(2 * 0.5 / G)
    # while it lands, friction takes mu times the impulse that stops it
    after = v0 - mu * math.sqrt(2 * G * 0.5)
    end = 40 * dt - lands
    assert speed(traj.v[-1], planar, 0).item() == pytest.approx(after - mu * G * end, abs=1e-6)
    assert coordinate(traj, planar, 0, 1)[-1].item() == pytest.approx(0.1, abs=SOLVED)


def test_an_oblique_bounce_with_spin():
    """Grip: the contact point stops. Slip: friction is mu times the normal impulse."""
    vn, vt, e = 3.0, 2.0, 0.5
    for mu in (0.1, 1.0):
        scene = empty(True)
        scene.add_ground(friction=mu, restitution=e)
        add(scene, "disc", 0, 0.15, ball(True, friction=mu, restitution=e))
        sim = simulator(scene, 1 / 20)
        v = sim.step(moving(sim, disc=(vt, -vn, 0.0))).v
        slips = mu * (1 + e) * vn < vt / 3
        loss = mu * (1 + e) * vn if slips else vt / 3
        expected = [vt - loss, e * vn, -2 * loss / RADIUS]  # the moment of a disc is m r^2 / 2
        np.testing.assert_allclose(v, expected, atol=1e-6)


@SPACES
def test_an_impact_at_the_very_end_of_a_step(planar):
    """Just before, exactly at, or just after it: the same motion."""
    scene = empty(planar)
    scene.add_ground(**ELASTIC)
    add(scene, "ball", 0, RADIUS + 1.0, ball(planar, **ELASTIC))
    sim = simulator(scene, 1 / 16)
    for shift in (-1e-9, -1e-11, -1e-13, 0.0, 1e-13, 1e-11, 1e-9, 1e-7):
        state = moving(sim, ball=(0.0, -2.0) if planar else (0.0, 0.0, -2.0))
        state.q[1 if planar else 2] += shift  # gap: 8 steps
        traj = sim.rollout(state, steps=16)
        assert abs(coordinate(traj, planar, 0, 1)[-1] - (RADIUS + 1.0 - shift)) < SOLVED, shift
        assert traj.status.impacts == 1


# ---- hits ----------------------------------------------------------------------------------------------------------
@SPACES
@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
def test_two_balls_head_on(planar, e):
    """Momentum is kept, the relative speed is reversed e times, and they meet at the right time and place."""
    scene = empty(planar)
    masses, v0 = (1.0, 3.0), (4.0, -2.0)
    places = (-1.01, 1.01)
    for i, (x, mass) in enumerate(zip(places, masses)):
        add(scene, f"b{i}", x, 0, ball(planar, mass=mass, restitution=e, friction=0.0))
    sim = simulator(scene, 1 / 20)
    traj = sim.rollout(moving(sim, b0=(v0[0],), b1=(v0[1],)), steps=20)
    meet = 1.82 / (v0[0] - v0[1])
    mean = sum(m * v for m, v in zip(masses, v0)) / sum(masses)
    for i in range(2):
        after = mean - e * (v0[i] - mean)
        x = places[i] + v0[i] * meet + after * (1.0 - meet)
        assert speed(traj.v[-1], planar, i).item() == pytest.approx(after, abs=SOLVED)
        assert coordinate(traj, planar, i)[-1].item() == pytest.approx(x, abs=SOLVED)
    assert traj.status.impacts == 1


@SPACES
@pytest.mark.parametrize("gap", [0.02, 0.005, 1e-4])
def test_a_row_of_balls_passes_the_hit_on(planar, gap):
    """All but the last stop, however small the gaps: each hit sends the next on its way, within one step."""
    scene = empty(planar)
    for i in range(5):
        add(scene, f"b{i}", i * (2 * RADIUS + gap), 0, ball(planar, **SMOOTH))
    sim = simulator(scene, 1 / 20)
    traj = sim.rollout(moving(sim, b0=(2.0,)), steps=4)
    np.testing.assert_allclose([speed(traj.v[-1], planar, i) for i in range(5)], [0, 0, 0, 0, 2], atol=SOLVED)
    places = [i * (2 * RADIUS + gap) + gap for i in range(4)]
    np.testing.assert_allclose([coordinate(traj, planar, i)[-1] for i in range(4)], places, atol=SOLVED)
    assert traj.status.impacts == 4


@SPACES
def test_what_a_hit_sends_away_does_not_tunnel(planar):
    """A light ball is thrown against a thin wall by a heavy one, in the same step, at twice its speed."""
    scene = empty(planar)
    add(scene, "heavy", -0.05, 0, ball(planar, mass=10.0, **SMOOTH))
    add(scene, "light", 0.25, 0, ball(planar, mass=0.1, **SMOOTH))
    wall = (0.01, 1.0)
    if planar:
        scene.add_shape(cs.Rectangle(wall, pos=(0.8, 0), **SMOOTH))
    else:
        scene.add_shape(cs.Box((*wall, 1.0), pos=(0.8, 0, 0), **SMOOTH))
    sim = simulator(scene, 0.035)
    state, info = sim.step(moving(sim, heavy=(10.0,)), info=True)
    thrown = 20 * 10 / 10.1
    back = 0.01 + (0.69 - 0.25) / thrown
    assert coordinate(state, planar, 1).item() == pytest.approx(0.69 - thrown * (0.035 - back), abs=1e-6)
    assert info.status.impacts == 2
    traj = sim.rollout(state, steps=40)
    assert coordinate(traj, planar, 1).max() < 0.69 + 1e-5
    assert coordinate(traj, planar, 0).max() < 0.69 + 1e-5


@SPACES
def test_elastic_balls_in_a_box_keep_momentum_and_energy(planar):
    """Hits of balls keep momentum and energy, those with walls energy; many hits per step, 32 worlds."""
    scene, n, dt = empty(planar), 4, 1 / 20
    add_walls(scene, 0.8, **SMOOTH)
    for i in range(n):
        add(scene, f"b{i}", -0.6 + 0.4 * i, 0.05 * i, ball(planar, 0.1 + 0.02 * i, mass=1.0 + i, **SMOOTH))
    sim = simulator(scene, dt)
    state = sim.initial_state(32)
    state = cs.State(state.q, 3 * torch.randn_like(state.v))
    traj = sim.rollout(state, steps=60)
    assert traj.status.impacts.min() > 20
    E = energy(sim.model, traj)
    assert ((E - E[0]).abs() < 1e-3 * E[0]).all(), "slow hits do not bounce: 0.1 m/s"
    assert ((E - E[0]).abs().amax(0) < 1e-6 * E[0]).float().mean() > 0.8
    assert (E[1:] < E[:-1] + 1e-9 * E[0]).all()
    assert traj.status.penetration.max() < MET


@pytest.mark.parametrize("gravity", [0.0, G])
@pytest.mark.parametrize("half", [(0.3, 0.01), (0.2, 0.15)], ids=["rod", "box"])
def test_elastic_rectangles_tumble_without_gain(half, gravity):
    """Corner by corner: every hit is an impact of its own. Friction and slow hits take energy, nothing gives any."""
    scene = empty(True, gravity)
    add_walls(scene, 1.0, **SMOOTH)
    add(scene, "a", 0, 0, cs.Rectangle(half, mass=1.0, **SMOOTH))
    sim = simulator(scene, 1 / 20)
    state = sim.initial_state(64)
    v = torch.randn_like(state.v) * torch.tensor([2.0, 2.0, 5.0], dtype=torch.float64)
    traj = sim.rollout(cs.State(state.q, v), steps=80)
    E = energy(sim.model, traj) + gravity
    assert not traj.diverged.any()
    assert traj.status.impacts.float().mean() > 5
    assert ((E - E[0]).amax(0) < 1e-9 * E[0]).all()
    lost = (E[0] - E[-1]) / E[0]
    assert lost.max() < 0.02
    assert lost.median() < 1e-7
    assert traj.status.penetration.max() < 1e-3


def test_one_end_of_a_rod_at_a_time():
    """It lands on one end, which sends the other down: two impacts, each with its closed form."""
    a, m, angle, v0, dt = 0.3, 1.0, 0.3, 5.0, 1 / 20
    scene = empty(True)
    scene.add_ground(**SMOOTH)
    scene.add_body("rod", pos=(0, 0.12), angle=angle, shapes=cs.Rectangle((a, 0.01), mass=m, **SMOOTH))
    sim = simulator(scene, dt)
    inertia = sim.model.defaults["inertia"][0, 2].item()
    lever = -a * math.cos(angle) + 0.01 * math.sin(angle)
    p = 2 * v0 / (1 / m + lever**2 / inertia)
    hit = (0.12 - a * math.sin(angle) - 0.01 * math.cos(angle)) / v0
    traj = sim.rollout(moving(sim, rod=(0.0, -v0)), steps=2, dt=(hit + 0.01) / 2)
    np.testing.assert_allclose(traj.v[-1], [0, -v0 + p / m, lever * p / inertia], atol=1e-6)
    assert traj.status.impacts == 1
    traj = sim.rollout(moving(sim, rod=(0.0, -v0)), steps=1)
    assert traj.status.impacts >= 2
    fine = sim.rollout(moving(sim, rod=(0.0, -v0)), steps=200, dt=dt / 200)
    torch.testing.assert_close(traj.v[-1], fine.v[-1], rtol=0, atol=1e-6)
    torch.testing.assert_close(traj.q[-1], fine.q[-1], rtol=0, atol=1e-6)


# ---- tunnelling ----------------------------------------------------------------------------------------------------
def walled(planar: bool, shape: Shape, thick: float = 0.005) -> cs.Scene:
    """A body in front of a wall that is thin and wide."""
    scene = empty(planar)
    add(scene, "body", -1.0, 0, shape)
    wall = cs.Rectangle((thick, 5.0), **ELASTIC) if planar else cs.Box((thick, 5.0, 5.0), **ELASTIC)
    scene.add_shape(wall)
    return scene


@SPACES
def test_fast_balls_do_not_tunnel(planar):
    """512 balls, 5 to 30 radii per step, from all directions, against a wall of a tenth of a radius."""
    sim, n, dt = simulator(walled(planar, ball(planar, **SMOOTH)), 1 / 60), 512, 1 / 60
    state = sim.initial_state(n)
    fast = RADIUS / dt * (5 + 25 * torch.rand(n, dtype=torch.float64))
    angle = math.pi / 4 * (2 * torch.rand(n, dtype=torch.float64) - 1)
    v = torch.zeros_like(state.v)
    v[:, 0], v[:, 1] = fast * angle.cos(), fast * angle.sin()
    traj = sim.rollout(cs.State(state.q, v), steps=8)
    x = traj.q[..., 0]
    assert (traj.status.impacts == 1).all()
    assert x.max() < -0.005 - RADIUS + MET
    # it comes back as fast as it went, and is where a mirror says
    travelled = 8 * dt * v[:, 0]
    torch.testing.assert_close(x[-1], -0.21 + 1.0 - travelled, rtol=0, atol=1e-6)


@pytest.mark.parametrize("half", [(0.1, 0.02), (0.2, 0.005), (0.1, 0.1)], ids=["plank", "blade", "square"])
def test_spinning_rectangles_do_not_tunnel(half):
    """256 of them, up to a quarter of a turn and 0.4 m per step."""
    sim, n, dt = simulator(walled(True, cs.Rectangle(half, **SMOOTH)), 1 / 60), 256, 1 / 60
    state = sim.initial_state(n)
    v = torch.zeros_like(state.v)
    v[:, 0] = 0.2 / dt * (0.2 + 2 * torch.rand(n, dtype=torch.float64))
    v[:, 2] = 2 * math.pi / dt * 0.25 * (2 * torch.rand(n, dtype=torch.float64) - 1)
    traj = sim.rollout(cs.State(state.q, v), steps=60)
    assert traj.q[..., 0].max() < 0
    assert (traj.status.impacts >= 1).all()
    assert traj.status.penetration.max() < 5e-3


def test_two_turning_polygons_do_not_overlap():
    scene = empty(True)
    add_walls(scene, 1.0, **SMOOTH)
    for i in range(2):
        add(scene, f"b{i}", -0.5 + i, 0, cs.Rectangle((0.2, 0.15), mass=1.0 + i, **SMOOTH))
    sim = simulator(scene, 1 / 60)
    state = sim.initial_state(64)
    v = torch.randn_like(state.v) * torch.tensor([2.0, 2.0, 5.0] * 2, dtype=torch.float64)
    traj = sim.rollout(cs.State(state.q, v), steps=240)
    assert traj.status.impacts.float().mean() > 10
    assert (traj.status.penetration > 1e-6).sum() <= 2
    assert traj.status.penetration.max() < 5e-3


@SPACES
def test_bullets_hit_each_other(planar):
    """Head on, each 20 radii per step."""
    scene = empty(planar)
    for i, x in enumerate((-3.0, 3.0)):
        add(scene, f"b{i}", x, 0, ball(planar, **SMOOTH))
    sim = simulator(scene, 1 / 60)
    v = 20 * RADIUS * 60
    traj = sim.rollout(moving(sim, b0=(v,), b1=(-v,)), steps=3)
    assert coordinate(traj, planar, 0).max() < 0
    assert coordinate(traj, planar, 1).min() > 0
    assert speed(traj.v[-1], planar, 0).item() == pytest.approx(-v, rel=SOLVED)
