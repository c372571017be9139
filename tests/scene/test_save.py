"""Model.save and Model.load: exact round trips, and files that are broken, foreign, newer or hostile."""

import json
import pickle
import zipfile
from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest
import torch

import costate as cs
from costate.scene.archive import HEADER
from costate.scene.save import ARRAYS, CODECS, VERSION
from costate.scene.saved_shapes import SHAPES
from tests.gradients import random_scenes
from tests.scene.saved import MODELS, check_refused, packed, through_file, unpacked

RANDOM_SCENES = 25


# ---- round trips ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, tmp_path):
    model, path = MODELS[name], tmp_path / "model.npz"
    again = through_file(model, path)
    assert again == model and again.topology == model.topology and hash(again) == hash(model)
    for field in fields(cs.Model):
        if field.name not in ("defaults", "q0", "pairs"):
            assert getattr(again, field.name) == getattr(model, field.name), field.name
    assert again.q0.dtype == np.float64 and again.pairs.dtype == np.int32 and not again.q0.flags.writeable
    assert all(torch.equal(again.defaults[field], tensor) for field, tensor in model.defaults.items())
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before  # the same model, the same bytes


@pytest.mark.parametrize("seed", range(RANDOM_SCENES))
def test_random_scenes(seed, tmp_path):
    for make in (random_scenes.random_scene, random_scenes.random_constraints):
        model = make(Random(seed))
        assert through_file(model, tmp_path / "model.npz") == model


def test_what_was_read_simulates_alike(tmp_path):
    model = MODELS["solids"]
    one, other = (
        cs.Simulator(m).rollout(cs.Simulator(m).initial_state(2), steps=20) for m in (model, through_file(model, tmp_path / "a"))
    )
    assert torch.equal(one.q, other.q) and torch.equal(one.v, other.v)


def test_every_field_and_shape_has_a_codec():
    """A new field of Model must be saved, too: give its annotation a codec, or it a place among the arrays."""
    for field in fields(cs.Model):
        assert field.name in (*ARRAYS, "defaults") or str(field.type) in CODECS, field.name
    public = {name for name, kind in vars(cs).items() if isinstance(kind, type) and issubclass(kind, cs.scene.Shape)}
    assert public - {"Shape"} == set(SHAPES)


def test_numpy_can_read_it(tmp_path):
    MODELS["solids"].save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["defaults.mass"], MODELS["solids"].defaults["mass"])
        assert json.loads(file[HEADER].tobytes())["version"] == VERSION


def test_only_shapes_of_costate(tmp_path):
    class Strange(cs.Sphere):
        pass

    model = replace(MODELS["solids"], world_shapes=(Strange(0.1),))
    with pytest.raises(TypeError, match="only shapes of costate can be saved, got a Strange"):
        model.save(tmp_path / "a.npz")
    assert not (tmp_path / "a.npz").exists()


# ---- broken files --------------------------------------------------------------------------------------------------
def test_missing_and_foreign_files(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(FileNotFoundError):
        cs.Model.load(path)
    check_refused(tmp_path, "not a file")
    for content in (b"", b"hello", pickle.dumps({"a": 1}), b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        check_refused(path, "not a file that costate wrote, or broken")
    np.savez(path, q=np.zeros(3))
    check_refused(path, "not a file that costate wrote, or broken")
    np.savez(path, header=np.array([{"format": "costate model"}], dtype=object))
    check_refused(path, "broken")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", b"\x93NUMPY\x01\x00")
    check_refused(path, "broken")


def test_other_versions_and_formats(tmp_path):
    path = tmp_path / "a.npz"
    MODELS["plane"].save(path)
    header, arrays = unpacked(path)
    for changed, match in (
        ({"version": VERSION + 1}, f"newer costate: it has format {VERSION + 1}, this one reads up to {VERSION}"),
        ({"version": 0}, "version must be a positive int"),
        ({"version": True}, "version must be a positive int"),
        ({"version": "1"}, "version must be a positive int"),
        ({"format": "something"}, "not a model that costate wrote"),
        ({"fields": []}, "not a model that costate wrote"),
        ({"fields": {**header["fields"], "colour": [1]}}, "unknown field 'colour': written by another version"),
        ({"fields": {k: v for k, v in header["fields"].items() if k != "parent"}}, "field 'parent' is missing"),
    ):
        packed(path, {**header, **changed}, arrays)
        check_refused(path, match)
    packed(path, header, {**arrays, "more": np.zeros(1)})
    check_refused(path, "unknown array 'more'")
    for text in ("[]", "{", "NaN", '{"format": NaN}', "[" * 100_000, '{"version": ' + "9" * 5000 + "}", "\x00", "grüße"):
        packed(path, text, arrays)
        check_refused(path, "not a file that costate wrote")


def test_older_files_lack_fields_that_have_defaults(tmp_path):
    path = tmp_path / "a.npz"
    MODELS["plane"].save(path)
    header, arrays = unpacked(path)
    for name in ("timestep", "source", "keyframes"):
        del header["fields"][name]
    packed(path, header, arrays)
    assert cs.Model.load(path) == MODELS["plane"]


def test_bad_arrays(tmp_path):
    path = tmp_path / "a.npz"
    MODELS["solids"].save(path)
    header, arrays = unpacked(path)
    mass = arrays["defaults.mass"]
    for name, array, match in (
        ("defaults.mass", mass[:-1], r"array 'defaults.mass' must have shape \[6\], got \[5\]"),
        ("defaults.mass", mass[:, None], "broken or missing"),
        ("defaults.mass", mass.astype(np.float32), "not an array of <f8"),
        ("defaults.mass", -mass, "mass of body 'body0' must be positive"),
        ("defaults.mass", mass * np.nan, "mass of body 'body0' must be finite"),
        ("defaults.inertia", np.asfortranarray(arrays["defaults.inertia"]), "not an array of <f8"),
        ("q0", arrays["q0"][:-1], "q0 must be 42 finite numbers, got 41"),
        ("q0", np.full(42, np.inf), "q0 must be 42 finite numbers"),
        ("q0", arrays["q0"] * 0, "q0 must have quaternions that are not zero"),
        ("pairs", arrays["pairs"] + 1000, "pairs must be two of"),
        ("pairs", arrays["pairs"] * -1, "pairs must be two of"),
        ("pairs", arrays["pairs"][:, ::-1].copy(), "the lower first"),
        ("pairs", np.repeat(arrays["pairs"], 2, 0), "got one twice"),
        ("pairs", arrays["pairs"].astype(np.int64), "not an array of <i4"),
        ("pairs", np.zeros((4, 3), np.int32), r"pairs must have shape \[n, 2\]"),
    ):
        packed(path, header, {**arrays, name: array})
        check_refused(path, match)
    del arrays["defaults.mass"]
    packed(path, header, arrays)
    check_refused(path, "array 'defaults.mass' is broken or missing")


def test_no_pickle_and_no_compression(tmp_path):
    path = tmp_path / "a.npz"
    MODELS["plane"].save(path)
    header, arrays = unpacked(path)
    np.savez_compressed(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    check_refused(path, "compressed")  # what is small must not become large
    packed(path, header, {**arrays, "q0": np.array([Bomb()], dtype=object)}, allow_pickle=True)
    check_refused(path, "array 'q0' is broken")
    assert not Bomb.went_off


class Bomb:
    """Goes off when it is unpickled."""

    went_off = False

    def __reduce__(self):
        return setattr, (Bomb, "went_off", True)


def test_sizes_that_are_claimed(tmp_path):
    """A header that claims terabytes, in an entry of a few bytes."""
    path = tmp_path / "a.npz"
    MODELS["plane"].save(path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    start = entries["q0.npy"].index(b"(")
    end = entries["q0.npy"].index(b")") + 1
    entries["q0.npy"] = entries["q0.npy"][:start] + b"(999999999999,)".ljust(end - start) + entries["q0.npy"][end:]
    with zipfile.ZipFile(path, "w") as file:
        for name, data in entries.items():
            file.writestr(name, data)
    check_refused(path, "array 'q0' is broken")
