"""OpenHands completions and events, small logs and the recorded ones."""

from __future__ import annotations

import json

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.formats.openhands import cell_result, command_result, repository_root
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage
from tests.vestige.formats.logs import as_lines, only_run, read_with
from tests.vestige.formats.samples import openhands_events as sample
from tests.vestige.formats.samples import write_sample
from tests.vestige.recorded import recorded

COMPLETIONS, EVENTS = "openhands-completions", "openhands-events"


def called(run):
    return [[(c.tool, dict(c.arguments), c.output, c.exit_code, c.failed) for c in turn.calls] for turn in run.turns]


def test_the_last_completion_of_a_task_is_its_run(tmp_path):
    write_sample(COMPLETIONS, tmp_path)
    first, second = read_corpus([tmp_path])
    assert (first.run_id, first.model, first.root) == ("owner__repo-1", "maker/model-1", "/workspace/repo__1.0")
    view = {"command": "view", "path": "/workspace/repo__1.0/pkg/a.py", "view_range": [1, 9]}
    assert called(first) == [
        [("bash", {"command": "cd pkg && ls"}, "a.py\nb.py", 0, False)],
        [("str_replace_editor", view, "ERROR:\nno such file", None, True)],
        [("finish", {}, "", None, False)],
    ]
    assert [turn.usage for turn in first.turns] == [None, None, LoggedUsage(50, 5, 30)]
    folders = [c.working_folder for turn in first.turns for c in turn.calls]
    assert folders == [None, "/workspace/repo__1.0/pkg", "/workspace/repo__1.0/pkg"]
    assert called(second) == [[("bash", {"command": "ls"}, "a.py", 3, False)], [("finish", {}, "", None, False)]]


def test_events_of_one_response_are_one_turn(tmp_path):
    run, _ = read_with(EVENTS, write_sample(EVENTS, tmp_path)[0])
    assert (run.run_id, run.model, run.root, run.resolved) == (
        "owner__repo-1",
        "maker/model-1",
        "/workspace/repo__1.0",
        True,
    )
    assert (run.submission, run.exit_status) == (sample.PATCH, "finish")
    assert run.prompt == f"You are an agent.\n\n{sample.PROMPT}"
    view = {"command": "view", "path": sample.PATH, "view_range": [1, 9]}
    editor = {"command": "str_replace", "path": sample.PATH, "old_str": "x = 1", "new_str": "x = 2"}
    assert called(run) == [
        [
            ("bash", {"command": "cd pkg"}, "", 0, False),
            ("str_replace_editor", view, "1\tx = 1", None, False),
        ],
        [],
        [("str_replace_editor", editor, "ERROR:\nno", None, True)],
        [("finish", {"final_thought": "done"}, "", None, False)],
    ]
    assert [turn.usage for turn in run.turns] == [LoggedUsage(100, 3), None, LoggedUsage(200, 3), LoggedUsage(50, 3)]
    assert [turn.rejected for turn in run.turns] == [False, True, False, False]
    assert [(turn.broken, turn.carried) for turn in run.turns] == [
        (None, ""),
        (None, ""),
        ("compaction", "Looked at a.py."),
        (None, ""),
    ]
    assert run.turns[2].calls[0].working_folder == "/workspace/repo__1.0/pkg"


def test_pairs_of_the_oldest_files(tmp_path):
    _, run = read_with(EVENTS, write_sample(EVENTS, tmp_path)[0])
    assert called(run) == [[("bash", {"command": "ls"}, "a.py", 2, False)], []]
    assert (run.turns[1].text, run.exit_status) == ("Done.", "RuntimeError: limit")


def test_an_exported_list_of_events_is_the_same_run(tmp_path):
    lines, exported, sdk_lines, sdk_exported, _ = write_sample(EVENTS, tmp_path)
    assert only_run(EVENTS, exported).turns == read_with(EVENTS, lines)[0].turns
    assert [turn.calls for turn in only_run(EVENTS, sdk_exported).turns] == [
        turn.calls for turn in only_run(EVENTS, sdk_lines).turns
    ]


def test_events_of_the_sdk_are_a_run(tmp_path):
    run = only_run(EVENTS, write_sample(EVENTS, tmp_path)[2])
    assert (run.run_id, run.model, run.root, run.exit_status) == (
        "owner__repo-3",
        "maker/model-2",
        "/workspace/repo__1.0",
        "finish",
    )
    assert run.prompt == f"You are an agent.\n\n{sample.PROMPT}"
    refused = {"arguments": '{"command": "as the model wrote it"}'}
    edit = {"command": "str_replace", "path": sample.PATH, "old_str": "x = 1", "new_str": "x = 2"}
    assert called(run) == [
        [
            ("bash", {"command": "cd pkg && cat a.py"}, "x = 1\n", 0, False),
            (
                "file_editor",
                {"command": "view", "path": sample.PATH},
                f"Here's the result of running `cat -n` on {sample.PATH}:\n     1\tx = 1\n",
                None,
                False,
            ),
        ],
        [("terminal", refused, "No such parameter.", None, True)],
        [("terminal", refused, "No.", None, True)],
        [("file_editor", edit, f"The file {sample.PATH} has been edited.", None, False)],
        [("bash", {"command": "sed -i s/2/3/ a.py; false"}, "", 1, False)],
        [("terminal_input", {"command": "y", "is_input": True}, "", None, False)],
        [],
        [("finish", {"message": "done"}, "", None, False)],
    ]
    assert [turn.rejected for turn in run.turns] == [False, True, True, False, False, False, False, False]
    assert (run.turns[3].broken, run.turns[3].carried) == ("compaction", "Looked at a.py.")
    assert (run.turns[0].usage, run.turns[0].text, run.turns[6].text) == (LoggedUsage(9, 3), "Look.", "Done?")
    assert run.turns[4].calls[0].working_folder == "/workspace/repo__1.0/pkg"


def test_a_stored_conversation_is_the_same_run(tmp_path):
    *_, lines, _, state = write_sample(EVENTS, tmp_path)
    told, run = only_run(EVENTS, lines), only_run(EVENTS, state)
    assert (run.run_id, run.model, run.exit_status) == ("0b1c", told.model, "finish")
    assert run.turns == told.turns
    (found,) = read_corpus([state.parent.parent])
    assert (found.run_id, found.turns) == (run.run_id, run.turns)


def test_a_damaged_event_of_a_conversation_costs_itself_alone(tmp_path):
    state = write_sample(EVENTS, tmp_path)[-1]
    events = sorted((state.parent / "events").iterdir())
    events[0].write_text("{")
    events[1].write_text(json.dumps(sample.sdk_event("1", "MessageEvent", "user", llm_message={"content": "Go"})))
    outside = tmp_path / "outside.json"
    outside.write_bytes(events[2].read_bytes())
    (state.parent / "events" / "event-00030-0b1c0000-0000.json").symlink_to(outside)
    torn, run = read_with(EVENTS, state)
    assert isinstance(torn, Skipped)
    assert torn.source == f"events/{events[0].name}"
    assert torn.source not in torn.reason
    assert (run.prompt, run.root, len(run.turns)) == ("Go", "/home/u/p", 8)


def test_a_long_output_of_the_sdk_is_what_the_agent_saw_of_it(tmp_path):
    whole = "x = 1\n" * 6000
    action = sample.sdk_action("2", "r1", "terminal", {"command": "cat a.py", "kind": "TerminalAction"})
    history = [action, sample.sdk_answer("3", "2", "terminal", whole)]
    run = only_run(EVENTS, as_lines(tmp_path / "o.jsonl", [sample.SDK_RUN | {"history": history}]))
    (call,) = run.turns[0].calls
    head, mark, tail = call.output.partition("<response clipped>")
    assert (len(call.output), call.full_output, mark) == (30_000, whole, "<response clipped>")
    assert whole.startswith(head)
    assert whole.endswith(tail.partition("</NOTE>")[2])


def test_what_a_run_of_the_sdk_touched(tmp_path):
    turns = interpret(only_run(EVENTS, write_sample(EVENTS, tmp_path)[2]), len).turns
    assert [[read.path for read in turn.reads] for turn in turns] == [["pkg/a.py"] * 2, *([[]] * 7)]
    assert [[write.path for write in turn.writes] for turn in turns][3:5] == [["pkg/a.py"], ["pkg/a.py"]]
    assert not any(turn.writes for turn in (*turns[:3], *turns[5:]))


def test_a_damaged_run_costs_no_other(tmp_path):
    good = sample.run("owner__repo-1", sample.HISTORY)
    torn, bad = '{"instance_id": "x", "test_result"', sample.run("b", [3])
    items = read_with(EVENTS, as_lines(tmp_path / "o.jsonl", [good, torn, bad, {**good, "history": None}, good]))
    assert [isinstance(item, Skipped) for item in items] == [False, True, True, True, False]
    assert [item.source for item in items] == [f"o.jsonl:{number}" for number in range(1, 6)]


@pytest.mark.parametrize(
    "output, expected",
    [
        ("plain", (None, None, "plain")),
        ("a\n[The command completed with exit code 1.]", (1, None, "a")),
        (
            "a\n[Python Interpreter: /p]\nroot@box:/w # \n[Command finished with exit code 0]",
            (0, "/w", "a"),
        ),
        (
            "ls\r\na\r\n[Current working directory: /w]\n[Python interpreter: /p]\n[Command finished with exit code 7]",
            (7, "/w", "a"),
        ),
        ("ls\r\n[Current working directory: /w]\n[Command finished with exit code 1]", (1, "/w", "")),
        ("", (None, None, "")),
    ],
)
def test_what_openhands_adds_to_an_output_is_taken_off(output, expected):
    assert command_result(output, "ls") == expected


@pytest.mark.parametrize(
    "output, expected",
    [
        ("x\n[Jupyter current working directory: /w]\n[Jupyter Python interpreter: /p]", "x"),
        ("[Jupyter current working directory: /w]", ""),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_what_openhands_adds_to_a_cell_is_taken_off(output, expected):
    assert cell_result(output) == expected


def test_a_cell_is_a_program_in_python(tmp_path):
    code = "s = open('/workspace/repo__1.0/a.py').read()\nopen('/workspace/repo__1.0/b.py', 'w').write(s)\nprint(s)"
    history = [
        sample.event(1, "agent", action="run_ipython", args={"code": code, "thought": ""}),
        sample.event(2, "agent", observation="run_ipython", cause=1, content="x\n[Jupyter Python interpreter: /p]"),
    ]
    run = only_run(EVENTS, as_lines(tmp_path / "o.jsonl", [sample.run("a", history)]))
    assert called(run) == [[("execute_ipython_cell", {"code": code}, "x", None, False)]]
    (turn,) = interpret(run, len).turns
    assert ([read.path for read in turn.reads], [write.path for write in turn.writes]) == (["a.py"], ["b.py"])


def test_the_repository_is_named_in_the_prompt():
    assert repository_root("x <uploaded_files>\n/workspace/a/\n</uploaded_files>") == "/workspace/a"
    assert repository_root("nothing") is None


def test_recorded_completions_agree_with_a_separate_count():
    folder = recorded(COMPLETIONS)
    runs = {run.run_id: run for run in read_corpus([folder / "llm_completions"])}
    assert len(runs) == 27
    for task, run in runs.items():
        (path,) = (folder / "llm_completions" / task).iterdir()
        content = json.loads(path.read_bytes())
        messages = [*content["messages"], content["response"]["choices"][0]["message"]]
        replies = [message for message in messages if message["role"] == "assistant"]
        assert len(run.turns) == len(replies)
        assert sum(len(t.calls) for t in run.turns) == sum(len(reply.get("tool_calls") or []) for reply in replies)
        answers = sum(message["role"] == "tool" for message in messages)
        commands = sum(c.exit_code is not None for turn in run.turns for c in turn.calls)
        stated = sum("[Command finished with exit code" in json.dumps(m) for m in messages if m["role"] == "tool")
        assert commands == stated <= answers


def test_recorded_events_agree_with_a_separate_count():
    (path,) = recorded(EVENTS).iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    runs = read_with(EVENTS, path)
    assert len(runs) == len(lines) == 3
    for run, line in zip(runs, lines, strict=True):
        total = line["metrics"]["accumulated_token_usage"]
        used = [turn.usage for turn in run.turns if turn.usage]
        assert len(used) == len(line["metrics"]["token_usages"])
        assert sum(usage.input_tokens for usage in used) == total["prompt_tokens"]
        assert sum(usage.output_tokens for usage in used) == total["completion_tokens"]
        acted = [event for event in line["history"] if "tool_call_metadata" in event and "action" in event]
        assert sum(len(turn.calls) for turn in run.turns) == len(acted)
        assert sum(turn.rejected for turn in run.turns) == sum(e.get("observation") == "error" for e in line["history"])
