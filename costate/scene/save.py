"""Models as files: everything a Model holds in one .npz, without pickle, and back again with nothing taken on trust.

The header is JSON: {"format": "costate model", "version": 1, "fields": {...}}, with names, integers, shapes, keyframes. Arrays:
`q0`, `pairs`, and every parameter field as "defaults.<field>". Which codec a field has is told by its annotation in `Model`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from math import isfinite
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import torch

from costate.scene.archive import Archive, write
from costate.scene.fields import FIELD_NAMES
from costate.scene.joints import JOINTS
from costate.scene.keyframe import Keyframe
from costate.scene.model import Model
from costate.scene.saved_shapes import decode_shape, encode_shape
from costate.scene.structure import MOST_INT, check_structure

FORMAT, VERSION = "costate model", 1
ARRAYS = {"q0": ("<f8", 1), "pairs": ("<i4", 2)}  # field -> dtype and number of dimensions
STATE = ("q", "v", "control")  # parts of a keyframe
SHORT = 1e-6  # quaternions shorter than this have no direction


class Codec(NamedTuple):
    """How a field becomes JSON and back; `decode` raises ValueError, "must ...", on what `encode` cannot have written."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def save(model: Model, path: str | PathLike[str]) -> None:
    """Write `model` to one file; the same model gives the same bytes."""
    kept = {field.name: CODECS[str(field.type)] for field in fields(Model) if str(field.type) in CODECS}
    header = {
        "format": FORMAT, "version": VERSION, "fields": {name: kind.encode(getattr(model, name)) for name, kind in kept.items()},
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(getattr(model, name), dtype) for name, (dtype, _) in ARRAYS.items()}
    arrays |= {f"defaults.{name}": np.ascontiguousarray(tensor.numpy(), "<f8") for name, tensor in model.defaults.items()}
    write(path, header, arrays)


def load(path: str | PathLike[str]) -> Model:
    """Read what `save` wrote. ValueError, "<path>: ...", if it is broken, something else, or from a newer version."""
    archive = Archive(path)
    _check_header(archive)
    values = _decode_fields(archive)
    for name, (dtype, ndim) in ARRAYS.items():
        values[name] = archive.array(name, dtype, (None,) * ndim)
    try:
        model = Model(**values, defaults={})
        check_structure(model)
        _check_states(model)
    except ValueError as error:
        archive.refuse(str(error))
    unknown = archive.names - ARRAYS.keys() - {f"defaults.{name}" for name in FIELD_NAMES}
    if unknown:
        archive.refuse(f"unknown array {min(unknown)!r}: written by another version of costate?")
    defaults = {
        name: torch.from_numpy(archive.array(f"defaults.{name}", "<f8", model.field_shapes[name])) for name in FIELD_NAMES
    }
    model = replace(model, defaults=defaults)
    try:
        model.params().check()
    except ValueError as error:
        archive.refuse(str(error))
    return model


def _check_header(archive: Archive) -> None:
    """The file is a model, and of a version that is known."""
    header = archive.header
    if header.get("format") != FORMAT or not isinstance(header.get("fields"), dict):
        archive.refuse("not a model that costate wrote")
    version = header.get("version")
    if type(version) is not int or version < 1:
        archive.refuse(f"version must be a positive int, got {version!r}")
    if version > VERSION:
        archive.refuse(f"written by a newer costate: it has format {version}, this one reads up to {VERSION}; please update")


def _decode_fields(archive: Archive) -> dict[str, Any]:
    """The fields of Model in the header; those that have a default may be missing, as they are in older files."""
    given, values = dict(archive.header["fields"]), {}
    for field in fields(Model):
        codec = CODECS.get(str(field.type))
        if codec is None:
            continue
        if field.name not in given:
            if field.default is MISSING and field.default_factory is MISSING:
                archive.refuse(f"field {field.name!r} is missing")
            continue
        try:
            values[field.name] = codec.decode(given.pop(field.name))
        except (ValueError, RecursionError) as error:
            archive.refuse(f"{field.name} {error}")
    if given:
        archive.refuse(f"unknown field {min(given)!r}: written by another version of costate?")
    return values


def _check_states(model: Model) -> None:
    """The initial configuration and keyframes have the right lengths, are finite, and their quaternions have a direction."""
    lengths = {"q": model.nq, "v": model.nv, "control": model.nu}
    rows = [("q0", model.nq, model.q0)]
    for key, frame in model.keyframes.items():
        rows += [(f"keyframe {key!r} {part}", n, getattr(frame, part)) for part, n in lengths.items()]
    for name, n, numbers in rows:
        if len(numbers) != n or not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be {n} finite numbers, got {len(numbers)}")
    for name, q in [("q0", model.q0), *((f"keyframe {key!r} q", frame.q) for key, frame in model.keyframes.items())]:
        for code, start in zip(model.joint_type, model.q_address, strict=True):
            offset = JOINTS[code].quaternion
            if offset is not None and np.linalg.norm(q[start + offset : start + offset + 4]) < SHORT:
                raise ValueError(f"{name} must have quaternions that are not zero, got one at {start + offset}")


# ---- codecs ----------------------------------------------------------------------------------------------------------
def _items(decode: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """The decoder of a list of what `decode` decodes."""

    def all_of(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"must be a list, got {_shown(value)}")
        return tuple(decode(item) for item in value)

    return all_of


def _int(value: Any) -> int:
    if type(value) is not int or not -MOST_INT <= value <= MOST_INT:
        raise ValueError(f"must be an int of 32 bits, got {_shown(value)}")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"must be true or false, got {_shown(value)}")
    return value


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, got {_shown(value)}")
    return value


def _float(value: Any) -> float:
    if type(value) is not float or not isfinite(value):
        raise ValueError(f"must be finite numbers, got {_shown(value)}")
    return value


def _positive(value: Any) -> float:
    if not _float(value) > 0:
        raise ValueError(f"must be a positive number, got {_shown(value)}")
    return value


def _keyframes(value: Any) -> dict[str, Keyframe]:
    if not isinstance(value, dict):
        raise ValueError(f"must be named, got {_shown(value)}")
    frames: dict[str, Keyframe] = {}
    for name, parts in value.items():
        if not isinstance(parts, dict) or parts.keys() != set(STATE):
            raise ValueError(f"must have {', '.join(STATE)}, got {_shown(parts)}")
        frames[name] = Keyframe(**{part: np.array(_items(_float)(parts[part])) for part in STATE})
    return frames


def _encode_keyframes(frames: Mapping[str, Keyframe]) -> dict[str, Any]:
    return {name: {part: getattr(frame, part).tolist() for part in STATE} for name, frame in frames.items()}


def _optional(decode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else decode(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _same(value: Any) -> Any:
    return value


# by the annotations of Model
CODECS: dict[str, Codec] = {
    "tuple[str, ...]": Codec(list, _items(_str)),
    "tuple[int, ...]": Codec(list, _items(_int)),
    "tuple[bool, ...]": Codec(list, _items(_bool)),
    "tuple[tuple[int, ...], ...]": Codec(lambda rows: [list(row) for row in rows], _items(_items(_int))),
    "int": Codec(_same, _int),
    "bool": Codec(_same, _bool),
    "float | None": Codec(_same, _optional(_positive)),
    "str | None": Codec(_same, _optional(_str)),
    "Mapping[str, Keyframe]": Codec(_encode_keyframes, _keyframes),
    "tuple[Shape, ...]": Codec(lambda shapes: [encode_shape(s) for s in shapes], _items(decode_shape)),
    "tuple[tuple[Shape, ...], ...]": Codec(
        lambda rows: [[encode_shape(s) for s in row] for row in rows], _items(_items(decode_shape))
    ),
}
