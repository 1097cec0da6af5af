"""What all tests share: property tests have no deadline, because a busy machine is not a failure; output is as wide as
in a pipe, whoever runs the tests; and no module of tests leaves a process behind."""

import gc
import os
import sys
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import processes

GARBAGE = 10_000  # new objects before the collector looks at them; 700 by default
LEAVING_SECONDS = 30.0  # for processes that have been told to end; on a quiet machine it is none

settings.register_profile("eirkit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("eirkit")

os.environ.pop("COLUMNS", None)  # parallel workers are told a width; what they print would be cut to it
# Hundreds of tests start an interpreter; without compiled modules to share, each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

processes.adopt_orphans()
if "PYTEST_XDIST_WORKER" in os.environ:  # many tests: their workers are forks of one process that has all imports
    processes.start_parent_of_workers()
pytest_plugins = ["tests.costs"] if "EIRKIT_COSTS" in os.environ else []  # a file that takes what each test costs


# The files that cost the most, by `tests/costs.py`: started first, none is left over when all others are done.
COSTLY = (
    *("test_docs.py", "test_pytest_plugin.py", "test_custody.py", "test_workload_contract.py", "test_parts.py"),
    *("test_hostile.py", "test_patterns.py", "test_format_contract.py", "test_conversations.py", "test_documents.py"),
    *("test_worker_fate.py", "test_memory_faults.py", "test_mcp.py", "test_main.py", "test_verdicts.py"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="run the i-th of n parts of the tests: 2/4")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one part of the tests; order files by cost, which `--no-loadscope-reorder` hands out in this order."""
    part, _, parts = config.getoption("--part").partition("/")
    left = [item for item in items if zlib.crc32(item.nodeid.encode()) % int(parts) != int(part) - 1]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    items.sort(key=lambda item: COSTLY.index(item.path.name) if item.path.name in COSTLY else len(COSTLY))


def pytest_collection_finish() -> None:
    """Take ten thousand tests and all modules, which stay to the end, out of the garbage collector's sight.

    Looking through them took it a third of a second each time, one part in twelve of the whole suite.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE)


def pytest_unconfigure() -> None:
    """Give them back, or DuckDB reports each of its own objects as lost when the interpreter ends."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_running(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a process that a module's tests started is alive after them, and end it."""
    yield
    left = processes.leftovers(LEAVING_SECONDS)
    for pid in left:
        processes.kill_tree(pid)
    assert not left, f"{request.path.name} left processes running; start them with tests.processes.running: {left}"
