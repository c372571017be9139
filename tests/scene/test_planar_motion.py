"""Planar scenes in motion: kinematics against complex numbers, the same motion in space, constraints and external forces."""

from math import pi

import numpy as np
import pytest
import torch

import costate as cs

SAME = 1e-12  # two ways to the same numbers in double
DT = 0.005


def random_state(model: cs.Model, *worlds: int, seed: int = 0) -> cs.State:
    gen = torch.Generator().manual_seed(seed)
    q = torch.tensor(model.q0) + torch.randn(*worlds, model.nq, generator=gen, dtype=torch.float64)
    return cs.State(q, torch.randn(*worlds, model.nv, generator=gen, dtype=torch.float64))


# ---- a tree --------------------------------------------------------------------------------------------------------
# bodies by name: parent, joint, pos, angle. Anchors, axes and centres of mass are not zero
ANCHOR, AXIS, COM = (0.1, -0.2), (0.6, 0.8), (0.3, 0.1)
TREE = {
    "base": (None, "free", (0.5, 1.0), 0.3),
    "arm": ("base", "revolute", (0.4, 0.1), 0.7),
    "rod": ("arm", "prismatic", (0.2, -0.3), -0.4),
    "plate": ("rod", "planar", (-0.1, 0.5), 1.1),
    "tip": ("plate", "fixed", (0.3, 0.3), 0.2),
    "wheel": (None, "revolute", (2.0, 0.5), -0.6),
}
MASS, INERTIA, DAMPING = 1.3, 0.4, 0.1


def planar_tree() -> cs.Scene:
    scene = cs.Scene(planar=True, gravity=(1.0, -9.0))
    for name, (parent, kind, pos, angle) in TREE.items():
        joint = {
            "free": None,
            "revolute": cs.Revolute(anchor=ANCHOR, damping=DAMPING, stiffness=2.0),
            "prismatic": cs.Prismatic(AXIS, stiffness=3.0),
            "planar": cs.Planar(ANCHOR, damping=DAMPING),
            "fixed": None,
        }[kind]
        scene.add_body(name, parent=parent, joint=joint, pos=pos, angle=angle, mass=MASS, inertia=INERTIA, com=COM)
    scene.add_site("s", body="tip", pos=(0.1, 0.2), angle=0.5)
    return scene


def spatial_tree() -> cs.Scene:
    """The same in space, by hand: x and y of the world, z up."""
    scene = cs.Scene(gravity=(1.0, -9.0, 0.0))
    for name, (parent, kind, pos, angle) in TREE.items():
        joint = {
            "free": cs.Planar(initial=(*pos, angle)),
            "revolute": cs.Revolute(anchor=(*ANCHOR, 0), damping=DAMPING, stiffness=2.0),
            "prismatic": cs.Prismatic((*AXIS, 0), stiffness=3.0),
            "planar": cs.Planar((*ANCHOR, 0), damping=DAMPING),
            "fixed": cs.Fixed(),
        }[kind]
        frame = {} if kind == "free" else {"pos": (*pos, 0), "quat": (np.cos(angle / 2), 0, 0, np.sin(angle / 2))}
        numbers = {"mass": MASS, "inertia": (0.7, 0.6, INERTIA), "com": (*COM, 0)}  # about x and y it does not matter
        scene.add_body(name, parent=parent, joint=joint, **frame, **numbers)
    scene.add_site("s", body="tip", pos=(0.1, 0.2, 0), quat=(np.cos(0.25), 0, 0, np.sin(0.25)))
    return scene


def poses(model: cs.Model, q: np.ndarray) -> dict[str, tuple[complex, complex]]:
    """Of each body its place and its direction, as complex numbers:  X_pb = T(pos) R(angle) T(anchor) X_joint(q) T(-anchor)."""
    found = {}
    anchor, axis = complex(*ANCHOR), complex(*AXIS)
    for i, (name, (parent, kind, pos, angle)) in enumerate(TREE.items()):
        x, z = q[model.q_address[i] :], found.get(parent, (0j, 1 + 0j))
        if kind == "free":
            found[name] = complex(x[0], x[1]), np.exp(1j * x[2])
            continue
        at, direction = z[0] + z[1] * complex(*pos), z[1] * np.exp(1j * angle)
        if kind == "revolute":
            at, direction = at + direction * (anchor - np.exp(1j * x[0]) * anchor), direction * np.exp(1j * x[0])
        elif kind == "prismatic":
            at = at + direction * x[0] * axis
        elif kind == "planar":
            shift = complex(x[0], x[1])
            at, direction = at + direction * (anchor + shift - np.exp(1j * x[2]) * anchor), direction * np.exp(1j * x[2])
        found[name] = at, direction
    return found


def test_kinematics_against_complex_numbers():
    model = planar_tree().build()
    q = random_state(model).q
    kin, known = cs.kinematics(model, q), poses(model, q.numpy())
    for i, (at, direction) in enumerate(known.values()):
        np.testing.assert_allclose(kin.position[i], (at.real, at.imag, 0), atol=SAME)
        w, x, y, z = kin.quaternion[i].tolist()
        assert (w + 1j * z) ** 2 == pytest.approx(direction, abs=SAME) and x == y == 0
    at, direction = known["tip"]
    site = at + direction * (0.1 + 0.2j)
    np.testing.assert_allclose(kin.site_position[0], (site.real, site.imag, 0), atol=SAME)


def test_the_same_motion_as_in_space():
    flat, spatial = planar_tree().build(), spatial_tree().build()
    np.testing.assert_array_equal(flat.q0, spatial.q0)
    start = random_state(flat, 3)
    a, b = (cs.Simulator(model, dt=DT).rollout(start, steps=100) for model in (flat, spatial))
    torch.testing.assert_close(a.q, b.q, rtol=0, atol=SAME * 100)  # rounding grows along the way
    for q, v in ((start.q, start.v), (a.q[-1], a.v[-1])):
        for x, y in zip(cs.energy(flat, q, v), cs.energy(spatial, q, v), strict=True):
            torch.testing.assert_close(x, y, rtol=SAME, atol=SAME)
        torch.testing.assert_close(cs.mass_matrix(flat, q), cs.mass_matrix(spatial, q), rtol=SAME, atol=SAME)
        torch.testing.assert_close(cs.momentum(flat, q, v), cs.momentum(spatial, q, v), rtol=SAME, atol=SAME)
        kin = cs.kinematics(flat, q, v)
        assert not kin.velocity[..., [0, 1, 5]].any() and not kin.position[..., 2].any()  # nothing leaves the plane


def test_jacobians_of_points():
    model = planar_tree().build()
    state = random_state(model)
    J = cs.point_jacobian(model, state.q, "tip", (0.1, 0.2))
    torch.testing.assert_close(J, cs.point_jacobian(model, state.q, "tip", (0.1, 0.2, 0.0)), rtol=0, atol=0)
    site = cs.kinematics(model, state.q, state.v).site_velocity[0]
    torch.testing.assert_close(J @ state.v, site, rtol=SAME, atol=SAME)
    with pytest.raises(ValueError, match=r"point must have shape \[..., 3\], got \(2,\)"):
        cs.point_jacobian(spatial_tree().build(), state.q, "tip", (0.1, 0.2))


# ---- constraints ---------------------------------------------------------------------------------------------------
def two_bodies() -> cs.Scene:
    scene = cs.Scene(planar=True)
    scene.add_body("a", pos=(0, 1), angle=0.3, shapes=cs.Circle(0.1, mass=1.0))
    scene.add_body("b", pos=(0.7, 1.5), angle=-0.5, shapes=cs.Circle(0.1, mass=2.0))
    return scene


def relative(traj: cs.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Of a point of b, seen from a: where it is, complex, and how b is turned."""
    q = traj.q.numpy()
    a, b = q[:, 0] + 1j * q[:, 1], q[:, 3] + 1j * q[:, 4]
    b = b + np.exp(1j * q[:, 5]) * BOLT
    return (b - a) * np.exp(-1j * q[:, 2]), q[:, 5] - q[:, 2]


BOLT = 0.2 - 0.1j  # in the frame of b
TIES = {
    "point": (lambda s: s.add_point("b", "a", pos=(0.2, -0.1)), "place"),
    "hinge": (lambda s: s.add_hinge("b", "a", pos=(0.2, -0.1)), "place"),
    "weld": (lambda s: s.add_weld("b", "a", pos=(0.2, -0.1)), "place angle"),
    "x": (lambda s: s.add_lock("a", "b", x=True, pos_b=(0.2, -0.1), pos=(0, 0), angle=0), "x"),
    "rotation": (lambda s: s.add_lock("b", "a", rotation=True), "angle"),
    "slide": (lambda s: s.add_slide("a", "b", axis=(3, 4), pos_b=(0.2, -0.1)), "across angle"),
    "distance": (lambda s: s.add_distance("a", "b", pos_b=(0.2, -0.1)), "distance"),
}


@pytest.mark.parametrize("kind", TIES)
def test_ties_hold_what_they_say_and_nothing_else(kind):
    add, holds = TIES[kind]
    scene = two_bodies()
    add(scene)
    model = scene.build()
    start = cs.State(cs.project(model, torch.tensor(model.q0)), random_state(model).v)
    traj = cs.Simulator(model, dt=0.002, project=3).rollout(start, steps=300)
    place, angle = relative(traj)
    across = (place * np.exp(-1j * np.arctan2(4, 3))).imag
    measured = {"place": place, "x": place.real, "angle": angle, "across": across, "distance": np.abs(place)}
    for name, x in measured.items():
        kept = np.abs(x[1:] - x[1]).max()  # the first step takes velocities that do not fit
        held = name in holds.split() or (name in ("x", "across", "distance") and "place" in holds)
        assert kept < 1e-7 if held else kept > 1e-2, (name, kept)
    assert cs.constraint_error(model, traj.q[1:]).abs().max() < 1e-7


def test_impulses_have_signs():
    """A weight on a slide along x: the row across it points to the right of the axis, down, and holds the weight up."""
    scene = cs.Scene(planar=True, gravity=(0, -10))
    scene.add_body("load", shapes=cs.Circle(0.1, mass=2.0, pos=(0.5, 0)))
    scene.add_slide(None, "load", axis=(1, 0))
    sim = cs.Simulator(scene.build(), dt=0.01)
    _, info = sim.step(sim.initial_state(), info=True)
    np.testing.assert_allclose(info.constraints.impulse / 0.01, (-20.0, 10.0), rtol=1e-6)  # N, N m about z
    assert sim.model.equality_names == ("slide0 across", "slide0 rotation")


def test_a_hinge_moves_as_a_joint():
    def pendulum(tied: bool) -> cs.Model:
        scene = cs.Scene(planar=True)
        rod = cs.Rectangle((0.05, 0.5), mass=1.0, pos=(0, -0.5), collide=False)
        if tied:
            scene.add_body("rod", pos=(0, 2), angle=1.0, shapes=rod)
            scene.add_hinge(None, "rod", pos=(0, 2))
        else:
            scene.add_body("rod", joint=cs.Revolute(initial=1.0), pos=(0, 2), shapes=rod)
        return scene.build()

    ends = []
    for tied in (False, True):
        sim = cs.Simulator(pendulum(tied), dt=1e-3, project=2)
        ends.append(sim.rollout(sim.initial_state(), steps=500).q[:, -1])
    assert (ends[0] - ends[1]).abs().max() < 2e-3 and ends[0].min() < 0.5  # each is off by a part of dt


@pytest.mark.parametrize("kind", ["hinge", "slide"])
def test_actuators_drive_ties(kind):
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", pos=(1, 1), angle=0.5, shapes=cs.Circle(0.1, mass=1.0))
    tie = scene.add_hinge(None, "a", pos=(0.5, 1)) if kind == "hinge" else scene.add_slide(None, "a", axis=(0, -2))
    scene.add_servo(tie, gain=20.0, max_force=50.0, max_speed=5.0)
    sim = cs.Simulator(scene.build(), dt=DT)
    end = sim.rollout(sim.initial_state(), torch.full((400, 1), 0.75, dtype=torch.float64))[-1].q
    if kind == "slide":
        np.testing.assert_allclose(end, (1, 0.25, 0.5), atol=1e-6)
    else:
        arm = 0.5 * np.exp(0.75j)
        np.testing.assert_allclose(end, (0.5 + arm.real, 1 + arm.imag, 1.25), atol=1e-6)


def test_a_distance_that_becomes_zero_stays_in_the_plane():
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", shapes=cs.Circle(0.1, mass=1.0, collide=False))
    scene.add_distance(None, "a", length=0.1)
    sim = cs.Simulator(scene.build(), dt=DT)
    after, info = sim.step(sim.initial_state(), info=True)
    assert abs(after.q[0]) > 0.01 and after.q[1] == after.q[2] == 0 and info.constraints.error.item() == pytest.approx(-0.1)


# ---- external forces -----------------------------------------------------------------------------------------------
def wrench(forces: torch.Tensor) -> torch.Tensor:
    """(fx, fy, torque) as torque and force in space."""
    fx, fy, torque = forces.unbind(-1)
    zero = torch.zeros_like(fx)
    return torch.stack((zero, zero, torque, fx, fy, zero), -1)


@pytest.mark.parametrize("shape", [(), (3,), (20,), (20, 3)], ids=["one", "per world", "per step", "both"])
def test_external_forces_as_in_space(shape):
    flat, spatial = planar_tree().build(), spatial_tree().build()
    forces = torch.randn(*shape, flat.nb, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    start = random_state(flat, 3) if 3 in shape else random_state(flat)
    a = cs.Simulator(flat, dt=DT).rollout(start, steps=20, external=forces)
    b = cs.Simulator(spatial, dt=DT).rollout(start, steps=20, external=wrench(forces))
    torch.testing.assert_close(a.q, b.q, rtol=0, atol=SAME * 10)
    calm = cs.Simulator(flat, dt=DT).rollout(start, steps=20)
    assert (a.q - calm.q).abs().max() > 1e-3


def test_external_forces_everywhere():
    flat, spatial = planar_tree().build(), spatial_tree().build()
    state = random_state(flat, 2)
    forces = torch.randn(flat.nb, 3, dtype=torch.float64)
    tau = torch.randn(flat.nv, dtype=torch.float64)
    for dynamics in (cs.forward_dynamics, cs.inverse_dynamics):
        found = dynamics(flat, state.q, state.v, tau, external=forces)
        torch.testing.assert_close(
            found, dynamics(spatial, state.q, state.v, tau, external=wrench(forces)), rtol=1e-10, atol=1e-10
        )
        as_numpy = dynamics(flat, *(x.numpy() for x in (*state, tau)), external=forces.numpy())
        np.testing.assert_array_equal(as_numpy, found.numpy())
    sim, other = (cs.Simulator(model, dt=DT) for model in (flat, spatial))
    stepped = sim.step(state, external=forces)
    torch.testing.assert_close(stepped.v, other.step(state, external=wrench(forces)).v, rtol=SAME, atol=SAME)
    np.testing.assert_array_equal(sim.step(state.numpy(), external=forces.numpy()).v, stepped.v.numpy())
    for x, y in zip(sim.linearize(state, external=forces), other.linearize(state, external=wrench(forces)), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-9)


def test_gradients_by_external_forces():
    scene = cs.Scene(planar=True, gravity=(0, 0))
    scene.add_body("a", mass=2.0, inertia=0.5, com=(0.1, 0.2))
    sim = cs.Simulator(scene.build(), dt=0.01)
    forces = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    after = sim.step(sim.initial_state(), external=forces)
    # at the centre of mass: a force does not turn, a torque moves the origin the other way round
    J = torch.stack([torch.autograd.grad(after.v[i], forces, retain_graph=True)[0][0] for i in range(3)]) / 0.01
    np.testing.assert_allclose(J, [[0.5, 0, 0.2 / 0.5], [0, 0.5, -0.1 / 0.5], [0, 0, 2]], atol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (4,), (1,)])
def test_external_of_the_wrong_shape(shape):
    model = planar_tree().build()
    sim = cs.Simulator(model)
    bad = torch.zeros(model.nb, *shape, dtype=torch.float64)
    with pytest.raises(ValueError, match=rf"external must have shape \[..., {model.nb}, 3\], got"):
        sim.step(sim.initial_state(), external=bad)
    with pytest.raises(ValueError, match=rf"external must have shape \[..., {model.nb}, 3\], got"):
        cs.forward_dynamics(model, sim.initial_state().q, sim.initial_state().v, sim.initial_state().v, external=bad)
    with pytest.raises(ValueError, match=r"or \[T, ..., nb, 3\] with T = 5 steps in front, got \(4, 6, 3\)"):
        sim.rollout(sim.initial_state(), steps=5, external=torch.zeros(4, model.nb, 3, dtype=torch.float64))


# ---- contact -------------------------------------------------------------------------------------------------------
def test_a_ball_rolls_down():
    """A disc that rolls has 2/3 of the acceleration of one that slides."""
    angle = -0.3  # down to the right
    scene = cs.Scene(planar=True, gravity=(0, -10))
    scene.add_ground(angle=angle, friction=1.0)
    scene.add_body("disc", pos=(-0.1 * np.sin(angle), 0.1 * np.cos(angle)), shapes=cs.Circle(0.1, mass=1.0))
    sim = cs.Simulator(scene.build(), dt=1e-3)
    end = sim.rollout(sim.initial_state(), steps=500)[-1]
    speed = 2 / 3 * 10 * np.sin(-angle) * 0.5
    np.testing.assert_allclose(end.v, (speed * np.cos(angle), speed * np.sin(angle), -speed / 0.1), rtol=1e-9)


def test_turning_the_whole_scene_turns_the_motion():
    def end(turn: float) -> np.ndarray:
        """In the coordinates of the line."""

        def at(x: float, y: float) -> tuple[float, float]:
            z = complex(x, y) * np.exp(1j * turn)
            return z.real, z.imag

        scene = cs.Scene(planar=True, gravity=at(0, -9.81))
        scene.add_shape(cs.HalfPlane(pos=at(0, 0.5), angle=turn, friction=0.3, restitution=0.5))
        for i, x in enumerate((0.0, 0.25)):
            scene.add_body(f"b{i}", pos=at(x, 0.9 + i / 4), shapes=cs.Circle(0.1 + i / 20, friction=0.3, restitution=0.5))
        sim = cs.Simulator(scene.build(), dt=DT)
        q = sim.rollout(cs.State(sim.initial_state().q, torch.tensor([*at(1, 0), 3.0, *at(0, -1), 0.0]).double()), steps=200)[
            -1
        ].q
        z = (q[[0, 3]] + 1j * q[[1, 4]]).numpy() * np.exp(-1j * turn)
        return np.concatenate((z.real, z.imag, q[[2, 5]]))

    np.testing.assert_allclose(end(2 * pi / 5), end(0.0), atol=1e-8)


SQUARE = torch.tensor(((1, 1), (-1, 1), (-1, -1), (1, -1)), dtype=torch.float64)
HALF = torch.tensor((0.2, 0.1), dtype=torch.float64)


def pile(kind: str, half: torch.Tensor) -> cs.Scene:
    """Four crates, each smaller than the one below and a little turned, that fall onto each other."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.5)
    for i in range(4):
        size = (1 - 0.1 * i) * half
        shape = (
            cs.Rectangle(size, mass=1.0, friction=0.5)
            if kind == "rectangle"
            else cs.Polygon(SQUARE * size, mass=1.0, friction=0.5)
        )
        scene.add_body(pos=(0.03 * i, 0.15 + 0.25 * i), angle=0.2 * i, shapes=shape)
    return scene


def test_a_rectangle_touches_as_its_polygon():
    ends = []
    for kind in ("rectangle", "polygon"):
        sim = cs.Simulator(pile(kind, HALF).build(), dt=DT)
        ends.append(sim.rollout(sim.initial_state(), steps=400).q[-1].reshape(4, 3))
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-10)  # rounding, and impacts that enlarge it
    heights = [0.1, 0.2 + 0.09, 0.38 + 0.08, 0.54 + 0.07]
    np.testing.assert_allclose(ends[0][:, 1], heights, atol=1e-5)
    np.testing.assert_allclose(ends[0][:, 2], 0, atol=1e-5)


@pytest.mark.parametrize("kind", ["rectangle", "polygon"])
def test_gradients_by_sizes_through_a_pile(kind):
    """Sizes given to the scene as tensors: through contact and inertia, against central differences."""

    def reach(half: torch.Tensor) -> torch.Tensor:
        scene = pile(kind, half)
        sim = cs.Simulator(scene.build(), dt=DT)
        return sim.rollout(sim.initial_state(), params=scene.params(), steps=120).q[-1, 3::3].sum()

    half = HALF.clone().requires_grad_()
    (grad,) = torch.autograd.grad(reach(half), half)
    with torch.no_grad():
        known = [(reach(HALF + 1e-6 * e) - reach(HALF - 1e-6 * e)) / 2e-6 for e in torch.eye(2, dtype=torch.float64)]
    torch.testing.assert_close(grad, torch.stack(known), rtol=1e-6, atol=0)
    assert grad.abs().min() > 1
