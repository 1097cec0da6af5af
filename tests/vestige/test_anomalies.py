"""The four signatures, each with the cases it must leave out."""

from __future__ import annotations

import pytest

from eirkit.vestige.audits.anomalies import anomalies, edit_not_applied, runner_verdict
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, RecordedTurn, Trajectory, Turn
from tests.vestige.runs import of_turns

FAILED = "test_a.py F\n=========== 1 failed, 3 passed in 0.12s ===========\n"
PASSED = "....\n=========== 4 passed in 0.10s ===========\n"
PYTEST = "python -m pytest test_a.py"


def shell(command: str, output: str = "", **more: object) -> Call:
    return Call("bash", {"command": command}, output, **more)  # type: ignore[arg-type]


def run(
    *turns: tuple[Call, list[str], list[FileWrite]], rejected: frozenset[int] = frozenset(), **more: object
) -> Trajectory:
    made = [
        Turn(
            number,
            tuple(FileRead(path) for path in reads),
            tuple(writes),
            10,
            RecordedTurn((call,), rejected=number in rejected),
        )
        for number, (call, reads, writes) in enumerate(turns, 1)
    ]
    return of_turns(made, **more)


def found(trajectory: Trajectory) -> list[tuple[int, str, int | None]]:
    return [(event.turn, event.signature, event.earlier_turn) for event in anomalies(trajectory)]


# Repeated commands


def test_a_command_repeated_with_its_output_is_found() -> None:
    view = (shell("cat a.py", "text"), ["a.py"], [])
    other = (shell("cat b.py", "more"), ["b.py"], [FileWrite("b.py")])
    assert found(run(view, other, view, view)) == [(3, "repeated_command", 1), (4, "repeated_command", 3)]


def test_a_write_of_an_input_or_another_output_makes_it_no_repetition() -> None:
    view = (shell("cat a.py", "text"), ["a.py"], [])
    edit = (shell("sed -i s/a/b/ a.py"), [], [FileWrite("a.py")])
    changed = (shell("cat a.py", "next"), ["a.py"], [])
    assert found(run(view, edit, view)) == []
    assert found(run(view, changed)) == []


def test_a_command_that_writes_its_own_input_is_no_repetition() -> None:
    edit = (shell("sed -i s/a/b/ a.py"), ["a.py"], [FileWrite("a.py")])
    assert found(run(edit, edit)) == []


def test_a_programs_inputs_are_unknown_so_any_write_counts() -> None:
    rerun = (shell("python repro.py", "boom"), ["repro.py"], [])
    edit = (shell("sed -i s/a/b/ a.py"), [], [FileWrite("a.py")])
    assert found(run(rerun, edit, rerun)) == []
    assert found(run(rerun, rerun)) == [(2, "repeated_command", 1)]


def test_failures_of_the_machine_are_left_out_but_a_file_may_hold_their_words() -> None:
    broken = (shell("python repro.py", "bash: python: command not found", exit_code=127), [], [])
    shown = (shell("cat a.py", "except ImportError: pass", exit_code=0), ["a.py"], [])
    assert found(run(broken, broken)) == []
    assert found(run(shown, shown)) == [(2, "repeated_command", 1)]


def test_thoughts_and_refused_replies_are_no_commands() -> None:
    thought = (Call("think", {"thought": "hm"}), [], [])
    view = (shell("cat a.py", "text"), ["a.py"], [])
    assert found(run(thought, thought)) == []
    assert found(run(view, view, rejected=frozenset({2}))) == []


def test_arguments_are_compared_whatever_their_order() -> None:
    first = (Call("view", {"path": "a.py", "range": [1, 5]}, "text"), ["a.py"], [])
    second = (Call("view", {"range": [1, 5], "path": "a.py"}, "text"), ["a.py"], [])
    assert found(run(first, second)) == [(2, "repeated_command", 1)]


# Edits that could not be applied


@pytest.mark.parametrize(
    "output",
    [
        "No replacement was performed, old_str `x` did not appear verbatim in /a.py.",
        "Error: String to replace not found in file.",
        "Failed to find expected lines in a.py:\nx",
        "File has been modified since read, either by the user or by a linter.",
    ],
)
def test_an_edit_tools_refusal_is_found(output: str) -> None:
    call = Call("str_replace_editor", {"command": "str_replace", "path": "/a.py"}, output)
    assert found(run((call, [], []))) == [(1, "edit_failure", None)]


def test_a_patch_that_does_not_apply_is_found_and_the_same_words_in_a_file_are_not() -> None:
    output = "error: patch failed: a.py:10\nerror: a.py: patch does not apply"
    assert found(run((shell("git apply fix.diff", output), [], []))) == [(1, "edit_failure", None)]
    assert found(run((shell("cat log.txt", output), [], []))) == []
    assert edit_not_applied("patch -p1 < fix.diff", "patching file a.py\nHunk #1 FAILED at 3.\n")
    assert not edit_not_applied("patch -p1 < fix.diff", "can't find file to patch\nNo such file or directory")


# Edits repeated after a failed test


def test_an_edit_repeated_after_a_failed_test_is_found() -> None:
    edit = (shell("sed -i s/a/b/ a.py"), [], [FileWrite("a.py", removed="a", added="b")])
    test = (shell(PYTEST, FAILED), [], [])
    back = (shell("git checkout a.py"), [], [FileWrite("a.py", kind="whole")])
    assert found(run(edit, test, back, edit)) == [(4, "repeated_edit", 1)]


def test_without_a_failed_test_between_or_with_another_text_it_is_not() -> None:
    edit = (shell("edit one"), [], [FileWrite("a.py", removed="a", added="b")])
    another = (shell("edit two"), [], [FileWrite("a.py", removed="a", added="c")])
    failing, passing = (shell(PYTEST, FAILED), [], []), (shell(PYTEST, PASSED), [], [])
    assert found(run(edit, passing, edit)) == []
    assert found(run(edit, failing, another)) == []
    assert found(run(failing, edit, edit)) == []


def test_edits_without_texts_are_compared_by_their_commands() -> None:
    edit = (shell("python fix.py"), [], [FileWrite("a.py")])
    other = (shell("python fix2.py"), [], [FileWrite("a.py")])
    test = (shell(PYTEST, FAILED), [], [])
    assert found(run(edit, test, edit)) == [(3, "repeated_edit", 1)]
    assert found(run(edit, test, other)) == []


def test_taking_back_is_no_edit_and_a_rewritten_script_makes_another() -> None:
    test = (shell(PYTEST, FAILED), [], [])
    back = (shell("git checkout a.py"), [], [FileWrite("a.py")])
    both = (shell("git checkout a.py && sed -i s/a/b/ a.py"), [], [FileWrite("a.py")])
    script = (shell("python fix.py"), [], [FileWrite("a.py")])
    rewrite = (shell("cat > fix.py <<EOF\nnew\nEOF"), [], [FileWrite("fix.py", kind="whole", content="new\n")])
    assert found(run(back, test, back)) == []
    assert found(run(both, test, both)) == [(3, "repeated_edit", 1)]
    assert found(run(script, test, rewrite, script)) == []


# Submission in the face of a failed test

SUBMIT = (shell("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"), [], [])


def test_a_submission_while_the_last_test_fails_is_found() -> None:
    trajectory = run((shell(PYTEST, FAILED), [], []), SUBMIT, exit_status="Submitted")
    assert found(trajectory) == [(2, "submit_after_failed_test", 1)]


def test_cleaning_up_does_not_hide_it_but_a_later_pass_or_edit_does() -> None:
    test, again = (shell(PYTEST, FAILED), [], []), (shell(PYTEST, PASSED), [], [])
    clean = (shell("rm repro.py"), [], [FileWrite("repro.py", kind="delete")])
    edit = (shell("sed -i s/a/b/ a.py"), [], [FileWrite("a.py")])
    assert found(run(test, clean, SUBMIT, exit_status="Submitted")) == [(3, "submit_after_failed_test", 1)]
    assert found(run(test, again, SUBMIT, exit_status="Submitted")) == []
    assert found(run(test, edit, SUBMIT, exit_status="Submitted")) == []
    assert found(run(test, SUBMIT, exit_status="LimitsExceeded")) == []


def test_the_tool_that_hands_in_counts_where_no_status_is_given() -> None:
    finish = (Call("finish", {"message": "done"}), [], [])
    assert found(run((shell(PYTEST, FAILED), [], []), finish)) == [(2, "submit_after_failed_test", 1)]


# What a test runner said


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        (PYTEST, FAILED, "failed"),
        (PYTEST, PASSED, "passed"),
        (PYTEST, "\x1b[31m=== \x1b[1m2 failed\x1b[0m, 1 passed in 2s ===", "failed"),
        ("python tests/runtests.py x", "Ran 3 tests in 0.1s\n\nFAILED (failures=1)\n", "failed"),
        ("python tests/runtests.py x", "Ran 3 tests in 0.1s\n\nOK\n", "passed"),
        ("python -m unittest", "FAILED (errors=1)\nModuleNotFoundError: No module named 'x'", None),
        ("python -m unittest", "UnicodeDecodeError: 'ascii' codec can't decode byte 0xc2\n\nFAILED (errors=1)", None),
        ("bin/test sympy/core", "=== tests finished: 20 passed, 1 failed, in 1.2 seconds ===", "failed"),
        ("bin/test sympy/core", "=== tests finished: 20 passed, in 1.2 seconds ===", "passed"),
        ("cargo test", "test result: FAILED. 1 passed; 1 failed; 0 ignored", "failed"),
        ("go test ./...", "ok  \texample.com/a\t0.1s\n", "passed"),
        ("go test ./...", "--- FAIL: TestA (0.00s)\nFAIL\n", "failed"),
        ("npm test", "Tests:       1 failed, 2 passed, 3 total", "failed"),
        ("npx mocha", "  3 passing (9ms)\n  1 failing\n", "failed"),
        (PYTEST, "=== 1 error in 0.1s ===\nERROR: file not found: x.py", None),
        (PYTEST, "Interrupted: 1 error during collection\n0 failed", None),
        (PYTEST, "=== no tests ran in 0.01s ===", None),
        ("cat log.txt", FAILED, None),  # no test was run
        ("cat tests/pytest.ini", FAILED, None),
        ("git log --oneline | grep pytest", FAILED, None),
        ("grep -rn 'tox|pytest' setup.cfg", FAILED, None),
        ("A=1 cat pytest.log && pip install pytest", FAILED, None),
        ("cat a.py && pytest -q a.py 2>&1 | tail -5", FAILED, "failed"),
        ("(cd src; bash -c 'pytest -q')", FAILED, "failed"),
        ("git bisect run pytest", FAILED, "failed"),
        (r"find . -name 'test_*.py' -exec pytest {} \;", FAILED, "failed"),
        ("python script.py", "1 failed in 3 tries", None),
        (PYTEST, "", None),
    ],
)
def test_only_explicit_results_count(command: str, output: str, expected: str | None) -> None:
    assert runner_verdict(command, output) == expected


def test_huge_hostile_outputs_take_no_time() -> None:
    # A quadratic search of these would not end within the test's patience.
    for text in ("1 failed " * 500_000, "FAILED (" * 500_000, "\x1b[" * 1_000_000, "9" * 4_000_000):
        runner_verdict("pytest " + text[:1_000_000], text)
        edit_not_applied("git apply " + text[:1_000_000], text)
    assert runner_verdict("python " + "a" * 2_000_000, FAILED) is None
