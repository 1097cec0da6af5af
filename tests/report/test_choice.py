"""Rankings: what they call shown is true as often as they say, and what they rank is what the records hold."""

from __future__ import annotations

import json
import math
import random
import shlex
import tracemalloc
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.lacuna.findings.intervals import clusters_for, constant_difference, student
from eirkit.lacuna.findings.ranking import POWER, Lead, rank
from eirkit.report.document import Chart
from eirkit.report.runs.choice import choice_in, choose, choose_folders
from eirkit.report.runs.folder import measure_of, read_sweep
from eirkit.report.runs.page import page_of
from eirkit.report.runs.ranking import answer_of, cost_words, difference_text, parts_table, ranking_table
from eirkit.report.runs.words import word_tables
from tests import runs
from tests.report.folders import command

# Quantiles of Student's t, two-sided, from published tables: (level, degrees of freedom) → t.
TABLE = {(0.05, 19): 2.093, (0.01, 9): 3.250, (0.01, 24): 2.797}


def drawn(random_: random.Random, means: dict[str, float], tasks: int, cells: int) -> tuple[dict, list]:
    """Values of candidates that share the difficulty of each task, in several cells of each task."""
    values = {name: [] for name in means}
    labels = []
    for task in range(tasks):
        hard = random_.gauss(0, 0.2)
        for _ in range(cells):
            labels.append(task)
            for name, mean in means.items():
                values[name].append(mean + hard + random_.gauss(0, 0.1))
    return values, labels


def test_no_order_is_called_shown_where_there_is_none_more_often_than_the_level_says():
    random_ = random.Random(20)
    means = dict.fromkeys("abcd", 0.5)
    draws = 600
    wrong = sum(any(one.is_shown for one in rank(*drawn(random_, means, 12, 3)).contrasts) for _ in range(draws))
    # 5% and three standard errors of a share of 600.
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("spread", [0.01, 0.03])
@pytest.mark.parametrize("share", [0.98, 1.0])
def test_near_ceilings_an_order_is_not_shown_too_often_where_tasks_differ(share, spread):
    """tests/paper/test_verdicts.py has all cases; 7% is 5% and three standard errors of 1,000 draws."""
    drawn = np.random.default_rng(5)

    def shares():
        return drawn.binomial(24, np.clip(share + spread * drawn.standard_normal(8), 0, 1)) / 24

    wrong = sum(rank({"a": shares(), "b": shares()}, range(8)).contrasts[0].is_shown for _ in range(1_000))
    assert wrong <= 70


def test_intervals_hold_for_all_pairs_at_once():
    random_ = random.Random(21)
    means = {"a": 0.7, "b": 0.6, "c": 0.6, "d": 0.2}
    draws, held = 400, 0
    for _ in range(draws):
        found = rank(*drawn(random_, means, 15, 2))
        held += all(one.low <= means[one.better] - means[one.worse] <= one.high for one in found.contrasts)
    assert held / draws >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize(("candidates", "tasks", "quantile"), [(2, 20, (0.05, 19)), (5, 25, None)])
def test_an_interval_is_the_paired_one_at_its_share_of_the_level(candidates, tasks, quantile):
    random_ = random.Random(3)
    values = {name: [random_.random() for _ in range(tasks)] for name in "abcde"[:candidates]}
    found = rank(values, list(range(tasks)))
    for one in found.contrasts:
        apart = [x - y for x, y in zip(values[one.better], values[one.worse], strict=True)]
        half = (one.high - one.low) / 2
        used = half / (stdev(apart) / math.sqrt(tasks))
        assert one.difference == pytest.approx(fmean(apart))
        if quantile:
            assert used == pytest.approx(TABLE[quantile], abs=0.0006)  # the table has three decimals
        else:
            assert used > TABLE[0.01, 24]  # ten pairs share the level, so each has 0.5%


def test_the_wanted_tasks_show_a_difference_with_the_stated_probability():
    random_ = random.Random(5)
    means = {"a": 0.53, "b": 0.5}
    wanted = [rank(*drawn(random_, means, 40, 1)).contrasts[0] for _ in range(60)]
    tasks = round(fmean(one.wanted for one in wanted if one.better == "a" and one.wanted and one.wanted < 1000))
    exact = math.ceil(((1.96 + 0.8416) * 0.1 * math.sqrt(2) / 0.03) ** 2)
    assert exact / 3 < tasks < exact * 3  # the estimates vary with the difference that was seen
    shown = fmean(rank(*drawn(random_, means, exact, 1)).contrasts[0].is_shown for _ in range(200))
    assert shown == pytest.approx(POWER, abs=3 * math.sqrt(0.8 * 0.2 / 200) + 0.01)  # 0.01: normal instead of t


def test_ranks_leave_open_what_is_not_shown():
    random_ = random.Random(7)
    found = rank(*drawn(random_, {"a": 0.9, "b": 0.9, "c": 0.1}, 30, 1))
    assert set(found.leaders) == {"a", "b"}
    assert [one.ranks for one in found.standings] == ["1–2", "1–2", "3"]
    assert found.standings[2].name == "c"
    for one, other in combinations(found.standings, 2):
        assert one.value >= other.value


def test_less_can_be_better_and_equal_values_are_named_so():
    found = rank({"slow": [5.0] * 8, "fast": [1.0] * 8, "quick": [1.0] * 8}, range(8), less_is_better=True, share=False)
    assert [one.name for one in found.standings] == ["fast", "quick", "slow"]
    assert found.contrast("fast", "quick").equal
    slow = found.contrast("fast", "slow")
    assert slow.is_shown, "a measure that never varies has an interval too"
    assert slow.low < 4 < slow.high
    certain = rank({"a": [1.0] * 20, "b": [0.0] * 20}, range(20)).contrasts[0]
    assert 0 < certain.low < 1, "an interval without width would claim that no task can differ"
    assert certain.is_shown


@pytest.mark.parametrize("difference", [1.0, -0.25, 4.0])
@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 9, 1 - 0.05 / 4060])
def test_a_constant_difference_has_the_t_interval_of_its_tasks_and_one_without_a_difference(difference, level):
    least = next(n for n in range(6, 99) if np.prod(constant_difference(difference, n, level)) > 0)
    assert clusters_for(level) == least
    for tasks in (6, 12):
        values = [*[difference] * tasks, 0.0]
        half = student(tasks, level) * stdev(values) / math.sqrt(tasks + 1)
        assert constant_difference(difference, tasks, level) == pytest.approx(
            (fmean(values) - half, fmean(values) + half)
        )


def test_a_constant_difference_that_is_not_shown_says_how_many_tasks_would_show_it():
    few = rank({"a": [1.0] * 6, "b": [0.0] * 6}, range(6), rankings=200).contrasts[0]
    assert not few.is_shown
    assert (few.constant, few.wanted) == (True, 7)
    assert rank({"a": [1.0] * 7, "b": [0.0] * 7}, range(7), rankings=200).contrasts[0].is_shown
    same = rank({"a": [1.0] * 7, "b": [1.0] * 7}, range(7)).contrasts[0]
    assert (same.equal, same.constant, same.wanted) == (True, False, None)


@pytest.mark.parametrize(("questions", "chance"), [(1, 0.5), (1, 0.9), (3, 0.98)])
def test_one_question_a_task_gives_no_order_too_often(questions, chance):
    """With few questions two candidates often differ by the same amount in several tasks."""
    drawn, draws = np.random.default_rng(8), 600
    shares = [drawn.binomial(questions, chance, (5, 6)) / questions for _ in range(draws)]
    wrong = sum(
        any(one.is_shown for one in rank(dict(zip("abcde", of, strict=True)), range(6)).contrasts) for of in shares
    )
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def test_nobody_is_level_with_those_who_beat_all_others_in_every_task():
    """0 in every task is further from 1 than 0.01 on average, which is shown to be worse."""
    almost = [0.1, *[0.0] * 9]
    found = rank({"a": [1.0] * 10, "b": [1.0] * 10, "c": almost, "d": [0.0] * 10}, range(10), rankings=10)
    assert found.leaders == ("a", "b")
    assert found.contrast("a", "d").low > 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("choice") / "run"
    how = ("--h", "2,4", "--m", 8, "--n", 24, "--seeds", "0:8", "--model", "reference/recoverer", "--no-control")
    command(
        "lacuna", "run", "--memory", "null,key-value,text", "--workload", "stepwise-sum", *how, "--out", path, "--json"
    )
    return path


def test_the_ranking_is_that_of_the_records(folder):
    found = choose([read_sweep(folder)])
    records = runs.records(folder)
    by_cell = {row.cell: row.memory for row in read_sweep(folder).rows}
    means: dict[str, list[float]] = {}
    for record in records:
        means.setdefault(by_cell[record.cell], []).append(record.score.correct / record.score.steps)
    assert found.by == "memory"
    assert {one.name: one.value for one in found.ranking.standings} == pytest.approx(
        {name: fmean(values) for name, values in means.items()}
    )
    assert (found.ranking.cases, found.ranking.tasks) == (16, 8)
    assert set(found.ranking.leaders) == {"key-value", "text"}
    assert found.ranking.standings[-1].name == "null"
    assert found.parts["h"].keys() == {"2", "4"}
    assert found.details["null"]["lost"] == pytest.approx(1)
    (text,) = answer_of(found)[1:]
    assert text == "key-value and text had the same accuracy in every case; other tasks may separate them."
    for name in ("key-value", "text"):
        own = [record.memory for record in records if record.setting.access.memory == name]
        each = 1000 * sum(memory.search_seconds for memory in own) / sum(memory.searches for memory in own)
        assert found.details[name]["search_ms"] == pytest.approx(each)  # over searches, as the sweep's table has it


def test_the_report_of_several_memories_begins_with_their_ranking(folder):
    page = page_of(read_sweep(folder))
    assert page.headline.caption == "accuracy with key-value, no significant difference from text"
    assert "null is shown to be worse than key-value" in page.headline.sentences[0]
    assert page.sections[0].anchor == "choice"
    assert page.answers.choice.leaders == ("key-value", "text")


def test_folders_are_ranked_on_the_tasks_they_share(folder, tmp_path):
    how = ("--h", 4, "--m", 8, "--n", 24, "--seeds", "4:14", "--model", "reference/recoverer", "--no-control")
    other = tmp_path / "other"
    command("lacuna", "run", "--memory", "bm25", "--workload", "stepwise-sum", *how, "--out", other, "--json")
    found, _ = choose_folders([folder, other], None, "accuracy")
    assert {one.name for one in found.ranking.standings} == {"null", "key-value", "text", "bm25"}
    assert (found.ranking.cases, found.ranking.tasks) == (4, 4)
    assert any("left out" in warning for warning in found.warnings)
    assert "4 tasks are too few to rank" in answer_of(found)[0]
    assert all(row["rank"] == "–" for row in ranking_table(found).rows)


def test_what_cannot_be_ranked_is_refused_in_one_line(folder, tmp_path, capsys):
    with pytest.raises(InputFileError, match=r"nothing to choose between: model has one value"):
        choose_folders([folder], "model", "accuracy")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputFileError, match="holds no records"):
        choose_folders([empty], None, "accuracy")
    assert choice_in(read_sweep(folder)) is not None
    capsys.readouterr()
    assert run(["choose", str(folder), "--measure", "nonsense"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "known: accuracy" in said


def test_the_command_prints_ranks_and_json_alike(folder, capsys):
    def printed(*words: object) -> str:
        capsys.readouterr()
        command(*words)
        return capsys.readouterr().out

    text = printed("choose", folder)
    assert "1–2" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    found = json.loads(printed("choose", folder, "--json"))
    assert found["leaders"] == ["key-value", "text"]
    assert json.loads(printed("compare", folder, "--by", "memory", "--json"))["standings"] == found["standings"]


def test_two_values_in_each_others_place_that_have_the_right_sum_contradict_nothing(tmp_path):
    how = ("--h", 2, "--m", 8, "--n", 24, "--seeds", "0:10", "--model", "reference/recoverer", "--no-control")
    command("lacuna", "run", "stepwise-sum", "--memory", "broken-labels", *how, "--out", tmp_path / "run", "--json")
    (row,) = read_sweep(tmp_path / "run").rows
    assert row.memory_system.outcomes["swapped_value"] > 200
    assert row.blind > 100
    assert row.validity.finding is None


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("told") / "run"
    how = ("--seeds", "0:6", "--model", "scripted/reader", "--no-control", "--out", path, "--json")
    command("lacuna", "run", "words", "--preset", "small", "--memory", "text,bm25,words-add-only", *how)
    return path


def questions(folder: Path) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Right answers and questions of each world, by ability and memory, as the records have them."""
    found: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for record in runs.records(folder):
        checks = record.conversation.instruction
        counts = {name: (count.right, count.asked) for name, count in record.conversation.abilities.items()}
        for ability, (right, asked) in {**counts, "instruction": (checks.kept, checks.asked)}.items():
            if asked:
                found.setdefault(ability, {}).setdefault(record.setting.access.memory, []).append((right, asked))
    return found


def test_memories_of_conversations_are_ranked_for_each_ability(told):
    found, counts = choose([read_sweep(told)]), questions(told)
    assert found.parts["ability"].keys() == counts.keys()
    for ability, ranking in found.parts["ability"].items():
        values = {one.name: one.value for one in ranking.standings}
        right = {name: sum(r for r, _ in of) / sum(n for _, n in of) for name, of in counts[ability].items()}
        assert values == pytest.approx(right), "all questions count alike"
    page = page_of(read_sweep(told))
    assert page.sections[0].anchor == "choice"
    assert page.headline.caption.startswith("accuracy with words-add-only, no significant difference from bm25")


def test_one_ability_has_the_intervals_and_ties_of_its_line(told, capsys):
    sweep = read_sweep(told)
    one, line = choose([sweep], abilities=["update"]), choose([sweep]).parts["ability"]["update"]
    assert one.ranking == line
    both = choose([sweep], abilities=["update", "time"])
    assert both.parts["ability"].keys() == {"update", "time"}
    counts = questions(told)
    pooled = [pair for ability in ("update", "time") for pair in counts[ability]["bm25"]]
    value = next(one.value for one in both.ranking.standings if one.name == "bm25")
    assert value == pytest.approx(sum(r for r, _ in pooled) / sum(n for _, n in pooled))
    capsys.readouterr()
    command("choose", told, "--only", "update", "--only", "time,update")
    text = capsys.readouterr().out
    assert (
        "No significant difference in “accuracy on update and time” over 6 conversations: bm25 (0.800) and"
        in " ".join(text.split())
    )
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("next: "))
    assert run(["choose", str(told), "--only", "charm"]) == 2
    assert "no ability named 'charm'; known: abstention, correction, count" in capsys.readouterr().err


def test_a_run_and_its_ranking_give_the_same_numbers(told):
    sweep = read_sweep(told)
    found = choose([sweep])
    in_choose = {
        (name, one.name): one.value
        for name, of in (("all", found.ranking), *found.parts["ability"].items())
        for one in of.standings
    }
    in_run = {(line.ability, row.memory): line.accuracy for row in sweep.rows for line in row.conversation.abilities}
    assert in_choose == pytest.approx(in_run)
    assert found.figures().mean_over == "questions"
    assert "(share of questions asked, all conversations together)" in ranking_table(found).meanings()


def test_weights_are_repeated_cases():
    random_ = random.Random(9)
    tasks, counts = list(range(9)), [random_.randint(1, 5) for _ in range(9)]
    values = {name: [random_.random() for _ in tasks] for name in "abc"}
    repeated = {name: [v for v, n in zip(of, counts, strict=True) for _ in range(n)] for name, of in values.items()}
    once = rank(values, tasks, weights=counts).contrasts
    again = rank(repeated, [task for task, n in zip(tasks, counts, strict=True) for _ in range(n)]).contrasts
    for one, other in zip(once, again, strict=True):
        assert (one.better, one.worse, one.wanted) == (other.better, other.worse, other.wanted)
        assert (one.difference, one.low, one.high) == pytest.approx((other.difference, other.low, other.high))


def test_four_times_the_tasks_take_four_times_the_memory():
    def peak(tasks: int) -> int:
        random_ = random.Random(3)
        values = {name: [random_.random() for _ in range(2 * tasks)] for name in "abc"}
        tracemalloc.start()
        try:
            rank(values, [case // 2 for case in range(2 * tasks)])  # two cases of each task
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(3_000) < 6 * peak(750)


def test_the_last_line_runs_the_leaders_alone_on_new_worlds(told, capsys):
    def printed() -> str:
        capsys.readouterr()
        command("choose", told, "--json")
        return json.loads(capsys.readouterr().out)["again"]

    words = shlex.split(printed())
    assert words[words.index("--memory") + 1] == "bm25,words-add-only"
    first, last = map(int, words[words.index("--seeds") + 1].split(":"))
    assert first == 6
    assert last - first >= 6
    words[words.index("--seeds") + 1] = f"{first}:{first + 2}"  # as it is printed, on fewer worlds
    assert run(words[1:]) == 0
    assert {row.memory for row in read_sweep(Path(words[-1])).rows} == {"bm25", "words-add-only"}
    assert Path(words[-1]).parent == told.parent
    assert printed().endswith("run-more-2"), "the first name is taken now"


def test_a_measure_that_no_run_has_is_refused_with_others(told, capsys):
    for words in (
        ["choose", str(told), "--measure", "used"],
        ["compare", str(told), "--by", "memory", "--measure", "used"],
    ):
        capsys.readouterr()
        assert run(words) == 2
        said = capsys.readouterr().err
        assert "the runs of text, bm25 and words-add-only have no figure for used (retrieved and used); rank by" in said
        assert said.count("\n") == 1


def test_a_constant_difference_in_words_is_shown_by_few_worlds(tmp_path, capsys):
    how = ("--seeds", "0:8", "--model", "scripted/reader", "--no-control", "--out", tmp_path / "two", "--json")
    command("lacuna", "run", "words", "--preset", "small", "--memory", "bm25,null", *how)
    found = choose([read_sweep(tmp_path / "two")], abilities=["count"])
    assert answer_of(found) == (
        "bm25 is best in “accuracy on count”, 1.000 over 8 conversations; it leads null, the next, by +100.0 points "
        "(+45.6 to +100.0).",
    )
    (costs,) = cost_words(choose([read_sweep(tmp_path / "two")]))
    assert costs.startswith("Cost of bm25, which alone leads: mean search time "), "null returns nothing"
    assert costs.endswith(
        "; the models cost nothing (scripted, or without a price). Times depend on the load of the machine."
    )
    assert "null" not in costs
    records = runs.records(tmp_path / "two")
    mean = fmean(record.memory.bytes for record in records if record.setting.access.memory == "bm25")
    assert f"bytes stored {mean:,.0f};" in costs
    meanings = ranking_table(found).meanings()
    assert "bytes stored: bytes that the memory stores at the end of a run, mean over runs" in meanings


def test_checks_of_instructions_are_not_among_the_questions_asked(told):
    row = read_sweep(told).rows[0]
    (table,) = (table for table in word_tables([row]) if table.id == "word-abilities")
    asked = {line["ability"]: line["asked"] for line in table.rows}
    assert "instruction (checks)" in asked
    assert sum(count for name, count in asked.items() if name not in ("all", "instruction (checks)")) == asked["all"]


def test_a_memory_that_finds_by_labels_says_so_of_questions_in_words(tmp_path, folder):
    how = ("--seeds", "0:1", "--model", "scripted/reader", "--no-control", "--out", tmp_path / "run", "--json")
    command("lacuna", "run", "words", "--preset", "small", "--memory", "bm25,key-value", *how)
    (said,) = choose([read_sweep(tmp_path / "run")]).systems
    assert said.startswith(
        "key-value warned: it finds records by their labels alone; questions about conversations name none"
    )
    assert choose([read_sweep(folder)]).systems == (), "other tasks ask by label"
    page = page_of(read_sweep(tmp_path / "run"))
    assert page.title.startswith("What these memories kept of conversations")
    (where,) = (place for place, section in enumerate(page.sections) if said in section.words)
    charts = [place for place, section in enumerate(page.sections) if any(isinstance(x, Chart) for x in section.items)]
    assert charts[0] < where, "what was found comes before how it was set up"


def test_a_refusal_sends_nobody_to_a_folder_that_is_refused_too(tmp_path, capsys):
    for folder in (tmp_path / "none", tmp_path):
        assert run(["choose", str(folder)]) == 2
        said = capsys.readouterr().err
        assert "`lacuna run` wrote" in said
        assert "analyze" not in said


def test_texts_held_are_not_said_to_be_unrecorded(told, capsys):
    capsys.readouterr()
    command("choose", told)
    text = " ".join(capsys.readouterr().out.split())
    assert "bytes stored" in text
    assert "not recorded" not in text
    assert "not judged: texts are stored; their size in bytes may be known" in text


def test_standing_instructions_are_called_what_they_are(told):
    found = choose([read_sweep(told)], abilities=["instruction"])
    assert found.measure.label == "instructions followed"
    meanings = ranking_table(found).meanings()
    assert "followed (share of checks of standing instructions, all conversations together)" in meanings
    assert "questions" not in meanings
    assert parts_table(choose([read_sweep(told)])).title == "Best by ability"


def test_worlds_without_such_questions_are_not_said_to_be_lacking_seeds(told):
    found = choose([read_sweep(told)], abilities=["withdrawal"])
    had = len(questions(told)["withdrawal"]["bm25"])
    assert had < 6
    (first, *more) = answer_of(found)
    assert (
        f"Of 6 conversations, {had} had such questions, too few to rank; {found.seeds} seeds would give about 12"
        in first
    )
    assert f"--seeds 6:{6 + found.seeds} " in found.again, "one number in the text and in the command"
    assert more == [
        "At the pace of these runs, the calls of memories and models in the next would take less than a minute."
    ]
    assert cost_words(found) == ()


def test_an_unfinished_candidate_changes_no_number_of_seeds(told):
    sweep = read_sweep(told)
    cell = next(row.cell for row in sweep.rows if row.memory == "text")
    found = choose([replace(sweep, runs=tuple(run for run in sweep.runs if run.cell != cell or run.seed))])
    assert found.ranking.tasks == 5
    assert found.warnings[-1] == "1 case that not every candidate was given, or has no value for, is left out"
    assert found.wanted == found.seeds


def test_no_fewer_tasks_are_wanted_than_did_not_suffice(told):
    for ability in questions(told):
        found = choose([read_sweep(told)], abilities=[ability])
        assert found.wanted is None or found.wanted >= found.ranking.tasks


def test_who_has_no_figure_is_left_out_and_named(told, tmp_path):
    how = ("--seeds", "0:6", "--model", "scripted/reader", "--no-control", "--out", tmp_path / "whole", "--json")
    command("lacuna", "run", "words", "--preset", "small", "--condition", "whole", *how)
    found, _ = choose_folders([told, tmp_path / "whole", told], "memory", "search_ms")
    assert len(found.ranking.standings) == 3
    assert "whole has no figure for search_ms and is left out" in found.warnings
    assert f"{told} was given more than once and counts once" in found.warnings
    assert " ms" in answer_of(found)[0]


def test_the_next_step_is_about_the_first_candidate(told, tmp_path):
    how = ("--seeds", "0:6", "--model", "scripted/reader", "--no-control", "--json", "--out")
    for name in ("null", "bm25", "words-add-only"):
        command("lacuna", "run", "words", "--preset", "small", "--memory", name, *how, tmp_path / name)
    found, _ = choose_folders([tmp_path / "null", tmp_path / "bm25"], None, "accuracy")
    assert found.folder == tmp_path / "bm25"
    found, _ = choose_folders([tmp_path / name for name in ("null", "words-add-only", "bm25")], None, "accuracy")
    words = shlex.split(found.again)
    assert words[words.index("--memory") + 1] == "words-add-only,bm25"
    assert words[-1] == "leaders", "no folder named after one of several memories"


@pytest.mark.parametrize(("value", "text"), [(-0.0002, "−0.02"), (0.0, "0.0"), (-0.1, "−10.0"), (-1e-9, "0.0000")])
def test_a_difference_near_zero_keeps_its_sign(value, text):
    share, calls = measure_of("accuracy"), measure_of("model_calls")
    lead = Lead("a", "b", 0.05, value, 0.1, equal=False, wanted=None)
    assert difference_text(share, lead, sign="+").partition("(")[2].startswith(text)
    assert difference_text(share, lead) == f"5.0 ({text} to 10.0)"
    assert "-" not in difference_text(calls, Lead("a", "b", -4.0, -5.0, -3.0, equal=False, wanted=None))


def test_options_that_do_nothing_are_refused(told, capsys):
    for words, said in ((["--only", ""], "is not a list such as update,time"),):
        assert run(["choose", str(told), *words]) == 2
        assert said in capsys.readouterr().err


def test_runs_that_ended_at_their_limit_of_actions_are_told_and_not_judged(tmp_path, capsys):
    """A faultless memory whose runs were cut short is not blamed for the steps that nobody reached."""
    how = ("--memory", "key-value", "--h", 2, "--n", 24, "--seeds", "0:7", "--model", "reference/recoverer")
    for name, actions in (("short", 40), ("long", 200)):
        command(
            "lacuna",
            "run",
            "store-recall",
            *how,
            "--actions",
            actions,
            "--no-control",
            "--out",
            tmp_path / name,
            "--json",
        )
    ended = [record.ending for record in runs.records(tmp_path / "short")]
    capsys.readouterr()
    command("choose", tmp_path / "short", tmp_path / "long", "--by", "folder", "--json")
    data = json.loads(capsys.readouterr().out)
    assert data["at_action_limit"] == {str(tmp_path / "short"): ended.count("action-limit")} != {}
    assert f"7 of 7 runs of {tmp_path / 'short'} ended at their limit of actions" in " ".join(data["answer"])
    judged = {cell["bits_at_most"]: cell for cell in data["possible"]}
    short, long = judged[min(judged)], judged[max(judged)]
    assert (short["share_at_least"], long["share_at_least"]) == (None, 1.0)
    assert "limit of actions" in short["why_not"]


def test_conversations_are_proposed_nothing_that_they_refuse(told, tmp_path, capsys):
    how = ("--seeds", "0:6", "--model", "scripted/reader", "--no-control", "--out", tmp_path / "cut", "--json")
    command("lacuna", "run", "words", "--preset", "small", "--condition", "truncated", *how)
    capsys.readouterr()
    command("choose", told, tmp_path / "cut", "--by", "memory")
    assert "--panel" not in capsys.readouterr().out
    command("choose", told, tmp_path / "cut", "--by", "memory", "--out", tmp_path / "page.html")
    assert "--panel" not in (tmp_path / "page.html").read_text("utf-8")


def test_a_printed_page_has_one_section_of_details_and_no_two_definitions(told, capsys):
    capsys.readouterr()
    command("choose", told, "--format", "html")
    text = capsys.readouterr().out
    assert text.count(">Details</h2>") == 1
    assert 'id="measure-accuracy"' not in text
    assert 'id="measure-bytes"' not in text
