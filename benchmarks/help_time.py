"""Times `eirkit --help` (target: half a second, warm cache) against the interpreter and click alone."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from rich.console import Console

from eirkit.cli.output import table

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
    rows = [(name, median(times), min(times), max(times)) for name, times in seconds.items()]
    Console().print(table(f"Seconds over {ROUNDS} runs", ("command", "median", "least", "most"), rows))
    slowest = max(median(times) for name, times in seconds.items() if "--help" in name)
    print(f"limit {LIMIT_SECONDS} s: {'held' if slowest < LIMIT_SECONDS else 'missed'}")
    return int(slowest >= LIMIT_SECONDS)
