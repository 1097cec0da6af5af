"""Claude Code sessions: parallel calls, branches, sub-agents, breaks, and sessions of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, measure
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage, Recording
from tests.vestige.formats.logs import as_lines, only_run, read_with, who_recognizes
from tests.vestige.recorded import recorded

Entry = dict[str, Any]
FORMAT = "claude-code"


def entry(uuid: str, parent: str | None, kind: str, **fields: Any) -> Entry:
    common = {"isSidechain": False, "cwd": "/repo", "sessionId": "s1", "slug": "calm-river", "version": "2.0.76"}
    return {"uuid": uuid, "parentUuid": parent, "type": kind, **common, **fields}


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> Entry:
    return entry(uuid, parent, "user", message={"role": "user", "content": content}, **fields)


def reply(uuid: str, parent: str, id: str, *blocks: Entry, **fields: Any) -> Entry:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 7}
    message = {"id": id, "model": "claude-x", "role": "assistant", "content": list(blocks), "usage": usage}
    return entry(uuid, parent, "assistant", message=message, **fields)


def text(words: str) -> Entry:
    return {"type": "text", "text": words}


def use(id: str, name: str, **arguments: Any) -> Entry:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: Any, **fields: Any) -> list[Entry]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content, **fields}]


PARALLEL = [
    {"type": "summary", "summary": "Earlier work", "leafUuid": "x"},
    user("u1", None, "Fix it"),
    reply("a1", "u1", "m1", {"type": "thinking", "thinking": "hm"}, text("Two at once.")),
    reply("a2", "a1", "m1", use("c1", "Bash", command="cat a.py")),
    reply("a3", "a2", "m1", use("c2", "Read", file_path="/repo/b.py"), cwd="/repo/sub"),
    user("r1", "a2", result("c1", "one"), toolUseResult={"stdout": "one and what was cut", "stderr": ""}),
    user("r2", "a3", result("c2", [text("two"), text("three")])),
    reply("a4", "r1", "m2", text("Done.")),
]


def test_parallel_calls_are_one_turn_with_one_usage(tmp_path: Path) -> None:
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", PARALLEL))
    first, second = run.turns
    assert (run.run_id, run.model, run.root, run.prompt) == ("s1", "claude-x", "/repo", "Fix it")
    assert [(call.tool, call.output, call.working_folder) for call in first.calls] == [
        ("bash", "one", "/repo"),
        ("Read", "two\nthree", "/repo/sub"),
    ]
    assert first.calls[0].full_output == "one and what was cut"
    assert first.usage == LoggedUsage(input_tokens=100, output_tokens=7, cached_tokens=90)
    assert (first.text, second.text, second.calls) == ("Two at once.", "Done.", ())


def test_a_branch_that_was_taken_back_is_left_out(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", text("First.")),
        user("u2", "a1", "Wrong way"),
        reply("a2", "u2", "m2", use("c1", "Bash", command="rm x")),
        user("r2", "a2", result("c1", "")),
        user("u3", "a1", "Right way"),
        reply("a3", "u3", "m3", text("Second.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert [turn.text for turn in run.turns] == ["First.", "Second."]
    assert run.details["abandoned_replies"] == 1


def test_a_compaction_on_a_branch_that_was_taken_back_is_none_of_the_run(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", text("First.")),
        entry("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a1"),
        user("s1", "b1", "So far", isCompactSummary=True),
        reply("a2", "s1", "m2", text("On the branch.")),
        user("u3", "a1", "Another way"),
        reply("a3", "u3", "m3", text("Second.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert [(turn.text, turn.broken) for turn in run.turns] == [("First.", None), ("Second.", None)]
    # A mark that nothing hangs on stands where it is.
    loose = [*lines[:2], lines[2], user("s2", None, "So far", isCompactSummary=True), reply("a4", "s2", "m4")]
    assert [turn.broken for turn in only_run(FORMAT, as_lines(tmp_path / "s2.jsonl", loose)).turns] == [
        None,
        "compaction",
    ]


def sub_agent(id: str, file: str) -> list[Entry]:
    """Return the lines of a sub-agent as its own file has them: two calls in one reply, and a reply after them."""
    side = {"isSidechain": True, "agentId": id, "timestamp": "2026-02-07T03:49:24.952Z"}
    return [
        user(f"{id}1", None, "Look around.", **side),
        reply(f"{id}2", f"{id}1", f"m{id}1", use(f"{id}c1", "Read", file_path=f"/repo/{file}"), **side),
        reply(f"{id}3", f"{id}2", f"m{id}1", use(f"{id}c2", "Bash", command="cat b.py"), **side),
        user(f"{id}4", f"{id}2", result(f"{id}c1", "1\tx = 1"), **side),
        user(f"{id}5", f"{id}3", result(f"{id}c2", "y = 2"), **side),
        reply(f"{id}6", f"{id}5", f"m{id}2", use(f"{id}c3", "Edit", file_path=f"/repo/{file}"), **side),
    ]


def reported(lines: list[Entry], first: int, before: str) -> list[Entry]:
    """Return the same lines inside those of the caller, of which each follows the one before."""
    made: list[Entry] = []
    for number, inner in enumerate(lines, first):
        message = {name: inner[name] for name in ("type", "message", "uuid", "timestamp")}
        data = {"type": "agent_progress", "agentId": inner["agentId"], "message": message, "prompt": "Look around."}
        parent = made[-1]["uuid"] if made else before
        made.append(entry(f"p{number}", parent, "progress", data={**data, "normalizedMessages": []}))
    return made


def with_sub_agents() -> tuple[list[Entry], dict[str, list[Entry]]]:
    """Return a session, and the lines of the two sub-agents that it started at once."""
    agents = {"ab1": sub_agent("ab1", "a.py"), "cd2": sub_agent("cd2", "c.py")}
    lines = [
        user("u1", None, "Go"),
        reply("a1", "u1", "m1", use("t1", "Task", prompt="Look around."), use("t2", "Task", prompt="Look around.")),
        user("u2", "a1", [*result("t1", "Seen."), *result("t2", "Seen, too.")]),
        reply("a2", "u2", "m2", text("Done.")),
    ]
    return lines, agents


def test_sub_agents_in_progress_lines_are_read_as_from_their_files(tmp_path: Path) -> None:
    lines, agents = with_sub_agents()
    files = {
        id: only_run(FORMAT, as_lines(tmp_path / f"agent-{id}.jsonl", own)) for id, own in agents.items()
    }  # in another folder than the session
    first, second = (reported(own, place, "a1") for place, own in ((100, agents["ab1"]), (200, agents["cd2"])))
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    session = as_lines(tmp_path / "other" / "s1.jsonl", [*lines[:2], *mixed, *lines[2:]])
    main, *runs = (one for one in read_with(FORMAT, session) if isinstance(one, Recording))
    assert [turn.text for turn in main.turns] == ["", "Done."]
    assert [run.run_id for run in runs] == ["s1/ab1", "s1/cd2"]
    for run, expected in zip(runs, files.values(), strict=True):
        assert run.turns == expected.turns
        assert (run.details["parent_run"], run.prompt, run.model, run.root) == (
            "s1",
            "Look around.",
            "claude-x",
            "/repo",
        )
    (reads, writes) = (
        [one.path for turn in interpret(runs[0], len).turns for one in getattr(turn, kind)]
        for kind in ("reads", "writes")
    )
    assert (reads, writes) == (["a.py", "b.py"], ["a.py"])


@pytest.mark.parametrize("folder", ["s1/subagents", "."])
def test_a_sub_agent_with_a_file_is_not_read_from_progress_lines_as_well(folder: str, tmp_path: Path) -> None:
    lines, agents = with_sub_agents()
    told = [*reported(agents["ab1"], 100, "a1"), *reported(agents["cd2"], 200, "p105")]
    as_lines(tmp_path / "s1.jsonl", [*lines[:2], *told, *lines[2:]])
    as_lines(tmp_path / folder / "agent-ab1.jsonl", agents["ab1"])
    (tmp_path / folder / "agent-ab1.meta.json").write_text('{"agentType": "Explore", "description": "Look around."}')
    found = list(read_corpus([tmp_path]))
    assert [one.reason for one in found if isinstance(one, Skipped)] == [], "what describes a sub-agent is no log"
    assert sorted(one.run_id for one in found if isinstance(one, Recording)) == ["s1", "s1/ab1", "s1/cd2"]


def test_what_describes_a_sub_agent_without_a_file_is_no_log(tmp_path: Path) -> None:
    lines, agents = with_sub_agents()
    as_lines(tmp_path / "s1.jsonl", [*lines[:2], *reported(agents["ab1"], 100, "a1"), *lines[2:]])
    (tmp_path / "s1" / "subagents").mkdir(parents=True)
    (tmp_path / "s1" / "subagents" / "agent-ab1.meta.json").write_text('{"agentType": "Explore"}')
    found = list(read_corpus([tmp_path]))
    assert [one.reason for one in found if isinstance(one, Skipped)] == []
    assert sorted(one.run_id for one in found if isinstance(one, Recording)) == ["s1", "s1/ab1"]


def test_a_file_that_was_put_back_whole_counts_as_a_whole_at_the_next_compaction(tmp_path: Path) -> None:
    """Ten lines are read, the whole file is put back and edited, and the next compaction drops all of it.

    The line of which the edit replaced a part was in no message in one piece, so that it is neither held nor dropped.
    """
    known = [f"value_{number} = compute({number}, offset={number})" for number in range(60)]
    now = [*known[:20], "value_20 = compute_again(20)", *known[21:]]

    def shown(lines: list[str], first: int = 1) -> str:
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))

    file = {"filePath": "/repo/a.py", "content": "\n".join(known), "numLines": 60, "totalLines": 60}
    attachment = {"type": "file", "filename": "/repo/a.py", "content": {"type": "text", "file": file}}
    edit = {"file_path": "/repo/a.py", "old_string": "compute(20, offset=20)", "new_string": "compute_again(20)"}
    lines = [
        user("u1", None, "Go"),
        reply("a1", "u1", "m1", use("c1", "Read", file_path="/repo/a.py", offset=11, limit=10)),
        user("r1", "a1", result("c1", shown(known[10:20], 11))),
        entry("b1", None, "system", subtype="compact_boundary", logicalParentUuid="r1"),
        user("s1", "b1", "So far.", isCompactSummary=True),
        entry("f1", "s1", "attachment", attachment=attachment),
        reply("a2", "f1", "m2", use("c2", "Edit", **edit)),
        user("r2", "a2", result("c2", "The file /repo/a.py has been updated.")),
        entry("b2", None, "system", subtype="compact_boundary", logicalParentUuid="r2"),
        user("s2", "b2", "So far.", isCompactSummary=True),
        reply("a3", "s2", "m3", use("c3", "Read", file_path="/repo/a.py")),
        user("r3", "a3", result("c3", shown(now))),
        reply("a4", "r3", "m4", text("Done.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))

    def words(text: str) -> int:
        return len(text.split())

    breaks = measure(run, None, AnalysisOptions(read_windows()), words).columns()["breaks"]
    whole = words("\n".join(now)) - words(now[20])
    assert (breaks["dropped_tokens"], breaks["reread_dropped_tokens"]) == ([0, whole], [0, whole])
    assert breaks["never_reread_tokens"] == [0, 0], "the line that the edit replaced is no more"


def test_compactions_without_a_reply_between_are_counted_each(tmp_path: Path) -> None:
    lines = [user("u1", None, "Start"), reply("a1", "u1", "m1", text("First."))]
    for number, before in ((1, "a1"), (2, "s1")):
        lines += [
            entry(
                f"b{number}",
                None,
                "system",
                subtype="compact_boundary",
                logicalParentUuid=before,
                compactMetadata={"trigger": {1: "auto", 2: "manual"}[number]},
            ),
            user(f"s{number}", f"b{number}", f"So far, {number}", isCompactSummary=True),
        ]
    lines.append(reply("a2", "s2", "m2", text("Second.")))
    _, last = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines)).turns
    assert (last.broken, last.earlier_breaks, last.carried) == ("compaction", ("compaction",), "So far, 2")
    assert (last.triggers, last.trigger) == (("auto", "manual"), "manual")


def test_a_command_that_is_quoted_is_not_given(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", text("First.")),
        user("u2", "a1", "What does <command-name>/clear</command-name> do?"),
        reply("a2", "u2", "m2", text("Second.")),
    ]
    assert [turn.broken for turn in only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines)).turns] == [None, None]


@pytest.mark.parametrize("command", ["echo 1 > v.py", "cat x.py", "sed -i s/a/b/ y.py"])
def test_a_command_that_the_user_refused_touches_nothing(tmp_path: Path, command: str) -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", use("c1", "Bash", command=command)),
        user("r1", "a1", result("c1", refusal, is_error=True)),
        reply("a2", "r1", "m2", text("Then not.")),
    ]
    run = interpret(only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines)), len)
    assert [(turn.reads, turn.writes) for turn in run.turns] == [((), ()), ((), ())]


def test_a_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", text("First.")),
        '{"uuid": "u2", "parentUuid": "a1", "type": "us',
        "[1, 2]",
        reply("a2", "u2", "m2", text("Second.")),
    ]
    damaged, no_object, run = read_with(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert isinstance(damaged, Skipped)
    assert damaged.source == "s1.jsonl:3"
    assert isinstance(no_object, Skipped)
    assert no_object.source == "s1.jsonl:4"
    assert isinstance(run, Recording)
    assert [turn.text for turn in run.turns] == ["First.", "Second."]


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        (['{"uuid": "c", "parentUuid": "a1", "type": "us', reply("a2", "c", "m2", text("two"), sessionId="s2")], None),
        (
            [
                user("c", None, "So far.", isCompactSummary=True, sessionId="s2"),
                reply("a2", "c", "m2", text("two"), sessionId="s2"),
            ],
            "compaction",
        ),
    ],
)
def test_a_session_is_resumed_from_a_damaged_line_and_from_a_compaction(
    lines: list[Entry | str], broken: str | None, tmp_path: Path
) -> None:
    path = as_lines(tmp_path / "s1.jsonl", [user("u1", None, "Go"), reply("a1", "u1", "m1", text("one")), *lines])
    [run] = [item for item in read_with(FORMAT, path) if isinstance(item, Recording)]
    assert [(turn.text, turn.broken) for turn in run.turns] == [("one", None), ("two", broken)]


def test_a_file_is_named_after_its_first_session_with_a_reply(tmp_path: Path) -> None:
    lines = [user("u0", None, "Go", sessionId="s0"), user("u1", None, "Go"), reply("a1", "u1", "m1", text("one"))]
    assert only_run(FORMAT, as_lines(tmp_path / "start.jsonl", lines)).source == "start.jsonl"


def test_copied_history_is_counted_once(tmp_path: Path) -> None:
    lines = [*PARALLEL, *PARALLEL, user("u9", "a4", "Go on"), reply("a9", "u9", "m9", text("On."))]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert len(run.turns) == 3
    assert [len(turn.calls) for turn in run.turns] == [2, 0, 0]


def test_a_fork_names_where_it_comes_from(tmp_path: Path) -> None:
    origin = {"forkedFrom": {"sessionId": "s0", "messageUuid": "u1"}}
    lines = [user("u1", None, "Go", **origin), reply("a1", "u1", "m1", text("One."), **origin)]
    assert only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines)).details["forked_from"] == "s0"


def test_breaks_keep_what_took_the_place_of_the_context(tmp_path: Path) -> None:
    boundary = entry("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a1")
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", text("First.")),
        boundary,
        user("s1", "b1", "What happened so far", isCompactSummary=True),
        reply("a2", "s1", "m2", text("Second.")),
        user("u3", "a2", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        user("u4", None, "Something else"),
        reply("a3", "u4", "m3", text("Third.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert [(turn.text, turn.broken, turn.carried) for turn in run.turns] == [
        ("First.", None, ""),
        ("Second.", "compaction", "What happened so far"),
        ("Third.", "clear", ""),
    ]


def test_every_sub_agent_is_a_run_of_its_own(tmp_path: Path) -> None:
    side = {"isSidechain": True}
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", use("c1", "Task", prompt="Look")),
        user("x1", None, "Look", **side),
        reply("x2", "x1", "n1", use("d1", "Bash", command="ls"), **side),
        user("y1", None, "Look too", agentId="abc", **side),
        user("x3", "x2", result("d1", "a.py"), **side),
        reply("y2", "y1", "o1", text("Seen."), agentId="abc", **side),
        user("r1", "a1", result("c1", "Found a.py")),
        reply("a2", "r1", "m2", text("Done.")),
    ]
    main, first, second = read_with(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    assert isinstance(main, Recording)
    assert isinstance(first, Recording)
    assert isinstance(second, Recording)
    assert [run.run_id for run in (main, first, second)] == ["s1", "s1/sidechain-1", "s1/abc"]
    assert [call.output for call in first.turns[0].calls] == ["a.py"]
    assert second.details["parent_run"] == "s1"
    assert [len(turn.calls) for turn in main.turns] == [1, 0]


def test_failures_are_told_as_the_tool_told_them(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Start"),
        reply("a1", "u1", "m1", use("c1", "Bash", command="pytest")),
        user("r1", "a1", result("c1", "Exit code 2\nno tests ran", is_error=True)),
        entry("e1", "r1", "assistant", isApiErrorMessage=True, message={"model": "<synthetic>", "content": []}),
        reply("a2", "e1", "m2", text("Hm.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s1.jsonl", lines))
    (call,) = run.turns[0].calls
    assert (call.failed, call.exit_code) == (True, 2)
    assert len(run.turns) == 2  # an error of the connection is no reply


def test_the_word_about_a_long_output_stands_where_it_was_cut(tmp_path: Path) -> None:
    told = "<persisted-output>\nOutput too large (48.2KB). Full output saved to: /home/u/a.txt"
    shown = "".join(f"line {number}\n" for number in range(200))
    output = f"{told}\n\nPreview (first 2KB):\n{shown}...\n</persisted-output>"
    lines = [
        user("1", None, "Go"),
        reply("2", "1", "m", use("c", "Bash", command="cat a.txt")),
        user("3", "2", result("c", output)),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s.jsonl", lines))
    assert run.turns[0].calls[0].output == f"{shown}{told}\n</persisted-output>"
    (read,) = interpret(run, len).turns[0].reads
    assert (read.clipped, read.lines) == (True, {number + 1: f"line {number}" for number in range(200)})


def test_a_session_without_replies_says_so(tmp_path: Path) -> None:
    path = as_lines(tmp_path / "s.jsonl", [{"type": "summary", "summary": "Earlier work", "leafUuid": "x"}])
    (nothing,) = read_with(FORMAT, path)
    assert isinstance(nothing, Skipped)
    assert "no reply" in nothing.reason
    assert who_recognizes(path) == [FORMAT]


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    lines = [reply("a1", "a2", "m1", text("One.")), reply("a2", "a1", "m2", text("Two."))]
    assert len(only_run(FORMAT, as_lines(tmp_path / "s.jsonl", lines)).turns) == 2


# More turns than Python has frames, and as many as the longest sessions.
@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_sessions(tmp_path: Path, count: int) -> None:
    lines: list[Entry] = [user("u0", None, "Start")]
    for number in range(1, count + 1):
        lines.append(reply(f"a{number}", lines[-1]["uuid"], f"m{number}", use(f"c{number}", "Bash", command="ls")))
        lines.append(user(f"u{number}", f"a{number}", result(f"c{number}", "x")))
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    run = only_run(FORMAT, path)
    assert len(run.turns) == count
    assert all(turn.calls[0].output == "x" for turn in run.turns)


def test_a_first_line_longer_than_the_beginning_is_recognized(tmp_path: Path) -> None:
    path = as_lines(tmp_path / "s1.jsonl", [user("u1", None, "x" * 100_000), reply("a1", "u1", "m1", text("Done."))])
    assert who_recognizes(path) == [FORMAT]


def test_recorded_sessions_agree_with_a_separate_count() -> None:
    folder = recorded("claude-code")
    paths = sorted(folder.glob("*.jsonl"))
    for path in paths:
        run = only_run(FORMAT, path)
        blocks, replies = count_by_hand(path)
        assert len(run.turns) == replies, path.name
        assert sum(len(turn.calls) for turn in run.turns) == blocks, path.name
        assert all(call.output for turn in run.turns for call in turn.calls), path.name
        assert who_recognizes(path) == [FORMAT], path.name
    assert len(paths) == 12


def count_by_hand(path: Path) -> tuple[int, int]:
    """Count calls and distinct replies by their spelling alone; none of the recorded sessions has a branch."""
    ids, calls = set(), 0
    for line in path.read_text().splitlines():
        message = orjson.loads(line).get("message") or {}
        if message.get("role") == "assistant":
            ids.add(message["id"])
            calls += line.count('"type":"tool_use"')
    return calls, len(ids)


@pytest.mark.parametrize(
    "name, broken",
    [("compaction_session", "compaction"), ("clear_split_session", "clear"), ("slug_multi_clear_file1", "clear")],
)
def test_recorded_breaks_are_found(name: str, broken: str) -> None:
    run = only_run(FORMAT, recorded("claude-code") / f"{name}.jsonl")
    assert [turn.broken for turn in run.turns] == [None, broken]
    assert bool(run.turns[1].carried) == (broken == "compaction")


def test_segments_begin_at_what_the_user_wrote(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "Fix it"),
        reply("a1", "u1", "m1", use("c1", "Bash", command="ls")),
        user("r1", "a1", result("c1", "a.py")),
        user("n1", "r1", "<local-command-stdout>done</local-command-stdout>"),
        user("n2", "n1", "[Request interrupted by user]"),
        user("n3", "n2", "A hidden note", isMeta=True),
        reply("a2", "n3", "m2", text("Stopped.")),
        user("u2", "a2", "Now the docs"),
        reply("a3", "u2", "m3", text("Done.")),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "s.jsonl", lines))
    assert [turn.asked for turn in run.turns] == ["Fix it", "", "Now the docs"]
