"""A second, slow reading of the definitions in docs/vestige-demand.md: sets, a fixpoint, and no shared code.

Turns are pairs of lists of (path, tokens): what was read and what was written. If `edit_aware`, a write is an edit.
"""

from __future__ import annotations

Turns = list[tuple[list[tuple[str, int]], list[tuple[str, int]]]]
State = tuple[str, int]
Action = tuple[str, int, str]  # "read", turn, path; or "write", turn, ""


def in_force(turns: Turns, path: str, cut: int) -> State:
    """The version of a path just before turn `cut`: as many as turns before it wrote the path."""
    return path, sum(any(p == path for p, _ in writes) for _, writes in turns[: cut - 1])


def edited(turns: Turns) -> set[tuple[State, Action]]:
    """Every known version with the write action that edits it."""
    found: set[tuple[State, Action]] = set()
    for t, (reads, writes) in enumerate(turns, 1):
        for path, _ in writes:
            state = in_force(turns, path, t)
            if seen_before(turns, state, t) or any(p == path for p, _ in reads):
                found.add((state, ("write", t, "")))
    return found


def consumers(turns: Turns, edit_aware: bool = False) -> set[tuple[State, Action]]:
    """Every state with every action that depends on it."""
    found = edited(turns) if edit_aware else set()
    for t, (reads, _) in enumerate(turns, 1):
        for path, _ in reads:
            found.add((in_force(turns, path, t), ("read", t, path)))
    for t, (_, writes) in enumerate(turns, 1):
        if writes:
            found |= {(in_force(turns, path, r), ("write", t, "")) for r, path, w in carried(turns) if w == t}
    return found


def carried(turns: Turns) -> set[tuple[int, str, int]]:
    """Every read, by turn and path, with the turn of each write action whose window it falls in."""
    found = set()
    for t, (_, writes) in enumerate(turns, 1):
        if writes:
            preceding = max((w for w in range(1, t) if turns[w - 1][1]), default=0)
            for r in range(preceding + 1, t + 1):
                found |= {(r, path, t) for path, _ in turns[r - 1][0]}
    return found


def makers(turns: Turns) -> set[tuple[Action, State]]:
    return {
        (("write", t, ""), in_force(turns, path, t + 1)) for t, (_, writes) in enumerate(turns, 1) for path, _ in writes
    }


def actions_in_slice(turns: Turns, goal: set[str], edit_aware: bool = False) -> set[Action]:
    """Grow the set of actions from which a sink is reached until nothing is added.

    A read reaches the write that carries it, so a read belongs to the slice if its carrier does, or if a write of
    the slice edits the version that it showed.
    """
    edges, made = consumers(turns, edit_aware), makers(turns)
    sinks: set[Action] = {action for (path, _), action in edges if action[0] == "read" and path in goal}
    sinks |= {action for action, (path, _) in made if path in goal}
    actions: set[Action] = set(sinks)
    while True:
        states = {state for state, action in edges if action in actions}
        grown = actions | {action for action, state in made if state in states}
        grown |= {("read", r, path) for r, path, w in carried(turns) if ("write", w, "") in actions}
        if edit_aware:
            known = {state for state, action in edited(turns) if action in actions}
            grown |= {action for state, action in edges if action[0] == "read" and state in known}
        if grown == actions:
            return actions
        actions = grown


def sliced(turns: Turns, goal: set[str], edit_aware: bool = False) -> set[tuple[State, Action]]:
    """The pairs of state and consuming action in the slice."""
    actions = actions_in_slice(turns, goal, edit_aware)
    return {(state, action) for state, action in consumers(turns, edit_aware) if action in actions}


def cost(turns: Turns, state: State) -> int:
    """The largest tokens that any read or write gave for a version."""
    path, version = state
    given = [0]
    for t, (reads, writes) in enumerate(turns, 1):
        given += [tokens for p, tokens in reads if p == path and in_force(turns, p, t) == state]
        given += [tokens for p, tokens in writes if p == path and in_force(turns, p, t + 1) == (path, version)]
    return max(given)


def seen_before(turns: Turns, state: State, cut: int) -> bool:
    for t, (reads, writes) in enumerate(turns[: cut - 1], 1):
        if any(in_force(turns, p, t) == state for p, _ in reads):
            return True
        if any(in_force(turns, p, t + 1) == state for p, _ in writes):
            return True
    return False


def demand_by_cut(turns: Turns, goal: set[str], visibility: str, edit_aware: bool = False) -> list[int]:
    pairs = sliced(turns, goal, edit_aware)
    paths = {p for reads, writes in turns for p, _ in [*reads, *writes]}
    found = []
    for cut in range(1, len(turns) + 1):
        total = 0
        for path in sorted(paths):
            state = in_force(turns, path, cut)
            used = max((action[1] for s, action in pairs if s == state), default=0)
            if used >= cut and (visibility == "environment" or seen_before(turns, state, cut)):
                total += cost(turns, state)
        found.append(total)
    return found


Shown = tuple[bool, dict[int, str], dict[int, str]]  # numbers are printed; lines before the cut; lines behind it


def content_cost(views: list[Shown]) -> int:
    """What one version costs in words, from all views of it: its largest content, or the lines seen if they are more.

    Where numbers are printed every line has one. Where none are, only the lines before the cut can be counted off.
    """
    contents = [words(before) + words(behind) for printed, before, behind in views if not printed]
    seen: dict[int, str] = {}
    for printed, before, behind in views:
        seen |= before | (behind if printed else {})
    return max([words(seen), *contents])


def words(lines: dict[int, str]) -> int:
    return sum(len(line.split()) for line in lines.values())
