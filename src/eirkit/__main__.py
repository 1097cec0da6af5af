"""`python -m eirkit`: the same command line where no script is on the path."""

from eirkit.cli import main

main()
