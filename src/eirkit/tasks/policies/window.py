"""`window`: keeps the newest records by step, whatever is fetched."""

from eirkit.tasks.policy import Ranked, policies


@policies.add("window")
class Window(Ranked):
    """Keep the h newest records by step, whatever is fetched: the sufficient store of a windowed task at h = m."""

    lowest = "id"
