"""The source of a model's kernels: the core's headers, and the model's tables as constants."""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

ENTRY = "drivers/cuda.cu"
MODEL = "this_model.h"
# Possible rows up to which every one of them has a place of its own, and loops over them are unrolled
_MOST_FIXED_ROWS = 16
# Integers of a model that fit into the GPU's 64 kB for constants, beside those of the compiler and of fixed rows
_MOST_CONSTANTS = 12_000
# enums of core/data/model.h and rows.h
_SPARSE, _CHOSEN_PAIR = 0, 28
_DRY, _MOTOR, _LIMIT, _CONTACT = range(4)

Tables = dict[str, list[int]]


@cache
def folder() -> Path:
    """Where core/ and drivers/ are: beside this package where it was installed, else in the repository."""
    here = Path(__file__).resolve()
    for root in (here.parents[1] / "include", here.parents[3]):
        if (root / ENTRY).is_file():
            return root
    raise FileNotFoundError(f"costate's C++ headers are missing beside {here.parents[1]}: install costate again")


@cache
def entry() -> str:
    """The text of drivers/cuda.cu."""
    return (folder() / ENTRY).read_text(encoding="utf-8")


@cache
def headers() -> tuple[tuple[str, str], ...]:
    """Name and text of every header that a kernel may include, sorted."""
    found = (path for part in ("core", "drivers") for path in (folder() / part).rglob("*.h"))
    return tuple(sorted((path.relative_to(folder()).as_posix(), path.read_text(encoding="utf-8")) for path in found))


def model_header(tree: Any, *, fixed: bool) -> str:
    """Text of the header with the model's Tree: every field that core/data/model.h lists, as a constant.

    fixed : also the layout of its rows, see core/data/layout.h.
    """
    counts, tables = tree.counts(), tree.tables()
    rows = fixed_rows(counts, tables) if fixed else None
    long = sum(map(len, tables.values())) > _MOST_CONSTANTS
    few = counts["nv"] <= 32  # as bits of a number with a sign
    bits = [sum(1 << d for d in _dofs_above(tables, (b,))) if few else 0 for b in range(counts["nb"])]
    tables = {**tables, "body_dofs": [x - (x >> 31 << 32) for x in bits]}
    return _struct("Tree", counts, tables, long=long) + (
        "" if rows is None else _struct("FixedRows", {"n_rows": rows["counts"][1]}, rows, long=long)
    )


def _struct(name: str, numbers: dict[str, int], tables: Tables, *, long: bool) -> str:
    """A struct of constants; tables lie outside of it, since device code takes no address of a static member."""
    own, kind = name.lower(), "CS_LONG_TABLE" if long else "CS_TABLE"
    lines = [f"{kind} int {own}_{key}[] = {{{', '.join(map(str, row)) or '0'}}};" for key, row in tables.items()]
    members = [f"  static constexpr int {key} = {number};" for key, number in numbers.items()]
    members += [f"  static constexpr const int* {key} = {own}_{key};" for key in tables]
    return "\n".join((*lines, f"struct {name} {{", *members, "};", ""))


def fixed_rows(counts: dict[str, int], tables: Tables) -> Tables | None:
    """The layout of all rows that a step can have, one island: what `slots` would find if all were active; None if too many."""
    t, width = tables, 2 if counts["planar"] else 3
    joint_rows = counts["n_dry"] + counts["n_row_motor"] + counts["n_limit"]
    total = joint_rows + width * counts["nk"]
    simple = counts["form"] == _SPARSE and not any(counts[name] for name in ("ne", "large", "turns", "n_tie"))
    chosen, crowded = counts["pair_kinds"] & _CHOSEN_PAIR, counts["max_contacts"] < counts["nk"]
    if not simple or chosen or crowded or not 0 < total <= _MOST_FIXED_ROWS:
        return None
    pair_of = [p for p in range(counts["np"]) for _ in range(t["pair_first"][p], t["pair_first"][p + 1])]
    blocks = [(_DRY, k, (t["dof_body"][d],)) for k, d in enumerate(t["dry_dof"])]
    blocks += [(_MOTOR, k, (t["dof_body"][t["motor_dof"][m]],)) for k, m in enumerate(t["row_motor"])]
    blocks += [(_LIMIT, k, (t["limit_body"][k],)) for k in t["limit_order"]]
    blocks += [(_CONTACT, c, (t["shape_body"][t["pair_a"][p]], t["shape_body"][t["pair_b"][p]])) for c, p in enumerate(pair_of)]
    if len({t["root"][body] for _, _, bodies in blocks for body in bodies if body >= 0}) != 1:
        return None
    columns = [_dofs_above(t, bodies) for _, _, bodies in blocks]
    rows = [width if kind == _CONTACT else 1 for kind, _, _ in blocks]
    numbers = [n * len(list_) for n, list_ in zip(rows, columns, strict=True)]
    return {
        # blocks, rows, islands, -, contact slots, near pairs, candidates
        "counts": [len(blocks), total, 1, 0, counts["nk"], counts["np"], counts["nk"]],
        "cand_pair": pair_of,
        "cand_point": [c - t["pair_first"][p] for c, p in enumerate(pair_of)],
        "kind": [kind for kind, _, _ in blocks],
        "first_row": list(accumulate(rows, initial=0)),
        "same": [item for _, item, _ in blocks],
        "list_n": [len(list_) for list_ in columns],
        "col_n": [len(list_) for list_ in columns],
        "col_adr": list(accumulate(map(len, columns), initial=0)),
        "col": [d for list_ in columns for d in list_],
        "J_adr": list(accumulate(numbers, initial=0)),
        "Y_adr": list(accumulate(numbers, initial=0)),
        "island_block": [0, len(blocks)],
        "island_A": [0, total * total],
        "island_singles": [joint_rows],
        **_common(columns),
    }


def _common(columns: list[list[int]]) -> Tables:
    """Of every block and every one before it, or itself: the places of the dofs that move both, in the one and in the other."""
    shared = [[(a.index(d), b.index(d)) for d in a if d in b] for i, a in enumerate(columns) for b in columns[: i + 1]]
    return {
        "common_adr": list(accumulate(map(len, shared), initial=0)),
        "common_a": [x for places in shared for x, _ in places],
        "common_b": [y for places in shared for _, y in places],
    }


def _dofs_above(t: Tables, bodies: tuple[int, ...]) -> list[int]:
    """The dofs that move any of these bodies, in order."""
    found: set[int] = set()
    for body in bodies:
        d = t["last_dof"][body] if body >= 0 else -1
        while d >= 0:
            found.add(d)
            d = t["dof_parent"][d]
    return sorted(found)


def definitions(
    options: dict[str, Any], op: int, adjoint: bool, scalar: str, scratch: int, local: bool, call_size: int, fixed: bool
) -> list[str]:
    """-D of one kernel; see drivers/cuda.cu."""
    named = {
        "MODEL": f'"{MODEL}"', "METHOD": options["method"], "FORM": options["form"], "IMPACTS": options["impacts"],
        "PROJECT": options["project"], "SIDES": options["sides"], "EXACT": options["exact"], "OP_CODE": op,
        "ADJOINT": int(adjoint), "SCALAR": scalar, "SCRATCH": scratch, "LOCAL": int(local), "CALL_SIZE": call_size,
    }  # fmt: skip
    # an adjoint gains by being one function, a step alone loses (core/base/config.h)
    flags = ("-DCS_FIXED_ROWS",) * fixed + ("-DCS_INLINE",) * (fixed and adjoint)
    return [*(f"-DCS_{name}={value}" for name, value in named.items()), *flags]
