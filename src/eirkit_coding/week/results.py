"""The result of `eirkit week` as types: the sums of a stretch of time, what cost most, and what is worth doing."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eirkit.records.analysis import Advice
from eirkit.vestige.sources.documents import Skipped
from eirkit_coding.week.facts import ContextLoss, InstructionLoss


class StatedCosts(Struct, frozen=True):
    """What agents themselves say that responses cost, beside the prices here."""

    responses: int = 0  # for which both are known
    stated_usd: float = 0.0
    usd: float = 0.0


class WeekSums(Struct, frozen=True, kw_only=True):
    """The sums of one day, project, model, agent, or of everything; money is in US dollars, None without a price."""

    tokens: int = 0
    usd: float | None = 0.0
    responses: int = 0
    unknown_responses: int = 0  # besides these: the log has no valid numbers of their tokens
    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_hour_tokens: int = 0  # of these, kept for an hour
    output_tokens: int = 0
    unpriced_tokens: int = 0
    peak_context_tokens: int = 0
    read_tokens: int = 0
    repeat_tokens: int = 0
    compactions: int = 0
    manual_compactions: int = 0  # that the user started
    automatic_compactions: int = 0  # that the agent started; of the others the logs do not say
    clears: int = 0
    unmeasured: int = 0  # of compactions and clears: no file was used later, so that what they dropped is not known
    dropped_tokens: int = 0
    unknown_tokens: int = 0  # of which the logs do not show whether they were dropped, too
    reread_tokens: int = 0  # that reading again showed, with the numbers of lines and what was shown besides
    reread_dropped_tokens: int = 0  # of the dropped ones
    instructions_dropped: int = 0
    instructions_broken: int = 0
    fresh_usd: float | None = 0.0
    cache_read_usd: float | None = 0.0
    cache_write_usd: float | None = 0.0
    cache_write_hour_usd: float | None = 0.0
    output_usd: float | None = 0.0
    reread_usd: float | None = 0.0  # part of the above: what reading again after compactions cost at least


class DayRow(WeekSums, frozen=True, kw_only=True):
    """The sums of one day."""

    day: str


class GroupRow(WeekSums, frozen=True, kw_only=True):
    """The sums of one project, model or agent, beside those of the stretch before."""

    before_tokens: int
    before_usd: float | None


class ProjectRow(GroupRow, frozen=True, kw_only=True):
    """The sums of one project."""

    project: str


class ModelRow(GroupRow, frozen=True, kw_only=True):
    """The sums of one model."""

    model: str


class AgentRow(GroupRow, frozen=True, kw_only=True):
    """The sums of one agent."""

    agent: str


class FullestContext(Struct, frozen=True):
    """The response with the fullest context."""

    tokens: int
    window_tokens: int | None
    share: float | None  # of the window, where its size is known
    at: float
    project: str
    model: str


class RepeatedFile(Struct, frozen=True, kw_only=True):
    """A file that was shown again though unchanged."""

    project: str
    path: str
    repeat_tokens: int
    repeat_reads: int
    runs: int
    run_id: str  # where most of it was shown again
    turn: int
    model: str
    usd: float | None

    @property
    def full_name(self) -> str:
        project = self.project.rstrip("/").rpartition("/")[2]
        return self.path if self.path.startswith("/") or not project else f"{project}/{self.path}"


class ModelTokens(Struct, frozen=True):
    """The tokens of a model without a price."""

    model: str
    tokens: int


class ProjectTokens(Struct, frozen=True):
    """The tokens of another project than the one that was asked for."""

    project: str
    tokens: int


class WeekAdvice(Advice, frozen=True, kw_only=True, omit_defaults=False):
    """One thing to act on, in a project: a file shown again, a compaction, or a rule that was lost and broken."""

    project: str


PartKind = Literal[
    "cache reads",
    "cache writes, minutes",
    "cache writes, an hour",
    "input, not cached",
    "output",
    "size",
    "sub-agents",
    "expired",
    "model changed",
    "cleared",
    "resumed",
    "unexplained",
    "compacted",
    "long reads",
    "short reads",
    "new input",
]


class BillPart(Struct, frozen=True):
    """A part of the bill."""

    kind: PartKind
    requests: int
    tokens: int  # of a loss: those paid for again
    usd: float  # of a loss: what they cost more than reading them from the cache
    long_usd: float  # of that, in requests whose prompt has more than 100,000 tokens
    least_tokens: int = 0  # of a size of prompts: above
    most_tokens: int | None = None  # of a size: up to; None without a limit


class CompactionBill(Struct, frozen=True):
    """What compactions cost and saved, besides what was read again."""

    written_usd: float  # part of the bill: the first request after each, without what it read from the cache
    summaries_usd: float  # part of the bill: requests for summaries, where they are logged
    unlogged: int  # summaries whose requests are not logged
    unlogged_usd: float  # not in the bill: about what these cost, if the context was read from the cache
    later_requests: int  # up to the next compaction of their thread
    left_out_tokens: int  # that these would have read, had the context stayed as it was
    saved_usd: float  # what that would have cost


class Cause(Struct, frozen=True):
    """What a part of a session's requests was paid for."""

    kind: PartKind
    usd: float


class SessionBill(Struct, frozen=True, kw_only=True):
    """What one session cost, sub-agents included."""

    session: str
    project: str
    at: float
    requests: int
    usd: float
    peak_tokens: int
    causes: tuple[Cause, ...]  # the largest first; they add up to the whole


class Bill(Struct, frozen=True):
    """Where the money went: kinds add up to the bill, and so do sizes; parts overlap."""

    kinds: tuple[BillPart, ...] = ()
    sizes: tuple[BillPart, ...] = ()  # by the length of the prompt
    parts: tuple[BillPart, ...] = ()
    compaction: CompactionBill = CompactionBill(0.0, 0.0, 0, 0.0, 0, 0, 0.0)
    sessions: tuple[SessionBill, ...] = ()  # the dearest first


class Bounds(Struct, frozen=True):
    """Dollars saved, with the 95% interval over sessions."""

    usd: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 if all of it is saved, -1 if all of it is lost, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


class WindowRow(Struct, frozen=True):
    """What a context window would have saved."""

    window_tokens: int
    compactions: int  # if nothing is read again
    nothing_again: Bounds
    needed_again: Bounds


class WindowAnswer(Struct, frozen=True):
    """What smaller windows would have saved between two bounds; the last row is the recorded window."""

    rows: tuple[WindowRow, ...] = ()
    needed_share: float = 0.0  # of what is cut, that the second bound reads again
    predicted: int = 0  # compactions of which it was foretold what was read again
    observed_tokens: float = 0.0  # that were read again after a compaction, on average
    error_tokens: float | None = None  # of the prediction, on average

    @property
    def decides(self) -> bool:
        """Whether what was read again could be foretold better than by its own size."""
        return self.error_tokens is not None and self.error_tokens < self.observed_tokens / 2


class WeekSummary(Struct, frozen=True, kw_only=True):
    """The sums, the lists of what cost most, and what is worth doing."""

    total: WeekSums
    before: WeekSums
    bill: Bill
    stated: StatedCosts
    window: WindowAnswer
    days: tuple[DayRow, ...]
    projects: tuple[ProjectRow, ...]
    models: tuple[ModelRow, ...]
    agents: tuple[AgentRow, ...]
    fullest: FullestContext | None
    losses: tuple[ContextLoss, ...]
    files: tuple[RepeatedFile, ...]
    instructions: tuple[InstructionLoss, ...]
    unpriced: tuple[ModelTokens, ...]
    advice: tuple[WeekAdvice, ...]
    other_projects: tuple[ProjectTokens, ...]  # with responses, where the one that was asked for has none


class AgentLogs(Struct, frozen=True):
    """How many logs of one agent were read."""

    agent: str
    logs: int


class PriceDates(Struct, frozen=True):
    """On which days the prices were looked up."""

    as_of: tuple[str, ...]


class Week(WeekSummary, frozen=True, kw_only=True):
    """What `eirkit week` prints as JSON."""

    since: float
    until: float
    project: str | None
    sources: tuple[AgentLogs, ...]
    looked_in: tuple[str, ...]
    newest: float | None  # of the responses that were read, or when the last log was written to
    other_formats: tuple[str, ...]
    logs: int
    new_logs: int
    new_bytes: int
    prices: PriceDates
    skipped: tuple[Skipped, ...]  # logs, or parts of them
