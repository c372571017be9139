"""Files of models whose integers lead nowhere, and mutated ones: refused with words, never a crash."""

import copy
import inspect
import io
import re
import zipfile
from dataclasses import fields, replace
from random import Random

import pytest

import costate as cs
from costate.scene import structure
from costate.scene.structure import check_structure
from tests.scene.saved import MODELS, check_refused, every_part, packed, plane, solids, through_file, unpacked, with_keyframes

FUZZED = 300


# ---- integers that lead nowhere --------------------------------------------------------------------------------------
def test_every_integer_is_checked():
    """A new field of integers must be checked before the engine follows it: structure.py has to name it."""
    checked = inspect.getsource(structure)
    for field in fields(cs.Model):
        if "int" in str(field.type) or field.name == "pairs":
            assert re.search(rf"\b{field.name}\b", checked), field.name


BAD_FIELDS = [
    ("parent", [0, 0, 1, 1, 1, 1], "parent must be -1 or come before its body, got 0 for body 0"),
    ("parent", [-1, -1, -1, -1, -1, -7], "got -7 for body 5"),
    ("parent", [-1], "fields must have equal lengths"),
    ("joint_type", [4, 4, 4, 4, 4, 6], "joint_type must be from 0 to 5, got 6"),
    ("joint_type", [4, 4, 4, 4, 4, -1], "joint_type must be from 0 to 5, got -1"),
    ("joint_type", [4, 4, 4, 4, 4, 2**40], "joint_type must be an int of 32 bits"),
    ("joint_type", [4.0] * 6, "joint_type must be an int of 32 bits, got 4.0"),
    ("joint_type", [True] * 6, "joint_type must be an int of 32 bits, got True"),
    ("joint_type", 4, "joint_type must be a list, got 4"),
    ("massless", [1, 0, 0, 0, 0, 0], "massless must be true or false, got 1"),
    ("massless", [True] + [False] * 5, "massless must not be true of all that a joint moves, got body 0"),
    ("body_names", ["a", "b", "c", "d", "e", "a"], "body_names must be different from each other"),
    ("body_names", ["a", "b", "c", "d", "e", "world"], "got 'world'"),
    ("body_names", ["a", "b", "c", "d", "e", 5], "body_names must be text, got 5"),
    ("shape_condim", [3, 3, 3, 3, 3, 3, 2], "shape_condim must be one of 1, 3, 4, 6, got 2"),
    ("friction_rule", 9, "friction_rule must be one of 0, 1, 2, 3, 4, got 9"),
    ("max_contacts", 0, "max_contacts must be positive or -1, got 0"),
    ("max_contacts", None, "max_contacts must be an int of 32 bits"),
    ("planar", 1, "planar must be true or false"),
    ("planar", True, "joint_type must stay in the plane"),
    ("field_nx", [7], "array 'defaults.height' must have shape"),
    ("field_nx", [1], "field_nx and field_ny must be at least 2"),
    ("field_nx", [2**30], "and not too large"),
    ("field_ny", [], "fields must have equal lengths"),
    ("hull_vertices", [200], "hull_vertices and hull_faces must be those of a hull or polygon, got 200"),
    ("hull_faces", [1000], "hull_vertices and hull_faces"),
    ("hull_loop", [], "hull_loop must have an entry for every face"),
    ("hull_loop", "first and second changed", "hull_loop must go round the faces of a closed hull"),
    ("limit_body", [0], "fields must have equal lengths"),
    ("dry_dof", [36], "dry_dof must be from 0 to 35, got 36"),
    ("dry_dof", [3, 3], "dry_dof must be in ascending order"),
    ("motor_names", ["m"], "fields must have equal lengths"),
    ("site_body", [0], "fields must have equal lengths"),
    ("timestep", 0.0, "timestep must be a positive number, got 0.0"),
    ("timestep", 1, "timestep must be finite numbers, got 1"),
    ("source", 5, "source must be text"),
    ("keyframes", [], "keyframes must be named"),
    ("keyframes", {"a": {"q": []}}, "keyframes must have q, v, control"),
    ("keyframes", {"a": {"q": [1.0], "v": [], "control": []}}, "keyframe 'a' q must be 42 finite numbers, got 1"),
    ("world_shapes", [{"type": "Cube"}], "must be shapes with their type"),
    ("world_shapes", [{"type": "Sphere"}], "must be a whole Sphere"),
    ("world_shapes", [{"type": "Sphere", "radius": -1.0}], "Sphere radius must be positive"),
    ("world_shapes", [{"type": "Sphere", "radius": 1.0, "colour": 2}], "must be what a Sphere has, got 'colour'"),
    ("world_shapes", [{"type": "Sphere", "radius": "1"}], "must have numbers for radius of a Sphere"),
    ("world_shapes", [{"type": "Sphere", "radius": 1.0, "mask": 2**70}], "must have a mask that fits a Sphere"),
    ("world_shapes", [{"type": "Hull", "vertices": [[1.0, 2.0]]}], "must have rows of numbers for vertices of a Hull"),
    ("world_shapes", [{"type": "Circle", "radius": 1.0}], "shapes must be those of space"),
    ("world_shapes", [{"type": ["Sphere"]}], "must be shapes with their type"),
]


@pytest.mark.parametrize(("name", "value", "match"), BAD_FIELDS)
def test_bad_fields(name, value, match, tmp_path):
    path = tmp_path / "a.npz"
    MODELS["solids"].save(path)
    header, arrays = unpacked(path)
    if value == "first and second changed":
        first, second, *others = header["fields"][name]
        value = [second, first, *others]
    header["fields"][name] = value
    packed(path, header, arrays)
    check_refused(path, match)


BROKEN_PARTS = [
    ({"motor_dof": (99, -1, 9)}, "motor_dof must be from -1 to 10, got 99"),
    ({"motor_dof": (3, -1, 9)}, "motor_dof must have a coordinate that can be held, got 3 for motor 0"),
    ({"motor_dof": (9, 9, 9)}, "motor_dof or motor_tie must be -1"),
    ({"motor_tie": (-1, 1, -1)}, "motor_tie must be a hinge or a slide, got 1 for motor 1"),
    ({"motor_tie": (-1, 5, -1)}, "motor_tie must be from -1 to 1, got 5"),
    ({"actuator_type": (1, 9, 4)}, "actuator_type must be"),
    ({"clip": (1, -1, -1)}, "clip must be -1 or count 0, 1"),
    ({"bound": (0, 0, -1)}, "bound must be -1 or count 0, 1"),
    ({"bound": (0, -1, -1)}, "bound of a servo must not be -1"),
    ({"limit_body": (0, 2)}, "limit_body must have a revolute, prismatic or ball joint, got 0"),
    ({"limit_dof": (6, 8)}, "limit_dof must be the first of its joint, 9, got 8"),
    ({"dry_dof": (9, 11)}, "dry_dof must be from 0 to 10, got 11"),
    ({"tie_a": (2, 2), "tie_b": (2, -1)}, "tie 0 must hold two bodies"),
    ({"tie_b": (4, -1)}, "tie_b must be from -1 to 3, got 4"),
    ({"tie_axis": (7, 0)}, "tie_axis must be one of 0, 1, 2, got 7"),
    ({"tie_locks": ((0, 1, 2, 8, 13), (0, 1, 2))}, "tie_locks must be from 0 to 12, got 13"),
    ({"tie_locks": ((), (0, 1, 2))}, "tie 0 must hold two bodies in one to six directions"),
    ({"coupling_dof1": (4,)}, "coupling must be of two dofs that have a coordinate, got 4 and 10"),
    ({"coupling_dof2": (9,)}, "coupling must be of two dofs"),
    ({"site_body": (-1,)}, "site_body must be from 0 to 3, got -1"),
    ({"parent": (-1, 0, 1, 0), "joint_type": (4, 3, 1, 4)}, "parent of a free joint must be the world"),
    ({"joint_type": (9, 3, 1, 2)}, "joint_type must be from 0 to 5, got 9"),
]


@pytest.mark.parametrize(("changes", "match"), BROKEN_PARTS)
def test_parts_that_do_not_fit_together(changes, match):
    model = every_part()
    check_structure(model)
    with pytest.raises(ValueError, match=match):
        check_structure(replace(model, **changes))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_scenes_are_sound(name):
    check_structure(MODELS[name])
    assert MODELS[name].nb >= 1


# ---- fuzzing -------------------------------------------------------------------------------------------------------
ODD = (-(2**31), -2, -1, 0, 1, 2, 3, 7, 64, 1000, 2**31 - 1, 2**63, 1.5, -0.0, 1e308, None, True, "", "world", [], {}, [[]], [0])


def leaves(value, path=()):
    """Ways to everything in a JSON value, inner ones included."""
    yield path
    items = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, item in items:
        yield from leaves(item, (*path, key))


def mutate_header(header, rng):
    """One place of the header is changed, left out or doubled."""
    header = copy.deepcopy(header)
    *way, last = rng.choice([path for path in leaves(header["fields"]) if path])
    owner = header["fields"]
    for key in way:
        owner = owner[key]
    choice = rng.random()
    if choice < 0.15:
        del owner[last]
    elif choice < 0.3 and isinstance(owner, list):
        owner.insert(last, copy.deepcopy(owner[rng.randrange(len(owner))]))
    else:
        owner[last] = copy.deepcopy(rng.choice(ODD))
    return header


def mutate_bytes(data, rng):
    """Some bytes are changed, cut out, or repeated."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 30))):
        at = rng.randrange(len(data))
        choice = rng.random()
        if choice < 0.6:
            data[at] = rng.randrange(256)
        elif choice < 0.75:
            del data[at:]
        elif choice < 0.9:
            del data[at : at + rng.randrange(1, 100)]
        else:
            data[at:at] = data[: rng.randrange(1, 200)]
        if not data:
            break
    return bytes(data)


def test_mutated_files(tmp_path):
    """Every one is refused with words, or gives a model that the engine takes: never a crash."""
    rng, path = Random(0), tmp_path / "a.npz"
    sources = [every_part(), solids(), plane(), with_keyframes()]
    loaded = 0
    for i in range(FUZZED):
        sources[i % len(sources)].save(path)
        kind = rng.random()
        if kind < 0.5:
            header, arrays = unpacked(path)
            packed(path, mutate_header(header, rng), arrays)
        elif kind < 0.6:
            header, arrays = unpacked(path)
            name = rng.choice(sorted(arrays))
            flat = arrays[name].reshape(-1)
            if flat.size:
                flat[rng.randrange(flat.size)] = rng.choice((-1, 0, 10**6, 2**31 - 1))
            packed(path, header, arrays)
        else:
            path.write_bytes(mutate_bytes(path.read_bytes(), rng))
        try:
            model = cs.Model.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
            continue
        loaded += 1
        cs.Simulator(model).step(cs.Simulator(model).initial_state())
        assert through_file(model, path) == model
    assert 0 < loaded < FUZZED


def test_mutated_bytes_of_the_archive_alone(tmp_path):
    """The reader of archives, without the checks of a model behind it."""
    rng, path = Random(1), tmp_path / "a.npz"
    plane().save(path)
    data = path.read_bytes()
    for _ in range(FUZZED):
        path.write_bytes(mutate_bytes(data, rng))
        with io.BytesIO(path.read_bytes()) as file:
            is_zip = zipfile.is_zipfile(file)
        try:
            cs.Model.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path}: ")
        else:
            assert is_zip
