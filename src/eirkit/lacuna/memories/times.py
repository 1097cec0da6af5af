"""Every time limit of a memory system, in seconds: one call, setup, teardown, and start, close and kill of its process.

`--set NAME.timeout_seconds=SECONDS` overrides that of a call.
"""

CALL_SECONDS = 60.0  # for one call
SETUP_SECONDS = 600.0  # for `setup`: the first start may load a model or create a database
TEARDOWN_SECONDS = 30.0  # for `teardown`

START_SECONDS = 120.0  # for its process to answer: importing a vendor's packages can take half a minute
CLOSE_SECONDS = 10.0  # for its process to close by itself
GRACE_SECONDS = 2.0  # for it to close what it has open once eirkit is gone
KILL_SECONDS = 10.0  # for killed processes to end: one that survives this is stuck in the kernel
