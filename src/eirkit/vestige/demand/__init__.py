"""The graph of actions and file states, and what work toward the goal needed at each cut of a run."""
