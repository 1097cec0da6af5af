"""`python -m eirkit` and the script `eirkit`: an interrupt during imports ends the program without a traceback."""

from __future__ import annotations

import signal
from importlib import import_module


def start() -> None:
    """Import the command line and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line can say that it was interrupted
    import_module("eirkit.cli").main()


if __name__ == "__main__":
    start()
