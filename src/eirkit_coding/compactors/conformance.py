"""`check_compactor`: the conformance suite of compactors, on random contexts that are the same every time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

from eirkit.testing.conformance import Conformance, try_all
from eirkit.vestige.lines import is_distinctive
from eirkit.vestige.tokens import estimating_counter
from eirkit_coding.compaction.context import (
    ContextCall,
    ContextMessage,
    LineCounter,
    known_lines,
    split_opening,
)
from eirkit_coding.compaction.cuts import ContextCut, NeededLine, best_kept, judge
from eirkit_coding.compactors.compactor import Compactor, Informed, TokenBudget, find_compactor, make_compactor
from eirkit_coding.compactors.host import checked

CONTEXTS = 30
_WORDS = ("alpha", "return", "value", "import", "total", "index", "names", "compute", "result", "window")


def check_compactor(compactor: type[Compactor] | Compactor | str) -> Conformance:
    """Run the conformance suite on a compactor and return what held.

    Args:
        compactor: the class, one with settings of its own, its registered name, or `path/file.py:Name`.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        ContractError: it is not a compactor.
    """
    found = find_compactor(compactor) if isinstance(compactor, str) else compactor
    return try_all(found, REQUIREMENTS)


@dataclass(frozen=True, slots=True)
class _Context:
    cut: ContextCut
    tokens: int  # the budget


def _contexts() -> Iterator[_Context]:
    draw = random.Random(23)
    for number in range(CONTEXTS):
        messages = tuple(_messages(draw, number))
        counter = LineCounter(estimating_counter())
        rest = split_opening(messages)[1]
        lines = known_lines(rest, counter)
        chosen = [line for line in lines.values() if is_distinctive(line.key) and draw.random() < 0.3]
        needed = {line.key: NeededLine(line.key, line.tokens, line.text, ("a.py",), "read") for line in chosen}
        total = sum(map(counter.message_tokens, rest))
        cut = ContextCut(f"context {number}", 1, messages, lines, needed, total, 0, (), (), (), {})
        yield _Context(cut, draw.choice((0, total // 8, total // 2, total + 10)))


def _messages(draw: random.Random, number: int) -> Iterator[ContextMessage]:
    if number % 2:
        yield ContextMessage("system", "You fix bugs.\nNever touch vendor/.")
    for turn in range(1, draw.randint(1, 9)):
        if draw.random() < 0.4:
            yield ContextMessage("user", _text(draw), turn=turn)
        calls = tuple(
            ContextCall(f"call_{turn}_{place}", draw.choice(("bash", "read")), {"command": _text(draw, 1)})
            for place in range(draw.randint(0, 2))
        )
        yield ContextMessage("assistant", _text(draw), calls, turn=turn)
        for call in calls:
            yield ContextMessage("tool", _text(draw, 8), call_id=call.id, tool=call.tool, turn=turn)


def _text(draw: random.Random, most: int = 3) -> str:
    lines = (" ".join(draw.choices(_WORDS, k=draw.randint(0, 6))) for _ in range(draw.randint(1, most)))
    return "\n".join(f"{line} {draw.randint(0, 999)}" for line in lines)


def _asked(compactor: type[Compactor] | Compactor, context: _Context) -> Sequence[ContextMessage]:
    if isinstance(compactor, Compactor):
        made = compactor
    elif issubclass(compactor, Informed):
        made = compactor.knowing(context.cut)
    else:
        made = make_compactor(compactor, {})
    budget = TokenBudget(context.tokens, LineCounter(estimating_counter()))
    return checked(made.compact(context.cut.messages, budget))


def _says(compactor: type[Compactor] | Compactor) -> None:
    """It says in its docstring what it does."""
    assert (compactor.__doc__ or "").strip(), "it has no docstring; write one sentence, which listings show"


def _returns(compactor: type[Compactor] | Compactor) -> None:
    """It returns messages that a model's API accepts: every result after its call, every call with its result."""
    for context in _contexts():
        _asked(compactor, context)


def _fits(compactor: type[Compactor] | Compactor) -> str | None:
    """Where it returns less than it was given, it says so truthfully: the measure accepts what is within the budget."""
    over = 0
    for context in _contexts():
        found = _asked(compactor, context)
        outcome = judge(context.cut, context.tokens, found, LineCounter(estimating_counter()))
        assert outcome.status in ("ok", "over budget"), outcome.reason
        over += outcome.status == "over budget"
    return f"over the budget on {over} of {CONTEXTS} contexts, where it would keep nothing" if over else None


def _bounded(compactor: type[Compactor] | Compactor) -> None:
    """It never keeps more than the best selection."""
    for context in _contexts():
        outcome = judge(context.cut, context.tokens, _asked(compactor, context), LineCounter(estimating_counter()))
        best = best_kept(context.cut, context.tokens)
        assert outcome.state.kept_tokens <= best, f"it keeps {outcome.state.kept_tokens} tokens, {best} are possible"


def _repeats(compactor: type[Compactor] | Compactor) -> None:
    """The same context gives the same messages, whatever was asked before."""
    contexts = list(_contexts())
    first = [list(_asked(compactor, context)) for context in contexts]
    again = [list(_asked(compactor, context)) for context in reversed(contexts)]
    assert first == again[::-1], "it returned other messages when it was asked again"


def _leaves(compactor: type[Compactor] | Compactor) -> None:
    """It does not change the messages that it is given."""
    for context in _contexts():
        before = deepcopy(context.cut.messages)
        _asked(compactor, context)
        assert before == context.cut.messages, "it changed what it was given; copy it"


REQUIREMENTS = (_says, _returns, _fits, _bounded, _repeats, _leaves)
