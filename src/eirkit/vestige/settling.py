"""Sections of one document put together again: what was skipped is named and counted as if it had been read whole.

Parts in the corpus's order come in with the pieces that they were made of; the same parts go out, with the last word on
every document that was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from eirkit.vestige.corpus import Tally, last_words
from eirkit.vestige.partition import Piece, Place
from eirkit.vestige.parts import Part
from eirkit.vestige.source import NAMED


def settle(made: Iterable[tuple[Piece, Part]]) -> list[Part]:
    """Return the parts with what is to be said of them; one that would not have been read has no runs."""
    done: list[Part] = []
    for document, group in groupby(made, lambda one: _document(one[0])):
        parts = [part for _, part in group]
        done += parts if document is None else _joined(document, parts)
    return done


def _document(piece: Piece) -> Place | None:
    """Return the document of which a piece is a section; None for anything else."""
    section = piece.section
    return None if section is None or section.format is None else replace(section, section=None)


def _joined(document: Place, parts: Sequence[Part]) -> list[Part]:
    tally, named, done = Tally(), 0, list[Part]()
    for part in parts:
        own = part.tally or Tally()
        tally.leading += 0 if tally.runs else own.leading
        tally.skipped += own.skipped
        keeps_runs = not tally.is_hopeless
        tally.runs += own.runs if keeps_runs else 0
        kept = []
        for place, skipped in enumerate(part.skipped):
            is_unmeasured = place in part.unmeasured
            named += not is_unmeasured
            if keeps_runs if is_unmeasured else named <= NAMED:
                kept.append(skipped)
        done.append(replace(part, runs=part.runs if keeps_runs else 0, skipped=tuple(kept)))
        if not keeps_runs:
            break
    words = tuple(last_words(document.source, document.format or "", tally))
    return [*done[:-1], replace(done[-1], skipped=(*done[-1].skipped, *words))]
