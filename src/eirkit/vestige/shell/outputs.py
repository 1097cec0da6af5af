"""Attributes the output of a call to the files that it shows.

The whole output belongs to a file if one stream alone was printed; otherwise it is split where the text shows how:
echoed headings, names before lines, line numbers, ranges of known length. What cannot be separated has no content; its
tokens are shared equally among the streams that printed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from json import JSONDecoder

from msgspec import Struct
from msgspec.structs import replace

from eirkit.vestige.shell.state import SHOWING, Flow, ShellState, may_complain, without_complaints
from eirkit.vestige.trajectory import FileRead, Lines
from eirkit.vestige.viewer_output import clip_marks

_SHORTEST_CLIPPED = 1000  # characters: scaffolds do not truncate shorter outputs
_LOOK_AHEAD = 20  # streams that are considered for the next heading
CHOSEN = Lines(1, 0)  # an empty range: lines were selected by content and none requested by number
_TAB_LINE = re.compile(r"(?m)^(?:\d+[:-])?[ ]*(\d{1,9})\t(.*)$")
_SPACED_LINE = re.compile(r"(?m)^ {0,5}(\d{1,6})  (.*)$")  # a terminal that draws tabs prints blanks
_COLON_LINE = re.compile(r"(?m)^(\d{1,9})[:-](.*)$")
_FOUND = re.compile(r"(?m)^([^\s:][^:\n]{0,400}):(?:(\d{1,9})[:])?(.*)$")
_FOUND_ON_WINDOWS = re.compile(r"(?m)^(?:[> ] )?((?:[A-Za-z]:)?[^:\n]{1,400}):(?:(\d{1,9}):)?(.*)$")
_CONTEXT = re.compile(r"(?m)^([^\s:][^:\n]{0,400}?)-(\d{1,9})-(.*)$")
_HEADING = re.compile(r"(?m)^==> ([^\n]+) <==\n")
_DIFF_FILE = re.compile(r"(?m)^diff (?:--git|--cc|-\w*+) [^\n]*\n|^--- [^\n]+\n(?=\+\+\+ )")
_NEW_NAME = re.compile(r"(?m)^\+\+\+ (?:b/|w/)?([^\t\n]+)")
_SURE_NAME = re.compile(r"[^/]*+/.*\.\w{1,8}")
_PATHLIKE = re.compile(r"[\w.@+~/-]+")


class _Region(Struct, frozen=True, gc=False):
    """A part of the output and the streams that produced it."""

    text: str
    flows: tuple[Flow, ...]


def reads_of(flows: Sequence[Flow], output: str, state: ShellState) -> Iterator[FileRead]:
    """Yield the reads of the streams that together produced an output."""
    if not output or SHOWING.isdisjoint([flow.kind for flow in flows]):
        return
    clipped = bool(clip_marks(output))
    if may_complain(output):
        flows, output = without_complaints(flows, output, state)
    if not flows or not output or output.isspace():
        return
    if len(flows) == 1 and flows[0].kind == "files" and len(flows[0].files) == 1 and not flows[0].headed:  # most views
        read = _file_read(flows[0], flows[0].files[0], output)
        yield replace(read, clipped=True) if clipped else read
        return
    for region in _regions(output, flows) if len(flows) > 1 else (_Region(output, tuple(flows)),):
        for read in _region_reads(region, state):
            yield replace(read, clipped=True) if clipped and (len(flows) == 1 or clip_marks(region.text)) else read


def _regions(output: str, flows: Sequence[Flow]) -> Iterator[_Region]:
    """Yield the parts of the output between texts that the command itself printed."""
    start, waiting = 0, list[Flow]()
    for number, flow in enumerate(flows):
        text = (flow.text or "").strip("\n")
        if flow.kind != "text" or not text.strip():
            waiting.append(flow)
            continue
        at = _find_line(output, text, start)
        if at < 0 or (flow.optional and at > _next_heading(output, flows[number + 1 :], start)):
            continue  # not printed: the other branch of a condition, or truncated by the scaffold
        if waiting:
            yield _Region(output[start:at], tuple(waiting))
        start = at + len(text)
        start += output.startswith("\n", start)
        waiting = []
    if waiting:
        yield _Region(output[start:], tuple(waiting))


def _next_heading(output: str, flows: Sequence[Flow], start: int) -> int:
    """Return the position of the next text that was certainly printed."""
    for flow in flows[:_LOOK_AHEAD]:
        if flow.kind == "text" and not flow.optional and (text := (flow.text or "").strip("\n")).strip():
            at = _find_line(output, text, start)
            return at if at >= 0 else len(output)
    return len(output)


def _find_line(output: str, text: str, start: int) -> int:
    if output.startswith(text, start):
        return start
    at = output.find(f"\n{text}", start)
    return at + 1 if at >= 0 else -1


def _region_reads(region: _Region, state: ShellState) -> Iterator[FileRead]:
    if not region.text or region.text.isspace():
        return
    if len(region.flows) > 1:
        # A search without matches printed nothing, so the output belongs to the others.
        region = replace(region, flows=tuple(flow for flow in region.flows if flow.may_be_in(region.text)))
    if len(region.flows) <= 1:
        for flow in region.flows:
            yield from _flow_reads(flow, region.text, state)
        return
    if (only := _one_file(region, state)) is not None:
        yield _file_read(only, only.files[0], region.text)
        return
    parts = _split(region, state)
    if parts is not None:
        for flow, text in parts:
            if text.strip():
                yield from _flow_reads(flow, text, state)
        return
    yield from _shared(region, state)


def _one_file(region: _Region, state: ShellState) -> Flow | None:
    """Return one stream in place of several that all show the same file."""
    first = region.flows[0]
    if any(flow.kind != "files" or flow.files != first.files for flow in region.flows) or len(first.files) != 1:
        return None
    same = len({(flow.numbering, flow.offset) for flow in region.flows}) == 1 and first.numbering
    if not same and _split(region, state) is not None:
        return None
    return replace(first, chosen=True, numbering=first.numbering if same else "")


def _split(region: _Region, state: ShellState) -> list[tuple[Flow, str]] | None:
    """Return the text of each stream if their lengths or line numbers separate them."""
    flows = region.flows
    lines = region.text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if all(flow.numbering == "tab" for flow in flows) and len(runs := _runs(lines)) == len(flows):
        return _dealt(flows, lines, runs)
    sizes = _sizes(flows, lines, state)
    return _dealt(flows, lines, sizes) if sizes is not None else None


def _sizes(flows: Sequence[Flow], lines: list[str], state: ShellState) -> list[int] | None:
    """Return how many lines each stream printed, where their lengths are known, all but one of them at least."""
    known = [_size(flow, state) for flow in flows]
    total = sum(size for size in known if size is not None)
    if None not in known:
        return [size or 0 for size in known] if total == len(lines) else None
    first = known.index(None)
    if known.count(None) > 1 and flows[first].files[:1] and flows[first].files[0].endswith(".json"):
        # The end of a JSON document is in its text.
        known[first] = _json_lines(lines[sum(size or 0 for size in known[:first]) :])
        return None if known[first] is None else _rest(known, len(lines))
    return _rest(known, len(lines))


def _rest(known: list[int | None], total: int) -> list[int] | None:
    """Return sizes of which one was unknown: it has what the others leave."""
    left = total - sum(size or 0 for size in known)
    if known.count(None) != 1 or left <= 0:
        return None
    return [left if size is None else size for size in known]


def _json_lines(lines: list[str]) -> int | None:
    text = "\n".join(lines)
    try:
        _, end = JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return text.count("\n", 0, end) + 1


def _size(flow: Flow, state: ShellState) -> int | None:
    """Return how many lines a stream has, if its range ends or its file was shown before."""
    if flow.kind != "files" or flow.chosen or flow.headed or len(flow.files) != 1:
        return None
    length = state.lengths.get(flow.files[0])
    if length is None and flow.files[0] in state.texts:
        length = state.texts[flow.files[0]].count("\n")
    ends = [end for end in (flow.last, length) if end is not None]
    return max(0, min(ends) - flow.first + 1) if ends else None


def _dealt(flows: Sequence[Flow], lines: list[str], sizes: Sequence[int]) -> list[tuple[Flow, str]]:
    parts, at = [], 0
    for flow, size in zip(flows, sizes, strict=True):
        parts.append((flow, "\n".join(lines[at : at + size]) + "\n"))
        at += size
    return parts


def _runs(lines: list[str]) -> list[int]:
    """Return the lengths of the runs of consecutive line numbers."""
    runs: list[int] = []
    before = -2
    for line in lines:
        number = line.split("\t", 1)[0].strip()
        current = int(number) if number.isdigit() and len(number) < 10 else before + 1
        if current == before + 1 and runs:
            runs[-1] += 1
        else:
            runs.append(1)
        before = current
    return runs


def _shared(region: _Region, state: ShellState) -> Iterator[FileRead]:
    """Yield the reads of streams that cannot be separated, those with names in their text first."""
    told: dict[str, FileRead] = {}
    telling = 0
    revisions = tuple(revision for flow in region.flows for revision in flow.revisions)
    for flow in (replace(flow, revisions=revisions) if revisions else flow for flow in region.flows):
        if flow.kind in ("search", "diff") or flow.headed:
            reads = [read for read in _flow_reads(flow, region.text, state) if read.content is not None]
            telling += bool(reads)
            told.update((read.path, read) for read in reads if read.path not in told)
    yield from told.values()
    shows = {path: flow for flow in region.flows if flow.kind == "files" for path in flow.files}
    sharing = len(shows) + telling + sum(flow.kind in ("other", "text", "none") for flow in region.flows)
    tokens = state.count(region.text) // sharing if shows else 0
    for path, flow in shows.items():
        if path not in told:
            yield FileRead(path, tokens=tokens, requested=_requested(flow), undivided=sharing > 1)


def _requested(flow: Flow) -> Lines | None:
    if flow.chosen:
        return CHOSEN
    if flow.first == 1 and flow.last is None:
        return None
    return Lines(flow.first, flow.last if flow.last is not None else 1 << 30)


def _flow_reads(flow: Flow, text: str, state: ShellState) -> Iterator[FileRead]:
    if flow.kind == "search":
        yield from _search_reads(flow, text, state)
    elif flow.kind == "diff":
        yield from _diff_reads(flow, text, state)
    elif flow.kind == "files":
        if flow.headed and (headings := list(_HEADING.finditer(text))):
            yield from _headed_reads(flow, text, headings, state)
        elif len(flow.files) == 1:
            yield _file_read(flow, flow.files[0], text)
        else:
            apart = tuple(replace(flow, headed=False, files=(path,)) for path in flow.files)
            # One command prints its files one after the other; a window is of each or of all, so of neither.
            parts = None if flow.chosen or flow.last is not None else _split(_Region(text, apart), state)
            for one, part in parts or ():
                yield from _flow_reads(one, part, state) if part.strip() else ()
            if parts is None:
                yield from _shared(_Region(text, (replace(flow, headed=False),)), state)


def _headed_reads(flow: Flow, text: str, headings: list[re.Match[str]], state: ShellState) -> Iterator[FileRead]:
    """Yield the reads of files printed one after the other under `==> name <==` headings."""
    most = None if flow.last is None else max(0, flow.last - flow.first + 1)
    for found, after in zip(headings, [*headings[1:], None], strict=True):
        path = state.resolve(found[1], flow.folder)
        body = text[found.end() : after.start() - 1 if after else len(text)]
        if most is not None and body.count("\n") > most:
            body = "\n".join(body.split("\n", most)[:most]) + "\n"
        if path is not None and body.strip():
            yield _file_read(flow, path, body)


def _file_read(flow: Flow, path: str, text: str) -> FileRead:
    lines = None
    if flow.numbering:
        pattern = _TAB_LINE if flow.numbering == "tab" else _COLON_LINE
        found = pattern.findall(text)
        if not found and flow.numbering == "tab":
            found = _SPACED_LINE.findall(text)
        lines = {int(number) + flow.offset: line for number, line in found} or None
    elif not flow.chosen:
        lines = _counted(text, flow)
    return FileRead(path, content=text, lines=lines, requested=_requested(flow))


def _counted(text: str, flow: Flow) -> dict[int, str] | None:
    """Return lines by number, counted from the first requested one, up to the first truncation."""
    if len(text) >= _SHORTEST_CLIPPED and (marks := clip_marks(text)):
        text = text[: text.rfind("\n", 0, marks[0].start) + 1]
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if flow.last is not None and len(lines) > flow.last - flow.first + 1:
        return None
    return dict(enumerate(lines, flow.first)) or None


def _search_reads(flow: Flow, text: str, state: ShellState) -> Iterator[FileRead]:
    resolved: dict[str, str | None] = {}
    found: dict[str, list[tuple[str, str]]] = {}
    accepts = _accepts(flow.bases)
    for before in flow.revisions:
        text = f"\n{text}".replace(f"\n{before}:", "\n")[1:]
    for pattern in (_FOUND_ON_WINDOWS,) if flow.on_windows else (_FOUND, _CONTEXT):
        for name, number, line in pattern.findall(text):
            if name not in resolved:
                plain = name.replace("\\", "/") if flow.on_windows else name
                known = accepts(plain[2:] if plain[1:2] == ":" else plain)
                # A hyphen may be part of a name; only one with a folder and a suffix is sure.
                known = known and (pattern is not _CONTEXT or _SURE_NAME.fullmatch(plain) is not None)
                resolved[name] = state.resolve(plain, flow.folder) if known else None
            path = resolved[name]
            if path is not None:
                found.setdefault(path, []).append((number, line))
        if "-" not in text or not found:
            break
    for path, lines in found.items():
        numbered = {int(number): line for number, line in lines if number}
        yield FileRead(
            path, content="\n".join(line for _, line in lines) + "\n", lines=numbered or None, requested=CHOSEN
        )


def _accepts(bases: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a test of whether a name before a line can be a file of the search."""
    starts = tuple(base.rstrip("/") for base in bases if base.rstrip("/") not in ("", "."))
    anything = not starts or len(starts) < len(bases)

    def accepts(name: str) -> bool:
        if not _PATHLIKE.fullmatch(name) or name.endswith("/"):
            return False
        return bool(starts and name.startswith(starts)) or (anything and ("/" in name or "." in name))

    return accepts


def _diff_reads(flow: Flow, text: str, state: ShellState) -> Iterator[FileRead]:
    starts = [found.start() for found in _DIFF_FILE.finditer(text)]
    merged: dict[str, list[str]] = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        body = text[start:end]
        named = _NEW_NAME.search(body)
        if named and named[1] != "/dev/null" and (path := state.resolve(named[1].strip(), flow.folder)) is not None:
            merged.setdefault(path, []).append(body)
    if flow.chosen and not starts and len(flow.files) == 1:
        merged[flow.files[0]] = [text]  # a filter left lines of the diff of one file
    for path, bodies in merged.items():
        yield FileRead(path, content="".join(bodies), requested=CHOSEN)
