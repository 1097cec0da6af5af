"""From recordings to trajectories: turns, tokens, roots, and files of real submissions that must have been written."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from typing import Any

import pytest

from eirkit.vestige.actions.touches import initial_state, interpret, touches_of
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import read_patch
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, RecordedTurn, Recording, Touches, Trajectory
from tests.vestige.recorded import recorded

WRITE_RECALL = 0.97  # asked of the sets below; a plain search for redirections and `sed -i` reaches 0.81


def written_files(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the files that a run wrote, in the order of their first write."""
    return tuple(dict.fromkeys(write.path for turn in trajectory.turns for write in turn.writes))


def bash(command: str, output: str = "", exit_code: int | None = 0, folder: str | None = None) -> RecordedTurn:
    return RecordedTurn((Call("bash", {"command": command}, output, exit_code, working_folder=folder),))


def run(
    *turns: RecordedTurn, format: str = "openhands-events", root: str | None = None, prompt: str = ""
) -> Trajectory:
    recording = Recording("r", "t", format, "here", turns, root=root, prompt=prompt)
    return interpret(recording, len)


def paths(trajectory: Trajectory) -> list[str]:
    return [read.path for turn in trajectory.turns for read in turn.reads]


def test_a_file_that_a_turn_shows_after_it_wrote_it_is_the_new_version() -> None:
    def rewritten(*commands: str) -> list[bool]:
        calls = tuple(Call("bash", {"command": command}, "x = 1\n", 0) for command in commands)
        return [read.rewritten for read in run(RecordedTurn(calls), root="/repo").turns[0].reads]

    assert rewritten("sed -i 1d a.py && cat a.py") == [True]
    assert rewritten("cat a.py; sed -i 1d a.py") == [False]
    assert rewritten("sed -i 1d b.py && cat a.py") == [False]
    assert rewritten("cat a.py", "sed -i 1d a.py", "cat a.py") == [False, True]


def test_turns_are_counted_from_one_with_the_tokens_of_what_was_said_and_shown() -> None:
    first = RecordedTurn((Call("bash", {"command": "cat a"}, "12345"),), text="abc")
    trajectory = run(first, RecordedTurn(text="x", tokens=7))
    assert [(turn.number, turn.tokens) for turn in trajectory.turns] == [(1, 3 + 5 + 5), (2, 7)]


def test_a_command_that_stands_in_the_reply_is_not_counted_twice() -> None:
    turn = RecordedTurn((Call("bash", {"command": "cat a"}, "1"),), text="I look:\n```bash\ncat a\n```")
    assert run(turn).turns[0].tokens == len(turn.text) + 1


def test_a_rejected_reply_is_no_action() -> None:
    turn = RecordedTurn((Call("bash", {"command": "rm a"}),), rejected=True)
    assert run(turn).turns[0].writes == ()


def test_what_the_log_itself_says_is_taken_as_it_is() -> None:
    touches = Touches((FileRead("a", 3),), (FileWrite("b", tokens=4),))
    trajectory = run(RecordedTurn((Call("bash", {"command": "cat c"}, "x"),), touches=touches))
    assert (trajectory.turns[0].reads, trajectory.turns[0].writes) == (touches.reads, touches.writes)


def test_calls_of_one_turn_are_put_together() -> None:
    both = RecordedTurn((Call("bash", {"command": "cat a"}, "1"), Call("Write", {"file_path": "b", "content": ""})))
    turn = run(both).turns[0]
    assert ([read.path for read in turn.reads], [write.path for write in turn.writes]) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("format", "path"), [("openhands-events", "src/a.py"), ("mini-swe-agent", "a.py"), ("codex", "a.py")]
)
def test_which_scaffolds_keep_their_shell(format: str, path: str) -> None:
    turns = (bash("cd /testbed && ls"), bash("cd src"), bash("cat a.py", "x\n"))
    assert paths(run(*turns, format=format)) == [path]


def test_a_folder_that_the_log_gives_wins() -> None:
    trajectory = run(bash("cd /repo/x"), bash("cat a.py", "x\n", folder="/repo/y"), root="/repo")
    assert paths(trajectory) == ["y/a.py"]


@pytest.mark.parametrize(
    ("turns", "prompt", "root"),
    [
        ((bash("cd /testbed && ls"),), "", "/testbed"),
        (
            (bash("ls"),),
            "<uploaded_files>\n/workspace/django__django__3.0\n</uploaded_files>",
            "/workspace/django__django__3.0",
        ),
        ((bash("cd /home/me/work && ls"), bash("cd /home/me/work && make")), "", "/home/me/work"),
        ((bash("ls"),), "", None),
    ],
)
def test_the_repository_is_found(turns: tuple[RecordedTurn, ...], prompt: str, root: str | None) -> None:
    assert run(*turns, prompt=prompt).root == root


def test_two_names_of_the_linked_repository_are_one() -> None:
    trajectory = run(bash("cat /testbed/a.py /workspace/x__y__1/a.py", "x\n"), root="/workspace/x__y__1")
    assert set(paths(trajectory)) == {"a.py"}


def test_paths_outside_stay_absolute() -> None:
    assert paths(run(bash("cat /tmp/a /repo/b ../c", "x\n"), root="/repo")) == ["/tmp/a", "b", "/c"]


@pytest.mark.parametrize(
    ("format", "last"), [("gemini-cli", "top.py"), ("codex", "top.py"), ("claude-code", "src/top.py")]
)
def test_a_folder_of_one_call_is_left_where_commands_start_anew(format: str, last: str) -> None:
    given = run(bash("cat m.py", "m", folder="src"), bash("cat top.py", "x"), format=format, root="/repo")
    assert paths(given) == ["src/m.py", last]


@pytest.mark.parametrize("name", ["directory", "dir_path"])
def test_a_folder_in_the_arguments_counts_once(name: str) -> None:
    asked = {"command": "cat m.py", name: "src"}
    told = RecordedTurn((Call("bash", asked, "m", 0, working_folder="src"),))
    untold = RecordedTurn((Call("bash", asked, "m", 0),))
    assert paths(run(told, told, untold, format="gemini-cli", root="/repo")) == ["src/m.py"] * 3


def cell(code: str, output: str = "", tool: str = "execute_ipython_cell", **facts: Any) -> RecordedTurn:
    return RecordedTurn((Call(tool, {"code": code}, output, **facts),))


@pytest.mark.parametrize("tool", ["python", "ipython", "execute_ipython_cell"])
def test_a_program_in_python_is_followed(tool: str) -> None:
    code = (
        "import os\nos.chdir('/elsewhere')\ns = open('/repo/a.py').read()\nopen('/repo/b.py', 'w').write('1')\nprint(s)"
    )
    given = run(cell(code, "x", tool), bash("cat c.py", "c"), root="/repo")
    assert paths(given) == ["a.py", "c.py"]
    assert written_files(given) == ("b.py",)


def test_a_cell_that_raised_did_what_stands_before() -> None:
    code = "open('/repo/a.py', 'w').write('1')\nraise ValueError\nopen('/repo/b.py', 'w').write('1')"
    raised = "ValueError    Traceback (most recent call last)\nCell In[3], line 2\n      1 open\n----> 2 raise"
    assert written_files(run(cell(code, raised), root="/repo")) == ("a.py",)
    told = 'Traceback (most recent call last):\n  File "<stdin>", line 2, in <module>\nValueError'
    assert written_files(run(cell(code, told, "python", failed=True), root="/repo")) == ("a.py",)


def test_a_script_of_an_earlier_turn_writes_when_it_runs() -> None:
    script = "open('src/a.py', 'w').write('x')"
    trajectory = run(
        RecordedTurn((Call("Write", {"file_path": "/repo/fix.py", "content": script}),)),
        bash("python fix.py"),
        root="/repo",
    )
    assert written_files(trajectory) == ("fix.py", "src/a.py")


def test_an_edited_script_is_followed_as_edited() -> None:
    trajectory = run(
        bash("echo \"open('a', 'w')\" > fix.py"),
        RecordedTurn((Call("Edit", {"file_path": "fix.py", "old_string": "'a'", "new_string": "'b'"}),)),
        bash("python fix.py"),
    )
    assert written_files(trajectory) == ("fix.py", "b")


def test_a_folder_that_goes_takes_the_files_that_were_shown_in_it() -> None:
    gone = run(
        bash("cat out/page.html out/page.txt", "x\n"), bash("rm out/page.txt"), bash("rm -rf out"), bash("rm -r out")
    )
    assert [[write.path for write in turn.writes] for turn in gone.turns[1:3]] == [["out/page.txt"], ["out/page.html"]]
    assert all(write.kind == "delete" for turn in gone.turns for write in turn.writes)


def recall(name: str) -> tuple[float, list[tuple[str, str]]]:
    """Return the share of submitted files that were seen as written, and the others.

    Files that no command of the run names are left out: the environment had changed them before the run began (the
    images of SWE-bench leave edited `tox.ini`, `setup.py`, `pyproject.toml` and built packages behind).
    """
    seen, missed = 0, []
    for recording in read_corpus([recorded(name)]):
        if not isinstance(recording, Recording) or not recording.submission:
            continue
        written = set(written_files(interpret(recording, len)))
        is_named = naming(recording)
        for path in read_patch(recording.submission).files:
            if path in written:
                seen += 1
            elif is_named(path):
                missed.append((recording.run_id, path))
    return seen / (seen + len(missed)), missed


def naming(recording: Recording) -> Callable[[str], bool]:
    texts = [str(value) for turn in recording.turns for call in turn.calls for value in call.arguments.values()]
    everything = "\n".join(texts)
    return lambda path: path in everything


# The table of docs/design/what-an-action-touched.md: nobody who reads the log could see more than the rest written.
UNSEEN = {"built before the run": 65, "edited in the image": 36, "named by a framework": 2}


def test_why_submitted_files_were_not_seen_as_written() -> None:
    reasons: Tally[str] = Tally()
    for recording in read_corpus([recorded("mini-swe-agent-v1")]):
        if isinstance(recording, Recording) and recording.submission:
            written = set(written_files(interpret(recording, len)))
            reasons.update(reason_of(path) for path in read_patch(recording.submission).files if path not in written)
    assert reasons == UNSEEN


def reason_of(path: str) -> str:
    if path.startswith("build/lib/"):
        return "built before the run"
    if path in ("tox.ini", "setup.py", "pyproject.toml"):
        return "edited in the image"
    return "named by a framework" if "migrations/" in path else path


@pytest.mark.parametrize("name", ["mini-swe-agent-v1", "mini-swe-agent-v2", "openhands-events", "swe-agent"])
def test_submitted_files_were_seen_as_written(name: str) -> None:
    share, missed = recall(name)
    assert share >= WRITE_RECALL, missed


def test_a_range_and_a_whole_file_are_told_apart() -> None:
    # Without a line between them: eleven lines of the first, the rest is the second.
    first = [f"first line {n}" for n in range(15, 26)]
    second = [f"second line {n}" for n in range(1, 81)]
    call = Call("bash", {"command": "sed -n 15,25p a.py && cat b.py"}, "\n".join([*first, *second]) + "\n", 0)
    a, b = touches_of(call, initial_state(Recording("r", "t", "codex", "x", (), root="/repo"))).reads
    assert (a.path, a.lines) == ("a.py", dict(enumerate(first, 15)))
    assert (b.path, b.lines) == ("b.py", dict(enumerate(second, 1)))


def test_an_output_that_could_not_be_decoded_shows_no_file() -> None:
    """Inspect puts its own words in the place of such an output; a command that prints nothing may still write."""
    shown = Call(
        "bash", {"command": "tail -c 9 a.png | tee b.png"}, "Error decoding bytes to utf-8: bad byte", failed=True
    )
    touches = touches_of(shown, initial_state(Recording("r", "t", "inspect", "x", (), root="/repo")))
    assert touches.reads == ()
