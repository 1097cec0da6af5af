"""Cuts of runs with known needs: 36 runs with known dependencies, planted logs, and what counts as the same line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.validation import GOAL, known_cases
from eirkit.vestige.tokens import exact_counter
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, KeptContext, RecordedTurn, Recording, Touches
from eirkit_coding.compaction.context import (
    MESSAGE_TOKENS,
    ContextMessage,
    LineCounter,
    fault_of,
    key_of,
)
from eirkit_coding.compaction.cuts import CutPlan, best_kept, judge
from eirkit_coding.compaction.recorded import context_before
from eirkit_coding.compactors.benchmark import planned_cuts
from eirkit_coding.compactors.built_in import BestLines
from eirkit_coding.compactors.compactor import TokenBudget
from tests.coding.compactors.planted_sessions import NEEDED, file_lines, write_sessions
from tests.vestige import reference

CASES = list(known_cases())


def text_of(path: str) -> str:
    return "\n".join(f"{path} holds fact number {number} of ten" for number in range(10))


def with_texts(case) -> Recording:
    """A case whose reads and writes show the text of their files, as a log would record it."""
    turns = []
    for turn in case.turns:
        reads = tuple(FileRead(read.path, content=text_of(read.path)) for read in turn.reads)
        writes = tuple(FileWrite(write.path, "whole", content=text_of(write.path)) for write in turn.writes)
        turns.append(RecordedTurn(touches=Touches(reads, writes)))
    return Recording("r", "t", "plain", "case", tuple(turns), goal_files=(GOAL,))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.shape}-{case.length}-{case.place}")
def test_needed_lines_of_known_dependencies_are_those_of_the_live_files(case):
    """The live files come from the slow second reading of the definitions, which shares no code."""
    trajectory = interpret(with_texts(case), exact_counter())
    plain = [([(r.path, 1) for r in t.reads], [(w.path, 1) for w in t.writes]) for t in case.turns]
    needed_by = reference.sliced(plain, {GOAL})
    counter, count = LineCounter(exact_counter()), exact_counter()
    cuts = list(planned_cuts(trajectory, None, CutPlan("every", 1), exact_counter(), LineCounter(exact_counter())))
    assert [cut.turn for cut in cuts] == list(range(2, len(case.turns) + 1))
    for cut in cuts:
        live = {
            path
            for (path, version), (_, turn, _) in needed_by
            if turn >= cut.turn
            and reference.in_force(plain, path, cut.turn) == (path, version)
            and reference.seen_before(plain, (path, version), cut.turn)
        }
        wanted = {key_of(line) for path in live for line in text_of(path).splitlines()}
        assert set(cut.needed) == wanted, f"before turn {cut.turn}"
        some = sorted(wanted)[::2]
        sizes = {key: count(f"{key}\n") for key in wanted}
        outcome = judge(cut, 10_000, [ContextMessage("user", "\n".join([*some, "a line of nobody's"]))], counter)
        assert outcome.state.kept_tokens == sum(sizes[key] for key in some)
        exactly = MESSAGE_TOKENS + sum(sizes.values())
        assert (best_kept(cut, exactly), best_kept(cut, MESSAGE_TOKENS)) == (cut.needed_tokens, 0)
        kept = judge(cut, exactly, BestLines.knowing(cut).compact(cut.messages, TokenBudget(exactly, counter)), counter)
        assert kept.state.kept_tokens == cut.needed_tokens == sum(sizes.values())


@pytest.fixture
def planted(tmp_path: Path):
    folder = write_sessions(tmp_path / "logs", ["one"])
    (recording,) = read_corpus([folder])
    return interpret(recording, exact_counter())


def cuts_of(trajectory, plan="every:5"):
    return list(planned_cuts(trajectory, None, CutPlan.parse(plan), exact_counter(), LineCounter(exact_counter())))


def test_needed_lines_of_a_planted_log_are_those_of_the_file_that_is_edited_later(planted):
    cut = cuts_of(planted)[0]
    assert cut.turn == 6
    assert {line.text for line in cut.needed.values()} == set(file_lines("one_needed", 20))
    assert {line.paths for line in cut.needed.values()} == {(NEEDED,)}
    assert {line.kind for line in cut.needed.values()} == {"read"}
    count = exact_counter()
    assert cut.needed_tokens == sum(count(f"{line}\n") for line in file_lines("one_needed", 20))


def test_kept_and_lost_are_counted_by_line(planted):
    cut, counter, count = cuts_of(planted)[0], LineCounter(exact_counter()), exact_counter()
    lines = file_lines("one_needed", 20)
    some = lines[3:9]
    forms = {
        "as it was": "\n".join(some),
        "numbered": "\n".join(f"{number:6}\t{line}" for number, line in enumerate(some, 4)),
        "a search result": "\n".join(f"{NEEDED}:{number}:{line}" for number, line in enumerate(some, 4)),
        "quoted": "The file says:\n" + "\n".join(f"    {line}" for line in some) + "\nand no more.",
        "twice": "\n".join(some + some),
    }
    for form, text in forms.items():
        outcome = judge(cut, 4_000, [ContextMessage("user", text)], counter)
        assert outcome.state.kept_tokens == sum(count(f"{line}\n") for line in some), form
        assert outcome.present & cut.needed.keys() == {key_of(line) for line in some}, form
        assert outcome.state.used_tokens >= outcome.state.kept_tokens + MESSAGE_TOKENS, form
    for wrong in (
        "\n".join(line[:-3] for line in some),
        "it sets twenty values",
        "\n".join(file_lines("one_noise", 40)),
    ):
        assert judge(cut, 4_000, [ContextMessage("user", wrong)], counter).state.kept_tokens == 0


def test_the_opening_stays_and_costs_nothing(planted):
    cut, counter = cuts_of(planted)[0], LineCounter(exact_counter())
    assert cut.messages[0].role == "system"
    assert "third value" in cut.messages[0].text
    outcome = judge(cut, 0, cut.messages[:1], counter)
    assert (outcome.status, outcome.state.used_tokens) == ("ok", 0)
    changed = replace(cut.messages[0], text="Do as you please.")
    assert judge(cut, 0, [changed], counter).status == "over budget"


def test_the_tokens_of_a_context_are_those_of_its_texts(planted):
    """Counted line by line, tokens differ from those of the whole text by the seams only."""
    cut, count = cuts_of(planted)[0], exact_counter()
    whole = sum(count(one.text) for one in cut.messages[1:])
    lines = cut.context_tokens - MESSAGE_TOKENS * (len(cut.messages) - 1)
    assert abs(lines - whole) <= 0.05 * whole  # a line ends a token except before blank lines and slashes


def test_after_a_compaction_the_context_is_what_replaced_it():
    read = Call("read_file", {"path": "/w/a.py"}, "a very distinctive line of the file\nand another one of them")
    turns = (
        RecordedTurn(calls=(read,), asked="fix it"),
        RecordedTurn(text="half way"),
        RecordedTurn(text="going on", broken="compaction", carried="Summary: we fix a.py."),
        RecordedTurn(text="done"),
    )
    trajectory = interpret(Recording("r", "t", "x", "x", turns, prompt="fix it"), exact_counter())
    before, after = context_before(trajectory, 3), context_before(trajectory, 4)
    assert [one.role for one in before] == ["user", "assistant", "tool", "assistant"]
    assert [one.text for one in after] == ["Summary: we fix a.py.", "going on"]
    assert not fault_of(before)


def test_cuts_are_where_they_are_asked_for(planted):
    turns = planted.turns
    assert CutPlan.parse("every:3").turns(turns) == (4, 7)
    assert CutPlan.parse("real").turns(turns) == ()
    (first, *_) = CutPlan.parse("tokens:500").turns(turns)
    assert sum(turn.tokens for turn in turns[: first - 1]) >= 500 > sum(turn.tokens for turn in turns[: first - 2])


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("    return total", "return total"),
        ("   12\treturn total", "return total"),
        ("12: return total", "return total"),
        ("src/a.py:12:    return total", "return total"),
        ("src/a.py-12-return total", "src/a.py-12-return total"),
        ("+    return total", "return total"),
        ("-    return total", "- return total"),
        ("42", "42"),
        ("", ""),
    ],
)
def test_a_line_is_the_same_however_a_tool_prints_it(line, key):
    assert key_of(line) == key
    assert key_of(key) == key


def test_a_real_compaction_says_what_replaced_the_context():
    shown = "the first distinctive line\nthe second distinctive line"
    turns = (
        RecordedTurn(calls=(Call("read_file", {"path": "/w/a.py"}, shown),), asked="fix it"),
        RecordedTurn(text="going on", broken="compaction", carried="Summary:\nthe second distinctive line"),
        RecordedTurn(calls=(Call("read_file", {"path": "/w/a.py"}, shown),)),
    )
    trajectory = interpret(Recording("r", "t", "x", "x", turns, prompt="fix it"), exact_counter())
    (cut,) = cuts_of(trajectory, "real")
    assert set(cut.needed) == set(shown.splitlines())
    outcome = judge(cut, 100, cut.replaced_by, LineCounter(exact_counter()))
    assert outcome.present == {"the second distinctive line"}
    assert cut.later_reads == {"/w/a.py": frozenset(shown.splitlines())}
    sealed = structs.replace(turns[1], carried="", kept=KeptContext("history", texts=("fix it",), is_opaque=True))
    trajectory = interpret(Recording("r", "t", "x", "x", (turns[0], sealed, turns[2])), exact_counter())
    (cut,) = cuts_of(trajectory, "real")
    assert cut.replaced_by is None, "what is encrypted is unknown, and not lost"
