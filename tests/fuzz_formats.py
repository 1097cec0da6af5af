"""Breaks small logs of every format in random ways and reads and measures what is left: nothing may raise or hang.

The logs are those of tests/vestige/formats/samples. Half of the damage knows what JSON is: keys are dropped or renamed,
values change their type, lists grow, strings become shell commands, patches and marks of clipping. The other half is
bytes. What breaks is reported once for each place in the code, and the log is kept where --keep says.

python -m tests.fuzz_formats [SECONDS] [--seed N] [--format NAME] [--keep DIR]
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from eirkit.errors import EirkitError
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, measure
from eirkit.vestige.corpus.outcomes import read_outcomes
from eirkit.vestige.corpus.pipeline import analyze_corpus
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import Patch, read_patch
from eirkit.vestige.sources.documents import LogDocument, ReadLimits, open_document
from eirkit.vestige.tokens import estimating_counter, exact_counter
from eirkit.vestige.trajectory import LogFormat, Recording, formats
from tests.vestige.formats.samples import run_paths, sample_files

SLOWEST_CPU_SECONDS = 30  # for a log of some kilobytes, on a slow machine: whatever takes longer does not end in time
WHOLE_EVERY = 50  # one case in so many goes through the whole pipeline, to the tables on disk
LIMITS = ReadLimits(document_bytes=1 << 24, line_bytes=1 << 22)
PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
RESULTS = {
    "results.json": b'{"instances": [{"instance_id": "a__b-1", "resolved": true}]}',
    "report.json": b'{"a__b-1": {"resolved": false}, "a__b-2": {"resolved": true}}',
    "model.run.json": b'{"total_instances": 2, "resolved_ids": ["a__b-1"], "unresolved_ids": ["a__b-2"]}',
    "output.swebench_eval.md": b"## Resolved Instances\n- [a__b-1](x)\n## Unresolved Instances\n- a__b-2\n",
    "outcomes.csv": b"instance_id,resolved\na__b-1,true\n",
}
# Texts that some reader or some table of commands pays attention to.
TEXTS = (
    "cat a.py; sed -n '1,5p' b.py | head",
    "cat > x.py <<'EOF'\nopen('a').write(open('b').read())\nEOF\npython x.py",
    "cat <<EOF",
    "sed -i 's/a/b/' a.py && git diff > /tmp/p; git apply < p",
    'for f in $(ls); do cat "$f"; done',
    "echo 'unbalanced",
    "cd /; cd ..; cd -; cat ../../../etc/passwd > ~/x",
    "$(((((((((((((((((((",
    "python - <<X\nimport pathlib\npathlib.Path('a').write_text('b')\nX",
    "<response clipped>",
    "<output_head>a</output_head><elided_chars>9 characters elided</elided_chars><output_tail>",
    "<returncode>0</returncode>\n<output>\n     1\ta\n     2\tb\n</output>",
    "[File: a.py (3 lines total)]\n1:a\n2:b\n(1 more lines below)",
    "<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>/a.py</parameter>\n</function>",
    "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch",
    "diff --git a/a.py b/a.py\n" + PATCH,
    "```bash\ncat a.py\n```\n```bash\nrm -rf /\n```",
    "FAILED tests/test_a.py::test - AssertionError\n1 failed, 2 passed in 0.1s",
    '{"command": "view", "path": "/a.py", "view_range": [1, -1]}',
    "a\0b",
    "\ud800",
    "é🙂\u2028\x0b\x1b[31m",
    "x" * 5000,
    "a.py\n" * 500,
    "",
)
# Words of which commands are made at random.
WORDS = (
    "cat", "sed -i", "sed -n '1,9p'", "awk 'NR>=1 && NR<=5'", "head -n", "tail -n +3", "grep -rn",
    "find . -name '*.py'", "cp", "mv", "rm -rf", "tee -a", "git checkout --", "git apply", "git stash", "git diff >",
    "patch -p1 <", "cd", "pushd", "python -c", "python", "bash -c", "xargs", "echo", "printf '%s'", "ls", "nl -ba",
    "diff", "touch", "mkdir -p", "export A=", "a.py", "b/c.py", "/tmp/x", "../d", "'*.py'", "$A", "${A:-b}",
    "$(cat a)", "`ls`", "~", "-", "--", "1", "2>&1", "&", "&&", "||", "|", ";", "\n", ">", ">>", "<",
    "<<EOF\nx\nEOF\n", "<<'E'\nopen('a','w').write('b')\nE\n", "<<<", "(", ")", "{", "}", "'", '"', "\\", "#", "if",
    "then", "fi", "for f in", "do", "done", "while", "[[", "]]", "case", "esac", "function", "!",
    "\"import os; open('a').read()\"", "$((1+", "))", "é", "\0", "=", "*", "?", "s/a/b/g",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1.5, -0.0, 1e308, float("nan"), float("inf"),
    [], {}, [[]], [None], {"": None}, "0", "null", [{}] * 3, {"path": "a.py"}, [1, -1], ["a", 2],
)  # fmt: skip
BYTES = (
    b"\0",
    b"\xff",
    b"\n",
    b'"',
    b"{",
    b"]",
    b"\\u",
    b"\\ud800",
    b"1e999",
    b"\r\n",
    b"[" * 2000,
    b"NaN",
    b"\xef\xbb\xbf",
)


GOLD = read_patch(PATCH)
READERS = {name: formats.get(name)() for name in formats.names()}
OPTIONS = AnalysisOptions(read_windows(None))
COUNT = estimating_counter()


class TooSlowError(BaseException):
    """A case that took longer than any should; nothing that catches errors catches it."""


@dataclass(slots=True)
class Findings:
    """What went wrong, once for each place."""

    cases: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    crashes: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Fuzz for so many seconds; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_formats")
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", action="append", choices=formats.names())
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        names = given.format or formats.names()
        found = fuzz(Path(scratch), random.Random(given.seed), until_time(given.seconds), names, given.keep)
    wall_seconds = time.monotonic() - started
    total = found.cases.total()
    for place, text in found.crashes.items():
        print(f"--- {place}\n{text}")
    print(
        f"{total:,} cases in {wall_seconds:.0f} s ({total / wall_seconds:.0f} a second), {found.runs:,} runs measured"
    )
    print(f"{len(found.crashes)} places broke; by format: {dict(sorted(found.cases.items()))}")
    return 1 if found.crashes else 0


def try_case(folder: Path, name: str, number: int) -> int:
    """Read and measure a log that was damaged, and return how many runs it still held."""
    if name == "results":
        return sum(map(_try_results, sorted(folder.iterdir())))
    if number % WHOLE_EVERY == 0:
        _try_whole(folder)
    return _try_format(folder, name)


def until_time(seconds: float) -> Callable[[Findings], bool]:
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() >= end


def until_cases(count: int) -> Callable[[Findings], bool]:
    return lambda found: found.cases.total() >= count


def fuzz(
    folder: Path,
    rng: random.Random,
    is_over: Callable[[Findings], bool],
    names: list[str],
    keep: Path | None = None,
    case: Callable[[Path, str, int], int] = try_case,
) -> Findings:
    """Try damaged logs until that is over."""
    found = Findings()
    signal.signal(signal.SIGPROF, _give_up)
    samples = {name: dict(sample_files(name)) for name in names}
    pool = [content for files in samples.values() for content in files.values()]
    targets: list[tuple[str, dict[str, bytes]]] = [*samples.items(), ("results", RESULTS)]
    while not is_over(found):
        name, files = rng.choice(targets)
        path = rng.choice(sorted(files))
        damaged = damage(files[path], rng, pool)
        found.cases[name] += 1
        _write(folder / name, files | {path: damaged})
        try:
            signal.setitimer(signal.ITIMER_PROF, SLOWEST_CPU_SECONDS)
            found.runs += case(folder / name, name, found.cases.total())
        except (Exception, TooSlowError) as error:  # noqa: BLE001 - finding them is what this is for
            _note(found, error, keep, path, damaged)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return found


def _try_format(folder: Path, name: str) -> int:
    runs = 0
    for path in run_paths(name):
        document = open_document(folder / path, LIMITS)
        for reader in _readers_of(document, name):
            for recording in _recordings(reader, document):
                runs += 1
                _measure(recording, None)
                _measure(recording, GOLD)
    return runs


def _try_whole(folder: Path) -> None:
    """Do what the command does, down to the tables."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            summary = analyze_corpus(
                read_corpus([folder], limits=LIMITS), Path(scratch) / "out", OPTIONS, exact_counter()
            )
        except EirkitError:
            return
        json.dumps(to_builtins(summary), allow_nan=False).encode()
        broken = [item for item in summary.skipped if "; report it" in item.reason]
        assert not broken, broken


def _readers_of(document: LogDocument, name: str) -> list[LogFormat]:
    """Return the format that the log had, and those that take it for theirs now."""
    try:
        assert document.head is not None
    except EirkitError:
        return []
    return [reader for each, reader in READERS.items() if reader.recognizes(document) or each == name]


def _recordings(reader: LogFormat, document: LogDocument) -> list[Recording]:
    try:
        return [item for item in reader.read(document) if isinstance(item, Recording)]
    except EirkitError:
        return []


def _measure(recording: Recording, patch: Patch | None) -> None:
    try:
        measure(recording, patch, OPTIONS, COUNT)
    except EirkitError:
        return


def _try_results(path: Path) -> int:
    try:
        outcomes = read_outcomes(path)
        assert all(type(outcome) is bool for outcome in outcomes.known.values())
    except EirkitError:
        pass
    read_patch(path.read_bytes().decode("utf-8", "replace"))
    return 0  # runs


def _give_up(_signal: int, _frame: object) -> None:
    raise TooSlowError(f"more than {SLOWEST_CPU_SECONDS} seconds")


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def _note(found: Findings, error: BaseException, keep: Path | None, path: str, content: bytes) -> None:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "eirkit" in frame.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"
    if place not in found.crashes:
        found.crashes[place] = "".join(traceback.format_exception(error)[-6:])
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{len(found.crashes)}-{Path(path).name}").write_bytes(content)


def damage(content: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
    """Return a log after one to four accidents."""
    if content.startswith(b"PK") and rng.random() < 0.8:
        return _damaged_archive(content, rng, pool)
    if content.startswith(b"PAR1") and rng.random() < 0.8:
        return _damaged_parquet(content, rng, pool)
    if rng.random() < 0.65:
        content = _damaged_json(content, rng)
    if rng.random() < 0.4:
        for _ in range(rng.randint(1, 3)):
            content = rng.choice(ACCIDENTS)(content, rng, pool)
    return gzip.compress(content) if rng.random() < 0.02 else content


def _damaged_archive(content: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(written, "w") as damaged:
        for name in archive.namelist():
            if rng.random() < 0.9:
                member = archive.read(name)
                damaged.writestr(name, damage(member, rng, pool) if rng.random() < 0.6 else member)
    return written.getvalue()


def _damaged_parquet(content: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
    """Damage the footer or the pages and leave a footer of the length that is claimed."""
    cut = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    pages, footer = content[4:cut], content[cut:-8]
    if rng.random() < 0.7:
        footer = rng.choice(ACCIDENTS)(footer, rng, pool)
    else:
        pages = rng.choice(ACCIDENTS)(pages, rng, pool)
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _damaged_json(content: bytes, rng: random.Random) -> bytes:
    try:
        values = [json.loads(content)]
    except ValueError:
        lines = content.splitlines()
        try:
            values = [json.loads(line) for line in lines if line.strip()]
        except ValueError:
            return content
    for _ in range(rng.randint(1, 4)):
        _damage_value(values, rng)
    return b"\n".join(json.dumps(value).encode() for value in values) + b"\n"


def _damage_value(value: Any, rng: random.Random) -> None:
    """Change one place in a tree, each level as likely as the next."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        child = value[key]
        if isinstance(child, dict | list) and child and rng.random() < 0.85:
            value = child
            continue
        _damage_at(value, key, rng)
        return


def _damage_at(value: Any, key: Any, rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del value[key]
    elif kind == 1:
        value[key] = json.loads(json.dumps(rng.choice(VALUES)))
    elif kind == 2:
        value[key] = _text(rng)
    elif kind == 3 and isinstance(value, list):
        value[key:key] = [value[key]] * rng.randint(1, 3)
    elif kind == 4 and isinstance(value, dict):
        value[rng.choice(["id", "type", "role", "content", "path", f"{key}_"])] = value.pop(key)
    elif isinstance(value[key], str):
        start = rng.randrange(len(value[key]) + 1)
        value[key] = value[key][:start] + _text(rng) + value[key][start:]
    else:
        value[key] = [value[key]] if rng.random() < 0.5 else {"value": value[key]}


def _text(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(TEXTS)
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12)))


def _truncate(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flip(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _insert(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(BYTES) + content[start:]


def _splice(content: bytes, rng: random.Random, pool: list[bytes]) -> bytes:
    other = rng.choice(pool)
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def _repeat(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] * rng.randint(1, 5) + content[end:]


def _drop(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:]


def _shuffle_lines(content: bytes, rng: random.Random, _pool: list[bytes]) -> bytes:
    lines = content.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


ACCIDENTS = (_truncate, _flip, _insert, _splice, _repeat, _drop, _shuffle_lines)

if __name__ == "__main__":
    sys.exit(main())
