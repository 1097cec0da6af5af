"""Commands that pages show without trying them, because they need a server or somebody's logs: each is one that exists,
and those for an own endpoint are run against a model server on loopback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eirkit.cli import ROOT, LazyGroup, run
from tests.lacuna.servers import ModelServer, answers_as
from tests.test_docs import FENCE, PAGES, blocks

SPAN = re.compile(r"`(eirkit [^`]+)`")
ENDPOINT = "https://your-server/v1"
MEASURE = next(page for page in PAGES if page.name == "measure-a-model.md")
PRICES = '[prices]\n"openai/any" = { input = 1.0, output = 2.0, as_of = 2026-11-01 }\n'


def in_text_blocks(page: Path) -> Iterator[str]:
    for block in blocks(page.read_text("utf-8")):
        if block.language == "text":
            lines = block.body.replace("\\\n", " ").split("\n")
            yield from (line.partition(" # ")[0].strip() for line in lines if line.startswith("eirkit "))


def shown(page: Path) -> list[str]:
    """Return the commands in text blocks and within sentences."""
    return [*in_text_blocks(page), *SPAN.findall(" ".join(FENCE.sub("", page.read_text("utf-8")).split()))]


def unknown_in(line: str) -> str:
    """Return the first word of a command line that is no command or option; empty if all are."""
    group: click.Command | None = ROOT
    words = [word for word in line.removeprefix("eirkit ").replace("'", "").split() if word != "…"]
    while isinstance(group, LazyGroup) and words and words[0][0].isalpha():
        group = group.get_command(click.Context(group), word := words.pop(0))
        if group is None:
            return word
    options = {name for param in group.params for name in (*param.opts, *param.secondary_opts)} if group else set()
    options |= {"-h", "--help", "--help-all", "--json", "--version", "--format"}
    named = [word.partition("=")[0].rstrip(".,;:)") for word in words if word.startswith("-") and len(word) > 1]
    return next((word for word in named if word not in options), "")


@pytest.mark.check
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page):
    assert {line: word for line in shown(page) if (word := unknown_in(line))} == {}


@pytest.mark.check
def test_a_command_that_does_not_exist_is_found():
    assert unknown_in("eirkit lacuna nothing --h 4") == "nothing"
    assert unknown_in("eirkit lacuna run stepwise-sum --panels strict") == "--panels"


def test_the_commands_for_an_own_endpoint_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    Path("prices.toml").write_text(PRICES, "utf-8")
    lines = [line for line in in_text_blocks(MEASURE) if ENDPOINT in line or "--resume" in line]
    assert len(lines) == 4
    with ModelServer(answers_as("calculator")) as server:
        for line in lines:
            code = run(shlex.split(line.replace(ENDPOINT, server.url).replace("openai/NAME", "openai/any"))[1:])
            assert code == 0, (line, *capsys.readouterr())
