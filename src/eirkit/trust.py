"""Whether code is run and files are opened because a record names them; commands that read results do so if asked to.

Whatever loads code or opens a file by a name that may stand in a record calls `refuse_untrusted` first. Names that the
user gave are trusted, so nothing is refused outside `records_read`. What is only read needs no packages to run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from eirkit.errors import UntrustedError

_trusts: ContextVar[bool] = ContextVar("eirkit_trusts", default=True)
_reads: ContextVar[bool] = ContextVar("eirkit_reads", default=False)


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
