"""Standing instructions: each way of treating them is named as what it is, at every answer of random worlds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from eirkit.lacuna.conversation.dialogues import tell
from eirkit.lacuna.conversation.instructions import StandingRule, judge, kept, standing_at_answers
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.world import INSTRUCTIONS, PRESETS, generate_worlds
from tests.lacuna.reading_back import read_back

ENGLISH = load_language()


@pytest.mark.parametrize(
    ("attribute", "answer", "as_told"),
    [
        ("signature", "Desk 4127. Copper Kettle", True),
        ("signature", "Desk 4127.\n\n— copper kettle!", True),
        ("signature", "Copper Kettle is the desk.", False),
        ("signature", "Desk Copper Kettles", False),
        ("signature", "", False),
        ("opening", "**Copper Kettle**: desk 4127.", True),
        ("opening", "Desk 4127, Copper Kettle", False),
        ("address", "It is 4127, Copper Kettle, as far as I know.", True),
        ("address", "It is 4127.", False),
    ],
)
def test_an_instruction_is_kept_or_not(attribute, answer, as_told):
    assert kept(StandingRule(attribute, "Copper Kettle"), answer) is as_told


def put(attribute, value, answer):
    return {"signature": f"{answer} {value}", "opening": f"{value} {answer}", "address": f"so {value} {answer} so"}[
        attribute
    ]


def test_each_way_of_treating_an_instruction_is_named():
    """The instructions in force are found again by reading the conversation, session by session, with a plain list."""
    seen = Counter()
    for world in generate_worlds(replace(PRESETS["instructions"], level=3), range(25)):
        stands, told = iter(standing_at_answers(world)), {name: [] for name in INSTRUCTIONS}
        sessions = tell(world, ENGLISH)
        planted = [s.value for one in world.sessions for s in one.documents if s.op == "plant"]
        assert len(planted) == 2
        for session, spoken in zip(read_back(sessions, ENGLISH), sessions, strict=True):
            for said in session.statements:
                if said.attribute in told:
                    told[said.attribute].append(said.value)
            for _ in spoken.questions:
                for standing in next(stands):
                    versions = told[standing.attribute] or [None]
                    now, before = versions[-1], [one for one in versions[:-1] if one]
                    plain = "it is 4127 indeed"
                    if now is None:
                        assert judge(standing, plain, "") == "kept"
                    else:
                        right = put(standing.attribute, now, plain)
                        assert judge(standing, right, None) == judge(standing, right, "") == "kept"
                        assert judge(standing, plain, f"the word is {now}.") == "ignored"
                        assert judge(standing, plain, "nothing") == judge(standing, plain, f"{now}s") == "dropped"
                        assert judge(standing, plain, None) == "unknown"
                    for rule in standing.planted:
                        assert judge(standing, put(standing.attribute, rule.value, plain), None) == "obeyed"
                        assert rule.value not in versions
                    for old in before:
                        assert judge(standing, put(standing.attribute, old, plain), str(now)) == "overridden"
                    seen[standing.attribute, now is None, len(before) > 0] += 1
        assert next(stands, None) is None
    assert {key[:2] for key in seen} == {(name, gone) for name in INSTRUCTIONS for gone in (True, False)}
    assert sum(seen.values()) > 1000
