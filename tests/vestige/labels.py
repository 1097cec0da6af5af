"""Commands of recorded runs, labeled by hand one by one: which files each showed, and which files it changed.

`labels.jsonl`, `drawn_labels.jsonl` and `third_draw_labels.jsonl` name set, run, turn and call with a hash of the
command, never its text. The first holds single commands; the others every action of runs that were drawn by lot, of
long runs forty or fourteen in a row (`docs/design/what-an-action-touched.md`). What the labels hold:

- A file is read where the answer shows lines of it: views, matches of a search, diffs, printed sources, an old version.
  Names alone, tracebacks, test reports and warnings are no reads, nor is a file that a script opens and does not show.
- A file is written where its content changes: made, edited, removed, moved, put back. An edit that was refused changes
  nothing, nor does a script that stops early or writes back what was there. What an editor shows after an edit belongs
  to the edit. Products of builds, installed packages, caches and temporary files that go again are left out.
- Paths are relative to the repository where they lie in it, else absolute.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eirkit.vestige.trajectory import Call

LABELS = Path(__file__).with_name("labels.jsonl")
DRAWN = Path(__file__).with_name("drawn_labels.jsonl")
THIRD_DRAW = Path(__file__).with_name("third_draw_labels.jsonl")

Half = Literal["build", "held-out"]


@dataclass(frozen=True, slots=True)
class Label:
    """One command and the files that it touched."""

    set: str
    run: str
    turn: int  # from 1
    call: int  # in the turn, from 0
    sha256: str  # of `command_text`, its first 16 digits
    split: Half | Literal["drawn"]
    reads: frozenset[str]
    writes: frozenset[str]
    note: str = ""


def read_labels(path: Path = LABELS) -> tuple[Label, ...]:
    """Return all labels of a file in its order."""
    return tuple(_label(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())


def command_text(call: Call) -> str:
    """Return what is hashed: a shell command as it is, any other call as its tool and its arguments in JSON."""
    command = call.arguments.get("command")
    if call.tool == "bash" and isinstance(command, str):
        return command
    return call.tool + " " + json.dumps(dict(call.arguments), sort_keys=True, ensure_ascii=False)


def hash_of(text: str) -> str:
    """Return the hash that the labels give for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def half_of(label: Label) -> Half:
    """Return the half that a command's place and hash put it in: no label has a say in it."""
    key = f"{label.set}/{label.run}/{label.turn}/{label.call}/{label.sha256}"
    return "build" if int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2 == 0 else "held-out"


def _label(row: dict[str, object]) -> Label:
    reads, writes = row.pop("reads"), row.pop("writes")
    assert isinstance(reads, list)
    assert isinstance(writes, list)
    return Label(**row, reads=frozenset(reads), writes=frozenset(writes))  # type: ignore[arg-type]
