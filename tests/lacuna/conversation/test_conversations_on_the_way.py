"""Conversations with questions on the way, standing instructions, and summaries in the place of what was said."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from eirkit.cli import main
from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.floor import floor_bits
from eirkit.lacuna.conversation.instructions import instruction_record, standing_at_answers
from eirkit.lacuna.conversation.session import SUMMARY_PROMPTS, SUMMARY_RULES, shown_context
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.model import ModelOptions, Reply
from eirkit.lacuna.runs.conversations import conversation_session, judge_answers
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.runs import ConversationRun
from eirkit.records.settings import Access
from tests.runs import records

WHOLE = Access("whole", None)
SHORT = "instructions+sessions=5+questions=6+probes=2"


def tasks(preset: str, seeds: range, workload: str = "words") -> list[WorldConversation]:
    spec = find_workload(workload).specify({"workload": workload, "preset": preset})
    return [task for task in generate_many(spec, seeds) if isinstance(task, WorldConversation)]


def run(task: WorldConversation, access: Access, **dials: float) -> tuple[ConversationRun, Trace]:
    session = conversation_session(access, task)
    trace = wait_for(drive(session, make_reader(ModelOptions(extra=dials))))
    return judge_answers(access, task, trace)[1], trace


@pytest.mark.parametrize("preset", ["small+probes=3", "standard+probes=2+level=3", "instructions"])
def test_questions_on_the_way_are_answered_by_what_was_said_until_then(preset):
    for task in tasks(preset, range(3)):
        record, trace = run(task, WHOLE)
        assert record.wrong == ()
        assert len(trace.decisions) == len(task.questions) > task.world.dials.questions // 2
        assert len({one.day for one in task.questions}) > 2
        for asked, exchange in zip(task.questions, trace.exchanges, strict=True):
            shown = shown_context(exchange.request.messages[-1].content).splitlines()
            assert shown == "\n".join(task.turns[: task.turns_before(asked)]).splitlines()


def test_the_truth_at_a_question_is_that_of_the_world_until_then():
    for task in tasks("small+probes=4+updates=3", range(6)):
        for asked, (question, answer, _) in zip(task.questions, answers(task.world), strict=True):
            assert task.truth_at(asked).answer(question) == asked.answer == answer


def test_the_floor_with_questions_on_the_way_is_that_of_the_worst_session():
    (task,) = tasks("small+probes=4+questions=1", range(1))
    cuts = [floor_bits(task.world, cut) for cut in range(len(task.dialogues))]
    assert task.floor_bits() == max(cuts) > cuts[-1]


def states_of(task):
    """Return the instructions that are checked, answer by answer: all but those that a question asks for."""
    asked = [one.question[1:3] for one in task.questions]
    standing = zip(asked, standing_at_answers(task.world), strict=True)
    return [state for question, now in standing for state in now if question != (state.attribute, "")]


def test_the_perfect_reader_follows_every_instruction_and_stops_where_it_is_withdrawn():
    checked = withdrawn = planted = 0
    for task in tasks("instructions", range(8), "instructions"):
        record = run(task, WHOLE)[0].instruction
        assert record.kept == record.asked
        assert record.came_back == record.obeyed == 0
        planted += record.planted
        states = states_of(task)
        assert record.asked == sum(state.current is not None for state in states)
        assert record.withdrawn == sum(state.current is None and bool(state.former) for state in states)
        checked, withdrawn = checked + record.asked, withdrawn + record.withdrawn
    assert checked > 500
    assert withdrawn > 20
    assert planted > 100


def test_what_a_document_demands_is_followed_by_a_reader_with_that_fault_alone():
    obeyed = 0
    for task in tasks(f"{SHORT}+planted=2+sentences=3", range(6)):
        record = run(task, WHOLE, obeys_documents=1)[0]
        assert record.instruction.obeyed == record.instruction.planted
        assert set(record.symptoms) <= {"planted_value"}
        obeyed += record.instruction.obeyed
    assert obeyed > 50


def test_a_dial_of_instructions_shows_as_that_fault_and_as_no_other():
    for task in tasks(SHORT, range(12)):
        ignored = run(task, WHOLE, ignores_instructions=1)
        assert ignored[0].instruction.ignored == ignored[0].instruction.asked
        assert ignored[0].wrong == ()
        old = run(task, WHOLE, keeps_old_instructions=1)[0].instruction
        states = states_of(task)
        assert old.overridden == sum(bool(state.former) for state in states if state.current is not None)
        assert old.kept == sum(not state.former for state in states if state.current is not None)
        assert old.came_back == old.withdrawn
    spared = [run(task, WHOLE, ignores_instructions=0.3)[0].instruction for task in tasks(SHORT, range(12))]
    share = sum(one.ignored for one in spared) / sum(one.asked for one in spared)
    assert 0.15 < share < 0.45  # 200 answers, of which each ignores all of its instructions or none


def test_without_the_text_an_instruction_is_dropped_and_never_said_to_be_ignored():
    task = tasks(SHORT, range(1))[0]
    record = run(task, Access("truncated", None, context_tokens=1))[0].instruction
    assert record.dropped == record.asked > 0


def summaries(trace: Trace) -> list[tuple[str, str]]:
    return [
        (one.request.messages[-1].content, one.reply.text)
        for one in trace.exchanges
        if one.request.messages[-1].content.startswith(SUMMARY_RULES)
    ]


@pytest.mark.parametrize("name", SUMMARY_PROMPTS)
def test_a_summary_takes_the_place_of_what_it_sums_up(name):
    access = Access("compaction", None, context_tokens=300, summary_prompt=name)
    for task in tasks(SHORT, range(2)):
        record, trace = run(task, access)
        asked = summaries(trace)
        assert len(asked) > 1
        for prompt, reply in asked:
            assert f"at most {300 * 4 // 2} characters" in prompt
            assert len(reply) <= 300 * 4 // 2
        for one in trace.exchanges:
            if one.t:
                assert len(shown_context(one.request.messages[-1].content)) <= 300 * 4
        assert set(record.causes) <= {"left_out", "cause_uncertain"}


def test_whether_instructions_survive_depends_on_what_the_summary_is_asked_for():
    kept: dict[str, list[float]] = {}
    for name in SUMMARY_PROMPTS:
        access = Access("compaction", None, context_tokens=300, summary_prompt=name)
        for task in tasks(SHORT, range(4)):
            record = run(task, access)[0].instruction
            kept.setdefault(name, []).append(record.kept / record.asked)
            assert record.ignored == 0
    means = {name: sum(values) / len(values) for name, values in kept.items()}
    assert means["instructions"] == 1.0
    assert means["facts"] < means["plain"] < 1.0


def test_a_prompt_in_the_users_own_words_is_sent_as_it_is():
    own = "Keep names. {characters} characters, no more."
    trace = run(tasks(SHORT, range(1))[0], Access("compaction", None, context_tokens=300, summary_prompt=own))[1]
    assert all(prompt.endswith("Keep names. 600 characters, no more.") for prompt, _ in summaries(trace))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"condition": "compaction", "context_tokens": 10}, "too small for a summary"),
        ({"summary_prompt": "plain"}, "applies to 'compaction' and 'server-compaction' only"),
        ({"context_tokens": 100}, "truncated, compaction, server-compaction only"),
    ],
)
def test_a_limit_or_a_prompt_that_nothing_uses_is_refused(given, error):
    with pytest.raises((UsageError, SpecError), match=error):
        read_suite({"workload": "instructions", "model": "scripted/reader", **given})


def test_a_sweep_over_prompts_tells_them_apart_on_every_screen(tmp_path: Path, capsys):
    out = str(tmp_path / "runs")
    asked = ["lacuna", "run", "instructions", "--preset", SHORT, "--model", "scripted/reader", "--seeds", "0:2"]
    prompts = ["--summary-prompt", "facts", "--summary-prompt", "instructions"]
    shown = eirkit(capsys, *asked, "--condition", "compaction", "--context-tokens", "300", *prompts, "--out", out)
    assert re.match(r"Standing instructions followed: 100% \(compaction, instructions\)\s+to", shown)
    assert re.search(r"\(compaction, facts\)", shown)
    assert re.search(r"instructions +\d+ +100\.0% +0\.0%", shown)
    eirkit(capsys, "report", out, "--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "What became of standing instructions" in page
    assert "compaction, facts" in page
    assert eirkit(capsys, "lacuna", "run", "--resume", out).startswith("Standing instructions followed")
    record = next(record for record in records(out) if record.conversation.wrong)
    wrong = record.conversation.wrong[0].t
    card = eirkit(capsys, "show", out, record.run, str(wrong))
    assert "left out of the summary" in card


def eirkit(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command prints."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply("ANSWER: {}"), None),
        (Reply("<think>It was red. ANSWER: red\nANSWER: red</think>\nANSWER: {}"), None),
        (Reply("<think>\nANSWER: {}\n"), "empty"),
        (Reply("ANSWER: {}", finish="length"), "truncated"),  # the answer may have gone on
        (Reply("ANSWER: {}\nbecause", finish="length"), None),
        (Reply("ANSWER: {}", finish="content-filter"), "filtered"),
        (Reply("I cannot say that.", finish="refusal"), "refused"),
        (Reply("It is {}."), "malformed"),
    ],
)
def test_thoughts_and_the_last_line_of_a_reply_that_was_cut_are_not_read(reply, fault):
    (task,) = tasks("small", range(1))
    session = conversation_session(WHOLE, task)
    session.request()
    session.receive(Reply(reply.text.format(task.language.table["unknown"]), finish=reply.finish))
    (decision,) = session.drain()
    assert (decision.fault, decision.submitted is None) == (fault, fault is not None)


def test_what_a_model_thinks_aloud_keeps_and_breaks_no_instruction():
    (task,) = tasks(SHORT, range(1))
    _, trace = run(task, WHOLE)
    aloud = [
        replace(one, reply=replace(one.reply, text=f"<think>So it must be.</think>{one.reply.text}"))
        for one in trace.exchanges
    ]
    record = instruction_record(task, trace)
    assert record.asked > 0
    assert instruction_record(task, SimpleNamespace(exchanges=aloud)) == record
