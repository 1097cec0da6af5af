"""Entities of database runs: types, changes, the later-used peak by hand, and the failure AUC two ways."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, measure
from eirkit.vestige.demand.entities import (
    entity_demand,
    entity_touches,
    task_entities,
)
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Call, RecordedTurn, Recording


def recording(*calls: Call, **details: object) -> Recording:
    turns = tuple(RecordedTurn((call,)) for call in calls)
    return Recording("r1", "t1", "tau-bench", "one.json:1", turns, domain="entities", details=details)


def reads(run: Recording, scope: str) -> list[list[str]]:
    return [[read.path for read in touches.reads] for touches in entity_touches(run, scope)]  # type: ignore[arg-type]


def writes(run: Recording) -> list[list[str]]:
    return [[write.path for write in touches.writes] for touches in entity_touches(run)]


USER = json.dumps({"payment_methods": {"gift_card_7711863": {"id": "gift_card_7711863"}}, "orders": ["#W1000001"]})
ORDER = json.dumps(
    {
        "order_id": "#W1000001",
        "user_id": "ann_lee_1234",
        "items": [{"product_id": "1111111111", "item_id": "2222222222"}],
    }
)
PRODUCT = json.dumps({"product_id": "1111111111", "variants": {"3333333333": {"item_id": "3333333333"}}})
EXCHANGE = {"order_id": "#W1000001", "item_ids": ["2222222222"], "new_item_ids": ["3333333333"]}
RUN = recording(
    Call("find_user_id_by_email", {"email": "ann@example.org"}, "ann_lee_1234"),
    Call("get_user_details", {"user_id": "ann_lee_1234"}, USER),
    Call("get_order_details", {"order_id": "#W1000001"}, ORDER),
    Call("get_product_details", {"product_id": "1111111111"}, PRODUCT),
    Call("exchange_delivered_order_items", EXCHANGE, ORDER),
)
USER_PATH, ORDER_PATH, PRODUCT_PATH = "user:ann_lee_1234", "order:#W1000001", "product:1111111111"
OLD_ITEM, NEW_ITEM, CARD = "item:2222222222", "item:3333333333", "payment:gift_card_7711863"


def test_what_calls_name() -> None:
    assert reads(RUN, "named") == [
        [USER_PATH],  # an answer in plain text
        [USER_PATH],
        [ORDER_PATH],
        [PRODUCT_PATH],
        [ORDER_PATH, OLD_ITEM, NEW_ITEM],
    ]
    assert writes(RUN) == [[], [], [], [], [ORDER_PATH]]


def test_what_outputs_show() -> None:
    assert reads(RUN, "shown") == [
        [USER_PATH],
        [USER_PATH, CARD, ORDER_PATH],
        [ORDER_PATH, USER_PATH, PRODUCT_PATH, OLD_ITEM],
        [PRODUCT_PATH, NEW_ITEM],
        [ORDER_PATH, OLD_ITEM, NEW_ITEM, USER_PATH, PRODUCT_PATH],
    ]


def test_the_later_used_peak_by_hand() -> None:
    # Named: the exchange in turn 5 carries every read before it. At the cut before it, the user, the order and the
    # product have been met and are used by it; the old item was shown in turn 3 and the new one in turn 4, and both
    # are named in turn 5: 5. The card is shown and never named.
    # Shown: user, card, order, product and both items have been met by then and are carried to turn 5: 6.
    found = entity_demand(RUN)
    assert (found.peak_named_entities, found.peak_shown_entities) == (5, 6)
    assert (found.tool_turns, found.entities, found.task_entities) == (5, 6, None)


ORDERS = ("#W1000001", "#W1000002", "#W1000003")
LISTED = Call("get_user_orders", {}, json.dumps({"orders": list(ORDERS)}))


def details(order: str) -> Call:
    return Call("get_order_details", {"order_id": order}, "{}")


CANCEL = Call("cancel_pending_order", {"order_id": ORDERS[2]}, "{}")
PAYMENT = json.dumps({"payment_id": "gift_card_7711863"})
SHOW_PAYMENT, RESET_PAYMENT = Call("get_payment", {}, PAYMENT), Call("reset_payment", {}, PAYMENT)


@pytest.mark.parametrize(
    ("calls", "by_cut"),
    [
        # A list shows three orders, and each of the next turns names one: 3 before turn 2, then 2, then 1.
        ([LISTED, *map(details, ORDERS)], [0, 3, 2, 1]),
        # Orders that are shown and never named are not needed, however often they are shown.
        ([LISTED, details(ORDERS[1]), LISTED], [0, 1, 0]),
        # Naming in the turn that shows is no later use; a second naming is.
        ([details(ORDERS[0]), LISTED, details(ORDERS[0])], [0, 1, 1]),
        # Shown again after it was last named: live only until then.
        ([LISTED, details(ORDERS[2]), LISTED, details(ORDERS[2]), LISTED], [0, 1, 1, 1, 0]),
        # The third order is canceled in turn 3, which also carries the reading of the first in turn 2.
        (
            [LISTED, details(ORDERS[0]), CANCEL, LISTED],
            [0, 2, 2, 0],
        ),
        # The version that the change makes is seen from the change on, until it is named in turn 4.
        (
            [LISTED, CANCEL, LISTED, details(ORDERS[2])],
            [0, 1, 1, 1],
        ),
        # A payment is shown in turn 1 and changed in turn 3 by a call that does not name it.
        ([SHOW_PAYMENT, LISTED, RESET_PAYMENT, SHOW_PAYMENT], [0, 1, 1, 0]),
    ],
)
def test_what_was_shown_is_live_until_it_is_named_or_changed(calls: list[Call], by_cut: list[int]) -> None:
    run = recording(*calls)
    assert entity_demand(run).peak_named_entities == max(by_cut)
    found = measure(run, None, AnalysisOptions(read_windows()), estimating_counter())
    assert list(found.tables["cuts"]["later_used"]) == by_cut
    assert found.run.later_used_peak == max(by_cut)


def live(turns: list[tuple[set[str], set[str], set[str]]], cut: int) -> int:
    """Count the entities that are live at a cut, straight from the definition; a turn is what it names, shows, changes.

    A version is used by a turn that names it, and by the next change from there on; it is seen from the turn that
    shows, names or makes it.
    """
    count = 0
    for entity in set().union(*(named | shown | changed for named, shown, changed in turns)):
        made = [turn for turn, (_, _, changed) in enumerate(turns, 1) if entity in changed]
        start = max((turn for turn in made if turn < cut), default=0)  # the version at the cut
        end = min((turn for turn in made if turn >= cut), default=len(turns) + 1)
        seen = start or min(
            (turn for turn in range(1, cut) if entity in turns[turn - 1][0] | turns[turn - 1][1]), default=0
        )
        namings = [turn for turn in range(start + 1, min(end, len(turns)) + 1) if entity in turns[turn - 1][0]]
        carried = [
            min((at for at in range(turn, len(turns) + 1) if turns[at - 1][2]), default=turn) for turn in namings
        ]
        count += bool(seen) and max(carried, default=0) >= cut
    return count


@given(st.lists(st.tuples(*[st.sets(st.sampled_from(ORDERS), max_size=2)] * 3), max_size=8))
def test_live_entities_are_those_of_the_definition(drawn: list[tuple[set[str], set[str], set[str]]]) -> None:
    turns = []
    for named, shown, changed in drawn:
        reading = [Call("get_order_details", {"order_id": order}, "{}") for order in sorted(named)]
        listing = [Call("get_user_orders", {}, json.dumps({"orders": sorted(shown)}))]
        writing = [Call("cancel_pending_order", {"order_id": order}, "{}") for order in sorted(changed)]
        turns.append(RecordedTurn((*reading, *listing, *writing)))
    run = Recording("r1", "t1", "tau-bench", "one.json:1", tuple(turns), domain="entities")
    told = [(named | changed, shown, changed) for named, shown, changed in drawn]
    expected = [live(told, cut) for cut in range(1, len(told) + 1)]
    assert entity_demand(run).peak_named_entities == max(expected, default=0)


def test_a_failed_change_changes_nothing() -> None:
    run = recording(
        Call("cancel_pending_order", {"order_id": "#W1000001"}, "Error: non-pending order cannot be cancelled"),
        Call("cancel_pending_order", {"order_id": "#W1000001"}, "{}", failed=True),
    )
    assert writes(run) == [[], []]


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "changed"),
    [
        ("cancel_pending_order", {"order_id": "#W1"}, '{"order_id": "#W1"}', ["order:#W1"]),
        ("modify_user_address", {"user_id": "a_b_1", "zip": "1"}, "{}", ["user:a_b_1"]),
        (
            "update_reservation_flights",
            {"reservation_id": "X1", "flights": [{"flight_number": "HAT001"}]},
            "{}",
            ["reservation:X1"],
        ),
        (
            "book_reservation",
            {"user_id": "a_b_1"},
            '{"reservation_id": "NEW", "user_id": "a_b_1"}',
            ["reservation:NEW"],
        ),
        (
            "send_certificate",
            {"user_id": "a_b_1", "amount": 9},
            "Certificate certificate_3221322 added",
            ["user:a_b_1"],
        ),
        ("get_order_details", {"order_id": "#W1"}, "{}", []),
        ("returns_report", {"order_id": "#W1"}, "{}", []),
    ],
)
def test_what_a_tool_changes(tool: str, arguments: dict[str, object], output: str, changed: list[str]) -> None:
    assert writes(recording(Call(tool, arguments, output))) == [changed]


def test_ten_digits_under_a_key_that_says_nothing_are_of_the_tools_type() -> None:
    run = recording(Call("list_all_product_types", {}, '{"Lamp": "1111111111", "Desk": "not an id"}'))
    assert reads(run, "shown") == [[PRODUCT_PATH]]


def test_a_refused_turn_touches_nothing_and_odd_outputs_do_no_harm() -> None:
    refused = Recording("r", "t", "tau-bench", "x", (RecordedTurn((Call("a", {"user_id": "u"}),), rejected=True),))
    assert entity_touches(refused)[0].reads == ()
    odd = recording(Call("get_x", {"user_id": True, "order_id": None, "item_ids": [[["7"]]]}, "[" * 100_000))
    assert reads(odd, "shown") == [["item:7"]]
    assert reads(recording(Call("get_x", {"user_id": "x" * 10_000}, "null")), "shown") == [[]]


def test_entities_of_the_task_itself() -> None:
    actions = [
        {"name": "get_order_details", "arguments": {"order_id": "#W1"}},
        {"name": "exchange", "kwargs": {"order_id": "#W1", "item_ids": ["5", "6"]}},
        "damaged",
    ]
    assert task_entities(recording(actions=actions)) == {"order:#W1", "item:5", "item:6"}
    assert task_entities(recording(task={"evaluation_criteria": {"actions": actions[:1]}})) == {"order:#W1"}
    assert task_entities(recording()) is None
    assert entity_demand(recording(actions=[])).task_entities == 0
