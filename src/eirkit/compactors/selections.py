"""Compactors to compare others with: `oracle` (the best lines), `random` (the sham), `recorded` (the log's own)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Self

from eirkit.compactors.compactor import Compactor, Informed, TokenBudget, compactors
from eirkit.errors import ContractError
from eirkit.logs.compaction.context import ContextMessage, split_opening, texts_of
from eirkit.logs.compaction.cuts import ContextCut, NeededLine
from eirkit.logs.compaction.selection import best_selection, random_selection
from eirkit.logs.compaction.sized_lines import MESSAGE_TOKENS


@compactors.add("oracle")
class BestLines(Informed):
    """Keep as many tokens of needed lines as fit, knowing which are needed: no compactor can keep more."""

    def __init__(self, needed: Mapping[str, NeededLine]) -> None:
        self.needed = needed

    @classmethod
    def knowing(cls, cut: ContextCut) -> Self:
        return cls(cut.needed)

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        lines = list(self.needed.values())
        chosen = best_selection([line.tokens for line in lines], budget.tokens - MESSAGE_TOKENS)
        return _with_lines(messages, (lines[place].text for place in chosen))


@compactors.add("recorded")
class Recorded(Informed):
    """Keep what replaced the context in the recorded run, as far as its log shows it; only with `--at real`."""

    def __init__(self, replaced_by: Sequence[ContextMessage] | None) -> None:
        self.replaced_by = replaced_by

    @classmethod
    def knowing(cls, cut: ContextCut) -> Self:
        return cls(cut.replaced_by)

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        if self.replaced_by is None:
            raise ContractError("the log does not say, or only in encrypted form, that anything took its place here")
        return (*split_opening(messages)[0], *self.replaced_by)


@compactors.add("random")
class RandomLines(Compactor):
    """Keep lines of the context at random, up to the first that does not fit.

    Args:
        seed: of the draw; a context always gives the same lines with the same seed.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        rest = split_opening(messages)[1]
        lines = list(budget.counter.message_lines(rest))
        drawn = random_selection(
            [line.tokens for line in lines], budget.tokens - MESSAGE_TOKENS, _seed(rest, self.seed)
        )
        return _with_lines(messages, (lines[place].text for place in drawn))


def _with_lines(messages: Sequence[ContextMessage], lines: Iterable[str]) -> tuple[ContextMessage, ...]:
    text = "\n".join(lines)
    return (*split_opening(messages)[0], *((ContextMessage("user", text),) if text else ()))


def _seed(messages: Sequence[ContextMessage], seed: int) -> int:
    digest = blake2b(f"{seed}".encode(), digest_size=8)
    for message in messages:
        for text in texts_of(message):
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
    return int.from_bytes(digest.digest(), "little") >> 1
