"""The built-in model providers: a table of names and modules, imported on first use."""

PLUGINS = {
    "agent": "eirkit.lacuna.models.hosted",
    "anthropic": "eirkit.lacuna.models.hosted",
    "bundled": "eirkit.lacuna.agents.bundled",
    "google": "eirkit.lacuna.models.hosted",
    "inspect": "eirkit.lacuna.models.inspect_ai",
    "local": "eirkit.lacuna.agents.local",
    "openai": "eirkit.lacuna.models.hosted",
    "reference": "eirkit.lacuna.agents.reference",
    "replay": "eirkit.lacuna.models.replay",
    "scripted": "eirkit.lacuna.scripted.extractor",
}
