"""The analyses of a cohort, one a file: its runs come in, findings go out, each with what it does and does not show."""
