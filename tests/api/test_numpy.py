"""numpy in, numpy out, with torch's numbers; broadcasting of leading dimensions; trajectories as files."""

import numpy as np
import pytest
import torch

import costate as cs
from tests.gradients.differences import CALLS, flatten, random_inputs
from tests.gradients.scenes import build, generator, normal, random_params, random_state

WORLDS, STEPS = 3, 4
MODEL = build("every joint")
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def leaves(tree):
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given", ["defaults", "params", "params per world"])
@pytest.mark.parametrize("name", CALLS)
def test_numpy_gives_torchs_numbers(name, given, dtype):
    call, gen, sim = CALLS[name], generator(1), cs.Simulator(MODEL, dtype=DTYPES[dtype])
    inputs = {key: x.to(DTYPES[dtype]) for key, x in random_inputs(MODEL, gen, call.inputs, WORLDS).items()}
    batch = (WORLDS,) if given == "params per world" else ()
    params = None if given == "defaults" else random_params(MODEL, gen, *batch).to(DTYPES[dtype]).detach()
    arrays = {key: x.numpy() for key, x in inputs.items()}
    out = leaves(call.run(sim, arrays, params))
    assert all(type(x) is np.ndarray and x.dtype == dtype for x in out)
    assert torch.equal(flatten([torch.from_numpy(x) for x in out]), flatten(call.run(sim, inputs, params)).detach())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("control", [False, True], ids=["no control", "control"])
def test_one_world_in_numpy_is_the_batched_step(control, dtype):
    sim = cs.Simulator(MODEL, dtype=DTYPES[dtype])
    state = cs.State(*(x.to(DTYPES[dtype]) for x in random_state(MODEL, generator(2), WORLDS)))
    controls = normal(generator(3), WORLDS, MODEL.nu, dtype=DTYPES[dtype]) if control else None
    many = sim.step(state, controls)
    for i in range(WORLDS):
        one = sim.step(cs.State(state.q[i].numpy(), state.v[i].numpy()), None if controls is None else controls[i].numpy())
        assert type(one.q) is np.ndarray and one.q.shape == (MODEL.nq,) and one.v.shape == (MODEL.nv,)
        assert np.array_equal(one.q, many.q[i]) and np.array_equal(one.v, many.v[i])


def test_arrays_that_are_not_contiguous():
    sim, state = cs.Simulator(MODEL), random_state(MODEL, generator(4), WORLDS)
    control = normal(generator(5), WORLDS, MODEL.nu)
    expected = sim.step(state, control)
    turned = [np.asfortranarray(x.numpy()) for x in (*state, control)]
    strided = [np.repeat(x.numpy(), 2, axis=-1)[..., ::2] for x in (*state, control)]
    assert not any(x.flags.c_contiguous for x in turned + strided)
    for q, v, u in (turned, strided):
        found = sim.step(cs.State(q, v), u)
        assert np.array_equal(found.q, expected.q) and np.array_equal(found.v, expected.v)
        one = sim.step(cs.State(q[1], v[1]), u[1])
        assert np.array_equal(one.q, expected.q[1]) and np.array_equal(one.v, expected.v[1])
        turned_torch = sim.step(cs.State(torch.from_numpy(q), torch.from_numpy(v)), torch.from_numpy(u))
        assert torch.equal(turned_torch.q, expected.q)


def test_inputs_are_not_written_to():
    sim, state, control = cs.Simulator(MODEL), random_state(MODEL, generator(6)), normal(generator(7), MODEL.nu)
    arrays = [x.numpy().copy() for x in (*state, control)]
    for array in arrays:
        array.setflags(write=False)
    q, v, u = arrays
    found = sim.step(cs.State(q, v), u)
    assert np.array_equal(q, state.q) and np.array_equal(v, state.v)
    assert np.array_equal(found.q, sim.step(state, control).q)


def test_info():
    sim, state = cs.Simulator(MODEL), random_state(MODEL, generator(8), WORLDS)
    for dt in (None, 0.02, torch.tensor([0.01, 0.02, 0.005]).double()):
        new, info = sim.step(state, dt=dt, info=True)
        h = 0.01 if dt is None else dt if isinstance(dt, float) else dt.unsqueeze(-1)
        torch.testing.assert_close(info.acceleration, (new.v - state.v) / h, rtol=1e-15, atol=0)
        assert info.diverged.shape == (WORLDS,) and not info.diverged.any()
        array, array_info = sim.step(state.numpy(), dt=dt.numpy() if isinstance(dt, torch.Tensor) else dt, info=True)
        assert np.array_equal(array.v, new.v) and np.array_equal(array_info.acceleration, info.acceleration)
        assert array_info.diverged.dtype == bool and array_info.diverged.shape == (WORLDS,)


# shapes of q, v, control (per step), external, dt and params, before the last axes
BATCHES = [
    ((), (), (), (), (), ()),
    ((5,), (5,), (), (), (), ()),
    ((), (5,), (), (1,), (5,), ()),
    ((), (), (5,), (), (), ()),
    ((), (), (), (5,), (), ()),
    ((), (), (), (), (5,), ()),
    ((), (), (), (), (), (5,)),
    ((2, 1), (3,), (2, 3), (1, 3), (2, 1), (3,)),
    ((2, 3), (2, 3), (3,), (), (), (2, 3)),
]


@pytest.mark.parametrize("shapes", BATCHES, ids=str)
def test_leading_dimensions_broadcast(shapes):
    gen, sim, batch = generator(9), cs.Simulator(MODEL), torch.broadcast_shapes(*shapes)
    q, v = random_state(MODEL, gen, *shapes[0]).q, normal(gen, *shapes[1], MODEL.nv)
    u, f = normal(gen, *shapes[2], MODEL.nu), normal(gen, *shapes[3], MODEL.nb, 6)
    dt, params = 0.01 + 0.001 * normal(gen, *shapes[4]).tanh(), random_params(MODEL, gen, *shapes[5])
    found = sim.step(cs.State(q, v), u, params, external=f, dt=dt)
    assert found.q.shape == (*batch, MODEL.nq) and found.v.shape == (*batch, MODEL.nv)
    full = [x.expand((*batch, *x.shape[x.ndim - n :])) for x, n in ((q, 1), (v, 1), (u, 1), (f, 2), (dt, 0))]
    here = params.expand(batch) if batch else params
    expected = sim.step(cs.State(*full[:2]), full[2], here, external=full[3], dt=full[4])
    assert torch.equal(found.q, expected.q) and torch.equal(found.v, expected.v)
    us = torch.stack([u, 2 * u])  # the time axis comes before all others, whatever the other inputs' axes
    if len(shapes[3]) > max(len(shape) for k, shape in enumerate(shapes) if k != 3):
        # one more axis than the worlds have is time: a wrench alone makes no worlds
        with pytest.raises(ValueError, match="external must have shape"):
            sim.rollout(cs.State(q, v), us, params, external=f, dt=dt)
        return
    traj = sim.rollout(cs.State(q, v), us, params, external=f, dt=dt)
    expected = sim.rollout(cs.State(*full[:2]), torch.stack([full[2], 2 * full[2]]), here, external=full[3], dt=full[4])
    assert torch.equal(traj.q, expected.q) and torch.equal(traj.v, expected.v)
    assert traj.diverged.shape == tuple(batch)


@pytest.mark.parametrize("controls", [True, False], ids=["controls", "no controls"])
def test_trajectory_as_a_file(tmp_path, controls):
    sim, state = cs.Simulator(MODEL), random_state(MODEL, generator(10), WORLDS)
    state.q.requires_grad_()
    us = normal(generator(11), STEPS, WORLDS, MODEL.nu) if controls else None
    traj = sim.rollout(state, us, steps=STEPS)
    traj.save(tmp_path / "motion.npz")
    found = cs.Trajectory.load(tmp_path / "motion.npz")
    assert torch.equal(found.q, traj.q) and torch.equal(found.v, traj.v) and torch.equal(found.diverged, traj.diverged)
    assert torch.equal(found.controls, traj.controls) if controls else found.controls is None
    assert len(found) == STEPS and torch.equal(found[-1].q, traj.q[STEPS]) and not found.q.requires_grad
    sim.rollout(state.numpy(), us.numpy() if controls else None, steps=STEPS).save(tmp_path / "numpy.npz")
    assert torch.equal(cs.Trajectory.load(tmp_path / "numpy.npz").q, traj.q)


def test_a_model_that_cannot_move():
    scene = cs.Scene()
    scene.add_body(shapes=cs.Sphere(0.1), pos=(0, 0, 1))
    model = scene.build()
    sim = cs.Simulator(model)
    for worlds in (None, 3):
        state = sim.initial_state(worlds)
        batch = () if worlds is None else (worlds,)
        for found in (sim.step(state), sim.step(state.numpy()), sim.rollout(state, steps=2)[-1]):
            assert tuple(found.q.shape) == (*batch, 0) and tuple(found.v.shape) == (*batch, 0)
        assert cs.mass_matrix(model, state.q).shape == (*batch, 0, 0)
        assert cs.kinematics(model, state.q).position.shape == (*batch, 1, 3)


def test_a_gradient_is_never_dropped_silently():
    """A numpy state beside parameters or controls that require grad: numpy out would lose the gradient that was asked for."""
    model = build("every joint")
    sim, state = cs.Simulator(model), cs.Simulator(model).initial_state(2).numpy()
    params = model.params(requires_grad=("mass",))
    controls = torch.zeros(3, 2, model.nu, dtype=torch.float64, requires_grad=True)
    for call in (
        lambda: sim.step(state, params=params),
        lambda: sim.step(state, controls[0]),
        lambda: sim.rollout(state, controls),
        lambda: cs.mass_matrix(model, state.q, params),
        lambda: cs.kinematics(model, state.q, params=model.params(requires_grad=("joint_pos",))),
    ):
        with pytest.raises(TypeError, match="gradient would be lost"):
            call()
        with torch.no_grad():
            call()


def test_what_a_simulator_was_made_with_stays():
    sim = cs.Simulator(build("every joint"), dt=0.01)
    for name, value in (("dt", 0.02), ("dtype", torch.float32), ("model", None), ("device", "cuda")):
        with pytest.raises(AttributeError, match=name):
            setattr(sim, name, value)


@pytest.mark.filterwarnings("error")
def test_read_only_and_reversed_arrays():
    """model.q0 is read-only, and torch shares no memory that runs backwards: both are what people pass."""
    qs = np.stack((MODEL.q0, MODEL.integrate(MODEL.q0, np.full(MODEL.nv, 0.1))))
    one = cs.mass_matrix(MODEL, MODEL.q0)
    both = cs.mass_matrix(MODEL, qs[::-1])
    assert np.array_equal(one, both[1]) and not np.array_equal(one, both[0])
