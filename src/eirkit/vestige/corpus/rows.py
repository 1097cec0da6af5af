"""Computes the row of a run in the table `runs`."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from msgspec import Struct

from eirkit.records.analysis import Anomaly, ClippedView, EntityDemand, HiddenLine, RunRow, ToolCoverage, Visibility
from eirkit.vestige.audits.clipping import clipping_group
from eirkit.vestige.audits.occupancy import Occupancy
from eirkit.vestige.demand.graph import Goal
from eirkit.vestige.demand.live_states import MeasuredRun
from eirkit.vestige.trajectory import Trajectory


class Audits(Struct, frozen=True, gc=False):
    """What the audits of a run found that its row counts."""

    context: Occupancy
    tools: Sequence[ToolCoverage]
    events: Sequence[Anomaly]
    clips: Sequence[ClippedView]
    hidden: Sequence[HiddenLine] = ()


def run_row(
    trajectory: Trajectory, run: MeasuredRun, needed: Goal | EntityDemand, audits: Audits, visibility: Visibility
) -> RunRow:
    """Return the row of a run; one over entities has no goal files, and none of the columns about them."""
    recording = trajectory.recording
    goal = needed if isinstance(needed, Goal) else None
    patch = None if goal is None else goal.patch
    shown = run.under(visibility)
    reads = sum(len(states) for states in run.graph.reads)
    parent = recording.details.get("parent_run")
    context, signatures = audits.context, Tally(event.signature for event in audits.events)
    outcomes = Tally(line.outcome for line in audits.hidden)
    judged = zip(run.shown.read_tokens, run.judged, strict=True)
    return RunRow(
        run_id=recording.run_id,
        task_id=recording.task_id,
        model=recording.model,
        format=recording.format,
        source=recording.source,
        agent_version=recording.agent_version,
        domain=recording.domain,
        unit="entities" if goal is None else "tokens",
        resolved=recording.resolved,
        reward=recording.reward,
        exit_status=recording.exit_status,
        turns=len(trajectory.turns),
        tool_turns=sum(1 for turn in trajectory.turns if turn.recorded.calls or turn.reads or turn.writes),
        calls=sum(tool.calls for tool in audits.tools),
        calls_understood=sum(tool.understood for tool in audits.tools),
        reads=reads,
        writes=sum(use.writes for use in run.files),
        trajectory_tokens=sum(turn.tokens for turn in trajectory.turns),
        goal_source=None if goal is None else goal.source,
        goal_files=() if goal is None else goal.files,
        goal_accessed=goal is not None and run.needed.sinks > 0,
        peak_demand_tokens=None if goal is None else shown.peak,
        peak_cut=None if goal is None else shown.peak_cut,
        peak_seen_tokens=None if goal is None else run.seen.peak,
        peak_environment_tokens=None if goal is None else run.environment.peak,
        peak_paper_tokens=None if goal is None else run.paper_peak,
        segments=None if goal is None else len(goal.segments) or None,
        later_used_peak=run.later_used.peak,
        later_used_peak_cut=run.later_used.peak_cut,
        later_used_peak_files=max(run.later_used.live, default=0),
        read_tokens=None if goal is None else sum(use.read_tokens for use in run.files),
        repeat_tokens=None if goal is None else sum(use.repeat_tokens for use in run.files),
        dead_reads=sum(use.dead_reads for use in run.files),
        dead_read_tokens=None if goal is None else sum(use.dead_tokens for use in run.files),
        judged_read_tokens=None if goal is None else sum(sum(tokens) for tokens, is_judged in judged if is_judged),
        necessary_actions=sum(use.needed_reads for use in run.files) + sum(run.needed.needed_writes),
        actions=reads + sum(1 for made in run.graph.writes if made),
        peak_context_tokens=context.peak_tokens,
        context_measured=context.measured,
        window_tokens=context.window_tokens,
        window_source=context.window_source,
        peak_context_share=context.peak_share,
        prompt_monotone=context.prompt_monotone,
        prompt_drops=context.prompt_drops,
        overflow_errors=context.overflow_errors,
        summary_markers=context.summary_markers,
        clears=context.clears,
        gold_files=None if goal is None or patch is None else len(goal.files),
        gold_additions=None if patch is None else patch.additions,
        gold_deletions=None if patch is None else patch.deletions,
        clipped_views=len(audits.clips),
        clipped_goal_views=sum(clip.on_goal for clip in audits.clips),
        clipped_modified_views=sum(clip.later_modified for clip in audits.clips),
        clipping_group=clipping_group(audits.hidden),
        lines_recovered=outcomes["recovered"],
        lines_never_recovered=outcomes["never"],
        lines_ambiguous=outcomes["ambiguous"],
        edit_failures=signatures["edit_failure"],
        repeated_commands=signatures["repeated_command"],
        repeated_edits=signatures["repeated_edit"],
        submits_after_failed_test=signatures["submit_after_failed_test"],
        task_entities=needed.task_entities if isinstance(needed, EntityDemand) else None,
        parent_run=parent if isinstance(parent, str) else "",
        undivided_reads=sum(read.undivided for turn in trajectory.turns for read in turn.reads),
    )
