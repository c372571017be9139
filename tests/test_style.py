"""The house rules hold in this repository, and the checkers see what they should see."""

from pathlib import Path

import check_style
import cpp_scan
import gen_layout
import pytest

ROOT = Path(__file__).parents[1]


def rules(path: str, text: str) -> list[str]:
    return [f"{line}: {rule}" for line, rule in check_style.check_file(path, text)]


def test_repository_keeps_the_house_rules():
    assert check_style.check(ROOT) == []


def test_layout_is_up_to_date():
    assert (ROOT / gen_layout.LAYOUT).read_text() == gen_layout.render((ROOT / gen_layout.HEADER).read_text())


# ---- planted breaches, with the line where each must be reported --------------------------------------------------
MARK = "TO" + "DO"
LONG_PY = "def f():\n" + "    x = 1\n" * 80
LONG_CC = "void f() {\n" + "  g();\n" * 79 + "}\n"
PLANTED = {
    "leftover": ("docs/a.md", f"fine\n{MARK}: more\n", f"2: leftover mark {MARK}"),
    "dead": ("bench/a.py", "if " + "False:\n    x = 1\n", "1: dead code behind a false condition"),
    "dead C++": ("drivers/a.cc", "#if" + " 0\n#endif\n", "1: dead code behind a false condition"),
    "machine path": ("examples/a.py", "open('/t" + "mp/x')\n", "1: machine path /t" + "mp/"),
    "long file": ("drivers/a.cc", "\n" * 401, "1: file has 401 lines, over 400"),
    "long function": ("costate/a.py", LONG_PY, "1: function f has 81 lines, over 80"),
    "long C++ function": ("drivers/a.cc", LONG_CC, "1: function f has 81 lines, over 80"),
    "include": ("core/math/a.h", "#include <vector>\n", "1: core/ may not include <vector>"),
    "intrinsics": ("core/ops/a.h", "#include <immintrin.h>\n", "1: core/ may not include <immintrin.h>"),
    "allocation": ("core/base/a.h", "// a new one\nint* f() { return new int; }\n", "2: core/ may not use new"),
    "exception": ("core/step.h", "inline void f() {\n  throw 1;\n}\n", "2: core/ may not use throw"),
    "native in app": ("costate/env/a.py", "from costate._native import cpu\n", "1: env may not import costate._native.cpu"),
    "native in scene": (
        "costate/scene/a.py",
        "from .._native.cpu import Engine\n",
        "1: scene may not import costate._native.cpu.Engine",
    ),
    "eager engine": ("costate/scene/model.py", "import costate._native.cpu\n", "1: scene may not import costate._native.cpu"),
    "upwards": ("costate/_native/cpu.py", "def f():\n    from costate import sim\n", "2: _native may not import costate.sim"),
    "empty test": ("tests/test_a.py", "def test_a():\n    print(1)\n", "1: test_a checks nothing"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_breach_is_reported(name):
    path, text, expected = PLANTED[name]
    assert rules(path, text) == [expected]


CLEAN = {
    "layout in scene": ("costate/scene/params.py", "from .._native.layout import FIELDS\n"),
    "lazy engine": ("costate/scene/model.py", "def f():\n    from costate._native.cpu import Engine\n"),
    "lazy dynamics": ("costate/scene/model.py", "def f():\n    from costate import dynamics\n"),
    "types only": ("costate/_native/cpu.py", "if TYPE_CHECKING:\n    from costate.scene.model import Model\n"),
    "intrinsics": ("core/base/pack.h", "#include <immintrin.h>\n#include <cmath>\n"),
    "web address": ("docs/a.md", "https://example.org/home/page and build/tmp/x\n"),
    "raises": ("tests/a/test_a.py", "def test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
    "80 lines": ("drivers/a.cc", LONG_CC.replace("  g();\n", "", 1)),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_file_passes(name):
    assert rules(*CLEAN[name]) == []


# ---- adjoints ------------------------------------------------------------------------------------------------------
F = "template <class T> CS_FN T f(T x) { return x * x; }\n"
F_ADJ = "template <class T>\nCS_FN void f_adj(T x, T y_bar, T& x_bar) {\n  x_bar += 2.0 * x * y_bar;\n}\n"
HELPER = "inline int helper(int i) { return i; }\n"
REASON = "// no adjoint: sorts indices\n// in place\n"
MEMBER = "struct S {\n  template <class T> T norm(T x) const { return x; }\n};\n"
ADJOINTS = {
    "pair": (F + F_ADJ, []),
    "after CS_BEGIN": ("CS_BEGIN\n" + F + F_ADJ + "CS_END\n", []),
    "overloads": (F + F + F_ADJ + F_ADJ, []),
    "not templates": (HELPER + "template <int N> int count() { return N; }\n", []),
    "member": (MEMBER, []),
    "operator": ("template <class T> Vec3<T> operator+(Vec3<T> a, Vec3<T> b) { return {a.x + b.x}; }\n", []),
    "reason": (REASON + F, []),
    "reason of a lone adjoint": (REASON + F_ADJ, []),
    "marked piece between": (F + REASON + HELPER + F_ADJ, []),
    "missing": (F, ["1: f has no f_adj below and no '// no adjoint: <reason>' above"]),
    "no reason given": ("// no adjoint:\n" + F, ["2: f has no f_adj below and no '// no adjoint: <reason>' above"]),
    "helper between": (F + HELPER + F_ADJ, ["3: f_adj must be the next definition after f"]),
    "adjoint first": (F_ADJ + F, ["1: f_adj must be the next definition after f"]),
}


@pytest.mark.parametrize("name", ADJOINTS)
def test_adjoint_order(name):
    text, expected = ADJOINTS[name]
    assert rules("core/ops/a.h", text) == expected
    assert rules("core/base/a.h", text) == []


def test_cpp_scan_finds_definitions_only():
    text = r"""
// void comment() {}
template <class T> CS_FN T declared(T x);
#define MACRO(x) void in_macro() { \
  x; }
namespace a::b {
struct P : Q { P(int n) : n(n) {} int n = 0; int twice() const { return 2 * n; } };
static const int table[] = {f(1), 2};
inline auto lambda = [](int i) { return i; };
enum class E { one, two };
extern "C" int exported(const char* s = "{(") { if (s) { return 1; } return '{'; }
auto trailing(P p = {}) -> int { return p.n; }
}
"""
    found = cpp_scan.functions(cpp_scan.code_only(text))
    assert [f.name for f in found] == ["P", "twice", "exported", "trailing"]
    assert [f.member for f in found] == [True, True, False, False]
    assert [f.line for f in found] == [7, 7, 11, 12]


# ---- the generated layout ------------------------------------------------------------------------------------------
def test_layout_reads_both_kinds_of_table():
    plain = "// CS_FIELD(no, body, 1)\n  CS_FIELD(gravity,  world,  3)   // m/s^2\nCS_FIELD(mass, body, 1)\n"
    macro = "#define CS_FIELDS(CS_FIELD) \\\n  CS_FIELD(gravity, world, 3) /* m/s^2 */ \\\n  CS_FIELD(mass, body, 1, Vec3<T>)\n"
    expected = [("gravity", "world", 3, "m/s^2"), ("mass", "body", 1, "")]
    assert gen_layout.parse(plain) == gen_layout.parse(macro) == expected
    module: dict = {}
    exec(gen_layout.render(plain), module)
    assert [tuple(field) for field in module["FIELDS"]] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no CS_FIELD"),
        ("CS_FIELD(mass, planet, 1)\n", "per 'planet'"),
        ("CS_FIELD(mass, body, n)\n", ":1: not CS_FIELD"),
        ("CS_FIELD(mass, body, 1)\nCS_FIELD(mass, body, 1)\n", ":2: mass is listed twice"),
    ],
)
def test_layout_refuses_a_bad_table(text, message):
    with pytest.raises(ValueError, match=message):
        gen_layout.parse(text)
