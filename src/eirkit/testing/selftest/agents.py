"""Agents that misbehave: notes and summaries in their own words, loops that stop or stray, rescues and controls."""

from __future__ import annotations

from collections.abc import Iterator

from eirkit.records.settings import RescueArm
from eirkit.testing.selftest.behavior import Check, Observed, PlantedBehavior
from eirkit.testing.selftest.memories import MEMORY, fates
from eirkit.testing.selftest.models import PERFECT, Speech, accuracy, says, silent_on
from eirkit.testing.selftest.planted import Form, PlantedTurn, Traits
from eirkit.testing.selftest.server import Said

_NOTES, _SUMMARY = "--condition scratch --h 80", "--condition compaction --context-tokens 64"


def _strays(at: int, said: str, form: Form, every: int = 1000) -> Speech:
    """Return a speech that says something else in place of the answer of step `at`, and of every so many later."""

    def speak(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
        strays = lines[0].startswith("ANSWER") and turn.t >= at and (turn.t - at) % every == 0
        return (Said(said.format(t=turn.t)), form) if strays else (Said("\n".join(lines)), "plain")

    return speak


def _in_one(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    """Answer, write and go on in one reply."""
    if not lines[0].startswith("ANSWER"):
        return Said("\n".join(lines)), "plain"
    return Said("\n".join([lines[0], f"WRITE {turn.t}", "DONE" if turn.t == turn.n else "NEXT"])), "plain"


def arms(observed: Observed) -> Iterator[str]:
    """Yield arms of a rescue whose accuracy is not what the server counted at the steps with a miss."""
    true: dict[str, list[bool]] = {}
    for record, _, run in observed.pairs():
        missed = [t for t in run.steps if run.is_missed(t)]
        if isinstance(intervention := record.setting.intervention, RescueArm):
            true.setdefault(intervention.arm, []).extend(run.is_right(t) for t in missed)
    for row in () if observed.rescue is None else observed.rescue.rows:
        found = true.get(row.arm) or [False]
        if (row.steps, row.accuracy) != (len(found), sum(found) / len(found)):
            yield (
                f"the {row.arm} arm has accuracy {row.accuracy} at {row.steps} steps; the server counted "
                f"{sum(found)} of {len(found)}"
            )


def no_effect(observed: Observed) -> Iterator[str]:
    """Yield a rescue's headline where the control arm was as right as the oracle, so that nothing was repaired."""
    yield from silent_on(r"restoring it changes accuracy by \+\d+\.\d points over a sham")(observed)


def wide(observed: Observed) -> Iterator[str]:
    """Yield intervals of no width, which no number of steps supports."""
    contrasts = () if observed.rescue is None else observed.rescue.contrasts
    if not contrasts:
        yield "no arms are compared, although a step has a miss in each"
    for contrast in contrasts:
        if contrast.difference.low == contrast.difference.high:
            yield f"{' − '.join(contrast.arms)} over {contrast.pairs} steps has an interval of no width"


def claims(allowed: bool) -> Check:
    """Return a check of whether the control lets a model support claims; None means that it is undecided."""

    def check(observed: Observed) -> Iterator[str]:
        control = observed.row.control
        if (control is not None and control.passes) != allowed:
            yield f"the control says {control and control.reason!r}; {'able' if allowed else 'unable'} was planted"

    return check


def _rescue(
    name: str, about: str, options: str, *checks: Check, traits: Traits | None = None, **more: object
) -> PlantedBehavior:
    return PlantedBehavior(name, about, traits or Traits(), options, "lacuna rescue", checks=checks, **more)  # type: ignore[arg-type]


BEHAVIORS = (
    PlantedBehavior("notes", "notes A_7 = 42", options=_NOTES, checks=PERFECT),
    PlantedBehavior(
        "notes-is", "notes A_7 is 42", Traits(note=lambda a, v: f"{a} is {v}"), _NOTES, checks=PERFECT, case=1
    ),
    PlantedBehavior("notes-arrow", "notes A_7 -> 42", Traits(note=lambda a, v: f"{a} -> {v}"), _NOTES, checks=PERFECT),
    PlantedBehavior(
        "notes-prose",
        "notes in a sentence",
        Traits(note=lambda a, v: f"I found that {a} was {int(v)}."),
        _NOTES,
        checks=PERFECT,
    ),
    PlantedBehavior(
        "notes-slips", "notes A_7 is 42, and 10% slips", Traits(0.1, note=lambda a, v: f"{a} is {v}"), _NOTES
    ),
    PlantedBehavior(
        "notes-wrong",
        "notes with a digit changed",
        Traits(note=lambda a, v: f"{a} = {(int(v[0]) + 1) % 10}{v[1:]}"),
        _NOTES,
        checks=(accuracy(0.0, 0.5),),
    ),
    PlantedBehavior(
        "notes-none", "an agent that takes no notes", Traits(writes=False), _NOTES, checks=(accuracy(0.0, 0.5),)
    ),
    PlantedBehavior("summary", "summaries A_7 = 42", options=_SUMMARY, checks=PERFECT),
    PlantedBehavior(
        "summary-bold",
        "summaries **A_7** = 42, and 10% slips",
        Traits(0.1, note=lambda a, v: f"**{a}** = {v}"),
        _SUMMARY,
        case=1,
    ),
    PlantedBehavior(
        "summary-list", "summaries - A_7: 42", Traits(note=lambda a, v: f"- {a}: {int(v)}"), _SUMMARY, checks=PERFECT
    ),
    PlantedBehavior(
        "quits", "says DONE at step 10", Traits(speak=_strays(10, "DONE", "silent")), "--condition floor --h 4"
    ),
    PlantedBehavior(
        "skips",
        "reveals the next step unanswered, every fifth",
        Traits(speak=_strays(5, "NEXT", "silent", 5)),
        "--condition floor --h 4",
    ),
    PlantedBehavior(
        "dawdles",
        "reads for ever at step 7",
        Traits(speak=_strays(7, "READ 1", "silent")),
        "--condition floor --h 4 --actions 60",
    ),
    PlantedBehavior(
        "wrong-step", "answers another step, every fifth", Traits(speak=_strays(5, "ANSWER 1 0001", "garbled", 5))
    ),
    PlantedBehavior(
        "out-of-range",
        "answers beyond the range, every fifth",
        Traits(speak=_strays(5, "ANSWER {t} 123456", "garbled", 5)),
    ),
    PlantedBehavior(
        "two-values", "two values for one, every fifth", Traits(speak=_strays(5, "ANSWER {t} 0001 0002", "garbled", 5))
    ),
    PlantedBehavior(
        "in-one",
        "answer, write and next in one reply",
        Traits(speak=_in_one),
        f"--h 2 {MEMORY}.how=plain",
        checks=(fates, *PERFECT),
    ),
    PlantedBehavior(
        "strict",
        "nothing in context, all from a memory",
        options=f"--h 4 --panel strict {MEMORY}.how=plain",
        checks=(fates,),
    ),
    _rescue(
        "rescue", "a model that leaves out what it misses", "--h 2", arms, wide, says("restoring it changes accuracy")
    ),
    _rescue(
        "rescue-sentence", "a memory in other words, nothing lost", f"--h 2 {MEMORY}.how=sentence", no_effect, case=1
    ),
    _rescue(
        "rescue-cheat", "an endpoint that remembers everything", "--h 2", no_effect, traits=Traits(cheat=True), case=4
    ),
    _rescue("rescue-one", "one step with a miss", "--h 3", wide, task="--n 6 --m 4", seeds="1", case=5),
    PlantedBehavior(
        "gate-slips",
        "2% slips: able, step by step",
        Traits(slip=0.02, draw=2),
        "--h 2 --control",
        task="--n 64 --m 4",
        seeds="0",
        checks=(claims(True),),
        case=5,
    ),
    PlantedBehavior(
        "gate-weak",
        "half of all answers slip: not able",
        Traits(slip=0.5),
        "--h 2 --control",
        task="--n 64 --m 4",
        seeds="0",
        checks=(claims(False),),
    ),
)
