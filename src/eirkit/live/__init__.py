"""Watches a live agent: what its requests stop showing, and what it will need again."""
