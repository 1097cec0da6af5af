"""The shell's state between the calls of a run: its folder, the repository, and what is known of the files.

Paths are made absolute with the folder and then relative to the repository; the local disk is never accessed.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache

from eirkit.logs.shell.words import UNKNOWN, Glob
from eirkit.logs.trajectory import WriteKind

_MOST_KNOWN = 20_000  # names against which globs are matched
_MOST_MATCHES = 200  # files that one glob may match
_LONGEST_PATH = 1000
_MOST_LISTINGS = 64  # searches whose results are kept, with their folders
_LONGEST_LISTING = 20_000
_LONGEST_GLOB = 200
_KEPT_CHARACTERS = 1 << 23  # characters of file texts that are kept
_NAME = re.compile(r"[\w./@+~-]+")


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
    unresolved: int = 0  # words that name files which cannot be determined
    listings: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=_MOST_LISTINGS))
    _outputs: list[tuple[str, str]] = field(default_factory=list)
    met: dict[str, None] = field(default_factory=dict)  # files that calls named, extended when a glob is matched
    shown: dict[str, None] = field(default_factory=dict)  # files of which the run was shown any content
    _kept: int = 0

    def resolve(self, word: str, folder: str | None = None) -> str | None:
        """Return the path that a word names, relative to the repository if inside it; None if it names none."""
        if not word or UNKNOWN in word or len(word) > _LONGEST_PATH or "\n" in word:
            self.unresolved += 1
            return None
        return self.relative(self.absolute(word, folder))

    def absolute(self, word: str, folder: str | None = None) -> str:
        """Return a word as a path from the root of the file system, or from the run's first folder."""
        base = self.folder if folder is None else folder
        path = word if not base or word[0] in "/~" else f"{base}/{word}"
        return _normal(path)

    def relative(self, path: str) -> str | None:
        """Return an absolute path as the graph names it; None for devices."""
        for root in self.roots:
            if path.startswith(root) and path[len(root) : len(root) + 1] in ("/", ""):
                return path[len(root) + 1 :] or "."
        if path.startswith(("/dev/", "/proc/")):
            return None
        return path

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
        matches = _pattern(wanted)
        found = [path for path in self.known() if matches(path)][:_MOST_MATCHES]
        self.unresolved += not found
        return found

    def known(self) -> Iterable[str]:
        """Return every file that the run has named or shown so far."""
        for text, folder in self._outputs:
            for name in dict.fromkeys(_NAME.findall(text)):
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
        self.met.pop(path, None)
        self.shown.pop(path, None)
        self.keep_text(path, None)

    def keep_text(self, path: str, text: str | None) -> None:
        """Keep a file's whole text, or forget it if it is no longer known."""
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
