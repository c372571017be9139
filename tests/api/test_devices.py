"""Sensors, rays, energies, reports and pictures of states on a GPU, a pretended one: nothing is mixed with tensors of the CPU,
results are where the state is and the same to the last bit, and what was computed once can be captured in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import costate as cs
from costate import devices
from costate import sensors as s
from costate._native.cpu import Engine
from tests.api.linkages import zoo
from tests.api.pretend import GPU, Kernels, PretendedGpu, WrongDeviceError, on_gpu
from tests.sensors.robots import DT, hopper, landed, random_control, random_state, robot
from tests.sensors.test_actuators import arm

matplotlib.use("Agg")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGpu]:
    mode = PretendedGpu()
    monkeypatch.setattr(Engine, "cuda", lambda self, device: Kernels(self))
    monkeypatch.setattr("costate.sim.find_device", torch.device)
    monkeypatch.setattr("costate.watch.Watch.later", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: mode.capturing)
    yield mode
    devices._kept.cache_clear()  # no pretended tensor may be left for others


def check_same(found: Any, expected: Any) -> None:
    """On the GPU, and equal to what the CPU gave."""
    found, expected = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    assert len(found) == len(expected) > 0
    with torch._C.DisableTorchFunction():
        for x, y in zip(found, expected, strict=True):
            assert on_gpu(x) and torch.equal(x, y)


# ---- the pretended GPU itself --------------------------------------------------------------------------------------
MISTAKES = {
    "a mask of the cpu": lambda x: torch.where(torch.tensor([True, False, True]), x, 0.0),
    "a table of the cpu": lambda x: torch.arange(3)[x.long()],
    "an index of the cpu": lambda x: x[torch.tensor([0, 1])],
    "expanded on the cpu": lambda x: torch.full((), 2.0).expand(3) + x,
    "numpy": lambda x: np.asarray(x),
}
WAITS = {
    "looks": lambda x: bool((x > 0).all()),
    "numbers": lambda x: x.new_tensor([1.0, 2.0, 3.0]),
    "a list": lambda x: x[[0, 1]],
    "a copy to it": lambda x: torch.ones(3).to(x.device),
    "a copy from it": lambda x: x.cpu(),
}


@pytest.mark.parametrize("name", [*MISTAKES, *WAITS])
def test_mistakes_are_noticed(gpu, name):
    with gpu:
        x = gpu.put(torch.ones(3))
        assert x.device == GPU and x.is_cuda and not x.cpu().is_cuda and on_gpu(2 * x + torch.tensor(1.0)[None][0])
        if name in WAITS:
            WAITS[name](x)
        with pytest.raises(WrongDeviceError), gpu.captured():
            (MISTAKES | WAITS)[name](x)


# ---- sensors -------------------------------------------------------------------------------------------------------
def _solid() -> cs.Model:
    """All shapes that rays know, on a body each, above a field and a plane that moves."""
    random = np.random.default_rng(0)
    scene = cs.Scene()
    scene.add_shape(cs.Heightfield(0.1 * random.normal(size=(6, 5)), (3.0, 3.0)), name="terrain")
    scene.add_ground(-1.0)
    corners = np.array([[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) * 0.2
    solids = (cs.Sphere(0.2), cs.Capsule(0.1, 0.2), cs.Box((0.1, 0.2, 0.3)), cs.Cylinder(0.2, 0.2), cs.Hull(corners))
    for k, shape in enumerate(solids):
        scene.add_body(f"body{k}", joint=cs.Free(), pos=(0.5 * k - 1, 0, 0.5), shapes=shape, mass=1.0, inertia=(1, 1, 1))
    scene.add_site("eye", body="body0", pos=(0, 0, 0.3))
    return scene.build()


def moving(model: cs.Model, *batch: int) -> cs.State:
    """As it was built, where its constraints are kept."""
    return cs.State(torch.tensor(model.q0).expand(*batch, -1).clone(), 0.01 * torch.randn(*batch, model.nv, dtype=torch.float64))


CHAIN = (
    s.Encoder(), s.EncoderRate(), s.Gyro("imu"), s.Velocimeter("imu"), s.Accelerometer(["imu", "hand"]), s.Magnetometer("imu"),
    s.FramePosition(["imu", "thigh", "com:arm"]), s.FrameQuaternion("hand", relative_to="imu"), s.FrameVelocity("end"),
    s.FrameAngularVelocity("end", relative_to="trunk"), s.FrameAcceleration("hand"), s.FrameAngularAcceleration("hand"),
    s.SubtreeCentre(["trunk", "arm"]), s.SubtreeVelocity("thigh"), s.SubtreeAngularMomentum("trunk"),
    s.ReactionForce("ankle"), s.ReactionTorque("hand"), s.ActuatorForce(), s.JointTorque(),
)  # fmt: skip
FOOT = (
    s.Touch("shank"), s.ContactForce("shank"), s.ContactForce("shank", axes="contact"), s.ContactForce("shank", axes="imu"),
    s.RangeFinder(["imu", "toe"], directions=[(0, 0, -1), (1, 0, -1)]), s.LimitDistance(), s.LimitForce(detach=True),
    s.ReactionForce("toe"), s.ReactionTorque("toe", detach=True), s.Accelerometer("imu", scale=9.81),
)  # fmt: skip
TIES = (s.Encoder(["hinge", "slide", "left"]), s.EncoderRate(), s.JointTorque(detach=True), s.ActuatorForce(detach=True))
SENSED = {
    "chain": (robot, random_state, CHAIN),
    "hopper": (hopper, landed, FOOT),
    "actuators": (arm, random_state, (s.ActuatorForce(detach=True), s.JointTorque(detach=True))),
    "constraints": (lambda: zoo().build(), moving, TIES),
}


@pytest.mark.parametrize("where", ["params on the CPU", "params on the GPU"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("name", SENSED)
def test_sensors(gpu, name, dtype, where):
    make, place, some = SENSED[name]
    model = make()
    sensors, leaf = s.Sensors(model, some), model.params()["com"].requires_grad_()
    state, control = place(model, 3), random_control(model, 3).to(dtype)
    q, v = (x.to(dtype) for x in state)
    params = model.params().replace(com=leaf)

    def read(device: Any, q: Tensor, v: Tensor, control: Tensor, params: cs.Params) -> Tensor:
        return sensors(cs.Simulator(model, dt=DT, device=device, dtype=dtype), cs.State(q, v), control, params)

    expected = read("cpu", q, v, control, params)
    with gpu:
        there = params if where == "params on the CPU" else cs.Params(model, gpu.put(dict(params)))
        found = read(GPU, *gpu.put((q, v, control)), there)
    check_same(found, expected)
    if expected.requires_grad:
        found_bar, bar = (torch.autograd.grad(y.sum(), leaf)[0] for y in (found, expected))
        assert torch.equal(found_bar, bar)


@pytest.mark.parametrize("name", SENSED)
def test_sensors_in_a_graph(gpu, name):
    """The second reading, with the step's info, neither looks at numbers nor copies any; the first made what is kept."""
    make, place, some = SENSED[name]
    model = make()
    sensors, state, control = s.Sensors(model, some), place(model, 3), random_control(model, 3)
    expected = sensors(cs.Simulator(model, dt=DT), state, control)
    with gpu:
        sim = cs.Simulator(model, dt=DT, device=GPU)
        state, control = cs.State(*gpu.put(tuple(state))), gpu.put(control)
        _, info = sim.step(state, control, info=True)
        sensors(sim, state, control, info=info)
        with gpu.captured():
            check_same(sensors(sim, state, control, info=info), expected)


@pytest.mark.parametrize("sensor", [s.Touch("shank"), s.ReactionTorque("toe")], ids=lambda sensor: sensor.kind)
def test_a_gradient_that_may_be_incomplete_is_refused_in_a_graph(gpu, sensor):
    """Whether anything touches cannot be looked at."""
    model = hopper(ground=cs.Box((9, 9, 0.1), pos=(0, 0, -0.1)))
    sensors, state = s.Sensors(model, [sensor]), landed(model, 2)
    with gpu:
        sim, q, v = cs.Simulator(model, dt=DT, device=GPU), *gpu.put(tuple(state))
        state = cs.State(q, v.requires_grad_())
        _, info = sim.step(state, info=True)
        sensors(sim, state, info=info)
        with gpu.captured():
            y = sensors(sim, state, info=info)
    with pytest.raises(s.NoGradientError):
        y.sum().backward()


def test_noise_is_made_where_the_state_is(gpu):
    model = robot()
    sensors, state = s.Sensors(model, [s.Gyro("imu", noise=0.1, scale=2.0)]), random_state(model, 3)
    torch.manual_seed(1)
    expected = sensors(cs.Simulator(model), state, noise=True)
    torch.manual_seed(1)
    with gpu:
        check_same(sensors(cs.Simulator(model, device=GPU), cs.State(*gpu.put(tuple(state))), noise=True), expected)


# ---- rays, and functions of one instant ----------------------------------------------------------------------------
def _functions(model: cs.Model) -> dict[str, Any]:
    return {
        "kinematics": lambda q, v, p: cs.kinematics(model, q, v, p),
        "point jacobian": lambda q, v, p: cs.point_jacobian(model, q, "body0", q[..., :3], p),
        "point jacobian of a point in plain numbers": lambda q, v, p: cs.point_jacobian(model, q, "body0", (0.1, 0.2, 0.3), p),
        "energy": lambda q, v, p: cs.energy(model, q, v, p),
        "centre of mass": lambda q, v, p: cs.centre_of_mass(model, q, p),
        "momentum": lambda q, v, p: cs.momentum(model, q, v, p),
        "mass matrix": lambda q, v, p: cs.mass_matrix(model, q, p),
        "distance": lambda q, v, p: cs.distance(model, q, "body2/0", "body1/0", p),
        "distance to a plane": lambda q, v, p: cs.distance(model, q, "body2/0", "ground", p),
        "rays": lambda q, v, p: _rays(model, q, p),
        "rays on one shape": lambda q, v, p: _rays(model, q, p, shapes=["body4/0"], max_distance=2.0),
    }


def _rays(model: cs.Model, q: Tensor, params: Any, **options: Any) -> cs.Rays:
    """Many, from all around towards somewhere near the middle: they hit all shapes, and some hit nothing."""
    random = torch.Generator().manual_seed(0)
    origin, aim = (torch.randn(1000, 3, generator=random, dtype=torch.float64).to(q) for _ in range(2))
    origin = 2 * origin
    return cs.ray_cast(model, q, origin, aim - origin, params, **options)


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one world", "two worlds"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_functions(gpu, dtype, batch):
    model = _solid()
    state = cs.State(*(x.to(dtype) for x in moving(model, *batch)))
    rays = _rays(model, state.q, None)
    assert set(rays.shape.flatten().tolist()) == {-1, *range(len(model.shape_names))}
    for name, f in _functions(model).items():
        expected = f(*state, None)
        with gpu:
            q, v = gpu.put(tuple(state))
            for params in (cs.Params(model, gpu.put(dict(model.params()))), None):
                check_same(f(q, v, params), expected)
            if "rays" not in name and "plain" not in name:  # which come from the CPU here
                with gpu.captured():
                    check_same(f(q, v, None), expected)


def test_rays_in_a_graph(gpu):
    model = _solid()
    q, o, d = (x.double() for x in (torch.tensor(model.q0), 2 * torch.randn(50, 3), torch.randn(50, 3)))
    expected = cs.ray_cast(model, q, o, d)
    with gpu:
        q, o, d = gpu.put((q, o, d))
        cs.ray_cast(model, q, o, d)
        with gpu.captured():
            check_same(cs.ray_cast(model, q, o, d), expected)


def test_a_field_that_was_written_to_is_copied_anew(gpu):
    model = robot()
    state, params = random_state(model), model.params()
    with gpu:
        q, v = gpu.put(tuple(state))
        first = cs.energy(model, q, v, params)[0]
        params["mass"].mul_(2)
        found = cs.energy(model, q, v, params)
        assert not torch.equal(first, found[0])
    check_same(found, cs.energy(model, *state, params))


# ---- reports and pictures ------------------------------------------------------------------------------------------
def test_gradient_report(gpu):
    model = hopper()
    state, controls = landed(model, 2), torch.stack([random_control(model, 2, seed=k) for k in range(5)])

    def report(device: Any, state: cs.State, controls: Tensor) -> Any:
        sim = cs.Simulator(model, dt=DT, device=device)
        return sim.gradient_report(sim.rollout(state, controls))

    expected = report("cpu", state, controls)
    with gpu:
        found = report(GPU, cs.State(*gpu.put(tuple(state))), gpu.put(controls))
        names = ("costate_norm", "end_norm", "changes", "closest", "contacts", "converged", "growth")
        check_same([getattr(found, name) for name in names], [getattr(expected, name) for name in names])
        assert str(found) == str(expected) and found.plot() is not None


def test_pictures_of_states_on_a_gpu(gpu):
    from costate import render

    scene = cs.Scene(planar=True)
    scene.add_ground()
    scene.add_body("ball", joint=cs.Planar(), pos=(0, 0.1), shapes=cs.Circle(0.1, mass=1.0))
    model = scene.build()
    with gpu:
        sim, params = cs.Simulator(model, device=GPU), cs.Params(model, gpu.put(dict(model.params())))
        start = sim.initial_state(2)
        trajectory, (_, info) = sim.rollout(start, steps=3), sim.step(start, params=params, info=True)
        axes = render.draw(model, start, params=params, contacts=info, trail=trajectory, world=1)
        film = render.frames(model, trajectory, dt=0.01, fps=100, params=params, contacts=[info] * 3)
        assert len(axes.patches) > 0 and film[0].shape[-1] == 3
