"""The two families of tasks on the runner: what is recorded of each, and that neither borrows the other's words."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from eirkit.cli import run as command_line
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.conversations import ConversationTasks
from eirkit.lacuna.runs.family import family_of
from eirkit.lacuna.runs.numbers import NumberTasks
from eirkit.lacuna.runs.suite import make_cell
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import ConversationSpec, TaskSpec, number_spec, spec_of
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Decision, decode_events, encode_events
from eirkit.records.settings import Task
from tests.runs import records

RUN = (
    "lacuna",
    "run",
    "words",
    "--preset",
    "small",
    "--model",
    "scripted/reader",
    "--memory",
    "bm25",
    "--seeds",
    "0:2",
)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("family") / "out"
    assert command_line([*RUN, "--out", str(out)]) == 0
    return out


def cell(workload: str, **values: object):
    return make_cell({"workload": workload, "model": "scripted/reader", **values}, ModelOptions())


def test_each_specification_has_its_family():
    assert isinstance(family_of(cell("conversation").task), ConversationTasks)
    assert isinstance(family_of(cell("store-recall").task), NumberTasks)


@pytest.mark.parametrize("workload", ["conversation", "store-recall"])
def test_a_recorded_task_is_specified_as_before(workload):
    task = cell(workload).task
    assert spec_of(task.parameters()) == (
        task if isinstance(task, ConversationSpec) else TaskSpec(workload, lookback=16)
    )


def test_words_is_another_spelling_of_conversation():
    assert cell("words").id == cell("conversation").id != cell("instructions").id
    assert cell("words").task.workload == "conversation"


def test_a_task_of_the_other_family_is_refused():
    with pytest.raises(UsageError, match="conversation is described by a preset"):
        prepare(TaskSpec("conversation"))
    with pytest.raises(UsageError, match="store-recall is described by n, m"):
        prepare(ConversationSpec("store-recall", "small", 24))
    with pytest.raises(UsageError, match="Harbor takes no conversations"):
        number_spec(cell("words").task, "Harbor")
    with pytest.raises(UsageError, match="conversations have no h"):
        cell("words", h=4)


def test_an_answer_is_numbers_or_a_text():
    given = [Decision(1, submitted=(4, 2)), Decision(2, submitted="8 März"), Decision(3)]
    again = decode_events(encode_events(given), "here")
    assert again == given
    assert [one.values for one in again] == [(4, 2), None, None]
    assert [one.text for one in again] == [None, "8 März", None]


def test_records_of_conversations_have_texts_and_nothing_of_numbers(sweep):
    for record in records(sweep):
        task = msgspec.to_builtins(record.setting.task)
        assert task == {"family": "conversation", "workload": "conversation", "preset": "small", "questions": 24}
        assert record.setting.access.h is None
        with SweepDatabase(sweep) as database:
            answers = [event.submitted for event in database.events(record.run) if isinstance(event, Decision)]
        assert len(answers) == 24
        assert all(isinstance(answer, str) for answer in answers)


def test_no_screen_of_conversations_names_what_only_numbers_have(sweep, tmp_path, capsys):
    page = tmp_path / "page.html"
    for words in (
        ("lacuna", "run", "--resume", sweep),
        ("show", sweep),
        ("show", sweep, "0"),
        ("show", sweep, "0", "1"),
        ("report", sweep, "--out", page),
        (*RUN, "--dry-run", "--model", "openai/gpt-4o-mini"),
        ("lacuna", "rescue", "words", "--preset", "small", "--model", "scripted/reader", "--seeds", "0:1"),
    ):
        assert command_line([*map(str, words)]) == 0
    shown = capsys.readouterr().out + page.read_text("utf-8")
    names = [*Task.__struct_fields__, "h"]
    assert re.findall(rf"\b(?:{'|'.join(set(names) - {'workload', 'queries'})}) = \S+", shown) == []
    assert re.search(r"^.*  h  .*$", shown, re.MULTILINE) is None
