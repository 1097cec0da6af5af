"""What was possible with the bits that each cell of a sweep held, for the page of the sweep in the viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eirkit.show.colours import coloured_item
from eirkit.show.document import Figure, drawn_json
from eirkit.show.runs.folder import read_sweep
from eirkit.show.runs.possible import possible_in, section_of

MOST_RUNS = 20_000  # read whole to answer one request; more take longer than a reader waits


def possible_document(folder: Path, runs: int, *, plugins: bool) -> dict[str, Any]:
    """Return the picture of a sweep, its sentences, and its cells as rows; only the reason where there is none."""
    if runs > MOST_RUNS:
        said = f"With more than {MOST_RUNS:,} runs, `eirkit report` draws what was possible."
        return {"words": [said], "figure": None, "cells": []}
    found, unknown = possible_in(read_sweep(folder, plugins=plugins))
    section = section_of(found, unknown)
    figures = (
        [drawn_json(coloured_item(item)) for item in section.items[:1] if isinstance(item, Figure)] if section else []
    )
    cells = [
        {
            "workload": one.spec.workload,
            **cell.as_json(),
            "share": None if cell.share is None else cell.share_in_words,
        }
        for one in found
        for cell in one.cells
    ]
    return {"words": list(section.words) if section else [], "figure": figures[0] if figures else None, "cells": cells}
