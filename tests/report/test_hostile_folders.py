"""Folders that somebody else made: no code of theirs is run unasked, and damage is one line, never a trace."""

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError, UsageError
from eirkit.records.database import checksum_of
from eirkit.report import folders
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
    assert call(capsys, "report", hostile, "--json")[0] == 0
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
    (row,) = viewer.runs({"at": ["."]}).rows
    assert "--plugins" in viewer.answer("/api/run", {"at": ["."], "run": [row["run"]]}).unknown
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
    for path in ("manifest.json", "summary.json"):
        file = tmp_path / "out" / path
        file.write_text(file.read_text("utf-8").replace(preset, moved), "utf-8")
    with changing(tmp_path / "out") as connection:
        ((number, cell, setting, planned),) = connection.execute("SELECT id, cell, setting, planned FROM cells")
        row = (number, cell, setting.replace(preset.encode(), moved.encode()), planned)
        connection.execute("REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", (*row, checksum_of(*row)))
    _opened.clear()
    return tmp_path / "out"


_opened: list[str] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith("other.toml"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_audit)


def test_a_format_that_a_row_names_as_code_is_not_run(tmp_path):
    source = tmp_path / "evil.py"
    source.write_text(EVIL)
    row = SimpleNamespace(source="logs/a.json", run_id="a", format=f"{source}:Evil")
    for look in (LogFolders((tmp_path,)).recording, LogFolders((tmp_path,)).text):
        with pytest.raises(InputFileError, match="--plugins"):
            look(row)
    assert not (tmp_path / "ran").exists()


@contextmanager
def changing(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a folder as somebody does who wants to change it."""
    connection = sqlite3.connect(folder / "sweep.db")
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def spoil_record(folder: Path, change) -> None:
    """Change the first record, with a checksum that is right."""
    with changing(folder) as connection:
        number, content = connection.execute("SELECT run, record FROM records ORDER BY run").fetchone()
        document = json.loads(content)
        change(document)
        spoilt = json.dumps(document).encode()
        connection.execute("REPLACE INTO records VALUES (?, ?, ?)", (number, spoilt, crc32(spoilt, 0)))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(seed="seven"),
        lambda record: record.pop("fingerprint"),
        lambda record: record.update(score=[]),
        lambda record: record["score"].update(errors=None),
        lambda record: record["score"].update(correct="all"),
        lambda record: record.update(usage={"calls": 1.5}),
    ],
)
def test_a_damaged_run_is_named_in_one_line(capsys, tmp_path, change):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    spoil_record(folder, change)
    assert "sweep.db" in refuse(capsys, "report", folder)


@pytest.mark.parametrize(
    "change", [lambda setting: setting["task"].update(n="many"), lambda setting: setting.pop("access")]
)
def test_a_damaged_setting_is_named_in_one_line(capsys, tmp_path, change):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    with changing(folder) as connection:
        number, cell, setting, planned = connection.execute("SELECT id, cell, setting, planned FROM cells").fetchone()
        document = json.loads(setting)
        change(document)
        row = (number, cell, json.dumps(document).encode(), planned)
        connection.execute("REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", (*row, checksum_of(*row)))
    for words in (("report",), ("show",), ("watch", "--once")):
        assert "sweep.db" in refuse(capsys, words[0], folder, *words[1:])


def test_deep_nesting_in_a_record_is_one_line(capsys, tmp_path):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    with changing(folder) as connection:
        deep = b'{"run":' + b"[" * 200_000
        connection.execute("UPDATE records SET record = ?, crc32 = ?", (deep, crc32(deep, 0)))
    assert "restore" in refuse(capsys, "report", folder)


@pytest.mark.parametrize("name", ["summary.json", "manifest.json"])
def test_deep_nesting_is_one_line(capsys, tmp_path, name):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    deep = "[" * 200_000
    schema = {"summary.json": "summary/1", "manifest.json": "runs/1"}[name]
    (folder / name).write_text(f'{{"schema":"{schema}","rows":{deep}\n', "utf-8")
    assert "restore" in refuse(capsys, "report", folder)


def test_rows_that_are_no_rows_are_one_line(capsys, tmp_path):
    folder = make_sweep(tmp_path / "sweep", seeds="0:1")
    document = json.loads((folder / "summary.json").read_text("utf-8"))
    (folder / "summary.json").write_text(json.dumps({**document, "rows": [1]}), "utf-8")
    assert "restore the file" in refuse(capsys, "report", folder)


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
