"""`python -m eirkit` and the script `eirkit`: an interrupt during imports ends the program without a traceback."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the command line can say that it was interrupted

from eirkit.cli import main

if __name__ == "__main__":
    main()
