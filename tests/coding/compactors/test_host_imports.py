"""Processes of compactors and memory systems get eirkit by its path alone, perhaps in another Python: no msgspec."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import eirkit
from eirkit_coding.compactors import PLUGINS
from eirkit_coding.compactors.compactor import compactors, find_compactor
from tests.processes import completed

ADAPTERS = sorted({PLUGINS[name] for name in compactors.names() if find_compactor(name).requirements.packages})
HOSTS = ["eirkit.lacuna.memories.host", "eirkit_coding.compactors.host"]


@pytest.mark.parametrize("module", [*HOSTS, *ADAPTERS])
def test_a_process_of_its_own_imports_the_standard_library_and_eirkit_only(module):
    code = f"import sys; sys.modules['msgspec'] = None; import {module}"
    path = {"PYTHONPATH": str(Path(eirkit.__file__).parents[1])}
    completed([sys.executable, "-S", "-c", code], env=path, check=True)  # -S: without this environment's packages
