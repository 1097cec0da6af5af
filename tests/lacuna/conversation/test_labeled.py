"""Memories on files of LongMemEval and MEME, written here in their layout: what of the labeled evidence came back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import main
from eirkit.errors import EirkitError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.conversation.published import PublishedFile
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.in_process import Bm25
from eirkit.lacuna.memories.memory import MemorySystem
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.conversations import conversation_session, judge_answers
from eirkit.lacuna.scripted.reader import Quoter
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.runs import AbilityCount, ConversationRun, EvidenceCounts
from eirkit.records.settings import Access

MEMORY = Access("external", None, "bm25")
CHAT = [("I like long walks by the sea.", "The sea is lovely."), ("My sister paints.", "What does she paint?")]


def talk(*texts: str, marked: bool = False) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    if marked:
        said[0]["has_answer"] = True
    return said


def longmemeval(count: int = 3) -> list[dict[str, Any]]:
    """Return entries in which the evidence is in the second of four sessions."""
    entries = []
    for number in range(count):
        sessions = [talk(*CHAT[0]), talk(f"My kayak is called Tumbrel{number}.", "Nice.", marked=True)]
        sessions += [talk(*CHAT[1]), talk("It rained.", "It did.")]
        entries.append(
            {
                "question_id": f"q{number}" + ("_abs" if number == 2 else ""),
                "question_type": "single-session-user",
                "question": "What is my kayak called?" if number != 2 else "What is my horse called?",
                "answer": f"Tumbrel{number}",
                "question_date": "2031/03/05 (Wed) 10:00",
                "haystack_dates": [f"2031/01/{day:02} (Sun) 09:00" for day in (5, 12, 19, 26)],
                "haystack_session_ids": ["a", "b", "c", "d"],
                "answer_session_ids": ["b"],
                "haystack_sessions": sessions,
            }
        )
    return entries


def meme() -> list[dict[str, Any]]:
    def session(day: int, said: str, *facts: tuple[str, str]) -> dict[str, Any]:
        return {
            "session_id": f"s{day}",
            "type": "evidence" if facts else "filler",
            "timestamp": f"2031/01/{day:02} (Sun) 09:00",
            "conversation": talk(said, "I see."),
            "gold_facts": [{"fact_id": n, "entity": e, "value": v} for n, (e, v) in enumerate(facts)],
        }

    def asked(task: str, text: str, gold: str, entity: str) -> dict[str, Any]:
        return {"task_type": task, "question": text, "gold_answer": gold, "entity": [entity]}

    return [
        {
            "episode_id": "pl_001",
            "sessions": [
                session(5, "I drive a Zorvane Coupe to work.", ("vehicle", "Zorvane Coupe")),
                session(12, "It rained."),
                session(19, "I have a Maltrick Van as my vehicle these days.", ("vehicle", "Maltrick Van")),
            ],
            "before_questions": {
                "timestamp": "2031/01/13 (Mon) 09:00",
                "position_after_session": 1,
                "questions": [asked("Cas", "What vehicle do I drive?", "Zorvane Coupe", "vehicle")],
            },
            "after_questions": {
                "timestamp": "2031/01/20 (Mon) 09:00",
                "position_after_session": 2,
                "questions": [
                    asked("ER", "What vehicle do I drive?", "Maltrick Van", "vehicle"),
                    asked("Tr", "Which vehicles did I have?", "Zorvane Coupe, Maltrick Van", "vehicle"),
                    asked("Abs", "What is my boat?", "not known", "boat"),
                ],
            },
        }
    ]


class Forgetful(Bm25):
    """Forgets the session that is labeled when it observes the last one."""

    async def observe(self, messages: Any, session: str, at: str) -> None:
        await super().observe(messages, session, at)
        if session == "session-4":
            for label in [one for one, text in self._kept.items() if "kayak" in text]:
                await self.forget(label)


class Deaf(Bm25):
    async def observe(self, messages: Any, session: str, at: str) -> None:
        await super().observe([one for one in messages if "kayak" not in one.content], session, at)


class Mute(Bm25):
    async def recall(self, question: str, at: str, limit: int) -> list[str]:
        return []


class Secret(Mute):
    async def contents(self) -> None:
        return None


class Rewriting(Mute):
    async def observe(self, messages: Any, session: str, at: str) -> None:
        await super().observe([Message("user", "Something was said.")], session, at)


class Cutting(Bm25):
    async def recall(self, question: str, at: str, limit: int) -> list[str]:
        found = await super().recall(question, at, limit)
        return [text[:-12] for text in found if "kayak" in text]


def run(path: Path, workload: str, memory: MemorySystem | None, seed: int = 0) -> ConversationRun:
    spec = find_workload(workload).specify({"workload": workload, "preset": str(path)})
    (task,) = generate_many(spec, [seed])
    access = MEMORY if memory else Access("whole", None)
    if memory is not None:
        wait_for(memory.reset("one"))
    trace = wait_for(drive(conversation_session(access, task), Quoter(ModelOptions()), memory))
    return judge_answers(access, task, trace)[1]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps(longmemeval()))
    return path


def test_the_whole_conversation_shows_all_evidence(file):
    record = run(file, "longmemeval", None)
    assert record.evidence == EvidenceCounts(1, 1, 0)
    assert record.abilities == {"single-session-user": AbilityCount(1, 1)}
    assert record.floor_bytes is None


@pytest.mark.parametrize(
    ("memory", "cause"),
    [
        (Bm25, None),
        (Forgetful, "deleted"),
        (Deaf, "never_stored"),
        (Mute, "not_retrieved"),
        (Secret, "store_unknown"),
        (Rewriting, "cause_uncertain"),
    ],
)
def test_what_became_of_labeled_evidence_is_named(file, memory, cause):
    record = run(file, "longmemeval", memory())
    assert [answer.cause for answer in record.wrong] == ([] if cause is None else [cause])
    assert record.evidence.all_shown == (cause is None)


def test_a_turn_of_which_the_end_was_cut_is_cut_off(tmp_path):
    long = longmemeval(1)
    long[0]["haystack_sessions"][1][0]["content"] = "My kayak has a name that I like very much, and it is Tumbrel0."
    path = tmp_path / "one.json"
    path.write_text(json.dumps(long))
    assert [answer.cause for answer in run(path, "longmemeval", Cutting()).wrong] == ["cut_off"]


def test_where_the_answer_is_that_it_is_unknown_only_that_agrees(file):
    assert run(file, "longmemeval", Mute(), seed=2).abilities == {"abstention": AbilityCount(1, 1)}
    wrong = run(file, "longmemeval", Bm25(), seed=2)
    assert [answer.cause for answer in wrong.wrong] == ["cause_uncertain"]
    assert wrong.evidence.labeled == 0


def test_sessions_are_evidence_where_no_turn_is_labeled(tmp_path):
    entry = longmemeval(1)[0]
    del entry["haystack_sessions"][1][0]["has_answer"]
    path = tmp_path / "sessions.json"
    path.write_text(json.dumps([entry]))
    assert run(path, "longmemeval", Bm25()).evidence.all_shown == 1
    assert [answer.cause for answer in run(path, "longmemeval", Mute()).wrong] == ["not_retrieved"]


class Old(Bm25):
    async def recall(self, question: str, at: str, limit: int) -> list[str]:
        return [text for text in self._kept.values() if "Zorvane" in text]


def test_values_of_meme_are_found_in_any_words_and_old_ones_are_named(tmp_path):
    path = tmp_path / "meme.json"
    path.write_text(json.dumps(meme()))
    whole = run(path, "meme", None)
    assert whole.evidence == EvidenceCounts(3, 3, 0)
    assert [(answer.t, answer.cause) for answer in whole.wrong] == [(3, "answered_otherwise"), (4, "cause_uncertain")]
    old = run(path, "meme", Old())
    assert [(answer.symptom, answer.cause) for answer in old.wrong][:2] == [
        ("outdated", "not_retrieved"),
        ("other_answer", "not_retrieved"),
    ]
    assert old.evidence == EvidenceCounts(3, 1, 1)


def test_a_file_is_read_entry_by_entry(tmp_path):
    entries = longmemeval(5)
    entries[3]["question"] = 'A "quoted" \\ question with ] and } in it'
    path = tmp_path / "five.json"
    path.write_text(json.dumps(entries, indent=2))
    file = PublishedFile(path)
    assert len(file) == 5
    assert file[3].questions[0].text == entries[3]["question"]
    path.write_text(json.dumps(entries[:2]))
    assert len(PublishedFile(path)) == 2


def eirkit(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code
    return capsys.readouterr().out


def test_the_commands_run_report_and_show_labeled_conversations(file, tmp_path, capsys):
    out = str(tmp_path / "runs")
    grid = ["--workload", "longmemeval", "--preset", str(file), "--memory", "text,bm25", "--model", "scripted/quoter"]
    shown = eirkit(capsys, "lacuna", "run", *grid, "--seeds", "0:3", "--no-control", "--out", out)
    assert shown.startswith("All labeled evidence shown: 100%")
    assert "Replies that contain the labeled answer" in shown
    page = tmp_path / "page.html"
    eirkit(capsys, "report", out, "--out", str(page))
    assert "Labeled evidence in what was shown" in page.read_text("utf-8")
    assert "3 questions over 3 conversations" in page.read_text("utf-8")
    assert "world" not in shown, "these are no generated worlds"
    assert eirkit(capsys, "show", out)


@pytest.mark.parametrize(
    ("workload", "preset", "seed", "error"),
    [
        ("meme", "longmemeval_s.json", 0, "is a file of longmemeval; use --workload longmemeval"),
        ("longmemeval", "longmemeval_s.json", 3, "beyond the 3 entries"),
        ("longmemeval", "missing.json", 0, "is no file of LongMemEval or MEME"),
    ],
)
def test_another_file_or_entry_is_refused_in_one_line(file, workload, preset, seed, error):
    path = str(file.parent / preset)
    with pytest.raises(EirkitError, match=error):
        list(generate_many(find_workload(workload).specify({"workload": workload, "preset": path}), [seed]))


def test_another_label_is_another_task(tmp_path):
    """Answers are judged by the labels, so runs on a file whose labels were changed are not those of the file."""
    found = set()
    for change in (
        {},
        {"answer": "Borgan"},
        {"answer_session_ids": ["a"]},
        {"question_date": "2031/03/06 (Thu) 10:00"},
    ):
        path = tmp_path / f"{len(found)}.json"
        path.write_text(json.dumps([{**longmemeval(1)[0], **change}]), "utf-8")
        spec = find_workload("longmemeval").specify({"workload": "longmemeval", "preset": str(path)})
        found |= {task.fingerprint for task in generate_many(spec, [0])}
    assert len(found) == 4
