"""`eirkit submit` and `eirkit board`: results that others can check, and a site that ranks those that hold."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote

import click
from msgspec.structs import replace

from eirkit.cli.command import OUTPUT, Show, command, document_options, option, plugins_option
from eirkit.cli.execution import MIB, SECONDS, engine_options
from eirkit.cli.report import FOLDER
from eirkit.engine.interface import Engine, LostPiece, PieceLimits, make_engine
from eirkit.errors import InputFileError, UsageError
from eirkit.records.documents import MANIFEST
from eirkit.report.document import Document, Section
from eirkit.report.folders import damage_named
from eirkit.report.table import Column, Table, cells_of, counted
from eirkit_bridges.board.checking import Checked, CheckRequest, check, without_copies
from eirkit_bridges.board.site import board_result, refused_table, summary, track_table, write_site
from eirkit_bridges.board.standings import entries_of, tracks_of
from eirkit_bridges.board.submission import DOCUMENT, make_submission

MOST_TRACKS = 3  # that a terminal shows
LARGEST_SEED = (1 << 31) - 1


@command(example="eirkit submit out/run-1 --out submission")
@click.argument("folder", metavar="DIR", type=FOLDER)
@option("--out", type=FOLDER, required=True, group=OUTPUT, help="The folder to write; new or empty.")
@option("--name", help="Who or what is submitted, as the board shows it.  [default: the name of DIR]")
@plugins_option
@document_options
def submit(folder: Path, out: Path, name: str | None, plugins: bool, show: Show) -> None:
    """Turn a finished `lacuna run` into one folder that others can check and put on a board.

    The folder has the records with all replies, the settings, seeds, versions and scores, and the results of two
    references on the same tasks: null, a memory that keeps nothing, and sham, one that returns the content of other
    records. If DIR lacks them and its model costs nothing, they are run now.
    """
    with damage_named(folder):
        document = make_submission(folder, out, folder.resolve().name if name is None else name)
    found = check(CheckRequest(out, plugins=plugins))
    if not found.holds:
        shutil.rmtree(out)
        raise InputFileError(
            f"{folder} cannot be submitted: {found.problems[0]}; run it again with this version of eirkit"
        )
    columns = (
        Column("memory", "memory", role="name"),
        Column("model", "model", role="name", priority=1),
        Column("workload", "workload", role="name"),
        Column("h", "h"),
        Column("accuracy", "accuracy", percent=True),
        Column("scored", "runs"),
    )
    rows = tuple(cells_of(score, columns) for score in document.scores)
    answer = (f"{out} holds: {counted(found.runs, 'run')} follow from their replies, and all scores from the runs.",)
    data = {"out": str(out), "runs": found.runs, "scores": document.scores, "seeds": document.seeds}
    table = Table("scores", "Scores that are claimed", columns, rows)
    then = f"eirkit board {quote(str(out))} --out site"
    show(Document("submit", f"Submission {document.name}", answer, data, (Section("", (), (table,)),), next=then))


@command(example="eirkit board submissions/* --out site")
@click.argument("folders", metavar="DIR...", type=FOLDER, nargs=-1, required=True)
@option(
    "--out", type=FOLDER, required=True, group=OUTPUT, help="The folder of the site; new, empty or an earlier board."
)
@option(
    "--repeats",
    "rerun",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Runs of memories, and of null and sham, to repeat in each part, where model and memory are scripts.",
)
@option(
    "--seed",
    type=click.IntRange(0, LARGEST_SEED),
    help="Seed that chooses the runs to repeat.  [default: a random one, which is shown and recorded]",
)
@plugins_option
@engine_options
@document_options
def board(
    folders: tuple[Path, ...],
    out: Path,
    rerun: int,
    seed: int | None,
    plugins: bool,
    engine: Engine | None,
    show: Show,
) -> int:
    """Check submissions and write a static site that ranks those that pass.

    Every score is computed again from the records. If anything in a submission does not follow from its records, it is
    refused, the file and the reason are named, and the exit code is 1. Entries are ranked against each other only if
    they were given the same tasks. If DIR is not a submission itself, the submissions directly in it are checked.
    """
    # Who knows beforehand which runs are repeated can make up all others.
    chosen = secrets.randbelow(LARGEST_SEED) if seed is None else seed
    wanted = [CheckRequest(one, rerun, chosen, plugins) for one in _submissions(folders)]
    checked = without_copies(_check_all(wanted, engine))
    tracks = tracks_of([entry for one in checked if one.holds for entry in entries_of(one)])
    written = write_site(out, tracks, checked)
    refused = [one for one in checked if not one.holds]
    sections = [Section("", (), (track_table(track),)) for track in tracks[:MOST_TRACKS]]
    sections += [Section("", (), (refused_table(refused),))] if refused else []
    sections.append(Section("", (f"page: {written[0]}", f"{len(written) - 1} further files in {out}")))
    data = replace(board_result(tracks, checked), out=str(written[0]))
    answer = tuple(summary(tracks, checked))
    show(Document("board", "Board of memory systems", answer, data, tuple(sections), next="eirkit submit --help"))
    return 1 if refused else 0


def _submissions(folders: Sequence[Path]) -> list[Path]:
    """Return the folders that are submissions, and those directly in folders that are not."""
    found: dict[Path, Path] = {}  # by resolved path: the same folder may be named in two ways
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; give folders that `eirkit submit` wrote")
        inside = [folder] if (folder / DOCUMENT).is_file() else [one.parent for one in folder.glob(f"*/{DOCUMENT}")]
        if not inside and (folder / MANIFEST).is_file():
            made = f"eirkit submit {quote(str(folder))} --out submission"
            raise UsageError(f"{folder} is a run and no submission; make one first with `{made}`")
        if not inside:
            raise UsageError(f"{folder} holds no submission; give folders that `eirkit submit` wrote")
        for one in sorted(inside):
            found.setdefault(one.resolve(), one)
    return list(found.values())


def _check_all(wanted: Sequence[CheckRequest], engine: Engine | None) -> list[Checked]:
    if engine is None:
        engine = make_engine("local", bounds=PieceLimits(SECONDS, MIB << 20))
    order = {request.folder: place for place, request in enumerate(wanted)}
    with closing(engine):
        return sorted(_outcomes(wanted, engine), key=lambda one: order[one.folder])


def _outcomes(wanted: Sequence[CheckRequest], engine: Engine) -> Iterator[Checked]:
    for outcome in engine.map(check, wanted):
        if isinstance(outcome, LostPiece):
            folder = wanted[outcome.number].folder
            yield Checked(folder, folder.name, (f"cannot be checked: {outcome.reason}",))
        else:
            yield outcome.value
