"""Instructions of PTX as C++ (ptx.py). Only what our kernels need is known; the rest is an error."""

from __future__ import annotations

import re
from collections.abc import Callable

C = {"pred": "bool", "f32": "float", "f64": "double"} | {
    f"{kind}{bits}": f"{'' if kind == 's' else 'u'}int{bits}_t" for kind in "bus" for bits in (8, 16, 32, 64)
}
SPECIAL = {
    "%tid.x": "rank", "%tid.y": "0u", "%ctaid.x": "this_block", "%ntid.y": "1u", "%nctaid.x": "blocks",
}  # fmt: skip
SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
LOGIC = {"and": "&", "or": "|", "xor": "^"}
ROUND = {"rzi": "trunc", "rni": "nearbyint", "rmi": "floor", "rpi": "ceil"}
SHUFFLES, VOTES = {"idx": 0, "bfly": 1}, {"ballot": 0, "any": 1, "all": 2}


def bits(t: str) -> int:
    """Of a type."""
    return 32 if t == "pred" else int(t[1:])


def unsigned(t: str) -> str:
    """The type that its registers have."""
    return t if t == "pred" else f"u{bits(t)}"


def split(text: str) -> list[str]:
    """At commas that are in no brackets."""
    found, depth, now = [], 0, ""
    for c in text:
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            found.append(now.strip())
            now = ""
        else:
            now += c
    return [*found, now.strip()] if now.strip() else found


class Operands:
    """What instructions of a function name: registers, numbers and places in memory."""

    shared: dict[str, int]  # where in the memory of a block
    arrays: set[str]  # tables, whose names are their addresses already
    known: list[str]  # parameters
    targets: dict[str, list[str]]  # of jumps by a number

    @staticmethod
    def register(x: str) -> str:
        """Its name in C."""
        return SPECIAL.get(x, x[1:])

    def flag(self, x: str) -> str:
        """Of a predicate, or of its opposite."""
        return f"!{self.register(x[1:])}" if x.startswith("!") else self.register(x)

    def value(self, x: str, t: str) -> str:
        """An operand, of this type."""
        if x.startswith("%"):
            name = self.register(x)
            return f"as_{t}({name})" if t[0] == "f" else name if t == "pred" else f"(({C[t]}){name})"
        if x[:2] in ("0f", "0d"):
            number = f"0x{x[2:]}ull"
            return f"as_{t}({number})" if t[0] == "f" else f"(({C[t]}){number})"  # stored as it is, say
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", x):
            return f"(({C[t]}){x.rstrip('U')}{'ll' * (bits(t) == 64)})"
        return f"((uint64_t){self.symbol(x)})"

    def symbol(self, x: str) -> str:
        """The address of something that has a name; in shared memory it counts from that one's start."""
        if x in self.shared:
            return f"{self.shared[x]}ull"
        of = "" if x in self.arrays or x in self.known or x.startswith("__local") else "&"
        return f"(uintptr_t){of}{x}"

    def put(self, x: str, t: str, value: str) -> str:
        """A register = value, of this type."""
        if t[0] == "f":
            return f"{self.register(x)} = of_{t}({value});"
        through = f"({C[t]})" if t[0] == "s" else ""
        return f"{self.register(x)} = ({C[unsigned(t)]}){through}({value});"

    def address(self, x: str, space: str) -> str:
        """Of [x + number]."""
        m = re.fullmatch(r"\[([%$\w.]+)(?:\+(-?\d+))?\]", x)
        assert m, x
        base = f"(uint64_t){self.register(m[1])}" if m[1].startswith("%") else self.symbol(m[1])
        return f"({'(uint64_t)near_memory + ' * (space == 'shared')}{base} + ({m[2] or 0}ll))"


def _mov(f: Operands, p: list[str], a: list[str]) -> str:
    t, half = p[-1], bits(p[-1]) // 2
    if a[0].startswith("{"):
        whole = f.value(a[1], unsigned(t))
        parts = zip(split(a[0][1:-1]), (whole, f"{whole} >> {half}"))
        return " ".join(f"{f.register(x)} = ({C[f'u{half}']})({value});" for x, value in parts if x != "_")
    if a[1].startswith("{"):
        low, high = (f"({C[unsigned(t)]}){f.value(x, f'u{half}')}" for x in split(a[1][1:-1]))
        return f"{f.register(a[0])} = {low} | {high} << {half};"
    return f.put(a[0], t, f.value(a[1], t))


def _space(p: list[str]) -> str:
    return next((x for x in p if x in ("param", "shared", "global", "local", "const")), "generic")


def _ld(f: Operands, p: list[str], a: list[str]) -> str:
    space, t = _space(p), p[-1] if p[-1][0] != "f" else unsigned(p[-1])
    to, size = split(a[0].strip("{}")), bits(t) // 8
    # all are read before the first is written: one of them may be the address
    reads = [f"{C[t]} x{k}; memcpy(&x{k}, (char*)from + {k * size}, {size});" for k in range(len(to))]
    writes = [f"{f.register(x)} = x{k};" for k, x in enumerate(to) if x != "_"]
    return " ".join((f"uint64_t from = {f.address(a[1], space)};", *reads, *writes))


def _st(f: Operands, p: list[str], a: list[str]) -> str:
    space, t = _space(p), unsigned(p[-1])
    size, own = bits(t) // 8, space in ("param", "local")
    values = split(a[1].strip("{}"))
    if own:
        stores = [f"{C[t]} x{k} = {f.value(x, t)}; memcpy((char*)to + {k * size}, &x{k}, {size});" for k, x in enumerate(values)]
    else:
        stores = [f"put{8 * size}(to + {k * size}, {f.value(x, t)});" for k, x in enumerate(values)]
    return " ".join((f"uint64_t to = {f.address(a[0], space)};", *stores))


def _cvta(f: Operands, p: list[str], a: list[str]) -> str:
    near = "(uint64_t)near_memory" if "shared" in p else "0"
    return f"{f.register(a[0])} = {f.value(a[1], 'u64')} {'-' if 'to' in p else '+'} {near};"


def _binary(sign: str) -> Callable[[Operands, list[str], list[str]], str]:
    def of(f: Operands, p: list[str], a: list[str]) -> str:
        t = p[-1] if p[-1][0] == "f" else unsigned(p[-1])
        return f.put(a[0], t, f"{f.value(a[1], t)} {sign} {f.value(a[2], t)}")

    return of


def _mul(f: Operands, p: list[str], a: list[str]) -> str:
    t = p[-1]
    if t[0] == "f":
        return _binary("*")(f, p, a)
    wide = f"{t[0]}{min(64, 2 * bits(t))}"
    if "wide" in p:
        product = f"({C[wide]}){f.value(a[1], t)} * ({C[wide]}){f.value(a[2], t)}"
        return f.put(a[0], wide, product + (f" + {f.value(a[3], wide)}" if p[0] == "mad" else ""))
    if "hi" in p:
        long = ("" if t[0] == "s" else "unsigned ") + "__int128" if bits(t) == 64 else C[wide]
        return f.put(a[0], t, f"(({long}){f.value(a[1], t)} * ({long}){f.value(a[2], t)}) >> {bits(t)}")
    t = unsigned(t)
    return f.put(a[0], t, f"{f.value(a[1], t)} * {f.value(a[2], t)}" + (f" + {f.value(a[3], t)}" if p[0] == "mad" else ""))


def _fma(f: Operands, p: list[str], a: list[str]) -> str:
    t = p[-1]
    return f.put(a[0], t, f"fma_{t}({', '.join(f.value(x, t) for x in a[1:])})")


def _divide(f: Operands, p: list[str], a: list[str]) -> str:
    t, sign = p[-1], "%" if p[0] == "rem" else "/"
    return f.put(a[0], t, f"{f.value(a[1], t)} {sign} {f.value(a[2], t)}")


def _named(name: str) -> Callable[[Operands, list[str], list[str]], str]:
    def of(f: Operands, p: list[str], a: list[str]) -> str:
        t = p[-1].replace("b", "u")
        return f.put(a[0], t, f"{name}_{t}({', '.join(f.value(x, t) for x in a[1:])})")

    return of


def _logic(f: Operands, p: list[str], a: list[str]) -> str:
    if p[-1] == "pred":
        return f"{f.register(a[0])} = {f.flag(a[1])} {LOGIC[p[0]]} {f.flag(a[2])};"
    return _binary(LOGIC[p[0]])(f, p, a)


def _not(f: Operands, p: list[str], a: list[str]) -> str:
    return f.put(a[0], p[-1], f"!{f.register(a[1])}" if p[-1] == "pred" else f"~{f.value(a[1], unsigned(p[-1]))}")


def _neg(f: Operands, p: list[str], a: list[str]) -> str:
    return f.put(a[0], p[-1], f"-{f.value(a[1], p[-1])}")


def _shift(f: Operands, p: list[str], a: list[str]) -> str:
    t, by = p[-1].replace("b", "u"), f.value(a[2], "u32")
    most = bits(t) - 1
    if p[0] == "shr" and t[0] == "s":
        return f.put(a[0], t, f"{f.value(a[1], t)} >> ({by} > {most} ? {most} : {by})")
    sign = "<<" if p[0] == "shl" else ">>"
    return f.put(a[0], unsigned(t), f"{by} > {most} ? 0 : {f.value(a[1], unsigned(t))} {sign} {by}")


def _funnel(f: Operands, p: list[str], a: list[str]) -> str:
    by = f"({f.value(a[3], 'u32')} & 31)" if "wrap" in p else f"({f.value(a[3], 'u32')} > 32 ? 32 : {f.value(a[3], 'u32')})"
    both = f"((uint64_t){f.value(a[2], 'u32')} << 32 | {f.value(a[1], 'u32')})"
    return f.put(a[0], "u32", f"({both} << {by}) >> 32" if "l" in p else f"{both} >> {by}")


def _insert(f: Operands, p: list[str], a: list[str]) -> str:
    t = unsigned(p[-1])
    given = ", ".join((f.value(a[1], t), f.value(a[2], t), f.value(a[3], "u32"), f.value(a[4], "u32")))
    return f.put(a[0], t, f"inserted({given})")


def _setp(f: Operands, p: list[str], a: list[str]) -> str:
    t = p[-1].replace("b", "u")
    x, y, how = f.value(a[1], t), f.value(a[2], t), p[1]
    if how in ("nan", "num"):
        value = f"{'!' * (how == 'num')}({x} != {x} || {y} != {y})"
    elif t[0] == "f" and how == "ne":
        value = f"({x} < {y} || {x} > {y})"  # of what is ordered
    elif t[0] == "f" and how.endswith("u"):  # or of what is not
        value = f"({x} {SIGNS[how[:-1]]} {y} || {x} != {x} || {y} != {y})"
    else:
        value = f"({x} {SIGNS[how]} {y})"
    if p[2] in LOGIC:
        value = f"{value} {LOGIC[p[2]]} {f.flag(a[3])}"
    return f"{f.register(a[0])} = {value};"


def _selp(f: Operands, p: list[str], a: list[str]) -> str:
    t = p[-1] if p[-1][0] == "f" else unsigned(p[-1])
    return f.put(a[0], t, f"{f.register(a[3])} ? {f.value(a[1], t)} : {f.value(a[2], t)}")


def _cvt(f: Operands, p: list[str], a: list[str]) -> str:
    to, of = p[-2:]
    value, how = f.value(a[1], of), next((ROUND[x] for x in p if x in ROUND), None)
    if of[0] == "f" and how:
        value = f"__builtin_{how}({value})"
        value = value if to[0] == "f" else f"whole_{to}({value})"
    return f.put(a[0], to, f"({C[to]})({value})")


def _copysign(f: Operands, p: list[str], a: list[str]) -> str:
    return f.put(a[0], p[-1], f"__builtin_copysign{'f' * (p[-1] == 'f32')}({f.value(a[2], p[-1])}, {f.value(a[1], p[-1])})")


def _testp(f: Operands, p: list[str], a: list[str]) -> str:
    name = {"nan": "isnan", "finite": "isfinite", "infinite": "isinf"}[p[1]]
    return f"{f.register(a[0])} = __builtin_{name}({f.value(a[1], p[-1])});"


def _bits_of(name: str) -> Callable[[Operands, list[str], list[str]], str]:
    def of(f: Operands, p: list[str], a: list[str]) -> str:
        return f"{f.register(a[0])} = {name}({f.value(a[1], unsigned(p[-1]))});"

    return of


def _brx(f: Operands, p: list[str], a: list[str]) -> str:
    places = " ".join(f"case {k}: goto {name};" for k, name in enumerate(f.targets[a[1][1:]]))
    return f"switch ({f.register(a[0])}) {{ {places} }}"


def _shfl(f: Operands, p: list[str], a: list[str]) -> str:
    to = a[0].split("|")
    given = ", ".join(f.value(x, "u32") for x in a[1:4])
    return f"{f.register(to[0])} = shuffled({SHUFFLES[p[2]]}, {given});" + (f" {f.register(to[1])} = 1;" if len(to) > 1 else "")


def _vote(f: Operands, p: list[str], a: list[str]) -> str:
    return f"{f.register(a[0])} = voted({VOTES[p[2]]}, {f.flag(a[1])});"


def _atom(f: Operands, p: list[str], a: list[str]) -> str:
    assert p[-2:] in (["add", "u32"], ["add", "s32"]), p
    return f"uint32_t* at = (uint32_t*){f.address(a[1], 'global')}; {f.register(a[0])} = *at; *at += {f.value(a[2], 'u32')};"


def _call(f: Operands, p: list[str], a: list[str]) -> str:
    told = a.pop(0).strip("()") if a[0].startswith("(") else ""
    takes = split(a[1].strip("()")) if len(a) > 1 else []
    return f"{a[0]}({', '.join(takes + [told] * bool(told))});"


OPERATIONS: dict[str, Callable[[Operands, list[str], list[str]], str]] = {
    "mov": _mov, "ld": _ld, "st": _st, "cvta": _cvta, "selp": _selp, "cvt": _cvt, "atom": _atom,
    "add": _binary("+"), "sub": _binary("-"), "mul": _mul, "mad": _mul, "fma": _fma, "div": _divide, "rem": _divide, "neg": _neg,
    "rcp": _named("inverse"), "sqrt": _named("root"), "rsqrt": _named("inverse_root"),
    "abs": _named("size"), "min": _named("least"), "max": _named("most"),
    "and": _logic, "or": _logic, "xor": _logic, "not": _not, "shl": _shift, "shr": _shift, "shf": _funnel, "bfi": _insert,
    "popc": _bits_of("ones"), "clz": _bits_of("zeros_before"), "brev": _bits_of("backwards"),
    "setp": _setp, "copysign": _copysign, "testp": _testp,
    "bra": lambda f, p, a: f"goto {a[0][1:]};", "brx": _brx, "call": _call,
    "ret": lambda f, p, a: "return;", "trap": lambda f, p, a: "abort();",
    "bar": lambda f, p, a: "all_here(kWait);", "shfl": _shfl, "vote": _vote,
}  # fmt: skip
