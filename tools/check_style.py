"""Check the house rules that a machine can check; print `path:line: rule` for each breach, exit status 1 if any.

Sizes (files up to 400 lines, functions up to 80), leftovers and machine paths, the direction of imports in costate/,
a check in every test, and for core/: allowed includes, no allocation or exceptions, and every adjoint right below its
forward function. C++ is read with a pragmatic scanner (see cpp_scan.py); where it is unsure it stays silent.
Use: python tools/check_style.py [root]
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cpp_scan import Function, code_only, functions

MAX_FILE, MAX_FUNCTION = 400, 80
# Allowed to be longer, with the reason: "path" for a file, "path:function" for a function.
EXCEPTIONS: dict[str, str] = {}

FOLDERS = ("core", "drivers", "costate", "tests", "bench", "examples", "tools", "docs", ".ci")
CPP, CODE = {".h", ".cc", ".cu"}, {".h", ".cc", ".cu", ".py"}
TEXT = CODE | {".pyi", ".md", ".toml", ".txt", ".sh", ".cmake", ""}

LEFTOVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
DEAD = re.compile(r"^\s*(if (False|0)\s*:|#\s*if 0\b)")
MACHINE_PATH = re.compile(r"(?<![\w.~>}$)])/(work|tmp|home|root)/")

INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>")
CORE_INCLUDES = {"cmath", "cstdint", "cstddef"}
BASE_INCLUDES = CORE_INCLUDES | {"immintrin.h", "arm_neon.h"}
CORE_BANNED = re.compile(r"\b(new|malloc|throw)\b")
NO_ADJOINT = re.compile(r"//\s*no adjoint: \S")

# The direction of imports: which parts of costate/ must not import which. Type-only imports are free.
SIM = {"sim", "dynamics", "autodiff"}
APPS = {"env", "control", "learn", "render", "cli"}
FORBIDDEN = {
    "_native": {"load", "scene", *SIM, *APPS},
    **{part: {"load", *APPS} for part in SIM},
    "scene": {"_native", "load", *SIM, *APPS},
    "load": {"_native", *APPS},
    **{part: {"_native"} for part in APPS},
}
CHECK = re.compile(r"assert|raises|warns|check|fail")

Breach = tuple[int, str]


def check_text(lines: list[str]) -> Iterator[Breach]:
    """Leftover marks, dead branches and paths of somebody's machine."""
    for number, line in enumerate(lines, 1):
        if match := LEFTOVER.search(line):
            yield number, f"leftover mark {match[0]}"
        if DEAD.search(line):
            yield number, "dead code behind a false condition"
        if match := MACHINE_PATH.search(line):
            yield number, f"machine path {match[0]}"


def check_size(path: str, lines: list[str], sized: list[tuple[str, int, int]]) -> Iterator[Breach]:
    """File and function length; `sized` holds (name, first line, last line) of each function."""
    if len(lines) > MAX_FILE and path not in EXCEPTIONS:
        yield 1, f"file has {len(lines)} lines, over {MAX_FILE}"
    for name, first, last in sized:
        if last - first >= MAX_FUNCTION and f"{path}:{name}" not in EXCEPTIONS:
            yield first, f"function {name} has {last - first + 1} lines, over {MAX_FUNCTION}"


# ---- core/ ---------------------------------------------------------------------------------------------------------
def check_core(path: str, lines: list[str], code: str) -> Iterator[Breach]:
    """Includes, allocation and exceptions: core/ must also compile as device code."""
    allowed = BASE_INCLUDES if path.startswith("core/base/") else CORE_INCLUDES
    for number, line in enumerate(lines, 1):
        if (match := INCLUDE.match(line)) and match[1] not in allowed:
            yield number, f"core/ may not include <{match[1]}>"
    for number, line in enumerate(code.splitlines(), 1):
        if match := CORE_BANNED.search(line):
            yield number, f"core/ may not use {match[0]}"


def check_adjoints(path: str, lines: list[str], found: list[Function]) -> Iterator[Breach]:
    """f_adj comes right below f (overloads together); in math/ and ops/ every function template has one, or says why not."""
    free = [f for f in found if not f.member and not f.name.startswith("operator")]
    names = [f.name for f in free]
    excused = {f.name for f in free if has_reason(lines, f.line)}
    for i, function in enumerate(free):
        if not function.name.endswith("_adj") or function.name in excused:
            continue
        forward = function.name.removesuffix("_adj")
        before = i - 1  # skip its own overloads, and pieces of it that say so with '// no adjoint: <reason>'
        while before >= 0 and names[before] != forward and names[before] in {function.name, *excused}:
            before -= 1
        if before < 0 or names[before] != forward:
            yield function.line, f"{function.name} must be the next definition after {forward}"
    if not path.startswith(("core/math/", "core/ops/")):
        return
    for function in free:
        if function.name.endswith("_adj") or not function.template or function.name in excused:
            continue
        if function.name + "_adj" not in names:
            yield function.line, f"{function.name} has no {function.name}_adj below and no '// no adjoint: <reason>' above"


def has_reason(lines: list[str], line: int) -> bool:
    """Whether the comment block right above a line (counted from 1) has '// no adjoint: <reason>'."""
    above = line - 2
    while above >= 0 and lines[above].lstrip().startswith("//"):
        if NO_ADJOINT.search(lines[above]):
            return True
        above -= 1
    return False


# ---- Python --------------------------------------------------------------------------------------------------------
def imported(path: str, tree: ast.AST, inside: bool = False) -> Iterator[tuple[int, str, bool]]:
    """(line, full module name, whether inside a function) of each run-time import."""
    package = path.split("/")[:-1]
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}", inside) for alias in node.names)
        else:
            yield from imported(path, node, inside or isinstance(node, ast.FunctionDef))


def check_imports(path: str, tree: ast.Module) -> Iterator[Breach]:
    """Imports in costate/ point one way: load -> scene -> sim -> _native; what is built on top never sees _native."""
    part = path.split("/")[1].removesuffix(".py")
    for line, module, inside in imported(path, tree):
        target = module.split(".")[1] if module.startswith("costate.") else ""
        if target not in FORBIDDEN.get(part, ()):
            continue
        layout = module.startswith("costate._native.layout") and part == "scene"
        engine = module.startswith("costate._native.cpu") and path == "costate/scene/model.py" and inside
        call = part == "scene" and target in SIM and inside
        if not (layout or engine or call):
            yield line, f"{part} may not import {module}"


def check_tests(tree: ast.Module) -> Iterator[Breach]:
    """A test that checks nothing passes for ever."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            calls = [ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)]
            if not any(isinstance(n, ast.Assert) for n in ast.walk(node)) and not any(map(CHECK.search, calls)):
                yield node.lineno, f"{node.name} checks nothing"


# ---- all together --------------------------------------------------------------------------------------------------
def check_file(path: str, text: str) -> Iterator[Breach]:
    """All breaches in one file; `path` is relative to the root, with forward slashes."""
    lines, suffix = text.splitlines(), Path(path).suffix
    yield from check_text(lines)
    if suffix in CPP:
        code = code_only(text)
        found = functions(code)
        yield from check_size(path, lines, [(f.name, f.line, f.last) for f in found])
        if path.startswith("core/"):
            yield from check_core(path, lines, code)
        if path.startswith("core/") and not path.startswith("core/base/"):
            yield from check_adjoints(path, lines, found)
    elif suffix == ".py":
        tree = ast.parse(text, path)
        defs = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        yield from check_size(path, lines, [(n.name, n.lineno, n.end_lineno or n.lineno) for n in defs])
        if path.startswith("costate/"):
            yield from check_imports(path, tree)
        if path.startswith("tests/") and Path(path).name.startswith("test_"):
            yield from check_tests(tree)


def check(root: Path) -> list[str]:
    """All breaches under a root, as `path:line: rule`."""
    paths = [p for p in root.iterdir() if p.is_file()]
    paths += [p for folder in FOLDERS for p in (root / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    breaches = []
    for path in sorted(p for p in paths if p.suffix in TEXT and p.name != "LICENSE"):
        name = path.relative_to(root).as_posix()
        breaches += [f"{name}:{line}: {rule}" for line, rule in check_file(name, path.read_text(encoding="utf-8"))]
    return breaches


if __name__ == "__main__":
    found_breaches = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
    print("\n".join(found_breaches), end="\n" if found_breaches else "")
    sys.exit(bool(found_breaches))
