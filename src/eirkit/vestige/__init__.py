"""What recorded runs needed and what they lost: from agent logs to a graph of actions and state."""
