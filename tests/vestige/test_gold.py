"""Reference patches: what our parser sees against what git sees, and where patches are looked up."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eirkit.errors import InputFileError
from eirkit.vestige.demand.gold_patches import FileChange, is_test_file, open_gold_patches, read_patch
from tests.processes import completed
from tests.vestige.recorded import recorded

PATCH = """\
From: nobody
--- is what people write under a letter
diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,4 +1,5 @@ def f():
 one
-two
+TWO
+two and a half
 three
 four
@@ -10,2 +11 @@
-ten
 eleven
diff --git a/old name.py b/new name.py
similarity index 90%
rename from old name.py
rename to new name.py
--- a/old name.py
+++ b/new name.py
@@ -3 +3 @@
--- not a header
+++ nor this
diff --git a/empty.py b/empty.py
new file mode 100644
index 0..0
diff --git a/made.py b/made.py
new file mode 100644
--- /dev/null
+++ b/made.py
@@ -0,0 +1 @@
+x
\\ No newline at end of file
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-y
diff --git "a/tests/caf\\303\\251.py" "b/tests/caf\\303\\251.py"
--- "a/tests/caf\\303\\251.py"
+++ "b/tests/caf\\303\\251.py"
@@ -7 +7 @@
-z\x0cz
+w
diff --git a/logo.png b/logo.png
index 1..2 100644
Binary files a/logo.png and b/logo.png differ
--
2.40
"""


def test_a_patch_is_taken_apart_as_written() -> None:
    assert read_patch(PATCH).changes == (
        FileChange("src/a.py", "src/a.py", {2: "two", 10: "ten"}, 2, 2),
        FileChange("new name.py", "old name.py", {3: "-- not a header"}, 1, 1),
        FileChange("empty.py", None, {}, 0, 0),
        FileChange("made.py", None, {}, 1, 0),
        FileChange("gone.py", "gone.py", {1: "y"}, 0, 1),
        FileChange("tests/café.py", "tests/café.py", {7: "z\x0cz"}, 1, 1),
        FileChange("logo.png", "logo.png", {}, 0, 0),
    )


def test_what_a_patch_says_of_all_its_files() -> None:
    patch = read_patch(PATCH)
    names = "src/a.py", "old name.py", "new name.py", "empty.py", "made.py", "gone.py", "tests/café.py", "logo.png"
    assert patch.files == names
    assert patch.test_files == ("tests/café.py",)
    assert (patch.additions, patch.deletions) == (5, 5)
    assert patch.changed_lines["old name.py"] == {3: "-- not a header"}
    assert "made.py" not in patch.changed_lines


def test_carriage_returns_are_no_part_of_lines_or_names() -> None:
    patch = read_patch("--- a/x.py\r\n+++ b/x.py\r\n@@ -1,2 +1 @@\r\n-a\r\n b\r\n")
    assert patch.changes == (FileChange("x.py", "x.py", {1: "a"}, 0, 1),)


@pytest.mark.parametrize(
    "old, new, path",
    [
        ("--- x/y.py\t2020-01-01 00:00:00", "+++ x/y.py\t2020-01-02 00:00:00", "x/y.py"),
        ("--- a/y.py", "+++ a/y.py", "a/y.py"),  # no prefixes: a folder is called "a"
        ("--- i/y.py", "+++ w/y.py", "y.py"),
        ("--- /dev/null", "+++ b/y.py", "y.py"),
        ("--- a/y.py", "+++ /dev/null", "y.py"),
    ],
)
def test_names_are_read_with_and_without_git(old: str, new: str, path: str) -> None:
    (change,) = read_patch(f"{old}\n{new}\n@@ -1 +1 @@\n-a\n+b\n").changes
    assert change.path == path


def test_a_torn_patch_counts_as_far_as_it_goes() -> None:
    (change,) = read_patch("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n c").changes
    assert (change.removed, change.additions) == ({1: "a"}, 1)


@pytest.mark.parametrize("text", ["", "nothing", "--- a/x\n", "+++ b/x\n@@ -1 +1 @@\n-a\n", "@@ -1 +1 @@\n-a\n"])
def test_what_is_no_patch_changes_nothing(text: str) -> None:
    assert read_patch(text).changes == ()


@given(st.text(alphabet='@-+ ab/\n\\"diffgt0123,=rmnoeu\t', max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    for patch in (read_patch(text), read_patch("diff --git " + text)):
        assert patch.additions + patch.deletions <= 1 + text.count("\n"), "every change is a line"
        assert set(patch.test_files) <= set(patch.files)


NAMES = st.text(alphabet='abc é"\\\t', min_size=1, max_size=8).filter(lambda name: name.strip() == name)
TEXTS = st.lists(st.sampled_from(["a", "b", "--- c", "+++ d", "@@ -1 +1 @@", "", "\x0c", "é"]), max_size=8)


@given(NAMES, TEXTS, TEXTS, st.integers(0, 3), st.booleans())
def test_our_reading_agrees_with_git(
    tmp_path_factory, name: str, old: list[str], new: list[str], context: int, end: bool
):
    folder = tmp_path_factory.mktemp("diff")
    for side, lines in (("old", old), ("new", new)):
        (folder / side).mkdir()
        (folder / side / name).write_text("\n".join(lines) + ("\n" if end and lines else ""), "utf-8", newline="")
    command = ["git", "diff", "--no-index", f"-U{context}", "--src-prefix=a/", "--dst-prefix=b/"]
    text = completed([*command, "old", "new"], cwd=folder, text=False).stdout.decode()
    (folder / "it.patch").write_text(text, "utf-8", newline="")
    assert numstat(folder / "it.patch") == ours(text)
    before = (folder / "old" / name).read_text("utf-8").split("\n")
    for change in read_patch(text).changes:
        assert all(before[number - 1] == line for number, line in change.removed.items())


def numstat(patch: Path) -> list[tuple[int, int, str]]:
    """What git counts in a patch: additions, deletions and the new name of each file."""
    command = ["git", "apply", "--numstat", "-z", patch.name]
    fields = completed(command, cwd=patch.parent, text=False).stdout.decode().split("\0")
    rows = []
    while fields and fields[0]:
        additions, deletions, name = fields.pop(0).split("\t", 2)
        if not name:
            fields.pop(0)  # the old name of a renamed file
            name = fields.pop(0)
        rows.append((int(additions.replace("-", "0")), int(deletions.replace("-", "0")), name))
    return rows


def ours(text: str) -> list[tuple[int, int, str]]:
    return [(change.additions, change.deletions, change.path) for change in read_patch(text).changes]


@pytest.mark.parametrize("kind", ["gold", "test"])
def test_every_recorded_patch_is_read_as_git_reads_it(kind: str) -> None:
    patches = sorted(recorded("swebench-gold").glob(f"*/{kind}.patch"))
    assert len(patches) == 278
    for path in patches:
        text = path.read_bytes().decode()
        assert ours(text) == numstat(path), path
        assert {is_test_file(name) for name in read_patch(text).files} == {kind == "test"}, path


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "test_a.py",
        "pkg/a_test.go",
        "x/testing/b.py",
        "web/a.test.tsx",
        "a.spec.js",
        "src/XTest.java",
        "e2e/a.ts",
        "conftest.py",
    ],
)
def test_tests_are_told_by_their_path(path: str) -> None:
    assert is_test_file(path)


@pytest.mark.parametrize(
    "path", ["src/_pytest/python.py", "attest.py", "latest/a.py", "contest.go", "src/Tester.java", "spec.md"]
)
def test_other_files_are_no_tests(path: str) -> None:
    assert not is_test_file(path)


SMALL = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
ROWS = [{"instance_id": "t1", "patch": SMALL, "other": [1]}, {"instance_id": "t2", "patch": SMALL}]


def test_patches_are_found_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "gold" / "t1").mkdir(parents=True)
    (tmp_path / "gold" / "t1" / "gold.patch").write_text(SMALL)
    (tmp_path / "gold" / "t2.patch").write_text(SMALL)
    (tmp_path / "gold.patch").write_text(SMALL)
    gold = open_gold_patches(tmp_path / "gold")
    assert gold.tasks() == {"t1", "t2"}
    assert all(gold.get(task) == read_patch(SMALL) for task in gold.tasks())
    assert [gold.get(task) for task in ("t3", "..", "../gold", "/", "", "t1/../t1", "t1\0")] == [None] * 7


@pytest.mark.parametrize("name", ["gold.jsonl", "gold.json", "gold.parquet"])
def test_patches_are_found_in_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif name.endswith("json"):
        path.write_text(json.dumps(ROWS, indent=1))
    else:
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    gold = open_gold_patches(path)
    assert gold.tasks() == {"t1", "t2"}
    assert gold.get("t1") == read_patch(SMALL)


def test_what_is_no_gold_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="holds no reference patches"):
        open_gold_patches(tmp_path)
    with pytest.raises(InputFileError, match="no such file"):
        open_gold_patches(tmp_path / "absent")
    (tmp_path / "t.patch").write_text("not a diff")
    with pytest.raises(InputFileError, match="the patch of t is not a unified diff"):
        open_gold_patches(tmp_path).get("t")
    (tmp_path / "rows.jsonl").write_text('{"instance_id": "a", "patch": ""}\n[')
    with pytest.raises(InputFileError, match=r"rows\.jsonl:2: not JSON"):
        open_gold_patches(tmp_path / "rows.jsonl")
