"""The ledger of the context, worked out by hand: what each message brings, moves and takes out."""

from __future__ import annotations

import pytest

from eirkit.vestige.audits.compaction import dropped_states
from eirkit.vestige.ledger import Ledger, Message
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, KeptContext, Lines, RecordedTurn, Turn
from tests.vestige.runs import of_turns

LINES = [f"line number {n} of the file" for n in range(1, 11)]
FILE = "\n".join(LINES)


def words(text: str) -> int:
    return len(text.split())


def turn(number: int, reads: tuple[FileRead, ...] = (), writes: tuple[FileWrite, ...] = ()) -> Turn:
    return Turn(number, reads, writes, 10, RecordedTurn())


def part(first: int, last: int, lines: list[str] = LINES) -> FileRead:
    shown = dict(enumerate(lines[first - 1 : last], first))
    return FileRead("a.py", content="\n".join(shown.values()), lines=shown, requested=Lines(first, last))


def held(ledger: Ledger, path: str = "a.py") -> list[str]:
    return [line.text for line in ledger.held(path)]


def broken(number: int, carried: str = "Go on.", kept: KeptContext | None = None) -> Turn:
    return Turn(number, (), (), 10, RecordedTurn(broken="compaction", carried=carried, kept=kept))


def test_a_line_is_held_as_long_as_one_message_has_it() -> None:
    ledger = Ledger()
    ledger.take(turn(1, (part(1, 4),)))
    ledger.take(turn(2, (part(3, 6),)))
    assert held(ledger) == LINES[:6]
    ledger.forget(Message(1, "shown"))  # as an old result that a scaffold clears
    assert held(ledger) == LINES[2:6]
    ledger.clear((1,))
    assert held(ledger) == []
    assert [line.text for line in ledger.known("a.py")] == LINES[:6]


@pytest.mark.parametrize("added", ["one\n", "one\ntwo\nthree\n", ""])
def test_an_edit_moves_the_lines_below_it(added: str) -> None:
    # Views before and after an edit are of one file: what both show is counted once, and neither is forgotten.
    ledger = Ledger()
    ledger.take(turn(1, (part(1, 7),)))
    ledger.take(turn(2, (), (FileWrite("a.py", removed=f"{LINES[3]}\n", added=added),)))
    now = [*LINES[:3], *added.splitlines(), *LINES[4:]]
    ledger.take(turn(3, (part(len(now) - 5, len(now), now),)))
    assert held(ledger) == now
    assert [line.text for line in ledger.held("a.py", ("written",))] == added.splitlines()


def test_an_edit_of_what_was_never_shown_loses_the_numbers_and_no_line() -> None:
    ledger = Ledger()
    ledger.take(turn(1, (part(5, 7),)))
    ledger.take(turn(2, (), (FileWrite("a.py", removed="something else\n", added="two\nlines\n"),)))
    now = ["first", "two", "lines", *LINES[4:]]
    ledger.take(turn(3, (part(2, 6, now),)))
    assert held(ledger) == ["two", "lines", *LINES[4:7]]


def test_a_text_that_is_replaced_everywhere_is_replaced_everywhere() -> None:
    ledger = Ledger()
    text = ["value = old_name", "another = 1", "result = old_name"]
    ledger.take(turn(1, (part(1, 3, text),)))
    ledger.take(turn(2, (), (FileWrite("a.py", removed="old_name", added="new_name"),)))
    assert [line.text for line in ledger.known("a.py")] == ["value = new_name", "another = 1", "result = new_name"]
    assert held(ledger) == ["another = 1"]  # no message has either of the others in one piece


def test_the_echo_of_an_edit_shows_the_line_of_which_it_changed_a_part() -> None:
    told = (
        "The file /repo/a.py has been updated. Here's the result of running `cat -n` on a snippet of the edited file:"
    )
    texts = [LINES[1], "line number III of the file", LINES[3]]
    call = Call("Edit", {}, told + "".join(f"\n{n:6}\t{text}" for n, text in enumerate(texts, 2)))
    edit = Turn(2, (), (FileWrite("a.py", removed="3", added="III"),), 10, RecordedTurn(calls=(call,)))
    ledger = Ledger()
    ledger.take(turn(1, (part(3, 3),)))
    ledger.take(edit)
    assert held(ledger) == texts
    ledger.forget(Message(2, "echoed"))
    assert held(ledger) == []


def test_a_diff_shows_the_lines_that_the_file_has() -> None:
    shown = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n {LINES[0]}\n-old line\n+{LINES[1]}\n"
    ledger = Ledger()
    ledger.take(turn(1, (FileRead("a.py", content=shown, requested=Lines(1, 0)),)))
    assert held(ledger) == LINES[:2]


def test_a_text_quotes_the_file_whose_lines_stand_around() -> None:
    ledger = Ledger()
    b = FileRead("b.py", content="import something_else\nimport shared_module\n\ndef of_b(): pass\n")
    a = FileRead("a.py", content="import shared_module\ndef of_a(): pass\n\nlast of a")
    ledger.take(turn(1, (a, b)))
    ledger.clear()
    ledger.quote(
        Message(2, "quoted"), "It says\n  1: import something_else\n  2: import shared_module\n  3:\nand so on\n\n"
    )
    assert held(ledger, "b.py") == ["import something_else", "import shared_module", ""]
    assert held(ledger, "a.py") == []
    ledger.quote(Message(3, "quoted"), "import shared_module")  # of which file, nobody can tell
    assert held(ledger, "a.py") == ["import shared_module"]


def test_a_file_put_back_whole_is_dropped_whole_by_the_next_compaction() -> None:
    # As Claude Code does it: after the first compaction it puts a file back of which a part had been read, and after
    # the second one another file. A share of the largest read would be 3 of 10 lines.
    back = FileRead("a.py", content=FILE)
    other = FileRead("b.py", content="\n".join([LINES[0], "a line of its own"]))
    turns = [
        turn(1, (part(1, 3), other)),
        broken(2, kept=KeptContext("preserved", (FILE,), (back,), is_complete=True)),
        turn(3, (), (FileWrite("a.py", removed=f"{LINES[4]}\n", added="five\n"),)),
        broken(4, kept=KeptContext("prompt", (f"Read b.py:\n{other.content}",), (other,), is_complete=True)),
        turn(5, (part(1, 10, [*LINES[:4], "five", *LINES[5:]]),)),
    ]
    first, second = dropped_states(of_turns(turns), {2: {"a.py": 18}, 4: {"a.py": 18}}, words)
    assert first.dropped_tokens == 0
    # Nine lines of six words and one of one, although the first of them stands in the other file, too.
    assert (second.tokens, second.dropped_tokens, second.reread_dropped_tokens) == (55, 55, 55)


def test_views_before_and_after_an_edit_add_up() -> None:
    turns = [
        turn(1, (part(1, 3),)),
        turn(2, (), (FileWrite("a.py", removed=f"{LINES[1]}\n", added="two\n"),)),
        turn(3, (part(7, 10),)),
        broken(4),
        turn(5, (part(1, 10, [LINES[0], "two", *LINES[2:]]),)),
    ]
    [row] = dropped_states(of_turns(turns), {4: {"a.py": 24}}, words)
    assert (row.dropped_tokens, row.reread_dropped_tokens) == (6 + 1 + 6 + 4 * 6, 37)
    assert row.reread_tokens == 37  # of the 55 words that the reading had
