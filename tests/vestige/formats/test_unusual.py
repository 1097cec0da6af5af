"""Unusual sessions in the shapes of many agents: nothing is lost, nothing is a silent zero, and coverage is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from eirkit.vestige.actions.touches import coverage_of, interpret
from eirkit.vestige.corpus.reader import CorpusReader, read_corpus
from eirkit.vestige.corpus.work_units import WHOLE, sections_of
from eirkit.vestige.sources.documents import ReadLimits, Skipped, open_document
from eirkit.vestige.trajectory import Recording
from tests.vestige.formats.logs import as_lines
from tests.vestige.formats.unusual import SHAPES, Did, Unusual

VIEW = Did("view", "/repo/src/a.py", "x = 1\ny = 2\nz = 3")
EDIT = Did("edit", "/repo/src/a.py", "", "x = 1", "x = 2")
CAT = Did("shell", "cat src/b.py", "b = 1\nc = 2")
USUAL = ("Mend a.py", (VIEW,), (CAT,), (EDIT,), "Go on", (Did("shell", "python3 t.py", "ok"),))
READS, WRITES = ["src/a.py", "src/b.py"], ["src/a.py"]
WINDOWS = (
    "Mend a.py",
    (Did("view", "C:\\work\\repo\\src\\a.py", "x = 1\r\ny = 2\r\nz = 3"),),
    (Did("shell", "Get-Content src\\b.py | Select-Object -First 2", "b = 1\r\nc = 2"),),
    (Did("edit", "C:\\work\\repo\\src\\a.py", "", "x = 1", "x = 2"),),
)
CASES = {
    "usual": Unusual(USUAL),
    "windows": Unusual(WINDOWS, root="C:\\work\\repo"),
    "parallel": Unusual(("Mend a.py", (VIEW, CAT, EDIT), "Go on", (Did("shell", "ls", "src"),)), reverses=True),
    "blocks": Unusual(USUAL, as_blocks=True),
    "an image": Unusual(USUAL, as_blocks=True, has_image=True),
    "clock backwards": Unusual(USUAL, step_seconds=-3600),
    "empty compaction": Unusual((*USUAL[:3], None, *USUAL[3:])),
    "compaction first": Unusual((None, *USUAL), summary="So far."),
    "compaction last": Unusual((*USUAL, None), summary="So far."),
    "two compactions in a row": Unusual((*USUAL[:3], None, None, *USUAL[3:]), summary="So far."),
}
shapes = pytest.mark.parametrize("shape", SHAPES)


def written(shape: str, session: Unusual, folder: Path) -> None:
    for name, content in SHAPES[shape](session).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def runs_in(folder: Path) -> list[Recording]:
    items = list(read_corpus([folder]))
    assert not [item for item in items if isinstance(item, Skipped)], items
    return [item for item in items if isinstance(item, Recording)]


def told_by(run: Recording) -> tuple[list[str], list[str]]:
    turns = interpret(run, len).turns
    reads, writes = [one.path for turn in turns for one in turn.reads], [w.path for turn in turns for w in turn.writes]
    return sorted(reads), writes


@shapes
@pytest.mark.parametrize("case", CASES)
def test_an_unusual_session_tells_what_a_usual_one_does(shape: str, case: str, tmp_path: Path) -> None:
    written(shape, CASES[case], tmp_path)
    (run,) = runs_in(tmp_path)
    assert run.format == shape
    # Where the log does not say in which folder it ran, a file on a drive keeps its whole path.
    names = {"C:/work/repo/src/a.py": "src/a.py"} if shape in ("atif", "openhands-events") else {}
    assert [[names.get(path, path) for path in paths] for paths in told_by(run)] == [READS, WRITES]
    assert all(tool.understood == tool.calls for tool in coverage_of(run))


LINES = ("claude-code", "codex", "copilot-cli", "droid", "gemini-cli", "kimi-code", "qwen-code", "stream-json")


@pytest.mark.parametrize("shape", LINES)
def test_a_last_line_that_is_half_written_costs_itself_alone_and_is_named(shape: str, tmp_path: Path) -> None:
    written(shape, CASES["usual"], tmp_path)
    (path,) = tmp_path.rglob("*.jsonl")
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: last + (len(whole) - last) // 2])
    *skipped, run = read_corpus([tmp_path])
    assert [item.source.rpartition(":")[2] for item in skipped] == [str(whole.count(b"\n"))]
    assert isinstance(run, Recording)
    assert told_by(run) == (READS, WRITES)


@shapes
def test_a_log_that_powershell_saved_in_utf_16_is_read(shape: str, tmp_path: Path) -> None:
    written(shape, CASES["usual"], tmp_path)
    for path in tmp_path.rglob("*.json*"):
        path.write_bytes(path.read_bytes().decode().encode("utf-16"))
    (run,) = runs_in(tmp_path)
    assert told_by(run) == (READS, WRITES)


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-32"])
def test_another_encoding_is_named_and_costs_no_other_log(encoding: str, tmp_path: Path) -> None:
    written("claude-code", replace(CASES["usual"], name="s2"), tmp_path)
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "s2.jsonl").read_bytes().decode().encode(encoding))
    skipped, run = read_corpus([tmp_path])
    assert isinstance(skipped, Skipped)
    assert "null byte" in skipped.reason
    assert isinstance(run, Recording)


def test_a_torn_end_of_utf_16_and_runs_in_parts_lose_nothing(tmp_path: Path) -> None:
    row = {"goal_files": ["ä.py"], "turns": [{"reads": [{"path": "ä.py", "tokens": 3}]}]}
    rows = "".join(json.dumps({"run_id": f"r{number}", **row}, ensure_ascii=False) + "\n" for number in range(2000))
    path = tmp_path / "runs.jsonl"
    path.write_bytes(rows.encode("utf-16")[:-7])
    reader = CorpusReader(outcomes=None, format=None, limits=ReadLimits())
    assert sections_of(reader, tmp_path, open_document(path), 1000) == WHOLE
    *runs, torn = read_corpus([path])
    assert [run.run_id for run in runs if isinstance(run, Recording)] == [f"r{number}" for number in range(1999)]
    assert isinstance(torn, Skipped)


@shapes
def test_an_empty_file_beside_a_log_is_named(shape: str, tmp_path: Path) -> None:
    written(shape, CASES["usual"], tmp_path)
    (tmp_path / "empty.jsonl").touch()
    skipped = [item for item in read_corpus([tmp_path]) if isinstance(item, Skipped)]
    assert [(one.source, one.reason) for one in skipped] == [(f"{tmp_path.name}/empty.jsonl", "is empty; leave it out")]


@shapes
def test_a_log_that_is_there_twice_is_two_runs_with_names_of_their_own(shape: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        written(shape, CASES["usual"], tmp_path / folder)
    runs = runs_in(tmp_path)
    assert len({run.run_id for run in runs}) == len(runs) == 2
    assert [told_by(run) for run in runs] == [(READS, WRITES)] * 2
    assert len(runs_in(tmp_path / "a")) == 1


def test_a_sub_agent_of_a_sub_agent_is_a_run_of_the_same_session(tmp_path: Path) -> None:
    written("claude-code", Unusual(("Go", (Did("shell", "ls", "src"),))), tmp_path)
    for agent in ("a1", "a2"):  # the first started the second; both lie in the folder of the session
        (content,) = SHAPES["claude-code"](CASES["usual"]).values()
        lines = [json.loads(line) for line in content.splitlines()]
        for line in lines:
            line |= {"isSidechain": True, "agentId": agent, "uuid": f"{agent}-{line['uuid']}"}
            line["parentUuid"] = line["parentUuid"] and f"{agent}-{line['parentUuid']}"
        as_lines(tmp_path / "s1" / "subagents" / f"agent-{agent}.jsonl", lines)
    runs = {run.run_id: run for run in runs_in(tmp_path)}
    assert {id: run.details.get("parent_run") for id, run in runs.items()} == {"s1": None, "s1/a1": "s1", "s1/a2": "s1"}
    assert [told_by(runs[f"s1/{agent}"]) for agent in ("a1", "a2")] == [(READS, WRITES)] * 2


@pytest.mark.parametrize("shape", ["claude-code", "codex", "gemini-cli", "qwen-code"])
def test_a_session_resumed_in_another_file_is_another_run_with_the_same_beginning(shape: str, tmp_path: Path) -> None:
    more = (*USUAL, "More", (Did("shell", "cat src/c.py", "c = 1"),))
    written(shape, CASES["usual"], tmp_path)
    written(shape, Unusual(more, name="s2"), tmp_path)
    first, second = runs_in(tmp_path)
    assert told_by(first) == (READS, WRITES)
    assert told_by(second) == ([*READS, "src/c.py"], WRITES)


def appended(shape: str) -> bytes:
    """Return two sessions in one file, as `>>` and `cat` put them there, with ids of their own."""
    first, second = (Unusual(("Go",) * place + USUAL, name=name) for place, name in ((0, "s1"), (20, "s2")))
    ((_, one),), ((_, other),) = SHAPES[shape](first).items(), SHAPES[shape](second).items()
    # The sample of Claude Code counts its lines in every session anew.
    return one + re.sub(rb'(?<="uuid": ")|(?<="parentUuid": ")', b"second-", other)


@pytest.mark.parametrize(
    "shape", ["claude-code", "codex", "copilot-cli", "droid", "gemini-cli", "qwen-code", "stream-json"]
)
def test_sessions_that_were_appended_to_one_file_are_a_run_each(shape: str, tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_bytes(appended(shape))
    runs = runs_in(tmp_path)
    assert [run.run_id for run in runs] == ["s1", "s2"]
    assert [told_by(run) for run in runs] == [(READS, WRITES)] * 2


def thread(name: str, file: str) -> list[dict[str, object]]:
    shown = {"type": "command_execution", "command": f"cat {file}", "aggregated_output": "x = 1\n", "exit_code": 0}
    return [
        {"type": "thread.started", "thread_id": name},
        {"type": "item.completed", "item": {"id": "item_0", **shown}},
    ]


def test_threads_that_were_appended_to_one_file_are_a_run_each(tmp_path: Path) -> None:
    lines = [*thread("t1", "a.py"), *thread("t2", "b.py"), *thread("t1", "c.py")]
    as_lines(tmp_path / "all.jsonl", lines)
    assert [(run.run_id, told_by(run)[0]) for run in runs_in(tmp_path)] == [("t1", ["a.py", "c.py"]), ("t2", ["b.py"])]


def test_what_precedes_the_first_readable_start_is_a_run_too(tmp_path: Path) -> None:
    as_lines(tmp_path / "codex.jsonl", ['{"type": "thread.sta', thread("t1", "a.py")[1], *thread("t2", "b.py")])
    runs = [item for item in read_corpus([tmp_path]) if isinstance(item, Recording)]
    assert [(run.run_id, told_by(run)[0]) for run in runs] == [("codex", ["a.py"]), ("t2", ["b.py"])]


def test_sessions_whose_start_was_cut_off_keep_their_replies_and_sub_agents(tmp_path: Path) -> None:
    def said(id: str, **more: object) -> dict[str, object]:
        return {"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": id}]}, **more}

    start = {"type": "system", "subtype": "init", "session_id": "B", "tools": ["Read"]}
    lines = [
        *(said("m1"), said("m2", parent_tool_use_id="c1")),
        *(start, said("m3", session_id="B"), said("m4", session_id="A"), said("m5", session_id="B")),
    ]
    as_lines(tmp_path / "cut.jsonl", lines)
    found = {run.run_id: [turn.text for turn in run.turns] for run in runs_in(tmp_path)}
    assert found == {"cut.jsonl": ["m1"], "cut.jsonl/c1": ["m2"], "B": ["m3", "m5"], "A": ["m4"]}
    parents = {run.run_id: run.details.get("parent_run") for run in runs_in(tmp_path)}
    assert {run: parent for run, parent in parents.items() if parent} == {"cut.jsonl/c1": "cut.jsonl"}
