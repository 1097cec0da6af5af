"""What each test costs: with EIRKIT_COSTS=FILE in the environment, pytest appends one line per phase of a test.

CPU time of the test and of the processes that it started and waited for, in seconds, a tab, the phase, a tab, the test.
`python -m tests.costs FILE` prints the sum, the files and the tests that cost the most.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes

SHOWN = 40


def _spent() -> float:
    times = os.times()
    others = (*processes.KEPT, processes.parent_of_workers())
    return times.user + times.system + times.children_user + times.children_system + sum(map(_spent_by, others))


def _spent_by(pid: int | None) -> float:
    """Return the CPU time of a server that tests share, and of the commands that it has run."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, after_name[11:15])) / os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _measured(item, "setup")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _measured(item, "call")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield from _measured(item, "teardown")


def _measured(item: pytest.Item, phase: str) -> Iterator[None]:
    before = _spent()
    try:
        yield
    finally:
        with Path(os.environ["EIRKIT_COSTS"]).open("a", encoding="utf-8") as costs:
            costs.write(f"{_spent() - before:.3f}\t{phase}\t{item.nodeid}\n")


def main(path: str) -> None:
    """Print the sum, and the files and the tests that cost the most."""
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for line in Path(path).read_text("utf-8").splitlines():
        seconds, _, test = line.split("\t", 2)
        tests[test] += float(seconds)  # type: ignore[assignment]
        files[test.split("::")[0]] += float(seconds)  # type: ignore[assignment]
    print(f"{sum(tests.values()):.0f} CPU seconds for {len(tests)} tests")
    for title, costs in (("files", files), ("tests", tests)):
        print(f"\n{title}")
        for name, seconds in costs.most_common(SHOWN):
            print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
