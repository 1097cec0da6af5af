"""What a shell command read and wrote, inferred from its text and its output without running it."""

# Modules that find what a program in a language touches; imported when a run executes such a program.
PROGRAMS = {"python": "eirkit.vestige.shell.python_programs"}
