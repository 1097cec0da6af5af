"""Compares lines of files; processes of compactors import this, so it needs the standard library only."""

DISTINCTIVE_CHARACTERS = 8  # shorter lines, such as `else:`, occur in too many files to identify one


def is_distinctive(line: str) -> bool:
    """Return whether a line is long enough to identify the text that it comes from."""
    return len(line) >= DISTINCTIVE_CHARACTERS


def normalized_line(line: str) -> str:
    """Return a line with its white space normalized, for comparison."""
    return " ".join(line.split())
