"""Loops and robots in maximal coordinates: a four-bar stays closed, chains and paper B's quadruped move like their trees."""

import math

import numpy as np
import pytest
import torch

import costate as cs
from examples.servo_robots import FRICTION, gait, quadruped, to_maximal
from tests.physics.constraint_scenes import START, chain, four_bar, four_bar_angles, plane_angles, spin
from tests.physics.contact_scenes import run

CLOSED = 1e-6  # m in 10 s at dt 0.01 with project; what is asked for
NEARLY = 1e-3  # m in 10 s at dt 0.002 without; what is asked for
CHAIN = 1e-4  # m over 1 s at dt 1e-3; what is asked for


def way(model: cs.Model, dt: float, **options) -> np.ndarray:
    """Positions of all bodies over 1 s, every millisecond."""
    every = round(1e-3 / dt)
    return cs.kinematics(model, run(model, round(1 / dt), dt=dt, **options).q[::every]).position


# ---- the four-bar linkage ------------------------------------------------------------------------------------------
def crank(model: cs.Model, rate: float, dt: float, project: int, *, time: float = 10.0) -> cs.Trajectory:
    """Driven by its servo, whose target turns at `rate` (rad/s)."""
    sim = cs.Simulator(model, dt=dt, project=project)
    start = sim.initial_state()
    u = START + rate * dt * np.arange(round(time / dt))
    return sim.rollout(cs.State(start.q.numpy(), start.v.numpy()), u[:, None])


def off_the_loop(model: cs.Model, q: np.ndarray) -> float:
    """Largest error (rad) of the coupler's and the rocker's angle against the loop equation at the crank's angle."""
    angles = plane_angles(model, q)
    expected = np.stack(four_bar_angles(angles[:, 0]), -1)
    return float(np.abs((angles[:, 1:] - expected + math.pi) % (2 * math.pi) - math.pi).max())


FOUR_BARS = [("lock", False), ("point", False), ("hinge", False), ("point", True), ("hinge", True)]


@pytest.mark.parametrize(("closing", "maximal"), FOUR_BARS)
def test_a_driven_four_bar_stays_closed(closing, maximal):
    """Five turns in 10 s at dt 0.01 with two projections. One is enough at 1.5 rad/s: what it leaves grows as (h w)^3."""
    model = four_bar(closing, maximal=maximal)
    for rate, project in ((math.pi, 2), (1.5, 1)):
        traj = crank(model, rate, 0.01, project)
        error = np.abs(cs.constraint_error(model, traj.q)).max()
        assert error < CLOSED and traj.status.drift <= error and off_the_loop(model, traj.q) < 3 * CLOSED
        turned = np.unwrap(plane_angles(model, traj.q)[:, 0])
        assert abs(turned[-1] - START - rate * 10 + rate / 20) < 2 * rate * 0.01, (
            "behind by rate / gain, and a projection's share"
        )


@pytest.mark.parametrize(("closing", "maximal"), FOUR_BARS)
def test_a_driven_four_bar_nearly_stays_closed_without_projection(closing, maximal):
    """Five turns in 10 s at dt 0.002: recovery alone keeps it; less than the projection does, or nothing was measured."""
    model = four_bar(closing, maximal=maximal)
    traj = crank(model, math.pi, 0.002, 0)
    error = np.abs(cs.constraint_error(model, traj.q)).max()
    assert 1e-5 < error < NEARLY / 10 and off_the_loop(model, traj.q) < NEARLY / 10
    assert np.ptp(plane_angles(model, traj.q)[:, 2]) > 0.5, "the rocker rocks"


def test_drift_falls_with_the_step_and_with_each_projection():
    """Without projection as h^2; each projection squares the error, times what its J, which is of the step's start, is off."""
    model = four_bar("point")
    drift = {(dt, n): float(crank(model, math.pi, dt, n, time=2.0).status.drift) for dt in (0.01, 0.005) for n in (0, 1, 2)}
    assert 3.5 < drift[0.01, 0] / drift[0.005, 0] < 4.5
    assert 6 < drift[0.01, 1] / drift[0.005, 1] < 10
    for n in (0, 1):
        assert drift[0.01, n + 1] < drift[0.01, n] / 20


def test_all_forms_of_the_four_bar_move_alike():
    """Whatever closes it and whatever is a joint: a free swing of the linkage, its servo without force."""
    poses = []
    for closing, maximal in FOUR_BARS:
        model = four_bar(closing, maximal=maximal, max_force=0.0)
        coarse, fine = (way(model, dt, control=[0.0]) for dt in (1e-3, 5e-4))
        poses.append((coarse, 2 * fine - coarse))
    for i, j in ((1, 0), (2, 0), (4, 3)):
        np.testing.assert_allclose(poses[i][0], poses[j][0], atol=1e-7)
    np.testing.assert_allclose(poses[3][1], poses[0][1], atol=1e-4)  # in the limit, at 1 ms 7.5e-3
    assert np.ptp(poses[0][1], axis=0).max() > 0.3


# ---- chains --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["hinge", "point"])
def test_a_chain_in_maximal_coordinates_swings_like_its_tree(kind):
    """Ten links, 1 m, let go 0.4 rad (23 degrees) off: its end moves by 0.7 m, and no link is off by 1e-4 m within 1 s."""
    a, b = (way(chain(10, 0.4, maximal=m, kind=kind), 1e-3, project=1) for m in (True, False))
    assert np.abs(a - b).max() < CHAIN
    assert np.abs(a - a[0]).max() > 0.7


@pytest.mark.parametrize(("kind", "start", "rate"), [("hinge", 1.0, 0.0), ("point", 0.5, 2.0)])
def test_a_wide_swing_agrees_in_the_limit(kind, start, rate):
    """Let go 1 rad off, or 0.5 rad off while it whirls about the vertical at 2 rad/s. Both schemes are of first order with
    errors of their own: 1.7e-3 and 4e-4 m apart at 1 ms, half that at half the step; extrapolated to h = 0 4e-5 and 2e-6."""
    found = {}
    for maximal in (True, False):
        model = chain(10, start, maximal=maximal, kind=kind)
        v = spin(model, start, rate) if rate else None
        found[maximal] = [way(model, dt, v=v, project=1) for dt in (1e-3, 5e-4)]
    apart = [np.abs(a - b).max() for a, b in zip(found[True], found[False])]
    assert apart[0] < 3e-3 and 1.8 < apart[0] / apart[1] < 2.2
    limit = [2 * fine - coarse for coarse, fine in found.values()]
    assert np.abs(limit[0] - limit[1]).max() < CHAIN
    assert np.ptp(limit[0], axis=0)[-1, : 1 + bool(rate)].min() > 0.4, "it swings in one direction, and whirls in two"


def energy(model: cs.Model, traj: cs.Trajectory) -> np.ndarray:
    """Kinetic and potential, with the velocity in the middle of two steps: what Verlet's method keeps to second order."""
    return sum(cs.energy(model, traj.q[1:-1], (traj.v[1:-1] + traj.v[2:]) / 2))


def test_a_chain_keeps_its_energy():
    """10 s at dt 1e-3, from 1 rad. With their origins in their middles bodies move as SHAKE (Verlet) has it: no trend, and
    what it varies by is of order h^2. Without projection it loses, as a tree it gains."""
    spread, trend = {}, {}
    for project, maximal in ((2, True), (1, True), (0, True), (0, False)):
        model = chain(10, 1.0, maximal=maximal, middle=True)
        e = energy(model, run(model, 10_000, dt=1e-3, project=project))
        spread[project, maximal], trend[project, maximal] = np.ptp(e), e[-100:].mean() - e[:100].mean()
    swing = 5.0 * 9.81 * 0.5 * (1 - math.cos(1.0))  # J, what it swings with: 11.3
    assert spread[2, True] < 5e-5 * swing and abs(trend[2, True]) < 1e-5 * swing
    assert spread[1, True] < 2e-4 * swing
    assert trend[0, True] < -1e-3 * swing and trend[0, False] > 0.05 * swing


@pytest.mark.parametrize("kind", ["hinge", "point"])
@pytest.mark.parametrize("project", [0, 1])
def test_a_floating_chain_keeps_its_momentum(kind, project, rng):
    """Ten links in space, each with another velocity at first: linear momentum to 1e-10, and the centre of mass goes straight.
    In the plane angular momentum too."""
    model = chain(10, 0.3, maximal=True, kind=kind, middle=True, fixed=False)
    v = np.zeros((10, 6))
    v[:, [0, 2, 4]] = rng.normal(size=(10, 3))
    traj = run(model, 1000, dt=1e-3, v=v.ravel(), project=project)
    momentum = cs.momentum(model, traj.q, traj.v)
    np.testing.assert_allclose(momentum, momentum[:1].repeat(1001, 0), atol=1e-10)
    com = cs.centre_of_mass(model, traj.q)
    straight = com[0] + np.arange(1001)[:, None] * 1e-3 * momentum[0, 3:] / 5.0
    np.testing.assert_allclose(com, straight, atol=1e-10)
    assert np.abs(traj.q - traj.q[0]).max() > 0.3 and np.abs(momentum[0, 3:]).max() > 0.1


# ---- paper B's quadruped -------------------------------------------------------------------------------------------
ROBOT = 1e-3  # m over 0.5 s at dt 1e-3; what is asked for
DT = 1e-3
THOROUGH = cs.PGS(iterations=1000)  # 30 sweeps leave some steps of a walk unsolved, in either form


def walk(seconds: float) -> np.ndarray:
    return gait(DT * torch.arange(round(seconds / DT), dtype=torch.float64)).numpy()


def go(model: cs.Model, u: np.ndarray, start: cs.State | None = None, **options) -> tuple[cs.Trajectory, np.ndarray]:
    """A rollout from `start`, or from where it stands, and the positions of its 17 bodies."""
    sim = cs.Simulator(model, dt=DT, **options)
    start = start or sim.initial_state()
    traj = sim.rollout(cs.State(*(np.asarray(x) for x in start)), u)
    assert not np.any(traj.diverged)
    return traj, cs.kinematics(model, traj.q).position


def feet(model: cs.Model) -> list[int]:
    return [i for i, name in enumerate(model.body_names) if name.endswith("foot")]


def test_the_quadruped_is_paper_bs():
    """17 bodies, 8 servos of 4 N m; about 100 constraints: 88 rows, and those of four feet."""
    tree, maximal = quadruped(), quadruped(maximal=True)
    assert tree.nb == maximal.nb == 17 and tree.nu == maximal.nu == 8
    assert maximal.nv == 17 * 6 and 80 <= maximal.ne <= 110 and tree.nv == maximal.nv - maximal.ne
    assert tree.body_names == maximal.body_names and tree.motor_names == maximal.motor_names
    assert maximal.defaults["force_upper"].tolist() == [4.0] * 8


@pytest.mark.parametrize("maximal", [False, True])
def test_the_quadruped_stands(maximal):
    """For 3 s on straight legs: at rest, its feet carry its weight, its constraints are kept to round-off."""
    model = quadruped(maximal=maximal)
    traj, pose = go(model, np.zeros((3000, 8)))
    assert np.abs(pose[-1] - pose[0]).max() < 1e-9 and np.abs(traj.v[-1]).max() < 1e-9
    info = cs.Simulator(model, dt=DT).step(cs.State(traj.q[-1], traj.v[-1]), np.zeros(8), info=True)[1]
    weight = float(model.defaults["mass"].sum()) * 9.81
    np.testing.assert_allclose(info.contacts.impulse.sum(0) / DT, [0, 0, weight], atol=1e-7 * weight)
    assert info.contacts.active.sum() == 4 and traj.status.drift < 1e-12 and traj.status.converged


@pytest.mark.parametrize("maximal", [False, True])
def test_the_quadruped_crouches(maximal):
    """Hips to 0.1 rad, knees to -0.2 rad: feet stay below their hips, legs become shorter by cos(0.1), and it stays so."""
    model = quadruped(maximal=maximal)
    u = np.tile([0.1 if name.endswith("hip") else -0.2 for name in model.motor_names], (2000, 1))
    traj, pose = go(model, u)
    leg = pose[0, 0, 2] - pose[0, feet(model)[0], 2]
    np.testing.assert_allclose(pose[0, 0, 2] - pose[-1, 0, 2], leg * (1 - math.cos(0.1)), atol=1e-5)
    assert np.abs(pose[-1] - pose[1000]).max() < 1e-5 and np.abs(traj.v[-1]).max() < 1e-4 and traj.status.drift < 1e-7


@pytest.mark.parametrize("solver", [cs.PGS(), THOROUGH], ids=["default", "thorough"])
@pytest.mark.parametrize("moving", [False, True], ids=["stand", "walk"])
def test_the_quadruped_in_maximal_coordinates_moves_like_its_tree(moving, solver):
    """All 17 bodies over 0.5 s, from rest. Measured 2e-4 m: feet touch down a step earlier or later."""
    u = walk(0.5) * moving
    tree, maximal = (go(quadruped(maximal=m), u, solver=solver)[1] for m in (False, True))
    assert np.abs(maximal - tree).max() < (ROBOT if moving else 1e-9)
    assert not moving or tree[-1, 0, 0] - tree[0, 0, 0] > 0.01, "it walks"


def solved(model: cs.Model, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> int:
    """How many steps there are before the first that the solver gave up."""
    info = cs.Simulator(model, dt=DT, solver=THOROUGH).step(cs.State(q, v), u, info=True)[1]
    return int(np.argmax(np.append(info.status.unconverged, 1)))


def test_the_quadruped_goes_on_like_its_tree():
    """From states in the middle of the trot, with feet in the air, for 0.5 s, or as long as every step of both is solved."""
    u, total = walk(3.0), 0
    model, maximal = quadruped(), quadruped(maximal=True)
    traj, pose = go(model, u, solver=THOROUGH)
    for first in range(500, 2500, 250):
        part = slice(first, first + 500)
        state = to_maximal(model, maximal, cs.State(torch.tensor(traj.q[first]), torch.tensor(traj.v[first])))
        other, found = go(maximal, u[part], state, solver=THOROUGH)
        n = min(solved(model, traj.q[part], traj.v[part], u[part]), solved(maximal, other.q[:-1], other.v[:-1], u[part]))
        assert np.abs(found[: n + 1] - pose[first : first + n + 1]).max() < ROBOT
        total += n
    assert total > 500, "most was not compared"


def test_the_quadruped_walks_in_maximal_coordinates():
    """3 s: 0.5 m forwards, upright, every foot leaves the ground, held together to 1e-7 m."""
    model, u = quadruped(maximal=True), walk(3.0)
    traj, pose = go(model, u)
    assert pose[-1, 0, 0] - pose[0, 0, 0] > 0.5 and np.ptp(pose[:, 0, 2]) < 0.02
    assert np.ptp(pose[:, feet(model), 2], axis=0).min() > 1e-3
    assert traj.status.drift < 1e-7


@pytest.mark.parametrize("maximal", [False, True])
def test_the_walking_quadruped_has_no_more_torque_than_it_has(maximal):
    """4 N m in every step, also in those that were not solved; and feet push, within the cone of their friction.

    A solved contact is in its cone up to the solver's tolerance times at most the whole robot's mass, 29 kg: here 1e-12 m/s.
    """
    model, u = quadruped(maximal=maximal), walk(3.0)
    traj, _ = go(model, u)
    sim = cs.Simulator(model, dt=DT, solver=cs.PGS(tolerance=1e-12))
    info = sim.step(cs.State(traj.q[:-1], traj.v[:-1]), u, info=True)[1]
    torque, foot = np.abs(info.rows.impulse) / DT, info.contacts.impulse / DT
    assert torque.max() <= 4.0 * (1 + 1e-12) and torque.max() > 3.99
    assert foot[..., 2].min() > -1e-9 and (np.hypot(foot[..., 0], foot[..., 1]) - FRICTION * foot[..., 2]).max() < 1e-9  # N


def test_projections_hold_the_walking_quadruped_together():
    """5e-6, 5e-9, 1e-11 m or rad with none, one and two."""
    model, u = quadruped(maximal=True), walk(1.0)
    drift = [float(go(model, u, project=n)[0].status.drift) for n in (0, 1, 2)]
    assert 1e-4 > drift[0] > 100 * drift[1] > 1e4 * drift[2]
