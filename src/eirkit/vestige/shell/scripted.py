"""Files that the little programs and options of sed, awk and perl write: backups, `w file`, `print > "file"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eirkit.vestige.shell.walk import Invocation, Walk, Written
from eirkit.vestige.trajectory import Write

_LONGEST_SCRIPT = 4000  # characters that are looked at
_ADDRESS = r"(?:\d{1,9}|\$|/[^/\n]*/)"
_SED_WRITES = re.compile(rf"(?m)(?:^|[;{{])\s*(?:{_ADDRESS}(?:\s*,\s*{_ADDRESS})?)?\s*w\s+([^\n;}}]+)")
_PART = r"(?:(?!\1)[^\n\\]|\\.){0,400}"
_SED_PICKS = re.compile(rf"(?m)s([/|#,@!]){_PART}\1{_PART}\1[gIpm\d]{{0,6}}w\s+([^\n;}}]+)")
# A name that more is joined to cannot be told.
_AWK_WRITES = re.compile(r'printf?\b[^\n;}|]{0,400}?>>?\s*"([^"\n]+)"\s*(?=[;}\n]|$)')
_SUFFIX = re.compile(r"(?:-i|--in-place=|-[a-zA-Z0]{1,6}i(?=[.~]))([^/*]+)")


def edit_in_place(walk: Walk, call: Invocation, operands: Sequence[str]) -> None:
    """Note the files that a command changes where they lie, and the copies of the old ones that it is told to keep."""
    suffix = next((found[1] for word in call.arguments if (found := _SUFFIX.fullmatch(word))), "")
    walk.write(call, operands)
    for word in operands if suffix else ():
        for path in walk.paths([word]):
            kept = Write(path + suffix, "whole", content=walk.place.texts.get(path))
            walk.written.append(Written(kept, call.step, call.name, word))


def sed_files(walk: Walk, call: Invocation, script: str) -> None:
    """Note the files that a sed script writes lines to."""
    if "w " in script and len(script) <= _LONGEST_SCRIPT:
        named = [*_SED_WRITES.findall(script), *(found[2] for found in _SED_PICKS.finditer(script))]
        walk.write(call, [name.strip() for name in named], "whole")


def awk_files(walk: Walk, call: Invocation, program: str) -> None:
    """Note the files that an awk program prints to."""
    if ">" in program and len(program) <= _LONGEST_SCRIPT:
        walk.write(call, _AWK_WRITES.findall(program), "whole")
