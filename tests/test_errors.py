"""The exception tree: its shape, its messages, and that errors survive the way home from a worker process."""

import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from eirkit import errors
from eirkit.errors import (
    EirkitError,
    MissingExtraError,
    ModelError,
    PluginError,
    UnknownNameError,
    UsageError,
    install_command,
)

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]


def example(kind: type[EirkitError]) -> EirkitError:
    if kind is UnknownNameError:
        return UnknownNameError("policy", "lru", ["fifo"])
    if kind is MissingExtraError:
        return MissingExtraError("--plot", "plot")
    if kind is ModelError:
        return ModelError("the server is busy; wait", "rate-limit", 3.0)
    if kind is PluginError:
        return PluginError("policy", "Mine", "victim", "IndexError: out of ideas", "mine.py:7")
    return kind("what is wrong; what to do")


@pytest.mark.parametrize("kind", CLASSES)
def test_is_drawn_in_the_tree(kind):
    assert issubclass(kind, EirkitError)
    assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize("kind", CLASSES)
def test_the_exit_code_is_the_one_that_the_tree_draws(kind):
    assert kind.exit_code == (2 if kind is EirkitError or issubclass(kind, UsageError | PluginError) else 1)


@pytest.mark.parametrize("kind", CLASSES)
def test_survives_pickling(kind):
    error = example(kind)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def fail_in_worker(name: str) -> None:
    raise UnknownNameError("policy", name, ["fifo"])


def test_reaches_the_parent_of_a_worker_process():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(UnknownNameError, match="no policy named 'lru'; known: fifo"),
    ):
        pool.submit(fail_in_worker, "lru").result()


def test_unknown_name_offers_the_nearest():
    message = str(UnknownNameError("workload", "stepwise-smu", ["store-recall", "stepwise-sum"]))
    expected = "no workload named 'stepwise-smu'; did you mean 'stepwise-sum'? known: stepwise-sum, store-recall"
    assert message == expected


def test_unknown_name_says_so_when_there_are_none():
    assert str(UnknownNameError("policy", "lru", [])) == "no policy named 'lru'; known: none"


def test_errors_are_also_the_builtin_ones_that_python_programmers_expect():
    assert isinstance(UnknownNameError("a", "b", []), LookupError)
    assert isinstance(errors.SpecError("x"), ValueError)
    assert isinstance(MissingExtraError("x", "y"), ImportError)


def test_missing_extra_ends_in_the_command_to_type():
    assert str(MissingExtraError("--plot", "plot")).endswith(install_command("plot"))
