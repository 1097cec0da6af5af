"""No secret survives scrubbing, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.serving.scrubbing import HIDDEN, LONGEST_EXCERPT, Scrubber

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
        }
    )
    assert set(scrub.secrets) == {"one-secret-1", "two-secret-2", "three-secret-3"}


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
