"""The causal chain on disk: a small sweep and the rescue beside it, as `lacuna run` and `lacuna rescue` write them."""

from __future__ import annotations

import shutil
from pathlib import Path

from eirkit.errors import UsageError
from eirkit.lacuna.evidence.claims import gate_all
from eirkit.lacuna.evidence.rescue import Setup, rescue
from eirkit.lacuna.evidence.rescue_document import rescue_document
from eirkit.lacuna.evidence.trial import Workbench
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.sweeps.experiment import start_sweep
from eirkit.lacuna.sweeps.manifest import read_manifest
from eirkit.lacuna.sweeps.run_store import is_untouched
from eirkit.lacuna.sweeps.suite import read_suite
from eirkit.lacuna.sweeps.suite_values import show_seeds
from eirkit.lacuna.sweeps.trial_store import TrialStore
from eirkit.lacuna.task import TaskSpec
from eirkit.report.sweep_folder import SweepFolder, read_sweep

NAME = "demo"
AGENT = "reference/calculator"  # who answers; whatever can be named after --model can stand here
WORKLOAD = "stepwise-sum"
CAPACITIES = (16, 12, 8)
RESCUED = 12  # records held in the rescue
POLICY = "window"  # of the rescue: that of a sweep unless told otherwise
SEEDS = range(30)


def run_chain(folder: Path) -> SweepFolder:
    """Run the sweep and its rescue into a folder, over an earlier demonstration, and return what they say."""
    _clear(folder)
    axes = {"workload": WORKLOAD, "model": AGENT, "h": list(CAPACITIES), "seeds": SEEDS}
    start_sweep(read_suite({**axes, "name": NAME}), folder, control=True)
    _rescue(folder / "rescue")
    return read_sweep(folder)


def _rescue(folder: Path) -> None:
    setup, options = Setup(TaskSpec(WORKLOAD), RESCUED, POLICY), ModelOptions()
    asked = {"seeds": show_seeds(SEEDS), "models": [AGENT], "options": options.asked()}
    with TrialStore(folder, "rescue", {**setup.as_json(), **asked}, names=(AGENT, WORKLOAD, setup.policy)) as store:
        bench = Workbench(log=store)
        controls = gate_all([AGENT], setup.spec, options, True, bench)
        found = rescue(setup, SEEDS, [AGENT], options, bench)
        store.summarise(rescue_document(setup, len(SEEDS), found, controls))


def _clear(folder: Path) -> None:
    """Remove an earlier demonstration, and nothing else."""
    if is_untouched(folder):
        return
    try:
        earlier = read_manifest(folder).suite["name"] == NAME
    except UsageError:
        earlier = False
    if not earlier:
        raise UsageError(f"{folder} holds something else than a demonstration; choose another --out")
    shutil.rmtree(folder)
