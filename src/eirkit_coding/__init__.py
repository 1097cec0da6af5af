"""Coding agents: session formats, the week, the guard, and compactors."""
