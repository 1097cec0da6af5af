"""The live line of a reproduction on stderr; without a terminal, as in the log of a job, one line a study."""

from __future__ import annotations

from time import monotonic

import click

from eirkit.cli.live_line import LiveLine, is_watched
from eirkit.paper.runner import StudyOutcome


class StudyProgress(LiveLine):
    """Shows studies as they end; use it in a with statement."""

    def __init__(self, studies: int) -> None:
        super().__init__("reproducing", studies)
        self._studies, self._ended, self._is_watched = studies, 0, is_watched()

    def __call__(self, outcome: StudyOutcome) -> None:
        self._ended += 1
        state = f"{self._ended} of {self._studies} studies"
        if self._is_watched:
            self.show(self._ended, f"{state}, last {outcome.study.id}")
            return
        when = "kept" if outcome.was_kept else f"{monotonic() - self.started:.0f} s"
        click.echo(f"{state}, {when}: {outcome.study.id}: {outcome.verdict}", err=True)
