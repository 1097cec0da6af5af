"""Harbor: the folder of one trial."""

from __future__ import annotations

from tests.vestige.formats.samples import as_json
from tests.vestige.formats.samples.atif import TRAJECTORY

RESULT = {
    "task_name": "task-1",
    "trial_name": "task-1__abc",
    "agent_info": {"name": "agent", "version": "1", "model_info": {"name": "model-1", "provider": "maker"}},
    "agent_result": {"n_input_tokens": 10, "n_output_tokens": 2},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
}

FILES = {
    "jobs/now/task-1__abc/result.json": as_json(RESULT),
    "jobs/now/task-1__abc/agent/trajectory.json": as_json(TRAJECTORY),
}
BESIDE = frozenset({"jobs/now/task-1__abc/agent/trajectory.json"})
