"""Rankings of folders: what they rank is what the records hold, and what they print is true of it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.lacuna.findings.ranking import LOOKS, Standing, tasks_to_separate
from eirkit.report.document import Chart
from eirkit.report.runs.choice import choice_in, choose, choose_folders
from eirkit.report.runs.folder import measure_of, read_sweep
from eirkit.report.runs.page import page_of
from eirkit.report.runs.ranking import answer_of, cost_words, distance_text, parts_table, ranking_table
from eirkit.report.runs.words import word_tables
from tests import runs
from tests.report.folders import command


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
    text = answer_of(found)[1]
    assert text.startswith("key-value and text had the same accuracy in every case; harder tasks may differ. About ")
    for name in ("key-value", "text"):
        own = [record.memory for record in records if record.setting.access.memory == name]
        each = 1000 * sum(memory.search_seconds for memory in own) / sum(memory.searches for memory in own)
        assert found.details[name]["search_ms"] == pytest.approx(each)  # over searches, as the sweep's table has it


def test_the_report_of_several_memories_begins_with_their_ranking(folder):
    page = page_of(read_sweep(folder))
    assert page.headline.caption == "accuracy with key-value; text may be best too"
    assert "null is worse than the best" in page.headline.sentences[0]
    assert page.sections[0].anchor == "choice"
    assert page.answers.choice.leaders == ("key-value", "text")


def test_folders_are_ranked_on_the_tasks_they_share(folder, tmp_path):
    how = ("--h", 4, "--m", 8, "--n", 24, "--seeds", "4:14", "--model", "reference/recoverer", "--no-control")
    other = tmp_path / "other"
    command("lacuna", "run", "--memory", "bm25", "--workload", "stepwise-sum", *how, "--out", other, "--json")
    found, _ = choose_folders([folder, other], None, "accuracy")
    assert {one.name for one in found.ranking.standings} == {"null", "key-value", "text", "bm25"}
    assert (found.ranking.cases, found.ranking.tasks) == (4, 4)
    assert any("left out" in exclusion for exclusion in found.exclusions)
    assert "4 tasks are too few to rank" in answer_of(found)[0]
    assert all(row["place"] == "not ranked" for row in ranking_table(found).rows)


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
    assert "may be best" in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("next: "))
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
    assert page.headline.caption.startswith("accuracy with words-add-only; bm25")


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
    assert "bm25 is best in “accuracy on update and time”, 0.800 over 6 conversations; words-add-only" in " ".join(
        text.split()
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
        "bm25 is best in “accuracy on count”, 1.000 over 8 conversations; null, the next, is 100.0 points (52.3 to "
        "100.0) behind.",
        "Conditions: read by scripted/reader; budget of the prompt: documented.",
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
    assert more[0].startswith("At the cost and pace of these runs, the next would take ")
    assert found.price.runs == 3 * found.seeds
    assert cost_words(found) == ()


def test_an_unfinished_candidate_changes_no_number_of_seeds(told):
    sweep = read_sweep(told)
    cell = next(row.cell for row in sweep.rows if row.memory == "text")
    found = choose([replace(sweep, runs=tuple(run for run in sweep.runs if run.cell != cell or run.seed))])
    assert found.ranking.tasks == 5
    assert found.exclusions[0] == "1 case that not all were given, or have no value for, is left out"
    assert found.wanted == found.seeds


def test_who_has_no_figure_is_left_out_and_named(told, tmp_path):
    how = ("--seeds", "0:6", "--model", "scripted/reader", "--no-control", "--out", tmp_path / "whole", "--json")
    command("lacuna", "run", "words", "--preset", "small", "--condition", "whole", *how)
    found, _ = choose_folders([told, tmp_path / "whole", told], "memory", "search_ms")
    assert len(found.ranking.standings) == 3
    assert "whole has no figure for search_ms and is left out" in found.exclusions
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
    one = Standing("a", 9, 0.5, "worse", 0.05, value, 0.1, equal=False, close=False)
    assert distance_text(share, one) == f"5.0 ({text} to 10.0)"
    other = Standing("a", 9, 0.5, "worse", -4.0, -5.0, -3.0, equal=False, close=False)
    assert "-" not in distance_text(calls, other)


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


def test_the_leaders_and_their_further_worlds_are_pooled_at_a_second_look(tmp_path, capsys):
    """`choose A A-more`: the folder that the last line makes counts with the first, at a level of its own."""
    how = ("--h", 2, "--m", 4, "--n", 8, "--model", "reference/recoverer", "--no-control", "--json")
    first, more = tmp_path / "a", tmp_path / "a-more"
    command("lacuna", "run", "store-recall", "--memory", "null,text,key-value", "--seeds", "0:6", *how, "--out", first)
    found, _ = choose_folders([first], None, "accuracy")
    leaders, again = found.ranking.leaders, shlex.split(found.again)
    assert len(leaders) > 1
    assert "null" not in leaders
    spread, lead = found.ranking.spread, max(found.ranking.lead, found.ranking.margin)
    assert found.wanted == tasks_to_separate(lead, spread, len(leaders), outside=LOOKS[1]) - 6
    again[again.index("--seeds") + 1] = "6:14"  # as it is printed, on fewer worlds
    again[again.index("--out") + 1] = str(more)
    assert run(again[1:]) == 0
    pooled, _ = choose_folders([first, more], None, "accuracy")
    assert pooled.looks == (6, 14)
    assert pooled.exclusions == ()
    assert {one.name for one in pooled.ranking.standings} == {"null", "text", "key-value"}
    assert pooled.ranking["null"] == found.ranking["null"], "who was worse at the first look stays so"
    records = [record for folder in (first, more) for record in runs.records(folder)]
    for name in leaders:
        own = [record.score for record in records if record.setting.access.memory == name]
        mean = sum(score.correct for score in own) / sum(score.steps for score in own)
        assert pooled.ranking[name].value == pytest.approx(mean)
    capsys.readouterr()
    command("choose", first, more)
    printed = capsys.readouterr().out
    assert "over 14 tasks" in printed
    assert "Look 2 of at most 3, at the leaders alone" in " ".join(printed.split())


def test_who_is_within_the_margin_is_told_to_stop(tmp_path):
    how = ("--h", 2, "--m", 4, "--n", 8, "--seeds", "0:160", "--model", "reference/recoverer", "--no-control")
    command("lacuna", "run", "store-recall", "--memory", "key-value,text", *how, "--out", tmp_path / "a", "--json")
    found, _ = choose_folders([tmp_path / "a"], None, "accuracy")
    assert answer_of(found)[1] == "Stop: each of them is shown to be at most 2.0 points behind the best."
    assert (found.wanted, found.again) == (None, "")
    found, _ = choose_folders([tmp_path / "a"], None, "accuracy", margin=0.005)
    assert "would show a difference of 0.5 points (--margin), if there is one" in answer_of(found)[1]
    assert found.wanted > 400


def test_the_script_that_memories_ask_in_conversations_is_named(tmp_path, capsys):
    """It reads conversations; the one that extracts records is asked for nothing there."""
    how = ("--preset", "small", "--model", "scripted/reader", "--no-control", "--seeds", "0:1")
    command("lacuna", "run", "conversation", "--memory", "agent-file,agent-tools", *how, "--out", tmp_path / "out")
    command("choose", tmp_path / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert "scripted/reader answered what agent-file and agent-tools asked of a model" in printed
    assert "models that memories called: scripted/reader" in printed
    assert "scripted/extractor" not in printed
