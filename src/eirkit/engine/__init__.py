"""Map over many pieces of work, on processes of this machine or on a Ray cluster, with the same results."""
