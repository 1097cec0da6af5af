"""Checks the published figures of the package against the source of the paper.

    python tools/published.py PAPER.tex

Every line of `figures.csv` must stand where it says, every number of the tables' result columns must be in the file,
and every decimal number of the text must be in the file or, with a reason, in `paper-numbers-left-out.csv`.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from eirkit_paper.published import PublishedFigure, published_figures

LEFT_OUT = Path(__file__).parent / "paper-numbers-left-out.csv"
WORDLESS = {"tab:lacuna-workloads", "tab:eir-anchors"}  # without a number in a result column
NAMES = {  # how many columns name a row, and so are no results; one in all other tables
    "tab:rq5-cross": 2, "tab:rq5-agent-architectures": 2, "tab:rq4-extended-architectures": 2,
    "tab:rq3-stepwise-max-behaviors": 2, "tab:rq2-agg-capacity": 2, "tab:rq2": 2, "tab:full-lookup-pressure": 2,
}  # fmt: skip


def main(path: Path) -> int:
    problems = check(path.read_text("utf-8"))
    for problem in problems:
        print(problem)
    print(f"{len(published_figures())} figures, {len(problems)} problems")
    return bool(problems)


def check(paper: str) -> list[str]:
    """Return what is wrong with the file of figures."""
    figures = published_figures()
    return [*_tables(paper, figures), *_places(paper, figures), *_prose(paper, figures)]


def plain(latex: str) -> str:
    """Return LaTeX as words and numbers."""
    text = re.sub(r"\\(?:top|mid|bottom)rule|\\cellcolor\{[^}]*\}|\\(?:up|down)arrow", "", latex)
    text = re.sub(r"\\(?:textbf|texttt|emph|shortstack|text|mathrm)\{([^{}]*)\}", r"\1", text)
    text = text.replace("{,}", ",").replace(r"{\times}10^{", "e").replace(r"\times10^{", "e").replace(r"\%", "%")
    text = text.replace(r"\times", "").replace(r"\approx", " ").replace(r"\pm", "±").replace("{=}", "=")
    return " ".join(re.sub(r"[${}]", "", text).replace("--", "–").split())


def numbers(text: str) -> list[str]:
    """Return the numbers of a cell as they are printed, without signs and thousands separators."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?(?:e\d+)?|\.\d+", re.sub(r"\\[a-z]+_\d|log_2|f_.*?=\d", "", text))
    return [number.replace(",", "") for number in found]


def tables(paper: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the label of each table with the cells of its rows of data."""
    for match in re.finditer(r"\\begin\{tabular\}\{(?:[^{}]|\{[^{}]*\})*\}(.*?)\\end\{tabular\}", paper, re.DOTALL):
        label = re.findall(r"\\label\{(tab:[^}]*)\}", paper[: match.start()])[-1]
        if label in WORDLESS:
            continue
        body = re.sub(r"\\shortstack\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "head", match[1])
        rows = [[plain(cell) for cell in row.split("&")] for row in body.split(r"\\") if "&" in row]
        yield label, rows


def _tables(paper: str, figures: tuple[PublishedFigure, ...]) -> Iterator[str]:
    """Compare each table with its lines, number by number and in order."""
    for label, (_, *rows) in tables(paper):
        named = NAMES.get(label, 1)
        printed = [number for row in rows for cell in row[named:] for number in numbers(cell)]
        kept = [number for figure in figures if figure.place == label for number in _numbers_of(figure)]
        yield from (f"{label}: {number} is printed and not in the file" for number in _minus(printed, kept))
        yield from (f"{label}: {number} is in the file and not printed" for number in _minus(kept, printed))
        if sorted(printed) == sorted(kept) and printed != kept:
            yield f"{label}: its numbers are in the file in another order"


def _numbers_of(figure: PublishedFigure) -> Iterator[str]:
    if figure.column == "Scored":
        yield from (figure.printed, str(figure.n))
        return
    yield from numbers(figure.printed)
    line = _lines()[figure.id]
    for name in ("sd", "low", "high", "p"):
        yield from numbers(line[name])


def _lines() -> dict[str, dict[str, str]]:
    path = Path(__file__).parents[1] / "src/eirkit_paper/figures.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {f"{line['place']}|{line['row']}|{line['column']}": line for line in csv.DictReader(file)}


def _minus(some: list[str], others: list[str]) -> list[str]:
    left = list(others)
    return [one for one in some if one not in left or left.remove(one)]


def sections(paper: str) -> dict[str, str]:
    """Return the text under the label of each section, and the caption before that of each figure."""
    found = {}
    for match in re.finditer(r"\\label\{((?:sec|fig):[^}]*)\}", paper):
        if match[1].startswith("fig:"):
            found[match[1]] = plain(paper[paper.rindex(r"\caption{", 0, match.start()) : match.start()])
        else:
            end = re.compile(r"\\(?:sub)*section\*?\{|%% file: ").search(paper, match.end())
            found[match[1]] = plain(paper[match.start() : end.start() if end else len(paper)])
    return found


def _places(paper: str, figures: tuple[PublishedFigure, ...]) -> Iterator[str]:
    """Look for each figure of the text in its section."""
    texts, lines = sections(paper), _lines()
    for figure in figures:
        if figure.place.startswith("tab:"):
            continue
        line = lines[figure.id]
        given = [figure.printed, *(line[name] for name in ("low", "high", "p"))]
        for number in filter(None, given):
            token = number.lstrip("+-").replace("--", "–")
            if not re.search(rf"(?<![\w.]){re.escape(token)}(?!\d)", texts.get(figure.place, "")):
                yield f"{figure.id}: {number} does not stand in {figure.place}"


def decimals(paper: str) -> Iterator[tuple[str, str]]:
    """Yield every number with a decimal point in the prose and captions, with the words around it."""
    prose = re.sub(r"\\begin\{(tabular|tikzpicture)\}.*?\\end\{\1\}", " ", paper, flags=re.DOTALL)
    prose = re.sub(r"\\(?:includegraphics|vspace|setlength|tikz|resizebox|node|definecolor)[^\n]*", " ", prose)
    prose = re.sub(r"\\tikzset\{.*?\n\}", " ", prose, flags=re.DOTALL)
    prose = re.sub(r"p\{[\d.]+\\linewidth\}|\[[htbpH]\]|\{?[\d.]+\\(?:line|text)width\}?|[\d.]+pt", " ", prose)
    text = plain(prose[prose.index(r"\begin{abstract}") :])
    for match in re.finditer(r"(?<![\w.])\d*\.\d+", text):
        yield match[0], text[max(0, match.start() - 50) : match.end() + 20]


def _prose(paper: str, figures: tuple[PublishedFigure, ...]) -> Iterator[str]:
    """Look for every decimal number of the text in the file, or among those that are left out."""
    lines = _lines().values()
    kept = {
        number
        for line in lines
        for name in ("value", "printed", "sd", "low", "high", "p")
        for number in numbers(line[name])
    }
    with LEFT_OUT.open(encoding="utf-8", newline="") as file:
        left_out = {line["number"]: line["reason"] for line in csv.DictReader(file)}
    for number, around in decimals(paper):
        share = f"{float(number) / 100:.4f}".rstrip("0").ljust(
            5, "0"
        )  # the text prints percentages of a table's shares
        known = {number, f"0{number}" if number.startswith(".") else number, share}
        mantissas = {value.partition("e")[0] for value in kept}
        if not known & (kept | mantissas) and not left_out.get(number):
            yield f"{number} is printed in the text and neither in the file nor left out with a reason: …{around}…"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
