"""What costate cannot represent is refused by name, all of it at once, or left out with a warning each."""

from __future__ import annotations

import pickle
import warnings

import pytest

from costate.load import LoadError, LoadWarning, UnsupportedFeature, load_string

BODIES = """<mujoco><worldbody><body name="a"{body}><joint name="j"{joint}/><geom name="g" size=".1" pos="0 0 1"{geom}/>
  <body name="b"><joint name="k"/><geom name="h" size=".1" pos="1 0 0"/><site name="s"/></body></body>
  <geom name="i" size=".1" pos="9 0 0"/></worldbody>{more}</mujoco>"""
PLAIN = {"body": "", "joint": "", "geom": "", "more": ""}
FIXED = '<tendon><fixed name="t"{}><joint joint="j" coef="1"/><joint joint="k" coef="2"/></fixed></tendon>'

REFUSED = {
    "tendon 't': stiffness": {"more": FIXED.format(' stiffness="3"')},
    "tendon 't': damping": {"more": FIXED.format(' damping="3"')},
    "tendon 't': limited": {"more": FIXED.format(' range="0 1" limited="true"')},
    "tendon 't': frictionloss": {"more": FIXED.format(' frictionloss="1"')},
    "body 'a': gravcomp": {"body": ' gravcomp="1"'},
    "<option density='1.2' viscosity='0'>: forces of a fluid": {"more": '<option density="1.2"/>'},
    "<flag override='enable'>": {"more": '<option><flag override="enable"/></option>'},
    "<flag actuation='disable'>": {"more": '<option><flag actuation="disable"/></option>'},
    "<option actuatorgroupdisable>": {"more": '<option actuatorgroupdisable="2"/>'},
}


@pytest.mark.parametrize(("line", "parts"), REFUSED.items(), ids=REFUSED.keys())
def test_refused_or_left_out(line, parts):
    text = BODIES.format(**{**PLAIN, **parts})
    with pytest.raises(UnsupportedFeature) as caught:
        load_string(text)
    assert any(element.startswith(line) for element in caught.value.elements)
    assert str(caught.value).startswith("<string>: costate cannot represent the following") and "strict=False" in str(
        caught.value
    )
    with pytest.warns(LoadWarning, match="<string>: left out: "):
        assert load_string(text, strict=False).nv == 2


def test_all_of_it_at_once():
    text = BODIES.format(**{**PLAIN, "body": ' gravcomp="1"', "more": FIXED.format(' stiffness="3"') + '<option density="1"/>'})
    with pytest.raises(UnsupportedFeature) as caught:
        load_string(text)
    assert len(caught.value.elements) == 3
    assert isinstance(caught.value, LoadError) and isinstance(caught.value, ValueError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.elements == caught.value.elements and str(copy) == str(caught.value)


def test_flexes_are_refused():
    flex = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" mass="1" radius=".01"/>'
    text = BODIES.format(**PLAIN).replace("<worldbody>", f"<worldbody>{flex}", 1)
    with pytest.raises(UnsupportedFeature, match="flex 'cloth'"):
        load_string(text)


def test_what_only_measures_or_is_drawn_is_ignored():
    more = (
        FIXED.format("")
        + '<sensor><jointpos joint="j"/><touch site="s"/></sensor><statistic extent="3"/><visual><rgba haze="1 1 1 1"/></visual>'
        + '<custom><numeric name="n" data="1 2"/><text name="x" data="y"/></custom>'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_string(BODIES.format(**{**PLAIN, "more": more})).nv == 2


APPROXIMATED = {
    "integrator='RK4'": {"more": '<option integrator="RK4"/>'},
    "integrator='implicit'": {"more": '<option integrator="implicit"/>'},
    "eulerdamp": {"joint": ' damping="1"', "more": '<option><flag eulerdamp="disable"/></option>'},
    "geom 'g': margin": {"geom": ' margin=".01"'},
    "joint 'j': solreflimit": {"joint": ' range="-1 1" limited="true" solreflimit=".1 1"'},
    "joint 'j': .* margin; limits are rigid": {"joint": ' range="-1 1" limited="true" margin=".1"'},
    "joint 'j': solreffriction": {"joint": ' frictionloss="1" solreffriction=".1 1"'},
}


@pytest.mark.parametrize(("line", "parts"), APPROXIMATED.items(), ids=APPROXIMATED.keys())
def test_approximated_with_a_warning(line, parts):
    with pytest.warns(LoadWarning, match=line):
        load_string(BODIES.format(**{**PLAIN, **parts}))


@pytest.mark.parametrize(
    "option",
    ['integrator="Euler"', 'integrator="implicitfast"', 'cone="elliptic"', 'cone="pyramidal"', 'impratio="10"', 'solver="CG"'],
)
def test_honoured_without_a_warning(option):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_string(BODIES.format(**{**PLAIN, "more": f"<option {option}/>"})).nv == 2
