"""Answers in other words than the command's: what is read, what is not, and that it is read in linear time."""

from __future__ import annotations

import asyncio
import json
import re
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.cli import run as run_command_line
from eirkit.lacuna.agents.answers import find_answer, is_taken_back
from eirkit.lacuna.agents.conditions import Cache
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.protocol import read_answers
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import ModelOptions, Reply
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from tests.lacuna.running import retention
from tests.lacuna.servers import ModelServer, Received, answers_as, fails, says
from tests.runs import row

TASK = generate(TaskSpec("stepwise-sum", n=12, m=4, seed=5))
# How models write the answer 1234 of step 7, by a reader's eye.
STATED = [
    "Answer: 1234",
    "The answer is 1,234.",
    "**Answer:** 1,234",
    "The final answer is **1234**.",
    "\\boxed{1234}",
    "$\\boxed{1,234}$",
    '{"answer": 1234}',
    '```json\n{"t": 7, "value": "1,234"}\n```',
    'Here it is: {"answer": [1234]}. Anything else?',
    'Here it is: {"sum": {"value": 11234}, "answer": 1234}',
    '{"A_07": 1234}',
    '"1234"',
    "`1234`",
    "[1234]",
    "1\u202f234",
    "A_07 = 1234",
    "**A_07** is 1234",
    "A_07 = 1000 + 234 = 1234",
    "Step 7: 1234",
    "The answer for step 7 is 1234.",
    "Answer (step 7): 1'234",
    "ANSWER: 1234",
    "answer: 1234.0",
    "The answer is 1234, because A_03 is missing.",
    "The answer is 1234 (1000 + 234).",
    "A_07 = 1234 because A_03 = 4",
    "The answer is 1234, since A_03 is 4 and A_05 is 1230.",
    "Using step 3, the answer is 1234.",
    "Step 6: the answer is 4.\nStep 7: the answer is 1234.",
    "I add 1000 and 234.\nThe answer is 1234.",
    "The sum is 1,234.",
    "A_03 + A_05 gives 1234.",
    "ANSWER 7 1,234",
    "ANSWER 7 \\boxed{1234}",
    'ANSWER 7 "1234"',
    "ANSWER 7 1_234",
    "ANSWER 7 1\u00a0234",
    "Sure! ANSWER 7 1234",
    "I do not need more. My reply: **ANSWER 7 1,234**. Anything else?",
    "Sure! ANSWER 7 1234\nOnce more: ANSWER 7 1234",
]
# What a reader would not take for the answer of step 7, or could take for two.
OPEN = [
    "The answer is 12 or 13",
    "The answer of A_03 is 17",
    "There is 1 missing input.",
    "The input is 42.",
    "A_03 is 42",
    "I cannot answer; A_03 is missing.",
    "The answer is between 3 and 5",
    "1.234",
    "The answer is not 42",
    "The answer is 42.\nThe answer is 43.",
    '{"t": 8, "answer": 42}',
    '{"answer": 1, "value": 2}',
    '{"t": 7, "answer": 42}\n{"t": 7, "answer": 43}',
    "\\boxed{x+1}",
    "\\boxed{1} \\boxed{2}",
    "7 42",
    "12 + 30",
    "The answer is -42",
    "The answer is 42 if A_03 is 5",
    "The answer could be 42",
    "Step 3: 42",
    "A_07 = A_03 + A_05",
    "A_07 = 42 if A_03 = 5",
    "A_07 = 42 or 43 because A_03 = 4",
    "Step 3: The answer is 42.",
    "For step 3, the answer is 42.",
    "A_03's answer is 42.",
    "Schritt 3: Die Antwort ist 42.",
    "The intermediate result is 42.",
    "Die falsche Antwort ist 42.",
    "The answer is 42. Actually, it's 43.",
    "ANSWER 42",
    "ANSWER 7 1.234",
    "I will give the answer in 3 steps",
    "Sure! ANSWER 8 1234",
    "Sure! ANSWER 7 12 or 13",
    "Sure! ANSWER 7 12 ANSWER 7 13",
    "Not ANSWER 7 1234",
    "The form is ANSWER 7 0042, so 1234",
    "Sure! ANSWER 7 12 + 30",
    "Sure! ANSWER 7 1234 if A_03 is 5",
    "If A_01 were 30 the answer would be: 42",
    "Suppose A_01 were 30. If so, A_07 would be 42; if it were 31, the answer would be: 43",
    "A_07 is 4 more than A_03",
    "Example: ANSWER 7 0042. I need A_03.",
    "I would write, e.g. ANSWER 7 0042. I need A_03.",
]


def read(text: str, t: int = 7, width: int = 1):
    """Return what a session with such answers would record."""
    answers, _ = read_answers(Reply(text))
    if not answers:
        return find_answer(text, t, width, 10_000)
    (answer,) = answers
    return answer.values if len(answer.values) == width else answer.grouped


@pytest.mark.parametrize("text", STATED)
def test_one_value_of_the_current_step_is_an_answer(text):
    assert read(text) == (1234,)


@pytest.mark.parametrize("text", OPEN)
def test_anything_else_is_no_answer(text):
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234", (1, 234)),
        ("Answer: 1,234 5,678", (1234, 5678)),
        ("ANSWER 7 1,234 5,678", (1234, 5678)),
        ("The answer is 12 and 30", (12, 30)),
        ("\\boxed{12, 30}", (12, 30)),
        ('{"values": [12, 30]}', (12, 30)),
        ("42", None),
        ("12 30 40", None),
    ],
)
def test_the_width_of_an_answer_decides_what_a_comma_separates(text, values):
    assert read(text, width=2) == values


REPLACED = [
    "Actually, ANSWER 7 0017",
    "So in the end ANSWER 7 0017",
    "Wait, no. The answer is 0017.",
    "On second thought, the answer should be 0017.",
    "Sorry, I meant 0017.",
    "Hmm, A_07 = 0017.",
    "Wait, A_03 is 5, so A_07 = A_03 + 12 = 17.",
    "I misread the input. So it is 0017.",
    "Let me recompute: 5 + 12 = 17. Final answer: 0017",
    "Let me recompute: A_03 + A_05 = 5 + 12 = 17. The correct answer is 17.",
    "Let me recheck: 5 + 12 = 17.\nAnswer: 17",
    "Hmm. <answer>17</answer>",
    'Sorry: {"t": 7, "answer": 17}',
    "Let me recompute. 5 + 12 = \\boxed{17}",
    "That is wrong, it is 17.",
    "Wait, that's wrong: 5 + 12 = 17.\nAnswer: 17",
    "Wait, that's wrong: 5 + 12 = 17.\nANSWER: 17",
    "Oops, I misread A_4; it should be 17.\nAnswer above is withdrawn.",
    "Answer above is withdrawn.",
    "Please disregard the above.",
    "Ignore my last answer.",
    "Scratch that, I need A_03.",
    "I withdraw my answer.",
    "Actually no, it is 0017.",
    "Sorry, 17.",
]
EXPLAINED = [
    "",
    "I added 1000 and 234.",
    "The sum is 11234, which modulo 10000 is 1234.",
    "Let me check: 1000 + 234 = 1234. The answer is 1234.",
    "Actually easy: ANSWER 7 1234",
    "Wait for the next step.",
    "Sorry for the delay of 3 steps.",
    "(You may ignore the above reasoning.)",
    "You can ignore this line.",
    "I can ignore that the record 3 was dropped.",
    "A_03 was dropped. I ignore that.",
    "Do not ignore this.",
    "The inputs were 1000 and 234; I misread neither.",
    "Let me verify: A_4's answer is 6.",
    "Let me verify: A_07 is 234 more than A_03.",
    "Let me verify. The previous result was: 4",
    "Let me recheck. Adding both gives 11234.",
    "Let me recheck. Result before modulo: 11234",
    "It should be 11234 modulo 10000.",
    "Let me recheck. \\boxed{1000} + \\boxed{234} = \\boxed{1234}",
    "Wait for step 6. The answer there is 12.",
    "Wait for step 6. The final answer of step 6 is 12.",
    "Correction of the form: 1,234",
    "No need to READ 3.",
    "No es 17.",
    "Answer given in the form of the example, such as ANSWER 7 0042.",
]


@pytest.mark.parametrize("answer", ["ANSWER 7 1234", "**Answer 7: 1,234**"])
@pytest.mark.parametrize(
    ("rest", "stands"), [*((rest, False) for rest in REPLACED), *((rest, True) for rest in EXPLAINED)]
)
def test_an_answer_stands_unless_the_rest_of_the_reply_replaces_it(answer, rest, stands):
    reply = Reply(f"That was wrong: 17.\n{answer}\n{rest}")
    session = ControlledSession(publish(TASK, prepare(TASK.spec)), retention(TASK, 4))
    last = session.standing(reply, read_answers(reply)[0][-1])
    assert (session.accept(last, 7) == (1234,)) if stands else (last.kind == "malformed")


@given(st.integers(0, 9999), st.integers(1, 64), st.sampled_from(["{:,}", "{:04d}", "{}"]))
def test_every_value_is_read_back(value, t, form):
    for template in ("The answer is {}.", "A_{t:02d} = {}", "\\boxed{{{}}}", '{{"answer": "{}"}}', "ANSWER {t} {}"):
        assert read(template.format(form.format(value), t=t), t) == (value,)


PIECES = (
    "answer is ",
    "1,",
    "answer: 1 ",
    "{",
    "A_7 = ",
    "0 ",
    "\\boxed{",
    " and ",
    "(",
    "it is ",
    "'",
    "1.0 ",
    "=",
    "\n",
    "so it is 1 ",
    "Sure! ANSWER 7 1",
)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join))
def test_a_long_reply_is_read_in_time(piece):
    """It takes a second of processor time at most; a search that is quadratic in 30,000 characters takes many."""
    start = process_time()
    text = piece * (30_000 // len(piece))
    find_answer(text, 7, 1, 10_000)
    is_taken_back(f"Wait. {text}", 7, (1,), 10_000)
    assert process_time() - start < 5


def play(server: ModelServer, *, managed: bool = False, reask: bool = False):
    async def run():
        model = make_metered("openai/any", ModelOptions(base_url=server.url, retries=0))
        public, kept = publish(TASK, prepare(TASK.spec)), retention(TASK, 4)
        session = ManagedSession(public, Cache(kept)) if managed else ControlledSession(public, kept)
        if reask:
            session.reask = True
        try:
            return await drive(session, model)
        finally:
            await model.close()

    return asyncio.run(run())


def said_by(agent: str, received: Received) -> str:
    return json.loads(answers_as(agent)(received).body)["choices"][0]["message"]["content"]


FORMS = (
    "Answer: {value:,}",
    "The answer is **{value:,}**.",
    "ANSWER {t} {value:,}",
    '{{"answer": {value}}}',
    "\\boxed{{{value}}}",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("managed", [False, True])
def test_a_model_that_answers_in_its_own_words_scores_as_one_that_keeps_to_the_form(form, managed):
    """Values written as 1,234 were booked as lost information at h = m, where nothing is lost."""

    def reword(text: str) -> str:
        return re.sub(r"ANSWER (\d+) (\d+)", lambda m: form.format(t=int(m[1]), value=int(m[2])), text)

    agent = "recoverer" if managed else "calculator"
    with ModelServer(lambda received: says(said_by(agent, received))) as plain:
        wanted = play(plain, managed=managed)
    with ModelServer(lambda received: says(reword(said_by(agent, received)))) as worded:
        found = play(worded, managed=managed)
    assert [one.submitted for one in found.decisions] == [one.submitted for one in wanted.decisions]
    assert any(max(one.submitted or (0,)) >= 1000 for one in wanted.decisions)  # some values have four digits
    assert found.ending == "finished"


def test_one_further_request_where_there_was_no_answer():
    def script(received: Received):
        again = "No answer was found in your last reply" in received.body["messages"][-1]["content"]
        return says(said_by("calculator", received) if again or len(server.received) % 3 else "Let me see.")

    with ModelServer(script) as server:
        trace = play(server, reask=True)
    assert [decision.fault for decision in trace.decisions] == [None] * 12
    again = [action for action in trace.actions if action.action == "REASK"]
    assert {(one.outcome, one.reason, one.number) for one in again} == {("refused", "malformed", 0)}
    assert len(server.received) == len(trace.exchanges) == 12 + len(again) > 12


def test_asked_once_more_and_not_twice(tmp_path, capfd):
    with ModelServer([says("Let me see.")]) as server:
        asked = (
            "--n",
            6,
            "--m",
            3,
            "--h",
            3,
            "--seeds",
            0,
            "--model",
            "openai/any",
            "--base-url",
            server.url,
            "--reask",
        )
        words = ("lacuna", "run", "stepwise-sum", *asked, "--no-control", "--out", tmp_path / "out")
        assert run_command_line(list(map(str, words))) == 0
    assert len(server.received) == 12
    found = row(tmp_path / "out")
    assert (found.calls, found.reasked, found.faults) == (12, 6, {"malformed": 6})
    assert run_command_line(["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")]) == 0
    assert "--reask" in (tmp_path / "page.html").read_text()  # in the command that repeats the run


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (400, "System role not supported"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
def test_a_server_without_a_system_role_gets_the_rules_from_the_user(status, words):
    def script(received: Received):
        first, *_ = received.body["messages"]
        if first["role"] == "system":
            return fails(status, words)
        rules, _, state = first["content"].partition("\n\n")
        received.body["messages"] = [{"role": "system", "content": rules}, {"role": "user", "content": state}]
        return says(said_by("calculator", received))

    with ModelServer(script) as server:
        trace = play(server)
    assert [decision.fault for decision in trace.decisions] == [None] * 12
    assert len(server.received) == 13  # refused once, remembered


def test_a_seed_is_sent_until_a_server_refuses_it():
    def script(received: Received):
        if "seed" in received.body:
            return fails(400, "Unrecognized request argument supplied: seed")
        return says(said_by("calculator", received))

    with ModelServer(script) as server:
        play(server)
    assert ["seed" in received.body for received in server.received] == [True, *[False] * 12]
