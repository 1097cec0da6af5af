"""`scripted/quoter`: answers with everything that it is shown, so that a run tells what a memory returned."""

from __future__ import annotations

from eirkit.agents.conversing import SUMMARY_RULES
from eirkit.agents.model import ModelOptions, Reply, Request, Usage
from eirkit.agents.models.reader import CHARACTERS_PER_TOKEN, shown_passages
from eirkit.agents.models.reference import Reference
from eirkit.agents.models.word_summary import room_of
from eirkit.agents.serving.model_factory import refuse_settings


class Quoter(Reference):
    """Quotes what was shown as its answer; as a summary it gives the end of what it is to sum up.

    Args:
        longest: characters of an answer; None for as many as are shown.
    """

    def __init__(self, options: ModelOptions, longest: int | None = None) -> None:
        super().__init__(options)
        self.longest = longest

    async def reply(self, request: Request) -> Reply:
        last = request.messages[-1].content
        shown = shown_passages(last)
        if last.startswith(SUMMARY_RULES):
            text = shown[0][-room_of(last) :] if shown else ""
        else:
            text = f"ANSWER: {' '.join(' '.join(shown).split())[: self.longest] or 'unknown'}"
        read = sum(len(message.content) for message in request.messages)
        return Reply(text, usage=Usage(read // CHARACTERS_PER_TOKEN, len(text) // CHARACTERS_PER_TOKEN))


def make_quoter(options: ModelOptions) -> Quoter:
    """Return the quoter; it takes no settings."""
    refuse_settings("scripted", options, ())
    return Quoter(options)
