"""Documents on stdout in every form and encoding."""

import io
import json
import os
import re
import sys
from contextlib import redirect_stdout

import pytest

from eirkit.cli.command import Output
from eirkit.report.document import Document
from tests import warm
from tests.processes import completed, running


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", ["b", "ä ± \u4e16", "half a character: \ud800", "beyond \U0001f600", "\x9b31m \u202e"])
def test_json_says_every_text_in_every_encoding(encoding, text):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with redirect_stdout(stream):
        Output("json").show(Document("kind", "title", (), {"text": text}))
        sys.stdout.flush()
    printed = stream.buffer.getvalue().decode(encoding)
    assert json.loads(printed) == {"text": text}
    assert not {"\x9b", "\u202e"} & set(printed), "nothing in it steers a terminal"


STEERING = "\x1b]52;c;ZXZpbA==\x07 \x9d0;title\x9c \x1b[2J \x1bc \u202egnp.exe\u202c \x08\x08 \u2066x\u2069"
STEERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EIRKIT = [sys.executable, "-m", "eirkit"]
HOSTILE_FILE = """
import sys
print({text!r})
print({text!r}, file=sys.stderr)
sys.stderr.writelines([{text!r}, "\\n"])
{end}
"""


@pytest.mark.parametrize("end", ["raise ValueError(TEXT)", "class Plain: pass", "raise SystemExit(TEXT)"])
def test_what_a_plug_in_prints_or_raises_steers_no_terminal(tmp_path, end):
    (tmp_path / "mine.py").write_text(f"TEXT = {STEERING!r}\n" + HOSTILE_FILE.format(text=STEERING, end=end), "utf-8")
    command = [warm.programs() / "eirkit", "eir", "count", f"{tmp_path}/mine.py:Plain"]
    done = completed(command, encoding="utf-8")
    assert done.returncode != 0
    assert not STEERS.search(done.stdout + done.stderr)
    assert "gnp.exe" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["vestige", "show", ".", STEERING],
        ["vestige", "analyze", STEERING],
        [STEERING],
        ["lacuna", "run", "--model", STEERING],
    ],
)
def test_a_hostile_word_in_an_error_steers_no_terminal(tmp_path, words):
    done = completed([warm.programs() / "eirkit", *words], cwd=tmp_path, encoding="utf-8")
    assert done.returncode == 2
    assert not STEERS.search(done.stdout + done.stderr)


def test_in_a_real_terminal_only_our_own_marks_are_left(tmp_path):
    pty = pytest.importorskip("pty")
    (tmp_path / "mine.py").write_text(f"print({STEERING!r})\nprint('\\x1b[1mbold\\x1b[0m')\n", "utf-8")
    leader, follower = pty.openpty()
    with running([*EIRKIT, "eir", "count", f"{tmp_path}/mine.py:X"], stdout=follower, stderr=follower) as process:
        process.wait()
        shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    os.close(follower)
    assert "\x1b[1mbold\x1b[0m" in shown
    assert "]52;c" in shown
    assert not {"\x07", "\x9d", "\u202e", "\x08", "\x1b]", "\x1bc"} & {
        one for one in ("\x07", "\x9d", "\u202e", "\x08", "\x1b]", "\x1bc") if one in shown
    }


def test_a_terminal_shows_an_error_wrapped_between_words_and_a_pipe_gets_one_line(tmp_path):
    pty = pytest.importorskip("pty")
    words = [warm.programs() / "eirkit", "lacuna", "run", "store-recall", "--memory", "nosuchmemory"]
    environment = {**os.environ, "COLUMNS": "60"}
    (line,) = completed(words, cwd=tmp_path, env=environment).stderr.splitlines()
    assert len(line) > 60
    leader, follower = pty.openpty()
    with running(words, cwd=tmp_path, env=environment, stdout=follower, stderr=follower) as process:
        process.wait()
        shown = os.read(leader, 1 << 16).decode().splitlines()
    os.close(leader)
    os.close(follower)
    assert " ".join(shown) == line
    assert all(len(row) <= 60 for row in shown)


@pytest.mark.parametrize("command", ["choose", "compare"])
def test_no_line_of_help_is_wider_than_a_window(command):
    done = completed([warm.programs() / "eirkit", command, "-h"], env={**os.environ, "COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
