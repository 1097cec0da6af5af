"""The documents that the server of the viewer sends; `tools/web_types.py` writes the types of the page from them.

Those of tables are in `tables.py`, those of recorded runs in `vestige_run.py` and `logs.py`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from eirkit.lacuna.findings.causes import Spread
from eirkit.lacuna.tasks.workload import Units
from eirkit.records.analysis import AnalysisSummary
from eirkit.records.events import ActionOutcome, Cause, Kind, Record, RequestedCall, Verb
from eirkit.records.runs import Ending, LostAnswer, MemoryProfile
from eirkit.records.settings import Access, AnyTask
from eirkit.records.sweeps import FailureGroup
from eirkit.report.document import Chart, DrawnChart, Figure
from eirkit.report.logs.sentences import AdviceRow
from eirkit.report.viewer.excerpts import Text
from eirkit.report.viewer.run_table import Sibling
from eirkit.report.viewer.tables import Field, FieldKind, SharedValue

FolderKind = Literal["sweep", "evidence", "analysis", "compaction"]
T = TypeVar("T", bound=Struct)
State = Literal["running", "complete", "waiting"]


def taken(kind: type[T], source: object, **more: Any) -> T:
    """Return a struct with the fields of the same names in a source; further arguments override these."""
    own = {name: getattr(source, name) for name in kind.__struct_fields__ if name not in more}
    return kind(**own, **more)


class Refusal(Struct, frozen=True):
    """Why there is no document."""

    error: str


class ListedFolder(Struct, frozen=True):
    """A folder that can be shown."""

    key: str
    kind: FolderKind
    stamp: str
    about: str
    changed: float  # seconds since 1970


class Folders(Struct, frozen=True):
    """Every folder that can be shown."""

    name: str
    folders: tuple[ListedFolder, ...]


class Changes(Struct, frozen=True):
    """A text that changes whenever a folder does."""

    stamp: str


class FolderProgress(Struct, frozen=True, kw_only=True):
    """The progress of one folder at one moment."""

    kind: str  # sweep, or the command of another experiment
    state: State  # waiting: not complete, and nothing was written for a while
    runs: int  # runs that ended and are scored
    planned_runs: int
    planned_cells: int
    lost: int  # runs whose last attempt failed for infrastructure reasons
    spent_usd: float | None


class Overview(Struct, frozen=True, kw_only=True):
    """The columns of a folder's runs, and its progress or what its analysis came to."""

    kind: FolderKind
    fields: tuple[Field, ...]
    alike: tuple[SharedValue, ...]
    progress: FolderProgress | None = None
    failures: tuple[FailureGroup, ...] = ()
    summary: AnalysisSummary | None = None
    advice: tuple[AdviceRow, ...] = ()  # of an analysis
    answers: tuple[str, ...] = ()  # of a sweep that is not running, or a compaction benchmark


class GridLayout(Struct, frozen=True):
    """The columns of a heat map; `y` may name several, separated by commas."""

    x: str
    y: str
    value: str


class Grid(Struct, frozen=True, kw_only=True):
    """A heat map."""

    chart: Chart
    runs: tuple[int, ...]  # rows of each cell
    noun: str  # what a row is
    over: tuple[str, ...]  # what each cell is a mean of
    filters: tuple[dict[str, str], ...]  # that choose the rows of each cell
    mixed: tuple[str, ...]  # settings in which the rows of some cell differ
    left_out: int
    x: tuple[str, ...]
    y: tuple[str, ...]
    layout: GridLayout
    kind: FieldKind
    labels: tuple[str, ...]  # of a text column: the most frequent value of each cell, whose share is the figure


class ShownColumn(Struct, frozen=True):
    """One column of a table of texts."""

    title: str
    meaning: str
    figure: bool


class ShownTable(Struct, frozen=True):
    """A table of texts."""

    title: str
    columns: tuple[ShownColumn, ...]
    lines: tuple[tuple[str, ...], ...]


class ShownSection(Struct, frozen=True):
    """A section of a report: its sentences, pictures and tables."""

    title: str
    words: tuple[str, ...]
    charts: tuple[DrawnChart, ...]
    figures: tuple[Figure, ...]
    tables: tuple[ShownTable, ...]


class ShownScore(Struct, frozen=True, kw_only=True):
    """The score of a run."""

    accuracy: float
    miss_rate: float
    steps: int
    correct: int
    first_miss: int | None
    first_error: int | None
    errors: dict[Cause, int]  # wrong steps
    error_shares: dict[Cause, float]  # of scored steps


Values = tuple[int, ...]  # of a record


class Step(Struct, frozen=True, kw_only=True):
    """One step of a run; what is not known, or not reached, is left out."""

    t: int
    refs: tuple[int, ...]
    # Of the task.
    kind: str | UnsetType = UNSET
    input: Values | UnsetType | None = UNSET
    answer: Values | str | UnsetType = UNSET
    scored: bool | UnsetType = UNSET
    # Of the decision.
    required: tuple[int, ...] | UnsetType = UNSET
    retained: tuple[int, ...] | UnsetType = UNSET
    missing: tuple[int, ...] | UnsetType = UNSET
    unavailable: tuple[int, ...] | UnsetType = UNSET
    restored: tuple[Record, ...] | UnsetType = UNSET
    submitted: Values | str | UnsetType | None = UNSET
    fault: str | UnsetType | None = UNSET
    fetched: tuple[int, ...] | UnsetType = UNSET
    reads: int | UnsetType = UNSET
    recomputations: int | UnsetType = UNSET
    actions: int | UnsetType = UNSET
    answers: int | UnsetType = UNSET
    # Of the verdict.
    correct: bool | UnsetType = UNSET
    missed: bool | UnsetType = UNSET
    cause: Cause | UnsetType | None = UNSET
    why: Kind | UnsetType | None = UNSET


# The fields of a step that are those of the decision on it.
OF_DECISION = Step.__struct_fields__[Step.__struct_fields__.index("required") : Step.__struct_fields__.index("correct")]


class LacunaRun(Struct, frozen=True, kw_only=True, tag="lacuna", tag_field="kind"):
    """One run, without prompts and replies."""

    run: str
    label: str  # what distinguishes it from its siblings
    cell: str
    seed: int
    model: str
    ending: Ending | None
    task: AnyTask
    units: Units
    access: Access
    lost: LostAnswer | None  # of a probe
    profile: MemoryProfile | None
    warnings: tuple[str, ...]  # of the memory's own code
    capacity: int | None
    score: ShownScore | None
    unknown: str  # why the task cannot be generated again
    steps: tuple[Step, ...]
    siblings: tuple[Sibling, ...]


class ShownMessage(Struct, frozen=True):
    """One message of a prompt."""

    role: str
    text: Text


class ShownExchange(Struct, frozen=True, kw_only=True):
    """One prompt and its reply."""

    t: int
    messages: tuple[ShownMessage, ...]
    exact: bool  # rebuilt, with the recorded hash
    reply: Text | None
    calls: tuple[RequestedCall, ...]
    latency_seconds: float
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    from_cache: bool
    prompt_sha256: str


class ShownAction(Struct, frozen=True):
    """One action of an agent-managed run."""

    number: int
    action: Text
    outcome: ActionOutcome
    detail: Text
    evicted: int | None
    reason: str


class MemoryCall(Struct, frozen=True, kw_only=True):
    """One call to the memory."""

    verb: Verb
    passages: int
    latency_seconds: float
    lacking: tuple[int, ...]
    held: tuple[int, ...]
    mislabeled: tuple[int, ...]
    text: Text | None
    found: tuple[Text, ...]


class Cone(Struct, frozen=True, kw_only=True):
    """What must be computed again to have missing results."""

    targets: tuple[int, ...]
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    resident: tuple[int, ...]  # the retained records that the cone ends at
    depth: int
    naive: str  # a text, because it may exceed the numbers of JavaScript


class CardInput(Struct, frozen=True):
    """One thing that an answer needed, and what became of it."""

    name: str
    step: int | None  # whose answer it is; a statement has none
    lines: tuple[tuple[str, str], ...]  # what is known about it: a heading and a text each
    outcome: str | None


class StepCard(Struct, frozen=True):
    """Why a step is wrong."""

    correct: bool
    sentences: tuple[str, ...]
    inputs: tuple[CardInput, ...]


ValueState = Literal["used", "returned", "stored", "lost"]


class TurnPiece(Struct, frozen=True, array_like=True):
    """A part of a turn, with what became of the value that it is."""

    text: str
    state: ValueState | None


class ConversationTurn(Struct, frozen=True, kw_only=True):
    """A turn of the user; None where something is unknown."""

    text: str
    needed: bool
    stored: bool | None
    returned: bool | None
    used: bool | None
    pieces: tuple[TurnPiece, ...]


class Question(Struct, frozen=True, kw_only=True):
    """A question about a conversation, and the conversation until then."""

    question: str
    ability: str
    symptom: str | None  # what is wrong with the answer
    cause: str | None  # why it is
    meaning: str | None
    evidence: str
    turns: tuple[ConversationTurn, ...]


class StepDetails(Struct, frozen=True, kw_only=True):
    """One step of a run: what was said, how its error arose and spread, and its cone."""

    t: int
    card: StepCard | None  # None: the task is unknown, or nothing is answered
    exchanges: tuple[ShownExchange, ...]
    inexact: str  # why a prompt could not be rebuilt; empty if all could
    actions: tuple[ShownAction, ...]
    memory: tuple[MemoryCall, ...]
    spread: Spread
    cone: Cone | None
    conversation: Question | None


class SimilarExample(Struct, frozen=True):
    """A step that failed in the same way."""

    run: str
    t: int


class SimilarFailures(Struct, frozen=True, kw_only=True):
    """How often runs of a folder failed in the same way, this failure included."""

    way: str  # the identifier of a measure: an outcome, or the kind of a wrong step
    count: int
    runs: int
    of_runs: int
    examples: tuple[SimilarExample, ...]  # of the same memory first, and of these of other runs first
    memory: str | None  # of this failure, where runs of the folder differ in it
    of_memory: int | None  # how many of them are of that memory
    sentence: str


class Similar(Struct, frozen=True):
    """The failures like that of a step; None for a right step."""

    similar: SimilarFailures | None


class PressureCurve(Struct, frozen=True, kw_only=True):
    """The bits needed and the capacity in bits after each step t = 0 … n."""

    needed_bits: tuple[float | None, ...]
    upper_bits: tuple[float | None, ...] | None
    capacity_bits: float
    pressure: tuple[float | None, ...]
    peak_pressure: float
    record_bits: float
    held_bits: tuple[float, ...]
    method: str
    h: int


class Pressure(Struct, frozen=True):
    """EIR and capacity over a run, or why they are unknown."""

    unknown: str
    curve: PressureCurve | None
