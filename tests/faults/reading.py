"""Reads logs that change meanwhile, lines of a gigabyte and archives made by hand, and measures time and memory.

python -m tests.faults.reading [N] [SEED]     prints what was tried, what held, and the most memory

A trial holds if the command ends by itself without a traceback, and every run of a file that nobody touched is there.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.processes import completed, running

EIRKIT = [sys.executable, "-m", "eirkit"]
GIGABYTE = 1 << 30
ENLARGE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:  # SQLite stores rows of up to 1,000,000,000 bytes
    connection.execute("UPDATE records SET record = zeroblob(999000000) WHERE run = 2")
"""
MOST_BYTES = GIGABYTE  # of memory, for a line of a gigabyte: it is never read as a whole
FILES, KEPT = 60, 20  # of a corpus that changes while it is read; the first of them are left alone
PATIENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and the most memory that it had."""

    code: int
    said: str
    peak_bytes: int


def call(*words: object) -> Ended:
    """Run a command; `wait4` tells the memory of this process alone."""
    with (
        tempfile.TemporaryFile() as said,
        running([*EIRKIT, *words], stdout=said, stderr=said, stdin=subprocess.DEVNULL) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return Ended(process.returncode, said.read().decode(errors="replace"), usage.ru_maxrss * 1024)


def wrong_in(done: Ended) -> str:
    if "Traceback" in done.said or done.code not in (0, 1, 2):
        return f"exit {done.code}: {done.said[-400:]}"
    return f"{done.peak_bytes >> 20} MiB of memory" if done.peak_bytes > MOST_BYTES else ""


def line(name: str, filling: str = "") -> str:
    turns = [{"reads": [{"path": "a.py", "tokens": 3}], "writes": [{"path": "b.py"}], "text": filling}] * 20
    return json.dumps({"run_id": name, "goal_files": ["b.py"], "turns": turns}) + "\n"


# --- files that change ------------------------------------------------------------------------------------------------


def append(path: Path) -> None:
    with path.open("a") as stream:
        stream.write(line(f"more-{path.stem}"))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def exchange(path: Path) -> None:
    other = path.with_name(f".{path.name}")
    other.write_text(line(f"other-{path.stem}") * 3)
    other.replace(path)


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: Sequence[Callable[[Path], object]] = (append, cut, exchange, Path.unlink, become_a_folder)


def changing(folder: Path, rng: random.Random) -> tuple[Ended, str]:
    """Analyze a corpus while most of its files change in random ways."""
    logs = folder / "logs"
    logs.mkdir()
    paths = [logs / f"{number:03d}.jsonl" for number in range(FILES)]
    for path in paths:
        path.write_text("".join(line(f"{path.stem}-{number}", "x" * 2000) for number in range(5)))
    over = threading.Event()

    def change() -> None:
        while not over.wait(rng.uniform(0, 0.05)):
            with suppress(OSError):
                rng.choice(CHANGES)(rng.choice(paths[KEPT:]))

    changer = threading.Thread(target=change)
    changer.start()
    try:
        done = call("vestige", "analyze", logs, "--out", folder / "out", "--json")
    finally:
        over.set()
        changer.join()
    if (fault := wrong_in(done)) or done.code:
        return done, fault or done.said[-400:]
    rows = call("vestige", "query", folder / "out", "SELECT run_id FROM runs", "--json").said
    missing = [
        f"{path.stem}-{number}" for path in paths[:KEPT] for number in range(5) if f'"{path.stem}-{number}' not in rows
    ]
    return done, f"runs of untouched files are missing: {missing[:3]}" if missing else ""


# --- lines of a gigabyte ----------------------------------------------------------------------------------------------


def long_line(folder: Path, rng: random.Random) -> tuple[Ended, str]:
    """Read a log, a packed log, the runs of a sweep or their export, of which one line or record has a gigabyte."""
    kind = rng.choice(("log", "packed", "sweep", "export"))
    if kind in ("sweep", "export"):
        tasks = ["store-recall", "--n", 6, "--m", 4, "--h", 2, "--seeds", "0:3", "--no-control"]
        assert call("lacuna", "run", *tasks, "--model", "reference/calculator", "--out", folder / "out").code == 0
        if kind == "sweep":
            # Not in this process, whose memory would count as that of the command.
            completed([sys.executable, "-c", ENLARGE, folder / "out" / "sweep.db"], check=True)
            done = call("report", folder / "out", "--out", folder / "page.html")
            is_refused = done.code == 2 and "sweep.db" in done.said and "restore the file" in done.said
            return done, wrong_in(done) or ("" if is_refused else done.said[-400:])
        assert call("export", "jsonl", folder / "out", "--out", folder / "lines").code == 0
        with (folder / "lines" / "runs.jsonl").open("ab") as stream:
            stream.write(b'{"run":"')
            fill(stream.write)
            stream.write(b'"}\n')
        done = call("vestige", "analyze", folder / "lines", "--out", folder / "analysis", "--json")
        return done, wrong_in(done) or ("" if "restore the file" in done.said else done.said[-400:])
    opened = gzip.open if kind == "packed" else open
    path = folder / ("log.jsonl.gz" if kind == "packed" else "log.jsonl")
    with opened(path, "wb") as stream:
        stream.write(line("before").encode())
        stream.write(b'{"run_id": "long", "turns": [{"text": "')
        fill(stream.write)
        stream.write(b'"}]}\n' + line("after").encode())
    done = call("vestige", "analyze", path, "--out", folder / "out", "--json")
    if fault := wrong_in(done):
        return done, fault
    rows = call("vestige", "query", folder / "out", "SELECT run_id FROM runs", "--json").said
    return done, "" if '"before"' in rows and '"skipped": [{' in done.said else done.said[-400:]


def fill(write: Callable[[bytes], object]) -> None:
    for _ in range(GIGABYTE >> 22):
        write(b"x" * (1 << 22))


# --- archives made by hand --------------------------------------------------------------------------------------------

HEADER = json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "dataset": {}}})
SAMPLE = json.dumps({"id": "s", "epoch": 1, "messages": [{"role": "user", "content": "Begin."}], "scores": {}})


def archive(folder: Path, rng: random.Random) -> tuple[Ended, str]:
    """Read an `.eval` file that lies: about sizes, names, methods, flags, or places; or that holds far too much."""
    path, trick = folder / "made.eval", rng.choice(("size", "name", "method", "flag", "place", "bomb", "twice", "deep"))
    names = ["header.json", "samples/s_epoch_1.json"]
    names += ["../../escaped.json", "/absolute.json", "samples\\..\\..\\x.json"] if trick == "name" else []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, HEADER if "header" in name else SAMPLE)
        if trick == "bomb":
            made.writestr("samples/b_epoch_1.json", b"[" + b"0," * (200 << 20) + b"0]")
        elif trick == "deep":
            made.writestr("samples/d_epoch_1.json", "[" * 200_000)
        elif trick == "twice":
            made.comment = b"PK\x05\x06" * 8
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    at = {"size": (24, "<I", 0xFFFFFFF0), "method": (10, "<H", 99), "flag": (8, "<H", 1), "place": (42, "<I", 1 << 30)}
    if trick in at:
        offset, form, value = at[trick]
        struct.pack_into(form, content, entry + offset, value)
        path.write_bytes(content)
    before = set(folder.parents[1].rglob("*"))
    done = call("vestige", "analyze", path, "--out", folder / "out", "--json")
    written = set(folder.parents[1].rglob("*")) - before - {folder / "out", *(folder / "out").rglob("*")}
    return done, wrong_in(done) or (f"wrote {written}" if written else "")


TRIALS = {
    "files that change while they are read": changing,
    "lines of a gigabyte": long_line,
    "archives by hand": archive,
}


def main(count: int = 40, seed: int | None = None) -> int:
    """Perform so many trials, of which few have lines of a gigabyte, and print the figures."""
    seed = time.time_ns() % 1_000_000 if seed is None else seed
    print(f"{count} trials, seed {seed}", flush=True)
    rng, tried, held, peak = random.Random(seed), Counter[str](), Counter[str](), Counter[str]()
    for number in range(count):
        name = "lines of a gigabyte" if number % 10 == 3 else list(TRIALS)[2 * (number % 2)]
        root = Path(tempfile.mkdtemp(prefix="reading-"))
        (folder := root / "outer" / "inner").mkdir(parents=True)
        try:
            done, fault = TRIALS[name](folder, rng)
        finally:
            shutil.rmtree(root, ignore_errors=True)
        tried[name] += 1
        held[name] += not fault
        peak[name] = max(peak[name], done.peak_bytes)
        if fault:
            print(f"{name}: {fault}", flush=True)
    print(f"{'fault':<40} tried  held  most memory")
    for name in TRIALS:
        print(f"{name:<40} {tried[name]:>5} {held[name]:>5} {peak[name] >> 20:>8} MiB")
    return int(held != tried)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
