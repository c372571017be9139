"""PTX, which NVRTC makes of a kernel, as C++: a machine without a GPU can run what a GPU is given, and count it (ptx_threads.h).

Registers become unsigned variables of their size, labels stay labels. Instructions are in ptx_operations.py.
"""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

from tests.cuda.ptx_operations import OPERATIONS, C, Operands, bits, split, unsigned

Chain = tuple[str, ...]  # functions that an instruction was inlined into, its own last


class Translated(NamedTuple):
    """A program in C, and of each of its blocks of instructions, which are run from the first to the last one, what these are and
    where they come from."""

    text: str
    blocks: list[list[tuple[str, Chain]]]


class Program:
    """What a whole file of PTX declares."""

    def __init__(self, ptx: str) -> None:
        text = re.sub(r"//[^\n]*", "", ptx)
        apart = re.sub(r"([{}])[ \t]*(?=[.\w])", r"\1\n", re.sub(r";[ \t]*}", ";\n}", text))  # braces around a few lines
        self.lines = [line.strip() for line in apart.split("\n")]
        self.names = _inlined_names(text)
        self.blocks: list[list[tuple[str, Chain]]] = []
        self.declared: list[str] = []
        self.shared: dict[str, int] = {}  # where in the memory of a block
        self.arrays: set[str] = set()
        self.takes = near = 0
        pattern = r"^\s*(?:\.\w+ )?\.(global|const|shared)\s+\.align\s+(\d+)\s+\.(\w+)\s+(\w+)(?:\[(\d*)\])?(?:\s*=\s*([^;]+))?;"
        for space, align, t, name, n, first in re.findall(pattern, text, re.M):
            if space == "shared":
                self.shared[name] = near
                near += -(-int(n) // 256) * 256
            elif "generic(" not in first:  # addresses of tables, which nobody reads
                size = f"[{n}]" if n else ""
                self.arrays |= {name} if n else set()
                value = " = " + re.sub(r"\b0[fd](?=[0-9A-F])", "0x", first.strip()) if first else " = {}"
                self.declared.append(f"static const {C[unsigned(t)]} {name}{size} __attribute__((aligned({align}))){value};")
        self.near = near

    def translated(self) -> Translated:
        """All functions."""
        heads, bodies, at = [], [], 0
        while at < len(self.lines):
            if not re.match(r"(\.visible |\.weak |\.extern )?\.(func|entry)\b", self.lines[at]):
                at += 1
                continue
            head = self.lines[at]
            while "{" not in self.lines[at] and not self.lines[at].endswith(";"):
                at += 1
                head += " " + self.lines[at]
            at += 1
            if "{" in head:
                function = Function(self, head)
                heads.append(function.head + ";")
                self.takes = len(function.known) if ".entry" in head else self.takes
                at = function.read(at)
                bodies.append(function.text())
        counts = f"enum {{ kBlocks = {len(self.blocks)}, kNear = {self.near} }};"
        given = ", ".join(f"given[{k}]" for k in range(self.takes))
        entry = f"static void begin() {{ entry_call({given}); }}\n"
        return Translated("\n".join((counts, '#include "ptx_threads.h"', *self.declared, *heads, *bodies, entry)), self.blocks)


def _inlined_names(text: str) -> dict[str, str]:
    """The functions that .loc names, readable."""
    found = re.findall(r"(\$L__info_string\d+):\s*\n((?:\s*\.b8[^\n]*\n?)+)", text)
    names = {
        key: bytes(int(x) & 255 for x in re.findall(r"-?\d+", value.replace(".b8", ""))).split(b"\0")[0] for key, value in found
    }
    shown = (
        subprocess.run(["c++filt"], input=b"\n".join(names.values()), capture_output=True, check=True).stdout.decode().split("\n")
    )
    return {key: _short(name) for key, name in zip(names, shown)}


def _short(name: str) -> str:
    """solve_sparse of costate::native::solve_sparse<float>(..)."""
    plain = re.sub(r"\b\w+::", "", name)
    found = re.match(r".*?(\w+)(<.*?>)?\(", plain)
    return (found[1] if found else plain) + " in a loop" * ("{lambda" in name)


class Function(Operands):
    """One function: its registers, and its code line by line."""

    def __init__(self, program: Program, head: str) -> None:
        self.program, self.shared, self.arrays, entry = program, program.shared, program.arrays, ".entry" in head
        found = re.search(r"\.(?:func|entry)\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?", head)
        assert found, head
        told, self.name, takes = found.groups()
        last = re.compile(r"([\w$]+)(?:\[\d+\])?\s*$")
        self.known = [m[1] for part in [*(takes or "").split(","), told or ""] if (m := last.search(part.strip()))]
        self.head = f"static void {'entry_' * entry}{self.name}({', '.join(f'char* {x}' for x in self.known) or 'void'})"
        self.registers: list[str] = []
        self.code: list[str] = []
        self.targets: dict[str, list[str]] = {}
        self.chain: Chain = (self.name,)
        self.chains: dict[tuple[int, ...], Chain] = {}

    def text(self) -> str:
        """In C."""
        return "\n  ".join((self.head + " {", *self.registers, *self.code)) + "\n}"

    def block(self) -> None:
        """A new one begins."""
        self.code.append(f"block({len(self.program.blocks)});")
        self.program.blocks.append([])

    def read(self, at: int) -> int:
        """From its first line to where it ends; returns what is next."""
        lines, depth = self.program.lines, 1
        body = "\n".join(lines[at:])
        for name, places in re.findall(r"^\$(\w+):\s*\.branchtargets([^;]*);", body, re.M):
            self.targets[name] = [place.strip()[1:] for place in places.split(",")]
        self.block()
        while depth:
            line = lines[at]
            at += 1
            if line in ("{", "}"):
                depth += 1 if line == "{" else -1
                self.code += [line] if depth else []
            elif line and not self.declares(line):
                while not line.endswith((";", ":")):
                    line, at = f"{line} {lines[at]}", at + 1
                self.instruction(line)
        return at

    def declares(self, line: str) -> bool:
        """Whether this is no instruction."""
        if re.match(r"\.loc\s", line):
            self.chain = self.where(line)
        elif m := re.match(r"\.reg\s+\.(\w+)\s+%?(\w+)(?:<(\d+)>)?;", line):
            names = ", ".join(f"{m[2]}{k}" for k in range(int(m[3]))) if m[3] else m[2]
            declared = f"{C[unsigned(m[1])]} {names};"
            if m[2] != "temp_param_reg" and declared not in self.registers:  # of every call, unused; of a few lines
                self.registers.append(declared)
        elif m := re.match(r"\.local\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\];", line):
            self.registers.append(f"unsigned char {m[2]}[{m[3]}] __attribute__((aligned({m[1]})));")
        elif m := re.match(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(\w+)(?:\[(\d+)\])?;", line):
            self.known.append(m[2])
            self.code.append(f"char {m[2]}[{int(m[3] or 1) * bits(m[1]) // 8}] __attribute__((aligned(16)));")
        elif not (line.startswith((".shared", ".pragma")) or ".branchtargets" in line or re.match(r"\$L\w+,?$|\$L\w+;$", line)):
            return False
        return True

    def where(self, loc: str) -> Chain:
        """What a .loc says, with the functions around."""
        place = [int(x) for x in re.findall(r"\d+", loc)[:3]]
        inlined = re.search(r"function_name\s+(\$\w+).*inlined_at\s+(\d+)\s+(\d+)\s+(\d+)", loc)
        chain: Chain = (self.name,)
        if inlined:
            around = self.chains.get(tuple(int(inlined[k]) for k in (2, 3, 4)), chain)
            chain = (*around, self.program.names.get(inlined[1], "?"))
        self.chains[tuple(place)] = chain
        return chain

    def instruction(self, line: str) -> None:
        """A label, or an instruction with its condition."""
        if line.endswith(":"):
            self.code.append(line[1:])
            self.block()
            return
        text, condition = line[:-1].strip().replace("\t", " "), ""
        if text.startswith("@"):
            guard, _, text = text.partition(" ")
            condition = f"if ({self.flag(guard[1:])}) "
        operation, _, rest = text.strip().partition(" ")
        self.program.blocks[-1].append((operation, self.chain))
        parts = operation.split(".")
        known = OPERATIONS.get(parts[0])
        if known is None:
            raise NotImplementedError(f"PTX instruction: {line}")
        self.code.append(f"{condition}{{ {known(self, parts, split(rest.strip()))} }}")
        if parts[0] in ("bra", "brx", "ret"):
            self.block()


def translate(ptx: str) -> Translated:
    """The whole of it; its entry is `call`."""
    return Program(ptx).translated()
