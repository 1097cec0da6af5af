"""The context of a recorded run just before a turn, rebuilt as messages.

The opening (system prompt and task) of a run that a scaffold started is its first message, with the role `system`. A
session begins with what the user asked. After a compaction the context is what the log says replaced it.
"""

from __future__ import annotations

from collections.abc import Iterator

from eirkit.vestige.trajectory import Call, FileRead, RecordedTurn, Trajectory
from eirkit_coding.compaction.context import ContextCall, ContextMessage


def context_before(trajectory: Trajectory, cut: int) -> tuple[ContextMessage, ...]:
    """Return what was in the context just before a turn, as far as the log shows it."""
    recording, turns = trajectory.recording, trajectory.turns
    is_session = bool(turns) and bool(turns[0].recorded.asked)
    opening = () if is_session or not recording.prompt else (ContextMessage("system", recording.prompt),)
    broken = [turn.number for turn in turns[: cut - 1] if turn.recorded.broken is not None]
    start = broken[-1] if broken else 1
    found = list(opening)
    if broken:
        found += after_break(trajectory, start)
    for turn in turns[start - 1 : cut - 1]:
        asked = recording.prompt if is_session and turn.number == 1 else turn.recorded.asked
        found += turn_messages(turn.recorded, turn.number, asked)
    return tuple(found)


def turn_messages(recorded: RecordedTurn, number: int, asked: str) -> Iterator[ContextMessage]:
    """Yield the messages of one turn: what the user asked before it, the reply, and the results of its calls."""
    if asked:
        yield ContextMessage("user", asked, turn=number)
    calls = {f"call_{number}_{place}": call for place, call in enumerate(_calls(recorded), 1)}
    if recorded.text or calls:
        asked_calls = tuple(ContextCall(id, call.tool, call.arguments) for id, call in calls.items())
        yield ContextMessage("assistant", recorded.text, asked_calls, turn=number)
    for id, call in calls.items():
        yield ContextMessage("tool", call.output, call_id=id, tool=call.tool, turn=number)


def _calls(recorded: RecordedTurn) -> Iterator[Call]:
    """Yield the calls of a turn with their results; touches that a log states without calls count as calls."""
    yield from recorded.calls
    if recorded.touches is None or recorded.calls:
        return
    for read in recorded.touches.reads:
        yield Call("read", {"path": read.path}, shown_text(read))
    for write in recorded.touches.writes:
        content = write.content if write.content is not None else write.added
        yield Call("write", {"path": write.path} if content is None else {"path": write.path, "content": content})


def shown_text(read: FileRead) -> str:
    """Return what a read showed of a file."""
    if read.content is not None:
        return read.content
    return "\n".join(f"{number}\t{line}" for number, line in sorted((read.lines or {}).items()))


def after_break(trajectory: Trajectory, cut: int) -> Iterator[ContextMessage]:
    """Yield what the log says replaced the context at a break: the summary, and what was kept or put back."""
    turns = trajectory.turns
    recorded = turns[cut - 1].recorded
    if recorded.carried:
        yield ContextMessage("user", recorded.carried, turn=cut)
    if recorded.kept is None:
        return
    for text in (*recorded.kept.texts, *map(shown_text, recorded.kept.files)):
        if text:
            yield ContextMessage("user", text, turn=cut)
    for number in recorded.kept.turns:
        if 0 < number < cut:
            yield from turn_messages(turns[number - 1].recorded, number, turns[number - 1].recorded.asked)
