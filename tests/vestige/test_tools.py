"""What calls of the scaffolds' own tools touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eirkit.vestige.shell.place import Place
from eirkit.vestige.touches import touches_of
from eirkit.vestige.trajectory import Call, Span, Touches

NUMBERED = "Here's the result of running `cat -n` on /repo/a.py:\n     5\tx = 1\n     6\ty = 2\n"
PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** Update File: a.py\n@@\n-x\n+y\n"
    "*** Update File: b.py\n*** Move to: c.py\n@@\n-1\n+2\n*** Delete File: d.py\n*** End Patch\n"
)


def call(tool: str, output: str = "ok", failed: bool = False, **arguments: Any) -> Touches:
    return touches_of(Call(tool, arguments, output, failed=failed), Place(("/repo",), "/repo"))


VIEWS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("str_replace_editor", {"command": "view", "path": "/repo/a.py", "view_range": [5, 6]}, NUMBERED),
    ("str_replace_based_edit_tool", {"command": "view", "path": "/repo/a.py", "view_range": "[5, 6]"}, NUMBERED),
    ("Read", {"file_path": "/repo/a.py", "offset": 5, "limit": 2}, "     5→x = 1\n     6→y = 2\n"),
    ("read_file", {"path": "a.py", "start_line": 5, "end_line": 6}, "x = 1\ny = 2\n"),
    ("read_file", {"absolute_path": "/repo/a.py", "offset": 5, "limit": 2}, "x = 1\ny = 2\n"),
    (
        "open",
        {"path": "a.py", "line_number": 5},
        "[File: /repo/a.py (6 lines total)]\n(4 more lines above)\n5:x = 1\n6:y = 2\n",
    ),
)


@pytest.mark.parametrize(("tool", "arguments", "output"), VIEWS)
def test_viewers_give_lines_and_ranges(tool: str, arguments: Mapping[str, Any], output: str) -> None:
    (read,) = call(tool, output, **arguments).reads
    assert read.path == "a.py"
    assert read.requested == Span(5, 6)
    assert read.lines == {5: "x = 1", 6: "y = 2"}


WRITES: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("str_replace_editor", {"command": "create", "path": "/repo/a.py", "file_text": "x"}, "whole"),
    ("str_replace_editor", {"command": "str_replace", "path": "/repo/a.py", "old_str": "x", "new_str": "y"}, "edit"),
    ("str_replace_editor", {"command": "insert", "path": "/repo/a.py", "insert_line": 3, "new_str": "y"}, "edit"),
    ("str_replace_editor", {"command": "undo_edit", "path": "/repo/a.py"}, "edit"),
    ("Write", {"file_path": "/repo/a.py", "content": "x"}, "whole"),
    ("Edit", {"file_path": "/repo/a.py", "old_string": "x", "new_string": "y"}, "edit"),
    ("MultiEdit", {"file_path": "/repo/a.py", "edits": [{"old_string": "x", "new_string": "y"}]}, "edit"),
    ("NotebookEdit", {"notebook_path": "/repo/a.py", "new_source": "x"}, "edit"),
    ("write_file", {"file_path": "a.py", "content": "x"}, "whole"),
    ("replace", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "edit"),
    ("replace_in_file", {"path": "a.py", "diff": "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"}, "edit"),
    ("edit", {"path": "a.py", "start_line": 1, "end_line": 2, "new_str": "y"}, "edit"),
    ("edit_file", {"path": "a.py", "content": "y"}, "edit"),
    ("create", {"path": "a.py"}, "whole"),
    ("delete_file", {"path": "a.py"}, "delete"),
)
REFUSALS = (
    "ERROR:\nNo replacement was performed, old_str `x` did not appear verbatim in /repo/a.py.",
    "<tool_use_error>String to replace not found in file.</tool_use_error>",
    "Your proposed edit has introduced new syntax error(s).",
    "File has not been read yet. Read it first before writing to it.",
)


@pytest.mark.parametrize(("tool", "arguments", "kind"), WRITES)
def test_editors_write(tool: str, arguments: Mapping[str, Any], kind: str) -> None:
    touches = call(tool, **arguments)
    assert [(write.path, write.kind) for write in touches.writes] == [("a.py", kind)]
    assert touches.reads == ()


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize(("tool", "arguments", "kind"), WRITES[:9])
def test_a_refused_edit_writes_nothing(tool: str, arguments: Mapping[str, Any], kind: str, refusal: str) -> None:
    assert call(tool, refusal, **arguments) == Touches()
    assert call(tool, "anything", failed=True, **arguments) == Touches()


def test_a_refused_edit_can_show_the_lines_as_they_are() -> None:
    output = (
        "Your proposed edit has introduced new syntax error(s).\nThis is how your edit would have looked if applied\n"
        "[File: /repo/a.py (9 lines total)]\n4:y =\n"
        "This is the original code before your edit\n[File: /repo/a.py (9 lines total)]\n4:x = 1\n5:z = 2\n"
    )
    touches = call("edit", output, failed=True, path="/repo/a.py", start_line=4, end_line=4, new_str="y =")
    assert [(read.path, read.lines) for read in touches.reads] == [("a.py", {4: "x = 1", 5: "z = 2"})]
    assert touches.writes == ()


def test_what_left_and_what_came_is_kept() -> None:
    write = call("Edit", file_path="/repo/a.py", old_string="x", new_string="y").writes[0]
    assert (write.removed, write.added) == ("x", "y")


def test_a_patch_makes_changes_moves_and_removes() -> None:
    writes = call("apply_patch", input=PATCH).writes
    assert [(write.path, write.kind) for write in writes] == [
        ("new.py", "whole"), ("a.py", "edit"), ("b.py", "delete"), ("c.py", "edit"), ("d.py", "delete"),
    ]  # fmt: skip
    assert (writes[0].content, writes[1].removed, writes[1].added) == ("x = 1", "x", "y")


def test_a_patch_on_a_command_line_is_the_same_patch() -> None:
    touches = touches_of(
        Call("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, "Success"), Place(("/repo",), "/repo")
    )
    assert [write.path for write in touches.writes] == ["new.py", "a.py", "b.py", "c.py", "d.py"]


def test_a_folder_shows_names_only() -> None:
    shown = "Here's the files and directories up to 2 levels deep in /repo:\n/repo/a.py\n"
    assert call("str_replace_editor", shown, command="view", path="/repo") == Touches()
    assert call("Glob", "/repo/a.py\n", pattern="*.py") == Touches()


def test_searches_show_the_files_whose_lines_they_print() -> None:
    found = "/repo/a.py:3:x = 1\n/repo/b.py:4:x = 2\n"
    reads = call("Grep", found, pattern="x", output_mode="content").reads
    assert [(read.path, read.lines) for read in reads] == [("a.py", {3: "x = 1"}), ("b.py", {4: "x = 2"})]
    assert call("Grep", "/repo/a.py\n/repo/b.py\n", pattern="x") == Touches()


def test_several_files_at_once() -> None:
    reads = call("read_many_files", "--- a.py ---\n\nx\n\n--- b.py ---\n\ny\n\n", paths=["a.py", "b.py"]).reads
    assert [(read.path, read.content) for read in reads] == [("a.py", "x"), ("b.py", "y")]


def test_the_windowed_viewer_remembers_its_file() -> None:
    place = Place(("/repo",), "/repo")
    touches_of(Call("open", {"path": "a.py"}, "[File: /repo/a.py (2 lines total)]\n1:x\n2:y\n"), place)
    touches = touches_of(Call("edit", {"start_line": 1, "end_line": 1, "new_str": "z"}, "ok"), place)
    assert [write.path for write in touches.writes] == ["a.py"]


@pytest.mark.parametrize(
    "arguments", [{}, {"path": 3}, {"path": ""}, {"command": ["view"]}, {"edits": [1], "path": "a"}]
)
@pytest.mark.parametrize(
    "tool", ["str_replace_editor", "Read", "Edit", "MultiEdit", "apply_patch", "bash", "Grep", "open"]
)
def test_arguments_of_any_shape_are_taken(tool: str, arguments: Mapping[str, Any]) -> None:
    touched = call(tool, **arguments)
    assert {one.path for one in (*touched.reads, *touched.writes)} <= {"a"}, "no file that was not named"
