"""Why steps were wrong, and proof of it: causes, behaviour, predictions, rescue, probes and the channel audit."""
