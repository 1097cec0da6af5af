"""Every format of the registry, and a user's own, conforms to `check_format`; what is wrong is found out, and no input
whatever makes a reader raise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eirkit.errors import UsageError
from eirkit.testing import check_format
from eirkit.testing.formats import _Subject
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import Recording, formats
from tests.vestige.formats.samples import write_sample

NAMES = formats.names()
every_format = pytest.mark.parametrize("name", NAMES)
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
EXAMPLE = Path(__file__).parents[3] / "examples" / "eirkit-example" / "src" / "eirkit_example" / "step_log.py"
STEPS = b'{"step_log": [{"typed": "cat a.py", "saw": "x = 1"}, {"typed": "ls", "saw": "a.py"}]}'

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def samples_of(tmp_path_factory):
    """The samples of every format, which no test changes."""
    folder = tmp_path_factory.mktemp("samples")
    return {name: write_sample(name, folder / name) for name in NAMES}


@every_format
def test_a_format_conforms(name, tmp_path, samples_of):
    (tmp_path / "own").mkdir()
    samples = write_sample(name, tmp_path / "own")
    others = [path for other in NAMES if other != name for path in samples_of[other]]
    result = check_format(name, samples, folder=tmp_path / "own", others=others)
    assert len(result.held) == 8
    assert all(isinstance(item, Recording) and item.format == name for item in _runs(name, samples))


def _runs(name: str, samples: list[Path]) -> list[Recording | Skipped]:
    subject = _Subject(formats.get(name), tuple(samples), None, ())
    return [item for sample in samples for item in subject.read(sample)]


@every_format
@quick
@given(content=st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
@example(content=b"[" * 1000)
def test_no_bytes_and_no_json_make_it_raise(name, content, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    subject = _Subject(formats.get(name), (path,), None, ())
    assert subject.recognizes(path) in range(4)
    subject.read(path)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "monday.json"
    path.write_bytes(STEPS)
    return path


def test_a_users_own_format_conforms(log, samples_of):
    others = [path for name in NAMES for path in samples_of[name]]
    result = check_format(f"{EXAMPLE}:StepLog", [log], others=others)
    assert len(result.held) == 8
    assert result.notes == (f"{len(STEPS)} cuts of 1 logs",), "a small sample is cut at every byte"


class Greedy:
    """Takes every JSON object for its own."""

    def recognizes(self, document):
        return document.head.startswith(b"{")

    def read(self, document):
        for step in document.json()["step_log"]:
            yield Skipped(document.source, f"will not read {step['typed']}")


class Fragile(formats.get(f"{EXAMPLE}:StepLog")):
    """Raises where a log ends too early."""

    def read(self, document):
        json.loads(document.head)
        return super().read(document)


class Loose:
    """Yields what is no recording."""

    def recognizes(self, document):
        return document.head.startswith(b'{"step_log"')

    def read(self, document):
        yield {"run": document.name}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Greedy, "is recognized and is of another format"),
        (Greedy, "Whole logs are read, with nothing skipped: monday.json: will not read cat a.py"),
        (Greedy, r"TypeError: .* \(raised by read\)"),
        (Fragile, r"monday.json cut after 0 of \d+ bytes: .*JSONDecodeError"),
        (Loose, "it yielded a dict; yield Recording or Skipped"),
    ],
)
def test_what_is_wrong_is_named(kind, reason, log, samples_of):
    with pytest.raises(AssertionError, match=reason):
        check_format(kind, [log], others=[path for name in NAMES for path in samples_of[name]])


def test_a_suite_without_a_sample_says_what_it_needs():
    with pytest.raises(UsageError, match="give the paths of one or two small logs"):
        check_format(Greedy, [])
