"""General actuators, f = gain u + bias - kp L - kd dL/dt: their scheme, limits, constraints, gradients; MuJoCo's affine ones."""

from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import costate as cs
from tests.physics.contact_scenes import G, run

SCHEME = 1e-9  # relative; without force limits it is a part of the mass matrix: the scheme's closed form to round-off
ROW = 1e-7  # with force limits, or on a constraint, it is a row, which gives way by 1e-9 of its stiffness
MASS, H, STEPS = 2.0, 0.005, 100


def slider(*, tie: bool = False, gravity: float = 0.0, **options: Any) -> cs.Scene:
    """2 kg along z: on a joint, or a free body on a slide constraint."""
    scene = cs.Scene(gravity=(0, 0, -gravity))
    joint = cs.Free() if tie else cs.Prismatic((0, 0, 1))
    scene.add_body("slider", joint=joint, mass=MASS, inertia=(1, 1, 1))
    driven = scene.add_slide(None, "slider", axis=(0, 0, 1)) if tie else "slider"
    scene.add_general(driven, **options)
    return scene


def scheme(gain: float, bias: float, kp: float, kd: float, u: float, gear: float, load: float, limits: Any = None) -> np.ndarray:
    """q and v over time: m v+ = m v + h (gear f + load), f at the end of the step and within its limits."""
    q = v = 0.0
    found = [(q, v)]
    for _ in range(STEPS):
        f0, k = gain * u + bias - kp * gear * q, kd + H * kp
        f = f0 - k * gear * (MASS * v + H * (gear * f0 + load)) / (MASS + H * gear**2 * k)
        f = f if limits is None else min(max(f, limits[0]), limits[1])
        v += H * (gear * f + load) / MASS
        q += H * v
        found.append((q, v))
    return np.array(found)


def found(scene: cs.Scene, u: float) -> np.ndarray:
    traj = run(scene, STEPS, dt=H, control=[u])
    z = 0 if traj.q.shape[1] == 1 else 2
    return np.stack([traj.q[:, z], traj.v[:, z]], 1)


GAINS = [(3.0, 0.5, 0.0, 0.0), (-2.0, 1.0, 50.0, 3.0), (40.0, -5.0, 1e5, 0.0), (0.0, 4.0, 0.0, 1e4)]


@pytest.mark.parametrize("gear", [1.0, -2.5])
@pytest.mark.parametrize(("gain", "bias", "kp", "kd"), GAINS)
def test_the_scheme(gain, bias, kp, kd, gear):
    """Also with limits that are never reached, and on a constraint: other rows, the same force."""
    options = {"gain": gain, "bias": bias, "kp": kp, "kd": kd, "gear": gear, "gravity": G}
    expected = scheme(gain, bias, kp, kd, 0.3, gear, -MASS * G)
    scale = np.abs(expected).max(0)
    np.testing.assert_allclose(found(slider(**options), 0.3) / scale, expected / scale, atol=SCHEME)
    if kp + kd > 0:
        for others in ({"force_limits": 1e12}, {"tie": True}, {"tie": True, "force_limits": 1e12}):
            np.testing.assert_allclose(found(slider(**options, **others), 0.3) / scale, expected / scale, atol=ROW)


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("u", [-5.0, 0.1, 5.0])
def test_limits(u, tie):
    """The control is clipped first, the force kept within its limits; outside them it is theirs."""
    options = {"gain": 20.0, "bias": 3.0, "kp": 100.0, "kd": 4.0, "gear": 1.5}
    scene = slider(**options, tie=tie, control_limits=(-1.0, 2.0), force_limits=(-6.0, 9.0))
    expected = scheme(20.0, 3.0, 100.0, 4.0, min(max(u, -1.0), 2.0), 1.5, 0.0, (-6.0, 9.0))
    np.testing.assert_allclose(found(scene, u), expected, atol=ROW)


def test_others_are_special_cases():
    """gain = kp: a position, gain = kd: a velocity actuator; gain alone is a motor."""
    for options, add in (
        ({"gain": 50.0, "kp": 50.0, "kd": 3.0}, lambda s: s.add_position("slider", kp=50.0, kd=3.0)),
        ({"gain": 3.0, "kd": 3.0}, lambda s: s.add_velocity("slider", kd=3.0)),
        ({"gain": 1.0}, lambda s: s.add_motor("slider")),
    ):
        other = cs.Scene(gravity=(0, 0, -G))
        other.add_body("slider", joint=cs.Prismatic((0, 0, 1)), mass=MASS, inertia=(1, 1, 1))
        add(other)
        np.testing.assert_allclose(found(slider(**options, gravity=G), 0.3), found(other, 0.3), atol=1e-12)


def test_it_brakes_a_dof_without_a_coordinate():
    """A ball joint's dof has no place to hold, but a rate to damp."""
    scene = cs.Scene(gravity=(0, 0, 0))
    scene.add_body("top", joint=cs.Ball(), mass=1.0, inertia=(2, 2, 2))
    scene.add_general("top", dof=2, gain=0.5, bias=0.1, kd=0.4)
    traj = run(scene, STEPS, dt=H, v=[0, 0, 3.0], control=[0.2])
    v, expected = 3.0, [3.0]
    for _ in range(STEPS):
        v = (2 * v + H * (0.5 * 0.2 + 0.1)) / (2 + H * 0.4)
        expected.append(v)
    np.testing.assert_allclose(traj.v[:, 2], expected, rtol=SCHEME)


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
# Its Euler steps take spring and damper explicitly, implicitfast the spring; ours are implicit in both. All are of first order:
# ways are extrapolated from two small steps to none. What is left is of second order: (h k / I)^2 with h k / I = 0.01 and less.
FINE, PEER = 2e-4, 1e-4
GAIN, BIAS, KP, KD, GEAR = 25.0, -2.0, 30.0, 1.5, 1.4
START, CONTROL = (0.5, -0.2), 1.7  # more than its control limits


def peer_way(integrator: str, limits: Any, h: float) -> tuple[np.ndarray, float]:
    """q every 10 ms of a pendulum of two links, of which <general> drives the second; and its largest force."""
    bound = f'forcelimited="true" forcerange="{limits[0]} {limits[1]}"' if limits else ""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><compiler autolimits="true"/><option timestep="{h}" integrator="{integrator}"/>
        <worldbody><body><joint name="a" type="hinge" axis="0 1 0"/><inertial pos="0 0 -0.4" mass="1" diaginertia="0.1 0.1 0.05"/>
        <body pos="0 0 -0.8"><joint name="b" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 -0.3" mass="0.5" diaginertia="0.02 0.02 0.01"/></body></body></worldbody>
        <actuator><general joint="b" gear="{GEAR}" gaintype="fixed" biastype="affine" gainprm="{GAIN}"
          biasprm="{BIAS} {-KP} {-KD}" ctrlrange="-1 1" {bound}/></actuator></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = START, CONTROL
    way, most = [data.qpos.copy()], 0.0
    for _ in range(100):
        mujoco.mj_step(model, data, nstep=round(0.01 / h))
        way.append(data.qpos.copy())
        most = max(most, data.actuator_force[0])
    return np.array(way), most


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("limits", [None, (-8.0, 12.0)])
def test_as_in_mujoco(limits, integrator):
    """gaintype="fixed", biastype="affine": biasprm is (bias, -kp, -kd)."""
    scene = cs.Scene()
    scene.add_body("a", joint=cs.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.4), inertia=(0.1, 0.1, 0.05))
    hinge = cs.Revolute((0, 1, 0))
    scene.add_body("b", parent="a", pos=(0, 0, -0.8), joint=hinge, mass=0.5, com=(0, 0, -0.3), inertia=(0.02, 0.02, 0.01))
    scene.add_general("b", gain=GAIN, bias=BIAS, kp=KP, kd=KD, gear=GEAR, control_limits=1.0, force_limits=limits)
    model = scene.build()
    ours, theirs = (
        [run(model, round(1 / h), dt=h, q=START, control=[CONTROL]).q[:: round(0.01 / h)] for h in (FINE, FINE / 2)],
        [peer_way(integrator, limits, h)[0] for h in (FINE, FINE / 2)],
    )
    assert (peer_way(integrator, limits, FINE)[1] == 12.0) == (limits is not None)
    np.testing.assert_allclose(2 * ours[1] - ours[0], 2 * theirs[1] - theirs[0], atol=PEER)
    assert np.abs(ours[0] - theirs[0]).max() > PEER  # the steps themselves differ


# ---- gradients -----------------------------------------------------------------------------------------------------
FIELDS = ("control_gain", "control_bias", "kp", "kd", "gear", "mass")
SLOPE = 1e-7  # relative, of central differences over 1e-5


@pytest.mark.parametrize("gradient", ["implicit", "exact"])
@pytest.mark.parametrize("options", [{}, {"force_limits": 100.0}, {"force_limits": (-3.0, 2.0)}, {"tie": True}], ids=str)
def test_gradients(options, gradient):
    """By every gain and by the control, of where it is in the end; at a force limit only that limit and the gear count."""
    model = slider(gain=20.0, bias=3.0, kp=60.0, kd=4.0, gear=1.5, gravity=G, **options).build()
    sim, steps = cs.Simulator(model, H, gradient=gradient), 20
    names = (*FIELDS, "force_lower", "force_upper") if "force_limits" in options else FIELDS
    base = {name: model.params()[name] for name in names}
    base["u"] = torch.linspace(-0.5, 1.0, steps, dtype=torch.float64).unsqueeze(-1)

    def height(x: dict[str, torch.Tensor]) -> torch.Tensor:
        params = model.params().replace(**{name: value for name, value in x.items() if name != "u"})
        end = sim.rollout(sim.initial_state(), x["u"], params)[-1]
        return end.q[0 if model.nq == 1 else 2]

    leaves = {name: x.clone().requires_grad_() for name, x in base.items()}
    grads = dict(zip(leaves, torch.autograd.grad(height(leaves), list(leaves.values())), strict=True))
    for name, x in base.items():
        with torch.no_grad():
            up, down = (height({**base, name: x * (1 + sign * 1e-5)}) for sign in (1, -1))
        exact = float((grads[name] * x).sum())
        assert exact == pytest.approx(float(up - down) / 2e-5, rel=SLOPE, abs=1e-9), name
    if options.get("force_limits") == (-3.0, 2.0):
        assert grads["force_upper"].abs().sum() + grads["force_lower"].abs().sum() > 0
    else:
        assert all(grads[name].abs().sum() > 0 for name in (*FIELDS, "u"))
