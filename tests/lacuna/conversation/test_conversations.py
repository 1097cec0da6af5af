"""Runs on conversations: the perfect reader, its dials, memories, resuming, and why answers were wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from eirkit.cli import main
from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.protocol import Fault, read_text_answer, said_to_user
from eirkit.lacuna.conversation.causes import Seen
from eirkit.lacuna.conversation.outcomes import ConversationJudge
from eirkit.lacuna.conversation.reading import dated_statements, needed_statements
from eirkit.lacuna.conversation.session import ConversationSession
from eirkit.lacuna.conversation.workload import (
    AnsweredQuestion,
    WorldConversation,
)
from eirkit.lacuna.findings.conversation_measures import ABILITIES
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.in_process import Bm25
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request
from eirkit.lacuna.runs.conversations import (
    SentenceInjection,
    check_conversation_access,
    conversation_session,
    judge_answers,
)
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate, generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.runs import ConversationRun
from eirkit.records.settings import Access
from eirkit.report.viewer.lacuna_run import LacunaRun
from tests.runs import lose_last, records

WHOLE = Access("whole", None)
FAULTS = {
    "misses": {"said_unknown"},
    "confuses": {"anothers"},
    "keeps_old": {"outdated"},
    "returns_withdrawn": {"withdrawn_value"},
    "keeps_mistakes": {"withdrawn_value"},
    "obeys_documents": {"planted_value"},
    "invents": {"invented"},
}


def tasks(preset: str, seeds: range) -> list[WorldConversation]:
    spec = find_workload("words").specify({"workload": "words", "preset": preset})
    return [task for task in generate_many(spec, seeds) if isinstance(task, WorldConversation)]


def run(task: WorldConversation, access: Access, **dials: float) -> ConversationRun:
    """Return what the record of one run with the reader says about its answers."""
    session = conversation_session(access, task)
    trace = wait_for(drive(session, make_reader(ModelOptions(extra=dials))))
    return judge_answers(access, task, trace)[1]


@pytest.mark.parametrize("preset", ["small", "small+level=3", "small+level=1+alike=2+nicknames=3", "standard+level=3"])
def test_the_perfect_reader_answers_everything_from_the_whole_conversation(preset):
    asked = 0
    for task in tasks(preset, range(40 if preset.startswith("small") else 3)):
        record = run(task, WHOLE)
        assert record.wrong == ()
        assert all(count.right == count.asked for count in record.abilities.values())
        assert record.instruction.kept == record.instruction.asked
        assert record.instruction.came_back == record.instruction.overridden == 0
        asked += len(task.questions)
    assert asked > 100


@pytest.mark.slow
def test_the_perfect_reader_answers_everything_in_a_thousand_worlds():
    counts: dict[str, Counter[str]] = {}
    for task in tasks("small+level=3+documents=1+updates=2+planted=1+sentences=9", range(1000)):
        for ability, count in run(task, WHOLE).abilities.items():
            counts.setdefault(ability, Counter()).update(right=count.right, asked=count.asked)
    print({ability: (one["right"], one["asked"]) for ability, one in sorted(counts.items())})
    assert set(counts) == set(ABILITIES)
    assert all(one["right"] == one["asked"] > 100 for one in counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("dial", FAULTS)
def test_in_hundreds_of_worlds_a_fault_of_the_reader_is_never_named_otherwise(dial):
    symptoms, causes = Counter[str](), Counter[str]()
    for task in tasks("small+updates=2+level=3+planted=1+sentences=9", range(400)):
        record = run(task, WHOLE, **{dial: 1.0})
        symptoms.update(record.symptoms)
        causes.update(record.causes)
    print(dial, dict(symptoms))
    assert (set(symptoms), set(causes)) == (FAULTS[dial], {"shown_not_used"})


@pytest.mark.parametrize("dial", FAULTS)
def test_a_fault_of_the_reader_is_found_as_that_fault_and_as_no_other(dial):
    symptoms, causes = Counter[str](), Counter[str]()
    for task in tasks("small+updates=2+planted=1+sentences=9", range(60)):
        record = run(task, WHOLE, **{dial: 1.0})
        symptoms.update(record.symptoms)
        causes.update(record.causes)
    assert (set(symptoms), set(causes)) == (FAULTS[dial], {"shown_not_used"})
    assert symptoms.total() >= 20


def test_a_dial_spoils_the_share_of_answers_that_it_is_set_to():
    wrong = sum(len(run(task, WHOLE, misses=0.25).wrong) for task in tasks("small", range(60)))
    knowable = sum(one.answer is not None for task in tasks("small", range(60)) for one in task.questions)
    assert 0.2 < wrong / knowable < 0.3  # five standard deviations of 1,200 draws


def test_what_a_truncated_context_lacks_is_cut_and_what_it_shows_is_not():
    (task,) = tasks("small", range(1))
    record = run(task, Access("truncated", None, context_tokens=150))
    assert set(record.causes) == {"out_of_view"}
    for answer in record.wrong:
        assert any(one.startswith(answer.statement) for one in task.turns)
        assert task.turns[-1] != answer.statement, answer.t  # the last turn is within any window


def test_a_memory_with_only_write_and_search_gets_each_turn_as_a_record():
    (task,) = tasks("small", range(1))
    access = Access("external", None, "bm25")
    memory = Bm25()
    wait_for(memory.reset("one"))
    trace = wait_for(drive(conversation_session(access, task), make_reader(ModelOptions()), memory))
    assert tuple(wait_for(memory.contents())) == task.turns
    stored = [one.stored for one in trace.consultations if one.call.verb == "observe"]
    assert stored[-1] == task.turns
    assert [len(one) for one in stored] == sorted(len(one) for one in stored)


def test_a_memory_with_its_own_observe_and_recall_is_used_by_them():
    class Own(Bm25):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[str] = []

        async def observe(self, messages: list[Message], session: str, at: str) -> None:
            self.calls.append(f"observe {session} {at} {len(messages)}")

        async def recall(self, question: str, at: str, limit: int) -> list[str]:
            self.calls.append(f"recall {at} {limit}")
            return []

    (task,) = tasks("small", range(1))
    memory = Own()
    wait_for(memory.reset("one"))
    session = conversation_session(Access("external", None, "bm25"), task)
    wait_for(drive(session, make_reader(ModelOptions()), memory))
    observed = [call for call in memory.calls if call.startswith("observe")]
    assert observed[0] == f"observe session-1 2031-01-06 {len(task.sessions[0].messages)}"
    assert len(observed) == len(task.sessions)
    assert len(memory.calls) == len(task.sessions) + len(task.questions)


def eirkit(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command prints."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code
    return capsys.readouterr().out


def test_a_sweep_of_conversations_can_be_resumed_and_every_part_of_it_shown(tmp_path: Path, capsys):
    out = str(tmp_path / "runs")
    grid = [
        "--workload",
        "words",
        "--preset",
        "small",
        "--memory",
        "text,bm25",
        "--model",
        "scripted/reader",
        "--seeds",
        "0:2",
    ]
    rows = json.loads(eirkit(capsys, "lacuna", "run", *grid, "--out", out, "--json"))["rows"]
    assert [row["memory"] for row in rows] == ["text", "bm25"]
    assert all(row["control"]["passes"] for row in rows)  # the whole conversation
    for row in rows:
        every = row["conversation"]["abilities"][0]
        assert every["accuracy"] == pytest.approx(row["accuracy"])
        assert every["low"] <= every["accuracy"] <= every["high"]
        for part in ("symptoms", "causes"):
            assert sum(row["conversation"][part].values()) == every["asked"] - every["right"]
    lose_last(out)
    again = json.loads(eirkit(capsys, "lacuna", "run", "--resume", out, "--json"))["rows"]
    assert [row["conversation"] for row in again] == [row["conversation"] for row in rows]
    ended = records(out)
    assert len(ended) == 4
    for record in ended:
        assert record.setting.task.preset == "small"
        assert record.score.correct + len(record.conversation.wrong) == record.score.steps
    shown = eirkit(capsys, "report", out, "--out", str(tmp_path / "page.html"))
    assert "24 questions" in shown or "48 questions" in shown
    assert "Accuracy by ability" in (tmp_path / "page.html").read_text("utf-8")
    assert "Accuracy by ability" in eirkit(capsys, "lacuna", "run", "--resume", out)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"n": 5}, "conversation takes no n"),
        ({"preset": "huge"}, "no preset named 'huge'"),
        ({"preset": "small+people"}, "'people' is not NAME=NUMBER"),
        ({"condition": "lru"}, "no condition of conversations named 'lru'"),
        ({"memory": "oracle"}, "made from labeled records"),
        ({"panel": "strict", "memory": "bm25"}, "conversations have no panel"),
        ({"condition": "external"}, "needs a memory system"),
    ],
)
def test_what_conversations_do_not_have_is_refused(given, error):
    with pytest.raises((UsageError, SpecError), match=error):
        read_suite({"workload": "words", "preset": "small", "model": "scripted/reader", **given})


def test_other_workloads_have_no_presets():
    with pytest.raises(UsageError, match="store-recall has no presets"):
        read_suite({"workload": "store-recall", "model": "reference/exact", "preset": "small"})
    assert "preset" not in msgspec.to_builtins(
        find_workload("store-recall").specify({"workload": "store-recall"}).parameters()
    )


def test_a_seed_gives_the_same_conversation_alone_and_among_others():
    alone = generate(find_workload("words").specify({"workload": "words", "preset": "small"}).with_seed(3))
    assert alone == tasks("small", range(5))[3]


@pytest.mark.parametrize(
    ("reply", "answer", "said"),
    [
        ("ANSWER: Ternax", "Ternax", "Ternax"),
        ("Dunkelv,\nANSWER: Ternax\nNutosket", "Ternax", "Dunkelv,\nTernax\nNutosket"),
        ("**ANSWER:** Ternax.", "Ternax.", "Ternax."),
        ("ANSWER: a\nANSWER: b", "b", "a\nb"),
        ("Ternax", None, "Ternax"),
        ("ANSWER:", None, ""),
    ],
)
def test_answers_are_read_from_replies(reply, answer, said):
    found = read_text_answer(Reply(reply))
    assert (None if isinstance(found, Fault) else found) == answer
    assert said_to_user(Reply(reply)) == said


class Wordy(Model):
    """Answers as the perfect reader does, in words of its own around the answer."""

    def __init__(self, number: int, **dials: float) -> None:
        self.reader, self.number = make_reader(ModelOptions(extra=dials)), number

    async def reply(self, request: Request) -> Reply:
        reply = await self.reader.reply(request)
        answer = str(read_text_answer(reply))
        ways = ("Desk {}", "the {} door", "It is {}.", "**{}**, as you said", "{} tea")
        if answer == "unknown":
            ways = ("unknown (not stated)", "I don't know", "That was never mentioned.", "It cannot be determined")
        elif answer in ("yes", "no"):
            ways = ("{}.", "{}, as you said")
        elif "," in answer:
            ways = ("They are: {}", "{}.")
        elif answer == "none":
            ways = ("none",)
        return replace(reply, text=f"ANSWER: {ways[self.number % len(ways)].format(answer)}")

    async def close(self) -> None:
        """Nothing is open."""

    def settings(self) -> dict[str, Any]:
        return {}


def wordy_record(task: WorldConversation, number: int, **dials: float) -> ConversationRun:
    session = conversation_session(WHOLE, task)
    return judge_answers(WHOLE, task, wait_for(drive(session, Wordy(number, **dials))))[1]


@pytest.mark.parametrize("number", range(5))
def test_a_right_answer_in_any_words_is_right(number):
    for task in tasks("small+updates=2+questions=40", range(number, number + 6)):
        assert wordy_record(task, number).wrong == ()


@pytest.mark.parametrize("dial", ["misses", "confuses", "keeps_old", "returns_withdrawn"])
def test_a_wrong_answer_in_any_words_has_the_cause_of_the_bare_one(dial):
    for number, task in enumerate(tasks("small+updates=2", range(20))):
        bare, wordy = run(task, WHOLE, **{dial: 1.0}), wordy_record(task, number, **{dial: 1.0})
        assert [(answer.t, answer.symptom, answer.cause) for answer in wordy.wrong] == [
            (answer.t, answer.symptom, answer.cause) for answer in bare.wrong
        ]


def test_an_answer_with_another_value_of_the_same_fact_is_wrong():
    (task,) = tasks("small", range(1))
    judge = ConversationJudge(task)
    asked = next(one for one in task.questions if one.ability == "update" and one.question.form == "now")
    old, new = [str(one.statement.value) for one in task.said if one.statement[1:3] == asked.question[1:3]][-2:]
    seen = Seen(task.turns, (task.turns,), memory=True)

    def verdict(text: str) -> tuple[bool, str | None]:
        found = judge.judge(asked, task.canonical(asked.t, text), seen)
        return found.right, found.symptom

    assert verdict(f"It used to be something else, now it is {new.upper()}!") == (True, None)
    assert verdict(f"{new} (formerly {old})") == (False, "several_values")
    assert verdict(f"It is {old}.") == (False, "outdated")
    assert verdict(f"x{new}ish") == (False, "invented"), "not as a whole word"
    assert verdict("unknown (not stated)") == (False, "said_unknown")


def in_usual_words(task: WorldConversation, asked: AnsweredQuestion) -> list[str]:
    """Return ways in which people give the right answer to a question."""
    question, answer = asked.question, asked.answer
    match question.form:
        case _ if answer is None:
            texts = "I'm not sure.|None given|No value was recorded.|You didn't mention it.|undetermined|not found"
            texts += "|Nothing was said about it.|Not in memory|It is no longer known.|Not enough information."
            return texts.split("|")
        case "day" if isinstance(answer, int):
            when = date.fromordinal(answer)
            number = f"{when.day}{'th' if 10 < when.day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(when.day % 10, 'th')}"
            texts = f"{number} of %B %Y|%B {number}, %Y|%d %b %Y|%b %d, %Y|%A, %B %d %Y|%Y/%m/%d|%B {when.day}"
            return when.strftime(texts).split("|")
        case "all" if isinstance(answer, tuple) and answer:
            return [" / ".join(answer), " & ".join(answer), f"{' and '.join(answer)}, nothing else", " ".join(answer)]
        case "all":
            return ["Nothing.", "No allergies", "no known allergies", "She is not allergic to anything"]
        case "how_many":
            word = ("zero", "one", "two", "three")[int(str(answer))]
            return [word, f"{word} allergies", f"{word.capitalize()}.", f"just {word}", *["none"][int(str(answer)) :]]
        case "between":
            return [f"From 13 May to 20 June: {answer} days", f"13 May to 20 June, {answer} days"]
        case "member" if answer == "yes":
            return ["Yes she is", "Correct, yes", f"{question.subject} is allergic to {question.other}."]
        case "member":
            return ["No longer", "Not any more.", "She isn't.", f"She is not allergic to {question.other}."]
        case "first":
            later = question.other if answer == question.subject else question.subject
            texts = f"{answer}, not {later}|{answer} is earlier than {later}|not {later}; {answer}"
            return [
                *texts.split("|"),
                f"{answer} (before {later})",
                f"Of {question.subject} and {question.other}, {answer} is first.",
            ]
        case _ if question.attribute == "phone":
            return [str(answer).replace("-", separator) for separator in (" ", "", "\u2011", ".")]
        case _ if question.attribute == "boxes":
            return [f"{answer} boxes as of 14 January 2031", f"As of 14 January 2031: {answer}"]
    return [f"She sits at the {answer} door now.", f"{answer} (not stated otherwise)"]


def test_a_right_answer_in_usual_words_is_right():
    forms = set()
    for task in tasks("small+people=8+updates=2+questions=60", range(12)):
        judge, seen = ConversationJudge(task), Seen(task.turns, (task.turns,), memory=True)
        for asked in task.questions:
            forms.add(asked.question.form)
            for text in in_usual_words(task, asked):
                assert judge.judge(asked, task.canonical(asked.t, text), seen).right, (asked.text, text)
    assert len(forms) > 9


def test_an_answer_that_hedges_or_adds_is_wrong():
    checked = set()
    for task in tasks("small+people=8+updates=2+questions=60", range(6)):
        judge, seen = ConversationJudge(task), Seen(task.turns, (task.turns,), memory=True)
        for asked in task.questions:
            question, answer, texts = asked.question, asked.answer, []
            old = [one for one, _ in judge.old_answers(asked) if one != answer]
            if question.form == "first":
                later = question.other if answer == question.subject else question.subject
                texts = [
                    f"{later} or {answer}",
                    f"{later} and {answer}",
                    f"{later} before {answer}",
                    f"{later}, not {answer}",
                ]
            elif question.form == "all" and answer:
                texts = ["none", "unknown", "Zzyx", f"{asked.answer[0]}, Zzyx"]
            elif question.form == "day" and isinstance(answer, int):
                texts = [(date.fromordinal(answer) + timedelta(days=1)).strftime("%d %b %Y")]
            elif question.form == "member":
                texts = ["No, she isn't." if answer == "yes" else "Yes.", "No information."]
            elif question.attribute == "boxes" and old:
                texts = [f"{answer} boxes, formerly {old[0]}", f"It was {old[0]} and is {answer} now"]
            for text in texts:
                checked.add(question.form)
                assert not judge.judge(asked, task.canonical(asked.t, text), seen).right, (asked.text, text)
    assert checked == {"first", "all", "day", "member", "now"}


def test_a_dial_of_the_reader_is_set_on_the_command_line(tmp_path: Path, capsys):
    words = ["--model", "scripted/reader", "--set", "misses=1.0", "--seeds", "0:1", "--no-control"]
    eirkit(capsys, "lacuna", "run", "words", "--preset", "small", *words, "--out", str(tmp_path / "out"))
    (record,) = records(tmp_path / "out")
    assert set(record.conversation.symptoms) == {"said_unknown"}
    assert set(record.conversation.causes) == {"shown_not_used"}


def test_a_session_holds_no_answers():
    (task,) = tasks("small+questions=40", range(1))
    session = conversation_session(WHOLE, task)
    assert isinstance(session, ConversationSession)
    public = session.conversation
    assert not any(hasattr(question, "answer") for question in public.questions)
    assert not hasattr(public, "answers")
    check_conversation_access(WHOLE)


@pytest.mark.parametrize("time", ["T10:00:00", " 10:00", "T10:00:00.123Z", "T10:00:00+01:00"])
def test_a_date_with_a_time_is_read(time):
    (task,) = tasks("small", range(1))
    (heard,) = dated_statements(task.language, [f"[2031-01-06{time}] user: Ada Bex now drinks mint tea with honey."], 0)
    assert heard.day == date(2031, 1, 6).toordinal()


def test_a_store_that_cannot_be_listed_is_not_said_to_have_lost_anything():
    class Closed(Bm25):
        async def contents(self) -> None:
            return None

        async def recall(self, question: str, at: str, limit: int) -> list[str]:
            return []

    access, memory = Access("external", None, "bm25"), Closed()
    (task,) = tasks("small", range(1))
    wait_for(memory.reset("one"))
    trace = wait_for(drive(conversation_session(access, task), make_reader(ModelOptions()), memory))
    record = judge_answers(access, task, trace)[1]
    assert set(record.causes) == {"store_unknown"}
    assert record.stored_bytes is None


def test_a_rescue_of_conversations_repairs_with_the_truth_not_with_a_sham_and_misleads_with_the_old(
    tmp_path: Path, capsys
):
    out = str(tmp_path / "rescue")
    given = ["--workload", "words", "--preset", "small+updates=2", "--memory", "null", "--model", "scripted/reader"]
    found = json.loads(eirkit(capsys, "lacuna", "rescue", *given, "--seeds", "0:12", "--out", out, "--json"))
    arms = {row["arm"]: row for row in found["rows"]}
    assert list(arms) == ["control", "oracle", "sham", "stale"]
    assert len({row["steps"] for row in arms.values()}) == 1  # the same questions in every arm
    assert arms["control"]["steps"] >= 30
    assert arms["oracle"]["accuracy"] == 1.0
    assert arms["sham"]["accuracy"] <= arms["control"]["accuracy"] + 0.05
    contrasts = {(*one["arms"], one["of"]): one["difference"] for one in found["contrasts"]}
    assert contrasts["oracle", "sham", "accuracy"]["low"] > 0.5
    assert contrasts["oracle", "control", "accuracy"]["low"] > 0.5
    assert contrasts["sham", "control", "accuracy"]["low"] <= 0 <= contrasts["sham", "control", "accuracy"]["high"]
    assert contrasts["stale", "control", "misled"]["low"] > 0
    assert found["repair_effect"] > 0.9
    shown = eirkit(capsys, "lacuna", "rescue", "--resume", out)
    assert "outdated values" in shown


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["bm25", "vector"])
def test_beside_what_a_memory_returns_an_old_sentence_misleads(memory, tmp_path: Path, capsys):
    given = ["--workload", "words", "--preset", "small+updates=2", "--memory", memory, "--model", "scripted/reader"]
    out = ["--seeds", "0:40", "--out", str(tmp_path / "rescue"), "--json"]
    found = json.loads(eirkit(capsys, "lacuna", "rescue", *given, *out))
    contrasts = {(*one["arms"], one["of"]): one["difference"] for one in found["contrasts"]}
    assert contrasts["oracle", "sham", "accuracy"]["low"] > 0.9
    assert contrasts["sham", "control", "accuracy"]["low"] <= 0 <= contrasts["sham", "control", "accuracy"]["high"]
    assert contrasts["stale", "control", "accuracy"]["high"] < 0.1
    assert contrasts["stale", "control", "misled"]["low"] > 0


def test_a_sham_says_nothing_of_what_is_asked_nor_of_its_former_values():
    tried = 0
    for task in tasks("small", range(12)):
        sham = SentenceInjection(task, "sham")
        for asked in task.questions:
            said = task.said_before(asked)
            needed = needed_statements(asked.question, said, task.truth_at(asked))
            text = sham(asked.t) if needed else None
            if text is None:
                continue
            facts = {(one.statement.attribute, one.statement.subject) for one in needed}
            names = {subject for _, subject in facts if subject}
            names |= {
                str(one.statement.value) for one in said if (one.statement.attribute, one.statement.subject) in facts
            }
            assert [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)] == [], asked.text
            tried += 1
    assert tried > 100


def test_a_sham_is_true_of_another_and_an_old_sentence_of_the_same():
    (task,) = tasks("small+updates=2", range(1))
    arms = {arm: SentenceInjection(task, arm) for arm in ("oracle", "sham", "stale")}
    for asked in task.questions:
        needed = needed_statements(asked.question, task.said_before(asked), task.truth_at(asked))
        told = {arm: dated_statements(task.language, [add(asked.t) or ""], asked.day) for arm, add in arms.items()}
        said = {one.statement for one in task.said}
        assert {one.statement for one in told["oracle"]} == {one.statement for one in needed}
        assert {one.statement for found in told.values() for one in found} <= said
        assert {one.statement.subject for one in told["stale"]} <= {one.statement.subject for one in needed}
        assert not {one.statement for one in told["stale"]} & {one.statement for one in needed}
        if len(needed) == 1:
            assert all(one.statement.subject != needed[0].statement.subject for one in told["sham"])
            lengths = [len(arms[arm](asked.t) or "") for arm in ("oracle", "sham")]
            assert abs(lengths[0] - lengths[1]) <= 8, lengths


def test_the_viewer_marks_what_was_needed_stored_and_returned(tmp_path: Path, capsys):
    out = tmp_path / "runs"
    grid = [
        "--workload",
        "words",
        "--preset",
        "small",
        "--memory",
        "text",
        "--model",
        "scripted/reader",
        "--seeds",
        "0",
        "--no-control",
    ]
    eirkit(capsys, "lacuna", "run", *grid, "--out", str(out), "--json")
    (record,) = records(out)
    run = LacunaRun(out, record, plugins=False)
    wrong = {answer.t: answer.cause for answer in record.conversation.wrong}
    assert set(wrong.values()) & {"not_retrieved"}
    for t, verdict in run.verdicts.items():
        assert verdict.correct == (t not in wrong)
        found = run.question(t)
        assert found.question in run.task.instance.dialogues[-1].questions
        assert all(turn.stored for turn in found.turns)  # a text file keeps everything
        assert all("".join(piece.text for piece in turn.pieces) == turn.text for turn in found.turns)
        assert all(turn.returned or not turn.used for turn in found.turns)
        asked = run.task.instance.questions[t - 1]
        if verdict.correct and asked.ability in ("fact", "update"):
            assert [turn.needed for turn in found.turns] == [turn.used for turn in found.turns]
        if wrong.get(t) == "not_retrieved":
            assert found.cause == "stored, not retrieved"
            assert any(turn.needed and not turn.returned for turn in found.turns)


def test_the_viewer_marks_a_value_at_each_of_its_places_in_a_turn(tmp_path: Path, capsys):
    out = tmp_path / "runs"
    grid = ["--workload", "words", "--memory", "text", "--model", "scripted/reader", "--seeds", "5", "--no-control"]
    eirkit(capsys, "lacuna", "run", *grid, "--preset", "small", "--out", str(out), "--json")
    (record,) = records(out)
    run = LacunaRun(out, record, plugins=False)
    turns = run.question(24).turns
    for turn in turns:
        number = run.task.instance.turns.index(turn.text)
        stated = [str(one.statement.value) for one in run.task.instance.said if one.passage == number]
        marked = [piece.text for piece in turn.pieces if piece.state is not None]
        assert [value for value in stated if value in turn.text] == [text for text in marked if text in stated]


def test_the_door_of_an_earlier_seat_is_an_old_value_where_the_rule_of_the_present_one_was_withdrawn():
    tried = 0
    for task in tasks("small+updates=2", range(40)):
        judge = ConversationJudge(task)
        for asked in task.questions:
            truth = task.truth_at(asked)
            seats = [str(value) for _, value in truth.versions.get(("seat", asked.question.subject), [])]
            if asked.question.form != "follows" or asked.answer is not None or len(seats) < 2:
                continue
            doors = {one.statement.subject: str(one.statement.value) for one in task.said_before(asked)
                     if one.statement.attribute == "door" and one.statement.op != "forget"}  # fmt: skip
            for place, symptom in ((seats[-2], "outdated"), (seats[-1], "withdrawn_value")):
                if (("door", place) in truth.withdrawn) == (symptom == "withdrawn_value"):
                    shown = f"[2031-01-20] user: Whoever sits in {place} uses the {doors[place]}."
                    assert judge.judge(asked, doors[place], Seen((shown,), (), True)).symptom == symptom
                    tried += 1
    assert tried > 2


def test_what_is_held_under_a_nickname_is_held():
    tried = 0
    for task in tasks("small", range(12)):
        judge = ConversationJudge(task)
        nicknames = {one.statement.subject: one.statement.value for one in task.said if one[0][1] == "nickname"}
        for one in task.said:
            op, attribute, subject, team = one.statement
            if (op, attribute) == ("set", "team") and subject in nicknames:
                assert judge.has(f"[2031-01-27] {nicknames[subject]} is on the {team} team.", one)
                assert not judge.has(f"[2031-01-27] {subject.split()[0]} Nobody is on the {team} team.", one)
                tried += 1
    assert tried > 2


def test_what_an_answer_rests_on_is_what_was_shown_and_decides_it():
    (task,) = tasks("small", range(1))
    judge = ConversationJudge(task)
    asked = next(one for one in task.questions if one.ability == "update" and one.question.form == "now")
    about = [one for one in task.said if one.statement[1:3] == asked.question[1:3]]
    old, new = (task.turns[one.passage] for one in about[-2:])
    right, before = (str(one.statement.value).casefold() for one in (about[-1], about[-2]))
    assert judge.used(asked, right, [old, new]) == {about[-1].statement}
    assert judge.used(asked, before, [old]) == {about[-2].statement}
    assert judge.used(asked, before, [old, new]) == {about[-2].statement}, "misread: the one that states it"
    assert judge.used(asked, "unknown", [old, new]) == set(), "nothing that was shown says so"
