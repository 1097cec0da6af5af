"""What the builder of a run keeps of prompts and of the context after a break."""

from __future__ import annotations

from eirkit.logs.formats.run_builder import RunBuilder
from eirkit.logs.trajectory import KeptContext


def begun() -> RunBuilder:
    builder = RunBuilder()
    builder.request("Fix it")
    builder.begin()
    return builder


def test_a_prompt_begins_a_segment_and_a_notice_does_not() -> None:
    builder = begun()
    builder.hear("reminder of the scaffold")
    builder.begin()
    builder.request("Now the docs")
    builder.begin()
    assert builder.prompt == "Fix it"
    assert [turn.asked for turn in builder.turns()] == ["Fix it", "", "Now the docs"]


def test_what_stayed_is_added_up_and_sizes_are_kept() -> None:
    builder = begun()
    builder.keep("before any break")
    builder.break_off("compaction")
    builder.keep(before_tokens=900, after_tokens=40)
    builder.keep("a.py again")
    builder.keep("b.py again")
    builder.begin()
    assert builder.turns()[1].kept == KeptContext("a.py again\n\nb.py again", "log", 900, 40)
    builder.begin()
    assert builder.turns()[2].kept is None


def test_the_next_request_outranks_what_the_log_names() -> None:
    builder = begun()
    builder.break_off("compaction")
    builder.keep("named", "log", before_tokens=900)
    builder.keep("the whole request", "request")
    builder.keep("named again", "log")
    builder.begin()
    assert builder.turns()[1].kept == KeptContext("the whole request", "request", 900)
