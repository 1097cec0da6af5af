"""Six ways to have explored a timezone bug. What must be remembered to finish the repair?

The rest of the task asks two things: which file to edit, and what kind of datetime to return.
"""

HISTORIES = {
    "h1": ("grep parse_date", "dates.py: no offset", "settings.py: TZ on"),
    "h2": ("settings.py: TZ on", "open README", "views.py unchanged", "dates.py: no offset"),
    "h3": ("grep parse_date", "dates.py: no offset", "settings.py: TZ off"),
    "h4": ("views.py: + becomes space", "dates.py handles offset", "settings.py: TZ on"),
    "h5": ("grep parse_date", "views.py: + becomes space", "settings.py: TZ off"),
    "h6": ("views.py: + becomes space", "dates.py handles offset", "settings.py: TZ off"),
}


class timezone:  # noqa: N801 - read on the command line as examples/timezone.py:timezone
    """A finite contract: histories, futures, and what is right after each."""

    histories = HISTORIES
    futures = ("which file?", "return what?")

    def respond(self, history: str, future: str) -> str:
        seen = HISTORIES[history]
        if future == "which file?":
            return "dates.py" if "dates.py: no offset" in seen else "views.py"
        return "aware" if "settings.py: TZ on" in seen else "naive"
