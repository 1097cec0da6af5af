"""Prompt sizes, overflows and windows of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.errors import InputFileError
from eirkit.vestige.audits.occupancy import ContextWindows, occupancy, read_windows, window_of
from eirkit.vestige.trajectory import Call, LoggedUsage, RecordedTurn, Recording

WINDOWS = ContextWindows(
    "2026-01-01", {"gpt-4": 8_192, "gpt-4-1": 1_047_576, "gpt-4o": 128_000, "claude-opus-4": 200_000}
)


def recording(*turns: RecordedTurn, model: str = "openai/gpt-4o", **more: object) -> Recording:
    return Recording("r1", "t1", "plain", "one.jsonl", turns, model=model, **more)  # type: ignore[arg-type]


def sized(input_tokens: int, output_tokens: int = 0) -> RecordedTurn:
    return RecordedTurn(usage=LoggedUsage(input_tokens, output_tokens))


def test_a_growing_prompt_is_monotone_and_its_peak_counts_the_reply() -> None:
    row = occupancy(recording(sized(1_000, 50), sized(1_200, 800), sized(1_200, 10)), WINDOWS)
    assert (row.prompt_monotone, row.prompt_drops) == (True, 0)
    assert (row.peak_tokens, row.measured, row.window_tokens) == (2_000, True, 128_000)
    assert row.peak_share == 2_000 / 128_000


def test_a_prompt_that_shrinks_is_not_monotone() -> None:
    row = occupancy(recording(sized(5_000), sized(900), sized(1_500), sized(1_400)), WINDOWS)
    assert (row.prompt_monotone, row.prompt_drops) == (False, 2)


def test_of_several_responses_in_a_turn_the_largest_fills_the_context() -> None:
    several = RecordedTurn(
        usage=LoggedUsage.total([LoggedUsage(1_000, 50), LoggedUsage(1_100, 60), LoggedUsage(1_000, 40)])
    )
    row = occupancy(recording(several, sized(1_050, 10)), WINDOWS)
    assert (row.peak_tokens, row.prompt_drops) == (1_160, 1)
    assert several.usage is not None
    assert (several.usage.input_tokens, several.usage.output_tokens) == (3_100, 150)


def test_calls_without_sizes_are_passed_over() -> None:
    row = occupancy(recording(sized(500), RecordedTurn(), sized(0, 9), sized(400)), WINDOWS)
    assert row.prompt_drops == 1


def test_without_sizes_the_runs_tokens_stand_in_and_are_marked() -> None:
    row = occupancy(recording(RecordedTurn(), model="nobody/knows"), WINDOWS, trajectory_tokens=64)
    assert (row.peak_tokens, row.measured, row.prompt_monotone) == (64, False, None)
    assert (row.window_tokens, row.peak_share) == (None, None)
    assert occupancy(recording(), WINDOWS).peak_tokens is None


def test_overflows_are_counted_where_the_scaffold_speaks_not_where_the_agent_reads() -> None:
    message = "Error: context_length_exceeded: This model's maximum context length is 128000 tokens"
    read = RecordedTurn((Call("bash", {"command": "cat errors.py"}, message),))
    failed = RecordedTurn((Call("model", {}, message, failed=True),))
    row = occupancy(recording(read, failed, exit_status="exit_context"), WINDOWS)
    assert row.overflow_errors == 2


def test_compactions_and_clears_are_told_apart() -> None:
    opening = "This session is being continued from a previous conversation that ran out of context."
    turns = (
        RecordedTurn(broken="compaction", carried="Summary: …"),
        RecordedTurn(broken="clear"),
        RecordedTurn(carried=opening),
        RecordedTurn(text="all done"),
    )
    row = occupancy(recording(*turns), WINDOWS)
    assert (row.summary_markers, row.clears) == (2, 1)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", 128_000),
        ("azure/gpt-4o-2024-08-06", 128_000),
        ("gpt-4.1", 1_047_576),  # a longer known name goes before gpt-4
        ("gpt-4-0613", 8_192),
        ("gpt-4.5-preview", None),  # another model, of which nothing is known
        ("gpt-4o-tiny", None),
        ("bedrock/us.anthropic.claude-opus-4-20250514-v1:0", 200_000),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_a_models_window_is_found_by_its_plain_name(model: str, expected: int | None) -> None:
    assert window_of(WINDOWS, model) == expected


def test_the_shipped_sizes_know_the_models_of_the_paper() -> None:
    windows = read_windows()
    names = ["gemini-3-pro-preview", "claude-opus-4.6", "claude-opus-4.5", "gemini-3-flash-preview", "minimax-m2.5"]
    names += ["glm-5", "gpt-5.2", "claude-haiku-4.5", "gpt-5-mini", "Qwen/Qwen3-Coder-480B-A35B-Instruct"]
    assert [name for name in names if window_of(windows, name) is None] == []
    assert windows.dated


def test_a_users_file_goes_before_the_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "windows.toml"
    own.write_text('[windows]\n"gpt-4o" = 64000\n"My.Model" = 4096\n')
    windows = read_windows(own)
    assert (window_of(windows, "gpt-4o"), window_of(windows, "lab/my-model")) == (64_000, 4_096)
    assert window_of(windows, "gpt-4.1") == 1_047_576


@pytest.mark.parametrize(
    "text", ["[windows]\na = 'b'", "[windows]\na = 0", "windows = 3", "not toml", "[windows]\na = true"]
)
def test_a_damaged_file_is_refused_with_a_remedy(tmp_path: Path, text: str) -> None:
    own = tmp_path / "windows.toml"
    own.write_text(text)
    with pytest.raises(InputFileError, match=r"write \[windows\]"):
        read_windows(own)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError):
        read_windows(tmp_path / "absent.toml")


def test_the_window_is_the_logs_else_the_tables_unless_compactions_disagree() -> None:
    compacted = RecordedTurn(usage=LoggedUsage(20_000, 0), broken="compaction", carried="Go on.")
    million = {"model": "gpt-4.1"}

    def window(*turns: RecordedTurn, **more: object) -> tuple[int | None, str | None]:
        row = occupancy(recording(*turns, **{**million, **more}), WINDOWS)
        return row.window_tokens, row.window_source

    assert window(sized(174_000), compacted, window=258_400) == (258_400, "log")
    # Compacted at 174,000 of a million: the smallest window that holds as much is 200,000.
    assert window(sized(174_000), compacted) == (200_000, "compactions")
    assert window(sized(174_000)) == (1_047_576, "table")
    assert window(sized(30_000), compacted) == (1_047_576, "table")  # perhaps because the user wanted it
    assert window(sized(800_000), compacted) == (1_047_576, "table")
    assert window(sized(174_000), compacted, model="unheard-of") == (None, None)
