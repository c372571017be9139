"""Model.summary(): what a model is made of, as plain text in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from costate.scene import codes
from costate.scene.joints import JOINTS, Ball, Prismatic, Revolute
from costate.scene.names import WORLD

if TYPE_CHECKING:
    from costate.scene.model import Model

ACTUATORS = {
    codes.MOTOR: "motor", codes.POSITION: "position", codes.VELOCITY: "velocity", codes.SERVO: "servo", codes.GENERAL: "general",
}  # fmt: skip
# of some actuators: what is shown beside kp and kd, and the field it is in
OWN = {
    codes.SERVO: {"gain": "gain", "speed": "max_speed"},
    codes.GENERAL: {"gain": "control_gain", "bias": "control_bias"},
}
SHAPES = ("plane", "sphere", "capsule", "box", "cylinder", "hull", "heightfield", "rectangle", "polygon")
PLANAR_SHAPES = {codes.PLANE: "half plane", codes.SPHERE: "circle"}
MOST_ROWS = 200  # of one table; a pile of a thousand boxes is not read body by body
NONE = "-"

Row = tuple[str, ...]


def summary(model: Model) -> str:
    """Tables of bodies, actuators, shapes, constraints, sites and keyframes, those that there are, below one line of totals."""
    parts = (_bodies(model), _actuators(model), _shapes(model), _constraints(model), _sites(model), _keyframes(model))
    tables = [line for head, *rows in parts if rows for line in ("", *_table(head, rows))]
    pairs = [f"{len(model.shape_body)} shapes in {len(model.pairs)} pairs that may touch"] if len(model.pairs) else []
    return "\n".join((repr(model), *_totals(model), *tables, *(["", *pairs] if pairs else [])))


def _totals(model: Model) -> list[str]:
    """Where it comes from, mass, gravity, time step."""
    gravity = ", ".join(_number(x) for x in model.defaults["gravity"].tolist()[: 2 if model.planar else 3])
    words = [f"mass {_number(model.defaults['mass'].sum().item())} kg", f"gravity ({gravity}) m/s^2"]
    step, source = model.timestep, model.source
    words += [f"time step {_number(step)} s"] if step is not None else []
    words += [f"from {source}"] if source else []
    return ["; ".join(words)]


def _bodies(model: Model) -> list[Row]:
    """Bodies with their joints: a row each, behind the head."""
    rows: list[Row] = [("", "body", "parent", "joint", "type", "axis", "limits [rad, m]", "q", "v", "mass [kg]")]
    places = {body: k for k, body in enumerate(model.limit_body)}
    for i, (body, joint) in enumerate(zip(model.body_names, model.joint_names, strict=True)):
        kind = JOINTS[model.joint_type[i]]
        axis = _vector(model.defaults["joint_axis"][i].tolist()) if kind in (Revolute, Prismatic) else NONE
        limits = _limits(model, places[i], kind is Ball) if i in places else NONE
        q, v = _span(model.q_address[i], kind.nq), _span(model.v_address[i], kind.nv)
        mass = "massless" if model.massless[i] else _number(model.defaults["mass"][i].item())
        parent = _body_name(model, model.parent[i])
        rows.append((str(i), body, parent, joint, kind.__name__.lower(), axis, limits, q, v, mass))
    return rows


def _limits(model: Model, place: int, ball: bool) -> str:
    lower, upper = (model.defaults[f"limit_{side}"][place].item() for side in ("lower", "upper"))
    return f"<= {_number(upper)}" if ball else f"{_number(lower)} .. {_number(upper)}"


def _actuators(model: Model) -> list[Row]:
    """Actuators with gear, gains and limits."""
    rows: list[Row] = [("", "actuator", "kind", "drives", "gear", "gains", "control", "force")]
    numbers = {name: model.defaults[name].tolist() for name in ("gear", "kp", "kd")}
    own = {code: zip(*(model.defaults[word].tolist() for word in words.values()), strict=True) for code, words in OWN.items()}
    for k, (name, code) in enumerate(zip(model.motor_names, model.actuator_type, strict=True)):
        gains = [f"{word} {_number(numbers[word][k])}" for word in ("kp", "kd") if numbers[word][k] != 0.0]
        if code in own:
            gains += [f"{word} {_number(x)}" for word, x in zip(OWN[code], next(own[code]), strict=True)]
        ranges = [_actuator_range(model, word, place) for word, place in (("control", model.clip[k]), ("force", model.bound[k]))]
        rows.append(
            (str(k), name, ACTUATORS[code], _driven(model, k), _number(numbers["gear"][k]), ", ".join(gains) or NONE, *ranges)
        )
    return rows


def _actuator_range(model: Model, word: str, place: int) -> str:
    if place < 0:
        return NONE
    return " .. ".join(_number(model.defaults[f"{word}_{side}"][place].item()) for side in ("lower", "upper"))


def _driven(model: Model, k: int) -> str:
    """The joint or constraint that an actuator drives, with its dof where a joint has several."""
    if model.motor_tie[k] >= 0:
        return model.tie_names[model.motor_tie[k]]
    return _dof_name(model, model.motor_dof[k])


def _dof_name(model: Model, dof: int) -> str:
    body = model.dof_body[dof]
    place = dof - model.v_address[body]
    return model.joint_names[body] + (f"[{place}]" if JOINTS[model.joint_type[body]].nv > 1 else "")


def _shapes(model: Model) -> list[Row]:
    """Shapes that may touch another, with their sizes and surfaces."""
    rows: list[Row] = [("", "shape", "kind", "body", "size [m]", "friction", "condim", "pairs")]
    touching = Counter(chain.from_iterable(model.pairs.tolist()))
    vertices, grids = iter(model.hull_vertices), iter(zip(model.field_nx, model.field_ny, strict=True))
    sizes, friction = model.defaults["shape_size"].tolist(), model.defaults["friction"].tolist()
    for i, (name, code) in enumerate(zip(model.shape_names, model.shape_type, strict=True)):
        size = ", ".join(_number(x) for x in sizes[i][: codes.SIZE_COUNTS[code]]) or NONE
        if code in codes.WITH_VERTICES:
            size = f"{next(vertices)} corners"
        elif code == codes.FIELD:
            size = "{}; {} x {} heights".format(size, *next(grids))
        last = (str(model.shape_condim[i]), str(touching[i]))
        kind = PLANAR_SHAPES.get(code, SHAPES[code]) if model.planar else SHAPES[code]
        rows.append((str(i), name, kind, _body_name(model, model.shape_body[i]), size, _number(friction[i]), *last))
    return rows


def _constraints(model: Model) -> list[Row]:
    """Ties with their bodies and couplings with their dofs."""
    rows: list[Row] = [("", "constraint", "kind", "a", "b", "rows")]
    kinds = {held: kind for kind, held in (codes.PLANAR_TIES if model.planar else codes.TIES).items()}
    ties = zip(model.tie_names, model.tie_a, model.tie_b, model.tie_axis, model.tie_locks, strict=True)
    for i, (name, a, b, axis, locks) in enumerate(ties):
        kind = kinds.get((locks, axis), "lock")
        rows.append((str(i), name, kind, _body_name(model, a), _body_name(model, b), str(len(locks))))
    couplings = zip(model.coupling_names, model.coupling_dof1, model.coupling_dof2, strict=True)
    for i, (name, first, second) in enumerate(couplings):
        other = NONE if second < 0 else _dof_name(model, second)
        rows.append((str(i), name, "coupling", _dof_name(model, first), other, "1"))
    return rows


def _sites(model: Model) -> list[Row]:
    rows: list[Row] = [("", "site", "body", "pos [m]")]
    for i, (name, body) in enumerate(zip(model.site_names, model.site_body, strict=True)):
        rows.append((str(i), name, _body_name(model, body), _vector(model.defaults["site_pos"][i].tolist())))
    return rows


def _keyframes(model: Model) -> list[Row]:
    rows: list[Row] = [("", "keyframe")]
    return [*rows, *((str(i), name) for i, name in enumerate(model.keyframes))]


def _body_name(model: Model, body: int) -> str:
    return WORLD if body < 0 else model.body_names[body]


def _table(head: Row, rows: Sequence[Row]) -> list[str]:
    """Lines with columns of equal width; a long table is cut, and says so."""
    shown = [head, *rows[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(*shown)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    return [*lines, f"... and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else lines


def _number(x: float) -> str:
    return f"{x + 0.0:.6g}"  # no minus in front of zero


def _vector(numbers: Sequence[float]) -> str:
    return " ".join(f"{x + 0.0:.3g}" for x in numbers)


def _span(start: int, count: int) -> str:
    return NONE if count == 0 else str(start) if count == 1 else f"{start}:{start + count}"
