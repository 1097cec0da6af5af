"""How much of what a memory returns is put into a prompt, and what of it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eirkit.lacuna import LONGEST_PASSAGE, SEARCH_LIMIT
from eirkit.lacuna.memories.validity import split_passage
from eirkit.records.budgets import TOKENS, passages_of_budget, split_budget
from eirkit.records.runs import CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class ShownPassages:
    """What of some passages is put into a prompt, and what is not."""

    shown: tuple[str, ...]  # best first, as long as the budget lasts
    unshown: tuple[str, ...] = ()  # the rest of what was cut, and what came after it
    ranks: tuple[int, ...] = ()  # of the unshown ones, among the passages that came back, from 1


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """How many passages a search asks for, and how much of them is shown.

    Args:
        passages: that a search asks for; no more are shown.
        tokens: that all of them may have together; None: no limit together, and LONGEST_PASSAGE characters each.
    """

    passages: int = SEARCH_LIMIT
    tokens: int | None = None

    @classmethod
    def of(cls, budget: str, own: int | None = SEARCH_LIMIT) -> PromptBudget:
        """Return the budget with a name.

        Args:
            own: passages that a search of the system asks for by its documentation; None: all that it returns.
        """
        kind, number = split_budget(budget)
        return cls(passages_of_budget(budget, own), number if kind == TOKENS else None)

    def show(self, texts: Sequence[str]) -> ShownPassages:
        """Return what of some passages, best first, is put into a prompt."""
        return self._by_number(texts) if self.tokens is None else self._by_tokens(texts, self.tokens)

    def _by_number(self, texts: Sequence[str]) -> ShownPassages:
        first = texts[: self.passages]
        if len(texts) == len(first) and max(map(len, first), default=0) <= LONGEST_PASSAGE:
            return ShownPassages(tuple(first))
        parts = [split_passage(text, LONGEST_PASSAGE) for text in first]
        left = [(rank, rest) for rank, (_, rest) in enumerate(parts, 1) if rest]
        left += enumerate(texts[self.passages :], self.passages + 1)
        return ShownPassages(
            tuple([shown for shown, _ in parts]), tuple([rest for _, rest in left]), tuple([rank for rank, _ in left])
        )

    def _by_tokens(self, texts: Sequence[str], tokens: int) -> ShownPassages:
        """Show passages whole while they fit, and of the next one the lines that fit.

        A first passage of which not even a line fits is cut at the budget, so that something is shown.
        """
        room, shown = CHARACTERS_PER_TOKEN * tokens, list[str]()
        for rank, text in enumerate(texts, 1):
            if len(text) <= room:
                shown.append(text)
                room -= len(text)
                continue
            end = text.rfind("\n", 0, room + 1)
            head, rest = (text[:end], text[end + 1 :]) if end > 0 else ("", text)
            if not head and not any(shown):
                head, rest = split_passage(text, room)
            shown += [head] if head else []
            left = [(rank, rest)] if rest else []
            left += enumerate(texts[rank:], rank + 1)
            return ShownPassages(tuple(shown), tuple([text for _, text in left]), tuple([place for place, _ in left]))
        return ShownPassages(tuple(shown))
