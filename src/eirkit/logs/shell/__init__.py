"""What a shell command reads and writes, told from its text and its output: a grammar and a table of commands."""
