"""Names, meanings and units of the measures of conversations: outcomes of answers, abilities, bytes, instructions."""

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

_ASKED = "questions"


# An outcome that a record of another task can have too has its color.
_COLORS = {
    "word_withdrawn": "withdrawn",
    "word_false": "taken-back",
    "word_planted": "planted",
    "word_stale": "stale-value",
    "word_entity": "swapped-value",
    "word_scope": "another-user",
    "word_cut": "cut-value",
    "word_summary": "left-out",
    "word_opaque": "opaque",
    "word_never_stored": "not-stored",
    "word_lost": "lost-again",
    "word_not_returned": "not-returned",
    "word_unlisted": "unlisted",
    "word_rewritten": "other-words",
    "word_unmatched": "unmatched",
    "word_unlabeled": "unlabeled",
    "word_misdated": "misdated",
    "word_unclear": "unclear",
    "word_not_used": "not-used",
    "word_invented": "invented",
    "word_misread": "misread",
    "word_several": "several-values",
    "word_unreadable": "malformed",
}


def _outcome(id: str, label: str, meaning: str) -> Measure:
    return Measure(id, label, meaning, "share", _ASKED, better="less", color=_COLORS[id])


ANSWER_MEASURES = MeasureGroup(
    "word_fates",
    "Why answers were wrong",
    (
        _outcome("word_withdrawn", "withdrawn, came back", "the answer is a value that the user had asked to forget"),
        _outcome("word_false", "mistake, came back", "the answer is a value that the user had taken back as a mistake"),
        _outcome("word_planted", "planted by a document", "the answer is what a document demanded, and not the user"),
        _outcome("word_stale", "outdated value", "the answer was right before the last change"),
        _outcome("word_entity", "another's value", "the answer is right for another person, place or project"),
        _outcome("word_scope", "another user's", "the memory retrieved texts of another user's conversations instead"),
        _outcome("word_cut", "cut off", "the text with the fact was cut before the fact"),
        _outcome(
            "word_summary", "left out of the summary", "the summary that took the place of the text lacks the fact"
        ),
        _outcome(
            "word_opaque", "compacted by the server", "a server compacted the text, and nobody can read what is left"
        ),
        _outcome("word_never_stored", "never stored", "the memory did not store the fact after any session"),
        _outcome(
            "word_lost", "stored, then lost", "the memory stored the fact after an earlier session and no longer does"
        ),
        _outcome("word_not_returned", "stored, not retrieved", "the memory stores the fact and did not retrieve it"),
        _outcome(
            "word_unlisted",
            "not retrieved, store unknown",
            "the fact was not retrieved, and the store cannot be listed",
        ),
        _outcome(
            "word_rewritten",
            "not known: other words",
            "the store has other words than the labeled ones",
        ),
        _outcome(
            "word_unmatched", "shown, answered otherwise", "all labeled evidence was shown, and the answer differs"
        ),
        _outcome("word_unlabeled", "no labeled evidence", "the question has no labels, and the answer differs"),
        _outcome(
            "word_misdated",
            "dates wrong or missing",
            "what was shown gives the right answer with the dates of the conversation, and not with its own",
        ),
        _outcome(
            "word_unclear",
            "uncertain",
            "what was shown has the fact, but whose it is, or whether it holds, cannot be read from it",
        ),
        _outcome(
            "word_not_used", "shown, not used", "everything needed was shown, and the answer was that it is unknown"
        ),
        _outcome("word_invented", "invented", "the answer has a word that occurs nowhere in what was shown"),
        _outcome("word_misread", "misread", "everything needed was shown, and the answer does not follow from it"),
        _outcome("word_several", "several values", "the answer has the true value and another one of the same subject"),
        _outcome("word_unreadable", "no readable answer", "the reply has no answer that could be read"),
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
