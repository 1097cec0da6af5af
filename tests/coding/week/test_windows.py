"""What a smaller window would have saved, with the arithmetic by hand, and when logs do not decide which to set."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from msgspec.structs import replace

from eirkit_coding.week.bill import Money, requests_of
from eirkit_coding.week.facts import ContextLoss
from eirkit_coding.week.responses import Response
from eirkit_coding.week.windows import which_window


def dollars(response: Response) -> Money:
    """Return prices in dollars for a thousand tokens: 1 for a cached one, 10 for a written one, none for output."""
    read = Decimal(response.cache_read_tokens) / 1_000
    return Money(Decimal(0), read, Decimal(response.cache_write_tokens) / 100, Decimal(0), Decimal(0), Decimal("0.001"))


def session(*prompts: int) -> list[Response]:
    """Return requests of growing prompts; after the longest the context is compacted to one that is written whole."""
    said = [Response("0", 0, "", "m", 0, 0, prompts[0], 0, 0, thread="s")]
    for number, (before, prompt) in enumerate(pairwise(prompts), 1):
        one = Response(str(number), 60.0 * number, "", "m", 0, before, prompt - before, 0, 0, thread="s")
        if prompt < before:
            one = replace(one, cut="compaction", cache_read_tokens=0, cache_write_tokens=prompt)
        said.append(one)
    return said


def loss(number: int, files: int, again: int, used: int) -> ContextLoss:
    return ContextLoss(
        at=number, run_id="s", turn=number, project="", model="m", kind="compaction", live_tokens=used,
        dropped_tokens=again, reread_tokens=again, overwritten_tokens=0, unknown_tokens=0, shrunk_tokens=None,
        reread_dropped_tokens=again, measured=True, compactions=1, clears=0, trigger="auto", manual_compactions=0,
        automatic_compactions=1, file_tokens=files,
    )  # fmt: skip


def test_two_bounds_of_a_smaller_window() -> None:
    requests = list(requests_of(session(60_000, 90_000, 110_000, 160_000, 40_000), dollars))
    found = which_window(requests, [loss(1, 1_000, 100, 250)])
    by_window = {row.window_tokens: row for row in found.rows}
    assert list(by_window) == [80_000, 100_000, 120_000, 160_000]
    assert found.needed_share == 0.25
    # At 100,000 the prompt of 110,000 is compacted: reading it costs 110, the new context of 40,000 costs 400. It and
    # the next request have 70,000 tokens less, 140. The recorded compaction cost 160 and 400, and is not needed.
    row = by_window[100_000]
    assert row.compactions == 1
    assert row.nothing_again.usd == pytest.approx(-110 - 400 + 70 + 70 + 560 + (40 - 90))
    # A quarter of the 70,000 comes back for 175, and the three requests have 17,500 tokens more.
    # The window is full again where the next request would have 107,500 tokens: it is compacted once more.
    again = 0.25 * 67_500
    first, second = -110 - 400 - 175 + 110 - 57.5, -107.5 - 400 - again / 100 + 160 - 40 - again / 1_000
    assert row.needed_again.usd == pytest.approx(first + second + 560 - again / 1_000)
    assert by_window[160_000].nothing_again.usd == pytest.approx(560 - 120)  # its error: no compaction was needed


def test_logs_do_not_decide_where_rereads_cannot_be_foretold() -> None:
    requests = list(requests_of(session(60_000, 160_000, 40_000), dollars))
    even = which_window(requests, [loss(number, 1_000, 100, 250) for number in range(8)])
    assert (even.predicted, even.error_tokens, even.decides) == (3, pytest.approx(0), True)
    uneven = which_window(requests, [loss(number, 1_000, 800 * (number % 2), 250) for number in range(8)])
    # After five compactions 1,600 of 5,000 tokens were read again: 320 are foretold, 800 seen; and so on.
    assert uneven.error_tokens == pytest.approx((480 + 400 + 1_000 * (800 / 1_000 - 2_400 / 7_000)) / 3)
    assert not uneven.decides
    assert which_window(requests, [loss(1, 1_000, 100, 250)]).error_tokens is None
    assert which_window(requests[:2], []).rows == ()
