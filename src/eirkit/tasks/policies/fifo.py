"""`fifo`: drops the record that was stored first."""

from eirkit.tasks.policy import Ranked, policies


@policies.add("fifo")
class Fifo(Ranked):
    """Drop the record that entered first; a record that is fetched again enters anew."""

    lowest = "inserted"
