"""The built-in log formats: module and signs of each; a module is imported when a log shows a sign of its format.

A format without signs, such as one of another package, is asked about every log.
"""

_ZIP, _PARQUET, _DATABASE = (b"PK\x03\x04", b"PK\x05\x06"), b"PAR1", b"SQLite format 3\0"
_AIDER, _LACUNA = b"# aider chat started at ", b'{"run":"'
BEGINNINGS = frozenset({*_ZIP, _PARQUET, _DATABASE, _AIDER, _LACUNA})  # the signs that a file begins with

PLUGINS = {
    "atif": "eirkit.vestige.formats.atif",
    "harbor": "eirkit.vestige.formats.harbor",
    "inspect": "eirkit.vestige.formats.inspect",
    "lacuna": "eirkit.vestige.formats.lacuna",
    "message-rows": "eirkit.vestige.formats.message_rows",
    "mini-swe-agent": "eirkit.vestige.formats.mini_swe_agent",
    "openhands-completions": "eirkit.vestige.formats.openhands",
    "openhands-events": "eirkit.vestige.formats.openhands_events",
    "plain": "eirkit.vestige.formats.plain",
    "swe-agent": "eirkit.vestige.formats.swe_agent",
    "tau-bench": "eirkit.vestige.formats.tau_bench",
    "tau2-bench": "eirkit.vestige.formats.tau_bench",
}

# A log of the format has at least one of these in its head or, if the sign is a text and not bytes, in its name. A sign
# may occur in other logs as well: it only decides whether the format is asked.
SIGNS: dict[str, tuple[bytes | str, ...]] = {
    "aider": (_AIDER,),
    "amp": (b'"T-',),
    "atif": (b'"schema_version"', b'"step_id"'),
    "claude-code": (b'"parentUuid"', b'"leafUuid"'),
    "cline": (b'"origin"', b'"role"'),
    "codex": (b'"payload"', b'"instructions"', b'"git"'),
    "codex-exec": (b'"thread.started"',),
    "copilot-cli": (
        *(b'"copilot-agent"', b'"session.start"', b'"assistant.message"', b'"assistant.turn_start"'),
        *(b'"tool.execution_start"', b'"user.message"'),
    ),
    "cursor": (b'"message"',),
    "droid": (b'"session_start"', b'"toolName"'),
    "gemini-cli": (b'"projectHash"',),
    "goose": (_DATABASE, b'"working_dir"'),
    "harbor": ("result.json",),
    "inspect": (*_ZIP, b'"eval"'),
    "kimi-code": (
        *(b'"context.append_message"', b'"context.append_loop_event"', b'"context.apply_compaction"'),
        b'"profile.bind"',
        *(b'"TurnBegin"', b'"StepBegin"', b'"ToolCall"', b'"ToolResult"', b'"ContentPart"', b'"StatusUpdate"'),
    ),
    "lacuna": (_DATABASE, _LACUNA),
    "langfuse": (b'"parentObservationId"', b'"parent_observation_id"'),
    "langsmith": (b'"dotted_order"',),
    "message-rows": (_PARQUET, b'"trajectory"', b'"messages"', b'"conversations"'),
    "mini-swe-agent": (b'"mini_version":', b'"minisweagent.', b'"submission":', b'"model_stats":'),
    "opencode": (_DATABASE, b'"projectID"'),
    "openhands-completions": (b'"messages"',),
    "openhands-events": (b'"test_result":', b'"args":', b'"kind"', "base_state.json"),
    "otlp": (b'"resourceSpans"', b'"resource_spans"', b'"resourcespans"', b'"resource_Spans"'),
    "plain": (b'"turns"',),
    "qwen-code": (b'"parentUuid"',),
    "stream-json": (b'"subtype"',),
    "swe-agent": (b'"trajectory"', b'"history"'),
    "tau-bench": (b'"traj"',),
    "tau2-bench": (b'"num_trials"', b'"simulations"'),
    "trae-agent": (b'"llm_interactions"',),
}
# The formats that can be as sure as `NAMED`, with the signs that their logs then have. They are asked first, because no
# other can be as sure; to look for all signs takes longer.
NAMING: dict[str, tuple[bytes | str, ...]] = {
    "aider": SIGNS["aider"],
    "atif": (b'"schema_version"',),
    "copilot-cli": (b'"copilot-agent"',),
    "harbor": SIGNS["harbor"],
    "lacuna": SIGNS["lacuna"],
    "mini-swe-agent": SIGNS["mini-swe-agent"],
    "otlp": (b'"resource',),
}
# The formats whose runs consist of several files: what the name of one of these files contains.
FILES_BESIDE: dict[str, tuple[str, ...]] = {
    "atif": (".cont-1.json",),
    "claude-code": (".meta.json",),
    "cline": (".messages.json", "api_conversation_history.json"),
    "goose": ("-wal", "-shm"),
    "harbor": ("result.json",),
    "kimi-code": ("state.json", "wire.jsonl"),
    "lacuna": ("runs.jsonl", "sweep.db"),
    "opencode": ("session", "-wal", "-shm"),
    "openhands-completions": (".json",),
    "openhands-events": ("base_state.json",),
}
