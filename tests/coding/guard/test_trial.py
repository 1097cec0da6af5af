"""The trial of the guard: outcomes against a count by hand, intervals against brute force, and their error rate."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.cli import ROOT, run
from eirkit.errors import UsageError
from eirkit_coding.guard.effects import TrialUnit, calibrate, effects, simulated_trial
from eirkit_coding.guard.hook import guard_folder
from eirkit_coding.guard.outcomes import MOST_TURNS, QUIET_SECONDS, measure
from eirkit_coding.guard.trial import ARMS, Compaction, arm_at, begin_trial, draw_arm, read_draws
from tests.coding.week.week_home import ClaudeSession, source_text

AT = 1_794_000_000.0
PARSER, LEXER = source_text(3_000), source_text(900, "token")
NAMES = ("again", "tokens", "turns", "failed", "broken")


def before_compaction(name: str = "s1", project: str = "/work/shop") -> ClaudeSession:
    """Return a session up to its compaction."""
    made = ClaudeSession(name, project, AT)
    made.ask("Mend parser.py. Never touch config.toml.")
    made.read("parser.py", PARSER)
    made.write("parser.py", PARSER)
    return made


def edit(made: ClaudeSession, path: str, output: str) -> None:
    call = f"toolu_{made.session}_{len(made.lines)}"
    use = {"file_path": f"{made.project}/{path}", "old_string": "a = 1", "new_string": "a = 2"}
    made.reply({"type": "tool_use", "id": call, "name": "Edit", "input": use})
    made.result(call, output)


def drawn(made: ClaudeSession, folder: Path, transcript: Path) -> None:
    """Draw the arm of a compaction that is now."""
    compaction = Compaction(at=made.at, agent="claude", session=made.session, transcript=str(transcript))
    draw_arm(folder, made.project, compaction)
    made.compact()


def test_outcomes_are_those_of_a_count_by_hand(tmp_path: Path) -> None:
    begin_trial(tmp_path, seed=3)
    path = tmp_path / "t.jsonl"
    made = before_compaction()
    drawn(made, tmp_path, path)
    made.read("parser.py", PARSER)  # again
    made.read("lexer.py", LEXER)  # for the first time
    edit(made, "parser.py", "String to replace not found in file.")
    made.write("config.toml", "debug = true\n")  # forbidden, and the next edit
    made.read("parser.py", PARSER)  # again
    made.write("parser.py", PARSER)
    made.read("parser.py", PARSER)  # its new version
    drawn(made, tmp_path, path)
    made.read("lexer.py", LEXER)
    made.save(path)
    first, second = read_draws(tmp_path)
    found = measure([first, second], tmp_path, made.at + 60)
    assert found.open == (second,)
    outcome = found.outcomes[first]
    shown = -(-len("".join(f"{n:>6}→{line}\n" for n, line in enumerate(PARSER.splitlines(), 1))) // 4)
    assert abs(outcome.reread_tokens - 2 * shown) <= 4  # a reader may leave out the last line break
    assert (outcome.turns_to_edit, outcome.is_edited) == (4, True)
    assert (outcome.failed_edits, outcome.broken_rules, outcome.turns) == (1, 1, 7)
    assert outcome.tokens_to_edit > shown
    later = measure([first, second], tmp_path, made.at + QUIET_SECONDS + 60)
    assert later.outcomes[second].turns == 1
    assert later.outcomes[second].is_edited is False
    path.unlink()  # agents delete old logs: what was measured stays
    again = measure([first, second], tmp_path, made.at + QUIET_SECONDS + 60)
    assert again.outcomes == later.outcomes


def test_only_so_many_turns_count(tmp_path: Path) -> None:
    begin_trial(tmp_path, seed=3)
    made = before_compaction()
    drawn(made, tmp_path, tmp_path / "t.jsonl")
    for number in range(MOST_TURNS + 5):
        made.read(f"f{number}.py", LEXER)
    made.save(tmp_path / "t.jsonl")
    (outcome,) = measure(read_draws(tmp_path), tmp_path, made.at).outcomes.values()
    assert (outcome.turns, outcome.turns_to_edit, outcome.is_edited) == (MOST_TURNS, MOST_TURNS, False)


def test_a_log_that_is_gone_is_named(tmp_path: Path) -> None:
    begin_trial(tmp_path, seed=3)
    drawn(before_compaction(), tmp_path, tmp_path / "gone.jsonl")
    found = measure(read_draws(tmp_path), tmp_path, AT)
    assert not found.outcomes
    assert "gone.jsonl" in found.lost[0][1]


def by_test_inversion(units: list[TrialUnit], t: float) -> float:
    """Return the p value of an effect t by all exchanges of arms within blocks, with every sum computed anew."""
    chosen = [unit for unit in units if unit.arm != "sham"]
    blocks = sorted({unit.block for unit in chosen})
    values = np.array([unit.values[0] - t * (unit.arm == "restore") for unit in chosen])
    projects = np.array([unit.block[0] for unit in chosen])
    center = np.array(
        [(values[projects == one].sum() + 2 * values.mean()) / ((projects == one).sum() + 2) for one in projects]
    )
    signs = np.array([1.0 if unit.arm == "restore" else -1.0 for unit in chosen])
    place = np.array([blocks.index(unit.block) for unit in chosen])
    sums = np.array(
        [(signs * np.array(flips)[place] * (values - center)).sum() for flips in product((1, -1), repeat=len(blocks))]
    )
    slack = 1e-7 * (1 + np.abs(values).sum())
    return float(min(1.0, 2 * min((sums >= sums[0] - slack).mean(), (sums <= sums[0] + slack).mean())))


outcomes = st.integers(0, 40).map(float)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(outcomes, min_size=21, max_size=27), seed=st.integers(0, 1 << 40), shift=st.floats(-30, 30))
def test_the_interval_is_the_inversion_of_the_test(values: list[float], seed: int, shift: float) -> None:
    units = []
    for number, value in enumerate(values):
        project, ordinal, place = str(number % 2), number // 2 % 3, number // 6
        units.append(TrialUnit((project, ordinal, place // 3), arm_at(seed, project, ordinal, place), (value,)))
    (found,) = effects(units, "restore", "nothing", seed=0)
    if found.estimate is None:
        return
    assert found.p == pytest.approx(by_test_inversion(units, 0.0), abs=1e-9)
    t = found.estimate + shift
    is_inside = (found.low is None or found.low <= t) and (found.high is None or t <= found.high)
    assert is_inside == (by_test_inversion(units, t) > 0.05)


def test_few_compactions_have_no_bounds() -> None:
    units = [
        TrialUnit(("p", 0, block), arm, (float(block + number),))
        for block in range(5)
        for number, arm in enumerate(ARMS)
    ]
    (found,) = effects(units[:6], "restore", "nothing", seed=0)
    assert (found.estimate, found.low, found.high, found.p) == (None, None, None, None)
    constant = [TrialUnit(("p", 0, block), arm, (1.0,)) for block in range(40) for arm in ARMS]
    assert effects(constant, "restore", "nothing", seed=0)[0].estimate is None


def test_simulated_arms_are_those_of_real_trials() -> None:
    made = simulated_trial("none", is_dependent=True, compactions=60, seed=5)
    assert made.truth.tolist() == [0.0] * 5
    places: dict[tuple[str, int], int] = {}
    for unit in made.units:
        project, ordinal, block = unit.block
        place = places.get((project, ordinal), 0)
        places[project, ordinal] = place + 1
        assert (unit.arm, block) == (arm_at(5, project, ordinal, place), place // 3)


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say() -> None:
    """`guard results --trials` does so a thousand times. Of 400, 95 % have a standard deviation of 1.1 points."""
    for one in calibrate(NAMES, trials=400):
        if one.trials >= 360:
            assert 0.92 <= one.covered / one.trials <= 0.98, one
            assert one.kind != "none" or one.decided / one.trials <= 0.08
            assert abs(one.decided - one.expected) / one.trials <= 0.09, one  # the power that is stated


def results(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(ROOT, ["guard", "results", *words, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "own"))
    return guard_folder()


def trial_of(folder: Path, logs: Path, sessions: int, planned: int) -> None:
    """Play a trial in which a session reads a file again unless it was restored."""
    begin_trial(folder, seed=4, compactions=planned)
    logs.mkdir(exist_ok=True)
    for number in range(sessions):
        made = before_compaction(f"s{number}", f"/work/{'ab'[number % 2]}")
        path = logs / f"{number}.jsonl"
        drawn(made, folder, path)
        if read_draws(folder)[-1].arm != "restore":
            made.read("parser.py", source_text(2_000 + 37 * number))
        made.write("parser.py", PARSER)
        made.save(path)


def test_an_answer_is_given_when_the_trial_is_over(folder: Path, tmp_path: Path) -> None:
    trial_of(folder, tmp_path / "logs", 36, planned=36)
    found = results()
    assert (found["drawn"], found["measured"], found["is_over"]) == (36, 36, True)
    assert [one["measured"] for one in found["arms"]] == [12, 12, 12]
    by_name = {(row["measure"], row["against"]): row for row in found["effects"]}
    again = by_name["reread_after_tokens", "nothing"]
    assert again["high"] < 0
    assert again["p_holm"] <= 0.05
    assert by_name["to_edit_turns", "nothing"]["difference"] == -1
    assert by_name["broken_rules", "nothing"]["difference"] is None
    said = CliRunner().invoke(ROOT, ["guard", "results"]).stdout
    assert said.startswith("Restoring lowers read again after it by ")
    assert all(len(line) <= 80 for line in said.splitlines())


def test_no_answer_is_given_before(folder: Path, tmp_path: Path) -> None:
    trial_of(folder, tmp_path / "logs", 30, planned=36)
    said = CliRunner().invoke(ROOT, ["guard", "results"]).stdout
    assert said.startswith("No answer yet: 30 of 36 planned compactions are measured.")
    assert results()["is_over"] is False


def test_what_is_drawn_later_changes_no_answer(folder: Path, tmp_path: Path) -> None:
    trial_of(folder, tmp_path / "logs", 12, planned=12)
    before = results()
    trial_of(folder, tmp_path / "logs", 15, planned=12)
    assert results() == before


def test_results_without_a_trial_say_how_to_begin(folder: Path) -> None:
    with pytest.raises(UsageError, match="eirkit guard install AGENT --trial"):
        CliRunner().invoke(ROOT, ["guard", "results"], catch_exceptions=False)


def test_too_few_simulated_compactions_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["guard", "results", "--trials", "1", "--compactions", "3"]) == 2
    assert "3 compactions are too few to estimate an effect; give more with --compactions" in capsys.readouterr().err


def test_simulated_results_are_shown(folder: Path) -> None:
    found = results("--trials", "3", "--compactions", "30")
    assert len(found["calibration"]) == 30
    said = CliRunner().invoke(ROOT, ["guard", "results", "--trials", "3"]).stdout
    assert all(len(line) <= 80 for line in said.splitlines())


def test_damaged_outcomes_are_measured_again(folder: Path, tmp_path: Path) -> None:
    trial_of(folder, tmp_path / "logs", 3, planned=3)
    before = results()
    kept = folder / "outcomes.jsonl"
    first, *rest = kept.read_text().splitlines()
    kept.write_text("\n".join([first[:20], *rest, "[1]", ""]))
    assert results() == before
