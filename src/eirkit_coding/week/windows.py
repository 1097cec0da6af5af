"""Replays requests under smaller context windows, as far as logs can tell, between two bounds.

A replayed session grows as the recorded one did and is compacted where the window would be full: to the median size
after the recorded compactions, for the same price of a summary and of a new context. What an agent would then have
read again is in no log. So there are two bounds: nothing comes back, or as large a share of what was cut as the files
that were used later had of the files in the context at the recorded compactions. The replay of the recorded window
should save nothing; what it says instead is its error. Sub-agents are left as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median

from eirkit_coding.week.bill import Request
from eirkit_coding.week.facts import ContextLoss
from eirkit_coding.week.results import Bounds, WindowAnswer, WindowRow

WINDOWS = (80_000, 100_000, 120_000)
RESAMPLES = 200  # of sessions, for the interval
FEWEST = 5  # compactions, below which nothing is predicted
_LOW, _HIGH = 0.025, 0.975


@dataclass(frozen=True, slots=True)
class _Step:
    """A request in numbers."""

    key: str
    before: str | None
    is_compacted: bool
    prompt: int
    grown: int  # by how much the prompt is longer than the one before
    cached: float  # dollars of a token that is read from the cache
    written: float  # dollars of a token that is written to it
    output: float
    lost: float  # dollars that were paid again
    saved: float  # dollars of the recorded compaction before it, its summary included


def _steps(requests: Iterable[Request]) -> Mapping[str, list[_Step]]:
    found: defaultdict[str, list[_Step]] = defaultdict(list)
    for request in requests:
        response, money, before = request.response, request.money, request.before
        if response.sub_agent or response.is_summary:
            continue
        written = response.cache_write_tokens + response.cache_write_hour_tokens
        cached, output = float(money.cached_token), float(money.output_token)
        is_compacted = request.cause == "compacted" and before is not None
        saved = 0.0
        if is_compacted and before is not None:
            saved = float(request.lost) + before.tokens * cached + response.summary_tokens * output
        found[response.thread].append(
            _Step(
                response.key,
                None if before is None else before.key,
                is_compacted,
                response.prompt_tokens,
                0 if before is None or is_compacted else max(0, response.prompt_tokens - before.prompt_tokens),
                cached,
                float(money.cache_write + money.cache_write_hour) / written if written else cached,
                output,
                0.0 if is_compacted else float(request.lost),
                saved,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Compaction:
    """A recorded compaction in the middle of the others."""

    before: float
    after: float
    summary: float
    kept: float  # tokens of the new context that were read from the cache


def _saved(steps: Iterable[_Step], window: float, share: float, usual: _Compaction) -> tuple[float, int]:
    """Return the dollars that a window would have saved in one session, and its compactions."""
    saved, count = 0.0, 0
    sizes: dict[str, float] = {}
    for step in steps:
        size = float(step.prompt)
        if step.before is not None and step.before in sizes:
            size = sizes[step.before] + step.grown
            saved += step.saved
            if size > window:
                count += 1
                again = share * (size - usual.after)
                saved -= size * step.cached + usual.summary * step.output
                saved -= (usual.after - usual.kept + again) * step.written
                size = min(usual.after + again, window)
            # Of a request that paid again, the shorter context pays again in proportion.
            saved += (step.prompt - size) * step.cached + step.lost * (1 - size / max(1, step.prompt))
        sizes[step.key] = size
    return saved, count


def which_window(requests: Collection[Request], losses: Sequence[ContextLoss]) -> WindowAnswer:
    """Return what smaller windows would have saved, and how well rereads after compactions were predicted."""
    recorded = [one for one in requests if one.cause == "compacted" and one.before is not None]
    if not recorded:
        return WindowAnswer()
    usual = _Compaction(
        median(one.before.tokens for one in recorded if one.before is not None),
        median(one.response.prompt_tokens for one in recorded),
        median(one.response.summary_tokens for one in recorded),
        median(one.response.cache_read_tokens for one in recorded),
    )
    measured = [loss for loss in losses if loss.compactions and loss.file_tokens]
    share = sum(loss.live_tokens for loss in measured) / max(1, sum(loss.file_tokens for loss in measured))
    sessions = list(_steps(requests).values())
    windows = (*(window for window in WINDOWS if usual.after < window < usual.before), round(usual.before))
    rows = tuple(_row(sessions, window, share, usual) for window in windows)
    errors = _errors(measured)
    return WindowAnswer(
        rows=rows,
        needed_share=share,
        predicted=len(errors),
        observed_tokens=fmean(loss.reread_tokens for loss in measured) if measured else 0.0,
        error_tokens=fmean(errors) if errors else None,
    )


def _row(sessions: Sequence[Sequence[_Step]], window: int, share: float, usual: _Compaction) -> WindowRow:
    none, every = ([_saved(steps, window, part, usual) for steps in sessions] for part in (0.0, share))
    return WindowRow(
        window,
        sum(count for _, count in none),
        _bounds([saved for saved, _ in none]),
        _bounds([saved for saved, _ in every]),
    )


def _bounds(saved: Sequence[float]) -> Bounds:
    """Return a sum over sessions with the interval of its resamples."""
    rng = Random(0)
    sums = sorted(sum(rng.choices(saved, k=len(saved))) for _ in range(RESAMPLES))
    return Bounds(sum(saved), sums[int(_LOW * RESAMPLES)], sums[int(_HIGH * RESAMPLES)])


def _errors(losses: Sequence[ContextLoss]) -> list[float]:
    """Return by how many tokens what was read again differs from what the compactions before foretold.

    Foretold is, of the files in the context, the share that was read again after the earlier compactions.
    """
    errors = []
    again = files = 0
    for number, loss in enumerate(sorted(losses, key=lambda loss: (loss.at, loss.run_id))):
        if number >= FEWEST:
            errors.append(abs(loss.reread_tokens - loss.file_tokens * again / files))
        again, files = again + loss.reread_tokens, files + loss.file_tokens
    return errors
