"""Conformance suites for plug-in authors, such as `check_memory(MyMemory)` in a test.

Every requirement is tested on the real plug-in. The result lists those that hold; AssertionError names the others.
"""

from eirkit.testing.conformance import Conformance
from eirkit.testing.formats import check_format
from eirkit.testing.memories import check_memory
from eirkit.testing.models import check_model
from eirkit.testing.policies import check_policy
from eirkit.testing.workloads import check_workload

__all__ = [
    "Conformance",
    "check_format",
    "check_memory",
    "check_model",
    "check_policy",
    "check_workload",
]
