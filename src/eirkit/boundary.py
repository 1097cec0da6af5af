"""Calls plug-ins and turns whatever they raise into a PluginError that names the plug-in and the method.

A failure is attributed where the plug-in is called. Errors that are already attributed pass unchanged, so a memory
system whose model fails reports the model's failure. Ctrl-C and cancellation from outside are nobody's failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any, NoReturn, ParamSpec, TypeVar

from eirkit.errors import ModelError, PluginError, Side, SpendCapReached, StoreError, UsageError, describe
from eirkit.registry import USER_MODULE

P = ParamSpec("P")
T = TypeVar("T")

# Errors that are already attributed, and those that only the user can resolve.
_TYPED = (PluginError, ModelError, SpendCapReached, UsageError)


def call(side: Side, method: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return what a plug-in's method or factory returns.

    Raises:
        PluginError: it raised an error of its own, or tried to end the program.
    """
    try:
        return method(*arguments, **named)
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        owner = getattr(method, "__self__", method)
        name = getattr(owner, "__name__", type(owner).__name__)
        attribute(side, name, getattr(method, "__name__", type(method).__name__), error)


def attribute(side: Side, name: str, verb: str, error: BaseException) -> NoReturn:
    """Raise an error of a plug-in's method as a PluginError; attributed errors and interrupts are raised unchanged."""
    if _passes(side, error):
        raise error
    raise PluginError(side, name, verb, describe(error), _place_in_user_file(error)) from error


def guard_verbs(kind: type, side: Side, verbs: Iterable[str]) -> None:
    """Wrap the methods that a class defines so that their errors are attributed; called by `__init_subclass__`."""
    for verb in verbs:
        own = kind.__dict__.get(verb)
        if isinstance(own, classmethod | staticmethod):
            setattr(kind, verb, type(own)(_guarded(side, kind.__name__, own.__func__)))
        elif isinstance(own, FunctionType):
            setattr(kind, verb, _guarded(side, kind.__name__, own))


def _guarded(side: Side, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def verb(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
            attribute(side, name, function.__name__, error)

    return verb


def _passes(side: Side, error: BaseException) -> bool:
    """True for an error that is already attributed or that this plug-in did not cause."""
    if isinstance(error, _TYPED):
        return True
    if isinstance(error, StoreError):
        return side == "memory"
    if isinstance(error, Exception):
        return False
    return isinstance(error, KeyboardInterrupt | GeneratorExit) or _is_cancelled_from_outside(error)


def _is_cancelled_from_outside(error: BaseException) -> bool:
    """True if the current task is being cancelled; a plug-in that raises CancelledError itself has failed."""
    import asyncio  # not needed by commands without an event loop

    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0


def _place_in_user_file(error: BaseException) -> str | None:
    """Return `file.py:line` of the last frame inside a user's `file.py:Name`; used for the location only."""
    trace, place = error.__traceback__, None
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(USER_MODULE):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
