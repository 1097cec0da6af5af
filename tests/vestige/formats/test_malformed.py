"""Readers of event streams and nested logs under damage: any part of a sound log replaced by anything at all."""

from __future__ import annotations

import copy
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import Recording, formats
from tests.vestige.formats import test_claude_code, test_codex, test_gemini_cli, test_inspect, test_tau
from tests.vestige.formats.logs import who_recognizes
from tests.vestige.formats.samples import amp, cline, kimi_code, langfuse, langsmith, openhands_events, trae_agent
from tests.vestige.formats.test_atif import agent, call, said, trajectory
from tests.vestige.formats.test_harbor import ATIF

Writer = Callable[[Path, Any], Path]

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def json_file(folder: Path, value: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(value))
    return path


def json_lines(folder: Path, value: Any) -> Path:
    path = folder / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, value if isinstance(value, list) else [value])))
    return path


def eval_archive(folder: Path, value: Any) -> Path:
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(test_inspect.HEADER))
        archive.writestr("samples/1_epoch_1.json", json.dumps(value))
    return path


def trial_folder(folder: Path, value: Any) -> Path:
    """Write the files of a trial, given as a mapping of places to contents; junk has no say in where it is written."""
    files = value if isinstance(value, dict) and "result.json" in value else {"result.json": value}
    for place, content in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return folder / "result.json"


USE = {"type": "tool_use", "id": "c", "name": "x", "input": {}}
ANSWER = {"type": "tool_result", "tool_use_id": "c", "content": "one"}
RESULT = {"task_name": "t", "trial_name": "t__1", "verifier_result": {"rewards": {"reward": 1}}}
# By the name of the format; words behind it tell two kinds apart.
SOUND: dict[str, tuple[Writer, Any]] = {
    "amp": (json_file, amp.THREAD),
    "cline": (json_file, cline.SESSION),
    "cline as tags": (json_file, cline.TAGGED),
    "kimi-code": (json_lines, kimi_code.LINES),
    "kimi-code of kimi-cli": (json_lines, kimi_code.OLDER),
    "langfuse": (json_lines, langfuse.ROWS),
    "langfuse of one trace": (json_file, langfuse.TRACE),
    "langsmith": (json_lines, langsmith.RUNS),
    "trae-agent": (json_file, trae_agent.TRAJECTORY),
    "atif": (
        json_file,
        trajectory(
            said("user", "Go"),
            agent("One.", call("c1", "bash_command", keystrokes="ls\n"), results=[{"content": "a"}]),
            said("system", "summarized", observation={"results": [{"subagent_trajectory_ref": [{}]}]}),
            agent("Two.", metrics={"prompt_tokens": 1}),
            subagent_trajectories=[trajectory(agent("Child."))],
        ),
    ),
    "claude-code": (json_lines, test_claude_code.PARALLEL),
    "codex": (
        json_lines,
        [
            test_codex.META,
            test_codex.CONTEXT,
            test_codex.WORD,
            test_codex.said("assistant", "One."),
            test_codex.shell("c1", "ls"),
            test_codex.output("c1", "a"),
            test_codex.counted(3, 2, 1, 1),
            test_codex.line("compacted", message="x", replacement_history=[]),
            test_codex.line("event_msg", type="thread_rolled_back", num_turns=1),
            test_codex.said("assistant", "Two."),
        ],
    ),
    "gemini-cli": (json_file, test_gemini_cli.SESSION),
    "harbor": (
        trial_folder,
        {"result.json": RESULT, "agent/trajectory.json": ATIF, "agent/trajectory.cont-1.json": ATIF},
    ),
    "harbor in episodes": (
        trial_folder,
        {
            "result.json": RESULT,
            "agent/episodes/episode-1/request.json": {"system": "x", "messages": [{"content": "a"}, {"content": "b"}]},
            "agent/episodes/episode-1/response.json": {"content": [USE], "usage": {"input_tokens": 1}},
            "agent/episodes/episode-1/tool-results.json": [ANSWER],
            "agent/episodes/episode-2/request.json": {"messages": [{"content": [ANSWER]}]},
            "agent/episodes/episode-2/response.json": {"response": {"content": "Done."}},
            "agent/compactions/1.json": {"response": {"content": [{"type": "text", "text": "So far."}]}},
        },
    ),
    "inspect": (eval_archive, test_inspect.SAMPLE),
    "openhands-events of the SDK": (json_file, openhands_events.SDK_HISTORY),
    "tau-bench": (json_file, [test_tau.RUN, test_tau.RUN]),
    "tau2-bench": (
        json_file,
        {"info": test_tau.INFO, "tasks": test_tau.TASKS, "simulations": [test_tau.SIMULATION] * 2},
    ),
}


def format_of(kind: str) -> str:
    return kind.partition(" ")[0]


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to every node of a JSON value."""
    found: list[tuple[Any, ...]] = []
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting:
        way, node = waiting.pop()
        found.append(way)
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        waiting += [((*way, key), inner) for key, inner in items]
    return found


def with_junk(value: Any, way: tuple[Any, ...], junk: Any) -> Any:
    if not way:
        return junk
    changed = copy.deepcopy(value)
    node = changed
    for key in way[:-1]:
        node = node[key]
    node[way[-1]] = junk
    return changed


@pytest.mark.parametrize("kind", SOUND)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_makes_a_reader_fail(kind: str, data: st.DataObject) -> None:
    write, sound = SOUND[kind]
    way = data.draw(st.sampled_from(places(sound)))
    with tempfile.TemporaryDirectory() as folder:
        found = read_all(kind, write(Path(folder), with_junk(sound, way, data.draw(JUNK))))
    assert all(isinstance(one, Recording | Skipped) for one in found)
    assert all(isinstance(text, str) for one in found if isinstance(one, Recording) for text in texts_of(one))


def read_all(kind: str, path: Path) -> list[Recording | Skipped]:
    document = open_document(path)
    reader = formats.get(format_of(kind))()
    assert reader.recognizes(document) in range(4)
    return list(reader.read(document))


def texts_of(run: Recording) -> list[object]:
    """Return what must be text in a run, whatever the log had there."""
    texts: list[object] = [run.run_id, run.task_id, run.model, run.prompt, run.exit_status]
    texts += [text for turn in run.turns for text in (turn.text, turn.carried)]
    return texts + [text for turn in run.turns for call in turn.calls for text in (call.tool, call.output)]


@pytest.mark.parametrize("kind", SOUND)
def test_sound_logs_are_recognized_by_one_format_alone(tmp_path: Path, kind: str) -> None:
    write, sound = SOUND[kind]
    assert who_recognizes(write(tmp_path, sound)) == [format_of(kind)]


@pytest.mark.parametrize("kind", SOUND)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(first=st.sampled_from([b"{", b" [", b'{"', b"PK\x03\x04"]), rest=st.binary(max_size=200))
def test_recognizing_never_raises(tmp_path: Path, kind: str, first: bytes, rest: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(first + rest)
    assert formats.get(format_of(kind))().recognizes(open_document(path)) == 0
