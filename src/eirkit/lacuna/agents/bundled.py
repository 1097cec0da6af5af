"""`bundled/lacuna-tiny`, or `bundled:PATH`: a small transformer in this process, trained on the tasks' operations.

It answers from what is visible: the network writes the digits, this module the text around them and the turns of a
managed run (NEXT, DONE). It neither writes to a memory nor fetches anything. Concurrent requests are answered in one
batch, which does not change any reply; nor does a GPU, which `device=gpu` uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.agents.prompt import COMPACT
from eirkit.lacuna.agents.protocol import comply
from eirkit.lacuna.agents.situation import Situation, everything_known, situation_of
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage, models
from eirkit.lacuna.models.network.decoding import ON_GPU, TOGETHER, decode_cached
from eirkit.lacuna.models.network.layout import OPERATORS, Weights, load_weights
from eirkit.lacuna.models.network.question import StepQuestion, WrittenReply, check
from eirkit.lacuna.tasks.task import show_values
from eirkit.lacuna.tasks.view import ProbeView
from eirkit.registry import locate

NAME, SUFFIX = "lacuna-tiny", ".safetensors"
WEIGHTS = Path(__file__).parents[1] / "models" / "network" / f"{NAME}{SUFFIX}"

_Waiting = tuple[Situation, Request, StepQuestion, "asyncio.Future[Reply]"]


class BundledModel:
    """A network that answers all waiting requests in one batch."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name, self.options = name, options
        self._on_gpu = options.extra.get("device", "cpu") == "gpu"
        self._weights: Weights | None = None
        self._waiting: list[_Waiting] = []

    @property
    def at_once(self) -> int:
        return TOGETHER * ON_GPU if self._on_gpu else TOGETHER

    async def reply(self, request: Request) -> Reply:
        if request.visible is None:
            return Reply("")  # it only understands tasks
        if isinstance(request.visible, ProbeView):
            return comply(Reply("DONE"), request)
        seen = situation_of(request)
        if (turn := _turn(seen)) is not None:
            return comply(Reply(turn), request)
        question = question_of(seen)
        check(question)
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((seen, request, question, reply))
        if len(self._waiting) == 1:
            loop.call_soon(self._gather, loop, 1)
        return await reply

    async def close(self) -> None:
        self._weights = None

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "bundled", "model": self.name, "weights_sha256": self.weights().sha256}

    def preflight(self) -> None:
        self.weights()

    def weights(self) -> Weights:
        """Return the network, which is loaded on first use."""
        if self._weights is None:
            loaded = load_weights(weights_of(self.name))
            self._weights = loaded.on_gpu() if self._on_gpu else loaded
        return self._weights

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Answer all waiting requests once an iteration of the event loop has added none."""
        if len(self._waiting) > before:
            loop.call_soon(self._gather, loop, len(self._waiting))
            return
        waiting = [one for one in self._waiting if not one[3].done()]  # skip cancelled requests
        self._waiting = []
        try:
            written = decode_cached(self.weights(), [question for _, _, question, _ in waiting])
        except Exception as error:  # noqa: BLE001 - passed on to every waiting request
            for *_, reply in waiting:
                reply.set_exception(error)
            return
        for (seen, request, question, reply), one in zip(waiting, written, strict=True):
            reply.set_result(comply(Reply(spell(seen, one), usage=_usage(question)), request))


def question_of(seen: Situation) -> StepQuestion:
    """Return a step as the network reads it, with every record that is visible, whatever its origin."""
    task, spec = seen.visible.task, seen.spec
    operator = task.workload.operator
    if operator not in OPERATORS:
        known = ", ".join(OPERATORS)
        raise UsageError(f"the bundled network was trained on {known}, not {spec.workload}; use another model")
    shown = everything_known(seen).items()
    records = tuple((t, values) for t, values in shown if len(values) == task.width and max(values) < spec.q)
    return StepQuestion(OPERATORS.index(operator), spec.digits, task.width, records, seen.input, seen.refs)


def spell(seen: Situation, written: WrittenReply) -> str:
    """Return the text of a reply: the value of each reference, then the answer."""
    digits = seen.spec.digits
    looked_up = " | ".join(show_values(digits, operand) for operand in written.operands)
    answer = f"ANSWER {seen.t} {show_values(digits, written.answer)}"
    return f"{looked_up}\n{answer}" if looked_up else answer


def _turn(seen: Situation) -> str | None:
    """Return the reply to a turn of a managed run that needs no answer; None if it needs one."""
    if seen.visible.summary_characters is not None:
        return ""  # it writes no summary
    if "NEXT" not in seen.commands or (seen.t and not seen.visible.answered):
        return None
    return "DONE" if seen.t == seen.spec.n else "NEXT"


def _usage(question: StepQuestion) -> Usage:
    """Return the tokens read and written, at no cost."""
    read = len(question.records) * question.width + 1 + len(question.input or ()) + len(question.refs)
    return Usage(read, (len(question.refs) + 1) * question.width * question.digits)


def weights_of(name: str) -> Path:
    """Return the file that holds a network."""
    return WEIGHTS if name == NAME else locate(name)


@models.add("bundled")
def make_bundled(name: str, options: ModelOptions) -> BundledModel:
    """Return the model; its weights are loaded on the first request."""
    if name != NAME and not name.endswith(SUFFIX):
        raise UnknownNameError("bundled model", name, (NAME, f"<file>{SUFFIX}"))
    refuse_settings("bundled", options, ("device",))
    if (device := options.extra.get("device", "cpu")) not in ("cpu", "gpu"):
        raise UsageError(f"device={device} is not a device; write device=cpu or device=gpu")
    return BundledModel(name, options)


make_bundled.dialect = COMPACT  # type: ignore[attr-defined]  # the format it was trained on; it reads both
