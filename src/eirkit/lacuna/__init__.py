"""LACUNA: generated tasks with known dependencies, agents with controlled access, and why steps are wrong."""

# What a session shows of a memory, and what readers of results say about it.
SEARCH_LIMIT = 5  # passages that a search asks for, unless the profile of the system has a number of its own
LONGEST_PASSAGE = 2_000  # characters of one passage
MOST_PASSAGES = 50  # shown of a search of a system that returns all that it has found
FLOOD = 10 * SEARCH_LIMIT * LONGEST_PASSAGE  # characters of one search, ten times what can be shown
