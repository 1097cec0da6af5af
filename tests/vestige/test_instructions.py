"""Instructions across compactions: kept word for word, in substance, or gone, and broken afterwards."""

from __future__ import annotations

import pytest

from eirkit.records.analysis import InstructionFate
from eirkit.vestige.audits.instructions import instruction_fates, instructions_in
from eirkit.vestige.trajectory import Call, FileWrite, KeptContext, RecordedTurn, Trajectory, Turn
from tests.vestige.runs import of_turns

RULE = "Never touch config/prod.yaml."


def step(number: int, writes: tuple[str, ...] = (), **recorded: object) -> Turn:
    made = tuple(FileWrite(path) for path in writes)
    return Turn(number, (), made, 10, RecordedTurn(**recorded))  # type: ignore[arg-type]


def session(*after: Turn, asked: str = RULE, **broken: object) -> Trajectory:
    """A prompt, a compaction before turn 2, and what followed."""
    known = {"carried": "The parser is half done.", **broken}
    return of_turns([step(1, asked=asked), step(2, broken="compaction", **known), *after])


def only(run: Trajectory) -> InstructionFate:
    [found] = instruction_fates(run)
    return found


@pytest.mark.parametrize(
    ("broken", "survival"),
    [
        ({"carried": "The user said: Never   touch\nconfig/prod.yaml. Go on."}, "verbatim"),
        ({"carried": "Go on.", "kept": KeptContext("history", texts=(f"user: {RULE}",))}, "verbatim"),
        ({"carried": "Go on.", "kept": KeptContext("removed", turns=(1,))}, "verbatim"),
        ({"carried": "Leave config/prod.yaml alone; do not touch it. The parser is half done."}, "substance"),
        ({"carried": "The user wants config/prod.yaml left as it is, not changed."}, "substance"),
        ({"carried": "The file config/prod.yaml is off limits."}, "substance"),
        ({"carried": "Then touch config/prod.yaml."}, "gone"),
        ({"carried": "The parser is half done."}, "gone"),
        ({"carried": ""}, "unknown"),
        ({"carried": "", "kept": KeptContext("history", is_opaque=True)}, "unknown"),
    ],
)
def test_how_a_rule_survives(broken: dict[str, object], survival: str) -> None:
    found = only(session(**broken))
    assert (found.kind, found.text, found.given_turn, found.cut, found.survival) == ("rule", RULE, 1, 2, survival)


def test_a_rule_that_was_dropped_and_then_broken_is_linked_to_the_compaction() -> None:
    found = only(session(step(3, ("src/a.py",)), step(4, ("config/prod.yaml",))))
    assert (found.cut, found.broken_turn, found.broken_by) == (2, 4, "config/prod.yaml")


def test_a_rule_that_stayed_is_not_linked_to_the_compaction() -> None:
    assert only(session(step(3, ("config/prod.yaml",)), carried=RULE)).broken_turn is None


def test_what_the_user_asked_for_afterwards_breaks_no_rule() -> None:
    run = session(step(3, ("config/prod.yaml",), asked="Now change config/prod.yaml after all"))
    assert instruction_fates(run)[0].broken_turn is None


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        (RULE, "You may change config/prod.yaml now."),
        ("Never push.", "ok, you can push the branch"),
        ("Always run the whole test suite before you answer.", "Forget the rule about the test suite."),
    ],
)
def test_a_rule_that_the_user_took_back_is_not_dropped(rule: str, later: str) -> None:
    end = step(3, broken="compaction", carried="Nearly done.")
    assert instruction_fates(of_turns([step(1, asked=rule), step(2, asked=later), end])) == ()
    kept = of_turns([step(1, asked=rule), step(2, asked="You can run it."), end])
    assert [one.survival for one in instruction_fates(kept)] == ["gone"]


@pytest.mark.parametrize(
    "later", ["You may not edit config/prod.yaml.", "Don't forget the rule on config/prod.yaml.", "Don’t ignore it: {}"]
)
def test_a_reminder_takes_no_rule_back(later: str) -> None:
    turns = [step(1, asked=RULE), step(2, asked=later.format("config/prod.yaml")), step(3, broken="clear")]
    assert RULE in [one.text for one in instruction_fates(of_turns(turns))]


@pytest.mark.parametrize(
    ("met", "edited", "is_broken"),
    [
        ((), "config.py", True),
        ((), "deploy/config.py", False),
        (("config.py", "deploy/config.py"), "deploy/config.py", False),
        (("config.py", "deploy/config.py"), "config.py", True),
        (("deploy/config.py",), "deploy/config.py", True),  # the only file of this name that was spoken of
    ],
)
def test_a_bare_name_is_the_file_at_the_root_or_the_only_one_met(
    met: tuple[str, ...], edited: str, is_broken: bool
) -> None:
    turns = [step(1, met), step(2, asked="Never touch config.py."), step(3, broken="compaction", carried="Go on.")]
    assert (only(of_turns([*turns, step(4, (edited,))])).broken_turn == 4) is is_broken


@pytest.mark.parametrize(
    ("asked", "command", "is_broken"),
    [
        ("Never push.", "git add -A && git push origin main", True),
        ("Don't ever commit anything.", "git commit -m x", True),
        ("Don't ever commit anything.", "git log --grep commit", False),
        ("Never run `npm publish`.", "npm publish --tag next", True),
        ("Never run `npm publish`.", "npm run build", False),
        ("Do not push unless I say so.", "git push", False),
        ("Always run the tests.", "git push", False),
    ],
)
def test_forbidden_commands(asked: str, command: str, is_broken: bool) -> None:
    ran = step(3, calls=(Call("bash", {"command": command}),))
    assert (only(session(ran, asked=asked)).broken_turn == 3) is is_broken


def test_open_items_of_a_list_are_followed_and_closed_ones_are_not() -> None:
    items = [
        {"content": "write the lexer", "status": "completed"},
        {"content": "document the grammar", "status": "pending"},
    ]
    turns = [step(1, calls=(Call("TodoWrite", {"todos": items}),)), step(2, broken="compaction", carried="Go on.")]
    found = only(of_turns(turns))
    assert (found.kind, found.text, found.survival) == ("todo", "document the grammar", "gone")


def test_what_is_gone_cannot_be_dropped_again() -> None:
    run = session(step(3, broken="compaction", carried="Nearly done."))
    assert [one.cut for one in instruction_fates(run)] == [2]


def test_quoted_code_and_runs_without_breaks_give_nothing() -> None:
    assert instruction_fates(of_turns([step(1, asked=RULE)])) == ()
    assert instruction_fates(session(asked="Fix this:\n```\n# never touch config/prod.yaml\n```\n")) == ()


@pytest.mark.parametrize(
    ("sentence", "is_rule"),
    [
        ("From now on, always run the linter.", True),
        ("Also never use a number in a title", True),
        ("- Never include extra whitespace", True),
        ("ok, always run the linter first", True),
        ("Do not push unless I say so.", True),
        ("Going forward we name branches after the issue.", True),
        ("Don't ever skip a test.", True),
        # Said for one occasion.
        ("Also don't give it a number and it needs no date or status in the file", False),
        ("no don't set it, let's see if it keeps happening", False),
        ("yes, but we don't need to commit", False),
        ("Update the documentation make sure there's no redundant parts in there", False),
        ("You should not rename it.", False),
        ("let's use SQLite for the store", False),
        ("never mind, we'll look at it later", False),
        # Pasted, quoted, or longer than what people type.
        ("> Never use a number in a title", False),
        ("+ // Always update the cache", False),
        ("Implement this plan:\n# Plan\nNever use a number in a title.", False),
        ("See the log below. " + "x" * 2_000 + "\nNever use a number in a title.", False),
        ("pre-prompt state must be re-captured after each checkpoint", False),
        ("The stop hook currently never writes to stdout.", False),
        ("but I don't see anything in the logs", False),
        ("This causes the estimate to always return 0, resulting in wrong sums.", False),
        ("it also always seems to be this same hash, I think?", False),
        ("I don't think there's a hook we can tap into for this", False),
        ("Since this is the fallback, and we don't have metadata here, it is simple.", False),
        ("But why do you think session logs shouldn't be overwritten?", False),
        ("can you review the change in this branch, where we use `git add` but don't change the folder", False),
        ("finalization_test.go:808: Second commit should NOT have a trailer", False),
        ("Add other languages to ensure the trivial patterns don't cause false negatives", False),
        ("It is always possible to wait again.", False),
    ],
)
def test_what_tells_or_asks_is_no_rule(sentence: str, is_rule: bool) -> None:
    assert [one.kind for one in instructions_in(sentence, 1)] == (["rule"] if is_rule else [])
