"""Loopback servers that compact as the APIs of Anthropic and OpenAI do: losing nothing, facts, or instructions.

What they compacted is carried by the client in a form that it cannot read. Their reader is `scripted/reader`, which
answers without fault from what it is shown. For each question the server notes whether it answered as it would have
with everything, which is the truth that a test compares with.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from eirkit.lacuna.agents.protocol import read_text_answer
from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.reading import read_turn
from eirkit.lacuna.conversation.session import PASSAGE, PASSAGE_END, SO_FAR, TOLD
from eirkit.lacuna.conversation.world import USER
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from tests.lacuna.servers import Answer, Received

Turns = list[str]
CHARACTERS_A_TOKEN = 4
COMPACTION_TOKENS = (700, 70)  # input and output that a compaction is billed with, beside the reply
BETA = "compact-2026-01-12"


def keeps_all(turns: Turns) -> Turns:
    return turns


def keeps_half(turns: Turns) -> Turns:
    """Lose half of the turns, whatever they say."""
    return [one for one in turns if zlib.crc32(one.encode()) % 2]


def drops_instructions(turns: Turns) -> Turns:
    """Lose every sentence in which the user gives a standing instruction, and nothing else."""
    language = load_language("english")

    def instructs(sentence: str) -> bool:
        return any(said.subject == USER for said in read_turn(language, sentence, 1))

    def left(turn: str) -> str:
        speaker, _, said = turn.partition(": ")
        sentences = [sentence for sentence in re.split(r"(?<=\.) ", said) if not instructs(sentence)]
        return f"{speaker}: {' '.join(sentences)}" if sentences else ""

    return [rest for rest in map(left, turns) if rest]


class CompactingApi:
    """The script of a server; it takes requests of both APIs.

    Args:
        when: which requests it compacts, by their last message, if they are long enough.
    """

    def __init__(
        self,
        loses: Callable[[Turns], Turns],
        *,
        broken: bool = False,
        when: Callable[[str], bool] = lambda asked: asked == TOLD,
    ) -> None:
        self.loses, self.broken, self.when = loses, broken, when
        self.reader = make_model("scripted/reader", ModelOptions())
        self.everything: dict[str, Turns] = {}  # by what is carried: all turns before it
        self.compactions = 0
        self.as_with_everything: dict[str, bool] = {}  # by question

    def __call__(self, received: Received) -> Answer:
        body = received.body
        is_messages = "messages" in body
        items = body["messages"] if is_messages else body["input"]
        carried, turns, last = self._read(items)
        trigger = self._trigger(received, is_messages)
        asked = last["content"]
        size = sum(map(len, [*carried, *turns])) // CHARACTERS_A_TOKEN
        block, text = None, "OK"
        if trigger is not None and size > trigger[0] and self.when(asked):
            self.compactions += 1
            block = self._compacted([*carried, *turns], is_messages)
            text = "" if trigger[1] else text
            carried, turns = decoded(block["encrypted_content"]), []
        if asked != TOLD:
            text = self._answered(carried, turns, asked)
        shaped = message if is_messages else response
        return Answer(json.dumps(shaped(text, block)).encode())

    def _read(self, items: Sequence[Any]) -> tuple[Turns, Turns, Any]:
        carried: Turns = []
        turns: Turns = []
        for item in items[:-1]:
            blocks = item["content"] if isinstance(item.get("content"), list) else [item]
            for block in blocks:
                if block.get("type") == "compaction":
                    carried = decoded(block["encrypted_content"])
                else:
                    turns.append(block["content"])
        return carried, turns, items[-1]

    def _trigger(self, received: Received, is_messages: bool) -> tuple[int, bool] | None:
        body = received.body
        if "context_management" not in body:
            return None
        if not is_messages:
            (entry,) = body["context_management"]
            assert entry["type"] == "compaction"
            return entry["compact_threshold"], False
        assert received.headers["anthropic-beta"] == BETA
        (edit,) = body["context_management"]["edits"]
        assert edit["type"] == "compact_20260112"
        assert edit["trigger"]["type"] == "input_tokens"
        return edit["trigger"]["value"], edit["pause_after_compaction"]

    def _compacted(self, turns: Turns, is_messages: bool) -> dict[str, Any]:
        kept = base64.b64encode(json.dumps(self.loses(turns)).encode()).decode()
        self.everything[kept] = turns
        if is_messages:
            summary = None if self.broken else "Summary: they talked."
            return {"type": "compaction", "content": summary, "encrypted_content": kept}
        return {"type": "compaction", "id": f"cmp_{self.compactions}", "encrypted_content": kept}

    def _answered(self, carried: Turns, turns: Turns, asked: str) -> str:
        found = self._asked([*carried, *turns], asked)
        before = next((all_ for kept, all_ in self.everything.items() if decoded(kept) == carried and carried), carried)
        whole = self._asked([*before, *turns], asked)
        self.as_with_everything[f"{before[0] if before else ''}\n{asked}"] = read_text_answer(
            Reply(found)
        ) == read_text_answer(Reply(whole))
        return found

    def _asked(self, turns: Turns, asked: str) -> str:
        today, _, question = asked.partition("\n\nQuestion: ")
        text = f"{today}\n\n{SO_FAR}{PASSAGE}\n" + "\n".join(turns) + f"\n{PASSAGE_END}\n\nQuestion: {question}"
        return wait_for(self.reader.reply(Request((Message("user", text),)))).text


def decoded(kept: str) -> Turns:
    return list(json.loads(base64.b64decode(kept)))


def message(text: str, block: dict[str, Any] | None) -> dict[str, Any]:
    """Return a message of Anthropic's API."""
    inputs, outputs = COMPACTION_TOKENS
    zero = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation": None}
    spent = [{"type": "compaction", "input_tokens": inputs, "output_tokens": outputs, **zero}] if block else []
    content = [*([block] if block else []), *([{"type": "text", "text": text}] if text else [])]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "end_turn" if text else "compaction",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 10, "iterations": spent},
    }


def response(text: str, block: dict[str, Any] | None) -> dict[str, Any]:
    """Return a response of OpenAI's API."""
    said = {"type": "output_text", "text": text, "annotations": []}
    spoken = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [*([block] if block else []), spoken],
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details},
    }
