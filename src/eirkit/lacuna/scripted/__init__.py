"""Scripted models: they read conversations and use memories in place of a language model."""
