"""Pages about analysed logs (folders of `vestige analyze`)."""
