"""Semi-implicit Euler converges with order 1: halving dt halves the error, of positions, turns and velocities alike."""

import numpy as np
import pytest

import costate as cs

TIME = 0.5
COARSE, LEVELS = 1 / 200, 5  # dt = COARSE / 2^level
FINE = 8  # level of the reference, extrapolated once more, so its own error is O(dt^2)
SLOPE = (0.9, 1.1)  # of log2(error) against level; 1 is the order


def pendulum() -> tuple[cs.Scene, list[float], list[float]]:
    scene = cs.Scene()
    scene.add_body("a", joint=cs.Revolute(axis=(0, 1, 0), damping=0.05), mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.01))
    joint = cs.Revolute(axis=(0, 1, 0), anchor=(0, 0, 0.1))
    scene.add_body("b", parent="a", joint=joint, pos=(0, 0, -1.1), mass=0.5, com=(0, 0, -0.3), inertia=(0.01, 0.02, 0.015))
    return scene, [1.0, -0.5], [0.4, 1.0]


def ball_pendulum() -> tuple[cs.Scene, list[float], list[float]]:
    scene = cs.Scene()
    scene.add_body(joint=cs.Ball(anchor=(0, 0, 0.2)), mass=1.0, com=(0.05, 0, -0.4), inertia=(0.03, 0.02, 0.02))
    return scene, [0.8, 0.5, -0.3, 0.2], [1.0, -0.5, 2.0]


def sprung_free_body() -> tuple[cs.Scene, list[float], list[float]]:
    scene = cs.Scene()
    joint = cs.Free(stiffness=4.0, rest=[0, 0, 1.5, 1, 0.2, 0, 0], damping=0.1)
    scene.add_body("a", joint=joint, mass=1.0, com=(0.02, 0.1, 0), inertia=(0.1, 0.2, 0.25))
    scene.add_body(
        "b",
        parent="a",
        joint=cs.Planar(stiffness=3.0),
        pos=(0.3, 0, 0),
        quat=(1, 0.3, 0, 0),
        mass=0.4,
        inertia=(0.01, 0.02, 0.02),
    )
    return scene, [0, 0, 1, 0.9, 0.1, -0.4, 0.1, 0.1, -0.2, 0.3], [1, 0, 0.5, 1, -2, 1, 0.2, 0.3, -1]


SCENES = {
    "pendulum": (pendulum, {"angles": slice(0, 2)}),
    "ball": (ball_pendulum, {"turn": slice(0, 3)}),
    "free": (sprung_free_body, {"position": slice(0, 3), "turn": slice(3, 6), "planar": slice(6, 9)}),
}


def end(model: cs.Model, q: list[float], v: list[float], level: int) -> cs.State:
    dt = COARSE / 2**level
    state = cs.State(np.array(q, dtype=float), np.array(v, dtype=float))
    return cs.Simulator(model, dt=dt).rollout(state, steps=round(TIME / dt))[-1]


def reference(model: cs.Model, q: list[float], v: list[float]) -> cs.State:
    """2 x(dt/2) - x(dt): Richardson's extrapolation, on the manifold."""
    a, b = end(model, q, v, FINE - 1), end(model, q, v, FINE)
    return cs.State(model.integrate(b.q, model.difference(a.q, b.q)), 2 * b.v - a.v)


@pytest.mark.parametrize("name", SCENES)
def test_order_one(name):
    make, parts = SCENES[name]
    scene, q, v = make()
    model = scene.build()
    exact = reference(model, q, v)
    ends = [end(model, q, v, level) for level in range(LEVELS)]
    dq = np.stack([model.difference(exact.q, s.q) for s in ends])
    dv = np.stack([s.v - exact.v for s in ends])
    errors = {part: np.linalg.norm(dq[:, at], axis=1) for part, at in parts.items()}
    errors |= {f"rate of {part}": np.linalg.norm(dv[:, at], axis=1) for part, at in parts.items()}
    for part, error in errors.items():
        assert error[0] > 1e-5, f"{part}: the coarsest error {error[0]:.1e} is too small to measure an order with"
        slopes = np.log2(error[:-1] / error[1:])
        assert all(SLOPE[0] < s < SLOPE[1] for s in slopes), f"{part}: order {np.round(slopes, 3)}"


def test_damping_is_implicit():
    """Stiff damping far beyond the explicit limit 2 m / dt decays without a sign change, and a larger one faster."""
    ends = []
    for damping in (1e3, 1e6):
        scene = cs.Scene(gravity=(0, 0, 0))
        scene.add_body(joint=cs.Prismatic(damping=damping), mass=1.0, inertia=(0.1, 0.1, 0.1))
        traj = cs.Simulator(scene.build(), dt=0.01).rollout(cs.State(np.zeros(1), np.ones(1)), steps=5)
        np.testing.assert_allclose(traj.v[:, 0], (1 + 0.01 * damping) ** -np.arange(6.0), rtol=1e-9)
        ends.append(traj.v[-1, 0])
    assert 0 < ends[1] < ends[0]
