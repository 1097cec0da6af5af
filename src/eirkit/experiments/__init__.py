"""Controlled experiments: the three-arm rescue, recovery probes and the audit of prompts for leaks."""
