"""Analysis of finished runs: causes of wrong steps, fates of needed records, behavior, statistics. Runs nothing."""
