"""Names, meanings and units of the measures of recorded runs: demand, reading, compactions, cohorts, the week."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

from eirkit.measures import Measure, MeasureGroup

SHELL_TOOL_TURNS = 3  # fewest tool turns of a shell run that counts in what is used later
UNDERSTOOD_SHARE = 0.9  # of calls; below it, a warning is shown
LEAST_TOKENS = 500  # less is not worth acting on
LEAST_USD = Decimal(1)  # likewise, where the price is known
LEAST_REPEATS = 2  # times that a file was shown again

_events = partial(Measure, pooled="sum")
_tokens = partial(Measure, unit="tokens", pooled="sum")
_kept_share = partial(Measure, unit="share", better="more", pooled="none")

LOG_MEASURES = MeasureGroup(
    "recorded_runs",
    "Recorded runs",
    (
        Measure(
            "failed", "failure rate", "runs that did not succeed", "share", "runs with a known outcome", better="less"
        ),
        Measure(
            "goal_accessed",
            "goal file touched",
            "runs that read or wrote a goal file, whether they succeeded or not",
            "share",
            "runs over files",
            "more",
        ),
        Measure(
            "rework",
            "any rework",
            "runs with a failed edit, a repeated command or edit, or a submission after a failed test",
            "share",
            "runs",
            better="less",
        ),
        Measure(
            "peak_demand_tokens",
            "peak demand",
            "the most that was live at one cut: seen before it, unchanged, and used after it on the way to the goal",
            "tokens",
        ),
        Measure("peak_cut", "at cut", "the first turn before which demand has its peak", "step", pooled="none"),
        Measure(
            "later_used_peak",
            "peak used later",
            "the most that was seen before a cut and used after it, for whatever purpose",
            "amount",
            pooled="quantiles",
        ),
        Measure("trajectory_tokens", "trajectory length", "tokens of the whole run", "tokens"),
        Measure("tool_turns", "tool turns", "turns that called a tool or touched a file"),
        _events("calls_understood", "calls understood", "calls of which it is known what they read and wrote"),
        Measure("peak_context_tokens", "fullest context", "the largest prompt with its reply", "tokens"),
        Measure(
            "peak_context_share",
            "window used",
            "the largest prompt with its reply",
            "share",
            "the model's context window",
        ),
        _events("summary_markers", "compactions", "places where the context was summarized"),
        _events("clears", "clears", "places where the context was emptied"),
        _events("clipped_views", "clipped views", "outputs that the agent's software cut short"),
        _events("clipped_goal_views", "clipped goal views", "clipped views of goal files"),
        _events(
            "clipped_modified_views", "clipped, modified later", "clipped views of files that the run modified later"
        ),
        _events(
            "lines_recovered",
            "hidden lines shown later",
            "lines to be changed that a clipped view hid and a later view showed",
        ),
        _events(
            "lines_never_recovered",
            "hidden lines never shown",
            "lines to be changed that a clipped view hid and no later view showed",
        ),
        _events("lines_ambiguous", "undecided hidden lines", "hidden lines that cannot be distinguished"),
        _events("edit_failures", "failed edits", "edits that the tool refused"),
        _events("repeated_commands", "repeated commands", "commands run again in vain"),
        _events("repeated_edits", "repeated edits", "edits made again"),
        _events(
            "submits_after_failed_test",
            "submissions after a failed test",
            "submissions although the last test run failed",
        ),
        _events("overflow_errors", "context overflows", "requests that did not fit the model's window"),
    ),
)
READING_MEASURES = MeasureGroup(
    "reading",
    "What recorded runs read",
    (
        _tokens(
            "read_tokens", "tokens read", "tokens that views of files showed, with the line numbers that some print"
        ),
        _tokens(
            "repeat_tokens",
            "tokens read again",
            "tokens known to have been shown before, of files unchanged since",
            better="less",
        ),
        Measure(
            "repeat_share",
            "read again",
            "known to have been shown before, of files unchanged since",
            "share",
            "tokens read",
            better="less",
            pooled="sum",
        ),
        _tokens(
            "dead_read_tokens",
            "tokens read in vain",
            "tokens read where neither the next write nor an edit of the file led to the goal, if that is known",
            better="less",
        ),
        Measure(
            "dead_read_share",
            "read in vain",
            "read, and neither the next write nor an edit of it led to the goal",
            "share",
            "tokens read where the goal is known",
            better="less",
            pooled="sum",
        ),
    ),
)
WEEK_MEASURES = MeasureGroup(
    "week",
    "What responses of coding agents cost",
    (
        _tokens("tokens", "tokens", "tokens of all prompts and replies"),
        _tokens(
            "fresh_tokens",
            "input, not cached",
            "tokens of prompts that were neither read from a cache nor written to one",
            better="less",
        ),
        _tokens("cache_read_tokens", "cache reads", "tokens of prompts read from a cache"),
        _tokens("cache_write_tokens", "cache writes", "tokens of prompts written to a cache"),
        Measure(
            "usd",
            "money",
            "what the tokens with a known price cost at that price",
            "dollars",
            better="less",
            pooled="sum",
        ),
    ),
)
TRIAL_MEASURES = MeasureGroup(
    "trial",
    "What happened after a compaction in a trial of the guard",
    (
        Measure(
            "reread_after_tokens",
            "read again after it",
            "tokens of files that the session had used before the compaction and has not written since",
            "tokens",
            better="less",
        ),
        Measure(
            "to_edit_tokens",
            "tokens to the next edit",
            "tokens of turns up to the first one that wrote a file of the project, or up to the last one that counts",
            "tokens",
            better="less",
        ),
        Measure(
            "to_edit_turns",
            "turns to the next edit",
            "turns up to the first one that wrote a file of the project, or up to the last one that counts",
            better="less",
        ),
        Measure(
            "broken_rules",
            "broken instructions",
            "instructions given before the compaction that forbid a file or a command which was then written or run",
            better="less",
        ),
    ),
)
BREAK_MEASURES = MeasureGroup(
    "breaks",
    "What compactions and clears dropped",
    (
        _tokens(
            "live_tokens",
            "may be needed",
            "in context at the break, of files read or edited later, or read for the next write",
        ),
        _tokens(
            "dropped_tokens",
            "dropped",
            "of that, not in the context afterwards: the sum of the next three",
            better="less",
        ),
        _tokens(
            "reread_dropped_tokens", "dropped, read again", "dropped, in lines that were shown again", better="less"
        ),
        _tokens(
            "overwritten_tokens",
            "dropped, edited unread",
            "dropped, in files or lines that were edited before they were shown again",
            better="less",
        ),
        _tokens(
            "never_reread_tokens",
            "dropped, never read again",
            "dropped, in lines that were neither shown again nor edited first",
            better="less",
        ),
        _tokens("unknown_tokens", "unknown", "of that, where the log does not show whether it stayed in the context"),
    ),
)
COHORT_MEASURES = MeasureGroup(
    "cohorts",
    "Cohorts of recorded runs",
    (
        Measure(
            "covered_failure_auc",
            "failure AUC",
            "probability that a failed run needed more than a successful one, ties half, over runs that touched a goal "
            "file",
            "probability",
            pooled="cohort",
        ),
        Measure(
            "failure_auc",
            "failure AUC, uncovered as 0",
            "the same with runs that reached no goal file as needing 0",
            "probability",
            pooled="cohort",
        ),
    ),
)

CUT_LINES = MeasureGroup(
    "cut_lines",
    "Lines of a context that was cut",
    (
        Measure("line_kept", "needed, kept", "later work needed it and the compactor kept it", color="line-kept"),
        Measure(
            "line_dropped",
            "needed, dropped",
            "later work needed it and the compactor dropped it",
            color="line-dropped",
        ),
    ),
)
COMPACTOR_MEASURES = MeasureGroup(
    "compactors",
    "What compactors keep at a cut",
    (
        _kept_share(
            "kept_share",
            "kept",
            "needed lines that stand in what the compactor returned, by their tokens, mean over cuts",
            of="the needed tokens",
        ),
        Measure(
            "regret_share",
            "regret",
            "what the best selection of lines within the budget keeps beyond it, mean over cuts",
            "share",
            "the needed tokens",
            "less",
            pooled="none",
        ),
        _kept_share(
            "gain_share",
            "over chance",
            "what it keeps beyond random lines of as many tokens, mean over cuts",
            of="the needed tokens",
        ),
        Measure("used_tokens_mean", "used", "tokens that it returned, mean over cuts", "tokens", pooled="none"),
        Measure(
            "failed_compactions", "failed", "cuts at which it gave no valid messages within the budget", better="less"
        ),
        _kept_share("read_kept", "code read", "kept of needed lines that a read showed", of="their tokens"),
        _kept_share(
            "written_kept", "code written", "kept of needed lines that the agent had written itself", of="their tokens"
        ),
        _kept_share("rules_verbatim", "rules, word for word", "kept word for word", of="the user's rules"),
        _kept_share("rules_kept", "rules", "kept word for word or in substance", of="the user's rules"),
        _kept_share("paths_kept", "paths", "still named", of="files that the context named and later turns used"),
        _kept_share(
            "names_kept", "names in outputs", "still named", of="names that only an output told and later calls used"
        ),
    ),
)
