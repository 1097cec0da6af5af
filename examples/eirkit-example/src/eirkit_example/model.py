"""A model that looks at nothing but the input of the current step: `short-sighted/NAME`, whatever the name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eirkit.lacuna.models.model import ModelOptions, Reply, Request

_STEP = re.compile(r"^STEP 0*([0-9]+)", re.MULTILINE)
_INPUT = re.compile(r"^INPUT (.+)$", re.MULTILINE)


class ShortSighted:
    """Right where a step needs no earlier result, and nowhere else."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name, self.options = name, options

    async def reply(self, request: Request) -> Reply:
        shown = request.messages[-1].content
        step, given = _STEP.search(shown), _INPUT.search(shown)
        return Reply(f"ANSWER {step[1] if step else 0} {given[1] if given else 0}")

    async def close(self) -> None:
        """There is nothing to close."""

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "short-sighted", "model": self.name}
