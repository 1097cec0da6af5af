"""Runs a memory system in a separate process: which environment variables it sees, its calls, how it ends.

Code that hangs, exits, forks or crashes affects its own process only. Vendors' packages read any variable that they
know, so they see no keys and no proxies; a user's own system sees the environment without what its name calls a secret.

Calls are lines of JSON over a socket that the child inherits, one answer for each, in order. A second socket connects
us with the child's keeper, which ends everything once that connection is closed, also if we are killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eirkit.errors import PluginError, Side, StoreError, UsageError
from eirkit.lacuna.memories.keeper import (
    ENDED,
    HOST,
    NOW,
    SOCKETS,
    KeeperReport,
    LineSocket,
    ProcessId,
    all_processes,
    descendants,
    end_all,
    state_of,
)
from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage
from eirkit.lacuna.memories.questions import SystemFacts
from eirkit.lacuna.memories.times import CLOSE_SECONDS, GRACE_SECONDS, KILL_SECONDS, START_SECONDS
from eirkit.lacuna.memories.validity import EndedText, with_text
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.scrubber import Scrubber, names_secret
from eirkit.registry import locate
from eirkit.streams import COMMAND

MARK = "EIRKIT_KEEPER"  # environment variable that all processes of one memory system inherit
_SURVIVORS: set[ProcessId] = set()  # that a keeper could not end
_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "EIRKIT_HOME", MARK),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
_LOCALE = "LC_"
_DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}  # some systems find proxies outside the environment


def inherited_variables(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a store's process may see.

    Args:
        more: variables that the system declares, such as the password of its server.
    """
    wanted = {*_KEPT, *more}
    kept = {name: value for name, value in environment.items() if name in wanted or name.startswith(_LOCALE)}
    return {**kept, **_DIRECT}


def variables_without_secrets(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a user's own system may see: those that are declared or not named like a secret."""
    wanted = set(more)
    return {name: value for name, value in environment.items() if name in wanted or not names_secret(name)}


_LOOK_SECONDS = 0.005
_BEFORE_USE = ("load", "try", "construct")  # whose errors the user resolves; in a run they are failures of the run
_SOURCE = Path(__file__).parents[3]  # added to the path of a Python that does not have eirkit installed


class KeptProcess:
    """The keeper and the host of one memory system or compactor, and the connections to both.

    Args:
        python: the interpreter of the system's environment.
        environment: the variables that it may see.
        side: the family of plug-ins that it belongs to.
        host: the module that calls it.
    """

    def __init__(
        self, name: str, python: Path, environment: Mapping[str, str], side: Side = "memory", host: str = HOST
    ) -> None:
        self.name, self.side = name, side
        self.is_busy = False  # a call was sent and not answered
        self._mark, self._report = f"{os.environ.get(COMMAND, '')}{secrets.token_hex(16)}", b""
        (calls, theirs), (life, its) = socket.socketpair(), socket.socketpair()
        own = {SOCKETS: f"{theirs.fileno()} {its.fileno()}", MARK: self._mark, "PYTHONPATH": _path_of(python)}
        # Only who names code of this folder, which may be anybody's, wants its modules to be imported.
        safely = [] if ":" in name else ["-P"]
        try:
            self._keeper = subprocess.Popen(
                [str(python), *safely, "-m", "eirkit.lacuna.memories.keeper", name, host],
                env={**environment, **own},
                pass_fds=(theirs.fileno(), its.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=its.fileno(),  # what it says before it works is received in place of its report
                start_new_session=True,  # an interrupt from the terminal is for us alone
            )
        except OSError as error:
            calls.close()
            life.close()
            raise StoreError(f"{python} cannot be started ({error}); run eirkit doctor") from error
        finally:
            theirs.close()
            its.close()
        life.setblocking(False)
        self._lines, self._life = LineSocket(calls), life

    @property
    def pid(self) -> int:
        return self._keeper.pid

    async def ask(self, verb: str, *arguments: Any) -> Any:
        """Return the answer to a call.

        Raises:
            StoreError: the process ended, or the system returned something invalid.
            PluginError: the system raised an error.
        """
        if self.is_busy:
            raise StoreError(f"the process of {self.side} {self.name!r} did not finish its last call; start it again")
        self.is_busy = True
        try:
            await self._lines.send(json.dumps([verb, *arguments]).encode())
            line = await self._lines.receive()
        except ValueError as error:
            raise StoreError(f"{self.side} {self.name!r} returned too much at {verb} ({error}); return less") from error
        except OSError:
            line = b""
        if not line:
            why = await self._cause_of_death()
            raise StoreError(f"the process of {self.side} {self.name!r} died during {verb} ({why}); fix it and resume")
        self.is_busy = False
        kind, *answer = json.loads(line)
        if kind in ("store", "usage"):
            raise (UsageError if kind == "usage" and verb in _BEFORE_USE else StoreError)(answer[0])
        if kind == "raised":
            raise PluginError(self.side, self.name.rpartition(":")[2], verb, *answer)
        return answer[0]

    async def end(self) -> None:
        """Close the connections and wait until no process of the system is left."""
        self._lines.close()
        try:
            with suppress(OSError):
                if self.is_busy:
                    self._life.send(NOW)
                self._life.shutdown(socket.SHUT_WR)
            await self._wait()
        finally:
            self._life.close()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS + 2 * KILL_SECONDS):
                await self._receive_report()
                while self._keeper.poll() is None:
                    await asyncio.sleep(_LOOK_SECONDS)
        report = self._reported()
        if report is None or report.left:  # the keeper itself was killed
            self._keeper.kill()
            self._keeper.wait()
            for pid in report.left if report else ():
                _SURVIVORS.update(state_of(pid))
            end_all(lambda: marked(self._mark))

    async def _receive_report(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while part := await loop.sock_recv(self._life, 1 << 16):
                self._report += part

    def _reported(self) -> KeeperReport | None:
        try:
            return KeeperReport(**json.loads(self._report.splitlines()[-1]))
        except (ValueError, IndexError, TypeError):
            return None

    async def _cause_of_death(self) -> str:
        """Return why the host has ended, in the words of its keeper."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS + KILL_SECONDS):
                await self._receive_report()
        report = self._reported()
        said = report.said if report else self._report.decode("utf-8", "replace").splitlines()
        last = next((str(line).strip()[:300] for line in reversed(said) if str(line).strip()), "no output")
        return last if report is None or report.status is None else f"exit code {report.status}, {last}"


def _path_of(python: Path) -> str:
    """Return the path on which a Python finds eirkit, and our own modules if it is the Python that we run on."""
    ours = [place or str(Path.cwd()) for place in sys.path] if python == Path(sys.executable) else []
    return os.pathsep.join([str(_SOURCE), *ours])


def marked(mark: str) -> dict[ProcessId, str]:
    """Return the processes whose mark begins so, with what descends from them, and the state of each; Linux only."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for pid in all_processes():
        with suppress(OSError):
            if any(line.startswith(wanted) for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")):
                found.append(pid)
    below = descendants(found) if found else {}
    return below | {process: state for pid in found for process, state in state_of(pid).items()}


def left_of_command(command: str) -> list[int]:
    """Wait until the processes of all systems of a command have ended, and kill what has not; return what is left."""
    end = time.monotonic() + GRACE_SECONDS + KILL_SECONDS
    while marked(command) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    left = {process.pid for process in _SURVIVORS if state_of(process.pid).get(process, "Z") not in ENDED}
    return sorted(left.union(end_all(lambda: marked(command))))


class ProcessMemory(MemorySystem):
    """The memory system `name`, run by another Python.

    Args:
        variables: further environment variables that its process may see.
        truth: the true records by label, for a system that may see them.
        is_own: whether it is a user's own system, which sees the environment without secrets.
    """

    survives_loops = True  # the event loop of the next batch can go on using its process

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        python: Path,
        variables: Sequence[str] = (),
        *,
        truth: Mapping[str, str] | None = None,
        is_own: bool = False,
    ) -> None:
        self.name, self.settings, self.python, self.variables = name, settings, python, variables
        self.truth, self.is_own = truth, is_own
        self.can_forget = True  # known once it is set up, as are the next three
        self.can_reopen = False
        self.delay_seconds = 0.0
        self.most_records: int | None = None
        self._process: KeptProcess | None = None
        self._own: frozenset[str] = frozenset()  # the optional methods that the system has
        self._is_settled = True  # nothing was written since the last flush
        self._scrub = Scrubber()

    async def setup(self) -> None:
        try:
            await self._start()
            if "setup" in self._own:
                await self._ask("setup")
        except BaseException:
            await self.teardown()
            raise

    async def reset(self, scope: str) -> None:
        await self._ask("reset", scope)

    async def write(self, item: Item) -> None:
        self._is_settled = False
        await self._ask("write", item.label, item.text)

    async def write_together(self, items: Sequence[Item]) -> None:
        """Let the system write several records at the same time, as far as it waits while it writes."""
        self._is_settled = False
        await self._ask("write_together", *((item.label, item.text) for item in items))

    async def flush(self) -> None:
        if "flush" in self._own:
            await self._ask("flush")
        if not self._is_settled:
            await asyncio.sleep(self.delay_seconds)
        self._is_settled = True

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return self._received(await self._ask("search", query, limit))

    async def read(self, label: str) -> str | None:
        found = await self._ask("read", label)
        return None if found is None else self._scrub.text(found)

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        self._is_settled = False
        await self._ask("observe", [(one.role, one.content) for one in messages], session, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return self._received(await self._ask("recall", question, at, limit))

    async def contents(self) -> Sequence[str] | None:
        held = await self._ask("contents")
        return None if held is None else [self._scrub.text(text) for text in held]

    async def forget(self, label: str) -> None:
        self._is_settled = False
        await self._ask("forget", label)

    async def restart(self, scope: str) -> None:
        """Close the system and open a scope of it again, in a new process."""
        await self.teardown()
        await self.setup()
        await self._ask("reopen", scope)

    async def usage(self) -> MemoryUsage | None:
        if "usage" not in self._own:
            return None
        used = await self._ask("usage")
        return MemoryUsage(**{**used, "warnings": tuple(map(self._scrub.text, used["warnings"]))})

    async def teardown(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if not process.is_busy and "teardown" in self._own:
                with suppress(StoreError, PluginError, TimeoutError):
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await process.ask("teardown")
        finally:
            await process.end()

    async def _start(self) -> None:
        self._scrub = Scrubber.of_environment(os.environ)
        self._process = open_process(self.name, self.python, self.variables, is_own=self.is_own)
        try:
            async with asyncio.timeout(START_SECONDS):
                facts = await load(self._process, self.name)
                self._own, self.can_forget = frozenset(facts.own), facts.forgets
                self.can_reopen = "reopen" in self._own
                self.delay_seconds = float(facts.delay_seconds or 0.0)
                self.most_records = None if facts.most_records is None else int(facts.most_records)
                await self._ask("construct", dict(self.settings), self.truth)
        except (StoreError, TimeoutError, UsageError) as error:
            why = f"not within {START_SECONDS:g} s" if isinstance(error, TimeoutError) else error
            raise StoreError(f"the process of memory {self.name!r} did not start ({why}); run eirkit doctor") from error

    def _received(self, passages: Sequence[str | Sequence[str]]) -> list[str]:
        """Return passages without secrets; those that have ended come as their text and the day."""
        told = (one if isinstance(one, str) else EndedText(*one) for one in passages)
        return [with_text(one, self._scrub.text) for one in told]

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        if self._process is None:
            raise StoreError(f"the process of memory {self.name!r} is not running; call setup first")
        return await self._process.ask(verb, *arguments)


def open_process(name: str, python: Path, variables: Sequence[str] = (), *, is_own: bool) -> KeptProcess:
    """Start the process of a memory system; nothing is loaded yet."""
    seen = (variables_without_secrets if is_own else inherited_variables)(os.environ, variables)
    return KeptProcess(name, python, seen)


async def load(process: KeptProcess, name: str, settings: Mapping[str, Any] | None = None) -> SystemFacts:
    """Load a system in its process and return the facts about it.

    Raises:
        UsageError: there is no such system, or its code cannot be loaded.
    """
    from msgspec import convert  # here, because processes of memory systems import this module without msgspec

    file = name.rpartition(":")[0]
    place = str(locate(file)) if file.endswith(".py") else None
    return convert(await process.ask("load", name, place, dict(settings or {})), SystemFacts)
