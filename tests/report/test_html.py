"""Pages as HTML: well-formed, reachable, self-contained, inert whatever they say, and the same for the same input."""

import csv
import io
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES
from eirkit.report.colors import colored
from eirkit.report.document import Axis, Chart, Figure, Headline, Listing, Page, Section, Series
from eirkit.report.glossary import GLOSSARY, glossary_page
from eirkit.report.html import policy, render
from eirkit.report.table import Column, Table, clean, in_viewer
from tests.report.reading_pages import cells, data_of, faults, read, saved

HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "]]><!-- --> <!doctype html> &lt;b&gt; &amp;",
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u2066x\u2069 \x00\ud800",
    "javascript:alert(1)",
    "a\u2028document.title='taken'\u2029b",
    "${document.title='taken'}",
    "]]><svg onload=alert(1)>",
    '=HYPERLINK("http://example.org")',
    "`code` and `<b>` `",
)


def page_with(text: str) -> Page:
    """Return a page that says one text wherever a page can say something."""
    series = (
        Series(text, "bars", (text, "b"), (1.0, 2.0)),
        Series(f"{text}2", "points", (text, "b"), (1.5, None), (1.0, None), (2.0, None), dashed=True),
    )
    chart = Chart("chart", text, text, Axis(text, "category"), Axis(text), series, text)
    table = Table("table", text, (Column("a", text, meaning=text), Column("b", "b")), ({"a": text, "b": 1.5},), text)
    items = (table, chart, Figure("figure", text, (chart, chart), text), Listing("listing", text, text))
    return Page(text, Headline(text, text, (text,)), (Section(text, (text,), items, id="one"),), text, {"x": text})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    made = render(page_with(text))
    assert faults(made) == []
    root, benign = read(made)[0], read(render(page_with("quiet")))[0]
    tags = [element.tag for element in root.all() if element.tag != "code"]
    assert tags == [element.tag for element in benign.all() if element.tag != "code"]
    assert root.all("h1")[0].text == clean(text)
    (script,) = [element for element in root.all("script") if "type" not in element.attributes]
    assert "taken" not in script.text


@given(st.text(max_size=40))
def test_a_cell_says_what_it_was_given(text):
    table = Table("t", "t", (Column("a", "a"), Column("b", "b")), ({"a": text, "b": 1},))
    page = Page("p", Headline("1", "c", ()), (Section("s", (), (table,)),))
    ((shown, one),) = cells(read(render(page))[0].all("table")[0])
    spoken = re.sub(r"`([^`]+)`", r"\1", clean(text))
    assert (shown, one) == (spoken, "1")


def test_steering_characters_are_shown_as_such():
    assert clean("a\u202eb\x1b[0m\u2066\x00\tc\n") == "a\ufffdb\ufffd[0m\ufffd\ufffd\tc\n"


def test_nothing_runs_but_the_script_of_the_page():
    root = read(render(page_with("x")))[0]
    scripts = [element for element in root.all("script") if "type" not in element.attributes]
    (meta,) = root.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert meta.attributes["content"] == policy()
    digest = b64encode(sha256(scripts[0].text.encode()).digest()).decode()
    assert len(scripts) == 1
    assert f"script-src 'sha256-{digest}'" in policy()
    assert "default-src 'none'" in policy()
    assert not re.search(r"connect-src|https?:|\*|unsafe-eval", policy())


def test_a_page_names_no_address_that_a_browser_would_ask():
    made = render(page_with("x"))
    assert not re.search(r"""(src|href)=["']?https?:""", made)
    for style in read(made)[0].all("style"):
        assert not re.search(r"@import|url\(", style.text)


def test_equal_pages_give_equal_bytes():
    assert render(page_with("a")) == render(page_with("a"))


CHART = Chart(
    "c",
    "A chart",
    "What it says.",
    Axis("x", low=0.0),
    Axis("share", percent=True),
    (
        Series("one", "line", (1.0, 2.0, 3.0), (0.1, None, 1 / 3), (0.0, None, 0.2), (0.2, None, 0.4)),
        Series("two, with a comma", "points", (1.0, 3.0), (0.5, 0.75)),
        Series("limit", "rule", (2.0,)),
    ),
)


def test_the_table_behind_a_picture_holds_its_data():
    page = Page("p", Headline("1", "c", ()), (Section("s", (), (CHART,)),))
    (figure,) = read(render(page))[0].all("figure")
    rows = [list(point) for point in _points()]
    shown = [[name, f"{x:,.3f}", *(_percent(v) for v in (y, low, high))] for name, x, y, low, high in rows]
    assert cells(figure.all("table")[0]) == shown
    (link,) = figure.all("a")
    listed = list(csv.reader(io.StringIO(saved(link))))
    assert listed[0] == ["series", "x", "share", "low", "high", "value"]
    assert [[line[0], *map(_number, line[1:5])] for line in listed[1:]] == rows
    assert data_of(figure)["series"][0]["y"] == [0.1, None, 1 / 3]


def _points():
    for one in CHART.series:
        for place, x in enumerate(one.x):
            yield one.name, x, *(values[place] if values else None for values in (one.y, one.low, one.high))


def _percent(value):
    return "–" if value is None else f"{value:.1%}"


def _number(text):
    return float(text) if text else None


def test_ids_that_occur_twice_are_told_apart():
    twice = Page("p", Headline("1", "c", ()), (Section("s", (), (CHART, CHART)), Section("s", (), (CHART,))))
    assert faults(render(twice)) == []


def test_lines_on_top_of_each_other_are_drawn_apart_and_named():
    xs = (0.0, 1.0, 2.0)
    series = (
        Series("a", "line", xs, (0.0, 0.5, 1.0)),
        Series("b", "line", xs, (0.0, 0.5, 1.0)),
        Series("c", "line", xs, (0.0, 0.5, 0.9)),
        Series("d", "line", xs, (1.0, 0.5, 0.0)),  # crosses them in one point
        Series("e", "points", xs, (0.0, 0.5, 1.0)),
    )
    chart = Chart("lines", "Lines", "Lines.", Axis("x"), Axis("y"), series)
    assert chart.overlaps == [2, 1, 0, 0, 0]
    assert chart.coincident == "On top of each other: a and b; a and c in part; b and c in part."
    assert chart.coincident in render(Page("t", Headline("", "", ()), (Section("s", (), (chart,)),)))
    ten = tuple(float(x) for x in range(11))
    begins_alike = (Series("a", "step", ten, (0.0, *ten[:10])), Series("b", "step", ten, (0.0, 0.0, *(9.0,) * 9)))
    assert replace(chart, series=begins_alike).overlaps == [0, 0]  # one piece of ten hides nothing


def test_a_name_has_one_color_in_all_charts_of_a_page():
    def chart(*names: str) -> Chart:
        return Chart(
            names[0], "t", "a", Axis("x"), Axis("y"), tuple(Series(name, "line", (1.0,), (1.0,)) for name in names)
        )

    many = [f"n{number}" for number in range(12)]
    charts = (chart("m1", "m2"), chart("limit", "m2", "m1"), chart(*many), chart(*many[4:]))
    page = colored(Page("t", Headline("", "", ()), (Section("s", (), charts),)))
    first, second, third, _ = ({one.name: one.color for one in found.series} for found in page.charts())
    assert (second["m1"], second["m2"]) == (first["m1"], first["m2"])
    assert len(set(second.values())) == 3
    assert len({third[name] for name in many[:8]}) == 8  # as many as there are colors
    assert colored(page) == page


def test_only_a_page_in_the_viewer_links_to_it():
    rows = ({"run": "a", "view": in_viewer(run="a b&c", t=3)}, {"run": "b", "view": "view:javascript:x"})
    table = Table("t", "t", (Column("run", "run", link="view"),), rows)
    page = Page("t", Headline("", "", ()), (Section("s", (), (table,)),))
    assert "a+b" not in render(page)
    shown = render(page, viewer="./?at=x")
    assert 'href="./?at=x&amp;run=a+b%26c&amp;t=3"' in shown
    assert "javascript:x" not in shown


def test_every_measure_on_a_page_leads_to_its_definition_on_it():
    accuracy, causes = RUN_MEASURES["accuracy"], list(CAUSE_MEASURES)
    table = Table("t", "t", (Column("run", "run"), Column.of(accuracy)), ({"run": "a", "accuracy": 0.5},))
    series = tuple(Series.of(one, "bars", ("a",), (0.1,)) for one in causes)
    chart = Chart("c", "c", "c", Axis("x", "category"), Axis("y"), series)
    text = render(Page("t", Headline("", "", ()), (Section("s", (), (table, chart)),)))
    linked = set(re.findall(r'href="#measure-(\w+)"', text))
    assert linked == {accuracy.id, *(one.id for one in causes)}
    for id in linked:
        assert text.count(f'id="measure-{id}"') == 1
        assert GLOSSARY[id].meaning.replace("'", "&#x27;") in text


def test_the_glossary_of_the_site_has_an_anchor_for_every_measure():
    page = glossary_page()
    assert sorted(re.findall(r'<a id="measure-(\w+)"></a>', page)) == sorted(one.id for one in GLOSSARY)
