"""Options of the solver: refused with a clear error where they make no sense; part of the Simulator for good."""

import copy
import dataclasses
import pickle

import pytest
import torch

import costate as cs
from costate.solver import engine_options
from tests.api.toys import model, pressed, random_state, soft

BAD = [
    (cs.PGS, {"iterations": 0}, "PGS: iterations must be an int of at least 1, got 0"),
    (cs.PGS, {"iterations": 3.0}, "PGS: iterations must be an int"),
    (cs.PGS, {"iterations": True}, "PGS: iterations must be an int"),
    (cs.PGS, {"polish": -1}, "PGS: polish must be an int of at least 0, got -1"),
    (cs.PGS, {"tolerance": 0.0}, "PGS: tolerance must be a positive finite number or None"),
    (cs.PGS, {"tolerance": float("nan")}, "PGS: tolerance must be a positive finite number"),
    (cs.PGS, {"tolerance": "small"}, "PGS: tolerance must be a positive finite number"),
    (cs.PGS, {"cone": 2}, "PGS: cone must be 'disc', 'square' or an int from 3 to 32"),
    (cs.PGS, {"cone": 33}, "PGS: cone must be"),
    (cs.PGS, {"cone": True}, "PGS: cone must be"),
    (cs.PGS, {"cone": 4.5}, "PGS: cone must be"),
    (cs.PGS, {"cone": "pyramid"}, "PGS: cone must be .*got 'pyramid'"),
    (cs.PGS, {"cone": ["disc"]}, "PGS: cone must be"),
    (cs.PGS, {"form": "sparse"}, "PGS: form must be None, 'dense', 'half-solved' or 'alternating', got 'sparse'"),
    (cs.PGS, {"form": 1}, "PGS: form must be"),
    (cs.Contact, {"margin": -0.01}, "Contact: margin must be a finite number, 0 or more, got -0.01"),
    (cs.Contact, {"margin": float("inf")}, "Contact: margin must be a finite number"),
    (cs.Contact, {"recovery": 0.0}, "Contact: recovery must be above 0 and at most 1, got 0.0"),
    (cs.Contact, {"recovery": 1.5}, "Contact: recovery must be above 0 and at most 1"),
    (cs.Contact, {"push_speed": None}, "Contact: push_speed must be a finite number"),
    (cs.Contact, {"bounce_speed": -1}, "Contact: bounce_speed must be a finite number, 0 or more"),
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD, ids=lambda x: str(x) if isinstance(x, dict) else "")
def test_bad_options_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"solver": "PGS"}, TypeError, "solver must be a costate.PGS or a costate.InteriorPoint, got str"),
        ({"solver": cs.PGS}, TypeError, "solver must be a costate.PGS or a costate.InteriorPoint, got type"),
        ({"solver": None}, TypeError, "solver must be a costate.PGS"),
        ({"solver": cs.InteriorPoint(), "gradient": "exact"}, ValueError, "gradient='exact' differentiates sweeps"),
        ({"impacts": "never"}, ValueError, "impacts must be None or 'toi', got 'never'"),
        ({"contact": 0.1}, TypeError, "contact must be a costate.Contact, got float"),
        ({"gradient": "adjoint"}, ValueError, "gradient must be 'implicit' or 'exact', got 'adjoint'"),
        ({"gradient": None}, ValueError, "gradient must be 'implicit' or 'exact'"),
        ({"gradient": ["exact"]}, ValueError, "gradient must be 'implicit' or 'exact'"),
        ({"project": -1}, ValueError, "project must be an int from 0 to 100, got -1"),
        ({"project": 101}, ValueError, "project must be an int from 0 to 100, got 101"),
        ({"project": 1.0}, ValueError, "project must be an int from 0 to 100, got 1.0"),
        ({"project": True}, ValueError, "project must be an int from 0 to 100, got True"),
        ({"project": None}, ValueError, "project must be an int from 0 to 100, got None"),
    ],
    ids=str,
)
def test_a_simulator_refuses_what_is_no_option(options, error, message):
    with pytest.raises(error, match=message):
        cs.Simulator(model(), **options)


def test_options_are_immutable_and_compare_by_value():
    assert cs.PGS() == cs.PGS(20, 12) != cs.PGS(16) and hash(cs.Contact()) == hash(cs.Contact(margin=None))
    for thing, name in ((cs.PGS(), "iterations"), (cs.Contact(), "margin")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, 1)


def test_the_engines_numbers():
    """In the order of the engine's own options; those left open depend on the precision."""
    found = engine_options(cs.PGS(), cs.Contact(), "implicit", torch.float64, 1, None, 0.1)
    assert found == (20, 12, 1e-10, 0.01, 0.2, 0.5, 0.1, 0, 0, 1e-9, 1e-10, -1, 1, 0, 0)
    assert all(type(x) is float for x in found)
    assert engine_options(cs.PGS(), cs.Contact(), "implicit", torch.float64, 1, None, 0.002)[3] == 0.002
    solver, contact = cs.PGS(30, 0, 1e-3, "square", "half-solved"), cs.Contact(0.02, 0.5, 1.0, 0.3)
    found = engine_options(solver, contact, "exact", torch.float32, 0, None, 0.1)
    assert found == (30, 0, 1e-3, 0.02, 0.5, 1.0, 0.3, 4.5, 1, 1e-5, 1e-7, 1, 0, 0, 0)
    found = engine_options(cs.PGS(cone=6, form="dense"), contact, "exact", torch.float32, 7, "toi", 0.1)
    assert found[7:] == (6, 1, 1e-5, 1e-7, 0, 7, 0, 32)
    found = engine_options(cs.InteriorPoint(30, cone=8), contact, "implicit", torch.float64, 1, None, 0.1)
    assert found == (30, 0, 1e-10, 0.02, 0.5, 1.0, 0.3, 8, 0, 1e-9, 1e-10, -1, 1, 1, 0)
    assert engine_options(cs.PGS(), contact, "exact", torch.float32, 0, None, 0.1)[2] == 1e-5


CHANGED = {"solver": cs.PGS(40, cone=8), "contact": cs.Contact(recovery=0.5), "gradient": "exact", "project": 2, "impacts": "toi"}
REMAKE = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}


@pytest.mark.parametrize("remake", REMAKE.values(), ids=REMAKE)
def test_a_copy_has_the_same_options(remake):
    sim = cs.Simulator(model(), **CHANGED)
    made = remake(sim)
    assert all(getattr(made, name) == value for name, value in CHANGED.items())
    state = random_state(sim.model, torch.Generator().manual_seed(1), 3)
    assert torch.equal(made.step(state).v, sim.step(state).v)


def test_repr_and_properties():
    plain, sim = cs.Simulator(model()), cs.Simulator(model(), **CHANGED)
    assert (plain.solver, plain.contact, plain.gradient, plain.project) == (cs.PGS(), cs.Contact(), "implicit", 1)
    assert not any(word in repr(plain) for word in ("PGS", "gradient", "project", "impacts"))
    assert repr(sim).endswith(f"solver={sim.solver!r}, contact={sim.contact!r}, gradient='exact', project=2, impacts='toi')")
    assert "iterations=40" in repr(sim) and "recovery=0.5" in repr(sim)
    for name, value in CHANGED.items():
        with pytest.raises(AttributeError, match=name):
            setattr(plain, name, value)


@pytest.mark.parametrize("options", [{"solver": cs.PGS(cone=4)}, {"contact": cs.Contact(recovery=1.0)}], ids=str)
def test_options_reach_every_call(options):
    """step, rollout, linearize and the numpy path of one world agree with each other, and differ from the defaults."""
    sim, plain = cs.Simulator(model(), **options), cs.Simulator(model())
    state = pressed(sim.model)
    new = sim.step(state)
    assert not torch.equal(new.v, plain.step(state).v)
    assert torch.equal(sim.rollout(state, steps=1)[-1].v, new.v)
    assert (sim.step(state.numpy()).v == new.v.numpy()).all()
    A, B = sim.linearize(state)
    assert not torch.equal(A, plain.linearize(state)[0])
    nv, control = sim.model.nv, torch.zeros(sim.model.nu, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda v, u: sim.step(cs.State(state.q, v), u).v, (state.v, control))
    torch.testing.assert_close(A[nv:, nv:], jacobian[0], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(B[nv:], jacobian[1], rtol=1e-9, atol=1e-10)


def test_forms_and_gradients_agree_where_the_solve_converged():
    """To rounding, with shapes that are not rigid: measured 2e-15 m/s, and 2e-14 of the gradients."""
    state, params = random_state(model(), torch.Generator().manual_seed(3), 16), soft(model())
    found, solved = [], torch.ones(16, dtype=torch.bool)
    for form in (None, "dense", "half-solved", "alternating"):
        for gradient in ("implicit", "exact"):
            sim = cs.Simulator(model(), solver=cs.PGS(50, 12, tolerance=1e-13, form=form), gradient=gradient)
            v = state.v.clone().requires_grad_()
            new, info = sim.step(cs.State(state.q, v), params=params, info=True)
            solved &= info.status.converged
            (bar,) = torch.autograd.grad(new.v.sin().sum(), v)
            found.append((new.v.detach(), bar))
    assert solved.sum() >= 12
    for v, bar in found[1:]:
        torch.testing.assert_close(v[solved], found[0][0][solved], rtol=0, atol=1e-12)
        torch.testing.assert_close(bar[solved], found[0][1][solved], rtol=1e-10, atol=1e-10)


def test_too_many_contacts_for_a_matrix_of_all_rows():
    scene = cs.Scene(max_contacts=400)
    scene.add_ground()
    for i in range(40):
        scene.add_body(f"ball{i}", joint=cs.Free(), pos=(0, 0, i + 1.0), shapes=cs.Sphere(0.1))
    large = scene.build()
    with pytest.raises(ValueError, match="PGS: form 'alternating' needs a matrix of all rows"):
        cs.Simulator(large, solver=cs.PGS(form="alternating")).step(cs.Simulator(large).initial_state())
