"""Searches for the log of one megabyte that takes longest to read and measure; more than the limit is a failure.

A log is a few calls or many, of commands and outputs that repeat a unit: words that readers pay attention to, and the
units with which the regular expressions are attacked. The slowest logs so far are changed at random and tried again.

python -m tests.fuzz_slow [SECONDS] [--seed N] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, AnalyzedRun, measured_or_skipped
from eirkit.vestige.formats.message_rows import read_messages
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Recording
from tests.fuzz_formats import TEXTS, WORDS
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.attacks import attacks, modules, patterns_of

BYTES = 1_000_000
SLOWEST_CPU_SECONDS = 5.0  # on a machine of 2024
KEPT = 24  # slow logs that are changed further
OPTIONS = AnalysisOptions(read_windows(None))
COMMANDS = (
    "cat {0}", "git diff {0}", "grep -rn x {0}", "sed -n '{0}' a.py", "awk '{0}' a.py", "unzip {0}", "python -c '{0}'",
    "cat <<'EOF' > a.py\n{0}\nEOF", "for f in {0}; do cat $f; done", "{0}", "cat a.py; cat b.py; grep -rn x .",
    "jq '{0}' a.json", "Get-Content {0}", "node -e \"{0}\"", "rm -rf {0}", "cp -r {0} out", "patch -p1 <<'E'\n{0}\nE",
    "git stash; git checkout .; git commit -am x", "cat *.py */*.js", "cat -n a.py; cat -n b.py", "head -5 a b",
    "cat *{0}", "ls {0}",
)  # fmt: skip
LINES = ("a.py:1:x\n", "a{n}.py:{n}:x\n", "     {n}\tx\n", "==> a{n}.py <==\nx\n", "+++ b/a{n}.py\n", "d{n}/f{n}.js\n")


@dataclass(frozen=True)
class SlowCase:
    """A log: how many calls, and what each runs and prints."""

    calls: int
    command: str
    unit: str  # in the command
    line: str  # in the output
    share: float  # of the bytes that are output

    def messages(self) -> list[dict[str, object]]:
        """Return the messages of the log."""
        size = BYTES // self.calls
        messages: list[dict[str, object]] = [{"role": "user", "content": "fix it"}]
        for number in range(self.calls):
            shown = _repeated(self.line, int(size * self.share), number)
            command = self.command.replace("{0}", _repeated(self.unit, int(size * (1 - self.share)), number))
            function = {"name": "bash", "arguments": json.dumps({"command": command})}
            messages.append(
                {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "function": function}]}
            )
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": shown})
        return messages


def _repeated(unit: str, length: int, number: int) -> str:
    if "{n}" in unit:
        text = "".join(unit.replace("{n}", str(number * 100_000 + at)) for at in range(length // (len(unit) + 4) + 1))
    else:
        text = unit * (length // max(1, len(unit)) + 1)
    return text[:length]


def cpu_seconds(case: SlowCase) -> float:
    """Return the processor time that a log takes from its messages to its tables."""
    messages = case.messages()
    start = time.process_time()
    prompt, turns = read_messages(messages)
    run = Recording(run_id="r", task_id="r", format="x", source="s", turns=turns, prompt=prompt)
    done = measured_or_skipped(run, None, OPTIONS, estimating_counter())
    assert isinstance(done, AnalyzedRun) or "; report it" not in done.reason, done
    return time.process_time() - start


def units() -> list[str]:
    """Return what logs are made of."""
    found = [*WORDS, *TEXTS, *LINES]
    for package in ("eirkit.vestige", "eirkit_coding.guard"):
        for one in patterns_of(list(modules(package))):
            if one.methods and isinstance(one.pattern.pattern, str):
                found += [attack.before + attack.unit for attack in attacks(one.pattern)[:40]]
                found += [attack.unit for attack in attacks(one.pattern)[:20]]
    return sorted({unit for unit in found if unit and len(unit) < 400})


def drawn(rng: random.Random, known: list[str]) -> SlowCase:
    calls = rng.choice([1, 1, 2, 10, 100, 300, 1000, 5000])
    line = rng.choice(known) + rng.choice(["", "\n"])
    return SlowCase(
        calls,
        rng.choice(COMMANDS),
        rng.choice(known) + rng.choice(["", " ", "\n", "{n}"]),  # with a number no two commands are the same
        line,
        rng.choice([0.02, 0.5, 0.98]),
    )


def changed(case: SlowCase, rng: random.Random, known: list[str]) -> SlowCase:
    other = drawn(rng, known)
    name = rng.choice(["calls", "command", "unit", "line", "share", "joined"])
    if name == "joined":
        return replace(case, line=(case.line + other.line)[:400], unit=(case.unit + other.unit)[:400])
    return replace(case, **{name: getattr(other, name)})


def search(rng: random.Random, until: float, most: int = sys.maxsize) -> tuple[list[tuple[float, SlowCase]], int]:
    """Return the slowest logs found, slowest first, and how many were tried."""
    known, best, tried = units(), list[tuple[float, SlowCase]](), 0
    while time.monotonic() < until and tried < most:
        case = changed(rng.choice(best)[1], rng, known) if best and rng.random() < 0.6 else drawn(rng, known)
        tried += 1
        best.append((cpu_seconds(case), case))
        best = sorted(best, key=lambda one: -one[0])[:KEPT]
    return best, tried


def main() -> int:
    """Search for so many seconds; 1 if a log took longer than the limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_slow")
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    best, tried = search(random.Random(given.seed), time.monotonic() + given.seconds)
    for spent, case in best[:5]:
        print(f"{spent:6.2f} s  {re.sub(r'[^ -~]', '?', repr(case))[:200]}")
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        (given.keep / "slowest.json").write_text(json.dumps(best[0][1].messages()), "utf-8")
    print(f"{tried:,} logs of {BYTES / 1e6:g} MB tried; the slowest took {best[0][0]:.2f} s of processor time")
    # The slowest once more, beside the yardstick: a slow machine is no finding.
    spent, case = best[0]
    return int(
        spent > SLOWEST_CPU_SECONDS and cost(lambda: cpu_seconds(case)) > SLOWEST_CPU_SECONDS * UNITS_IN_A_SECOND
    )


if __name__ == "__main__":
    sys.exit(main())
