"""Watches running agents: content that leaves the context of their requests and is likely to be needed again."""
