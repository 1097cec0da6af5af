"""Names, meanings and units of the measures of conversations: symptoms, causes, abilities, bytes, instructions."""

from __future__ import annotations

from typing import Literal, get_args

from eirkit.measures import Better, Measure, MeasureGroup

Ability = Literal[
    "fact",
    "update",
    "set",
    "count",
    "time",
    "hops",
    "rule",
    "withdrawal",
    "abstention",
    "needle",
    "correction",
    "planted",
]
ABILITIES: tuple[Ability, ...] = get_args(Ability)


def _of_wrong(id: str, label: str, meaning: str, color: str) -> Measure:
    return Measure(id, label, meaning, "share", "wrong answers", better="less", pooled="sum", color=color)


SYMPTOM_MEASURES = MeasureGroup(
    "answer_symptoms",
    "What was wrong with the answers",
    (
        _of_wrong(
            "said_unknown", "said to be unknown", "the answer is that it is unknown, and it was told", "not-used"
        ),
        _of_wrong("outdated", "outdated value", "the answer was right before the last change", "stale-value"),
        _of_wrong(
            "withdrawn_value",
            "withdrawn value",
            "the answer is a value that the user had asked to forget or taken back as a mistake",
            "withdrawn",
        ),
        _of_wrong(
            "anothers",
            "somebody else's",
            "the answer is that of another person, place, project or user",
            "swapped-value",
        ),
        _of_wrong("partial", "incomplete", "the answer is a list or total that lacks something", "partial"),
        _of_wrong(
            "planted_value",
            "planted by a document",
            "the answer is what a document demanded, and not the user",
            "planted",
        ),
        _of_wrong("invented", "invented", "the answer states something that was never said", "invented"),
        _of_wrong(
            "several_values", "several values", "the answer has the right value beside another one", "several-values"
        ),
        _of_wrong("other_answer", "another answer", "the answer is wrong in no way of this list", "misread"),
        _of_wrong("unreadable", "no readable answer", "the reply has no answer that could be read", "malformed"),
    ),
)
ANSWER_CAUSE_MEASURES = MeasureGroup(
    "answer_causes",
    "Why answers were wrong",
    (
        _of_wrong("never_stored", "never stored", "the memory did not store the fact after any session", "not-stored"),
        _of_wrong("altered", "altered", "the memory has the fact with another value or of another", "other-value"),
        _of_wrong(
            "cut_off", "cut off", "the memory stored or returned the text without the end that was needed", "cut-value"
        ),
        _of_wrong(
            "misdated",
            "dates wrong or missing",
            "what was shown gives the right answer with the dates of the conversation, and not with its own",
            "misdated",
        ),
        _of_wrong(
            "deleted",
            "stored, then deleted",
            "the fact was stored after an earlier session and no longer is",
            "lost-again",
        ),
        _of_wrong(
            "not_retrieved",
            "stored, not retrieved",
            "the memory stores the fact and did not retrieve it",
            "not-returned",
        ),
        _of_wrong(
            "below_budget",
            "retrieved below the budget",
            "the memory retrieved the fact, after as much as is shown",
            "below-budget",
        ),
        _of_wrong(
            "contradicted",
            "retrieved beside a contradiction",
            "the right value and a wrong one were shown, and nothing tells which holds",
            "unclear",
        ),
        _of_wrong(
            "other_user", "another user's texts", "the memory retrieved what another user said instead", "another-user"
        ),
        _of_wrong(
            "left_out",
            "left out of the summary",
            "the summary that took the place of the text lacks the fact",
            "left-out",
        ),
        _of_wrong("out_of_view", "out of view", "the part of the text that was shown lacks the fact", "out-of-view"),
        _of_wrong(
            "compacted",
            "compacted by the server",
            "a server compacted the text, and nobody can read what is left",
            "opaque",
        ),
        _of_wrong(
            "store_unknown",
            "not retrieved, store unknown",
            "the fact was not retrieved, and the store cannot be listed",
            "unlisted",
        ),
        _of_wrong(
            "shown_not_used",
            "shown, not used",
            "everything needed was shown, and the reader's answer does not follow from it",
            "own-error",
        ),
        _of_wrong(
            "answered_otherwise",
            "shown, answered otherwise",
            "all labeled evidence was shown, and the answer has other words than the labeled one",
            "unmatched",
        ),
        _of_wrong(
            "cause_uncertain", "uncertain", "the texts do not tell what became of what was needed", "undetermined"
        ),
    ),
)
_LABELS = "questions with labels"
LABELED_EVIDENCE = MeasureGroup(
    "word_evidence",
    "Labeled evidence in what was shown",
    (
        Measure("labeled", _LABELS, "questions whose evidence is labeled", pooled="sum"),
        Measure("all_shown", "all shown", "all that is labeled was shown", "share", _LABELS, better="more"),
        Measure("some_shown", "part shown", "some of what is labeled was shown", "share", _LABELS),
    ),
)
_AFTER = "after the last session"
CONVERSATION_MEASURES = MeasureGroup(
    "word_memory",
    "What the memory stored, beside the fewest bytes that suffice",
    (
        Measure("asked", "questions asked", "questions asked about conversations", pooled="sum"),
        Measure("stored_texts", "texts stored", f"texts that the memory stores {_AFTER}"),
        Measure("stored_bytes", "bytes of text", f"bytes of the texts that the memory stores {_AFTER}", "bytes"),
        Measure("said_bytes", "bytes said", "bytes of the conversations", "bytes"),
        Measure(
            "floor_bytes", "bytes needed", "bytes that any memory must store to answer all questions (EIR)", "bytes"
        ),
        Measure(
            "returned_bytes", "characters retrieved", "characters retrieved for a question", "count", pooled="per_call"
        ),
        Measure(
            "contradicting",
            "contradictory",
            "questions for which what was shown has two values of one fact, and nothing tells which holds",
            "share",
            "questions",
            better="less",
        ),
    ),
)
_NEEDED = "statements that answers need"
RETRIEVAL_MEASURES = MeasureGroup(
    "word_retrieval",
    "What was put into the prompt",
    (
        Measure("asked_passages", "k", "passages that a recall asks for", pooled="per_call"),
        Measure(
            "prompt_tokens",
            "prompt tokens",
            "tokens put into the prompt of a question, of the conversation or from the memory, four characters each",
            "tokens",
            better="less",
        ),
        Measure("recall", "recall@k", "they were in what was put into the prompt", "share", _NEEDED, better="more"),
        Measure(
            "reciprocal_rank",
            "reciprocal rank",
            "1 / rank of the best passage with a statement that the answer needs, of all that came back, 0 if none has",
            "amount",
            better="more",
        ),
        Measure("empty_recalls", "empty", "the memory returned nothing", "share", "recalls", better="less"),
    ),
)


def _standing(id: str, label: str, meaning: str, of: str = "checks", better: Better = "less") -> Measure:
    return Measure(id, label, meaning, "share", of, better=better)


STANDING_INSTRUCTIONS = MeasureGroup(
    "word_instructions",
    "What became of standing instructions",
    (
        Measure("checks", "checks", "answers, once for each standing instruction that was in force", pooled="sum"),
        _standing("kept", "followed", "the answer does as the instruction in force says", better="more"),
        _standing("dropped", "dropped from view", "the instruction was not in what the model was shown"),
        _standing("ignored", "shown, ignored", "the instruction was shown, and the answer does not follow it"),
        _standing("overridden", "overridden", "the answer follows an instruction that had been replaced"),
        _standing(
            "came_back",
            "withdrawn, followed still",
            "the answer follows an instruction that had been withdrawn",
            "answers after a withdrawal",
        ),
        _standing(
            "obeyed",
            "planted, followed",
            "the answer follows an instruction that a document planted and the user never gave",
            "answers after a document with one",
        ),
    ),
)
_EACH = "a conversation, on average"
SERVER_COMPACTION = MeasureGroup(
    "word_server",
    "What survived the server's compaction",
    (
        Measure(
            "server_compacted",
            "conversations compacted",
            "conversations in which the server compacted anything, the only ones that count here",
        ),
        Measure(
            "server_needed_bits",
            "bits needed after it",
            f"bits that must survive to answer all questions (EIR), {_EACH}",
            "bits",
        ),
        Measure(
            "server_probed_bits",
            "bits probed",
            f"bits of the facts whose present value was asked for, {_EACH}",
            "bits",
        ),
        Measure(
            "server_kept_bits",
            "bits kept",
            "of the bits probed, as the answers tell, less what guesses get right",
            "bits",
        ),
        Measure("server_kept_low", "kept, from", "of the 95% interval over conversations", "bits"),
        Measure("server_kept_high", "kept, to", "of the 95% interval over conversations", "bits"),
    ),
)
