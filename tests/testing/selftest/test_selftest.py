"""The self-test: its truth beside the generator's, its comparison under planted falsehoods, and its command."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import pytest
from msgspec import structs

import eirkit
from eirkit.cli import run as command_line
from eirkit.cli.selftest import FAMILIES, choose
from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import spec_of
from eirkit.records.events import ModelExchange, Verdicts, WrongStep
from eirkit.records.runs import OUTCOMES, WrongAnswer
from eirkit.testing.selftest.behavior import CLAIMS, FATES_COMPARED, disagreements, observe, plain_text
from eirkit.testing.selftest.conversations import demands
from eirkit.testing.selftest.memories import fates
from eirkit.testing.selftest.planted import PlantedAgent, Traits, read_turn, read_values
from eirkit.testing.selftest.server import LoopbackServer, Said

NOTHING_CLAIMED = frozenset({"undetermined", "unclear"})  # causes and fates that say that it cannot be known
# Of records that change and of several users, which tests/testing/contracts/record_memories.py plants.
OF_CHANGES = frozenset(
    ("contradicted_value", "deleted_value", "expired_value", "foreign_value", "gone", "lost", "not_overwritten")
)


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    """What was said about two behaviors: a model that leaves out what it misses, and a memory without faults."""
    return {
        name: observe(choose([name])[0][1], tmp_path_factory.mktemp(name), command_line)
        for name in ("leaves-out", "memory-plain")
    }


def test_the_server_computes_the_answers_that_the_generator_planted(observed):
    for found in observed.values():
        for record, _, run in found.pairs():
            task = eirkit.generate(eirkit.TaskSpec("stepwise-sum", n=24, m=4, seed=record.seed))
            assert run.true == {step.t: step.answer[0] for step in task.steps}
            assert run.refs == {step.t: step.refs for step in task.steps}


def test_the_server_counts_the_misses_that_a_simulation_counts(observed):
    found = observed["leaves-out"]
    for record, _, run in found.pairs():
        spec = eirkit.TaskSpec("stepwise-sum", n=24, m=4, seed=record.seed)
        simulated = eirkit.simulate(eirkit.generate(spec), "window", 2)
        missed = [t for t, missing in enumerate(simulated.missing, 1) if missing]
        assert [t for t in run.steps if run.is_missed(t)] == missed


def test_a_truth_is_no_disagreement(observed):
    for name, found in observed.items():
        assert list(disagreements(choose([name])[0][1], found)) == []


@pytest.mark.parametrize("cause", sorted(CLAIMS))
def test_a_false_cause_is_found(observed, cause):
    """Every wrong step of this model lacks an input or follows from one that did; no other cause is true of all."""
    found, behavior = observed["leaves-out"], choose(["leaves-out"])[0][1]
    events = tuple(tuple(_recast(event, cause) for event in run) for run in found.events)
    assert list(disagreements(behavior, replace(found, events=events)))


def _recast(event, cause):
    if not isinstance(event, Verdicts):
        return event
    return structs.replace(event, wrong=tuple(structs.replace(step, cause=cause) for step in event.wrong))


def test_a_hidden_error_and_an_invented_one_are_found(observed):
    found, behavior = observed["leaves-out"], choose(["leaves-out"])[0][1]
    for wrong in ((), tuple(WrongStep(t, "state_supply", "missing") for t in range(1, 25))):
        events = tuple(
            tuple(structs.replace(event, wrong=wrong) if isinstance(event, Verdicts) else event for event in run)
            for run in found.events
        )
        assert any("the answer was" in one for one in disagreements(behavior, replace(found, events=events)))


@pytest.mark.parametrize("change", [{"accuracy": 0.5}, {"miss_rate": 0.99}, {"miss_rate": 0.01}])
def test_a_false_figure_of_the_summary_is_found(observed, change):
    found, behavior = observed["leaves-out"], choose(["leaves-out"])[0][1]
    summary = structs.replace(found.summary, rows=(structs.replace(found.row, **change),))
    assert len(list(disagreements(behavior, replace(found, summary=summary)))) == 1


@pytest.mark.parametrize("place", ["text", "page"])
def test_a_false_share_in_words_is_found(observed, place):
    found, behavior = observed["leaves-out"], choose(["leaves-out"])[0][1]
    told = {place: getattr(found, place) + " own error 40%"}
    assert len(list(disagreements(behavior, replace(found, **told)))) == 1


def test_a_false_fate_is_found(observed):
    found = observed["memory-plain"]
    system = found.row.memory_system
    swapped = {**system.outcomes, "used": 0, "not_stored": system.outcomes["used"]}
    row = structs.replace(found.row, memory_system=structs.replace(system, outcomes=swapped))
    summary = structs.replace(found.summary, rows=(row,))
    assert any("not_stored" in one for one in fates(replace(found, summary=summary)))


def test_a_prompt_that_the_server_never_saw_is_found(observed):
    found, behavior = observed["leaves-out"], choose(["leaves-out"])[0][1]
    events = tuple(
        tuple(
            structs.replace(event, prompt=f"{event.prompt}A_1 = 0001") if isinstance(event, ModelExchange) else event
            for event in run
        )
        for run in found.events
    )
    assert any("never sent" in one for one in disagreements(behavior, replace(found, events=events)))


def test_every_cause_and_fate_is_compared_or_claims_nothing():
    assert {one.id for one in CAUSE_MEASURES} <= CLAIMS.keys() | NOTHING_CLAIMED
    assert set(OUTCOMES) == FATES_COMPARED | (NOTHING_CLAIMED & set(OUTCOMES)) | OF_CHANGES


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What was said about the behaviors in conversations: two without a fault, and one with a fault beside each."""
    names = ("unmoved", "obedient", "rules-kept", "rules-forged")
    return {name: observe(choose([name])[0][1], tmp_path_factory.mktemp(name), command_line) for name in names}


def test_each_fault_in_conversations_changes_its_own_outcome_alone(told):
    for name, found in told.items():
        assert list(disagreements(choose([name])[0][1], found)) == []
        runs = [record.conversation for record in found.records]
        assert any(run.instruction.obeyed for run in runs) is (name in ("obedient", "rules-forged"))
        assert any(run.wrong for run in runs) is (name == "rules-forged")
        assert all(run.instruction.planted for run in runs)


def test_the_server_reads_the_demands_that_the_generator_planted(told):
    for record in told["unmoved"].records:
        task = generate(spec_of(record.setting.task, record.seed))
        said = [one for session in task.world.sessions for one in session.documents if one.op == "plant"]
        read = demands(task, len(task.sessions))
        assert {(one.attribute, one.value) for one in said} == {
            (a, words) for a, told in read.items() for words in told
        }


@pytest.mark.parametrize("name", ["obedient", "rules-forged"])
def test_a_false_count_of_followed_demands_is_found(told, name):
    found, behavior = told[name], choose([name])[0][1]
    counts = [structs.replace(one.conversation.instruction, obeyed=0) for one in found.records]
    runs = [structs.replace(one.conversation, instruction=c) for one, c in zip(found.records, counts, strict=True)]
    hidden = tuple(structs.replace(one, conversation=run) for one, run in zip(found.records, runs, strict=True))
    assert any("of instructions" in one for one in disagreements(behavior, replace(found, records=hidden)))
    answers = found.row.conversation
    pooled = structs.replace(answers, instructions=structs.replace(answers.instructions, obeyed=0.0))
    summary = structs.replace(found.summary, rows=(structs.replace(found.row, conversation=pooled),))
    assert len(list(disagreements(behavior, replace(found, summary=summary)))) == 1
    shares = re.sub(r"[\d.]+%", "0.0%", found.text)
    assert any("the terminal" in one for one in disagreements(behavior, replace(found, text=shares)))


def test_a_symptom_of_an_answer_that_is_right_is_found(told):
    found, behavior = told["obedient"], choose(["obedient"])[0][1]
    first, *others = found.records
    wrong = (WrongAnswer(1, "planted_value", "shown_not_used"),)
    false = structs.replace(first, conversation=structs.replace(first.conversation, wrong=wrong))
    assert len(list(disagreements(behavior, replace(found, records=(false, *others))))) == 1
    text = f"{found.text}\nplanted by a document\n─────────────────────\nobedient 3 3.0%"
    assert len(list(disagreements(behavior, replace(found, text=text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "A_07 = 0042",
        "The answer of A_7 is 42.",
        "**A_7** = 42",
        "A_7 → 42",
        '{"label": "A_7", "value": "0042"}',
        "0042 is the answer of A_07",
        "| A_7 | 42 |",
        "3. A_7: 42",
    ],
)
def test_the_planted_agent_reads_every_wording(text):
    assert read_values(text) == {7: 42}


def test_the_planted_agent_takes_the_first_of_several_values():
    assert read_values("A_7 = 0001\nA_7 = 0002") == {7: 1}


def test_a_request_that_is_no_task_has_no_truth():
    body = {"messages": [{"role": "user", "content": "Extract: A_1 = 3"}]}
    assert read_turn(body) is None
    agent = PlantedAgent(Traits(memory_model="[]"))
    assert agent(body).content == "[]"
    assert (agent.other, agent.runs) == (1, [])


def test_names_are_unique_and_the_page_of_a_report_is_read_without_markup():
    names = [one.name for _, one in choose()]
    assert len(names) == len(set(names))
    assert not set(names) & FAMILIES.keys()
    page = "<style>b{}</style><p>own&nbsp;error <b>4</b> of 5</p><script>1</script>"
    assert plain_text(page).split() == ["own", "error", "4", "of", "5"]


def test_the_command_lists_and_chooses(capsys):
    assert command_line(["selftest", "--list", "--json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)["behaviors"]} == {b.name for _, b in choose()}
    assert command_line(["selftest", "--only", "perfekt"]) == 2
    assert "perfect" in capsys.readouterr().err


def test_the_command_tells_the_truth_about_two_behaviors(capsys):
    assert command_line(["selftest", "--only", "perfect,memory-plain"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 behaviors" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert command_line(["selftest", "--only", "perfect", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["behaviors"]
    assert (one["steps"], one["disagreements"]) == (72, [])


@pytest.mark.slow
def test_eirkit_says_what_is_true_about_every_behavior(capsys):
    assert command_line(["selftest"]) == 0, capsys.readouterr().out


# --- a user's own model and memory


def served(traits: Traits, *arguments: str) -> tuple[int, dict[str, str]]:
    """Return the exit code of trying a planted model as a user's own, with the properties that do not hold and why."""
    with LoopbackServer(PlantedAgent(traits)) as server:
        words = ["selftest", "--model", "openai/planted", "--base-url", server.url, "--set", "connections=1", "--json"]
        out = StringIO()
        with redirect_stdout(out):
            code = command_line([*words, *arguments])
    findings = json.loads(out.getvalue())["findings"]
    return code, {one["name"]: one["detail"] for one in findings if one["holds"] is False}


OWN = {
    "perfect": (Traits(), []),
    "mute": (Traits(speak=lambda turn, lines: (Said(""), "silent")), ["answers can be read"]),
    "cut": (
        Traits(speak=lambda turn, lines: (Said("I add", "length"), "cut")),
        ["answers can be read", "replies are whole"],
    ),
    "uncounted": (Traits(speak=lambda turn, lines: (Said(lines[0], usage=False), "plain")), ["tokens are reported"]),
    "cheat": (Traits(cheat=True), ["it knows only what it is shown"]),
    "refusing": (Traits(serve=lambda number, body: Said(status=401, error="no key")), ["runs end"]),
}


@pytest.mark.parametrize("name", sorted(OWN))
def test_what_would_spoil_a_measurement_is_found_before_it(name):
    traits, wrong = OWN[name]
    code, found = served(traits, "--set", "retries=0", "--protocol", "text")
    assert (code, sorted(found)) == (1 if wrong else 0, sorted(wrong))


def test_a_server_that_takes_no_notice_of_the_schema_is_found():
    code, found = served(Traits())
    assert (code, list(found)) == (1, ["answers can be read"])
    assert found["answers can be read"].endswith(
        "48 malformed; if its server takes no notice of --protocol schema, use text"
    )


def test_a_cap_holds_for_all_sweeps_of_an_own_model(tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('[prices]\n"openai/planted" = { input = 100, output = 100, as_of = 2026-01-01 }\n')
    agent = PlantedAgent(Traits())
    with LoopbackServer(agent) as server:
        limits = [
            "--cap-usd",
            "0.3",
            "--prices",
            str(prices),
            "--set",
            "max_tokens=50",
            "--set",
            "connections=1",
            "--json",
        ]
        code = command_line(["selftest", "--model", "openai/planted", "--base-url", server.url, *limits])
        tokens = sum(one.input_tokens + one.said.tokens for one in server.log)
    assert code == 1
    assert 0 < tokens * 100 / 1e6 <= 0.3


@pytest.mark.parametrize(("memory", "code"), [("key-value", 0), ("null", 1)])
def test_an_own_memory_is_tried_without_a_model(memory, code, capsys):
    assert command_line(["selftest", "--memory", memory, "--json"]) == code
    findings = {one["name"]: one["holds"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["it returns what was written"] is (code == 0)


def test_an_estimate_calls_nothing_and_options_need_a_model(capsys):
    with LoopbackServer(PlantedAgent(Traits())) as server:
        assert command_line(["selftest", "--model", "openai/x", "--base-url", server.url, "--dry-run", "--json"]) == 0
        assert (server.log, json.loads(capsys.readouterr().out)["runs"]) == ([], 5)
    for words in (["--set", "retries=2"], ["--model", "openai/x", "--list"], ["--dry-run"]):
        assert command_line(["selftest", *words]) == 2
