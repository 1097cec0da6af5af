"""Controlled Retention with a calculator, which separates calculation errors from missing inputs."""

from __future__ import annotations

import re

from eirkit.agents.model import Message, Reply, Request
from eirkit.agents.protocol import read_answers
from eirkit.agents.session import ControlledSession
from eirkit.tasks.retention import Retention
from eirkit.tasks.view import PublicTask

MOST_CALCULATIONS = 4  # per step; after that the reply is final

_CALCULATE = re.compile(r"^[ \t>*`_#\-]*CALCULATE\b[ \t:]*([^\n]*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_USAGE = "CALCULATE t t: apply the rule to this step's input and the answers of the steps named, see it, then answer"


class CalculatorSession(ControlledSession):
    """Controlled Retention in which the model names visible operands and the harness applies the rule."""

    def __init__(self, task: PublicTask, retention: Retention) -> None:
        super().__init__(task, retention)
        self._results: list[str] = []  # of the current step

    def request(self) -> Request | None:
        request = super().request()
        if request is None:
            return None
        system, state = request.messages
        shown = "".join(f"\nRESULT {result}" for result in self._results[-1:])
        return Request(
            (Message("system", f"{system.content}\n{_USAGE}"), Message("user", f"{state.content}{shown}")),
            request.tools,
            request.max_tokens,
        )

    def receive(self, reply: Reply) -> None:
        asked = _CALCULATE.findall(reply.text)
        if asked and not read_answers(reply)[0] and len(self._results) < MOST_CALCULATIONS:
            self._results.append(self._calculate(asked[-1]))
            return
        self._results = []
        super().receive(reply)

    def _calculate(self, named: str) -> str:
        if self._visible is None or self._visible.step is None:
            raise ValueError("nothing was requested; call request first")
        spec, values = self.task.spec, dict(self._visible.records)
        labels = [int(label) for label in re.findall(r"\d{1,6}", named)]
        if unseen := [label for label in labels if label not in values]:
            return f"refused: the answer of step {unseen[0]} is not shown"
        operands = [values[label] for label in dict.fromkeys(labels)]
        result = self.task.workload.operate(spec, self._visible.step.input, operands)
        return " ".join(f"{value:0{spec.digits}d}" for value in result)
