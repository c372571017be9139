"""What may touch what: the pairs of a loaded model against the contacts that MuJoCo finds when all geoms are near."""

from __future__ import annotations

import pytest

from costate.load import LoadWarning, UnsupportedFeature, load_string
from tests.load.compare import mujoco_touching, text_model, touching

TREE = """<mujoco>{option}<worldbody><geom name="floor" type="plane" size="1 1 1"{floor}/>
  <body name="wall" pos="5 0 0"><geom name="wall" size=".1"/><body name="lamp"><geom name="lamp" size=".1"/>
    <body name="swing"><joint/><geom name="swing" size=".1" pos="0 0 1"/></body></body></body>
  <body name="trunk" pos="0 0 1"><joint type="slide"/><joint/><geom name="trunk" size=".1"/>
    <body name="fixed"><geom name="fixed" size=".1" pos="1 0 0"/>
      <body name="leg" pos="0 1 0"><joint axis="1 0 0"/><joint axis="0 1 0"/><joint/><geom name="leg" size=".1"{leg}/>
        <body name="sole"><geom name="sole" size=".1" pos="0 0 1"/>
          <body name="toe"><joint/><geom name="toe" size=".1" pos="0 0 2"{toe}/></body></body></body></body></body>
  <body name="ball" pos="3 0 0"><freejoint/><geom name="ball" size=".1"/>
    <geom name="skin" size=".2" contype="0" conaffinity="0"/></body>
  <body name="hand" mocap="true"><geom name="hand" size=".1"/></body>
</worldbody><contact>{contact}</contact></mujoco>"""
PLAIN = {"option": "", "floor": "", "leg": "", "toe": "", "contact": ""}

CASES = {
    "default": {},
    "bits": {
        "floor": ' contype="2" conaffinity="4"',
        "leg": ' contype="4" conaffinity="0"',
        "toe": ' contype="0" conaffinity="6"',
    },
    "negative bits": {"toe": ' contype="-1" conaffinity="0"', "leg": ' contype="0" conaffinity="-2"'},
    "exclude": {"contact": '<exclude body1="trunk" body2="toe"/><exclude body1="ball" body2="world"/>'},
    "exclude of a welded body": {"contact": '<exclude body1="fixed" body2="ball"/>'},
    "pair that bits forbid": {
        "toe": ' contype="0" conaffinity="0"',
        "contact": '<pair geom1="toe" geom2="ball"/><pair geom1="toe" geom2="trunk"/>',
    },
    "pair that is there anyway": {"contact": '<pair geom1="toe" geom2="ball"/>'},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pairs_are_mujocos(case):
    text = TREE.format(**{**PLAIN, **case})
    m = text_model(text)
    theirs = mujoco_touching(m, [m.geom(i).name for i in range(m.ngeom)])
    ours = touching(load_string(text))
    still = {frozenset(("hand", other)) for other in ("floor", "wall", "lamp")}  # MuJoCo finds contacts of two that cannot move
    assert ours == theirs - still and len(ours) > 5


def test_parents_that_may_touch_are_refused():
    text = TREE.format(**{**PLAIN, "option": '<option><flag filterparent="disable"/></option>'})
    with pytest.raises(UnsupportedFeature, match="filterparent"):
        load_string(text)


def test_a_pair_of_parent_and_child_is_refused():
    with pytest.raises(UnsupportedFeature, match="pair 'p': contact between bodies"):
        load_string(TREE.format(**{**PLAIN, "contact": '<pair name="p" geom1="sole" geom2="toe"/>'}))


def test_a_pair_with_friction_of_its_own_is_approximated():
    with pytest.warns(LoadWarning, match="pair 'p': friction and condim of its own"):
        load_string(TREE.format(**{**PLAIN, "contact": '<pair name="p" geom1="ball" geom2="toe" friction=".1 .1 .1 .1 .1"/>'}))


def test_priority_is_approximated_where_it_matters():
    with pytest.warns(LoadWarning, match="geom 'leg': priority"):
        load_string(TREE.format(**{**PLAIN, "leg": ' priority="2" friction=".1"'}))
    load_string(TREE.format(**{**PLAIN, "leg": ' priority="2"'}))


def test_shapes_that_touch_nothing_are_kept_but_for_meshes():
    model = load_string(TREE.format(**PLAIN))
    skin = model.shapes[model.body("ball")][1]
    assert skin.name == "skin" and not skin.collide and "skin" not in model.shape_names


def test_self_collision_and_collisions_can_be_switched_off():
    text = TREE.format(**PLAIN)
    assert frozenset(("trunk", "toe")) in touching(load_string(text))
    pairs = touching(load_string(text, self_collision=False))
    assert frozenset(("trunk", "toe")) not in pairs and frozenset(("ball", "toe")) in pairs
    assert not touching(load_string(text, collisions=False))


def test_the_larger_friction_counts_as_in_mujoco():
    model = load_string(TREE.format(**{**PLAIN, "leg": ' friction=".3 .01 .001"'}))
    assert model.friction_rule == model.restitution_rule == 1
    assert model.defaults["friction"][model.shape("leg")] == 0.3 and not model.defaults["restitution"].any()
