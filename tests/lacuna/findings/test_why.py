"""Cards of wrong steps, sentence by sentence: against a server that knows the truth, and against the transcripts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from eirkit.cli import run as command_line
from eirkit.cli.selftest import choose
from eirkit.lacuna.findings.causes import Spread
from eirkit.lacuna.findings.fates import Lookups, recorded_consultations
from eirkit.lacuna.findings.why import NeededInput, WhyCard
from eirkit.records.events import ActionTaken, MemoryExchange, ModelExchange
from eirkit.records.runs import WrongAnswer
from eirkit.report.viewer.lacuna_run import LacunaRun
from eirkit.testing.selftest.behavior import FATES_COMPARED, observe
from eirkit.testing.selftest.memories import PlantedMemory
from eirkit.testing.selftest.planted import read_values
from tests.report.folders import command
from tests.runs import events, records


def runs_of(folder: Path) -> list[LacunaRun]:
    return [LacunaRun(folder, record, plugins=False) for record in records(folder)]


def lines_of(needed) -> dict[str, str]:
    return dict(needed.lines)


def sweep(folder: Path, *words: object) -> list[LacunaRun]:
    command("lacuna", "run", *words, "--no-control", "--out", folder, "--json")
    return runs_of(folder)


# --- against a server that knows what it was sent, and a memory whose fault is known ----------------------------------

# A behavior, and what its cards must say somewhere: a fate, and the heading and text of a line.
PLANTED = {
    "memory-dropping": ("not_stored", "in the store", "no"),
    "memory-forgetful-search": ("not_found", "in the store", "yes"),
    "memory-neighbor": ("not_found", "returned", "no; "),
    "memory-mislabels": ("swapped_value", "returned", "with another value"),
    "memory-truncating": ("cut_value", "returned", "with another value"),
    "memory-worst-first": ("other_value", "returned", "at rank 1 of "),
    "memory-unused": ("not_sought", "sought with", "nothing: there was no search"),
    "memory-unwritten": ("unwritten", "written", "never"),
    "memory-slips": ("not_used", "used", "no"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_every_statement_of_a_card_agrees_with_the_server_and_the_planted_store(tmp_path, name):
    (_, behavior) = choose([name])[0]
    observed = observe(replace(behavior, seeds="0:2"), tmp_path, command_line)
    fate, heading, text = PLANTED[name]
    seen = 0
    for record, _, truth in observed.pairs():
        run = LacunaRun(tmp_path / "runs", record, plugins=False)
        stored = PlantedMemory.stores.get(record.run, {})
        for t in range(1, truth.n + 1):
            card = run.card(t)
            assert card.correct == truth.is_right(t)
            assert int(card.answer) == truth.true[t]
            assert card.submitted is None or int(card.submitted) == truth.given[t]
            assert tuple(one.step for one in card.inputs) == truth.refs[t]
            for one in card.inputs:
                agrees(one, t, truth, stored)
                seen += one.fate == fate and lines_of(one).get(heading, "").startswith(text.partition("with")[0])
                seen += text in lines_of(one).get(heading, "") and one.fate == fate
    assert seen >= 2, f"no card of {name} says {fate} with {heading}: {text}"


def agrees(one, t, truth, stored) -> None:
    """Compare everything that is claimed about an input with what the server was sent and the store holds."""
    r, step, said = one.step, truth.steps[t], lines_of(one)
    assert said["given"].startswith(f"{truth.given[r]:04d} at step {r}, ")
    assert ("which is right" in said["given"]) == truth.is_right(r)
    assert one.in_context == (step.at_first.get(r) == truth.given[r])
    if one.in_context:
        assert one.fate is None
        return
    assert one.written_at == ((r,) if r in truth.written else ())
    assert (said["written"] == "never") == (r not in truth.written)
    assert bool(one.queries) == (t in truth.searched)
    assert all(f"A_{r:02d}" in query for query in one.queries)
    if one.held is not None:
        assert one.held == (read_values(stored.get(f"A_{r}", "")).get(r) == truth.given[r])
    if one.rank is not None:
        assert one.returned in step.turn.text  # it was shown to the agent
        shown = read_values(one.returned)[r]
        assert shown == step.turn.shown[r]
        assert ("with another value" in said["returned"]) == (shown != truth.given[r])
    if one.fate in FATES_COMPARED:
        assert one.fate in truth._lookup(t, r, stored)
    if one.used is not None:
        follows = step.form == "plain" and step.intended == truth._sum(step.turn)
        assert one.used == follows
    assert ("used" in said) == (one.rank is not None)


# --- against what was counted while the run was running, and against the prompts --------------------------------------


@pytest.mark.parametrize("memory", ["key-value", "broken-drops", "broken-labels", "null", "text"])
@pytest.mark.parametrize("model", ["reference/recoverer", "reference/sloppy"])
def test_fates_from_the_record_are_those_that_were_counted_when_it_ran(tmp_path, memory, model):
    how = ("--workload", "stepwise-sum", "--memory", memory, "--model", model)
    for run in sweep(tmp_path / "out", *how, "--m", 8, "--n", 20, "--h", 3, "--seeds", "0:2"):
        decisions = list(run.decisions.values())
        lookups = Lookups(decisions, list(run.verdicts.values()), recorded_consultations(run.events, decisions))
        found = [lookups.fate(r, decision) for decision in decisions for r in decision.missing]
        told = {fate: count for fate, count in run.record.memory.outcomes.items() if count}
        assert {fate: found.count(fate) for fate in set(found)} == told
        cards = [run.card(t) for t in run.verdicts]
        assert sorted(one.fate for card in cards for one in card.inputs if one.fate) == sorted(found)


def test_what_a_policy_kept_is_what_the_prompts_show(tmp_path):
    how = ("--workload", "stepwise-sum", "--policy", "fifo,lru", "--model", "reference/calculator")
    told = 0
    for run in sweep(tmp_path / "out", *how, "--m", 8, "--n", 20, "--h", 3, "--seeds", "0:2"):
        shown = {
            event.t: {int(label) for label in re.findall(r"A_(\d+) = ", event.prompt)}
            for event in run.events
            if isinstance(event, ModelExchange)
        }
        for t in run.verdicts:
            for one in run.card(t).inputs:
                said = lines_of(one)["in context"]
                last = [step for step in range(one.step + 1, t) if one.step in shown[step]]
                if one.step in shown[t]:
                    assert said == "yes"
                else:
                    told += 1
                    assert said == (
                        f"no; last at step {max(last)}" if last else f"no; at no step after step {one.step}"
                    )
                assert "memory" not in lines_of(one)
    assert told > 20


def test_an_error_is_traced_to_where_it_began(tmp_path):
    how = ("--workload", "stepwise-sum", "--policy", "fifo", "--model", "reference/calculator")
    for run in sweep(tmp_path / "out", *how, "--m", 8, "--n", 20, "--h", 3, "--seeds", "0:2"):
        for t, verdict in run.verdicts.items():
            card = run.card(t)
            words = " ".join(card.sentences())
            if verdict.correct:
                assert words == f"Step {t} is right: {card.answer}."
            elif verdict.cause == "cascade":
                wrong = [r for r in run.graph[t - 1] if not run.verdicts[r].correct]
                assert wrong
                assert "It began at step" in words
                assert max(card.spread.origins) < t
            else:
                assert "It began here" in words


def test_wrong_users_of_a_wrong_answer_are_named_though_they_slipped_themselves():
    card = WhyCard(9, False, "1234", "1235", "computation", "correct_inputs", (), spread=Spread((9,), (), (), (13, 17)))
    assert list(card.sentences())[-2:] == [
        "It began here; no later error follows from it.",
        "Steps 13 and 17 use it and are wrong too, for another reason.",
    ]


def test_what_the_agent_kept_itself_is_told(tmp_path):
    how = ("--workload", "stepwise-sum", "--condition", "kv", "--model", "reference/recoverer", "--b-oracle", 2)
    said = []
    for run in sweep(tmp_path / "out", *how, "--m", 8, "--n", 16, "--h", 2, "--seeds", "0:2"):
        actions = [(event.t, event.action) for event in run.events if isinstance(event, ActionTaken)]
        for t in run.verdicts:
            for one in run.card(t).inputs:
                lines = lines_of(one)
                kept = [f"WRITE {one.step} at step {at}" for at, action in actions if action == f"WRITE {one.step}"]
                if "kept" in lines and kept:
                    assert kept[0] in lines["kept"]
                    said.append("kept")
                if (t, f"READ {one.step}") in actions and "obtained otherwise" in lines:
                    assert lines["obtained otherwise"].startswith(f"READ {one.step}: A_")
                    said.append("read")
    assert {"kept", "read"} <= set(said)


def test_what_was_not_kept_is_unknown(tmp_path):
    how = ("--workload", "stepwise-sum", "--memory", "broken-drops", "--model", "reference/recoverer", "--no-texts")
    (run,) = sweep(tmp_path / "out", *how, "--m", 8, "--n", 16, "--h", 2, "--seeds", "0:1")
    needed = [one for t in run.verdicts for one in run.card(t).inputs if not one.in_context]
    assert needed
    for one in needed:
        assert lines_of(one)["memory"] == "unknown: the texts of the run were not kept"
        assert (one.fate, one.held, one.queries, one.written_at, one.rank) == (None, None, None, None, None)


# --- conversations ----------------------------------------------------------------------------------------------------

FAULTS = {  # a memory, the cause of its wrong answers, and how one line of their cards begins
    "words-forgets": ("deleted", "in the store", "no"),
    "words-late": ("not_retrieved", "in the store", "yes"),
    "words-truncates": ("cut_off", "in the store", "no"),
    "words-returns-all": ("below_budget", "returned", "in passage 1 of 1, after what of it was shown"),
}


@pytest.mark.parametrize("memory", FAULTS)
def test_cards_of_answers_about_conversations_name_the_planted_fault(tmp_path, memory):
    how = (
        "--workload",
        "words",
        "--preset",
        "small",
        "--memory",
        memory,
        "--model",
        "scripted/reader",
        "--seeds",
        "0:1",
    )
    (run,) = sweep(tmp_path / "out", *how)
    cause, heading, begins = FAULTS[memory]
    cards = [run.card(answer.t) for answer in run.record.conversation.wrong if answer.cause == cause]
    assert cards
    calls = [event for event in run.events if isinstance(event, MemoryExchange)]
    stores = [set(event.stored) for event in calls if event.verb == "observe"]
    recalled = {event.t: event for event in calls if event.verb == "recall"}
    for card in cards:
        assert card.way == card.wrong.cause == cause
        assert card.asked == recalled[card.t].text
        assert any(lines_of(one)[heading].startswith(begins) for one in card.inputs)
        for one in card.inputs:
            turn = next(number for number, turn in enumerate(run.task.instance.turns) if turn.startswith(one.name[:80]))
            told = [number for number, told in enumerate(run.task.instance.sessions, 1) for _ in told.messages]
            assert lines_of(one)["said"].startswith(f"in session {told[turn]} of ")
            if one.rank is not None:
                assert recalled[card.t].found[one.rank - 1] == one.returned
            for number in one.written_at:
                assert stores[number - 1]
            assert one.held == (len(stores) in one.written_at)


def test_a_cut_conversation_is_said_to_be_cut(tmp_path):
    how = (
        "--workload",
        "words",
        "--preset",
        "small",
        "--condition",
        "truncated",
        "--model",
        "scripted/reader",
        "--seeds",
        "0:1",
    )
    (run,) = sweep(tmp_path / "out", *how)
    prompts = {event.t: event.prompt for event in run.events if isinstance(event, ModelExchange)}
    seen = set()
    for t in run.verdicts:
        for one in run.card(t).inputs:
            said = lines_of(one)["shown"]
            seen.add(said)
            if said == "yes":
                assert one.name[-30:].rstrip("…") in prompts[t] or one.in_context
            else:
                assert one.name not in prompts[t]
    assert seen == {"yes", "no; cut off"}


def test_of_two_statements_a_card_says_which_was_shown():
    def needed(name, **found):
        return NeededInput(name, None, (), **found)

    wrong = WrongAnswer(3, "said_unknown", "not_retrieved")
    card = WhyCard(3, False, "Harrow", "Mira", "state_supply", "missing", (), None, wrong, asked="Where?")
    for first, second, said in (
        ({"rank": 2}, {}, "Of what it needed, this was shown: 'one'; and this was not: 'two'."),
        ({}, {"in_context": True}, "Of what it needed, this was shown: 'two'; and this was not: 'one'."),
        ({}, {}, None),
        ({"rank": 1}, {"rank": 2}, None),
    ):
        one = structs.replace(card, inputs=(needed("'one'", **first), needed("'two'", **second)))
        assert [line for line in one.sentences() if line.startswith("Of what")] == ([] if said is None else [said])


def test_a_card_is_plain_data(tmp_path):
    how = ("--workload", "stepwise-sum", "--memory", "broken-drops", "--model", "reference/recoverer")
    (run,) = sweep(tmp_path / "out", *how, "--m", 8, "--n", 12, "--h", 2, "--seeds", "0:1")
    for t in run.verdicts:
        assert msgspec.json.decode(msgspec.json.encode(run.card(t)), type=WhyCard) == run.card(t)
    assert run.card(99) is None
    assert events(run.folder, run.record.run) == run.events
