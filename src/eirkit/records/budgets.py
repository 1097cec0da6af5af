"""Budgets by their names: `documented`, `k=10` and `tokens=2000`, and under which conditions they count.

A token is four characters, everywhere: what a run costs in a prompt must not depend on whose tokenizer is installed.
"""

from __future__ import annotations

from eirkit.errors import SpecError
from eirkit.records.settings import DOCUMENTED, EXTERNAL, TRUNCATED

PASSAGES, TOKENS = "k", "tokens"  # the kinds of budgets that have a number
MOST_PASSAGES = 1_000  # asked for, also of a system that returns all that it has
FEWEST_ASKED = 50  # passages of a budget of tokens
SHORTEST_PASSAGE = 10  # tokens: so many passages are asked for as fit if none is shorter
LEAST_TOKENS, MOST_TOKENS = 16, 10_000_000
BUDGETED = (EXTERNAL, TRUNCATED)  # conditions that choose what is put into a prompt


def split_budget(budget: str) -> tuple[str, int]:
    """Return the kind of a budget and its number; 0 where it has none."""
    kind, _, number = budget.partition("=")
    return kind, int(number or 0)


def passages_of_budget(budget: str, own: int | None = None) -> int:
    """Return how many passages a search asks for.

    Args:
        own: by the documentation of the system; None: all that it returns.
    """
    kind, number = split_budget(budget)
    if kind == PASSAGES:
        return number
    if kind == TOKENS:
        return max(FEWEST_ASKED, number // SHORTEST_PASSAGE)
    return MOST_PASSAGES if own is None else own


def condition_budget(condition: str, budget: str) -> str:
    """Return the budget that counts under a condition: of a memory every one, of a truncated conversation its tokens.

    Everything else puts the same into a prompt whatever the budget is.
    """
    counts = condition == EXTERNAL or (condition == TRUNCATED and split_budget(budget)[0] == TOKENS)
    return budget if counts else DOCUMENTED


def check_budget(budget: str) -> str:
    """Return a budget in its one spelling.

    Raises:
        SpecError: it is none.
    """
    kind, equals, number = budget.strip().partition("=")
    if kind == DOCUMENTED and not equals:
        return DOCUMENTED
    ends = {PASSAGES: (1, MOST_PASSAGES), TOKENS: (LEAST_TOKENS, MOST_TOKENS)}
    if kind not in ends or not (number.isascii() and number.isdecimal()):
        raise SpecError(f"budget = {budget!r} is no budget of a prompt; write {DOCUMENTED}, k=10 or tokens=2000")
    least, most = ends[kind]
    if not least <= int(number) <= most:
        raise SpecError(f"budget = {budget!r} is out of range; give {kind} from {least:,} to {most:,}")
    return f"{kind}={int(number)}"
