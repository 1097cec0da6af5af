"""Replies of current models: under a schema all are read; as text each is right, asked for again, or malformed."""

from __future__ import annotations

import asyncio
import json

import pytest

from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import ModelOptions, Reply
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from tests.lacuna.agents.replies import IN_FORM, IN_OTHER_FORMS, NOTHING, TAKEN_BACK
from tests.lacuna.running import retention
from tests.lacuna.servers import ModelServer, Received, says

TASK = generate(TaskSpec("stepwise-sum", n=12, m=4, seed=5))
PUBLIC = publish(TASK, prepare(TASK.spec))
MEANT: dict[str, int | None] = {**IN_FORM, **IN_OTHER_FORMS, **TAKEN_BACK, **dict.fromkeys(NOTHING)}


class At7(ControlledSession):
    """A session that stands at step 7, in which a model is asked twice and says the same twice."""

    def recorded(self, text: str) -> tuple[int | None, str | None, int]:
        """Return the value, the fault, and how often the model was asked."""
        self._t, self.reask = 7, True
        times = 0
        while self._t == 7 and (request := self.request()):
            times += 1
            assert times < 2 or "The last line of your reply must be: ANSWER 7 v" in request.messages[-1].content
            self.receive(Reply(text))
        *_, decision = self.drain()
        return decision.submitted[0] if decision.submitted else None, decision.fault, times


@pytest.mark.parametrize("text", MEANT)
def test_as_text_a_reply_is_right_or_asked_for_again_and_never_another(text):
    value, fault, times = At7(PUBLIC, retention(TASK, 4)).recorded(text)
    if text in IN_FORM or value is not None:
        assert (value, times) == (MEANT[text], 1)
    else:
        assert (fault, times) in {("malformed", 2), ("empty", 2), ("wrong-width", 2)}


def test_under_a_schema_every_reply_is_read():
    """The server keeps models to the schema: whatever they would have said goes into the field for the work."""
    replies = [*MEANT]

    def script(received: Received):
        schema = received.body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["work", "values"]
        text = replies[len(server.received) - 1]
        return says(json.dumps({"work": text, "values": [MEANT[text] or 0]}))

    async def run():
        model = make_metered("openai/any", ModelOptions(base_url=server.url, retries=0))
        task = generate(TaskSpec("store-recall", n=len(replies), m=4))
        session = ControlledSession(publish(task, prepare(task.spec)), retention(task, 4))
        session.protocol, session.reask = "schema", True
        try:
            return await drive(session, model)
        finally:
            await model.close()

    with ModelServer(script) as server:
        trace = asyncio.run(run())
    assert [one.submitted for one in trace.decisions] == [(MEANT[text] or 0,) for text in replies]
    assert len(trace.exchanges) == len(replies)


def test_the_set_is_large():
    assert len(MEANT) >= 150
