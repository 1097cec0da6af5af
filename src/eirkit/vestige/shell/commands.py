"""The table of commands, gathered from the files that describe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eirkit.vestige.shell.changing import CHANGERS
from eirkit.vestige.shell.flow import Flow
from eirkit.vestige.shell.git import git
from eirkit.vestige.shell.running import RUNNERS
from eirkit.vestige.shell.searching import SEARCHERS
from eirkit.vestige.shell.viewing import VIEWERS
from eirkit.vestige.shell.walk import Invocation, Walk

COMMANDS: Mapping[str, Callable[[Walk, Invocation], Flow]] = {
    **VIEWERS,
    **SEARCHERS,
    **CHANGERS,
    **RUNNERS,
    "git": git,
}
