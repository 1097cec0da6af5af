"""Names, meanings and units of the measures of LACUNA: accuracy, causes, outcomes, memory cost, spending, probes."""

from __future__ import annotations

from eirkit.measures import Measure, MeasureGroup

_OF_STEPS = "scored steps"


def _cause(id: str, label: str, meaning: str, color: str) -> Measure:
    return Measure(id, label, meaning, "share", _OF_STEPS, better="less", color=color)


CAUSE_MEASURES = MeasureGroup(
    "causes",
    "Why steps were wrong",
    (
        _cause(
            "state_supply",
            "missing input",
            "a required input was not in context, and could not be obtained or was retrieved wrong",
            "missing-input",
        ),
        _cause(
            "cascade",
            "carried-over error",
            "the answer follows from earlier wrong answers of the agent, or needs one that it never gave",
            "carried-over-error",
        ),
        _cause(
            "not_answered", "not answered", "the run ended before the step, or the agent gave no answer", "not-answered"
        ),
        _cause("malformed", "unreadable answer", "the reply could not be read as an answer to the step", "malformed"),
        _cause(
            "truncated", "reply cut off", "the reply was cut off by a limit of tokens before its answer", "truncated"
        ),
        _cause(
            "undetermined", "cause unknown", "it cannot be known whether a required input was at hand", "undetermined"
        ),
        _cause("computation", "own error", "the answer is wrong though every input could be obtained", "own-error"),
    ),
)


def _kind(id: str, label: str, meaning: str, cause: str) -> Measure:
    """Return a kind of wrong step; it has the color of its cause."""
    return Measure(id, label, meaning, pooled="sum", color=cause)


KIND_MEASURES = MeasureGroup(
    "kinds",
    "Kinds of wrong steps",
    (
        _kind("missing", "missing input, answered", "a required answer was unavailable", "missing-input"),
        _kind("declined", "declined", "no answer was given because an input was unavailable", "missing-input"),
        _kind(
            "misinformed", "input retrieved wrong", "the answer follows from a wrong value of a memory", "missing-input"
        ),
        _kind(
            "never_submitted", "input never given", "a required answer had never been submitted", "carried-over-error"
        ),
        _kind(
            "propagated",
            "carried-over error, passed on",
            "the answer follows from earlier wrong answers",
            "carried-over-error",
        ),
        _kind("unanswered", "step left open", "the step was shown and got no answer", "not-answered"),
        _kind("unreached", "step not reached", "the run ended before the step was shown", "not-answered"),
        _kind(
            "truncated_reply", "ended at a limit", "the reply ended at a limit of tokens before its answer", "truncated"
        ),
        _kind("uncertain", "input uncertain", "it is not known whether an input was at hand", "undetermined"),
        _kind("correct_inputs", "wrong from correct inputs", "all inputs were there and correct", "own-error"),
        _kind(
            "on_corrupted",
            "wrong from wrong inputs",
            "some inputs were wrong, and the answer does not follow from them either",
            "own-error",
        ),
        _kind(
            "not_fetched",
            "input not fetched",
            "an input was within reach of the budgets but was not fetched",
            "own-error",
        ),
        _kind("protocol", "unreadable reply", "the reply could not be read as an answer to this step", "malformed"),
    ),
)
_NEEDED = "records needed from memory"
OUTCOME_MEASURES = MeasureGroup(
    "fates",
    "What became of records needed from memory",
    (
        Measure(
            "used",
            "retrieved and used",
            "a search retrieved the record, and the answer follows from it",
            "share",
            _NEEDED,
            better="more",
            color="used",
        ),
        Measure(
            "not_used",
            "retrieved, not used",
            "a search retrieved the record, every other input was at hand, and the answer does not follow from them",
            "share",
            _NEEDED,
            better="less",
            color="not-used",
        ),
        Measure(
            "returned",
            "retrieved, use unknown",
            "a search retrieved the record, and other inputs or an answer that would show its use are missing",
            "share",
            _NEEDED,
            color="returned",
        ),
        Measure(
            "gone",
            "rightly gone",
            "the record was deleted or its time was over, and no search retrieved it as one that holds",
            "share",
            _NEEDED,
            better="more",
            color="rightly-gone",
        ),
        Measure(
            "contradicted_value",
            "retrieved with a contradiction",
            "a search retrieved the record with its value and with another one",
            "share",
            _NEEDED,
            better="less",
            color="contradicted",
        ),
        Measure(
            "other_value",
            "retrieved with another value",
            "a search retrieved the record's label with a value that is wrong",
            "share",
            _NEEDED,
            better="less",
            color="other-value",
        ),
        Measure(
            "swapped_value",
            "retrieved with another's value",
            "a search retrieved the record's label with the value of another label",
            "share",
            _NEEDED,
            better="less",
            color="swapped-value",
        ),
        Measure(
            "foreign_value",
            "retrieved with another user's value",
            "a search retrieved the record's label with the value of another user of the system",
            "share",
            _NEEDED,
            better="less",
            color="another-user",
        ),
        Measure(
            "cut_value",
            "retrieved cut",
            "a search retrieved the record's label with the beginning of its value",
            "share",
            _NEEDED,
            better="less",
            color="cut-value",
        ),
        Measure(
            "stale_value",
            "retrieved with an outdated value",
            "a search retrieved the record's label with a value that was written before the last one",
            "share",
            _NEEDED,
            better="less",
            color="stale-value",
        ),
        Measure(
            "not_overwritten",
            "retrieved outdated, not overwritten",
            "a search retrieved a value that was written before the last one, which the memory does not store",
            "share",
            _NEEDED,
            better="less",
            color="not-overwritten",
        ),
        Measure(
            "deleted_value",
            "retrieved though deleted",
            "a search retrieved the record after it was deleted",
            "share",
            _NEEDED,
            better="less",
            color="withdrawn",
        ),
        Measure(
            "expired_value",
            "retrieved though expired",
            "a search retrieved the record, without its end, after its time was over",
            "share",
            _NEEDED,
            better="less",
            color="expired",
        ),
        Measure(
            "unclear",
            "retrieval uncertain",
            "it is not known whether a search retrieved the value: it came without its label or beside other numbers, "
            "or the answer follows from it although it was not recognized",
            "share",
            _NEEDED,
            better="less",
            color="unclear",
        ),
        Measure(
            "not_found",
            "stored, not found",
            "the memory stores the record, and no search retrieved it",
            "share",
            _NEEDED,
            better="less",
            color="not-returned",
        ),
        Measure(
            "not_stored",
            "written, not stored",
            "the record was written and searched for, and the memory does not store it",
            "share",
            _NEEDED,
            better="less",
            color="not-stored",
        ),
        Measure(
            "lost",
            "stored, then lost",
            "the memory was seen to store the record, and no longer does",
            "share",
            _NEEDED,
            better="less",
            color="lost-again",
        ),
        Measure(
            "not_sought",
            "never searched for",
            "the agent wrote the record and never searched for it",
            "share",
            _NEEDED,
            better="less",
            color="not-searched",
        ),
        Measure(
            "unwritten",
            "never written",
            "the agent never wrote the record to the memory",
            "share",
            _NEEDED,
            better="less",
            color="not-written",
        ),
    ),
)
MEMORY_MEASURES = MeasureGroup(
    "memory",
    "What the memory stored and cost",
    (
        Measure("needed", "records needed", "records needed from memory: required and not in context", pooled="sum"),
        Measure("write_ms", "write latency", "time of one write", "milliseconds", better="less", pooled="per_call"),
        Measure("search_ms", "search latency", "time of one search", "milliseconds", better="less", pooled="per_call"),
        Measure("slowest_ms", "slowest call", "time of the slowest call", "milliseconds", "", "less", "largest"),
        Measure("records", "records stored", "records that the memory stores at the end of a run", pooled="largest"),
        Measure("bytes", "bytes stored", "bytes that the memory stores at the end of a run", "bytes", pooled="largest"),
        Measure(
            "held_bits",
            "bits stored",
            "bits in the values that are in context or in the store, at the peak",
            "bits",
            pooled="largest",
        ),
        Measure(
            "needed_bits", "bits needed", "bits that any memory must store at the peak (EIR)", "bits", pooled="largest"
        ),
        Measure("model_calls", "memory calls", "model calls that the memory made itself", better="less", pooled="sum"),
        Measure(
            "memory_tokens", "memory tokens", "tokens of these calls, in and out", "tokens", better="less", pooled="sum"
        ),
        Measure("memory_cost_usd", "memory cost", "price of these calls", "dollars", better="less", pooled="sum"),
    ),
)
RUN_MEASURES = MeasureGroup(
    "results",
    "Results",
    (
        Measure(
            "accuracy",
            "accuracy",
            "correct answers, where steps without an answer are wrong",
            "share",
            "scored steps",
            better="more",
            color="correct",
        ),
        Measure(
            "informed_accuracy",
            "accuracy given right inputs",
            "correct answers where every input was at hand and right, so that no earlier error carries over",
            "share",
            "scored steps whose inputs were all at hand and right",
            better="more",
            pooled="steps",
        ),
        Measure(
            "step_accuracy",
            "step accuracy",
            "correct answers at steps that need earlier answers",
            "share",
            "scored dependent steps",
            better="more",
        ),
        Measure(
            "self_consistent_accuracy",
            "self-consistent",
            "answers that equal the operator on the agent's own earlier answers, right or wrong",
            "share",
            "scored steps",
            better="more",
        ),
        Measure("final_accuracy", "final answer correct", "runs whose last answer is correct", "share", "runs", "more"),
        Measure(
            "answered_fraction", "answered", "steps with an answer, right or wrong", "share", "scored steps", "more"
        ),
        Measure(
            "miss_rate",
            "miss rate",
            "steps that need an earlier answer which is no longer in context, whether a memory retrieves it or not",
            "share",
            "dependent steps",
        ),
        Measure("missed_steps", "steps with a miss", "steps with at least one required answer out of context"),
        Measure(
            "first_error_at_first_miss",
            "first error at first miss",
            "the first error of a run is at its first miss",
            "share",
            "runs with a miss",
        ),
        Measure(
            "no_cascade_accuracy",
            "accuracy without carry-over",
            "what the accuracy would be if exactly the steps with a miss were wrong",
            "share",
            "scored steps",
        ),
        Measure("first_miss", "first miss", "the first step with a required answer out of context", "step"),
        Measure("first_error", "first error", "the first wrong step", "step"),
        Measure("reads", "reads", "earlier answers read back with READ"),
        Measure("recomputations", "recomputations", "earlier answers computed again with RECOMPUTE"),
        Measure("max_turn", "at the action limit", "runs that ended at their limit of actions", pooled="sum"),
        Measure("scored", "runs scored", "runs that ended with a score, out of those attempted", pooled="sum"),
        Measure("pressure", "m/h", "the dependency window over the records in context", pooled="none"),
        Measure("h", "h", "records in context", pooled="none"),
    ),
)
SPENDING_MEASURES = MeasureGroup(
    "spending",
    "What the agent's model cost",
    (
        Measure("calls", "agent calls", "requests to the agent's model", better="less", pooled="sum"),
        Measure("cache_hits", "calls from cache", "requests answered from the reply cache", pooled="sum"),
        Measure("input_tokens", "tokens in", "tokens sent to the agent's model", "tokens", better="less", pooled="sum"),
        Measure(
            "output_tokens", "tokens out", "tokens that the agent's model wrote", "tokens", better="less", pooled="sum"
        ),
        Measure(
            "reasoning_tokens",
            "reasoning tokens",
            "part of the tokens out that the provider counts as reasoning",
            "tokens",
            better="less",
            pooled="sum",
        ),
        Measure(
            "truncated_replies",
            "replies cut",
            "replies that ended at the limit on tokens",
            better="less",
            pooled="sum",
        ),
        Measure("reasked", "asked again", "requests repeated because no answer was found in the reply", pooled="sum"),
        Measure(
            "agent_tokens",
            "agent tokens",
            "tokens of the agent's model, in and out",
            "tokens",
            better="less",
            pooled="sum",
        ),
        Measure(
            "cost_usd",
            "agent cost",
            "price of the agent's calls, or unknown if the price of any call is unknown",
            "dollars",
            better="less",
            pooled="sum",
        ),
    ),
)
_MISSED = "scored steps with a miss"
ARM_MEASURES = MeasureGroup(
    "arms",
    "Rescue: accuracy at steps with a miss, by arm",
    (
        Measure(
            "control",
            "control",
            "correct answers where nothing is injected",
            "share",
            _MISSED,
            color="nothing-injected",
        ),
        Measure(
            "sham",
            "sham",
            "correct answers where another value of the same length is injected under the required label",
            "share",
            _MISSED,
            color="sham-injected",
        ),
        Measure(
            "oracle",
            "oracle",
            "correct answers where the required record is injected",
            "share",
            _MISSED,
            color="restored",
        ),
        Measure(
            "trajectory_accuracy", "trajectory accuracy", "correct answers over all steps", "share", "scored steps"
        ),
    ),
)
PROBE_MEASURES = MeasureGroup(
    "probes",
    "Recovery probes",
    (
        Measure("probes", "probes", "probes that ended with a score", pooled="sum"),
        Measure("successful", "successful", "probes that rebuilt the lost answer", better="more", pooled="sum"),
        Measure("early_stops", "gave up early", "probes that stopped before it was known", better="less", pooled="sum"),
        Measure(
            "at_limit", "out of actions", "probes that ended at their limit of actions", "count", "", "less", "sum"
        ),
        Measure("read_overhead", "read overhead", "reads over the fewest possible, over successes", better="less"),
        Measure("redundant", "repeated reads", "steps read again", better="less", pooled="sum"),
        Measure(
            "off_cone", "reads off the cone", "reads that the lost answer does not need", "count", "", "less", "sum"
        ),
        Measure("minimum", "fewest reads", "the fewest reads that rebuild the answer"),
    ),
)

SIMULATION_MEASURES = MeasureGroup(
    "simulation",
    "Simulated policies",
    (
        Measure(
            "reference_miss_rate",
            "reference miss rate",
            "required answers that are not in context",
            "share",
            "references",
            better="less",
        ),
        Measure("hit_rate", "hit rate", "required answers that are in context", "share", "references", better="more"),
        Measure("miss_regret", "miss regret", "missed references beyond those of Belady's policy", better="less"),
        Measure(
            "gap_closed",
            "gap closed",
            "how much of the distance in miss rate from FIFO to Belady a policy covers",
            "share",
            "the gap between FIFO and Belady",
            better="more",
        ),
        Measure(
            "online_miss_rate",
            "best online",
            "the smallest expected miss rate of any policy that does not know the references in advance",
            "share",
            "dependent steps",
            better="less",
            pooled="none",
        ),
        Measure(
            "hindsight",
            "hindsight",
            "how much of the distance in miss rate from FIFO to Belady only knowledge of the future can cover",
            "share",
            "the gap between FIFO and Belady",
            pooled="none",
        ),
        Measure(
            "eir_pressure", "EIR pressure", "bits that must survive over bits that fit, at the peak", pooled="none"
        ),
    ),
)
