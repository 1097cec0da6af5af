"""Retention without agents: the plain loop, its batch kernels, tables of policies, and general cache traces."""
