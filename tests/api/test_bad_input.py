"""Every bad argument raises the right exception, with a message that names the argument and the value or its place."""

import numpy as np
import pytest
import torch

import costate as cs
from tests.gradients.scenes import build, generator, normal, random_state

NAN, INF = float("nan"), float("inf")
WORLDS, STEPS = 3, 4

MODEL = build("every joint")
GEN = generator()
SIM = cs.Simulator(MODEL)
STATE = random_state(MODEL, GEN, WORLDS)
Q, V = STATE
U, US = normal(GEN, WORLDS, MODEL.nu), normal(GEN, STEPS, WORLDS, MODEL.nu)
F, FS = normal(GEN, WORLDS, MODEL.nb, 6), normal(GEN, STEPS, WORLDS, MODEL.nb, 6)
FREE_QUAT = (1, slice(3, 7))  # of world 1


def put(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def raises(call, error, *words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


# ---- one bad argument, in every call that takes it ------------------------------------------------------------------
def every_call(**bad):
    """Calls of all functions that take any of the arguments in `bad`, the others being good."""
    x = {"q": Q, "v": V, "control": U, "external": F, "dt": 0.01, "a": V, "tau": V, "dq": V, "q1": Q, "q2": Q, **bad}
    state, more, force = cs.State(x["q"], x["v"]), {"external": x["external"], "dt": x["dt"]}, {"external": x["external"]}
    calls = {
        "step": ("q v control external dt", lambda: SIM.step(state, x["control"], **more)),
        "rollout": ("q v external dt", lambda: SIM.rollout(state, US, **more)),
        "policy": ("q v control external dt", lambda: SIM.rollout(state, lambda s, c, t: x["control"], steps=2, **more)),
        "linearize": ("q v control external dt", lambda: SIM.linearize(state, x["control"], **more)),
        "mass_matrix": ("q", lambda: cs.mass_matrix(MODEL, x["q"])),
        "inverse_dynamics": ("q v a external", lambda: cs.inverse_dynamics(MODEL, x["q"], x["v"], x["a"], **force)),
        "forward_dynamics": ("q v tau external", lambda: cs.forward_dynamics(MODEL, x["q"], x["v"], x["tau"], **force)),
        "kinematics": ("q v", lambda: cs.kinematics(MODEL, x["q"], x["v"])),
        "point_jacobian": ("q", lambda: cs.point_jacobian(MODEL, x["q"], 2)),
        "energy": ("q v", lambda: cs.energy(MODEL, x["q"], x["v"])),
        "centre_of_mass": ("q", lambda: cs.centre_of_mass(MODEL, x["q"])),
        "momentum": ("q v", lambda: cs.momentum(MODEL, x["q"], x["v"])),
        "integrate": ("q dq", lambda: MODEL.integrate(x["q"], x["dq"])),
        "difference": ("q1 q2", lambda: MODEL.difference(x["q1"], x["q2"])),
    }
    if not isinstance(x["q"], torch.Tensor):
        del calls["policy"]  # it takes torch only, and says so
    return {name: call for name, (takes, call) in calls.items() if set(bad) & set(takes.split())}


# argument, bad value, exception, words of the message
BAD = {
    "q nan": ("q", put(Q, (1, 2), NAN), ValueError, "q must be finite", "q[1, 2] is nan"),
    "q inf": ("q", put(Q, (2, 0), INF), ValueError, "q must be finite", "q[2, 0] is inf"),
    "q1 nan": ("q1", put(Q, (1, 2), NAN), ValueError, "q1 must be finite", "q1[1, 2] is nan"),
    "q2 nan": ("q2", put(Q, (1, 2), NAN), ValueError, "q2 must be finite", "q2[1, 2] is nan"),
    "v nan": ("v", put(V, (0, 17), NAN), ValueError, "v must be finite", "v[0, 17] is nan"),
    "v -inf": ("v", put(V, (2, 1), -INF), ValueError, "v must be finite", "v[2, 1] is -inf"),
    "control nan": ("control", put(U, (0, 1), NAN), ValueError, "control must be finite", "0, 1] is nan"),
    "external inf": ("external", put(F, (1, 2, 3), INF), ValueError, "external must be finite", "external[1, ", "is inf"),
    "a nan": ("a", put(V, (1, 2), NAN), ValueError, "a must be finite", "a[1, 2] is nan"),
    "tau nan": ("tau", put(V, (1, 2), NAN), ValueError, "tau must be finite", "tau[1, 2] is nan"),
    "dq nan": ("dq", put(V, (1, 2), NAN), ValueError, "dq must be finite", "dq[1, 2] is nan"),
    "dt nan": ("dt", NAN, ValueError, "dt must be", "nan"),
    "dt inf": ("dt", INF, ValueError, "dt must be", "inf"),
    "dt negative": ("dt", -0.1, ValueError, "dt must be positive", "-0.1"),
    "dt zero": ("dt", 0, ValueError, "dt must be positive", "0"),
    "dt of a world nan": ("dt", torch.tensor([0.1, NAN, 0.1]).double(), ValueError, "dt must be", "nan"),
    "dt of a world inf": ("dt", torch.tensor([0.1, 0.1, INF]).double(), ValueError, "dt must be", "inf"),
    "zero quaternion": ("q", put(Q, FREE_QUAT, 0.0), ValueError, "q has a quaternion of length zero", "q[1, 3]", "0.0, 0.0"),
    "zero quaternion in q1": ("q1", put(Q, FREE_QUAT, 0.0), ValueError, "q1 has a quaternion of length zero", "q1[1, 3]"),
    "zero quaternion in q2": ("q2", put(Q, FREE_QUAT, 0.0), ValueError, "q2 has a quaternion of length zero", "q2[1, 3]"),
    "q length": ("q", Q[:, 1:], ValueError, "q must have shape [..., 20]", "(3, 19)"),
    "q scalar": ("q", torch.tensor(1.0).double(), ValueError, "q must have shape [..., 20]", "()"),
    "v length": ("v", V[:, 1:], ValueError, "v must have shape [..., 18]", "(3, 17)"),
    "v worlds": ("v", V[:2], ValueError, "do not broadcast", "v (2,)", "q (3,)"),
    "control length": ("control", U[:, 1:], ValueError, "control must have shape [..., 12]", "(3, 11)"),
    "control worlds": ("control", U[:2], ValueError, "do not broadcast", "control (2,)"),
    "external shape": ("external", F[..., 1:], ValueError, "external must have shape [..., 10, 6]", "(3, 10, 5)"),
    "external worlds": ("external", F[:2], ValueError, "do not broadcast", "external (2,)"),
    "tau length": ("tau", V[:, 1:], ValueError, "tau must have shape [..., 18]", "(3, 17)"),
    "a worlds": ("a", V[:2], ValueError, "do not broadcast", "a (2,)"),
    "dt worlds": ("dt", torch.ones(2).double(), ValueError, "do not broadcast", "dt (2,)"),
    "q int": ("q", Q.int(), TypeError, "q must be float64", "int32"),
    "q numpy int": ("q", Q.numpy().astype(int), TypeError, "q must be float64", "int64"),
    "q half": ("q", Q.half(), TypeError, "q must be float64", "float16"),
    "q list": ("q", Q.tolist(), TypeError, "q must be a torch tensor or numpy array", "list"),
    "q None": ("q", None, TypeError, "q must be a torch tensor or numpy array", "None"),
    "v float32": ("v", V.float(), TypeError, "v must be float64", "float32"),
    "control float32": ("control", U.float(), TypeError, "control must be float64", "float32"),
    "external float32": ("external", F.float(), TypeError, "external must be float64", "float32"),
    "a float32": ("a", V.float(), TypeError, "a must be float64", "float32"),
    "dt float32": ("dt", torch.tensor(0.1), TypeError, "dt must be float64", "float32"),
    "dt word": ("dt", "fast", TypeError, "dt", "fast"),
    "q meta": ("q", Q.to("meta"), TypeError, "q must be on the cpu", "meta"),
    "v meta": ("v", V.to("meta"), TypeError, "v must be on the cpu", "meta"),
    "control meta": ("control", U.to("meta"), TypeError, "control must be on the cpu", "meta"),
    "external meta": ("external", F.to("meta"), TypeError, "external must be on the cpu", "meta"),
    "dt meta": ("dt", torch.ones((), device="meta").double(), TypeError, "dt must be on the cpu", "meta"),
}  # fmt: skip
CASES = [(what, call) for what, (name, value, *_) in BAD.items() for call in every_call(**{name: value})]


@pytest.mark.parametrize(("what", "call"), CASES, ids=[f"{call}: {what}" for what, call in CASES])
def test_argument(what, call):
    name, value, error, *words = BAD[what]
    raises(every_call(**{name: value})[call], error, *words)


@pytest.mark.parametrize("what", ["q nan", "v -inf", "zero quaternion", "q length", "control nan"])
@pytest.mark.parametrize("worlds", ["one", "many"])
def test_numpy_argument(what, worlds):
    """One world in numpy takes a way of its own to the engine."""
    name, value, error, *words = BAD[what]
    x = {name: array.numpy() for name, array in {"q": Q, "v": V, "control": U, name: value}.items()}
    if worlds == "one":
        at = 0 if name == "control" else 2 if "inf" in what else 1
        x = {name: array[at] for name, array in x.items()}
    raises(lambda: SIM.step(cs.State(x["q"], x["v"]), x["control"]), error, words[0].split("[")[0])


def test_float64_in_a_float32_simulator():
    sim = cs.Simulator(MODEL, dtype=torch.float32)
    raises(lambda: sim.step(STATE), TypeError, "q must be float32", "float64")
    raises(lambda: sim.step(STATE.numpy()), TypeError, "q must be float32", "float64")
    raises(lambda: sim.rollout(STATE, US), TypeError, "q must be float32", "float64")
    one = cs.State(*(x[0].numpy() for x in STATE))
    raises(lambda: sim.step(one), TypeError, "q must be float32", "float64")


# ---- everything else ------------------------------------------------------------------------------------------------
def policy(result):
    return lambda state, carry, t: result


OTHER = build("arm").params()
CALLS = {
    "not a State, step": (lambda: SIM.step((Q, V)), TypeError, "state must be a costate.State", "tuple"),
    "not a State, rollout": (lambda: SIM.rollout((Q, V), US), TypeError, "state must be a costate.State", "tuple"),
    "not a State, policy": (lambda: SIM.rollout(Q, policy(U), steps=2), TypeError, "state must be a costate.State", "Tensor"),
    "not a State, linearize": (lambda: SIM.linearize((Q, V)), TypeError, "state must be a costate.State", "tuple"),
    "params dict": (lambda: SIM.step(STATE, U, {"mass": 1}), TypeError, "params must be costate.Params", "dict"),
    "params tensor": (lambda: SIM.step(STATE, U, torch.zeros(3)), TypeError, "params must be costate.Params", "Tensor"),
    "params dict, energy": (lambda: cs.energy(MODEL, Q, V, {"mass": 1}), TypeError, "params must be costate.Params", "dict"),
    "params of another": (lambda: SIM.rollout(STATE, US, OTHER), ValueError, "params belong to another model", "nb=2", "nb=10"),
    "params of another, M": (lambda: cs.mass_matrix(MODEL, Q, OTHER), ValueError, "params belong to another model", "nb=2"),
    "params batch": (lambda: SIM.step(STATE, U, MODEL.params().expand(2)), ValueError, "do not broadcast", "params (2,)"),
    "steps missing": (lambda: SIM.rollout(STATE), ValueError, "steps must be given"),
    "steps missing, policy": (lambda: SIM.rollout(STATE, policy(U)), ValueError, "steps must be given"),
    "steps 0": (lambda: SIM.rollout(STATE, steps=0), ValueError, "steps must be a positive int", "0"),
    "steps half": (lambda: SIM.rollout(STATE, steps=2.5), ValueError, "steps must be a positive int", "2.5"),
    "steps and controls": (lambda: SIM.rollout(STATE, US, steps=3), ValueError, "steps is 3", "controls has 4"),
    "substeps 0": (lambda: SIM.rollout(STATE, US, substeps=0), ValueError, "substeps must be a positive int", "0"),
    "truncate 0": (lambda: SIM.rollout(STATE, US, truncate=0), ValueError, "truncate must be a positive int", "0"),
    "truncate negative": (lambda: SIM.rollout(STATE, US, truncate=-1), ValueError, "truncate must be a positive int", "-1"),
    "decay above 1": (lambda: SIM.rollout(STATE, US, decay=1.5), ValueError, "decay must be between 0 and 1", "1.5"),
    "decay negative": (lambda: SIM.rollout(STATE, US, decay=-0.5), ValueError, "decay must be between 0 and 1", "-0.5"),
    "decay nan": (lambda: SIM.rollout(STATE, US, decay=NAN), ValueError, "decay must be between 0 and 1", "nan"),
    "controls without time": (lambda: SIM.rollout(STATE, US[0, 0]), ValueError, "controls must have shape [T, ..., 12]", "(12,)"),
    "controls empty": (lambda: SIM.rollout(STATE, US[:0]), ValueError, "controls", "at least one step"),
    "controls worlds": (lambda: SIM.rollout(STATE, US[:, :2]), ValueError, "do not broadcast", "control (2,)"),
    "controls length": (lambda: SIM.rollout(STATE, US[..., 1:]), ValueError, "control must have shape", "(4, 3, 11)"),
    "controls nan": (lambda: SIM.rollout(STATE, put(US, (2, 1, 3), NAN)), ValueError, "control[2, 1, 3] is nan"),
    "externals steps": (lambda: SIM.rollout(STATE, US, external=FS[1:]), ValueError, "external must have shape", "steps"),
    "externals steps of a policy": (
        lambda: SIM.rollout(STATE, lambda s, c, t: U, steps=2, external=FS[:1]), ValueError, "external must have shape", "T = 2",
    ),
    "externals dims": (lambda: SIM.rollout(STATE, US, external=FS[None]), ValueError, "external must have shape", "(1, "),
    "externals nan": (lambda: SIM.rollout(STATE, US, external=put(FS, (2, 1, 0, 3), NAN)), ValueError, "external[2, 1, ", "nan"),
    "policy shape": (lambda: SIM.rollout(STATE, policy(U[:, 1:]), steps=2), ValueError, "control must have shape", "(3, 11)"),
    "policy nan": (lambda: SIM.rollout(STATE, policy(put(U, (1, 2), NAN)), steps=2), ValueError, "control", "1, 2] is nan"),
    "policy float32": (lambda: SIM.rollout(STATE, policy(U.float()), steps=2), TypeError, "control must be float64", "float32"),
    "policy list": (lambda: SIM.rollout(STATE, policy([1.0]), steps=2), TypeError, "control must be a torch tensor", "list"),
    "policy triple": (lambda: SIM.rollout(STATE, policy((U, 0, 0)), steps=2), TypeError, "policy must return", "tuple of 3"),
    "policy and numpy": (lambda: SIM.rollout(STATE.numpy(), policy(U), steps=2), TypeError, "policy takes torch tensors"),
    "point length": (lambda: cs.point_jacobian(MODEL, Q, 0, (0.0, 1.0)), ValueError, "point must have shape", "(2,)"),
    "point nan": (lambda: cs.point_jacobian(MODEL, Q, 0, (0.0, NAN, 0.0)), ValueError, "point must be finite", "nan"),
    "point worlds": (lambda: cs.point_jacobian(MODEL, Q, 0, torch.ones(2, 3).double()), ValueError, "broadcast", "point (2,)"),
    "body index": (lambda: cs.point_jacobian(MODEL, Q, 99), ValueError, "body must be a name or an index below 10", "99"),
    "body negative": (lambda: cs.point_jacobian(MODEL, Q, -1), ValueError, "body must be a name or an index below 10", "-1"),
    "body name": (lambda: cs.point_jacobian(MODEL, Q, "hipp"), KeyError, "no body named 'hipp'", "hip"),
    "model": (lambda: cs.Simulator(STATE), TypeError, "model must be a costate.Model", "State"),
    "dtype": (lambda: cs.Simulator(MODEL, dtype=torch.float16), TypeError, "dtype must be torch.float64", "float16"),
    "device": (lambda: cs.Simulator(MODEL, device="cuda"), RuntimeError, "needs an NVIDIA GPU", "cuda"),
    "no such device": (lambda: cs.Simulator(MODEL, device="abacus"), ValueError, "device must be 'cpu'", "abacus"),
    "dt of Simulator": (lambda: cs.Simulator(MODEL, dt=-1.0), ValueError, "dt must be a positive finite number", "-1.0"),
    "dt of Simulator inf": (lambda: cs.Simulator(MODEL, dt=INF), ValueError, "dt must be a positive finite number", "inf"),
    "worlds 0": (lambda: SIM.initial_state(0), ValueError, "worlds must be positive", "0"),
    "worlds negative": (lambda: SIM.initial_state((2, -1)), ValueError, "worlds must be positive", "(2, -1)"),
    "not a trajectory": (lambda: cs.Trajectory.load("no such file.npz"), FileNotFoundError, "no such file"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [(c, e, w) for c, e, *w in CALLS.values()], ids=CALLS)
def test_calls(call, error, words):
    raises(call, error, *words)


def test_load_refuses_other_files(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    raises(lambda: cs.Trajectory.load(tmp_path / "other.npz"), ValueError, "other.npz: not a trajectory", "diverged_at")
