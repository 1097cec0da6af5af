"""`check_format`: the conformance suite of log formats, with complete, truncated and damaged samples."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.errors import EirkitError, InputFileError, UsageError, describe
from eirkit.registry import attribute, call
from eirkit.testing.conformance import Conformance, try_all
from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import Call, LogFormat, RecordedTurn, Recording, formats

EVERY = 1_024  # bytes; a shorter sample is truncated at every byte, a longer one at this many positions
POINTS = 128
REPLACED = 100  # values of a JSON sample that are replaced, spread over it
ODD_VALUES: tuple[Any, ...] = (None, True, -1, 1e308, "", "\x00\u202e", [], {}, [[None]], {"role": ["a"]})
ODD_FILES = (
    b"",
    b"{",
    b"[" * 1_000,
    b"\x00" * 50,
    b"\xff\xfe\x00",
    b"null",
    b'"text"\n"text"\n',
    b'{"messages": [null, {"role": ["a"], "tool_calls": {"x": 1}}]}',
    *(json.dumps(value).encode() for value in ODD_VALUES),
)


def check_format(
    format: type[LogFormat] | str, samples: Sequence[Path], *, folder: Path | None = None, others: Sequence[Path] = ()
) -> Conformance:
    """Run the conformance suite on a format and return what held.

    Args:
        format: the class, its registered name, or `path/file.py:Name`.
        samples: small logs of this format, at least one.
        folder: the folder of the samples, if a run consists of several files; it is copied.
        others: logs of other formats, which must not be recognized.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        UsageError: no sample was given.
    """
    kind = formats.get(format) if isinstance(format, str) else format
    if not samples:
        raise UsageError("check_format was given no sample; give the paths of one or two small logs")
    return try_all(_Subject(kind, tuple(samples), folder, tuple(others)), REQUIREMENTS)


@dataclass(frozen=True, slots=True)
class _Subject:
    kind: type[LogFormat]
    samples: tuple[Path, ...]
    folder: Path | None
    others: tuple[Path, ...]

    def recognizes(self, path: Path) -> int:
        return _recognized(call("format", self.kind), path)

    def read(self, path: Path) -> list[Recording | Skipped]:
        """Read a file as a corpus does: what our own errors say is said of the file."""
        document = open_document(path)
        reader = call("format", self.kind)
        try:
            items = list(reader.read(document))
        except InputFileError as error:
            return [Skipped(document.source, str(error))]
        except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
            attribute("format", self.kind.__name__, "read", error)
        return _well_formed(items)

    @contextmanager
    def copies(self) -> Iterator[list[Path]]:
        """Yield copies of the samples that may be damaged."""
        with TemporaryDirectory(prefix="eirkit-") as made:
            if self.folder is not None:
                shutil.copytree(self.folder, made, dirs_exist_ok=True)
                yield [Path(made) / sample.relative_to(self.folder) for sample in self.samples]
            else:
                yield [Path(shutil.copy(sample, made)) for sample in self.samples]


def _recognized(reader: LogFormat, path: Path) -> int:
    """Return how sure a reader is of a file; no format is asked about one that has no readable beginning."""
    document = open_document(path)
    try:
        if document.head is None:
            return 0
    except InputFileError:
        return 0
    return int(call("format", reader.recognizes, document))


def _rivals(subject: _Subject, path: Path) -> dict[str, int]:
    """Return how sure each other installed format is of a file."""
    kinds = {name: formats.get(name) for name in formats.names()}
    others = {name: kind for name, kind in kinds.items() if kind is not subject.kind}
    return {name: _recognized(kind(), path) for name, kind in others.items() if not issubclass(subject.kind, kind)}


def _well_formed(items: list[Recording | Skipped]) -> list[Recording | Skipped]:
    for item in items:
        assert isinstance(item, Recording | Skipped), f"it yielded a {type(item).__name__}; yield Recording or Skipped"
        assert item.source, "what it yielded has no source; give document.source"
        if isinstance(item, Skipped):
            assert item.reason, "something was skipped without a reason"
            continue
        assert item.run_id, "a run has no name; give run_id"
        assert item.task_id, "a run has no task; give task_id"
        assert item.format, "a run does not say of which format it is; give format"
        for turn in item.turns:
            assert isinstance(turn, RecordedTurn), f"a turn is a {type(turn).__name__}; make it a RecordedTurn"
            _check_calls(turn)
    return items


def _check_calls(turn: RecordedTurn) -> None:
    for made in turn.calls:
        assert isinstance(made, Call), f"a call is a {type(made).__name__}; make it a Call"
        texts = isinstance(made.tool, str) and isinstance(made.output, str)
        assert texts, "the tool or the output of a call is no text"
        assert made.exit_code is None or isinstance(made.exit_code, int), "an exit code is no number"


def _says(subject: _Subject) -> None:
    """It says in its docstring what it reads."""
    assert (subject.kind.__doc__ or "").strip(), "it has no docstring; write one sentence, which listings show"


def _knows_its_own(subject: _Subject) -> None:
    """Its logs are recognized by it, and no other installed format is as sure of them."""
    for sample in subject.samples:
        sure = subject.recognizes(sample)
        assert sure, f"{sample.name} is not recognized"
        for name, certainty in _rivals(subject, sample).items():
            assert certainty < sure, f"{sample.name} is also recognized as {name}"


def _leaves_others(subject: _Subject) -> str | None:
    """Logs of other formats are not recognized, or less surely than by their own."""
    for other in subject.others:
        sure = subject.recognizes(other)
        is_left = not sure or sure < max(_rivals(subject, other).values())
        assert is_left, f"{other.name} is recognized and is of another format"
    return None if subject.others else "no log of another format was given to be told apart"


def _reads(subject: _Subject) -> None:
    """Whole logs are read, with nothing skipped."""
    for sample in subject.samples:
        items = subject.read(sample)
        assert items, f"{sample.name} holds no run"
        for item in items:
            assert isinstance(item, Recording), f"{sample.name}: {item.reason if isinstance(item, Skipped) else item}"


def _repeats(subject: _Subject) -> None:
    """Reading twice gives the same."""
    for sample in subject.samples:
        assert subject.read(sample) == subject.read(sample), f"{sample.name} is read in two ways"


def _bears_cuts(subject: _Subject) -> str:
    """A log that ends too early is skipped with a reason or read in part, wherever it is cut."""
    cuts = 0
    with subject.copies() as paths:
        for path in paths:
            content = path.read_bytes()
            step = 1 if len(content) <= EVERY else len(content) // POINTS
            for end in range(0, len(content), step):
                path.write_bytes(content[:end])
                _damaged(subject, path, f"{path.name} cut after {end} of {len(content)} bytes")
                cuts += 1
            path.write_bytes(content)
    return f"{cuts} cuts of {len(subject.samples)} logs"


def _bears_other_values(subject: _Subject) -> None:
    """A JSON log with a value replaced is read or skipped."""
    with subject.copies() as paths:
        for path in paths:
            content = path.read_bytes()
            for number, damaged in enumerate(_replaced(content)):
                path.write_bytes(damaged)
                _damaged(subject, path, f"{path.name} with value {number} replaced")
            path.write_bytes(content)


def _bears_anything(subject: _Subject) -> None:
    """No bytes make it raise."""
    with TemporaryDirectory(prefix="eirkit-") as made:
        for ending in (".json", ".jsonl"):
            path = Path(made, f"log{ending}")
            for content in ODD_FILES:
                path.write_bytes(content)
                _damaged(subject, path, f"a file {content[:20]!r}")


def _damaged(subject: _Subject, path: Path, what: str) -> None:
    try:
        subject.recognizes(path)
        subject.read(path)
    except (AssertionError, EirkitError) as error:
        raise AssertionError(f"{what}: {describe(error)}") from error


def _replaced(content: bytes) -> Iterator[bytes]:
    """Yield JSON, or lines of JSON, with one value after the other replaced; nothing for other content."""
    try:
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return
    places = _places(lines)
    for number, (container, key) in enumerate(places[:: max(1, len(places) // REPLACED)]):
        before = container[key]
        container[key] = ODD_VALUES[number % len(ODD_VALUES)]
        yield "\n".join(map(json.dumps, lines)).encode()
        container[key] = before


def _places(lines: list[Any]) -> list[tuple[Any, Any]]:
    """List every (container, key) inside JSON values."""
    found, waiting = [], [lines]
    while waiting:
        container: Any = waiting.pop()
        for key in list(container) if isinstance(container, dict) else range(len(container)):
            found.append((container, key))
            if isinstance(container[key], dict | list):
                waiting.append(container[key])
    return found


REQUIREMENTS = (
    _says,
    _knows_its_own,
    _leaves_others,
    _reads,
    _repeats,
    _bears_cuts,
    _bears_other_values,
    _bears_anything,
)
