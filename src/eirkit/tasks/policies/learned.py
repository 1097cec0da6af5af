"""A policy that learned from generated streams what Belady, who sees the future, would have dropped."""

from importlib.resources import files

from eirkit.tasks.policy import policies
from eirkit.tasks.scoring import Scored, Tables


@policies.add("learned")
class Learned(Scored):
    """Drop the record with the lowest learned score, from its kind, last possible use, uses and idle time.

    docs/learned-policy.md says what it learned from, and where there was nothing to learn.
    """

    tables = Tables.read(files(__package__) / "learned.json")
