"""Finds why an answer about a conversation is wrong: what became of each statement that the right answer needs.

The latest change, a retraction and a withdrawal are needed too. The first needed statement that was not shown decides:
whether the memory returned it below what was shown, stored it and did not retrieve it, stored it earlier, cut or
altered it, or never stored it. Where all were shown, their dates, or a second value of the same fact, may be what is
wrong; where what was shown tells the right answer to somebody who reads it without fault, the reader erred. What the
texts do not tell is uncertain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eirkit.lacuna.conversation.reading import (
    DatedStatement,
    dated_statements,
    days_in,
    keys_of,
    learn,
    needed_statements,
    people_in,
    people_named,
    split_turns,
)
from eirkit.lacuna.conversation.scoring import contains
from eirkit.lacuna.conversation.texts import StatementFinder, plain_text, same_operation
from eirkit.lacuna.conversation.workload import AnsweredQuestion
from eirkit.lacuna.conversation.world import ATTRIBUTES, Statement
from eirkit.lacuna.memories.memory import LONGEST_PASSAGE
from eirkit.records.runs import AnswerCause

_DATED = re.compile(r"^(\[[^\]\n]*\] |[^\n]{0,40}?(?=(?:user|assistant): ))?((?:user|assistant): )?(.*)$", re.MULTILINE)
_PRESENT = ("now", "hop", "follows", "day", "first", "between")  # forms of questions that ask for what holds now


@dataclass(frozen=True, slots=True)
class Seen:
    """What was shown for one question, and what the memory held."""

    passages: tuple[str, ...]
    stored: tuple[tuple[str, ...] | None, ...]  # after each session; None where the store cannot be listed
    memory: bool  # False where the conversation itself was shown
    summarized: bool = False  # what was shown is a summary
    opaque: bool = False  # a server compacted it, and nobody can read what that left
    unshown: tuple[str, ...] = ()  # what the memory returned beyond that, best first
    unshown_ranks: tuple[int, ...] = ()  # of those, among all that it returned
    asked: int | None = None  # passages that the memory was asked for

    @property
    def returned(self) -> int:
        """How many passages came back."""
        return max((len(self.passages), *self.unshown_ranks))

    @property
    def listed(self) -> list[tuple[str, ...]]:
        """What the store had, each time that it could be listed."""
        return [stored for stored in self.stored if stored is not None]


@dataclass(frozen=True, slots=True)
class Finding:
    """Why an answer is wrong, and what shows it."""

    cause: AnswerCause
    statement: str = ""  # the turn with the statement that decides it; empty if no statement does
    evidence: str = ""  # the text of the store or of what was shown


class CauseFinder(StatementFinder):
    """Finds the causes of wrong answers about one world."""

    def cause(self, asked: AnsweredQuestion, seen: Seen) -> Finding:
        """Return why a wrong answer to a question is wrong."""
        needed = self.needed(asked)
        first = self.text_of(needed[0]) if needed else ""
        if seen.opaque:
            return Finding("compacted", first)
        tells, conflict = self.tells(asked, seen), self.conflict(asked, seen)
        if tells and conflict is None:
            return Finding("shown_not_used", first, self._shown_of(needed, seen))
        is_retold = seen.memory or seen.summarized  # what was shown is not the conversation itself
        if is_retold and needed and not tells and (wrongly := self.misdated(asked, seen)) is not None:
            return Finding("misdated", first, wrongly)
        if not tells and (lacking := self.lacking(asked, needed, seen.passages)) is not None:
            return self.by_store(lacking, seen)
        if conflict is not None:
            return conflict
        if seen.memory and (wrong := self._never_said(asked, seen)):
            foreign = self.foreign([text for _, text in wrong])
            return Finding("altered" if foreign is None else "other_user", first, foreign or wrong[0][1])
        if not is_retold:
            return Finding("out_of_view", first)
        for one in needed:
            if (cut := self._only_cut(one, seen.passages)) is not None:
                return Finding("cut_off", self.text_of(one), cut)
        return Finding("cause_uncertain", first, self._shown_of(needed, seen))

    def needed(self, asked: AnsweredQuestion) -> list[DatedStatement]:
        """Return the statements that the answer needs."""
        return needed_statements(asked.question, self.task.said_before(asked), self.task.truth_at(asked))

    def lacking(
        self, asked: AnsweredQuestion, needed: Sequence[DatedStatement], passages: Sequence[str]
    ) -> DatedStatement | None:
        """Return the first needed statement that texts do not have; None if they have all.

        What was added to a set and removed again is not missed where neither is there, but another of its items.
        """
        missing = [one for one in needed if self.holding(one, passages) is None]
        if ATTRIBUTES[asked.question.attribute] == "set" and len(missing) < len(needed):
            removed = {one.statement.value for one in needed if one.statement.op == "remove"}
            gone = {one.statement.value for one in missing if one.statement.op == "add"} & removed
            missing = [one for one in missing if one.statement.value not in gone]
        return next(iter(missing), None) or self.unnamed(needed, passages)

    def unnamed(self, needed: Sequence[DatedStatement], passages: Sequence[str]) -> DatedStatement | None:
        """Return the statement that tells whom a needed passage means by a short name, if no passage does.

        A nickname needs the statement that gave it. A first name that several people have means the one who had been
        mentioned when it was said, so a passage must have one of these mentions.
        """
        for one in needed:
            text = self.holding(one, passages) or ""
            for person in people_named(one.statement):
                is_named = plain_text(person) in plain_text(text)
                telling = [] if is_named else self._telling(person, one, text)
                if telling and not any(self.holding(each, passages) for each in telling):
                    return telling[-1]
        return None

    def _telling(self, person: str, one: DatedStatement, text: str) -> list[DatedStatement]:
        """Return the statements of which one must be known to understand whom a text means by a short name."""
        nicknames = [said for said in self.task.said if said.statement[1:3] == ("nickname", person)]
        if any(contains(text, str(said.statement.value)) for said in nicknames):
            return nicknames
        if len(self.everybody.firsts.get(person.partition(" ")[0], ())) < 2:
            return []
        earlier = (said for said in self.task.said if said.passage <= one.passage and said != one)
        return [said for said in earlier if person in self.text_of(said)]

    def by_store(self, lacking: DatedStatement, seen: Seen) -> Finding:
        """Return what became of a statement that was needed and not shown."""
        said = self.text_of(lacking)
        if not seen.memory:
            return Finding("left_out" if seen.summarized else "out_of_view", said)
        listed = seen.listed
        last = listed[-1] if listed else ()
        if (found := self.holding(lacking, seen.unshown)) is not None:
            return Finding("below_budget", said, found)
        if (found := self.altered(lacking, seen.passages)) is not None:
            return Finding("altered", said, found)
        cut = self.cut(lacking, seen.passages)
        held, foreign = self.holding(lacking, last), self.foreign(seen.passages)
        if held is not None:
            if cut is not None and not any(cut in text.splitlines() for text in last):
                return Finding("cut_off", said, cut)
            if foreign is not None:
                return Finding("other_user", said, foreign)
            if any(len(text) >= LONGEST_PASSAGE for text in seen.passages):
                return Finding("below_budget", said, held)
            return Finding("not_retrieved", said, held)
        for stored in listed:
            if (found := self.holding(lacking, stored)) is not None:
                return Finding("deleted", said, found)
        if cut is not None or (cut := self.cut(lacking, last)) is not None:
            return Finding("cut_off", said, cut)
        if (found := self.altered(lacking, last)) is not None:
            return Finding("altered", said, found)
        if not listed:
            return Finding("store_unknown", said) if foreign is None else Finding("other_user", said, foreign)
        if (found := self._deleted_before(lacking, listed)) is not None:
            return Finding("deleted", said, found)
        return Finding("never_stored", said)

    def _deleted_before(self, lacking: DatedStatement, listed: Sequence[Sequence[str]]) -> str | None:
        """Return the stored text of a fact of which nothing is stored since it changed; None if there is none."""
        key = lacking.statement[1:3]
        older = [one for one in self.task.said if one.statement[1:3] == key and one.passage < lacking.passage]
        if any(self.holding(one, listed[-1]) is not None for one in older):
            return None
        found = (self.holding(one, stored) for stored in listed for one in older)
        return next((text for text in found if text is not None), None)

    def tells(self, asked: AnsweredQuestion, seen: Seen) -> bool:
        """True if what was shown gives the right answer to somebody who reads it without fault."""
        return self._answers(asked, self._heard(asked, seen.passages))

    def _heard(self, asked: AnsweredQuestion, passages: Sequence[str]) -> list[DatedStatement]:
        return dated_statements(self.task.language, passages, asked.day, people_in(asked.question))

    def _answers(self, asked: AnsweredQuestion, heard: Sequence[DatedStatement]) -> bool:
        return self.shown(asked, learn(heard).answer(asked.question)) in self.texts(asked, asked.answer)

    def misdated(self, asked: AnsweredQuestion, seen: Seen) -> str | None:
        """Return a text with a wrong date, or none, if what was shown gives the right answer with the true dates."""
        days = self.days_said
        passages = [self._redated(asked, passage) for passage in seen.passages]
        dated = []
        for one in self._heard(asked, passages):
            known = days.get(same_operation(self.named_fully(one.statement)), frozenset())
            # What was said on several days may be about any of them.
            true = one._replace(day=min(known), until=None) if len(known) == 1 else one
            dated.append(true)
        dated.sort(key=lambda one: one.day)
        if not self._answers(asked, dated):
            return None
        keys = keys_of(asked.question, self.task.truth_at(asked))
        about = [one for one in self.task.said_before(asked) if one.statement[1:3] in keys]
        return next((text for one in about for text in seen.passages if self._is_wrongly_dated(text, one)), None)

    def _is_wrongly_dated(self, text: str, one: DatedStatement) -> bool:
        """True if a text has a statement without one of the days on which it was made, in any usual form."""
        lines = [line for line in text.splitlines() if self.has(line, one)]
        if not lines and not self.has(text, one):
            return False
        days = [days_in(self.task.language, line) or days_in(self.task.language, text) for line in lines or [text]]
        return not any(self.days_said[same_operation(one.statement)] & found for found in days)

    def _redated(self, asked: AnsweredQuestion, passage: str) -> str:
        """Return a passage in which every line that was said on one day alone has that day."""
        turns: dict[str, list[str]] = {}
        for turn in self.task.turns[: self.task.turns_before(asked)]:
            turns.setdefault(turn.partition(": ")[2], []).append(turn)
        lines = []
        for day, role, words in _DATED.findall(passage):
            said = turns.get(words, ())
            own = f"{day}{role}{words}"
            is_dated = all(turn.day is not None for turn in split_turns(self.task.language, own))
            lines.append(said[0] if len(said) == 1 else own if is_dated else words)
        return "\n".join(lines)

    def conflict(self, asked: AnsweredQuestion, seen: Seen) -> Finding | None:
        """Return that what was shown has two values of what is asked, of which nothing tells which holds.

        They have the same day or none, or one of them was never said and has no older day than the right one.
        """
        if not (seen.memory or seen.summarized):
            return None
        keys = keys_of(asked.question, self.task.truth_at(asked))
        heard = [one._replace(statement=self.named_fully(one.statement)) for one in self._heard(asked, seen.passages)]
        said = {same_operation(one.statement) for one in self.task.said_before(asked)}
        for key in keys:
            about = [one for one in heard if (one.statement.attribute, one.statement.subject) == key]
            wrong = self._undecided(asked, about, said)
            if wrong is not None:
                needed = self.needed(asked)
                turn = self.text_of(needed[0]) if needed else ""
                cause: AnswerCause = "contradicted"
                if wrong.statement._replace(op="plant") in said:
                    cause = "altered"
                elif same_operation(wrong.statement) in said:
                    made = [one for one in self.task.said_before(asked) if one.statement == wrong.statement]
                    if not any(self._is_wrongly_dated(text, one) for text in seen.passages for one in made):
                        continue
                    cause = "misdated"
                return Finding(cause, turn, seen.passages[wrong.passage])
        return None

    def _undecided(
        self, asked: AnsweredQuestion, about: Sequence[DatedStatement], said: set[Statement]
    ) -> DatedStatement | None:
        """Return a wrong statement about one fact that nothing tells from the right ones; None if there is none."""
        false = {one.statement.value for one in about if one.statement.op == "retract"}
        forgotten = max((one.day for one in about if one.statement.op == "forget"), default=-1)
        held = [
            one
            for one in about
            if one.statement.op in ("set", "replace", "add", "remove", "raise", "lower")
            and one.statement.value not in false
            and one.until is None
            and one.day > forgotten
        ]
        right = [one for one in held if same_operation(one.statement) in said]
        wrong = [one for one in held if same_operation(one.statement) not in said]
        if not right:
            return None
        newest = max(one.day for one in right)
        present = asked.question.form in _PRESENT
        for one in wrong:
            if not present or one.day >= newest or one.day == 0:
                return one
        if ATTRIBUTES[about[0].statement.attribute] in ("set", "count"):
            return None
        values = {one.statement.value: one for one in right if one.day in (0, newest)}
        truth = self.task.truth_at(asked).current(*about[0].statement[1:3])
        return None if len(values) < 2 else next(one for value, one in values.items() if value != truth)

    def _never_said(self, asked: AnsweredQuestion, seen: Seen) -> list[tuple[Statement, str]]:
        """Return what was shown about the facts that are asked for and was never said, with its text."""
        keys = keys_of(asked.question, self.task.truth_at(asked))
        return [
            (said, text)
            for text in seen.passages
            for said in self.statements(text)
            if (said.attribute, said.subject) in keys and not self.was_said(said)
        ]

    def _only_cut(self, one: DatedStatement, passages: Sequence[str]) -> str | None:
        """Return a line with the value of a statement that is cut after it, if no line has more."""
        lines = [line for text in passages for line in text.splitlines() if self.has(line, one)]
        return lines[0] if lines and all(self.cut(one, [line]) for line in lines) else None

    def _shown_of(self, needed: Sequence[DatedStatement], seen: Seen) -> str:
        """Return the first text that has a needed statement."""
        texts = [text for passage in seen.passages for text in passage.splitlines()]
        found = (self.holding(one, part) for one in needed for part in (texts, seen.passages))
        return next((text for text in found if text is not None), "")
