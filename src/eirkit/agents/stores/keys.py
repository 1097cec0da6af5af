"""Secrets in the settings of memory systems: plain ones are refused, `${NAME}` is replaced from the environment.

Settings are written into manifests and records, so only `${NAME}` is recorded. The value is inserted when the system is
made, also in a resumed sweep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from eirkit.agents.serving.scrubber import Scrubber, names_secret
from eirkit.errors import UsageError

_REFERENCE = re.compile(r"\$\{(\w+)\}")
_PLACE = re.compile(r"\{\w+\}")  # placeholder of a template, which is filled with a record, not a key
_FLAG = re.compile(r"--?([\w-]+)(?:=(.*))?", re.DOTALL)
_WHEREABOUTS = (
    "file",
    "path",
    "dir",
    "name",
    "env",
)  # names of settings that locate or name a secret without containing it
_LONG = 16  # characters; shorter ones are user names in a URL, longer ones tokens


def refuse_plain_secrets(memory: str, settings: Mapping[str, Any]) -> None:
    """Raise UsageError if a setting contains a plain secret; the message does not repeat it."""
    for name, text in _texts(settings):
        last = name.rpartition(".")[2]
        if (_names_key(last) and _is_secret(text)) or any(map(_is_secret, _in_address(text))):
            raise UsageError(
                f"{name} of memory {memory!r} contains a secret, and settings are recorded; put it into an environment "
                "variable such as MY_KEY and give '${MY_KEY}' instead"
            )
        for variable in _REFERENCE.findall(text):
            if not names_secret(variable):  # secrets are recognised by these names and removed from messages
                raise UsageError(
                    f"{name} of memory {memory!r} refers to {variable}; choose a name with KEY, TOKEN, PASSWORD "
                    "or SECRET, so that its value is removed from records"
                )


def resolve_variables(memory: str, settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with `${NAME}` replaced; raises UsageError if a variable is not set."""

    def value_of(found: re.Match[str]) -> str:
        if not (value := environment.get(found[1])):
            raise UsageError(f"{found[1]} is not set, and memory {memory!r} refers to it; export it and try again")
        return value

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return _REFERENCE.sub(value_of, value)
        if isinstance(value, Mapping):
            return {name: filled(one) for name, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list | tuple) else value

    return {name: filled(value) for name, value in settings.items()}


def _names_key(name: str) -> bool:
    return names_secret(name) and not name.lower().endswith(_WHEREABOUTS)


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string in the settings with its name, dotted for nested tables."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        before = ""
        for one in value:
            flag = _FLAG.fullmatch(one) if isinstance(one, str) else None
            if flag is not None and flag[2] is not None:
                yield f"{name}.{flag[1]}", flag[2]
            else:
                yield from _texts(one, f"{name}.{before}" if before else name)
            before = flag[1] if flag is not None and flag[2] is None else ""  # on a command line: `--key VALUE`


def _is_secret(text: str) -> bool:
    """True if a text is not a reference, a template or a placeholder for "no key"."""
    rest = _REFERENCE.sub("", text)
    known = Scrubber.knowing(rest)
    return not _PLACE.search(rest) and bool(known.secrets or known.doubtful)


def _in_address(text: str) -> Iterator[str]:
    """Yield the credentials in a URL: user, password, and keys in its query."""
    if "://" not in text:
        return
    try:
        parts = urlsplit(text)
        named = parse_qsl(parts.query)
    except ValueError:
        return
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    if password or len(user) >= _LONG:
        yield password or user
    yield from (value for name, value in named if names_secret(name))
