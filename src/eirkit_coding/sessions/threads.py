"""Reads sessions that are one JSON document of messages with blocks: Cline and Amp.

Cline's command line keeps an object, its editor extension a list of messages; older versions of that call tools in the
text, as tags, and get the results as text, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, said_text, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    is_own_file,
    items_of,
    mapping_of,
    prompted_usage,
    skipped,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, Recording, formats

Object = Mapping[str, Any]

_FRESH = {"keeps_folder": False}  # every command runs in a new shell
_MESSAGES, _HISTORY = ".messages.json", "api_conversation_history.json"
_SESSION_KEYS = frozenset({b"sessionId", b"agent", b"origin", b"messages"})
_PROMPT = re.compile(r"<(?:user_input|task|user_message|feedback)(?: [^<>\n]{0,80})?>")
_ENDED = re.compile(r"\A\[Command exited with code (\d{1,3})\]\n*(?:\[stderr\]\n)?")
_RESULT = re.compile(r"\A\[(\w{1,60})(?: for '[^\n]{0,2000}')?\] Result:\n?")
_RAN = re.compile(
    r"\ACommand (?:executed(?: in terminal)?|is still running)[^\n]{0,200}\n(?:(?:Here's the o|O)utput[^\n]{0,80}\n)?"
)
_NAMES = """
access_mcp_resource apply_diff ask_followup_question attempt_completion browser_action execute_command
fetch_instructions insert_content list_code_definition_names list_files load_mcp_documentation new_task
plan_mode_respond read_file replace_in_file search_files switch_mode use_mcp_tool web_fetch write_to_file
"""
_TAGGED = frozenset(_NAMES.split())
_OPENING = re.compile(r"(?m)^<(\w{1,60})>")


@formats.add("cline")
class Cline:
    """Sessions of Cline, from the command line and from its editor extension."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether an object is a session of an agent with messages, or a list has messages with its tags."""
        start = document.head.lstrip()
        if start.startswith(b"{"):
            return MARKED if _SESSION_KEYS.issubset(document.quoted) else 0
        is_named = document.name.endswith(_HISTORY) or b"<environment_details>" in start
        return MARKED if start.startswith(b"[") and b'"role"' in start and b'"content"' in start and is_named else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the files that describe a session beside its messages."""
        told = [name.removesuffix(_MESSAGES) + ".json" for name in names if name.endswith(_MESSAGES)]
        beside = ["ui_messages.json", "task_metadata.json"] if _HISTORY in names else []
        return [name for name in (*told, *beside) if name in names]

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run."""
        try:
            content = document.json()
        except InputFileError as error:
            yield skipped(document, error)
            return
        session = mapping_of(content)
        messages = items_of(content if isinstance(content, list) else session.get("messages"))
        builder, model = RunBuilder(), ""
        for message in messages:
            _take_cline(builder, message)
            model = model or string_of(mapping_of(message.get("modelInfo")).get("id"))
        about = _beside(document)
        task = document.parent.name if document.parent is not None and isinstance(content, list) else ""
        yield builder.recording(
            document,
            "cline",
            string_of(session.get("sessionId")) or task,
            parent=string_of(about.get("parent_session_id")),
            model=model or string_of(about.get("model")),
            root=string_of(about.get("workspace_root")) or string_of(about.get("cwd")),
            agent_version=string_of(mapping_of(session.get("origin")).get("version")),
            details=_FRESH,
        )


def _beside(document: LogDocument) -> Object:
    """Return what the file beside the messages says about a session."""
    if document.parent is None or not document.name.endswith(_MESSAGES):
        return {}
    path = document.parent / f"{document.name.removesuffix(_MESSAGES)}.json"
    try:
        return mapping_of(open_document(path).json()) if is_own_file(path, document.parent) else {}
    except InputFileError:
        return {}


def _take_cline(builder: RunBuilder, message: Object) -> None:
    content = message.get("content")
    blocks = items_of([{"type": "text", "text": content}] if isinstance(content, str) else content)
    if message.get("role") == "assistant":
        builder.begin()
        counts = mapping_of(message.get("metrics"))
        given = map(counts.get, ("inputTokens", "cacheReadTokens", "cacheWriteTokens"))
        builder.use(prompted_usage(given, [counts.get("outputTokens")], counts.get("cacheReadTokens")))
        builder.say(said_text(blocks))
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        for block in calls:
            _ask_each(builder, block)
        if not calls:
            for tool, arguments in _tags(text_of(blocks)):
                builder.ask("", shell_name(tool, arguments), arguments)
        return
    texts = [string_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    for block in blocks:
        if block.get("type") == "tool_result":
            _answer_each(builder, block)
    for text in texts:
        if found := _RESULT.match(text):
            head = text[found.end() :]
            ran = _RAN.match(head)
            builder.answer_last(
                head[ran.end() :] if ran else head, failed=head.startswith(("<error>", "The tool execution fai"))
            )
            break
        if found := _PROMPT.search(text):
            builder.request(text[found.end() :].partition(f"</{found[0][1:].split(' ')[0].rstrip('>')}>")[0].strip())
            break
    else:
        builder.hear("\n".join(texts))


def _tags(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the calls that a reply makes as tags; the tags inside a call are its arguments."""
    end = 0
    for found in _OPENING.finditer(text):
        if found.start() < end or found[1] not in _TAGGED:
            continue
        close = text.find(f"</{found[1]}>", found.end())
        end = close if close >= 0 else len(text)
        yield found[1], dict(_parameters(text[found.end() : end]))


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    end = 0
    for found in _OPENING.finditer(text):
        if found.start() < end:
            continue
        close = text.rfind(f"</{found[1]}>")  # a file's content may hold the tag, too
        if close < found.end():
            continue
        yield found[1], text[found.end() : close].removeprefix("\n").removesuffix("\n")
        end = close


def _ask_each(builder: RunBuilder, block: Object) -> None:
    """Add a call; several files or commands in one call are a call each."""
    id, tool, given = string_of(block.get("id")), string_of(block.get("name")), arguments_of(block.get("input"))
    if tool == "read_files":
        for number, file in enumerate(items_of(given.get("files"))):
            builder.ask(f"{id}/{number}", "read_file", {key: value for key, value in file.items() if value is not None})
    elif tool == "run_commands" and isinstance(given.get("commands"), list):
        for number, command in enumerate(given["commands"]):
            builder.ask(f"{id}/{number}", "bash", {"command": string_of(command)})
    elif tool == "search_codebase" and isinstance(given.get("queries"), list):
        for number, query in enumerate(given["queries"]):
            builder.ask(f"{id}/{number}", "search_files", {"pattern": string_of(query)})
    elif tool == "editor":
        name = "insert" if "insert_line" in given else "str_replace" if "old_text" in given else "write_file"
        content = {"content": given["new_text"]} if name == "write_file" and "new_text" in given else {}
        builder.ask(id, name, {**given, **content})
    else:
        builder.ask(id, shell_name(tool, given), given)


def _answer_each(builder: RunBuilder, block: Object) -> None:
    id, content = string_of(block.get("tool_use_id")), block.get("content")
    results = items_of(content)
    if results and all("query" in result for result in results):
        for number, result in enumerate(results):
            text = text_of(result.get("result")) or string_of(result.get("error"))
            ended = _ENDED.match(text)
            failed = result.get("success") is False and ended is None
            code = int(ended[1]) if ended else None
            builder.answer(f"{id}/{number}", text[ended.end() :] if ended else text, failed=failed, exit_code=code)
        return
    text = text_of(content)
    told = arguments_of(text) if text.startswith("{") else {}
    failed = block.get("is_error") is True or told.get("success") is False
    builder.answer(id, string_of(told.get("result")) or string_of(told.get("error")) or text, failed=failed)


@formats.add("amp")
class Amp:
    """Threads of Amp."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether an object is a thread by its id, with messages."""
        start = document.head.lstrip()
        if not start.startswith(b"{") or b"id" not in document.quoted or b"messages" not in document.quoted:
            return 0
        return MARKED if b'"id":"T-' in start or b'"id": "T-' in start else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the thread's one run."""
        try:
            thread = mapping_of(document.json())
        except InputFileError as error:
            yield skipped(document, error)
            return
        builder, model = RunBuilder(), ""
        for message in items_of(thread.get("messages")):
            usage = mapping_of(message.get("usage"))
            model = model or string_of(usage.get("model"))
            _take_amp(builder, message, usage)
        start = mapping_of(mapping_of(thread.get("env")).get("initial"))
        tree = next(iter(items_of(start.get("trees"))), {})
        yield builder.recording(
            document,
            "amp",
            string_of(thread.get("id")),
            parent=string_of(thread.get("mainThreadID")),
            model=model,
            root=string_of(tree.get("uri")).removeprefix("file://"),
            agent_version=string_of(mapping_of(start.get("platform")).get("clientVersion")),
            details=_FRESH,
        )


def _take_amp(builder: RunBuilder, message: Object, usage: Object) -> None:
    blocks = items_of(message.get("content"))
    if message.get("role") == "assistant":
        builder.begin()
        builder.say(said_text(blocks))
        given = map(usage.get, ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"))
        builder.use(prompted_usage(given, [usage.get("outputTokens")], usage.get("cacheReadInputTokens")))
        for block in blocks:
            if block.get("type") == "tool_use":
                _ask_amp(builder, block)
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            _answer_amp(builder, string_of(block.get("toolUseID")), mapping_of(block.get("run")))
        elif block.get("type") == "summary":  # a thread that was compacted begins with what is left of the other
            builder.break_off("compaction")
            builder.carry(text_of(mapping_of(block.get("summary")).get("summary")))
    if said := said_text(blocks):
        builder.request(said)


def _ask_amp(builder: RunBuilder, block: Object) -> None:
    tool, given = string_of(block.get("name")), dict(arguments_of(block.get("input")))
    folder = string_of(given.get("cwd")) or None
    if tool == "Bash" and isinstance(given.get("cmd"), str):
        tool, given = "bash", {"command": given["cmd"]}
    if "read_range" in given:
        given["view_range"] = given.pop("read_range")
    builder.ask(string_of(block.get("id")), tool, given, folder)


def _answer_amp(builder: RunBuilder, id: str, run: Object) -> None:
    result, code = run.get("result"), mapping_of(run.get("result")).get("exitCode")
    told = mapping_of(result)
    shown = text_of(result) or text_of(told.get("content")) or text_of(told.get("output")) or text_of(told.get("diff"))
    failed = run.get("status") in ("error", "cancelled", "rejected-by-user")
    text = shown or text_of(mapping_of(run.get("error")).get("message"))
    builder.answer(id, text, failed=failed, exit_code=code)
