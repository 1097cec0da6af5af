"""Declares the measures of rescues and recovery probes."""

from __future__ import annotations

from eirkit.measures import Measure, MeasureGroup

_MISSED = "scored steps with a miss"
ARM_MEASURES = MeasureGroup(
    "arms",
    "Rescue: accuracy at steps with a miss, by arm",
    (
        Measure("control", "control", "correct answers where nothing is injected", "share", _MISSED),
        Measure(
            "sham",
            "sham",
            "correct answers where another value of the same length is injected under the required label",
            "share",
            _MISSED,
        ),
        Measure("oracle", "oracle", "correct answers where the required record is injected", "share", _MISSED),
        Measure(
            "trajectory_accuracy", "trajectory accuracy", "correct answers over all steps", "share", "scored steps"
        ),
    ),
)
PROBE_MEASURES = MeasureGroup(
    "probes",
    "Recovery probes",
    (
        Measure("probes", "probes", "probes that came to an end", pooled="sum"),
        Measure("successful", "successful", "probes that rebuilt the lost answer", better="more", pooled="sum"),
        Measure("early_stops", "gave up early", "probes that stopped before it was known", better="less", pooled="sum"),
        Measure(
            "at_limit", "out of actions", "probes that ended at their limit of actions", "count", "", "less", "sum"
        ),
        Measure("read_overhead", "read overhead", "reads over the fewest possible, over successes", better="less"),
        Measure("redundant", "repeated reads", "steps read again", better="less", pooled="sum"),
        Measure(
            "off_cone", "reads off the cone", "reads that the lost answer does not need", "count", "", "less", "sum"
        ),
        Measure("minimum", "fewest reads", "the fewest reads that rebuild the answer"),
    ),
)
