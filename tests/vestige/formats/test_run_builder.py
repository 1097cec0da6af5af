"""What the builder of a run keeps of the user's prompts."""

from __future__ import annotations

from eirkit.vestige.formats.run_builder import RunBuilder


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
