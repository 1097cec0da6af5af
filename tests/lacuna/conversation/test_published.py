"""Files of LongMemEval and MEME, by small samples of our own with the same fields, and our worlds in the same form."""

from __future__ import annotations

import json
import sys
from datetime import date

import pytest

from eirkit.errors import InputFileError
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.published import PublishedFile, label_world
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.world import PERSONAL, PRESETS, generate_worlds
from tests.processes import completed


def turns(*texts, marked=()):
    said = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    for n in marked:
        said[n]["has_answer"] = True
    return said


LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "Where is my bicycle?",
        "answer": 12,
        "question_date": "2031/03/05 (Wed) 10:00",
        "haystack_dates": ["2031/02/05 (Wed) 09:00", "2031/01/05 (Sun) 09:00"],
        "haystack_session_ids": ["late", "early"],
        "answer_session_ids": ["late"],
        "haystack_sessions": [
            turns("It is in shed 12 now.", "Noted.", marked=(0,)),
            turns("It is in shed 3.", "Noted."),
        ],
    },
    {
        "question_id": "q2_abs",
        "question_type": "single-session-user",
        "question": "What is my boat called?",
        "answer": "You did not say.",
        "question_date": "2031/03/05 (Wed) 10:00",
        "haystack_session_ids": ["only"],
        "haystack_dates": ["2031/01/05 (Sun) 23:59"],
        "haystack_sessions": [turns("Hello.", "Hello.")],
        "answer_session_ids": [],
    },
]
MEME = [
    {
        "episode_id": "e1",
        "sessions": [
            {
                "session_id": "a",
                "type": "evidence",
                "timestamp": "2031/01/05 (Sun) 09:00",
                "conversation": turns("I drive a Milvek.", "Nice."),
                "gold_facts": [{"entity": "vehicle", "value": "Milvek"}],
            },
            {
                "session_id": "b",
                "type": "filler",
                "timestamp": "2031/01/06 (Mon) 09:00",
                "conversation": turns("Hi.", "Hi."),
            },
            {
                "session_id": "c",
                "type": "evidence",
                "timestamp": "2031/01/07 (Tue) 09:00",
                "conversation": turns("I live in Kornaf.", "Nice."),
                "gold_facts": [{"entity": "home", "value": "Kornaf"}],
            },
        ],
        "before_questions": {
            "timestamp": "2031/01/06 (Mon) 12:00",
            "position_after_session": 1,
            "questions": [
                {"task_type": "Cas", "question": "What do I drive?", "expected_answer": "Milvek", "entity": ["vehicle"]}
            ],
        },
        "after_questions": {
            "timestamp": "2031/01/08 (Wed) 12:00",
            "position_after_session": 2,
            "questions": [
                {"task_type": "ER", "question": "Where do I live?", "gold_answer": "Kornaf", "entity": ["home"]},
                {"task_type": "Agg", "question": "What do you know?", "gold_answer": "Milvek, Kornaf"},
            ],
        },
    },
]


def written(path, content):
    path.write_text(json.dumps(content))
    return path


def test_longmemeval(tmp_path):
    first, second = PublishedFile(written(tmp_path / "l.json", LONGMEMEVAL))
    assert [session.messages[0].text for session in first.sessions] == ["It is in shed 3.", "It is in shed 12 now."]
    assert [session.day for session in first.sessions] == [date(2031, 1, 5).toordinal(), date(2031, 2, 5).toordinal()]
    (asked,) = first.questions
    assert (asked.text, asked.answer, asked.kind) == ("Where is my bicycle?", "12", "knowledge-update")
    assert (asked.after, asked.sessions, asked.turns) == (2, (1,), ((1, 0),))
    assert asked.day == date(2031, 3, 5).toordinal()
    assert second.questions[0].kind == "abstention"
    assert (second.questions[0].sessions, second.questions[0].turns) == ((), None)


def test_meme(tmp_path):
    (episode,) = PublishedFile(written(tmp_path / "m.json", MEME))
    assert [len(session.messages) for session in episode.sessions] == [2, 2, 2]
    early, home, both = episode.questions
    assert (early.answer, early.after, early.sessions, early.turns) == ("Milvek", 2, (0,), None)
    assert (home.answer, home.after, home.sessions, home.kind) == ("Kornaf", 3, (2,), "ER")
    assert both.sessions == (0, 2)  # not labeled by entity: every session with evidence


@pytest.mark.parametrize("content", [{}, [{}], [3], [{"haystack_sessions": []}], "x", [{**MEME[0], "sessions": 3}]])
def test_another_file_is_refused(tmp_path, content):
    path = written(tmp_path / "other.json", content)
    with pytest.raises(InputFileError, match=r"other.json is no file of LongMemEval or MEME .*; download it again"):
        list(PublishedFile(path))


def test_evidence_of_a_world_is_where_the_answer_was_said():
    """A value that is the answer stands in a labeled turn, and questions about what was never said have none."""
    language, checked = load_language(), 0
    for world in generate_worlds(PRESETS["standard"], range(4)):
        dialogue = label_world(world, language)
        assert [one.answer for one in dialogue.questions].count("unknown") > 0
        for asked, (question, answer, ability) in zip(dialogue.questions, answers(world), strict=True):
            texts = [dialogue.sessions[s].messages[t].text for s, t in asked.turns]
            assert {s for s, _ in asked.turns} == set(asked.sessions)
            if isinstance(answer, str) and question.form in ("now", "before", "as_of") and question.attribute != "lead":
                checked += 1
                assert any(answer in text for text in texts), asked
            if ability == "abstention" and question.form == "now":
                assert not texts
    assert checked > 60


@pytest.mark.parametrize("preset", ["small", "instructions"])
def test_the_command_tells_where_and_how_long_ago_the_evidence_was_said(preset):
    command = [sys.executable, "-m", "eirkit", "lacuna", "words", "--preset", preset, "--seed", "12", "--json"]
    data, found = json.loads(completed(command, check=True).stdout), 0
    for asked in data["questions"]:
        heard = [(s, t) for s, session in enumerate(data["sessions"]) if session["day"] <= asked["day"]
                 for t in range(len(session["messages"]))]  # fmt: skip
        places = [(s, t) for s, t in asked["evidence"]]
        assert all(data["sessions"][s]["messages"][t]["role"] == "user" for s, t in places)
        assert asked["turns_since"] == (len(heard) - 1 - heard.index(places[-1]) if places else None)
        if asked["form"] == "now" and asked["answer"] != "unknown" and asked["attribute"] in PERSONAL:
            found += 1
            saying = [(s, t) for s, t in heard if asked["answer"] in data["sessions"][s]["messages"][t]["text"]]
            assert set(saying) & set(places)
    assert found > 3
