"""Finds plug-ins by name, module or file; refuses names in records that the user has not agreed to follow.

A plug-in is a built-in, an entry point of another package, `module:Name` or `path/file.py:Name`. It is imported
when its name is first used, so a command loads the plug-ins it needs and no others.

Whatever loads code or opens a file by a name that may stand in a record calls `refuse_untrusted` first. Names that the
user gave are trusted, so nothing is refused outside `records_read`. What is only read needs no packages to run it.
"""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

from eirkit import extensions
from eirkit.errors import (
    InputFileError,
    ModelError,
    PluginError,
    Side,
    SpendCapReached,
    StoreError,
    UnknownNameError,
    UntrustedError,
    UsageError,
    describe,
)
from eirkit.streams import PrintsOnStderr

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


T = TypeVar("T")

USER_MODULE = "eirkit_user_"  # prefix of the module names given to users' files
# Loading third-party code may raise anything, and a script without a main guard may even exit.
_FOREIGN = (Exception, SystemExit)
_trusts: ContextVar[bool] = ContextVar("eirkit_trusts", default=True)
_reads: ContextVar[bool] = ContextVar("eirkit_reads", default=False)


def references_in(coordinates: Mapping[str, Any]) -> list[str]:
    """Return what runs code when it is looked up, of a grid of a suite, or of the task, model or access of a run."""
    axes = ("workload", "policy", "memory", "condition", "model")
    named = [one for axis in axes for one in _texts(coordinates.get(axis)) if _runs_code(axis, one)]
    given = _texts([coordinates.get("memory_options"), coordinates.get("memory_settings")])
    return [*named, *(one for one in given if ":" in one and one.rpartition(":")[2].isidentifier())]


def _runs_code(axis: str, name: str) -> bool:
    """True for a reference; names of models may have a colon of their own, as in `ollama/llama3:8b`."""
    return ":" in (name.partition("/")[0] if axis == "model" and ".py:" not in name else name)


def _texts(value: object) -> list[str]:
    """Return all texts in a JSON value."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [value] if isinstance(value, str) else [text for one in inner for text in _texts(one)]


_moved: dict[str, Path] = {}  # paths recorded in another working directory, and where the files are now


def relocate(name: str, place: Path) -> None:
    """Load the file with this recorded path from another place from now on."""
    _moved[name] = place


def find_sources(sources: Mapping[str, str], places: Mapping[str, str], folder: Path) -> None:
    """Make plug-in files loadable from another working directory, if the records that name them are trusted.

    Args:
        sources: SHA-256 of each file, by its recorded path.
        places: paths of the files as seen from the folder.
    """
    for path, place in places.items() if is_trusted() else ():
        elsewhere, here = folder / place, Path(path)
        if not (here.is_file() and file_sha256(here) == sources.get(path)) and elsewhere.is_file():
            relocate(path, elsewhere.resolve())


def file_sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def locate(name: str) -> Path:
    """Return where the file with this recorded path is now."""
    return _moved.get(name, Path(name))


def load_object(reference: str, family: str = "object") -> Any:
    """Import what `package.module:Name` or `path/file.py:Name` refers to; the module runs once."""
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise UsageError(f"{reference!r} is not a reference; write package.module:Name or path/file.py:Name")
    refuse_untrusted(reference)
    # A plug-in that prints while it is loaded must not corrupt a JSON document on stdout.
    with PrintsOnStderr():
        module = _load_file(locate(module_name)) if module_name.endswith(".py") else _load_module(module_name)
    try:
        return getattr(module, attribute)
    except AttributeError:
        public = (name for name in vars(module) if not name.startswith("_"))
        raise UnknownNameError(f"{family} in {module_name}", attribute, public) from None


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except _FOREIGN as error:
        cause = f"{type(error).__name__}: {error}"
        raise UsageError(f"cannot import {name!r} ({cause}); install or fix it, or give path/file.py:Name") from error


def _load_file(path: Path) -> ModuleType:
    try:
        place, state = path.resolve(), path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise InputFileError(f"cannot read {path}; give an existing path/file.py:Name") from error
    # One module per file and content: an unchanged file is not run again, an edited one is.
    name = f"{USER_MODULE}{path.stem}_{_digest(place)}_{_digest(state.st_mtime_ns, state.st_size)}"
    if name not in sys.modules:
        _run_file(name, place)
    return sys.modules[name]


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:12]


class _UserFileLoader(SourceFileLoader):
    """Loads a user's file without writing a compiled one beside it, where it may be a submission of somebody."""

    def set_data(self, *given: Any, **more: Any) -> None:
        """Write nothing."""


def _run_file(name: str, path: Path) -> None:
    specification = importlib.util.spec_from_file_location(name, path, loader=_UserFileLoader(name, str(path)))
    if specification is None or specification.loader is None:
        raise InputFileError(f"{path} cannot be loaded as Python; give a .py file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look up their own module while the file runs
    try:
        specification.loader.exec_module(module)
    except _FOREIGN as error:
        del sys.modules[name]
        raise InputFileError(f"{path} raised {type(error).__name__}: {error}; fix the file and run again") from error


class Registry(Generic[T]):
    """The plug-ins of one family by name, those of other packages included."""

    def __init__(self, family: str, *, group: str, package: str, table: str = "PLUGINS") -> None:
        self.family = family
        self.group = group
        self.package, self.table = package, table  # package and name of the table of built-ins and their modules
        self._known: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Register the decorated plug-in under `name`."""

        def register(plugin: T) -> T:
            home = self._built_in().get(name, plugin.__module__)
            present = self._known.get(name)
            # A second registration of the same definition is a reloaded module or an edited file.
            taken = present is not None and _defined_at(present) != _defined_at(plugin)
            if taken or home != plugin.__module__:
                raise UsageError(f"another {self.family} is already named {name!r}; rename one of them")
            self._known[name] = plugin
            return plugin

        return register

    def lend(self, name: str, plugin: T) -> None:
        """Register a plug-in of this process alone, such as a class of a notebook, under `Name@digest`."""
        self._known[name] = plugin

    def name_of(self, plugin: object) -> str | None:
        """Return the name of a plug-in that is loaded; None if it has none."""
        return next((name for name, known in self._known.items() if known is plugin), None)

    def __contains__(self, name: str) -> bool:
        """True if a plug-in has this name; the installed packages are searched only for names that are not built in."""
        return self.is_at_hand(name) or bool(_entry_points(group=self.group, name=name))

    def is_at_hand(self, name: str) -> bool:
        """True if a plug-in of this name is built in or loaded; installed packages are not searched."""
        return name in self._known or name in self._built_in()

    def home(self, name: str) -> str | None:
        """Return the module that defines a built-in plug-in; None for others."""
        return self._built_in().get(name)

    def names(self) -> list[str]:
        """All names, sorted; no plug-in is loaded."""
        return sorted({*self._built_in(), *self._known, *(point.name for point in _entry_points(group=self.group))})

    def is_foreign(self, name: str) -> bool:
        """True if a plug-in comes from a user's file or another package, and not from here or the running program."""
        module, colon, _ = name.rpartition(":")
        if colon:
            return module.split(".")[0] not in extensions.OURS
        return name not in self._built_in() and bool(_entry_points(group=self.group, name=name))

    def loaded(self) -> list[str]:
        """The names of the plug-ins that are already loaded, sorted."""
        return sorted(self._known)

    def get(self, name: str) -> T:
        """Return the plug-in with this name or at this `module:Name`; built-ins win over entry points."""
        if name not in self._known and (home := self._built_in().get(name)) is not None:
            importlib.import_module(home)
        if name in self._known:
            return self._known[name]
        if ":" in name:
            plugin: T = load_object(name, self.family)
            return plugin
        if "@" in name:
            own = name.partition("@")[0]
            raise UsageError(f"{own} was defined in a notebook or script; give the class again to eirkit.run")
        self._known[name] = self._from_entry_point(name)
        return self._known[name]

    def _built_in(self) -> Mapping[str, str]:
        plugins: Mapping[str, str] = getattr(importlib.import_module(self.package), self.table, {})
        added = extensions.PLUGINS.get(self.group)
        return plugins if added is None else {**plugins, **added}

    def _from_entry_point(self, name: str) -> T:
        points = {point.value: point for point in _entry_points(group=self.group, name=name)}
        if not points:
            raise UnknownNameError(self.family, name, self.names())
        if len(points) > 1:
            raise UsageError(
                f"{self.family} {name!r} comes from {' and '.join(sorted(map(_origin, points.values())))}; remove one"
            )
        (point,) = points.values()
        try:
            with PrintsOnStderr():
                plugin: T = point.load()
        except _FOREIGN as error:
            cause = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"{self.family} {name!r} of {_origin(point)} cannot be loaded ({cause}); fix or uninstall it"
            ) from error
        return plugin


def _defined_at(plugin: object) -> tuple[str, str]:
    module = str(getattr(plugin, "__module__", ""))
    if module.startswith(USER_MODULE):
        module = module.rpartition("_")[0]  # without the digest of the file's content
    return module, str(getattr(plugin, "__qualname__", id(plugin)))


def _entry_points(group: str, name: str | None = None) -> EntryPoints:
    points = _installed(tuple(sys.path))
    return points.select(group=group) if name is None else points.select(group=group, name=name)


@cache
def _installed(path: tuple[str, ...]) -> EntryPoints:
    """Return the entry points of all packages on a path, which are hundreds of files to read."""
    from importlib.metadata import EntryPoints, distributions  # as slow to load as all else here, and rarely needed

    found = {package.name: package for package in reversed(list(distributions(path=list(path))))}
    return EntryPoints(point for package in found.values() for point in package.entry_points)


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name if point.dist else 'an unknown package'} ({point.value})"


P = ParamSpec("P")

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
    raise PluginError(side, name, verb, describe(error), place_in_user_file(error)) from error


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
    if isinstance(error, KeyboardInterrupt):
        return not _interrupts_cancel()
    return isinstance(error, GeneratorExit) or _is_cancelled_from_outside(error)


def _interrupts_cancel() -> bool:
    """True where Ctrl-C raises nothing here: a KeyboardInterrupt is then the plug-in's own.

    Signals are delivered to the main thread only. An event loop replaces the handler for its time and cancels the main
    task; a second Ctrl-C does raise KeyboardInterrupt, but by then the task is being cancelled. A program that was
    started in the background by a script ignores Ctrl-C altogether.
    """
    import asyncio  # not needed by commands without an event loop

    if threading.current_thread() is not threading.main_thread():
        return True
    handler = signal.getsignal(signal.SIGINT)
    if handler in (signal.SIG_IGN, signal.SIG_DFL):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return False
    return handler is not signal.default_int_handler and (task is None or task.cancelling() == 0)


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


def place_in_user_file(error: BaseException) -> str | None:
    """Return `file.py:line` of the last frame inside a user's `file.py:Name`; used for the location only."""
    trace, place = error.__traceback__, None
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(USER_MODULE):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


@contextmanager
def records_read(*, plugins: bool) -> Iterator[None]:
    """Refuse, unless `plugins`, to run code and to open files that are named by what is read in this context.

    What is refused outside stays refused inside. Another thread or process has a context of its own.
    """
    before, outside = _trusts.set(_trusts.get() and plugins), _reads.set(True)
    try:
        yield
    finally:
        _trusts.reset(before)
        _reads.reset(outside)


def refuse_untrusted(name: object, what: str = "code") -> None:
    """Raise UntrustedError for a name of code or of a file while records are read without trust in them."""
    if not _trusts.get():
        verb = "run" if what == "code" else "open"
        raise UntrustedError(
            f"{str(name)[:120]} is {what} that the records name; add --plugins to {verb} it, if you trust who made them"
        )


def is_only_read() -> bool:
    """Return whether records are read: what they name was run elsewhere, and need not be installed here."""
    return _reads.get()


def is_trusted() -> bool:
    """Return whether names in what is read may be followed."""
    return _trusts.get()
