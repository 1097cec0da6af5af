"""The budget of a prompt: what of the passages that came back is shown, and that nothing of them is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.agents.driver import consult
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.memories.budgets import PromptBudget
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.memories.validity import EndedText
from eirkit.records.budgets import check_budget

LONGEST_PASSAGE = 20_000  # as the docs of memories say
TEXTS = st.lists(st.text(alphabet="ab \n", max_size=150), max_size=12)


class Returning(KeyValue):
    """Returns what it was made with, whatever is asked, and remembers for how many passages it was asked."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__()
        self.found, self.asked = found, list[int]()

    async def search(self, query: str, limit: int) -> Sequence[str]:
        self.asked.append(limit)
        return self.found

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return await self.search(question, limit)


def asked_of(memory: Returning, budget: PromptBudget, verb: str = "recall") -> Consultation:
    call = MemoryCall("search" if verb == "search" else "recall", "A_1", (1,) if verb == "search" else ())
    return asyncio.run(consult(memory, 3, call, {1: (5,)}, lambda: 0.0, 5.0, budget=budget))


@pytest.mark.parametrize(
    ("budget", "own", "asked"),
    [
        ("documented", 20, 20),
        ("documented", None, 1_000),  # all that it returns
        ("k=10", 20, 10),
        ("tokens=100", 5, 50),  # as many as can matter: fifty, or one for every ten tokens
        ("tokens=8000", None, 800),
    ],
)
@pytest.mark.parametrize("verb", ["search", "recall"])
def test_a_budget_says_how_many_passages_are_asked_for(budget, own, asked, verb):
    memory = Returning(["A_1 = 5"])
    made = asked_of(memory, PromptBudget.of(budget, own), verb)
    assert memory.asked == [asked]
    assert (made.asked, made.passages, made.unshown) == (asked, ("A_1 = 5",), ())


@given(TEXTS, st.integers(16, 200), st.sampled_from(["search", "recall"]))
def test_what_is_shown_is_the_best_that_fits_and_the_rest_is_kept(texts, tokens, verb):
    made = asked_of(Returning(texts), PromptBudget.of(f"tokens={tokens}"), verb)
    shown, room = made.passages, 4 * tokens
    assert sum(map(len, shown)) <= room
    whole = list(shown[:-1])
    assert whole == texts[: len(whole)], "all but the last are shown whole, in the order in which they came"
    assert not shown or texts[len(whole)].startswith(shown[-1])
    assert made.returned_characters == sum(map(len, texts))
    # Nothing is lost: put together again by rank, the pieces are what came back.
    pieces: dict[int, list[str]] = {}
    for rank, text in (*enumerate(shown, 1), *zip(made.unshown_ranks, made.unshown, strict=True)):
        pieces.setdefault(rank, []).append(text)
    again = [pieces.get(rank, [""]) for rank in range(1, len(texts) + 1)]
    assert all(
        text in ("".join(found), "\n".join(found), f"{found[0]}\n") for text, found in zip(texts, again, strict=True)
    )
    assert sum(len(found) == 2 for found in again) <= 1, "at most one is cut"
    # As much is shown as fits: the next line does not.
    if made.unshown:
        rank = made.unshown_ranks[0]
        left = room - sum(map(len, shown))
        is_cut = rank == len(shown)
        assert len(made.unshown[0].split("\n")[0]) + is_cut > left or not any(shown) or not made.unshown[0]


def test_a_passage_is_cut_at_a_line_end_and_a_line_is_left_out_whole():
    def shown(*texts: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
        made = asked_of(Returning(texts), PromptBudget.of("tokens=16"))  # 64 characters
        return made.passages, made.unshown, made.unshown_ranks

    first, lines = "a" * 40, f"{'b' * 10}\n{'c' * 10}\n{'d' * 10}"
    assert shown(first, lines, "e") == ((first, f"{'b' * 10}\n{'c' * 10}"), ("d" * 10, "e"), (2, 3))
    assert shown(first, "f" * 30, "e") == ((first,), ("f" * 30, "e"), (2, 3)), "nothing after it, though e would fit"
    assert shown("g" * 100, "e") == (("g" * 64,), ("g" * 36, "e"), (1, 2)), "so that something is shown"
    assert shown("g" * 64, "e") == (("g" * 64,), ("e",), (2,))


def test_no_other_limit_contradicts_a_budget_of_tokens():
    long = "x" * (3 * LONGEST_PASSAGE)
    many = ["line"] * 400
    for verb in ("search", "recall"):
        assert asked_of(Returning([long]), PromptBudget.of("tokens=20000"), verb).passages == (long,)
        assert len(asked_of(Returning(many), PromptBudget.of("tokens=8000"), verb).passages) == 400
    limited = asked_of(Returning([long, "y"]), PromptBudget.of("documented", 5))
    assert (limited.passages, limited.unshown) == ((long[:LONGEST_PASSAGE], "y"), (long[LONGEST_PASSAGE:],))
    assert limited.unshown_ranks == (1,)
    few = asked_of(Returning(many), PromptBudget.of("k=3"))
    assert (len(few.passages), len(few.unshown), few.unshown_ranks[0]) == (3, 397, 4)


def test_both_parts_of_what_has_ended_say_so():
    ended = EndedText("a" * 100)
    made = asked_of(Returning([ended]), PromptBudget.of("tokens=16"))
    assert made.passages[0].endswith(" (no longer valid)")
    assert made.unshown[0].endswith(" (no longer valid)")
    assert len(made.passages[0]) <= 64


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ("10", "is no budget of a prompt; write documented, k=10 or tokens=2000"),
        ("strict", "is no budget"),
        ("k=", "is no budget"),
        ("tokens=2.5", "is no budget"),
        ("documented=3", "is no budget"),
        ("k=0", "is out of range; give k from 1 to 1,000"),
        ("tokens=15", "is out of range; give tokens from 16 to"),
    ],
)
def test_what_is_no_budget_is_refused_with_what_is(given_, said):
    with pytest.raises(SpecError, match=said):
        check_budget(given_)


def test_a_budget_has_one_spelling():
    assert [check_budget(text) for text in ("documented", " k=010 ", "tokens=2000")] == [
        "documented",
        "k=10",
        "tokens=2000",
    ]
