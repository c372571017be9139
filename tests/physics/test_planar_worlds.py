"""Many planar worlds: a batch is its worlds to the last bit, a thousand random ones keep what must be kept, saved ones go on."""

import copy
import io
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

import costate as cs
from costate.rotation import rotate
from tests.physics.planar_scenes import HEXAGON, random_scene

pytestmark = pytest.mark.usefixtures("restored")

WORLDS, STEPS = 37, 8  # more than two packs of every width, the last one not full
SURFACE = {"friction": 0.6, "restitution": 0.3}
FIELDS = ("friction", "restitution", "shape_size", "hull_vertex", "mass")


@cache
def model() -> cs.Model:
    """All shapes on the ground and a wall, two of them on a hinge, and a limited arm with a servo that touches them."""
    scene = cs.Scene(planar=True)
    scene.add_ground(**SURFACE)
    scene.add_shape(cs.HalfPlane(pos=(1.0, 0), angle=1.2, **SURFACE))
    scene.add_body("disc", pos=(0, 0.1), shapes=cs.Circle(0.1, density=100.0, **SURFACE))
    scene.add_body("box", pos=(0.25, 0.1), shapes=cs.Rectangle((0.1, 0.1), density=100.0, **SURFACE))
    scene.add_body("nut", pos=(0.2, 0.35), shapes=cs.Polygon(HEXAGON, density=100.0, **SURFACE))
    scene.add_body("left", pos=(-0.4, 0.1), shapes=cs.Rectangle((0.15, 0.05), density=100.0, **SURFACE))
    scene.add_body("right", pos=(-0.7, 0.1), shapes=cs.Rectangle((0.15, 0.05), density=100.0, **SURFACE))
    scene.add_hinge("left", "right", pos=(-0.15, 0))
    arm = cs.Rectangle((0.04, 0.25), density=50.0, pos=(0, -0.25), **SURFACE)
    scene.add_body("arm", joint=cs.Revolute(limits=(-0.4, 0.5), friction=0.1), pos=(-0.1, 0.7), shapes=arm)
    scene.add_servo("arm", gain=10.0, max_force=3.0, max_speed=2.0)
    return scene.build()


def inputs(dtype: torch.dtype) -> dict[str, Tensor]:
    """Worlds resting, flying high, hitting and overlapping, at their limits and not; with their own numbers and steps."""
    m, g = model(), torch.Generator().manual_seed(7)
    rand = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    q = torch.tensor(m.q0) + 0.03 * rand(WORLDS, m.nq)
    high = torch.tensor([0.0, 0.05, 1.0]).double()[torch.arange(WORLDS) % 3]
    q[:, 1], q[:, 4], q[:, 7] = q[:, 1] + high, q[:, 4] + high.roll(1), q[:, 7] + high.roll(2)
    q[:, -1] = 0.5 * rand(WORLDS)
    x = {
        "q": cs.project(m, q) + 1e-3 * rand(WORLDS, m.nq),
        "v": 0.7 * rand(WORLDS, m.nv),
        "control": rand(STEPS, WORLDS, m.nu),
        "dt": 0.005 + 0.002 * rand(WORLDS).abs(),
        **{name: m.defaults[name] * (1 + 0.1 * rand(WORLDS, *m.defaults[name].shape).tanh()) for name in FIELDS},
        "weight_q": rand(STEPS + 1, WORLDS, m.nq),
        "weight_v": rand(STEPS + 1, WORLDS, m.nv),
    }
    return {name: t.to(dtype) for name, t in x.items()}


TIMED = ("control", "weight_q", "weight_v", "traj.q", "traj.v", "bar of control")


def pick(x: dict[str, Tensor], worlds: list[int]) -> dict[str, Tensor]:
    return {name: t[:, worlds] if name in TIMED else t[worlds] for name, t in x.items()}


def roll(x: dict[str, Tensor], **options) -> dict[str, Tensor]:
    """Trajectory, status, and gradients of a weighted sum of the trajectory, world by world."""
    dtype = x["q"].dtype
    leaves = {name: t.clone().requires_grad_() for name, t in x.items() if not name.startswith("weight")}
    params = model().params(dtype=dtype).replace(**{name: leaves[name] for name in FIELDS})
    sim = cs.Simulator(model(), dtype=dtype, **options)
    traj = sim.rollout(cs.State(leaves["q"], leaves["v"]), leaves["control"], params, dt=leaves["dt"])
    loss = (x["weight_q"] * traj.q).sum() + (x["weight_v"] * traj.v).sum()
    bars = torch.autograd.grad(loss, list(leaves.values()))
    found = {"traj.q": traj.q.detach(), "traj.v": traj.v.detach(), "status": traj.status.numbers}
    return found | {f"bar of {name}": g for name, g in zip(leaves, bars)}


def assert_same_bits(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    for name, x in a.items():
        assert torch.equal(x, b[name]), f"{name}: differs by {(x - b[name]).abs().max():.1e}"


# ---- bits ----------------------------------------------------------------------------------------------------------
def test_the_worlds_have_different_contacts():
    found = roll(inputs(torch.float64))
    contacts = found["status"][:, 3].long()
    assert len(contacts.unique()) >= 5 and contacts.max() >= 8
    for name, x in found.items():
        assert torch.isfinite(x).all() and x.abs().max() > 0, f"{name}: nothing to compare"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_batch_is_its_worlds(instructions, dtype):
    """Alone, in small batches, in another order: the same bits of states, status and gradients."""
    x = inputs(dtype)
    everything = roll(x)
    order = torch.randperm(WORLDS, generator=torch.Generator().manual_seed(2)).tolist()
    for some in ([0], [20], [5, 6, 7, 8, 9], list(range(WORLDS - 16, WORLDS)), order):
        assert_same_bits(roll(pick(x, some)), pick(everything, some))


@pytest.mark.parametrize("options", [{"gradient": "exact"}, {"solver": cs.PGS(form="half-solved")}], ids=["exact", "half-solved"])
def test_other_options_too(options):
    x, order = inputs(torch.float64), list(range(WORLDS - 1, -1, -1))
    assert_same_bits(roll(pick(x, order), **options), pick(roll(x, **options), order))


def test_thread_count():
    found = []
    for threads in (1, 2, 3):
        cs.set_num_threads(threads)
        found.append(roll(inputs(torch.float64)))
    assert_same_bits(found[1], found[0])
    assert_same_bits(found[2], found[0])


def test_one_world_in_numpy_is_the_same_world():
    x, sim = inputs(torch.float64), cs.Simulator(model(), dt=0.005)
    batch = sim.step(cs.State(x["q"], x["v"]), x["control"][0])
    for w in range(0, WORLDS, 5):
        one = sim.step(cs.State(x["q"][w].numpy(), x["v"][w].numpy()), x["control"][0, w].numpy())
        assert np.array_equal(one.q, batch.q[w].numpy()) and np.array_equal(one.v, batch.v[w].numpy())


# ---- saving --------------------------------------------------------------------------------------------------------
def saved(x):
    file = io.BytesIO()
    torch.save(x, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


@pytest.mark.parametrize(
    "remake", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, saved], ids=["pickle", "deepcopy", "torch.save"]
)
def test_a_saved_simulation_goes_on_as_if_nothing_had_been(remake):
    """Model, simulator, parameters and state, in the middle of a rollout: (q, v) is all the state there is."""
    x = inputs(torch.float64)
    sim, params = cs.Simulator(model(), dt=0.005, project=2), model().params().replace(**{n: x[n] for n in FIELDS})
    whole = sim.rollout(cs.State(x["q"], x["v"]), x["control"], params)
    half = sim.rollout(cs.State(x["q"], x["v"]), x["control"][: STEPS // 2], params)
    again, other, state = remake(sim), remake(params), remake(half[-1])
    assert again.model == model() and again.model.planar
    rest = again.rollout(state, x["control"][STEPS // 2 :], other)
    assert torch.equal(rest.q, whole.q[STEPS // 2 :]) and torch.equal(rest.v, whole.v[STEPS // 2 :])


# ---- a thousand random worlds --------------------------------------------------------------------------------------
SCENES, EACH, LONG, H = 125, 8, 100, 0.01
EVERY = 4  # steps, of those that are looked at
BALANCE = 1e-13  # relative to all momenta and impulses: some roundings


def random_worlds(m: cs.Model, seed: int) -> tuple[cs.State, cs.Params]:
    """Eight worlds of a random scene, each with its own velocities, sizes, masses, surfaces and gravity."""
    g = torch.Generator().manual_seed(seed)
    rand = lambda *shape: torch.randn(EACH, *shape, generator=g, dtype=torch.float64)  # noqa: E731
    fields = {name: m.defaults[name] * (1 + 0.1 * rand(*m.defaults[name].shape).tanh()) for name in ("shape_size", "friction")}
    fields["hull_vertex"] = m.defaults["hull_vertex"] * (1 + 0.1 * rand(1, 1).tanh())
    fields["restitution"] = (m.defaults["restitution"] + 0.1 * rand(*m.defaults["restitution"].shape)).clamp(0, 0.9)
    heavy = 1 + 0.5 * rand(m.nb).tanh()
    fields["mass"], fields["inertia"] = m.defaults["mass"] * heavy, m.defaults["inertia"] * heavy.unsqueeze(-1)
    fields["gravity"] = m.defaults["gravity"] + rand(3) * torch.tensor([1.0, 1.0, 0.0])
    params = cs.Params(m, {name: fields.get(name, value.expand(EACH, *value.shape)) for name, value in m.defaults.items()})
    return cs.State(torch.tensor(m.q0).expand(EACH, -1), rand(m.nv) * torch.tensor([2.0, 2.0, 3.0]).repeat(m.nb)), params


def momentum_off(m: cs.Model, params: cs.Params, state: cs.State, new: cs.State, info: cs.Info) -> Tensor:
    """[T, EACH] how much the change of momentum of a step, linear and angular about the common centre, misses what gravity and
    the contacts with the world gave, relative to all momenta and impulses. All at the start's positions, where bodies whose
    centre of mass is not their origin have a centripetal force."""
    before, after = (cs.momentum(m, state.q, v, params) for v in (state.v, new.v))
    change = (after - before)[..., [2, 3, 4]]
    kin = cs.kinematics(m, state.q, state.v, params)
    angle = 2 * torch.atan2(kin.quaternion[..., 3], kin.quaternion[..., 0])
    com = torch.polar(torch.ones_like(angle), angle) * torch.complex(params["com"][..., 0], params["com"][..., 1])
    place = torch.complex(kin.position[..., 0], kin.position[..., 1]) + com
    centre = ((params["mass"] * place).sum(-1) / params["mass"].sum(-1)).unsqueeze(-1)
    gravity = torch.complex(params["gravity"][..., 0], params["gravity"][..., 1]).unsqueeze(-1)
    force = H * params["mass"] * (gravity + kin.velocity[..., 2] ** 2 * com)
    c, body = info.contacts, torch.tensor([*m.shape_body, -2])
    push = torch.complex(c.impulse[..., 0], c.impulse[..., 1]) * (body[c.shape_a] == -1)
    point, place = torch.complex(c.point[..., 0], c.point[..., 1]) - centre, place - centre
    moment = (place.conj() * force).imag.sum(-1) + (point.conj() * push).imag.sum(-1)
    total = force.sum(-1) + push.sum(-1)
    given = torch.stack((moment, total.real, total.imag), -1)
    size = (params["mass"] * (kin.velocity[..., 2:].abs().sum(-1) + 1)).sum(-1) + c.impulse.norm(dim=-1).sum(-1)
    size += info.constraints.impulse.abs().sum(-1)
    return (change - given).abs().amax(-1) / size


def check_random_scene(seed: int) -> tuple[float, float]:
    """Run one of them; the share of steps in which something is 1 cm deep in something else, and of those that are solved."""
    m = random_scene(np.random.default_rng(seed)).build()
    state, params = random_worlds(m, seed)
    sim = cs.Simulator(m, H)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a wedge may jam: nothing is lost then but what friction holds
        traj = sim.rollout(state, params=params, steps=LONG)
        some = cs.State(traj.q[:-1:EVERY], traj.v[:-1:EVERY])
        new, info = sim.step(some, params=params, info=True)
    assert torch.isfinite(traj.q).all() and torch.isfinite(traj.v).all() and not traj.diverged.any()
    assert momentum_off(m, params, some, new, info).max() < BALANCE
    # in the end all are above all half planes: nothing tunnels
    place = cs.kinematics(m, traj.q[-1], params=params).position
    for s, body in enumerate(m.shape_body):
        if body == -1:
            n = rotate(params["shape_quat"][0, s], torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64))
            assert ((place - params["shape_pos"][0, s]) @ n).min() > 0, (seed, m.shape_names[s])
    deep = torch.where(info.contacts.active, info.contacts.gap, 0.0).amin(-1) < -0.01
    return deep.double().mean().item(), (info.status.unconverged == 0).double().mean().item()


def check_random_scenes(seeds: range) -> None:
    """Of a light body that is hit within a step the flight of that step is not seen before, so it may be deep at its end."""
    deep, solved = zip(*(check_random_scene(seed) for seed in seeds))
    assert np.mean(deep) < 0.01 and np.mean(solved) > 0.95


@pytest.mark.parametrize("part", range(5))
def test_a_thousand_random_worlds(part):
    """Of 125 scenes: finite, momentum balances in every step, nothing tunnels, hardly anything is ever deep in another."""
    check_random_scenes(range(part, SCENES, 5))


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
def test_more_random_worlds(part):
    """The same of a thousand scenes, eight worlds each."""
    check_random_scenes(range(1000 + part, 2000, 10))
