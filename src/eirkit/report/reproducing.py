"""Runs studies over cores and keeps what they found: a study that has been computed as it stands is read back.

Findings lie in DIR/studies/ID.json under the key of what made them: the package's source, its version and the setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit import __version__
from eirkit.engine.mapping import Engine, Lost
from eirkit.errors import InfrastructureError, InputFileError
from eirkit.records import read_document, write_document
from eirkit.report.study import Findings, Setting, Study, findings_from

SCHEMA = "study/1"
_PACKAGE = Path(__file__).parents[1]
_UNSEEN = ("cli", "bridges", "report")  # rooms that show figures and compute none

Perform = Callable[[tuple[str, Setting]], dict[str, Any]]  # a study's id and its setting → findings as JSON


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a study."""

    study: Study
    findings: Findings | None  # None: lost
    reason: str = ""  # why it was lost
    was_kept: bool = False  # read back from an earlier run


class StudyStore:
    """The findings in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "studies"

    def find(self, study: Study, setting: Setting) -> Findings | None:
        """Return what was kept of a study; None if it was made by other source or with another setting."""
        path = self._path(study)
        if not path.is_file():
            return None
        try:
            document = read_document(path, SCHEMA)
        except InputFileError:
            return None  # of another version, or torn: it is made again
        return findings_from(document["findings"]) if document.get("key") == key_of(study, setting) else None

    def keep(self, study: Study, setting: Setting, found: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        document = {**study.as_json(), "setting": study.own(setting).as_json(), "eirkit": __version__}
        write_document(self._path(study), SCHEMA, {"key": key_of(study, setting), **document, "findings": found})

    def _path(self, study: Study) -> Path:
        return self.folder / f"{study.id}.json"


def key_of(study: Study, setting: Setting) -> str:
    """Return what findings follow from: the source, the version, the study and all of its setting."""
    asked = json.dumps(study.own(setting).as_json(), sort_keys=True, default=str)
    return sha256("\n".join((__version__, source_digest(), study.id, asked)).encode()).hexdigest()


@cache
def source_digest() -> str:
    """Return a digest of all source that can change a figure."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        inside = path.relative_to(_PACKAGE)
        if inside.parts[0] not in _UNSEEN:
            digest.update(f"{inside}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def run_studies(
    studies: Sequence[Study],
    setting: Setting,
    store: StudyStore,
    engine: Engine | None,
    perform: Perform,
    *,
    fresh: bool = False,
) -> Iterator[Outcome]:
    """Yield what came of each study, those that were kept first; without an engine they run here, one by one.

    Args:
        fresh: compute again what is kept.
    """
    left = []
    for study in studies:
        kept = None if fresh else store.find(study, setting)
        if kept is not None:
            yield Outcome(study, kept, was_kept=True)
        else:
            left.append(study)
    left.sort(key=lambda study: -study.cost)  # the longest first, so that no core waits for it at the end
    pieces = [(study.id, study.own(setting)) for study in left]
    for number, found in _performed(pieces, engine, perform):
        if isinstance(found, str):
            yield Outcome(left[number], None, found)
            continue
        store.keep(left[number], setting, found)
        yield Outcome(left[number], findings_from(found))


def _performed(
    pieces: Sequence[tuple[str, Setting]], engine: Engine | None, perform: Perform
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    if engine is None:
        for number, piece in enumerate(pieces):
            try:
                yield number, perform(piece)
            except InfrastructureError as error:
                yield number, str(error)
        return
    for outcome in engine.map(perform, pieces):
        yield outcome.number, outcome.reason if isinstance(outcome, Lost) else outcome.value
