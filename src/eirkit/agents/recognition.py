"""Recognises whether the value of a record is at hand in texts, in any wording: present, absent or uncertain.

A value is *present* if its label is stated with it. It is *uncertain* if it occurs without its label, hedged, or beside
another value of the same label that counts more; then nothing may be said about its loss. Otherwise it is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eirkit.agents.wording import Statement, Wording, read_wording
from eirkit.tasks.task import Payload

Values = Mapping[int, Payload]


@dataclass(frozen=True, slots=True)
class Recognition:
    """Which records are at hand; records that are in neither set are absent."""

    present: frozenset[int]
    uncertain: frozenset[int] = frozenset()
    stated: Mapping[int, tuple[str, ...]] = field(
        default_factory=dict
    )  # another value in place of the right one: its digits


NOTHING = Recognition(frozenset())


def recognise(texts: Iterable[str], records: Values, *, best_first: bool = False) -> Recognition:
    """Return which records the texts hold.

    Args:
        records: the right values by step.
        best_first: of several texts about one label the first counts, as for the passages of a search; otherwise the
            last, as for notes, which are corrected by later ones.
    """
    wordings = [read_wording(text) for text in texts]
    deciding: dict[int, tuple[Statement, ...]] = {}  # what the text that counts states, by label
    for wording in reversed(wordings) if best_first else wordings:
        deciding.update(wording.statements)
    present = frozenset([t for t, said in deciding.items() if t in records and _is_sure(said, records[t])])
    lacking = [t for t in deciding if t in records and t not in present]
    if not lacking and not any([one.loose or one.spelt for one in wordings]):  # noqa: C419 - faster
        return Recognition(present)
    stated = {t: digits for t in lacking if (digits := _digits(deciding[t][0], len(records[t])))}
    for wording in wordings:  # a text that has the right value as well does not state a wrong one
        for t in [t for t in stated if wording.statements.get(t) is deciding[t]]:
            if _may_hold(wording, t, records[t]):
                del stated[t]
    uncertain = _uncertain(wordings, {t: values for t, values in records.items() if t not in present})
    return Recognition(present, uncertain, stated)


def records_in(text: str, records: Values) -> frozenset[int]:
    """Return the steps whose record one text holds."""
    return recognise((text,), records).present


def _is_sure(said: tuple[Statement, ...], values: Payload) -> bool:
    """True if everything that one text states for a label is this value, without doubt."""
    if len(said) == 1 and said[0].sure and said[0].numbers == values:
        return True  # fast path: a record as it is shown
    return all(one.sure and _matches(one, values) for one in said)


def _matches(one: Statement, values: Payload) -> bool:
    width = len(values)
    if one.from_end:
        return one.numbers[-width:] == values
    return one.numbers[:width] == values or (width > 1 and one.ungrouped[:width] == values)


def _digits(one: Statement, width: int) -> tuple[str, ...]:
    return one.digits[-width:] if one.from_end else one.digits[:width]


def _uncertain(wordings: list[Wording], lacking: Values) -> frozenset[int]:
    """Return the records that are stated somewhere, though not so that they count."""
    loose = frozenset().union(*[wording.loose for wording in wordings])
    anywhere = {t for t, values in lacking.items() if loose and loose.issuperset(values)}
    held = {t for wording in wordings for t, values in lacking.items() if _may_hold(wording, t, values)}
    return frozenset(anywhere | held)


def _may_hold(wording: Wording, t: int, values: Payload) -> bool:
    """True if a text has a value that may be meant for step t, in whatever form."""
    if t in wording.spelt or (wording.loose and wording.loose.issuperset(values)):
        return True
    if wording.joined and "".join(map(str, values)) in wording.joined:
        return True
    said = wording.statements.get(t, ())
    return any(
        _matches(one, values) or (one.near | wording.loose | {*one.ungrouped}).issuperset(values) for one in said
    )
