"""BM25 ranks as the library does when it is given the words of the records that are held, whatever was held before."""

from __future__ import annotations

import asyncio

import numpy as np
from bm25s import BM25
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.memories.in_process import Bm25, find_words
from eirkit.lacuna.memories.memory import Item

LIMIT = 5
TEXTS = st.text("ab1 _=!", max_size=12)
LABELS = st.sampled_from(["A_1", "A_2", "A_3"])
DEEDS = st.lists(st.tuples(LABELS, st.none() | TEXTS), max_size=8)  # without a text: forget


def by_the_library(held: dict[str, str], query: str) -> list[str]:
    texts, tokens = list(held.values()), [find_words(text) for text in held.values()]
    wanted = [word for word in find_words(query) if any(word in of for of in tokens)]
    if not wanted:
        return []
    index = BM25(backend="numpy")
    index.index(tokens, show_progress=False)
    scores = index.get_scores(wanted)
    newest_first = sorted(range(len(texts)), key=lambda i: (-scores[i], -i))
    return [texts[i] for i in newest_first[:LIMIT] if scores[i] > np.float32(0)]


@given(DEEDS, TEXTS)
def test_it_ranks_as_the_library_does(deeds: list[tuple[str, str | None]], query: str) -> None:
    async def story() -> None:
        memory, held = Bm25(), {}
        await memory.reset("one")
        for label, text in deeds:
            held.pop(label, None)
            if text is None:
                await memory.forget(label)
            else:
                held[label] = text
                await memory.write(Item(label, text))
            assert list(await memory.search(query, LIMIT)) == by_the_library(held, query)

    asyncio.run(story())
