"""Builds the board of the studies' memories: systems that need packages from kept records, eirkit's own run anew.

`python tools/board.py OUT` writes the site; `make docs` puts it beside the documentation. studies/board has the
exported lines of each system's runs, so nothing has to be installed:
every kept run is played again from its replies and passages. Records that this version of eirkit cannot submit end the
program, so that no system vanishes unseen; what the board refuses is listed on its page.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from eirkit.cli import run
from eirkit.lacuna.runs.manifest import read_manifest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "studies" / "board"
OWN = ("text", "bm25", "vector", "agent-file", "agent-tools")
TASKS = ("conversation", "--preset", "small", "--model", "scripted/reader", "--no-control")


def kept_folders() -> list[Path]:
    return sorted(path.parent for path in KEPT.glob("*/manifest.json"))


def make_submissions(folder: Path) -> None:
    """Submit every kept sweep, and eirkit's own memories on the same conversations."""
    submissions = folder / "submissions"
    for kept in kept_folders():
        _run("submit", kept, "--out", submissions / kept.name, "--name", kept.name)
    grids = [grid for kept in kept_folders() for grid in read_manifest(kept).settings["grid"]]
    for seeds in sorted({str(grid["seeds"]) for grid in grids}):
        name = f"eirkit-{seeds.replace(':', '-')}"
        memories = ",".join((*OWN, "null", "sham"))
        _run("lacuna", "run", *TASKS, "--memory", memories, "--seeds", seeds, "--out", folder / name)
        _run("submit", folder / name, "--out", submissions / name, "--name", "eirkit")


def _run(*words: object) -> None:
    """Run a command that must succeed, without what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        failed = run([*map(str, words), "--json"])
    if failed:
        raise SystemExit(f"eirkit {' '.join(map(str, words))}: {said.getvalue().strip()}")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/board.py OUT")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        make_submissions(Path(folder))
        return run(["board", str(Path(folder) / "submissions"), "--out", arguments[0]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
