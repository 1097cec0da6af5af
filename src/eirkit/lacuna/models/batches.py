"""Batch APIs of providers, which cost half and answer within a day: requests are gathered and sent together.

A run asks one thing at a time, so that a batch holds the next step of every run that is going on. A batch is sent once
no further request has arrived for a while, and its state is asked for until it has ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from eirkit.errors import ModelError
from eirkit.lacuna.models.model import MOST_AT_ONCE

LARGEST_RESULTS = 1 << 30  # bytes of the results of a batch
POLL_SECONDS = 30.0  # between two questions for the state of a batch, unless others are given
_LONGEST_GATHERING = 2.0  # seconds without a further request
_FAILED_POLLS = 20  # in a row, after which a batch is given up: it was paid for, so a busy server is asked again
_LARGEST_INLINE = 15_000_000  # bytes of requests in one job of Google's, which allows 20 MB
_GOOGLE_MILLISECONDS = 300_000  # for a request about a job, which may carry as much
# Codes of google.rpc.Status that are no fault of the server, as HTTP statuses; all others are 500.
_RPC_STATUSES = {3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 12: 400, 16: 401}

Body = Mapping[str, Any]
Texts = Mapping[str, "str | Exception"]  # the body of each response, by the name of its request
Submit = Callable[[Mapping[str, Body]], Awaitable[Texts]]


@dataclass
class BatchRefusalError(Exception):
    """The error response to one request of a batch, with the attributes that the errors of SDKs have."""

    status_code: int
    body: Any

    @property
    def param(self) -> str:
        return str(_error(self.body).get("param") or "")

    @property
    def code(self) -> str:
        return str(_error(self.body).get("code") or "")


def _error(body: Any) -> Mapping[str, Any]:
    found = body.get("error") if isinstance(body, Mapping) else None
    return found if isinstance(found, Mapping) else {}


class BatchedCalls:
    """Gathers the requests of concurrent runs.

    Args:
        submit: sends a batch and returns its results.
        poll_seconds: between two questions for the state of a batch.
    """

    def __init__(self, submit: Submit, poll_seconds: float) -> None:
        self.submit, self.pause = submit, min(poll_seconds, _LONGEST_GATHERING)
        self._waiting: list[tuple[Body, asyncio.Future[str]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathering = False

    async def ask(self, body: Body) -> str:
        """Return the body of the response to one request."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((body, future))
        if not self._gathering:
            self._gathering = True
            task = asyncio.create_task(self._gather())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _gather(self) -> None:
        gathered = 0
        while gathered < min(len(self._waiting), MOST_AT_ONCE):
            gathered = len(self._waiting)
            await asyncio.sleep(self.pause)
        taken, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        self._gathering = False
        asked = {f"r{number}": body for number, (body, _) in enumerate(taken)}
        try:
            found: Texts = await self.submit(asked)
        except Exception as error:  # noqa: BLE001 - vendor code; every request of the batch has this error
            found = dict.fromkeys(asked, error)
        for number, (_, future) in enumerate(taken):
            outcome = found.get(f"r{number}", ModelError("the batch has no result for a request; resume", "server"))
            if future.done():
                continue  # its run was cancelled
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


@contextmanager
def _sent() -> Iterator[None]:
    """Turn any error about a batch that was sent into one that says that it may be billed."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        words = f"the results of a batch that was sent cannot be had ({type(error).__name__}); resume"
        raise ModelError(words, "server", may_be_billed=True) from error


def _unanswered() -> ModelError:
    """Return the failure of a request for which the time of its batch was too short; providers bill none of those."""
    return ModelError("a request of the batch was not answered in time; resume", "server", may_be_billed=False)


async def _ended(
    job: Any, ask: Callable[[str], Awaitable[Any]], state: Callable[[Any], tuple[str, bool]], poll_seconds: float
) -> Any:
    """Return a job once it has ended; a question that fails is asked again.

    Args:
        job: as it was created.
        ask: returns the job with this name.
        state: the name of a job, and whether it has ended.
        poll_seconds: between two questions.
    """
    failed = 0
    while not (named := state(job))[1]:
        await asyncio.sleep(poll_seconds)
        try:
            job, failed = await ask(named[0]), 0
        except Exception:  # vendor code
            failed += 1
            if failed > _FAILED_POLLS:
                raise
    return job


async def openai_batch(client: Any, path: str, asked: Mapping[str, Body], poll_seconds: float) -> Texts:
    """Send a batch to OpenAI's API, as a file, and return its results."""
    url = f"/v1{path}"
    lines = (json.dumps({"custom_id": n, "method": "POST", "url": url, "body": body}) for n, body in asked.items())
    file = ("batch.jsonl", "\n".join(lines).encode(), "application/jsonl")
    uploaded = await client.files.create(file=file, purpose="batch")
    batch = await client.batches.create(input_file_id=uploaded.id, endpoint=url, completion_window="24h")
    over = ("completed", "failed", "expired", "cancelled")
    with _sent():
        batch = await _ended(batch, client.batches.retrieve, lambda one: (one.id, one.status in over), poll_seconds)
    if batch.status == "failed":
        why = [one.message for one in (batch.errors.data if batch.errors else None) or ()]
        raise ModelError(f"the batch failed ({'; '.join(map(str, why))[:200]}); check the model", "rejected")
    found: dict[str, str | Exception] = {}
    for name in (batch.output_file_id, batch.error_file_id):
        if name:
            with _sent():
                content = await client.files.content(name)
            found |= dict(map(_openai_result, _lines(content.text)))
    return found


def _openai_result(line: Mapping[str, Any]) -> tuple[str, str | Exception]:
    name, response = str(line.get("custom_id")), line.get("response")
    if not isinstance(response, Mapping):
        return name, _unanswered()
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        return name, json.dumps(body)
    return name, BatchRefusalError(status if isinstance(status, int) else 500, body)


async def anthropic_batch(client: Any, asked: Mapping[str, Body], poll_seconds: float) -> Texts:
    """Send a batch to Anthropic's API and return its results."""
    requests = [{"custom_id": name, "params": dict(body)} for name, body in asked.items()]
    batch = await client.messages.batches.create(requests=requests)
    ask = client.messages.batches.retrieve
    with _sent():
        batch = await _ended(batch, ask, lambda one: (one.id, one.processing_status == "ended"), poll_seconds)
        text = await client.get(f"/v1/messages/batches/{batch.id}/results", cast_to=str)
    return dict(map(_anthropic_result, _lines(str(text))))


def _anthropic_result(line: Mapping[str, Any]) -> tuple[str, str | Exception]:
    name, result = str(line.get("custom_id")), line.get("result")
    result = result if isinstance(result, Mapping) else {}
    if result.get("type") == "succeeded":
        return name, json.dumps(result.get("message"))
    error = result.get("error")
    if result.get("type") != "errored" or not isinstance(error, Mapping):
        return name, _unanswered()
    kind = _error(error).get("type")
    return name, BatchRefusalError(400 if kind == "invalid_request_error" else 500, error)


async def google_batch(client: Any, model: str, asked: Mapping[str, Body], poll_seconds: float) -> Texts:
    """Send requests to Google's batch API, in as few jobs as their size allows, and return their results.

    Args:
        client: of the SDK.
        model: its name.
        asked: `contents` and `config` of each request.
        poll_seconds: between two questions for the state of a job.
    """
    parts = list(_parts(asked))
    jobs = (_google_job(client, model, part, poll_seconds) for part in parts)
    found: dict[str, str | Exception] = {}
    for part, outcome in zip(parts, await asyncio.gather(*jobs, return_exceptions=True), strict=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        found |= dict.fromkeys(part, outcome) if isinstance(outcome, Exception) else outcome
    return found


def _parts(asked: Mapping[str, Body]) -> Iterator[Mapping[str, Body]]:
    part: dict[str, Body] = {}
    size = 0
    for name, body in asked.items():
        more = len(json.dumps(body))
        if part and size + more > _LARGEST_INLINE:
            yield part
            part, size = {}, 0
        part[name], size = body, size + more
    yield part


async def _google_job(client: Any, model: str, asked: Mapping[str, Body], poll_seconds: float) -> Texts:
    requests = [{"model": model, "metadata": {"key": name}, **body} for name, body in asked.items()]
    ask, config = client.aio.batches.get, {"http_options": {"timeout": _GOOGLE_MILLISECONDS}}
    job = await client.aio.batches.create(model=model, src={"inlined_requests": requests}, config=config)
    with _sent():
        job = await _ended(
            job, lambda name: ask(name=name, config=config), lambda one: (one.name, one.done), poll_seconds
        )
    if job.state.name == "JOB_STATE_FAILED":
        why = job.error.message if job.error else "without a reason"
        raise ModelError(f"the batch failed ({str(why)[:200]}); check the model", "rejected")
    given = (job.dest.inlined_responses if job.dest else None) or []
    keys = [(one.metadata or {}).get("key") for one in given]
    if None in keys and len(given) == len(asked):
        keys = list(asked)  # they come in the order of the requests
    return {str(key): _google_result(one) for key, one in zip(keys, given, strict=True)}


def _google_result(one: Any) -> str | Exception:
    if one.response is not None:
        return str(one.response.model_dump_json(exclude_none=True, exclude={"sdk_http_response", "parsed"}))
    if one.error is None:
        return _unanswered()
    return BatchRefusalError(_RPC_STATUSES.get(one.error.code, 500), {"error": {"message": one.error.message}})


def _lines(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.split("\n"):  # not at other line breaks, which a string of JSON may contain
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue  # what is missing then has no result
        if isinstance(found, Mapping):
            yield found
