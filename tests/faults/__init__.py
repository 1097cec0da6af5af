"""Faults on purpose: hostile plug-ins and ends at random moments, counted; `make test-faults` runs them."""
