"""What workers may not ask or tell, and how it is said."""

import pytest
from leased_studies import SECRET, make_study, tell_rest

import surepick as sp


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"worker": ""}, "worker is ''; give a name"),
        ({"worker": "  "}, "give a name, so that we know who holds the lease"),
        ({"worker": 7}, "worker is 7; give a name"),
        ({"max_pulls": 0}, "max_pulls is 0"),
        ({"max_pulls": 2.5}, "max_pulls is 2.5"),
        ({"worker": "ann", "duration": "soon"}, "'soon' is not a duration; write a positive one"),
        ({"duration": -5}, "-5 is not a duration"),
    ],
)
def test_terms_that_are_refused(study, terms, said):
    with pytest.raises(sp.InvalidInput, match=said):
        study.lease(**terms)
    assert study.progress().free == 9


REFUSED = {
    "no such plan": (lambda s: s.tell(["a"], [SECRET], plan=7), "plan is 7; the study has opened 1 plans so far"),
    "plan zero": (lambda s: s.tell(["a"], [SECRET], plan=0), "plan is 0; .* numbered from 1"),
    "unknown arm": (lambda s: s.tell(["z"], [SECRET]), "1 ids are not arms of this study, the first is 'z'"),
    "one text": (lambda s: s.tell("ab", [SECRET, 1.0]), r"ids is 'ab'; give a sequence of ids, \['ab'\] for one"),
    "few keys": (lambda s: s.tell(["a", "b"], [SECRET, 1.0], ["k"]), "1 keys for 2 results; give one key per result"),
    "empty key": (lambda s: s.tell(["a"], [SECRET], [""]), "a key is empty; leave the keys away"),
    "two values": (lambda s: s.tell(["a", "a"], [SECRET, 1.0], ["k", "k"]), "key 'k' .* give it a key of its own"),
    "other value": (
        lambda s: s.tell(["a"], [1.0], ["seen"]),
        "key 'seen' was reported before with another value; a key",
    ),
    "other arm": (
        lambda s: s.tell(["b"], [SECRET], ["seen"]),
        "key 'seen' was reported before of arm 'a'; a key names",
    ),
    "other prior": (
        lambda s: s.tell_prior(["a"], [1.0], ["seen"]),
        "key 'seen' was reported before with another value",
    ),
    "no reason": (lambda s: s.abandon("  "), "an abandonment needs its reason: independent-of-value if"),
    "no such pull": (lambda s: s.fail(["c"], ["p1.9@c"]), "looks like one that ask gave. and this study never gave it"),
    "failed keys": (lambda s: s.fail(["a", "a"], ["p1.0@a"]), "1 keys for 2 results"),
    "no totals": (lambda s: s.tell_totals(["a"], [0], [SECRET]), "belong to no pull"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_calls_that_are_refused(study, what):
    """Nothing of them is stored, and no reward of the open plan is shown."""
    call, said = REFUSED[what]
    study.lease(max_pulls=2, worker="ann")
    study.tell(["a"], [SECRET], keys=["seen"])
    before = study.progress()
    with pytest.raises(sp.InvalidInput, match=said) as refusal:
        call(study)
    assert study.progress() == before
    if what != "no totals":
        assert str(SECRET)[:4] not in str(refusal.value)


def test_an_arm_that_was_not_asked_is_refused(clock):
    study = make_study(clock, sigma=1.0, name="lucb")
    study.ask()
    tell_rest(study)
    assert study.ask().counts.tolist() == [1, 1, 0]
    with pytest.raises(sp.InvalidInput, match=r"1 results are of arms .* 'c'.* To keep such results apart: tell_prior"):
        study.tell(["a", "c"], [1.0, 1.0])
    assert study.missing.tolist() == [1, 1, 0]


def test_a_text_is_no_list_of_ids(study):
    study.ask()
    with pytest.raises(sp.InvalidInput, match="give a sequence of ids"):
        study.fail("a")
