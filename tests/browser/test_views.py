"""Every view opens on real runs, answers to filters and keys, complains of nothing, and can be used by everybody."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from eirkit.records.analysis import RunRow
from eirkit.records.database import SweepDatabase
from eirkit.report.glossary import GLOSSARY
from eirkit.report.viewer.run_table import FolderRuns
from eirkit.vestige.measures import BREAK_MEASURES
from eirkit.vestige.tables import read_rows, read_table
from tests.browser.conftest import WAIT_MS


def records(folder, name):
    with SweepDatabase(folder / name) as database:
        return list(database.records())


def run_of(folder, name, **wanted):
    """Return the first run of a folder whose seed and settings are as wanted."""
    runs = FolderRuns(folder / name)
    for row in runs.cells(("run", *wanted), range(runs.rows)):
        if all(row[key] == value for key, value in wanted.items()):
            return row["run"]
    raise AssertionError(f"no run with {wanted}")


RUNS_SHOWN = "section[aria-label=Runs] tbody tr"


def count_says(page, words):
    expect(page.locator(".count")).to_contain_text(words)


def query_of(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


@pytest.fixture
def views(folder):
    """Every view: its address, what must be there, and its name."""
    clipped = read_table(folder / "shell" / "clipped", "hidden_lines")["run_id"][0].as_py()
    wrong = run_of(folder, "sweep", h=2, model="reference/calculator", workload="stepwise-sum")
    arms = [run_of(folder, "rescue", arm=arm, seed=0) for arm in ("control", "oracle", "sham")]
    return {
        "folders": ("", "ul.folders li"),
        "sweep": ("?at=sweep", ".heat svg rect"),
        "rescue": ("?at=rescue", RUNS_SHOWN),
        "run": (f"?at=sweep&run={wrong}&t=9", ".exchange pre:visible"),
        "arms": (
            f"?at=rescue&run={arms[0]}&with={arms[1]}&with={arms[2]}&t=9",
            ".arm:nth-child(3) .exchange pre:visible",
        ),
        "remembered": (
            f"?at=remembered&run={run_of(folder, 'remembered', arm='oracle', seed=0)}&t=9",
            ".exchange pre:visible",
        ),
        "managed": (f"?at=managed&run={run_of(folder, 'managed', seed=1)}&t=7", ".arm table.rows td"),
        "probe": (f"?at=probe&run={run_of(folder, 'probe')}", ".layers svg"),
        "cohort": ("?at=cohort", RUNS_SHOWN),
        "recorded": ("?at=sessions&run=long&turn=11", ".exchange pre:visible"),
        "clipped": (f"?at=shell/clipped&run={clipped}", "section[aria-label^=Gold] td"),
        "plain": ("?at=cohort&run=run-003&turn=3", ".timeline svg"),
        "compactors": ("?at=compactors", "section[aria-label=Compactions] tbody tr"),
        "cut": ("?at=compactors&run=ada&turn=6&budget=600&lines=all", "table.cut .needed"),
    }


NAMES = (
    "folders", "sweep", "rescue", "run", "arms", "remembered", "managed", "probe", "cohort", "recorded", "clipped",
    "plain", "compactors", "cut",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_view_opens_and_has_no_serious_fault_of_access(look, views, picture, name):
    page = look.at(*views[name])
    page.wait_for_load_state("networkidle")
    assert look.axe() == []
    expect(page.locator("h1")).to_have_count(1)
    picture(page, name)


@pytest.mark.parametrize("name", ["sweep", "run", "arms", "recorded", "cut"])
def test_in_the_dark_it_can_be_read_too(look_in_the_dark, views, picture, name):
    page = look_in_the_dark.at(*views[name])
    page.wait_for_load_state("networkidle")
    assert look_in_the_dark.axe() == []
    picture(page, f"{name}-dark")


@pytest.mark.parametrize("name", NAMES)
def test_a_narrow_page_does_not_run_out_to_the_right(look_through_a_slit, views, name):
    page = look_through_a_slit.at(*views[name])
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    label = page.evaluate(OVERLAPPING)
    assert label is None, f"{label} runs into its neighbor"


GAP_PX = 4  # a digit's half: nearer to each other, two numbers read as one
# The first number on an axis that begins before its left neighbor has ended, with that gap.
OVERLAPPING = """(() => {
  for (const picture of document.querySelectorAll('svg.plot')) {
    const labels = [...picture.querySelectorAll('text')].filter((one) => /^[0-9]+$/.test(one.textContent));
    const boxes = labels.map((one) => [one.textContent, one.getBoundingClientRect()]);
    for (const [words, box] of boxes)
      for (const [, other] of boxes)
        if (box.top === other.top && box.left > other.left && box.left < other.right + GAP) return words;
  }
  return null;
})()""".replace("GAP", str(GAP_PX))


def test_the_token_leaves_the_address(look):
    assert "token" not in look.page.url
    assert look.page.evaluate("document.cookie") == ""


def test_a_filter_stands_in_the_address_and_an_address_filters(look):
    page = look.at("?at=sweep", RUNS_SHOWN)
    page.locator("select[name='f.model']").select_option("reference/sloppy")
    count_says(page, "18 of 36")
    assert query_of(page)["f.model"] == "reference/sloppy"
    expect(page.locator(f"{RUNS_SHOWN} td:nth-child(3)")).to_have_text(["reference/sloppy"] * 18)
    page = look.at("?at=sweep&f.model=reference/sloppy&f.h=4&sort=-accuracy", RUNS_SHOWN)
    count_says(page, "6 of 36")
    assert page.locator("select[name='f.model']").input_value() == "reference/sloppy"
    page.get_by_role("button", name="All runs").click()
    count_says(page, "36 runs")
    assert "f.h" not in query_of(page)


def test_an_outcome_chooses_the_runs_that_have_it(look, folder):
    page = look.at("?at=remembered", RUNS_SHOWN)
    rows = records(folder, "remembered")
    having = sum("not_stored" in record.memory.outcomes for record in rows)
    assert 0 < having < len(rows)
    page.locator("select[name='outcome']").select_option("not_stored")
    count_says(page, f"{having} of {len(rows)}")
    assert float(query_of(page)["min.not_stored"]) > 0
    page.locator("select[name='outcome']").select_option("")
    count_says(page, f"{len(rows)} runs")


def test_words_filter_as_they_are_typed(look):
    page = look.at("?at=cohort", RUNS_SHOWN)
    page.locator("input[name=q]").fill("run-24")
    count_says(page, "10 of 250")
    assert query_of(page)["q"] == "run-24"


def test_a_heading_sorts_up_down_and_not_at_all(look, folder):
    most = max(row.peak_demand_tokens for row in read_rows(folder / "cohort", RunRow))
    page = look.at("?at=cohort", RUNS_SHOWN)
    heading = page.get_by_role("button", name="peak demand")
    heading.click()
    page.wait_for_selector("th[aria-sort=descending]")
    headings = page.locator("section[aria-label=Runs] thead th").all_inner_texts()
    column = next(place for place, words in enumerate(headings, 1) if words.startswith("peak demand ▼"))
    expect(page.locator(f"{RUNS_SHOWN}:first-child td:nth-child({column})")).to_have_text(str(most))
    heading.click()
    page.wait_for_selector("th[aria-sort=ascending]")
    assert query_of(page)["sort"] == "peak_demand_tokens"
    heading.click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_count(0)
    assert "sort" not in query_of(page)


def test_pages_follow_each_other(look):
    page = look.at("?at=cohort", RUNS_SHOWN)
    expect(page.locator(RUNS_SHOWN)).to_have_count(100)
    page.get_by_role("button", name="Later", exact=True).click()
    expect(page.locator("tbody a").first).to_have_text("run-100")
    page.get_by_role("button", name="Later", exact=True).click()
    expect(page.locator(RUNS_SHOWN)).to_have_count(50)
    page.go_back()
    expect(page.locator("tbody a").first).to_have_text("run-100")


def test_a_cell_of_the_heat_map_leads_to_its_runs(look):
    page = look.at("?at=sweep&x=h&y=model", ".heat svg rect")
    page.locator(".heat svg rect").first.click()
    count_says(page, "6 of 36")
    assert {"f.h", "f.model"} <= set(query_of(page))


def test_from_the_folder_to_a_run_and_back(look, folder):
    page = look.at("", "ul.folders")
    page.get_by_role("link", name="sweep", exact=True).click()
    page.wait_for_selector("table.rows:visible")
    page.locator("tbody a").first.click()
    page.wait_for_selector(".scrubber")
    page.get_by_role("link", name="sweep").click()
    page.wait_for_selector("table.rows:visible")
    assert "run" not in query_of(page)
    page.go_back()
    expect(page.locator(".scrubber")).to_have_count(1)
    assert query_of(page)["at"] == "sweep"


def test_keys_move_through_time(look, views):
    page = look.at(*views["run"])
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("text=Step 10.")
    assert query_of(page)["t"] == "10"
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("text=Step 9.")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("text=Step 8.")
    page.keyboard.press("Home")
    page.wait_for_selector("text=Step 1.")
    page.keyboard.press("n")
    page.wait_for_selector(".verdict:not(.correct)")
    page.keyboard.press("End")
    page.wait_for_selector("text=Step 24.")


def test_the_slider_and_a_step_of_the_graph_move_too(look, views):
    page = look.at(*views["run"])
    page.locator("input[type=range]").fill("5")
    page.wait_for_selector("text=Step 5.")
    page.wait_for_selector(".exchange pre:visible")  # the graph is drawn again when the step's words are there
    look.drawn()
    box = page.locator(".graph svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    page.wait_for_selector("text=Step 24.")
    assert query_of(page)["t"] == "24"


def test_a_step_shows_what_was_missing_the_exact_prompt_and_the_cone(look, views):
    page = look.at(*views["run"])
    page.keyboard.press("Home")
    page.wait_for_selector("text=Step 1.")
    page.keyboard.press("n")
    page.wait_for_selector(".verdict:not(.correct)")
    page.wait_for_selector(".chip.missing")
    page.wait_for_selector("text=Recovery cone")
    # The step's own words come with a request of their own, so each is waited for.
    expect(page.locator("text=exact: its hash is the recorded one")).to_have_count(1)
    expect(page.locator(".exchange pre:visible").first).to_contain_text("RETAINED")


def test_a_conversation_marks_a_value_wherever_it_is_stated(look, folder):
    page = look.at(f"?at=told&run={run_of(folder, 'told', seed=2)}&t=24", "ul.conversation")
    turn = page.locator("ul.conversation li", has_text="Indira Danso has a seat in Belfast")
    expect(turn.locator("mark")).to_have_text(["Belfast", "3723", "Belfast"])
    expect(turn).to_contain_text("stored")
    expect(page.locator(".turns-legend mark")).to_have_count(4)
    expect(page.locator(".scrubber")).to_contain_text("question 24 of 24")
    expect(page.locator(".verdict")).to_contain_text("Question 24.")
    expect(page).to_have_title(re.compile("^question 24 · "))


def test_arms_are_put_side_by_side_and_taken_away(look, views, folder):
    control = run_of(folder, "rescue", arm="control", seed=1)
    page = look.at(f"?at=rescue&run={control}", ".arm")
    chosen = page.locator("select[name=with]")
    oracle = chosen.locator("option", has_text="oracle").get_attribute("value")
    chosen.select_option(oracle)
    page.wait_for_selector(".arm:nth-child(2) .verdict")
    assert query_of(page)["with"] == oracle
    expect(page.locator(".arm:nth-child(2) .verdict")).to_have_class("verdict correct")
    page.locator(".close").click()
    expect(page.locator(".arm")).to_have_count(1)


def test_a_rescue_under_a_memory_shows_the_prompts_that_it_had(look, views):
    page = look.at(*views["remembered"])
    tags = page.locator(".exchange .tag")
    expect(tags.first).to_be_visible()
    expect(tags).to_have_text(["exact: its hash is the recorded one"] * tags.count())
    expect(page.locator(".inexact")).to_have_count(0)
    expect(page.locator(".arm h2")).to_contain_text("bm25")


def test_a_compaction_shows_what_it_dropped(look, views):
    page = look.at(*views["recorded"])
    lost = page.locator("section[aria-label='Compactions and clears']")
    expect(lost.locator("th")).to_have_text(["what", "turn", *(one.label for one in BREAK_MEASURES)])
    whole, *parts = (int(text.replace(",", "")) for text in lost.locator("tbody td").all_inner_texts()[3:])
    assert whole == sum(parts) > 0
    expect(page.locator("section[aria-label='Compactions and clears'] tbody tr")).to_have_count(1)
    page.wait_for_selector("section[aria-label='What they dropped'] tbody tr:nth-child(2)")
    page.locator("section[aria-label='Compactions and clears'] button").click()
    expect(page.get_by_role("region", name="what was carried over")).to_contain_text("line 5 of b is still wrong")


def test_a_cut_shows_what_each_compactor_kept_side_by_side_in_the_text(look, views):
    page = look.at(*views["compactors"])
    page.locator("select[name='f.compactor']").select_option("keep-last")
    count_says(page, "4 of 20 compactions")
    page.locator("section[aria-label=Compactions] tbody a").first.click()
    page.wait_for_selector("table.cut .needed")
    names = page.locator("ol.compactors button").all_inner_texts()
    assert names == ["oracle", "random", "keep-last", "head-and-tail", "clear-tool-results"]
    expect(page.locator("table.cut tr.needed")).to_have_count(20)
    expect(page.locator("table.cut tr.needed .line").first).to_contain_text("ada_needed_value_1 = compute(1, step=7)")
    marks = page.locator("table.cut tr.needed").first.locator("td [role=img]")
    expect(marks).to_have_count(len(names))
    kept, dropped = (page.locator(f"table.cut tr.needed td.{one}").first for one in ("kept", "dropped"))
    colors = [one.evaluate("one => getComputedStyle(one).color") for one in (kept, dropped)]
    assert colors[0] != colors[1]
    page.locator("select[name=lines]").focus()  # by the keyboard alone
    page.keyboard.press("End")
    page.wait_for_selector("table.cut .other")
    page.get_by_role("button", name="keep-last").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("table.cut.single")
    assert query_of(page)["compactor"] == "keep-last"
    gone = page.locator("table.cut.single .needed.goes .line").first
    assert gone.evaluate("one => getComputedStyle(one).textDecorationLine") == "line-through"


def test_lost_gold_lines_are_shown_with_their_text(look, views):
    page = look.at(*views["clipped"])
    lost = page.locator("section[aria-label^='Gold lines'] tbody tr").first
    expect(lost).to_contain_text("src/goal.py")
    expect(lost).to_contain_text("value")
    lost.get_by_role("button").first.click()
    expect(page.locator(".events")).to_contain_text("clipped")


def test_a_recorded_run_leads_to_its_raw_log(look, views):
    page = look.at("?at=sessions&run=hostile&turn=2", ".exchange pre:visible")
    page.get_by_text("Raw log at this turn").click()
    page.wait_for_selector(".raw .line.here")
    expect(page.locator(".raw .line.here")).to_contain_text("notes.txt")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("section[aria-label='Turn 3']")
    page.wait_for_selector(".raw .line.here")


def test_a_run_that_is_not_there_is_one_sentence(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(server.address)
    page.goto(f"http://127.0.0.1:{server.port}/?at=sweep&run=nobody")
    page.wait_for_selector(".fault")
    assert "no run named 'nobody' here" in page.locator(".fault").inner_text()
    context.close()


def test_without_the_token_a_browser_gets_nothing(browser, server):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    assert page.goto(f"http://127.0.0.1:{server.port}/?at=sweep").status == 403
    assert page.locator("table").count() == 0
    context.close()


def test_everything_can_be_reached_by_the_keyboard(look):
    page = look.at("?at=sweep", RUNS_SHOWN)
    for late in (".heat svg rect", ".possible svg"):  # with their own links and regions
        page.wait_for_selector(late)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("document.activeElement.tagName + ' ' + (document.activeElement.getAttribute('role') ?? '')")
        )
    assert {"SELECT ", "BUTTON ", "INPUT ", "A ", "DIV region"} <= seen


def test_a_sweep_is_shown_beside_what_was_possible(look):
    page = look.at("?at=sweep", ".possible svg")
    part = page.locator("section[aria-label='What was possible']")
    expect(part).to_contain_text("of what was possible with that many bits")
    expect(part.locator(".chart-legend").first).to_contain_text("no memory exceeds")
    expect(part.locator(".possible svg [data-mark=dot] *").first).to_be_attached()  # the cells
    part.get_by_text("The same as a table").click()
    expect(part.locator("tbody tr").first).to_be_visible()


def test_every_measure_leads_to_its_definition_and_back(look):
    page = look.at("?at=cohort", RUNS_SHOWN)
    links = page.locator("section[aria-label=Runs] thead a.term, dl.figures a.term")
    expect(links.nth(7)).to_be_attached()
    for address in [link.get_attribute("href") for link in links.all()]:
        assert GLOSSARY[parse_qs(urlsplit(address).query)["terms"][0]]
    page.get_by_role("link", name="What peak demand means").first.click()
    expect(page.locator("#measure-peak_demand_tokens")).to_be_in_viewport()
    assert look.axe() == []
    page.get_by_role("link", name="cohort").click()
    page.wait_for_selector(RUNS_SHOWN)
