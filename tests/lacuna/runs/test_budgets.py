"""Budgets of prompts in sweeps: one command has memories, the whole conversation and its end, each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run
from eirkit.errors import UsageError
from eirkit.lacuna.findings.command_line import evidence_command
from eirkit.lacuna.runs.suite import Suite, join_suites, read_suite
from eirkit.report.runs.choice import choose
from eirkit.report.runs.folder import read_evidence, read_sweep
from eirkit.report.runs.ranking import ranking_table
from tests.runs import records

TOLD = {"workload": "conversation", "preset": "small", "model": "scripted/reader", "seeds": "0:2"}
BUDGETS = ["documented", "k=10", "tokens=100", "tokens=400"]


def cells(document: dict[str, Any]) -> list[tuple[str, str]]:
    suite = read_suite(document)
    planned = [cell for cell, _ in suite.plan()]
    assert len(suite) == sum(len(seeds) for _, seeds in suite.plan())
    return [(cell.access.memory or cell.access.condition, cell.access.budget) for cell in planned]


def test_what_a_budget_does_not_change_is_run_once():
    assert cells({**TOLD, "memory": ["bm25", "whole", "truncated"], "budget": BUDGETS}) == [
        *(("bm25", budget) for budget in BUDGETS),
        ("whole", "documented"),
        ("truncated", "documented"),  # its usual context, also under k=10
        ("truncated", "tokens=100"),
        ("truncated", "tokens=400"),
    ]
    assert cells({**TOLD, "memory": ["whole", "bm25"], "budget": "tokens=100"}) == [
        ("whole", "documented"),
        ("bm25", "tokens=100"),
    ]
    assert cells({**TOLD, "condition": ["whole", "truncated"], "budget": ["tokens=100", "k=3"]}) == [
        ("whole", "documented"),
        ("truncated", "tokens=100"),
        ("truncated", "documented"),
    ]


def test_without_a_budget_each_memory_has_its_own():
    assert cells({**TOLD, "memory": ["bm25", "whole"]}) == [("bm25", "documented"), ("whole", "documented")]
    numbers = {"workload": "store-recall", "model": "reference/recoverer", "budget": ["documented", "tokens=100"]}
    assert cells({**numbers, "memory": "bm25"}) == [("bm25", "documented"), ("bm25", "tokens=100")]
    assert cells(numbers) == [("controlled", "documented")], "nothing is retrieved, whatever the budget"


def test_a_suite_with_budgets_is_read_again_as_it_was_and_can_be_joined():
    first = read_suite({**TOLD, "memory": ["bm25", "whole"], "budget": ["tokens=100", "tokens=400"]})
    assert read_suite(first.settings).settings == first.settings
    more = read_suite({**TOLD, "memory": ["bm25", "whole"], "budget": ["tokens=100", "k=3"], "seeds": "0:4"})
    joined = join_suites(first, more)

    def runs(suite: Suite) -> set[tuple[str, int]]:
        return {(cell.id, seed) for cell, seeds in suite.plan() for seed in seeds}

    assert runs(joined) == runs(first) | runs(more)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"workload": "store-recall", "memory": "whole"},
            "whole shows a conversation, and store-recall has none; leave",
        ),
        ({"memory": "bm25", "condition": "whole"}, "write --memory NAME,whole without --condition"),
        ({"memory": "truncated", "budget": "tokens=100", "context_tokens": 64}, "leave out context_tokens"),
        ({"memory": "bm25", "budget": "2000"}, "write documented, k=10 or tokens=2000"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_remedy(given, said):
    document = {key: value for key, value in (TOLD | given).items() if key != "preset" or "workload" not in given}
    with pytest.raises(UsageError, match=said):
        read_suite(document)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("budgets") / "sweep"
    words = ["lacuna", "run", "conversation", "--preset", "small", "--model", "scripted/reader", "--seeds", "0:6"]
    words += ["--memory", "bm25,whole,truncated", "--budget", ",".join(BUDGETS), "--out", str(out)]
    assert run(words) == 0
    return out


def test_no_prompt_has_more_than_its_budget_and_the_record_says_how_much_it_has(folder):
    longest: dict[tuple[str, str], int] = {}
    for record in records(folder):
        access = record.setting.access
        key = access.memory or access.condition, access.budget
        characters = max(one.characters for one in record.conversation.retrieval)
        longest[key] = max(longest.get(key, 0), characters)
    assert len(longest) == 8
    assert longest["bm25", "tokens=100"] <= longest["truncated", "tokens=100"] == 400
    assert longest["bm25", "tokens=400"] <= longest["truncated", "tokens=400"] == 1_600
    assert longest["whole", "documented"] > 1_600
    assert longest["bm25", "tokens=100"] > 300, "it uses what it may"


def test_the_rows_have_their_budget_and_what_it_takes(folder):
    rows = {(row.memory or row.condition, row.budget): row for row in read_sweep(folder).rows}
    assert {budget for name, budget in rows if name == "whole"} == {None}
    found = {key: row.conversation.retrieval for key, row in rows.items()}
    tokens = {key: row.prompt_tokens for key, row in found.items()}
    assert tokens["bm25", "tokens=100"] < tokens["bm25", "k=10"] < tokens["bm25", "tokens=400"] < tokens["whole", None]
    assert found["bm25", "k=10"].asked_passages == 10
    recalls = [found["bm25", budget].recall for budget in ("tokens=100", "k=10", "tokens=400")]
    assert recalls == sorted(recalls)
    assert found["whole", None].recall == 1
    assert found["whole", None].reciprocal_rank is None


def test_the_conversation_itself_is_ranked_beside_memories_under_every_budget(folder):
    choice = choose([read_sweep(folder)], "memory")
    assert {standing.name for standing in choice.ranking.standings} == {"bm25", "whole", "truncated"}
    assert set(choice.parts["budget"]) == set(BUDGETS)
    assert all(part.tasks == 6 and len(part.standings) == 3 for part in choice.parts["budget"].values())
    lines = {str(line["name"]): line for line in ranking_table(choice).rows}
    assert lines["whole"]["prompt_tokens"] > lines["bm25"]["prompt_tokens"]


def test_budgets_are_candidates_too(folder):
    choice = choose([read_sweep(folder)], "budget")
    assert {standing.name for standing in choice.ranking.standings} == set(BUDGETS)
    best = choice.ranking.standings[0]
    assert best.value == max(standing.value for standing in choice.ranking.standings)
    assert choice.passages == {"documented": "5", "k=10": "10", "tokens=100": "50", "tokens=400": "50"}


def test_a_rescue_has_the_budget_of_its_memory_in_all_arms(tmp_path, capsys):
    out = tmp_path / "rescue"
    words = ["lacuna", "rescue", "conversation", "--preset", "small", "--model", "scripted/reader", "--seeds", "0:2"]
    assert run([*words, "--memory", "bm25", "--budget", "tokens=50", "--no-control", "--out", str(out)]) in (0, 1)
    told = [record for record in records(out) if record.conversation is not None]
    assert {record.setting.access.budget for record in told} == {"tokens=50"}
    assert {getattr(record.setting.intervention, "arm", None) for record in told} == {
        "control",
        "oracle",
        "sham",
        "stale",
    }
    assert max(one.characters for record in told for one in record.conversation.retrieval) <= 200
    settings = read_evidence(out).settings
    assert "--memory bm25 --budget tokens=50" in evidence_command(settings)
    capsys.readouterr()


def test_one_run_is_shown_by_its_budget(folder, capsys):
    assert run(["show", str(folder), "0", "--memory", "bm25"]) == 2
    assert "or add --budget NAME" in " ".join(capsys.readouterr().err.split())
    assert run(["show", str(folder), "0", "--memory", "bm25", "--budget", "tokens=100"]) == 0
    assert "(bm25, tokens=100)" in " ".join(capsys.readouterr().out.split())
