"""tau2-bench: the results of one simulation."""

from __future__ import annotations

from tests.vestige.formats.samples import as_json

MESSAGES = [
    {"role": "assistant", "content": "How can I help?", "tool_calls": None},
    {"role": "user", "content": "Cancel my flight.", "tool_calls": None},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "name": "get_user", "arguments": {"user_id": "u1"}, "requestor": "assistant"}],
    },
    {"id": "c1", "role": "tool", "content": '{"user_id": "u1"}', "requestor": "assistant", "error": False},
]
SIMULATION = {"id": "s1", "task_id": "0", "trial": 0, "messages": MESSAGES, "reward_info": {"reward": 1.0}}
INFO = {
    "num_trials": 1,
    "user_info": {"llm": "maker/user-1"},
    "agent_info": {"llm": "maker/model-1"},
    "environment_info": {"domain_name": "airline"},
}

FILES = {
    "results.json": as_json(
        {"timestamp": "now", "info": INFO, "tasks": [{"id": "0"}], "simulations": [SIMULATION]},
    )
}
