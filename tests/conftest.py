"""What all tests share: property tests have no deadline, because a busy machine is not a failure; and output is as wide
as in a pipe, whoever runs the tests."""

import os

from hypothesis import settings

settings.register_profile("eirkit", deadline=None)
settings.load_profile("eirkit")

os.environ.pop("COLUMNS", None)  # parallel workers are told a width; what they print would be cut to it
