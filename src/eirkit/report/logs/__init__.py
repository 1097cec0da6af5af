"""Pages about analyzed logs (folders of `vestige analyze`)."""
