"""A trial of an exported task without containers: the same service, scripts and hooks, told where they are.

What Harbor keeps apart with containers is apart here by folders: `episode` is the service's, `agent` the agent's,
`verifier` the verifier's. Nothing of the first is handed to the second but the address.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from eirkit_bridges.harbor import SETTLE
from eirkit_bridges.sidecar import ask
from tests import warm
from tests.processes import PATIENCE_SECONDS, completed, running, wait_until


class Trial:
    """One task with its service running; use it in a with statement."""

    def __init__(self, task: Path, place: Path) -> None:
        self.task, self.place = task, place
        self.description = tomllib.loads((task / "task.toml").read_text("utf-8"))
        self.episode, self.agent, self.verifier = (place / name for name in ("episode", "agent", "verifier"))
        shutil.copytree(task / "environment" / "episode", self.episode)
        self.agent.mkdir(parents=True)
        self.verifier.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        token = json.loads((self.episode / "episode.json").read_text("utf-8"))["token"]
        self.url = f"http://127.0.0.1:{self.port}/{token}"

    def __enter__(self) -> Trial:
        command = [warm.programs() / "python", "-m", "eirkit_bridges.sidecar", "serve"]
        self.stack = ExitStack()
        self.log = self.stack.enter_context((self.place / "log").open("wb"))
        self.service = self.stack.enter_context(
            running(command, env=self.service_environment(), stdout=self.log, stderr=self.log)
        )
        wait_until(self.listens, "the service listens", self.service)
        return self

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.stack:
            self.service.terminate()
            self.service.wait(PATIENCE_SECONDS)

    def service_environment(self) -> dict[str, str]:
        own = {"EIRKIT_EPISODE": str(self.episode), "EIRKIT_EPISODE_HOST": "127.0.0.1"}
        return {**os.environ, **own, "EIRKIT_EPISODE_PORT": str(self.port)}

    def in_service(self, verb: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eirkit_bridges.sidecar", verb]
        return completed(command, env=self.service_environment())

    def agent_environment(self) -> dict[str, str]:
        """What the agent's container has; the roots keep the wiping inside the agent's folder."""
        own = {"EIRKIT_EPISODE_URL": self.url, "EIRKIT_TASK": str(self.agent), "EIRKIT_ROOTS": str(self.agent)}
        return {"PATH": os.environ["PATH"], "HOME": str(self.agent), **own}

    def as_agent(self, *command: str) -> subprocess.CompletedProcess[str]:
        return completed(command, env=self.agent_environment(), cwd=self.agent)

    def solve(self) -> None:
        """Run the oracle, from a copy of its folder as Harbor makes one."""
        solution = self.place / "solution"
        shutil.copytree(self.task / "solution", solution, dirs_exist_ok=True)
        done = self.as_agent("bash", str(solution / "solve.sh"))
        assert done.returncode == 0, done.stderr

    def set_up(self, step: str) -> subprocess.CompletedProcess[str]:
        """Upload the script of a step and run it."""
        shutil.copy(self.task / "steps" / step / "workdir" / "setup.sh", self.agent / "setup.sh")
        return self.as_agent("bash", str(self.agent / "setup.sh"))

    def collect(self) -> None:
        """Run the hooks in the order in which Harbor does: the agent's container first, then the service."""
        hooks = self.description["verifier"]["collect"]
        for hook in sorted(hooks, key=lambda hook: hook["service"] != "main"):
            if hook["service"] == "main":
                self.as_agent("sh", "-c", hook["command"])
            else:
                assert hook["command"] == SETTLE
                ask(self.episode, self.port, settle=True)  # what the command does, without another interpreter

    def verify(self) -> dict[str, Any]:
        """Collect the score and run the verifier; return what it wrote."""
        self.collect()
        artifact = self.verifier / "reward.json.collected"
        shutil.copy(self.episode / "reward.json", artifact)
        logs = self.verifier / "logs"
        variables = {"PATH": os.environ["PATH"], "EIRKIT_REWARD": str(artifact), "EIRKIT_VERIFIER_LOGS": str(logs)}
        completed(["bash", str(self.task / "tests" / "test.sh")], env=variables, check=True, text=False)
        return dict(json.loads((logs / "reward.json").read_text("utf-8")))

    def post(self, path: str, body: str | bytes, **headers: str) -> tuple[int, str]:
        """Ask the service as an agent would; return the status and the text."""
        data = body.encode() if isinstance(body, str) else body
        try:
            with urlopen(Request(f"{self.url}/{path}", data, headers), timeout=PATIENCE_SECONDS) as response:
                return response.status, response.read().decode()
        except HTTPError as refusal:
            return refusal.code, refusal.read().decode("utf-8", "replace")
