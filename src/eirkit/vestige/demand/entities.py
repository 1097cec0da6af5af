"""Finds the typed database entities that each call named, showed and changed, for runs without files (tau-bench).

Entities have paths such as `order:#W123` and cost one token each, so that the graph counts entities. The type comes
from the argument or JSON key that holds the identifier, or from the shape of an identifier in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eirkit.records.analysis import EntityDemand
from eirkit.vestige.demand.graph import Accesses, build, slice_to
from eirkit.vestige.demand.live_states import demand
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, RecordedTurn, Recording, Touches

# What a turn uses. "named": entities in arguments and in plain-text replies, such as a user found by name, and those
# that it changes. "shown": these and every record in its output.
Scope = Literal["named", "shown"]

# The entity type of a key, which holds an identifier, a list of them, or a mapping keyed by them.
_TYPES: Mapping[str, str] = {
    "user_id": "user",
    "customer_id": "user",
    "order_id": "order",
    "orders": "order",
    "product_id": "product",
    "item_id": "item",
    "item_ids": "item",
    "new_item_ids": "item",
    "variants": "item",
    "reservation_id": "reservation",
    "reservations": "reservation",
    "flight_number": "flight",
    "payment_id": "payment",
    "payment_method_id": "payment",
    "payment_methods": "payment",
    "line_id": "line",
    "line_ids": "line",
    "bill_id": "bill",
    "bill_ids": "bill",
    "device_id": "device",
    "plan_id": "plan",
    "task_id": "task",
}
# Entity types by word of a tool's name.
_WORDS = {word: kind for kind in dict.fromkeys(_TYPES.values()) for word in (kind, f"{kind}s")} | {"customer": "user"}
_CHANGING = re.compile(
    r"(?:add|apply|assign|book|cancel|change|charge|create|delete|disable|downgrade|enable|exchange|modify|pay|purchase"
    r"|rebook|refuel|refund|remove|renew|reset|resume|return|schedule|send|set|suspend|toggle|update|upgrade)_"
)
# Identifiers in plain text; the first match decides, since a payment's id also matches a user's.
_SHAPES = re.compile(
    r"(?P<order>#W\d{4,10})\b|\b(?P<payment>(?:credit_card|gift_card|paypal|certificate)_\d{4,10})\b"
    r"|\b(?P<user>[a-z]{1,40}_[a-z]{1,40}_\d{1,6})\b|\b(?P<flight>[A-Z]{3}\d{3})\b|\b(?P<number>\d{10})\b"
)
_ID_CHARACTERS = 80  # longest identifier
_TEXT_CHARACTERS = 20_000  # characters of plain text that are searched for identifiers


def entity_touches(recording: Recording, scope: Scope = "named") -> tuple[Touches, ...]:
    """Return what each turn read and wrote."""
    return tuple(_touches(met, scope) for met in _met_in(recording))


def first_shown(recording: Recording) -> dict[str, int]:
    """Return the turn that first showed or named each entity, from 1."""
    return _first_shown(_met_in(recording))


def entity_demand(recording: Recording) -> EntityDemand:
    """Return the row of a run; every action counts as a goal, since no reference excludes any."""
    met, task = _met_in(recording), task_entities(recording)
    shown_at = _first_shown(met)
    return EntityDemand(
        tool_turns=sum(1 for turn in recording.turns if turn.calls and not turn.rejected),
        entities=len({path for turn in met for path in (*turn.shown, *turn.written)}),
        peak_named_entities=_peak(((turn.used, turn.written) for turn in met), shown_at),
        peak_shown_entities=_peak(((turn.shown, turn.written) for turn in met), shown_at),
        task_entities=None if task is None else len(task),
    )


def task_entities(recording: Recording) -> frozenset[str] | None:
    """Return the entities that the task's reference actions name; None if the log does not give the actions."""
    actions = _reference_actions(recording)
    if actions is None:
        return None
    given = (action.get("kwargs", action.get("arguments")) for action in actions if isinstance(action, Mapping))
    return frozenset(path for arguments in given for path in _in_json(arguments))


def _peak(turns: Iterable[Accesses], shown_at: Mapping[str, int]) -> int:
    graph = build(turns, shown_at=shown_at)
    return demand(graph, slice_to(graph, None), [1] * len(graph.paths), "seen").peak


@dataclass(frozen=True, slots=True)
class _Met:
    """The entities of one turn, each once, in order of appearance."""

    used: tuple[str, ...]  # named, or changed and seen before
    shown: tuple[str, ...]  # named, or in the output
    written: tuple[str, ...]


def _met_in(recording: Recording) -> list[_Met]:
    seen: set[str] = set()
    found = []
    for turn in recording.turns:
        met = _met(turn, seen)
        seen.update(met.shown)
        found.append(met)
    return found


def _first_shown(met: Sequence[_Met]) -> dict[str, int]:
    return {path: place for place in range(len(met), 0, -1) for path in met[place - 1].shown}


def _met(turn: RecordedTurn, seen: Container[str]) -> _Met:
    named: dict[str, None] = {}
    shown: dict[str, None] = {}
    written: dict[str, None] = {}
    for call in turn.calls if not turn.rejected else ():
        given, answer = dict.fromkeys(_in_json(call.arguments)), dict.fromkeys(_in_output(call))
        named.update(given if call.output.startswith(("{", "[")) else given | answer)
        shown.update(given | answer)
        written.update(dict.fromkeys(_changed(call, given, answer)))
    used = named | {path: None for path in written if path in seen}
    return _Met(tuple(used), tuple(shown), tuple(written))


def _touches(met: _Met, scope: Scope) -> Touches:
    reads = met.used if scope == "named" else met.shown
    return Touches(
        tuple(FileRead(path, tokens=1) for path in reads), tuple(FileWrite(path, tokens=1) for path in met.written)
    )


def _changed(call: Call, named: Iterable[str], shown: Iterable[str]) -> list[str]:
    """Return what a call changed: entities of the first type in its tool's name, else all that its arguments name."""
    words = call.tool.lower().split("_")
    if not _CHANGING.match(call.tool.lower()) or call.failed or call.output.startswith("Error"):
        return []
    named, shown = list(named), list(shown)
    for kind in (_WORDS[word] for word in words if word in _WORDS):
        own = [path for path in named if path.startswith(f"{kind}:")]
        made = own or [path for path in shown if path.startswith(f"{kind}:")][:1]  # a new entity comes first
        if made:
            return made
    return named


def _in_output(call: Call) -> Iterator[str]:
    """Yield the entities that an output shows."""
    kind = next((_WORDS[word] for word in call.tool.lower().split("_") if word in _WORDS), None)
    try:
        content = json.loads(call.output)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, (dict, list)):
        yield from _in_json(content, kind)
    else:
        for found in _SHAPES.finditer(call.output[:_TEXT_CHARACTERS]):
            group = kind if found.lastgroup == "number" else found.lastgroup
            if group is not None:
                yield f"{group}:{found[0]}"


def _in_json(content: Any, kind: str | None = None) -> Iterator[str]:
    """Yield the entities in a JSON value in order; `kind` is the type of values under keys without one."""
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            if key in _TYPES:
                yield from (path for name in value if (path := _path(_TYPES[key], name)))
            waiting += [(str(name), inner) for name, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            waiting += [(key, inner) for inner in reversed(value)]
        elif key in _TYPES:
            path = _path(_TYPES[key], value)
            if path:
                yield path
        elif kind is not None and isinstance(value, str) and len(value) <= _ID_CHARACTERS:
            found = _SHAPES.fullmatch(value)
            if found:
                yield f"{kind if found.lastgroup == 'number' else found.lastgroup}:{value}"


def _path(kind: str, value: object) -> str | None:
    if not isinstance(value, (str, int)) or isinstance(value, bool) or not 0 < len(str(value)) <= _ID_CHARACTERS:
        return None
    return f"{kind}:{value}"


def _reference_actions(recording: Recording) -> list[Any] | None:
    """Return the reference actions of a task; tau-bench keeps them in the task, tau2-bench in its criteria."""
    task = recording.details.get("task", recording.details)
    if not isinstance(task, Mapping):
        return None
    criteria = task.get("evaluation_criteria")
    actions = task.get("actions", criteria.get("actions") if isinstance(criteria, Mapping) else None)
    return actions if isinstance(actions, list) else None
