"""Shows that the check of the ledger finds what it is for, and nothing else: `python -m benchmarks.planted [TIMES]`.

The session, the reader and the counter are each made twice as slow in a copy of the package, and the ledger is checked
there TIMES times (three by default); then the honest package is checked as often. Busy loops, one for each core and one
more, run beside all of it. It fails if a slowdown is missed or an honest check raises an alarm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
# The claim that measures it, the module, and the function that is made slow.
PLANTS = {
    "sessions": ("eirkit/lacuna/agents/driver.py", "drive"),
    "reader": ("eirkit/vestige/corpus/pipeline.py", "analyze_corpus"),
    "counter": ("eirkit/eir/windows.py", "count_visible"),
}
# A call takes as much CPU time again as it has taken.
SLOWED = """

def _slowed(work):
    import inspect
    import time

    def again(start):
        end = 2 * time.process_time() - start
        while time.process_time() < end:
            pass

    async def later(*arguments, **options):
        start = time.process_time()
        try:
            return await work(*arguments, **options)
        finally:
            again(start)

    def now(*arguments, **options):
        start = time.process_time()
        try:
            return work(*arguments, **options)
        finally:
            again(start)

    return later if inspect.iscoroutinefunction(work) else now


{name} = _slowed({name})
"""
BUSY = "numbers = list(range(100_000))\nwhile True: sorted(numbers, key=lambda n: -n)"


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the machine busy with work that uses its caches."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in started:
            loop.kill()
            loop.wait()


@contextmanager
def planted(claim: str) -> Iterator[Path]:
    """Yield the sources of a package in which the work of a claim takes twice as long."""
    module, name = PLANTS[claim]
    with TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        with (source / module).open("a", encoding="utf-8") as stream:
            stream.write(SLOWED.format(name=name))
        yield source


def raises_alarm(claims: Sequence[str], source: Path) -> bool:
    """Check claims about the package in a folder; print what the check prints."""
    command = [sys.executable, "-m", "benchmarks.ledger", "--check", *claims]
    variables = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode and "slower than before" not in done.stderr:
        raise SystemExit(done.stderr)
    print(done.stdout, end="", flush=True)
    return done.returncode != 0


def main(arguments: Sequence[str] = ()) -> int:
    """Plant, check, and say how often the check was right."""
    times = int(arguments[0]) if arguments else 3
    wrong = 0
    with busy((os.cpu_count() or 2) + 1):
        for claim in PLANTS:
            with planted(claim) as source:
                caught = sum(raises_alarm([claim], source) for _ in range(times))
            print(f"{claim} twice as slow: caught {caught} of {times}", flush=True)
            wrong += times - caught
        alarms = sum(raises_alarm([], ROOT / "src") for _ in range(times))
    print(f"honest checks of all claims: {alarms} alarms in {times}", flush=True)
    return int(wrong + alarms > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
