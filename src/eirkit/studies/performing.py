"""One study in a process of its own: an id and a setting come in, findings as JSON go out."""

from __future__ import annotations

from typing import Any

from eirkit.lacuna.bundled.remembering import Memory, remembering
from eirkit.report.study import Setting
from eirkit.studies.catalogue import find_study

_STEPS: Memory = {}  # of the bundled network, over all studies of this process


def perform(piece: tuple[str, Setting]) -> dict[str, Any]:
    """Compute a study; what the bundled network wrote for one it need not write for another."""
    identity, setting = piece
    with remembering(_STEPS):
        return find_study(identity).run(setting).as_json()
