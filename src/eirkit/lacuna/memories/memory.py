"""The memory protocol: methods, profiles and requirements of external systems, and how much a search may return.

Systems receive labels and text only; they have no access to prompts, parsing and scoring. See docs/add-a-memory.md.
"""

from __future__ import annotations

import ast
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.lacuna import FLOOD as FLOOD
from eirkit.lacuna import LONGEST_PASSAGE as LONGEST_PASSAGE
from eirkit.lacuna import SEARCH_LIMIT as SEARCH_LIMIT
from eirkit.lacuna.models.message import Message
from eirkit.registry import Registry, load_object, locate

Asked = Literal["model", "embedding"]  # what a system can request from its endpoint
Weights = Literal["minilm"]
_BOUND = re.compile(r"(>=|<)(\d+)\.(\d+)")
_PYTHON = re.compile(r"(>=|<)\d+\.\d+(,(>=|<)\d+\.\d+)*")


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """A call that a session makes to the external memory."""

    verb: Literal["write", "forget", "search", "observe", "recall"]
    text: str  # the record to write, the label to forget, the query, what was said, or the question
    steps: tuple[int, ...] = ()  # steps whose record is written or searched for
    messages: tuple[Message, ...] = ()  # to observe
    session: str = ""  # in which they were said
    at: str = ""  # the day of the session or of the question, as 2031-01-06
    check: tuple[int, ...] = ()  # steps whose record was written since the last search, to be looked up after this one


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """What the memory returned: nothing for a write, passages for a search, best first."""

    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One record as a memory system receives it."""

    label: str  # such as A_7, without zeros; a later record with the same label replaces the earlier one
    text: str  # such as A_07 = 0042, as agents write it: labels and values padded to the task's width


def label_of(step: int) -> str:
    """Return the label of a step as memory systems see it, without padding."""
    return f"A_{step}"


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """What a system holds in its scope, and what its own model calls cost since `reset`; None means unknown."""

    records: int | None = None
    bytes: int | None = None  # of the store: on disk, or of the texts in memory
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    warnings: tuple[str, ...] = ()  # of the system's own code, each once


OWN_NUMBER = "eirkit's own number"  # of passages, where no vendor's default holds
AS_DOCUMENTED, STORE_ONLY = "as-documented", "store-only"


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to use a system: what of it is in use, and what is not, with the reason."""

    on: str
    off: str
    passages: int | None = SEARCH_LIMIT  # that each search asks for; None: all that the system returns
    passages_from: str = OWN_NUMBER  # who chose that number
    recall_writes: bool = False  # whether a recall may change what is held, as where a model with its tools answers it


@dataclass(frozen=True, slots=True)
class Requirements:
    """Everything that a memory system needs to run.

    `eirkit doctor`, `doctor --install`, error messages and the environment of its process are derived from it. A system
    with `packages` runs in a separate process.
    """

    packages: tuple[str, ...] = ()  # modules that must be importable
    installs: tuple[tuple[str, ...], ...] = ()  # arguments of pip install, one call each
    python: str = ""  # versions that the packages support, such as ">=3.11,<3.14"
    node: tuple[str, ...] = ()  # packages of npm, as NAME@VERSION
    endpoint: tuple[Asked, ...] = ()  # what it requests from the OpenAI-compatible URL passed as `endpoint`
    variables: tuple[str, ...] = ()  # environment variables that its process may see; all others are withheld
    services: tuple[str, ...] = ()  # servers that it can use and eirkit does not start, described in words
    weights: tuple[Weights, ...] = ()  # model weights that it loads in this process

    def __post_init__(self) -> None:
        for field, known in (("endpoint", get_args(Asked)), ("weights", get_args(Weights))):
            for name in getattr(self, field):
                if name not in known:
                    raise UnknownNameError(f"requirement in {field}", str(name), known)
        if self.python and not _PYTHON.fullmatch(self.python):
            raise UsageError(f"python is {self.python!r}; write the versions as in '>=3.11,<3.14'")

    def supports(self, version: tuple[int, int]) -> bool:
        """True if the packages support a version of Python."""
        bounds = [(sign, (int(major), int(minor))) for sign, major, minor in _BOUND.findall(self.python)]
        return all(version >= bound if sign == ">=" else version < bound for sign, bound in bounds)


class MemorySystem(ABC):
    """One external memory, used by one run at a time. `reset`, `write`, `search` and `read` must be written.

    Subclassing is optional: any class with the same methods works. A method may be a plain function, which is then
    called on a separate thread.
    """

    requirements: ClassVar[Requirements] = Requirements()
    profiles: ClassVar[Mapping[str, Profile]] = {}  # what its setting `profile` may be
    recall_writes: ClassVar[bool] = False  # as that of a profile, for systems without profiles

    @classmethod
    def requirements_for(cls, settings: Mapping[str, Any]) -> Requirements:
        """Return what it needs with these settings, for systems whose requirements depend on them."""
        return cls.requirements

    @classmethod
    def profile_for(cls, settings: Mapping[str, Any]) -> str | None:
        """Return the name of the profile that these settings select, by default the first; None if it has none."""
        return str(settings.get("profile") or next(iter(cls.profiles))) if cls.profiles else None

    @classmethod
    def passages_for(cls, settings: Mapping[str, Any]) -> int | None:
        """Return how many passages a search asks for with these settings; None: all that the system returns."""
        profile = cls.profiles.get(cls.profile_for(settings) or "")
        return SEARCH_LIMIT if profile is None else profile.passages

    async def setup(self) -> None:  # noqa: B027 - optional
        """Open the store and start its servers; called once, before anything else."""

    @abstractmethod
    async def reset(self, scope: str) -> None:
        """Start an empty scope that no other run can see."""

    @abstractmethod
    async def write(self, item: Item) -> None:
        """Store a record; a later one with the same label replaces it."""

    async def flush(self) -> None:  # noqa: B027 - optional
        """Wait until everything written can be found."""

    @abstractmethod
    async def search(self, query: str, limit: int) -> Sequence[str]:
        """Return at most `limit` texts, best first."""

    @abstractmethod
    async def read(self, label: str) -> str | None:
        """Return what is stored under a label, by key or by a scan, never by similarity; None if nothing is."""

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        """Take in a conversation as the system's own documentation tells its users; by default, each turn is a record.

        Args:
            session: an identifier of the conversation.
            at: its day, as 2031-01-06.
        """
        for number, message in enumerate(messages, 1):
            await self.write(Item(f"{session}-{number}", f"[{at}] {message.role}: {message.content}"))

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        """Return at most `limit` texts that help to answer a question, best first; by default, those of a search."""
        return await self.search(question, limit)

    async def contents(self) -> Sequence[str] | None:
        """Return all texts that are held, which tells what was lost from what was not found; None if unknown."""
        return None

    async def forget(self, label: str) -> None:
        """Remove a record; needed to limit the system to a number of records."""
        raise UsageError(f"{type(self).__name__} cannot remove a record; {signature_of('forget')!r} is missing")

    async def reopen(self, scope: str) -> None:
        """Open a scope that was written before `teardown`; only for systems whose store outlives it."""
        raise UsageError(f"{type(self).__name__} keeps nothing after teardown; {signature_of('reopen')!r} is missing")

    async def usage(self) -> MemoryUsage | None:
        """Return what is held; None if unknown."""
        return None

    async def teardown(self) -> None:  # noqa: B027 - optional
        """Close and stop everything, also after a failure or an incomplete `setup`."""


class MemoryWrapper(MemorySystem):
    """Base of wrappers: passes every call on to another system."""

    def __init__(self, system: MemorySystem) -> None:
        self.system = system

    @property
    def wrapped_name(self) -> str:
        """The class name of the innermost system, to which errors are attributed."""
        return self.system.wrapped_name if isinstance(self.system, MemoryWrapper) else type(self.system).__name__

    async def setup(self) -> None:
        await self.system.setup()

    async def reset(self, scope: str) -> None:
        await self.system.reset(scope)

    async def write(self, item: Item) -> None:
        await self.system.write(item)

    async def flush(self) -> None:
        await self.system.flush()

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self.system.search(query, limit)

    async def read(self, label: str) -> str | None:
        return await self.system.read(label)

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await self.system.observe(messages, session, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return await self.system.recall(question, at, limit)

    async def contents(self) -> Sequence[str] | None:
        return await self.system.contents()

    async def forget(self, label: str) -> None:
        await self.system.forget(label)

    async def reopen(self, scope: str) -> None:
        await self.system.reopen(scope)

    async def usage(self) -> MemoryUsage | None:
        return await self.system.usage()

    async def teardown(self) -> None:
        await self.system.teardown()


REQUIRED = ("reset", "write", "search", "read")
OPTIONAL = ("setup", "flush", "usage", "forget", "reopen", "teardown", "observe", "recall", "contents")
# Attributes that declared requirements before `Requirements`; they are refused with a hint.
_FORMER = {"packages": "packages", "installs": "installs", "node_installs": "node", "asks": "endpoint"}


def missing_verbs(kind: type) -> list[str]:
    """Return the required methods that a class does not have."""
    abstract: frozenset[str] = getattr(kind, "__abstractmethods__", frozenset())
    return [verb for verb in REQUIRED if verb in abstract or not callable(getattr(kind, verb, None))]


def can_forget(kind: type) -> bool:
    """True if a memory system can remove a record."""
    return getattr(kind, "forget", MemorySystem.forget) is not MemorySystem.forget


def can_reopen(kind: type) -> bool:
    """True if what a memory system holds outlives `teardown`."""
    return getattr(kind, "reopen", MemorySystem.reopen) is not MemorySystem.reopen


def requirements_of(kind: type, settings: Mapping[str, Any] | None = None) -> Requirements:
    """Return what a memory system needs with these settings, or by default.

    Raises:
        UsageError: it declares its requirements in any other way than by `requirements`.
    """
    declared: object = getattr(kind, "requirements", Requirements())
    if not isinstance(declared, Requirements):
        raise UsageError(f"requirements of {kind.__name__} is not a Requirements object; see docs/add-a-memory.md")
    for former, field in _FORMER.items():
        if declared == Requirements() and hasattr(kind, former):
            raise UsageError(
                f"{kind.__name__} declares `{former}`, which has no effect; "
                f"write requirements = Requirements({field}=…)"
            )
    if settings is None or not hasattr(kind, "requirements_for"):
        return declared
    needed: Requirements = kind.requirements_for(settings)
    return needed


def profile_of(kind: type, settings: Mapping[str, Any]) -> str | None:
    """Return the name of the profile in which a system is used; None for a system without profiles."""
    chosen: Callable[[Mapping[str, Any]], str | None] | None = getattr(kind, "profile_for", None)
    return None if chosen is None or not getattr(kind, "profiles", None) else chosen(settings)


def passages_of(kind: type, settings: Mapping[str, Any]) -> int | None:
    """Return how many passages a search of a system asks for; None: all that it returns."""
    chosen: Callable[[Mapping[str, Any]], int | None] | None = getattr(kind, "passages_for", None)
    return SEARCH_LIMIT if chosen is None else chosen(settings)


def writes_on_recall(kind: type, settings: Mapping[str, Any]) -> bool:
    """True if a recall of a system may change what it holds, so that each budget needs an ingestion of its own."""
    profile = getattr(kind, "profiles", {}).get(profile_of(kind, settings) or "")
    declared: object = getattr(kind, "recall_writes", False) if profile is None else profile.recall_writes
    if not isinstance(declared, bool):
        raise UsageError(f"recall_writes of {kind.__name__} is {declared!r}; give True or False")
    return declared


def check_profile(kind: type[MemorySystem], profile: str) -> str:
    """Return the name of a profile that a system has.

    Raises:
        UnknownNameError: it has none with this name.
    """
    if profile not in kind.profiles:
        raise UnknownNameError("profile", profile, kind.profiles)
    return profile


def signature_of(verb: str) -> str:
    """Return the declaration of a method of the memory protocol."""
    declared = str(inspect.signature(getattr(MemorySystem, verb))).replace("'", "")  # annotations are strings here
    return f"async def {verb}{declared}"


memories: Registry[type[MemorySystem]] = Registry("memory", group="eirkit.memories", package="eirkit.lacuna.memories")


def find_memory(name: str) -> type[MemorySystem]:
    """Return the memory system with this name or at this `path/file.py:Name`.

    Raises:
        UsageError: it is not a class, or a file without a class name; the message lists the classes of the file.
    """
    if name.endswith(".py"):
        raise UsageError(f"memory {name!r} names a file but no class; write {_classes_of(name)}")
    try:
        kind = memories.get(name)
    except UnknownNameError as error:
        if ":" not in name:
            raise
        module, _, sought = name.rpartition(":")
        raise UnknownNameError(error.family, sought, (one for one in error.known if _is_system(module, one))) from None
    if not isinstance(kind, type):
        raise UsageError(f"memory {name!r} is not a class; name the class of a memory system")
    return kind


def memory_aliases(name: str) -> frozenset[str]:
    """Return the other names of a memory system: its class name, or the names that its class is registered under."""
    if memories.is_foreign(name):
        return frozenset({name, name.rpartition(":")[2]})  # its code is loaded in its own process only
    kind = find_memory(name)
    registered = (one for one in memories.loaded() if memories.get(one) is kind)
    return frozenset({name, kind.__name__, *registered})


def _is_system(module: str, name: str) -> bool:
    """True for a memory system class that the module defines, not for imports, functions and instances."""
    kind = load_object(f"{module}:{name}")
    return isinstance(kind, type) and kind is not MemorySystem and hasattr(kind, "search")


def _classes_of(name: str) -> str:
    """Return references to the classes in a file without running it."""
    try:
        body = ast.parse(locate(name).read_bytes()).body
    except (OSError, ValueError, SyntaxError) as error:
        raise InputFileError(f"cannot read {name} ({error}); give an existing path/file.py:Name") from error
    classes = [f"{name}:{one.name}" for one in body if isinstance(one, ast.ClassDef) and one.name[0] != "_"]
    return " or ".join(classes) or f"{name}:Name, once it has a class with that name"
