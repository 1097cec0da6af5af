"""`python -m eirkit` and the script `eirkit`: an interrupt during imports ends the program without a traceback."""

import os
import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line can say that it was interrupted
# Before numpy is loaded. The matrices of an embedding are small, and threads that multiply them wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from eirkit.cli import main

if __name__ == "__main__":
    main()
