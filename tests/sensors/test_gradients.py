"""Gradients of readings: by state, control, parameters, step size and external forces, against central differences."""

import pytest
import torch
from torch.func import jacrev, vmap

import costate as cs
from costate.sensors import (
    Accelerometer,
    ActuatorForce,
    ContactForce,
    Encoder,
    EncoderRate,
    FrameAcceleration,
    FrameAngularAcceleration,
    FrameAngularVelocity,
    FramePosition,
    FrameQuaternion,
    FrameVelocity,
    Gyro,
    JointTorque,
    LimitDistance,
    LimitForce,
    Magnetometer,
    NoGradientError,
    RangeFinder,
    ReactionForce,
    ReactionTorque,
    Sensors,
    SubtreeAngularMomentum,
    SubtreeCentre,
    SubtreeVelocity,
    Touch,
    Velocimeter,
)
from tests.sensors.robots import DT, hopper, landed, random_control, random_state, robot

STEP = 1e-6
SMOOTH = 1e-6  # of differences over 1e-6: rounding of 1e-16 times readings of 10 to 100
STEPPED = 1e-5  # relative; accelerations come from v+ - v, over 2 ms
SOLVED = 2e-5  # relative; contacts are solved to 1e-10 m/s only, over a step of 2 ms

STATE = [
    Encoder(), EncoderRate(), Encoder("trunk"), Gyro("imu"), Velocimeter("end"), Magnetometer("hand"),
    FramePosition(["end", "com:arm"]), FramePosition("end", relative_to="imu"), FrameQuaternion("end", relative_to="thigh"),
    FrameVelocity("end", relative_to="ankle"), FrameAngularVelocity(["imu", "end"]), SubtreeCentre("thigh"),
    SubtreeVelocity("trunk"), SubtreeAngularMomentum("thigh"),
]  # fmt: skip
FORCES = [
    Accelerometer(["imu", "end"]), FrameAcceleration("hand"), FrameAngularAcceleration("end"), ReactionForce("ankle"),
    ReactionTorque(["ankle", "hand"]), ActuatorForce(), JointTorque("hip"),
]  # fmt: skip
TOUCHING = [
    Accelerometer("imu"), Touch(["shank", "ground"]), ContactForce("shank"), ContactForce("shank", axes="contact"),
    ContactForce("shank", axes="imu"), ReactionForce("toe"), ActuatorForce(), JointTorque(), LimitDistance("hip"),
]  # fmt: skip
FIELDS = (
    "mass", "com", "inertia", "joint_pos", "joint_axis", "gear", "kp", "kd", "control_upper", "force_upper", "gravity",
    "site_pos", "site_quat", "friction", "shape_pos", "shape_quat", "damping",
)  # fmt: skip


def check_gradients(f, inputs, bound):
    """The gradient of a random mixture of f's outputs by every input against differences along random directions."""
    inputs = {name: x.detach().clone().requires_grad_() for name, x in inputs.items()}
    y = f(**inputs)
    weight = torch.randn_like(y) / (1 + y.detach().abs())
    grads = torch.autograd.grad((weight * y).sum(), list(inputs.values()))
    for (name, x), grad in zip(inputs.items(), grads, strict=True):
        for _ in range(3):
            along = torch.randn_like(x)
            if name in ("kp", "kd", "damping"):
                along = along * (x.detach() != 0)  # where there is none there must be none
            with torch.no_grad():
                ends = [(weight * f(**{**inputs, name: x + sign * STEP * along})).sum() for sign in (1, -1)]
            expected, found = (ends[0] - ends[1]) / (2 * STEP), (grad * along).sum()
            assert abs(found - expected) <= bound * max(1, abs(expected)), (name, found, expected)


def reader(sim, sensors):
    def read(q, v, control, dt, external, **fields):
        params = sim.model.params().replace(**fields)
        return sensors(sim, cs.State(q, v), control, params, external=external, dt=dt)

    return read


def everything(model, state, control):
    """All arguments that may have a gradient; fields the model has numbers of."""
    fields = {name: model.defaults[name] for name in FIELDS if model.defaults[name].numel()}
    dt = torch.full(state.q.shape[:-1], DT, dtype=torch.float64)
    external = torch.randn(*state.q.shape[:-1], model.nb, 6, dtype=torch.float64)
    return {"q": state.q, "v": state.v, "control": control, "dt": dt, "external": external, **fields}


def test_gradients_without_contact():
    model = robot()
    inputs = everything(model, random_state(model, 3), random_control(model, 3))
    check_gradients(reader(cs.Simulator(model, dt=DT), Sensors(model, FORCES)), inputs, STEPPED)


def test_gradients_of_the_state_alone():
    model = robot()
    sim, sensors, state = cs.Simulator(model), Sensors(model, STATE), random_state(model, 3)
    fields = {
        name: model.defaults[name] for name in ("mass", "com", "joint_pos", "site_pos", "site_quat", "inertia", "joint_axis")
    }

    def read(q, v, **fields):
        return sensors(sim, cs.State(q, v), params=model.params().replace(**fields))

    check_gradients(read, {"q": state.q, "v": state.v, **fields}, SMOOTH)
    q, v = (x[0].clone().requires_grad_() for x in state)
    assert torch.autograd.gradcheck(lambda q, v: sensors(sim, cs.State(q, v)), (q, v))


def test_gradients_in_contact():
    model = hopper()
    state, control = landed(model, 3), torch.tensor([[0.2, 0.4], [0.1, 5.0], [-0.1, -0.3]], dtype=torch.float64)
    sim, sensors = cs.Simulator(model, dt=DT), Sensors(model, TOUCHING)
    _, info = sim.step(state, control, info=True)
    assert info.contacts.state.amax(-1).tolist() == [2, 3, 3]  # sticks, slides
    check_gradients(reader(sim, sensors), everything(model, state, control), SOLVED)


def test_gradients_of_ranges():
    model = hopper(ground=cs.Box((2, 2, 0.1), pos=(0, 0, -0.1), quat=(0.99, 0.05, 0.1, 0)))
    fan = ((0.1, 0.0, -1.0), (-0.3, 0.2, -1.0))
    sim, sensors = cs.Simulator(model), Sensors(model, [RangeFinder(["imu", "trunk"], directions=fan, max_distance=3.0)])
    state = random_state(model, seed=3)
    q = torch.cat((torch.tensor(model.q0[:7]), state.q[7:]))
    assert (sensors(sim, cs.State(q, state.v)) < 3).all()

    def read(q, **fields):
        return sensors(sim, cs.State(q, state.v), params=model.params().replace(**fields))

    fields = {name: model.defaults[name] for name in ("site_pos", "site_quat", "shape_pos", "shape_quat", "shape_size")}
    check_gradients(read, {"q": q, **fields}, SMOOTH)


def test_a_loss_over_a_rollout_reaches_first_state_and_parameters():
    """Readings of all states of a trajectory at once."""
    model = hopper()
    sim, sensors, start = cs.Simulator(model, dt=DT), Sensors(model, TOUCHING), landed(model, 2)
    controls = 0.2 * torch.ones(5, 2, model.nu, dtype=torch.float64)

    def read(q, v, **fields):
        params = model.params().replace(**fields)
        traj = sim.rollout(cs.State(q, v), controls, params)
        return sensors(sim, cs.State(traj.q[:-1], traj.v[:-1]), controls, params)

    assert read(*start).shape == (5, 2, sensors.width)
    fields = {name: model.defaults[name] for name in ("mass", "friction", "kp")}
    check_gradients(read, {"q": start.q, "v": start.v, **fields}, 10 * SOLVED)


def test_functional_transforms():
    model = robot()
    sim, sensors, state = cs.Simulator(model, dt=DT), Sensors(model, [*STATE, *FORCES]), random_state(model, 3)
    control = random_control(model, 3)
    J = vmap(jacrev(lambda q, v, u: sensors(sim, cs.State(q, v), u), argnums=(0, 1, 2)))(*state, control)
    assert [x.shape for x in J] == [(3, sensors.width, n) for n in (model.nq, model.nv, model.nu)]
    q = state.q[0].clone().requires_grad_()
    (row,) = torch.autograd.grad(sensors(sim, cs.State(q, state.v[0]), control[0])[5], q)
    assert torch.allclose(J[0][0, 5], row, rtol=1e-12, atol=1e-12)


def test_functional_transforms_in_contact():
    model = hopper()
    sim, sensors, state = cs.Simulator(model, dt=DT), Sensors(model, TOUCHING), landed(model, 2)
    control = random_control(model, 2)
    J = vmap(jacrev(lambda q, v, u: sensors(sim, cs.State(q, v), u)))(*state, control)
    touch = sensors.slices["touch"].start
    q = state.q.clone().requires_grad_()
    (row,) = torch.autograd.grad(sensors(sim, cs.State(q, state.v), control)[:, touch].sum(), q)
    assert row.any() and torch.allclose(J[:, touch], row, rtol=1e-9, atol=1e-9)


# ---- what has no gradient raises ---------------------------------------------------------------------------------------
def servo_arm():
    scene = cs.Scene()
    scene.add_ground()
    arm = {"shapes": cs.Capsule(0.03, 0.2, mass=1.0, pos=(0, 0, -0.2)), "pos": (0, 0, 1)}
    scene.add_body("arm", joint=cs.Revolute((0, 1, 0), limits=(-0.5, 0.5), name="hip"), **arm)
    scene.add_servo("hip", gain=10.0, max_force=20.0, max_speed=2.0)
    scene.add_motor("hip", gear=0.5, name="helper")
    scene.add_body("ball", joint=cs.Free(), pos=(0, 0, 2), shapes=cs.Sphere(0.1, mass=1.0))
    scene.add_body("other", joint=cs.Free(), pos=(0.05, 0.1, 2.16), shapes=cs.Sphere(0.1, mass=1.0))
    return scene.build()


NONE = {
    "servo": ActuatorForce("hip"),
    "joint of a servo": JointTorque("hip"),
    "limit": LimitForce("hip"),
    "touch of round things": Touch("ball"),
    "their contact": ContactForce("ball", axes="contact"),
    "moment of contacts": ReactionTorque("ball"),
}


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_gradient_raises_instead_of_giving_zero(name):
    model = servo_arm()
    sim, state = cs.Simulator(model, dt=DT), cs.Simulator(model).initial_state()
    q = state.q.clone()
    q[0] = 0.52  # beyond its limit
    q.requires_grad_()
    v = torch.zeros(model.nv, dtype=torch.float64)
    v[3] = 1.0  # the balls meet
    control = torch.tensor([0.7, 0.2], dtype=torch.float64)
    sensor = NONE[name]
    found = Sensors(model, [sensor, Encoder("hip")])(sim, cs.State(q, v), control)
    assert found[0] != 0 or isinstance(sensor, ReactionTorque)  # nothing holds a free body
    with pytest.raises(NoGradientError, match="detach=True"):
        found.sum().backward()
    # what is beside it, and the same without gradient, go through
    found = Sensors(model, [type(sensor)(**{**vars(sensor), "detach": True}), Encoder("hip")])(sim, cs.State(q, v), control)
    found.sum().backward()
    assert q.grad is not None and q.grad[0] == 1.0
    assert not Sensors(model, [sensor])(sim, cs.State(q.detach(), v), control).requires_grad


def test_only_the_servos_raise_among_actuators():
    model = servo_arm()
    sim, state = cs.Simulator(model, dt=DT), cs.Simulator(model).initial_state()
    control = torch.tensor([0.3, 0.2], dtype=torch.float64, requires_grad=True)
    Sensors(model, [ActuatorForce("helper")])(sim, state, control).sum().backward()
    assert torch.equal(control.grad, torch.tensor([0.0, 1.0], dtype=torch.float64))


def test_round_things_that_do_not_touch_have_a_gradient_of_zero():
    model = servo_arm()
    sim, state = cs.Simulator(model, dt=DT), cs.Simulator(model).initial_state()
    q = state.q.clone()
    q[-5] += 1.0
    q.requires_grad_()
    touch = Sensors(model, [Touch("ball")])(sim, cs.State(q, state.v))
    touch.sum().backward()
    assert touch == 0 and not q.grad.any()
