"""Kernels as machine code where numba is installed, as plain Python where not: the same results, at another speed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, TypeVar

from eirkit.extras import install_command

PATIENCE_SECONDS = 2.0  # a shorter wait is worth no advice

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
    """Say what to install where work was interpreted and somebody had to wait for it."""
    started = clock()
    yield
    if not is_compiled() and clock() - started > PATIENCE_SECONDS:
        advise()


@cache
def advise() -> None:
    """Say what makes simulation fast, once in a process however often somebody waits."""
    logging.getLogger("eirkit").warning(
        f"numba is not installed, so simulation is interpreted; some 100 times faster: {install_command('fast')}"
    )


def compiled(kernel: Kernel, **how: object) -> Kernel:
    """Return the kernel, compiled if possible; the machine code is kept between processes where a folder allows it.

    Args:
        how: further settings of numba.
    """
    return _machine_code(kernel, tuple(how.items())) if has_compiler() else kernel  # type: ignore[return-value]


@cache
def _machine_code(kernel: Callable[..., object], how: tuple[tuple[str, object], ...]) -> Callable[..., object]:
    import numba

    jit: Any = numba.njit  # its stubs know no settings by name
    try:
        made: Callable[..., object] = jit(cache=True, **dict(how))(kernel)
    except RuntimeError:  # no folder in which numba may keep the code
        made = jit(**dict(how))(kernel)
    return made
