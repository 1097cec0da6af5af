"""Commands of `eirkit vestige`, which read recorded runs and their analyses."""
