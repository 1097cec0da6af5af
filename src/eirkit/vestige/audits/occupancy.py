"""Measures how full the model's context window was: prompt sizes, overflow errors, summaries, share of the window.

Window sizes come from the log, else from the user's own file and `windows.toml`, unless the run was compacted far below
that size; a size that none gives stays unknown. A prompt that shrinks suggests that history was condensed, but does not
prove it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct

from eirkit.errors import InputFileError
from eirkit.records.analysis import WindowSource
from eirkit.vestige.model_names import name_in, plain_name
from eirkit.vestige.trajectory import RecordedTurn, Recording

_BUILT_IN = Path(__file__).with_name("windows.toml")
_NOTICE_CHARACTERS = 2_000  # error messages appear at the beginning of a failed call's output

_OVERFLOW = (
    *("context_length_exceeded", "contextwindowexceeded", "context window exceeded", "exit_context"),
    *("maximum context length", "prompt is too long", "input is too long", "input length exceeds"),
    *(
        "exceeds the context window",
        "exceeds the model's context",
        "exceeds the maximum context",
        "exceed context limit",
    ),
)
_SUMMARY = (
    "This session is being continued from a previous conversation",
    "<CONVERSATION SUMMARY>",
    "<conversation_summary>",
    "CondensationAction",
    "AgentCondensationObservation",
)


_FAR_BELOW = 0.5  # share of a window; agents compact when most of it is full
_USUAL_WINDOW = 100_000  # tokens; a smaller context may have been compacted because the user wanted it


@dataclass(frozen=True, slots=True)
class ContextWindows:
    """Context windows in tokens by a model's normalized name."""

    dated: str
    sizes: Mapping[str, int]


class Occupancy(Struct, frozen=True, gc=False):
    """One run's use of its model's context window."""

    prompt_monotone: bool | None  # None: fewer than two sizes
    prompt_drops: int
    peak_tokens: int | None  # the largest prompt with its reply; without sizes, all tokens of the run
    measured: bool  # False: the peak is the total of the run, or unknown
    window_tokens: int | None  # None: the model's window is unknown
    window_source: WindowSource | None
    peak_share: float | None  # peak_tokens / window_tokens
    overflow_errors: int
    summary_markers: int  # compactions that the log records, or that a summary's usual opening reveals
    clears: int


def read_windows(path: Path | None = None) -> ContextWindows:
    """Return the window sizes that ship with the package, overridden by those of a user's file."""
    built_in = _parsed(_BUILT_IN)
    if path is None:
        return built_in
    own = _parsed(path)
    return ContextWindows(own.dated or built_in.dated, {**built_in.sizes, **own.sizes})


def window_of(windows: ContextWindows, model: str) -> int | None:
    """Return a model's window."""
    name = name_in(windows.sizes, model)
    return None if name is None else windows.sizes[name]


def occupancy(recording: Recording, windows: ContextWindows, trajectory_tokens: int | None = None) -> Occupancy:
    """Return the row of a run; its total tokens replace the peak where the log gives no sizes."""
    used = [turn.usage.largest or turn.usage for turn in recording.turns if turn.usage is not None]
    sized = [usage for usage in used if usage.input_tokens > 0]
    prompts = [usage.input_tokens for usage in sized]
    drops = sum(after < before for before, after in pairwise(prompts))
    peak = max((usage.input_tokens + usage.output_tokens for usage in sized), default=trajectory_tokens)
    window, source = _window(recording, windows, peak if sized else None)
    return Occupancy(
        prompt_monotone=not drops if len(prompts) > 1 else None,
        prompt_drops=drops,
        peak_tokens=peak,
        measured=bool(sized),
        window_tokens=window,
        window_source=source,
        peak_share=None if peak is None or window is None else peak / window,
        overflow_errors=sum(1 for notice in _notices(recording) if _overflows(notice)),
        summary_markers=sum(map(_summarized, recording.turns)),
        clears=sum(turn.breaks("clear") for turn in recording.turns),
    )


def _window(recording: Recording, windows: ContextWindows, peak: int | None) -> tuple[int | None, WindowSource | None]:
    """Return the window of a run and where its size comes from.

    A run that was compacted far below the size in the table had a smaller window: the next larger one of any model.
    """
    if recording.window:
        return recording.window, "log"
    listed = window_of(windows, recording.model)
    is_compacted = any(turn.broken == "compaction" for turn in recording.turns)
    if listed is None or peak is None or not is_compacted or not _USUAL_WINDOW <= peak < listed * _FAR_BELOW:
        return listed, None if listed is None else "table"
    return min(size for size in windows.sizes.values() if size >= peak), "compactions"


def _notices(recording: Recording) -> Iterator[str]:
    """Yield what the scaffold itself reports; files that the agent read may contain the same words and are left out."""
    yield recording.exit_status[:_NOTICE_CHARACTERS]
    error = recording.details.get("error")
    if isinstance(error, str):
        yield error[:_NOTICE_CHARACTERS]
    for turn in recording.turns:
        if turn.rejected:
            yield turn.text[:_NOTICE_CHARACTERS]
        for call in turn.calls:
            if call.failed:
                yield call.output[:_NOTICE_CHARACTERS]


def _overflows(notice: str) -> bool:
    return any(map(notice.lower().__contains__, _OVERFLOW))


def _summarized(turn: RecordedTurn) -> int:
    if turn.broken is not None:
        return turn.breaks("compaction")
    if turn.carried:
        return any(mark in turn.carried[:_NOTICE_CHARACTERS] for mark in _SUMMARY)
    return turn.text.startswith(_SUMMARY)


def _parsed(path: Path) -> ContextWindows:
    remedy = 'write [windows] with lines such as "gpt-4o" = 128000'
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputFileError(f"{path}: not a file of window sizes ({problem}); {remedy}") from None
    sizes = content.get("windows", {})
    if not isinstance(sizes, dict) or not all(type(size) is int and size > 0 for size in sizes.values()):
        raise InputFileError(f"{path}: a window must be a positive number of tokens; {remedy}")
    return ContextWindows(str(content.get("dated", "")), {plain_name(name): size for name, size in sizes.items()})
