"""Counts the package for the table "Size, before and after" of docs/design/house.md.

`python tools/size.py [SRC]` prints the rows for the package in SRC (default: src of this repository), so that an
earlier version can be counted in the same way. *Imported*: modules of eirkit in memory when a command has ended, and
their lines. *Run*: files of which the main thread called a function, except while a module is imported. `--files` also
lists those files. `tests/test_size.py` fails if a figure is not lower than in version 0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design" / "house.md"
_ROW = re.compile(r"^\| ([^|\n]+) \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)  # name, version 0.1, now
TASK = "--workload store-recall --m 8 --h 4 --seeds 0:2"
SWEEP = f"lacuna run {TASK} --no-control"
# Every command runs in one folder, in this order: later ones read what earlier ones wrote.
COMMANDS = {
    "--help": "--help",
    "eir curve": "eir curve stepwise-sum --m 8",
    "lacuna cones": "lacuna cones --m 12",
    "lacuna simulate": "lacuna simulate store-recall --m 20 --seeds 0:5",
    "lacuna run": f"{SWEEP} --model reference/calculator --out first",
    "lacuna run --memory": f"{SWEEP} --model reference/recoverer --actions 60 --memory bm25 --out memory",
    "second sweep": f"{SWEEP} --model reference/guesser --out second",
    "lacuna rescue": f"lacuna rescue {TASK} --model reference/calculator --out rescue",
    "compare": "compare first second",
    "report": "report first --out page.html",
    "watch --once": "watch first --once",
    "doctor": "doctor",
    "vestige analyze": "vestige analyze turn.jsonl --out analysis",
    "vestige show": "vestige show analysis t1",
}
IMPORTED = (
    "compare", "report", "lacuna run", "lacuna rescue", "watch --once", "doctor", "vestige analyze", "vestige show",
    "lacuna simulate", "lacuna cones", "eir curve", "--help",
)  # fmt: skip
LINES = ("compare", "report", "lacuna run", "vestige analyze")
RUN = ("eir curve", "lacuna run --memory", "vestige analyze", "compare")
CALL = '{"command": ["cat", "a.py"]}'
# A Codex session of one turn, in which a file is read.
TURN = (
    ("session_meta", {"id": "t1", "cwd": "/repo", "originator": "codex_cli_rs", "cli_version": "0.60.0"}),
    ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Solve it."}]}),
    (
        "response_item",
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": CALL},
    ),
    ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "x = 1"}),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", nargs="?", type=Path, default=ROOT / "src")
    parser.add_argument("--write", action="store_true", help="also write the figures into the last column of the table")
    parser.add_argument("--files", action="store_true", help="list the files that each of the four flows runs")
    chosen = parser.parse_args()
    source = chosen.source.resolve()
    counts = count_commands(source)
    figures = count_rows(source, counts)
    print("\n".join(f"| {row} | {figure:,} |" for row, figure in figures.items()))
    if chosen.write:
        PAGE.write_text(with_figures(PAGE.read_text("utf-8"), figures), "utf-8")
    for name in RUN if chosen.files else ():
        print(f"run by {name}:", *counts[name].called, sep="\n    ")
    return 0


def earlier_figures(page: str) -> dict[str, int]:
    """Return the figures of version 0.1 by row."""
    return {found[1]: int(found[2].replace(",", "")) for found in _ROW.finditer(page)}


def with_figures(page: str, figures: Mapping[str, int]) -> str:
    """Return the page with these figures in the last column of the table."""

    def renewed(found: re.Match[str]) -> str:
        row, before, now = found.groups()
        return f"| {row} | {before} | {figures[row]:,} |" if row in figures else f"| {row} | {before} | {now} |"

    return _ROW.sub(renewed, page)


@dataclass(frozen=True, slots=True)
class Count:
    """What one command imported and ran, as names of modules and paths of files."""

    imported: list[str]
    called: list[str]


def count_rows(source: Path, counts: Mapping[str, Count]) -> dict[str, int]:
    """Return the figure of each row of the table."""
    files = sorted((source / "eirkit").rglob("*.py"))
    return {
        "modules": len(files),
        "lines": sum(map(_lines, files)),
        **{f"imported by `{name}`": len(counts[name].imported) for name in IMPORTED},
        **{
            f"lines imported by `{name}`": sum(_lines_of(one, source) for one in counts[name].imported)
            for name in LINES
        },
        **{f"run by `{name}`": len(counts[name].called) for name in RUN},
    }


def _lines_of(module: str, source: Path) -> int:
    path = source.joinpath(*module.split("."))
    return _lines(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def _lines(path: Path) -> int:
    return path.read_text("utf-8").count("\n")


def count_commands(source: Path) -> dict[str, Count]:
    """Run every command in a folder of its own and return what each imported and ran."""
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": "80", "NO_COLOR": "1"}
    lines = [{"timestamp": "2025-01-01T00:00:00Z", "type": kind, "payload": payload} for kind, payload in TURN]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "turn.jsonl").write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
        return {name: _count(line.split(), folder, environment) for name, line in COMMANDS.items()}


def _count(arguments: list[str], folder: str, environment: dict[str, str]) -> Count:
    result = Path(folder, "count.json")
    command = [sys.executable, str(Path(__file__).resolve()), "--observe", str(result), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"eirkit {' '.join(arguments)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return Count(**json.loads(result.read_text("utf-8")))


def observe(result: Path, arguments: list[str]) -> int:
    """Run one command in this process and write what it imported and ran."""
    from eirkit import cli  # the package to count is on the path of this process alone

    called: set[str] = set()

    def note(frame: object, event: str, _: object) -> None:
        path = frame.f_code.co_filename  # type: ignore[attr-defined]
        if event == "call" and "/eirkit/" in path and path not in called and not _is_importing(frame):
            called.add(path)

    sys.setprofile(note)
    code = cli.run(arguments)
    sys.setprofile(None)
    package = str(Path(cli.__file__).parents[1])
    imported = sorted(name for name in sys.modules if name.split(".")[0] == "eirkit")
    shown = sorted(os.path.relpath(path, package) for path in called if path.startswith(package))
    result.write_text(json.dumps({"imported": imported, "called": shown}), "utf-8")
    return code


def _is_importing(frame: object) -> bool:
    while frame is not None:
        code = frame.f_code  # type: ignore[attr-defined]
        if code.co_name == "<module>" and "/eirkit/" in code.co_filename:
            return True
        frame = frame.f_back  # type: ignore[attr-defined]
    return False


if __name__ == "__main__":
    if sys.argv[1:2] == ["--observe"]:
        sys.exit(observe(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
