"""`local/smollm2`, `local/gemma-270m`, or `local/<file>.gguf`: a small model in this process, offline.

A base model answers under the protocol `completion`. Where an agent manages its memory, it stores and looks up by rule,
as `reference/recoverer` does, and only the answers are the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from eirkit.errors import UnknownNameError
from eirkit.lacuna.agents.completion import EXAMPLES, render_completion
from eirkit.lacuna.agents.reference import Recoverer
from eirkit.lacuna.agents.situation import situation_of
from eirkit.lacuna.models.factory import protocol_of, refuse_settings
from eirkit.lacuna.models.local import EXTRA, FEATURE, GEMMA, SMOLLM2, LocalModel
from eirkit.lacuna.models.model import Model, ModelOptions, NumberForm, Reply, Request, models
from eirkit.lacuna.tasks.view import Visible
from eirkit.packages import require_vendor
from eirkit.records.settings import COMPLETION, SCHEMA, TEXT


class CompletionAgent:
    """A base model that writes the answers; what an agent does beside them is done by rule."""

    def __init__(self, model: LocalModel, options: ModelOptions) -> None:
        self.model, self.options = model, options
        self._rule = Recoverer(options)

    async def reply(self, request: Request) -> Reply:
        visible = request.visible
        if isinstance(request.form, NumberForm):
            return await self.model.reply(request)
        if not isinstance(visible, Visible):
            return await self._rule.reply(request)
        seen = situation_of(request)
        text = self._rule.act(seen, request)
        if not text.startswith(("ANSWER ", "CALCULATE")):  # a calculator would answer in the model's place
            return Reply(text)
        form = NumberForm(seen.t, visible.task.width, seen.spec.q)
        written = await self.model.reply(Request(render_completion(visible), form=form, visible=visible))
        return replace(written, text=f"ANSWER {seen.t} {written.text.strip()}")

    async def close(self) -> None:
        await self.model.close()

    def settings(self) -> Mapping[str, Any]:
        return {**self.model.settings(), "protocol": COMPLETION, "examples": EXAMPLES}

    def preflight(self) -> None:
        self.model.preflight()


@models.add("local")
def make_local(name: str, options: ModelOptions) -> Model:
    """Return the model; its weights are loaded on the first request."""
    if name not in (SMOLLM2, GEMMA) and not name.endswith(".gguf"):
        raise UnknownNameError("local model", name, (SMOLLM2, GEMMA, "<file>.gguf"))
    refuse_settings("local", options)
    require_vendor("xllamacpp", FEATURE, EXTRA)
    if protocol_of(f"local/{name}", options) == COMPLETION:
        return CompletionAgent(LocalModel(name, options, completes=True), options)
    return LocalModel(name, options)


def _protocols(name: str, options: ModelOptions) -> tuple[str, ...]:
    """Gemma is a base model: it goes on with text, and follows no instructions."""
    return (COMPLETION, TEXT) if name == GEMMA else (SCHEMA, TEXT, COMPLETION)


make_local.protocols = _protocols  # type: ignore[attr-defined]
