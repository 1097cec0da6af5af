"""Pages of analysed logs."""
