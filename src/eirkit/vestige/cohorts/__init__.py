"""Statistical analyses of a cohort of runs, one per module; each result says what it does and does not show."""
