"""Sensors as an object: names, slices, tables, batches, dtypes, numpy, noise, scales, one step for all, and what is refused."""

import pickle
import warnings

import numpy as np
import pytest
import torch

import costate as cs
from costate.sensors import (
    Accelerometer,
    ActuatorForce,
    ContactForce,
    Encoder,
    EncoderRate,
    FramePosition,
    Gyro,
    JointTorque,
    LimitDistance,
    LimitForce,
    Magnetometer,
    RangeFinder,
    ReactionForce,
    Sensors,
    SubtreeCentre,
    Touch,
)
from tests.sensors.robots import DT, hopper, landed, random_control, random_state, robot

MODEL = hopper()
SIM = cs.Simulator(MODEL, dt=DT)
SOME = (
    Encoder(), EncoderRate("knee", name="speed"), Gyro("imu"), Accelerometer("imu"), Touch("shank"), ContactForce("shank"),
    ActuatorForce(), FramePosition(["imu", "toe"], relative_to="trunk"), RangeFinder("imu", directions=((0, 0, -1), (1, 0, 0))),
)  # fmt: skip


def test_names_slices_labels_and_summary():
    sensors = Sensors(MODEL, SOME)
    assert sensors.names == (
        "encoder", "speed", "gyro imu", "accelerometer imu", "touch shank", "contact force shank", "actuator force",
        "frame position", "range finder imu",
    )  # fmt: skip
    assert sensors.width == 2 + 1 + 3 + 3 + 1 + 3 + 2 + 6 + 2 == len(sensors.labels) and len(sensors) == len(SOME)
    assert sensors.slices["gyro imu"] == slice(3, 6) and sensors.slices["range finder imu"] == slice(21, 23)
    assert sensors.labels[:4] == ("encoder: hip", "encoder: knee", "speed: knee", "gyro imu: imu x")
    y = sensors(SIM, landed(MODEL, 2))
    named = sensors.named(y)
    assert torch.equal(torch.cat(list(named.values()), -1), y) and named["speed"].shape == (2, 1)
    text = sensors.summary()
    assert "9 sensors, 23 numbers" in text and len(text.splitlines()) == 2 + len(SOME)
    assert "3:6" in text and "accelerometer" in text and "m/s^2" in text and "rad/s" in text
    two = Sensors(MODEL, [Gyro("imu"), Gyro("imu")])
    assert two.names == ("gyro imu", "gyro imu_1")


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_batches_are_worlds_one_by_one(batch, dtype):
    sensors, sim = Sensors(MODEL, SOME), cs.Simulator(MODEL, dt=DT, dtype=dtype)
    state = cs.State(*(x.to(dtype) for x in landed(MODEL, *batch)))
    control = random_control(MODEL, *batch).to(dtype)
    y = sensors(sim, state, control)
    assert y.shape == (*batch, sensors.width) and y.dtype == dtype
    flat = zip(*(x.reshape(-1, x.shape[-1]) for x in (*state, control, y)), strict=True)
    for q, v, u, row in flat:
        # sums over slots and matrix products may be done in another order
        torch.testing.assert_close(
            sensors(sim, cs.State(q, v), u), row, rtol=1e-12 if dtype == torch.float64 else 1e-3, atol=1e-4
        )


def test_everything_broadcasts():
    sensors, state = Sensors(MODEL, SOME), landed(MODEL)
    params = MODEL.params().replace(site_pos=torch.rand(4, MODEL.ns, 3).double(), mass=torch.rand(4, MODEL.nb).double() + 0.5)
    control, dt = random_control(MODEL, 3, 1), torch.tensor([[0.001], [0.002], [0.003]], dtype=torch.float64)
    external = torch.randn(4, MODEL.nb, 6, dtype=torch.float64)
    y = sensors(SIM, state, control, params, external=external, dt=dt)
    assert y.shape == (3, 4, sensors.width)
    one = MODEL.params().replace(site_pos=params["site_pos"][2], mass=params["mass"][2])
    alone = sensors(SIM, state, control[1, 0], one, external=external[2], dt=0.002)
    torch.testing.assert_close(y[1, 2], alone, rtol=1e-9, atol=1e-9)
    first = Sensors(MODEL, [FramePosition("imu")])  # also where nothing but a state is read
    assert first(SIM, state, params=params).shape == (4, 3)
    assert Sensors(MODEL, [Encoder()])(SIM, state, control).shape == (3, 1, 2)


def test_numpy_in_numpy_out():
    sensors, state = Sensors(MODEL, SOME), landed(MODEL, 2)
    y = sensors(SIM, state.numpy(), random_control(MODEL, 2).numpy())
    assert type(y) is np.ndarray and np.array_equal(y, sensors(SIM, state, random_control(MODEL, 2)).numpy())
    assert sensors.named(y)["speed"].shape == (2, 1)
    with pytest.raises(TypeError, match="gradient would be lost"):
        sensors(SIM, state.numpy(), params=MODEL.params(requires_grad="mass"))


class Counting(cs.Simulator):
    """Counts its steps."""

    steps = 0

    def step(self, *args, **kwargs):
        self.steps += 1
        return super().step(*args, **kwargs)


def test_one_step_for_all_and_none_where_none_is_needed():
    sim, state, control = Counting(MODEL, dt=DT), landed(MODEL, 2), random_control(MODEL, 2)
    sensors = Sensors(MODEL, SOME)
    y = sensors(sim, state, control)
    assert sensors.forces and sim.steps == 1
    _, info = sim.step(state, control, info=True)
    assert torch.equal(sensors(sim, state, control, info=info), y) and sim.steps == 2
    still = Sensors(MODEL, [Encoder(), Gyro("imu"), FramePosition("toe"), SubtreeCentre("trunk"), LimitDistance()])
    still(sim, state, control)
    assert not still.forces and sim.steps == 2
    with pytest.raises(ValueError, match="info must be that of a step of worlds"):
        sensors(sim, landed(MODEL, 3), info=info)


def test_scale_and_noise():
    plain = Sensors(MODEL, [Gyro("imu"), Encoder()])
    scaled = Sensors(MODEL, [Gyro("imu", scale=10.0, noise=0.5), Encoder()])
    state = landed(MODEL, 4000)
    y = plain(SIM, state)
    assert torch.allclose(scaled(SIM, state), y / torch.tensor([10, 10, 10, 1, 1], dtype=torch.float64), rtol=1e-15)
    noisy = scaled(SIM, state, noise=torch.Generator().manual_seed(0))
    assert torch.equal(noisy, scaled(SIM, state, noise=torch.Generator().manual_seed(0)))
    off = noisy - scaled(SIM, state)
    # 12,000 numbers: their standard deviation is known to 0.7 % (one sigma), their mean to 0.9 % of it
    assert abs(10 * off[:, :3].std() / 0.5 - 1) < 0.03 and abs(10 * off[:, :3].mean()) < 0.02 and not off[:, 3:].any()
    assert not torch.equal(scaled(SIM, state, noise=True), scaled(SIM, state, noise=True))


def test_pickle_and_equality():
    sensors = Sensors(MODEL, SOME)
    again = pickle.loads(pickle.dumps(sensors))
    state = landed(MODEL)
    assert again.names == sensors.names and torch.equal(again(SIM, state), sensors(SIM, state))
    assert Gyro("imu") == Gyro("imu") != Gyro("toe") and again.sensors == SOME


def test_a_sensor_of_ones_own():
    from dataclasses import dataclass

    from costate.sensors.sensor import Bound, Sensor

    @dataclass(frozen=True)
    class Clock(Sensor):
        rate: float = 1.0

        def bind(self, model):
            return Bound(("q sum",), "-", lambda reading: self.rate * reading.q.sum(-1, keepdim=True))

    state = landed(MODEL, 2)
    y = Sensors(MODEL, [Clock(2.0, scale=2.0)])(SIM, state)
    assert torch.allclose(y, state.q.sum(-1, keepdim=True))


def test_as_senses_of_a_policy():
    sensors = Sensors(MODEL, [Encoder(), EncoderRate(), Gyro("imu"), Touch("shank", scale=30.0)])
    network = torch.nn.Linear(sensors.width, MODEL.nu).double()

    def policy(state, control, t):
        control = network(sensors(SIM, state, control)).tanh()
        return control, control

    start = landed(MODEL, 3)
    traj = SIM.rollout(start, policy, steps=5, carry=torch.zeros(3, MODEL.nu, dtype=torch.float64))
    traj.q[-1].sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())


# ---- what is refused -----------------------------------------------------------------------------------------------------
BAD = {
    "no site": (lambda: Gyro("imo"), "gyro: no site or body named 'imo'; did you mean 'imu'?"),
    "no joint": (lambda: Encoder("hap"), "no joint, hinge or slide named 'hap'; did you mean 'hip'?"),
    "no motor": (lambda: ActuatorForce("hap"), "no motor named 'hap'"),
    "no body": (lambda: SubtreeCentre("leg"), "no body named 'leg'"),
    "not a number": (lambda: Gyro("imu", scale=0), "scale must be a positive number, got 0"),
    "negative noise": (lambda: Gyro("imu", noise=-1), "noise must be a number of 0 or more"),
    "twice": (lambda: Gyro(["imu", "imu"]), "names must be given once"),
    "no shape": (lambda: Touch("trunk"), "body 'trunk' has no shape that may touch another"),
    "unknown shape": (lambda: Touch("sole"), "is named 'sole'"),
    "no limits": (lambda: LimitDistance("knee"), "'knee' must be a revolute or prismatic joint with limits"),
    "no limit force": (lambda: LimitForce("knee"), "with limits"),
    "no field": (lambda: Magnetometer("imu", field=(0, 0, 0)), "field must be three numbers"),
    "no direction": (lambda: RangeFinder("imu", directions=((0, 0, 0),)), "directions must be triples"),
    "no reach": (lambda: RangeFinder("imu", max_distance=float("inf")), "max_distance must be a positive finite number"),
    "axes": (lambda: ContactForce("shank", axes="nowhere"), "axes: no site or body named 'nowhere'"),
    "same name": (lambda: Encoder(name="taken"), "there is a sensor named 'taken' already"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sensors(name):
    make, message = BAD[name]
    with pytest.raises(ValueError) as error:
        Sensors(MODEL, [EncoderRate(name="taken"), make()])
    assert message in str(error.value)


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least one sensor"):
        Sensors(MODEL, [])
    with pytest.raises(TypeError, match="sensors must be sensors such as"):
        Sensors(MODEL, [Gyro])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be a name or several names"):
        Sensors(MODEL, [Gyro(3)])  # type: ignore[arg-type]
    sensors = Sensors(MODEL, [Encoder()])
    with pytest.raises(ValueError, match="sensors belong to another model"):
        sensors(cs.Simulator(robot()), landed(MODEL))
    with pytest.raises(TypeError, match=r"state must be a costate\.State"):
        sensors(SIM, landed(MODEL).q)
    with pytest.raises(ValueError, match=r"reading must have shape \[\.\.\., 2\]"):
        sensors.named(torch.zeros(3))


def test_names_that_mean_two_things():
    scene = cs.Scene()
    scene.add_ground()
    scene.add_body("foot", joint=cs.Free(), pos=(0, 0, 0.1), shapes=cs.Sphere(0.1, mass=1.0, name="foot"))
    scene.add_site("foot", body="foot", pos=(0, 0, 1))
    model = scene.build()
    sim = cs.Simulator(model)
    for sensor in (FramePosition("foot"), Touch("foot")):
        with pytest.raises(ValueError, match=r"write '(site|body):foot'"):
            Sensors(model, [sensor])
    both = Sensors(model, [FramePosition(["body:foot", "site:foot", "com:foot"]), Touch(["body:foot", "shape:foot"])])
    assert torch.allclose(both(sim, sim.initial_state())[[2, 5, 8]], torch.tensor([0.1, 1.1, 0.1], dtype=torch.float64))


def test_reactions_of_tied_bodies_are_refused():
    scene = cs.Scene(collisions=False)
    scene.add_body("a", joint=cs.Revolute((0, 1, 0)), mass=1.0, inertia=(1, 1, 1))
    scene.add_body("b", parent="a", joint=cs.Revolute((0, 1, 0)), pos=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    scene.add_distance("b", "world", pos=(1, 0, 0), pos_b=(1, 0, -1), name="rope")
    model = scene.build()
    with pytest.raises(ValueError, match="'rope' ties 'b', or what hangs on it, to something else"):
        Sensors(model, [ReactionForce("b")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sensors(model, [JointTorque()]).width == 2  # nothing drives them, and they may be read


def test_a_state_far_away_keeps_float32_accurate():
    """Accelerations are computed about the robot, not about the world's origin."""
    model = robot()
    state = random_state(model)
    q = state.q.clone()
    q[:3] += torch.tensor([1000.0, -2000.0, 500.0])
    sensors = Sensors(model, [Accelerometer(["imu", "end"])])
    expected = sensors(cs.Simulator(model, dt=DT), state, random_control(model))
    far = cs.State(q.float(), state.v.float())
    found = sensors(cs.Simulator(model, dt=DT, dtype=torch.float32), far, random_control(model).float())
    # of v+ - v in float32, over 2 ms: 1e-7 * 10 m/s / 2e-3
    torch.testing.assert_close(found.double(), expected, rtol=1e-2, atol=2e-2)
