"""Documents on stdout in every form and encoding."""

import io
import json
import sys
from contextlib import redirect_stdout

import pytest

from eirkit.cli.command import Output
from eirkit.show.document import Document


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", ["b", "ä ± \u4e16", "half a character: \ud800", "beyond \U0001f600", "\x9b31m \u202e"])
def test_json_says_every_text_in_every_encoding(encoding, text):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with redirect_stdout(stream):
        Output("json", None).show(Document("kind", "title", (), {"text": text}))
        sys.stdout.flush()
    printed = stream.buffer.getvalue().decode(encoding)
    assert json.loads(printed) == {"text": text}
    assert not {"\x9b", "\u202e"} & set(printed), "nothing in it steers a terminal"
