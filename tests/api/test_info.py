"""step(..., info=True): contacts, joint rows and status; their batches, numpy, vmap and gradients; warnings of full slots."""

import warnings

import numpy as np
import pytest
import torch
from torch.func import grad, vmap
from torch.utils import _pytree as pytree

import costate as cs
from tests.api.toys import DT, RADIUS, ROW_NAMES, model, pressed, random_state, toys

# a difference of an impulse that is solved to 1e-10, over a step of 1e-6
DIFFERENCES = 1e-4
MODEL = model()
SIM = cs.Simulator(MODEL, dt=DT)
G = 9.81


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def same(a, b):
    a, b = pytree.tree_leaves(a), pytree.tree_leaves(b)
    return len(a) == len(b) and all(np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True) for x, y in zip(a, b))


def settled():
    """The toys at rest."""
    return SIM.rollout(SIM.initial_state(), steps=100)[-1]


# ---- what is in it ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_shapes_and_types(batch):
    _, info = SIM.step(random_state(MODEL, generator(1), *batch), info=True)
    slots, rows, c = MODEL.engine.tree.max_contacts, MODEL.engine.tree.rows, info.contacts
    assert slots == len(MODEL.engine.tree.candidate_pair) >= 1 + 2 + 8 and rows == len(ROW_NAMES)
    assert SIM.row_names == ROW_NAMES
    assert info.acceleration.shape == (*batch, MODEL.nv) and info.diverged.shape == batch
    for x in (c.gap, c.shape_a, c.shape_b, c.candidate, c.active, c.state, c.distance):
        assert x.shape == (*batch, slots)
    assert all(x.shape == (*batch, slots, 3) for x in (c.point, c.normal, c.impulse))
    assert all(x.shape == (*batch, rows) for x in info.rows)
    s = info.status
    assert all(x.shape == batch for x in (s.residual, s.penetration, s.sweeps, s.contacts, s.overflow, s.wanted, s.converged))
    assert c.active.dtype == info.diverged.dtype == s.converged.dtype == torch.bool
    assert c.state.dtype == c.shape_a.dtype == s.sweeps.dtype == s.unconverged.dtype == torch.int64
    assert c.gap.dtype == info.rows.impulse.dtype == s.residual.dtype == torch.float64


@pytest.mark.parametrize("ground_first", [True, False], ids=["ground first", "ground last"])
def test_a_ball_at_rest(ground_first):
    """Its weight times dt from the ground, which is shape a of the contact whenever it was added."""
    m = toys(ground_first=ground_first, crate=False).build()
    sim = cs.Simulator(m, dt=DT)
    state = sim.rollout(sim.initial_state(), steps=50)[-1]
    _, info = sim.step(state, info=True)
    c = info.contacts
    (k,) = torch.nonzero(c.shape_b == m.shape("ball_shape")).flatten().tolist()
    assert c.active[k] and c.shape_a[k] == m.shape("ground") and c.state[k] == 2
    weight = m.defaults["mass"][m.body("ball")] * G
    up = torch.tensor([0, 0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(c.impulse[k], weight * DT * up, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(c.normal[k], up)
    torch.testing.assert_close(c.gap[k], state.q[2] - RADIUS, rtol=0, atol=1e-12)
    assert (c.point[k, :2] - state.q[:2]).abs().max() < 1e-12 and abs(c.point[k, 2]) < 1e-4
    assert c.impulse[~c.active].abs().sum() == 0 and (c.shape_a[~c.active] == -1).all() and (c.candidate[~c.active] == -1).all()
    assert torch.equal(c.active, c.state > 0) and torch.equal(c.active, c.candidate >= 0)
    total = m.defaults["mass"][[m.body("ball"), m.body("rod")]].sum() * G * DT
    torch.testing.assert_close(c.impulse.sum(0)[2], total, rtol=1e-6, atol=0)
    assert info.status.contacts == 3 and info.status.converged and info.status.residual < 1e-9 and not info.status.overflow


@pytest.mark.parametrize("ball_first", [True, False])
def test_normals_point_from_a_to_b(ball_first):
    """A ball pushed into a rod beneath it: whichever was made first."""
    scene = cs.Scene(gravity=(0, 0, 0))
    parts = [("ball", cs.Sphere(0.1), 0.25), ("rod", cs.Capsule(0.1, 0.2, quat=(1, 0, 1, 0)), 0.06)]
    for name, shape, height in parts if ball_first else parts[::-1]:
        scene.add_body(name, joint=cs.Free(), pos=(0, 0, height), shapes=shape)
    m = scene.build()
    sim = cs.Simulator(m)
    _, info = sim.step(sim.initial_state(), info=True)
    c, up = info.contacts, 1.0 if m.shape_names[info.contacts.shape_b[0]] == "ball/0" else -1.0
    assert {int(c.shape_a[0]), int(c.shape_b[0])} == {0, 1}
    torch.testing.assert_close(c.normal[0], torch.tensor([0, 0, up], dtype=torch.float64))
    assert up * c.impulse[0, 2] > 0.1 and abs(c.gap[0] + 0.01) < 1e-12


def test_states_of_contacts():
    """A ball far away, one at rest, one that slides: three worlds."""
    q, v = (x.expand(3, -1).clone() for x in settled())
    q[0, 2] += 1.0
    v[2, 0] = 1.0  # faster than friction stops in a step
    _, info = SIM.step(cs.State(q, v), info=True)
    c, ball = info.contacts, MODEL.shape("ball_shape")
    states = [c.state[w][c.shape_b[w] == ball].tolist() for w in range(3)]
    assert states == [[], [2], [3]]
    assert torch.allclose(c.impulse[2][c.shape_b[2] == ball][:, 0], -0.8 * c.impulse[2][c.shape_b[2] == ball][:, 2])
    assert info.status.contacts[0] == info.status.contacts[1] - 1


def test_joint_rows():
    """Dry friction holds the arm; the servo pushes with all its force; the limit holds."""
    q, v = (x.expand(3, -1).clone() for x in settled())
    q[:, -1], v[:, -1] = torch.tensor([0.0, 0.0, 0.5]).double(), 0.0
    control = torch.tensor([[0.0], [10.0], [10.0]], dtype=torch.float64)
    _, info = SIM.step(cs.State(q, v), control, info=True)
    impulse, states = info.rows.impulse, info.rows.state
    assert states[:, 0].tolist()[:2] == [2, 1] or states[:, 0].tolist()[:2] == [2, 3]  # sticks, slips
    assert states[:, 1].tolist() == [2, 3, 3] and states[0, 2] in (0, 1) and states[2, 2] == 2
    torch.testing.assert_close(impulse[1, 1].abs(), torch.tensor(2.0 * DT, dtype=torch.float64), rtol=1e-9, atol=0)
    torch.testing.assert_close(impulse[1, 0].abs(), torch.tensor(0.1 * DT, dtype=torch.float64), rtol=1e-9, atol=0)
    assert impulse[2, 2] != 0


def test_a_model_without_contacts():
    scene = cs.Scene()
    scene.add_body("arm", joint=cs.Revolute(), mass=1.0, inertia=(1, 1, 1), com=(0.1, 0, 0))
    sim = cs.Simulator(scene.build())
    _, info = sim.step(sim.initial_state(3), info=True)
    assert info.contacts.gap.shape == (3, 0) and info.contacts.impulse.shape == (3, 0, 3) and info.rows.impulse.shape == (3, 0)
    assert info.status.converged.all() and not info.status.residual.any() and not info.status.wanted.any()
    assert sim.row_names == () and sim.rollout(sim.initial_state(3), steps=2).status.converged.all()


# ---- numpy, batches, vmap --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("batch", [(), (5,)], ids=str)
def test_numpy_gives_torchs_numbers(batch, dtype):
    sim = cs.Simulator(MODEL, dt=DT, dtype=dtype)
    state = cs.State(*(x.to(dtype) for x in random_state(MODEL, generator(2), *batch)))
    expected, found = sim.step(state, info=True), sim.step(state.numpy(), info=True)
    assert type(found[1]) is cs.Info and type(found[1].contacts) is cs.Contacts and type(found[1].status) is cs.Status
    assert all(type(x) in (np.ndarray, np.bool_) for x in pytree.tree_leaves(found))
    assert same(found, expected) and found[1].status.converged.dtype == bool and found[1].status.sweeps.dtype == np.int64
    traj, arrays = sim.rollout(state, steps=5), sim.rollout(state.numpy(), steps=5)
    assert type(arrays.status) is cs.Status and same(arrays.status, traj.status)


def test_info_does_not_change_the_step_and_worlds_are_independent():
    state = random_state(MODEL, generator(3), 5)
    new, info = SIM.step(state, info=True)
    assert same(new, SIM.step(state))
    for w in range(5):
        one = SIM.step(cs.State(state.q[w], state.v[w]), info=True)
        assert same(one, pytree.tree_map(lambda x, w=w: x[w], (new, info)))


def test_vmap_is_the_batched_call():
    state = random_state(MODEL, generator(4), 4)
    expected = SIM.step(state, info=True)
    assert same(vmap(lambda q, v: SIM.step(cs.State(q, v), info=True))(*state), expected)
    pairs = cs.State(*(x.reshape(2, 2, -1) for x in state))
    found = vmap(lambda q, v: SIM.step(cs.State(q, v), info=True), in_dims=1, out_dims=1)(*pairs)
    assert same(found, SIM.step(pairs, info=True))
    shared = vmap(lambda v: SIM.step(cs.State(state.q[0], v), info=True))(state.v)
    assert same(shared, SIM.step(cs.State(state.q[0].expand(4, -1), state.v), info=True))


def test_vmap_of_gradients_of_impulses():
    state = random_state(MODEL, generator(5), 4)

    def f(q, v, mass):
        _, info = SIM.step(cs.State(q, v), params=MODEL.params().replace(mass=mass), info=True)
        return info.contacts.impulse.square().sum() + info.acceleration.sin().sum()

    mass = MODEL.params()["mass"]
    found = vmap(grad(f, argnums=(0, 1, 2)), in_dims=(0, 0, None))(*state, mass)
    expected = [grad(f, argnums=(0, 1, 2))(state.q[w], state.v[w], mass) for w in range(4)]
    for a, b in zip(found, zip(*expected)):
        torch.testing.assert_close(a, torch.stack(b), rtol=1e-12, atol=1e-12)


# ---- gradients -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gradient", ["implicit", "exact"])
@pytest.mark.parametrize("field", ["q", "v", "dt", "mass", "friction", "shape_size"])
def test_impulses_against_differences(field, gradient):
    """What each body gets in all: how two contacts of one body share it is up to the last digits of the solver."""
    m = toys(crate=False).build()
    sim = cs.Simulator(m, dt=DT, solver=cs.PGS(100, 4), gradient=gradient)
    gen, state, params = generator(6), pressed(m), m.params()
    start = {"q": state.q, "v": state.v, "dt": torch.tensor(DT).double(), **params}[field]
    weights = torch.randn(len(m.shape_names), 3, generator=gen, dtype=torch.float64)

    def f(x):
        y = {"q": state.q, "v": state.v, "dt": DT, "params": params}
        y = {**y, field: x} if field in y else {**y, "params": params.replace(**{field: x})}
        _, info = sim.step(cs.State(y["q"], y["v"]), None, y["params"], dt=y["dt"], info=True)
        assert info.status.converged and (info.contacts.state[info.contacts.active] >= 2).all()
        return (weights[info.contacts.shape_b] * info.contacts.impulse).sum()

    x = start.clone().requires_grad_()
    (bar,) = torch.autograd.grad(f(x), x)
    d = torch.randn(start.shape, generator=gen, dtype=torch.float64) * (start != 0 if field == "shape_size" else 1)
    d = d * start.abs() if field in ("dt", "mass") else d
    errors = [abs((bar * d).sum() - (f(start + h * d) - f(start - h * d)) / (2 * h)) for h in (1e-5, 1e-6, 1e-7)]
    assert min(errors) < DIFFERENCES * (bar.norm() * d.norm()).item() and bar.any()


def test_gradients_of_state_and_impulses_add_up():
    state = random_state(MODEL, generator(7), 3)
    q = state.q.clone().requires_grad_()

    def parts():
        new, info = SIM.step(cs.State(q, state.v), info=True)
        return new.q.sin().sum(), new.v.square().sum(), info.contacts.impulse.square().sum()

    alone = [torch.autograd.grad(parts()[k], q)[0] for k in range(3)]
    (together,) = torch.autograd.grad(sum(parts()), q)
    torch.testing.assert_close(together, sum(alone), rtol=1e-9, atol=1e-9)
    assert all(bar.any() for bar in alone)


def test_what_has_no_gradient_says_so():
    state = random_state(MODEL, generator(8), 3)
    q = state.q.clone().requires_grad_()
    _, info = SIM.step(cs.State(q, state.v), params=MODEL.params(requires_grad=True), info=True)
    assert info.contacts.impulse.requires_grad and info.acceleration.requires_grad
    c, rows = info.contacts, info.rows
    for x in (c.gap, c.point, c.normal, c.distance, rows.impulse, rows.distance, info.status.residual, info.status.penetration):
        with pytest.raises(RuntimeError, match="does not require grad"):
            x.sum().backward()


def test_second_derivative_of_impulses_raises():
    state = random_state(MODEL, generator(9))
    q = state.q.clone().requires_grad_()
    _, info = SIM.step(cs.State(q, state.v), info=True)
    (first,) = torch.autograd.grad(info.contacts.impulse.square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        first.sum().backward()


# ---- status ----------------------------------------------------------------------------------------------------------
def test_status_of_a_rollout_is_that_of_its_steps():
    sim = cs.Simulator(MODEL, dt=DT, solver=cs.PGS(2, 0))
    state, controls = random_state(MODEL, generator(10), 4), torch.zeros(10, 4, 1, dtype=torch.float64)
    traj = sim.rollout(state, controls)
    each = []
    for t in range(10):
        state, info = sim.step(state, controls[t], info=True)
        each.append(info.status.numbers)
    each = torch.stack(each)
    expected = each.amax(0)
    expected[:, [1, 5, 6]] = each[:, :, [1, 5, 6]].sum(0)
    assert torch.equal(traj.status.numbers, expected)
    assert not traj.status.converged.all() and (traj.status.exact_fallback == traj.status.unconverged).all()
    policy = sim.rollout(random_state(MODEL, generator(10), 4), lambda s, c, t: controls[t], steps=10)
    assert torch.equal(policy.status.numbers, traj.status.numbers)
    halves = sim.rollout(random_state(MODEL, generator(10), 4), controls[:5], substeps=2)
    assert torch.equal(halves.status.numbers, traj.status.numbers)


def test_status_in_words():
    status = SIM.rollout(random_state(MODEL, generator(13), 2, 3), steps=3).status
    assert repr(status).startswith("Status(converged in ") and " of 6 worlds, residual <= " in repr(status)
    assert "overflow in 0 worlds" in repr(cs.Status(status.numbers.numpy())) and "\n" not in repr(status)


def test_status_is_saved(tmp_path):
    traj = SIM.rollout(random_state(MODEL, generator(11), 2), steps=3)
    traj.save(tmp_path / "motion.npz")
    found = cs.Trajectory.load(tmp_path / "motion.npz")
    assert type(found.status) is cs.Status and torch.equal(found.status.numbers, traj.status.numbers)
    assert "status" in vars(traj.detach()) and traj.detach().status is traj.status


@pytest.mark.parametrize("call", ["step", "step, info", "numpy step", "rollout", "policy", "numpy rollout"])
def test_full_slots_give_a_warning(call):
    sim = cs.Simulator(toys(max_contacts=2).build(), dt=DT)
    state = sim.initial_state(3)
    state.q[1, 2] += 1.0  # the ball of the second world is in the air, but the others still have more than two contacts
    one = cs.State(state.q[0].numpy(), state.v[0].numpy())
    run = {
        "step": lambda: sim.step(state),
        "step, info": lambda: sim.step(state, info=True),
        "numpy step": lambda: sim.step(one),
        "rollout": lambda: sim.rollout(state, steps=2),
        "policy": lambda: sim.rollout(state, lambda s, c, t: None, steps=2),
        "numpy rollout": lambda: sim.rollout(one, steps=2),
    }[call]
    with pytest.warns(RuntimeWarning, match=r"max_contacts = 2 .*dropped.*Scene\(max_contacts=\d+\)") as caught:
        run()
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        needed = int(str(caught[0].message).split("max_contacts=")[1].split(")")[0])
        enough = cs.Simulator(toys(max_contacts=needed).build(), dt=DT)
        enough.rollout(enough.initial_state(3), steps=2)


def test_worlds_that_diverge_tell_no_nonsense():
    state = random_state(MODEL, generator(12), 3)
    state.v[1] = 1e200
    with pytest.warns(RuntimeWarning, match="1 of 3 worlds diverged"):
        new, info = SIM.step(state, info=True)
    assert info.diverged.tolist() == [False, True, False] and torch.equal(new.q[1], state.q[1])
    _, fine = SIM.step(cs.State(state.q[[0, 2]], state.v[[0, 2]]), info=True)
    assert same(pytree.tree_map(lambda x: x[[0, 2]], info), fine)
