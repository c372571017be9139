"""add_general: what it takes and refuses, where its numbers are, files and pickles; checks of Params."""

import pickle
from typing import Any

import pytest
import torch

import costate as cs
from tests.scene.saved import through_file

GENERAL = 4  # code of actuators


def scene() -> cs.Scene:
    scene = cs.Scene()
    scene.add_body("cart", joint=cs.Prismatic((1, 0, 0)), mass=1.0, inertia=(1, 1, 1))
    scene.add_body("top", parent="cart", joint=cs.Ball(), mass=1.0, inertia=(1, 1, 1))
    scene.add_body("door", joint=cs.Free(), pos=(0, 0, 1), mass=1.0, inertia=(1, 1, 1))
    scene.add_hinge(None, "door", name="hinge")
    return scene


def test_numbers():
    """Gains of springs and dampers are per actuator; gain and bias per general one, in their order."""
    built = scene()
    built.add_motor("cart", name="push")
    assert built.add_general("cart", name="a", gain=3.0, bias=-1.0, kp=20.0, kd=2.0, gear=0.5) == "a"
    built.add_position("cart", kp=5.0, name="hold")
    assert built.add_general("top", dof=1, kd=1.0, control_limits=2.0, force_limits=(-1.0, 3.0)) == "top_1"
    assert built.add_general("hinge", gain=-2.0, bias=0.5, kp=1.0) == "hinge"
    model = built.build()
    params = model.params()
    assert model.actuator_type == (0, GENERAL, 1, GENERAL, GENERAL) and model.motor_tie == (-1, -1, -1, -1, 0)
    assert params["control_gain"].tolist() == [3.0, 1.0, -2.0] and params["control_bias"].tolist() == [-1.0, 0.0, 0.5]
    assert params["kp"].tolist() == [0, 20.0, 5.0, 0, 1.0] and params["kd"].tolist() == [0, 2.0, 0, 1.0, 0]
    assert params["force_lower"].tolist() == [-1.0] and params["control_upper"].tolist() == [2.0]
    params.check()


ERRORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "kp negative": ("cart", {"kp": -1.0}, "kp must not be negative, got -1.0"),
    "kd negative": ("cart", {"kd": -1.0}, "kd must not be negative, got -1.0"),
    "gain nan": ("cart", {"gain": float("nan")}, "gain must be finite, got nan"),
    "bias infinite": ("cart", {"bias": float("inf")}, "bias must be finite, got inf"),
    "limits without gains": ("cart", {"force_limits": 1.0}, "with force_limits kp or kd must be positive, got kp 0.0 and kd 0.0"),
    "constraint without gains": ("hinge", {}, "on a constraint kp or kd must be positive, got kp 0.0 and kd 0.0"),
    "constraint without gear": ("hinge", {"kp": 1.0, "gear": 0.0}, "gear must not be zero, got 0.0"),
    "no coordinate": ("top", {"kp": 1.0, "dof": 2}, "dof 2 of a Ball joint turns in space and has no coordinate to hold"),
    "limits in disorder": ("cart", {"kp": 1.0, "force_limits": (2.0, 1.0)}, "must be in order"),
    "no such dof": ("cart", {"dof": 1}, "dof"),
    "no such joint": ("card", {}, "did you mean 'cart'"),
}


@pytest.mark.parametrize(("joint", "options", "words"), list(ERRORS.values()), ids=list(ERRORS))
def test_errors(joint, options, words):
    built = scene()
    with pytest.raises(ValueError, match=rf"^add_general\({joint!r}\): .*") as caught:
        built.add_general(joint, **options)
    assert words in str(caught.value)
    assert built.build().nu == 0  # nothing of it is left


CHANGES: dict[str, tuple[str, list[float], str]] = {
    "kp negative": ("kp", [-1.0, 0.0, 0.0], "kp of motor 'cart' must not be negative, got -1.0"),
    "kd negative": ("kd", [0.0, -1.0, 0.0], "kd of motor 'top_1' must not be negative, got -1.0"),
    "no coordinate": ("kp", [0.0, 1.0, 1.0], "kp of motor 'top_1' must be zero where a dof turns in space"),
    "row without gains": ("kp", [0.0, 0.0, 0.0], "kp + kd of motor 'hinge' must be positive, got 0.0"),
    "gain": ("control_gain", [1.0, float("nan"), 1.0], "control_gain of motor 'top_1' must be finite, got nan"),
}


@pytest.mark.parametrize(("field", "values", "words"), list(CHANGES.values()), ids=list(CHANGES))
def test_bad_parameters(field, values, words):
    built = scene()
    built.add_general("cart", kp=20.0)
    built.add_general("top", dof=1, kd=1.0)
    built.add_general("hinge", kp=1.0)
    params = built.build().params()
    params.check()
    with pytest.raises(ValueError) as caught:
        params.replace(**{field: torch.tensor(values, dtype=torch.float64)}).check()
    assert words in str(caught.value)


def test_files_pickles_and_graphs(tmp_path):
    gain = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    built = scene()
    built.add_general("cart", gain=gain, bias=2 * gain, kp=1.0)
    model = built.build()
    for again in (through_file(model, tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again == model and again.params()["control_bias"].tolist() == [6.0]
    sim = cs.Simulator(model)
    end = sim.step(sim.initial_state(), torch.ones(1, dtype=torch.float64), built.params())
    end.v[0].backward()
    # (m + h^2 kp) v+ = h (gain u + bias) of a cart of 2 kg in all
    assert gain.grad is not None and gain.grad.item() == pytest.approx(0.01 * 3 / (2.0 + 1e-4), rel=1e-9)


def test_an_optimiser_keeps_gains_physical():
    built = scene()
    built.add_general("cart", gain=-3.0, bias=0.5, kp=1.0, kd=2.0)
    free = built.build().params().unconstrained(("kp", "kd", "control_gain", "control_bias"))
    with torch.no_grad():
        for leaf in free.leaves():
            leaf -= 50.0
    free.params().check()
    assert free.params()["control_gain"].item() == pytest.approx(-53.0)
