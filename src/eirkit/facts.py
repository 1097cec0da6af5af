"""The `fact` decorator: frozen, slotted dataclasses whose construction takes half the time.

Sweeps and corpora construct millions of them. A frozen dataclass stores each field through `object.__setattr__`; a fact
is constructed as an unfrozen class with the same slots, which stores fields directly, and then changes its class.
Otherwise it equals `dataclass(frozen=True, slots=True)`, except that it cannot be subclassed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fact(kind: type[T]) -> type[T]:
    """Turn a class into a fact; default factories and `__post_init__` are not supported."""
    made: Any = dataclass(frozen=True, slots=True)(kind)
    made.__init__ = _initializer(made)
    made.__init_subclass__ = classmethod(_refuse)
    closed: type[T] = made
    return closed


def _initializer(kind: type[Any]) -> Callable[..., None]:
    opened = type(f"Open{kind.__name__}", (), {"__slots__": tuple(one.name for one in fields(kind))})
    names: dict[str, Any] = {"turn": object.__setattr__, "opened": opened, "closed": kind}
    parameters, stores = [], []
    for one in fields(kind):
        if one.default_factory is not MISSING or not one.init or one.kw_only:
            name = f"{kind.__name__}.{one.name}"
            raise TypeError(f"{name} is not a plain field; use dataclass(frozen=True, slots=True)")
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
