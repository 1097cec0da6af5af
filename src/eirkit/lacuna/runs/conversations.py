"""Runs on conversations: which accesses they have, their sessions, and the records of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from eirkit.errors import InputFileError, SpecError, UnknownNameError, UsageError
from eirkit.lacuna import READER
from eirkit.lacuna.agents.conditions import (
    COMPACTION,
    CONVERSATION_CONDITIONS,
    MEMORY,
    SERVER,
    TRUNCATED,
    WHOLE,
)
from eirkit.lacuna.agents.protocol import InForm
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.conversation.floor import floor_bits, present_requirement
from eirkit.lacuna.conversation.labeled import LabeledConversation
from eirkit.lacuna.conversation.labeled_outcomes import judge_labeled
from eirkit.lacuna.conversation.outcomes import (
    AnswerVerdict,
    conversation_record,
    judge_conversation,
    recorded_verdicts,
)
from eirkit.lacuna.conversation.reading import DatedStatement, needed_statements, plain_sentence, show_turn
from eirkit.lacuna.conversation.session import (
    SUMMARY_PROMPTS,
    ConversationSession,
    ConversationView,
    PublicConversation,
    PublicQuestion,
    shown_context,
    transcript,
)
from eirkit.lacuna.conversation.workload import Conversation, WorldConversation, read_preset
from eirkit.lacuna.conversation.world import Value
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.memories.factory import check_plan, sees_truth
from eirkit.lacuna.models.model import Model, ModelOptions, ServerCompaction
from eirkit.lacuna.runs.cells import CONVERSATION_ARMS, plan_of
from eirkit.lacuna.runs.family import Judgment, RescuedRun, TaskFamily, Unrecovered
from eirkit.lacuna.scripted.reader import Quoter, make_reader
from eirkit.lacuna.tasks.task import ConversationSpec
from eirkit.records.budgets import TOKENS, condition_budget, split_budget
from eirkit.records.runs import CHARACTERS_PER_TOKEN, ConversationRun, RunRecord, ServerCompactions
from eirkit.records.settings import DOCUMENTED, NATIVE, SHOWN_ITSELF, Access, Arm, Intervention, RescueArm

RECORD_KEYS = ("policy", "panel", "b_oracle", "b", "actions", "h")  # of a grid of numbers
LIMITED = (TRUNCATED, COMPACTION, SERVER)
CONTEXT_TOKENS = 512  # default of a limited context
TRIGGER_TOKENS = 50_000  # default of the context that a server compacts: the least that Anthropic's API accepts
LEAST_TOKENS = 64  # of which half is the summary
USUAL_ANSWER = 80  # characters of an answer in free text
PROBES = ("now", "all", "day")  # forms of questions for a present value: of a fact, a set, and a date


class ConversationTasks(TaskFamily[ConversationSpec, Conversation]):
    """Questions about conversations."""

    arms = CONVERSATION_ARMS
    only_lacking = False
    calculates = False

    def access(self, values: Mapping[str, Any], memory_settings: Mapping[str, Any]) -> Access:
        """Return the access; a memory system means that everything must come from it.

        Raises:
            UsageError: it has a part that conversations do not have.
        """
        given = {name: values[name] for name in ("memory", "context_tokens", "summary_prompt") if name in values}
        if foreign := [name for name in RECORD_KEYS if values.get(name)]:
            raise UsageError(f"conversations have no {foreign[0]}; leave it out")
        condition, memory = values.get("condition"), given.get("memory")
        if condition is None and memory in SHOWN_ITSELF:
            condition = given.pop("memory")
        condition = condition or (WHOLE if memory is None else MEMORY)
        budget = condition_budget(condition, values.get("budget", DOCUMENTED))
        return Access(condition, None, memory_settings=dict(memory_settings), h=None, budget=budget, **given)

    def check_access(self, access: Access) -> None:
        check_conversation_access(access)

    def full_access(self) -> Access:
        return Access(WHOLE, None, h=None)

    def rescue_access(self, access: Access) -> Access:
        if access.memory is None:
            return Access(TRUNCATED, None, h=None)
        return Access(MEMORY, None, access.memory, access.memory_settings, h=None, budget=access.budget)

    def control_specs(self, windows: Sequence[int]) -> list[ConversationSpec]:
        return [self.spec]

    def memory_model(self) -> str:
        return f"{READER}+language={read_preset(self.spec.preset)[1]}"

    def session(
        self,
        access: Access,
        task: Conversation,
        intervention: Intervention | None = None,
        unrecovered: Unrecovered | None = None,
    ) -> ConversationSession:
        return conversation_session(access, task, intervention)

    def judge(self, access: Access, task: Conversation, trace: Trace) -> Judgment:
        verdicts, record = judge_answers(access, task, trace)
        return Judgment(verdicts, conversation=record)

    def rejudge(self, task: Conversation, trace: Trace) -> None:
        return None

    def rescued(self, task: Conversation, record: RunRecord, trace: Trace) -> RescuedRun:
        if not isinstance(task, WorldConversation) or record.conversation is None:
            raise InputFileError(f"run {record.run} has no answers about a world; restore the folder")
        wrong = record.conversation.wrong
        old = {answer.t for answer in wrong if answer.symptom in ("outdated", "withdrawn_value")}
        stale = SentenceInjection(task, "stale")
        outdated = {question.t for question in task.questions if stale(question.t) is not None}
        verdicts = tuple(recorded_verdicts(task, record.conversation))
        return RescuedRun(verdicts, {}, frozenset(old), frozenset(outdated))

    @property
    def weighs_holdings(self) -> bool:
        return False

    def ingests_first(self, task: Conversation) -> bool:
        return len({question.after for question in task.questions}) == 1

    def floor(self, task: Conversation, trace: Trace, limit: int | None) -> None:
        return None

    def stand_in(self, task: Conversation) -> Model:
        if isinstance(task, LabeledConversation):
            return InForm(Quoter(ModelOptions(), USUAL_ANSWER))
        return InForm(make_reader(ModelOptions()))


def check_conversation_access(access: Access) -> None:
    """Raise UsageError if the parts of an access contradict each other or name something unknown."""
    if access.condition not in CONVERSATION_CONDITIONS:
        raise UnknownNameError("condition of conversations", access.condition, CONVERSATION_CONDITIONS)
    if (access.memory is None) == (access.condition == MEMORY):
        both = [name for name in (access.memory, access.condition) if name in SHOWN_ITSELF]
        if access.memory is not None and both:
            raise UsageError(
                f"{both[0]} is a candidate like a memory; write --memory NAME,{both[0]} without --condition"
            )
        raise UsageError(
            f"condition {MEMORY!r} needs a memory system, and no other condition takes one; use a second [[grid]]"
        )
    if access.budget != DOCUMENTED and access.context_tokens is not None:
        raise UsageError("a budget of tokens limits the context already; leave out context_tokens")
    if access.panel != NATIVE or access.policy is not None:
        raise UsageError("conversations have no panels, policies and tool calls; leave them out")
    if access.context_tokens is not None and access.condition not in LIMITED:
        raise UsageError(f"context_tokens apply to the conditions {', '.join(LIMITED)} only; leave them out")
    if access.condition == COMPACTION and characters_of(access) < CHARACTERS_PER_TOKEN * LEAST_TOKENS:
        raise SpecError(f"a context of {access.context_tokens} tokens is too small for a summary; use {LEAST_TOKENS}")
    if access.summary_prompt is not None and access.condition not in (COMPACTION, SERVER):
        raise UsageError(f"summary_prompt applies to {COMPACTION!r} and {SERVER!r} only; leave it out")
    if (plan := plan_of(access)) is not None:
        check_plan(plan)
        if sees_truth(plan.name):
            raise UsageError(f"memory {plan.name!r} is made from labeled records; choose another for conversations")


def conversation_session(
    access: Access, task: Conversation, intervention: Intervention | None = None
) -> ConversationSession:
    """Return the session of one run.

    Raises:
        UsageError: a rescue is asked for, and nobody knows the sentence that is missing.
    """
    questions = tuple(PublicQuestion(one.text, one.after, one.day) for one in task.questions)
    public = PublicConversation(task.sessions, questions, task.canonical)
    prompt = SUMMARY_PROMPTS.get(access.summary_prompt or "plain", access.summary_prompt or "")
    server = None
    if access.condition == SERVER:
        if not isinstance(task, WorldConversation):
            raise UsageError(
                f"nobody knows how many bits {task.spec.workload} needs; {SERVER} takes the workload conversation"
            )
        told = prompt if access.summary_prompt else ""  # by default the server's own
        server = ServerCompaction(access.context_tokens or TRIGGER_TOKENS, pause=True, instructions=told)
    session = ConversationSession(public, ConversationView(access.condition, characters_of(access), prompt, server))
    if isinstance(intervention, RescueArm):
        if not isinstance(task, WorldConversation):
            raise UsageError(f"{task.spec.workload} has no sentence to restore; rescue takes the workload conversation")
        if intervention.arm != "control":
            session.add = SentenceInjection(task, intervention.arm)
    return session


class SentenceInjection:
    """What an arm of a rescue shows with a question: the sentences it needs, as long ones about others, or old ones."""

    def __init__(self, task: WorldConversation, arm: Arm) -> None:
        self.task, self.arm = task, arm

    def __call__(self, t: int) -> str | None:
        asked = self.task.questions[t - 1]
        needed = needed_statements(asked.question, self.task.said_before(asked), self.task.truth_at(asked))
        if self.arm == "oracle":
            chosen: list[DatedStatement | None] = list(needed)
        elif self.arm == "sham":
            chosen = self._others(needed, self.task.said_before(asked))
        else:
            chosen = [one for one in map(self._older, needed) if one not in needed]
        return "\n".join(self._text(one) for one in chosen if one is not None) or None

    def _text(self, one: DatedStatement) -> str:
        return show_turn(one.day, "user", plain_sentence(self.task.language, one.statement))

    def _others(self, needed: Sequence[DatedStatement], said: Sequence[DatedStatement]) -> list[DatedStatement | None]:
        """Return, for each needed statement, the one nearest in length that has nothing to do with the question.

        None may name what a needed statement is about, nor any value that the needed facts ever had: the door of an old
        place would answer a question about a door. Of several that are as near, the first is taken.
        """
        facts = {(one.statement.attribute, one.statement.subject) for one in needed}
        about: set[Value] = {name for _, name in facts}
        told = [one.statement for one in said]
        about |= {one.value for one in told if (one.attribute, one.subject) in facts}
        is_other = [bool(one.subject) and not {one.subject, one.value} & about for one in told]
        others = [one for one, apart in zip(said, is_other, strict=True) if apart]

        def nearest(length: int) -> DatedStatement | None:
            return min(others, key=lambda one: abs(len(self._text(one)) - length), default=None)

        return [nearest(len(self._text(one))) for one in needed]

    def _older(self, needed: DatedStatement) -> DatedStatement | None:
        """Return the last statement about the same fact before the needed one; None if there is none."""
        key = needed.statement.attribute, needed.statement.subject
        before = self.task.said[: self.task.said.index(needed)]
        about = [one for one in before if (one.statement.attribute, one.statement.subject) == key]
        return about[-1] if about else None


def characters_of(access: Access) -> int:
    """Return how many characters of the conversation a limited context shows."""
    kind, tokens = split_budget(access.budget)
    return CHARACTERS_PER_TOKEN * (tokens if kind == TOKENS else access.context_tokens or CONTEXT_TOKENS)


def shown_part(access: Access, task: Conversation, t: int, prompts: Mapping[int, str]) -> str | None:
    """Return what a condition without a memory system shows of a conversation; None if that is not known.

    Args:
        prompts: requests by question, where they are known; summaries are known from nothing else.
    """
    if access.condition == SERVER:
        return None  # whether it compacted, and what it kept, is not in the prompts
    if access.condition == COMPACTION:
        return shown_context(prompts[t]) if t in prompts else None
    said = transcript(task.sessions[: task.questions[t - 1].after])
    return said[-characters_of(access) :] if access.condition == TRUNCATED else said


def judge_answers(access: Access, task: Conversation, trace: Trace) -> tuple[tuple[Verdict, ...], ConversationRun]:
    """Return the verdicts on the answers of a run, and what its record says about them."""
    prompts = {one.t: one.request.messages[-1].content for one in trace.exchanges if one.t}
    shown: dict[int, str] = {}  # one text for all questions after the same session
    for one in task.questions if access.condition != MEMORY else ():
        if access.condition == SERVER:
            shown[one.after] = transcript(task.sessions[: one.after])  # where the server did not compact it
        elif one.after not in shown:
            shown[one.after] = shown_part(access, task, one.t, prompts) or ""
    if isinstance(task, LabeledConversation):
        found, record = judge_labeled(task, trace, access.condition, shown)
    elif isinstance(task, WorldConversation):
        found, retrieval = judge_conversation(task, trace, access.condition, shown)
        record = conversation_record(task, trace, found, retrieval)
        if access.condition == SERVER:
            record = replace(record, server=server_record(task, trace, found))
    else:
        raise UsageError(f"{task.spec.workload} cannot be judged; use another workload")
    verdicts = tuple(one.verdict() for one in found)
    if access.condition == SERVER:  # nobody can read what it kept, so it is not known what was at hand
        verdicts = tuple(replace(verdict, informed=False) for verdict in verdicts)
    return verdicts, record


def server_record(task: WorldConversation, trace: Trace, verdicts: Sequence[AnswerVerdict]) -> ServerCompactions:
    """Return what the answers of a run tell about the compactions of its server, as plain data.

    Nobody can read a compaction, so it is probed by questions for the present value of a fact. A fact of M classes is
    log2 M bits, and a right answer counts as these bits. A value that was lost is answered as unknown, or guessed; a
    guess is right once in M times, so each wrong answer takes away log2 M / (M - 1), and the expected sum is what was
    kept. Mistakes of the reader count as lost, which the same worlds under the condition `whole` show.
    """
    cut = len(task.dialogues) - 1
    compacted = {one.t for one in trace.exchanges if one.is_compacted}
    unknown = task.language.table["unknown"].casefold()
    submitted = {one.t: one.text for one in trace.decisions if one.text is not None}
    right = {one.t: one.right for one in verdicts}
    probed: dict[tuple[str, str], tuple[float, float, bool]] = {}  # by fact: bits, bits kept, right
    for asked in task.questions:
        if asked.answer is None:
            continue  # "unknown" is right also where nothing was kept
        key = asked.question.attribute, asked.question.subject
        if asked.question.form in PROBES and asked.t in compacted and asked.after == cut and key not in probed:
            fact = present_requirement(task.world, cut, key)
            guessed = asked.t in submitted and submitted[asked.t] != unknown
            lost = fact.bits / (fact.classes - 1) if guessed and fact.classes > 1 else 0.0
            probed[key] = fact.bits, fact.bits if right[asked.t] else -lost, right[asked.t]
    return ServerCompactions(
        compactions=sum(bool(one.reply.carried) for one in trace.exchanges),
        needed_bits=floor_bits(task.world, cut),
        probed_facts=len(probed),
        right_facts=sum(is_right for _, _, is_right in probed.values()),
        probed_bits=sum(bits for bits, _, _ in probed.values()),
        kept_bits=sum(kept for _, kept, _ in probed.values()),
    )
