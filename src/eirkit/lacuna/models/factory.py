"""Makes a model from its string: `provider/name`, or a reference to a user's factory."""

from __future__ import annotations

from collections.abc import Iterable

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.models.model import MOST_AT_ONCE, Batching, Model, ModelOptions, Preflight, models
from eirkit.records.settings import COMPLETION, TEXT
from eirkit.registry import call

# How the names of well-known models begin, for those who leave the provider out.
_PROVIDERS = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
}


def split_model(string: str) -> tuple[str, str]:
    """Return the provider, or the reference to a factory, and the model's name.

    `openai/gpt-4.1` splits at the first slash, `bundled:weights.safetensors` at the colon;
    `package.module:Factory/name` and `path/file.py:Factory/name` at the first slash after the reference.
    """
    family, colon, path = string.partition(":")
    if colon and family in models:
        return family, path
    provider, _, name = string.partition("/")
    if provider not in models and ".py:" in string:
        path, _, rest = string.partition(".py:")
        attribute, _, name = rest.partition("/")
        provider = f"{path}.py:{attribute}"
    return provider, name


def protocol_of(string: str, options: ModelOptions) -> str:
    """Return the protocol in which a model answers: the one of its options, else the first that its provider takes.

    A factory says so by the attribute `protocols`, a function of the model's name and options; text is taken by all.
    """
    provider, name = split_model(string)
    if options.protocol not in (None, COMPLETION):
        return options.protocol
    # A reference to a user's factory is not imported to find out what a run is called.
    taken: tuple[str, ...] = ()
    if provider in models:
        taken = getattr(models.get(provider), "protocols", lambda name, options: ())(name, options)
    if options.protocol == COMPLETION and COMPLETION not in taken:
        raise UsageError(f"{string} answers whole requests; completion is for base models such as local/FILE.gguf")
    return options.protocol or (taken[0] if taken else TEXT)


def common_protocol(strings: Iterable[str], options: ModelOptions) -> str | None:
    """Return the protocol of several models with the same options; None if they differ in it."""
    found = {protocol_of(string, options) for string in strings}
    return found.pop() if len(found) == 1 else None


def make_model(string: str, options: ModelOptions) -> Model:
    """Return the model that a string names; nothing is opened yet.

    Raises:
        UnknownNameError: no such provider, or the provider knows no such model.
        UsageError: the string or the options cannot be used.
        PluginError: the factory raised an error of its own.
        MissingExtraError: the provider's package is not installed.
    """
    provider, name = split_model(string)
    if ":" not in string and provider not in models:
        meant = _with_provider(string) if provider == string else None
        listed = "; `eirkit doctor` says what each needs"
        raise UnknownNameError("model provider", provider, models.names(), meant=meant, listed=listed)
    factory = models.get(provider)
    if not name and ":" not in provider:
        raise UsageError(f"{string!r} does not name a model; write {provider}/NAME")
    if not callable(factory):
        raise UsageError(f"{provider!r} is not a model factory; give a callable that takes a name and ModelOptions")
    model = call("model", factory, name, options)
    if missing := [verb for verb in ("reply", "close", "settings") if not callable(getattr(model, verb, None))]:
        raise UsageError(f"{provider!r} did not return a model; add {', '.join(missing)} to its class")
    return model


def _with_provider(name: str) -> str | None:
    """Return a bare name with its provider, where the name tells it: gpt-4o is openai/gpt-4o."""
    found = (provider for start, provider in _PROVIDERS.items() if name.startswith(start))
    return next((f"{provider}/{name}" for provider in found), None)


def runs_at_once(model: Model, options: ModelOptions) -> int:
    """Return the number of concurrent runs of a model: its connections, or more if it answers in batches."""
    gathered = MOST_AT_ONCE if options.batched else 1  # the next step of so many runs fits into a batch
    return max(1, options.connections, gathered, model.at_once if isinstance(model, Batching) else 1)


def refuse_settings(provider: str, options: ModelOptions, known: Iterable[str] = ()) -> None:
    """Raise UnknownNameError for a setting that the provider's models do not have."""
    known = tuple(known)
    for given in options.extra:
        if given not in known:
            raise UnknownNameError(f"setting of {provider} models", str(given), known)


def preflight(model: Model) -> None:
    """Raise UsageError if a model lacks a key, a package or a file; no server is contacted."""
    if isinstance(model, Preflight):
        call("model", model.preflight)
