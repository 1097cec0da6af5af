"""What pytest loads at its start where eirkit is installed: options, a marker and two fixtures, and nothing heavy.

It stands beside the package because importing anything inside it brings numpy along. What does the work is
`eirkit.bridges.pytest_plugin`, which is loaded when an option or a fixture asks for it.
"""

from __future__ import annotations

from typing import Any

import pytest

_WORK = "eirkit.bridges.pytest_plugin"
_MARKER = "lacuna(workload, seed, h, condition, n, m, …): the task and the session of the fixtures lacuna_*"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; docs/bridge-pytest.md describes them."""
    add = parser.getgroup("eirkit", "memory systems under test").addoption
    add("--eirkit-memory", action="append", default=[], metavar="NAME", help="a memory system, such as mypkg:MyMemory")
    add("--eirkit-memory-set", action="append", default=[], metavar="M.NAME=VALUE", help="a setting of memory M")
    add("--eirkit-workload", default="store-recall", metavar="NAMES", help="separated by commas (%(default)s)")
    add("--eirkit-model", default="reference/recoverer", metavar="MODEL", help="the agent (%(default)s)")
    add("--eirkit-seeds", default="0:12", metavar="SEEDS", help="the tasks; they pair the runs (%(default)s)")
    add("--eirkit-h", type=int, default=4, metavar="H", help="records in sight (%(default)s)")
    add("--eirkit-m", type=int, default=8, metavar="M", help="dependency window (%(default)s)")
    add("--eirkit-n", type=int, default=32, metavar="N", help="steps of a task (%(default)s)")
    add("--eirkit-cap-usd", type=float, metavar="USD", help="what the agent may cost, for each system and workload")
    add("--eirkit-at-least", type=float, metavar="X", help="fail where accuracy is significantly below X")
    add("--eirkit-record", metavar="FILE", help="write down what came of the runs; nothing is decided from them")
    add("--eirkit-recorded", metavar="FILE", help="decide about runs that were written down, without any run")
    add("--eirkit-baseline", metavar="FILE", help="fail where accuracy dropped significantly since then")
    add("--eirkit-alpha", type=float, default=0.05, metavar="P", help="chance of a false alarm, in all (%(default)s)")


def pytest_configure(config: pytest.Config) -> None:
    """Load what does the work if there is any."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--eirkit-memory") or config.getoption("--eirkit-recorded"):
        config.pluginmanager.import_plugin(_WORK)


@pytest.fixture
def lacuna_task(request: pytest.FixtureRequest) -> Any:
    """The task that the marker `lacuna` describes, with its answers: a TaskInstance."""
    return _work(request).task_of(request.node.get_closest_marker("lacuna"))


@pytest.fixture
def lacuna_session(request: pytest.FixtureRequest, lacuna_task: Any) -> Any:
    """The session of that task under the marker's condition: what an agent may see, and takes what it replies."""
    return _work(request).session_of(request.node.get_closest_marker("lacuna"), lacuna_task)


def _work(request: pytest.FixtureRequest) -> Any:
    request.config.pluginmanager.import_plugin(_WORK)
    return request.config.pluginmanager.get_plugin(_WORK)
