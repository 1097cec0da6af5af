"""Two folders compared: pairs of like runs, differences with intervals, and what they mean."""
