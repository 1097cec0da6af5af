"""One plug-in of every family of eirkit; the entry points of the distribution name them."""
