"""LACUNA: generated tasks with known dependencies, agents with controlled access, and why steps are wrong."""

# What a session shows of a memory, and what readers of results say about it.
SEARCH_LIMIT = 5  # passages that a search asks for, unless the profile of the system has a number of its own
LONGEST_PASSAGE = 20_000  # characters of one passage; vendors return whole sessions
FLOOD = 100_000  # characters of one search

# Which model a memory system calls: a setting of the system.
EXTRACTOR = "scripted/extractor"  # model of memory systems, by default
READER = "scripted/reader"  # the same in conversations
MODEL = "model"  # a setting of a system that calls one
RUN_MODEL = "run"  # value of MODEL that selects the model of the run
