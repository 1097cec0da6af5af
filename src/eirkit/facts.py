"""Frozen, slotted dataclasses that are made in half the time, for what a sweep or a corpus makes by the million.

A frozen dataclass stores each field by asking `object.__setattr__` for it by name. While one of these is made it is of
an open class with the same slots, which stores directly. In everything else they are what
`dataclass(frozen=True, slots=True)` makes, save that none can be derived from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fact(kind: type[T]) -> type[T]:
    """Make a class a fact; its fields may have defaults, but no factories and nothing to do after they are stored."""
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
            raise TypeError(f"{kind.__name__}.{one.name} is more than a value; use dataclass(frozen=True, slots=True)")
        default = "" if one.default is MISSING else f"=default_{one.name}"
        parameters.append(one.name + default)
        stores.append(f"self.{one.name} = {one.name}")
        names[f"default_{one.name}"] = one.default
    body = "; ".join(["turn(self, '__class__', opened)", *stores, "self.__class__ = closed"])
    exec(f"def __init__(self, {', '.join(parameters)}): {body}", names)  # what dataclasses does as well
    made: Callable[..., None] = names["__init__"]
    made.__qualname__, made.__module__ = f"{kind.__qualname__}.__init__", kind.__module__
    return made


def _refuse(kind: type[Any]) -> NoReturn:
    raise TypeError(f"{kind.__name__} derives from a fact; use dataclass(frozen=True, slots=True) for its base")
