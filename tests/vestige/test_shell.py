"""The shell as far as it is followed: here-documents, the two parsers, folders, variables, hostile text."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.shell import python_programs, run_commands
from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.grammar import parse, parse_with_grammar
from eirkit.vestige.shell.outputs import reads_of
from eirkit.vestige.shell.python_programs import effects_of
from eirkit.vestige.shell.state import Effort, ShellState
from eirkit.vestige.shell.syntax import extract_long_texts, parse_plain
from eirkit.vestige.shell.words import Glob, expand, open_word
from eirkit.vestige.trajectory import Lines, Recording, Touches
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.recorded import recorded

WORDS = st.sampled_from(
    ["cat", "a.py", "'x y'", '"$v"', "|", "&&", "||", ";", "\n", "(", ")", "{", "}", "<<EOF", "EOF", ">", ">>", "<",
     "$(", "`", "for f in", "do", "done", "if", "then", "fi", "sed -i", "python -c", "\\", "*", "#", "'", '"', "git",
     "&", "é", "\0", "{\U000fffff", "<<<"]
)  # fmt: skip
# A machine that is busy with other work slows both sizes alike; quadratic time would give a ratio of 16.
LINEAR_RATIO = 10
LONGEST = 10 * UNITS_IN_A_SECOND  # the longest takes a tenth of it; without bounds it would take minutes
SMALLEST_MEASURED_SECONDS = 0.02


def touch(command: str, output: str = "text\n", exit_code: int = 0, place: ShellState | None = None) -> Touches:
    return shell_touches(command, output, exit_code, place or ShellState(roots=("/repo",), folder="/repo"))


def test_the_commit_that_a_search_names_is_no_file() -> None:
    command = "grep -r 914e --include='*.json' . 2>/dev/null || git grep 914e origin/main/sessions 2>/dev/null"
    shown = 'origin/main/sessions:a/full.json:  "id": 914e\norigin/main/sessions:b/full.json:  "id": 914e\n'
    assert {read.path for read in touch(command, shown).reads} == {"a/full.json", "b/full.json"}


@given(st.one_of(st.text(), st.lists(WORDS, max_size=40).map(" ".join)), st.text(max_size=200), st.integers(-1, 2))
@settings(max_examples=300, deadline=None)
def test_no_text_is_too_strange(command: str, output: str, exit_code: int) -> None:
    touches = touch(command, output, exit_code)
    assert all(read.path and "\0" not in read.path for read in touches.reads)
    assert all(write.path and "\0" not in write.path for write in touches.writes)


def _once(command: str) -> float:
    start = time.process_time()
    touch(command)
    return time.process_time() - start


@pytest.mark.parametrize(
    "unit",
    [
        "a=(",
        "|",
        "${",
        "<<a\n",
        "$(",
        "'",
        '"',
        "`",
        "a && ",
        "(",
        "{a,b}",
        "for x in ",
        "cat <<E\n",
        "f() { f; }\nf;",
        "* ",
    ],
)
def test_time_grows_with_length_and_not_faster(unit: str) -> None:
    def seconds(count: int) -> float:
        return min(_once(unit * count) for _ in range(3))  # the collector of a full process may come in between

    size = 20_000 // len(unit)
    small = max(seconds(size), SMALLEST_MEASURED_SECONDS)
    assert seconds(4 * size) <= LINEAR_RATIO * small


@pytest.mark.parametrize("command", ["(" * 5000, "$(" * 5000, "a && " * 20_000 + "b", "x" * 3_000_000, "a|" * 30_000])
def test_depth_and_length_have_bounds(command: str) -> None:
    assert cost(lambda: parse(command, Effort())) < LONGEST


def looped(program: str, command: str, rounds: int = 200) -> str:
    items = " ".join(map(str, range(rounds)))
    return f"cat > p.py <<'EOF'\n{program}EOF\nfor i in {items}; do {command}; done"


LARGE = "".join(f"open('f{number}.txt').read()\n" for number in range(7000))


@pytest.mark.parametrize("command", ["python3 p.py $i", "python3 - $i < p.py", "bash p.py $i"])
def test_a_loop_over_a_large_program_is_cut_short(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round is another program, because its arguments are; what they cost is counted, not timed."""
    followed: list[int] = []
    for module, name, function in ((python_programs, "effects_of", effects_of), (run_commands, "parse", parse)):

        def counted(text: str, *more: Any, function: Any = function) -> Any:
            followed.append(len(text))
            return function(text, *more)

        monkeypatch.setattr(module, name, counted)
    state = ShellState(folder="/repo")
    shell_touches(looped(LARGE, command), "", 0, state)
    assert state.effort.is_cut
    assert 0 < sum(followed) < 40 * len(LARGE)
    assert state.effort.left > -len(LARGE)


def test_a_loop_over_a_small_program_is_followed_to_its_end() -> None:
    state = ShellState(folder="/repo")
    small = "import sys\nopen('f' + sys.argv[1], 'w').write('x')\n"
    touches = shell_touches(looped(small, "python3 p.py $i"), "", 0, state)
    assert not state.effort.is_cut
    assert len(touches.writes) == 201
    left = state.effort.left
    shell_touches("for i in " + "1 " * 200 + "; do python3 p.py 1; done", "", 0, state)  # known by now
    assert left - state.effort.left < 1000


def test_a_program_that_calls_a_large_function_again_and_again_is_cut_short() -> None:
    """It would look at 45 million values, in 165 KB."""
    program = "def f(x):\n print(" + "open('a')," * 15_000 + ")\n" + "f(1)\n" * 3000
    effects = effects_of(program)
    assert (effects.is_whole, effects.looked < 200_000) == (False, True)
    state = ShellState(folder="/repo")
    shell_touches(f"python3 - <<'EOF'\n{program}EOF", "", 0, state)
    assert state.effort.is_cut


@given(
    st.lists(
        st.sampled_from(["cat", "a.py", "-n", "'1,5p'", '"def f"', "x=1", "if", "|", "12", "--a=b", ""]), min_size=1
    ).map(" ".join)
)
def test_plain_commands_come_out_of_both_parsers_alike(command: str) -> None:
    plain = parse_plain(command)
    assert plain is None or plain == parse_with_grammar(command).node


@pytest.mark.parametrize("name", ["mini-swe-agent-v1", "mini-swe-agent-v2"])
def test_recorded_plain_commands_come_out_of_both_parsers_alike(name: str) -> None:
    seen = 0
    for recording in read_corpus([recorded(name)]):
        for turn in recording.turns if isinstance(recording, Recording) else ():
            for call in turn.calls:
                plain = parse_plain(call.arguments["command"])
                seen += plain is not None
                assert plain is None or plain == parse_with_grammar(call.arguments["command"]).node
    assert seen > 1000


def test_a_here_document_ends_at_its_own_line_alone() -> None:
    lifted = extract_long_texts("cat <<'EOF' > a && ls\nthe EOF\n EOF\nEOF\npwd <<-X\n\ttwo\n\tX\n")
    assert [body.text for body in lifted.bodies] == ["the EOF\n EOF\n", "two\n"]
    assert "pwd" in lifted.skeleton
    assert "the EOF" not in lifted.skeleton


def test_a_shift_is_no_here_document() -> None:
    assert extract_long_texts("echo $((1 << 4)); cat a").bodies == ()


@pytest.mark.parametrize(
    ("quote", "content"), [("'EOF'", "a $v \\$w\n"), ("EOF", "a 1 $w\n"), ('"EOF"', "a $v \\$w\n")]
)
def test_variables_act_in_here_documents_without_quotes(quote: str, content: str) -> None:
    touches = touch(f"v=1; cat > out <<{quote}\na $v \\$w\nEOF", "")
    assert touches.writes[0].content == content


def test_words_expand() -> None:
    found = expand([open_word("a*"), "b c", open_word("{x,y}.py")], {})
    assert found == ["a*", "b c", "x.py", "y.py"]
    assert isinstance(found[0], Glob)


@pytest.mark.parametrize(
    ("command", "span"),
    [
        ("sed -n '10,12p' f", Lines(10, 12)),
        ("sed -n '10,+2p' f", Lines(10, 12)),
        ("sed -n 10p f", Lines(10, 10)),
        ("head -n 3 f", Lines(1, 3)),
        ("head -3 f", Lines(1, 3)),
        ("head -n 12 f | tail -n 3", Lines(10, 12)),
        ("tail -n +10 f | head -n 3", Lines(10, 12)),
        ("cat f | sed -n '10,12p'", Lines(10, 12)),
        ("sed -n '8,20p' f | sed -n '3,5p'", Lines(10, 12)),
        ("awk 'NR>=10 && NR<=12' f", Lines(10, 12)),
        ("awk 'NR==10,NR==12' f", Lines(10, 12)),
        ("cat f", None),
    ],
)
def test_ranges_are_told(command: str, span: Lines | None) -> None:
    read = touch(command, "a\nb\nc\n").reads[0]
    assert read.requested == span
    if span is None or span.last > span.first:
        first = span.first if span else 1
        assert read.lines == {first: "a", first + 1: "b", first + 2: "c"}


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("nl -ba f | sed -n '7,8p'", "     7\tx\n     8\ty\n"),
        ("cat -n f | tail -2", "     7\tx\n     8\ty\n"),
        ("grep -n . f", "7:x\n8:y\n"),
        ("nl -ba f | grep -n .", "1:     7\tx\n2:     8\ty\n"),
        ("sed -n '5,9p' f | grep -n .", "3:x\n4:y\n"),
        ("grep -rn . d", "d/f:7:x\nd/f-8-y\n"),
    ],
)
def test_numbers_that_a_viewer_prints_are_the_lines_numbers(command: str, output: str) -> None:
    assert touch(command, output).reads[0].lines == {7: "x", 8: "y"}


def test_headings_divide_an_output() -> None:
    reads = touch("echo == a; cat a; echo == b; head -2 b", "== a\n1\n2\n== b\n3\n").reads
    assert [(read.path, read.content) for read in reads] == [("a", "1\n2\n"), ("b", "3\n")]


def test_ranges_divide_an_output() -> None:
    reads = touch("sed -n '1,2p' a; sed -n '5,6p' b", "1\n2\n3\n4\n").reads
    assert [(read.path, read.lines) for read in reads] == [("a", {1: "1", 2: "2"}), ("b", {5: "3", 6: "4"})]


def test_line_numbers_divide_an_output() -> None:
    reads = touch("cat -n a; cat -n b", "     1\tx\n     2\ty\n     1\tz\n").reads
    assert [(read.path, read.lines) for read in reads] == [("a", {1: "x", 2: "y"}), ("b", {1: "z"})]


@pytest.mark.parametrize(
    ("command", "first", "asked"),
    [
        ("head -n 2 a b", 1, Lines(1, 2)),
        ("tail -n +7 a b", 7, Lines(7, 1 << 30)),
        ("cd . && head -2 *", 1, Lines(1, 2)),
    ],
)
def test_names_that_head_prints_divide_an_output(command: str, first: int, asked: Lines) -> None:
    # The blank line before the second name belongs to neither file.
    reads = touch(command, "==> a <==\n1\n2\n\n==> b <==\n3\n").reads
    assert [(read.path, read.content, read.requested) for read in reads] == [
        ("a", "1\n2\n", asked),
        ("b", "3\n", asked),
    ]
    assert [read.lines for read in reads] == [{first: "1", first + 1: "2"}, {first: "3"}]


def test_names_that_head_prints_end_where_its_lines_do() -> None:
    reads = touch("head -n 1 a b; cat c", "==> a <==\n1\n\n==> b <==\n2\n3\n4\n").reads
    assert [(read.path, read.content) for read in reads] == [("a", "1\n"), ("b", "2\n"), ("c", None)]


def test_a_command_that_showed_nothing_leaves_the_whole_text_to_the_other() -> None:
    gone = "cat: gone.py: No such file or directory\n"
    for command, output in [("cat gone.py; cat b", f"{gone}1\n2\n"), ("grep -n zzz a; cat b", "1\n2\n")]:
        reads = touch(command, output).reads
        assert [(read.path, read.content, read.lines) for read in reads] == [("b", "1\n2\n", {1: "1", 2: "2"})]


def test_two_searches_that_show_one_file_read_it_once() -> None:
    reads = touch("grep -rn x d; grep -rn y d", "d/f:1:x\nd/f:2:y\n").reads
    assert [(read.path, read.lines) for read in reads] == [("d/f", {1: "x", 2: "y"})]


def test_what_cannot_be_divided_is_shared_by_tokens() -> None:
    place = ShellState(roots=("/repo",), folder="/repo", count=len)
    reads = touch("cat a b", "x" * 10, place=place).reads
    assert [(read.path, read.content, read.tokens) for read in reads] == [("a", None, 5), ("b", None, 5)]
    assert [read.undivided for read in reads] == [True, True]  # which part is whose is unknown, and said to be
    known = touch("cat a", "x\ny\n", place=place).reads + touch("cat a b", "x\ny\nz\n", place=place).reads
    assert [(read.path, read.content, read.undivided) for read in known] == [
        ("a", "x\ny\n", False),
        ("a", "x\ny\n", False),
        ("b", "z\n", False),
    ]


def test_a_view_that_the_scaffold_cut_says_so_and_numbers_only_its_beginning() -> None:
    text = "one\n" * 400 + "tw<elided_chars>50 characters elided</elided_chars>\nlast\n"
    read = touch("cat a", text).reads[0]
    assert read.clipped
    assert read.lines is not None
    assert max(read.lines) == 400


def test_a_shell_that_lives_on_keeps_its_folder_and_one_that_does_not_forgets_it() -> None:
    lasting, fresh = ShellState(("/repo",), "/repo"), ShellState(("/repo",), "/repo", keeps_folder=False)
    for place in (lasting, fresh):
        touch("cd src", "", place=place)
    assert touch("cat a.py", place=lasting).reads[0].path == "src/a.py"
    assert touch("cat a.py", place=fresh).reads[0].path == "a.py"


def test_a_folder_that_is_not_there_is_not_entered() -> None:
    place = ShellState(("/repo",), "/repo")
    touch("cd gone", "bash: cd: gone: No such file or directory\n", 1, place)
    assert touch("cat a.py", place=place).reads[0].path == "a.py"


def test_a_glob_matches_only_what_is_known() -> None:
    place = ShellState(("/repo",), "/repo")
    assert touch("cat src/*.py", place=place).reads == ()
    touch("ls src", "src/a.py src/b.txt\n", place=place)
    assert [read.path for read in touch("cat src/*.py", place=place).reads] == ["src/a.py"]


def test_content_of_a_written_file_is_kept() -> None:
    write = touch("cat > a.py <<'EOF'\nx = 1\nEOF", "").writes[0]
    assert (write.kind, write.content) == ("whole", "x = 1\n")
    write = touch("echo y >> a.py", "").writes[0]
    assert (write.kind, write.added) == ("edit", "y\n")


def test_an_output_of_no_stream_shows_no_file():
    assert list(reads_of((), "shown\n", ShellState())) == []
