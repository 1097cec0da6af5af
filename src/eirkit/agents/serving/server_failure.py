"""Turns exceptions of the SDKs into a `ModelError` with a kind, a remedy and no secrets.

Exceptions are distinguished by status and class name, because the SDK has changed its HTTP package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

from eirkit.agents.serving.scrubber import Scrubber
from eirkit.errors import ModelError

_NO_ROUTE = {
    "ConnectError",
    "ConnectTimeout",
    "ConnectionRefusedError",
    "gaierror",
    "UnsupportedProtocol",
    "InvalidURL",
}
_TOO_LATE = {"TimeoutError", "APITimeoutError", "ReadTimeout", "WriteTimeout", "PoolTimeout"}
_BUSY = {408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_REMEDIES = {
    "rate-limit": "lower the number of connections or resume later",
    "server": "try again later or choose another model",
    "timeout": "raise the timeout or choose a faster model",
    "unreachable": "check the base URL and that the server is running",
    "dropped": "try again; check the server's log if it persists",
    "too-large": "lower max_tokens; a reply of this size is refused",
    "rejected": "check the model's name, the key and the base URL",
}


class BodyTooLarge(Exception):  # noqa: N818 - raised inside the SDK's stream and turned into a ModelError here
    """The response is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response of a server."""

    status: int
    words: str  # scrubbed, one line
    parameter: str  # the rejected parameter, "" if not stated
    code: str
    retry_after_seconds: float | None


def refusal(error: BaseException, scrub: Scrubber) -> Refusal | None:
    """Return the error response behind an exception or its causes, if there is one."""
    stated = [cause for cause in causes(error) if _status(cause) is not None]
    if not stated:
        return None
    error = stated[-1]  # the innermost: wrappers repeat the status, but not the message
    status, body = _status(error) or 0, getattr(error, "body", getattr(error, "details", None))
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]  # the `openai` SDK unpacks it, the others do not
    words = body.get("message", "") if isinstance(body, Mapping) else body
    headers = getattr(getattr(error, "response", None), "headers", {})
    parameter, code = (str(getattr(error, name, None) or "") for name in ("param", "code"))
    return Refusal(status, scrub.excerpt(str(words or "")), parameter, code, retry_after(headers))


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error response; Google's SDK calls it the code."""
    named = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((status for status in named if isinstance(status, int) and 300 <= status < 600), None)


def model_error(error: BaseException, where: str, scrub: Scrubber) -> ModelError:
    """Return an exception of the SDK as a ModelError."""
    for cause in causes(error):
        if isinstance(cause, ModelError):  # ours, perhaps wrapped by the SDK on its way out
            return ModelError(f"{where}: {cause}", cause.kind, cause.retry_after_seconds)
    said = refusal(error, scrub)
    if said is not None:
        kind = _kind_of_status(said)
        what = f"status {said.status}" + (f" ({said.words})" if said.words else "")
        return ModelError(f"{where}: {what}; {_REMEDIES[kind]}", kind, said.retry_after_seconds)
    names = [type(cause).__name__ for cause in causes(error)]
    kind = _kind_of_names(set(names))
    return ModelError(f"{where}: {kind} ({names[-1]}); {_REMEDIES[kind]}", kind)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what led to it, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _kind_of_status(said: Refusal) -> str:
    if said.status == 429:
        # An account without credit also answers 429, and waiting does not help.
        return "rejected" if said.code == "insufficient_quota" else "rate-limit"
    return "server" if said.status in _BUSY else "rejected"


def _kind_of_names(names: set[str]) -> str:
    if "BodyTooLarge" in names:
        return "too-large"
    if names & _NO_ROUTE:
        return "unreachable"
    return "timeout" if names & _TOO_LATE else "dropped"


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Return the wait that a server asks for in its headers: milliseconds, seconds, or until a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (stated := headers.get("retry-after")) is None:
            return None
        elif str(stated).strip()[:1].isdigit():
            seconds = float(stated)
        else:
            seconds = (parsedate_to_datetime(stated) - parsedate_to_datetime(headers["date"])).total_seconds()
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return max(0.0, seconds) if isfinite(seconds) else None
