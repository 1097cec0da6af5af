"""Small models of the six workloads, written from their definitions and independent of the code under test.

A model is a process: `states` at a cut, admissible `moves`, `step`, and the `horizon` that is left. Histories arise by
playing every input, never by listing windows. `count_classes` and `unrolled` are the two slow references.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any, Self

Answer = Any
Graph = Sequence[Sequence[int]]  # references of steps 1 … t, as step numbers from 1


@dataclass(frozen=True)
class Operator:
    """What a compute step may receive, and its answer."""

    inputs: tuple[Any, ...]
    apply: Callable[[Any, Sequence[Answer]], Answer]


def summing(q: int) -> Operator:
    return Operator(tuple(range(q)), lambda fresh, operands: (fresh + sum(operands)) % q)


def maximum(q: int) -> Operator:
    return Operator(tuple(range(q)), lambda fresh, operands: max((fresh, *operands)))


def top(q: int, k: int) -> Operator:
    """Segments are multisets: the answer does not depend on their order."""
    segments = tuple(tuple(sorted(s, reverse=True)) for s in combinations_with_replacement(range(q), k))
    return Operator(segments, lambda fresh, operands: tuple(sorted(sum(operands, fresh), reverse=True)[:k]))


def windows_from_inputs(operator: Operator, graph: Graph, reach: int) -> set[tuple[Answer, ...]]:
    """Return every window (the last `reach` answers) that some inputs give after the steps of the graph."""
    windows: set[tuple[Answer, ...]] = {()}
    for t, references in enumerate(graph, 1):
        assert all(1 <= t - r <= reach for r in references), f"step {t} refers beyond its reach"
        windows = {
            (*window, operator.apply(fresh, [window[r - t] for r in references]))[-reach:]
            for window in windows
            for fresh in operator.inputs
        }
    return windows


class Model:
    """What the models share; a subclass is a frozen dataclass with `states`, `horizon`, `moves` and `step`."""

    start: Hashable = ()
    states: Sequence[Any]
    horizon: int | None

    def moves(self, state: Any) -> Iterator[Any]:
        raise NotImplementedError

    def step(self, state: Any, move: Any) -> tuple[Answer, Any]:
        raise NotImplementedError

    def at(self, states: Iterable[Any], horizon: int | None) -> Self:
        """Return the same process at a cut where these states are possible and `horizon` steps are left."""
        return replace(self, states=tuple(sorted(states, key=repr)), horizon=horizon)  # type: ignore[type-var]

    def after(self, t: int, n: int) -> Self:
        """Return the process at the cut after step t of n, every admissible history played."""
        states = {self.start}
        for _ in range(t):
            states = {self.step(state, move)[1] for state in states for move in self.moves(state)}
        return self.at(states, n - t)


@dataclass(frozen=True)
class OnlineWindow(Model):
    """An online compute task: a state is the tuple of the last `reach` answers; any references, any input may come."""

    operator: Operator
    reach: int
    fan_in: int
    states: Sequence[tuple[Answer, ...]] = ((),)
    horizon: int | None = None

    def moves(self, state: tuple[Answer, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Yield (places in the window, input) pairs."""
        places = combinations(range(len(state)), min(self.fan_in, len(state)))
        return product(places, self.operator.inputs)

    def step(self, state: tuple[Answer, ...], move: tuple[tuple[int, ...], Any]) -> tuple[Answer, tuple[Answer, ...]]:
        places, fresh = move
        answer = self.operator.apply(fresh, [state[place] for place in places])
        return answer, (*state, answer)[-self.reach :]

    def after_graph(self, graph: Graph, n: int) -> Self:
        """Return the process at the cut after the graph's steps: its references fixed, every input played."""
        return self.at(windows_from_inputs(self.operator, graph, self.reach), n - len(graph))


def SumWindow(q: int, reach: int, fan_in: int) -> OnlineWindow:  # noqa: N802 - reads as the model it makes
    return OnlineWindow(summing(q), reach, fan_in)


def MaxWindow(q: int, reach: int, fan_in: int) -> OnlineWindow:  # noqa: N802
    return OnlineWindow(maximum(q), reach, fan_in)


def TopKWindow(q: int, reach: int, fan_in: int, k: int) -> OnlineWindow:  # noqa: N802
    return OnlineWindow(top(q, k), reach, fan_in)


@dataclass(frozen=True)
class StoreRecall(Model):
    """A state is the last `reach` records: a stored value, or None where the step was a recall."""

    q: int
    reach: int
    states: Sequence[tuple[int | None, ...]] = ((),)
    horizon: int | None = None

    def moves(self, state: tuple[int | None, ...]) -> Iterator[tuple[str, int]]:
        if not state or state[-1] is None:
            return (("store", value) for value in range(self.q))
        return (("recall", age) for age, value in enumerate(reversed(state), 1) if value is not None)

    def step(self, state: tuple[int | None, ...], move: tuple[str, int]) -> tuple[int, tuple[int | None, ...]]:
        kind, argument = move
        if kind == "store":
            return argument, (*state, argument)[-self.reach :]
        value = state[-argument]
        assert value is not None
        return value, (*state, None)[-self.reach :]


@dataclass(frozen=True)
class FullLookup(Model):
    """A state is the values stored so far; once there are m of them, any label may be queried."""

    q: int
    m: int
    states: Sequence[tuple[int, ...]] = ((),)
    horizon: int | None = None

    def moves(self, state: tuple[int, ...]) -> Iterator[tuple[str, int]]:
        if len(state) < self.m:
            return (("store", value) for value in range(self.q))
        return (("query", label) for label in range(self.m))

    def step(self, state: tuple[int, ...], move: tuple[str, int]) -> tuple[int, tuple[int, ...]]:
        kind, argument = move
        return (argument, (*state, argument)) if kind == "store" else (state[argument], state)


@dataclass(frozen=True)
class RunningMax(Model):
    """A state is the tuple of the last answer alone."""

    q: int
    states: Sequence[tuple[int, ...]] = ((),)
    horizon: int | None = None

    def moves(self, state: tuple[int, ...]) -> Iterator[int]:
        return iter(range(self.q))

    def step(self, state: tuple[int, ...], move: int) -> tuple[int, tuple[int, ...]]:
        answer = max((move, *state))
        return answer, (answer,)


@dataclass(frozen=True)
class Slots(Model):
    """Independent copies of an online window that are referenced together: one value a slot in every record."""

    window: OnlineWindow
    slots: int
    states: Sequence[tuple[Any, ...]] = ((),)
    horizon: int | None = None

    @property
    def start(self) -> tuple[tuple[()], ...]:  # type: ignore[override]
        return ((),) * self.slots

    def moves(self, state: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        places = combinations(range(len(state[0])), min(self.window.fan_in, len(state[0])))
        return product(places, product(self.window.operator.inputs, repeat=self.slots))

    def step(self, state: tuple[Any, ...], move: tuple[Any, ...]) -> tuple[Answer, tuple[Any, ...]]:
        places, inputs = move
        pairs = [self.window.step(window, (places, fresh)) for window, fresh in zip(state, inputs, strict=True)]
        return tuple(answer for answer, _ in pairs), tuple(window for _, window in pairs)


def count_classes(process: Any) -> int:
    """Return the continuation classes of the process's states: refine with dictionaries, round by round."""
    behavior: dict[Any, dict[Any, tuple[Answer, Any]]] = {}
    frontier = list(process.states)
    while frontier:
        state = frontier.pop()
        if state not in behavior:
            behavior[state] = {move: process.step(state, move) for move in process.moves(state)}
            frontier.extend(following for _, following in behavior[state].values())
    block = dict.fromkeys(behavior, 0)
    rounds = 0
    while rounds != process.horizon:
        signatures = {
            state: frozenset((move, answer, block[following]) for move, (answer, following) in options.items())
            for state, options in behavior.items()
        }
        names = {signature: number for number, signature in enumerate(dict.fromkeys(signatures.values()))}
        refined = {state: names[signature] for state, signature in signatures.items()}
        rounds += 1
        if process.horizon is None and len(names) == len(set(block.values())):
            break
        block = refined
    return len({block[state] for state in process.states})


@dataclass(frozen=True)
class Unrolled:
    """A finite contract: all sequences of `horizon` moves as futures, all answers on the way as the response."""

    process: Any
    histories: Sequence[Any]
    futures: Sequence[tuple[Any, ...]]

    def respond(self, history: Any, future: tuple[Any, ...]) -> tuple[Answer, ...]:
        return play(self.process, history, future)[0]


def unrolled(process: Any) -> Unrolled:
    """Return the process as a finite contract; every state must admit the same sequences of moves."""
    states = tuple(process.states)
    return Unrolled(process, states, tuple(sequences(process, states[0], process.horizon)))


@dataclass(frozen=True)
class Played:
    """A finite contract from inputs alone: a history is the moves played so far, not the state they led to."""

    model: Any
    histories: Sequence[tuple[Any, ...]]
    futures: Sequence[tuple[Any, ...]]

    def respond(self, history: tuple[Any, ...], future: tuple[Any, ...]) -> tuple[Answer, ...]:
        return play(self.model, self.model.start, (*history, *future))[0][len(history) :]


def played(model: Model, t: int, n: int) -> Played:
    """Return the contract of the cut after step t of n over every prefix of moves and every continuation."""
    histories = tuple(sequences(model, model.start, t))
    reached = play(model, model.start, histories[0])[1]
    return Played(model, histories, tuple(sequences(model, reached, n - t)))


def play(process: Any, state: Any, moves: Iterable[Any]) -> tuple[tuple[Answer, ...], Any]:
    """Return the answers on the way and the state at the end."""
    answers = []
    for move in moves:
        answer, state = process.step(state, move)
        answers.append(answer)
    return tuple(answers), state


def sequences(process: Any, state: Any, length: int) -> Iterator[tuple[Any, ...]]:
    """Yield every admissible sequence of moves from the state."""
    if length == 0:
        yield ()
        return
    for move in process.moves(state):
        for rest in sequences(process, process.step(state, move)[1], length - 1):
            yield (move, *rest)
