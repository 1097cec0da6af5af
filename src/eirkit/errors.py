"""Every exception that eirkit raises on purpose, with its exit code, and the command that installs an extra.

    EirkitError
    ├── UsageError            wrong usage, configuration or input: exit code 2
    │   ├── UnknownNameError  a name that is not registered; also a LookupError
    │   ├── SpecError         parameters that are invalid or contradictory; also a ValueError
    │   ├── ContractError     a contract that cannot be evaluated
    │   ├── TooLargeError     an exact computation that would take too much memory or time
    │   ├── InputFileError    a file that is missing, malformed or of another format
    │   │   └── UntrustedError  a record names code or a file that the user has not agreed to follow
    │   └── MissingExtraError an optional dependency that is not installed
    ├── InfrastructureError   a server, disk or process failed, not the input or the agent: exit code 1
    │   ├── ModelError        a model gave no usable reply; `kind` says whether a retry can help
    │   └── StoreError        a memory system timed out or returned something invalid
    ├── PluginError           a plug-in raised an error; names the plug-in and the method: exit code 2
    └── SpendCapReached       the next call could exceed the user's spending cap: exit code 1

Every message says what is wrong and ends with what to do about it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

if TYPE_CHECKING:
    from importlib.metadata import Distribution


def install_command(extra: str) -> str:
    """Return the command that installs an extra: into the checkout that eirkit runs from, or from the index."""
    found = _checkout()
    if found is None:
        return f"pip install 'eirkit[{extra}]'"
    return f"pip install {'-e ' * found[1]}'.[{extra}]' in the checkout{f' {found[0]}' if found[0] else ''}"


@cache
def _checkout() -> tuple[str, bool] | None:
    from importlib.metadata import PackageNotFoundError, distribution  # takes as long to load as all else here

    try:
        return checkout_of(distribution("eirkit"))
    except PackageNotFoundError:
        return "", True  # not installed, so the sources themselves are on the path


def checkout_of(installed: Distribution) -> tuple[str, bool] | None:
    """Return the folder that a distribution was installed from, and whether it is editable.

    None if it came from an index or a wheel, or if the folder is gone.
    """
    note = installed.read_text("direct_url.json")
    told = json.loads(note) if note is not None else {}
    if "dir_info" not in told:
        return None
    path = unquote(told["url"]).removeprefix("file://")
    folder = next((one for one in (path, path.lstrip("/")) if Path(one, "pyproject.toml").is_file()), None)
    return None if folder is None else (folder, bool(told["dir_info"].get("editable")))


Side = Literal[
    "memory", "model", "policy", "workload", "format", "compactor"
]  # the families of plug-ins that can fail in a run


class EirkitError(Exception):
    """Base class of all errors that eirkit raises."""

    exit_code = 2

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle would call the constructor with the message alone, which fails for errors that take more arguments.
        # Worker processes send errors to their parent, so ours are rebuilt without the constructor.
        return _rebuild, (type(self), self.args), self.__dict__


def _rebuild(kind: type[EirkitError], arguments: tuple[Any, ...]) -> EirkitError:
    return kind.__new__(kind, *arguments)


class UsageError(EirkitError):
    """The caller can fix this by changing what they passed."""


CLOSE = 0.65  # least similarity of a name that is suggested; 'nope' and 'openai' have 0.6


class UnknownNameError(UsageError, LookupError):
    """A name that is not registered, with the names that are."""

    def __init__(
        self, family: str, name: str, known: Iterable[str], *, meant: str | None = None, listed: str = ""
    ) -> None:
        self.family, self.name, self.known = family, name, tuple(sorted(known))
        near = [meant] if meant is not None else get_close_matches(name, self.known, n=1, cutoff=CLOSE)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"no {family} named {name!r}; {hint}known: {', '.join(self.known) or 'none'}{listed}")


class SpecError(UsageError, ValueError):
    """Parameters that contradict each other or the workload."""


class ContractError(UsageError):
    """A user's contract that raised, is incomplete, or returned something that cannot be compared."""


class TooLargeError(UsageError):
    """An exact computation that is too large; the message gives its size and the limit."""


class InputFileError(UsageError):
    """A file whose content cannot be used; the message names the file and, if known, the line."""


class UntrustedError(InputFileError):
    """A record names code or a file that is followed only if the user trusts who made the record."""


class MissingExtraError(UsageError, ImportError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature, self.extra = feature, extra
        super().__init__(f"{feature} needs an optional dependency: {install_command(extra)}")


class InfrastructureError(EirkitError):
    """A server, store or device failed. Never counted as a wrong answer."""

    exit_code = 1


class ModelError(InfrastructureError):
    """A model that gave no usable reply.

    Args:
        kind: rate-limit | server | timeout | unreachable | dropped | malformed (a retry may succeed) or too-large |
            rejected | unrecorded (a retry will not).
        retry_after_seconds: how long the server asked callers to wait, if it did.
        may_be_billed: whether the provider may charge for the call; None to go by the kind.
    """

    is_adapted = False  # the model has learned from the failure and asks differently the next time

    def __init__(
        self, message: str, kind: str, retry_after_seconds: float | None = None, may_be_billed: bool | None = None
    ) -> None:
        self.kind, self.retry_after_seconds, self.may_be_billed = kind, retry_after_seconds, may_be_billed
        super().__init__(message)


class StoreError(InfrastructureError):
    """A memory system that timed out, is not running, or returned something invalid."""


class PluginError(EirkitError):
    """What a plug-in raised, attributed where it was called; the original error is its `__cause__`.

    Args:
        name: of the plug-in's class or function.
        call: the method that raised.
        reason: what was raised, in one line.
        place: `file.py:line`, if the plug-in is a user's file.
    """

    def __init__(self, side: Side, name: str, call: str, reason: str, place: str | None = None) -> None:
        self.side, self.name, self.call, self.reason, self.place = side, name, call, reason, place
        if place:
            message = f"{place} raised {reason} (in {call} of the {side} {name}); fix the file and run again"
        else:
            message = f"{side} {name} raised {reason} (in {call}); correct it and run again"
        super().__init__(message)


class SpendCapReached(EirkitError):  # noqa: N818 - a stop that the user asked for, not an error
    """The next call could cost more than the user's cap leaves; nothing was sent."""

    exit_code = 1


_LONGEST_REASON = 500  # characters of what others raise


def describe(error: BaseException) -> str:
    """Return an error as one line: the message alone for our errors and assertions, with the type for all others."""
    if isinstance(error, PluginError):
        return f"{error.reason} (raised by {error.call})"
    try:
        said = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the text of a plug-in's error is the plug-in's code too
        said = "its message cannot be read"
    if len(said) > _LONGEST_REASON and not isinstance(error, EirkitError):
        said = f"{said[:_LONGEST_REASON]}…"
    if isinstance(error, EirkitError | AssertionError) and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
