"""What commands complained of: an output and the streams that made it come in; out go both without what was not there.

A file that a command could not open was not read, and the line that says so is nobody's content.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from eirkit.vestige.shell.flow import Flow
from eirkit.vestige.shell.place import Place

_TOOLS = (
    "cat|head|tail|sed|gsed|nl|e?f?grep|[gm]?awk|less|more|diff|ls|rg|sort|uniq|cut|paste|tac|rev|fold|column|comm|join|od"
    "|xxd|hexdump|strings|jq|wc|dd|batcat|bat|bash|sh|/bin/sh|/bin/bash|/usr/bin/bash"
)
_COMPLAINT = re.compile(
    rf"(?m)^(?:[\w./-]+: )?(?:line \d+: )?(?:{_TOOLS}): ([^\n]*?)"
    r"(?:No such file or directory|cannot open|can't read|Is a directory|Not a directory|Permission denied)([^\n]*)\n?"
    r"|^([^\s:]+): No such file or directory()\n?"  # pagers give no name of their own
    r"|^fatal: ([^\n]*(?:does not exist|no such path|exists on disk, but not)[^\n]*)()\n?"
)
_NAME = re.compile(r"[^\s:'\"`‘’()]+")


def may_complain(output: str) -> bool:
    """Tell quickly whether an output can hold a complaint."""
    if "directory" in output and ("No such file" in output or " a directory" in output):
        return True
    return "Permission denied" in output or "fatal: " in output


def without_complaints(flows: Sequence[Flow], output: str, place: Place) -> tuple[Sequence[Flow], str]:
    """Return the streams without the files that were complained of, and the output without the complaints."""
    missing = files_complained_of(output, {path for flow in flows for path in flow.files}, place)
    output = _COMPLAINT.sub("", output)
    return (tuple(_without(flows, missing)) if missing else flows), output


def files_complained_of(output: str, paths: Collection[str], place: Place) -> set[str]:
    """Return those of some files that a complaint names."""
    if not paths or not may_complain(output):
        return set()
    named = {
        word for found in _COMPLAINT.finditer(output) for part in found.groups() if part for word in _NAME.findall(part)
    }
    found = (_closest(name, paths, place) for name in named)
    return {path for path in found if path is not None}


def _closest(name: str, paths: Collection[str], place: Place) -> str | None:
    """Return the file that a name means: spelt as the command line has it, which may have gone elsewhere first."""
    path = place.relative(place.absolute(name))
    if path in paths:
        return path
    end = f"/{name.removeprefix('./')}"
    return min((path for path in paths if path.endswith(end)), key=len, default=None)


def _without(flows: Sequence[Flow], missing: Collection[str]) -> Iterator[Flow]:
    for flow in flows:
        left = tuple(path for path in flow.files if path not in missing)
        if left == flow.files:
            yield flow
        elif left:
            yield flow._replace(files=left)
