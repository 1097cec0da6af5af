"""tau-bench: the results of one task."""

from __future__ import annotations

from tests.vestige.formats.samples import as_json

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "#W1"}'}}
MESSAGES = [
    {"role": "system", "content": "# Retail agent policy"},
    {"role": "user", "content": "Where is my order?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "get_order", "content": '{"order_id": "#W1"}'},
    {"role": "assistant", "content": "On its way."},
]
TASK = {"user_id": "u1", "actions": [], "instruction": "Ask for your order.", "outputs": []}

FILES = {"results.json": as_json([{"task_id": 0, "reward": 1.0, "info": {"task": TASK}, "traj": MESSAGES, "trial": 0}])}
