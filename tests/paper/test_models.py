"""`eirkit reproduce` with models: each figure with its own models, resumed, from another sweep, and verified."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from eirkit.cli import run
from eirkit.lacuna.models.model import ModelOptions
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import write_struct
from eirkit.records.events import pack
from eirkit.records.export import EVENTS, RUNS
from eirkit.records.listing import describe_file
from eirkit_paper.archive import ARCHIVE, SCHEMA
from eirkit_paper.model_runs import OTHER_MODEL, ModelSetting
from eirkit_paper.published import published_figures
from eirkit_paper.studies.architectures import EXTERNAL, SYSTEM_STEPS, external, other_lengths
from eirkit_paper.studies.catalog import find_study
from eirkit_paper.study import NEEDS_MEMORY, VERDICTS
from eirkit_paper.suites import PaperPlan, cells_named, paper_suites
from eirkit_paper.verdicts import AGREES, DIFFERS, FEWER_SEEDS, NOT_SAME, TOO_WIDE
from tests.paper import kills

NAMES = ("gpt-5.6", "claude-opus-4-6", "claude-haiku-4-5", "gpt-4.1-mini")
LINES = f"records/{RUNS}"
OTHER_OPTIONS = msgspec.to_builtins(ModelOptions(temperature=0.7).asked("text"))
AGENT = """
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.agents.reference import make_reference

SKILL = {"gpt-4.1-mini": ("sloppy", {"p": 0.2})}


def Agent(name, options):
    reference, extra = SKILL.get(name, ("substituter", {}))
    return make_reference(reference, ModelOptions(extra=extra))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> list[str]:
    """Return four models of known skill under the names of the published ones."""
    path = tmp_path_factory.mktemp("agents") / "agents.py"
    path.write_text(AGENT, "utf-8")
    return [f"{path}:Agent/{name}" for name in NAMES]


def reproduced(capsys, out: Path, names: Sequence[str], models: Sequence[str], *more: str) -> dict[str, Any]:
    words = [word for model in models for word in ("--model", model)]
    assert run(["reproduce", *names, *words, "--out", str(out), "--workers", "1", "--json", *more]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows_of(document: dict[str, Any], study: str) -> list[dict[str, Any]]:
    return next(one["rows"] for one in document["studies"] if one["id"] == study)


def test_every_cell_that_a_figure_names_exists_and_every_cell_has_a_figure():
    named = {cell.id for f in published_figures() if f.cells for group in cells_named(f.cells) for cell in group}
    assert named == {cell.id for suite in paper_suites().values() for cell in suite.cells}


def test_a_model_of_the_paper_runs_its_own_cells_and_any_other_model_all():
    figures = [figure for figure in published_figures() if figure.study == "pressure-grid"]
    mini, strong, other = (
        len(PaperPlan([model], ModelOptions()).cells(figures, range(3)))
        for model in ("openai/gpt-4.1-mini", "openai/gpt-5.6", "openai/any")
    )
    assert (mini, strong, other) == (0, 16, 16)


def test_each_figure_is_compared_with_its_own_models(models, tmp_path, capsys):
    document = reproduced(capsys, tmp_path, ["rescue", "stepwise-maximum-rescue"], models)
    by_label = {row["label"]: row for row in rows_of(document, "rescue")}
    assert len(by_label) == 20
    mini = by_label["Gpt41Mini: No injection"]
    assert (mini["published"], mini["ours_by"], mini["published_by"]) == (0.140, models[3], "GPT-4.1 Mini")
    assert by_label["Mean: No injection"]["ours_by"] == ", ".join(models)
    for row in [*by_label.values(), *rows_of(document, "stepwise-maximum-rescue")]:
        assert row["verdict"] in VERDICTS[:4]
        assert row["figure"]
    exact = by_label["Gpt56Reasoning: Exact restoration"]
    assert (exact["verdict"], exact["ours"], exact["p"]) == (AGREES, 1.0, 1.0)
    assert by_label["Gpt41Mini: Exact restoration"]["ours"] < 1  # it errs in a fifth of its answers
    assert 0.2 < exact["agrees_if_off"] < 0.5  # some 50 steps tell 1 from 0.9 in more than half of the cases
    assert document["models"] == models
    pooled = next(row for row in rows_of(document, "stepwise-maximum-rescue") if row["label"] == "Pooled mean: Exact")
    assert pooled["ours_by"] == ", ".join(models[:3])
    assert (pooled["verdict"], pooled["ours"]) == (TOO_WIDE, 1.0)  # one slip may spoil a run, and there are nine
    rows = {row["label"]: row for row in rows_of(document, "stepwise-maximum-rescue")}
    assert {rows[f"{name}: Sham"]["verdict"] for name in ("GPT-5.6", "Pooled mean")} <= {AGREES, DIFFERS, TOO_WIDE}


def test_a_pool_that_lacks_a_model_and_another_model_are_not_judged(models, tmp_path, capsys):
    document = reproduced(capsys, tmp_path, ["rescue"], [models[0], "reference/guesser"])
    rows = rows_of(document, "rescue")
    mean = next(row for row in rows if row["label"] == "Mean: No injection" and row["ours_by"] == models[0])
    assert (mean["verdict"], mean["why"]) == (
        NOT_SAME,
        "the pool lacks Claude Opus 4.6, Claude Haiku 4.5, GPT-4.1 Mini",
    )
    others = [row for row in rows if row["ours_by"] == "reference/guesser"]
    assert {(row["verdict"], row["why"]) for row in others} == {(NOT_SAME, OTHER_MODEL)}
    assert len(others) == 20


def test_fewer_seeds_than_the_paper_are_not_judged(models, tmp_path, capsys):
    document = reproduced(capsys, tmp_path, ["rescue", "recovery-probes"], models[:1], "--seeds", "0:2")
    verdicts = {row["verdict"] for row in rows_of(document, "rescue") if row["published_by"] == "GPT-5.6"}
    assert verdicts == {FEWER_SEEDS}
    own = [row for row in rows_of(document, "recovery-probes") if row["published_by"] == "GPT-5.6"]
    assert {row["verdict"] for row in own} == {FEWER_SEEDS}


def test_what_is_there_is_not_run_again_and_a_further_model_is_added(models, tmp_path, capsys):
    first = reproduced(capsys, tmp_path, ["rescue"], models[:1])
    before = stored(tmp_path)
    assert reproduced(capsys, tmp_path, ["rescue"], models[:1])["studies"] == first["studies"]
    assert stored(tmp_path) == before
    reproduced(capsys, tmp_path, ["rescue"], models[:2])
    after = stored(tmp_path)
    assert after[: len(before)] == before
    assert len(after) == 18


def stored(folder: Path) -> list[tuple[str, bytes]]:
    """Return the runs of models in the order in which they ended, with their events."""
    with SweepDatabase(folder / "runs") as database:
        return [(record.run, database.event_lines(record.run)) for record in database.records()]


@pytest.mark.slow
def test_four_models_are_killed_and_resumed_and_no_call_is_made_twice():
    """The short form of `make session NAME=reproduce`: the server counts its calls and its bill by itself."""
    assert kills.main(2, ["rescue"], seed=1) == 0


def test_memory_systems_that_are_not_asked_for_are_needed(models, tmp_path, capsys):
    document = reproduced(capsys, tmp_path, ["full-lookup-architectures"], models[:1])
    rows = {row["label"]: row for row in rows_of(document, "full-lookup-architectures")}
    assert rows["Full Lookup, Mem0: h = 4"]["verdict"] == NEEDS_MEMORY
    assert rows["Full Lookup, FIFO: h = 4"]["ours"] is not None


def test_memory_systems_have_the_papers_settings_with_a_model_and_named_stand_ins_without(tmp_path, capsys):
    """64 steps and 200 actions with a model; 24 and 10,000 with a scripted agent, which is not judged."""
    setting = ModelSetting(("openai/gpt-5.6",), memories=("mem0",))
    names = ("architectures", "extended-architectures", "full-lookup-architectures")
    cells = [cell for cell, _ in setting.plan([find_study(name) for name in names]).cells if cell.access.memory]
    assert {(cell.task.n, cell.access.actions, cell.access.memory) for cell in cells} == {(64, 200, "mem0")}
    assert {cell.task.workload for cell in cells} == set(EXTERNAL)
    assert (SYSTEM_STEPS, external("mem0", 2).actions) == (24, 10_000)
    assert other_lengths(SYSTEM_STEPS) == "ours has 24 steps and at most 10,000 actions, the published runs 64 and 200"
    out = ["--out", str(tmp_path), "--json", "--workers", "1", "--seeds", "0:3"]
    assert run(["reproduce", "full-lookup-architectures", *out]) == 0
    rows = rows_of(json.loads(capsys.readouterr().out), "full-lookup-architectures")
    assert {row["verdict"] for row in rows} <= {NOT_SAME, NEEDS_MEMORY}


def test_a_model_that_is_given_twice_is_refused(models, tmp_path, capsys):
    words = [word for _ in range(2) for word in ("--model", models[0])]
    assert run(["reproduce", "rescue", *words, "--out", str(tmp_path / "out")]) == 2
    assert "a model is given twice; give each model once" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_to_do_next_has_every_option_that_was_given(models, tmp_path, capsys):
    given = [
        "--model",
        models[0],
        "--model",
        models[1],
        "--seeds",
        "0:3",
        "--out",
        str(tmp_path / "a b"),
        "--workers=1",
    ]
    assert run(["reproduce", "rescue", *given]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"next: eirkit reproduce --verify '{tmp_path / 'a b'}'"
    assert run(["reproduce", "full-lookup-architectures", *given]) == 0
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("next: "))
    assert words == ["eirkit", "reproduce", "full-lookup-architectures", *given, "--memory", "mem0"]
    own = ["recovery-probes", "--seeds", "0:4", "--out", str(tmp_path / "c"), "--workers=1"]
    assert run(["reproduce", *own]) == 0
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("next: "))
    assert words == ["eirkit", "reproduce", *own, "--model", "PROVIDER/NAME"]


def test_a_dry_run_estimates_every_run_and_writes_nothing(models, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "rescue", "--model", models[0], "--out", str(out), "--dry-run", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["calls"]) == (9, 9 * 64)
    assert not out.exists()


def test_a_sweep_that_was_run_otherwise_is_compared(models, tmp_path, capsys):
    sweep = tmp_path / "sweep"
    words = ["lacuna", "run", "full-lookup", "--m", "16", "--policy", "fixed", "--h", "16,8", "--seeds", "0:3"]
    assert run([*words, "--model", ",".join(models), "--out", str(sweep), "--no-control", "--json"]) == 0
    capsys.readouterr()
    assert run(["reproduce", "--all", "--data", str(sweep), "--out", str(tmp_path / "out"), "--json", "--list"]) == 0
    capsys.readouterr()
    names = ["full-lookup-sweep", "rescue"]
    own = reproduced(capsys, tmp_path / "own", ["full-lookup-sweep"], models)
    assert run(["reproduce", "rescue", "--model", "reference/calculator", "--data", str(sweep)]) == 2
    assert "leave one of them out" in capsys.readouterr().err
    found = reproduced(capsys, tmp_path / "out", names, [], "--data", str(sweep))
    rows = rows_of(found, "full-lookup-sweep")
    assert [row["label"] for row in rows] == ["h = 16: Query accuracy", "h = 8: Query accuracy"]
    mine = {row["label"]: row["ours"] for row in rows_of(own, "full-lookup-sweep")}
    assert [row["ours"] for row in rows] == [mine[row["label"]] for row in rows]
    assert [study["id"] for study in found["studies"]] == ["full-lookup-sweep"]  # it has no run of a rescue
    assert found["awaited"] == []
    assert run(["reproduce", "--verify", str(tmp_path / "out"), "--plugins"]) == 0


@pytest.fixture
def archive(models, tmp_path, capsys) -> Path:
    reproduced(capsys, tmp_path / "out", ["rescue", "recovery-probes"], models[:1])
    return tmp_path / "out"


def problems(folder: Path, capsys) -> list[str]:
    code = run(["reproduce", "--verify", str(folder), "--plugins", "--json"])
    found: list[str] = json.loads(capsys.readouterr().out)["problems"]
    assert code == bool(found)
    return found


def hide(folder: Path) -> None:
    """Write the list of files anew, as somebody who changed them would."""
    document = plain(folder / ARCHIVE)
    listed = [name for name in document["files"] if (folder / name).exists()]
    document["files"] = {name: describe_file(folder / name) for name in listed}
    write_struct(folder / ARCHIVE, SCHEMA, document)


def plain(path: Path) -> dict[str, Any]:
    """Return a document as JSON, without its schema and checksum."""
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return {key: value for key, value in document.items() if key not in ("schema", "crc32")}


def test_an_archive_is_what_was_written(archive, capsys):
    assert problems(archive, capsys) == []
    listed = plain(archive / ARCHIVE)["files"]
    for name in ("index.html", "reproduction.json", "rows.csv", "CITATION.cff", "croissant.json", LINES):
        assert name in listed
    assert not [name for name in listed if name.endswith("sweep.db")]
    shutil.rmtree(archive / "runs")  # the database is no part of it
    assert problems(archive, capsys) == []
    described = json.loads((archive / "croissant.json").read_text("utf-8"))
    assert {one["@id"] for one in described["distribution"]} == {"rows.csv", LINES}


def test_an_archive_of_another_shape_is_refused_in_one_line(archive, capsys):
    whole = plain(archive / ARCHIVE)
    for damage in ({"files": [1]}, {"settings": None}, {"settings": {"models": 3}}):
        write_struct(archive / ARCHIVE, SCHEMA, {**whole, **damage})
        capsys.readouterr()
        assert run(["reproduce", "--verify", str(archive), "--plugins"]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert said.err.endswith("restore the file\n")


def test_no_code_of_an_archive_is_run_unasked(archive, models, capsys):
    """The file that its models name is another one by now, and leaves a mark if it is run."""
    path = Path(models[0].partition(":")[0])
    path.write_text(f"from pathlib import Path\nPath({str(archive)!r}, 'ran').touch()\n{AGENT}", "utf-8")
    try:
        capsys.readouterr()
        assert run(["reproduce", "--verify", str(archive)]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert "add --plugins" in said.err
        assert not (archive / "ran").exists()
        assert [one.partition(":")[0] for one in problems(archive, capsys)] == ["ran"]
    finally:
        path.write_text(AGENT, "utf-8")


def test_a_changed_or_missing_or_added_file_is_found(archive, capsys):
    (archive / "rows.csv").write_bytes((archive / "rows.csv").read_bytes().replace(b"0.14", b"0.15"))
    (archive / "studies.md").unlink()
    (archive / "more.txt").touch()
    assert [one.partition(":")[0] for one in problems(archive, capsys)] == ["rows.csv", "studies.md", "more.txt"]


def in_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), "utf-8")

    return change


def in_document(change: Callable[[dict[str, Any]], object], name: str = "reproduction.json") -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        schema, document = json.loads((folder / name).read_text("utf-8"))["schema"], plain(folder / name)
        change(document)
        write_struct(folder / name, schema, document)

    return rewrite


def in_record(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        lines = (folder / LINES).read_bytes().splitlines(keepends=True)
        place, record = next((i, found) for i, line in enumerate(lines) if "score" in (found := json.loads(line)))
        change(record)
        lines[place] = json.dumps(record).encode() + b"\n"
        (folder / LINES).write_bytes(b"".join(lines))

    return rewrite


def in_records(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        path = folder / LINES
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return rewrite


def in_events(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        path = (folder / LINES).with_name(EVENTS)
        reader = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True)
        path.write_bytes(pack(b"".join(change(reader.read().splitlines(keepends=True)))))

    return rewrite


def swap_events(folder: Path) -> None:
    first, second = (
        json.loads(line)["run"].encode() for line in (folder / LINES).read_bytes().splitlines(keepends=True)[:2]
    )

    def swapped(lines: list[bytes]) -> list[bytes]:
        own, other = ([line for line in lines if line.startswith(b'{"run":"%s"' % run)] for run in (first, second))
        rest = lines[len(own) + len(other) :]
        renamed = [line.replace(second, first, 1) for line in other], [line.replace(first, second, 1) for line in own]
        return [*renamed[0], *renamed[1], *rest]

    in_events(swapped)(folder)


def add_listed(folder: Path) -> None:
    (folder / "more.txt").touch()
    document = plain(folder / ARCHIVE)
    document["files"]["more.txt"] = describe_file(folder / "more.txt")
    write_struct(folder / ARCHIVE, SCHEMA, document)


def first_row(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["studies"][0]["rows"][0].__setitem__(name, value)


def state(name: str, value: object, document: dict[str, Any]) -> None:
    document["settings"][name] = value


MANIFEST = "records/manifest.json"
# What somebody changed who then wrote the checksums anew, and the file that must be named.
TAMPERED: list[tuple[Callable[[Path], None], str]] = [
    (in_text("rows.csv", "0.137", "0.138"), "rows.csv"),
    (in_text("index.html", "0.137", "0.138"), "index.html"),
    (in_text("studies.md", "rescue", "rescued"), "studies.md"),
    (in_text("CITATION.cff", "eirkit", "other"), "CITATION.cff"),
    (in_text("croissant.json", "eirkit", "other"), "croissant.json"),
    (in_text("rescue/rows.csv", "0.137", "0.138"), "rescue/rows.csv"),
    (lambda folder: (folder / "rescue" / "rows.csv").write_text(""), "rescue/rows.csv"),
    (lambda folder: (folder / "index.html").unlink(), "index.html"),
    (add_listed, "more.txt"),
    *(
        (in_document(first_row(name, value)), "reproduction.json")
        for name, value in {"ours": 0.5, "published": 0.5, "verdict": "sure", "p": 0.5, "n": 1, "label": "x"}.items()
    ),
    (in_document(lambda document: document["studies"][0].update(verdict="sure")), "reproduction.json"),
    (in_document(lambda document: document["studies"][0]["rows"].pop()), "reproduction.json"),
    (
        in_document(lambda document: document["settings"].update(seeds="0:9"), MANIFEST),
        MANIFEST,
    ),
    (in_document(lambda document: document.update(eirkit="9.9"), MANIFEST), MANIFEST),
    (in_document(lambda document: document.update(eirkit="9.9"), ARCHIVE), ARCHIVE),
    (in_document(lambda document: document.update(source_sha256="0" * 64), ARCHIVE), ARCHIVE),
    (in_document(lambda document: document["studies"].pop(), ARCHIVE), ARCHIVE),
    (in_document(lambda document: document["settings"].update(compared=[]), ARCHIVE), ARCHIVE),
    (in_document(lambda document: document["settings"].update(seeds=[0, 1]), ARCHIVE), MANIFEST),
    *(
        (in_document(partial(state, name, value), ARCHIVE), file)
        for name, value, file in (
            ("options", OTHER_OPTIONS, MANIFEST),
            ("models", [], ARCHIVE),
            ("study_seeds", "0:99", ARCHIVE),
            ("data", "elsewhere", ARCHIVE),
            ("memories", ["mem0"], MANIFEST),
        )
    ),
    (in_document(lambda document: document.update(python="2.7"), ARCHIVE), MANIFEST),
    (in_document(lambda document: document.update(cells=1), MANIFEST), MANIFEST),
    (in_document(lambda document: document.update(plan_sha256="0" * 64), MANIFEST), MANIFEST),
    (in_record(lambda record: record["setting"].update(repeat={"number": 1, "of": "0" * 12})), LINES),
    (in_record(lambda record: record["setting"]["task"].update(n=32)), LINES),
    (in_events(lambda lines: lines[1:]), LINES),
    (in_events(lambda lines: [*lines, lines[-1]]), LINES),
    (in_records(lambda lines: [lines[1], lines[0], *lines[2:]]), LINES),
    (in_record(lambda record: record["score"].update(correct=1)), LINES),
    (in_record(lambda record: record.update(seed=7)), LINES),
    (in_record(lambda record: record.update(fingerprint="0" * 64)), LINES),
    (in_record(lambda record: record.update(ending="action-limit")), LINES),
    (in_record(lambda record: record["setting"]["access"].update(h=3)), LINES),
    (in_record(lambda record: record["usage"].update(calls=1)), LINES),
    (in_record(lambda record: record["setting"].update(model="openai/gpt-4.1-mini")), LINES),
    (in_records(lambda lines: lines[1:]), LINES),
    (in_records(lambda lines: [*lines, lines[0]]), LINES),
    (swap_events, LINES),
]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_is_tampered_with_is_refused_although_checksums_were_written_anew(every, archive, tmp_path, capsys):
    assert len(TAMPERED) >= 30
    for number, (change, name) in enumerate(TAMPERED[::every]):
        folder = tmp_path / str(number)
        shutil.copytree(archive, folder)
        change(folder)
        hide(folder)
        found = problems(folder, capsys)
        assert name in {one.partition(":")[0] for one in found}, (number, name, found)
        assert not any("\n" in one for one in found)


def test_an_answer_that_does_not_follow_from_the_replies_is_found(archive, capsys):
    """Somebody who changes an answer changes the score, the block, its checksum and the list; not the reply."""

    def answered(lines: list[bytes]) -> list[bytes]:
        place = next(i for i, line in enumerate(lines) if b'"type":"decision"' in line and b'"submitted"' in line)
        event = json.loads(lines[place])
        event["submitted"] = [(event["submitted"][0] + 1) % 10_000]
        changed = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        return [*lines[:place], changed, *lines[place + 1 :]]

    in_events(answered)(archive)
    hide(archive)
    assert any("its events do not follow from its replies" in one for one in problems(archive, capsys))
