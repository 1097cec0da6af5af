"""The shell between and within calls: its folder, known files, and which content each stream carries.

Paths are made absolute with the folder and then relative to the repository; the local disk is never accessed.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from eirkit.vestige.shell.words import UNKNOWN, Glob
from eirkit.vestige.trajectory import WriteKind

_MOST_KNOWN = 20_000  # names against which globs are matched
_MOST_LINKS = 32
_MOST_MATCHES = 200  # files that one glob may match
_LONGEST_PATH = 1000
_MOST_LISTINGS = 64  # searches whose results are kept, with their folders
_LONGEST_LISTING = 20_000
_LONGEST_GLOB = 200
_KEPT_CHARACTERS = 1 << 23  # characters of file texts that are kept
_CHARACTERS_PER_COMMAND = 25  # a log of 1 MB may have 40,000 commands interpreted beyond the first 20,000
_PROGRAM_CHARACTERS_PER_COMMAND = 30  # a program is parsed and followed once in so much time for each character
_KNOWN_CHARACTERS_PER_COMMAND = 4000  # and looked up in so much
_MOST_PROGRAMS = 256  # that count as known; `python_programs` remembers more
_NAMES_PER_COMMAND = 80  # a glob is compared with so many names in the time of a command
_NAME = re.compile(r"[\w./@+~-]+")
_BETWEEN_NAMES = "".join(chr(code) if _NAME.match(chr(code)) else " " for code in range(128))  # for `translate`
_CONTROL = re.compile(r"[\x00-\x1f]")  # in no file's name; some mark what a word does not determine
_MOUNTED = re.compile(r"/[A-Za-z]/")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(slots=True)
class Effort:
    """What may still be spent on the commands of a run, counted in commands interpreted (about 20 µs each).

    A few characters can ask for much: nested loops, a script run again and again, syntax that the grammar cannot
    parse. So what a run may spend grows with its log; it is a count and not a time, so that results can be repeated.
    """

    left: int = 20_000
    is_cut: bool = False  # the present call was not followed to its end

    def begin(self, characters: int) -> None:
        """Begin a call with so many characters of command and output."""
        self.left += characters // _CHARACTERS_PER_COMMAND
        self.is_cut = False

    def spend(self, commands: int) -> bool:
        """Take so much from what is left; False if nothing is left: the call is cut short."""
        if self.left <= 0:
            self.is_cut = True
            return False
        self.left -= commands
        return True


@dataclass(slots=True)
class ShellState:
    """The state that one call leaves to the next, for one run."""

    roots: tuple[str, ...] = ()  # names of the repository's folder; relative paths refer to the first
    folder: str = ""  # absolute, or relative to the run's first folder
    keeps_folder: bool = True  # the shell persists from call to call
    count: Callable[[str], int] = len
    texts: dict[str, str] = field(default_factory=dict)  # files whose whole text is known, by path
    changed: dict[str, None] = field(default_factory=dict)  # files of the repository that differ from its last commit
    created: dict[str, None] = field(default_factory=dict)  # of these, the files that the run created
    stashed: list[dict[str, WriteKind]] = field(default_factory=list)  # what restoring each does to its files
    committed: list[tuple[str, ...]] = field(default_factory=list)  # files of the run's own commits, empty if unknown
    folders: dict[str, None] = field(default_factory=dict)  # folders that the run created
    patches: dict[str, tuple[str, ...]] = field(default_factory=dict)  # patch files and the files that they change
    open_file: str | None = None  # file that is open in a windowed viewer
    on_windows: bool = False  # a line of PowerShell or cmd was seen
    is_unnamed: bool = False  # the present call wrote or showed files whose names the log does not tell
    effort: Effort = field(default_factory=Effort)
    programs: dict[int, None] = field(default_factory=dict)  # programs that were paid for, by their hash
    unclear_calls: Tally[str] = field(default_factory=Tally)  # by tool: calls that may have touched other files
    listings: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=_MOST_LISTINGS))
    _outputs: list[tuple[str, str]] = field(default_factory=list)
    met: dict[str, None] = field(default_factory=dict)  # files that calls named, extended when a glob is matched
    shown: dict[str, None] = field(default_factory=dict)  # files of which the run was shown any content
    links: dict[str, str] = field(default_factory=dict)  # links that the run made or saw, and where they lead
    lengths: dict[str, int] = field(default_factory=dict)  # lines of files that were shown as a whole and not changed
    _kept: int = 0
    _resolved: dict[tuple[str, str], str] = field(default_factory=dict)  # by folder and word
    _matched: dict[str, tuple[int, list[str]]] = field(default_factory=dict)  # names looked at and matched, by glob

    def pay_for_program(self, text: str, arguments: tuple[str, ...]) -> bool:
        """Pay for following a program; one that the run started before, with the same arguments, is remembered."""
        key = hash((text, arguments))
        if key in self.programs:
            return self.effort.spend(1 + len(text) // _KNOWN_CHARACTERS_PER_COMMAND)
        if len(self.programs) >= _MOST_PROGRAMS:
            self.programs.clear()
        self.programs[key] = None
        return self.effort.spend(1 + len(text) // _PROGRAM_CHARACTERS_PER_COMMAND)

    def resolve(self, word: str, folder: str | None = None) -> str | None:
        """Return the path that a word names, relative to the repository if inside it; None if it names none."""
        base = self.folder if folder is None else folder
        known = self._resolved.get((base, word))  # a run names the same files again and again
        if known is not None:
            return known
        if not word or len(word) > _LONGEST_PATH or _CONTROL.search(word):
            return None
        path = self.absolute(word, base)
        found = None if UNKNOWN in path else self.relative(path)
        if found is not None:
            self._resolved[base, word] = found
        return found

    def absolute(self, word: str, folder: str | None = None) -> str:
        """Return a word as a path from the root of the file system, or from the run's first folder."""
        base = self.folder if folder is None else folder
        if _DRIVE.match(word):
            return _normal(word[0].upper() + word[1:].replace("\\", "/"))
        if base[1:2] == ":" and _MOUNTED.match(word):  # Git Bash names drives so
            return _normal(f"{word[1].upper()}:{word[2:]}")
        path = word if not base or word[0] in "/~" else f"{base}/{word}"
        return _normal(path)

    def relative(self, path: str) -> str | None:
        """Return an absolute path as the graph names it, behind known links; None for devices."""
        found = self.inside(path)
        if found.startswith(("/dev/", "/proc/")):
            return None
        for link, target in self.links.items():
            if found == link or found.startswith(f"{link}/"):
                return self.inside(_normal(target + found[len(link) :]))
        return found

    def inside(self, path: str) -> str:
        """Return a path relative to the repository if it is in there."""
        for root in self.roots:
            if path.startswith(root) and path[len(root) : len(root) + 1] in ("/", ""):
                return path[len(root) + 1 :] or "."
        return path

    def link(self, path: str, target: str | None) -> bool:
        """Record that a path is another name of a target, or no longer; return whether it was such a name before."""
        before = self.links.pop(path, None)
        if target and not f"{target}/".startswith(f"{path}/") and len(self.links) < _MOST_LINKS:
            self.links[path] = target
        self._resolved.clear()
        return before is not None

    def leave_unnamed(self, is_so: bool = True) -> None:
        """Note that it is not known which files the present call touched."""
        self.is_unnamed = self.is_unnamed or is_so

    def resolve_all(self, words: Iterable[str], folder: str | None = None) -> list[str]:
        """Return the paths that words name, with globs matched against the files met so far."""
        paths: list[str] = []
        for word in words:
            if isinstance(word, Glob):
                paths.extend(self.match(word, folder))
            elif (path := self.resolve(word, folder)) is not None:
                paths.append(path)
        return paths

    def match(self, pattern: str, folder: str | None = None) -> list[str]:
        """Return the known files that match a glob."""
        wanted = self.resolve(pattern, folder)
        if wanted is None or len(wanted) > _LONGEST_GLOB:
            return []
        known = self.known()
        # Names are only added, so that those looked at before need not be looked at again.
        seen, found = self._matched.get(wanted, (0, []))
        cost = (len(known) - seen) // _NAMES_PER_COMMAND
        if seen < len(known) and len(found) < _MOST_MATCHES and self.effort.spend(cost):
            found = [*found, *filter(_pattern(wanted), islice(known, seen, None))][:_MOST_MATCHES]
            self._matched[wanted] = len(known), found
        return list(found)

    def known(self) -> Collection[str]:
        """Return every file that the run has named or shown so far."""
        for text, folder in self._outputs:
            names = text.translate(_BETWEEN_NAMES).split() if text.isascii() else _NAME.findall(text)
            for name in dict.fromkeys(names):
                if len(self.met) >= _MOST_KNOWN:
                    break
                if ("." in name or "/" in name) and len(name) < _LONGEST_PATH and (path := self.resolve(name, folder)):
                    self.met[path] = None
        self._outputs.clear()
        return self.met

    def note_output(self, text: str, folder: str) -> None:
        """Keep an output for its file names, in case a glob follows."""
        self._outputs.append((text, folder))

    def note_listing(self, command: str, output: str, folder: str) -> None:
        """Keep the result of a search, in case another command uses the files that it finds."""
        if len(output) <= _LONGEST_LISTING:
            self.listings.append((command, output, folder))

    def note_file(self, path: str) -> None:
        """Record a file's name."""
        self.met[path] = None

    def note_read(self, path: str) -> None:
        """Record the name of a file that was shown."""
        self.met[path] = self.shown[path] = None

    def forget(self, path: str) -> None:
        """Drop a file that was removed."""
        if path in self.met:
            del self.met[path]
            self._matched.clear()
        self.shown.pop(path, None)
        self.keep_text(path, None)

    def keep_text(self, path: str, text: str | None) -> None:
        """Keep a file's whole text, or forget it if it is no longer known."""
        self.lengths.pop(path, None)
        old = self.texts.pop(path, None)
        self._kept -= len(old or "")
        if text is not None and self._kept + len(text) <= _KEPT_CHARACTERS:
            self.texts[path] = text
            self._kept += len(text)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> Callable[[str], object]:
    # Unlike in fnmatch, a star does not match a slash.
    return re.compile(translate(glob).replace(".*?", "[^/]*?").replace(".*", "[^/]*")).match


def _normal(path: str) -> str:
    if "/." in path or "//" in path or path[0] == "." or path[-1] == "/":
        normal = posixpath.normpath(path)
        return normal[1:] if normal.startswith("//") else normal
    return path


FlowKind = Literal["none", "text", "files", "search", "diff", "other", "mixed"]
Numbering = Literal["", "tab", "colon"]
_MATCH = re.compile(r"(?m)^\d{1,9}:")
SHOWING = frozenset({"files", "search", "diff", "mixed"})  # kinds of stream that may carry file content


class Flow(Struct, frozen=True, gc=False):
    """A stream of text between commands.

    `none` carries nothing, `text` literal text of the command, `files` the content of files, `search` lines prefixed by
    the name of their file, `diff` a patch, `mixed` several streams, `other` anything else.
    """

    kind: FlowKind
    files: tuple[str, ...] = ()
    text: str | None = None
    first: int = 1  # the first requested line; the stream starts there
    last: int | None = None  # the last requested line; None: to the end
    chosen: bool = False  # lines are selected by content, so their numbers are unknown
    numbering: Numbering = ""  # how line numbers are printed before the lines
    offset: int = 0  # added to a printed number
    folder: str = ""  # folder to which names in the stream are relative
    bases: tuple[str, ...] = ()  # of a search: the operands with which names begin
    parts: tuple[Flow, ...] = ()  # of a mixed stream
    optional: bool = False  # whether it was printed depends on an earlier command
    headed: bool = False  # file names are printed between its files, as by `head`
    sought: tuple[str, ...] | None = None  # of a search: every match contains one of these texts

    listed: tuple[str, ...] = ()  # files whose names it prints, where they are known without output
    on_windows: bool = False  # names in it have backslashes, and drives
    revisions: tuple[str, ...] = ()  # of a search: what precedes the names, with a colon
    is_unnamed: bool = False  # it has the content of files whose names are not known

    @property
    def shows_files(self) -> bool:
        """Return whether the stream may carry file content."""
        return self.kind in SHOWING

    def may_be_in(self, text: str) -> bool:
        """Return False for a search that cannot match anything in a text."""
        if self.sought is None:
            return True
        if self.numbering == "colon" and not _MATCH.search(text):
            return False
        return not self.sought or any(sought in text for sought in self.sought)


NOTHING = Flow("none")
OTHER = Flow("other")
UNNAMED = Flow("other", is_unnamed=True)


def window(flow: Flow, first: int, last: int | None) -> Flow:
    """Return the stream restricted to some lines, by their position in it."""
    if flow.kind == "text":
        return replace(flow, kind="other", text=None)
    if flow.headed or flow.listed or flow.kind == "mixed":
        return chosen(flow)
    if flow.chosen or flow.kind != "files" or len(flow.files) != 1:
        return flow
    start = flow.first + first - 1
    ends = [end for end in (flow.last, None if last is None else flow.first + last - 1) if end is not None]
    return replace(flow, first=start, last=min(ends) if ends else None)


def last_lines(flow: Flow, count: int) -> Flow:
    """Return the stream restricted to its last lines."""
    if flow.kind == "files" and flow.last is not None and not flow.chosen and len(flow.files) == 1:
        return replace(flow, first=max(flow.first, flow.last - count + 1))
    return chosen(flow)


def chosen(flow: Flow) -> Flow:
    """Return the stream restricted to lines selected by content."""
    if flow.kind == "text" or flow.listed:
        return replace(flow, kind="other", text=None, listed=())
    if flow.kind == "mixed":
        return replace(flow, chosen=True, parts=tuple(map(chosen, flow.parts)))
    return replace(flow, chosen=True, sought=None) if flow.shows_files else flow


def merged(flows: list[Flow]) -> Flow:
    """Return several consecutive streams as one."""
    kept = [part for flow in flows for part in (flow.parts or (flow,)) if part.kind != "none"]
    if len(kept) <= 1:
        return kept[0] if kept else NOTHING
    if all(flow.kind == "text" and flow.text is not None for flow in kept):
        return Flow("text", text="".join(flow.text or "" for flow in kept))
    files = tuple(dict.fromkeys(path for flow in kept for path in flow.files))
    if any(flow.shows_files for flow in kept):
        return Flow("mixed", files=files, parts=tuple(kept))
    return UNNAMED if any(flow.is_unnamed for flow in kept) else OTHER


_TOOLS = (
    "cat|head|tail|sed|gsed|nl|e?f?grep|[gm]?awk|less|more|diff|ls|rg|sort|uniq|cut|paste|tac|rev|fold|column|comm|join|od"
    "|xxd|hexdump|strings|jq|wc|dd|batcat|bat|bash|sh|/bin/sh|/bin/bash|/usr/bin/bash"
)
_COMPLAINT = re.compile(
    rf"(?m)^(?:[\w./-]+: )?(?:line \d+: )?(?:{_TOOLS}): ([^\n]*?)"
    r"(?:No such file or directory|cannot open|can't read|Is a directory|Not a directory|Permission denied)([^\n]*)\n?"
    r"|^([^\s:]+): No such file or directory()\n?"  # pagers print no command name
    r"|^fatal: ([^\n]*(?:does not exist|no such path|exists on disk, but not)[^\n]*)()\n?"
)
_STREAM_NAME = re.compile(r"[^\s:'\"`‘’()]+")


def may_complain(output: str) -> bool:
    """Return quickly whether an output may contain an error message about a file."""
    if "directory" in output and ("No such file" in output or " a directory" in output):
        return True
    return "Permission denied" in output or "fatal: " in output


def without_complaints(flows: Sequence[Flow], output: str, state: ShellState) -> tuple[Sequence[Flow], str]:
    """Return the streams without files that an error names, and the output without these errors."""
    missing = files_complained_of(output, {path for flow in flows for path in flow.files}, state)
    output = _COMPLAINT.sub("", output)
    return (tuple(_without(flows, missing)) if missing else flows), output


def files_complained_of(output: str, paths: Collection[str], state: ShellState) -> set[str]:
    """Return the files, of those given, that an error message names."""
    if not paths or not may_complain(output):
        return set()
    named = {
        word
        for found in _COMPLAINT.finditer(output)
        for part in found.groups()
        if part
        for word in _STREAM_NAME.findall(part)
    }
    found = (_closest(name, paths, state) for name in named)
    return {path for path in found if path is not None}


def _closest(name: str, paths: Collection[str], state: ShellState) -> str | None:
    """Return the file that a name refers to, as spelled on the command line, which may have changed folder before."""
    path = state.relative(state.absolute(name))
    if path in paths:
        return path
    end = f"/{name.removeprefix('./')}"
    return min((path for path in paths if path.endswith(end)), key=len, default=None)


def _without(flows: Sequence[Flow], missing: Collection[str]) -> Iterator[Flow]:
    for flow in flows:
        left = tuple(path for path in flow.files if path not in missing)
        if left or left == flow.files:
            yield replace(flow, files=left)
