"""The studies that reproduce the paper's tables and figures: published values, our computation, comparison."""
