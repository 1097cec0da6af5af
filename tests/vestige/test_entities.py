"""Entities of database runs: types, changes, the later-used peak by hand, and the failure AUC two ways."""

from __future__ import annotations

import json

import pytest

from eirkit.logs.demand.entities import (
    entity_demand,
    entity_touches,
    task_entities,
)
from eirkit.logs.trajectory import Call, RecordedTurn, Recording


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
    # product have been met and are used by it: 3; the two items are first named in turn 5 itself.
    # Shown: user, card, order, product and both items have been met by then and are carried to turn 5: 6.
    found = entity_demand(RUN)
    assert (found.peak_named_entities, found.peak_shown_entities) == (3, 6)
    assert (found.tool_turns, found.entities, found.task_entities) == (5, 6, None)


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
