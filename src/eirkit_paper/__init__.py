"""Reproduction of the paper (`eirkit reproduce`): studies, published figures and verdicts."""
