"""Which tests were fixed before the data were seen: a suite file comes in, corrected p values go out.

A suite file is TOML: `[cohort]` with `planned = ["test", …]`, optionally `recorded` (a date, as text), `seed`,
`resamples`, `mediation-resamples`, `draws` and `resample = "tasks" | "runs"`. Every other test is exploratory.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, UnknownNameError
from eirkit.vestige.analyses.setting import Settings

_INTEGERS = {"seed": 0, "resamples": 20, "mediation-resamples": 20, "draws": 200}  # each with its least value
_KEYS = frozenset({"planned", "recorded", "resample", *_INTEGERS})


@dataclass(frozen=True, slots=True)
class Plan:
    """What was fixed in advance."""

    planned: tuple[str, ...] = ()
    recorded: str = ""  # when, as the file says
    digest: str = ""  # SHA-256 of the file
    settings: Settings = field(default_factory=Settings)


def read_plan(path: Path, tests: Collection[str]) -> Plan:
    """Return the plan in a suite file.

    Raises:
        InputFileError: it is not such a file.
        UnknownNameError: it plans a test that does not exist.
    """
    try:
        content = path.read_bytes()
        given = tomllib.loads(content.decode("utf-8"))["cohort"]
        planned = given.get("planned", [])
        settings = _settings(given)
        if not isinstance(planned, list) or set(given) - _KEYS:
            raise ValueError(f"[cohort] knows {', '.join(sorted(_KEYS))}")
    except (OSError, UnicodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        cause = " ".join(str(error).split())
        raise InputFileError(
            f"{path} is no suite of cohort tests ({cause}); give TOML with [cohort] planned"
        ) from error
    for name in planned:
        if name not in tests:
            raise UnknownNameError("cohort test", str(name), tests)
    return Plan(tuple(planned), str(given.get("recorded", "")), sha256(content).hexdigest(), settings)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p values corrected for how many tests were planned; one that gave no p value still counts as planned."""
    order = sorted(range(len(p_values)), key=lambda place: _or_one(p_values[place]))
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        p = p_values[place]
        if p is not None:
            largest = max(largest, min(1.0, p * (len(p_values) - rank)))
            corrected[place] = largest
    return corrected


def _or_one(p: float | None) -> float:
    return 1.0 if p is None else p


def _settings(given: dict[str, Any]) -> Settings:
    for name, least in _INTEGERS.items():
        if type(given.get(name, least)) is not int or given.get(name, least) < least:
            raise ValueError(f"{name} is no whole number of at least {least}")
    resampled = given.get("resample", "tasks")
    if resampled not in ("tasks", "runs"):
        raise ValueError('resample is neither "tasks" nor "runs"')
    chosen = {name.replace("-", "_"): given[name] for name in _INTEGERS if name in given}
    return Settings(resampled=resampled, **chosen)
