"""The graph of actions and file states, and what goal-connected work needed at each cut."""
