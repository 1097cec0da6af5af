"""The entry point of the pytest plugin: its options, a marker and two fixtures.

pytest loads this module at every start, so it is outside the package eirkit, whose import loads numpy. The plugin
itself is `eirkit_bridges.pytest_plugin`, loaded when an option or a fixture needs it.
"""

from __future__ import annotations

from typing import Any

import pytest

_WORK = "eirkit_bridges.pytest_plugin"
_MARKER = "lacuna(workload, seed, h, condition, n, m, …): task and session of the lacuna_* fixtures"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; docs/add-a-memory.md describes them."""
    add = parser.getgroup("eirkit", "memory systems under test").addoption
    add(
        "--eirkit-memory",
        action="append",
        default=[],
        metavar="NAME",
        help="memory system to test, such as mypkg:MyMemory",
    )
    add("--eirkit-memory-set", action="append", default=[], metavar="M.NAME=VALUE", help="setting of memory system M")
    add(
        "--eirkit-workload",
        default="store-recall",
        metavar="NAMES",
        help="workloads, separated by commas (%(default)s)",
    )
    add(
        "--eirkit-model",
        default="reference/recoverer",
        metavar="MODEL",
        help="model that uses the memory (%(default)s)",
    )
    add("--eirkit-base-url", metavar="URL", help="OpenAI-compatible server of this model and of the memory's own")
    add(
        "--eirkit-seeds",
        default="0:12",
        metavar="SEEDS",
        help="seeds of the tasks; runs are paired by seed (%(default)s)",
    )
    add("--eirkit-h", type=int, default=4, metavar="H", help="retained records (%(default)s)")
    add("--eirkit-m", type=int, default=8, metavar="M", help="dependency window (%(default)s)")
    add("--eirkit-n", type=int, default=32, metavar="N", help="steps per task (%(default)s)")
    add("--eirkit-cap-usd", type=float, metavar="USD", help="spending limit for each memory system and workload")
    add("--eirkit-prices", metavar="FILE", help="TOML file with prices of models, for the spending limit")
    add(
        "--eirkit-records",
        type=int,
        default=10_000,
        metavar="N",
        help="records written where a memory is tried with many, or as many as it takes in 20 s (%(default)s)",
    )
    add("--eirkit-at-least", type=float, metavar="X", help="fail if accuracy is significantly below X")
    add("--eirkit-record", metavar="FILE", help="write the results to FILE")
    add("--eirkit-recorded", metavar="FILE", help="use the results in FILE instead of running")
    add("--eirkit-baseline", metavar="FILE", help="fail if accuracy is significantly below that in FILE")
    add("--eirkit-alpha", type=float, default=0.05, metavar="P", help="overall chance of a false alarm (%(default)s)")


def pytest_configure(config: pytest.Config) -> None:
    """Load the plugin if an option asks for it."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--eirkit-memory") or config.getoption("--eirkit-recorded"):
        config.pluginmanager.import_plugin(_WORK)


@pytest.fixture
def lacuna_task(request: pytest.FixtureRequest) -> Any:
    """The task that the marker `lacuna` describes, with its answers: a TaskInstance."""
    return _work(request).task_of(request.node.get_closest_marker("lacuna"))


@pytest.fixture
def lacuna_session(request: pytest.FixtureRequest, lacuna_task: Any) -> Any:
    """The session of that task under the marker's condition, which shows requests and accepts replies."""
    return _work(request).session_of(request.node.get_closest_marker("lacuna"), lacuna_task)


def _work(request: pytest.FixtureRequest) -> Any:
    request.config.pluginmanager.import_plugin(_WORK)
    return request.config.pluginmanager.get_plugin(_WORK)
