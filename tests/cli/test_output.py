"""Tables keep every word, however narrow the terminal is."""

import io
import json
import sys
from contextlib import redirect_stdout

import pytest

from eirkit.cli.output import WholeConsole, emit, table


def test_a_narrow_console_folds_sentences_but_cuts_no_table():
    stream = io.StringIO()
    console = WholeConsole(file=stream, width=20)
    console.print(
        table("A title", ("model", "arm"), [("reference/guesser", "control"), ("reference/recoverer", "sham")])
    )
    console.print("one two three four five six seven")
    lines = stream.getvalue().splitlines()
    assert any("reference/guesser" in line and "control" in line for line in lines)
    assert any("reference/recoverer" in line and "sham" in line for line in lines)
    assert max(len(line) for line in lines[-2:]) <= 20


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", ["b", "ä ± \u4e16", "half a character: \ud800"])
def test_json_says_every_text_in_every_encoding(encoding, text):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with redirect_stdout(stream):
        emit({"text": text}, True, lambda console: console.print())
        sys.stdout.flush()
    assert json.loads(stream.buffer.getvalue().decode(encoding)) == {"text": text}
