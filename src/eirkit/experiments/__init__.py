"""Controlled experiments on the runner: the three-arm rescue, recovery probes and the channel audit."""
