"""Explains one answer about a conversation: when each statement it needed was said, stored, sought and returned."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from eirkit.lacuna.conversation.causes import Seen
from eirkit.lacuna.conversation.outcomes import ConversationJudge
from eirkit.lacuna.conversation.reading import DatedStatement
from eirkit.lacuna.conversation.workload import AnsweredQuestion, WorldConversation
from eirkit.lacuna.conversation.world import Statement
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.why import UNKNOWN, NeededInput, UsedPassage, WhyCard, quote
from eirkit.records.runs import WrongAnswer


def conversation_card(
    task: WorldConversation,
    t: int,
    verdict: Verdict,
    submitted: str | None,
    wrong: WrongAnswer | None,
    seen: Seen | None,
) -> WhyCard:
    """Return the card of a question.

    Args:
        wrong: what the record says of a wrong answer.
        seen: what was shown and stored; None if the texts of the run were not kept.
    """
    judge, asked = ConversationJudge(task), task.questions[t - 1]
    needed = judge.needed(asked)
    if seen is not None and (named := judge.unnamed(needed, seen.passages)) is not None and named not in needed:
        needed = [*needed, named]
    rests_on = None
    if seen is not None and submitted is not None:
        rests_on = judge.rests_on(asked, judge.stated(asked, submitted), seen.passages)
    used = None if rests_on is None else {judge.named_fully(one.statement) for one in rests_on}
    return WhyCard(
        t,
        verdict.correct,
        task.answers[t - 1],
        submitted,
        verdict.cause,
        verdict.kind,
        tuple(_statement(judge, one, asked.text, seen, used) for one in needed),
        "no answer could be read" if submitted is None else None,
        wrong,
        asked.text,
        () if verdict.correct or seen is None else tuple(_passages(judge, asked, seen, rests_on or ())),
    )


def _passages(
    judge: ConversationJudge, asked: AnsweredQuestion, seen: Seen, rests_on: Sequence[DatedStatement]
) -> Iterator[UsedPassage]:
    """Yield the passages that an answer rests on, each once, with when that was said."""
    before = judge.task.said_before(asked)
    told = set()
    for one in rests_on:
        said = judge.named_fully(one.statement)
        text = _stating(judge, seen.passages[one.passage], said)
        if text not in told:
            told.add(text)
            source = next((other for other in reversed(before) if other.statement == said), None)
            of_others = (other for other in reversed(before) if other.statement[1::2] == said[1::2])
            source = source or next(of_others, None)  # the same attribute and value
            session = None if source is None else _session_of(judge.task, source.passage)
            about = None if source is None or source.statement.subject == said.subject else source.statement.subject
            yield UsedPassage(one.passage + 1 if seen.memory else None, len(seen.passages), text, session, about)


def _stating(judge: ConversationJudge, passage: str, said: Statement) -> str:
    """Return the line of a passage that states something, or all of it."""
    lines = passage.splitlines()
    return next((line for line in lines if said in judge.statements(line)), passage)


def _statement(
    judge: ConversationJudge,
    one: DatedStatement,
    question: str,
    seen: Seen | None,
    used_ones: Collection[Statement] | None,
) -> NeededInput:
    session = _session_of(judge.task, one.passage)
    lines = [("said", f"in session {session} of {len(judge.task.sessions)}")]
    name = quote(judge.text_of(one))
    if seen is None:
        return NeededInput(name, None, (*lines, ("shown", f"{UNKNOWN}: the texts of the run were not kept")))
    place = next((i for i, text in enumerate(seen.passages) if judge.has(text, one)), None)
    used = None if place is None or used_ones is None else one.statement in used_ones
    if not seen.memory:
        lines.append(("shown", "no; cut off" if place is None else "yes"))
        return NeededInput(name, None, tuple(lines), in_context=place is not None, used=used)
    after = [number for number, texts in enumerate(seen.stored, 1) if texts and judge.holding(one, texts)]
    known = [number for number, texts in enumerate(seen.stored, 1) if texts is not None]
    held = bool(after) and after[-1] == known[-1] if known else None
    lines.append(("stored", _stored(judge, one, seen, after, known)))
    lines.append(("in the store", {None: UNKNOWN, True: "yes", False: "no"}[held]))
    lines.append(("sought with", quote(question)))
    came, shown = seen.returned, len(seen.passages)
    unshown = zip(seen.unshown_ranks, seen.unshown, strict=True)
    below = next(((rank, text) for rank, text in unshown if judge.has(text, one)), None)
    if place is None and below is not None:
        rank, text = below
        where = f"at rank {rank} of {came}, of which {shown} were shown"
        if rank <= shown:
            where = f"in passage {rank} of {came}, after what of it was shown"
        beyond = f"{where}: {quote(text)}"
        lines.append(("returned", beyond))
    elif place is None:
        lines.append(("returned", f"no; {came or 'no'} passage{'' if came == 1 else 's'} came back"))
    else:
        lines.append(("returned", f"at rank {place + 1} of {came}: {quote(seen.passages[place])}"))
        lines.append(("used", {None: UNKNOWN, True: "yes, the answer rests on it", False: "no"}[used]))
    return NeededInput(
        name,
        None,
        tuple(lines),
        in_context=False,
        written_at=tuple(after) if known else None,
        held=held,
        queries=(question,),
        rank=None if place is None else place + 1,
        returned=None if place is None else seen.passages[place],
        used=used,
    )


def _stored(
    judge: ConversationJudge, one: DatedStatement, seen: Seen, after: Sequence[int], known: Sequence[int]
) -> str:
    """Return after which sessions the store had a statement, and in which words."""
    if not known:
        return f"{UNKNOWN}: the store cannot be listed"
    if not after:
        return "after no session"
    text = quote(judge.holding(one, seen.stored[after[-1] - 1] or ()) or "")
    gone = "" if after[-1] == known[-1] else f", and no longer after session {after[-1] + 1}"
    return f"after session {after[0]}{gone}; as: {text}"


def _session_of(task: WorldConversation, turn: int) -> int:
    """Return the number of the session in which a turn was spoken."""
    for number, told in enumerate(task.sessions, 1):
        turn -= len(told.messages)
        if turn < 0:
            return number
    raise LookupError(f"the conversation has no turn {turn}")
