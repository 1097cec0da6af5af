"""Lists every study by its id: the tables and figures of the paper, and paragraphs with figures of their own.

A study names the function that computes it, which is imported when the study runs, so that listing is cheap.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from eirkit.errors import UnknownNameError
from eirkit.lacuna.models.network.decoding import Memory, cached_replies
from eirkit.lacuna.runs.runner import Runner
from eirkit_paper.study import Setting, Study

THREE = 3  # seeds behind a published mean; studies that take means of all their seeds in threes need as many

STUDIES: tuple[Study, ...] = (
    Study("eir-histories", "Different histories can require the same information", "theory", ("fig:eir-equivalence",),
          "Figure fig:eir-equivalence", "requirements:eir_histories"),
    Study("workload-requirements", "Workloads and what they require", "theory", ("tab:lacuna-workloads",),
          "Table tab:lacuna-workloads", "requirements:workload_table", 2),
    Study("exact-requirements", "Exact requirements and their enumeration", "theory", (),
          "appendix, Exact EIR calculations by workload contract", "requirements:exact_requirements", 17),
    Study("framework", "One task through the framework", "theory", ("fig:lacuna-framework",),
          "Figure fig:lacuna-framework", "requirements:framework"),
    Study("channel-audit", "Controlled-retention interface audit", "offline", ("tab:smuggling-audit",),
          "Table tab:smuggling-audit", "controls:channel_audit", 4),
    Study("capability", "Full-information capability control", "agents", ("tab:capability",),
          "Table tab:capability", "controls:capability", 6),
    Study("pressure-grid", "Less retained state lowers accuracy", "agents", ("tab:rq2",),
          "Table tab:rq2", "pressure:pressure_grid", 30),
    Study("full-lookup-sweep", "Full Lookup under fixed retention", "agents", ("tab:full-lookup-pressure",),
          "Table tab:full-lookup-pressure", "pressure:full_lookup_sweep", 8),
    Study("alignment-and-rescue", "Missing inputs predict errors; restoring them repairs answers", "agents",
          ("fig:temporal-alignment", "fig:rq1-causal-rescue"), "Figure fig:temporal-alignment",
          "cascades:alignment_and_rescue", 12),
    Study("rescue", "Causal rescue on Store–Recall", "agents", ("tab:rescue",),
          "Table tab:rescue", "rescue:store_recall_rescue", 4),
    Study("stepwise-maximum-rescue", "Causal rescue on Stepwise Maximum", "agents", ("tab:rq1-stepwise-max-rescue",),
          "Table tab:rq1-stepwise-max-rescue", "rescue:maximum_rescue", 4),
    Study("sufficient-capacity", "LRU where everything would fit, and its restoration", "agents",
          ("tab:rq2-agg-capacity",), "Table tab:rq2-agg-capacity", "rescue:sufficient_capacity", 8),
    Study("store-recall-theory", "Store–Recall: theory and observed", "agents", ("fig:rq2-arb-theory",),
          "Figure fig:rq2-arb-theory and its paragraph", "cascades:store_recall_theory", 4),
    Study("error-heat-map", "Error onset and propagation in Stepwise Sum", "agents", ("fig:rq2-failure-heatmap",),
          "Figure fig:rq2-failure-heatmap", "cascades:error_heat_map", 2),
    Study("cascade-gap", "One missing result can corrupt many later steps", "agents", ("fig:rq2-cascade-gap",),
          "Figure fig:rq2-cascade-gap and How do unrepaired information gaps cascade?", "cascades:cascade_gap", 8),
    Study("recovery-cones", "Shared ancestors make naive reconstruction explode", "offline", ("tab:rq3-cone",),
          "Table tab:rq3-cone", "cones:recovery_cones", 2, THREE),
    Study("cone-growth", "Cone growth over the trajectory, and matched pairs", "offline", (),
          "appendix, RQ2: Cone growth over the trajectory; matched pairs", "cones:cone_growth", 2, THREE),
    Study("recovery-cost", "Reusing computed results avoids repeated recovery work", "offline",
          ("fig:results-recovery",), "Figure fig:results-recovery, values of tab:rq3-cone",
          "cones:recovery_cost", 2, THREE, "recovery-cones"),
    Study("recovery-geometry", "Dependency geometry determines recovery work and latency", "offline",
          ("fig:rq3-cost", "fig:rq3-geometry"), "Figure fig:rq3-cost", "cones:recovery_geometry", 2, THREE,
          "recovery-cones"),
    Study("recovery-probes", "Successful agents traverse efficiently; failures stop early", "agents", ("tab:rq3-amp",),
          "Table tab:rq3-amp", "probes:recovery_probes", 3),
    Study("recovery-probes-by-workload", "Recovery probes on three workloads", "agents",
          ("tab:rq2-recovery-workloads",), "Table tab:rq2-recovery-workloads", "probes:probes_by_workload", 3),
    Study("read-traces", "When recovery succeeds it is read-optimal", "agents", ("fig:rq3-trace",),
          "Figure fig:rq3-trace", "probes:read_traces"),
    Study("full-lookup-hit-rates", "Hit rates of retention under Zipf queries", "offline", (),
          "RQ3 and appendix, RQ3: Results", "policies:hit_rates", 2, THREE),
    Study("two-by-two", "Who chooses and in what form it is kept: the 2×2 and the valley", "agents", (),
          "appendix, RQ3: 2×2 confound isolation, Capacity scaling, Valley signature, Behavior",
          "managed:two_by_two", 60),
    Study("agent-managed-behaviour", "Stepwise Maximum under agent-managed retention", "agents",
          ("tab:rq3-stepwise-max-behaviors",), "Table tab:rq3-stepwise-max-behaviors", "managed:maximum_behavior", 30),
    Study("recovery-enabled-maximum", "Stepwise Maximum with recovery", "agents", (),
          "appendix, RQ3: Recovery-enabled Stepwise Maximum comparison", "managed:recovery_enabled", 20),
    Study("cross-family-policies", "Knowing future use matters more than recency", "offline", ("tab:rq5-cross",),
          "Table tab:rq5-cross and appendix, RQ4", "policies:cross_family", 3, THREE),
    Study("policies-across-workloads", "Future-aware retention can reduce misses", "offline",
          ("fig:results-policy-cross-family",), "Figure fig:results-policy-cross-family",
          "policies:across_workloads", 2, THREE, "cross-family-policies"),
    Study("first-failure-pressure", "The pressure at which hindsight first fails", "offline", (),
          "appendix, RQ4: Cross-family analysis and theory-informed policy", "policies:first_failures", 2, THREE),
    Study("architectures", "Architectures on Store–Recall and Stepwise Top-k", "memories",
          ("tab:rq5-agent-architectures",), "Table tab:rq5-agent-architectures", "architectures:architectures", 12),
    Study("extended-architectures", "External memory systems on six workloads", "memories",
          ("tab:rq4-extended-architectures",), "Table tab:rq4-extended-architectures",
          "architectures:extended_architectures"),
    Study("full-lookup-architectures", "Full Lookup: strict and native panels", "memories", (),
          "appendix, RQ4: Theorem-matched Full Lookup architecture comparison", "architectures:full_lookup_panels", 6),
    Study("architecture-outcomes", "Architecture outcomes depend on storage and execution", "memories",
          ("fig:rq4-agent-architectures",), "Figure fig:rq4-agent-architectures",
          "architectures:architecture_outcomes", 16, repeats="architectures"),
    Study("known-dependencies", "VESTIGE on runs with known dependencies", "theory", (),
          "appendix, VESTIGE: Known-dependency validation", "recorded:known_dependencies"),
    Study("vestige-cohorts", "Demand of completed software-agent runs", "recorded", ("tab:swe-retrospective",),
          "Table tab:swe-retrospective", "recorded:vestige_cohorts", 5),
    Study("domain-anchors", "Domain anchors and demand in native units", "recorded", ("tab:eir-anchors",),
          "Table tab:eir-anchors and appendix, Cross-domain adapters", "recorded:domain_anchors"),
    Study("reread-distance", "Return rates by outcome and relevance", "recorded", ("tab:reread-distance",),
          "Table tab:reread-distance and Exploratory access behavior", "recorded:reread_distance", 5),
    Study("pressure-and-failure", "Demand, task difficulty and failure", "recorded", ("fig:pressure-failure",),
          "Figure fig:pressure-failure, panel B", "recorded:pressure_and_failure", 5),
    Study("clipping-example", "An edit without having seen the line", "recorded",
          ("fig:trajectory-clipping-mechanism",), "Figure fig:trajectory-clipping-mechanism, panel A",
          "clipping_example:clipping_example", 2),
    Study("clipping-and-anomalies", "Clipped views and anomaly signatures", "recorded", (),
          "appendix, Observed scaffold-level supply limits; anomaly audit", "recorded:clipping_and_anomalies", 5),
    Study("demand-and-mediation", "What lies between size, recovery and failure", "recorded", (),
          "appendix, Observed scaffold-level supply limits; Demand and downstream behavior",
          "recorded:demand_and_mediation", 5),
)  # fmt: skip

BY_ID = {study.id: study for study in STUDIES}


def find_study(name: str) -> Study:
    """Return the study with this id."""
    if name not in BY_ID:
        raise UnknownNameError("study", name, BY_ID)
    return BY_ID[name]


_STEPS: Memory = {}  # of the bundled network, over all studies of this process


def perform(piece: tuple[str, Setting]) -> bytes:
    """Compute a study; return its findings as JSON. What the bundled network wrote for one it need not write again.

    Runs go to the setting's folder, if it has one, from which a study that was killed goes on.
    """
    identity, setting = piece
    with cached_replies(_STEPS), Runner(setting.runs, setting.budget) as runner:
        findings = find_study(identity).run(replace(setting, runner=runner))
        return msgspec.json.encode(findings, enc_hook=float)  # of figures that are `Printed` or NumPy's
