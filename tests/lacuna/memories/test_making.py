"""From model strings to models, those of other people's code included."""

from __future__ import annotations

import asyncio

import pytest

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.models.factory import make_model, preflight, split_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request

ECHO = """
from eirkit.lacuna.models.model import Reply

class Echo:
    def __init__(self, name, options):
        self.name = name

    async def reply(self, request):
        return Reply(f"{self.name}: {request.messages[-1].content}")

    async def close(self):
        pass

    def settings(self):
        return {"model": self.name}

def not_a_model(name, options):
    return name

A_NUMBER = 7
"""


class Quiet:
    """A model that says nothing; makes itself."""

    def __init__(self, name, options):
        self.name = name

    async def reply(self, request):
        return Reply("")

    async def close(self):
        pass

    def settings(self):
        return {}


@pytest.mark.parametrize(
    ("string", "parts"),
    [
        ("openai/gpt-4.1", ("openai", "gpt-4.1")),
        ("openai/org/model:free", ("openai", "org/model:free")),
        ("inspect/openai/gpt", ("inspect", "openai/gpt")),
        ("replay//abs/run", ("replay", "/abs/run")),
        ("replay/out/run.py:1", ("replay", "out/run.py:1")),
        ("reference/calculator", ("reference", "calculator")),
        ("my.module:Factory/big", ("my.module:Factory", "big")),
        ("my.module:Factory", ("my.module:Factory", "")),
        ("folder/mine.py:Factory/big/one", ("folder/mine.py:Factory", "big/one")),
        ("mine.py:Factory", ("mine.py:Factory", "")),
        ("nonsense", ("nonsense", "")),
        ("", ("", "")),
    ],
)
def test_strings_split_at_the_first_slash_behind_the_provider(string, parts):
    assert split_model(string) == parts


def test_a_factory_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(ECHO)
    model = make_model(f"{path}:Echo/big", ModelOptions())
    preflight(model)
    assert asyncio.run(model.reply(Request((Message("user", "hi"),)))).text == "big: hi"
    with pytest.raises(UsageError, match="add reply, close, settings"):
        make_model(f"{path}:not_a_model/x", ModelOptions())
    with pytest.raises(UsageError, match="not a model factory"):
        make_model(f"{path}:A_NUMBER/x", ModelOptions())


def test_a_factory_in_a_module():
    assert make_model(f"{__name__}:Quiet/x", ModelOptions()).name == "x"


@pytest.mark.parametrize("string", ["nobody/x", "Openai/x", "", "/x", "reference/oracle-of-delphi"])
def test_names_that_nobody_has(string):
    with pytest.raises(UnknownNameError):
        make_model(string, ModelOptions())
