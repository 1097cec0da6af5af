"""Reference agents with a habit that the paper reports of models which look after their own memory.

Their rates come from published behaviour, never from published accuracy. What follows from each habit is shown in
docs/agents-under-pressure.md.
"""

from __future__ import annotations

from eirkit.lacuna.model import Request
from eirkit.lacuna.models.reading import Sight, read_means, read_records
from eirkit.lacuna.models.reference import AGENTS, Recoverer, answer_line
from eirkit.lacuna.task import Payload


class NoteTaker(Recoverer):
    """Writes each answer down, whatever it is, with probability p (0.4 unless given): incomplete write-through.

    Only a memory that the agent must fill itself suffers from it, and every note costs an action. RQ3, "Behavior and
    mechanism", has the rates: 1.0 (Claude Opus 4.6, Scratch), 0.4 (GPT-4.1 Mini, Scratch–LRU) and near 0.0 (Claude
    Haiku 4.5, model-driven).
    """

    writes = 0.4  # unless p is given

    def keep(self, sight: Sight, request: Request) -> str:
        written = self.chance(request, "write") < self.rate(self.writes)
        return self.store(sight, read_means(request)) if written else ""


class Substituter(NoteTaker):
    """Goes on with another record in the place of one that it cannot get: the visible one with the nearest label.

    "Mechanistic evidence" names it, "the agent proceeds using an invalid substitute", without saying which; the nearest
    label is the rule here, the older of two. It writes everything down unless p is given.
    """

    writes = 1.0

    def answer(self, sight: Sight, request: Request) -> str:
        if not sight.missing:
            return super().answer(sight, request)
        visible = read_records(request.messages[-1].content)
        visible.pop(sight.t, None)
        taken = {r: _nearest(r, visible) for r in sight.missing} if visible else {}
        return answer_line(sight, sight.operate(sight.values | taken))


def _nearest(r: int, visible: dict[int, Payload]) -> Payload:
    return visible[min(visible, key=lambda t: (abs(t - r), t))]


AGENTS.update({"note-taker": NoteTaker, "substituter": Substituter})
