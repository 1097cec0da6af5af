"""Times the viewer in a real browser on a cohort of the paper's size (72,562 runs): the list, and one run.

Every figure is the later of the browser's paint time and the moment the rows are in the page, with a freshly started
server. A sweep of 100,000 runs is measured too. Needs Playwright and Chromium,
as `make session NAME=browser` installs them.

python -m benchmarks.viewer [ANALYSIS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from benchmarks.corpus import write_long
from benchmarks.folders import AGENTS, REPORTED, fill, serving
from eirkit.records.analysis import TABLES
from eirkit.vestige.tables import RUN, TableWriter, arrow, read_analysis, read_table, run_ids

RUNS = 72_562
DRAWN = 2_268  # runs that are measured; the others are these again, under other names
COHORT_SECONDS, RUN_SECONDS = 2.0, 1.0  # targets on two cores
TRIALS = 5
CHROMIUM = os.environ.get("EIRKIT_BROWSER", "/usr/bin/chromium")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def main(arguments: list[str] | None = None) -> int:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("not measured: Playwright is missing; run `make session NAME=browser` once")
        return 0
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        given = (arguments or sys.argv[1:])[:1]
        cohort = Path(given[0]) if given else make_cohort(Path(scratch))
        sweep = Path(scratch) / "sweep"
        fill(sweep, AGENTS, REPORTED)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        rows = "section[aria-label=Runs] tbody tr"
        names = run_ids(cohort)
        opened = [seconds(browser, cohort, "", rows) for _ in range(TRIALS)]
        runs = [warm_seconds(browser, cohort, names[place]) for place in (0, len(names) // 2, len(names) - 1)]
        sorting = answer_seconds(cohort)
        growing = [seconds(browser, sweep, "", rows) for _ in range(TRIALS)]
        browser.close()
    lines = [
        (f"cohort of {len(names):,} runs, first rows", statistics.median(opened), max(opened), COHORT_SECONDS),
        ("one run of it, first picture", statistics.median(runs), max(runs), RUN_SECONDS),
        ("its server: sort and filter all runs", sorting, sorting, None),
        (f"sweep of {REPORTED:,} runs, first rows", statistics.median(growing), max(growing), COHORT_SECONDS),
    ]
    print(f"{'':44}{'median':>9}{'worst':>9}{'target':>9}")
    for name, middle, worst, target in lines:
        print(f"{name:44}{middle:8.2f}s{worst:8.2f}s{'' if target is None else f'{target:8.1f}s'}")
    return int(any(target is not None and middle > target for _, middle, _, target in lines))


def make_cohort(folder: Path) -> Path:
    """Analyze some runs as long as recorded ones, and write their tables again and again under other names."""
    write_long(DRAWN, folder / "logs")
    words = [sys.executable, "-m", "eirkit", "vestige", "analyze", folder / "logs", "--out", folder / "drawn", "--json"]
    subprocess.run([*map(str, words), "--workers", "2"], check=True, stdout=subprocess.DEVNULL)
    out, pyarrow = folder / "cohort", arrow()
    summary = replace(read_analysis(folder / "drawn"), runs=RUNS)
    tables = {name: read_table(folder / "drawn", name) for name in TABLES}
    with TableWriter(out, TABLES) as writer:
        for copy in range(-(-RUNS // DRAWN)):
            kept = set(run_ids(folder / "drawn")[: RUNS - copy * DRAWN])
            for name, table in tables.items():
                place = table.schema.get_field_index(RUN)
                own = [run if run in kept else None for run in table[RUN].to_pylist()]
                named = [None if run is None else f"{run}~{copy}" for run in own]
                column = pyarrow.array(named, pyarrow.string())
                writer.copy(name, table.set_column(place, RUN, column).filter(column.is_valid()))
        writer.finish(summary)
    return out


def seconds(browser: Any, folder: Path, query: str, wait: str) -> float:
    """Return how long a fresh server takes until something stands on a fresh page."""
    with serving(folder) as address:
        return _open(browser, address, query, wait)


def warm_seconds(browser: Any, folder: Path, run: str) -> float:
    """Return how long a run's page takes where the cohort has been looked at before."""
    with serving(folder) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("section[aria-label=Runs] tbody tr")
        started = time.perf_counter()
        page.goto(f"{address.partition('?')[0]}?run={run}&at=.")
        page.wait_for_selector(".timeline svg")
        taken = time.perf_counter() - started
        context.close()
        return taken


def _open(browser: Any, address: str, query: str, wait: str) -> float:
    context = browser.new_context()
    page = context.new_page()
    started = time.perf_counter()
    page.goto(address + query)
    page.wait_for_selector(wait)
    taken = time.perf_counter() - started
    painted = float(page.evaluate(_PAINT)) / 1000
    context.close()
    return max(taken, painted)


def answer_seconds(folder: Path) -> float:
    """Return how long the server takes to sort and filter every run of a cohort, by a column not read before."""
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    with serving(folder) as address:
        parts = urlsplit(address)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("GET", f"/api/runs?{parts.query}&at=.&limit=1")
        connection.getresponse().read()
        started = time.perf_counter()
        connection.request("GET", f"/api/runs?{parts.query}&at=.&sort=-dead_read_tokens&min.turns=20&limit=100")
        connection.getresponse().read()
        taken = time.perf_counter() - started
        connection.close()
        return taken


if __name__ == "__main__":
    sys.exit(main())
