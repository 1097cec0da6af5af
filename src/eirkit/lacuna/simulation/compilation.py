"""Kernels as machine code where numba is installed, as plain Python where not: the same results, at another speed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import TypeVar

Kernel = TypeVar("Kernel", bound=Callable[..., object])


@cache
def has_compiler() -> bool:
    """Return whether kernels are compiled; say once what to install if not."""
    try:
        import numba  # noqa: F401
    except ImportError:
        logging.getLogger("eirkit").warning(
            "numba is not installed, so simulation is interpreted; pip install 'eirkit[fast]' is some 100 times faster"
        )
        return False
    return True


def compiled(kernel: Kernel) -> Kernel:
    """Return the kernel, compiled if possible; the machine code is kept between processes where a folder allows it."""
    return _machine_code(kernel) if has_compiler() else kernel  # type: ignore[return-value]


@cache
def _machine_code(kernel: Callable[..., object]) -> Callable[..., object]:
    import numba

    try:
        made: Callable[..., object] = numba.njit(cache=True)(kernel)
    except RuntimeError:  # no folder in which numba may keep the code
        made = numba.njit(kernel)
    return made
