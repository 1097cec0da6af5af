"""The commands about the coding agents of this machine: a week of their logs, and the guard of their context."""
