"""Draws dependency graphs from seeds, before any operator is chosen, and reads them from JSON files.

References of many tasks are one array of shape (seeds, n, fan_in): ascending identifiers from 1, then zeros.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import InputFileError
from eirkit.seeds import below, words
from eirkit.tasks.task import LARGEST_TASK, LARGEST_WIDTH

References = NDArray[np.int32]

LARGEST_FILE_BYTES = 64 << 20
_EXAMPLE = "{'steps': [{'t': 1, 'refs': []}]}"
_UNUSED = np.int32(LARGEST_TASK)  # above every position in a window


def draw_references(seeds: Sequence[int] | NDArray[Any], n: int, reach: int, fan_in: int) -> References:
    """Draw the base graph: step t refers to min(fan_in, available) distinct steps of max(1, t − reach) … t − 1."""
    drawn = words(seeds, n * fan_in, "graph").reshape(-1, n, fan_in)
    steps = np.arange(1, n + 1, dtype=np.int32)
    available = np.minimum(steps - 1, reach)
    picked: list[References] = []  # ascending positions in the window; unused ones last
    for i in range(fan_in):
        position = below(drawn[:, :, i], np.maximum(available - i, 0)).astype(np.int32)
        # The draw counts only steps not picked yet: shift it past those below it, in ascending order.
        for earlier in picked:
            position += position >= earlier
        position[:, available <= i] = _UNUSED
        for place, earlier in enumerate(picked):
            picked[place], position = np.minimum(earlier, position), np.maximum(earlier, position)
        picked.append(position)
    positions = np.stack(picked, axis=2)
    return np.where(positions == _UNUSED, 0, positions + np.maximum(1, steps - reach)[:, None]).astype(np.int32)


def as_tuples(references: References) -> tuple[tuple[int, ...], ...]:
    """Return one task's references, shape (n, fan_in), as plain tuples without the padding."""
    return tuple(tuple(filter(None, row)) for row in references.tolist())


def load_graph(path: Path) -> tuple[tuple[int, ...], ...]:
    """Read `{"steps": [{"t": 1, "refs": []}, …]}`: any acyclic graph whose edges point back in time.

    Raises:
        InputFileError: the file cannot be read or is not such a graph; the message names the first fault.
    """
    document = _read_json(path)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps:
        raise InputFileError(f"{path}: there is no list 'steps'; write {_EXAMPLE}")
    if len(steps) > LARGEST_TASK:
        raise InputFileError(f"{path}: {len(steps)} steps, the limit is {LARGEST_TASK}; use a smaller graph")
    nodes = _numbered(path, steps)
    _check_edges(path, nodes)
    return tuple(nodes[t] for t in range(1, len(nodes) + 1))


def _read_json(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise InputFileError(f"{path}: more than {LARGEST_FILE_BYTES} bytes; use a smaller graph")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path}: not JSON ({error}); write {_EXAMPLE}") from error


def _numbered(path: Path, steps: list[Any]) -> dict[int, tuple[int, ...]]:
    """Return each step's references, ascending, after the steps themselves have been checked one by one."""
    nodes: dict[int, tuple[int, ...]] = {}
    for position, step in enumerate(steps, 1):
        t, refs = (step.get("t"), step.get("refs")) if isinstance(step, dict) else (None, None)
        if type(t) is not int or not isinstance(refs, list) or any(type(r) is not int for r in refs):
            raise InputFileError(
                f"{path}: entry {position} of 'steps' is not {{'t': int, 'refs': [int, …]}}; correct it"
            )
        if not 1 <= t <= len(steps):
            raise InputFileError(
                f"{path}: there are {len(steps)} steps, but one has t = {t}; number them 1 … {len(steps)} without gaps"
            )
        if t in nodes:
            raise InputFileError(f"{path}: step {t} appears twice; give every step its own t")
        if len(set(refs)) != len(refs):
            raise InputFileError(f"{path}: step {t} refers to one step twice; list each needed step once")
        if len(refs) > LARGEST_WIDTH:
            raise InputFileError(f"{path}: step {t} has {len(refs)} references; keep at most {LARGEST_WIDTH}")
        nodes[t] = tuple(sorted(refs))
    return nodes


def _check_edges(path: Path, nodes: dict[int, tuple[int, ...]]) -> None:
    for t, refs in sorted(nodes.items()):
        for r in refs:
            if r not in nodes:
                raise InputFileError(f"{path}: step {t} refers to step {r}, which does not exist; add it or drop it")
            if r >= t and _reaches(nodes, r, t):
                raise InputFileError(f"{path}: step {t} refers to step {r} and closes a cycle; break the cycle")
            if r >= t:
                raise InputFileError(
                    f"{path}: step {t} refers forward to step {r}; number the steps in the order of their computation"
                )


def _reaches(nodes: dict[int, tuple[int, ...]], start: int, goal: int) -> bool:
    found, open_steps = {start}, [start]
    while open_steps and goal not in found:
        fresh = set(nodes.get(open_steps.pop(), ())) - found
        found |= fresh
        open_steps.extend(fresh)
    return goal in found
