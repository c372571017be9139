"""Every derivative of steps with constraints and servos against central differences: all kinds, alone, with contact, driven.

As in test_contact_differences. Kinks are also where a servo reaches its fastest speed, and where a hinge is half a turn from its
target or a weld half a turn off.
"""

import math
from functools import cache

import pytest
import torch

import costate as cs
from costate.rotation import inverse, multiply, normalise, rotate
from tests.gradients import contact_differences as contact
from tests.gradients.constraint_scenes import ALONE, DRIVEN, HINGE_AXIS, POSITION, SCENES, SERVO, WITH_CONTACT, worlds
from tests.gradients.contact_scenes import step_with_info
from tests.gradients.scenes import ARTICULATED, SPARSE

# Promised; measured 1e-10 and 3e-6, in rollouts 2e-9 and 2e-5, with --full 6e-11 and 2e-5 (noise of the difference).
MEDIAN, WORST, KINKS = 1e-7, 1e-4, 0.02
# A projection divides errors, of 1e-16, by the step size: differences are in more doubt than those of contacts.
DOUBT = 1e-4
COUNT = 12  # worlds of a scene: a third on the constraints, a third off them, a third fast
BOTH = ("implicit", "exact")
TURN = 4  # code of the first of a weld's rotations
FAR = 3.0  # rad, close to half a turn


def turned_and_gap(model, q, params):
    """Of every tie, by torch: how b is turned against a, a quaternion [..., n_tie, 4], and the way from a to b in axes of a."""
    bodies = cs.kinematics(model, q, params=params)
    frames = []
    for side, on in enumerate((model.tie_a, model.tie_b)):
        pos, quat = params["tie_pos"][..., side::2, :], normalise(params["tie_quat"][..., side::2, :])
        moves = torch.tensor(on).unsqueeze(-1) >= 0
        turn = torch.where(moves, bodies.quaternion[..., on, :], torch.tensor((1.0, 0.0, 0.0, 0.0)))
        frames += [torch.where(moves, bodies.position[..., on, :], 0.0) + rotate(turn, pos), multiply(turn, quat)]
    p_a, quat_a, p_b, quat_b = frames
    return multiply(inverse(quat_a), quat_b), rotate(inverse(quat_a), p_b - p_a)


def coordinate(model, motor, q, control, params, turned, gap):
    """[...] what actuator `motor` drives, which is a joint's coordinate, or the angle or displacement of a tie."""
    k, dof = model.motor_tie[motor], model.motor_dof[motor]
    if k < 0:
        body = model.dof_body[dof]
        return q[..., model.q_address[body] + dof - model.v_address[body]]
    if model.tie_axis[k] != HINGE_AXIS:
        return gap[..., k, 2]
    angle, wish = 2 * torch.atan2(turned[..., k, 3], turned[..., k, 0]), control / params["gear"][..., motor]
    return angle + 2 * math.pi * ((wish - angle) / (2 * math.pi)).round()


def drives(model, x, params):
    """[..., n] per actuator: on which side of its fastest speed a servo is, which way round a hinge turns."""
    q, found = x["q"], [x["q"].new_zeros(*x["q"].shape[:-1], 0)]
    turned, gap = turned_and_gap(model, q, params) if model.tie_a else (q, q)

    def side(y, most):
        found.append(((y > most).long() - (y < -most).long()).unsqueeze(-1))

    for motor, kind in enumerate(model.actuator_type):
        if kind not in (POSITION, SERVO):
            continue
        clip, control = model.clip[motor], x["control"][..., motor]
        if clip >= 0:
            control = torch.minimum(
                torch.maximum(control, params["control_lower"][..., clip]), params["control_upper"][..., clip]
            )
        off = control - params["gear"][..., motor] * coordinate(model, motor, q, control, params, turned, gap)
        if kind == SERVO:
            k = model.actuator_type[:motor].count(SERVO)
            side(params["gain"][..., k] * off, params["max_speed"][..., k])
        if model.motor_tie[motor] >= 0 and model.tie_axis[model.motor_tie[motor]] == HINGE_AXIS:
            side(off / params["gear"][..., motor], FAR)
    return torch.cat(found, -1)


def welds(model, x, params):
    """[..., n] sign of the turn of ties that hold all three rotations."""
    some = [k for k, locks in enumerate(model.tie_locks) if TURN in locks]
    if not some:
        return x["q"].new_zeros(*x["q"].shape[:-1], 0)
    return turned_and_gap(model, x["q"], params)[0][..., some, 0] < 0


def step(sim, x, params):
    """As contact_differences.step, with all branches."""
    outputs, found = contact.step(sim, x, params)
    with torch.no_grad():
        found["a servo changes its speed, or a hinge its turn"] = drives(sim.model, x, params)
        found["a weld flips"] = welds(sim.model, x, params)
    return outputs, found


def rollout(sim, x, params, steps=20):
    """As contact_differences.rollout, with all branches."""
    controls = x["control"].expand(steps, *x["control"].shape)
    traj = sim.rollout(cs.State(x["q"], x["v"]), controls, params, external=x["external"], dt=x["dt"])
    with torch.no_grad():
        along = {name: x[name].expand(steps, *x[name].shape) for name in ("external", "dt")}
        _, found = step(sim, {"q": traj.q[:-1], "v": traj.v[:-1], "control": controls, **along}, params)
    found = {name: b.movedim(0, -2).flatten(-2) for name, b in found.items()}
    return {"q": traj.q[-1], "v": traj.v[-1]}, found


@cache
def some_worlds(scene, seed=1, form=-1, count=COUNT):
    return worlds(scene, count, seed, form=form)


def check(scenes, seed, function=step, modes=BOTH, count=COUNT, form=-1, options=None, most_doubt=DOUBT, **compared):
    """Compare worlds of all `scenes` and keep what was promised, kinks counted together."""
    cases = []
    for scene in scenes:
        some = some_worlds(scene, seed, form, count)
        sims = {mode: cs.Simulator(some.model, gradient=mode, **(options or {})) for mode in modes}
        cases += contact.compare(scene, some, sims, function=function, most_doubt=most_doubt, **compared)
    found = contact.summary(cases)
    assert found.median < MEDIAN, found
    assert found.worst[0].error < WORST, found
    assert found.share <= KINKS, found


@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("scenes", [ALONE, WITH_CONTACT, DRIVEN], ids=["alone", "with contact", "driven"])
def test_step(scenes, project):
    check(scenes, seed=project, options={"project": project})


@pytest.mark.full
@pytest.mark.parametrize("project", [0, 1, 2])
@pytest.mark.parametrize("seed", [3, 4])
def test_step_in_more_worlds(seed, project):
    check(SCENES, seed, count=8 * COUNT, options={"project": project})


@pytest.mark.parametrize("sweeps", ["dense", "half-solved", "alternating"])
@pytest.mark.parametrize("form", [SPARSE, ARTICULATED], ids=["sparse", "articulated"])
def test_forms(form, sweeps):
    check(("loop, touching", "driven, touching"), seed=4, form=form, options={"solver": cs.PGS(form=sweeps)})


SHORT = [(1, 0, "disc"), (4, 1, "disc"), (3, 0, 5)]


@pytest.mark.parametrize(("iterations", "polish", "cone"), SHORT)
def test_solves_that_are_cut_short(iterations, polish, cone):
    """Constraints are eliminated whatever the sweeps do; the exact mode differentiates what ran, the implicit one falls back."""
    scenes, unsolved, solver = (
        ("chain, touching", "driven, touching", "servos, touching"),
        0,
        cs.PGS(iterations, polish, cone=cone),
    )
    for scene in scenes:
        some = some_worlds(scene, seed=5)
        _, info = step_with_info(cs.Simulator(some.model, solver=solver), some.inputs, some.params)
        unsolved += (~info.status.converged).sum().item()
    assert unsolved > COUNT // 2
    check(scenes, seed=5, options={"solver": solver})


def test_full_recovery():
    """Errors undone in one step, as without `project` at small steps."""
    scenes = ("weld, touching", "distance", "couplings", "driven")
    check(scenes, seed=6, options={"contact": cs.Contact(recovery=1.0, margin=0.002, push_speed=5.0), "project": 0})


@pytest.mark.parametrize("project", [0, 1])
def test_rollouts_of_20_steps(project):
    """Smaller steps, since kinks add up; and so does the noise of redundant rows, which raises the doubt but not the errors."""
    scenes = ("chain", "hinge, touching", "driven")
    check(scenes, 7, rollout, count=6, options={"project": project}, first=2e-5, most_doubt=1e-3)


def test_all_states_occur():
    """The worlds above are not all alike: ties kept and missed, contacts that stick and slide, servos free, too fast, weak."""
    rows, contacts, errors, fast, turns = torch.zeros(4).long(), torch.zeros(4).long(), [], [], 0
    for scene in SCENES:
        some = some_worlds(scene)
        model, x = some.model, some.inputs
        _, info = step_with_info(cs.Simulator(model), x, some.params)
        contacts += torch.bincount(info.contacts.state.flatten(), minlength=4)
        errors.append(info.constraints.error.abs().amax(-1))
        if scene in DRIVEN:
            rows += torch.bincount(info.rows.state.flatten(), minlength=4)
            fast.append(drives(model, x, some.params).flatten().long())
            hinges = [m for m, k in enumerate(model.motor_tie) if k >= 0 and model.tie_axis[k] == HINGE_AXIS]
            turns += (x["control"][:, hinges].abs() > math.pi).sum().item()
    errors, fast = torch.cat(errors), torch.bincount(torch.cat(fast) + 1)
    assert (errors < 1e-12).sum() > 80
    assert (errors > 1e-3).sum() > 80
    assert contacts[1:].min() > 20, contacts
    assert rows[1:].min() > 40, rows
    assert fast.min() > 40, fast
    assert turns > 20


FIELDS = {
    "tie_pos": "hinge", "tie_quat": "weld", "tie_length": "distance", "tie_softness": "point", "coupling": "couplings",
    "coupling_softness": "couplings", "gain": "servos", "max_speed": "servos", "force_lower": "servos", "gear": "driven",
    "kp": "driven",
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_derivative_is_found(field):
    """The comparison itself: a derivative that is off by 1% is an error of many worlds."""
    some = some_worlds(FIELDS[field], count=3 * COUNT)

    def wrong(sim, x, params):
        value = params[field]
        return step(sim, x, params.replace(**{field: value + 0.01 * (value - value.detach())}))

    cases = contact.compare(field, some, {"implicit": cs.Simulator(some.model)}, function=wrong, only=(field,))
    errors = [case.error for case in cases if case.output == "v" and not case.kink]
    assert sum(error > 10 * WORST for error in errors) > 2, errors
