"""What the simulation of retention policies is measured by."""

from __future__ import annotations

from eirkit.measures import Measure, MeasureGroup

SIMULATION_MEASURES = MeasureGroup(
    "simulation",
    "Simulated policies",
    (
        Measure(
            "reference_miss_rate",
            "reference miss rate",
            "required answers that are not in context",
            "share",
            "references",
            better="less",
        ),
        Measure("hit_rate", "hit rate", "required answers that are in context", "share", "references", better="more"),
        Measure("miss_regret", "miss regret", "missed references beyond those of Belady's policy", better="less"),
        Measure(
            "gap_closed",
            "gap closed",
            "how much of the distance in miss rate from FIFO to Belady a policy covers",
            "share",
            "the gap between FIFO and Belady",
            better="more",
        ),
        Measure(
            "online_miss_rate",
            "best online",
            "the smallest expected miss rate of any policy that does not know the references in advance",
            "share",
            "steps with references",
            better="less",
            pooled="none",
        ),
        Measure(
            "hindsight",
            "hindsight",
            "how much of the distance in miss rate from FIFO to Belady only knowledge of the future can cover",
            "share",
            "the gap between FIFO and Belady",
            pooled="none",
        ),
        Measure(
            "eir_pressure", "EIR pressure", "bits that must survive over bits that fit, at the peak", pooled="none"
        ),
    ),
)
