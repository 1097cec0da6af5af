"""One vocabulary: every measure is declared once, and no surface has words or colors of its own for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import glossary as generator

from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, KIND_MEASURES, OUTCOME_MEASURES
from eirkit.measures import Glossary, Measure, MeasureGroup
from eirkit.records.events import Kind
from eirkit.records.runs import ANSWER_CAUSES, CAUSES, OUTCOMES, SYMPTOMS
from eirkit.report.colors import COLORS, stylesheet
from eirkit.report.glossary import GLOSSARY

ROOT = Path(__file__).parents[1]
SOURCE, WEB = ROOT / "src", ROOT / "web" / "src"
SURFACES = ("eirkit/cli", "eirkit/report", "eirkit_bridges")


def group(*measures: Measure) -> MeasureGroup:
    return MeasureGroup("some", "Some", measures)


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (Measure("one", "two", "something else"), "two measures have the identifier 'one'"),
        (Measure("two", "One", "something else"), "measures 'one' and 'two' share the label"),
    ],
)
def test_two_measures_share_neither_identifier_nor_label(second, complaint):
    with pytest.raises(ValueError, match=complaint):
        Glossary([group(Measure("one", "one", "something")), MeasureGroup("more", "More", (second,))])


@pytest.mark.parametrize(
    "given",
    [
        {"id": "Not an id"},
        {"label": ""},
        {"meaning": "a sentence."},
        {"meaning": "one; two"},
        {"unit": "share"},
        {"of": "steps"},
    ],
)
def test_a_measure_is_declared_whole(given):
    with pytest.raises(ValueError, match="measure "):
        Measure(**{"id": "one", "label": "one", "meaning": "something", **given})


def test_causes_kinds_and_fates_are_declared_all_of_them():
    assert tuple(one.id for one in CAUSE_MEASURES) == CAUSES
    assert tuple(one.id for one in OUTCOME_MEASURES) == OUTCOMES
    assert {one.id for one in KIND_MEASURES} == set(Kind.__args__)
    assert tuple(one.id for one in SYMPTOM_MEASURES) == SYMPTOMS
    assert tuple(one.id for one in ANSWER_CAUSE_MEASURES) == ANSWER_CAUSES
    assert {one.of for one in (*SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES)} == {"wrong answers"}
    assert {one.of for one in CAUSE_MEASURES} == {"scored steps"}
    assert {one.of for one in OUTCOME_MEASURES} == {"records needed from memory"}


def test_every_color_has_one_measure_and_every_token_a_color():
    # A kind has the color of its cause, and what is said of an answer that of the outcome which means the same.
    alike = {*KIND_MEASURES, *SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES}
    tokens = [one.color for one in GLOSSARY if one.color and one not in alike]
    own = {one.color for one in alike} - set(tokens)
    assert sorted([*tokens, *own]) == sorted(COLORS)
    assert "" not in {one.color for one in alike}
    assert len({shade.light for shade in COLORS.values()}) == len({shade.dark for shade in COLORS.values()})
    assert len({shade.light for shade in COLORS.values()}) == len(COLORS)
    assert all(f"--measure-{token}: {shade.dark};" in stylesheet() for token, shade in COLORS.items())
    assert {one.color for one in (*CAUSE_MEASURES, *OUTCOME_MEASURES)} <= set(COLORS)


@pytest.mark.check
def test_what_the_front_end_reads_is_that_of_the_declarations(capsys):
    assert generator.main([]) == 0, capsys.readouterr().out


def test_files_that_are_out_of_date_are_noticed_and_written(tmp_path, capsys):
    assert generator.main([], tmp_path) == 1
    assert capsys.readouterr().out.count("is out of date; run `python tools/glossary.py --write`") == 2
    assert generator.main(["--write"], tmp_path) == 0
    assert generator.main([], tmp_path) == 0
    (tmp_path / "web" / "src" / "measures.css").write_text("old", "utf-8")
    assert generator.main([], tmp_path) == 1


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts in a module, those of f-strings included, without docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def literals_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts in a TypeScript file, roughly: whatever stands between quotes on a line."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        code = line.split("//")[0] if line.lstrip().startswith("//") else line
        for found in re.findall(r'"([^"]*)"|`([^`]*)`|>([^<>{}]+)<', code):
            yield from ((number, text) for text in found if text)


def own_words(text: str) -> list[str]:
    """Return the labels that a text writes anew: any label as a whole, those of causes and fates also in sentences."""
    identifiers = {one.id for one in GLOSSARY}
    whole = [one.label for one in GLOSSARY if one.label not in identifiers and " " in one.label and text == one.label]
    inside = [one.label for one in (*CAUSE_MEASURES, *OUTCOME_MEASURES) if one.label in text.casefold()]
    return list(dict.fromkeys([*whole, *inside]))


@pytest.mark.check
@pytest.mark.parametrize("surface", SURFACES)
def test_no_surface_writes_a_label_of_its_own(surface):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in sorted((SOURCE / surface).rglob("*.py"))
        for line, text in strings_of(path)
        if (words := own_words(text))
    ]
    assert found == []


@pytest.mark.check
def test_the_front_end_writes_no_label_of_its_own():
    paths = [path for path in sorted(WEB.rglob("*")) if path.suffix in (".ts", ".tsx")]
    assert len(paths) > 20
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in paths
        for line, text in literals_of(path)
        if (words := own_words(text))
    ]
    assert found == []


@pytest.mark.check
def test_the_front_end_writes_no_color_of_a_measure():
    shades = [value for shade in COLORS.values() for value in (shade.light, shade.dark)]
    paths = [path for path in WEB.rglob("*") if path.suffix in (".ts", ".tsx", ".css") and path.name != "measures.css"]
    found = [(path.name, shade) for path in paths for shade in shades if shade in path.read_text("utf-8")]
    assert found == []


def test_words_of_ones_own_are_found():
    assert own_words("missing input") == ["missing input"]
    assert own_words("12% carried-over errors") == ["carried-over error"]
    assert own_words("peak demand") == ["peak demand"]
    assert own_words("accuracy") == []
