"""A week of work with coding agents: what every response cost, what was read again, and what compactions dropped."""
