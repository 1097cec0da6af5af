"""What a finished run shows: causes of wrong steps, fates of needed records, behaviour, statistics. Runs nothing."""
