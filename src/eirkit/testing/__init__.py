"""Conformance suites that authors of plug-ins run on their own: `check_memory(MyMemory)` in a test of yours.

Every requirement is tried on the real plug-in. The result says which hold; AssertionError names those that do not.
"""

from eirkit.testing.conformance import Conformance
from eirkit.testing.formats import check_format
from eirkit.testing.memories import check_memory
from eirkit.testing.models import check_model
from eirkit.testing.policies import check_policy
from eirkit.testing.workloads import check_workload

__all__ = ["Conformance", "check_format", "check_memory", "check_model", "check_policy", "check_workload"]
