"""Runs many sessions with one model, a few at a time: trials come in; traces go out, or why there is none.

A bench may have a purse, from which all its models pay, and a log, which keeps every trial that came to its end, so
that one that is run again is read back instead.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eirkit.agents.driver import drive, wait_for
from eirkit.agents.model import Model, ModelOptions, close_model
from eirkit.agents.serving.metered import Metered
from eirkit.agents.serving.model_factory import renderer_of, runs_at_once
from eirkit.agents.serving.scrubbing import Scrubber
from eirkit.agents.session import Session
from eirkit.agents.stores.memory_factory import MemoryPlan
from eirkit.agents.stores.pool import Memories
from eirkit.agents.telemetry import Trace
from eirkit.errors import InfrastructureError, PluginError, SpendCapReached, UsageError, describe
from eirkit.runs.budget import Budget, is_scripted
from eirkit.tasks.task import TaskInstance

Result = Trace | InfrastructureError  # a run that the world broke is lost, never wrong
_Stop = UsageError | SpendCapReached  # nobody's failure: the user's own limit or input


@dataclass(frozen=True, slots=True)
class Trial:
    """One session that is to be run."""

    what: Mapping[str, Any]  # plain data that tells it from all others of its model
    session: Session
    memory: MemoryPlan | None = None  # the external system behind the session
    task: TaskInstance | None = None  # for a memory that is made of the truth


class Bench(Protocol):
    """Where trials are run."""

    def run(self, model: str, options: ModelOptions, trials: Sequence[Trial]) -> list[Result]: ...


class TrialLog(Protocol):
    """Where trials are kept."""

    def find(self, model: str, options: ModelOptions, trial: Trial) -> Trace | None:
        """Return what was kept of a trial."""
        ...

    def keep(self, model: str, options: ModelOptions, trial: Trial, result: Result) -> None: ...


class Workbench:
    """Asks the models themselves.

    Args:
        observe: told after every trial how many of the model's have ended, and of how many.
    """

    def __init__(
        self,
        purse: Budget | None = None,
        log: TrialLog | None = None,
        observe: Callable[[int, int], None] = lambda ended, planned: None,
    ) -> None:
        self.purse, self.log, self.observe = purse or Budget(), log, observe
        self._scrub = Scrubber.of_environment(os.environ)

    def run(self, model: str, options: ModelOptions, trials: Sequence[Trial]) -> list[Result]:
        """Drive every session to its end with one model, made for the occasion and closed again.

        Raises:
            SpendCapReached: what was under way has ended, and is kept where there is a log.
        """
        made, renderer = self.purse.make(model, options), renderer_of(model, options)
        for trial in trials:
            trial.session.renderer = renderer
        found = [None if self.log is None else self.log.find(model, options, trial) for trial in trials]
        left = [trial for trial, trace in zip(trials, found, strict=True) if trace is None]

        def keep(trial: Trial, result: Result) -> None:
            if self.log is not None:
                self.log.keep(model, options, trial, result)

        at_once = made.at_most if isinstance(made, Metered) else runs_at_once(made, options)
        if is_scripted(made) and any(trial.memory for trial in left):
            at_once = 1  # nobody waits for a script, and every run at a time would start a store of its own
        fresh = iter(wait_for(self._run_and_close(made, at_once, left, keep)))
        return [next(fresh) if trace is None else trace for trace in found]

    async def _run_and_close(
        self, model: Model, at_once: int, trials: Sequence[Trial], keep: Callable[[Trial, Result], None]
    ) -> list[Result]:
        turns, stops = asyncio.Semaphore(at_once), list[_Stop]()
        idle: list[Memories] = []  # those of runs that have ended; a run takes one to itself
        ended = 0

        async def one(trial: Trial) -> Result:
            nonlocal ended
            async with turns:
                if stops:
                    raise stops[0]
                memories = idle.pop() if idle else Memories(self._model_of_memory)
                try:
                    result = await self._drive(trial, model, memories)
                except (UsageError, SpendCapReached) as stop:
                    stops.append(stop)
                    raise
                finally:
                    idle.append(memories)
                keep(trial, result)
                ended += 1
                self.observe(ended, len(trials))
                return result

        try:
            outcomes = await asyncio.gather(*map(one, trials), return_exceptions=True)
        finally:
            for memories in idle:
                await memories.close()
            await close_model(model)
        for outcome in stops or outcomes:
            if not isinstance(outcome, Result):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, Result)]

    def _model_of_memory(self, string: str) -> Model:
        return self.purse.make(string, ModelOptions())

    async def _drive(self, trial: Trial, model: Model, memories: Memories) -> Result:
        try:
            if trial.memory is None or trial.task is None:
                return await drive(trial.session, model)
            scope = "-".join([str(trial.what.get("arm", "trial")), str(trial.task.spec.seed)])
            async with memories.scope(trial.memory, scope, trial.task) as memory:
                return await drive(trial.session, model, memory, memory_seconds=trial.memory.seconds)
        except InfrastructureError as error:
            return error
        except (UsageError, SpendCapReached):
            raise
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; its run is lost, the others are not
            words = self._scrub.excerpt(describe(error))
            side = error.side if isinstance(error, PluginError) else "harness"
            return InfrastructureError(f"{side} failed: {words}; fix it and run again")


def run_trials(model: str, options: ModelOptions, sessions: Sequence[Session]) -> list[Result]:
    """Drive sessions with one model; nothing is kept and nothing is capped."""
    return Workbench().run(model, options, [Trial({}, session) for session in sessions])


def losses(results: Iterable[Result]) -> dict[str, int]:
    """Return how many runs were lost to each failure, in its own words."""
    return dict(Counter(str(result) for result in results if isinstance(result, InfrastructureError)))
