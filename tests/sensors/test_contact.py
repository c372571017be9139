"""Contact sensors and accelerometers by closed forms: weights, inclines, pairs, free fall, circles."""

from math import cos, sin

import pytest
import torch

import costate as cs
from costate.sensors import Accelerometer, ContactForce, FrameAcceleration, ReactionForce, ReactionTorque, Sensors, Touch
from tests.sensors.robots import DT, hopper, landed, random_control

G = 9.81
RESTS = 1e-6  # relative; solved to 1e-10 m/s, over a step of 2 ms
EXACT = 1e-9


def tensor(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def crates():
    """Two crates, one on the other, and a ball beside them."""
    scene = cs.Scene()
    scene.add_ground(name="floor")
    for name, height, mass in (("lower", 0.1, 5.0), ("upper", 0.3, 2.0)):
        box = cs.Box((0.1, 0.1, 0.1), mass=mass, name=f"{name} box")
        scene.add_body(name, joint=cs.Free(), pos=(0, 0, height), shapes=box)
    scene.add_body("ball", joint=cs.Free(), pos=(1, 0, 0.1), shapes=cs.Sphere(0.1, mass=1.0))
    return scene.build()


def settled(model, steps=200):
    sim = cs.Simulator(model, dt=DT)
    return sim, sim.rollout(sim.initial_state(), steps=steps)[-1]


def test_weights_on_touch_sensors():
    model = crates()
    sim, state = settled(model)
    sensors = Sensors(
        model,
        [
            Touch("lower"),
            Touch(["upper", "ball", "floor"]),
            Touch("lower", against="upper", name="between"),
            Touch("shape:lower box", against=["world"], name="below"),
        ],
    )
    found = sensors.named(sensors(sim, state))
    # the lower crate is pressed from both sides
    assert torch.allclose(found["touch lower"], tensor(7 * G + 2 * G), rtol=RESTS)
    assert torch.allclose(found["touch"], tensor(2 * G, G, 8 * G), rtol=RESTS)
    assert torch.allclose(found["between"], tensor(2 * G), rtol=RESTS)
    assert torch.allclose(found["below"], tensor(7 * G), rtol=RESTS)


def test_forces_of_pairs_are_opposite_and_sum_to_weights():
    model = crates()
    sim, state = settled(model)
    pair = [ContactForce("lower", against="upper"), ContactForce("upper", against="lower"), ContactForce(["lower", "world"])]
    found = Sensors(model, pair)(sim, state).unflatten(-1, (-1, 3))
    up = tensor(0, 0, 1)
    expected = torch.stack((-2 * G * up, 2 * G * up, 5 * G * up, -8 * G * up))
    assert torch.allclose(found, expected, rtol=RESTS, atol=1e-5)
    assert torch.equal(found[0], -found[1])


@pytest.mark.parametrize("slope", [0.2, 0.6])
def test_a_block_on_an_incline(slope):
    """It sticks or slides; normal and tangential force in the axes of the contact, of the block and of the world."""
    scene = cs.Scene(gravity=(G * sin(slope), 0, -G * cos(slope)))
    scene.add_ground(friction=0.4)
    scene.add_body("block", joint=cs.Free(), pos=(0, 0, 0.05), shapes=cs.Box((0.2, 0.2, 0.05), mass=3.0, friction=0.4))
    model = scene.build()
    sim, state = settled(model, 50)
    normal = 3.0 * G * cos(slope)
    friction = min(3.0 * G * sin(slope), 0.4 * normal)
    kinds = [ContactForce("block", axes="contact"), ContactForce("block"), ContactForce("block", axes="block"), Touch("block")]
    found = Sensors(model, kinds)(sim, state)
    expected = tensor(normal, -friction, 0, -friction, 0, normal, -friction, 0, normal, normal)
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
    accelerometer = Sensors(model, [Accelerometer("block"), FrameAcceleration("block")])(sim, state)
    felt = tensor(-friction / 3, 0, normal / 3)
    gravity = tensor(G * sin(slope), 0, -G * cos(slope))
    assert torch.allclose(accelerometer, torch.cat((felt, felt + gravity)), rtol=1e-5, atol=1e-5)


def test_accelerometers_in_free_fall_at_rest_and_on_a_circle():
    model = crates()
    sim, state = settled(model)
    accelerometer = Sensors(model, [Accelerometer(["upper", "ball"])])
    assert torch.allclose(accelerometer(sim, state), tensor(0, 0, G, 0, 0, G), rtol=RESTS, atol=1e-5)
    q = state.q.clone()
    q[[2, 9, 16]] += tensor(3, 4, 5)
    assert accelerometer(sim, cs.State(q, state.v)).abs().max() < EXACT  # falls, and does not turn

    scene = cs.Scene(gravity=(0, 0, -G), collisions=False)
    scene.add_body("arm", joint=cs.Revolute((0, 0, 1)), mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    scene.add_site("tip", body="arm", pos=(0.8, 0, 0))
    model = scene.build()
    read = Sensors(model, [Accelerometer("tip"), ReactionForce("arm"), ReactionTorque("arm")])
    found = read(cs.Simulator(model), cs.State(tensor(0.7), tensor(3.0)))
    expected = tensor(-9 * 0.8, 0, G, -9 * 0.5, 0, G, 0, -0.5 * G, 0)  # steady turning: towards the axis; and its own weight
    assert torch.allclose(found, expected, rtol=EXACT, atol=EXACT)


def test_reactions_of_the_ground_are_those_of_a_root_body():
    """What the world gives a free body through its joint is nothing, with contacts, external forces and motors."""
    model = hopper()
    sim, state, control = cs.Simulator(model, dt=DT), landed(model, 4), random_control(model, 4)
    external = torch.randn(4, model.nb, 6, dtype=torch.float64)
    reaction = Sensors(model, [ReactionForce("trunk"), ReactionTorque("imu")])
    found = reaction(sim, state, control, external=external)
    scale = Sensors(model, [ContactForce("shank")])(sim, state, control, external=external).abs().amax()
    assert scale > 10.0 and found.abs().max() < EXACT * scale * 10


def test_planar_models_have_sensors_too():
    scene = cs.Scene(planar=True)
    scene.add_ground()
    scene.add_body("wheel", pos=(0, 0.2), shapes=cs.Circle(0.2, mass=3.0))
    model = scene.build()
    sim, state = settled(model)
    sensors = Sensors(model, [Touch("wheel"), ContactForce("wheel"), Accelerometer("wheel")])
    found = sensors(sim, state)
    assert torch.allclose(found, tensor(3 * G, 0, 3 * G, 0, 0, G, 0), rtol=RESTS, atol=1e-6)


def test_planar_joints_accelerate_as_they_should():
    """A point on a disc that turns on a slider which is carried along: against differences of its velocity."""
    scene = cs.Scene(collisions=False, gravity=(0, 0, 0))
    scene.add_body("table", joint=cs.Revolute((0, 0, 1)), mass=2.0, inertia=(1, 1, 1))
    disc = {"joint": cs.Planar(anchor=(0.05, 0.02, 0)), "pos": (0.3, 0.1, 0.2), "quat": (0.9, 0.2, -0.1, 0.3)}
    scene.add_body("disc", parent="table", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.15), **disc)
    scene.add_site("rim", body="disc", pos=(0.2, 0.1, 0.05))
    model = scene.build()
    sim = cs.Simulator(model, dt=1e-3)
    q, v = torch.randn(2, model.nq, dtype=torch.float64)
    _, info = sim.step(cs.State(q, v), info=True)
    found = Sensors(model, [FrameAcceleration("rim")])(sim, cs.State(q, v))

    def velocity(t):
        along = model.integrate(q, t * v + t**2 / 2 * info.acceleration)
        return cs.kinematics(model, along, v + t * info.acceleration).site_velocity[0, 3:]

    t = 1e-5
    assert torch.allclose(found, (velocity(t) - velocity(-t)) / (2 * t), rtol=0, atol=1e-7)
