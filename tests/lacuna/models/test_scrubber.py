"""No secret survives scrubbing, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.models.scrubber import HIDDEN, LONGEST_EXCERPT, Scrubber

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
SECRET = "sk-canary-0123456789"
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(PLAIN, PLAIN, st.lists(PLAIN, max_size=4))
def test_secrets_go_and_the_rest_stays(before, after, others):
    scrub = Scrubber.knowing(SECRET, None, "", "short", "123456789012")
    assert scrub.text(f"{before}{SECRET}{after}{SECRET}") == f"{before}{HIDDEN}{after}{HIDDEN}"
    assert [scrub.text(text) for text in others if SECRET not in text] == [t for t in others if SECRET not in t]


def test_a_secret_inside_another_leaves_no_rest():
    scrub = Scrubber.knowing("aaaabbbb", "aaaabbbbcccc")
    assert scrub.text("aaaabbbbcccc aaaabbbb") == f"{HIDDEN} {HIDDEN}"


def test_what_the_environment_calls_secret():
    scrub = Scrubber.of_environment(
        {
            "OPENAI_API_KEY": "one-secret-1",
            "HF_TOKEN": "two-secret-2",
            "db_password": "three-secret-3",
            "TOKENIZERS_PARALLELISM": "not-a-secret",
            "HOME": "/home/somebody",
            "EMPTY_KEY": "",
            "OPENAI_API_KEY_2": "four-secret-4",
            "KEY_OF_MINE": "five-secret-5",
            "GITHUB_PAT": "six-secret-6",
            "PGPASSWORD": "seven-secret-7",
            "DATABASE_URL": "postgres://me:eight-secret-8@db/1",
            "ACCESS_TOKEN_ID": "1234567890",
            "PWD": "/home/somebody/work",
            "MONKEY": "banana-banana",
            "KEYBOARD": "qwertz-qwertz",
        }
    )
    found = {f"{name}-secret-{i}" for i, name in enumerate(NUMBERS, 1)}
    assert set(scrub.secrets) == {*found, "1234567890", "banana-banana"}, "a name that ends like one counts as one"


def test_what_could_be_an_answer_is_hidden_in_messages_alone():
    scrub = Scrubber.of_environment({"DB_PASSWORD": "0042", "PIN_SECRET": "123456789", "LLM_API_KEY": "hunter2"})
    assert scrub.secrets == ()
    assert scrub.text("ANSWER 3 0042") == "ANSWER 3 0042", "a reply keeps its answer"
    assert scrub.excerpt("refused: 0042, hunter2 and 123456789!") == f"refused: {HIDDEN}, {HIDDEN} and {HIDDEN}!"
    assert scrub.excerpt("10042 and hunter25") == "10042 and hunter25", "whole words only"


@pytest.mark.parametrize("value", ["", "1", "no", "none", "NONE", "true", "EMPTY"])
def test_what_stands_for_no_key_is_no_secret(value):
    assert Scrubber.of_environment({"MY_API_KEY": value}) == Scrubber()


@given(st.integers(0, 10**9 - 1), st.integers(1, 9))
def test_no_answer_is_ever_touched_for_a_key_made_of_digits(value, digits):
    answer = f"ANSWER 1 {value:0{digits}d}"
    for secret in (str(value), f"{value:0{digits}d}", "7" * 10):
        assert Scrubber.knowing(secret).text(answer) == answer


@given(st.text(st.characters(), max_size=400))
def test_an_excerpt_is_one_short_printable_line(text):
    line = Scrubber.knowing(SECRET).excerpt(text + SECRET + text)
    assert line.isprintable()
    assert len(line) <= LONGEST_EXCERPT + 1
    assert SECRET not in line


def test_a_secret_at_the_cut_is_gone_before_it():
    line = Scrubber.knowing(SECRET).excerpt("x" * (LONGEST_EXCERPT - 5) + SECRET)
    assert "sk-" not in line


def test_values_are_scrubbed_in_depth():
    value = {SECRET: [SECRET, {"a": f"x{SECRET}", "b": 1, "c": None, "d": True, "e": 1.5}]}
    expected = {HIDDEN: [HIDDEN, {"a": f"x{HIDDEN}", "b": 1, "c": None, "d": True, "e": 1.5}]}
    assert Scrubber.knowing(SECRET).value(value) == expected
    deep: list = []
    for _ in range(50):
        deep = [deep]
    with pytest.raises(RecursionError):
        Scrubber().value(deep)
