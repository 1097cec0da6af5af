"""How the format of a log is found: the surest wins, a tie is named, and long beginnings and preambles are passed."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import CorpusReader, naming_formats, possible_formats, read_corpus
from eirkit.vestige.formats import FILES_BESIDE, NAMING, PLUGINS
from eirkit.vestige.sources.documents import LogDocument, ReadLimits, Skipped, StoredDocument, open_document
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.trajectory import MARKED, NAMED, SHAPE, FolderFormat, Recording, formats
from tests.vestige.formats.logs import as_json, as_lines
from tests.vestige.formats.samples import write_sample

pytestmark = pytest.mark.check

LONG = "word " * 30_000  # 150 KB, more than twice what is read of a file's beginning


def session(prompt: str) -> list[dict[str, Any]]:
    common = {"sessionId": "s", "isSidechain": False, "cwd": "/repo", "version": "2.1.325"}
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/repo/a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "1\tx = 1\n"}
    return [
        {**common, "type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": prompt}},
        {**common, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": {"id": "m", "content": [call]}},
        {**common, "type": "user", "uuid": "u3", "parentUuid": "u2", "message": {"role": "user", "content": [result]}},
    ]


def rollout(instructions: str) -> list[dict[str, Any]]:
    reply = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    return [
        {
            "timestamp": "t",
            "type": "session_meta",
            "payload": {"id": "c", "cwd": "/repo", "instructions": instructions},
        },
        {"timestamp": "t", "type": "response_item", "payload": reply},
    ]


@pytest.mark.parametrize(("format", "make"), [("claude-code", session), ("codex", rollout)])
@pytest.mark.parametrize("preamble", [[], ["Warning: no update was found", ""], ["\ufeff"]])
def test_a_first_line_of_any_length_and_a_preamble_are_passed(
    tmp_path: Path, format: str, make: Any, preamble: list[str]
) -> None:
    lines = [json.dumps(line) for line in make(LONG)]
    path = tmp_path / "a.jsonl"
    marked = preamble[:1] == ["\ufeff"]
    path.write_text(("\ufeff" if marked else "".join(f"{line}\n" for line in preamble)) + "\n".join(lines) + "\n")
    (run,) = [item for item in read_corpus([path]) if isinstance(item, Recording)]
    assert run.format == format


def test_a_session_that_begins_with_other_records_is_recognized(tmp_path: Path) -> None:
    queued = [{"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": LONG}] * 3
    (run,) = read_corpus([as_lines(tmp_path / "a.jsonl", [*queued, *session("Go")])])
    assert isinstance(run, Recording)
    assert run.format == "claude-code"


def test_a_trajectory_with_queries_is_a_run_of_swe_agent_and_no_row_of_messages(tmp_path: Path) -> None:
    # Newer files repeat the prompt at each step, as messages with a role, which rows of messages have, too.
    step = {"action": "cat a.py", "observation": "x = 1", "response": "Look.", "state": {}, "thought": "Look."}
    step["messages"] = [{"role": "user", "content": "Go"}]
    path = as_json(tmp_path / "task-1.traj", {"trajectory": [step], "id": "task-1", "history": [], "info": {}})
    document = open_document(path)
    assert formats.get("message-rows")().recognizes(document) == SHAPE
    assert formats.get("swe-agent")().recognizes(document) == MARKED
    (run,) = read_corpus([path])
    assert isinstance(run, Recording)
    assert run.format == "swe-agent"


class _Sure:
    """A format that takes every log for its own."""

    def __init__(self, certainty: int) -> None:
        self.certainty = certainty

    def recognizes(self, document: LogDocument) -> int:
        return self.certainty

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        yield Recording("r", "t", "sure", document.source, ())


def reader_of(**readers: _Sure) -> CorpusReader:
    reader = CorpusReader(outcomes=None, format=None, limits=ReadLimits())
    reader._reading.names, reader._reading._readers = [*readers], {**readers}
    return reader


def test_the_surest_wins_and_a_tie_names_both(tmp_path: Path) -> None:
    path = as_json(tmp_path / "a.json", {})
    (item,) = reader_of(first=_Sure(SHAPE), second=_Sure(NAMED), third=_Sure(MARKED)).read(open_document(path), path)
    assert isinstance(item, Recording)
    (tie,) = reader_of(first=_Sure(MARKED), second=_Sure(MARKED)).read(open_document(path), path)
    assert isinstance(tie, Skipped)
    assert tie.reason == "looks like first and like second; choose one with --log-format"


TEXTS = (".jsonl", ".json", ".md", ".traj")


def contents(paths: list[Path]) -> list[tuple[str, list[str], list[str]]]:
    """Return what is read from paths: for each run its format and the files that it read and wrote."""
    runs = [item for item in read_corpus(paths) if isinstance(item, Recording)]
    turns = [(run.format, interpret(run, len).turns) for run in runs]
    return sorted(
        (name, [read.path for turn in told for read in turn.reads], [one.path for turn in told for one in turn.writes])
        for name, told in turns
    )


@pytest.mark.parametrize("name", sorted(formats.names()))
def test_marks_and_line_ends_of_windows_change_nothing(name: str, tmp_path: Path) -> None:
    write_sample(name, tmp_path)
    before = contents([tmp_path])
    assert before
    for path in (path for path in tmp_path.rglob("*") if path.suffix in TEXTS):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert contents([tmp_path]) == before


def test_a_database_in_an_archive_is_named(tmp_path: Path) -> None:
    for path in write_sample("goose", tmp_path / "goose"):
        if path.suffix == ".db":
            with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
                archive.write(path, path.name)
    [skipped] = read_corpus([tmp_path / "logs.zip"])
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "is a database inside an archive; unpack the archive"


def test_signs_never_leave_out_a_format_that_would_recognize_a_log_or_claim_a_file(tmp_path: Path) -> None:
    readers = {name: formats.get(name)() for name in formats.names()}
    for sample in readers:
        write_sample(sample, tmp_path / sample)
    documents = [one for one in find_documents([tmp_path]) if isinstance(one, StoredDocument)]
    left_out = [(name, one.source) for one in documents for name in PLUGINS if not possible_formats([name], one)]
    assert len(left_out) > len(documents) * len(PLUGINS) / 2  # most formats are not asked about most logs
    by_source = {one.source: one for one in documents}
    assert not [pair for pair in left_out if readers[pair[0]].recognizes(by_source[pair[1]])]
    named = [(name, one) for one in documents for name, reader in readers.items() if reader.recognizes(one) >= NAMED]
    assert {name for name, _ in named} == set(NAMING)  # no other can be as sure, so these are asked first
    assert all(naming_formats([name], one) for name, one in named)
    assert {name for name, one in readers.items() if isinstance(one, FolderFormat)} == set(FILES_BESIDE)
    for top, folders, files in os.walk(tmp_path):
        folder, names = Path(top), [*folders, *files]
        for format, beside in FILES_BESIDE.items():
            if not any(sign in name for sign in beside for name in names):
                assert not readers[format].claims(folder, names), (format, folder)


def test_a_format_of_another_package_is_asked_about_every_log(tmp_path: Path) -> None:
    document = open_document(as_json(tmp_path / "a.json", {}))
    assert possible_formats(["of-another-package"], document)
    assert naming_formats(["of-another-package"], document)


def test_a_log_whose_first_record_is_longer_than_its_head_is_shown_to_every_format(tmp_path: Path) -> None:
    lines = [{"type": "queue-operation", "content": LONG}, *session("Go")]
    document = open_document(as_lines(tmp_path / "a.jsonl", lines))
    assert b"parentUuid" not in document.head
    assert possible_formats(["claude-code"], document)
