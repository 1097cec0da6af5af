"""The ledger of the context: which lines of files a model's context holds after each message, and what brought them.

A line enters by a message (a result that shows it, a call of the agent that writes it, a file that the scaffold puts
back, a text that quotes it) and is held as long as one such message is in the context. An edit moves the lines below it
and takes those that it replaces out of the file; they are in the context still, but no longer lines of the file. What a
break dropped, what was put back or read again, and what a note should name are questions to this one account.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from msgspec.structs import replace

from eirkit.vestige.lines import is_distinctive, normalized_line
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import FileRead, FileWrite, Lines, RecordedTurn, Turn
from eirkit.vestige.viewer_output import names_file, numbered, without_number

Source = Literal["shown", "echoed", "written", "put back", "quoted"]
# Before lines of the new version in the result of an edit, as Claude Code until 2.1 and as Gemini CLI say it.
_NUMBERED_ECHO = ". Here's the result of running `cat -n` on a snippet of the edited file:\n"
_PLAIN_ECHO = " Here is the updated code:\n"
_OF_TURNS: tuple[Source, ...] = ("shown", "echoed", "written")
_MOST_SHOWN = 2_000  # lines that some viewers show of a file unasked; a longer one may go on


class Message(NamedTuple):
    """A part of the context: what a turn's results show or echo, its calls write, or a break before it brought."""

    turn: int
    source: Source


class Line:
    """One line of a file's present version.

    Args:
        text: as it was shown or written.
        brought: every message that had it.
    """

    __slots__ = ("_key", "brought", "is_gone", "text")

    def __init__(self, text: str, brought: Iterable[Message] = ()) -> None:
        self.text, self.brought = text, list(brought)
        self.is_gone = False  # the file has it no more
        self._key: str | None = None

    @property
    def key(self) -> str:
        """The text with its white space normalized."""
        if self._key is None:
            self._key = normalized_line(self.text)
        return self._key


class File:
    """What was ever seen or written of a file's present version."""

    def __init__(self) -> None:
        self.numbered: dict[int, Line] = {}
        self.loose: list[Line] = []  # of which the number is not known, in order of appearance
        self.unseen: list[Message] = []  # that showed it, although the log does not have the text

    def lines(self) -> Iterator[Line]:
        """Yield all known lines, in the order of the file as far as it is known."""
        for number in sorted(self.numbered):
            yield self.numbered[number]
        yield from self.loose

    def show(self, message: Message, read: FileRead, *, is_whole: bool = False) -> list[Line]:
        """Take a view of the present version; return the lines that it showed."""
        if read.lines is not None:
            given = dict(read.lines)
        elif is_whole and read.content is not None:
            given = dict(enumerate(read.content.splitlines(), 1))
        elif read.content is not None:
            return self._show_loose(message, shown_texts(read))
        else:
            self.unseen.append(message)
            for line in self.lines():  # assume the whole of what is known
                line.brought.append(message)
            return []
        if is_whole:
            self._replace(message, given)
        else:
            self._show_numbered(message, given)
        return [self.numbered[number] for number in given]

    def write(self, message: Message, write: FileWrite) -> None:
        """Take a write: an edit keeps the lines that it does not replace."""
        if write.kind != "edit" or write.content is not None:
            content = None if write.kind == "delete" else write.content if write.content is not None else write.added
            self.unseen.clear()
            if content is None:
                self._drop(list(self.lines()))
                self.numbered, self.loose = {}, []
            else:
                self._replace(message, dict(enumerate(content.splitlines(), 1)))
        elif write.removed is not None or write.added is not None:
            self._edit(message, write.removed or "", write.added or "")

    def renew(self, read: FileRead) -> None:
        """Learn from a view of the whole file which lines it has no more, without taking the view itself."""
        if read.content is not None and not read.clipped:
            self._replace(None, dict(read.lines or enumerate(read.content.splitlines(), 1)))

    def _replace(self, message: Message | None, given: Mapping[int, str]) -> None:
        old, waiting = self.numbered, dict[str, list[Line]]()
        if (
            message is not None
            and not self.loose
            and list(given.items()) == [(n, line.text) for n, line in old.items()]
        ):
            for line in old.values():
                line.brought.append(message)
            return
        for number, line in old.items():
            if given.get(number) != line.text:
                waiting.setdefault(line.key, []).append(line)
        for line in self.loose:
            waiting.setdefault(line.key, []).append(line)
        self.numbered, self.loose = {}, []
        for number, text in given.items():
            known = old.get(number)
            if known is None or known.text != text:
                same = waiting.get(normalized_line(text)) if waiting else None
                known = same.pop(0) if same else Line(text)
            if message is not None:
                known.brought.append(message)
            if message is not None or known.brought:
                self.numbered[number] = known
        self._drop(line for lines in waiting.values() for line in lines)

    def _show_numbered(self, message: Message, given: Mapping[int, str]) -> None:
        known = self.numbered
        met = [number for number in given if number in known]
        changed = [number for number in met if known[number].text != given[number]]
        changed = [number for number in changed if known[number].key != normalized_line(given[number])]
        if 2 * len(changed) > len(met):  # something that the log does not show moved the lines
            self._lose_numbers()
        else:
            self._drop(known.pop(number) for number in changed)
        waiting = _by_key(self.loose)
        taken = set[int]()
        for number, text in given.items():
            line = self.numbered.get(number)
            if line is None:
                same = waiting.get(normalized_line(text)) if waiting else None
                line = same.pop(0) if same else Line(text)
                taken.add(id(line))
                self.numbered[number] = line
            line.brought.append(message)
        if taken and self.loose:
            self.loose = [line for line in self.loose if id(line) not in taken]

    def _show_loose(self, message: Message, texts: Iterable[str]) -> list[Line]:
        waiting, shown = _by_key(self.lines()), list[Line]()
        for text in texts:
            key = normalized_line(text)
            same = waiting.get(key)
            if same:
                line = same.pop(0)
            else:
                line = Line(text)
                self.loose.append(line)
            line.brought.append(message)
            shown.append(line)
        return shown

    def _edit(self, message: Message, removed: str, added: str) -> None:
        if not (removed and self._edit_in_place(message, removed, added)):
            self._edit_by_lines(message, removed, added)

    def _edit_in_place(self, message: Message, removed: str, added: str) -> bool:
        """Replace a text that stands in the known lines; every place of it, as a tool does that may replace several."""
        found = False
        for first, texts in reversed(list(self._stretches())):
            whole = "\n".join([*texts, ""])
            place = whole.rfind(removed)
            starts = [0, *accumulate(len(text) + 1 for text in texts)] if place >= 0 else []
            while place >= 0:
                found = True
                self._put(message, first, texts, starts, (place, removed, added))
                place = whole.rfind(removed, 0, place)
        return found

    def _stretches(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the texts of consecutive known lines with the number of the first of them."""
        numbers = sorted(self.numbered)
        texts = [self.numbered[number].text for number in numbers]
        if numbers and numbers[-1] - numbers[0] + 1 == len(numbers):
            yield numbers[0], texts
            return
        start = 0
        for place in range(1, len(numbers) + 1):
            if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
                yield numbers[start], texts[start:place]
                start = place

    def _put(
        self, message: Message, offset: int, texts: list[str], starts: list[int], edit: tuple[int, str, str]
    ) -> None:
        """Replace a text, at a place in consecutive lines, and move the lines below."""
        place, removed, added = edit
        end = place + len(removed)
        first = bisect_right(starts, place) - 1
        before = texts[first][: place - starts[first]]
        if removed.endswith("\n") and (added.endswith("\n") or not (added or before)):  # whole lines at its end
            last = bisect_right(starts, end - 1) - 1
            new = (before + added).split("\n")[:-1]
        else:
            last = min(bisect_right(starts, end) - 1, len(texts) - 1)
            new = (before + added + texts[last][max(0, end - starts[last]) :]).split("\n")
        old = [self.numbered[offset + number] for number in range(first, last + 1)]
        head = tail = 0
        while head < min(len(old), len(new)) and old[head].text == new[head]:
            head += 1
        while tail < min(len(old), len(new)) - head and old[-1 - tail].text == new[-1 - tail]:
            tail += 1
        self._drop(old[head : len(old) - tail])
        whole, by = set(added.split("\n")), len(new) - len(old)
        for line in (*old[:head], *old[len(old) - tail :]):
            if line.text in whole:
                line.brought.append(message)
        own = [Line(text, [message] if text in whole else []) for text in new[head : len(new) - tail]]
        start, stop = offset + first, offset + last
        self.numbered = {
            number + by if number > stop else number: line
            for number, line in self.numbered.items()
            if not start <= number <= stop
        }
        self.numbered.update(enumerate([*old[:head], *own, *old[len(old) - tail :]], start))

    def _edit_by_lines(self, message: Message, removed: str, added: str) -> None:
        """Replace lines one by one, where the text does not stand in the known lines as a whole, as in a patch."""
        old, new = removed.splitlines(), added.splitlines()
        waiting = _by_key(self.lines())
        gone: list[Line] = []
        for place, text in enumerate(old):
            same = waiting.get(normalized_line(text))
            if same:
                gone.append(same.pop(0))
            elif place in (0, len(old) - 1) and is_distinctive(part := normalized_line(text)):
                fits = _fits(part, is_only=len(old) == 1, is_first=place == 0)
                around = [line for line in self.lines() if fits(line.key)]
                if around and (len(old) == 1 or len(around) == 1):
                    gone += around
                    new = new[1:-1] if len(old) == 1 else new[1:] if place == 0 else new[:-1]
        self._drop(gone)
        if len(old) != len(new) or len(gone) != len(old):
            self._lose_numbers()
        self.numbered = {number: line for number, line in self.numbered.items() if not line.is_gone}
        self.loose = [line for line in self.loose if not line.is_gone]
        self.loose += [Line(text, [message]) for text in new]

    def _lose_numbers(self) -> None:
        self.loose = [*self.lines()]
        self.numbered = {}

    def _drop(self, lines: Iterable[Line]) -> None:
        for line in lines:
            line.is_gone = True


def shown_texts(read: FileRead) -> Iterator[str]:
    """Yield the lines of a file that a view shows: all of its text, or what a diff says the file has."""
    if read.lines is not None:
        yield from read.lines.values()
        return
    lines = (read.content or "").splitlines()
    if not any(line.startswith("@@ ") for line in lines):
        yield from lines
        return
    is_body = False
    for line in lines:
        if line.startswith("diff "):
            is_body = False
        elif line.startswith("@@"):
            is_body = True
        elif is_body and line[:1] in (" ", "+"):
            yield line[1:]


def _fits(part: str, *, is_only: bool, is_first: bool) -> Callable[[str], bool]:
    if is_only:
        return lambda key: part in key
    return (lambda key: key.endswith(part)) if is_first else (lambda key: key.startswith(part))


def _by_key(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.key, []).append(line)
    return found


def _bring(message: Message, stretch: Iterable[list[Line]]) -> None:
    """Note that a message has one of each list of equal lines, where it has several, one after the other."""
    for same in stretch:
        next((line for line in same if message not in line.brought[-1:]), same[0]).brought.append(message)


class Ledger:
    """The account of a session.

    Args:
        wanted: the files that it follows, with those that a scaffold puts back; None: all.
        root: the repository's folder, which the paths of files that a scaffold puts back may begin with.
    """

    def __init__(self, wanted: Container[str] | None = None, root: str | None = None) -> None:
        self.wanted = wanted
        self._root = f"{root.rstrip('/')}/" if root else ""
        self.files: dict[str, File] = {}
        self._also: set[str] = set()
        self._present: set[Message] = set()
        self._quotable: dict[str, dict[str, list[Line]]] | None = None  # by key and file; None: to be made again

    def take(self, turn: Turn) -> Mapping[int, list[Line]]:
        """Add what a turn showed and wrote; return the lines that each read showed, by its place."""
        shown, own = Message(turn.number, "shown"), Message(turn.number, "written")
        found: dict[int, list[Line]] = {}
        for place, read in enumerate(turn.reads):
            if not read.rewritten:
                found[place] = self.show(shown, read)
        for write in turn.writes:
            self.write(own, write)
        if turn.writes:
            self._echo(turn)
        for place, read in enumerate(turn.reads):
            if read.rewritten:
                found[place] = self.show(shown, read)
        return found

    def show(self, message: Message, read: FileRead) -> list[Line]:
        """Add a view of a file; return the lines that it showed."""
        if not self._follows(read.path):
            return []
        self._note(message)
        is_whole = message.source == "put back" and not read.clipped
        if message.source == "shown" and read.requested is None and read.lines is not None:
            is_whole = not read.clipped and 1 in read.lines and len(read.lines) < _MOST_SHOWN
        return self._file(read.path).show(message, read, is_whole=is_whole)

    def write(self, message: Message, write: FileWrite) -> None:
        """Add a change of a file by the agent, whose own call has the new text."""
        if self._follows(write.path):
            self._note(message)
            self._file(write.path).write(message, write)

    def _echo(self, turn: Turn) -> None:
        """Add the lines around an edit that its result shows."""
        message = Message(turn.number, "echoed")
        for call in turn.recorded.calls:
            told, found, rest = call.output.partition(_NUMBERED_ECHO)
            told, found, rest = (told, found, rest) if found else call.output.partition(_PLAIN_ECHO)
            for path in {write.path for write in turn.writes if found and names_file(told, write.path)}:
                lines = numbered(rest) if found == _NUMBERED_ECHO else None
                if lines:
                    self.show(message, FileRead(path, lines=lines, requested=Lines(min(lines), max(lines))))
                elif found == _PLAIN_ECHO:
                    text = rest.removeprefix("...\n").removesuffix("\n...")
                    self.show(message, FileRead(path, content=text, requested=Lines(1, 0)))

    def clear(self, kept: Collection[int] = ()) -> None:
        """Drop everything but the messages of some turns."""
        stays = set(kept)
        self._present = {one for one in self._present if one.turn in stays and one.source in _OF_TURNS}

    def forget(self, message: Message) -> None:
        """Drop one message, such as an old result that was cleared."""
        self._present.discard(message)

    def renew(self, turn: RecordedTurn) -> None:
        """Learn from files that a break put back as a whole which lines they have no more."""
        for file in self._put_back(turn):
            if file.path in self.files:
                self.files[file.path].renew(file)
                self._quotable = None

    def break_off(self, number: int, turn: RecordedTurn) -> None:
        """Replace the context by what the log says was in it after the break before a turn."""
        kept = turn.kept
        self.clear(() if kept is None else kept.turns)
        files = self._put_back(turn)
        self._also.update(file.path for file in files)
        for file in files:
            self.show(Message(number, "put back"), file)
        quoted = Message(number, "quoted")
        contents = {file.content for file in files}
        for text in (turn.carried, *(kept.texts if kept is not None else ())):
            if text and text not in contents:
                self.quote(quoted, text)

    def quote(self, message: Message, text: str) -> None:
        """Add the lines of files that a text repeats word for word.

        A line that several files have is one of the file with most of the lines around it; of all that have as many.
        Short lines count only beside a longer one of their file.
        """
        self._present.add(message)
        if self._quotable is None:
            self._quotable = {}
            for path, file in self.files.items():
                for line in file.lines():
                    self._quotable.setdefault(line.key, {}).setdefault(path, []).append(line)
        found = [self._lines_like(printed) for printed in text.splitlines()] if self._quotable else []
        start = 0
        while start < len(found):
            ends = dict.fromkeys(found[start], start)
            end, waiting = start, set(ends)
            while waiting:
                end += 1
                waiting &= found[end].keys() if end < len(found) else set()
                ends.update(dict.fromkeys(waiting, end))
            for path, last in ends.items():
                stretch = [found[place][path] for place in range(start, last + 1)] if last == end - 1 else []
                if any(is_distinctive(lines[0].key) for lines in stretch):
                    _bring(message, stretch)
            start = max(end, start + 1)

    def _lines_like(self, printed: str) -> Mapping[str, list[Line]]:
        """Return the lines that a printed one may be, by file."""
        assert self._quotable is not None
        found = self._quotable.get(normalized_line(printed))
        return found if found is not None else self._quotable.get(normalized_line(without_number(printed)), {})

    def holds(self, line: Line) -> bool:
        """Return whether a message with this line is in the context."""
        return not self._present.isdisjoint(line.brought)

    def known(self, path: str) -> list[Line]:
        """Return the lines that were ever seen or written of a file's present version."""
        return list(self.files[path].lines()) if path in self.files else []

    def held(self, path: str, sources: Collection[Source] | None = None) -> list[Line]:
        """Return the lines of a file's present version that are in the context, from some sources."""
        present = (
            self._present if sources is None else {message for message in self._present if message.source in sources}
        )
        return [line for line in self.known(path) if not present.isdisjoint(line.brought)]

    def is_in_view(self, path: str) -> bool:
        """Return whether the context has a view of a file of which the log does not record the text."""
        return path in self.files and not self._present.isdisjoint(self.files[path].unseen)

    def _put_back(self, turn: RecordedTurn) -> Sequence[FileRead]:
        files = () if turn.kept is None else turn.kept.files
        if not self._root:
            return files
        return [replace(file, path=file.path.removeprefix(self._root)) for file in files]

    def _follows(self, path: str) -> bool:
        return self.wanted is None or path in self.wanted or path in self._also

    def _file(self, path: str) -> File:
        return self.files.setdefault(path, File())

    def _note(self, message: Message) -> None:
        self._present.add(message)
        self._quotable = None


def tokens_of(lines: Iterable[Line], count: Counter) -> int:
    """Return the tokens of some lines of a file."""
    texts = [line.text for line in lines]
    return count("\n".join([*texts, ""])) if texts else 0
