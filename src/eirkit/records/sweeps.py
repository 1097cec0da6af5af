"""A folder of runs as a whole: its manifest, a row of measures for each cell, failures, verdicts and money."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from eirkit.records.documents import read_struct, write_struct
from eirkit.records.events import Cause, Kind
from eirkit.records.runs import AnswerCause, Counted, MemoryProfile, Outcome, Symptom
from eirkit.records.settings import AnyTask, ConversationTask, Task

CONTROL, CONTROL_SCHEMA = "control.json", "control/1"  # the verdicts of a sweep's capability controls
GateVerdict = Literal["passes", "fails", "undecided"]
Doubt = Literal["leak", "contradiction"]


class Passages(Struct, frozen=True, rename={"source": "from"}):
    """How many passages a search of a memory asks for (None: all that it returns), and who says so."""

    memory: str
    settings: dict[str, Any]
    profile: str | None
    passages: int | None
    source: str


class Manifest(Struct, frozen=True, kw_only=True):
    """The first file of a folder of runs: what determines them, with versions and hashes; never a key."""

    command: str  # run, or the experiment: rescue, capability, probe, …
    settings: dict[str, Any]  # of the command; of a sweep, its suite
    plan_sha256: str  # of everything that can change a record
    cells: int
    runs: int
    prompt_sha256: str  # of the system messages and the format of states
    prices_sha256: str
    sources: dict[str, str]  # SHA-256 of every file that a `file.py:Name` names, and of every class without a file
    rules: dict[str, str]  # the system messages by their hash; run records name theirs
    eirkit: str
    python: str
    platform: str
    dependencies: dict[str, str]
    places: dict[str, str] = {}  # relative paths of sources, as seen from the folder
    control: bool | None = None  # whether the control is run; None: for free models only
    passages: tuple[Passages, ...] = ()
    prices: str | None = None  # the user's price file, as it was given


class Gate(Struct, frozen=True, kw_only=True):
    """A threshold of the capability control, and whether a model is shown to reach it."""

    measure: str  # `informed_accuracy`; the paper's: `accuracy`
    threshold: float
    estimate: float | None  # None where nothing was scored
    low: float  # 95% interval
    high: float
    counted: int  # steps whose inputs were all at hand and right; the paper's: runs
    verdict: GateVerdict
    command: str = ""  # of an undecided gate: the control with more seeds; empty if nothing was scored
    is_enough: bool = True  # these seeds should decide it if the figure stays the same


class Standing(Struct, frozen=True, kw_only=True):
    """The verdict of the capability control on a model and a task: the one of its first gate."""

    gates: tuple[Gate, Gate]  # on accuracy given right inputs, which decides; the paper's, on accuracy end to end
    verdict: GateVerdict
    passes: bool
    reason: str  # why it does or does not support claims about lost information


def is_excluded(control: Standing | None) -> bool:
    """True if a control was run and fails; one that is undecided excludes nobody."""
    return control is not None and control.verdict == "fails"


class Validity(Struct, frozen=True):
    """What was right at steps that had lost an input, against chance."""

    blind: int  # scored steps that were answered although an input was lost
    right: int  # of those, right ones whose answer does not follow from what was visible
    chance: float | None  # at most, of a guess; None and below: not tested
    p: float | None  # probability of so many right answers or more by chance
    finding: Doubt | None
    sentence: str | None  # the finding in words


class CellScore(Struct, frozen=True, kw_only=True):
    """One model under one condition, pooled over its runs. ± is the population standard deviation."""

    scored: int  # runs
    accuracy: float | None  # None where no run was scored
    accuracy_sd: float | None
    informed_accuracy: float | None  # over steps whose inputs were all at hand and right; None without such a step
    informed_low: float  # exact 95% interval
    informed_high: float
    informed: int  # such steps, over all runs
    step_accuracy: float | None  # over steps with references
    self_consistent_accuracy: float | None
    final_accuracy: float | None  # share of runs whose last answer is correct
    answered_fraction: float | None
    miss_rate: float | None
    missed_steps: float | None  # steps with a missing reference, per run
    first_error_at_first_miss: float | None  # over runs with a miss; error-free ones count as unaligned
    steps: int  # scored, over all runs
    errors: dict[Cause, int]  # wrong steps by cause, over all runs
    error_shares: dict[Cause, float | None]  # of scored steps; mean over runs
    kinds: dict[Kind, int]
    unsure: int  # steps of which it is not known whether a reference was in context, over all runs
    blind: int  # scored steps that were answered although an input was lost, over all runs
    unexplained: int  # of those, right ones whose answer does not follow from what was visible
    max_turn: int  # runs that reached their limit of actions
    reads: float | None  # per run
    recomputations: float | None


class CellFloor(Struct, frozen=True):
    """What the memory of a cell held at most, beside what the task required."""

    counted: Counted
    held_bytes: int | None
    needed_bits: float
    held_bits: float
    ratio: float | None
    short_cuts: float  # share of cuts at which less was held than needed


class MemoryRow(Struct, frozen=True, kw_only=True):
    """What the external memory of a cell did, over all its runs."""

    outcomes: dict[Outcome, int]
    outcome_shares: dict[Outcome, float]  # of needed records; mean over runs that needed any; empty without one
    needing_runs: int
    writes: int
    searches: int
    confused: int
    flooded: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    write_seconds: float | None  # of one write
    search_seconds: float | None
    slowest_seconds: float
    records: int | None  # at most
    bytes: int | None
    cost_usd: float | None  # of the runs, and of attempts that failed
    floor: CellFloor | None
    profile: MemoryProfile | None
    warnings: tuple[str, ...]
    diagnosis: tuple[str, ...]  # what is wrong with it, in words
    shared_runs: int = 0  # that went on with what a run with another budget had given the memory
    shared_usd: float | None = 0.0  # part of cost_usd: what those other runs paid for it


class AbilityRow(Struct, frozen=True):
    """Right answers to the questions of one ability, with the wider of two 95% intervals."""

    ability: str
    right: int
    asked: int
    accuracy: float
    low: float
    high: float


class InstructionShares(Struct, frozen=True):
    """How often standing instructions were checked, and the share of checks with each outcome; None if unknown."""

    checks: int
    kept: float | None
    overridden: float | None
    ignored: float | None
    dropped: float | None
    came_back: float | None
    obeyed: float | None = None


class EvidenceShares(Struct, frozen=True):
    """How many questions have labeled evidence, and for which share of them it was shown."""

    labeled: int
    all_shown: float | None
    some_shown: float | None


class RetrievalRow(Struct, frozen=True, kw_only=True):
    """What was put into prompts, and what of it the answers needed; None where it does not apply or is not known."""

    asked_passages: float | None
    prompt_tokens: float | None
    recall: float | None
    reciprocal_rank: float | None
    empty_recalls: float | None


class ServerRow(Struct, frozen=True, kw_only=True):
    """Bits needed, probed and kept by a server's compactions, a conversation on average."""

    server_compacted: int
    server_needed_bits: float | None = None
    server_probed_bits: float | None = None
    server_kept_bits: float | None = None
    server_kept_low: float | None = None
    server_kept_high: float | None = None


class ConversationRow(Struct, frozen=True, kw_only=True):
    """Answers about conversations, over the runs of a cell."""

    worlds: int
    asked: int
    abilities: tuple[AbilityRow, ...]  # all questions first
    symptoms: dict[Symptom, int]  # wrong answers; those that occur
    causes: dict[AnswerCause, int]
    contradicting: float | None  # share of the questions
    stored_texts: float | None  # means over conversations; None if unknown for any
    stored_bytes: float | None
    said_bytes: float | None
    floor_bytes: float | None
    returned_bytes: float | None  # of one question
    instructions: InstructionShares
    evidence: EvidenceShares | None
    server: ServerRow | None
    retrieval: RetrievalRow


class CellRow(CellScore, frozen=True, kw_only=True):
    """One row of a sweep: a combination of task, model, memory and limits, pooled over its runs."""

    cell: str
    workload: str
    preset: str
    model: str
    condition: str
    policy: str | None
    memory: str | None
    memory_settings: dict[str, Any]
    panel: str
    context_tokens: int | None
    summary_prompt: str | None
    budget: str | None  # of what a memory puts into a prompt; None where nothing is chosen
    questions: int | None  # of a conversation at most; None in tasks of numbers
    n: int | None  # None and below: conversations have none
    m: int | None
    lookback: int | None
    fan_in: int | None
    slots: int | None
    digits: int | None
    k: int | None
    queries: str | None
    warm_up: int | None
    overwrites: int | None
    deletes: int | None
    expiry: int | None
    users: int | None
    rereads: int | None
    h: int | None
    pressure: float | None
    b_oracle: int | str
    b: int | str
    seeds: int
    repeats: int
    faults: dict[str, int]
    refusals: dict[str, int]
    behavior: dict[str, int]
    calls: int | None  # None and below: nothing was asked
    cache_hits: int | None
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    truncated_replies: int | None
    reasked: int | None
    unreported_calls: int | None
    memory_calls: int | None
    max_tokens: int | None
    cost_usd: float | None
    unconfirmed_usd: float
    suspect: str | None  # why the adapter is probably broken
    attempted: int  # runs
    failures: dict[str, int]  # by kind
    memory_system: MemoryRow | None
    conversation: ConversationRow | None
    validity: Validity
    control: Standing | None  # None if the control was not run
    claims: bool  # whether it supports claims about lost information

    @property
    def task(self) -> AnyTask:
        """The parameters of its tasks."""
        if self.questions is not None:
            return ConversationTask(self.workload, self.preset, self.questions)
        return Task(**{name: getattr(self, name) for name in Task.__struct_fields__})

    @property
    def held(self) -> str:
        """`, h = 8`; empty for conversations, which have no records to hold."""
        return "" if self.h is None else f", h = {self.h}"

    @property
    def scored_of(self) -> str:
        """How many runs are scored, of those that are planned."""
        return f"{self.scored}/{max(self.attempted, self.seeds * self.repeats)}"

    @property
    def is_withheld(self) -> bool:
        """Whether nothing is said about lost information: its control fails, or there is a finding against it."""
        return is_excluded(self.control) or self.validity.sentence is not None


class FailureGroup(Struct, frozen=True):
    """Runs that failed in the same way."""

    workload: str
    model: str
    condition: str
    kind: str
    message: str
    runs: int
    first: str  # id of one of the runs


class Spending(Struct, frozen=True, kw_only=True):
    """What a folder has cost, in dollars; `spent_usd` counts against the cap."""

    cap_usd: float | None
    spent_usd: float
    billed_usd: float
    unconfirmed_usd: float  # the most that calls without a usable reply may have cost
    in_flight_usd: float  # the most that calls may have cost that were in flight when runs were interrupted or killed
    over_usd: float  # part of what was billed: above what was reserved for its call
    over_calls: int
    control_usd: float


class Excluded(Struct, frozen=True, array_like=True):
    """A model that the control of a workload excludes, or does not decide on, and why."""

    model: str
    workload: str
    reason: str


class Summary(Struct, frozen=True, kw_only=True):
    """The result of a sweep so far."""

    rows: tuple[CellRow, ...]
    failures: tuple[FailureGroup, ...]
    stopped: tuple[str, ...]  # why runs were left out
    scored: int
    planned: int
    complete: bool
    excluded: tuple[Excluded, ...]  # whose control fails
    undecided: tuple[Excluded, ...]  # of whom it says neither
    spending: Spending | None  # None if nothing was paid for


class ControlVerdict(Struct, frozen=True):
    """The verdict of one control."""

    key: str  # of its cells, as `control_key` makes it
    standing: Standing
    failures: dict[str, int]  # reasons of failed runs, and their numbers; without any, it is final


class _Verdicts(Struct, frozen=True):
    rows: tuple[ControlVerdict, ...]


def read_verdicts(folder: Path) -> tuple[ControlVerdict, ...]:
    """Return the verdicts in a sweep's folder; empty if no control was run."""
    path = folder / CONTROL
    return read_struct(path, CONTROL_SCHEMA, _Verdicts).rows if path.exists() else ()


def write_verdicts(folder: Path, verdicts: Iterable[ControlVerdict]) -> None:
    """Write the verdicts of a sweep's controls."""
    write_struct(folder / CONTROL, CONTROL_SCHEMA, _Verdicts(tuple(verdicts)))
