"""Recorded agent runs: what each action read and wrote, what later work needed, and what was lost."""
