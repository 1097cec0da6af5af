"""Reads exported folders with Harbor's own models; run by a Python that has Harbor, not imported by tests.

python tests/bridges/harbor_models.py FOLDER…     one JSON document: what Harbor understood
"""

import json
import sys
from pathlib import Path

from harbor.environments.definition import require_agent_environment_definition
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_step_verifier_mode, resolve_task_verifier_mode


def understood(folder: Path) -> dict:
    assert Task.is_valid_dir(folder)
    task = Task(folder)
    require_agent_environment_definition(task.paths.environment_dir)
    config = task.config
    return {
        "name": task.name,
        "schema": config.schema_version,
        "steps": [step.name for step in config.steps or []],
        "strategy": config.multi_step_reward_strategy and config.multi_step_reward_strategy.value,
        "mcp": [server.model_dump() for server in config.environment.mcp_servers],
        "verifier": resolve_task_verifier_mode(config).value,
        "step_verifiers": sorted({resolve_step_verifier_mode(config, step).value for step in config.steps or []}),
        "collect": [[hook.service, hook.command] for hook in config.verifier.collect],
        "artifacts": [[one.service, one.source] for one in config.artifacts],
        "last_artifacts": [[one.service, one.source] for one in config.steps[-1].artifacts] if config.steps else [],
        "solve": str(task.paths.discovered_solve_path_for(None)),
        "instruction": task.step_instruction(config.steps[0].name) if config.steps else task.instruction,
        "agent_user": config.agent.user,
        "setup": all(task.paths.step_setup_path(step.name).exists() for step in config.steps or []),
    }


if __name__ == "__main__":
    print(json.dumps([understood(Path(name)) for name in sys.argv[1:]]))
