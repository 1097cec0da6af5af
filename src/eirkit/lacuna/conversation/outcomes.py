"""Judges the answers of a conversation and names one fate for each wrong one, with the passage that shows it.

Whether a fact is in a store or a passage is a search for its tracer; where names and numbers are not unique, the words
of the statement, or what the text reads as, must be there. Fates are tested in this order: a value that was taken back,
or that a document planted; a withdrawn value; an old value; another's value; whether what was shown tells the answer
once it has the true dates; then, of the first needed statement that was not shown, whether texts of another user came
in its place and what became of it in the store; and where everything was shown, whether it tells the answer at all, and
whether the answer is unknown, invented, or misread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from eirkit.lacuna.agents.conditions import COMPACTION, MEMORY
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.instructions import instruction_record
from eirkit.lacuna.conversation.language import Listener
from eirkit.lacuna.conversation.reading import (
    DatedStatement,
    dated_statements,
    keys_of,
    learn,
    needed_statements,
    people_in,
    people_named,
    plain_sentence,
    split_turns,
    without_last,
)
from eirkit.lacuna.conversation.scoring import AnswerKey, Words, contains, stated
from eirkit.lacuna.conversation.truth import Key
from eirkit.lacuna.conversation.workload import (
    AnsweredQuestion,
    Conversation,
    WorldConversation,
    true_text,
)
from eirkit.lacuna.conversation.world import ATTRIBUTES, Answer, Statement
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.memories.memory import LONGEST_PASSAGE
from eirkit.records.events import Cause, Kind
from eirkit.records.runs import AbilityCount, ConversationRun, Retrieval, WrongAnswer

COMPUTED = ("how_many", "between", "member", "first", "day")  # forms of questions whose answers no statement has as is
LONGEST_EVIDENCE = 300  # characters of the passage in a record
_DATED = re.compile(r"^(\[[^\]\n]*\] |[^\n]{0,40}?(?=(?:user|assistant): ))?((?:user|assistant): )?(.*)$", re.MULTILINE)
_OWN: dict[str, tuple[Cause, Kind]] = {
    "word_not_used": ("computation", "correct_inputs"),
    "word_invented": ("computation", "correct_inputs"),
    "word_misread": ("computation", "correct_inputs"),
    "word_several": ("computation", "correct_inputs"),
    "word_unreadable": ("malformed", "protocol"),
    "word_unlisted": ("undetermined", "uncertain"),
    "word_rewritten": ("undetermined", "uncertain"),
    "word_unmatched": ("undetermined", "uncertain"),
    "word_unlabeled": ("undetermined", "uncertain"),
}


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """The outcome of one question."""

    t: int
    ability: str
    right: bool
    fate: str | None = None  # of a wrong answer
    evidence: str = ""  # the passage or statement that shows the fate
    missed: bool = False  # what was shown does not give the right answer, apart from what an intervention added

    def verdict(self) -> Verdict:
        """Return the outcome in the terms of all runs: wrong for lack of information, or by the reader itself."""
        cause, kind = (None, None) if self.fate is None else _OWN.get(self.fate, ("state_supply", "missing"))
        answered = self.fate != "word_unreadable"
        return Verdict(
            t=self.t,
            scored=True,
            consumes=True,
            missed=self.missed,
            answered=answered,
            correct=self.right,
            self_consistent=self.right,
            cause=cause,
            kind=kind,
            informed=not self.missed,
        )


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


class ConversationJudge:
    """Judges the answers of one run."""

    def __init__(self, task: WorldConversation) -> None:
        self.task, self.last_day = task, task.dialogues[-1].day
        self._stated: dict[str, set[Statement]] = {}  # what texts of the store say; most are looked at again and again

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything that the world has a name for."""
        subjects = {one.statement.subject for one in self.task.said}
        return frozenset(subjects | {str(one.statement.value) for one in self.task.said})

    @cached_property
    def everybody(self) -> Listener:
        """Somebody who knows all people and nicknames of the world."""
        listener = Listener()
        for name in self._people:
            listener.mention(name)
        for one in self.task.said:
            if one.statement.attribute == "nickname":
                listener.nicknames[str(one.statement.value)] = one.statement.subject
        return listener

    def judge(self, asked: AnsweredQuestion, submitted: str | None, seen: Seen) -> AnswerVerdict:
        """Return the verdict on one answer, in its canonical form; None if it could not be read."""
        missed = not seen.opaque and not self.tells(asked, seen)
        if submitted is None:
            return AnswerVerdict(asked.t, asked.ability, False, "word_unreadable", missed=missed)
        given, submitted = submitted, self.stated(asked, submitted)
        if submitted == self.shown(asked, asked.answer):
            return AnswerVerdict(asked.t, asked.ability, True, missed=missed)
        fate, evidence = self.fate(asked, submitted, seen, given)
        # What a server left nobody can read: a wrong answer counts as lost there, as in the bits that it kept.
        return AnswerVerdict(asked.t, asked.ability, False, fate, evidence[:LONGEST_EVIDENCE], missed or seen.opaque)

    def stated(self, asked: AnsweredQuestion, submitted: str) -> str:
        """Return the answer that a text states by its tracer; the text itself if it states none that is known."""
        return stated(self.key(asked), submitted)

    def key(self, asked: AnsweredQuestion) -> AnswerKey:
        """Return what answers to a question are compared with."""
        question = asked.question
        return AnswerKey(
            "total" if ATTRIBUTES[question.attribute] == "count" else question.form,
            self.shown(asked, asked.answer),
            {self.shown(asked, value): self.texts(asked, value) for value in self.own_values(asked)},
            lambda: {self.shown(asked, value): self.texts(asked, value) for value in self.other_values(asked)},
            self.task.language.answer_words,
            str(question.other),
        )

    def own_values(self, asked: AnsweredQuestion) -> set[Answer]:
        """Return the true answer and every other value of the same subject and attribute."""
        question = asked.question
        if question.form == "first":
            return {question.subject, str(question.other)}
        keys = [key for key in keys_of(question, self.task.truth_at(asked)) if key[0] == question.attribute]
        said = (one.statement for one in self.task.said)
        changes = ("raise", "lower")  # by how much is no value
        values = {one.value for one in said if (one.attribute, one.subject) in keys and one.op not in changes}
        if question.form == "all":
            return {value for value in values if value is not None}
        return {one for one in (asked.answer, *values, *(old for old, _ in self.old_answers(asked))) if one is not None}

    def other_values(self, asked: AnsweredQuestion) -> set[Answer]:
        """Return what may answer the same question about others; of lists, their items."""
        if asked.question.form != "all":
            return set(self.others(asked))
        said = (one.statement for one in self.task.said if one.statement.attribute == asked.question.attribute)
        return {one.value for one in said}

    def texts(self, asked: AnsweredQuestion, answer: Answer) -> set[str]:
        """Return the texts that mean an answer: itself, a name of the person, a short form of no other."""
        text = self.shown(asked, answer)
        if asked.question.attribute == "lead" and isinstance(answer, str):
            return {text, *(name.casefold() for name in self.everybody.names(answer))}
        short = self.task.language.vocabulary.short(asked.question.attribute, str(answer))
        return {text, short.casefold()} if self._shorts[short] == 1 else {text}

    @cached_property
    def _shorts(self) -> Counter[str]:
        """How many values of the world have a short form."""
        vocabulary = self.task.language.vocabulary
        values = {(one.statement.attribute, one.statement.value) for one in self.task.said}
        return Counter(vocabulary.short(attribute, str(value)) for attribute, value in values)

    def fate(self, asked: AnsweredQuestion, submitted: str, seen: Seen, given: str) -> tuple[str, str]:
        """Return the fate of a wrong answer and the text that shows it.

        Args:
            submitted: what the answer states.
            given: the answer itself.
        """
        needed = self.needed(asked)
        if seen.opaque:
            told = self.by_answer(asked, submitted, seen, None)
            return told or "word_opaque", self.text_of(needed[0]) if needed else ""
        lacking = next((one for one in needed if not self.holding(one, seen.passages)), None)
        lacking = lacking or self.unnamed(needed, seen.passages)
        unknown = self.task.language.table["unknown"].casefold()
        if submitted != unknown and (found := self.by_answer(asked, submitted, seen, lacking)) is not None:
            return found, self.showing(asked, submitted, seen)
        if needed and (seen.memory or seen.summarized) and self.is_misdated(asked, seen):
            lines = [line for passage in seen.passages for line in passage.splitlines()]
            return "word_misdated", self.holding(needed[0], lines) or self.text_of(needed[0])
        if lacking is not None:
            return self.by_store(lacking, seen)
        if needed and not self.tells(asked, seen):
            return "word_unclear" if seen.memory or seen.summarized else "word_cut", self.text_of(needed[0])
        if submitted == unknown:
            return "word_not_used", self.text_of(needed[0]) if needed else ""
        shown = "\n".join(seen.passages).casefold()
        invented = [
            word for word in Words(submitted).list if word.isalnum() and not word.isdigit() and word not in shown
        ]
        if Words(given).has_any(self.texts(asked, asked.answer)):
            return "word_several", self.showing(asked, submitted, seen)
        return ("word_invented" if invented else "word_misread"), self.showing(asked, submitted, seen)

    def tells(self, asked: AnsweredQuestion, seen: Seen) -> bool:
        """True if what was shown gives the right answer to somebody who reads it without fault."""
        known = people_in(asked.question)
        answer = learn(dated_statements(self.task.language, seen.passages, asked.day, known)).answer(asked.question)
        return self.shown(asked, answer) in self.texts(asked, asked.answer)

    def is_misdated(self, asked: AnsweredQuestion, seen: Seen) -> bool:
        """True if what was shown does not give the right answer, and gives it with the dates of the conversation."""
        if self.tells(asked, seen):
            return False
        days: dict[Statement, set[int]] = {}
        for one in self.task.said_before(asked):
            days.setdefault(one.statement, set()).add(one.day)
        passages = [self._redated(asked, passage) for passage in seen.passages]
        heard = dated_statements(self.task.language, passages, asked.day, people_in(asked.question))
        # What was said on several days may be about any of them.
        dated = [one._replace(day=min(known)) if len(known := days.get(one[0], ())) == 1 else one for one in heard]
        dated.sort(key=lambda one: one.day)
        return self.shown(asked, learn(dated).answer(asked.question)) in self.texts(asked, asked.answer)

    def _redated(self, asked: AnsweredQuestion, passage: str) -> str:
        """Return a passage in which every line that was said on one day alone has that day."""
        turns: dict[str, list[str]] = {}
        for turn in self.task.turns[: self.task.turns_before(asked)]:
            turns.setdefault(turn.partition(": ")[2], []).append(turn)
        lines = []
        for day, role, words in _DATED.findall(passage):
            said = turns.get(words, ())
            own = f"{day}{role}{words}"
            is_dated = all(turn.day is not None for turn in split_turns(own))
            lines.append(said[0] if len(said) == 1 else own if is_dated else words)
        return "\n".join(lines)

    def by_answer(
        self, asked: AnsweredQuestion, submitted: str, seen: Seen, lacking: DatedStatement | None
    ) -> str | None:
        """Return the fate that the answer itself tells: a withdrawn, an old, or another's value."""
        keys = keys_of(asked.question, self.task.truth_at(asked))
        for fate, values in (
            ("word_false", self.task.truth_at(asked).mistaken),
            ("word_planted", self.task.truth_at(asked).planted),
        ):
            if submitted in {self.shown(asked, value) for key in keys for value in values.get(key, ())}:
                return fate
        facts = [key for one, key in self.old_answers(asked) if self.shown(asked, one) == submitted]
        if asked.answer is None and self.task.truth_at(asked).withdrawn.intersection(facts):
            return "word_withdrawn"
        # A list or a total that lacks one statement equals an older one by chance; the statement tells more.
        if facts and not (lacking is not None and ATTRIBUTES[asked.question.attribute] in ("set", "count")):
            return "word_stale"
        if submitted in {self.shown(asked, one) for one in self.others(asked)}:
            return "word_entity"
        return None

    def used(self, asked: AnsweredQuestion, submitted: str, passages: Sequence[str]) -> set[Statement] | None:
        """Return the statements in passages that an answer rests on; None if that is not known."""
        found = self.rests_on(asked, submitted, passages)
        return None if found is None else {self.named_fully(one.statement) for one in found}

    def rests_on(self, asked: AnsweredQuestion, submitted: str, passages: Sequence[str]) -> list[DatedStatement] | None:
        """Return what passages say that an answer rests on, with the passage of each; None if that is not known.

        If the answer is what the passages tell, these are the statements without which they would tell another,
        wherever they are repeated; if it is not, those that state it. What a wrong number was counted from, or that
        nothing is known, no statement states.
        """
        question = asked.question
        heard = dated_statements(self.task.language, passages, asked.day, people_in(question))
        if self.shown(asked, learn(heard).answer(question)) == submitted:
            without = {said: learn([one for one in heard if one.statement != said]) for said, *_ in heard}
            other = {said for said, rest in without.items() if self.shown(asked, rest.answer(question)) != submitted}
            return [one for one in heard if one.statement in other]
        if submitted == self.task.language.table["unknown"].casefold():
            return []
        parts = submitted.split(", ")
        found = [one for one in heard if str(one.statement.value).casefold() in parts]
        computed = question.form in COMPUTED or ATTRIBUTES[question.attribute] == "count"
        return None if computed and not found else found

    def named_fully(self, said: Statement) -> Statement:
        """Return a statement with full names, which what was shown may not tell."""
        whose, value = self.everybody.resolve(said.subject) or said.subject, said.value
        if said.attribute == "lead":
            value = self.everybody.resolve(str(value)) or value
        return said._replace(subject=whose, value=value)

    def old_answers(self, asked: AnsweredQuestion) -> Iterable[tuple[Answer, Key]]:
        """Yield the answers that were right before the last changes, each with the fact that changed."""
        for key in keys_of(asked.question, self.task.truth_at(asked)):
            for before in without_last(self.task.said_before(asked), key):
                if (answer := learn(before).answer(asked.question)) is not None:
                    yield answer, key

    def others(self, asked: AnsweredQuestion) -> Iterable[Answer]:
        """Yield the present answers to the same question about others."""
        own, before = asked.question, self.task.said_before(asked)
        if own.form in ("now", "before", "as_of") and ATTRIBUTES[own.attribute] != "count":
            stated = (one.statement for one in before if one.statement.attribute == own.attribute)
            yield from (one.value for one in stated if one.subject != own.subject and one.value is not None)
        attribute = {"hop": "lead", "follows": "seat"}.get(asked.question.form, asked.question.attribute)
        about = dict.fromkeys(one.statement.subject for one in before if one.statement.attribute == attribute)
        for subject in about:
            if subject != asked.question.subject and asked.question.form not in (
                "first",
                "between",
                "member",
                "how_many",
            ):
                for said in (before, *without_last(before, (asked.question.attribute, subject))):
                    answer = learn(said).answer(asked.question._replace(subject=subject))
                    if answer not in (None, ()):
                        yield answer

    def by_store(self, lacking: DatedStatement, seen: Seen) -> tuple[str, str]:
        """Return what became of a statement that was needed and not shown."""
        text = self.text_of(lacking)
        if not seen.memory:
            return "word_summary" if seen.summarized else "word_cut", text
        if self.foreign(seen.passages) is not None:
            return "word_scope", self.foreign(seen.passages) or ""
        held = [stored for stored in seen.stored if stored is not None]
        last = held[-1] if held else ()
        cut = self.cut(lacking, (*seen.passages, *last))
        if cut is not None and not self.holding(lacking, last):
            return "word_cut", cut
        if not held:
            return "word_unlisted", text
        if (found := self.holding(lacking, last)) is not None:
            flooded = any(len(one) >= LONGEST_PASSAGE for one in seen.passages)
            return ("word_cut" if flooded else "word_not_returned"), found
        earlier = next((found for one in held if (found := self.holding(lacking, one)) is not None), None)
        return ("word_never_stored", text) if earlier is None else ("word_lost", earlier)

    def needed(self, asked: AnsweredQuestion) -> list[DatedStatement]:
        """Return the statements that the answer needs."""
        return needed_statements(asked.question, self.task.said_before(asked), self.task.truth_at(asked))

    def unnamed(self, needed: Sequence[DatedStatement], passages: Sequence[str]) -> DatedStatement | None:
        """Return the statement that tells whose nickname a needed passage has, if no passage does."""
        whose = {one.statement.subject: one for one in self.task.said if one.statement.attribute == "nickname"}
        for one in needed:
            text = self.holding(one, passages) or ""
            for person in (one.statement.subject, str(one.statement.value)):
                named = whose.get(person)
                if named is None or person in text or not contains(text, str(named.statement.value)):
                    continue
                if self.holding(named, passages) is None:
                    return named
        return None

    def text_of(self, one: DatedStatement) -> str:
        """Return the turn in which a statement was made."""
        return self.task.turns[one.passage]

    def holding(self, one: DatedStatement, texts: Sequence[str]) -> str | None:
        """Return the first text that has a statement; None if there is none."""
        return next((text for text in texts if self.has(text, one)), None)

    def has(self, text: str, one: DatedStatement) -> bool:
        """True if a text has a statement: its turn, its tracer, or words that read as it."""
        op, attribute, _, value = one.statement
        if self.text_of(one) in text:
            return True
        traced = ATTRIBUTES[attribute] in ("value", "rule", "instruction", "set")
        unique = traced and op not in ("forget", "remove", "retract", "plant")
        if unique and not contains(text, str(value)):
            return False
        if unique and ATTRIBUTES[attribute] != "set":
            return True
        return one.statement in self.statements(text)

    def statements(self, text: str) -> set[Statement]:
        """Return what a text says, with full names, as somebody understands it who knows everybody."""
        if text not in self._stated:
            heard = dated_statements(self.task.language, [text], self.last_day, self._people)
            self._stated[text] = {self.named_fully(one.statement) for one in heard}
        return self._stated[text]

    @cached_property
    def _people(self) -> list[str]:
        return sorted({name for one in self.task.said for name in people_named(one.statement)})

    def cut(self, one: DatedStatement, texts: Sequence[str]) -> str | None:
        """Return a text that begins as the turn of a statement does and ends before it is over."""
        said = self.text_of(one).partition(": ")[2], plain_sentence(self.task.language, one.statement)
        for line in (line for text in texts for line in text.splitlines()):
            plain = line.partition(": ")[2] or line
            ends = plain.endswith((".", "!", "?"))  # between two sentences, where nothing of either was cut
            if not ends and any(8 <= len(plain) < len(whole) and whole.startswith(plain) for whole in said):
                return line
        return None

    def foreign(self, passages: Sequence[str]) -> str | None:
        """Return the first passage that speaks of none of this world's people and things; None if there is none."""
        for passage in passages:
            statements = dated_statements(self.task.language, [passage], self.last_day)
            if statements and not any(self._is_ours(one.statement) for one in statements):
                return passage
        return None

    def _is_ours(self, statement: Statement) -> bool:
        firsts = {name.partition(" ")[0] for name in self.names}
        known = statement.subject in self.names or statement.subject in firsts
        return known and (statement.value is None or str(statement.value) in self.names | firsts)

    def shown(self, asked: AnsweredQuestion, answer: Answer) -> str:
        return true_text(self.task.language, asked.question, answer)

    def showing(self, asked: AnsweredQuestion, submitted: str, seen: Seen) -> str:
        """Return the shown text that states the answer: of what was asked about, else of others, else in any way."""
        parts = [part for part in submitted.split(", ") if part]
        texts = [text for text in (seen.passages if seen.memory else self.task.turns) if _has_any(text, parts)]
        keys = keys_of(asked.question, self.task.truth_at(asked))
        stated = [(text, one) for text in texts for one in self.statements(text)]
        stated = [
            (text, one) for text, one in stated if str(one.value).casefold() in parts and one.attribute in dict(keys)
        ]
        own = [text for text, one in stated if (one.attribute, one.subject) in keys]
        texts = [*own, *(text for text, _ in stated), *texts]
        return next(iter(texts), next((turn for turn in self.task.turns if _has_any(turn, parts)), ""))


def _has_any(text: str, parts: Sequence[str]) -> bool:
    return any(part in text.casefold() for part in parts)


def judge_conversation(
    task: WorldConversation, trace: Trace, condition: str, shown: Mapping[int, str]
) -> tuple[list[AnswerVerdict], tuple[Retrieval, ...]]:
    """Return the verdicts on all questions of a run, and what was put into their prompts.

    Args:
        shown: the conversation as it was shown after a number of sessions, where it is known.
    """
    judge, submitted = ConversationJudge(task), {one.t: one.text for one in trace.decisions}
    looks = list(zip(task.questions, looks_at(task, trace, condition, shown), strict=True))
    verdicts = [judge.judge(asked, submitted.get(asked.t), seen) for asked, seen in looks]
    return verdicts, tuple([retrieval_of(asked.t, seen, judge) for asked, seen in looks])


def looks_at(task: Conversation, trace: Trace, condition: str, shown: Mapping[int, str]) -> Iterator[Seen]:
    """Yield what was shown for each question of a run, and what the memory held."""
    stored = tuple(one.stored for one in trace.consultations if one.call.verb == "observe")
    recalled = {one.t: one for one in trace.consultations if one.call.verb == "recall"}
    opaque = {one.t for one in trace.exchanges if one.is_compacted}
    for asked in task.questions:
        call = recalled.get(asked.t)
        passages = (() if call is None else call.passages) if condition == MEMORY else (shown.get(asked.after, ""),)
        yield Seen(
            passages=() if asked.t in opaque else passages,
            stored=stored[: asked.after],
            memory=condition == MEMORY,
            summarized=condition == COMPACTION,
            opaque=asked.t in opaque,
            unshown=() if call is None else call.unshown,
            unshown_ranks=() if call is None else call.unshown_ranks,
            asked=None if call is None else call.asked,
        )


def retrieval_of(t: int, seen: Seen, judge: ConversationJudge | None = None) -> Retrieval:
    """Return what was put into the prompt of a question, and where it has what the answer needs.

    Args:
        judge: knows what is needed; None where nobody does.
    """
    asked, returned, shown = (seen.asked, seen.returned, len(seen.passages)) if seen.memory else (None, None, None)
    if seen.opaque:
        return Retrieval(t, asked, returned, shown, None)
    characters = sum(map(len, seen.passages))
    if judge is None:
        return Retrieval(t, asked, returned, shown, characters)
    came = [*enumerate(seen.passages, 1), *zip(seen.unshown_ranks, seen.unshown, strict=True)]
    needed = judge.needed(judge.task.questions[t - 1])
    ranks = [next((rank for rank, text in came if judge.has(text, one)), None) for one in needed]
    return Retrieval(
        t,
        asked,
        returned,
        shown,
        characters,
        tuple(ranks) if seen.memory else tuple([None] * len(ranks)),
        sum(judge.holding(one, seen.passages) is not None for one in needed),
    )


def recorded_verdicts(task: Conversation, record: ConversationRun) -> list[Verdict]:
    """Return the verdicts of a recorded run, which names the outcome of every wrong answer."""
    wrong = {answer.t: answer for answer in record.wrong}
    verdicts = []
    for put in task.questions:
        answer, missed = wrong.get(put.t), put.t in record.missed
        fate, evidence = (None, "") if answer is None else (answer.outcome, answer.evidence)
        verdicts.append(AnswerVerdict(put.t, put.ability, answer is None, fate, evidence, missed).verdict())
    return verdicts


def conversation_record(
    task: WorldConversation, trace: Trace, verdicts: Sequence[AnswerVerdict], retrieval: tuple[Retrieval, ...]
) -> ConversationRun:
    """Return what a run record says about answers."""
    return replace(
        record_of(task, trace, verdicts, retrieval),
        instruction=instruction_record(task, trace),
        floor_bytes=task.floor_bits() / 8,
    )


def record_of(
    task: Conversation, trace: Trace, verdicts: Sequence[AnswerVerdict], retrieval: tuple[Retrieval, ...]
) -> ConversationRun:
    """Return what the record of a run on any conversation says about its answers and its memory."""
    observed = [one for one in trace.consultations if one.call.verb == "observe"]
    last = observed[-1].stored if observed else None
    asked = Counter(verdict.ability for verdict in verdicts)
    right = Counter(verdict.ability for verdict in verdicts if verdict.right)
    wrong = [WrongAnswer(verdict.t, verdict.fate, verdict.evidence) for verdict in verdicts if verdict.fate is not None]
    return ConversationRun(
        abilities={ability: AbilityCount(right[ability], asked[ability]) for ability in sorted(asked)},
        outcomes=dict(sorted(Counter(answer.outcome for answer in wrong).items())),
        wrong=tuple(wrong),
        missed=tuple(verdict.t for verdict in verdicts if verdict.missed),
        stored_texts=None if last is None else len(last),
        stored_bytes=None if last is None else sum(len(text.encode()) for text in last),
        said_bytes=sum(len(turn.encode()) for turn in task.turns),
        recalls=sum(one.call.verb == "recall" for one in trace.consultations),
        returned_bytes=sum(one.returned_characters for one in trace.consultations),
        retrieval=retrieval,
    )
