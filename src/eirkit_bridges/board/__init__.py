"""The board: submissions that others can check, and a static site that ranks those that hold."""
