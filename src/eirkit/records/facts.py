"""The `fact` decorator: frozen, slotted dataclasses whose construction takes a fraction of the time.

Sweeps and corpora construct millions of them. A frozen dataclass stores each field through `object.__setattr__`. Where
msgspec is installed (the `fast` extra), a fact is one of its structs, which are filled in C and not searched for
cycles: a fact holds only what was there before it, so it is never part of one. Elsewhere it is made
as an unfrozen class with the same slots, which stores fields directly, and then changes its class. Both equal
`dataclass(frozen=True, slots=True)` for `dataclasses.fields`, `replace` and `asdict`, comparison, hashing among
themselves, pickling and patterns; neither can be subclassed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")

_HAS_MSGSPEC = find_spec("msgspec") is not None  # tests/records/test_facts.py makes facts both ways

# `replace` is that of dataclasses for facts alone, and takes a tenth of its time.
if TYPE_CHECKING or not _HAS_MSGSPEC:
    from dataclasses import replace as replace
else:
    from msgspec.structs import replace as replace


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fact(kind: type[T]) -> type[T]:
    """Turn a class into a fact; default factories and `__post_init__` are not supported."""
    return as_struct(kind) if _HAS_MSGSPEC else as_slots(kind)


def as_struct(kind: type[T]) -> type[T]:
    """Return the fact as a struct of msgspec."""
    from msgspec import defstruct

    left_out = {*kind.__annotations__, "__annotations__", "__dict__", "__weakref__"}
    own = {name: value for name, value in vars(kind).items() if name not in left_out}
    plain = _checked(kind)
    given: list[Any] = [(one.name, Any, *([] if one.default is MISSING else [one.default])) for one in fields(plain)]
    namespace = {**own, "__init_subclass__": classmethod(_refuse)}
    made: Any = defstruct(kind.__name__, given, namespace=namespace, module=kind.__module__, frozen=True, gc=False)
    made.__dataclass_fields__, made.__dataclass_params__ = plain.__dataclass_fields__, plain.__dataclass_params__
    made.__annotations__, made.__qualname__ = kind.__annotations__, kind.__qualname__
    closed: type[T] = made
    return closed


def as_slots(kind: type[T]) -> type[T]:
    """Return the fact as a dataclass with another initialiser."""
    made: Any = _checked(kind)
    made.__init__ = _initializer(made)
    made.__init_subclass__ = classmethod(_refuse)
    closed: type[T] = made
    return closed


def _checked(kind: type[Any]) -> Any:
    made = dataclass(frozen=True, slots=True)(kind)
    for one in fields(made):
        if one.default_factory is not MISSING or not one.init or one.kw_only:
            name = f"{kind.__name__}.{one.name}"
            raise TypeError(f"{name} is not a plain field; use dataclass(frozen=True, slots=True)")
    return made


def _initializer(kind: type[Any]) -> Callable[..., None]:
    opened = type(f"Open{kind.__name__}", (), {"__slots__": tuple(one.name for one in fields(kind))})
    names: dict[str, Any] = {"turn": object.__setattr__, "opened": opened, "closed": kind}
    parameters, stores = [], []
    for one in fields(kind):
        default = "" if one.default is MISSING else f"=default_{one.name}"
        parameters.append(one.name + default)
        stores.append(f"self.{one.name} = {one.name}")
        names[f"default_{one.name}"] = one.default
    body = "; ".join(["turn(self, '__class__', opened)", *stores, "self.__class__ = closed"])
    exec(f"def __init__(self, {', '.join(parameters)}): {body}", names)  # as dataclasses does
    made: Callable[..., None] = names["__init__"]
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    return made


def _refuse(kind: type[Any]) -> NoReturn:
    raise TypeError(f"{kind.__name__} subclasses a fact; use dataclass(frozen=True, slots=True) for its base")
