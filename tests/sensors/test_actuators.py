"""Forces of actuators: those of joints against the balance of the joint, those of rows against the step's own impulses."""

import pytest
import torch

import costate as cs
from costate.sensors import ActuatorForce, Encoder, EncoderRate, JointTorque, LimitDistance, LimitForce, Sensors
from tests.sensors.robots import random_control, random_state

DT = 0.005
BALANCE = 1e-9  # relative; of a balance of the same numbers in another order


def arm():
    """A chain without damping or limits: what actuators do is all that is left of the balance."""
    scene = cs.Scene(collisions=False)
    link = {"mass": 1.0, "com": (0.2, 0, 0), "inertia": (0.02, 0.03, 0.04)}
    kinds = (cs.Revolute((0, 1, 0)), cs.Prismatic((1, 0, 0)), cs.Ball(), cs.Revolute((0, 0, 1)), cs.Revolute((1, 0, 0)))
    names = ("motor", "spring", "ball", "damper", "servo")
    for name, joint, parent in zip(names, kinds, (None, *names[:-1]), strict=True):
        scene.add_body(name, parent=parent, joint=joint, pos=(0.4, 0, 0), **link)
    scene.add_motor("motor", gear=3.0, control_limits=(-0.5, 0.8), force_limits=0.6)
    scene.add_position("spring", kp=300.0, kd=2.0, gear=-0.7)
    scene.add_motor("ball", dof=1, gear=2.0)
    scene.add_velocity("damper", kd=5.0, gear=1.5, force_limits=2.0)
    scene.add_position("damper", kp=50.0, kd=1.0, force_limits=(-4.0, 1.0), name="stop")
    scene.add_general("motor", gain=2.0, bias=-0.3, kp=20.0, kd=0.5, gear=0.8, name="affine")
    scene.add_general("ball", dof=2, gain=0.5, bias=0.2, kd=0.3, force_limits=0.5, name="brake")
    scene.add_servo("servo", gain=20.0, max_force=1.0, max_speed=4.0, gear=2.0)
    return scene.build()


def test_torques_are_what_the_step_needed():
    """M a + c = tau: inverse dynamics of the step's accelerations."""
    model = arm()
    sim, state, control = cs.Simulator(model, dt=DT), random_state(model, 30), random_control(model, 30)
    _, info = sim.step(state, control, info=True)
    found = Sensors(model, [JointTorque()])(sim, state, control)
    expected = cs.inverse_dynamics(model, *state, info.acceleration)
    torch.testing.assert_close(found, expected, rtol=BALANCE, atol=BALANCE * 100)
    force = Sensors(model, [ActuatorForce()])(sim, state, control)
    torch.testing.assert_close(force[:, -1], info.rows.impulse[:, -1] / DT)
    limited = {0: (-0.5, 0.6), 3: (-2, 2), 4: (-4, 1), 6: (-0.5, 0.5), 7: (-1, 1)}
    for k, (low, high) in limited.items():
        at = ((force[:, k] - x).abs() < 1e-9 for x in (low, high))
        assert (force[:, k] >= low - 1e-9).all() and (force[:, k] <= high + 1e-9).all() and any(x.any() for x in at)
    assert torch.equal(Sensors(model, [ActuatorForce("stop")])(sim, state, control)[:, 0], force[:, 4])


def test_gradients_by_every_number_of_an_actuator():
    model = arm()
    sim, state = cs.Simulator(model, dt=DT), random_state(model, 2)
    chosen = [name for name in model.motor_names if name != "servo"]
    sensors, control = Sensors(model, [ActuatorForce(chosen)]), random_control(model, 2)
    names = ("gear", "control_gain", "control_bias", "control_lower", "control_upper", "force_lower", "force_upper")
    start = [model.defaults[name].clone().requires_grad_() for name in names]

    def read(control, q, *fields):
        params = model.params().replace(**dict(zip(names, fields, strict=True)))
        return sensors(sim, cs.State(q, state.v), control, params)

    # rows are solved to 1e-10, over differences of 1e-6 and a step of 5 ms
    inputs = (control.requires_grad_(), state.q.clone().requires_grad_(), *start)
    assert torch.autograd.gradcheck(read, inputs, atol=1e-3, rtol=1e-3)


def test_a_reading_without_control_is_one_with_zeros():
    model = arm()
    sim, state, sensors = cs.Simulator(model, dt=DT), random_state(model), Sensors(model, [ActuatorForce()])
    assert torch.equal(sensors(sim, state), sensors(sim, state, torch.zeros(model.nu, dtype=torch.float64)))


def test_limits():
    scene = cs.Scene(collisions=False)
    rod = {"mass": 2.0, "com": (0.5, 0, 0), "inertia": (0.1, 0.1, 0.1)}
    scene.add_body("lid", joint=cs.Revolute((0, -1, 0), limits=(0, 2)), **rod)  # falls onto its lower limit
    model = scene.build()
    sim, sensors = cs.Simulator(model, dt=DT), Sensors(model, [LimitDistance(), LimitForce()])
    state = sim.rollout(sim.initial_state(), steps=50)[-1]
    assert torch.allclose(sensors(sim, state), torch.tensor([0, 2 * 9.81 * 0.5], dtype=torch.float64), rtol=1e-6, atol=1e-6)
    open_ = cs.State(torch.tensor([1.7], dtype=torch.float64), state.v)
    assert torch.allclose(sensors(sim, open_), torch.tensor([0.3, 0], dtype=torch.float64), rtol=1e-9, atol=1e-9)


# ---- maximal coordinates -----------------------------------------------------------------------------------------------
def crane(*, maximal):
    """A hinge, and a slide on it, as joints or as constraints between free bodies; driven alike."""
    scene = cs.Scene(collisions=False)
    link = {"mass": 2.0, "com": (0.1, 0, 0.05), "inertia": (0.05, 0.06, 0.07)}
    if maximal:
        scene.add_body("boom", joint=cs.Free(), pos=(0, 0, 1), **link)
        scene.add_body("hook", joint=cs.Free(), pos=(0.5, 0, 1), **link)
        scene.add_hinge("world", "boom", axis=(0, 1, 1), pos=(0, 0, 1), name="turn")
        scene.add_slide("boom", "hook", axis=(1, 0, 0.5), pos=(0.5, 0, 0), name="reach")
    else:
        scene.add_body("boom", joint=cs.Revolute((0, 1, 1), name="turn"), pos=(0, 0, 1), **link)
        scene.add_body("hook", parent="boom", joint=cs.Prismatic((1, 0, 0.5), name="reach"), pos=(0.5, 0, 0), **link)
    scene.add_servo("turn", gain=10.0, max_force=200.0, max_speed=3.0)
    scene.add_position("reach", kp=500.0, kd=20.0)
    return scene.build()


SHORT = 1e-5  # s; a spring of 500 N/m at 0.5 m/s changes by 250 N/s


def test_encoders_and_torques_of_constraints_are_those_of_joints():
    tree, free = crane(maximal=False), crane(maximal=True)
    sensors = [Encoder(), EncoderRate(), ActuatorForce(), JointTorque(["reach", "turn"])]
    here, there = Sensors(tree, sensors), Sensors(free, sensors)
    assert here.labels == there.labels
    q, v = (
        torch.tensor([[0.8, 0.1], [-2.5, -0.2]], dtype=torch.float64),
        torch.tensor([[1.0, -0.4], [0.3, 0.5]], dtype=torch.float64),
    )
    position, quaternion, velocity = cs.kinematics(tree, q, v)[:3]
    # the spin of a free body is in its own axes
    x, spin = -quaternion[..., 1:], velocity[..., :3]
    t = 2 * torch.linalg.cross(x, spin)
    spin = spin + quaternion[..., :1] * t + torch.linalg.cross(x, t)
    state = cs.State(torch.cat((position, quaternion), -1).flatten(-2), torch.cat((velocity[..., 3:], spin), -1).flatten(-2))
    control = torch.tensor([0.5, 0.05], dtype=torch.float64)
    expected = here(cs.Simulator(tree, dt=SHORT), cs.State(q, v), control)
    found = there(cs.Simulator(free, dt=SHORT), state, control)
    torch.testing.assert_close(found[:, :4], torch.cat((q, v), -1), rtol=0, atol=1e-12)
    # a step of two free bodies is another integration of the same motion: forces agree to the order of the step
    torch.testing.assert_close(found, expected, rtol=0, atol=250 * SHORT)


def test_a_gradient_of_a_hinges_angle():
    model = crane(maximal=True)
    sim, sensors = cs.Simulator(model), Sensors(model, [Encoder(), EncoderRate()])
    q, v = (x.clone().requires_grad_() for x in random_state(model))
    frames = model.params(requires_grad=("tie_pos", "tie_quat"))
    assert torch.autograd.gradcheck(
        lambda q, v, pos, quat: sensors(sim, cs.State(q, v), params=model.params().replace(tie_pos=pos, tie_quat=quat)),
        (q, v, frames["tie_pos"], frames["tie_quat"]),
    )


@pytest.mark.parametrize("sensor", [ActuatorForce("reach"), ActuatorForce("turn")], ids=["spring", "servo"])
def test_rows_on_constraints_have_no_gradient(sensor):
    model = crane(maximal=True)
    sim = cs.Simulator(model, dt=DT)
    state = sim.initial_state()
    control = torch.tensor([0.5, 0.05], dtype=torch.float64, requires_grad=True)
    with pytest.raises(cs.sensors.NoGradientError, match="detach"):
        Sensors(model, [sensor])(sim, state, control).sum().backward()
