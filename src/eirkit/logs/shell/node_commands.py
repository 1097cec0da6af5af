"""Programs that Node runs from an argument, its input or a file that the run wrote: the files that they read and write.

Only calls of the `fs` module with spelt-out names are followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from eirkit.logs.shell.state import OTHER, Flow
from eirkit.logs.shell.walk import Invocation, Walk
from eirkit.logs.trajectory import WriteKind

_NAME = r"""['"`]([^'"`$\\\n]{1,400})['"`]"""
_ONE = re.compile(rf"\b(writeFile|appendFile|unlink|rm|readFile)(?:Sync)?\(\s{{0,40}}{_NAME}")
_TWO = re.compile(rf"\b(rename|copyFile|cp)(?:Sync)?\(\s{{0,40}}{_NAME}\s{{0,40}},\s{{0,40}}{_NAME}")
_REQUIRED = re.compile(r"""\brequire\(\s{0,40}(['"])(\.{0,2}/[^'"\\\n]{1,400}\.json)\1""")
_PRINTS = ("console.", "process.stdout", "-p")
_KINDS: dict[str, WriteKind] = {"writeFile": "whole", "appendFile": "edit", "unlink": "delete", "rm": "delete"}
_LONGEST_PROGRAM = 100_000  # characters


def node(walk: Walk, call: Invocation) -> Flow:
    """`node -e`, `node -p`, a program on the input, or a file that the run wrote."""
    words, prints = list(call.arguments), False
    while words and words[0].startswith("-") and words[0] not in ("-e", "-p", "-pe", "--eval", "--print", "-"):
        words = words[1:]
    if words[:1] and words[0] in ("-e", "-p", "-pe", "--eval", "--print"):
        prints = "p" in words[0].strip("-")
        text = words[1] if len(words) > 1 else None
    elif words and words[0] != "-":
        path = walk.state.resolve(words[0], walk.folder)
        text = walk.text_of(path) if path is not None else None
    else:
        text = call.stdin.text if call.stdin.kind == "text" else None
    return _effects(walk, call, text[:_LONGEST_PROGRAM], prints) if text else OTHER


def _effects(walk: Walk, call: Invocation, text: str, prints: bool) -> Flow:
    shown = [found[2] for found in _REQUIRED.finditer(text)]
    for found in _ONE.finditer(text):
        if found[1] == "readFile":
            shown.append(found[2])
        else:
            walk.write(call, [found[2]], _KINDS[found[1]])
    for found in _TWO.finditer(text):
        if found[1] == "rename":
            walk.write(call, [found[2]], "delete")
        walk.write(call, [found[3]], "whole")
    files = walk.paths(list(dict.fromkeys(shown))) if prints or any(word in text for word in _PRINTS) else ()
    return Flow("files", files=files, chosen=True) if files else OTHER


NODE: dict[str, Callable[[Walk, Invocation], Flow]] = dict.fromkeys(("node", "nodejs", "bun", "deno"), node)
