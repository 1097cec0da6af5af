"""Counts the calls of a run that were understood: those of which it is known what they read and wrote.

A call is understood if its tool is in the table of tools, if it is a shell command or a program, or if its tool neither
shows nor changes files. A log of an agent whose tools are unknown must not look like a run that read nothing.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable
from functools import lru_cache

from eirkit.facts import fact
from eirkit.logs.actions.tools import name_on_server, tool_named
from eirkit.logs.actions.touches import command_of
from eirkit.logs.trajectory import Recording

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
UNDERSTOOD_SHARE = 0.9  # below it, a warning is shown


@fact
class ToolCoverage:
    """The calls of one tool in a run, and how many of them were understood; a row of `calls`."""

    tool: str
    calls: int
    understood: int


def coverage_of(recording: Recording, cut_short: Iterable[tuple[str, int]] = ()) -> tuple[ToolCoverage, ...]:
    """Return the calls of each tool, the most frequent first; rejected replies made none.

    Args:
        recording: the run as its log records it.
        cut_short: tools with the number of calls whose commands were not followed to their end.
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
    understood.subtract(dict(cut_short))
    return tuple(ToolCoverage(tool, count, understood[tool]) for tool, count in calls.most_common())


@lru_cache(maxsize=256)  # asked about every call, and a log has few tools
def is_understood(tool: str) -> bool:
    """Return whether it is known what calls of a tool read and write, whatever their arguments."""
    name = tool.lower()
    is_silent = name in NO_FILES or name_on_server(name) in NO_FILES or _ELSEWHERE.match(name) is not None
    return is_silent or tool_named(tool) is not None
