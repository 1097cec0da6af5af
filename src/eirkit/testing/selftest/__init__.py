"""The self-test: models, memories and agents that misbehave in known ways, and what eirkit says about each of them."""
