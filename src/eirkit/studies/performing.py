"""One study in a process of its own: an id and a setting come in, findings as JSON go out."""

from __future__ import annotations

from typing import Any

from eirkit.report.study import Setting
from eirkit.studies.catalogue import find_study


def perform(piece: tuple[str, Setting]) -> dict[str, Any]:
    """Compute a study."""
    identity, setting = piece
    return find_study(identity).run(setting).as_json()
