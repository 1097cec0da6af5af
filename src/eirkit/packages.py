"""Imports optional packages on first use, and compiles loops with numba where it is installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any, TypeVar

from eirkit.errors import MissingExtraError, install_command


def require_vendor(module: str, feature: str, extra: str) -> None:
    """Raise MissingExtraError if the package is not installed, without importing it."""
    root, _, rest = module.partition(".")
    found = find_spec(root)
    if found is None or (found.origin is None and rest and find_spec(module) is None):  # many packages share `google`
        raise MissingExtraError(feature, extra)


def load_vendor(module: str, feature: str, extra: str) -> Any:
    """Return the package's module."""
    require_vendor(module, feature, extra)
    return import_module(module)


PATIENCE_SECONDS = 2.0  # do not suggest numba for shorter waits

Kernel = TypeVar("Kernel", bound=Callable[..., object])


@cache
def has_compiler() -> bool:
    """Return whether kernels are compiled."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def hint_if_slow(
    clock: Callable[[], float] = perf_counter, is_compiled: Callable[[], bool] = has_compiler
) -> Iterator[None]:
    """Suggest numba if interpreted work took noticeably long."""
    started = clock()
    yield
    if not is_compiled() and clock() - started > PATIENCE_SECONDS:
        advise()


@cache
def advise() -> None:
    """Suggest numba, at most once per process."""
    logging.getLogger("eirkit").warning(
        f"numba is not installed, so simulation is interpreted, about 100 times slower; run {install_command('fast')}"
    )


def compiled(kernel: Kernel, **how: object) -> Kernel:
    """Return the kernel, compiled if possible; machine code is cached on disk if numba finds a writable folder.

    Args:
        how: further settings of numba.
    """
    return _machine_code(kernel, **how) if has_compiler() else kernel  # type: ignore[return-value]


@cache
def _machine_code(kernel: Callable[..., object], **how: object) -> Callable[..., object]:
    import numba

    jit: Any = numba.njit  # its type stubs lack the keyword settings
    try:
        made: Callable[..., object] = jit(cache=True, **how)(kernel)
    except RuntimeError:  # no writable folder for numba's cache
        made = jit(**how)(kernel)
    return made
