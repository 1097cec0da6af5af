"""Analysis of finished runs: causes of wrong steps, fates of needed records, behaviour, statistics. Runs nothing."""
