"""`summary`: any model summarizes what is older, and the newest messages stay as they are."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import Model, ModelOptions, Request, ask_model, close_model
from eirkit.records.money import exact_sum
from eirkit_coding.compaction.context import MESSAGE_TOKENS, ContextMessage, split_opening, texts_of
from eirkit_coding.compactors.compactor import Compactor, CompactorUsage, TokenBudget, compactors, without_opening

MakeModel = Callable[[str, ModelOptions], Model]
PROMPT = """\
Below is the older part of a session in which a coding agent works on a task. It will be removed from the context of
the agent, and your text will stand in its place. Write what the agent needs to go on without it: the task and the
rules of the user word for word; files with their paths, and verbatim the lines of code that will be edited or relied
upon; commands and their results that still matter; decisions and what is left to do. Use at most {tokens} tokens.
Write only that text."""


class ModelCompactor(Compactor):
    """A compactor that asks models; whoever tries it provides them, so that their spending is accounted for."""

    @abstractmethod
    def connect(self, make: MakeModel) -> None:
        """Make its models, once, before it is asked."""

    @abstractmethod
    def request(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Request | None:
        """Return what the model would be asked about a context; None if nothing."""

    @property
    @abstractmethod
    def models(self) -> tuple[str, ModelOptions]:
        """The model that it asks, and its options."""

    @abstractmethod
    def close(self) -> None:
        """Close its models."""


@compactors.add("summary")
class Summary(ModelCompactor):
    """Let a model summarize what is older, and keep the newest messages whole.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        prompt: what it is told, or a path to a .txt or .md file with it; {tokens} is replaced.
        keep_share: share of the budget for the newest messages; the summary has the rest.
        base_url: of an OpenAI-compatible server.
    """

    def __init__(self, *, model: str = "", prompt: str = PROMPT, keep_share: float = 0.25, base_url: str = "") -> None:
        if not model:
            raise UsageError("the compactor summary asks a model; give --set summary.model=PROVIDER/NAME")
        self.model, self.prompt, self.keep_share, self.base_url = model, prompt, keep_share, base_url
        self._prompt = _prompt_of(prompt)
        self._runner: asyncio.Runner | None = None
        self._model: Model | None = None
        self._usage = CompactorUsage()

    @property
    def models(self) -> tuple[str, ModelOptions]:
        return self.model, ModelOptions(base_url=self.base_url or None)

    def connect(self, make: MakeModel) -> None:
        self._model = make(*self.models)

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        request = self.request(messages, budget)
        opening, newest = split_opening(messages)[0], self._newest(messages, budget)
        if request is None:
            return (*opening, *newest)
        text = self._asked(request)
        room = budget.tokens - budget.count(newest) - MESSAGE_TOKENS
        kept = []
        for line in budget.counter.lines(text):  # a model counts otherwise, so what does not fit is cut at a line
            room -= line.tokens
            if room < 0:
                break
            kept.append(line.text)
        return (*opening, *((ContextMessage("user", "\n".join(kept)),) if kept else ()), *newest)

    def request(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Request | None:
        newest = self._newest(messages, budget)
        rest = split_opening(messages)[1]
        older = rest[: len(rest) - len(newest)]
        room = budget.tokens - budget.count(newest) - MESSAGE_TOKENS
        if not older or room < 1:
            return None
        prompt = self._prompt.replace("{tokens}", f"{room}")
        session = "\n\n".join(f"[{message.role}]\n" + "\n".join(texts_of(message)) for message in older)
        return Request((Message("user", f"{prompt}\n\n<session>\n{session}\n</session>"),), max_tokens=room)

    def usage(self) -> CompactorUsage:
        return self._usage

    def close(self) -> None:
        if self._runner is not None:
            if self._model is not None:
                self._runner.run(close_model(self._model))
            self._runner.close()
            self._runner = None

    def _newest(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> tuple[ContextMessage, ...]:
        left, found = int(budget.tokens * self.keep_share), list[tuple[ContextMessage, ...]]()
        for group in reversed(without_opening(messages)):
            left -= budget.count(group)
            if left < 0:
                break
            found.append(group)
        return tuple(chain.from_iterable(reversed(found)))

    def _asked(self, request: Request) -> str:
        if self._model is None:
            self.connect(make_metered)
        self._runner = self._runner or asyncio.Runner()
        assert self._model is not None
        reply = self._runner.run(ask_model(self._model, request))
        used, before = reply.usage, self._usage
        self._usage = CompactorUsage(
            before.calls + 1,
            before.input_tokens + used.input_tokens,
            before.output_tokens + used.output_tokens,
            exact_sum([before.cost_usd, used.cost_usd]),
        )
        return reply.text


def _prompt_of(prompt: str) -> str:
    if not prompt.endswith((".txt", ".md")) or "\n" in prompt:
        return prompt
    try:
        return Path(prompt).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"the prompt {prompt} cannot be read ({error}); check the path") from error
