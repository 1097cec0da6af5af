"""The project on which agents work, and the session that all of them play: what each step shows and changes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.processes import completed

CALC = "calc.py"
_WRONG, _RIGHT, _START = "    return value + 20\n", "    return value + 22\n", "    return value + 21\n"


def _calc(result: str) -> str:
    parts = [
        f"def operation_{n}(value):\n{result if n == 7 else f'    return value + {3 * n}{chr(10)}'}"
        for n in range(1, 34)
    ]
    return '"""Calculator core."""\n\n' + "\n".join(parts)


FILES = {
    CALC: _calc(_START),
    "lexer.py": '"""Lexer."""\n\n'
    + "\n".join(f"TOKEN_{n} = 'token-number-{n}'\nPATTERN_{n} = r'[a-z]{{{n}}}'\n" for n in range(1, 34)),
    "parser.py": '"""Parser."""\nimport lexer\n\n'
    + "\n".join(f"def parse_{n}(text):\n    return text.count(lexer.TOKEN_{n})\n" for n in range(1, 34)),
    "test_calc.py": "import calc\n\n\ndef test_seven():\n    assert calc.operation_7(1) == 23\n\n\n"
    "if __name__ == '__main__':\n    test_seven()\n    print('ok')\n",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One action of the scripted session, and what it truly shows and changes."""

    kind: Literal["view", "search", "shell", "edit", "delegate", "answer", "say"]
    text: str = ""  # the command, the text that is searched for, what a sub-agent is asked, or what is said
    path: str = CALC
    lines: tuple[int, int] | None = None  # of a view; None: the whole file
    old: str = ""
    new: str = ""
    shows: tuple[str, ...] = ()  # files whose content is shown
    writes: tuple[str, ...] = ()


_BEFORE = "def operation_7(value):\n"
PHASE_ONE = (
    Step("view", lines=(1, 60), shows=(CALC,)),
    Step("shell", "cat lexer.py", shows=("lexer.py",)),
    Step("edit", old=_BEFORE + _START, new=_BEFORE + _WRONG, writes=(CALC,)),
    Step("shell", "python3 test_calc.py"),  # it fails; a traceback is no view of a file
    Step("shell", "sed -n '15,25p' calc.py && cat parser.py", shows=(CALC, "parser.py")),
)
PHASE_TWO = (
    Step("view", shows=(CALC,)),
    Step("edit", old=_BEFORE + _WRONG, new=_BEFORE + _RIGHT, writes=(CALC,)),
    Step("shell", "python3 test_calc.py"),
    Step("say", "Done."),
)
Reply = tuple[Step, ...]  # several steps: parallel calls
Phase = tuple[Reply, ...]  # what comes before a compaction, or before the end

SHORT: tuple[Phase, ...] = (tuple((step,) for step in PHASE_ONE), tuple((step,) for step in PHASE_TWO))
_PARSE_9 = (
    "def parse_9(text):\n",
    "    return text.count(lexer.TOKEN_9)\n",
    "    return 1 + text.count(lexer.TOKEN_9)\n",
)
_TOKEN_20 = "TOKEN_20 = 'token-number-20'\n", "PATTERN_20 = r'[a-z]{20}'\n", "PATTERN_20 = r'[a-y]{20}'\n"
_FIX = Step("edit", old=_BEFORE + _WRONG, new=_BEFORE + _RIGHT, writes=(CALC,))
_COUNT = Step("edit", path="parser.py", old=_PARSE_9[0] + _PARSE_9[1], new=_PARSE_9[0] + _PARSE_9[2])
_PATTERN = Step("edit", path="lexer.py", old=_TOKEN_20[0] + _TOKEN_20[1], new=_TOKEN_20[0] + _TOKEN_20[2])
_BACK = Step("edit", path="parser.py", old=_PARSE_9[0] + _PARSE_9[2], new=_PARSE_9[0] + _PARSE_9[1])

# Three compactions; parallel calls, the agents' own search, files that are edited, put back and read in part.
LONG: tuple[Phase, ...] = (
    (
        (Step("view", lines=(1, 60)),),
        (Step("shell", "cat lexer.py"),),
        (PHASE_ONE[2],),
        (Step("shell", "python3 test_calc.py"),),
        (Step("view", lines=(70, 95)),),
        (Step("view", path="parser.py", lines=(1, 30)), Step("view", path="test_calc.py")),
        (Step("search", "TOKEN_1", path="lexer.py"), Step("shell", "sed -n '15,25p' calc.py")),
    ),
    (
        (Step("view"),),
        (_FIX,),
        (Step("view", path="lexer.py", lines=(1, 40)), Step("shell", "sed -n '70,90p' parser.py")),
        (Step("shell", "git checkout -q nowhere || echo kept"),),
        (Step("shell", "python3 test_calc.py"),),
    ),
    (
        (Step("view", path="parser.py"),),
        (_COUNT,),
        (Step("search", "TOKEN_2", path="parser.py"),),
        (Step("shell", "cat lexer.py"),),
        (_PATTERN,),
    ),
    (
        (Step("view", path="parser.py", lines=(1, 30)), Step("view", path="lexer.py")),
        (_BACK,),
        (Step("edit", old=_BEFORE + _RIGHT, new=_BEFORE + _START),),
        (Step("edit", path="lexer.py", old=_TOKEN_20[0] + _TOKEN_20[2], new=_TOKEN_20[0] + _TOKEN_20[1]),),
        (Step("say", "Done."),),
    ),
)

# One compaction, after which a sub-agent reads another file; its answer ends its own session.
DELEGATED: tuple[Phase, ...] = (
    ((Step("view"),), (Step("view", path="parser.py"),), (Step("shell", "ls"),)),
    (
        (Step("view", lines=(1, 30)),),
        (Step("delegate", "Look into lexer.py and calc.py and tell how many tokens there are."),),
        (Step("view", path="lexer.py"),),
        (Step("answer", "There are 33 tokens."),),
        (PHASE_ONE[2],),
        (Step("shell", "ls"),),
        (Step("say", "Done."),),
    ),
)
SESSIONS = {"short": SHORT, "long": LONG, "delegated": DELEGATED}


def write_files(folder: Path) -> None:
    """Write the files as they are at the beginning."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def make_project(folder: Path) -> None:
    """Write the project and commit it."""
    folder.mkdir(parents=True)
    write_files(folder)
    own = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], [*own, "commit", "-qm", "Begin"]):
        completed(["git", *words], cwd=folder, check=True, env={**os.environ, "HOME": str(folder)})
