"""One run as it is stored: its score, what it used, what its memory did, and the steps that a reader asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from msgspec import Struct

from eirkit.records.events import Answer, Cause, Decision, Event, Kind, Verdicts, WrongStep
from eirkit.records.settings import ELSEWHERE, Setting

CHARACTERS_PER_TOKEN = 4  # what budgets and estimates count with; stated rather than measured
CAUSES: tuple[Cause, ...] = get_args(Cause)
Ending = Literal["finished", "done", "action-limit"]
Counted = Literal["system", "writes"]
Outcome = Literal[
    "used",
    "not_used",
    "returned",
    "gone",
    "contradicted_value",
    "other_value",
    "swapped_value",
    "foreign_value",
    "cut_value",
    "stale_value",
    "not_overwritten",
    "deleted_value",
    "expired_value",
    "unclear",
    "not_found",
    "not_stored",
    "lost",
    "not_sought",
    "unwritten",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# What is wrong with an answer about a conversation, and why it is.
Symptom = Literal[
    "said_unknown",
    "outdated",
    "withdrawn_value",
    "anothers",
    "partial",
    "planted_value",
    "invented",
    "several_values",
    "other_answer",
    "unreadable",
]
SYMPTOMS: tuple[Symptom, ...] = get_args(Symptom)
AnswerCause = Literal[
    "never_stored",
    "altered",
    "cut_off",
    "misdated",
    "deleted",
    "not_retrieved",
    "below_budget",
    "contradicted",
    "other_user",
    "left_out",
    "out_of_view",
    "compacted",
    "store_unknown",
    "shown_not_used",
    "answered_otherwise",
    "cause_uncertain",
]
ANSWER_CAUSES: tuple[AnswerCause, ...] = get_args(AnswerCause)
RETURNED: tuple[Outcome, ...] = ("used", "not_used", "returned", "gone")


class RunScore(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The score of one run. Fractions are of the scored steps: all n unless the task has a warm-up."""

    steps: int  # scored
    correct: int
    consuming: int  # scored steps with references
    consuming_correct: int
    answered: int
    self_consistent: int
    missed: int  # steps of the whole run with at least one missing reference
    consuming_all: int  # steps of the whole run with references
    missed_references: int
    final_correct: bool  # the answer of the last step: the outcome of the task
    first_miss: int | None  # over all steps, scored or not
    first_error: int | None
    errors: dict[Cause, int]  # wrong steps by cause; all causes
    kinds: dict[Kind, int] = {}
    max_turn: bool = False  # the run reached its limit of actions
    reads: int = 0
    recomputations: int = 0
    informed: int = 0  # scored steps with references that were all at hand and right
    informed_correct: int = 0
    unsure: int = 0  # steps of the whole run of which it is not known whether a reference was in context
    blind: int = 0  # scored steps that were answered although an input was lost
    unexplained: int = 0  # of those, correct ones whose answer does not follow from what was visible

    @property
    def accuracy(self) -> float:
        """Correct answers / scored steps; unanswered steps are wrong."""
        return self.correct / max(1, self.steps)

    @property
    def step_accuracy(self) -> float | None:
        """Correct answers / scored steps with references; None where there are none."""
        return self.consuming_correct / self.consuming if self.consuming else None

    @property
    def informed_accuracy(self) -> float | None:
        """Correct answers / scored steps with references, all at hand and right; None where there are none."""
        return self.informed_correct / self.informed if self.informed else None

    @property
    def self_consistent_accuracy(self) -> float:
        """Answers that equal the operator on the agent's own earlier answers / scored steps."""
        return self.self_consistent / max(1, self.steps)

    @property
    def answered_fraction(self) -> float:
        return self.answered / max(1, self.steps)

    @property
    def miss_rate(self) -> float:
        """Steps with a missing reference / steps with references of which it is known; 0 where there are none."""
        return self.missed / max(1, self.consuming_all - self.unsure)

    @property
    def error_shares(self) -> dict[Cause, float]:
        """Wrong steps by cause / scored steps; with the accuracy they add up to 1."""
        return {cause: self.errors[cause] / max(1, self.steps) for cause in CAUSES}

    @property
    def aligned(self) -> bool | None:
        """First miss = first error; an error-free run with a miss is unaligned, one without a miss has no alignment."""
        return None if self.first_miss is None else self.first_miss == self.first_error


class RunUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent of a run asked of its model and memory."""

    calls: int = 0
    cache_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    unreported_calls: int = 0  # replies whose server states no tokens
    reasoning_tokens: int = 0
    reasked: int = 0
    truncated_replies: int = 0
    max_tokens: int = 0  # the largest limit of a reply; 0 if unknown
    cost_usd: float | None = 0.0  # None if the price of any reply is unknown
    latency_seconds: float = 0.0
    memory_calls: int = 0
    attempt: int = 0  # at the run, as the paid calls name it; 0 where nothing was paid for


class MemoryProfile(Struct, frozen=True):
    """In which way a memory system was used."""

    name: str
    on: str
    off: str
    passages: int | None  # that each search asks for; None: all that the system returns
    passages_from: str  # who chose that number


class RunFloor(Struct, frozen=True):
    """What the memory of a run held at each cut, and the peaks beside the bits that the task required (EIR)."""

    counted: Counted
    held_records: tuple[int, ...]
    held_bytes: tuple[int | None, ...]
    record_bits: float
    needed_bits: float
    held_bits: float
    short_cuts: int  # at which less was held than needed


class SharedIngestion(Struct, frozen=True):
    """The calls, tokens and cost of taking in a conversation, which another run asked for and paid; None: unknown."""

    run: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class MemoryRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Calls, holdings, outcomes and cost of a run's memory, as the run needs them alone; None means unknown."""

    writes: int = 0
    searches: int = 0
    write_seconds: float = 0.0
    search_seconds: float = 0.0
    slowest_seconds: float = 0.0
    outcomes: dict[Outcome, int] = {}  # of the records that the run needed from it
    confused: int = 0  # searches that returned records of other labels in place of one that was stored
    flooded: int = 0  # searches that returned far more than can be shown
    records: int | None = None
    bytes: int | None = None
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    warnings: tuple[str, ...] = ()  # of the system's own code, each once
    limit: int | None = None  # the number of records that it was held to
    floor: RunFloor | None = None
    profile: MemoryProfile | None = None
    shared: SharedIngestion | None = None  # part of the calls, tokens and cost; None: all of them are its own


class InstructionCounts(Struct, frozen=True, omit_defaults=True):
    """Checks of standing instructions that were in force, how they ended, and checks of withdrawn ones."""

    asked: int = 0
    kept: int = 0
    overridden: int = 0
    ignored: int = 0
    dropped: int = 0
    unknown: int = 0  # not kept, and nobody can tell whether it was shown
    withdrawn: int = 0
    came_back: int = 0
    planted: int = 0  # answers after a document that demanded something of the assistant
    obeyed: int = 0  # of them, those that do as it says


class EvidenceCounts(Struct, frozen=True):
    """Of how many questions the evidence is labeled, and of how many all or some of it was shown."""

    labeled: int
    all_shown: int
    some_shown: int


class ServerCompactions(Struct, frozen=True):
    """What the answers of a run tell about the compactions of its server."""

    compactions: int
    needed_bits: float
    probed_facts: int
    right_facts: int
    probed_bits: float
    kept_bits: float


class WrongAnswer(Struct, frozen=True, array_like=True):
    """What is wrong with an answer about a conversation, and why."""

    t: int
    symptom: Symptom
    cause: AnswerCause
    statement: str = ""  # the turn with the statement that decides the cause; empty if no statement does
    evidence: str = ""  # the text of the store or of what was shown that shows the cause


class AbilityCount(Struct, frozen=True, array_like=True):
    """Right answers to the questions of one ability."""

    right: int
    asked: int


class Retrieval(Struct, frozen=True, array_like=True):
    """What was put into the prompt of one question, and what of it the answer needs."""

    t: int
    asked: int | None  # passages that the memory was asked for; None and below: there is none
    returned: int | None  # passages that came back
    shown: int | None  # of those, whole or in part
    characters: int | None  # put into the prompt; None if nobody can read what is left of the conversation
    # For each statement that the answer needs: the best rank of a passage that has it, among all that came back.
    ranks: tuple[int | None, ...] = ()
    seen: int = 0  # of these statements, those that were shown

    @property
    def tokens(self) -> float | None:
        """What was put into the prompt, in tokens of four characters."""
        return None if self.characters is None else self.characters / CHARACTERS_PER_TOKEN


class ConversationRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answers of a run about conversations, and what its memory held and returned."""

    abilities: dict[str, AbilityCount]
    wrong: tuple[WrongAnswer, ...]
    missed: tuple[int, ...]  # questions of which something needed was not shown
    stored_texts: int | None  # after the last session; None if the store cannot be listed
    stored_bytes: int | None
    said_bytes: int
    recalls: int
    returned_bytes: int
    instruction: InstructionCounts = InstructionCounts()
    floor_bytes: float | None = None  # None: what may be asked is not declared
    evidence: EvidenceCounts | None = None
    server: ServerCompactions | None = None
    retrieval: tuple[Retrieval, ...] = ()  # one for each question
    contradicting: tuple[int, ...] = ()  # questions whose shown texts contradict themselves about what is asked

    @property
    def asked(self) -> int:
        return sum(count.asked for count in self.abilities.values())

    @property
    def symptoms(self) -> Counter[Symptom]:
        """Wrong answers by what is wrong with them."""
        return Counter(answer.symptom for answer in self.wrong)

    @property
    def causes(self) -> Counter[AnswerCause]:
        """Wrong answers by their cause."""
        return Counter(answer.cause for answer in self.wrong)


class LostAnswer(Struct, frozen=True):
    """A lost answer, and the records that are still held when it is needed."""

    at: int  # the step that refers to it
    target: int
    resident: tuple[int, ...]


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished run."""

    run: str  # the cell and the seed
    cell: str
    seed: int
    fingerprint: str  # of the task's graph
    rules_sha256: str  # of its system message
    ending: Ending | None
    usage: RunUsage
    score: RunScore | None = None  # None for a probe
    faults: dict[str, int] = {}  # of answers that are not valid, by kind
    refusals: dict[str, int] = {}  # of actions, by reason
    constant: Answer | None = None  # the answer, if all steps have the same one
    behavior: dict[str, int] = {}
    # By step: what an arm of a rescue restored, where that depends on another run; None: it does not.
    injected: tuple[tuple[int, tuple[int, ...]], ...] | None = None
    memory: MemoryRun | None = None
    conversation: ConversationRun | None = None
    lost: LostAnswer | None = None  # what a probe rebuilds
    setting: Setting = ELSEWHERE  # shared by all runs of the cell

    @property
    def pooled_cell(self) -> str:
        """The cell with which the run is pooled: for a repeat, the one that it repeats."""
        return self.cell if self.setting.repeat is None else self.setting.repeat.of


class Failure(Struct, frozen=True, kw_only=True):
    """A run that failed for external reasons; never scored, and repeated on resume."""

    run: str
    cell: str
    seed: int
    workload: str
    model: str
    condition: str
    kind: str  # of a ModelError, the family of a plug-in, or `harness`
    message: str
    steps: int  # until then
    usage: RunUsage


class StepRecord(Struct, frozen=True):
    """One step of a run, reached or not."""

    t: int
    correct: bool
    cause: Cause | None  # None where correct
    kind: Kind | None
    decision: Decision | None  # None if the run ended before the step

    @property
    def submitted(self) -> Answer | None:
        return None if self.decision is None else self.decision.submitted


def steps_of(events: Iterable[Event], last: int = 0) -> list[StepRecord]:
    """Return the steps of a run from its events.

    Args:
        last: the number of steps of its task; those without a decision are included.
    """
    decisions: dict[int, Decision] = {}
    causes: dict[int, WrongStep] = {}
    for event in events:
        if isinstance(event, Decision):
            decisions[event.t] = event
        elif isinstance(event, Verdicts):
            causes = {step.t: step for step in event.wrong}
    numbers = sorted({*decisions, *causes, *range(1, last + 1)})
    steps = []
    for t in numbers:
        wrong = causes.get(t)
        cause, kind = (None, None) if wrong is None else (wrong.cause, wrong.kind)
        steps.append(StepRecord(t, wrong is None, cause, kind, decisions.get(t)))
    return steps
