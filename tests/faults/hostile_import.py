"""Ends the process that imports it, as if all were well."""

import os

os._exit(0)


class Never:
    """Is never reached."""
