"""The causal chain on disk: a small sweep and the rescue beside it, as `lacuna run` and `lacuna rescue` write them."""

from __future__ import annotations

import shutil
from pathlib import Path

from eirkit.errors import UsageError
from eirkit.lacuna.bundled.remembering import remembering
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
AGENT = "bundled/lacuna-tiny"  # who answers: a network that has learned the operations, in the package
WORKLOAD = "stepwise-sum"
CAPACITIES = (16, 12, 8)
RESCUED = 12  # records held in the rescue
POLICY = "window"  # of the rescue: that of a sweep unless told otherwise
SEEDS = range(12)


def run_chain(folder: Path, agent: str = AGENT, seeds: range = SEEDS) -> SweepFolder:
    """Run the sweep and its rescue into a folder, over an earlier demonstration, and return what they say."""
    _clear(folder)
    axes = {"workload": WORKLOAD, "model": agent, "h": list(CAPACITIES), "seeds": seeds}
    with remembering({}):  # the rescue repeats many a step of the sweep, and its control whole
        start_sweep(read_suite({**axes, "name": NAME}), folder, control=True)
        _rescue(folder / "rescue", agent, seeds)
    return read_sweep(folder)


def _rescue(folder: Path, agent: str, seeds: range) -> None:
    setup, options = Setup(TaskSpec(WORKLOAD), RESCUED, POLICY), ModelOptions()
    asked = {"seeds": show_seeds(seeds), "models": [agent], "options": options.asked()}
    with TrialStore(folder, "rescue", {**setup.as_json(), **asked}, names=(agent, WORKLOAD, setup.policy)) as store:
        bench = Workbench(log=store)
        controls = gate_all([agent], setup.spec, options, True, bench)
        found = rescue(setup, seeds, [agent], options, bench)
        store.summarise(rescue_document(setup, len(seeds), found, controls))


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
