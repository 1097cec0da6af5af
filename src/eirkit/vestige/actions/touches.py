"""Which files each turn read and wrote, which tools are shells, and which calls count as understood.

A read is a file whose content the action showed to the agent; a write is a file whose content it changed.
`docs/design/what-an-action-touched.md` defines what counts. A call is understood if its tool is in the table of tools
and its arguments name the files, if it is a shell command or a program, or if its tool neither shows nor changes
files. A log of an agent whose tools are unknown must not look like a run that read nothing.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from eirkit.limits import check_time
from eirkit.records.analysis import ToolCoverage
from eirkit.vestige.actions.tools import is_unclear, name_on_server, tool_named
from eirkit.vestige.actions.view_tools import NOTHING_TOUCHED
from eirkit.vestige.shell.effects import remember, shell_touches
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.tokens import CachedCounter
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, RecordedTurn, Recording, Touches, Trajectory, Turn
from eirkit.vestige.viewer_output import around

SHELLS = frozenset(
    {"bash", "powershell", "execute_bash", "run_shell_command", "shell", "terminal", "run_command", "execute_command"}
)
PYTHONS = frozenset({"python", "ipython", "run_ipython", "execute_ipython_cell"})
_END = "end of the program"  # delimiter of the here-document that feeds a Python program
_RAISED = "Traceback (most recent call last)"
# The command never ran, in the words of Claude Code, Codex, Gemini CLI, opencode, Cline, Copilot and others.
_REFUSED = (
    *("The user doesn't want to", "Permission to use", "<tool_use_error>", "exec command rejected", "rejected by user"),
    *("[Operation Cancelled]", "User denied", "User rejected", "User cancelled", "Tool execution denied"),
    *("The user rejected", "The user has specified a rule which prevents", "The user denied", "The user has declined"),
    *("Command rejected", "Operation denied", "approval denied", "Request interrupted by user", "[Request interrupted"),
)
_UNDECODED = "Error decoding bytes to utf-8"  # Inspect, in place of an output that is no text
_REFUSAL_STARTS = frozenset({*(words[0] for words in _REFUSED), "E"})
_REFUSAL_CHARACTERS = 2000  # a longer output is what a command printed
_FRESH = ("mini", "codex", "gemini")  # scaffolds that run every command in a new shell
_CD = re.compile(r"\bcd (/[\w./@+-]{1,200})")
_USUAL_ROOT = re.compile(r"(?<![\w./-])(/testbed|/workspace/[\w.@+-]+?|/repo|/app)(?=[/\s\"'`;&<),]|$)")
_LOOKED_AT = 2000  # characters of an argument that are searched for directories
# Tools that plan, delegate, wait, ask, list names or look elsewhere than in files, in lower case.
_NAMES = """
agent ask ask_followup_question ask_user askuserquestion attempt_completion bashoutput close_agent complete_task
create_directory croncreate crondelete cronlist delegate_to_agent directory_tree enter_plan_mode enterplanmode
enterworktree exit exit_plan_mode exitplanmode exitworktree fetch fetch_webpage file_search find_by_name find_file
finish get_allowed_directories get_file_info glob google_web_search kill_shell killbash killshell list list_agents
list_allowed_directories list_dir list_directory list_directory_with_sizes list_files list_mcp_resource_templates
list_mcp_resources listmcpresourcestool ls mark_task_complete monitor new_task noop plan_exit plan_mode_respond
question read_lints report_intent request_user_input resume_agent save_memory schedulewakeup send_input send_message
sendmessage skill slashcommand sleep spawn_agent stop_bash structuredoutput submit switch_mode task task_done
taskcreate taskget tasklist taskoutput taskstop taskupdate think todo todo_read todo_write todoread todowrite
tool_search toolsearch update_plan update_todo_list update_topic view_image wait wait_agent web_fetch web_search
webfetch websearch write_stdin write_todos
"""
NO_FILES = frozenset(_NAMES.split())
_ELSEWHERE = re.compile(
    r"\A(?:mcp__)?(?:browser|chrome|context7|memory|playwright|puppeteer)[\w-]{0,60}_"
)  # of MCP servers


def interpret(recording: Recording, count: Callable[[str], int]) -> Trajectory:
    """Return a run with the files that its turns read and wrote.

    Args:
        recording: the run as its log records it.
        count: counts the tokens of a text.
    """
    state = initial_state(recording, count)
    touched = [_turn_touches(turn, state) for turn in recording.turns]
    # All texts of a run are counted in one pass, which keeps the large vocabulary in the CPU cache.
    counting = count if isinstance(count, CachedCounter) else CachedCounter(count)
    sizes = [
        _tokens(turn, touches, counting) if turn.tokens is None else turn.tokens
        for turn, touches in zip(recording.turns, touched, strict=True)
    ]
    turns = [
        Turn(number, touches.reads, touches.writes, tokens, turn)
        for number, (turn, touches, tokens) in enumerate(zip(recording.turns, touched, sizes, strict=True), 1)
    ]
    root = state.roots[0] if state.roots else None
    return Trajectory(recording, tuple(turns), root, tuple(state.unclear_calls.items()))


def initial_state(recording: Recording, count: Callable[[str], int] = len) -> ShellState:
    """Return the shell state at the start of a run: its repository, as the log or its commands name it, and folder."""
    named = ShellState().absolute(recording.root.rstrip("/") or "/") if recording.root else ""
    roots = tuple(_linked(named) if named else _roots(recording))
    scaffold = f"{recording.format} {recording.details.get('agent', '')}".lower()
    keeps = recording.details.get("keeps_folder") is not False and not any(name in scaffold for name in _FRESH)
    return ShellState(roots=roots, folder=roots[0] if roots else "", keeps_folder=keeps, count=count)


def touches_of(call: Call, state: ShellState) -> Touches:
    """Return what one call touched, and update `state` for later calls."""
    check_time()
    began, command = state.folder, command_of(call)
    if _was_refused(call):
        return NOTHING_TOUCHED
    if call.working_folder and call.working_folder != began:
        state.folder = _folder(call.working_folder, state)
    if command is None:
        touches = _tool_touches(call, state)
    else:
        folder = None if call.working_folder else call.arguments.get("directory") or call.arguments.get("dir_path")
        if folder and isinstance(folder, str):
            state.folder = _folder(folder, state)
        shown = "" if call.failed and call.output.startswith(_UNDECODED) else call.output
        touches = shell_touches(command, shown, _exit_code(call), state)
        if state.effort.is_cut or state.is_unnamed:
            state.unclear_calls[call.tool] += 1
    # A Python program cannot change the shell's directory, nor can a command whose shell ends with it.
    if not state.keeps_folder or call.tool in PYTHONS:
        state.folder = began
    return touches


def _was_refused(call: Call) -> bool:
    """Return whether a person or a rule kept a call from being carried out."""
    output, first = call.output, call.output[:1]
    if first not in _REFUSAL_STARTS and not first.isspace():  # nearly every call
        return False
    told = output[:_REFUSAL_CHARACTERS].lstrip().removeprefix("Error: ").startswith(_REFUSED)
    return told and (call.failed or len(output) < _REFUSAL_CHARACTERS)


def command_of(call: Call) -> str | None:
    """Return the shell command of a call; a Python program becomes input of its interpreter."""
    if call.tool in SHELLS or call.tool.lower() in SHELLS:
        command = call.arguments.get("command", call.arguments.get("cmd"))
        return command if isinstance(command, str) else None
    code = call.arguments.get("code") if call.tool in PYTHONS else None
    return f"python3 - <<'{_END}'\n{code}\n{_END}\n" if isinstance(code, str) and _END not in code else None


def _folder(named: str, state: ShellState) -> str:
    return state.absolute(named.rstrip("/\\") or "/")


def _exit_code(call: Call) -> int:
    if call.exit_code is not None:
        return call.exit_code
    # A notebook reports no exit code, only the error that ended a cell.
    return int(call.failed or (call.tool in PYTHONS and _RAISED in call.output))


def _tool_touches(call: Call, state: ShellState) -> Touches:
    tool = tool_named(call.tool)
    if tool is None:
        return NOTHING_TOUCHED
    touches = tool(call, state)
    if not touches.reads and not touches.writes and is_unclear(tool, call, state):
        state.unclear_calls[call.tool] += 1
    for write in touches.writes:
        remember(state, write)
    return touches


def _turn_touches(turn: RecordedTurn, state: ShellState) -> Touches:
    if turn.touches is not None:
        return turn.touches
    if turn.rejected or not turn.calls:
        return NOTHING_TOUCHED
    if len(turn.calls) == 1:
        return touches_of(turn.calls[0], state)
    reads, writes = list[FileRead](), list[FileWrite]()
    for part in (touches_of(call, state) for call in turn.calls):
        written = {write.path for write in writes} if writes and part.reads else ()
        reads += (replace(read, rewritten=True) if read.path in written else read for read in part.reads)
        writes += part.writes
    return Touches(tuple(reads), tuple(writes))


def _tokens(turn: RecordedTurn, touches: Touches, count: CachedCounter) -> int:
    """Return the tokens of a turn; file texts in it are counted separately too, because the graph needs their size."""
    text, tokens = turn.text, count(turn.text)
    written = [write.content for write in touches.writes if write.content]
    for call in turn.calls:
        for value in call.arguments.values():
            # A command that is part of the reply's text is not counted twice.
            if isinstance(value, str) and value not in text:
                tokens += count.with_parts(value, written) if written else count(value)
        shown = _shown_parts(touches.reads)
        tokens += count.with_parts(call.output, shown) if shown else count(call.output)
    return tokens


def _shown_parts(reads: Sequence[FileRead]) -> Sequence[str]:
    """Return the parts of an output that are counted again as parts of files: each file, or the pieces of a cut one."""
    if len(reads) == 1:
        return around(reads[0].content) if reads[0].clipped and reads[0].content else ()
    return [read.content for read in reads if read.content]


def _roots(recording: Recording) -> list[str]:
    """Return the names of the repository's folder in a run: the usual ones, else the most frequent target of `cd`."""
    usual: Tally[str] = Tally(_USUAL_ROOT.findall(recording.prompt[:20_000]))
    went: Tally[str] = Tally()
    for turn in recording.turns:
        for call in turn.calls:
            for value in call.arguments.values():
                if isinstance(value, str) and "/" in value:
                    text = value[:_LOOKED_AT]
                    if "/testbed" in text or "/workspace/" in text or "/repo" in text or "/app" in text:
                        usual.update(_USUAL_ROOT.findall(text))
                    if "cd /" in text:
                        went.update(_CD.findall(text))
    if usual:
        first = max(usual, key=lambda name: (usual[name], name))
        workspace = next((name for name in sorted(usual) if name.startswith("/workspace/") and "__" in name), None)
        return _linked(workspace) if workspace and first == "/testbed" else _linked(first)
    return [min(went, key=lambda name: (-went[name], len(name), name)).rstrip("/")] if went else []


def _linked(root: str) -> list[str]:
    # OpenHands links a directory of its workspace to the path where SWE-bench keeps the repository.
    return [root, "/testbed"] if root.startswith("/workspace/") and "__" in root else [root]


def coverage_of(recording: Recording, unclear_calls: Iterable[tuple[str, int]] = ()) -> tuple[ToolCoverage, ...]:
    """Return the calls of each tool, the most frequent first; rejected replies made none.

    Args:
        recording: the run as its log records it.
        unclear_calls: tools with the number of calls whose commands were not followed to their end, or that touched
            files that the log, or the arguments known to the table of tools, do not name.
    """
    is_known = recording.domain == "entities"  # every call of a tool over entities names what it touches
    turns = [turn for turn in recording.turns if turn.calls and not turn.rejected]
    calls = Tally([call.tool for turn in turns for call in turn.calls])
    understood = Tally(
        [
            call.tool
            for turn in turns
            for call in turn.calls
            if is_known or turn.touches is not None or command_of(call) is not None or is_understood(call.tool)
        ]
    )
    understood.subtract(dict(unclear_calls))
    return tuple(ToolCoverage(tool, count, understood[tool]) for tool, count in calls.most_common())


@lru_cache(maxsize=256)  # asked about every call, and a log has few tools
def is_understood(tool: str) -> bool:
    """Return whether it is known what calls of a tool read and write, if their arguments name it."""
    name = tool.lower()
    is_silent = name in NO_FILES or name_on_server(name) in NO_FILES or _ELSEWHERE.match(name) is not None
    return is_silent or tool_named(tool) is not None
