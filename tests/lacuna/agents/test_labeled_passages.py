"""The rule against the labels of a person, as docs/session.md states it."""

from __future__ import annotations

from tools import recognition

FEWEST_TEXTS = 200
MOST_UNCERTAIN = 0.10  # of records in texts that were not written to be hard
LEAST_AGREEMENT = 0.90
MOST_OPPOSITE = 0.01  # present for absent, or absent for present: a wrong cause would be claimed


def test_the_rule_agrees_with_a_person_and_is_rarely_uncertain():
    judged = recognition.judge_passages()
    assert len({one.texts for one in judged}) >= FEWEST_TEXTS
    assert recognition.agreement(judged) >= LEAST_AGREEMENT
    natural = [one for one in judged if not one.system.endswith(recognition.BY_HAND)]
    assert len({one.texts for one in natural}) >= FEWEST_TEXTS
    assert recognition.uncertain_share(natural) <= MOST_UNCERTAIN
    opposite = [one for one in judged if {one.truth, one.verdict} == {"present", "absent"}]
    assert len(opposite) <= MOST_OPPOSITE * len(judged)
    assert not [one for one in opposite if one in natural]


def test_the_page_has_the_agreement_as_it_is():
    judged = recognition.judge_passages()
    agreed, uncertain = (sum(one.agrees for one in judged), sum(one.verdict == "uncertain" for one in judged))
    page = " ".join((recognition.ROOT / "docs" / "session.md").read_text("utf-8").split())
    assert f"On {len(judged)} records in labeled passages" in page
    assert f"agrees with a person on {agreed}; it calls {uncertain} uncertain" in page
