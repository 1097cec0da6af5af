"""Faults on purpose: hostile plug-ins and ends at random moments, counted; `make session NAME=faults` runs them."""
