"""Sensors that are read together share what they need, and read what each reads alone; a reading stays a few operations."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch.func import vmap
from torch.utils._python_dispatch import TorchDispatchMode

import costate as cs
from bench.paper_b import DT as STEP
from bench.paper_b import sensors_of
from costate.sensors import (
    Accelerometer,
    ContactForce,
    Encoder,
    EncoderRate,
    FrameAcceleration,
    FrameAngularAcceleration,
    FramePosition,
    FrameQuaternion,
    Gyro,
    Magnetometer,
    Sensors,
    Touch,
)
from costate.sensors.places import find_places, frames
from costate.sensors.sensor import Bound, Sensor
from examples.servo_robots import quadruped
from tests.sensors.robots import DT, hopper, landed, random_control, random_state, robot
from tests.sensors.test_actuators import crane
from tests.sensors.test_gradients import FORCES, STATE, TOUCHING

SAME = {torch.float64: 1e-12, torch.float32: 2e-4}  # relative: the same functions, added up in another order
BATCHES = [(), (3,), (2, 3)]

PLACES = [
    Gyro(["imu", "body:trunk", "com:shank"]), FramePosition("com:thigh", relative_to="toe"), FrameQuaternion(["toe", "shank"]),
    FrameAcceleration(["toe", "com:shank"]), FrameAngularAcceleration("imu"), Touch("shank", against="ground"),
    ContactForce(["shank", "ground"], axes="toe"), ContactForce("shank", against=["world"]), Magnetometer("toe"),
]  # fmt: skip
TIES = [Encoder(["reach", "turn"]), Encoder(), EncoderRate(["reach", "turn"]), EncoderRate("turn"), Gyro("hook")]


def cases():
    """name -> model, sensors, its states."""
    return {
        "robot": (robot(), [*STATE, *FORCES], random_state),
        "hopper": (hopper(), [*TOUCHING, *PLACES], landed),
        "constraints": (crane(maximal=True), TIES, random_state),
        "joints": (crane(maximal=False), TIES, random_state),
    }


def gradients(sensors, sim, inputs, weight):
    """A reading, and the gradients of what it weighs by state, control and parameters."""
    inputs = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    fields = {name: x for name, x in inputs.items() if name not in ("q", "v", "control")}
    params = sim.model.params().replace(**fields)
    y = sensors(sim, cs.State(inputs["q"], inputs["v"]), inputs["control"], params)
    found = torch.autograd.grad((weight * y).sum(), list(inputs.values()), allow_unused=True, materialize_grads=True)
    return y.detach(), found


@pytest.mark.parametrize("dtype", SAME, ids=["float64", "float32"])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("name", cases())
def test_many_read_what_each_reads_alone(name, batch, dtype):
    model, sensors, states = cases()[name]
    sim, all_ = cs.Simulator(model, dt=DT, dtype=dtype), Sensors(model, sensors)
    state = states(model, *batch)
    inputs = {"q": state.q, "v": state.v, "control": random_control(model, *batch)}
    inputs |= {x: model.defaults[x] for x in ("mass", "com", "site_pos", "site_quat", "tie_pos", "tie_quat", "gear")}
    inputs = {x: value.to(dtype) for x, value in inputs.items()}
    weight = torch.randn(*batch, all_.width, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)
    y, grads = gradients(all_, sim, inputs, weight)
    sums = [torch.zeros_like(x) for x in grads]
    for sensor, where in zip(sensors, all_.slices.values(), strict=True):
        alone, parts = gradients(Sensors(model, [sensor]), sim, inputs, weight[..., where])
        torch.testing.assert_close(y[..., where], alone, rtol=SAME[dtype], atol=SAME[dtype] * (1 + float(alone.abs().max())))
        sums = [x + part for x, part in zip(sums, parts, strict=True)]
    for found, expected in zip(grads, sums, strict=True):
        scale = 1 + float(expected.abs().amax()) if expected.numel() else 1.0
        torch.testing.assert_close(found, expected, rtol=SAME[dtype], atol=10 * SAME[dtype] * scale)


def test_sensors_without_gradient_leave_those_of_others_alone():
    """Though their vectors are turned into the same axes."""
    model, state = hopper(), landed(hopper(), 2)
    sim = cs.Simulator(model, dt=DT)
    live = [Gyro("imu"), ContactForce("shank", axes="imu"), Accelerometer("imu"), EncoderRate()]
    without = [replace(x, detach=True) for x in live]
    q, v = (x.clone().requires_grad_() for x in state)
    both = Sensors(model, [x for pair in zip(live, without, strict=True) for x in pair])
    y = both(sim, cs.State(q, v))
    named, alone = list(both.named(y).values()), Sensors(model, live)(sim, cs.State(q, v))
    assert torch.equal(torch.cat(named[::2], -1), torch.cat(named[1::2], -1))
    for found, expected in zip(*(torch.autograd.grad(x.sum(), (q, v)) for x in (y, alone)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert not Sensors(model, without)(sim, cs.State(q, v)).requires_grad


def test_who_reads_first_does_not_decide_for_others():
    """Tables that were made in inference mode, in a transform or in another dtype."""
    model, state = hopper(), landed(hopper(), 2)
    sim, single = cs.Simulator(model, dt=DT), cs.Simulator(model, dt=DT, dtype=torch.float32)
    expected = Sensors(model, TOUCHING)(sim, state)
    sensors = Sensors(hopper(), TOUCHING)
    vmap(lambda q, v: sensors(sim, cs.State(q, v)))(*state)
    with torch.inference_mode():
        sensors(sim, state)
    assert sensors(single, cs.State(*(x.float() for x in state))).dtype == torch.float32
    q = state.q.clone().requires_grad_()
    found = sensors(sim, cs.State(q, state.v))
    found.sum().backward()
    assert torch.equal(found, expected) and q.grad is not None and q.grad.any()


def test_a_sensor_of_ones_own_may_ask_without_saying_so():
    @dataclass(frozen=True)
    class Height(Sensor):
        at: str

        def bind(self, model):
            places = find_places(model, self.kind, (self.at,))
            return Bound((self.at,), "m", lambda reading: frames(reading, places).position[..., 2])

    model, state = hopper(), landed(hopper(), 2)
    for others in ([], [Gyro("trunk")], [FramePosition("toe")]):
        y = Sensors(model, [*others, Height("toe")])(cs.Simulator(model), state)
        assert torch.allclose(y[:, -1], cs.kinematics(model, state.q).site_position[:, model.site("toe"), 2])


# ---- how many operations -------------------------------------------------------------------------------------------------
class Count(TorchDispatchMode):
    """Counts what torch does; each costs some microseconds, whatever its size."""

    n = 0

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        self.n += 1
        return f(*args, **(kwargs or {}))


# of a reading with the info of its step, and of the gradients of reading and step; as measured, and a little for other torches
MOST = {"maximal": (139, 270, 0.05), "tree": (102, 205, 0.05)}


@pytest.mark.parametrize("way", MOST)
def test_81_numbers_are_few_operations(way):
    model = quadruped(maximal=way == "maximal")
    sim, sensors, (forward, backward, more) = cs.Simulator(model, dt=STEP), sensors_of(model), MOST[way]
    assert sensors.width == 81
    q, v = (x.requires_grad_() for x in sim.initial_state())
    control = torch.zeros(model.nu, dtype=torch.float64, requires_grad=True)
    _, info = sim.step(cs.State(q, v), control, info=True)
    sensors(sim, cs.State(q, v), control, info=info)  # makes tables
    with Count() as ahead:
        y = sensors(sim, cs.State(q, v), control, info=info)
    with Count() as back:
        torch.autograd.grad(y.sum(), (q, v, control))
    assert ahead.n <= (1 + more) * forward and back.n <= (1 + more) * backward, (ahead.n, back.n)


def test_more_names_are_no_more_operations():
    """Of one sensor, or of many that read the same kinds of things."""
    model, state = robot(), random_state(robot())
    sim, counts = cs.Simulator(model, dt=DT), []
    for names in (["imu"], ["imu", "ankle", "hand", "end"]):
        per_name = [[Gyro(name), Accelerometer(name)] for name in names]
        for sensors in ([Gyro(names), Accelerometer(names)], [x for pair in per_name for x in pair]):
            read = Sensors(model, sensors)
            with torch.no_grad():
                read(sim, state)
                with Count() as count:
                    read(sim, state)
            counts.append(count.n)
    one, _, together, apart = counts
    assert together <= one + 1 and apart - one <= 6 * 4, counts
