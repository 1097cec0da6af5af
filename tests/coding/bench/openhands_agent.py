"""Runs OpenHands' agent on a prompt: `python openhands_agent.py URL FOLDER PROMPT`, with the SDK's own interpreter.

The SDK has no command of its own. Its condenser summarizes when a conversation has more events than it may.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

EVENTS = 11  # of the first phase: the prompts, and an action and its observation for each step


def main(url: str, folder: str, prompt: str) -> None:
    """Run the agent in the current folder and keep its conversation in another."""
    sdk = importlib.import_module("openhands.sdk")
    condenser = importlib.import_module("openhands.sdk.context.condenser")
    terminal = importlib.import_module("openhands.tools.terminal").TerminalTool
    editor = importlib.import_module("openhands.tools.file_editor").FileEditorTool
    secret = importlib.import_module("pydantic").SecretStr
    model = sdk.LLM(model="openai/fake-model", base_url=url, api_key=secret("none"), usage_id="agent", num_retries=0)
    summary = model.model_copy(update={"usage_id": "condenser"})
    agent = sdk.Agent(
        llm=model,
        tools=[sdk.Tool(name=terminal.name, params={"terminal_type": "subprocess"}), sdk.Tool(name=editor.name)],
        condenser=condenser.LLMSummarizingCondenser(llm=summary, max_size=EVENTS, keep_first=2),
    )
    conversation = sdk.Conversation(agent=agent, workspace=str(Path.cwd()), persistence_dir=folder, visualizer=None)
    conversation.send_message(prompt)
    conversation.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
