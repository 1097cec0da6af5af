"""The HTTP service that holds the task of a Harbor trial, in a container that the agent cannot read.

python -m eirkit_bridges.sidecar serve      serve the task in the episode.json of the image
python -m eirkit_bridges.sidecar settle     inside the container: write the score; called by Harbor
python -m eirkit_bridges.sidecar healthy    inside the container: exit with 0 once it serves
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any
from urllib.request import Request as Asking
from urllib.request import urlopen

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.runs.suite import read_suite
from eirkit.records.runs import Failure
from eirkit_bridges.episode import UNKNOWN_USAGE, Episode, score_of
from eirkit_bridges.external_runs import OVER, ClientSessions, ExternalRuns, open_external_runs, shown_in
from eirkit_bridges.mcp_server import AccessGuard, HttpAccess, introduction, make_server, mcp_application, serve_http

FOLDER, PORT, SERVICE = "/episode", 8000, "episode"
EVERYWHERE = "0.0.0.0"  # the network shared by the containers of one trial
REWARD, PLAN, OUT = "reward.json", "episode.json", "out"
IDLE_SECONDS = 86_400.0  # a day; Harbor stops the container earlier
SETTLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SidecarPlan:
    """The contents of episode.json, which is in the image of the sidecar and not in the agent's."""

    suite: Mapping[str, Any]  # of one cell and one seed
    token: str  # in the URL given to the agent
    admin: str  # known in this container alone
    keys: tuple[str, ...] = ()  # Controlled Retention: the key of each step, given to the agent with that step

    @classmethod
    def read(cls, folder: Path) -> SidecarPlan:
        try:
            document = json.loads((folder / PLAN).read_text("utf-8"))
            return cls(document["suite"], document["token"], document["admin"], tuple(document["keys"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputFileError(
                f"{folder / PLAN} holds no task ({error}); run `eirkit export harbor` again"
            ) from error


class Sidecar:
    """One episode, served to any client that knows its URL.

    Args:
        now: seconds since the epoch.
    """

    def __init__(self, plan: SidecarPlan, runs: ExternalRuns, folder: Path, now: Callable[[], float] = time) -> None:
        self.plan, self.runs, self.folder, self.now = plan, runs, folder, now
        self.episode: Episode = runs.begin()
        self._began: float | None = None
        self._opened = 0  # steps opened so far
        self._answer: str | None = None  # to the open step
        self._settling = asyncio.Lock()

    async def act(self, text: str) -> str:
        """Carry out the commands of an agent that manages its memory; return what it may see next."""
        after = await self.episode.act(Reply(text, (), UNKNOWN_USAGE))
        return OVER if after is None else shown_in(after)

    def began(self) -> float:
        """Return the time of the first call: later changes in the agent's container were made by the agent."""
        self._began = self.now() if self._began is None else self._began
        return self._began

    async def open(self, key: str) -> str | None:
        """Return what is visible at the step that a key opens; None unless it is the key of this step or the next."""
        async with self._settling:
            t = next((t for t, known in enumerate(self.plan.keys, 1) if _same(key, known)), 0)
            if t == self._opened + 1:
                await self._settle_step()
                self._opened = t
            request = await self.episode.look()
            if t != self._opened or request is None:
                return None
            return "\n\n".join(message.content for message in request.messages)

    def answer(self, text: str) -> None:
        """Store the answer to the open step; the latest one before it is settled counts."""
        self._answer = text

    async def settle(self, admin: str) -> dict[str, float] | None:
        """Write the score so far and return it; None if the admin key is wrong."""
        if not _same(admin, self.plan.admin):
            return None
        async with self._settling:
            if self.plan.keys:
                await self._settle_step()
            else:
                await self.episode.leave()
            reward = await self._reward()
            waiting = self.folder / f"{REWARD}.unfinished"
            waiting.write_text(json.dumps(reward))
            waiting.replace(self.folder / REWARD)
            return reward

    async def _settle_step(self) -> None:
        """Submit the answer to the open step, if a step is open."""
        if len(self.episode.replies) < self._opened:
            said, self._answer = self._answer or "", None
            await self.episode.act(Reply(said, (), UNKNOWN_USAGE))

    async def _reward(self) -> dict[str, float]:
        """Return correct / scored; an unfinished run is scored as if the agent left now."""
        outcome = self.episode.outcome
        if outcome is None:
            outcome = await score_of(self.runs.stage, self.episode.task, self.episode.replies)
        if isinstance(outcome, Failure):
            raise UsageError(f"the run was aborted ({outcome.message}); run the trial again")
        score = outcome.record.score
        assert score is not None  # only probes have none
        return {
            "reward": score.accuracy,
            "correct": score.correct,
            "scored": score.steps,
            "answered": score.answered,
        }


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def routes(sidecar: Sidecar) -> list[Any]:
    """Return the HTTP routes; those for the agent depend on the mode."""
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    async def body(request: Request) -> str:
        return (await request.body()).decode("utf-8", "replace")

    async def healthy(request: Request) -> Response:
        return PlainTextResponse("well\n")

    async def act(request: Request) -> Response:
        return PlainTextResponse(await sidecar.act(await body(request)) + "\n")

    async def began(request: Request) -> Response:
        return PlainTextResponse(f"{sidecar.began():.6f}\n")

    async def step(request: Request) -> Response:
        shown = await sidecar.open((await body(request)).strip())
        return PlainTextResponse("no\n", 403) if shown is None else PlainTextResponse(f"{shown}\n")

    async def answer(request: Request) -> Response:
        sidecar.answer(await body(request))
        return PlainTextResponse("kept\n")

    async def settle(request: Request) -> Response:
        reward = await sidecar.settle((await body(request)).strip())
        return PlainTextResponse("no\n", 403) if reward is None else JSONResponse(reward)

    acting = {"/began": began, "/open": step, "/answer": answer} if sidecar.plan.keys else {"/act": act}
    posted = [Route(path, route, methods=["POST"]) for path, route in (acting | {"/settle": settle}).items()]
    return [Route("/healthy", healthy, methods=["GET"]), *posted]


async def serve(folder: Path, host: str = EVERYWHERE, port: int = PORT) -> None:
    """Serve the episode in a folder until SIGINT or SIGTERM."""
    plan = SidecarPlan.read(folder)
    with open_external_runs(read_suite(plan.suite), folder / OUT) as runs:
        sidecar = Sidecar(plan, runs, folder)
        access = HttpAccess(host, port, plan.token, (SERVICE,))
        application = _application(sidecar)
        await serve_http(AccessGuard(application, access, _keep_running), access.bind())


def _application(sidecar: Sidecar) -> Any:
    if sidecar.plan.keys:
        from starlette.applications import Starlette

        return Starlette(routes=routes(sidecar))
    sessions = ClientSessions(lambda: sidecar.episode)
    return mcp_application(make_server(sessions, *introduction(sidecar.runs)), routes(sidecar), IDLE_SECONDS)


async def _keep_running(client: str) -> None:
    """Ignore a closed connection: the agent may open another, and Harbor ends the run."""


def ask(folder: Path, port: int, *, settle: bool) -> str:
    """Return the response of the service in this container."""
    plan = SidecarPlan.read(folder)
    url = f"http://127.0.0.1:{port}/{plan.token}/{'settle' if settle else 'healthy'}"
    with urlopen(Asking(url, plan.admin.encode() if settle else None), timeout=SETTLE_SECONDS) as response:
        return str(response.read().decode())


def main(arguments: list[str]) -> int:
    """Run one of the commands in the module docstring; EIRKIT_EPISODE* variables change folder, host and port."""
    folder = Path(os.environ.get("EIRKIT_EPISODE", FOLDER))
    port = int(os.environ.get("EIRKIT_EPISODE_PORT", PORT))
    match arguments:
        case ["serve"]:
            asyncio.run(serve(folder, os.environ.get("EIRKIT_EPISODE_HOST", EVERYWHERE), port))
            return 0
        case ["settle" | "healthy" as verb]:
            try:
                print(ask(folder, port, settle=verb == "settle"))
            except OSError as error:
                print(f"the episode service does not answer ({error}); check its log", file=sys.stderr)
                return 1
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
