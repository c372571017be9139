"""Find the function definitions of a C++ file without a compiler: strip comments, then match braces.

Good enough for code in the house style, and silent where it is unsure (macros, lambdas, unusual initialisers).
"""

import re
from typing import NamedTuple

COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
NAMESPACE_MACRO = re.compile(r"\bCS_(BEGIN|END)\b")
SCOPE = re.compile(r"\b(namespace|struct|class|union|extern)\b")
# The first name with an argument list, apart from words and macros that only look like one.
NAME = re.compile(r"\b(?!(?:decltype|alignas|noexcept|requires|sizeof)\b|__|CS_)(operator\b.*?|[A-Za-z_]\w*)\s*\(", re.S)
# What may stand between the arguments and the body: qualifiers, a trailing return type, a constructor's initialisers.
BODY = re.compile(r"\)\s*(?:(?:const|noexcept|override|final|&&?)\s*)*(?:->[^={]*|:\s.*)?$", re.S)


class Function(NamedTuple):
    """A function definition; lines count from 1 and include the template line and the closing brace."""

    name: str
    line: int
    last: int
    template: bool  # a template over a type (not only over numbers)
    member: bool  # of a struct or class


def blank(match: re.Match[str]) -> str:
    """Spaces of the same length and lines; a string keeps its quotes."""
    text = re.sub(r"[^\n]", " ", match[0])
    return f'"{text[1:-1]}"' if match[0].startswith('"') else text


def code_only(text: str) -> str:
    """The text with comments, string contents and preprocessor lines blanked; positions stay."""
    text = PREPROCESSOR.sub(blank, COMMENT_OR_STRING.sub(blank, text))
    return NAMESPACE_MACRO.sub(lambda match: " " * (len(match[0]) - 1) + ";", text)


def without_template(head: str) -> tuple[str, bool]:
    """A declaration without its leading template<...> parts, and whether they name a type."""
    types = False
    while match := re.match(r"\s*template\s*<", head):
        depth, end = 1, match.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        types |= bool(re.search(r"\b(class|typename)\b", head[:end]))
        head = head[end:]
    return head, types


def function_name(head: str) -> str | None:
    """The name if this text before a brace declares a function, else None."""
    match = NAME.search(head)
    if not match or not BODY.search(head) or "=" in head[: match.start()]:
        return None
    return re.sub(r"\s+", "", match[1])


def functions(code: str) -> list[Function]:
    """All function definitions of a text made by code_only, in order."""
    found: list[Function] = []
    scopes: list[str] = []  # of the open braces: namespace, struct, other
    start, parens, i = 0, 0, 0
    while i < len(code):
        c = code[i]
        parens += (c == "(") - (c == ")")
        if c == "{" and not parens:
            raw = code[start:i]
            head, template = without_template(raw)
            name = function_name(head)
            scope = SCOPE.search(head.split("(")[0])
            if name and not (scope and scope[1] == "namespace"):
                end = closing(code, i)
                first = start + len(raw) - len(raw.lstrip())
                member = any(s != "namespace" for s in scopes)
                found.append(Function(name, code.count("\n", 0, first) + 1, code.count("\n", 0, end) + 1, template, member))
                i = end
            elif scope:
                scopes.append("namespace" if scope[1] in ("namespace", "extern") else "struct")
            else:
                i = closing(code, i)
            start = i + 1
        elif c == "}" and not parens:
            if scopes:
                scopes.pop()
            start = i + 1
        elif c == ";" and not parens:
            start = i + 1
        i += 1
    return found


def closing(code: str, opening: int) -> int:
    """The index of the brace that closes the one at `opening` (the end of the text if none does)."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1
