"""The live guard: what left a context, in either dialect, is named once, with a chance that was counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Call, RecordedTurn, Recording
from eirkit_coding.guard.conversation import Transcript, openai_messages
from eirkit_coding.guard.guard import (
    IDLE,
    MOST_USES,
    FileHistory,
    Monitor,
    bundled_counts,
    count_reuse,
    known_files,
    reuse_chance,
)

SYSTEM = {"role": "system", "content": "You mend software in /repo."}
TASK = {"role": "user", "content": "Mend the parser."}
PARSER = "\n".join(f"def parse_{name}(text): return text" for name in ("alpha", "beta", "gamma", "delta"))
NOTES = "\n".join(f"note number {number} about the weather" for number in range(6))


def openai_call(number: int, command: str, output: str) -> list[dict]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


def anthropic_call(number: int, command: str, output: str) -> list[dict]:
    use = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": [{"type": "text", "text": output}]}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


DIALECTS = {"openai": openai_call, "anthropic": anthropic_call}


def conversation(make) -> list[dict]:
    return [
        SYSTEM,
        TASK,
        *make(1, "cat /repo/parser.py", PARSER),
        *make(2, "cat /repo/notes.txt", NOTES),
        *make(3, "cat /repo/parser.py", PARSER),
        *make(4, "ls /repo", "parser.py notes.txt"),
    ]


@pytest.mark.parametrize("make", DIALECTS.values(), ids=DIALECTS)
def test_nothing_is_lost_while_the_context_only_grows(make):
    messages, monitor = conversation(make), Monitor()
    for end in range(2, len(messages) + 1, 2):
        assert monitor.see(messages[:end]) == ()


@pytest.mark.parametrize("make", DIALECTS.values(), ids=DIALECTS)
def test_a_compaction_names_the_files_that_left(make):
    messages, monitor = conversation(make), Monitor()
    monitor.see(messages)
    losses = monitor.see([SYSTEM, TASK, {"role": "user", "content": "Summary: parser.py was read."}, *messages[-2:]])
    found = {loss.path: loss for loss in losses}
    assert {path.rpartition("/")[2] for path in found} == {"parser.py", "notes.txt"}
    parser = next(loss for path, loss in found.items() if path.endswith("parser.py"))
    assert (parser.turn, parser.uses, parser.idle_turns, parser.written, parser.kept) == (4, 2, 1, False, 0.0)
    assert parser.chance == reuse_chance(FileHistory(2, 1, False))
    assert losses == tuple(sorted(losses, key=lambda loss: -loss.chance))


@pytest.mark.parametrize("make", DIALECTS.values(), ids=DIALECTS)
def test_a_result_whose_text_was_cleared_is_a_loss_too(make):
    messages, monitor = conversation(make), Monitor()
    monitor.see(messages)
    (_, cleared) = make(2, "cat /repo/notes.txt", "[old tool result cleared]")
    losses = monitor.see([*messages[:5], cleared, *messages[6:]])
    assert [loss.path.rpartition("/")[2] for loss in losses] == ["notes.txt"]


def test_a_loss_is_told_once_and_again_only_after_another_use():
    messages, monitor = conversation(openai_call), Monitor()
    monitor.see(messages)
    short = [SYSTEM, TASK, *messages[-2:]]
    assert monitor.see(short)
    assert monitor.see([SYSTEM, TASK]) == ()
    again = [*short, *openai_call(5, "cat /repo/parser.py", PARSER)]
    assert monitor.see(again) == ()
    assert [loss.path.rpartition("/")[2] for loss in monitor.see([SYSTEM, TASK])] == ["parser.py"]


def test_what_a_summary_repeats_word_for_word_is_not_lost():
    messages, monitor = conversation(openai_call), Monitor()
    monitor.see(messages)
    losses = monitor.see([SYSTEM, TASK, {"role": "user", "content": f"So far:\n{PARSER}"}, *messages[-2:]])
    assert [loss.path.rpartition("/")[2] for loss in losses] == ["notes.txt"]


def test_a_context_carries_on_by_a_shared_message_or_a_known_file():
    monitor = Monitor()
    messages = conversation(openai_call)
    monitor.see(messages)
    assert monitor.overlaps([SYSTEM, *messages[-2:]])
    summary = [SYSTEM, {"role": "user", "content": "Continue: parser.py still fails."}]
    assert (monitor.overlaps(summary), monitor.is_named_in(summary)) == (False, True)
    assert not monitor.is_named_in([SYSTEM, {"role": "user", "content": "What is the capital of Norway?"}])


@pytest.mark.parametrize("ending", [".", "...", ", then", "", ")."])
def test_a_summary_that_ends_in_a_name_carries_on_and_tells_the_loss(ending):
    monitor = Monitor()
    monitor.see(conversation(openai_call))
    summary = [SYSTEM, {"role": "user", "content": f"Summary: (I was editing parser.py{ending}"}]
    assert monitor.is_named_in(summary)
    assert "parser.py" in {loss.path.rpartition("/")[2] for loss in monitor.see(summary)}


def test_a_file_has_one_name_however_a_call_names_it():
    folder = {"role": "user", "content": "<env>\n  Working directory: /home/me/project\n</env>"}
    view = {"name": "read", "arguments": json.dumps({"filePath": "/home/me/project/parser.py"})}
    call = {"id": "v", "type": "function", "function": view}
    viewed = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "v", "content": PARSER}]
    monitor = Monitor()
    monitor.see([TASK, folder, *viewed, *openai_call(1, "cat parser.py", PARSER)])
    assert [(loss.path, loss.uses) for loss in monitor.see([TASK, folder])] == [("parser.py", 2)]


NAMES = st.sampled_from(
    ["role", "content", "tool_calls", "type", "tool_use_id", "text", "id", "function", "name", "arguments", "input"]
)
LEAVES = st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=9)
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=25
)


@given(ANYTHING)
def test_no_request_breaks_the_guard(value):
    monitor = Monitor()
    for messages in ([value], [TASK, value], [value, value]):
        assert isinstance(monitor.see(messages), tuple)


@given(st.lists(st.sampled_from(range(12)), max_size=8), st.lists(st.sampled_from(range(12)), max_size=8))
def test_the_transcript_keeps_every_message_and_counts_the_gone(first, second):
    said = [{"role": "user", "content": f"word {number}"} for number in range(12)]
    transcript = Transcript()
    transcript.take([said[n] for n in first])
    change = transcript.take([said[n] for n in second])
    by_count = sum(max(0, first.count(n) - second.count(n)) for n in set(first))
    assert change.gone == by_count
    assert len(transcript.messages) == sum(max(first.count(n), second.count(n)) for n in {*first, *second})


def test_both_dialects_become_one_shape():
    ours, theirs = (list(openai_messages(make(1, "ls", "a b"))) for make in DIALECTS.values())
    assert [m["role"] for m in ours] == [m["role"] for m in theirs] == ["assistant", "tool"]
    assert ours[1]["tool_call_id"] == theirs[1]["tool_call_id"] == "c1"


@given(st.lists(st.tuples(st.builds(FileHistory, st.integers(1, 9), st.integers(0, 40), st.booleans()), st.booleans())))
def test_a_chance_is_the_share_of_like_pasts_with_one_of_two_imagined(pasts):
    counts = count_reuse(pasts)
    for past, _ in pasts:
        like = [again for other, again in pasts if other.history_bin == past.history_bin]
        assert reuse_chance(past, counts) == (sum(like) + 1) / (len(like) + 2)


def test_the_shipped_counts_cover_every_past():
    pasts = [
        FileHistory(uses, idle, written)
        for uses in range(1, MOST_USES + 1)
        for idle in (*IDLE, 99)
        for written in (0, 1)
    ]
    assert {past.history_bin for past in pasts} == set(bundled_counts())
    assert all(0 <= used <= every for used, every in bundled_counts().values())
    assert sum(every for _, every in bundled_counts().values()) > 1000


def test_a_deleted_file_is_known_no_more():
    call = Call("bash", {"command": "cat /repo/a.py"}, "x = 1\n")
    turns = (RecordedTurn((call,)), RecordedTurn((Call("bash", {"command": "rm /repo/a.py"}),)))
    run = interpret(Recording("r", "t", "live", "", turns), estimating_counter())
    assert len(known_files(run, 2)) == 1
    assert known_files(run, 3) == {}
