"""Statistical estimators on plain arrays, one per module, each returning a frozen result.

Nothing here reads tables or prints. `docs/cohorts.md` says what each estimate does and does not show.
"""
