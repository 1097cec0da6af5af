"""Folders that somebody else made: no code of theirs is run unasked, and damage is one line, never a trace."""

import json
import shutil
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError, UsageError
from eirkit.records.lines import seal
from eirkit.report import folders
from eirkit.report.folders import foreign_in
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit_bridges.otel_export import TraceFile
from tests.report.folders import command, make_sweep

EVIL = '''
from pathlib import Path
from eirkit.lacuna.tasks.workloads import StepwiseSum

Path(__file__).with_name("ran").touch()


class Evil(StepwiseSum):
    """A workload of somebody's."""
'''
SMALL = ("--model", "reference/calculator", "--n", 12, "--m", 4, "--h", 2, "--seeds", "0:1", "--no-control")


def call(capsys, *words: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def refuse(capsys, *words: object) -> str:
    """Return the one line with which a command refuses."""
    code, shown, complaint = call(capsys, *words)
    assert (code, shown, complaint.count("\n")) == (2, "", 1)
    return complaint


@pytest.fixture
def hostile(tmp_path) -> Path:
    """A sweep whose workload is a file that leaves a mark when it is run."""
    source = tmp_path / "evil.py"
    source.write_text(EVIL)
    out = tmp_path / "out"
    command("lacuna", "run", "--workload", f"{source}:Evil", *SMALL, "--out", out, "--json")
    (tmp_path / "ran").unlink()
    source.write_text(EVIL + "\n")  # as if it were new: what was imported stays imported
    return out


def test_a_report_and_a_comparison_run_no_code_of_the_folder(capsys, hostile, tmp_path):
    code, shown, _ = call(capsys, "report", hostile, "--json")
    assert code == 0
    (survive,) = [one for one in json.loads(shown)["sections"] if one["title"] == "What had to survive"]
    assert any("code beside the run; add --plugins" in word for word in survive["words"])
    assert call(capsys, "compare", hostile, hostile, "--json")[0] == 0
    assert call(capsys, "export", "otel", hostile, "--out", tmp_path / "traces.jsonl", "--json")[0] == 0
    assert not (tmp_path / "ran").exists()
    assert call(capsys, "report", hostile, "--plugins", "--json")[0] == 0
    assert (tmp_path / "ran").exists()


def test_a_folder_that_is_not_finished_runs_none_either(capsys, hostile, tmp_path):
    (hostile / "summary.json").unlink()
    assert "add --plugins" in refuse(capsys, "report", hostile)
    assert not (tmp_path / "ran").exists()
    assert call(capsys, "report", hostile, "--plugins", "--json")[0] == 0


READING = (("report",), ("compare", 2), ("choose", 2), ("show",), ("watch", "--once"))


@pytest.mark.parametrize("words", READING, ids=[words[0] for words in READING])
@pytest.mark.parametrize("is_finished", [True, False])
def test_no_command_that_reads_records_opens_what_they_name(capsys, told, words, is_finished):
    """The file is watched by the interpreter, so that it does not matter which part of a command would open it."""
    if not is_finished:
        (told / "summary.json").unlink()
    name, *more = words
    folders_given = [told] * (more.pop() if more and isinstance(more[-1], int) else 1)
    code, shown, complaint = call(capsys, name, *folders_given, *more)
    assert (code, "Traceback" in complaint) in ((0, False), (2, False)), (shown, complaint)
    if name == "show":
        assert "add --plugins" in refuse(capsys, name, told, "0")
    assert not _opened


def test_the_viewer_opens_no_file_that_records_name(told):
    viewer = Viewer(told, LogFolders(()), lambda: 0.0)
    (row,) = viewer.answer("/api/runs", {"at": ["."]})["rows"]
    assert "--plugins" in viewer.answer("/api/run", {"at": ["."], "run": [row["run"]]})["unknown"]
    assert not _opened


def test_a_file_that_the_user_trusts_is_opened(capsys, told):
    assert call(capsys, "show", told, "0", "--plugins", "--json")[0] == 0
    assert _opened


@pytest.fixture(scope="module")
def with_language(tmp_path_factory) -> Path:
    base = tmp_path_factory.mktemp("told")
    english = files("eirkit.lacuna.conversation").joinpath("english.toml").read_text("utf-8")
    (base / "secret.toml").write_text(english, "utf-8")
    preset = f"small+language={base / 'secret.toml'}"
    words = ("words", "--preset", preset, "--model", "scripted/reader", "--seeds", "0", "--no-control")
    command("lacuna", "run", *words, "--out", base / "out", "--json")
    return base


@pytest.fixture
def told(with_language, tmp_path) -> Path:
    """A sweep whose language is a file, which lies where its records say."""
    shutil.copytree(with_language / "out", tmp_path / "out")
    preset = str(with_language / "secret.toml")
    shutil.copy(preset, tmp_path / "other.toml")  # a name of its own, which no cache knows
    moved = str(tmp_path / "other.toml")
    for path in ("runs.jsonl", "manifest.json", "summary.json"):
        file = tmp_path / "out" / path
        document = json.loads(file.read_text("utf-8").replace(preset, moved))  # there is one run
        is_sealed = document.pop("crc32", None) is not None
        line = json.dumps(document).encode() + b"\n"
        file.write_bytes(seal(line) if is_sealed else line)
    _opened.clear()
    return tmp_path / "out"


_opened: list[str] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith("other.toml"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_audit)


@pytest.mark.parametrize("axis", ["workload", "policy", "memory", "condition"])
def test_every_name_that_reading_a_suite_looks_up_is_seen(axis):
    assert foreign_in({"grid": [{"model": ["openai/a:free"]}, {axis: ["plain", "evil.py:X"]}]}) == ["evil.py:X"]
    assert foreign_in({"grid": [{axis: "evil:X"}]}) == ["evil:X"]


def test_a_format_that_a_row_names_as_code_is_not_run(tmp_path):
    source = tmp_path / "evil.py"
    source.write_text(EVIL)
    row = {"source": "logs/a.json", "run_id": "a", "format": f"{source}:Evil"}
    for look in (LogFolders((tmp_path,)).recording, LogFolders((tmp_path,)).text):
        with pytest.raises(InputFileError, match="--plugins"):
            look(row)
    assert not (tmp_path / "ran").exists()


def spoilt(folder: Path, change) -> None:
    path = folder / "runs.jsonl"
    first, *rest = path.read_text("utf-8").splitlines()
    record = json.loads(first)
    change(record)
    path.write_text("\n".join([json.dumps(record), *rest]) + "\n", "utf-8")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["score"].update(luck=1),
        lambda record: record.update(seed="seven"),
        lambda record: record.pop("fingerprint"),
        lambda record: record.update(score=[]),
        lambda record: record["score"].update(errors=None),
        lambda record: record["score"].update(correct="all"),
        lambda record: record["task"].update(n="many"),
    ],
)
def test_a_damaged_run_is_named_in_one_line(capsys, tmp_path, change):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    spoilt(folder, change)
    assert "runs.jsonl:1:" in refuse(capsys, "report", folder)


@pytest.mark.parametrize("name", ["runs.jsonl", "summary.json", "manifest.json"])
def test_deep_nesting_is_one_line(capsys, tmp_path, name):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    deep = "[" * 200_000
    schema = {"runs.jsonl": "run/1", "summary.json": "summary/1", "manifest.json": "manifest/1"}[name]
    (folder / name).write_text(f'{{"schema":"{schema}","rows":{deep}\n', "utf-8")
    assert "restore" in refuse(capsys, "report", folder)


def test_rows_that_are_no_rows_are_one_line(capsys, tmp_path):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    document = json.loads((folder / "summary.json").read_text("utf-8"))
    (folder / "summary.json").write_text(json.dumps({**document, "rows": [1]}), "utf-8")
    assert "restore the folder" in refuse(capsys, "report", folder)


def test_a_reproduction_is_known_by_its_studies_and_has_its_own_page(capsys, tmp_path):
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "a.json").write_text(json.dumps({"schema": folders.STUDIES}), "utf-8")
    assert str(tmp_path / "index.html") in refuse(capsys, "report", tmp_path)


def test_files_that_lie_anywhere_else_are_not_looked_at(capsys, tmp_path):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "deep" / "down" / "a.json").write_text(json.dumps({"schema": folders.STUDIES}), "utf-8")
    assert "holds no records" in refuse(capsys, "report", tmp_path)


def test_a_folder_in_the_place_of_the_traces_is_refused_and_left_clean(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="is a folder"), TraceFile(tmp_path / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
