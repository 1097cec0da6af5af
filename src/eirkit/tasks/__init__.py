"""Generated tasks with known dependencies: workloads, retention policies, simulation without agents, recovery cones."""
