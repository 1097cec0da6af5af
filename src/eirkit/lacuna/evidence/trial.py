"""Runs many sessions with one model, a few at a time: sessions come in; traces go out, or why there is none."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Sequence

from eirkit.errors import InfrastructureError, SpendCapReached, UsageError
from eirkit.lacuna.blame import side_of
from eirkit.lacuna.driver import drive
from eirkit.lacuna.model import Model, ModelOptions
from eirkit.lacuna.serving.metered import make_metered
from eirkit.lacuna.serving.scrubbing import Scrubber
from eirkit.lacuna.session import Session
from eirkit.lacuna.telemetry import Trace

Result = Trace | InfrastructureError  # a run that the world broke is lost, never wrong


def run_trials(model: str, options: ModelOptions, sessions: Sequence[Session]) -> list[Result]:
    """Drive every session to its end with one model, made for the occasion and closed again."""
    made = make_metered(model, options)
    made.preflight()
    return asyncio.run(_run_and_close(made, options.connections, sessions))


def losses(results: Iterable[Result]) -> dict[str, int]:
    """Return how many runs were lost to each failure, in its own words."""
    return dict(Counter(str(result) for result in results if isinstance(result, InfrastructureError)))


async def _run_and_close(model: Model, connections: int, sessions: Sequence[Session]) -> list[Result]:
    turns = asyncio.Semaphore(max(1, connections))
    scrub = Scrubber.of_environment(os.environ)

    async def one(session: Session) -> Result:
        async with turns:
            try:
                return await drive(session, model)
            except InfrastructureError as error:
                return error
            except (UsageError, SpendCapReached):
                raise
            except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; its run is lost, the others are not
                words = scrub.text(f"{type(error).__name__}: {error}")
                return InfrastructureError(f"{side_of(error)} failed: {words}; fix it and run again")

    try:
        return list(await asyncio.gather(*map(one, sessions)))
    finally:
        await model.close()
