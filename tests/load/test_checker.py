"""The XML checker: what it reads, what it refuses, and what it writes for MuJoCo."""

from __future__ import annotations

import pytest

from costate.load import LoadError, check, load_string
from costate.load.check import parse, write

BODY = '<body name="b"><joint/><geom size=".1" pos="0 0 1"/></body>'


def check_refused(data: str | bytes, match: str) -> None:
    with pytest.raises(LoadError, match=match):
        parse(data.encode() if isinstance(data, str) else data, "x.xml")


def test_elements_attributes_and_lines():
    root = parse(b'<?xml version="1.0"?>\n<a x="1">\n  <!-- no -->\n  <b y="&lt;&amp;&quot;"/>text\n<c/></a>', "x.xml")
    assert (root.tag, root.attributes, root.line) == ("a", {"x": "1"}, 2)
    assert [(node.tag, node.attributes, node.line) for node in root.children] == [("b", {"y": '<&"'}, 4), ("c", {}, 5)]
    assert [node.tag for node in root.walk()] == ["a", "b", "c"]


def test_writing_and_reading_again_keeps_all():
    text = '<a x="1 &lt; 2">\n<b y="&quot;&apos;&amp;">\n\n<c/></b><d z="&#10;é"/></a>'
    first = parse(text.encode(), "x.xml")
    assert parse(write(first).encode(), "x.xml") == first


def test_sloppy_files_are_read():
    assert parse(b'\n  <?xml version="0.0" ?>\n<a/>', "x.xml").line == 3
    assert parse('\ufeff<a x="ü"/>'.encode(), "x.xml").attributes == {"x": "ü"}
    assert parse('<?xml version="1.0" encoding="iso-8859-1"?><a x="ü"/>'.encode("latin-1"), "x.xml").attributes == {"x": "ü"}
    assert parse('<a x="ü"/>'.encode("utf-16"), "x.xml").attributes == {"x": "ü"}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "must hold an XML element, got none|no element found"),
        (b"   \n", "no element found"),
        (b"\xff\xfe\x00", "not well-formed XML"),
        (b"\x00" * 100, "not well-formed XML, line 1"),
        ("<a>\n<b></a>", "x.xml: not well-formed XML, line 2, column 6: mismatched tag"),
        ("<a><b/>", "no element found"),
        ('<a x="1" x="2"/>', "duplicate attribute"),
        ("<a/><a/>", "junk after document element"),
        ("<a>&nothing;</a>", "undefined entity"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "unknown encoding|cannot be decoded"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "document type"),
        ('<!DOCTYPE a SYSTEM "http://example.com/a.dtd"><a/>', "document type"),
    ],
)
def test_what_is_no_xml_is_refused(data, match):
    check_refused(data, match)


def test_bounds(monkeypatch):
    check_refused("<a>" * 201 + "</a>" * 201, "nests elements deeper than 200")
    assert parse(("<a>" * 200 + "</a>" * 200).encode(), "x.xml").tag == "a"
    monkeypatch.setattr(check, "MAX_ELEMENTS", 10)
    check_refused(f"<a>{'<b/>' * 10}</a>", "more than 10 elements")
    monkeypatch.setattr(check, "MAX_BYTES", 100)
    check_refused(b" " * 101, "must be at most 0 MiB")
    monkeypatch.setattr(check, "MAX_BYTES", 2**20)
    many = " ".join(f'a{i}=""' for i in range(201))
    check_refused(f"<a {many}/>", "201 attributes, more than 200")
    check_refused(f"<{'a' * 10_001}/>", "a name longer than 10,000")


def test_errors_of_the_compiler_name_element_and_line():
    frog = '<body><joint type="frog"/></body>'
    text = f"<mujoco>\n<!-- a comment\nof two lines -->\n<worldbody>\n{BODY}\n  {frog}</worldbody></mujoco>"
    with pytest.raises(LoadError, match=r"<string>: MuJoCo's compiler says: .*'frog'.* Element 'joint', line 6"):
        load_string(text)


@pytest.mark.parametrize("text", ["<html/>", "<mujocoinclude/>", "<a><mujoco/></a>"])
def test_another_root_is_refused(text):
    with pytest.raises(LoadError, match=r"root element must be <mujoco> or <robot>, got <"):
        load_string(text)


def test_a_model_without_bodies_is_refused():
    with pytest.raises(LoadError, match="at least one body besides the world"):
        load_string("<mujoco><worldbody/></mujoco>")
