"""Times `eirkit --help` (target: half a second, warm cache) against the interpreter and click alone."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from eirkit.report.showing import TEXT_WIDTH
from eirkit.report.table import Column, Table
from eirkit.report.terminal import table_lines

LIMIT_SECONDS = 0.5
ROUNDS = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import click'": ["-c", "import click"],
    "python -c 'import eirkit'": ["-c", "import eirkit"],
    "eirkit --help": ["-m", "eirkit", "--help"],
    "eirkit lacuna --help": ["-m", "eirkit", "lacuna", "--help"],
    "eirkit lacuna generate --help": ["-m", "eirkit", "lacuna", "generate", "--help"],
}


def measure() -> dict[str, list[float]]:
    """Return wall-clock seconds; the commands take turns, so that a busy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(ROUNDS + 1):
        for name, arguments in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            if turn:  # the first turn warms the caches
                seconds[name].append(time.perf_counter() - started)
    return seconds


def main() -> int:
    seconds = measure()
    names = ("command", "median", "least", "most")
    figures = ((name, median(times), min(times), max(times)) for name, times in seconds.items())
    rows = tuple(dict(zip(names, row, strict=True)) for row in figures)
    table = Table("help", f"Seconds over {ROUNDS} runs", tuple(Column(name, name) for name in names), rows)
    print("\n".join(line.text for line in table_lines(table, TEXT_WIDTH)))
    slowest = max(median(times) for name, times in seconds.items() if "--help" in name)
    print(f"limit {LIMIT_SECONDS} s: {'held' if slowest < LIMIT_SECONDS else 'missed'}")
    return int(slowest >= LIMIT_SECONDS)
