"""Workloads made of files that the user has: conversations of LongMemEval and MEME, with their labels.

A task is one entry of the file, numbered by its seed. Answers of these benchmarks are free text that others judge by a
model. Here a reply agrees if it contains the labeled answer; whether another wording is right stays open.
"""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.published import ABSTAIN, LONGMEMEVAL, MEME, LabeledQuestion, PublishedFile
from eirkit.lacuna.conversation.scoring import Words, is_unknown
from eirkit.lacuna.conversation.workload import Conversation, Question
from eirkit.lacuna.tasks.task import ConversationSpec
from eirkit.lacuna.tasks.workload import TextWorkload, conversations

UNKNOWN = "unknown"


@dataclass(frozen=True)
class LabeledConversation(Conversation):
    """One entry of a file."""

    labels: tuple[LabeledQuestion, ...]  # of its questions

    def canonical(self, t: int, text: str) -> str:
        return plain_words(text)

    def agrees(self, t: int, submitted: str) -> bool:
        """Return whether an answer, in its canonical form, contains the labeled one."""
        question = self.labels[t - 1]
        if question.kind == ABSTAIN:
            return is_said_unknown(submitted)
        return has_words(submitted, plain_words(question.answer))


def is_said_unknown(submitted: str) -> bool:
    """Return whether an answer says that something is not known."""
    return is_unknown(load_language().answer_words, Words(submitted))


def plain_words(text: str) -> str:
    """Return a text in lower case, with one space between words and no punctuation."""
    return " ".join("".join(sign if sign.isalnum() else " " for sign in text.casefold()).split())


def has_words(text: str, wanted: str) -> bool:
    """Return whether words occur in a text as whole words, one after the other; both in their plain form."""
    return bool(wanted) and f" {wanted} " in f" {text} "


class ConversationFile(TextWorkload, ABC):
    """Conversations of a file; --preset names it, and seeds are the numbers of its entries."""

    endless = False
    kind: ClassVar[str]

    def specify(self, values: Mapping[str, Any]) -> ConversationSpec:
        if foreign := [name for name in values if name not in ("workload", "preset")]:
            raise UsageError(f"{self.kind} takes no {foreign[0]}; leave it out")
        if "preset" not in values:
            raise UsageError(f"{self.kind} needs the file that you have; give --preset FILE.json")
        most = _most_questions(str(values["preset"]), self.kind)
        return ConversationSpec(str(values["workload"]), str(values["preset"]), most)

    def check(self, spec: ConversationSpec) -> None:
        if spec.questions != _most_questions(spec.preset, self.kind):
            raise SpecError(f"{spec.preset} has no longer {spec.questions} questions at most; begin anew")

    def tasks(self, spec: ConversationSpec, seeds: Sequence[int]) -> Iterator[LabeledConversation]:
        file = PublishedFile(Path(spec.preset))
        for seed in seeds:
            if not seed < len(file):
                raise SpecError(f"seed {seed} is beyond the {len(file):,} entries of {spec.preset}; choose less")
            yield self._task(spec.with_seed(seed), file)

    def _task(self, spec: ConversationSpec, file: PublishedFile) -> LabeledConversation:
        told = file[spec.seed]
        right = tuple(plain_words(UNKNOWN if one.kind == ABSTAIN else one.answer) for one in told.questions)
        whole = json.dumps([told.questions, told.sessions])  # with the labels, by which answers are judged
        before = list(accumulate((bool(one.messages) for one in told.sessions), initial=0))
        questions = tuple(
            Question(t, one.text, one.kind, before[one.after], one.day) for t, one in enumerate(told.questions, 1)
        )
        return LabeledConversation(
            spec, sha256(whole.encode()).hexdigest(), told.sessions, questions, right, told.questions
        )


@conversations.add(LONGMEMEVAL)
class LongMemEval(ConversationFile):
    """Conversations and questions of a file of LongMemEval that you have; --preset names it."""

    kind = LONGMEMEVAL


@conversations.add(MEME)
class Meme(ConversationFile):
    """Conversations and questions of a file of MEME that you have; --preset names it."""

    kind = MEME


def _most_questions(path: str, kind: str) -> int:
    """Return the most questions of one entry.

    Raises:
        UsageError: the file is of the other benchmark.
    """
    file = PublishedFile(Path(path))
    found, first = file.kind_and_entry(0)
    if found != kind:
        raise UsageError(f"{path} is a file of {found}; use --workload {found}")
    if kind == LONGMEMEVAL:
        return len(first.questions)  # every entry has one
    return _most_of(path, file.path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _most_of(path: str, changed: int) -> int:
    return max(len(one.questions) for one in PublishedFile(Path(path)))
