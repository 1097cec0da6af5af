"""Estimators for cohorts of runs, one a file: plain arrays come in, frozen results go out.

No table is read and nothing is printed here. `docs/vestige-statistics.md` says what each estimate does and does not
show.
"""
