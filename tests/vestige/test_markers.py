"""Marks of clipping, and texts that only speak of it."""

from __future__ import annotations

import pytest

from eirkit.vestige.viewer_output import clip_marks

CUT = {
    "a\n<response clipped><NOTE>Only part of this file has been shown to you.</NOTE>": "response_clipped",
    "head<elided_chars>812 characters elided</elided_chars>\ntail": "elided_middle",
    "a\n<response clipped><NOTE>Not more than 9 characters. 23456 characters were elided.</NOTE>": "response_clipped",
    "<NOTE>This file is too large to display entirely. Showing abbreviated version.</NOTE>\n     1 x": "abbreviated",
    "<persisted-output>\nOutput too large (48.2KB). Full output saved to: /a/b.txt\n\nPreview (first 2KB):\nx": "saved",
    "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 1-2 of 3 total lines.": "truncated_view",
    "x\n[... Observation truncated due to length ...]\ny": "observation",
    "x\n... [1,204 characters truncated] ...\ny": "counted",
    "x\n[37 lines omitted]\ny": "counted",
    "x\n… [12 lines truncated] …\ny": "counted",
    "x…431 tokens truncated…y": "spread",
    "x\n[... omitted 12 of 400 lines ...]\ny": "codex",
    "x\n[... truncated ...]\ny": "bracketed",
    "x\n[... output truncated ...]\ny": "codex",
    "x\n... [CONTENT TRUNCATED] ...\ny": "capital",
    "[File content truncated: showing lines 1-2000 of 5000 total lines.]\nx": "content",
    "<warning>The output of your last command was too long.\nTry another.</warning>": "note",
    "Output truncated after 30000 characters\n": "stated",
}
WHOLE = (
    "",
    "def truncated(text):\n    return text[:80] + '...'\n",
    "The list was omitted because it is too long.\n",
    "# response clipped by the server\n",
    "elided_chars = 3\n",
    "TRUNCATED = True\n",
    "[truncated]\n",
    "The image is too large.\n",
    "print('Output too large (%s). Full output saved to x' % size)\n",
    'say("IMPORTANT: The file content has been truncated.\\n")\n',
    "<NOTE>This argument is too large.</NOTE>\n",
)


@pytest.mark.parametrize("text", CUT)
def test_a_mark_is_found_where_it_stands(text: str) -> None:
    marks = clip_marks(text)
    assert marks[0].kind == CUT[text]
    assert 0 <= marks[0].start < marks[0].end <= len(text)


@pytest.mark.parametrize("text", WHOLE)
def test_talk_of_truncation_is_no_mark(text: str) -> None:
    assert clip_marks(text) == ()
