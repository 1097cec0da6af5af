"""Prices: what a file may say, what a reply costs by two ways of reckoning, and what is unknown stays unknown."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import cost_usd, most_usd
from eirkit.lacuna.models.model import Request, Tool, Usage
from eirkit.lacuna.models.prices import BUILT_IN, Price, add_up, estimate, load_prices, read_prices

DAY = date(2026, 1, 31)
DOLLARS = st.integers(0, 10_000).map(lambda cents: Decimal(cents) / 100)
TOKENS = st.integers(0, 10**6)


@given(DOLLARS, DOLLARS, DOLLARS, TOKENS, TOKENS, TOKENS)
def test_a_reply_costs_what_the_arithmetic_says(full, output, cached, fresh, kept, said):
    price = Price(full, output, cached, DAY)
    usage = Usage(fresh + kept, said, kept)
    exact = sum(Fraction(p) * n for p, n in ((full, fresh), (cached, kept), (output, said))) / 1_000_000
    cost = cost_usd(price, usage)
    if fresh + kept + said == 0 and not price.is_free():
        assert cost is None
    else:
        assert Fraction(cost) == exact


def test_by_hand():
    # 60 fresh at $2.00, 40 cached at $0.50, 10 written at $8.00, per million: 120 + 20 + 80 = 220 millionths.
    assert cost_usd(load_prices().find("openai/gpt-4.1"), Usage(100, 10, 40)) == Decimal("0.000220")


@given(st.lists(st.text(max_size=50), max_size=4), st.integers(1, 500), st.integers(0, 300), st.integers(0, 500))
def test_no_request_costs_more_than_its_most(texts, limit, fewer, said):
    price = Price(Decimal(3), Decimal(15), Decimal("0.3"), DAY)
    request = Request(tuple(Message("user", t) for t in texts), (Tool("a", "b", {}),), limit)
    tokens = max(0, sum(len(t.encode()) + 32 for t in texts) - fewer)  # a token has at least a byte
    cost = cost_usd(price, Usage(tokens, min(said, limit)))
    assert cost is None or cost <= most_usd(price, request)


def test_the_built_in_file_is_sound():
    prices = read_prices(BUILT_IN)
    assert all("/" in name for name in prices)
    assert all(price.cached <= price.input <= price.output for price in prices.values())
    assert all(price.as_of >= date(2025, 1, 1) for price in prices.values())


def test_free_is_free_and_unknown_is_unknown():
    prices = load_prices()
    for name in ("reference/calculator", "local/smollm2", "replay/out/run", "bundled/lacuna-tiny"):
        assert cost_usd(prices.find(name), Usage()) == 0.0
    for name in ("openai/gpt-that-never-was", "nobody/x", "openai", ""):
        assert prices.find(name) is None


def test_a_file_of_ones_own_wins(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(
        '[prices]\n"openai/gpt-4.1" = { input = 1, output = 1, as_of = 2026-01-31 }\n'
        '"mine/*" = { input = 0, output = 0, as_of = 2026-01-31 }\n'
    )
    prices = load_prices(path)
    assert prices.find("openai/gpt-4.1").input == 1.0
    assert prices.find("openai/gpt-4o").input == 2.5
    assert prices.find("mine/anything").is_free()
    assert prices.find("inspect/openai/gpt-4.1").input == 1.0


def test_a_server_of_ones_own_has_ones_own_price(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text('[prices]\n"openai/x" = { input = 1, output = 1, as_of = 2026-01-31 }\n')
    prices = load_prices(path)
    assert prices.find("openai/gpt-4.1", "http://127.0.0.1:8000/v1") is None
    assert prices.find("openai/x", "http://127.0.0.1:8000/v1").input == 1


def test_beyond_what_a_price_covers_nothing_is_known():
    price = Price(Decimal(1), Decimal(1), Decimal(1), DAY, up_to_tokens=1000)
    assert cost_usd(price, Usage(1000, 1)) is not None
    assert cost_usd(price, Usage(1001, 1)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[prices", "not TOML"),
        ("x = 1", "no table"),
        ("prices = 3", "no table"),
        ("[prices]\n'a/b' = 3", "not a table; write"),
        ("[prices]\n'a/b' = { input = 1, output = 1 }", "no date"),
        ("[prices]\n'a/b' = { input = 1, output = 1, as_of = 'today' }", "no date"),
        ("[prices]\n'a/b' = { input = 1, outputs = 1, as_of = 2026-01-31 }", "use output"),
        ("[prices]\n'a/b' = { input = 1, as_of = 2026-01-31 }", "output is None"),
        ("[prices]\n'a/b' = { input = -1, output = 1, as_of = 2026-01-31 }", "input is -1"),
        ("[prices]\n'a/b' = { input = nan, output = 1, as_of = 2026-01-31 }", "input is NaN"),
        ("[prices]\n'a/b' = { input = true, output = 1, as_of = 2026-01-31 }", "input is True"),
        ("[prices]\n'a/b' = { input = 1, output = 1, up_to_tokens = 0, as_of = 2026-01-31 }", "up_to_tokens is 0"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(InputFileError, match=message):
        load_prices(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputFileError, match="check the path"):
        load_prices(tmp_path / "none.toml")


def test_an_estimate_by_hand():
    # 100 calls of 400 characters: 10,000 tokens in; 20 characters each: 500 tokens out.
    found = estimate(100, 40_000, 2_000, 50, Price(Decimal(2), Decimal(8), Decimal("0.5"), DAY))
    assert (found.calls, found.input_tokens, found.output_tokens) == (100, 10_000, 500)
    assert found.cost_usd == pytest.approx((10_000 * 2 + 500 * 8) / 1e6)
    assert found.most_usd == pytest.approx((40_000 * 2 + 100 * 50 * 8) / 1e6)


def test_an_estimate_without_a_price_says_that_it_does_not_know():
    found = estimate(3, 100, 10, 50, None)
    assert (found.calls, found.cost_usd, found.most_usd) == (3, None, None)


@given(st.integers(0, 1000), TOKENS, TOKENS, st.integers(1, 1000), DOLLARS, DOLLARS)
def test_the_most_is_never_below_the_expected(calls, prompt, reply, limit, full, output):
    found = estimate(calls, prompt, reply, limit, Price(full, output, full, DAY))
    assert found.most_usd >= found.cost_usd >= 0


def test_an_estimate_beyond_what_a_price_covers_is_unknown():
    price = Price(Decimal(1), Decimal(2), Decimal(1), DAY, up_to_tokens=1000)
    within, doubtful, beyond = (estimate(10, chars * 10, 100, 50, price) for chars in (900, 3_900, 4_100))
    assert None not in (within.cost_usd, within.most_usd)
    assert doubtful.cost_usd is not None, "975 tokens by the rule of thumb"
    assert doubtful.most_usd is None, "but up to 3,900"
    assert (beyond.cost_usd, beyond.most_usd) == (None, None)
    both = add_up([within, doubtful])
    assert (both.calls, both.most_usd) == (20, None)
    assert both.cost_usd == within.cost_usd + doubtful.cost_usd
