"""The result of one test: an estimate with its interval and what it shows, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from eirkit.logs.inference.results import Excluded, Fit, Term, join_notes

CLUSTERED = "95% Wald, errors clustered by task"
BY_RUN = "95% Wald, errors clustered by run"

LARGEST_RATIO = 1e6  # a larger ratio, or one below its inverse, comes only from separation
UNBOUNDED = "too few informative runs: the interval is unbounded"


@dataclass(frozen=True, slots=True)
class Question:
    """What a test asks, fixed before any number is computed."""

    name: str  # identifier in suite files and JSON
    scale: str  # scale of the estimate
    shows: str
    does_not_show: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a test; a number that does not exist is None and the note says why."""

    question: Question
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int  # rows used; these are runs unless the scale says otherwise
    interval: str = ""  # method of the interval
    excluded: tuple[Excluded, ...] = ()
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a document without NaN."""
        asked = self.question
        return {
            "name": asked.name,
            "estimate": finite(self.estimate),
            "low": finite(self.low),
            "high": finite(self.high),
            "p": finite(self.p),
            "n": self.n,
            "scale": asked.scale,
            "interval": self.interval if finite(self.low) is not None else "",
            "excluded": [{"reason": part.reason, "rows": part.rows} for part in self.excluded if part.rows],
            "shows": asked.shows,
            "does_not_show": asked.does_not_show,
            "note": self.note or ("" if finite(self.estimate) is not None else "no estimate exists on these runs"),
            "details": dict(self.details),
        }


def finite(value: float | None) -> float | None:
    """Return a finite number, or None for NaN and infinity, which JSON cannot represent."""
    return float(value) if value is not None and isfinite(value) else None


def finding_of_term(
    question: Question,
    term: Term,
    fit_n: int,
    interval: str,
    *,
    ratio: bool = True,
    excluded: tuple[Excluded, ...] = (),
    note: str = "",
    **details: Any,
) -> Finding:
    """Return a finding from one term of a regression, by default as a ratio."""
    shown = term.ratio() if ratio else term
    own = "" if term.note in note else term.note
    if not ratio or _is_bounded(shown):
        numbers = shown.estimate, shown.low, shown.high, shown.p
        return Finding(question, *numbers, fit_n, interval, excluded, join_notes([own, note]), details)
    estimate = shown.estimate if _is_writable(shown.estimate) else None
    notes = join_notes([own, note, UNBOUNDED])
    return Finding(question, estimate, None, None, None, fit_n, interval, excluded, notes, details)


def _is_bounded(ratio: Term) -> bool:
    if ratio.standard_error is None:
        return ratio.estimate is None or _is_writable(ratio.estimate)
    return all(map(_is_writable, (ratio.estimate, ratio.low, ratio.high)))


def _is_writable(ratio: float | None) -> bool:
    return ratio is not None and 1 / LARGEST_RATIO < ratio < LARGEST_RATIO


def finding_of_fit(
    question: Question, fit: Fit, name: str, interval: str, excluded: tuple[Excluded, ...] = (), **details: Any
) -> Finding:
    """Return a finding from one named term of a fit, including the rows that the fit left out."""
    left_out = (*excluded, *fit.excluded)
    return finding_of_term(
        question,
        fit.term(name),
        fit.n,
        interval,
        excluded=left_out,
        note=fit.note,
        clusters=fit.clusters,
        **details,
    )


def with_note(found: Finding, note: str) -> Finding:
    """Return a finding with a further note appended."""
    return replace(found, note=join_notes([found.note, note]))


def no_finding(question: Question, note: str, n: int = 0, excluded: tuple[Excluded, ...] = ()) -> Finding:
    """Return a finding without numbers, and the reason."""
    return Finding(question, None, None, None, None, n, excluded=excluded, note=note)
