"""What calls of the scaffolds' own tools touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eirkit.vestige.actions.touches import is_understood, touches_of
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.trajectory import Call, Lines, Touches
from eirkit.vestige.viewer_output import cuts

NUMBERED = "Here's the result of running `cat -n` on /repo/a.py:\n     5\tx = 1\n     6\ty = 2\n"
PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** Update File: a.py\n@@\n-x\n+y\n"
    "*** Update File: b.py\n*** Move to: c.py\n@@\n-1\n+2\n*** Delete File: d.py\n*** End Patch\n"
)


def call(tool: str, output: str = "ok", failed: bool = False, **arguments: Any) -> Touches:
    return touches_of(Call(tool, arguments, output, failed=failed), ShellState(("/repo",), "/repo"))


VIEWS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("str_replace_editor", {"command": "view", "path": "/repo/a.py", "view_range": [5, 6]}, NUMBERED),
    ("str_replace_based_edit_tool", {"command": "view", "path": "/repo/a.py", "view_range": "[5, 6]"}, NUMBERED),
    ("Read", {"file_path": "/repo/a.py", "offset": 5, "limit": 2}, "     5→x = 1\n     6→y = 2\n"),
    ("read_file", {"path": "a.py", "start_line": 5, "end_line": 6}, "x = 1\ny = 2\n"),
    ("read_file", {"file_path": "/repo/a.py", "offset": 5, "limit": 2}, "L5: x = 1\nL6: y = 2"),
    ("text_editor", {"command": "view", "path": "/repo/a.py", "view_range": [5, 6]}, NUMBERED),
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
    assert read.requested == Lines(5, 6)
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
    "[Code executed successfully with no output]",
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
        "Your changes have NOT been applied. Please fix your edit command and try again.\n"
    )
    touches = call("edit", output, failed=True, path="/repo/a.py", start_line=4, end_line=4, new_str="y =")
    assert [(read.path, read.lines) for read in touches.reads] == [("a.py", {4: "x = 1", 5: "z = 2"})]
    assert touches.reads[0].content == "4:x = 1\n5:z = 2\n"  # the words around are no part of the file
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
        Call("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, "Success"), ShellState(("/repo",), "/repo")
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
    place = ShellState(("/repo",), "/repo")
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


HEADING = (
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines {}-{} of {} total lines.\n"
    "Action: To read more of the file, use another call.\n\n--- FILE CONTENT (truncated) ---\n"
)


@pytest.mark.parametrize(
    ("arguments", "shown", "requested", "clipped"),
    [
        ({}, (1, 2, 100), None, True),
        ({}, (1, 2, 2), None, True),  # lines too long to be shown whole
        ({"offset": 10, "limit": 2}, (11, 12, 100), Lines(11, 12), False),
        ({"offset": 10, "limit": 5}, (11, 12, 100), Lines(11, 15), True),
        ({"offset": 98, "limit": 50}, (99, 100, 100), Lines(99, 148), False),  # the file ends there
        ({"start_line": 11, "end_line": 12}, (11, 12, 100), Lines(11, 12), False),
        ({"start_line": 11, "end_line": 40}, (11, 12, 100), Lines(11, 40), True),
    ],
)
def test_a_heading_of_a_view_tells_its_lines_and_is_none(
    arguments: Mapping[str, Any], shown: tuple[int, int, int], requested: Lines | None, clipped: bool
) -> None:
    output = HEADING.format(*shown) + "one\ntwo"
    (read,) = call("read_file", output, file_path="/repo/a.py", **arguments).reads
    assert (read.lines, read.content) == ({shown[0]: "one", shown[1]: "two"}, "one\ntwo")
    assert (read.requested, read.clipped) == (requested, clipped)
    assert bool(cuts(Call("read_file", arguments, output))) is clipped


FILEMAP = "     1 def first():\n     2 ... eliding lines 2-21 ...\n    22 def second():\n    23     return 1 + 1\n"


def test_an_abbreviated_view_is_clipped_and_keeps_its_numbers() -> None:
    note = "<NOTE>This file is too large to display entirely. Showing abbreviated version. Ask for lines.</NOTE>\n"
    (read,) = call("str_replace_editor", note + FILEMAP, command="view", path="/repo/a.py").reads
    assert (read.clipped, read.requested) == (True, None)
    assert read.lines == {1: "def first():", 22: "def second():", 23: "    return 1 + 1"}


def test_an_outline_that_was_asked_for_is_not_clipped() -> None:
    (read,) = call("filemap", FILEMAP, path="/repo/a.py").reads
    assert (read.clipped, read.requested, read.lines and sorted(read.lines)) == (False, Lines(1, 0), [1, 22, 23])


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (
            {"command": "create", "file_text": "x"},
            "File already exists at: /repo/a.py. Cannot overwrite files using it.",
        ),
        (
            {"command": "create", "file_text": "x"},
            "The parent directory /repo/b does not exist. Please create it first.",
        ),
        ({"command": "undo_edit"}, "No edit history found for /repo/a.py."),
        (
            {"command": "str_replace", "old_str": "x", "new_str": "y"},
            "Multiple occurrences of old_str `x` in lines [1]",
        ),
    ],
)
def test_an_edit_that_the_editor_refuses_writes_nothing(arguments: Mapping[str, Any], output: str) -> None:
    assert call("str_replace_editor", output, path="/repo/a.py", **arguments) == Touches()


def test_an_edit_that_shows_the_words_of_a_refusal_is_an_edit() -> None:
    shown = (
        "The file /repo/a.py has been edited. Here's the result:\n     1\traise Refused('No replacement was performed')"
    )
    writes = call(
        "str_replace_editor", shown, command="str_replace", path="/repo/a.py", old_str="x", new_str="y"
    ).writes
    assert [write.path for write in writes] == ["a.py"]


def test_a_tool_that_ended_with_a_code_did_nothing() -> None:
    place = ShellState(("/repo",), "/repo")
    assert touches_of(Call("apply_patch", {"input": PATCH}, "patch rejected", exit_code=1), place) == Touches()
    assert len(touches_of(Call("apply_patch", {"input": PATCH}, "Success", exit_code=0), place).writes) == 5


@pytest.mark.parametrize(
    "text",
    [
        "Usage: tool [options]\n\nMore.\n",
        "Error codes\n===========\nMore.\n",
        "Cannot be undone.\n1\n2\n3\n4\n",
        "ERROR: a file of logs\nERROR: 2\nERROR: 3\nERROR: 4\nERROR: 5\n",
    ],
)
def test_a_file_may_begin_like_an_error(text: str) -> None:
    (read,) = call("read_file", text, file_path="/repo/a.py").reads
    assert read.content == text


def test_a_file_may_hold_the_words_of_a_refusal() -> None:
    shown = NUMBERED + "     7\traise Refused('No replacement was performed')\n"
    assert [read.path for read in call("file_editor", shown, command="view", path="/repo/a.py").reads] == ["a.py"]


@pytest.mark.parametrize(
    "output",
    [
        "File unchanged since last read. The content from the earlier Read tool_result is still current.",
        "ERROR:\nInvalid `path` parameter: /repo/a.py.",
        "File does not exist.",
        "Error: ENOENT: no such file or directory, open '/repo/a.py'",
    ],
)
def test_a_word_about_a_file_is_no_view_of_it(output: str) -> None:
    assert call("Read", output, file_path="/repo/a.py") == Touches()


def test_matches_under_the_names_of_files() -> None:
    found = (
        'Found 3 matches for pattern "x" in path "src":\n---\nFile: a.py\nL3: x = 1\nL4- y\n---\nFile: b.py\nL9: x\n---'
    )
    reads = call("search_file_content", found, pattern="x", dir_path="src").reads
    assert [(read.path, read.lines) for read in reads] == [
        ("src/a.py", {3: "x = 1", 4: "y"}),
        ("src/b.py", {9: "x"}),
    ]
    assert [read.path for read in call("grep_search", found, pattern="x").reads] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "root, asked", [("/repo/", {}), ("/repo/", {"path": "/repo/src"}), ("", {"path": "src"}), ("", {})]
)
def test_the_search_of_opencode_indents_its_matches(root: str, asked: dict[str, str]) -> None:
    first = {number: f"    return total_{number}: value" for number in range(11, 31)}
    listed = [f"{root}src/a.py:", *(f"  Line {number}: {line}" for number, line in first.items())]
    listed += ["", f"{root}src/b.py:", "  Line 3: def value():", "  Line 4: x = {'a:'", ""]
    output = "\n".join(["Found 22 matches", *listed, "(Results are truncated. Consider using a more specific path.)"])
    reads = call("grep", output, pattern="value", **asked).reads
    assert [(read.path, read.lines) for read in reads] == [
        ("src/a.py", first),
        ("src/b.py", {3: "def value():", 4: "x = {'a:'"}),
    ]
    assert reads[0].content == "\n".join(first.values()) + "\n"


def test_a_search_in_a_file_without_an_ending() -> None:
    asked = {"pattern": "x", "output_mode": "content", "path": "/repo/Makefile"}
    (read,) = call("Grep", "3:x\n5:xx\n", **asked).reads
    assert (read.path, read.lines) == ("Makefile", {3: "x", 5: "xx"})
    place = ShellState(("/repo",), "/repo")
    place.note_read("Makefile")
    assert [read.path for read in touches_of(Call("Grep", asked, "x\nxx\n"), place).reads] == ["Makefile"]


def test_a_server_of_files_is_known_by_its_tools() -> None:
    assert [read.path for read in call("mcp__filesystem__read_text_file", "x = 1\n", path="/repo/a.py").reads] == [
        "a.py"
    ]
    (tail,) = call("mcp__filesystem__read_text_file", "x = 1\n", path="/repo/a.py", tail=1).reads
    assert (tail.lines, tail.requested) == (None, Lines(1, 0))
    (head,) = call("mcp__my-filesystem__read_file", "x\ny\n", path="/repo/a.py", head=2).reads
    assert (head.lines, head.requested) == ({1: "x", 2: "y"}, Lines(1, 2))
    several = call("mcp__filesystem__read_multiple_files", "/repo/a.py:\nx\n\n---\n/repo/b.py:\ny\n", paths=[]).reads
    assert [(read.path, read.content) for read in several] == [("a.py", "x"), ("b.py", "y")]
    edits = [{"oldText": "x", "newText": "y"}]
    (edit,) = call("mcp__filesystem__edit_file", "```diff\n```", path="/repo/a.py", edits=edits).writes
    assert (edit.path, edit.removed, edit.added) == ("a.py", "x", "y")
    assert call("mcp__filesystem__edit_file", "```diff\n```", path="/repo/a.py", edits=edits, dryRun=True) == Touches()
    moved = call(
        "mcp__filesystem__move_file", "Successfully moved", source="/repo/a.py", destination="/repo/b.py"
    ).writes
    assert [(write.path, write.kind) for write in moved] == [("b.py", "whole"), ("a.py", "delete")]
    assert call("mcp__tickets__read_file", "x", path="/repo/a.py") == Touches(), "no server of files"


@pytest.mark.parametrize("prefix", ["mcp__fs__", "mcp__my_fs__", "mcp__local-files__", "mcp_fs_", "fs_", "filesystem-"])
def test_a_server_of_files_is_known_however_an_agent_spells_its_name(prefix: str) -> None:
    assert [read.path for read in call(f"{prefix}read_file", "x = 1\n", path="/repo/a.py").reads] == ["a.py"]
    (write,) = call(f"{prefix}write_file", "Successfully wrote", path="/repo/b.py", content="y").writes
    assert (write.path, write.kind, write.content) == ("b.py", "whole", "y")
    assert is_understood(f"{prefix}list_directory")
    assert not is_understood(f"{prefix}frobnicate")


@pytest.mark.parametrize("name", ["mcp__github__create_file", "mcp__drive__read_file", "prefs_read_file", "read__file"])
def test_a_tool_of_another_server_is_not_understood(name: str) -> None:
    assert not is_understood(name)
    assert call(name, "x", path="/repo/a.py") == Touches()
