"""Sessions of today's agents, from the samples: files read and written, breaks, and what a compaction kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from eirkit.report.folders import page_for
from eirkit.report.logs.sentences import sub_agents_section
from eirkit.report.table import Table
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.tables import read_analysis, read_table
from eirkit.vestige.trajectory import KeptContext, Lines, LoggedUsage, Recording
from eirkit_coding.sessions.codex_scripts import CodexScript, ScriptCall, calls_in
from tests import warm
from tests.processes import completed
from tests.vestige.formats.logs import as_lines, only_run, read_with
from tests.vestige.formats.samples import langfuse, sample_files, write_sample
from tests.vestige.formats.test_codex import META, item, line, said
from tests.vestige.test_hostile import analyze


def session(name: str, folder: Path, file: str = "") -> Recording:
    path = next(path for path in write_sample(name, folder) if path.name.startswith(file))
    return next(item for item in read_with(name, path) if isinstance(item, Recording))


SNAPSHOT = "<state_snapshot>a.py was mended</state_snapshot>"
QWEN = KeptContext("history", (SNAPSHOT, "a.py:\nx = 1\ny = 2"), (), (3,), True, False, 97_608, 3_789)
COPILOT = KeptContext("removed", turns=(2,), is_complete=True, tokens_before=97_728, tokens_after=12_461)
GOOSE = KeptContext("history", ("a.py was mended.", "Your context was compacted.", "go on"), is_complete=True)
KIMI = KeptContext("history", ("Mend a.py",), is_complete=True, tokens_before=97_020, tokens_after=3_000)
AGENTS = {
    "qwen-code": ("", "0.24.4", QWEN),
    "copilot-cli": ("", "1.0.102", COPILOT),
    "goose": ("sessions.db", "", GOOSE),
    "opencode": ("opencode.db", "1.18.33", KeptContext("history", is_complete=True)),
    "kimi-code": ("wire", "", KIMI),
    "cline": ("l1", "3.0.65", None),
    "amp": ("", "0.0.1790", None),
}


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_tells_what_was_read_written_and_kept(name: str, tmp_path: Path) -> None:
    file, version, kept = AGENTS[name]
    run = session(name, tmp_path, file)
    turns = interpret(run, len).turns
    assert (run.root, run.agent_version, run.prompt) == ("/repo", version, "Mend a.py")
    assert [read.path for turn in turns for read in turn.reads] == ["a.py"]
    assert [(write.path, write.removed, write.added) for turn in turns for write in turn.writes] == [
        ("a.py", "x = 1", "x = 2")
    ]
    assert [call.exit_code for turn in run.turns for call in turn.calls if "t.py" in str(call.arguments)] == [1]
    assert [turn.kept for turn in run.turns if turn.broken] == ([kept] if kept else [])


def test_a_session_tells_who_started_a_compaction_where_its_log_does(tmp_path: Path) -> None:
    found = {
        name: [turn.trigger for turn in session(name, tmp_path / name, file).turns if turn.broken]
        for name, (file, _, kept) in AGENTS.items()
        if kept
    }
    unknown = {name: ["unknown"] for name in ("qwen-code", "copilot-cli", "goose")}
    assert found == {**unknown, "opencode": ["auto"], "kimi-code": ["manual"]}
    export = next((tmp_path / "opencode").rglob("export.json"))
    export.write_text(export.read_text().replace('"auto": true', '"auto": false'))
    (run,) = (item for item in read_with("opencode", export) if isinstance(item, Recording))
    assert [turn.trigger for turn in run.turns if turn.broken] == ["manual"]


@pytest.mark.parametrize("name", ["qwen-code", "copilot-cli", "opencode", "kimi-code", "cline", "amp"])
def test_a_view_of_some_lines_is_of_those_lines(name: str, tmp_path: Path) -> None:
    run = session(name, tmp_path, AGENTS[name][0])
    (read,) = interpret(run, len).turns[0].reads
    assert read.requested == Lines(2, 3)
    assert read.lines == {2: "x = 1", 3: "y = 2"}


def test_a_sub_agent_of_opencode_names_its_parent(tmp_path: Path) -> None:
    path = next(path for path in write_sample("opencode", tmp_path) if path.name == "opencode.db")
    before = path.read_bytes()
    runs = [item for item in read_with("opencode", path) if isinstance(item, Recording)]
    assert [(run.run_id, run.task_id, run.details) for run in runs] == [
        ("ses_1", "ses_1", {}),
        ("ses_2", "ses_1", {"parent_run": "ses_1"}),
    ]
    assert path.read_bytes() == before
    assert sorted(one.name for one in path.parent.iterdir()) == ["export.json", "opencode.db", "storage"]


def test_geminis_json_lines_tell_compaction_from_a_history_told_again(tmp_path: Path) -> None:
    def user(text: str, id: str) -> dict[str, object]:
        return {"id": id, "type": "user", "content": [{"text": text}]}

    call = {"id": "c1", "name": "read_file", "args": {"file_path": "a.py"}, "status": "success"}
    result = [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "x = 1"}}}]
    reply = {"id": "m1", "type": "gemini", "content": "", "model": "g", "tokens": {"input": 9, "output": 1}}
    told = [user("Go", "u1"), {**reply, "toolCalls": [{**call, "result": result}]}]
    head = {"sessionId": "s", "projectHash": "p", "kind": "main"}
    context = "<session_context>\n- **Workspace Directories:**\n  - /repo\n</session_context>"
    lines = [
        head,
        {"$set": {"messages": [user(context, "u0")]}},
        *told[:1],
        reply,
        told[1],
        {"$set": {"messages": [user(context, "u0")]}},
        {"$set": {"messages": [user(context, "u0"), *told]}},
        user("On", "u2"),
        {**reply, "id": "m2", "content": "Two."},
        {"$set": {"messages": [user("<state_snapshot>a.py</state_snapshot>", "u3")]}},
        user("More", "u4"),
        {**reply, "id": "m3", "content": "Three."},
    ]
    run = only_run("gemini-cli", as_lines(tmp_path / "session-1.jsonl", lines))
    assert (run.run_id, run.root, run.model) == ("s", "/repo", "g")
    assert [(len(turn.calls), turn.broken) for turn in run.turns] == [(1, None), (0, None), (0, "compaction")]
    assert run.turns[2].kept == KeptContext("history", ("<state_snapshot>a.py</state_snapshot>",), is_complete=True)


SCRIPT = """
const name = "a.py"; // tools.exec_command({cmd: "no call"})
const [a, b] = await Promise.all([
  tools.exec_command({cmd: 'cat a.py', workdir: "/repo/sub"}),
  tools.exec_command({"cmd": `sed -n '1,2p' b.py`, yield_time_ms: 500}),
]);
text("tools.exec_command({cmd: 'no call'})");
const patch = "*** Begin Patch\\n*** Delete File: c.py\\n*** End Patch\\n";
text(await tools.apply_patch(patch));
await tools.exec_command({cmd: `cat ${name}`});
"""


def test_calls_of_a_script_are_found_without_running_it() -> None:
    made = [(call.tool, dict(call.arguments), call.folder) for call in calls_in(SCRIPT)]
    assert made == [
        ("exec_command", {"cmd": "cat a.py", "workdir": "/repo/sub"}, "/repo/sub"),
        ("exec_command", {"cmd": "sed -n '1,2p' b.py", "yield_time_ms": 500}, None),
        ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: c.py\n*** End Patch\n"}, None),
        ("exec_command", {}, None),  # what it ran is known only to a run of the script
    ]


def test_outputs_of_several_commands_are_told_apart() -> None:
    script = CodexScript("c", "", [])
    for output in ("x = 1\n", "y = 2\n"):
        script.take({"type": "CommandExecution", "command": ["cat"], "aggregated_output": output, "exit_code": 0})
    blocks = [{"text": "Script completed\nWall time 0.1 seconds\nOutput:\n"}, {"text": "y = 2\n"}]
    assert [(call.output, call.full_output) for call in script.end(blocks)] == [("", "x = 1\n"), ("y = 2\n", "y = 2\n")]
    assert isinstance(script.made[0], ScriptCall)


def test_codexs_code_mode_is_no_silent_zero(tmp_path: Path) -> None:
    source = "const r = await tools.exec_command({cmd: 'cat a.py'});\ntext(r.output);"
    asked = item("custom_tool_call", name="exec", input=source, call_id="c1")
    ran = {"type": "CommandExecution", "command": ["/bin/bash", "-lc", "cat a.py"], "cwd": "file:///repo"}
    event = line("event_msg", type="item_completed", item={**ran, "aggregated_output": "x = 1\n", "exit_code": 0})
    blocks = [{"type": "input_text", "text": "Script completed\nOutput:\n"}, {"type": "input_text", "text": "x = 1\n"}]
    told = item("custom_tool_call_output", call_id="c1", output=blocks)
    for name, lines in {"a": [asked, event, told], "b": [asked, told]}.items():  # with and without events
        run = only_run("codex", as_lines(tmp_path / f"{name}.jsonl", [META, *lines, said("assistant", "Done.")]))
        (read,) = interpret(run, len).turns[0].reads
        assert (read.path, read.content) == ("a.py", "x = 1\n")
    opaque = item("custom_tool_call", name="exec", input="await run()", call_id="c1")
    run = only_run("codex", as_lines(tmp_path / "c.jsonl", [META, opaque, told]))
    assert [call.tool for call in run.turns[0].calls] == ["exec"]


def script(id: str, source: str) -> dict[str, object]:
    return item("custom_tool_call", name="exec", input=source, call_id=id)


def ran(command: str, printed: str) -> dict[str, object]:
    words = ["/bin/bash", "-lc", command]
    done = {"type": "CommandExecution", "command": words, "cwd": "file:///repo", "exit_code": 0}
    return line("event_msg", type="item_completed", item={**done, "aggregated_output": printed})


def printed(id: str, text: str) -> dict[str, object]:
    blocks = [{"type": "input_text", "text": "Script completed\nOutput:\n"}, {"type": "input_text", "text": text}]
    return item("custom_tool_call_output", call_id=id, output=blocks)


STATED = "text((await tools.exec_command({{cmd: 'cat {}'}})).output);"
COMPUTED = "const f = pick({}); text((await tools.exec_command({{cmd: `cat ${{f}}`}})).output);"


@pytest.mark.parametrize("source", [STATED, COMPUTED])
@pytest.mark.parametrize("order", ["abAB", "baAB", "bBaA", "abBA", "aAbB"])
def test_several_scripts_in_one_reply_of_codex_keep_their_own_commands(source: str, order: str, tmp_path: Path) -> None:
    """The events of commands (a, b) and the outputs of scripts (A, B) come in any order after both calls."""
    texts = {"a": "x = 1\nx2 = 3\n", "b": "y = 2\n"}
    steps = {name: ran(f"cat {name}.py", text) for name, text in texts.items()}
    steps |= {name.upper(): printed(name, text) for name, text in texts.items()}
    calls = [script(name, source.format(f"{name}.py")) for name in texts]
    lines = [META, *calls, *(steps[step] for step in order), said("assistant", "Done.")]
    run = only_run("codex", as_lines(tmp_path / "s.jsonl", lines))
    first, last = interpret(run, len).turns
    assert {read.path: read.content for read in first.reads} == {f"{name}.py": text for name, text in texts.items()}
    assert sorted(call.arguments["command"] for call in run.turns[0].calls) == ["cat a.py", "cat b.py"]
    assert not last.reads


def test_scripts_that_printed_the_same_each_keep_one_command_of_it(tmp_path: Path) -> None:
    """Both compute their commands and print c.py; that of the other is no output of theirs."""
    loop = "for (const f of list({})) text((await tools.exec_command({{cmd: `cat ${{f}}`}})).output);"
    texts = {"a": "x = 1\n", "b": "y = 2\n", "c": "z = 3\n"}
    lines = [
        *(META, script("a", loop.format("1")), script("b", loop.format("2"))),
        *(ran(f"cat {name}.py", texts[name]) for name in "abcc"),
        *(printed(name, texts[name] + texts["c"]) for name in "ba"),
    ]
    (turn,) = interpret(only_run("codex", as_lines(tmp_path / "s.jsonl", lines)), len).turns
    assert [(read.path, read.content) for read in turn.reads] == [(f"{name}.py", texts[name]) for name in "bcac"]


def test_a_script_that_is_answered_after_the_next_reply_belongs_to_its_own(tmp_path: Path) -> None:
    lines = [
        *(META, script("a", STATED.format("a.py")), script("b", STATED.format("b.py"))),
        *(ran("cat a.py", "x = 1\n"), printed("a", "x = 1\n"), said("assistant", "Going on.")),
        *(ran("cat b.py", "y = 2\n"), printed("b", "y = 2\n"), said("assistant", "Done.")),
    ]
    run = only_run("codex", as_lines(tmp_path / "s.jsonl", lines))
    assert [[call.output for call in turn.calls] for turn in run.turns] == [["x = 1\n", "y = 2\n"], [], []]


def test_claude_codes_log_says_what_a_compaction_put_back(tmp_path: Path) -> None:
    common = {"sessionId": "s", "isSidechain": False, "cwd": "/repo", "version": "2.1.325"}

    def entry(number: int, kind: str, **more: object) -> dict[str, object]:
        return {
            **common,
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            **more,
        }

    file = {"filePath": "/repo/a.py", "content": "x = 1"}
    attachment = {"type": "file", "filename": "/repo/a.py", "content": {"type": "text", "file": file}}
    stated = {"preTokens": 97_020, "postTokens": 3_176, "preservedMessages": {"uuids": ["u1"]}}
    first = [
        entry(0, "user", message={"role": "user", "content": "Go"}),
        entry(1, "assistant", message={"id": "m1", "content": [{"type": "text", "text": "One."}]}),
        entry(2, "system", subtype="compact_boundary", compactMetadata=stated),
        entry(3, "user", isCompactSummary=True, message={"role": "user", "content": "A summary."}),
        entry(4, "attachment", attachment=attachment),
    ]
    reply = entry(5, "assistant", message={"id": "m2", "content": [{"type": "text", "text": "Two."}]}, requestRef="r")
    run = only_run("claude-code", as_lines(tmp_path / "a.jsonl", [*first, reply]))
    kept = run.turns[1].kept
    assert kept is not None
    assert (kept.evidence, kept.texts, kept.is_complete) == ("preserved", ("One.", "x = 1"), True)
    assert [(one.path, one.content) for one in kept.files] == [("/repo/a.py", "x = 1")]
    assert (kept.tokens_before, kept.tokens_after) == (97_020, 3_176)
    request = [
        {"type": "api-request-blob", "hash": "h1", "message": {"role": "user", "content": "A summary."}},
        {"type": "api-request-blob", "hash": "h2", "message": {"content": [{"type": "text", "text": "1\tx"}]}},
        {"type": "api-request", "id": "q", "keep": 0, "tail": ["h1", "gone"]},
        {"type": "api-request", "id": "r", "base": "q", "keep": 1, "tail": ["h2"]},
    ]
    exact = only_run("claude-code", as_lines(tmp_path / "b.jsonl", [*first, *request, reply])).turns[1].kept
    assert exact is not None
    assert (exact.evidence, exact.texts[-2:]) == ("prompt", ("A summary.", "1\tx"))


def test_printed_streams_tell_calls_and_sub_agents(tmp_path: Path) -> None:
    (path,) = write_sample("stream-json", tmp_path)
    path.write_text(f"Warning: no sandbox\n{path.read_text()}")  # what else was printed is named and passed over
    preamble, run, child = read_with("stream-json", path)
    assert isinstance(run, Recording)
    assert isinstance(child, Recording)
    assert not isinstance(preamble, Recording)
    assert [read.path for turn in interpret(run, len).turns for read in turn.reads] == ["a.py"]
    assert [read.path for turn in interpret(child, len).turns for read in turn.reads] == ["b.py"]
    assert (run.agent_version, child.details) == ("2.1.325", {"parent_run": "s1"})


def test_the_output_of_codex_exec_tells_commands_and_changes(tmp_path: Path) -> None:
    turns = interpret(session("codex-exec", tmp_path), len).turns
    assert [read.path for turn in turns for read in turn.reads] == ["a.py"]
    assert [write.path for turn in turns for write in turn.writes] == ["a.py"]
    assert [turn.recorded.text for turn in turns] == ["", "", "Done."]


@pytest.mark.parametrize(
    ("name", "file", "writes"), [("cursor", "", ["a.py"]), ("droid", "d1", []), ("droid", "stream", [])]
)
def test_messages_of_blocks_tell_what_was_read_and_written(
    name: str, file: str, writes: list[str], tmp_path: Path
) -> None:
    run = session(name, tmp_path, file)
    turns = interpret(run, len).turns
    assert run.prompt == "Mend a.py"
    assert [(read.path, read.content) for turn in turns for read in turn.reads] == [("a.py", "x = 1")]
    assert [write.path for turn in turns for write in turn.writes] == writes


def test_a_transcript_of_cursor_may_say_how_its_turns_ended(tmp_path: Path) -> None:
    [path] = write_sample("cursor", tmp_path)
    path.write_text(path.read_text() + '{"type":"turn_ended","status":"success"}\n')
    assert format_of(path) == "cursor"


def test_droids_stream_is_known_by_its_calls(tmp_path: Path) -> None:
    named = {"sessionId": "s1", "timestamp": 1}
    start = {"type": "system", "subtype": "init", **named, "model": "m", "cwd": "/repo", "tools": ["Execute"]}
    ask = {"type": "tool_call", **named, "id": "c1", "toolName": "Execute", "parameters": {"command": "cat a.py"}}
    told = {"type": "tool_result", **named, "id": "c1", "isError": False, "value": "x = 1"}
    path = as_lines(tmp_path / "stream.jsonl", [start, ask, told])
    assert format_of(path) == "droid"
    run = only_run("droid", path)
    assert (run.run_id, run.root) == ("s1", "/repo")
    assert [(read.path, read.content) for turn in interpret(run, len).turns for read in turn.reads] == [
        ("a.py", "x = 1")
    ]


def format_of(path: Path) -> str:
    """Return the format that reads a file."""
    [run] = [item for item in read_corpus([path]) if isinstance(item, Recording)]
    return run.format


def test_sub_agents_of_kimi_code_have_files_of_their_own(tmp_path: Path) -> None:
    paths = {path.parent.name: path for path in write_sample("kimi-code", tmp_path)}
    child = only_run("kimi-code", paths["agent-0"])
    assert (child.run_id, child.task_id, child.root) == ("session_k1/agent-0", "session_k1", "/repo")
    assert child.details["parent_run"] == "session_k1"
    older = only_run("kimi-code", paths["k2"])
    assert [read.path for turn in interpret(older, len).turns for read in turn.reads] == ["a.py"]
    assert [write.added for turn in interpret(older, len).turns for write in turn.writes] == ["x = 2"]
    assert (older.window, older.turns[0].usage) == (100_000, LoggedUsage(2_000, 20, 100))
    assert [turn.kept for turn in older.turns if turn.broken] == [KeptContext("size")]


def test_events_of_a_sub_agent_in_the_file_of_its_parent_are_a_run_of_their_own(tmp_path: Path) -> None:
    def told(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": 1.0, "message": {"type": kind, "payload": payload}}

    def inner(kind: str, **payload: object) -> dict[str, object]:
        return told("SubagentEvent", parent_tool_call_id="c1", event={"type": kind, "payload": payload})

    task = {"name": "Task", "arguments": "{}"}
    cat = {"name": "Shell", "arguments": '{"command": "cat b.py"}'}
    lines = [
        told("TurnBegin", user_input="Go"),
        told("StepBegin", n=1),
        told("ToolCall", id="c1", function=task),
        inner("StepBegin", n=1),
        inner("ToolCall", id="c9", function=cat),
        inner("ToolResult", tool_call_id="c9", return_value={"is_error": False, "output": "z = 1"}),
        told("ToolResult", tool_call_id="c1", return_value={"is_error": False, "output": "Seen."}),
    ]
    main, child = read_with("kimi-code", as_lines(tmp_path / "k3" / "wire.jsonl", lines))
    assert isinstance(main, Recording)
    assert isinstance(child, Recording)
    assert [call.output for turn in main.turns for call in turn.calls] == ["Seen."]
    assert (child.run_id, child.details["parent_run"]) == ("k3/c1", "k3")
    assert [read.path for turn in interpret(child, len).turns for read in turn.reads] == ["b.py"]


def test_clines_older_history_calls_tools_as_tags(tmp_path: Path) -> None:
    path = next(path for path in write_sample("cline", tmp_path) if path.name.startswith("api_"))
    run = only_run("cline", path)
    turns = interpret(run, len).turns
    assert (run.run_id, run.prompt) == ("1700000000000", "Mend a.py")
    assert [(read.path, read.content) for turn in turns for read in turn.reads] == [
        ("a.py", "x = 1"),
        ("b.py", "y = 1"),
    ]
    assert [(write.path, write.content) for turn in turns for write in turn.writes] == [("a.py", "x = 2")]


def test_a_call_of_several_files_and_commands_is_a_call_for_each(tmp_path: Path) -> None:
    def block(id: str, tool: str, **given: object) -> dict[str, object]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": tool, "input": given}]}

    def told(id: str, *shown: str) -> dict[str, object]:
        results = [{"query": "q", "result": text, "success": True} for text in shown]
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": results}]}

    messages = [
        block("c1", "read_files", files=[{"path": "/r/a.py"}, {"path": "/r/b.py", "start_line": None}]),
        told("c1", "1 | x = 1", "1 | y = 1"),
        block("c2", "run_commands", commands=["cat /r/c.py", "true"]),
        told("c2", "z = 1", ""),
        block("c3", "editor", path="/r/new.py", new_text="n = 1"),
    ]
    path = tmp_path / "s.messages.json"
    path.write_text(json.dumps({"sessionId": "s", "messages": messages}))
    turns = interpret(only_run("cline", path), len).turns
    assert [[read.path for read in turn.reads] for turn in turns] == [["/r/a.py", "/r/b.py"], ["/r/c.py"], []]
    assert [(write.path, write.content) for turn in turns for write in turn.writes] == [("/r/new.py", "n = 1")]


def test_trae_agents_steps_are_turns(tmp_path: Path) -> None:
    run = session("trae-agent", tmp_path)
    turns = interpret(run, len).turns
    (read,) = turns[0].reads
    assert (read.requested, read.lines) == (Lines(2, 3), {2: "x = 1", 3: "y = 2"})
    assert [(write.removed, write.added) for turn in turns for write in turn.writes] == [("x = 1", "x = 2")]
    assert [turn.usage for turn in run.turns][:2] == [LoggedUsage(2_000, 20, 1_900), LoggedUsage(2_000, 20)]
    assert (run.prompt, run.resolved, run.turns[2].calls[0].failed) == ("Mend a.py", None, True)


def test_a_reply_of_aider_reads_the_files_that_joined_the_chat_or_changed(tmp_path: Path) -> None:
    run = session("aider", tmp_path)
    turns = interpret(run, len).turns
    assert [[read.path for read in turn.reads] for turn in turns] == [["a.py"], ["a.py"], ["b.py"]]
    assert {read.content for turn in turns for read in turn.reads} == {None}  # the history does not show them
    assert [(write.path, write.removed, write.added) for turn in turns for write in turn.writes] == [
        ("a.py", "x = 1\n", "x = 2\n")
    ]
    assert (run.model, run.agent_version) == ("openai/fake-model", "0.86.2")
    assert run.turns[0].usage == LoggedUsage(2_000, 20, 1_500)


@pytest.mark.parametrize(("name", "file"), [("langsmith", "runs"), ("langfuse", "obs"), ("langfuse", "trace")])
def test_exported_traces_tell_calls_results_and_usage(name: str, file: str, tmp_path: Path) -> None:
    run = session(name, tmp_path, file)
    turns = interpret(run, len).turns
    assert (run.model, run.prompt) == ("gpt-5", "Mend a.py")
    assert [(read.path, read.content) for turn in turns for read in turn.reads] == [("a.py", "x = 1")]
    assert [(write.removed, write.added) for turn in turns for write in turn.writes] == [("x = 1", "x = 2")]
    assert run.turns[0].usage == LoggedUsage(2_000, 20, 100)
    assert [turn.text for turn in run.turns] == ["", "", "Done."]


@pytest.mark.parametrize("bad", ["many", -1, True, [3]])
def test_a_trace_with_counts_that_are_no_numbers_has_an_unknown_usage(bad: object, tmp_path: Path) -> None:
    rows = [row | {"usage_details": langfuse.COUNTS | {"input": bad}} for row in langfuse.ROWS]
    assert only_run("langfuse", as_lines(tmp_path / "rows.jsonl", rows)).turns[0].usage is None


def test_rows_of_a_trace_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    rows = json.loads(f"[{','.join(sample_files('langsmith')['runs.jsonl'].decode().splitlines())}]")
    run = only_run("langsmith", as_lines(tmp_path / "runs.jsonl", rows[::-1]))
    assert [turn.text for turn in run.turns] == ["", "", "Done."]


def test_sub_agents_are_rolled_up_to_the_run_that_started_them_and_counted_once(tmp_path: Path) -> None:
    paths = [path for name in ("opencode", "kimi-code") for path in write_sample(name, tmp_path / name)]
    logs = [path for path in paths if path.name == "opencode.db" or "session_k1" in str(path)]
    done = analyze(*logs, out=tmp_path / "out")
    document = json.loads(done.stdout)
    rows = read_table(tmp_path / "out", "runs").to_pylist()
    children = [row for row in rows if row["parent_run"]]
    assert {row["run_id"]: row["parent_run"] for row in children} == {
        "ses_2": "ses_1",
        "session_k1/agent-0": "session_k1",
    }
    found = document["sub_agents"]
    assert (found["runs"], found["parents"], document["runs"]) == (2, 2, 4)
    assert {one["parent_run"] for one in found["by_parent"]} == {"ses_1", "session_k1"}
    for name in ("turns", "calls", "reads", "writes", "trajectory_tokens"):
        assert found[name] == sum(row[name] for row in children) == sum(one[name] for one in found["by_parent"])
    assert document["reads"] == sum(row["reads"] for row in rows)
    page = page_for(tmp_path / "out")
    [section] = [one for one in page.sections if one.title == "What sub-agents did"]
    tokens = sum(row["trajectory_tokens"] for row in children) / sum(row["trajectory_tokens"] for row in rows)
    assert section.words[0].startswith(f"2 of 4 runs are sub-agents of 2 runs, with {tokens:.0%} of all tokens.")
    [table] = section.items
    assert isinstance(table, Table)
    assert {(row["parent_run"], row["runs"], row["turns"]) for row in table.rows} == {
        (row["parent_run"], 1, row["turns"]) for row in children
    }
    summary = read_analysis(tmp_path / "out")
    assert sub_agents_section(replace(summary, sub_agents=replace(summary.sub_agents, runs=0))) is None


def test_files_printed_together_are_an_unknown_split_and_never_a_silent_half(tmp_path: Path) -> None:
    shown = "p = 1\nq = 2\nr = 3\n"
    lines = [
        META,
        item("function_call", name="exec_command", arguments='{"cmd": "cat a.py b.py"}', call_id="c1"),
        item("function_call_output", call_id="c1", output=f"Process exited with code 0\nOutput:\n{shown}"),
        said("assistant", "Done."),
    ]
    log = as_lines(tmp_path / "rollout-1.jsonl", lines)
    assert json.loads(analyze(log, out=tmp_path / "out").stdout)["undivided_reads"] == 2
    assert read_table(tmp_path / "out", "runs").to_pylist()[0]["undivided_reads"] == 2
    told = completed([warm.programs() / "eirkit", "vestige", "analyze", str(log), "--out", str(tmp_path / "again")])
    assert "unknown split" in told.stdout
